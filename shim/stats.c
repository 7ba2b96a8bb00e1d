// SPDX-License-Identifier: MIT
#include "shim/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/procparse.h"
#include "policy/stats_page.h"
#include "shim/os/env.h"
#include "shim/os/fd.h"
#include "shim/os/file.h"
#include "shim/os/sys.h"

#define PATH_BYTES 512
#define DIR_RUN "/run/user/"
#define DIR_SHM "/dev/shm"
#define NAME_START "numalift-"
#define NAME_END ".stat"
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* What clearing up may cost: a folder with millions of files must not keep the worker. */
#define TIDY_READS 16
#define TIDY_MOST 16

/* A page that somebody takes away is made anew, but not for ever. */
#define RENEW_MOST 16

/* The pid whose page there is; 0: none. The one thing that other threads look at. */
static _Atomic pid_t page_of;
static atomic_bool leaving;

static struct {
	struct lift_fd fd;
	uint64_t dev;
	uint64_t ino;
	uint64_t sequence;
	unsigned renewed;
	char path[PATH_BYTES];
	char option[PATH_BYTES];
	uint8_t page[LIFT_STATS_PAGE_BYTES];
} own;

/* For what is read: another's page, entries of a folder, files of /proc. */
static char scratch[8192] __attribute__((aligned(8)));

/* --- text ---------------------------------------------------------------------------------------
 */

struct out {
	char *buf;
	size_t len; /* beyond PATH_BYTES: did not fit */
};

static void put(struct out *o, const char *s, size_t n)
{
	if (o->len + n < PATH_BYTES) {
		memcpy(o->buf + o->len, s, n);
		o->buf[o->len + n] = '\0';
	}
	o->len += n;
}

static void put_text(struct out *o, const char *s)
{
	put(o, s, strlen(s));
}

static void put_number(struct out *o, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	put(o, digits + n, sizeof(digits) - n);
}

static bool fits(const struct out *o)
{
	return o->len < PATH_BYTES;
}

/* --- whose it is --------------------------------------------------------------------------------
 */

/* Start time of a process that is there and no zombie; 0: there is none, or it is not known. */
static uint64_t start_of(uint32_t pid, bool *ret_known)
{
	char path[32];
	struct out o = {.buf = path};
	uint64_t start = 0;
	char state;
	long n;

	put_text(&o, "/proc/");
	put_number(&o, pid);
	put_text(&o, "/stat");
	n = lift_sys_read_file(path, scratch, sizeof(scratch));
	*ret_known = n > 0 && lift_stats_start_time(scratch, (size_t)n, &state, &start) == 0;
	return *ret_known && state != 'Z' && state != 'X' ? start : 0;
}

static void describe(struct lift_stats_owner *ret)
{
	struct lift_file_info ns;
	const char *program = lift_env_program();
	size_t len = strlen(program);
	bool known;

	memset(ret, 0, sizeof(*ret));
	ret->pid = (uint32_t)lift_sys_getpid();
	ret->uid = lift_file_euid();
	ret->start_time = start_of(ret->pid, &known);
	if (lift_file_info_at("/proc/self/ns/pid", &ns) == 0)
		ret->pid_ns = ns.ino;
	if (len >= sizeof(ret->program))
		len = sizeof(ret->program) - 1;
	memcpy(ret->program, program, len);
}

/*
 * True for the page of a process that is dead. One of our own pid is that of what this process was
 * before it became us (exec), or of an earlier one. Pids of other namespaces say nothing here.
 */
static bool dead(const struct lift_stats_owner *who, const struct lift_stats_owner *us)
{
	uint64_t start;
	bool known;

	if (who->pid_ns != us->pid_ns)
		return false;
	if (who->pid == us->pid)
		return true;
	if (who->pid == 0 || who->pid > INT32_MAX)
		return false;
	if (!lift_file_process_exists(who->pid))
		return true;
	start = start_of(who->pid, &known);
	return known && who->start_time && start != who->start_time;
}

/*
 * Takes the file away if it is the page of a dead process of this user; @pid, if not 0, is the one
 * that its name says. @ours: the name is made for us, so that one left unfinished counts as well.
 */
static bool remove_stale(
	const char *path, const struct lift_stats_owner *us, uint32_t pid, bool ours)
{
	struct lift_stats_owner who;
	struct lift_file_info info;
	enum lift_page_error err;
	int fd = lift_file_open(path, O_RDONLY | O_NONBLOCK);
	bool stale = false;
	long n;

	if (fd < 0)
		return false;
	if (lift_file_info(fd, &info) == 0 && S_ISREG(info.mode) && info.uid == us->uid &&
		info.links == 1 && info.size <= LIFT_STATS_PAGE_MAX) {
		n = lift_fd_read_at(fd, scratch, sizeof(scratch), 0);
		err = lift_stats_page_owner((uint8_t *)scratch, n < 0 ? 0 : (size_t)n, &who);
		if (err == LIFT_PAGE_OK)
			stale = (pid == 0 || who.pid == pid) && dead(&who, us);
		else
			stale = ours && n >= 0 && err == LIFT_PAGE_EMPTY;
	}
	lift_file_close(fd);
	return stale && lift_file_unlink(path) == 0;
}

/* --- creating it --------------------------------------------------------------------------------
 */

/* 0 when nobody else can put, swap or remove files of ours there. */
static int check_folder(const char *path, uint32_t uid, bool strict)
{
	struct lift_file_info info;
	int rc = lift_file_info_at(path, &info);

	if (rc < 0)
		return rc;
	if (!S_ISDIR(info.mode))
		return -ENOTDIR;
	if (info.uid != uid && (strict || info.uid != 0))
		return -EPERM;
	return (info.mode & OTHERS_WRITE) && !(info.mode & S_ISVTX) ? -EPERM : 0;
}

/* numalift-UID-PID.stat, with this uid; 0: it is none. */
static uint32_t pid_of_name(const char *name, uint32_t uid)
{
	char start[PATH_BYTES];
	struct out o = {.buf = start};
	size_t len = strlen(name);
	uint64_t pid;

	put_text(&o, NAME_START);
	put_number(&o, uid);
	put_text(&o, "-");
	if (len <= o.len + strlen(NAME_END) || memcmp(name, start, o.len) != 0 ||
		strcmp(name + len - strlen(NAME_END), NAME_END) != 0)
		return 0;
	if (lift_parse_u64(name + o.len, len - o.len - strlen(NAME_END), &pid) < 0 ||
		pid > INT32_MAX)
		return 0;
	return (uint32_t)pid;
}

/* Pages that processes of this user left in the folder when they died. */
static void tidy(const char *folder, const struct lift_stats_owner *us)
{
	static char entries[4096] __attribute__((aligned(8)));
	int fd = lift_file_open(folder, O_RDONLY | O_DIRECTORY);
	unsigned removed = 0;

	if (fd < 0)
		return;
	for (unsigned i = 0; i < TIDY_READS && removed < TIDY_MOST; i++) {
		long n = lift_file_entries(fd, entries, sizeof(entries));
		const char *name;
		long at = 0;

		if (n <= 0)
			break;
		while (removed < TIDY_MOST && (name = lift_file_entry(entries, n, &at))) {
			uint32_t pid = pid_of_name(name, us->uid);
			char path[PATH_BYTES];
			struct out o = {.buf = path};

			if (pid == 0 || pid == us->pid)
				continue;
			put_text(&o, folder);
			put_text(&o, "/");
			put_text(&o, name);
			if (fits(&o) && remove_stale(path, us, pid, false))
				removed++;
		}
	}
	lift_file_close(fd);
}

static int fill_new(int fd, struct lift_file_info *ret)
{
	int rc;

	/* Beyond the limit comes a signal. */
	if (lift_file_limit() < LIFT_STATS_PAGE_BYTES)
		return -EFBIG;
	rc = lift_file_reserve(fd, LIFT_STATS_PAGE_BYTES);
	if (rc == 0)
		rc = lift_file_write_at(fd, own.page, LIFT_STATS_PAGE_BYTES, 0);
	return rc < 0 ? rc : lift_file_info(fd, ret);
}

static int create(const char *path, const struct lift_stats_owner *us, bool ours)
{
	struct lift_file_info info = {0};
	int fd = lift_file_create(path);
	int rc;

	if (fd == -EEXIST && remove_stale(path, us, 0, ours))
		fd = lift_file_create(path);
	if (fd < 0)
		return fd;
	lift_stats_page_init(own.page, us);
	own.sequence += own.sequence % 2;
	lift_stats_page_set_sequence(own.page, own.sequence);
	rc = fill_new(fd, &info);
	if (rc == 0)
		rc = lift_fd_adopt(&own.fd, fd);
	else
		lift_file_close(fd);
	if (rc < 0) {
		(void)lift_file_unlink(path);
		return rc;
	}
	own.dev = info.dev;
	own.ino = info.ino;
	if (path != own.path)
		memcpy(own.path, path, strlen(path) + 1);
	atomic_store(&page_of, (pid_t)us->pid);
	return 0;
}

static int create_in(const char *folder, const struct lift_stats_owner *us, bool strict)
{
	char path[PATH_BYTES];
	struct out o = {.buf = path};
	int rc = check_folder(folder, us->uid, strict);

	if (rc < 0)
		return rc;
	put_text(&o, folder);
	put_text(&o, "/" NAME_START);
	put_number(&o, us->uid);
	put_text(&o, "-");
	put_number(&o, us->pid);
	put_text(&o, NAME_END);
	if (!fits(&o))
		return -ENAMETOOLONG;
	tidy(folder, us);
	return create(path, us, true);
}

static int create_auto(const struct lift_stats_owner *us)
{
	char folder[PATH_BYTES];
	struct out o = {.buf = folder};

	put_text(&o, DIR_RUN);
	put_number(&o, us->uid);
	return create_in(folder, us, true) == 0 ? 0 : create_in(DIR_SHM, us, false);
}

/* An absolute path: of a folder, or of a file in one. */
static int create_at(const char *option, const struct lift_stats_owner *us)
{
	char path[PATH_BYTES];
	char folder[PATH_BYTES];
	struct out o = {.buf = path};
	struct lift_file_info info;
	char *slash;
	int rc;

	for (const char *p = option; *p; p++) {
		if (p[0] == '%' && p[1] == 'p') {
			put_number(&o, us->pid);
			p++;
		} else {
			put(&o, p, 1);
		}
	}
	if (!fits(&o))
		return -ENAMETOOLONG;
	if (path[o.len - 1] == '/' || (lift_file_info_at(path, &info) == 0 && S_ISDIR(info.mode))) {
		while (o.len > 1 && path[o.len - 1] == '/')
			path[--o.len] = '\0';
		return create_in(path, us, false);
	}
	memcpy(folder, path, o.len + 1);
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	rc = check_folder(folder, us->uid, false);
	return rc < 0 ? rc : create(path, us, false);
}

static int create_by(const char *option)
{
	struct lift_stats_owner us;

	describe(&us);
	return *option ? create_at(option, &us) : create_auto(&us);
}

int lift_stats_open(const char *option)
{
	lift_stats_close();
	if (!option || strcmp(option, "auto") == 0)
		option = "";
	if (strcmp(option, "off") == 0)
		return 0;
	if (*option && *option != '/')
		return -EINVAL;
	if (strlen(option) >= sizeof(own.option))
		return -ENAMETOOLONG;
	memcpy(own.option, option, strlen(option) + 1);
	own.renewed = 0;
	return create_by(own.option);
}

const char *lift_stats_path(void)
{
	return atomic_load(&page_of) ? own.path : NULL;
}

/* --- keeping it up to date ----------------------------------------------------------------------
 */

static int make_anew(void)
{
	int rc;

	if (own.renewed >= RENEW_MOST || atomic_load(&leaving))
		return -ENOENT;
	own.renewed++;
	lift_fd_close(&own.fd);
	rc = create_by(own.option);
	/* The process may have begun to exit meanwhile, and nobody else would take it away. */
	if (rc == 0 && atomic_load(&leaving))
		(void)lift_file_unlink(own.path);
	return rc;
}

/* The same file again, after the program has closed the descriptor; only if it still is that. */
static int open_again(void)
{
	struct lift_file_info info;
	int fd = lift_file_open(own.path, O_WRONLY | O_NONBLOCK);

	if (fd < 0)
		return fd;
	if (lift_file_info(fd, &info) < 0 || info.dev != own.dev || info.ino != own.ino) {
		lift_file_close(fd);
		return -ENOENT;
	}
	return lift_fd_adopt(&own.fd, fd);
}

/* A descriptor of the page, which is there and as long as it should be; or -errno. */
static int ready(void)
{
	struct lift_file_info info;
	int fd = lift_fd_get(&own.fd);

	if (fd < 0) {
		if (open_again() < 0 && make_anew() < 0)
			return -EBADF;
		fd = lift_fd_get(&own.fd);
	}
	if (fd < 0 || lift_file_info(fd, &info) < 0)
		return -EBADF;
	if (info.links == 0) {
		if (make_anew() < 0)
			return -ENOENT;
		fd = lift_fd_get(&own.fd);
	} else if (info.size > LIFT_STATS_PAGE_BYTES) {
		(void)lift_file_cut(fd, LIFT_STATS_PAGE_BYTES);
	}
	return fd;
}

void lift_stats_publish(const struct lift_stats *s)
{
	size_t at = lift_stats_page_sequence_at();
	const uint8_t *sequence = own.page + at;
	int fd;

	if (atomic_load(&page_of) == 0 || lift_file_limit() < LIFT_STATS_PAGE_BYTES)
		return;
	fd = ready();
	if (fd < 0)
		return;
	/* All of it, names and all: that mends whatever others did to the file. */
	lift_stats_page_fill(own.page, s);
	/* After a failure it stays odd: what is in the file is half of something. */
	own.sequence |= 1;
	lift_stats_page_set_sequence(own.page, own.sequence);
	if (lift_file_write_at(fd, sequence, sizeof(own.sequence), at) < 0)
		return;
	if (lift_file_write_at(fd, own.page, LIFT_STATS_PAGE_BYTES, 0) < 0)
		return;
	own.sequence++;
	lift_stats_page_set_sequence(own.page, own.sequence);
	(void)lift_file_write_at(fd, sequence, sizeof(own.sequence), at);
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* A child that shares nothing but memory with us (vfork, clone) may exit as well: not its page. */
static void take_away(void)
{
	struct lift_file_info info;
	int fd;

	if (atomic_load(&page_of) != lift_sys_getpid())
		return;
	fd = lift_file_open(own.path, O_PATH);
	if (fd < 0)
		return;
	if (lift_file_info(fd, &info) == 0 && info.dev == own.dev && info.ino == own.ino)
		(void)lift_file_unlink(own.path);
	lift_file_close(fd);
}

void lift_stats_close(void)
{
	take_away();
	lift_fd_close(&own.fd);
	atomic_store(&page_of, 0);
}

void lift_stats_forked(void)
{
	atomic_store(&page_of, 0);
	atomic_store(&leaving, false);
	lift_fd_close(&own.fd);
	own.path[0] = '\0';
}

/* The worker may be at it right now: nothing but the name goes. */
__attribute__((destructor)) static void leave(void)
{
	atomic_store(&leaving, true);
	if (atomic_load(&page_of))
		take_away();
}

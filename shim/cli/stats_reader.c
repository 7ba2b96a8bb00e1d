// SPDX-License-Identifier: MIT
#include "shim/cli/stats_reader.h"

#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "policy/procparse.h"
#include "shim/cli/cli.h"
#include "shim/cli/text.h"
#include "shim/os/file.h"
#include "shim/os/sys.h"

#define DIR_RUN "/run/user"
#define DIR_SHM "/dev/shm"
#define NAME_START "numalift-"
#define NAME_END ".stat"

/*
 * How long a page that is being written is waited for: a writer needs microseconds, unless it is
 * stopped in between. At first without a pause.
 */
#define TRIES 1000
#define TRIES_EACH 20
#define PAUSE_NS 2000000
#define PAUSES_MS (TRIES / TRIES_EACH * PAUSE_NS / 1000000)

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text);
	size_t m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static void pause_for(long ns)
{
	struct timespec ts = {0, ns};

	(void)nanosleep(&ts, NULL);
}

static const char *kind_of(mode_t mode)
{
	return S_ISDIR(mode)    ? "a folder"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISLNK(mode)  ? "a symbolic link"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device";
}

/* NULL if it may be read, else why not. */
static char *refuse(const struct stat *st)
{
	uid_t self = geteuid();

	if (!S_ISREG(st->st_mode))
		return lift_text("is %s; a page is a regular file", kind_of(st->st_mode));
	if (self != 0 && st->st_uid != self)
		return lift_text("belongs to user %u; only that user and root may read it, "
				 "and this is user %u",
			st->st_uid, self);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return lift_text("can be written by others (mode %04o); a page has mode 0600",
			st->st_mode & 07777);
	if (st->st_size > LIFT_STATS_PAGE_MAX)
		return lift_text("has %jd bytes; a page has at most %d", (intmax_t)st->st_size,
			LIFT_STATS_PAGE_MAX);
	return NULL;
}

static char *explain(enum lift_page_error error, const struct lift_stats_view *v, size_t bytes)
{
	switch (error) {
	case LIFT_PAGE_EMPTY:
		return lift_text("has nothing in it yet: it was begun, and not finished; if that "
				 "stays so, its process died over it");
	case LIFT_PAGE_FOREIGN:
		return lift_text("is not a statistics page: it does not begin with 'liftstat'");
	case LIFT_PAGE_VERSION:
		return lift_text("is a page of version %u; this command reads version %d: use the "
				 "one that came with the library",
			v->version, LIFT_STATS_VERSION);
	case LIFT_PAGE_SIZE:
		if (v->total_bytes)
			return lift_text("has %zu bytes and should have %" PRIu64 ": it is damaged",
				bytes, v->total_bytes);
		return lift_text("has %zu bytes, which is not enough for a page", bytes);
	case LIFT_PAGE_BUSY:
		return lift_text("is being written, and has been for %d ms: its process was "
				 "stopped or died meanwhile",
			PAUSES_MS);
	case LIFT_PAGE_LAYOUT:
		return lift_text("is damaged: a part of it lies outside of it");
	case LIFT_PAGE_CHECKSUM:
		return lift_text("is damaged: its checksum does not fit");
	case LIFT_PAGE_OK:
	case LIFT_PAGE_ERROR_MAX:
		break;
	}
	return NULL;
}

/* One try. The sequence is looked at again afterwards: the checksum alone would do but for luck. */
static enum lift_page_error snapshot(
	int fd, uint8_t *buf, struct lift_stats_view *ret, size_t *ret_bytes)
{
	enum lift_page_error error;
	uint64_t after = 0;
	ssize_t n;

	/* One byte more than it may have: it can grow while it is read. */
	n = pread(fd, buf, LIFT_STATS_PAGE_MAX + 1, 0);
	*ret_bytes = n < 0 ? 0 : (size_t)n;
	error = lift_stats_page_read(buf, *ret_bytes, ret);
	if (error)
		return error;
	if (pread(fd, &after, sizeof(after), (off_t)lift_stats_page_sequence_at()) !=
			sizeof(after) ||
		after != ret->sequence)
		return LIFT_PAGE_BUSY;
	return LIFT_PAGE_OK;
}

static char *read_page(int fd, struct lift_stats_view *ret)
{
	static uint8_t buf[LIFT_STATS_PAGE_MAX + 1];
	enum lift_page_error error;
	size_t bytes;

	for (unsigned i = 0;; i++) {
		error = snapshot(fd, buf, ret, &bytes);
		if ((error != LIFT_PAGE_BUSY && error != LIFT_PAGE_CHECKSUM &&
			    error != LIFT_PAGE_EMPTY) ||
			i == TRIES)
			break;
		if (i % TRIES_EACH == TRIES_EACH - 1)
			pause_for(PAUSE_NS);
	}
	return explain(error, ret, bytes);
}

static enum lift_stats_life life_of(const struct lift_stats_owner *who)
{
	struct lift_file_info ns;
	char path[32];
	char buf[1024];
	uint64_t start;
	char state;
	long n;

	if (who->pid_ns && lift_file_info_at("/proc/self/ns/pid", &ns) == 0 &&
		ns.ino != who->pid_ns)
		return LIFT_STATS_ELSEWHERE;
	if (who->pid == 0 || who->pid > INT32_MAX || !lift_file_process_exists(who->pid))
		return LIFT_STATS_ENDED;
	(void)snprintf(path, sizeof(path), "/proc/%u/stat", who->pid);
	n = lift_sys_read_file(path, buf, sizeof(buf));
	/* Hidden from us (hidepid): it is there, and that is all there is to know. */
	if (n <= 0 || lift_stats_start_time(buf, (size_t)n, &state, &start) < 0)
		return LIFT_STATS_RUNNING;
	if (state == 'Z' || state == 'X' || (who->start_time && who->start_time != start))
		return LIFT_STATS_ENDED;
	return LIFT_STATS_RUNNING;
}

static double age_of(int fd)
{
	struct timespec now;
	struct stat st;
	double age;

	/* After it was read: while that takes, it may be written. */
	if (fstat(fd, &st) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return 0;
	age = (double)(now.tv_sec - st.st_mtim.tv_sec) +
	      (double)(now.tv_nsec - st.st_mtim.tv_nsec) / 1e9;
	return age < 0 ? 0 : age;
}

/* Of numalift-UID-PID.stat; 0: it has another name. */
static uint32_t pid_of_name(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *dash = strrchr(name, '-');
	size_t len = strlen(name);
	uint64_t pid;

	if (strncmp(name, NAME_START, strlen(NAME_START)) != 0 || !ends_with(name, NAME_END) ||
		dash < name + strlen(NAME_START) ||
		lift_parse_u64(
			dash + 1, (size_t)(name + len - (dash + 1)) - strlen(NAME_END), &pid) < 0 ||
		pid > INT32_MAX)
		return 0;
	return (uint32_t)pid;
}

/* What people see of a name must not steer their terminal. */
static void tame(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

bool lift_stats_page_load(struct lift_stats_page *ret, const char *path)
{
	char *copy = lift_text("%s", path); /* @path may be ret->path */
	struct stat st;
	int fd;

	lift_stats_page_fini(ret);
	memset(ret, 0, sizeof(*ret));
	ret->path = copy;
	/* Before it is opened: that alone can do something, to a device for one. */
	if (lstat(copy, &st) < 0) {
		ret->problem = lift_text("cannot be opened: %s", strerror(errno));
		return false;
	}
	ret->uid = st.st_uid;
	ret->pid = pid_of_name(copy);
	ret->problem = refuse(&st);
	if (ret->problem)
		return false;
	fd = open(copy, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		ret->problem = lift_text("cannot be opened: %s", strerror(errno));
		return false;
	}
	if (fstat(fd, &st) < 0)
		ret->problem = lift_text("cannot be looked at: %s", strerror(errno));
	else
		ret->problem = refuse(&st);
	if (!ret->problem) {
		ret->problem = read_page(fd, &ret->view);
		ret->age = age_of(fd);
	}
	(void)close(fd);
	tame(ret->view.owner.program);
	tame(ret->view.stats.sampler);
	tame(ret->view.stats.reason);
	if (!ret->problem && ret->pid && ret->pid != ret->view.owner.pid)
		ret->problem =
			lift_text("is the page of pid %u by what is in it", ret->view.owner.pid);
	if (!ret->pid)
		ret->pid = ret->view.owner.pid;
	if (ret->view.owner.pid)
		ret->life = life_of(&ret->view.owner);
	return !ret->problem;
}

void lift_stats_page_fini(struct lift_stats_page *p)
{
	free(p->path);
	free(p->problem);
	p->path = NULL;
	p->problem = NULL;
}

/* --- finding ------------------------------------------------------------------------------------
 */

static bool known(const struct lift_stats_pages *p, const char *path)
{
	for (size_t i = 0; i < p->nr; i++)
		if (strcmp(p->page[i].path, path) == 0)
			return true;
	return false;
}

static void add(struct lift_stats_pages *p, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || known(p, path))
		return;
	/* Others' files are nobody's business here, but for the one that is asked for by its pid.
	 */
	if (geteuid() != 0 && st.st_uid != geteuid() &&
		(!p->asked || pid_of_name(path) != p->asked))
		return;
	if (p->nr == p->room) {
		p->room = p->room ? p->room * 2 : 16;
		p->page = reallocarray(p->page, p->room, sizeof(*p->page));
		if (!p->page)
			err(LIFT_EXIT_FAILED, "numalift");
	}
	memset(&p->page[p->nr], 0, sizeof(p->page[p->nr]));
	/* Gone since the folder was read: not a page any more. */
	if (!lift_stats_page_load(&p->page[p->nr], path) && lstat(path, &st) < 0 &&
		errno == ENOENT) {
		lift_stats_page_fini(&p->page[p->nr]);
		return;
	}
	p->nr++;
}

/* Files of the folder that are called @start, a number, @end. */
static void add_folder(
	struct lift_stats_pages *p, const char *folder, const char *start, const char *end)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);
		char *path;

		if (len < strlen(start) + strlen(end) ||
			strncmp(e->d_name, start, strlen(start)) != 0 || !ends_with(e->d_name, end))
			continue;
		path = lift_text("%s%s%s", folder, ends_with(folder, "/") ? "" : "/", e->d_name);
		add(p, path);
		free(path);
	}
	(void)closedir(d);
}

/* /run/user/UID: of this user, or all of them for root. */
static void add_run(struct lift_stats_pages *p)
{
	const struct dirent *e;
	DIR *d;

	if (geteuid() != 0) {
		char *folder = lift_text("%s/%u", DIR_RUN, geteuid());

		add_folder(p, folder, NAME_START, NAME_END);
		free(folder);
		return;
	}
	d = opendir(DIR_RUN);
	while (d && (e = readdir(d))) {
		char *folder;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		folder = lift_text("%s/%s", DIR_RUN, e->d_name);
		add_folder(p, folder, NAME_START, NAME_END);
		free(folder);
	}
	if (d)
		(void)closedir(d);
}

/* As the library takes NUMALIFT_STATS, for a pid that is not known. */
static void add_setting(struct lift_stats_pages *p, const char *setting)
{
	char *folder;
	char *name;
	char *pid;
	struct stat st;

	if (!setting || setting[0] != '/')
		return;
	if (stat(setting, &st) == 0 && S_ISDIR(st.st_mode)) {
		add_folder(p, setting, NAME_START, NAME_END);
		return;
	}
	folder = lift_text("%s", setting);
	name = strrchr(folder, '/');
	pid = strstr(name, "%p");
	if (pid) {
		*pid = '\0';
		*name++ = '\0';
		add_folder(p, *folder ? folder : "/", name, pid + 2);
	} else {
		add(p, setting);
	}
	free(folder);
}

static int by_pid(const void *a, const void *b)
{
	const struct lift_stats_page *p = a;
	const struct lift_stats_page *q = b;

	if (p->pid != q->pid)
		return p->pid < q->pid ? -1 : 1;
	return strcmp(p->path, q->path);
}

void lift_stats_pages_find(struct lift_stats_pages *ret, uint32_t asked)
{
	*ret = (struct lift_stats_pages){.asked = asked};
	add_run(ret);
	add_folder(ret, DIR_SHM, NAME_START, NAME_END);
	add_setting(ret, getenv("NUMALIFT_STATS"));
	if (ret->nr)
		qsort(ret->page, ret->nr, sizeof(*ret->page), by_pid);
}

void lift_stats_pages_fini(struct lift_stats_pages *p)
{
	for (size_t i = 0; i < p->nr; i++)
		lift_stats_page_fini(&p->page[i]);
	free(p->page);
	memset(p, 0, sizeof(*p));
}

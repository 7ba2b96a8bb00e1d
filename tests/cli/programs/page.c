/*
 * A process with a statistics page, and one that reads it without rest.
 *
 *   page                    does what it is told on standard input, a word and an argument per
 * line, and answers each line with one page read PATH SECONDS  reads without pause; fails when
 * values do not belong together
 *
 * It is linked with shim/stats.c itself: no library is preloaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "policy/stats_page.h"
#include "shim/stats.h"

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void set(struct lift_stats *s, unsigned figure, uint64_t value)
{
	memcpy((char *)s + lift_stats_table[figure].at, &value, sizeof(value));
}

/* Everything follows from @n. */
static void made_of(struct lift_stats *s, uint64_t n)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < LIFT_STATS_NR; i++)
		set(s, i, n + i);
	(void)snprintf(s->sampler, sizeof(s->sampler), "s%llu", (unsigned long long)(n % 1000000));
	memset(s->reason, (int)('a' + n % 26), sizeof(s->reason) - 1);
	s->nr_nodes = LIFT_SLOTS;
	for (unsigned i = 0; i < LIFT_SLOTS; i++)
		s->node[i] = (struct lift_stats_node){
			.node = (int32_t)i,
			.pages_here = n + i,
			.free_bytes = n,
		};
}

static bool same(const struct lift_stats_view *v)
{
	struct lift_stats want;

	made_of(&want, lift_stats_get(&v->stats, 0));
	return memcmp(&want, &v->stats, sizeof(want)) == 0;
}

static int read_page(const char *path, double seconds)
{
	static uint8_t buf[LIFT_STATS_PAGE_MAX];
	static struct lift_stats_view v;
	unsigned long whole = 0;
	unsigned long busy = 0;
	unsigned long torn = 0;
	unsigned long moments = 0;
	uint64_t last = 0;
	int fd = open(path, O_RDONLY);

	if (fd < 0) {
		perror(path);
		return 1;
	}
	for (double end = now() + seconds; now() < end;) {
		ssize_t n = pread(fd, buf, sizeof(buf), 0);
		enum lift_page_error error = lift_stats_page_read(buf, (size_t)n, &v);

		if (error == LIFT_PAGE_BUSY) {
			busy++;
		} else if (error == LIFT_PAGE_CHECKSUM) {
			torn++;
		} else if (error != LIFT_PAGE_OK) {
			(void)fprintf(stderr, "error %d\n", error);
			return 1;
		} else if (!same(&v) || v.sequence < last) {
			(void)fprintf(stderr, "values that do not belong together\n");
			return 1;
		} else {
			whole++;
			moments += v.sequence != last;
			last = v.sequence;
		}
	}
	(void)printf("whole %lu moments %lu busy %lu torn %lu\n", whole, moments, busy, torn);
	return moments > 1 ? 0 : 1;
}

/* What a program looks like that has been promoted for an hour. */
static void golden(struct lift_stats *s)
{
	*s = (struct lift_stats){
		.state = LIFT_STATS_PROMOTING,
		.mode = LIFT_STATS_MODE_ON,
		.uptime_ns = 3725000000000,
		.budget_ppm = 30000,
		.period_ns = 2000000000,
		.sample_ns = 250000000,
		.passes = 1812,
		.changes = 7,
		.pauses = 1,
		.tracked_bytes = 4 * LIFT_GIB,
		.fast_bytes = 3 * LIFT_GIB,
		.slow_bytes = LIFT_GIB,
		.fast_limit_bytes = UINT64_MAX,
		.fast_share = 3891,
		.stuck_pages = 12,
		.cooling_pages = 96,
		.metadata_bytes = 4300000,
		.numa_pte_updates = 12000000,
		.numa_hint_faults = 4500000,
		.released = 7000000,
		.located = 1048576,
		.hot_rate = 1250,
		.wanted = 640,
		.pgpromote_candidate = 262300,
		.pgpromote_success = 262144,
		.promoted_home = 131072,
		.pgdemote = 4096,
		.bounced = 64,
		.move_busy = 100,
		.move_nomem = 0,
		.move_absent = 50,
		.move_shared = 6,
		.window_bytes = 65536,
		.predicted = 80000,
		.predicted_hit = 71000,
		.predicted_wrong = 4000,
		.worker_cpu_ns = 41000000000,
		.move_ns = 3100000000,
		.fault_est_ns = 13500000000,
		.cost_arm_ns = 110,
		.cost_release_ns = 60,
		.cost_scan_ns = 21,
		.cost_fault_ns = 3000,
		.cost_promote_ns = 9800,
		.cost_demote_ns = 10200,
		.gap_ns = 150,
		.sampler = "rwp",
		.nr_nodes = 3,
		.node = {{0, 1, 1, 524288, 2 * LIFT_GIB}, {1, 1, 1, 262144, 100 * LIFT_MIB},
			{2, 0, 1, 262144, 60 * LIFT_GIB}},
	};
}

/* In @pid: what became of it. */
static int outcome(pid_t pid)
{
	int status = 0;

	(void)waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int forked(bool told)
{
	pid_t pid = told ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	static struct lift_stats s;

	if (pid == 0) {
		if (told) {
			lift_stats_forked();
			if (lift_stats_path())
				_exit(9);
			lift_stats_publish(&s);
		}
		exit(0);
	}
	return outcome(pid);
}

static int close_from(int first)
{
	for (int fd = first; fd < 8192; fd++)
		(void)close(fd);
	return 0;
}

/* Other files take the numbers of descriptors that were closed. */
static int reuse(void)
{
	int highest = 0;

	for (int fd = 3; fd < 8192; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			highest = fd;
	(void)close_from(3);
	for (int fd = 3; fd <= highest; fd++) {
		int null = open("/dev/full", O_RDWR);

		if (null >= 0 && null != fd) {
			(void)dup2(null, fd);
			(void)close(null);
		}
	}
	return highest;
}

static int open_descriptors(void)
{
	int nr = 0;

	for (int fd = 0; fd < 8192; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

static int limit(rlim_t bytes)
{
	struct rlimit lim = {bytes, RLIM_INFINITY};

	return setrlimit(RLIMIT_FSIZE, &lim);
}

static int publish_for(double seconds)
{
	static struct lift_stats s;
	uint64_t n = 0;

	for (double end = now() + seconds; now() < end;) {
		made_of(&s, 1 + n++);
		lift_stats_publish(&s);
	}
	return (int)n;
}

static int act(const char *word, const char *arg)
{
	static struct lift_stats s;

	if (strcmp(word, "open") == 0)
		return lift_stats_open(arg);
	if (strcmp(word, "golden") == 0) {
		golden(&s);
		lift_stats_publish(&s);
		return 0;
	}
	if (strcmp(word, "reason") == 0) {
		(void)snprintf(s.reason, sizeof(s.reason), "%s", arg);
		s.state = LIFT_STATS_OFF;
		lift_stats_publish(&s);
		return 0;
	}
	if (strcmp(word, "publish") == 0) {
		made_of(&s, strtoull(arg, NULL, 10));
		lift_stats_publish(&s);
		return 0;
	}
	if (strcmp(word, "loop") == 0)
		return publish_for(strtod(arg, NULL));
	if (strcmp(word, "close") == 0) {
		lift_stats_close();
		return 0;
	}
	if (strcmp(word, "closefrom") == 0)
		return close_from(3);
	if (strcmp(word, "reuse") == 0)
		return reuse();
	if (strcmp(word, "descriptors") == 0)
		return open_descriptors();
	if (strcmp(word, "fork") == 0)
		return forked(true);
	if (strcmp(word, "clone") == 0)
		return forked(false);
	if (strcmp(word, "limit") == 0)
		return limit(strtoull(arg, NULL, 10));
	if (strcmp(word, "setuid") == 0)
		return setresuid((uid_t)atoi(arg), (uid_t)atoi(arg), (uid_t)atoi(arg));
	if (strcmp(word, "exec") == 0) {
		(void)execl("/proc/self/exe", arg, (char *)NULL);
		return errno;
	}
	if (strcmp(word, "die") == 0)
		(void)raise(SIGKILL);
	return -1000;
}

int main(int argc, char **argv)
{
	char line[1024];

	if (argc == 4 && strcmp(argv[1], "read") == 0)
		return read_page(argv[2], strtod(argv[3], NULL));
	while (fgets(line, sizeof(line), stdin)) {
		char *arg = strchr(line, ' ');
		const char *path;
		int rc;

		line[strcspn(line, "\n")] = '\0';
		if (arg)
			*arg++ = '\0';
		errno = 0;
		rc = act(line, arg ? arg : "");
		path = lift_stats_path();
		(void)printf("%d %d %s\n", rc, errno, path ? path : "-");
		(void)fflush(stdout);
	}
	return 0;
}

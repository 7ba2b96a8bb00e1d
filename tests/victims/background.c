/*
 * A program large and busy enough for a background thread, which then does what such a thread could
 * spoil. Argument: which.
 */
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "rights.h"
#include "victim.h"

static void same_rights(void)
{
	char mine[1024];
	char other[1024];
	char self[16];
	DIR *tasks = opendir("/proc/self/task");

	snprintf(self, sizeof(self), "%d", (int)getpid());
	rights_of(self, mine, sizeof(mine));
	for (struct dirent *e = tasks ? readdir(tasks) : NULL; e; e = readdir(tasks)) {
		if (e->d_name[0] == '.')
			continue;
		if (rights_differ(e->d_name, mine, other, sizeof(other)))
			FAIL("a thread has other rights:\n%smain thread:\n%s", other, mine);
	}
	if (tasks)
		closedir(tasks);
}

static void change_user(void)
{
	gid_t groups[] = {1000, 101};

	CHECK(!setgroups(2, groups) && !setresgid(1000, 1000, 1000));
	same_rights();
	CHECK(!setresuid(1000, 1000, 1000));
}

static void no_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	CHECK(!syscall(SYS_capset, &header, none));
}

/* A child that does not come to its end has waited for a thread that it has not got. */
static void child_is_well(pid_t child)
{
	CHECK(child > 0);
	expect_child_ok(child, "a child");
}

/* Memory that was one mapping, of which a part is older than the other. */
static void remap_both_halves(void)
{
	enum { ROUNDS = 10, PART = 2 * 1024 * 1024, ALL = 64 * 1024 * 1024 };

	for (unsigned round = 0; round < ROUNDS; round++) {
		char *room = mmap(
			NULL, ALL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		char *at[2] = {room + 4 * PART, room + 5 * PART};
		char *to = room + 16 * PART;
		unsigned first = round % 2;

		CHECK(room != MAP_FAILED);
		for (unsigned i = 0; i < 2; i++) {
			char *p = at[i ^ first];

			CHECK(mmap(p, PART, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
			memset(p, (int)(1 + (i ^ first)), PART);
			usleep(i == 0 ? round * 110000 % 1100000 : 0);
		}
		CHECK(mremap(at[0], 2 * PART, 2 * PART, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		CHECK(to[0] == 1 && to[PART - 1] == 1 && to[PART] == 2 && to[2 * PART - 1] == 2);
		munmap(room, ALL);
	}
}

static void close_all(void)
{
	enum { FIRST = 3 };

	CHECK(!close_range(FIRST, ~0u, 0));
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd != FIRST)
		FAIL("descriptor %d instead of %d", fd, FIRST);
	close(fd);
	sleep(2);
	fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd == FIRST);
	close(fd);
	/* with the one that reads the folder */
	if (count_names("/proc/self/fd") != FIRST + 1)
		FAIL("%d descriptors", count_names("/proc/self/fd"));
}

/* A debugger comes, looks at all threads, calls a function, and goes. */
static void attached(void)
{
	char self[16];
	int threads = count_names("/proc/self/task");
	pid_t child;

	snprintf(self, sizeof(self), "%d", (int)getpid());
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		unsetenv("LD_PRELOAD");
		CHECK(null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2);
		execlp("gdb", "gdb", "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off",
			"-ex", "thread apply all bt 1", "-ex", "print (int)getpid()", "-ex",
			"detach", "-p", self, NULL);
		_exit(77);
	}
	int status = 0;

	/* 512 is ERESTARTSYS: what was waiting when the debugger called a function may see it. */
	while (waitpid(child, &status, 0) != child)
		CHECK(errno == EINTR || errno == 512);
	if (status != 0)
		SKIP("there is no gdb, or it may not attach (status %#x)", (unsigned)status);
	if (count_names("/proc/self/task") != threads)
		FAIL("%d threads instead of %d", count_names("/proc/self/task"), threads);
	exercise_heap(1, 2000);
}

static void grow(void)
{
	enum { LEAST_NS = 800000000 };
	size_t bytes = 160 * MIB;
	char *large = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec used = {0, 0};

	CHECK(large != MAP_FAILED);
	while (used.tv_sec == 0 && used.tv_nsec < LEAST_NS) {
		for (size_t i = 0; i < bytes; i += 4096)
			large[i]++;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	}
	usleep(500000); /* whoever waits for it to be large looks now and then */
}

/* Blocks of a quarter of a gigabyte, of which next to nothing is resident. */
static void allocate_first(void)
{
	enum { BLOCK = 256 * 1024, BLOCKS = 1024 };
	int threads = getenv("LD_PRELOAD") ? 2 : 1;

	CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	for (int i = 0; i < BLOCKS; i++)
		CHECK(malloc(BLOCK));
	if (count_names("/proc/self/task") != threads)
		FAIL("%d threads instead of %d", count_names("/proc/self/task"), threads);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	struct sched_param urgent = {.sched_priority = 5};
	pid_t child;

	if (geteuid() != 0 && !strstr("remap attached descriptors unshare alone first", which))
		SKIP("needs root");
	if (!strcmp(which, "urgent") && sched_setscheduler(0, SCHED_FIFO, &urgent))
		SKIP("no real-time threads here");
	if (!strcmp(which, "first")) {
		allocate_first();
		return pass();
	}
	grow();
	if (!strcmp(which, "user")) {
		change_user();
	} else if (!strcmp(which, "effective")) {
		CHECK(!setegid(1000) && !seteuid(1000));
		same_rights();
		CHECK(!seteuid(0) && !setegid(0));
	} else if (!strcmp(which, "capset")) {
		no_capabilities();
	} else if (!strcmp(which, "raw")) {
		CHECK(!syscall(SYS_setresuid, 1000, 1000, 1000));
	} else if (!strcmp(which, "bounding")) {
		CHECK(!prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
	} else if (!strcmp(which, "unshare")) {
		if (unshare(CLONE_NEWUSER)) {
			if (errno == EPERM || errno == ENOSPC)
				SKIP("no user namespaces here");
			FAIL("unshare: errno %d", errno);
		}
	} else if (!strcmp(which, "fork")) {
		child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0)
			_exit(unshare(CLONE_FS) || setgid(1000) || setuid(1000) ||
				prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		child_is_well(child);
	} else if (!strcmp(which, "vfork")) {
		child = vfork();
		if (child == 0)
			_exit(setgid(1000) || setuid(1000));
		child_is_well(child);
	} else if (!strcmp(which, "urgent")) {
		DIR *tasks = opendir("/proc/self/task");

		for (struct dirent *e = tasks ? readdir(tasks) : NULL; e; e = readdir(tasks))
			if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid())
				CHECK(sched_getscheduler(atoi(e->d_name)) == SCHED_OTHER);
		closedir(tasks);
	} else if (!strcmp(which, "remap")) {
		remap_both_halves();
	} else if (!strcmp(which, "alone")) {
		CHECK(count_names("/proc/self/task") == 1);
		exercise_heap(1, 2000);
	} else if (!strcmp(which, "attached")) {
		attached();
	} else if (!strcmp(which, "descriptors")) {
		close_all();
	} else if (!strcmp(which, "last")) {
		/* The thread, not the process: it was the only one. */
		(void)!write(1, "ok\n", 3);
		alarm(3);
		syscall(SYS_exit, 0);
	}
	same_rights();
	return pass();
}

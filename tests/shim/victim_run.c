#include "tests/shim/victim_run.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 40, ENV_MAX = 40 };

/* What every program gets from the environment of the test. */
static const char *const passed_on[] = {"PATH", "HOME", "TMPDIR", "VICTIM_DIR"};

struct stream {
	int fd;
	char *text;
	size_t used;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* In the child. Reports errno through @report, which a successful exec closes. */
static void become(const struct victim_order *order, int out, int err, int report)
{
	char *argv[ARGS_MAX] = {(char *)(size_t)order->path};
	char *envp[ENV_MAX] = {NULL};
	char text[8192];
	size_t used = 0;
	int count = 0;
	sigset_t none;

	for (int i = 0; order->args && order->args[i] && i < ARGS_MAX - 2; i++)
		argv[i + 1] = (char *)(size_t)order->args[i];
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
		const char *value = getenv(passed_on[i]);

		if (!value)
			continue;
		envp[count++] = text + used;
		used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s=%s", passed_on[i], value) +
			1;
	}
	if (order->preload && *order->preload) {
		envp[count++] = text + used;
		snprintf(text + used, sizeof(text) - used, "LD_PRELOAD=%s", order->preload);
	}
	envp[count++] = (char *)(size_t) "LC_ALL=C";
	for (int i = 0; order->env && order->env[i] && count < ENV_MAX - 1; i++)
		envp[count++] = (char *)(size_t)order->env[i];

	for (int signal = 1; signal < 32; signal++)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	int in = open("/dev/null", O_RDONLY);

	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || dup2(report, 3) < 0)
		_exit(120);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	closefrom(4);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	bool good = true;

	if (order->user)
		good = !setgroups(0, NULL) && !setgid(order->user) && !setuid(order->user);
	for (size_t i = 0; good && i < order->nr_limits; i++) {
		struct rlimit limit = {order->limit[i].value, order->limit[i].value};

		if (limit.rlim_cur)
			good = !setrlimit((__rlimit_resource_t)order->limit[i].what, &limit);
	}
	if (good)
		execve(order->path, argv, envp);
	int error = errno;

	_exit(write(3, &error, sizeof(error)) == sizeof(error) ? 121 : 122);
}

/* Reads what is there; false at the end of the stream. */
static bool take(struct stream *stream)
{
	char rest[4096];
	size_t room = VICTIM_TEXT_BYTES - 1 - stream->used;
	ssize_t got = room ? read(stream->fd, stream->text + stream->used, room)
			   : read(stream->fd, rest, sizeof(rest));

	if (got <= 0)
		return got < 0 && errno == EINTR;
	if (room)
		stream->used += (size_t)got;
	stream->text[stream->used] = '\0';
	return true;
}

/* How long what a program started may outlive it. */
#define GRACE_SECONDS 5

/*
 * Reads until both streams have ended and waits for the program. False when it hangs, or when
 * others hold its streams for long after its end; *ret_ended tells these apart.
 */
static bool collect(
	struct stream stream[2], pid_t pid, double deadline, int *ret_status, bool *ret_ended)
{
	struct pollfd wait[2] = {{stream[0].fd, POLLIN, 0}, {stream[1].fd, POLLIN, 0}};

	*ret_ended = false;
	while (wait[0].fd >= 0 || wait[1].fd >= 0 || !*ret_ended) {
		if (!*ret_ended && waitpid(pid, ret_status, WNOHANG) == pid) {
			*ret_ended = true;
			if (deadline > now() + GRACE_SECONDS)
				deadline = now() + GRACE_SECONDS;
		}
		if (now() > deadline)
			return false;
		bool open_streams = wait[0].fd >= 0 || wait[1].fd >= 0;

		if (poll(wait, 2, open_streams ? 20 : 1) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++)
			if (wait[i].fd >= 0 && wait[i].revents && !take(&stream[i]))
				wait[i].fd = -1;
	}
	return true;
}

/* Kills every child there is; those of a program that ended came to us, the subreaper. */
static void kill_children(void)
{
	char path[64];
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *list = fopen(path, "re");

	while (list && fscanf(list, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (list)
		fclose(list);
}

/* Waits for what the program left behind; true when something did not end by itself. */
static bool end_leftovers(void)
{
	double deadline = now() + GRACE_SECONDS;
	bool any = false;
	pid_t got;

	while ((got = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0) {
		if (got > 0)
			continue; /* had ended and was only not waited for */
		if (now() > deadline) {
			any = true;
			kill_children();
		}
		if (now() > deadline + GRACE_SECONDS)
			break;
		usleep(1000);
	}
	return any;
}

int victim_run(const struct victim_order *order, struct victim_outcome *ret)
{
	int pipes[3][2];
	int error = 0;

	memset(ret, 0, sizeof(*ret));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			return -errno;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		become(order, pipes[0][1], pipes[1][1], pipes[2][1]);
	for (int i = 0; i < 3; i++)
		close(pipes[i][1]);
	if (read(pipes[2][0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	struct stream stream[2] = {{pipes[0][0], ret->out, 0}, {pipes[1][0], ret->err, 0}};
	double deadline = now() + (order->seconds ? order->seconds : 60);

	bool ended;

	if (!collect(stream, pid, deadline, &ret->status, &ended)) {
		ret->hung = !ended;
		ret->left_process = ended;
		kill(-pid, SIGKILL);
		if (!ended)
			waitpid(pid, &ret->status, 0);
	}
	ret->left_process |= end_leftovers();
	for (int i = 0; i < 3; i++)
		close(pipes[i][0]);
	return -error;
}

size_t victim_lines(const char *text)
{
	size_t lines = 0;
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines + (length && text[length - 1] != '\n');
}

/*
 * What the victims share. A victim is a plain program with one behaviour: it exits 0 after printing
 * "ok" where the behaviour is right, 77 with the reason where it cannot be tried, and 1 with one
 * line that says what went wrong. It never links anything of numalift and passes on plain glibc.
 *
 * Reports go through write(2): a victim may be in any state when it finds something wrong.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

__attribute__((format(printf, 3, 4), noreturn)) static inline void victim_end(
	int status, const char *head, const char *format, ...)
{
	char line[600];
	va_list args;

	va_start(args, format);
	int used = snprintf(line, sizeof(line), "%s", head);
	int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);

	va_end(args);
	size_t length = strlen(line);

	(void)more;
	line[length++] = '\n';
	if (write(1, line, length) < 0)
		_exit(99);
	_exit(status);
}

#define FAIL(...) victim_end(1, "FAIL: ", __VA_ARGS__)
#define SKIP(...) victim_end(77, "", __VA_ARGS__)
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			FAIL("%s:%d: %s (errno %d)", __FILE__, __LINE__, #condition, errno);       \
	} while (0)

/* The last statement of main: `return pass();` */
static inline int pass(void)
{
	return write(1, "ok\n", 3) == 3 ? 0 : 99;
}

/* A number from /proc/self/status in kB ("VmRSS:"), -1 where it cannot be read. No allocation. */
static inline long status_kb(const char *key)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	const char *at = strstr(text, key);

	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* How many names a folder of /proc has without "." and ".."; -1 where it cannot be read. */
static inline int count_names(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = 0;

	if (!dir)
		return -1;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* A small repeatable generator: the same sizes on every run. */
static inline unsigned rnd(unsigned *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Mixed sizes as programs ask for: mostly small, some pages, few large (up to about 3 MiB). */
static inline size_t mixed_size(unsigned *state)
{
	unsigned kind = rnd(state) % 100;

	if (kind < 70)
		return rnd(state) % 1024 + 1;
	if (kind < 95)
		return rnd(state) % 40000 + 1;
	if (kind < 99)
		return rnd(state) % 400000 + 1;
	return rnd(state) % 3000000 + 1;
}

/* Allocates, marks, checks and frees `rounds` blocks of mixed sizes; fails on the first fault. */
static inline void exercise_heap(unsigned seed, int rounds)
{
	enum { SLOTS = 128 };
	unsigned char *block[SLOTS] = {NULL};
	size_t size[SLOTS] = {0};
	unsigned state = seed * 2654435761u + 1;

	for (int i = 0; i < rounds; i++) {
		unsigned slot = rnd(&state) % SLOTS;

		if (block[slot] && (block[slot][0] != slot || block[slot][size[slot] - 1] != slot))
			FAIL("block of %zu bytes was overwritten", size[slot]);
		free(block[slot]);
		size[slot] = mixed_size(&state);
		block[slot] = (unsigned char *)malloc(size[slot]);
		if (!block[slot])
			FAIL("malloc(%zu) failed, errno %d", size[slot], errno);
		block[slot][0] = block[slot][size[slot] - 1] = (unsigned char)slot;
	}
	for (int slot = 0; slot < SLOTS; slot++)
		free(block[slot]);
}

/* Waits for one child and fails unless it ended with status 0. */
static inline void expect_child_ok(pid_t child, const char *what)
{
	int status = 0;

	if (child < 0)
		FAIL("%s: cannot start a child, errno %d", what, errno);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			FAIL("%s: waitpid failed, errno %d", what, errno);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77); /* the child has given the reason */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		_exit(1);
	if (status)
		FAIL("%s: child ended with status %#x", what, (unsigned)status);
}

#endif

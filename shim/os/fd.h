// SPDX-License-Identifier: MIT
/*
 * Descriptors that numalift keeps open inside somebody else's process. They are O_CLOEXEC and have
 * high numbers, so that a program that counts on low ones or hands out free ones by itself is not
 * surprised. A program may close descriptors it does not know and get their numbers for its own
 * files: hence each is remembered with the file it was, and compared before use.
 *
 * Nothing here touches errno or allocates. Async-signal-safe.
 */
#ifndef NUMALIFT_SHIM_OS_FD_H
#define NUMALIFT_SHIM_OS_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: not open. */
struct lift_fd {
	int nr; /* the descriptor + 1; 0: none */
	uint64_t dev;
	uint64_t ino;
};

/* Opens a file, moves it up. 0 or -errno. flags: O_RDONLY or O_WRONLY. */
int lift_fd_open(struct lift_fd *ret, const char *path, int flags);

/*
 * Takes over a descriptor fresh from the kernel: moves it to a high number, makes it O_CLOEXEC. It
 * is closed in any case. 0 or -errno.
 */
int lift_fd_adopt(struct lift_fd *ret, int fd);

/* The descriptor, or -EBADF when it is not open, was closed, or is something else by now. */
int lift_fd_get(const struct lift_fd *f);

/* Closes it if it still is what was opened, and forgets it. */
void lift_fd_close(struct lift_fd *f);

/* pread(2): bytes read or -errno, interruptions seen to. */
long lift_fd_read_at(int fd, void *buf, size_t len, uint64_t offset);

#endif

// SPDX-License-Identifier: MIT
/*
 * Small files that numalift itself keeps: made, written, compared, taken away. One system call
 * each; 0 or a count, else -errno. errno is left alone, nothing is allocated. Async-signal-safe.
 */
#ifndef NUMALIFT_SHIM_OS_FILE_H
#define NUMALIFT_SHIM_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lift_file_info {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	uint64_t links;
	uint32_t mode; /* with the type */
	uint32_t uid;
};

/* A descriptor, O_CLOEXEC. The last part of the path is never followed. */
int lift_file_open(const char *path, int flags);

/* As open, of a file that must not be there yet: -EEXIST. For this user only, whatever the umask.
 */
int lift_file_create(const char *path);

void lift_file_close(int fd);
int lift_file_info(int fd, struct lift_file_info *ret);

/* Of what the path leads to: links are followed. */
int lift_file_info_at(const char *path, struct lift_file_info *ret);

/* Room on the disk for @len bytes from the start; 0 also where the file system cannot do that. */
int lift_file_reserve(int fd, uint64_t len);
int lift_file_cut(int fd, uint64_t len);

/* All of it or an error; -ENOSPC for what was cut short. */
int lift_file_write_at(int fd, const void *buf, size_t len, uint64_t offset);
int lift_file_unlink(const char *path);

/* Most bytes a file may have that this process writes (RLIMIT_FSIZE); beyond it comes a signal. */
uint64_t lift_file_limit(void);

uint32_t lift_file_euid(void);

/* False only when there is certainly no such process. */
bool lift_file_process_exists(uint32_t pid);

/* The entries of a folder, in pieces: bytes put into @buf, 0 at the end. */
long lift_file_entries(int fd, void *buf, size_t size);
/* Takes the next name out of @n bytes of entries from *at on; NULL: there is none. */
const char *lift_file_entry(const void *buf, long n, long *at);

#endif

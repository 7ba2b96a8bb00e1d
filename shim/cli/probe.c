// SPDX-License-Identifier: MIT
#include "shim/cli/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/os/topo_sysfs.h"

/* What bookworm's headers lack. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct pagemap_scan {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define PAGEMAP_SCAN_IOCTL _IOWR('f', 16, struct pagemap_scan)
#define PAGEMAP_PRESENT (UINT64_C(1) << 3)

static int wait_for(pid_t child, int *ret_status)
{
	while (waitpid(child, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int lift_probe(void (*fn)(void *data), void *data, size_t size)
{
	const struct rlimit no_core = {0, 0};
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;
	int rc;

	if (shared == MAP_FAILED)
		return -errno;
	memcpy(shared, data, size);
	child = fork();
	if (child == 0) {
		/* Dying is an answer here, not an accident that somebody wants to look into. */
		(void)setrlimit(RLIMIT_CORE, &no_core);
		fn(shared);
		_exit(0);
	}
	if (child < 0) {
		rc = -errno;
		goto out_unmap;
	}
	rc = wait_for(child, &status);
	if (rc == 0) {
		memcpy(data, shared, size);
		rc = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	}
out_unmap:
	(void)munmap(shared, size);
	return rc;
}

/* --- system calls ------------------------------------------------------------------------------
 */

struct policies {
	struct lift_machine_view view;
	int node;
	int err;
};

static void try_policies(void *data)
{
	struct policies *p = data;

	p->err = lift_os_probe_policies(&p->view, p->node);
}

int lift_probe_policies(struct lift_machine_view *view, int node)
{
	struct policies p = {.view = *view, .node = node};
	int rc = lift_probe(try_policies, &p, sizeof(p));

	if (rc == 0) {
		*view = p.view;
		rc = p.err;
	}
	return rc;
}

static void try_uffd(void *data)
{
	struct lift_probe_uffd *r = data;
	struct uffdio_api api = {.api = UFFD_API};
	long fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl((int)fd, UFFDIO_API, &api) < 0) {
		r->err = -errno;
		return;
	}
	r->features = api.features;
}

int lift_probe_uffd(struct lift_probe_uffd *ret)
{
	*ret = (struct lift_probe_uffd){0};
	return lift_probe(try_uffd, ret, sizeof(*ret));
}

static void *touched_page(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	*(volatile char *)p = 1;
	return p;
}

static void try_pagemap_scan(void *data)
{
	uint64_t region[3];
	struct pagemap_scan scan = {
		.size = sizeof(scan),
		.vec = (uintptr_t)region,
		.vec_len = 1,
		.category_mask = PAGEMAP_PRESENT,
		.return_mask = PAGEMAP_PRESENT,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	void *page = touched_page();
	int *err = data;

	scan.start = (uintptr_t)page;
	scan.end = scan.start + 4096;
	*err = fd < 0 || !page || ioctl(fd, PAGEMAP_SCAN_IOCTL, &scan) < 0 ? -errno : 0;
}

int lift_probe_pagemap_scan(int *ret_err)
{
	*ret_err = 0;
	return lift_probe(try_pagemap_scan, ret_err, sizeof(*ret_err));
}

static void try_move_pages(void *data)
{
	void *page = touched_page();
	int *err = data;
	int status = -1;
	int node;

	if (!page || syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) < 0) {
		*err = -errno;
		return;
	}
	node = status;
	if (node >= 0 &&
		syscall(SYS_move_pages, 0, 1UL, &page, &node, &status, 2 /* MPOL_MF_MOVE */) < 0)
		*err = -errno;
	else if (status < 0)
		*err = status;
}

int lift_probe_move_pages(int *ret_err)
{
	*ret_err = 0;
	return lift_probe(try_move_pages, ret_err, sizeof(*ret_err));
}

/* --- libraries ---------------------------------------------------------------------------------
 */

/* In a child because the library's constructors run, and what they do cannot be taken back. */
static void try_mimalloc(void *data)
{
	struct lift_probe_mimalloc *r = data;
	void *handle = dlopen(r->text, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;
	int (*version)(void);

	if (!handle) {
		(void)snprintf(r->text, sizeof(r->text), "%s", dlerror());
		return;
	}
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
		(void)snprintf(r->text, sizeof(r->text), "%s", map->l_name);
	version = (int (*)(void))(uintptr_t)dlsym(handle, "mi_version");
	r->version = version ? version() : 0;
}

int lift_probe_mimalloc(const char *name, struct lift_probe_mimalloc *ret)
{
	*ret = (struct lift_probe_mimalloc){0};
	(void)snprintf(ret->text, sizeof(ret->text), "%s", name);
	return lift_probe(try_mimalloc, ret, sizeof(*ret));
}

/* --- the whole ----------------------------------------------------------------------------------
 */

extern char **environ;

/* The environment with LD_PRELOAD replaced; the array is for free(3), the strings are borrowed. */
static char **environment_with(char *preload)
{
	size_t nr = 0;
	char **env;

	while (environ[nr])
		nr++;
	env = calloc(nr + 2, sizeof(*env));
	if (!env)
		return NULL;
	nr = 0;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0)
			env[nr++] = *e;
	env[nr] = preload;
	return env;
}

static void read_all(int fd, char *buf, size_t size)
{
	size_t have = 0;
	char rest[512];
	ssize_t n;

	/* To the end, so that the writer is not stopped by a full pipe; what does not fit is
	 * dropped. */
	for (;;) {
		bool room = have + 1 < size;

		n = room ? read(fd, buf + have, size - 1 - have) : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (room)
			have += (size_t)n;
	}
	buf[have] = '\0';
}

int lift_probe_preload(const char *path, const char *preload, struct lift_probe_preload *ret)
{
	char *const argv[] = {(char *)(uintptr_t)path, NULL};
	posix_spawn_file_actions_t actions;
	char *setting;
	char **env;
	int pipes[2];
	pid_t child;
	int rc;

	if (asprintf(&setting, "LD_PRELOAD=%s", preload) < 0)
		return -ENOMEM;
	env = environment_with(setting);
	if (!env) {
		rc = -ENOMEM;
		goto out_free;
	}
	if (pipe2(pipes, O_CLOEXEC) < 0) {
		rc = -errno;
		goto out_free;
	}
	rc = -posix_spawn_file_actions_init(&actions);
	if (rc == 0) {
		rc = -posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
		if (rc == 0)
			rc = -posix_spawn(&child, path, &actions, NULL, argv, env);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)close(pipes[1]);
	if (rc == 0) {
		read_all(pipes[0], ret->said, sizeof(ret->said));
		rc = wait_for(child, &ret->status);
	}
	(void)close(pipes[0]);
out_free:
	free(env);
	free(setting);
	return rc;
}

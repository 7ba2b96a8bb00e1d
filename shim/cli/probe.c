// SPDX-License-Identifier: MIT
#include "shim/cli/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
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

#include "shim/os/fd.h"
#include "shim/os/pagemap.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"
#include "shim/os/uffd.h"

/* What bookworm's headers lack. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

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

/* Pages of its own, there; the child that tries things ends soon. NULL: no memory. */
static char *touched_pages(size_t nr)
{
	char *p = mmap(NULL, nr * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		*(volatile char *)(p + i * 4096) = 1;
	return p;
}

static struct lift_range pages_at(const char *p, size_t nr)
{
	return (struct lift_range){(uintptr_t)p, (uintptr_t)p + nr * 4096};
}

static int scan_one(void)
{
	struct lift_pagemap_ask ask = {.all = LIFT_PAGE_PRESENT, .tell = LIFT_PAGE_PRESENT};
	struct lift_page_region region;
	struct lift_fd fd = {0};
	char *page = touched_pages(1);
	uintptr_t end;
	long n;

	if (!page)
		return -ENOMEM;
	n = lift_pagemap_open(&fd);
	if (n < 0)
		return (int)n;
	ask.range = pages_at(page, 1);
	n = lift_pagemap_scan(lift_fd_get(&fd), &ask, &region, 1, &end);
	return n < 0 ? (int)n : 0;
}

static void try_pagemap_scan(void *data)
{
	*(int *)data = scan_one();
}

int lift_probe_pagemap_scan(int *ret_err)
{
	*ret_err = 0;
	return lift_probe(try_pagemap_scan, ret_err, sizeof(*ret_err));
}

static void try_move_pages(void *data)
{
	void *page = touched_pages(1);
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

static void try_move_by_policy(void *data)
{
	struct lift_nodeset one;
	char *page = touched_pages(1);
	int *err = data;
	long node = page ? lift_sys_page_node((uintptr_t)page) : -ENOMEM;

	if (node < 0) {
		*err = (int)node;
		return;
	}
	lift_nodeset_zero(&one);
	lift_nodeset_set(&one, (int)node);
	*err = (int)lift_sys_mbind(page, 4096, LIFT_MPOL_PREFERRED, &one, 2 /* MPOL_MF_MOVE */);
}

int lift_probe_move_by_policy(int *ret_err)
{
	*ret_err = 0;
	return lift_probe(try_move_by_policy, ret_err, sizeof(*ret_err));
}

/* --- samplers -----------------------------------------------------------------------------------
 */

struct sampler {
	enum lift_sampler_choice choice;
	int err;
};

/* Of four pages that are watched one is written, and that one has to be seen. */
static int watch_pages(enum lift_uffd_kind kind)
{
	enum { PAGES = 4 };
	uint64_t used = kind == LIFT_UFFD_RWP ? LIFT_PAGE_ACCESSED : LIFT_PAGE_WRITTEN;
	struct lift_pagemap_ask ask = {.all = LIFT_PAGE_PRESENT | used, .tell = used};
	struct lift_page_region region[PAGES];
	struct lift_fd pagemap = {0};
	struct lift_fd uffd = {0};
	char *p = touched_pages(PAGES);
	uintptr_t end;
	long rc = p ? 0 : -ENOMEM;

	if (rc == 0)
		rc = lift_uffd_open(&uffd, kind);
	if (rc == 0)
		rc = lift_pagemap_open(&pagemap);
	if (rc < 0)
		return (int)rc;
	ask.range = pages_at(p, PAGES);
	rc = lift_uffd_register(lift_fd_get(&uffd), kind, ask.range);
	if (rc == 0)
		rc = kind == LIFT_UFFD_RWP ? lift_uffd_arm(lift_fd_get(&uffd), ask.range)
					   : lift_pagemap_protect(lift_fd_get(&pagemap), ask.range);
	if (rc < 0)
		return rc == -ENOTTY ? -EINVAL : (int)rc;
	*(volatile char *)(p + 4096) = 2;
	rc = lift_pagemap_scan(lift_fd_get(&pagemap), &ask, region, PAGES, &end);
	if (rc < 0)
		return rc == -ENOTTY ? -EINVAL : (int)rc;
	return rc == 1 && region[0].start == (uintptr_t)p + 4096 &&
			       region[0].end == (uintptr_t)p + 8192
		       ? 0
		       : -EINVAL;
}

/* Opened, not written to: that would be felt, if only by this child. */
static int clear_refs(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : close(fd);
}

static int sum_references(void)
{
	char text[64];
	char *page = touched_pages(1);
	long n = lift_sys_read_file("/proc/self/smaps", text, sizeof(text));

	if (n < 0 || !page)
		return n < 0 ? (int)n : -ENOMEM;
#if defined(__x86_64__)
	if (clear_refs() == 0)
		return 0;
#endif
	return (int)lift_sys_madvise(page, 4096, 20 /* MADV_COLD */);
}

static int soft_dirty(void)
{
	struct lift_fd fd = {0};
	uint64_t word = 0;
	char *page = touched_pages(1);
	int rc = page ? lift_pagemap_open(&fd) : -ENOMEM;
	long n;

	if (rc < 0)
		return rc;
	n = lift_pagemap_read(lift_fd_get(&fd), (uintptr_t)page, &word, 1);
	if (n < 0)
		return (int)n;
	return word & LIFT_PAGEMAP_SOFT_DIRTY ? clear_refs() : -EINVAL;
}

static int balancing(void)
{
	uint64_t mode = lift_os_number("/proc/sys/kernel/numa_balancing", UINT64_MAX);

	return mode == UINT64_MAX ? -ENOENT : mode == 0 ? -EOPNOTSUPP : 0;
}

static void try_sampler(void *data)
{
	struct sampler *s = data;

	switch (s->choice) {
	case LIFT_SAMPLER_RWP:
		s->err = watch_pages(LIFT_UFFD_RWP);
		break;
	case LIFT_SAMPLER_WP:
		s->err = watch_pages(LIFT_UFFD_WP);
		break;
	case LIFT_SAMPLER_WP_REFS:
		s->err = watch_pages(LIFT_UFFD_WP);
		if (s->err == 0)
			s->err = sum_references();
		break;
	case LIFT_SAMPLER_REFS:
		s->err = sum_references();
		break;
	case LIFT_SAMPLER_DIRTY:
		s->err = soft_dirty();
		break;
	case LIFT_SAMPLER_KERNEL:
		s->err = balancing();
		break;
	default:
		/* damon: there is one for the machine, which is not taken for a question. */
		s->err = 0;
		break;
	}
}

int lift_probe_sampler(enum lift_sampler_choice choice, int *ret_err)
{
	struct sampler s = {.choice = choice};
	int rc = lift_probe(try_sampler, &s, sizeof(s));

	*ret_err = s.err;
	return rc;
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

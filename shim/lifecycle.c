// SPDX-License-Identifier: MIT
#include "shim/lifecycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "policy/classify.h"
#include "shim/compiler.h"
#include "shim/foreign.h"
#include "shim/fork.h"
#include "shim/heap.h"
#include "shim/interpose.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/os/env.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"
#include "shim/place.h"
#include "shim/thread.h"
#include "shim/worker.h"

int lift_mode_now = LIFT_MODE_BOOT;

static struct lift_config config;

const struct lift_config *lift_config_now(void)
{
	return &config;
}

bool lift_config_given(const char *name)
{
	int i = lift_config_find(name);

	return i >= 0 && (config.given >> i & 1);
}

/* --- configuration --- */

static void read_config(void)
{
	struct lift_config_error err;
	const struct lift_option *o;
	char line[LIFT_CONFIG_ERROR_BYTES];
	const char *value;

	lift_config_init(&config);
	/* The log level first: it decides about what is said of the others. */
	value = lift_env_get("NUMALIFT_LOG");
	if (value)
		(void)lift_config_set(&config, "NUMALIFT_LOG", value, strlen(value), NULL);
	lift_log_level_set(config.log);
	for (size_t i = 0; (o = lift_config_option(i)); i++) {
		value = lift_env_get(o->name);
		if (!value || lift_config_set(&config, o->name, value, strlen(value), &err) == 0)
			continue;
		lift_config_error_format(&err, value, line, sizeof(line));
		lift_log(LIFT_LOG_WARN, "%s", line);
	}
}

/* --- whether to be there at all --- */

/* Runtimes that replace the allocator for their own checks. Weak: NULL unless the program has them.
 */
extern void __asan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));
extern void __lsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

/*
 * libasan ends a program in which any library comes before it, unless its options say that this is
 * meant. A program may define this function to set defaults; where it does, its own definition wins
 * over ours.
 */
const char *__asan_default_options(void);
LIFT_EXPORT const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

static bool sanitizer(void)
{
	return __asan_init || __hwasan_init || __lsan_init || __msan_init || __tsan_init;
}

/*
 * mimalloc asks for memory through the mmap that the whole process sees. If that is not ours, its
 * segments would go unmarked and its blocks be taken for somebody else's.
 */
static bool mmap_is_ours(void)
{
	return LIFT_SAME_FUNCTION(mmap, lift_own_mmap);
}

/* Whoever stands between mimalloc and one of these may allocate while mimalloc is at work. */
static bool others_are_ours(void)
{
	return LIFT_SAME_FUNCTION(munmap, lift_own_munmap) &&
	       LIFT_SAME_FUNCTION(madvise, lift_own_madvise) &&
	       LIFT_SAME_FUNCTION(mprotect, lift_own_mprotect);
}

static int decide_mode(void)
{
	if (lift_env_secure() || !config.enabled ||
		!lift_config_in_scope(&config, lift_env_program()))
		return LIFT_MODE_ASIDE;
	if (sanitizer()) {
		lift_log(LIFT_LOG_INFO,
			"the program has a sanitizer with an allocator of its own: standing aside");
		return LIFT_MODE_ASIDE;
	}
	if (lift_env_page_bytes() != 4096) {
		lift_log_given_up("pages of 4 KiB are expected, and these have %lu bytes: standing "
				  "aside",
			lift_env_page_bytes());
		return LIFT_MODE_ASIDE;
	}
	if (!mmap_is_ours()) {
		lift_log_given_up(
			"another preloaded library or the program itself defines mmap: standing "
			"aside; put libnumalift.so first in LD_PRELOAD");
		return LIFT_MODE_ASIDE;
	}
	return LIFT_MODE_ACTIVE;
}

/* Is large anonymous memory to lie elsewhere than small blocks? Then large blocks must not come
 * from mimalloc. */
static bool large_blocks_differ(void)
{
	const struct lift_place_rule *slab = lift_config_rule(&config, LIFT_CLASS_SLAB, 0);
	const struct lift_place_rule *r;

	for (unsigned i = 0; i < config.place.nr; i++) {
		r = &config.place.rule[i];
		if (r->cls == LIFT_CLASS_ANON && r->min_bytes < LIFT_LARGE_MIN &&
			(r->how != slab->how || r->nodes.kind != slab->nodes.kind ||
				!lift_nodeset_equal(&r->nodes.set, &slab->nodes.set)))
			return true;
	}
	return false;
}

/* --- boot --- */

static void boot(void)
{
	struct lift_nodeset nodes;
	unsigned nr = 1;
	int top = 0;
	int mode;

	lift_lock_adopt();
	read_config();
	mode = decide_mode();
	if (mode == LIFT_MODE_ACTIVE) {
		if (lift_os_memory_nodes(&nodes) == 0) {
			nr = lift_nodeset_count(&nodes);
			lift_nodeset_foreach (node, &nodes)
				top = node + 1;
		}
		lift_place_boot(nr);
		lift_worker_boot(nr);
		if (nr > 1 && large_blocks_differ())
			lift_heap_large_min = LIFT_LARGE_BYTES;
		lift_heap_boot(nr > 1 ? top : 1, others_are_ours());
	}
	__atomic_store_n(&lift_mode_now, mode, __ATOMIC_RELEASE);
}

void lift_boot(void)
{
	static _Atomic int begun;
	static __thread bool booting __attribute__((tls_model("initial-exec")));
	int saved;

	/* Too early (thread.h): errno and the flag above do not exist yet. */
	if (!lift_thread_ready())
		return;
	if (booting)
		return; /* a call out of boot itself: libc's heap serves it */
	saved = errno;
	booting = true;
	if (!atomic_exchange_explicit(&begun, 1, memory_order_acq_rel)) {
		boot();
	} else {
		while (__atomic_load_n(&lift_mode_now, __ATOMIC_ACQUIRE) == LIFT_MODE_BOOT)
			lift_sys_yield();
	}
	booting = false;
	errno = saved;
}

/* --- constructor --- */

/* NUMALIFT_INHERIT=off: takes this library out of LD_PRELOAD, in place, for the programs that are
 * executed. */
static void disinherit(void)
{
	char *list = lift_env_get("LD_PRELOAD");
	Dl_info self;
	const char *name;
	const char *slash;
	char *out;
	size_t len;

	if (!list || !dladdr((void *)(uintptr_t)&lift_boot, &self) || !self.dli_fname)
		return;
	slash = strrchr(self.dli_fname, '/');
	name = slash ? slash + 1 : self.dli_fname;
	/* ld.so separates by colons and blanks, and skips what is empty. */
	for (out = list; *list; list += len) {
		const char *base;

		len = strspn(list, ": ");
		if (len == 0) {
			len = strcspn(list, ": ");
			base = list + len;
			while (base > list && base[-1] != '/')
				base--;
			if (strlen(name) == (size_t)(list + len - base) &&
				memcmp(base, name, strlen(name)) == 0)
				continue;
		}
		memmove(out, list, len);
		out += len;
	}
	*out = '\0';
}

__attribute__((constructor(101))) static void start(void)
{
	int saved = errno;

	if (lift_mode() == LIFT_MODE_ACTIVE) {
		lift_foreign_init();
		lift_fork_init();
		lift_place_start();
		lift_worker_constructed();
		if (!config.inherit)
			disinherit();
	}
	lift_log_open();
	errno = saved;
}

// SPDX-License-Identifier: MIT
/*
 * C++ operator new and delete, under their mangled names (Itanium C++ ABI). Written in C: the
 * exception is thrown by libstdc++'s own std::__throw_bad_alloc (libc++ has the same name) and the
 * handler comes from std::get_new_handler, both looked up when first needed; a program that calls
 * operator new has one of the two libraries. [new.delete.single] says what each form does when
 * there is no memory.
 *
 * This file is built with -fexceptions, so that the exception can pass through it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/compiler.h"
#include "shim/early.h"
#include "shim/lifecycle.h"
#include "shim/next.h"

typedef void (*new_handler)(void);

/*
 * In the global scope, or in a runtime that a plug-in of a C program brought along for itself only.
 * Looked up afresh each time: such a plug-in may have been closed and loaded again elsewhere.
 */
static void *lookup(const char *name, const void *caller)
{
	static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
	int saved = errno;
	void *fn = dlsym(RTLD_DEFAULT, name);
	void *handle;
	Dl_info info;

	for (size_t i = 0; !fn && i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			continue;
		fn = dlsym(handle, name);
		dlclose(handle);
	}
	/* Linked into the plug-in itself (-static-libstdc++). */
	if (!fn && dladdr(caller, &info) && info.dli_fname) {
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (handle) {
			fn = dlsym(handle, name);
			dlclose(handle);
		}
	}
	errno = saved;
	return fn;
}

static void throw_bad_alloc(const void *caller)
{
	void (*fn)(void) = (void (*)(void))(uintptr_t)lookup("_ZSt17__throw_bad_allocv", caller);

	if (fn)
		fn();
	abort(); /* operator new must not return NULL, and nobody here can throw */
}

/* True when a handler ran, so that it is worth trying again. */
static bool call_new_handler(const void *caller)
{
	new_handler (*get)(void) =
		(new_handler(*)(void))(uintptr_t)lookup("_ZSt15get_new_handlerv", caller);
	new_handler handler = get ? get() : NULL;

	if (!handler)
		return false;
	handler(); /* may throw */
	return true;
}

static void *take(size_t n, size_t align)
{
	/* By their public names: whose malloc the program has is whose operator new calls. */
	return align ? aligned_alloc(align, n) : malloc(n);
}

LIFT_COLD static void *take_again(size_t n, size_t align, const void *caller)
{
	void *p;

	do {
		if (!call_new_handler(caller))
			throw_bad_alloc(caller);
		p = take(n, align);
	} while (!p);
	return p;
}

static inline void *new_or_throw(size_t n, size_t align, const void *caller)
{
	void *p = take(n, align);

	return likely(p != NULL) ? p : take_again(n, align, caller);
}

/*
 * The nothrow forms are specified as the throwing ones with the exception caught, also one that the
 * handler throws. C cannot catch; libstdc++'s own forms call operator new, which is ours, and can.
 * Where it is not in sight (a plug-in's runtime) a handler is run as far as it returns.
 */
LIFT_COLD static void *without_catching(size_t n, size_t align, const void *caller)
{
	void *p = NULL;

	while (!p && call_new_handler(caller))
		p = take(n, align);
	return p;
}

/*
 * True when a form must be left to the next library in line: we stand aside, or the program has
 * replaced the basic form that this one is specified to call. libstdc++'s derived forms then do the
 * calling (and the catching), as they would without us.
 */
#define PASS_ON(base) unlikely(!LIFT_SAME_FUNCTION(base, own_##base) || lift_aside())

#define NEW(name, base, params, align, types, args)                                                \
	LIFT_EXPORT void *name params;                                                             \
	LIFT_EXPORT void *name params                                                              \
	{                                                                                          \
		if (PASS_ON(base) && lift_next_fn(LIFT_NEXT_##name))                               \
			return LIFT_NEXT(name, void *, types, args);                               \
		return new_or_throw(n, align, __builtin_return_address(0));                        \
	}

#define NEW_NOTHROW(name, base, params, align, types, args)                                        \
	LIFT_EXPORT void *name params;                                                             \
	LIFT_EXPORT void *name params                                                              \
	{                                                                                          \
		void *p = PASS_ON(base) ? NULL : take(n, align);                                   \
                                                                                                   \
		if (likely(p != NULL))                                                             \
			return p;                                                                  \
		if (lift_next_fn(LIFT_NEXT_##name))                                                \
			return LIFT_NEXT(name, void *, types, args);                               \
		return without_catching(n, align, __builtin_return_address(0));                    \
	}

#define DELETE(name, base, params, types, args)                                                    \
	LIFT_EXPORT void name params;                                                              \
	LIFT_EXPORT void name params                                                               \
	{                                                                                          \
		if (PASS_ON(base) && !lift_early_owns(p) && lift_next_fn(LIFT_NEXT_##name)) {      \
			LIFT_NEXT(name, void, types, args);                                        \
			return;                                                                    \
		}                                                                                  \
		free(p);                                                                           \
	}

/* The definitions in this library under a name that nobody can replace. */
#define OWN(name, result, types)                                                                   \
	extern result name types;                                                                  \
	extern __attribute__((alias(#name), visibility("hidden"))) result own_##name types;

OWN(_Znwm, void *, (size_t))
OWN(_ZnwmSt11align_val_t, void *, (size_t, size_t))
OWN(_ZdlPv, void, (void *))
OWN(_ZdlPvSt11align_val_t, void, (void *, size_t))

NEW(_Znwm, _Znwm, (size_t n), 0, (size_t), (n))
NEW(_Znam, _Znwm, (size_t n), 0, (size_t), (n))
NEW(_ZnwmSt11align_val_t, _ZnwmSt11align_val_t, (size_t n, size_t a), a, (size_t, size_t), (n, a))
NEW(_ZnamSt11align_val_t, _ZnwmSt11align_val_t, (size_t n, size_t a), a, (size_t, size_t), (n, a))
NEW_NOTHROW(_ZnwmRKSt9nothrow_t, _Znwm, (size_t n, const void *tag), 0, (size_t, const void *),
	(n, tag))
NEW_NOTHROW(_ZnamRKSt9nothrow_t, _Znwm, (size_t n, const void *tag), 0, (size_t, const void *),
	(n, tag))
NEW_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t, _ZnwmSt11align_val_t,
	(size_t n, size_t a, const void *tag), a, (size_t, size_t, const void *), (n, a, tag))
NEW_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t, _ZnwmSt11align_val_t,
	(size_t n, size_t a, const void *tag), a, (size_t, size_t, const void *), (n, a, tag))

DELETE(_ZdlPv, _ZdlPv, (void *p), (void *), (p))
DELETE(_ZdaPv, _ZdlPv, (void *p), (void *), (p))
DELETE(_ZdlPvm, _ZdlPv, (void *p, size_t n), (void *, size_t), (p, n))
DELETE(_ZdaPvm, _ZdlPv, (void *p, size_t n), (void *, size_t), (p, n))
DELETE(_ZdlPvRKSt9nothrow_t, _ZdlPv, (void *p, const void *tag), (void *, const void *), (p, tag))
DELETE(_ZdaPvRKSt9nothrow_t, _ZdlPv, (void *p, const void *tag), (void *, const void *), (p, tag))
DELETE(_ZdlPvSt11align_val_t, _ZdlPvSt11align_val_t, (void *p, size_t a), (void *, size_t), (p, a))
DELETE(_ZdaPvSt11align_val_t, _ZdlPvSt11align_val_t, (void *p, size_t a), (void *, size_t), (p, a))
DELETE(_ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t, (void *p, size_t n, size_t a),
	(void *, size_t, size_t), (p, n, a))
DELETE(_ZdaPvmSt11align_val_t, _ZdlPvSt11align_val_t, (void *p, size_t n, size_t a),
	(void *, size_t, size_t), (p, n, a))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t,
	(void *p, size_t a, const void *tag), (void *, size_t, const void *), (p, a, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t,
	(void *p, size_t a, const void *tag), (void *, size_t, const void *), (p, a, tag))

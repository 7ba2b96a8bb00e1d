// SPDX-License-Identifier: MIT
/*
 * dlopen with RTLD_DEEPBIND. A library opened so finds libc's malloc and free before ours. Blocks
 * that it makes find their way back to libc by themselves (foreign.c), but a block of ours that it
 * frees would end the program: libc knows nothing of it. So after such an open the allocation
 * functions in the new objects' relocations are pointed to this library; everything else stays as
 * RTLD_DEEPBIND wants it.
 *
 * dlopen(3) looks at its return address: the caller's RUNPATH counts for names without a slash, and
 * its place for $ORIGIN. Those, and all calls without RTLD_DEEPBIND, are therefore passed on by a
 * jump that leaves no trace of us.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/compiler.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/object.h"
#include "shim/os/sys.h"

#define PAGE ((uintptr_t)4096)

extern __attribute__((visibility("hidden"))) void *(*lift_dlopen_next)(const char *, int);
__attribute__((used)) void *(*lift_dlopen_next)(const char *, int);

/* --- relocations --- */

#define NAME(f) #f, (void *)(uintptr_t)&f
static const struct {
	const char *name;
	void *ours;
} functions[] = {
	{NAME(malloc)},
	{NAME(calloc)},
	{NAME(realloc)},
	{NAME(reallocarray)},
	{NAME(free)},
	{NAME(posix_memalign)},
	{NAME(aligned_alloc)},
	{NAME(memalign)},
	{NAME(valloc)},
	{NAME(pvalloc)},
	{NAME(malloc_usable_size)},
};

struct object {
	uintptr_t base;
	const ElfW(Sym) * symtab;
	const char *strtab;
};

static void *ours_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].ours;
	}
	return NULL;
}

static bool is_pointer_reloc(unsigned long type)
{
#if defined(__x86_64__)
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
#else
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
#endif
}

/* The slot may lie in pages that were made read-only after relocation (RELRO). */
static void write_slot(void **slot, void *value, const struct lift_range *relro)
{
	uintptr_t page = (uintptr_t)slot & ~(PAGE - 1);
	bool protected = (uintptr_t)slot >= relro->start && (uintptr_t)slot < relro->end;

	if (protected && lift_sys_mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (protected)
		(void)lift_sys_mprotect((void *)page, PAGE, PROT_READ);
}

static void redirect(
	const struct object *o, const struct lift_range *relro, const ElfW(Rela) * rela, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const ElfW(Sym) *sym = &o->symtab[ELF64_R_SYM(rela[i].r_info)];
		void **slot = (void **)(o->base + rela[i].r_offset);
		void *ours;

		if (!is_pointer_reloc(ELF64_R_TYPE(rela[i].r_info)) || rela[i].r_addend != 0 ||
			sym->st_shndx != SHN_UNDEF)
			continue;
		ours = ours_by_name(o->strtab + sym->st_name);
		if (ours && *slot != ours)
			write_slot(slot, ours, relro);
	}
}

static void redirect_object(const struct dl_phdr_info *info)
{
	struct object o = {.base = info->dlpi_addr};
	struct lift_range relro = {0, 0};
	const ElfW(Dyn) *dyn = NULL;
	const ElfW(Rela) *rela = NULL;
	const ElfW(Rela) *plt = NULL;
	size_t rela_bytes = 0;
	size_t plt_bytes = 0;
	unsigned long plt_kind = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(o.base + ph->p_vaddr);
		if (ph->p_type == PT_GNU_RELRO)
			relro = (struct lift_range){
				o.base + ph->p_vaddr, o.base + ph->p_vaddr + ph->p_memsz};
	}
	/* ld.so has made the addresses in a library's dynamic section absolute. */
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			o.symtab = (const ElfW(Sym) *)dyn->d_un.d_ptr;
			break;
		case DT_STRTAB:
			o.strtab = (const char *)dyn->d_un.d_ptr;
			break;
		case DT_RELA:
			rela = (const ElfW(Rela) *)dyn->d_un.d_ptr;
			break;
		case DT_RELASZ:
			rela_bytes = dyn->d_un.d_val;
			break;
		case DT_JMPREL:
			plt = (const ElfW(Rela) *)dyn->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			plt_bytes = dyn->d_un.d_val;
			break;
		case DT_PLTREL:
			plt_kind = dyn->d_un.d_val;
			break;
		default:
			break;
		}
	}
	if (!o.symtab || !o.strtab)
		return;
	if (rela)
		redirect(&o, &relro, rela, rela_bytes / sizeof(*rela));
	if (plt && plt_kind == DT_RELA)
		redirect(&o, &relro, plt, plt_bytes / sizeof(*plt));
}

/* --- which objects are new --- */

struct walk {
	size_t known; /* objects at the head of the list that were there before */
	size_t seen;
};

static int count_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	((struct walk *)arg)->known++;
	return 0;
}

/* New objects are added at the end of the list. One that another thread opens meanwhile has ours
 * already. */
static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *w = arg;

	(void)size;
	if (w->seen++ >= w->known)
		redirect_object(info);
	return 0;
}

static bool is_libcs_malloc(void *handle)
{
	extern void *__libc_malloc(size_t);
	void *found = dlsym(handle, "malloc");

	/* A library that brought its own allocator along keeps it. */
	return found && lift_object_same((uintptr_t)found, (uintptr_t)&__libc_malloc);
}

__attribute__((visibility("hidden"), used)) void *lift_dlopen_deep(const char *file, int mode);
void *lift_dlopen_deep(const char *file, int mode)
{
	struct walk w = {0, 0};
	void *handle;
	int saved;

	dl_iterate_phdr(count_object, &w);
	handle = lift_dlopen_next(file, mode);
	saved = errno;
	if (handle && LIFT_SAME_FUNCTION(malloc, lift_own_malloc) && is_libcs_malloc(handle))
		dl_iterate_phdr(visit_object, &w);
	errno = saved;
	return handle;
}

/* --- the jump --- */

/* Finds the next dlopen at the first call, and says whether this one has to be looked after. */
__attribute__((visibility("hidden"), used)) bool lift_dlopen_is_deep(const char *file, int mode);
bool lift_dlopen_is_deep(const char *file, int mode)
{
	if (!lift_dlopen_next)
		lift_dlopen_next =
			(void *(*)(const char *, int))(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
	return (mode & RTLD_DEEPBIND) && file && strchr(file, '/') && !strchr(file, '$') &&
	       lift_mode() == LIFT_MODE_ACTIVE;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call lift_dlopen_is_deep\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %al, %al\n"
	"	jnz lift_dlopen_deep\n"
	"	jmp *lift_dlopen_next(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n"
	".popsection\n");
#else
/* The compiler makes a jump of the last call when it optimises. */
LIFT_EXPORT void *dlopen(const char *file, int mode)
{
	if (lift_dlopen_is_deep(file, mode))
		return lift_dlopen_deep(file, mode);
	return lift_dlopen_next(file, mode);
}
#endif

// SPDX-License-Identifier: MIT
#include "shim/cli/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file, mapped. */
struct image {
	const unsigned char *base;
	size_t size;
	const ElfW(Ehdr) * eh;
	const ElfW(Phdr) * ph; /* eh->e_phnum of them, all within */
};

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "numalift knows x86-64 and aarch64"
#endif

/* @n bytes at @off, aligned for what is to be read there; NULL when they are not all in the file.
 */
static const void *at(const struct image *im, uint64_t off, uint64_t n, uint64_t align)
{
	if (off > im->size || n > im->size - off || off % align != 0)
		return NULL;
	return im->base + off;
}

/* The string at @off of the table [tab, tab + size), or "" where it is not terminated in there. */
static const char *string(const char *tab, uint64_t size, uint64_t off)
{
	if (off >= size || !memchr(tab + off, '\0', size - off))
		return "";
	return tab + off;
}

static void copy(char *to, size_t n, const char *from)
{
	size_t len = strnlen(from, n - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

/* File offset of a virtual address; UINT64_MAX when no segment has it. */
static uint64_t offset_of(const struct image *im, uint64_t addr)
{
	for (unsigned i = 0; i < im->eh->e_phnum; i++) {
		const ElfW(Phdr) *ph = &im->ph[i];

		if (ph->p_type == PT_LOAD && addr >= ph->p_vaddr &&
			addr - ph->p_vaddr < ph->p_filesz)
			return ph->p_offset + (addr - ph->p_vaddr);
	}
	return UINT64_MAX;
}

static void name_machine(char ret[24], unsigned class, unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} known[] = {
		{EM_386, "i386"},
		{EM_X86_64, "x86-64"},
		{EM_ARM, "arm"},
		{EM_AARCH64, "aarch64"},
		{EM_PPC64, "ppc64"},
		{EM_S390, "s390"},
		{EM_RISCV, "riscv"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].machine != machine)
			continue;
		/* x32 is the one case where the machine alone would mislead. */
		(void)snprintf(ret, 24, "%s%s", known[i].name,
			machine == EM_X86_64 && class == ELFCLASS32 ? " (x32)" : "");
		return;
	}
	(void)snprintf(ret, 24, "machine %u", machine);
}

/* --- symbols -----------------------------------------------------------------------------------
 */

static void look_at_symbol(struct lift_elf *elf, const ElfW(Sym) * sym, const char *name)
{
	static const struct {
		const char *symbol;
		const char *name;
	} sanitizers[] = {
		{"__asan_init", "AddressSanitizer"},
		{"__hwasan_init", "HWAddressSanitizer"},
		{"__lsan_init", "LeakSanitizer"},
		{"__msan_init", "MemorySanitizer"},
		{"__tsan_init", "ThreadSanitizer"},
	};
	bool defined = sym->st_shndx != SHN_UNDEF;

	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
		if (strcmp(name, sanitizers[i].symbol) == 0)
			copy(elf->sanitizer, sizeof(elf->sanitizer), sanitizers[i].name);
	elf->own_malloc = elf->own_malloc || (defined && strcmp(name, "malloc") == 0);
	elf->own_mmap = elf->own_mmap ||
			(defined && (strcmp(name, "mmap") == 0 || strcmp(name, "mmap64") == 0));
}

/* The dynamic symbols by the section headers, which say how many there are. */
static void look_at_symbols(const struct image *im, struct lift_elf *elf)
{
	const ElfW(Shdr) *sh =
		at(im, im->eh->e_shoff, (uint64_t)im->eh->e_shnum * sizeof(*sh), __alignof__(*sh));

	if (!sh || im->eh->e_shentsize != sizeof(*sh))
		return;
	for (unsigned i = 0; i < im->eh->e_shnum; i++) {
		const ElfW(Sym) * sym;
		const char *tab;
		uint64_t tab_size;

		if (sh[i].sh_type != SHT_DYNSYM || sh[i].sh_link >= im->eh->e_shnum)
			continue;
		sym = at(im, sh[i].sh_offset, sh[i].sh_size, __alignof__(*sym));
		tab_size = sh[sh[i].sh_link].sh_size;
		tab = at(im, sh[sh[i].sh_link].sh_offset, tab_size, 1);
		if (!sym || !tab)
			continue;
		for (uint64_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++)
			look_at_symbol(elf, &sym[k], string(tab, tab_size, sym[k].st_name));
	}
}

/* --- segments ----------------------------------------------------------------------------------
 */

static const ElfW(Dyn) * dynamic(const struct image *im, uint64_t *ret_nr)
{
	for (unsigned i = 0; i < im->eh->e_phnum; i++) {
		const ElfW(Phdr) *ph = &im->ph[i];

		if (ph->p_type != PT_DYNAMIC)
			continue;
		*ret_nr = ph->p_filesz / sizeof(ElfW(Dyn));
		return at(im, ph->p_offset, ph->p_filesz, __alignof__(ElfW(Dyn)));
	}
	return NULL;
}

/* True when the file has a name of its own: a library, ld.so among them, is no static program. */
static bool look_at_dynamic(const struct image *im, struct lift_elf *elf)
{
	uint64_t nr = 0;
	const ElfW(Dyn) *dyn = dynamic(im, &nr);
	const char *tab = NULL;
	uint64_t tab_size = 0;
	uint64_t tab_addr = 0;
	bool named = false;

	if (!dyn)
		return false;
	for (uint64_t i = 0; i < nr && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_STRTAB)
			tab_addr = dyn[i].d_un.d_ptr;
		else if (dyn[i].d_tag == DT_STRSZ)
			tab_size = dyn[i].d_un.d_val;
		else if (dyn[i].d_tag == DT_SONAME)
			named = true;
	}
	tab = at(im, offset_of(im, tab_addr), tab_size, 1);
	if (!tab)
		return named;
	for (uint64_t i = 0; i < nr && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag != DT_NEEDED || elf->nr_needed == LIFT_ELF_NEEDED_MAX)
			continue;
		copy(elf->needed[elf->nr_needed++], LIFT_ELF_NAME_BYTES,
			string(tab, tab_size, dyn[i].d_un.d_val));
	}
	return named;
}

static void look_at_interp(const struct image *im, struct lift_elf *elf)
{
	for (unsigned i = 0; i < im->eh->e_phnum; i++) {
		const ElfW(Phdr) *ph = &im->ph[i];
		const char *s;

		if (ph->p_type != PT_INTERP)
			continue;
		s = at(im, ph->p_offset, ph->p_filesz, 1);
		if (s)
			copy(elf->interp, sizeof(elf->interp), string(s, ph->p_filesz, 0));
	}
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static int look(struct image *im, struct lift_elf *elf)
{
	const unsigned char *ident = at(im, 0, EI_NIDENT + 4, 1);
	uint16_t machine;

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	/* e_machine is behind e_type in both classes. */
	memcpy(&machine, ident + EI_NIDENT + 2, sizeof(machine));
	if (ident[EI_DATA] == ELFDATA2MSB)
		machine = __builtin_bswap16(machine);
	name_machine(elf->machine, ident[EI_CLASS], machine);
	elf->native = ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB &&
		      machine == OUR_MACHINE;
	if (!elf->native)
		return 0;

	im->eh = at(im, 0, sizeof(*im->eh), 1);
	if (!im->eh || im->eh->e_phentsize != sizeof(*im->ph))
		return -ENOEXEC;
	im->ph = at(im, im->eh->e_phoff, (uint64_t)im->eh->e_phnum * sizeof(*im->ph),
		__alignof__(*im->ph));
	if (!im->ph)
		return -ENOEXEC;
	look_at_interp(im, elf);
	elf->static_linked = !look_at_dynamic(im, elf) && !elf->interp[0];
	look_at_symbols(im, elf);
	return 0;
}

int lift_elf_read(const char *path, struct lift_elf *ret)
{
	struct image im = {0};
	struct stat st;
	void *map;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		rc = -errno;
		goto out_close;
	}
	/* Nothing that waits for a peer, and nothing that is too short to be mapped. */
	if (!S_ISREG(st.st_mode) || st.st_size < EI_NIDENT) {
		rc = -ENOEXEC;
		goto out_close;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		rc = -errno;
		goto out_close;
	}
	im.base = map;
	im.size = (size_t)st.st_size;
	memset(ret, 0, sizeof(*ret));
	rc = look(&im, ret);
	(void)munmap(map, im.size);
out_close:
	(void)close(fd);
	return rc;
}

const char *lift_elf_needs(const struct lift_elf *elf, const char *prefix)
{
	for (unsigned i = 0; i < elf->nr_needed; i++)
		if (strncmp(elf->needed[i], prefix, strlen(prefix)) == 0)
			return elf->needed[i];
	return NULL;
}

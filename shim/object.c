// SPDX-License-Identifier: MIT
#include "shim/object.h"

#include <link.h>

struct search {
	uintptr_t addr;
	struct lift_range range;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct lift_range r = {UINTPTR_MAX, 0};

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD)
			continue;
		r.start = start < r.start ? start : r.start;
		r.end = start + ph->p_memsz > r.end ? start + ph->p_memsz : r.end;
	}
	if (s->addr < r.start || s->addr >= r.end)
		return 0;
	s->range = r;
	return 1;
}

bool lift_object_range(uintptr_t addr, struct lift_range *ret)
{
	struct search s = {.addr = addr};

	if (!dl_iterate_phdr(look, &s))
		return false;
	*ret = s.range;
	return true;
}

bool lift_object_same(uintptr_t a, uintptr_t b)
{
	struct lift_range r;

	return lift_object_range(a, &r) && b >= r.start && b < r.end;
}

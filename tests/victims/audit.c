/* An LD_AUDIT library: lives in a namespace of its own and allocates whenever it is called. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

static void use_heap(void)
{
	char *line = malloc(200);

	if (line)
		memset(line, 0, 200);
	free(realloc(line, 4000));
}

unsigned int la_version(unsigned int version)
{
	use_heap();
	return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	(void)map;
	(void)space;
	(void)cookie;
	use_heap();
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
	unsigned int *flags, const char *name)
{
	(void)index;
	(void)from;
	(void)to;
	(void)flags;
	(void)name;
	use_heap();
	return symbol->st_value;
}

void la_activity(uintptr_t *cookie, unsigned int flag)
{
	(void)cookie;
	(void)flag;
	use_heap();
}

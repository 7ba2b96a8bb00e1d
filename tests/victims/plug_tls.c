/* A plug-in with constructors, destructors, thread-local storage and a C++-like exit handler that
 * all allocate. */
#include <stdlib.h>
#include <string.h>

int plug_touch(int value);

static __thread char *mine;
static __thread char room[3000];
static char *table[64];

__attribute__((constructor)) static void up(void)
{
	for (size_t i = 0; i < 64; i++) {
		table[i] = malloc(i * 300 + 1);
		if (table[i])
			table[i][0] = 1;
	}
}

__attribute__((destructor)) static void down(void)
{
	for (size_t i = 0; i < 64; i++)
		free(table[i]);
	free(mine);
}

int plug_touch(int value)
{
	mine = realloc(mine, 500);
	if (!mine)
		return -1;
	memset(room, value, sizeof(room));
	memset(mine, value, 500);
	return mine[499] + room[2999] - 2 * (char)value + 1;
}

/* Parts of libc that load modules, fork, or allocate much: iconv, name services, patterns, trees,
 * sorting. */
#include <execinfo.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <obstack.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <wordexp.h>

#include "victim.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static int visited;

static int visit(const char *path, const struct stat *state, int kind, struct FTW *where)
{
	(void)path;
	(void)state;
	(void)kind;
	(void)where;
	return ++visited > 200;
}

static int by_value(const void *a, const void *b)
{
	return memcmp(a, b, 1000);
}

static void convert(void)
{
	iconv_t converter = iconv_open("UTF-16LE", "ISO-8859-15");
	char in[] = "text";
	char out[40];
	char *from = in;
	char *to = out;
	size_t left = 4;
	size_t room = sizeof(out);

	if (converter == (iconv_t)-1)
		return;
	CHECK(iconv(converter, &from, &left, &to, &room) == 0 && to == out + 8);
	CHECK(!iconv_close(converter));
}

static void patterns(void)
{
	glob_t found;
	wordexp_t words;
	regex_t pattern;

	if (!glob("/etc/p*", 0, NULL, &found))
		globfree(&found);
	CHECK(!wordexp("one ${HOME:-x} $(echo two)", &words, 0) && words.we_wordc == 3);
	wordfree(&words);
	CHECK(!regcomp(&pattern, "^(a|b)*c{2,30}[[:alpha:]]+$", REG_EXTENDED));
	CHECK(!regexec(&pattern, "abbaccccxyz", 0, NULL, 0));
	regfree(&pattern);
}

static void walks(void)
{
	char root[] = "/etc";
	char *const roots[] = {root, NULL};
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	CHECK(walk);
	for (int i = 0; i < 300 && fts_read(walk); i++)
		;
	CHECK(!fts_close(walk));
	visited = 0;
	nftw("/etc", visit, 10, FTW_PHYS);
}

static void memory(void)
{
	struct obstack stack;
	void *frames[20];
	char *records = malloc(1500 * 1000);

	obstack_init(&stack);
	for (int i = 0; i < 2000; i++)
		obstack_printf(&stack, "%d ", i);
	CHECK(obstack_object_size(&stack) > 8000);
	obstack_free(&stack, NULL);
	CHECK(records);
	for (size_t i = 0; i < 1500; i++)
		memset(records + i * 1000, (int)(i * 37 % 251), 1000);
	qsort(records, 1500, 1000, by_value);
	CHECK(records[0] == 0);
	free(records);
	int depth = backtrace(frames, 20);

	free(backtrace_symbols(frames, depth));
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	CHECK(stream && !malloc_info(0, stream) && !fclose(stream) && size > 20);
	free(text);
	CHECK(hcreate(500));
	hdestroy();
}

int main(void)
{
	for (int round = 0; round < 5; round++) {
		convert();
		patterns();
		walks();
		memory();
		struct passwd *user = getpwuid(0);
		struct addrinfo *address = NULL;

		CHECK(!user || *user->pw_name);
		if (!getaddrinfo("localhost", NULL, NULL, &address))
			freeaddrinfo(address);
		locale_t other = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);

		if (other)
			freelocale(other);
		CHECK(setlocale(LC_ALL, "C"));
	}
	return pass();
}

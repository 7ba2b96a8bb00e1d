/* Blocks that libc makes for the program end in the same free, realloc and malloc_usable_size. */
#include <argz.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <search.h>
#include <wchar.h>

#include "victim.h"

static void use_up(void *block, const char *maker)
{
	if (!block)
		FAIL("%s gave NULL", maker);
	if (malloc_usable_size(block) == 0)
		FAIL("%s gave a block of unknown size", maker);
	block = realloc(block, 3000);
	CHECK(block);
	memset(block, 1, 3000);
	free(block);
}

static int order(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void streams(void)
{
	char *text = NULL;
	wchar_t *wide = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	for (int i = 0; i < 5000; i++)
		fprintf(stream, "%d,", i);
	fclose(stream);
	CHECK(size > 20000 && strlen(text) == size);
	stream = fmemopen(text, size, "r");
	char *field = malloc(1);
	size_t room = 1;

	while (getdelim(&field, &room, ',', stream) > 0)
		;
	fclose(stream);
	use_up(field, "getdelim");
	use_up(text, "open_memstream");
	stream = open_wmemstream(&wide, &size);
	fputws(L"wide", stream);
	fclose(stream);
	use_up(wide, "open_wmemstream");
	stream = tmpfile();
	if (stream) {
		setvbuf(stream, malloc(70000), _IOFBF, 70000);
		fputs("0x10 some", stream);
		rewind(stream);
		char *word = NULL;
		unsigned number = 0;

		CHECK(fscanf(stream, "%x %ms", &number, &word) == 2 && number == 16);
		fclose(stream);
		use_up(word, "scanf %ms");
	}
}

int main(void)
{
	for (int round = 0; round < 30; round++) {
		char *text = NULL;
		struct dirent **names = NULL;
		struct ifaddrs *addresses = NULL;
		void *tree = NULL;
		size_t length = 0;

		use_up(strdup("text"), "strdup");
		use_up(strndup("text", 2), "strndup");
		use_up(wcsdup(L"text"), "wcsdup");
		use_up(getcwd(NULL, 0), "getcwd");
		use_up(realpath("/", NULL), "realpath");
		CHECK(asprintf(&text, "%*d", 5000, round) == 5000);
		use_up(text, "asprintf");
		int count = scandir("/", &names, NULL, alphasort);

		for (int i = 0; i < count; i++)
			use_up(names[i], "scandir entry");
		use_up(names, "scandir");
		if (!getifaddrs(&addresses))
			freeifaddrs(addresses);
		for (int i = 0; i < 50; i++) {
			CHECK(asprintf(&text, "key %d", i) > 0);
			CHECK(tsearch(text, &tree, order));
		}
		tdestroy(tree, free);
		CHECK(!argz_create_sep("a:b:c", ':', &text, &length));
		CHECK(!argz_add(&text, &length, "d"));
		use_up(text, "argz");
		streams();
		CHECK(!setenv("VICTIM_VARIABLE", "value", 1) && !unsetenv("VICTIM_VARIABLE"));
		CHECK(!putenv(strdup("VICTIM_OTHER=1")));
	}
	return pass();
}

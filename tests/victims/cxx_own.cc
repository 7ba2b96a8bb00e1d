// A program with its own operator new and delete: its own are called, from the library's code too.
#include <map>
#include <new>
#include <string>

#include "victim.h"

static long made;
static long dropped;

void *operator new(std::size_t size)
{
	void *block = malloc(size + 64);

	if (!block)
		throw std::bad_alloc();
	made++;
	memset(block, 0x7e, 64);
	return static_cast<char *>(block) + 64;
}

void operator delete(void *block) noexcept
{
	if (!block)
		return;
	auto *start = static_cast<unsigned char *>(block) - 64;

	if (start[0] != 0x7e || start[63] != 0x7e)
		FAIL("a block that the program did not make");
	dropped++;
	free(start);
}

void operator delete(void *block, std::size_t) noexcept
{
	::operator delete(block);
}

int main()
{
	long before = made;
	{
		std::map<int, std::string> table;

		for (int i = 0; i < 3000; i++)
			table[i * 7 % 3001] = std::string(static_cast<std::size_t>(i % 300), 'x');
		for (int i = 0; i < 3000; i += 2)
			table.erase(i);
		int *many = new int[100]; // the library's new[] calls the program's new

		delete[] many;
	}
	CHECK(made > before + 3000);
	CHECK(made - before <= dropped);
	return pass();
}

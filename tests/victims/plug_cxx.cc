// A C++ plug-in for a C program: libstdc++ comes with it, and is in nobody else's scope.
#include <map>
#include <new>
#include <stdint.h>
#include <string>

extern "C" int plug_works();
extern "C" int plug_refused(std::size_t size);

extern "C" int plug_works()
{
	std::map<int, std::string> table;

	for (int i = 0; i < 1000; i++)
		table[i * 8 % 1001] = std::string(static_cast<std::size_t>(i), 'p');
	return static_cast<int>(table.size());
}

extern "C" int plug_refused(std::size_t size)
{
	int caught = 0;

	try {
		::operator delete(::operator new(size));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	try {
		::operator delete[](
			::operator new[](size, std::align_val_t(256)), std::align_val_t(256));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	try {
		::operator delete(::operator new(size, std::nothrow));
		caught++;
	} catch (...) {
	}
	return caught;
}

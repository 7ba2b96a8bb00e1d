// operator new that fails throws std::bad_alloc after asking the new handler; nothrow gives
// nullptr.
#include <new>
#include <string>
#include <vector>

#include "victim.h"

namespace
{
int asked;
char *reserve;

struct Refused {
};

void give_up_after_four()
{
	if (++asked == 4)
		std::set_new_handler(nullptr);
}

void throw_own()
{
	asked++;
	throw Refused();
}

template <typename Call> int bad_allocs(Call call)
{
	try {
		void *volatile block = call();
		FAIL("an impossible request gave %p", block);
	} catch (const std::bad_alloc &refused) {
		CHECK(std::string(refused.what()).find("alloc") != std::string::npos);
		return 1;
	}
	return 0;
}
} // namespace

int main()
{
	volatile std::size_t size = SIZE_MAX / 2 - 4096;
	const std::align_val_t align{1024};
	int count = 0;

	for (int round = 0; round < 50; round++) {
		count += bad_allocs([&] { return ::operator new(size); });
		count += bad_allocs([&] { return ::operator new[](size); });
		count += bad_allocs([&] { return ::operator new(size, align); });
		count += bad_allocs([&] { return ::operator new[](size, align); });
		count += bad_allocs([&] { return new char[size]; });
		CHECK(!::operator new(size, std::nothrow));
		CHECK(!::operator new[](size, std::nothrow));
		CHECK(!::operator new(size, align, std::nothrow));
		CHECK(!::operator new[](size, align, std::nothrow));
	}
	CHECK(count == 250);
	for (int form = 0; form < 4; form++) {
		asked = 0;
		std::set_new_handler(give_up_after_four);
		if (form == 0)
			bad_allocs([&] { return ::operator new(size); });
		else if (form == 1)
			bad_allocs([&] { return ::operator new[](size, align); });
		else if (form == 2)
			CHECK(!::operator new(size, std::nothrow));
		else
			CHECK(!::operator new(size, align, std::nothrow));
		if (asked != 4)
			FAIL("form %d asked the new handler %d times, not 4", form, asked);
	}
	asked = 0;
	std::set_new_handler(throw_own);
	try {
		::operator delete(::operator new(size));
		FAIL("the handler's own exception did not arrive");
	} catch (const Refused &) {
		CHECK(asked == 1);
	}
	std::set_new_handler(nullptr);
	try {
		std::vector<char> many;

		many.reserve(static_cast<std::size_t>(PTRDIFF_MAX) - 1);
		FAIL("a vector of PTRDIFF_MAX bytes");
	} catch (const std::bad_alloc &) {
	}
	delete[] reserve;
	return pass();
}

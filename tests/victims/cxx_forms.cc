// Every form of operator new has its operator delete; alignment, content and size of each hold.
#include <initializer_list>
#include <malloc.h>
#include <memory>
#include <new>

#include "victim.h"

namespace
{
struct alignas(512) Wide {
	unsigned char bytes[700];
};

void *make(int form, std::size_t size, std::align_val_t align)
{
	switch (form) {
	case 0:
		return ::operator new(size);
	case 1:
		return ::operator new[](size);
	case 2:
		return ::operator new(size, std::nothrow);
	case 3:
		return ::operator new[](size, std::nothrow);
	case 4:
		return ::operator new(size, align);
	case 5:
		return ::operator new[](size, align);
	case 6:
		return ::operator new(size, align, std::nothrow);
	default:
		return ::operator new[](size, align, std::nothrow);
	}
}

void drop(int form, void *block, std::size_t size, std::align_val_t align)
{
	if (form == 0 && size % 2)
		::operator delete(block);
	else if (form == 0)
		::operator delete(block, size);
	else if (form == 1 && size % 2)
		::operator delete[](block);
	else if (form == 1)
		::operator delete[](block, size);
	else if (form == 2)
		::operator delete(block, std::nothrow);
	else if (form == 3)
		::operator delete[](block, std::nothrow);
	else if (form == 4 && size % 2)
		::operator delete(block, align);
	else if (form == 4)
		::operator delete(block, size, align);
	else if (form == 5 && size % 2)
		::operator delete[](block, align);
	else if (form == 5)
		::operator delete[](block, size, align);
	else if (form == 6)
		::operator delete(block, align, std::nothrow);
	else
		::operator delete[](block, align, std::nothrow);
}
} // namespace

int main()
{
	for (std::size_t align = 8; align <= 32768; align *= 2)
		for (std::size_t size :
			{0ul, 1ul, 8ul, 63ul, 64ul, 256ul, 1024ul, 9001ul, 3000000ul})
			for (int form = 0; form < 8; form++) {
				std::align_val_t wanted{align};
				std::size_t least = form < 4 ? 16 : align;
				auto *block =
					static_cast<unsigned char *>(make(form, size, wanted));

				if (!block || reinterpret_cast<uintptr_t>(block) % least)
					FAIL("form %d align %zu size %zu gave %p", form, align,
						size, static_cast<void *>(block));
				if (malloc_usable_size(block) < size)
					FAIL("form %d: size of the block is not known", form);
				memset(block, form, size);
				drop(form, block, size, wanted);
			}
	for (int i = 0; i < 200; i++) {
		std::unique_ptr<Wide> one(new Wide);
		std::unique_ptr<Wide[]> many(new Wide[5]);

		CHECK(reinterpret_cast<uintptr_t>(one.get()) % 512 == 0);
		CHECK(reinterpret_cast<uintptr_t>(many.get()) % 512 == 0);
	}
	::operator delete(nullptr);
	::operator delete[](nullptr);
	::operator delete(nullptr, std::align_val_t(64));
	free(::operator new(100)); // not clean, but works with glibc and is done
	::operator delete(malloc(100));
	return pass();
}

// Exceptions with large payloads pass through C code, threads and failing constructors; nothing is
// lost.
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "victim.h"

namespace
{
struct Part {
	static int alive;
	std::string text = std::string(500, 'p');

	explicit Part(int i)
	{
		if (i == 7)
			throw std::runtime_error(std::string(9000, 'e'));
		alive++;
	}
	Part(const Part &other) : text(other.text)
	{
		alive++;
	}
	~Part()
	{
		alive--;
	}
};
int Part::alive;

int compare(const void *a, const void *b)
{
	int left = *static_cast<const int *>(a);

	if (left == 3)
		throw std::vector<int>(20000, left);
	return left - *static_cast<const int *>(b);
}

void nest(int depth)
{
	std::string local(static_cast<std::size_t>(depth) * 100, 'd');

	if (depth == 40)
		throw std::logic_error(local);
	try {
		nest(depth + 1);
	} catch (...) {
		std::throw_with_nested(std::runtime_error(local));
	}
}

void one_round()
{
	try {
		std::vector<Part> parts;

		for (int i = 0; i < 20; i++)
			parts.emplace_back(i);
		FAIL("the constructor did not throw");
	} catch (const std::runtime_error &error) {
		CHECK(strlen(error.what()) == 9000);
	}
	int list[] = {9, 8, 3, 1, 2, 7};

	try {
		qsort(list, 6, sizeof(int), compare);
		FAIL("qsort's callback did not throw");
	} catch (const std::vector<int> &payload) {
		CHECK(payload.size() == 20000 && payload[19999] == 3);
	}
	std::exception_ptr carried;
	std::thread([&] {
		try {
			nest(0);
		} catch (...) {
			carried = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::exception &) {
	}
}
} // namespace

int main()
{
	for (int i = 0; i < 100; i++)
		one_round();
	if (Part::alive)
		FAIL("%d objects were not destroyed", Part::alive);
	return pass();
}

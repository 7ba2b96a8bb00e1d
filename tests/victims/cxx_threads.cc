// thread_local objects with destructors, locale streams and shared pointers across many short
// threads.
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "victim.h"

namespace
{
using Lines = std::shared_ptr<std::vector<std::string>>;

struct Cache {
	std::vector<std::string> lines;
	~Cache()
	{
		lines.emplace_back(5000, 'z');
		std::vector<std::string>(lines).swap(lines);
	}
};
thread_local Cache cache;
thread_local std::unique_ptr<std::string> last = std::make_unique<std::string>(3000, 't');

void work(int seed, Lines mine)
{
	std::ostringstream out;

	for (int i = 0; i < 200; i++)
		out << i * seed << ' ' << 1.5 * i;
	cache.lines.push_back(out.str());
	*last += out.str();
	std::string copy = (*mine)[static_cast<std::size_t>(seed) % mine->size()];

	CHECK(copy.size() == 1000);
}
} // namespace

int main()
{
	for (int round = 0; round < 40; round++) {
		Lines shared =
			std::make_shared<std::vector<std::string>>(50, std::string(1000, 's'));
		std::vector<std::thread> threads;

		for (int i = 0; i < 8; i++)
			threads.emplace_back(work, round * 8 + i, shared);
		shared.reset(); // the last thread drops it
		for (auto &thread : threads)
			thread.join();
	}
	return pass();
}

/* Blocks are freed and resized by other threads than those that made them, through short-lived
 * threads too. */
#include <pthread.h>

#include "victim.h"

enum { THREADS = 6, SLOTS = 512, ROUNDS = 40000 };

struct block {
	size_t size;
	unsigned char data[];
};

static struct block *slot[SLOTS]; /* exchanged atomically */

static void check(const struct block *block)
{
	size_t last = block->size - 1;

	if (block->data[0] != (unsigned char)block->size ||
		block->data[last] != (unsigned char)(block->size * 3))
		FAIL("a block of %zu bytes was overwritten", block->size);
}

static struct block *make(unsigned *state)
{
	size_t size = mixed_size(state) / 2 + 2;
	struct block *block = malloc(sizeof(*block) + size);

	CHECK(block);
	block->size = size;
	block->data[0] = (unsigned char)size;
	block->data[size - 1] = (unsigned char)(size * 3);
	return block;
}

static void *trade(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct block *mine = make(&state);
		struct block *other =
			__atomic_exchange_n(&slot[rnd(&state) % SLOTS], mine, __ATOMIC_ACQ_REL);

		if (!other)
			continue;
		check(other);
		if (i % 5 == 0) {
			other = realloc(other, sizeof(*other) + other->size * 2);
			CHECK(other);
			check(other);
		}
		free(other);
	}
	return NULL;
}

int main(void)
{
	for (uintptr_t round = 0; round < 2; round++) {
		pthread_t thread[THREADS];

		for (uintptr_t i = 0; i < THREADS; i++)
			CHECK(!pthread_create(
				&thread[i], NULL, trade, (void *)(round * 100 + i * 13 + 1)));
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (slot[i])
			check(slot[i]);
		free(slot[i]);
	}
	return pass();
}

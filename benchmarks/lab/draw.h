// SPDX-License-Identifier: MIT
/*
 * Random numbers that follow from a seed, and lots drawn by Zipf's law.
 */
#ifndef NUMALIFT_BENCHMARKS_LAB_DRAW_H
#define NUMALIFT_BENCHMARKS_LAB_DRAW_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t draw_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The state is never 0: it would stay so. */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* 0..n-1 from the upper 32 bits, n up to 2^32 */
static inline uint64_t draw_below(uint64_t random, uint64_t n)
{
	return (random >> 32) * n >> 32;
}

/* Any order of n numbers. */
void draw_shuffle(uint32_t *order, unsigned long n, uint64_t *state);

/* Walker's tables: lot i is drawn in proportion to (i + 1)^-exponent. */
struct draw_lots {
	uint32_t *alias;
	uint32_t *keep; /* 2^32 times the probability to stay with the drawn one */
	unsigned long n;
};

/* False when there is no memory for it. */
bool draw_lots_init(struct draw_lots *lots, unsigned long n, double exponent);
void draw_lots_fini(struct draw_lots *lots);

static inline uint32_t draw_lot(const struct draw_lots *lots, uint64_t random)
{
	uint64_t i = draw_below(random, lots->n);

	return (uint32_t)random < lots->keep[i] ? (uint32_t)i : lots->alias[i];
}

#endif

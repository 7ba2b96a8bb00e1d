/*
 * Sequences of operations on the map of ranges, compared after each with a model that is too simple
 * to be wrong: an array that says for each page who has it.
 *
 * Input: a byte of set-up (low bit: at the top of the address space; rest: how many records there
 * are), then four bytes per operation.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "policy/regions.h"

#define NR_CELLS 256
#define CELL 4096u
#define NR_RECORDS 128

struct cell {
	bool used;
	bool starts; /* a record starts here, even if it is like the one before */
	enum lift_class cls;
	enum lift_place_kind kind;
	uint32_t flags;
};

static struct cell model[NR_CELLS];
static struct lift_region records[NR_RECORDS];
static struct lift_regions regions;
static uintptr_t base;
static uint64_t charged;

static struct lift_range range_of(unsigned from, unsigned to)
{
	return (struct lift_range){base + (uintptr_t)from * CELL, base + (uintptr_t)to * CELL};
}

static bool alike(const struct cell *a, const struct cell *b)
{
	return a->used && b->used && a->cls == b->cls && a->kind == b->kind && a->flags == b->flags;
}

static bool starts_at(unsigned i)
{
	if (!model[i].used)
		return false;
	return i == 0 || !alike(&model[i - 1], &model[i]) ||
	       (model[i].starts && (model[i].flags & LIFT_REGION_SEPARATE));
}

/* With records missing the map may know less than the model, but never anything else. */
static void compare(bool all)
{
	MUST(lift_regions_check(&regions));
	MUST(regions.vmas == charged);
	for (unsigned i = 0; i < NR_CELLS; i++) {
		struct lift_region *n = lift_regions_find(&regions, range_of(i, i + 1).start);

		MUST(n == lift_regions_find(&regions, range_of(i, i + 1).end - 1));
		if (!n) {
			MUST(!all || !model[i].used);
			model[i].used = false;
			continue;
		}
		MUST(model[i].used && n->info.cls == model[i].cls &&
			n->info.kind == model[i].kind && n->info.flags == model[i].flags);
		if (all)
			MUST((n->info.range.start == range_of(i, i).start) == starts_at(i));
		else
			model[i].starts = n->info.range.start == range_of(i, i).start;
	}
}

static void model_cut(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		model[i].used = false;
	if (from < to && to < NR_CELLS)
		model[to].starts = true;
}

static void model_fill(unsigned from, unsigned to, struct cell cell)
{
	for (unsigned i = from; i < to; i++) {
		model[i] = cell;
		cell.starts = false;
	}
}

static void do_insert(unsigned from, unsigned to, uint8_t what)
{
	static const uint32_t flags[] = {0, LIFT_REGION_SEPARATE, LIFT_REGION_USER, 0};
	struct cell cell = {
		.used = true,
		.starts = true,
		.cls = (enum lift_class)(what % LIFT_CLASS_MAX),
		.kind = (enum lift_place_kind)(what / 4 % 2),
		.flags = flags[what / 8 % 4],
	};
	struct lift_region_info info = {
		.range = range_of(from, to),
		.cls = cell.cls,
		.kind = cell.kind,
		.flags = cell.flags,
		.vmas = what / 32,
	};
	bool overlaps = false;
	size_t had_free = regions.nr_free;
	int rc = lift_regions_insert(&regions, &info);

	for (unsigned i = from; i < to; i++)
		overlaps = overlaps || model[i].used;
	if (from >= to) {
		MUST(rc == -EINVAL);
	} else if (overlaps) {
		MUST(rc == -EEXIST);
	} else if (rc == 0) {
		model_fill(from, to, cell);
		charged += info.vmas;
	} else {
		MUST(rc == -ENOMEM && had_free == 0);
	}
	compare(true);
}

static void do_cut(unsigned from, unsigned to)
{
	size_t had_free = regions.nr_free;
	uint64_t freed = 0;
	int rc = lift_regions_cut(&regions, range_of(from, to), &freed);

	MUST(rc == 0 || (rc == -ENOMEM && had_free == 0));
	charged -= freed;
	model_cut(from, to);
	compare(rc == 0);
}

static void do_move(unsigned from, unsigned to, unsigned new_from, unsigned new_len)
{
	unsigned new_to = new_from + new_len < NR_CELLS ? new_from + new_len : NR_CELLS;
	static struct cell saved[NR_CELLS];
	uint64_t freed = 0;
	int rc =
		lift_regions_move(&regions, range_of(from, to), range_of(new_from, new_to), &freed);

	if (from >= to || new_from >= new_to ||
		(from != new_from && from < new_to && new_from < to)) {
		MUST(rc == -EINVAL);
		compare(true);
		return;
	}
	MUST(rc == 0 || rc == -ENOMEM);
	charged -= freed;
	if (from == new_from) {
		if (new_to < to) {
			model_cut(new_to, to);
		} else if (new_to > to) {
			struct cell last = model[to - 1];

			model_cut(to, new_to);
			last.starts = false;
			if (last.used)
				model_fill(to, new_to, last);
		}
	} else {
		unsigned nr = to - from < new_to - new_from ? to - from : new_to - new_from;

		model_cut(new_from, new_to);
		memcpy(saved, &model[from], (to - from) * sizeof(saved[0]));
		model_cut(from, to);
		memcpy(&model[new_from], saved, nr * sizeof(saved[0]));
		model[new_from].starts = true;
		if (to - from == nr && saved[nr - 1].used) {
			struct cell last = saved[nr - 1];

			last.starts = false;
			model_fill(new_from + nr, new_to, last);
		}
	}
	compare(rc == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	memset(model, 0, sizeof(model));
	charged = 0;
	base = data[0] & 1 ? UINTPTR_MAX / CELL * CELL - (uintptr_t)NR_CELLS * CELL : 0;
	lift_regions_init(&regions);
	/* In two parts, as a caller would whose first lot has run out. */
	lift_regions_add_memory(&regions, records, data[0] >> 2);
	if (data[0] & 2)
		lift_regions_add_memory(&regions, records + 64, 64);
	data++;
	size--;

	for (; size >= 4; data += 4, size -= 4) {
		switch (data[0] % 4) {
		case 0:
		case 1:
			do_insert(data[1], data[2], data[3]);
			break;
		case 2:
			do_cut(data[1], data[2]);
			break;
		case 3:
			do_move(data[1],
				data[1] + data[0] / 4 + data[2] % 4u * 16u < NR_CELLS
					? data[1] + data[0] / 4 + data[2] % 4u * 16u
					: NR_CELLS,
				data[2], data[3]);
			break;
		}
	}
	lift_regions_clear(&regions);
	MUST(lift_regions_check(&regions) && regions.nr == 0 && regions.vmas == 0);
	return 0;
}

/*
 * An AVL tree with parent links: heights are what a check can verify, and parents make the walk to
 * the next record and all repairs loops instead of recursion.
 */
#include "policy/regions.h"

#include <errno.h>

static int height_of(const struct lift_region *n)
{
	return n ? n->height : 0;
}

static void fix_height(struct lift_region *n)
{
	int l = height_of(n->left);
	int r = height_of(n->right);

	n->height = (l > r ? l : r) + 1;
}

/* Puts @by where @n hangs; @n's own links are not touched. */
static void replace(struct lift_regions *r, struct lift_region *n, struct lift_region *by)
{
	if (!n->parent)
		r->root = by;
	else if (n->parent->left == n)
		n->parent->left = by;
	else
		n->parent->right = by;
	if (by)
		by->parent = n->parent;
}

/*
 *     n              c
 *    / \            / \
 *   a   c    ->    n   e
 *      / \        / \
 *     d   e      a   d
 */
static struct lift_region *rotate_left(struct lift_regions *r, struct lift_region *n)
{
	struct lift_region *c = n->right;

	replace(r, n, c);
	n->right = c->left;
	if (n->right)
		n->right->parent = n;
	c->left = n;
	n->parent = c;
	fix_height(n);
	fix_height(c);
	return c;
}

static struct lift_region *rotate_right(struct lift_regions *r, struct lift_region *n)
{
	struct lift_region *c = n->left;

	replace(r, n, c);
	n->left = c->right;
	if (n->left)
		n->left->parent = n;
	c->right = n;
	n->parent = c;
	fix_height(n);
	fix_height(c);
	return c;
}

/* Repairs heights and balance from @n to the root. */
static void rebalance(struct lift_regions *r, struct lift_region *n)
{
	for (; n; n = n->parent) {
		int lean = height_of(n->left) - height_of(n->right);

		if (lean > 1) {
			if (height_of(n->left->left) < height_of(n->left->right))
				rotate_left(r, n->left);
			n = rotate_right(r, n);
		} else if (lean < -1) {
			if (height_of(n->right->right) < height_of(n->right->left))
				rotate_right(r, n->right);
			n = rotate_left(r, n);
		} else {
			fix_height(n);
		}
	}
}

static void account(struct lift_regions *r, const struct lift_region *n)
{
	r->vmas += n->info.vmas;
	r->bytes += lift_range_bytes(n->info.range);
}

static void unaccount(struct lift_regions *r, const struct lift_region *n)
{
	r->vmas -= n->info.vmas;
	r->bytes -= lift_range_bytes(n->info.range);
}

/* Hangs @n, whose info is set and overlaps nothing, into the tree. */
static void attach(struct lift_regions *r, struct lift_region *n)
{
	struct lift_region **link = &r->root;
	struct lift_region *parent = NULL;

	while (*link) {
		parent = *link;
		link = n->info.range.start < parent->info.range.start ? &parent->left
								      : &parent->right;
	}
	n->left = NULL;
	n->right = NULL;
	n->parent = parent;
	n->height = 1;
	*link = n;
	r->nr++;
	account(r, n);
	rebalance(r, parent);
}

static struct lift_region *leftmost(struct lift_region *n)
{
	while (n && n->left)
		n = n->left;
	return n;
}

/*
 * Takes @n out. With two children it is the next record that leaves the tree in its place, after
 * they have swapped what they say; the one returned is out of the tree and says what @n said.
 */
static struct lift_region *detach(struct lift_regions *r, struct lift_region *n)
{
	struct lift_region *parent;

	unaccount(r, n);
	if (n->left && n->right) {
		struct lift_region *next = leftmost(n->right);
		struct lift_region_info info = n->info;

		n->info = next->info;
		next->info = info;
		n = next;
	}
	parent = n->parent;
	replace(r, n, n->left ? n->left : n->right);
	r->nr--;
	rebalance(r, parent);
	return n;
}

static struct lift_region *get_free(struct lift_regions *r)
{
	struct lift_region *n = r->free;

	if (n) {
		r->free = n->right;
		r->nr_free--;
	}
	return n;
}

static void put_free(struct lift_regions *r, struct lift_region *n)
{
	memset(n, 0, sizeof(*n));
	n->right = r->free;
	r->free = n;
	r->nr_free++;
}

void lift_regions_init(struct lift_regions *r)
{
	memset(r, 0, sizeof(*r));
}

void lift_regions_add_memory(struct lift_regions *r, struct lift_region *records, size_t nr)
{
	/* Backwards, so that they are used from the front. */
	for (size_t i = nr; i > 0; i--)
		put_free(r, &records[i - 1]);
	r->capacity += nr;
}

void lift_regions_clear(struct lift_regions *r)
{
	while (r->root)
		put_free(r, detach(r, r->root));
}

static bool can_merge(const struct lift_region_info *a, const struct lift_region_info *b)
{
	return a->range.end == b->range.start && a->cls == b->cls && a->kind == b->kind &&
	       a->flags == b->flags && !(a->flags & LIFT_REGION_SEPARATE);
}

/* Saturates: nobody has that many VMAs, but a sum that wraps would be given back as nothing. */
static uint32_t sum_charges(uint32_t a, uint32_t b)
{
	return a <= UINT32_MAX - b ? a + b : UINT32_MAX;
}

struct lift_region *lift_regions_first(const struct lift_regions *r, uintptr_t addr)
{
	struct lift_region *n = r->root;
	struct lift_region *best = NULL;

	while (n) {
		if (n->info.range.end > addr) {
			best = n;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

struct lift_region *lift_regions_find(const struct lift_regions *r, uintptr_t addr)
{
	struct lift_region *n = lift_regions_first(r, addr);

	return n && n->info.range.start <= addr ? n : NULL;
}

struct lift_region *lift_regions_next(const struct lift_region *region)
{
	if (region->right)
		return leftmost(region->right);
	while (region->parent && region->parent->right == region)
		region = region->parent;
	return region->parent;
}

/* The record that ends at @addr. */
static struct lift_region *ending_at(const struct lift_regions *r, uintptr_t addr)
{
	struct lift_region *n = addr > 0 ? lift_regions_find(r, addr - 1) : NULL;

	return n && n->info.range.end == addr ? n : NULL;
}

/* Joins @n with the record after it if they are alike. */
static void merge_next(struct lift_regions *r, struct lift_region *n)
{
	struct lift_region *next = lift_regions_next(n);
	struct lift_region *gone;

	if (!next || !can_merge(&n->info, &next->info))
		return;
	/* detach() may hand out another record than @next, but only one that comes after it. */
	gone = detach(r, next);
	unaccount(r, n);
	n->info.range.end = gone->info.range.end;
	n->info.vmas = sum_charges(n->info.vmas, gone->info.vmas);
	account(r, n);
	put_free(r, gone);
}

/* attach(), and joins with both neighbours. */
static void attach_merged(struct lift_regions *r, struct lift_region *n)
{
	uintptr_t start = n->info.range.start;
	struct lift_region *prev;

	attach(r, n);
	merge_next(r, n);
	prev = ending_at(r, start);
	if (prev)
		merge_next(r, prev);
}

int lift_regions_insert(struct lift_regions *r, const struct lift_region_info *info)
{
	struct lift_region *prev;
	struct lift_region *next;
	struct lift_region *n;

	if (lift_range_empty(info->range))
		return -EINVAL;
	next = lift_regions_first(r, info->range.start);
	if (next && next->info.range.start < info->range.end)
		return -EEXIST;

	/* Growing a neighbour needs no record, so it works on a full map too. */
	prev = ending_at(r, info->range.start);
	if (prev && can_merge(&prev->info, info)) {
		unaccount(r, prev);
		prev->info.range.end = info->range.end;
		prev->info.vmas = sum_charges(prev->info.vmas, info->vmas);
		account(r, prev);
		merge_next(r, prev);
		return 0;
	}
	if (next && can_merge(info, &next->info)) {
		unaccount(r, next);
		next->info.range.start = info->range.start;
		next->info.vmas = sum_charges(next->info.vmas, info->vmas);
		account(r, next);
		return 0;
	}
	n = get_free(r);
	if (!n)
		return -ENOMEM;
	n->info = *info;
	attach(r, n);
	return 0;
}

/* The part of a charge that belongs to @part of @whole bytes; the parts' sum never exceeds it. */
static uint32_t charge_part(uint32_t vmas, size_t part, size_t whole)
{
	uint64_t p = part;
	uint64_t w = whole;

	/* To 32 bits, so that the product fits. */
	while (w > UINT32_MAX) {
		p >>= 1;
		w >>= 1;
	}
	return (uint32_t)(vmas * p / w);
}

/* Leaves of @n only @keep, which is at one of its ends. Returns the charge that is gone. */
static uint32_t trim(struct lift_regions *r, struct lift_region *n, struct lift_range keep)
{
	uint32_t vmas = n->info.vmas;

	unaccount(r, n);
	n->info.vmas = charge_part(vmas, lift_range_bytes(keep), lift_range_bytes(n->info.range));
	n->info.range = keep;
	account(r, n);
	return vmas - n->info.vmas;
}

/*
 * Takes [cut.start, cut.end) out of @n, which extends past it on both sides or is split there when
 * the cut is empty. Without a free record only the larger side stays. Adds to *freed.
 */
static int split(
	struct lift_regions *r, struct lift_region *n, struct lift_range cut, uint64_t *freed)
{
	struct lift_range low = {n->info.range.start, cut.start};
	struct lift_range high = {cut.end, n->info.range.end};
	struct lift_region *fresh = get_free(r);
	uint32_t vmas = n->info.vmas;

	if (!fresh) {
		r->forgotten++;
		*freed += trim(r, n, lift_range_bytes(low) >= lift_range_bytes(high) ? low : high);
		return -ENOMEM;
	}
	fresh->info = n->info;
	fresh->info.range = high;
	fresh->info.vmas =
		charge_part(vmas, lift_range_bytes(high), lift_range_bytes(n->info.range));
	(void)trim(r, n, low);
	*freed += vmas - n->info.vmas - fresh->info.vmas;
	attach(r, fresh);
	return 0;
}

static int cut_range(struct lift_regions *r, struct lift_range cut, uint64_t *freed)
{
	struct lift_region *n;

	if (lift_range_empty(cut))
		return 0;
	while ((n = lift_regions_first(r, cut.start)) && n->info.range.start < cut.end) {
		struct lift_range range = n->info.range;

		if (range.start < cut.start && range.end > cut.end)
			return split(r, n, cut, freed);
		if (range.start < cut.start) {
			*freed += trim(r, n, (struct lift_range){range.start, cut.start});
		} else if (range.end > cut.end) {
			*freed += trim(r, n, (struct lift_range){cut.end, range.end});
		} else {
			*freed += n->info.vmas;
			put_free(r, detach(r, n));
		}
	}
	return 0;
}

int lift_regions_cut(struct lift_regions *r, struct lift_range cut, uint64_t *ret_vmas)
{
	uint64_t freed = 0;
	int rc = cut_range(r, cut, &freed);

	if (ret_vmas)
		*ret_vmas = freed;
	return rc;
}

/* Makes @addr a boundary, so that what is below and above it can be treated apart. */
static int split_at(struct lift_regions *r, uintptr_t addr, uint64_t *freed)
{
	struct lift_region *n = lift_regions_find(r, addr);

	if (!n || n->info.range.start == addr)
		return 0;
	return split(r, n, (struct lift_range){addr, addr}, freed);
}

/* The end of what is in @from moves out to @end, where nothing is. */
static void grow(struct lift_regions *r, struct lift_range from, uintptr_t end)
{
	struct lift_region *n = ending_at(r, from.end);

	if (!n || end <= from.end)
		return;
	unaccount(r, n);
	n->info.range.end = end;
	account(r, n);
	merge_next(r, n);
}

static int move_away(
	struct lift_regions *r, struct lift_range from, struct lift_range to, uint64_t *freed)
{
	struct lift_region *moved = NULL;
	struct lift_region *n;
	int rc = cut_range(r, to, freed);
	int rc_split = split_at(r, from.start, freed);

	if (rc == 0)
		rc = rc_split;
	rc_split = split_at(r, from.end, freed);
	if (rc == 0)
		rc = rc_split;

	while ((n = lift_regions_first(r, from.start)) && n->info.range.start < from.end) {
		n = detach(r, n);
		n->right = moved;
		moved = n;
	}
	while ((n = moved)) {
		size_t offset = n->info.range.start - from.start;
		size_t bytes = lift_range_bytes(n->info.range);
		bool last = n->info.range.end == from.end;
		size_t room;

		moved = n->right;
		if (offset >= lift_range_bytes(to)) {
			*freed += n->info.vmas;
			put_free(r, n);
			continue;
		}
		room = lift_range_bytes(to) - offset;
		if (bytes > room) {
			uint32_t vmas = charge_part(n->info.vmas, room, bytes);

			*freed += n->info.vmas - vmas;
			n->info.vmas = vmas;
			bytes = room;
		} else if (last) {
			bytes = room;
		}
		n->info.range.start = to.start + offset;
		n->info.range.end = n->info.range.start + bytes;
		attach_merged(r, n);
	}
	return rc;
}

int lift_regions_move(
	struct lift_regions *r, struct lift_range from, struct lift_range to, uint64_t *ret_vmas)
{
	uint64_t freed = 0;
	int rc = 0;

	if (lift_range_empty(from) || lift_range_empty(to) ||
		(from.start != to.start && lift_range_overlaps(from, to)))
		return -EINVAL;
	if (from.start != to.start) {
		rc = move_away(r, from, to, &freed);
	} else if (to.end < from.end) {
		rc = cut_range(r, (struct lift_range){to.end, from.end}, &freed);
	} else {
		rc = cut_range(r, (struct lift_range){from.end, to.end}, &freed);
		grow(r, from, to.end);
	}
	if (ret_vmas)
		*ret_vmas = freed;
	return rc;
}

uint32_t lift_regions_charge(struct lift_regions *r, struct lift_region *region, uint32_t vmas)
{
	uint32_t was = region->info.vmas;

	unaccount(r, region);
	region->info.vmas = vmas;
	account(r, region);
	return was;
}

/* One record: its links, its height, its place. */
static bool sound(const struct lift_regions *r, const struct lift_region *n)
{
	int l = height_of(n->left);
	int h = height_of(n->right);

	if (lift_range_empty(n->info.range))
		return false;
	if (n->height != (l > h ? l : h) + 1 || l - h > 1 || h - l > 1)
		return false;
	if ((n->left && n->left->parent != n) || (n->right && n->right->parent != n))
		return false;
	if (!n->parent)
		return r->root == n;
	return n->parent->left == n || n->parent->right == n;
}

bool lift_regions_check(const struct lift_regions *r)
{
	const struct lift_region *prev = NULL;
	const struct lift_region *n = leftmost(r->root);
	uint64_t vmas = 0;
	uint64_t bytes = 0;
	size_t nr = 0;
	size_t nr_free = 0;

	for (; n; prev = n, n = lift_regions_next(n)) {
		/* Counted, so that a loop in the links ends the check and not the program. */
		if (++nr > r->nr || !sound(r, n))
			return false;
		if (prev && prev->info.range.end > n->info.range.start)
			return false;
		if (prev && can_merge(&prev->info, &n->info))
			return false;
		vmas += n->info.vmas;
		bytes += lift_range_bytes(n->info.range);
	}
	for (n = r->free; n; n = n->right)
		if (++nr_free > r->nr_free)
			return false;
	return nr == r->nr && nr_free == r->nr_free && nr + nr_free == r->capacity &&
	       vmas == r->vmas && bytes == r->bytes;
}

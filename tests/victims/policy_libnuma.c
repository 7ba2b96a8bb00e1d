/* Programs that place memory by libnuma get what they ask for, and their settings stay. */
#include <numa.h>
#include <numaif.h>

#include "victim.h"

static int mode_at(void *address)
{
	int mode = -1;

	CHECK(!get_mempolicy(&mode, NULL, 0, address, address ? MPOL_F_ADDR : 0));
	return mode;
}

int main(void)
{
	if (numa_available() < 0)
		SKIP("libnuma says that there is no NUMA here");
	int node = numa_max_node();
	struct bitmask *nodes = numa_allocate_nodemask();

	while (node > 0 && numa_node_size64(node, NULL) <= 0)
		node--;
	numa_bitmask_setbit(nodes, (unsigned)node);
	exercise_heap(1, 3000);

	char *bound = numa_alloc_onnode(8 * MIB, node);
	char *spread = numa_alloc_interleaved(8 * MIB);
	char *near = numa_alloc_local(8 * MIB);
	char *plain = numa_alloc(8 * MIB);

	CHECK(bound && spread && near && plain);
	memset(bound, 1, 8 * MIB);
	memset(spread, 1, 8 * MIB);
	memset(near, 1, 8 * MIB);
	memset(plain, 1, 8 * MIB);
	exercise_heap(2, 3000);
	if (mode_at(bound) != MPOL_BIND && mode_at(bound) != MPOL_PREFERRED)
		FAIL("numa_alloc_onnode left policy %d", mode_at(bound));
	CHECK(mode_at(spread) == MPOL_INTERLEAVE);
	CHECK(mode_at(near) == MPOL_PREFERRED || mode_at(near) == MPOL_LOCAL);
	CHECK(mode_at(plain) == MPOL_DEFAULT);
	bound = numa_realloc(bound, 8 * MIB, 24 * MIB);
	CHECK(bound && bound[8 * MIB - 1] == 1 && bound[24 * MIB - 1] == 0);
	int where = -1;

	CHECK(!get_mempolicy(&where, NULL, 0, bound, MPOL_F_NODE | MPOL_F_ADDR) && where == node);
	void *pages[2] = {bound, bound + 4096};
	int status[2] = {-99, -99};

	CHECK(!numa_move_pages(0, 2, pages, NULL, status, 0));
	CHECK(status[0] == node);

	numa_set_interleave_mask(nodes);
	exercise_heap(3, 1000);
	CHECK(mode_at(NULL) == MPOL_INTERLEAVE);
	numa_set_membind(nodes);
	exercise_heap(4, 1000);
	CHECK(mode_at(NULL) == MPOL_BIND);
	struct bitmask *now = numa_get_membind();

	CHECK(numa_bitmask_equal(now, nodes));
	numa_bitmask_free(now);
	numa_set_preferred(node);
	exercise_heap(5, 1000);
	CHECK(mode_at(NULL) == MPOL_PREFERRED && numa_preferred() == node);
	numa_set_localalloc();
	exercise_heap(6, 1000);
	CHECK(mode_at(NULL) == MPOL_PREFERRED || mode_at(NULL) == MPOL_LOCAL);
	char *block = aligned_alloc(
		4096, 8 * MIB); /* placing a block of the heap is the program's right */

	CHECK(block);
	numa_interleave_memory(block, 8 * MIB, nodes);
	memset(block, 1, 8 * MIB);
	free(block);
	numa_free(bound, 24 * MIB);
	numa_free(spread, 8 * MIB);
	numa_free(near, 8 * MIB);
	numa_free(plain, 8 * MIB);
	numa_bitmask_free(nodes);
	exercise_heap(7, 1000);
	return pass();
}

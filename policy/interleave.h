/*
 * Batch interleave: which node gets the next chunk, and how large chunks are.
 *
 * Every node has a credit in bytes, proportional to what it can hold or to a weight. A chunk is
 * taken from a node and debited; so is, through lift_credits_debit(), memory that went to a node
 * for another reason, so that the sum of both is what stays in proportion. When the credit of the
 * eligible nodes is used up all nodes are refilled together.
 *
 * No locks: the caller serialises calls on one lift_credits.
 */
#ifndef LIFT_POLICY_INTERLEAVE_H
#define LIFT_POLICY_INTERLEAVE_H

#include <stdint.h>

#include "policy/types.h"

struct lift_credits {
	unsigned nr;
	int node[LIFT_TOPO_NODES];       /* ids, ascending */
	uint64_t share[LIFT_TOPO_NODES]; /* bytes per refill, at least 1 */
	int64_t left[LIFT_TOPO_NODES];   /* negative: taken in advance */
	uint64_t refills;                /* rounds begun since init, for statistics */
};

/*
 * Debt that a node can run up by lift_credits_debit(), in rounds: as in the 2013 series, where a
 * refill sets the batches of all zones anew. A node with more local memory than that is left out
 * of the interleave for a round and no longer: credits steer what is allocated now, they do not
 * repay what a program did an hour ago, and a region is in proportion in itself but for a round.
 */
#define LIFT_CREDITS_DEBT_ROUNDS 1

/*
 * Full credits for the nodes of @weights[0..nr): shares of @round_bytes in proportion to their
 * weights. Nodes with weight 0 are left out. 0; -EINVAL: no node is left, @round_bytes is 0, an
 * id is out of range or given twice; -ENOSPC: more than LIFT_TOPO_NODES nodes. *ret is untouched
 * on failure.
 *
 * A round of a few chunks per node is right (a MiB is used if it is less). It has no influence on
 * the order; it only bounds how far back local allocations are made up for, and what a node saves
 * up that is not eligible.
 */
int lift_credits_init(struct lift_credits *ret, const struct lift_node_weight *weights, unsigned nr,
	uint64_t round_bytes);

/*
 * Takes @bytes from one node and returns its id; -1 when no node of @eligible (NULL: all) has a
 * share here. When the eligible nodes have used up their credit together, all are refilled. Of the
 * nodes that are behind their share it is the one whose next chunk is due first, the lowest id
 * among equals: A B A A B for 3:2. Over any run of calls with the same set and size every node is
 * within one chunk of its share, whatever the shares, the size and the round are.
 *
 * Simpler orders were not taken. Using up one node before the next, as the kernel's zone batches
 * do, leaves a region smaller than a batch on one node, with the bandwidth of one. The largest
 * fraction of credit left serves all small nodes before a large one gets its second chunk; the
 * largest surplus (smooth weighted round robin) strays up to three chunks with one large and seven
 * small nodes. Nor does a node have to have credit itself: with chunks larger than a share that
 * would decide instead of who is behind.
 */
int lift_credits_take(struct lift_credits *c, const struct lift_nodeset *eligible, uint64_t bytes);

/* Memory of another class went to @node. Nodes without a share are ignored. Never refills. */
void lift_credits_debit(struct lift_credits *c, int node, uint64_t bytes);

/*
 * Size of the chunks of a region of @region_bytes: @batch_bytes (a power of two; 0: auto) times
 * the smallest power of two for which at most @max_chunks chunks cover it. Each chunk may become
 * a VMA, hence the bound. `auto` starts from a huge page and aims at LIFT_CHUNKS_AUTO chunks:
 * fewer VMAs for large regions, the same for small ones. Where memory comes in larger pages
 * (hugetlb) the caller passes the page size if that is larger than the batch. Never 0, saturates
 * at 1 << 63; @max_chunks 0 counts as 1; a batch that is no power of two counts as the next one.
 */
uint64_t lift_chunk_bytes(uint64_t region_bytes, uint64_t batch_bytes, uint64_t max_chunks);

#define LIFT_CHUNKS_AUTO 64
#define LIFT_CHUNKS_MAX 256 /* a good max_chunks: 1/64 of a quarter of the default max_map_count */

#endif

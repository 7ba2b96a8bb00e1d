/*
 * Batch interleave: which node gets the next chunk, and how large chunks are.
 *
 * Every node has a credit in bytes, proportional to what it can hold or to a weight. A chunk is
 * taken from a node whose credit is left, and debited; so is, through lift_credits_debit(),
 * memory that went to a node for another reason, so that the sum of both is what stays in
 * proportion. When no eligible node has credit left all nodes are refilled together.
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
	int64_t left[LIFT_TOPO_NODES];   /* at most share; negative: taken in advance */
	uint64_t refills;                /* rounds begun since init, for statistics */
};

/*
 * Debt that a node can run up by lift_credits_debit(), in rounds. A node with more local memory
 * than that is left out of the interleave for so long and no longer: credits steer what is
 * allocated now, they do not repay what a program did an hour ago.
 */
#define LIFT_CREDITS_DEBT_ROUNDS 8

/*
 * Full credits for the nodes of @weights[0..nr): shares of @round_bytes in proportion to their
 * weights. Nodes with weight 0 are left out. 0; -EINVAL: no node is left, @round_bytes is 0, an
 * id is out of range or given twice; -ENOSPC: more than LIFT_TOPO_NODES nodes. *ret is untouched
 * on failure.
 *
 * A round of a few chunks per node is right: the order within a round is even anyway (see
 * lift_credits_take()), and the round only bounds how far local allocations are looked back upon.
 */
int lift_credits_init(struct lift_credits *ret, const struct lift_node_weight *weights, unsigned nr,
		      uint64_t round_bytes);

/*
 * Takes @bytes from one node and returns its id; -1 when no node of @eligible (NULL: all) has a
 * share here. The node is the one with the largest fraction of its share left, the lowest id
 * among equals: A B A B A for 3:2. That is smooth weighted round robin with the state in the
 * credits themselves, so debits count at once. Using up one node before the next, as the
 * kernel's zone batches do, was not taken: a region smaller than a batch would lie on one node
 * and have the bandwidth of one.
 *
 * @bytes may exceed the credit: the rest is owed and comes off the next rounds, which keeps
 * shares exact for chunks of any size. Over any run of calls with the same set each node is
 * within about one chunk of its share.
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
#define LIFT_CHUNKS_MAX 256  /* a good max_chunks: 1/64 of the default vm.max_map_count's quarter */

#endif

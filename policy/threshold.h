/*
 * What a state of heat is worth, and where to draw the line.
 *
 * A page's state says what its samples were; how likely such a page is accessed next is learned by
 * looking: of the pages that were in this state, how many did the next sample find accessed? So
 * nothing is hot by decree. Under uniform access all states come out alike, and no exchange pays;
 * a chance run of hits is worth no more than such runs have proved to be.
 *
 * The line follows from the room there is: the hottest on slow nodes first fill what is free, then
 * trade places with the coldest on fast nodes, as long as the accesses that a trade is expected to
 * speed up pay for its two moves. That is the hysteresis, too.
 *
 * Rates are accesses per 1000 seconds and page. A sample of w seconds sees a page with rate r with
 * probability p = 1 - e^(-rw); so r = -ln(1 - p) / w, of which sampling can see at most about 5 /
 * w.
 */
#ifndef LIFT_POLICY_THRESHOLD_H
#define LIFT_POLICY_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/heat.h"

/* One more than the states of pages: pages predicted by the window. */
#define LIFT_STATE_PREDICTED LIFT_STATES
#define LIFT_STATES_ALL (LIFT_STATES + 1)

struct lift_calib {
	uint64_t window_ns; /* length of the samples that t and n are of */
	uint32_t grain;     /* so many pages are one observation; at least 1 */
	uint32_t rough;     /* how far samples are from what was expected, times ROUGH_OF */
	uint32_t n[LIFT_STATES_ALL];
	uint32_t t[LIFT_STATES_ALL];
};

struct lift_rates {
	uint32_t rate[LIFT_STATES_ALL]; /* best guess */
	uint32_t low[LIFT_STATES_ALL];  /* at least this, as far as so few samples can say */
	uint32_t high[LIFT_STATES_ALL];
	uint16_t p[LIFT_STATES_ALL]; /* chance to be accessed in a sample, of 4096 */
};

/* What moving costs and brings. */
struct lift_price {
	uint64_t promote_ns;   /* copy, fault, TLB, our own time, per page */
	uint64_t demote_ns;    /* likewise */
	uint32_t gap_ns;       /* an access to slow memory takes this much longer */
	uint32_t margin_pct;   /* the gain has to be this part of the cost; 150 is good */
	uint64_t residence_ns; /* how long a page is expected to stay hot */
	uint64_t room_ns;      /* likewise where nothing has to make way */
	/* Nothing makes way, since nobody knows what is cold: room is for what is hot alone. */
	bool one_way;
};

struct lift_cut {
	uint32_t promote[LIFT_STATES_ALL]; /* pages to promote, by state */
	uint32_t demote[LIFT_STATES];      /* pages to demote, by state */
	uint32_t demote_wrong;             /* of these first */
	uint32_t nr_promote;
	uint32_t nr_demote;     /* with the wrong */
	uint32_t excess;        /* of these because there is no room for them */
	uint32_t hot_rate;      /* at this rate the hottest pages just fit */
	bool hot[LIFT_STATES];  /* states at least that hot */
	uint64_t gain_ns_per_s; /* expected from all this */
	uint64_t up_p;          /* sum of p over the pages to promote */
	uint64_t down_p;        /* and over those that make way for them */
	uint32_t nr_down;       /* of which there are so many */
};

void lift_calib_init(struct lift_calib *c, uint64_t window_ns);

/*
 * Adds what a pass has found in a sample of @took_ns. What is older than about @keep observations
 * fades. Predicted pages: @n, of which @t were found accessed.
 */
void lift_calib_add(struct lift_calib *c, const struct lift_tally *tally, uint64_t took_ns,
	uint32_t predicted_n, uint32_t predicted_t, uint64_t keep);

/*
 * A sample of @took_ns found as much used as is usual in one of @busy_ns. The further these differ
 * from sample to sample, the less is known of any state, however many pages have been seen in it:
 * those that were in one sample were all seen through the same glass. Its length is known to within
 * @unsure_ns.
 */
void lift_calib_doubt(struct lift_calib *c, uint64_t took_ns, uint64_t busy_ns, uint64_t unsure_ns);

/* What was learned may not hold any more: the next observations outweigh it. */
void lift_calib_fade(struct lift_calib *c);

/* Samples take @window_ns from now on: converts what is known. */
void lift_calib_rewindow(struct lift_calib *c, uint64_t window_ns);

/* Rates of all states; those never seen are judged by their neighbours. */
void lift_calib_rates(const struct lift_calib *c, struct lift_rates *ret);

/* A page accessed once in all its samples: never enough, but where there is plenty of room. */
bool lift_state_isolated(unsigned state);

/*
 * @capacity: pages that fast nodes can hold for us, those that are there included. @predicted:
 * pages that the window offers. At most @max_promote promotions, the hottest. More pages than
 * capacity: the excess is demoted, whatever it costs.
 */
void lift_threshold_cut(const struct lift_census *census, const struct lift_rates *rates,
	const struct lift_price *price, uint64_t capacity, uint32_t predicted, uint32_t max_promote,
	struct lift_cut *ret);

/* Pages on slow nodes that are hot, and would pay if there were a page to trade with that is not.
 */
uint32_t lift_threshold_wanted(const struct lift_census *census, const struct lift_rates *rates,
	const struct lift_price *price, const struct lift_cut *cut);

/* -ln(1 - p/4096) in 1/1024; p is capped at what can be told from 1. */
uint32_t lift_neg_log(uint32_t p);

/* What the chance @p (of 4096) in a sample of @from_ns is in one of @to_ns. */
uint32_t lift_chance_in(uint32_t p, uint64_t from_ns, uint64_t to_ns);

#endif

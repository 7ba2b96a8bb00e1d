#include "tests/fake/fake_worker.h"

#include <stdlib.h>
#include <string.h>

void fake_worker_init(struct fake_worker *w, struct fake_memsys *m, struct fake_program *p,
	uint32_t gap_ns, uint32_t budget_ppm)
{
	const struct lift_costs costs = {
		.arm_ns = m->costs.arm,
		.release_ns = m->costs.release,
		.scan_ns = m->costs.scan,
		.fault_ns = m->costs.fault,
		.promote_ns = m->costs.move,
		.demote_ns = m->costs.move,
		.gap_ns = gap_ns,
	};
	uint32_t chunks = m->nr_pages / LIFT_CHUNK_PAGES + 2;

	memset(w, 0, sizeof(*w));
	w->m = m;
	w->p = p;
	w->fast_nodes = 1;
	w->fast_limit_pages = UINT64_MAX;
	w->mem_bytes = lift_heat_bytes(chunks, chunks);
	w->mem = calloc(1, w->mem_bytes);
	if (!w->mem)
		abort();
	if (lift_promote_init(
		    &w->promote, w->mem, w->mem_bytes, chunks, chunks, &costs, budget_ppm))
		abort();
	lift_promote_add(&w->promote,
		(struct lift_range){m->base, m->base + (uintptr_t)m->nr_pages * FAKE_PAGE});
	w->woken = m->now_ns;
}

static void no_drop(void *arg, struct lift_range range)
{
	(void)arg;
	(void)range;
}

void fake_worker_sums(struct fake_worker *w)
{
	enum { REGIONS = 4096, PER_PAGE_NS = 300 };
	struct lift_range all = {w->m->base, w->m->base + (uintptr_t)w->m->nr_pages * FAKE_PAGE};

	w->sums = calloc(1, sizeof(*w->sums));
	w->regions = calloc(REGIONS, sizeof(*w->regions));
	if (!w->sums || !w->regions)
		abort();
	lift_split_init(w->sums, w->regions, REGIONS);
	lift_split_set_begin(w->sums, lift_range_bytes(all), REGIONS);
	lift_split_set_run(w->sums, all, no_drop, NULL);
	lift_split_set_end(w->sums, REGIONS, no_drop, NULL);
	w->promote.hold = LIFT_HOLD_SAMPLES;
	w->promote.grain = LIFT_CHUNK_PAGES;
	w->promote.schedule.costs.whole_ns = PER_PAGE_NS;
}

void fake_worker_fini(struct fake_worker *w)
{
	free(w->sums);
	free(w->regions);
	free(w->mem);
	w->mem = NULL;
}

static void read_machine(struct fake_worker *w, struct lift_promote_now *now)
{
	const struct fake_memsys *m = w->m;

	memset(now, 0, sizeof(*now));
	now->now_ns = m->sys.now(m->sys.ctx);
	if (lift_promote_asks_cpu(&w->promote))
		w->cpu_ns = m->cpu_ns;
	now->cpu_ns = w->cpu_ns;
	now->fast_limit_pages = w->fast_limit_pages;
	now->nodes_ns = w->steps + 1; /* anew in each step */
	now->nr_nodes = m->nr_nodes;
	for (unsigned i = 0; i < m->nr_nodes; i++) {
		uint64_t free_bytes = 0;
		uint64_t total = 0;
		int rc = m->sys.free_memory(m->sys.ctx, m->node[i].id, &free_bytes, &total);

		now->rss_bytes += m->node[i].used * FAKE_PAGE;
		now->node[i] = (struct lift_promote_node){
			.node = m->node[i].id,
			.fast = w->fast_nodes >> i & 1,
			.usable = rc == 0,
			.free_pages = free_bytes / FAKE_PAGE,
			.headroom_pages = w->headroom_pages,
		};
	}
	if (w->rss_bytes)
		now->rss_bytes = w->rss_bytes;
}

static void locate(struct fake_worker *w, struct lift_range r)
{
	for (uintptr_t a = r.start; a < r.end; a += FAKE_PAGE) {
		int node;

		if (a >= w->m->base && a - w->m->base < (uintptr_t)w->m->nr_pages * FAKE_PAGE &&
			w->m->sys.where(w->m->sys.ctx, &a, 1, &node) == 0)
			lift_promote_located(&w->promote, a, node);
	}
}

static void sampled(void *arg, struct lift_range r, bool accessed)
{
	struct fake_worker *w = arg;

	if (accessed || !w->promote.writes_only)
		lift_promote_sampled(&w->promote, r, accessed);
}

/* All regions, whatever was asked for. */
static void arm_sums(struct fake_worker *w)
{
	if (w->is_armed)
		return;
	w->is_armed = true;
	fake_sampler_arm(w->m, (struct lift_range){w->m->base,
				       w->m->base + (uintptr_t)w->m->nr_pages * FAKE_PAGE});
}

static void collect_sums(struct fake_worker *w)
{
	if (!w->is_armed)
		return;
	w->is_armed = false;
	for (size_t i = 0; i < w->sums->nr; i++) {
		struct lift_range r = {w->sums->region[i].start, w->sums->region[i].end};
		uint64_t accessed = 0;
		uint64_t resident = fake_sampler_sum(w->m, r, &accessed);

		if (resident)
			lift_promote_summed(&w->promote, r, accessed, resident);
		lift_split_sampled(w->sums, i, accessed, resident);
		w->sums->region[i].flags |= LIFT_SPLIT_DONE;
	}
	lift_split_step(w->sums, w->sums->max, 256);
}

struct answer {
	struct fake_worker *w;
	uint32_t faults[LIFT_SLOTS];
	uint32_t used;
};

static void count_fault(void *arg, struct lift_range r, bool accessed)
{
	struct answer *a = arg;

	for (; accessed && !lift_range_empty(r); r.start += FAKE_PAGE) {
		a->faults[a->w->user(a->w, (uint32_t)((r.start - a->w->m->base) / FAKE_PAGE))]++;
		a->used++;
	}
}

/* Its cost is time in which the program runs on, and so is the time for faults to come in. */
static void ask(struct fake_worker *w)
{
	struct answer a = {.w = w};

	w->questions++;
	for (unsigned i = 0; i < w->work.nr; i++)
		fake_sampler_arm(w->m, w->work.range[i]);
	fake_run(w->m, w->p, w->work.sleep_ns);
	for (unsigned i = 0; i < w->work.nr; i++) {
		fake_sampler_collect(w->m, w->work.range[i], count_fault, &a);
		fake_sampler_release(w->m, w->work.range[i]);
	}
	lift_promote_users(&w->promote, a.faults, a.used, a.used);
}

/* One step. Its cost is time in which the program runs on. Returns how long to sleep. */
static uint64_t step(struct fake_worker *w)
{
	uint64_t cost = w->m->cost_ns;
	struct lift_promote_now now;
	enum lift_step what;
	int status[LIFT_BATCH_PAGES];
	uint64_t sleep = 0;
	int rc;

	read_machine(w, &now);
	w->steps++;
	w->promote.ask_users = w->user != NULL;
	what = lift_promote_step(&w->promote, &now, &w->work);
	switch (what) {
	case LIFT_STEP_SLEEP:
		if (w->sums && lift_promote_sampling(&w->promote))
			arm_sums(w);
		sleep = w->work.sleep_ns;
		w->sample_cpu = w->m->cpu_ns + w->work.cpu_ns - w->work.cpu_ns / 8;
		w->sample_until = w->m->now_ns + 3 * LIFT_NS_PER_S;
		break;
	case LIFT_STEP_ASK:
		ask(w);
		break;
	case LIFT_STEP_MOVE:
		rc = w->m->sys.move(w->m->sys.ctx, w->work.batch->page, w->work.batch->nr,
			w->work.node, status);
		lift_promote_moved(&w->promote, rc, status);
		break;
	default:
		if (w->sums && what != LIFT_STEP_WHERE) {
			if (what == LIFT_STEP_COLLECT)
				collect_sums(w);
			break;
		}
		for (unsigned i = 0; i < w->work.nr; i++) {
			if (what == LIFT_STEP_WHERE)
				locate(w, w->work.range[i]);
			else if (what == LIFT_STEP_ARM)
				fake_sampler_arm(w->m, w->work.range[i]);
			else if (what == LIFT_STEP_COLLECT)
				fake_sampler_collect(w->m, w->work.range[i], sampled, w);
			else
				fake_sampler_release(w->m, w->work.range[i]);
		}
		break;
	}
	fake_run(w->m, w->p, w->m->cost_ns - cost);
	return sleep;
}

/* As the worker does it: a sample lasts until the program has been active for so long. */
static bool sample_goes_on(struct fake_worker *w)
{
	if (!lift_promote_sampling(&w->promote) || w->m->cpu_ns >= w->sample_cpu ||
		w->m->now_ns >= w->sample_until)
		return false;
	w->woken = w->m->now_ns + 5000000;
	return true;
}

static void run(struct fake_worker *w, uint64_t end, uint64_t pass)
{
	while (w->m->now_ns < end && w->promote.stats.passes < pass) {
		uint64_t until;

		if (w->m->now_ns >= w->woken && !sample_goes_on(w))
			w->woken = w->m->now_ns + step(w);
		until = w->woken < end ? w->woken : end;
		if (until > w->m->now_ns)
			fake_run(w->m, w->p, until - w->m->now_ns);
	}
}

void fake_worker_run(struct fake_worker *w, uint64_t ns)
{
	run(w, w->m->now_ns + ns, UINT64_MAX);
}

void fake_worker_passes(struct fake_worker *w, unsigned passes, uint64_t max_ns)
{
	run(w, w->m->now_ns + max_ns, w->promote.stats.passes + passes);
}

#include "tests/fake/fake_memsys.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct fake_page *page_at(struct fake_memsys *m, uintptr_t addr)
{
	uintptr_t i = (addr - m->base) / FAKE_PAGE;

	return addr >= m->base && i < m->nr_pages ? &m->page[i] : NULL;
}

static int node_index(const struct fake_memsys *m, int id)
{
	for (unsigned i = 0; i < m->nr_nodes; i++)
		if (m->node[i].id == id && !m->node[i].gone)
			return (int)i;
	return -1;
}

static int do_place(void *ctx, struct lift_range range, int mode, const struct lift_nodeset *nodes)
{
	struct fake_memsys *m = ctx;

	(void)mode;
	(void)nodes;
	if (!page_at(m, range.start))
		return -EFAULT;
	m->places++;
	return 0;
}

static int move_page(struct fake_memsys *m, struct fake_page *p, unsigned to)
{
	if (!p)
		return -EFAULT;
	if (p->node == FAKE_ABSENT)
		return -ENOENT;
	if (p->errors) {
		if (p->errors != UINT16_MAX)
			p->errors--;
		return p->error;
	}
	if ((unsigned)p->node == to)
		return m->node[to].id;
	if (m->node[to].used >= m->node[to].pages)
		return -ENOMEM;
	m->node[p->node].used--;
	m->node[to].used++;
	p->node = (int8_t)to;
	m->moves++;
	return m->node[to].id;
}

static int do_move(void *ctx, const uintptr_t *pages, size_t nr, int node, int *ret_status)
{
	struct fake_memsys *m = ctx;
	int to = node_index(m, node);
	size_t end = nr;
	int rc = 0;

	m->move_calls++;
	if (to < 0) {
		rc = -ENODEV;
		end = 0;
	} else if (m->fail_move && --m->fail_move == 0) {
		rc = m->fail_rc;
		end = nr / 2;
	}
	for (size_t i = 0; i < nr; i++)
		ret_status[i] =
			i < end ? move_page(m, page_at(m, pages[i]), (unsigned)to) : -EAGAIN;
	m->cost_ns += end * m->costs.move;
	if (to >= 0)
		m->node[to].used += m->others_take;
	return rc;
}

static int do_where(void *ctx, const uintptr_t *pages, size_t nr, int *ret_status)
{
	struct fake_memsys *m = ctx;

	for (size_t i = 0; i < nr; i++) {
		const struct fake_page *p = page_at(m, pages[i]);

		ret_status[i] = !p                       ? -EFAULT
				: p->node == FAKE_ABSENT ? -ENOENT
							 : m->node[p->node].id;
	}
	return 0;
}

static int do_free(void *ctx, int node, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes)
{
	const struct fake_memsys *m = ctx;
	int i = node_index(m, node);

	if (i < 0)
		return -ENODEV;
	*ret_free_bytes = m->node[i].pages > m->node[i].used
				  ? (m->node[i].pages - m->node[i].used) * FAKE_PAGE
				  : 0;
	*ret_total_bytes = m->node[i].pages * FAKE_PAGE;
	return 0;
}

static uint64_t do_now(void *ctx)
{
	const struct fake_memsys *m = ctx;

	return m->now_ns;
}

void fake_memsys_init(struct fake_memsys *m, uintptr_t base, uint32_t nr_pages)
{
	memset(m, 0, sizeof(*m));
	m->sys = (struct lift_memsys){
		.ctx = m,
		.place = do_place,
		.move = do_move,
		.where = do_where,
		.free_memory = do_free,
		.now = do_now,
	};
	m->base = base;
	m->nr_pages = nr_pages;
	m->page = calloc(nr_pages, sizeof(*m->page));
	if (!m->page)
		abort();
	for (uint32_t i = 0; i < nr_pages; i++)
		m->page[i].node = FAKE_ABSENT;
	m->now_ns = 1000000000;
}

void fake_memsys_fini(struct fake_memsys *m)
{
	free(m->page);
	m->page = NULL;
}

void fake_memsys_node(struct fake_memsys *m, int id, uint64_t pages, uint32_t latency_ns)
{
	if (m->nr_nodes == FAKE_NODES)
		abort();
	m->node[m->nr_nodes++] =
		(struct fake_node){.id = id, .pages = pages, .latency_ns = latency_ns};
}

void fake_memsys_touch(struct fake_memsys *m, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		if (m->page[i].node != FAKE_ABSENT)
			continue;
		for (unsigned n = 0; n < m->nr_nodes && m->page[i].node == FAKE_ABSENT; n++) {
			if (m->node[n].gone || m->node[n].used >= m->node[n].pages)
				continue;
			m->node[n].used++;
			m->page[i].node = (int8_t)n;
		}
	}
}

void fake_memsys_discard(struct fake_memsys *m, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		if (m->page[i].node != FAKE_ABSENT)
			m->node[m->page[i].node].used--;
		m->page[i] = (struct fake_page){.node = FAKE_ABSENT};
	}
}

void fake_memsys_refuse(struct fake_memsys *m, uint32_t i, int error, uint16_t times)
{
	m->page[i].error = (int16_t)error;
	m->page[i].errors = times;
}

void fake_sampler_arm(struct fake_memsys *m, struct lift_range r)
{
	for (uintptr_t a = r.start; a < r.end; a += FAKE_PAGE) {
		struct fake_page *p = page_at(m, a);

		if (!p || p->node == FAKE_ABSENT)
			continue;
		p->armed = true;
		p->accessed = false;
		m->armed++;
		m->cost_ns += m->costs.arm;
	}
}

void fake_sampler_release(struct fake_memsys *m, struct lift_range r)
{
	for (uintptr_t a = r.start; a < r.end; a += FAKE_PAGE) {
		struct fake_page *p = page_at(m, a);

		if (!p || !p->armed)
			continue;
		p->armed = false;
		m->released++;
		m->cost_ns += m->costs.release;
	}
}

void fake_sampler_collect(struct fake_memsys *m, struct lift_range r, fake_sample_fn *fn, void *arg)
{
	for (uintptr_t a = r.start; a < r.end; a += FAKE_PAGE) {
		const struct fake_page *p = page_at(m, a);

		if (!p || p->node == FAKE_ABSENT)
			continue;
		m->scanned++;
		m->cost_ns += m->costs.scan;
		fn(arg, (struct lift_range){a, a + FAKE_PAGE}, !p->armed);
	}
}

struct sum {
	uint64_t resident;
	uint64_t accessed;
};

static void add_up(void *arg, struct lift_range r, bool accessed)
{
	struct sum *sum = arg;

	sum->resident += lift_range_bytes(r);
	sum->accessed += accessed ? lift_range_bytes(r) : 0;
}

uint64_t fake_sampler_sum(struct fake_memsys *m, struct lift_range r, uint64_t *ret_accessed)
{
	struct sum sum = {0, 0};

	fake_sampler_collect(m, r, add_up, &sum);
	*ret_accessed = sum.accessed;
	return sum.resident;
}

void fake_random_seed(struct fake_random *r, uint64_t seed)
{
	/* Mixed, or else each seed would be the one before, a step later. */
	r->s = seed;
	r->s = fake_random_next(r);
}

/* splitmix64 */
uint64_t fake_random_next(struct fake_random *r)
{
	uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void fake_program_init(
	struct fake_program *p, uint32_t nr_pages, uint32_t run, uint32_t rate, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	fake_random_seed(&p->random, seed);
	p->nr_pages = nr_pages;
	p->run = run;
	p->rate = rate;
	p->dwell = 1;
	p->nr_runs = nr_pages / run;
	p->weight = calloc(p->nr_runs, sizeof(*p->weight));
	p->alias = calloc(p->nr_runs, sizeof(*p->alias));
	p->cut = calloc(p->nr_runs, sizeof(*p->cut));
	if (!p->weight || !p->alias || !p->cut)
		abort();
}

void fake_program_fini(struct fake_program *p)
{
	free(p->weight);
	free(p->alias);
	free(p->cut);
}

/* Walker's method: each run keeps part of its place, an alias has the rest. */
static void build(struct fake_program *p)
{
	uint32_t *small = calloc(p->nr_runs, sizeof(*small));
	uint32_t *large = calloc(p->nr_runs, sizeof(*large));
	double *w = calloc(p->nr_runs, sizeof(*w));
	uint32_t nr_small = 0;
	uint32_t nr_large = 0;
	double sum = 0;

	if (!small || !large || !w)
		abort();
	for (uint32_t i = 0; i < p->nr_runs; i++)
		sum += p->weight[i];
	for (uint32_t i = 0; i < p->nr_runs; i++) {
		p->weight[i] /= sum;
		w[i] = p->weight[i] * p->nr_runs;
		p->alias[i] = i;
		p->cut[i] = UINT32_MAX;
		if (w[i] < 1)
			small[nr_small++] = i;
		else
			large[nr_large++] = i;
	}
	while (nr_small && nr_large) {
		uint32_t s = small[--nr_small];
		uint32_t l = large[nr_large - 1];

		p->cut[s] = (uint32_t)(w[s] * UINT32_MAX);
		p->alias[s] = l;
		w[l] -= 1 - w[s];
		if (w[l] < 1) {
			nr_large--;
			small[nr_small++] = l;
		}
	}
	free(small);
	free(large);
	free(w);
}

void fake_program_uniform(struct fake_program *p)
{
	for (uint32_t i = 0; i < p->nr_runs; i++)
		p->weight[i] = 1;
	build(p);
}

static uint32_t *shuffled(struct fake_program *p)
{
	uint32_t *order = calloc(p->nr_runs, sizeof(*order));

	if (!order)
		abort();
	for (uint32_t i = 0; i < p->nr_runs; i++) {
		uint32_t k = fake_random_below(&p->random, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	return order;
}

void fake_program_zipf(struct fake_program *p, double s)
{
	uint32_t *order = shuffled(p);

	for (uint32_t i = 0; i < p->nr_runs; i++)
		p->weight[order[i]] = pow(i + 1, -s);
	build(p);
	free(order);
}

void fake_program_hot(struct fake_program *p, uint32_t hot_runs, double share, double s)
{
	uint32_t *order = shuffled(p);
	double sum = 0;

	for (uint32_t i = 0; i < hot_runs; i++)
		sum += pow(i + 1, -s);
	for (uint32_t i = 0; i < p->nr_runs; i++) {
		p->weight[order[i]] = (1 - share) / p->nr_runs;
		if (i < hot_runs)
			p->weight[order[i]] += share * pow(i + 1, -s) / sum;
	}
	build(p);
	free(order);
}

static uint32_t choose(struct fake_program *p)
{
	uint64_t x;
	uint32_t i;
	uint32_t page;

	if (p->left) {
		p->left--;
		return p->at++;
	}
	x = fake_random_next(&p->random);
	i = (uint32_t)((x >> 32) * p->nr_runs >> 32);
	if ((uint32_t)x > p->cut[i])
		i = p->alias[i];
	page = p->run > 1 ? fake_random_below(&p->random, p->run) : 0;
	if (p->walk) {
		uint32_t first = page - page % (p->walk < p->run ? p->walk : p->run);
		uint32_t left = p->run - first;

		p->at = i * p->run + first + 1;
		p->left = (p->walk < left ? p->walk : left) - 1;
		return i * p->run + first;
	}
	return i * p->run + page;
}

uint32_t fake_program_next(struct fake_program *p)
{
	if (p->again) {
		p->again--;
		return p->page;
	}
	p->page = choose(p);
	p->again = p->dwell - 1;
	return p->page;
}

static int by_weight(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

double fake_program_best(const struct fake_program *p, uint32_t pages)
{
	double *w = calloc(p->nr_runs, sizeof(*w));
	double sum = 0;

	if (!w)
		abort();
	memcpy(w, p->weight, p->nr_runs * sizeof(*w));
	qsort(w, p->nr_runs, sizeof(*w), by_weight);
	for (uint32_t i = 0; i < p->nr_runs && pages > 0; i++) {
		uint32_t nr = pages < p->run ? pages : p->run;

		sum += w[i] * nr / p->run;
		pages -= nr;
	}
	free(w);
	return sum;
}

static void run_busy(struct fake_memsys *m, struct fake_program *p, uint64_t ns)
{
	uint64_t nr;

	p->credit += (double)ns * p->rate / 1e9;
	nr = (uint64_t)p->credit;
	p->credit -= (double)nr;
	for (uint64_t i = 0; i < nr; i++)
		fake_memsys_access(m, fake_program_next(p));
	m->now_ns += ns;
	m->cpu_ns += nr * m->costs.own;
}

static void idle(struct fake_memsys *m, const struct fake_program *p, uint64_t ns)
{
	m->now_ns += ns;
	if (p->computes)
		m->cpu_ns += ns;
}

void fake_run(struct fake_memsys *m, struct fake_program *p, uint64_t ns)
{
	while (p->busy_ns && ns > 0) {
		uint64_t at = m->now_ns % p->period_ns;
		bool busy = at < p->busy_ns;
		uint64_t left = (busy ? p->busy_ns : p->period_ns) - at;
		uint64_t part = left < ns ? left : ns;

		if (busy)
			run_busy(m, p, part);
		else
			idle(m, p, part);
		ns -= part;
	}
	if (ns > 0)
		run_busy(m, p, ns);
}

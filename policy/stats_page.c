#include "policy/stats_page.h"

#include <errno.h>
#include <string.h>

#include "policy/scan.h"

/* From a figure's name to the next. */
#define NAME_BYTES 32

static const char magic[8] = {'l', 'i', 'f', 't', 's', 't', 'a', 't'};

/* Up to and with `program` it stays as it is in every version. */
struct head {
	char magic[8];
	uint32_t version;
	uint32_t head_bytes; /* how far the head goes */
	uint32_t total_bytes;
	uint32_t pid;
	uint64_t start_time;
	uint64_t pid_ns;
	uint32_t uid;
	uint32_t pad;
	char program[LIFT_STATS_PROGRAM];

	uint32_t nr_figures;
	uint32_t values_at;
	uint32_t names_at;
	uint32_t name_bytes;
	uint32_t nr_nodes_at;
	uint32_t nodes_at;
	uint32_t node_bytes;
	uint32_t max_nodes;
	uint32_t sampler_at;
	uint32_t sampler_bytes;
	uint32_t reason_at;
	uint32_t reason_bytes;
	uint64_t sequence;
	uint64_t checksum; /* of all but the sequence and itself */
};

struct node {
	int32_t node;
	uint8_t fast;
	uint8_t usable;
	uint16_t pad;
	uint64_t pages_here;
	uint64_t free_bytes;
};

enum {
	OWNER_BYTES = offsetof(struct head, nr_figures),
	SEQUENCE_AT = offsetof(struct head, sequence),
	VALUES_AT = sizeof(struct head),
	NR_NODES_AT = VALUES_AT + LIFT_STATS_NR * 8,
	NODES_AT = NR_NODES_AT + 8,
	SAMPLER_AT = NODES_AT + LIFT_SLOTS * (int)sizeof(struct node),
	REASON_AT = SAMPLER_AT + LIFT_STATS_SAMPLER,
	NAMES_AT = REASON_AT + LIFT_STATS_REASON,
	END_AT = NAMES_AT + LIFT_STATS_NR * NAME_BYTES
};

_Static_assert(END_AT <= LIFT_STATS_PAGE_BYTES, "a page has room for all figures");
_Static_assert(OWNER_BYTES == 112 && sizeof(struct head) == 176, "the head has no holes");
_Static_assert(sizeof(struct node) == 24, "a node has no holes");

#define CHECK_NAME(name, kind, unit, section, meaning)                                             \
	_Static_assert(sizeof(#name) <= NAME_BYTES, "a name fits");
LIFT_STATS_FIGURES(CHECK_NAME)

static size_t text_length(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

/* Copies what fits and pads with zeros; always terminated. */
static void put_text(char *to, size_t size, const char *from, size_t max)
{
	size_t n = text_length(from, max);

	if (n > size - 1)
		n = size - 1;
	memcpy(to, from, n);
	memset(to + n, 0, size - n);
}

/* FNV-1a by words: it is to find damage, not to resist anybody. @n is a multiple of 8. */
static uint64_t mix(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t word;

		memcpy(&word, p + i, 8);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	return sum;
}

static uint64_t checksum(const uint8_t *page, size_t n)
{
	uint64_t sum = mix(UINT64_C(0xcbf29ce484222325), page, SEQUENCE_AT);

	return mix(sum, page + VALUES_AT, n - VALUES_AT);
}

void lift_stats_page_init(uint8_t page[LIFT_STATS_PAGE_BYTES], const struct lift_stats_owner *owner)
{
	static const struct lift_stats nothing;
	struct head h = {
		.version = LIFT_STATS_VERSION,
		.head_bytes = sizeof(h),
		.total_bytes = LIFT_STATS_PAGE_BYTES,
		.pid = owner->pid,
		.start_time = owner->start_time,
		.pid_ns = owner->pid_ns,
		.uid = owner->uid,
		.nr_figures = LIFT_STATS_NR,
		.values_at = VALUES_AT,
		.names_at = NAMES_AT,
		.name_bytes = NAME_BYTES,
		.nr_nodes_at = NR_NODES_AT,
		.nodes_at = NODES_AT,
		.node_bytes = sizeof(struct node),
		.max_nodes = LIFT_SLOTS,
		.sampler_at = SAMPLER_AT,
		.sampler_bytes = LIFT_STATS_SAMPLER,
		.reason_at = REASON_AT,
		.reason_bytes = LIFT_STATS_REASON,
	};

	memcpy(h.magic, magic, sizeof(magic));
	put_text(h.program, sizeof(h.program), owner->program, sizeof(owner->program));
	memset(page, 0, LIFT_STATS_PAGE_BYTES);
	memcpy(page, &h, sizeof(h));
	for (unsigned i = 0; i < LIFT_STATS_NR; i++)
		put_text((char *)page + NAMES_AT + i * NAME_BYTES, NAME_BYTES,
			lift_stats_table[i].name, NAME_BYTES);
	lift_stats_page_fill(page, &nothing);
}

void lift_stats_page_fill(uint8_t page[LIFT_STATS_PAGE_BYTES], const struct lift_stats *s)
{
	uint64_t nr = s->nr_nodes < LIFT_SLOTS ? s->nr_nodes : LIFT_SLOTS;
	uint64_t sum;

	for (unsigned i = 0; i < LIFT_STATS_NR; i++) {
		uint64_t value = lift_stats_get(s, (enum lift_stats_figure)i);

		memcpy(page + VALUES_AT + i * 8, &value, 8);
	}
	memcpy(page + NR_NODES_AT, &nr, 8);
	for (unsigned i = 0; i < LIFT_SLOTS; i++) {
		struct node n = {0};

		if (i < nr) {
			n.node = s->node[i].node;
			n.fast = s->node[i].fast;
			n.usable = s->node[i].usable;
			n.pages_here = s->node[i].pages_here;
			n.free_bytes = s->node[i].free_bytes;
		}
		memcpy(page + NODES_AT + i * sizeof(n), &n, sizeof(n));
	}
	put_text((char *)page + SAMPLER_AT, LIFT_STATS_SAMPLER, s->sampler, sizeof(s->sampler));
	put_text((char *)page + REASON_AT, LIFT_STATS_REASON, s->reason, sizeof(s->reason));
	sum = checksum(page, LIFT_STATS_PAGE_BYTES);
	memcpy(page + offsetof(struct head, checksum), &sum, 8);
}

size_t lift_stats_page_sequence_at(void)
{
	return SEQUENCE_AT;
}

void lift_stats_page_set_sequence(uint8_t page[LIFT_STATS_PAGE_BYTES], uint64_t sequence)
{
	memcpy(page + SEQUENCE_AT, &sequence, 8);
}

/* --- reading ------------------------------------------------------------------------------------
 */

static bool inside(const struct head *h, uint32_t at, uint64_t each, uint64_t nr)
{
	/* No product of what fits 32 bits overflows 64. */
	return at >= h->head_bytes && at <= h->total_bytes && each * nr <= h->total_bytes - at;
}

static bool laid_out(const struct head *h)
{
	return h->head_bytes >= sizeof(*h) && h->head_bytes % 8 == 0 && h->total_bytes % 8 == 0 &&
	       h->head_bytes <= h->total_bytes && h->name_bytes > 0 &&
	       h->node_bytes >= sizeof(struct node) && h->max_nodes <= LIFT_SLOTS &&
	       inside(h, h->values_at, 8, h->nr_figures) &&
	       inside(h, h->names_at, h->name_bytes, h->nr_figures) &&
	       inside(h, h->nr_nodes_at, 8, 1) &&
	       inside(h, h->nodes_at, h->node_bytes, h->max_nodes) &&
	       inside(h, h->sampler_at, h->sampler_bytes, 1) &&
	       inside(h, h->reason_at, h->reason_bytes, 1);
}

/* The same name is nearly always at the same place; looking there first makes it linear. */
static int figure_named(const char *name, size_t len, unsigned guess)
{
	for (unsigned k = 0; k < LIFT_STATS_NR; k++) {
		unsigned i = (guess + k) % LIFT_STATS_NR;

		if (strlen(lift_stats_table[i].name) == len &&
			memcmp(lift_stats_table[i].name, name, len) == 0)
			return (int)i;
	}
	return -1;
}

static void read_figures(const uint8_t *page, const struct head *h, struct lift_stats_view *ret)
{
	for (uint32_t i = 0; i < h->nr_figures; i++) {
		const char *name = (const char *)page + h->names_at + (size_t)i * h->name_bytes;
		int figure = figure_named(name, text_length(name, h->name_bytes), i);

		if (figure < 0)
			continue;
		ret->has[figure] = true;
		memcpy((char *)&ret->stats + lift_stats_table[figure].at,
			page + h->values_at + (size_t)i * 8, 8);
	}
}

static bool read_nodes(const uint8_t *page, const struct head *h, struct lift_stats *ret)
{
	uint64_t nr;

	memcpy(&nr, page + h->nr_nodes_at, 8);
	if (nr > h->max_nodes)
		return false;
	ret->nr_nodes = (unsigned)nr;
	for (uint64_t i = 0; i < nr; i++) {
		struct node n;

		memcpy(&n, page + h->nodes_at + i * h->node_bytes, sizeof(n));
		ret->node[i] = (struct lift_stats_node){
			.node = n.node,
			.fast = n.fast != 0,
			.usable = n.usable != 0,
			.pages_here = n.pages_here,
			.free_bytes = n.free_bytes,
		};
	}
	return true;
}

enum lift_page_error lift_stats_page_owner(
	const uint8_t *page, size_t n, struct lift_stats_owner *ret)
{
	static const char zeros[sizeof(magic)];
	struct head h = {0};

	if (n == 0 || (n >= sizeof(magic) && memcmp(page, zeros, sizeof(magic)) == 0))
		return LIFT_PAGE_EMPTY;
	if (memcmp(page, magic, n < sizeof(magic) ? n : sizeof(magic)) != 0)
		return LIFT_PAGE_FOREIGN;
	if (n < OWNER_BYTES)
		return LIFT_PAGE_SIZE;
	memcpy(&h, page, OWNER_BYTES);
	*ret = (struct lift_stats_owner){
		.pid = h.pid,
		.uid = h.uid,
		.start_time = h.start_time,
		.pid_ns = h.pid_ns,
	};
	put_text(ret->program, sizeof(ret->program), h.program, sizeof(h.program));
	return LIFT_PAGE_OK;
}

enum lift_page_error lift_stats_page_read(
	const uint8_t *page, size_t n, struct lift_stats_view *ret)
{
	enum lift_page_error err;
	struct head h;

	memset(ret, 0, sizeof(*ret));
	err = lift_stats_page_owner(page, n, &ret->owner);
	if (err)
		return err;
	memset(&h, 0, sizeof(h));
	memcpy(&h, page, OWNER_BYTES);
	ret->version = h.version;
	ret->total_bytes = h.total_bytes;
	if (h.version != LIFT_STATS_VERSION)
		return LIFT_PAGE_VERSION;
	if (n != h.total_bytes || n < sizeof(h))
		return LIFT_PAGE_SIZE;
	memcpy(&h, page, sizeof(h));
	ret->sequence = h.sequence;
	if (h.sequence % 2)
		return LIFT_PAGE_BUSY;
	if (!laid_out(&h))
		return LIFT_PAGE_LAYOUT;
	if (checksum(page, n) != h.checksum)
		return LIFT_PAGE_CHECKSUM;
	read_figures(page, &h, ret);
	if (!read_nodes(page, &h, &ret->stats))
		return LIFT_PAGE_LAYOUT;
	put_text(ret->stats.sampler, sizeof(ret->stats.sampler), (const char *)page + h.sampler_at,
		h.sampler_bytes);
	put_text(ret->stats.reason, sizeof(ret->stats.reason), (const char *)page + h.reason_at,
		h.reason_bytes);
	return LIFT_PAGE_OK;
}

int lift_stats_start_time(const char *buf, size_t n, char *ret_state, uint64_t *ret_start)
{
	struct lift_scan s = lift_scan_of(buf, n);
	uint64_t v = 0;
	char state;

	/* "PID (NAME) STATE ...": behind the last parenthesis everything is a field. */
	for (const char *p = buf; p < buf + n; p++)
		if (*p == ')')
			s.p = p + 1;
	if (s.p == buf || !lift_scan_blanks(&s) || lift_scan_done(&s))
		return -EINVAL;
	state = *s.p++;
	for (int field = 4; field <= 22; field++) {
		if (!lift_scan_blanks(&s))
			return -EINVAL;
		(void)lift_scan_byte(&s, '-');
		if (lift_scan_number(&s, 10, UINT64_MAX, &v) < 0)
			return -EINVAL;
	}
	*ret_state = state;
	*ret_start = v;
	return 0;
}

#include "policy/procparse.h"

#include <errno.h>

#include "policy/scan.h"

bool lift_text_is(struct lift_text t, const char *word)
{
	return strlen(word) == t.len && memcmp(t.s, word, t.len) == 0;
}

bool lift_parse_line(struct lift_text *rest, struct lift_text *ret_line)
{
	const char *newline;

	if (rest->len == 0)
		return false;
	newline = lift_scan_find(rest->s, rest->len, '\n');
	ret_line->s = rest->s;
	ret_line->len = newline ? (size_t)(newline - rest->s) : rest->len;
	rest->s += ret_line->len + (newline != NULL);
	rest->len -= ret_line->len + (newline != NULL);
	return true;
}

int lift_parse_u64(const char *buf, size_t len, uint64_t *ret)
{
	struct lift_scan s = lift_scan_of(buf, len);
	uint64_t v;
	int rc;

	lift_scan_trim(&s);
	rc = lift_scan_number(&s, 10, UINT64_MAX, &v);
	if (rc < 0)
		return rc;
	if (!lift_scan_done(&s))
		return -EINVAL;
	*ret = v;
	return 0;
}

int lift_parse_nodelist(const char *buf, size_t len, struct lift_nodeset *ret)
{
	struct lift_scan s = lift_scan_of(buf, len);
	struct lift_nodeset set;
	int rc;

	lift_scan_trim(&s);
	if (lift_scan_done(&s)) {
		lift_nodeset_zero(ret);
		return 0;
	}
	rc = lift_scan_nodes(&s, &set);
	if (rc < 0)
		return rc;
	if (!lift_scan_done(&s))
		return -EINVAL;
	*ret = set;
	return 0;
}

int lift_parse_nodemask(const char *buf, size_t len, struct lift_nodeset *ret)
{
	struct lift_scan s = lift_scan_of(buf, len);
	struct lift_nodeset set;
	unsigned bit = 0;

	lift_scan_trim(&s);
	if (lift_scan_done(&s))
		return -EINVAL;
	/* From the end, where bit 0 is: the number of groups need not be known. */
	lift_nodeset_zero(&set);
	for (;;) {
		uint64_t group = 0;
		unsigned digits = 0;

		for (; !lift_scan_done(&s) && s.end[-1] != ','; s.end--, digits++) {
			unsigned d = lift_scan_digit(s.end[-1]);

			if (d > 15 || digits == 8)
				return -EINVAL;
			group |= (uint64_t)d << (4 * digits);
		}
		if (digits == 0)
			return -EINVAL;
		if (bit < LIFT_MAX_NODES)
			set.bits[bit / 64] |= group << (bit % 64);
		else if (group)
			return -ERANGE;
		if (lift_scan_done(&s))
			break;
		s.end--;
		if (bit < LIFT_MAX_NODES)
			bit += 32;
	}
	*ret = set;
	return 0;
}

/* "  123 kB" to the end of the line. */
static int scan_kib(struct lift_scan *s, uint64_t *ret_bytes)
{
	uint64_t kib;
	int rc;

	lift_scan_blanks(s);
	rc = lift_scan_number(s, 10, UINT64_MAX / 1024, &kib);
	if (rc < 0)
		return rc;
	lift_scan_blanks(s);
	if (!lift_scan_text(s, "kB"))
		return -EINVAL;
	lift_scan_blanks(s);
	if (!lift_scan_done(s))
		return -EINVAL;
	*ret_bytes = kib * 1024;
	return 0;
}

int lift_parse_node_meminfo(const char *buf, size_t len, struct lift_node_meminfo *ret)
{
	struct lift_text rest = {.s = buf, .len = len};
	struct lift_node_meminfo info = {0};
	struct lift_text line;
	bool has_total = false;
	bool has_free = false;

	while (lift_parse_line(&rest, &line)) {
		struct lift_scan s = lift_scan_of(line.s, line.len);
		uint64_t node;
		int rc = 0;

		if (!lift_scan_text(&s, "Node ") ||
			lift_scan_number(&s, 10, LIFT_MAX_NODES - 1, &node) < 0 ||
			!lift_scan_blanks(&s))
			continue;
		if (lift_scan_text(&s, "MemTotal:")) {
			rc = scan_kib(&s, &info.total_bytes);
			has_total = true;
		} else if (lift_scan_text(&s, "MemFree:")) {
			rc = scan_kib(&s, &info.free_bytes);
			has_free = true;
		}
		if (rc < 0)
			return rc;
	}
	if (!has_total || !has_free)
		return -EINVAL;
	*ret = info;
	return 0;
}

int lift_parse_distances(const char *buf, size_t len, uint8_t *ret, unsigned max, unsigned *ret_nr)
{
	/* Twice over the input: once to see that all is well, once to write. */
	for (unsigned pass = 0; pass < 2; pass++) {
		struct lift_scan s = lift_scan_of(buf, len);
		unsigned nr = 0;

		lift_scan_trim(&s);
		do {
			uint64_t v;
			int rc = lift_scan_number(&s, 10, UINT8_MAX, &v);

			if (rc < 0)
				return rc;
			if (nr == max)
				return -ERANGE;
			if (pass == 1)
				ret[nr] = (uint8_t)v;
			nr++;
		} while (lift_scan_blanks(&s));
		if (!lift_scan_done(&s))
			return -EINVAL;
		*ret_nr = nr;
	}
	return 0;
}

static bool parse_unsigned(struct lift_scan s, unsigned *ret)
{
	uint64_t v;

	lift_scan_trim(&s);
	if (lift_scan_number(&s, 10, UINT_MAX, &v) < 0 || !lift_scan_done(&s))
		return false;
	*ret = (unsigned)v;
	return true;
}

void lift_parse_status(const char *buf, size_t len, struct lift_proc_status *ret)
{
	struct lift_text rest = {.s = buf, .len = len};
	struct lift_text line;
	bool has_list = false;

	memset(ret, 0, sizeof(*ret));
	while (lift_parse_line(&rest, &line)) {
		struct lift_scan s = lift_scan_of(line.s, line.len);

		if (lift_scan_text(&s, "Mems_allowed_list:")) {
			/* Empty is a list, but no process is allowed nothing. */
			has_list = lift_parse_nodelist(
					   s.p, lift_scan_left(&s), &ret->mems_allowed) == 0 &&
				   !lift_nodeset_empty(&ret->mems_allowed);
			ret->has_mems_allowed = ret->has_mems_allowed || has_list;
		} else if (lift_scan_text(&s, "Mems_allowed:")) {
			if (!has_list && lift_parse_nodemask(
						 s.p, lift_scan_left(&s), &ret->mems_allowed) == 0)
				ret->has_mems_allowed = true;
		} else if (lift_scan_text(&s, "Seccomp:")) {
			ret->has_seccomp = parse_unsigned(s, &ret->seccomp);
		} else if (lift_scan_text(&s, "Threads:")) {
			ret->has_threads = parse_unsigned(s, &ret->threads);
		} else if (lift_scan_text(&s, "VmRSS:")) {
			ret->has_rss = scan_kib(&s, &ret->rss_bytes) == 0;
		}
	}
}

int lift_parse_statm(
	const char *buf, size_t len, uint64_t *ret_resident_pages, uint64_t *ret_data_pages)
{
	enum { RESIDENT = 1, DATA = 5, NUMBERS };
	struct lift_scan s = lift_scan_of(buf, len);
	uint64_t number[NUMBERS];
	int last = ret_data_pages ? DATA : RESIDENT;

	for (int i = 0; i <= last; i++) {
		int rc;

		if (i > 0 && !lift_scan_blanks(&s))
			return -EINVAL;
		rc = lift_scan_number(&s, 10, UINT64_MAX, &number[i]);
		if (rc < 0)
			return rc;
	}
	if (!lift_scan_done(&s) && !lift_scan_is_blank(*s.p))
		return -EINVAL;
	*ret_resident_pages = number[RESIDENT];
	if (ret_data_pages)
		*ret_data_pages = number[DATA];
	return 0;
}

int lift_parse_task_stat(const char *buf, size_t len, struct lift_task_stat *ret)
{
	/* As proc(5) counts them, from 1. */
	enum { STATE = 3, FAULTS = 10, UTIME = 14, STIME = 15, THREADS = 20, PROCESSOR = 39 };
	struct lift_scan s = lift_scan_of(buf, len);
	uint64_t faults = 0;
	uint64_t utime = 0;
	uint64_t stime = 0;
	uint64_t threads = 0;
	uint64_t cpu = 0;
	char state = '?';

	/* Numbers follow the name, so it ends with the last parenthesis there is. */
	while (s.end > s.p && s.end[-1] != ')')
		s.end--;
	s = (struct lift_scan){.p = s.end, .end = buf + len};
	if (s.p == buf)
		return -EINVAL;
	for (unsigned field = STATE; field <= PROCESSOR; field++) {
		int rc = 0;

		if (!lift_scan_blanks(&s) || lift_scan_done(&s))
			return -EINVAL;
		if (field == STATE)
			state = *s.p;
		if (field == FAULTS)
			rc = lift_scan_number(&s, 10, UINT64_MAX, &faults);
		else if (field == UTIME)
			rc = lift_scan_number(&s, 10, UINT64_MAX / 2, &utime);
		else if (field == STIME)
			rc = lift_scan_number(&s, 10, UINT64_MAX / 2, &stime);
		else if (field == THREADS)
			rc = lift_scan_number(&s, 10, UINT_MAX, &threads);
		else if (field == PROCESSOR)
			rc = lift_scan_number(&s, 10, UINT_MAX, &cpu);
		else
			while (!lift_scan_done(&s) && !lift_scan_is_blank(*s.p))
				s.p++;
		if (rc < 0)
			return rc;
	}
	if (!lift_scan_done(&s) && !lift_scan_is_blank(*s.p))
		return -EINVAL;
	ret->state = state;
	ret->threads = (unsigned)threads;
	ret->cpu_ticks = utime + stime;
	ret->faults = faults;
	ret->cpu = (unsigned)cpu;
	return 0;
}

int lift_parse_cpulist(const char *buf, size_t len, uint64_t *bits, unsigned nr_bits)
{
	/* Twice over the input: once to see that all is well, once to write. */
	for (unsigned pass = 0; pass < 2; pass++) {
		struct lift_scan s = lift_scan_of(buf, len);

		lift_scan_trim(&s);
		if (lift_scan_done(&s))
			return 0;
		do {
			uint64_t from;
			uint64_t to;
			int rc = lift_scan_number(&s, 10, UINT_MAX, &from);

			to = from;
			if (rc == 0 && lift_scan_byte(&s, '-'))
				rc = lift_scan_number(&s, 10, UINT_MAX, &to);
			if (rc < 0)
				return rc;
			if (to < from)
				return -EINVAL;
			for (uint64_t i = from; pass == 1 && i <= to && i < nr_bits; i++)
				bits[i / 64] |= UINT64_C(1) << (i % 64);
		} while (lift_scan_byte(&s, ','));
		if (!lift_scan_done(&s))
			return -EINVAL;
	}
	return 0;
}

static bool scan_perm(struct lift_scan *s, char yes, unsigned bit, unsigned *perms)
{
	if (lift_scan_byte(s, yes)) {
		*perms |= bit;
		return true;
	}
	return lift_scan_byte(s, '-');
}

static int scan_address(struct lift_scan *s, uintptr_t *ret)
{
	uint64_t v;
	int rc = lift_scan_number(s, 16, UINTPTR_MAX, &v);

	if (rc == 0)
		*ret = (uintptr_t)v;
	return rc;
}

int lift_parse_maps_line(const char *buf, size_t len, struct lift_maps_line *ret)
{
	struct lift_scan s = lift_scan_of(buf, len);
	struct lift_maps_line m;
	uint64_t major;
	uint64_t minor;
	int rc;

	memset(&m, 0, sizeof(m));
	if (len > 0 && buf[len - 1] == '\n')
		s.end--;
	if ((rc = scan_address(&s, &m.range.start)) < 0)
		return rc;
	if (!lift_scan_byte(&s, '-'))
		return -EINVAL;
	if ((rc = scan_address(&s, &m.range.end)) < 0)
		return rc;
	if (lift_range_empty(m.range) || !lift_scan_byte(&s, ' '))
		return -EINVAL;
	if (!scan_perm(&s, 'r', LIFT_MAPS_READ, &m.perms) ||
		!scan_perm(&s, 'w', LIFT_MAPS_WRITE, &m.perms) ||
		!scan_perm(&s, 'x', LIFT_MAPS_EXEC, &m.perms))
		return -EINVAL;
	if (lift_scan_byte(&s, 's'))
		m.perms |= LIFT_MAPS_SHARED;
	else if (!lift_scan_byte(&s, 'p'))
		return -EINVAL;
	if (!lift_scan_byte(&s, ' '))
		return -EINVAL;
	if ((rc = lift_scan_number(&s, 16, UINT64_MAX, &m.offset)) < 0)
		return rc;
	if (!lift_scan_byte(&s, ' '))
		return -EINVAL;
	if ((rc = lift_scan_number(&s, 16, UINT_MAX, &major)) < 0)
		return rc;
	if (!lift_scan_byte(&s, ':'))
		return -EINVAL;
	if ((rc = lift_scan_number(&s, 16, UINT_MAX, &minor)) < 0)
		return rc;
	if (!lift_scan_byte(&s, ' '))
		return -EINVAL;
	if ((rc = lift_scan_number(&s, 10, UINT64_MAX, &m.inode)) < 0)
		return rc;
	m.dev_major = (unsigned)major;
	m.dev_minor = (unsigned)minor;
	/* A path is padded by blanks in front; blanks at its end are its own. */
	if (!lift_scan_done(&s) && !lift_scan_byte(&s, ' '))
		return -EINVAL;
	while (lift_scan_byte(&s, ' '))
		;
	m.path = (struct lift_text){.s = s.p, .len = lift_scan_left(&s)};
	*ret = m;
	return 0;
}

/* "rd wr mr mw me uw": two letters each. */
static void scan_vm_flags(struct lift_scan s, struct lift_smaps *vma)
{
	while (lift_scan_blanks(&s), lift_scan_left(&s) >= 2) {
		if (lift_scan_text(&s, "lo"))
			vma->locked = true;
		else if (lift_scan_text(&s, "io") || lift_scan_text(&s, "pf"))
			vma->special = true;
		else if (lift_scan_text(&s, "um") || lift_scan_text(&s, "uw") ||
			 lift_scan_text(&s, "ui") || lift_scan_text(&s, "ur"))
			vma->userfault = true;
		else
			s.p += 2;
	}
}

int lift_parse_smaps_line(const char *buf, size_t len, struct lift_smaps *vma)
{
	static const char *const huge[] = {
		"AnonHugePages:",
		"ShmemPmdMapped:",
		"FilePmdMapped:",
		"Private_Hugetlb:",
		"Shared_Hugetlb:",
	};
	struct lift_scan s = lift_scan_of(buf, len);
	struct lift_maps_line m;
	uint64_t bytes;
	int rc;

	/* The keys of fields begin with a capital, addresses are in small hexadecimal digits. */
	if (len == 0 || *buf < 'A' || *buf > 'Z') {
		rc = lift_parse_maps_line(buf, len, &m);
		if (rc < 0)
			return rc;
		memset(vma, 0, sizeof(*vma));
		vma->range = m.range;
		vma->perms = m.perms;
		return LIFT_SMAPS_FIRST;
	}
	if (lift_scan_text(&s, "VmFlags:")) {
		scan_vm_flags(s, vma);
		return LIFT_SMAPS_LAST;
	}
	if (lift_scan_text(&s, "Rss:"))
		return (rc = scan_kib(&s, &vma->rss_bytes)) < 0 ? rc : LIFT_SMAPS_MORE;
	if (lift_scan_text(&s, "Referenced:"))
		return (rc = scan_kib(&s, &vma->referenced_bytes)) < 0 ? rc : LIFT_SMAPS_MORE;
	if (lift_scan_text(&s, "KernelPageSize:"))
		return (rc = scan_kib(&s, &vma->kernel_page_bytes)) < 0 ? rc : LIFT_SMAPS_MORE;
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		if (!lift_scan_text(&s, huge[i]))
			continue;
		rc = scan_kib(&s, &bytes);
		if (rc < 0)
			return rc;
		if (bytes > UINT64_MAX - vma->huge_bytes)
			return -ERANGE;
		vma->huge_bytes += bytes;
		break;
	}
	return LIFT_SMAPS_MORE;
}

int lift_parse_named_u64(const char *buf, size_t len, const char *name, uint64_t *ret)
{
	struct lift_text rest = {.s = buf, .len = len};
	struct lift_text line;

	while (lift_parse_line(&rest, &line)) {
		struct lift_scan s = lift_scan_of(line.s, line.len);

		if (!lift_scan_text(&s, name) || lift_scan_done(&s))
			continue;
		if (!lift_scan_blanks(&s) && *s.p != ':')
			continue;
		if (lift_scan_byte(&s, ':'))
			lift_scan_blanks(&s);
		return lift_parse_u64(s.p, lift_scan_left(&s), ret);
	}
	return -ENOENT;
}

/* Up to the next blank, which is taken as well. */
static struct lift_text scan_token(struct lift_scan *s)
{
	const char *from = s->p;

	while (!lift_scan_done(s) && !lift_scan_is_blank(*s->p))
		s->p++;
	return (struct lift_text){.s = from, .len = (size_t)(s->p - from)};
}

/* The kernel's words for policies (mpol_to_str()); two of them contain a blank. */
static int mode_of(struct lift_text word)
{
	static const struct {
		const char *word;
		int mode;
	} modes[] = {
		{"default", LIFT_MPOL_DEFAULT},
		{"prefer", LIFT_MPOL_PREFERRED},
		{"bind", LIFT_MPOL_BIND},
		{"interleave", LIFT_MPOL_INTERLEAVE},
		{"local", LIFT_MPOL_LOCAL},
		{"prefer (many)", LIFT_MPOL_PREFERRED_MANY},
		{"weighted interleave", LIFT_MPOL_WEIGHTED_INTERLEAVE},
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (lift_text_is(word, modes[i].word))
			return modes[i].mode;
	return -1;
}

/* "bind=static|balancing:0-1": flags and nodes are optional. -1 for what is not known. */
static int scan_policy(struct lift_text policy, struct lift_nodeset *ret_nodes)
{
	struct lift_scan s = lift_scan_of(policy.s, policy.len);
	struct lift_text word = {.s = policy.s};
	int mode;

	lift_nodeset_zero(ret_nodes);
	while (!lift_scan_done(&s) && *s.p != '=' && *s.p != ':')
		s.p++;
	word.len = (size_t)(s.p - policy.s);
	mode = mode_of(word);
	if (mode < 0)
		return -1;
	if (lift_scan_byte(&s, '=')) {
		do {
			if (lift_scan_text(&s, "static"))
				mode |= LIFT_MPOL_F_STATIC_NODES;
			else if (lift_scan_text(&s, "relative"))
				mode |= LIFT_MPOL_F_RELATIVE_NODES;
			else if (lift_scan_text(&s, "balancing"))
				mode |= LIFT_MPOL_F_NUMA_BALANCING;
			else
				return -1;
		} while (lift_scan_byte(&s, '|'));
	}
	if (lift_scan_byte(&s, ':') && lift_scan_nodes(&s, ret_nodes) < 0)
		return -1;
	if (!lift_scan_done(&s)) {
		lift_nodeset_zero(ret_nodes);
		return -1;
	}
	return mode;
}

static bool text_starts(struct lift_text t, const char *prefix)
{
	size_t len = strlen(prefix);

	return t.len >= len && memcmp(t.s, prefix, len) == 0;
}

/* The policy is one token, or two where its name has a blank. */
static struct lift_text scan_policy_text(struct lift_scan *s)
{
	struct lift_text first = scan_token(s);
	struct lift_scan ahead = *s;
	struct lift_text second;

	if (!lift_scan_byte(&ahead, ' '))
		return first;
	second = scan_token(&ahead);
	if ((lift_text_is(first, "prefer") && text_starts(second, "(many)")) ||
		(lift_text_is(first, "weighted") && text_starts(second, "interleave"))) {
		first.len = (size_t)(ahead.p - first.s);
		*s = ahead;
	}
	return first;
}

/* "=123" at the end of a token. */
static int value_of(struct lift_scan *token, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int rc = lift_scan_number(token, 10, max, &v);

	if (rc < 0)
		return rc;
	if (!lift_scan_done(token))
		return -EINVAL;
	*ret = v;
	return 0;
}

static int parse_numa_field(struct lift_text field, struct lift_numa_maps_line *m)
{
	struct lift_scan s = lift_scan_of(field.s, field.len);
	uint64_t kib;
	int rc;

	if (lift_text_is(field, "heap")) {
		m->heap = true;
	} else if (lift_text_is(field, "stack")) {
		m->stack = true;
	} else if (lift_text_is(field, "huge")) {
		m->huge = true;
	} else if (lift_scan_text(&s, "file=")) {
		m->file = (struct lift_text){.s = s.p, .len = lift_scan_left(&s)};
	} else if (lift_scan_text(&s, "anon=")) {
		return value_of(&s, UINT64_MAX, &m->anon_pages);
	} else if (lift_scan_text(&s, "dirty=")) {
		return value_of(&s, UINT64_MAX, &m->dirty_pages);
	} else if (lift_scan_text(&s, "mapped=")) {
		return value_of(&s, UINT64_MAX, &m->mapped_pages);
	} else if (lift_scan_text(&s, "kernelpagesize_kB=")) {
		rc = value_of(&s, UINT64_MAX / 1024, &kib);
		if (rc < 0)
			return rc;
		m->page_bytes = kib * 1024;
	} else if (lift_scan_byte(&s, 'N') && !lift_scan_done(&s) && lift_scan_is_digit(*s.p)) {
		uint64_t node;
		uint64_t pages;

		rc = lift_scan_number(&s, 10, LIFT_MAX_NODES - 1, &node);
		if (rc < 0)
			return rc;
		if (!lift_scan_byte(&s, '='))
			return -EINVAL;
		rc = value_of(&s, UINT64_MAX, &pages);
		if (rc < 0)
			return rc;
		if (m->nr_nodes == LIFT_TOPO_NODES)
			return -ERANGE;
		m->pages[m->nr_nodes].node = (int)node;
		m->pages[m->nr_nodes++].weight = pages;
	}
	return 0;
}

int lift_parse_numa_maps_line(const char *buf, size_t len, struct lift_numa_maps_line *ret)
{
	struct lift_scan s = lift_scan_of(buf, len);
	struct lift_numa_maps_line m;
	int rc;

	memset(&m, 0, sizeof(m));
	lift_scan_trim(&s);
	rc = scan_address(&s, &m.start);
	if (rc < 0)
		return rc;
	if (!lift_scan_byte(&s, ' '))
		return -EINVAL;
	m.policy = scan_policy_text(&s);
	if (m.policy.len == 0)
		return -EINVAL;
	m.mode = scan_policy(m.policy, &m.nodes);
	while (lift_scan_blanks(&s)) {
		rc = parse_numa_field(scan_token(&s), &m);
		if (rc < 0)
			return rc;
	}
	*ret = m;
	return 0;
}

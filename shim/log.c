// SPDX-License-Identifier: MIT
#include "shim/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/os/sys.h"

#define LINE_MAX_BYTES 500
#define EARLY_BYTES 2048

static __thread bool elsewhere __attribute__((tls_model("initial-exec")));
static _Atomic int level_now = LIFT_LOG_WARN;
static _Atomic int opened;
static _Atomic int gave_up;
static char early[EARLY_BYTES];
static _Atomic size_t early_len;

/* What descriptor 2 was when the program started; 0, 0 when it was closed. */
static uint64_t stderr_dev;
static uint64_t stderr_ino;

struct out {
	char buf[LINE_MAX_BYTES + 1];
	size_t len;
};

static void put(struct out *o, const char *s, size_t n)
{
	if (n > LINE_MAX_BYTES - o->len)
		n = LINE_MAX_BYTES - o->len;
	memcpy(o->buf + o->len, s, n);
	o->len += n;
}

static void put_number(struct out *o, uint64_t v, unsigned base)
{
	char tmp[24];
	size_t n = sizeof(tmp);

	do {
		tmp[--n] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	put(o, tmp + n, sizeof(tmp) - n);
}

static void format(struct out *o, const char *fmt, va_list ap)
{
	const char *s;
	int64_t d;

	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			put(o, fmt, 1);
			continue;
		}
		fmt++;
		switch (*fmt) {
		case 's':
			s = va_arg(ap, const char *);
			s = s ? s : "(null)";
			put(o, s, strlen(s));
			break;
		case 'd':
			d = va_arg(ap, int);
			if (d < 0)
				put(o, "-", 1);
			put_number(o, (uint64_t)(d < 0 ? -d : d), 10);
			break;
		case 'u':
			put_number(o, va_arg(ap, unsigned), 10);
			break;
		case 'z':
			fmt++;
			put_number(o, va_arg(ap, size_t), 10);
			break;
		case 'l':
			fmt++;
			put_number(o, va_arg(ap, unsigned long), *fmt == 'x' ? 16 : 10);
			break;
		case 'p':
			put(o, "0x", 2);
			put_number(o, (uintptr_t)va_arg(ap, void *), 16);
			break;
		default:
			put(o, fmt, 1);
			break;
		}
		if (!*fmt)
			break;
	}
}

/*
 * The host's stderr may be a pipe that nobody drains, where a write would wait for ever, or one
 * without a reader, where it would raise SIGPIPE; or the program has closed it, and the number
 * stands for a data file now. None of that is a line of ours worth.
 */
static void write_line(const char *s, size_t len)
{
	int fd = elsewhere ? lift_sys_borrow_fd(2) : 2;
	uint64_t dev;
	uint64_t ino;

	if (fd < 0)
		return;
	if (lift_sys_file_id(fd, &dev, &ino) && dev == stderr_dev && ino == stderr_ino &&
		lift_sys_can_write(fd))
		(void)lift_sys_write(fd, s, len);
	if (elsewhere)
		(void)lift_sys_close(fd);
}

void lift_log_elsewhere(void)
{
	elsewhere = true;
}

static void emit(const char *fmt, va_list ap)
{
	struct out o = {.len = 0};
	size_t at;

	put(&o, "numalift: ", 10);
	format(&o, fmt, ap);
	o.buf[o.len++] = '\n';
	if (atomic_load_explicit(&opened, memory_order_acquire)) {
		write_line(o.buf, o.len);
		return;
	}
	at = atomic_fetch_add_explicit(&early_len, o.len, memory_order_relaxed);
	if (at < EARLY_BYTES && o.len <= EARLY_BYTES - at)
		memcpy(early + at, o.buf, o.len);
}

void lift_log_level_set(int level)
{
	atomic_store_explicit(&level_now, level, memory_order_relaxed);
}

bool lift_log_enabled(int level)
{
	return level <= atomic_load_explicit(&level_now, memory_order_relaxed);
}

void lift_log(int level, const char *fmt, ...)
{
	va_list ap;

	if (!lift_log_enabled(level))
		return;
	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}

void lift_log_given_up(const char *fmt, ...)
{
	va_list ap;
	int again = atomic_exchange_explicit(&gave_up, 1, memory_order_relaxed);

	if (!lift_log_enabled(again ? LIFT_LOG_INFO : LIFT_LOG_WARN))
		return;
	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}

void lift_log_open(void)
{
	size_t n = atomic_load_explicit(&early_len, memory_order_relaxed);

	if (!lift_sys_file_id(2, &stderr_dev, &stderr_ino))
		stderr_dev = stderr_ino = 0;
	if (atomic_exchange_explicit(&opened, 1, memory_order_acq_rel))
		return;
	/* A line that did not fit was left out whole, and so were those after it. */
	while (n > EARLY_BYTES || (n > 0 && early[n - 1] != '\n'))
		n--;
	if (n > 0)
		write_line(early, n);
}

// SPDX-License-Identifier: MIT
/*
 * Marks a phase of a program for the cost model (cost_model.c): a name, a begin, an end. The marks
 * are no-ops with an unusual displacement, which any x86-64 processor executes without effect and
 * which reads nothing, so that a marked program also runs where nobody looks.
 *
 *   0f 1f 80 OP 4e 4c 4d     nopl 0x4d4c4eOP(%rax)
 *
 *   OP 0, 1   a bit of the name, the lowest of each byte first
 *   OP 2      open a phase of the name given since the last OP 2 or 3
 *   OP 3      close it
 *
 * One phase at a time, for all CPUs of the machine together. A name that is used again adds to the
 * phase of before.
 */
#ifndef NUMALIFT_BENCHMARKS_LAB_MARKER_H
#define NUMALIFT_BENCHMARKS_LAB_MARKER_H

#ifdef __x86_64__
#define MARKER_EMIT(op)                                                                            \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, " op ", 0x4e, 0x4c, 0x4d" ::: "memory")
#else
#define MARKER_EMIT(op) __asm__ volatile("" ::: "memory")
#endif

/* Out of line: the model takes a mark to heart when the code it is in has jumped elsewhere. */
__attribute__((noinline, unused)) static void marker_open(const char *name)
{
	for (; *name; name++)
		for (int bit = 0; bit < 8; bit++)
			if (*name >> bit & 1)
				MARKER_EMIT("1");
			else
				MARKER_EMIT("0");
	MARKER_EMIT("2");
}

__attribute__((noinline, unused)) static void marker_close(void)
{
	MARKER_EMIT("3");
}

#endif

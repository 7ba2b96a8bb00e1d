/*
 * What a fuzz target is: one function, which traps when something does not hold. libFuzzer calls it
 * with inputs of its own, fuzz_main.c with the files of the corpus.
 */
#ifndef LIFT_TESTS_FUZZ_H
#define LIFT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* data is exactly size bytes: whoever reads past it is seen by AddressSanitizer. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must hold in release builds too. */
#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			__builtin_trap();                                                          \
	} while (0)

#endif

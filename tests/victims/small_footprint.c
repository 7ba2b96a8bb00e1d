/* A small program stays small: what it has resident after a megabyte of heap use, and what is
 * locked. */
#include "victim.h"

int main(void)
{
	for (unsigned i = 0; i < 50; i++) {
		char *block[20];

		for (unsigned k = 0; k < 20; k++) {
			block[k] = malloc(50 * k * k + i);
			CHECK(block[k]);
			memset(block[k], 1, 50 * k * k + i);
		}
		for (unsigned k = 0; k < 20; k++)
			free(block[k]);
	}
	if (status_kb("VmHWM:") < 0)
		SKIP("the process cannot see its own size");
	if (status_kb("VmHWM:") > 12 * 1024)
		FAIL("%ld kB resident at the peak", status_kb("VmHWM:"));
	if (status_kb("VmPTE:") > 600)
		FAIL("%ld kB of page tables", status_kb("VmPTE:"));
	CHECK(status_kb("VmLck:") <= 0 && status_kb("VmSwap:") <= 0);
	return pass();
}

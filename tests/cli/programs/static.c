/* Linked statically: no preload reaches it. Says so and ends with a status of its own. */
#include <stdio.h>

int main(int argc, char **argv)
{
	printf("static %s\n", argc > 1 ? argv[1] : "");
	return 3;
}

/* Destructors of thread-specific data that allocate, free and arm themselves again while a thread
 * ends. */
#include <pthread.h>

#include "victim.h"

enum { KEYS = 30, THREADS = 2400, AT_ONCE = 6 };

struct note {
	int round;
	char *text;
	size_t size;
};

static pthread_key_t key[KEYS];
static int ended;

static void destroy(void *arg)
{
	struct note *note = arg;
	char *next = malloc(note->size * 2);

	CHECK(next && note->text[note->size - 1] == 'n');
	memset(next, 'n', note->size * 2);
	free(note->text);
	note->text = next;
	note->size *= 2;
	if (++note->round < 3) {
		pthread_setspecific(key[(note->round * 7) % KEYS], note);
		return;
	}
	free(note->text);
	free(note);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

static void *body(void *given)
{
	struct note *note = calloc(1, sizeof(*note));

	free(given); /* made by the thread that started this one */
	CHECK(note);
	note->size = 300;
	note->text = malloc(300);
	CHECK(note->text);
	memset(note->text, 'n', 300);
	pthread_setspecific(key[0], note);
	return strdup("freed by the thread that joins");
}

int main(void)
{
	long before = 0;

	for (int i = 0; i < KEYS; i++)
		CHECK(!pthread_key_create(&key[i], destroy));
	for (int done = 0; done < THREADS; done += AT_ONCE) {
		pthread_t thread[AT_ONCE];
		void *result;

		for (int i = 0; i < AT_ONCE; i++)
			CHECK(!pthread_create(&thread[i], NULL, body, malloc(4000)));
		for (int i = 0; i < AT_ONCE; i++) {
			CHECK(!pthread_join(thread[i], &result));
			CHECK(!strncmp(result, "freed", 5));
			free(result);
		}
		if (done == 600)
			before = status_kb("VmRSS:");
	}
	if (ended != THREADS)
		FAIL("%d of %d threads ran their destructors to the end", ended, THREADS);
	if (status_kb("VmRSS:") - before > 16 * 1024)
		FAIL("%ld kB more after %d threads", status_kb("VmRSS:") - before, THREADS);
	return pass();
}

/* Threads that libc starts by itself, for timers, asynchronous I/O and name look-ups, use the heap
 * too. */
#include <aio.h>
#include <netdb.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "victim.h"

static sem_t done;

static void on_timer(union sigval value)
{
	char *text = strdup("made in a timer's thread");

	exercise_heap((unsigned)value.sival_int, 50);
	free(text);
	sem_post(&done);
}

static void timers(void)
{
	for (int i = 0; i < 20; i++) {
		struct sigevent event = {.sigev_notify = SIGEV_THREAD,
			.sigev_notify_function = on_timer,
			.sigev_value = {.sival_int = i}};
		struct itimerspec soon = {.it_value = {0, 1000000}};
		timer_t timer;

		CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
		CHECK(!timer_settime(timer, 0, &soon, NULL));
		while (sem_wait(&done))
			CHECK(errno == EINTR);
		CHECK(!timer_delete(timer));
	}
}

static void asynchronous(void)
{
	enum { REQUESTS = 16, SIZE = 50000 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct aiocb request[REQUESTS];

	CHECK(fd >= 0);
	memset(request, 0, sizeof(request));
	for (int i = 0; i < REQUESTS; i++) {
		request[i].aio_fildes = fd;
		request[i].aio_buf = malloc(SIZE);
		request[i].aio_nbytes = SIZE;
		CHECK(request[i].aio_buf && !aio_read(&request[i]));
	}
	for (int i = 0; i < REQUESTS; i++) {
		const struct aiocb *one[] = {&request[i]};

		while (aio_error(&request[i]) == EINPROGRESS)
			aio_suspend(one, 1, NULL);
		CHECK(aio_return(&request[i]) > 1000);
		CHECK(!memcmp((void *)(uintptr_t)request[i].aio_buf, "\177ELF", 4));
		free((void *)(uintptr_t)request[i].aio_buf);
	}
	close(fd);
}

static void names(void)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
	struct gaicb request = {.ar_name = "127.0.0.1", .ar_service = "80", .ar_request = &hints};
	struct gaicb *list[] = {&request};

	if (getaddrinfo_a(GAI_WAIT, list, 1, NULL))
		return;
	CHECK(!gai_error(&request) && request.ar_result);
	freeaddrinfo(request.ar_result);
}

int main(void)
{
	CHECK(!sem_init(&done, 0, 0));
	timers();
	asynchronous();
	names();
	exercise_heap(1, 2000);
	return pass();
}

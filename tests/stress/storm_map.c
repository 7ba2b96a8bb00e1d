// SPDX-License-Identifier: MIT
/*
 * Threads map, split, move, protect, advise and unmap memory of all kinds at once, and check what
 * is in it; children of forks find it as it was. Run as it is and with the library preloaded: the
 * same, status 0.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 5, STEPS = 1500, SLOTS = 8 };

#define PAGE ((size_t)4096)

/* PATCHED: private, of several mappings, so that it cannot be resized as a whole. */
enum kind { PRIVATE, SHARED, MEMFD, SYSV, KINDS, PATCHED = KINDS };

struct map {
	unsigned char *start;
	size_t pages; /* 0: none */
	enum kind kind;
	unsigned mark;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "storm_map: %s: %s\n", what, strerror(errno));
	abort();
}

static unsigned dice(unsigned *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static unsigned mark_of(const struct map *m, size_t page)
{
	return m->mark * 2654435761u + (unsigned)page;
}

static void write_pages(const struct map *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		*(unsigned *)(void *)(m->start + i * PAGE) = mark_of(m, i);
}

static void check_pages(const struct map *m)
{
	for (size_t i = 0; i < m->pages; i++)
		if (*(unsigned *)(void *)(m->start + i * PAGE) != mark_of(m, i))
			die("a mapping has lost its content");
}

static void *map_some(size_t bytes, enum kind kind)
{
	void *p = MAP_FAILED;
	int fd;

	switch (kind) {
	case MEMFD:
		fd = memfd_create("storm", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)bytes))
			die("memfd_create");
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		break;
	case SYSV:
		fd = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
		if (fd < 0)
			die("shmget");
		p = shmat(fd, NULL, 0);
		shmctl(fd, IPC_RMID, NULL);
		break;
	default:
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_ANONYMOUS | (kind == SHARED ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	}
	if (p == MAP_FAILED)
		die("a mapping");
	return p;
}

static void make(struct map *m, unsigned *seed)
{
	m->kind = dice(seed) % KINDS;
	m->pages = 1 + dice(seed) % (dice(seed) % 8 ? 60 : 1500);
	m->mark = dice(seed);
	m->start = map_some(m->pages * PAGE, m->kind);
	for (size_t i = 0; i < m->pages; i++)
		if (*(unsigned *)(void *)(m->start + i * PAGE) != 0)
			die("new memory is not zero");
	write_pages(m, 0, m->pages);
}

static void drop(struct map *m)
{
	if (m->kind == SYSV ? shmdt(m->start) : munmap(m->start, m->pages * PAGE))
		die("unmapping");
	m->pages = 0;
}

static void resize(struct map *m, unsigned *seed)
{
	size_t pages = 1 + dice(seed) % 1500;
	size_t had = m->pages;
	void *p;

	/* Shared objects have the size that they were made with. */
	if (m->kind != PRIVATE && pages > had)
		pages = had;
	p = mremap(m->start, had * PAGE, pages * PAGE, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		die("mremap");
	m->start = p;
	m->pages = pages;
	if (pages > had)
		write_pages(m, had, pages);
}

/* Makes a hole, and fills it with fresh memory of the same content. */
static void replace_middle(struct map *m)
{
	size_t from = m->pages / 3;
	size_t to = m->pages * 2 / 3 + 1;

	if (munmap(m->start + from * PAGE, (to - from) * PAGE))
		die("munmap of a part");
	/* Somebody else may be there by now: only if the place is free it is ours again. */
	if (mmap(m->start + from * PAGE, (to - from) * PAGE, PROT_READ | PROT_WRITE,
		    MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
		if (errno != EEXIST)
			die("mmap at a place of its own");
		if (to < m->pages && munmap(m->start + to * PAGE, (m->pages - to) * PAGE))
			die("munmap of the rest");
		m->pages = from;
		return;
	}
	write_pages(m, from, to);
	m->kind = PATCHED;
}

static void change(struct map *m, unsigned *seed)
{
	switch (dice(seed) % 5) {
	case 0:
		if (mprotect(m->start, m->pages * PAGE, PROT_READ))
			die("mprotect");
		check_pages(m);
		if (mprotect(m->start, m->pages * PAGE, PROT_READ | PROT_WRITE))
			die("mprotect back");
		break;
	case 1:
		if (m->kind == PRIVATE || m->kind == PATCHED) {
			if (madvise(m->start, m->pages * PAGE, MADV_DONTNEED))
				die("madvise");
			if (*(unsigned *)(void *)m->start != 0)
				die("MADV_DONTNEED kept the content");
			write_pages(m, 0, m->pages);
		}
		break;
	case 2:
		if (m->kind == PRIVATE)
			replace_middle(m);
		break;
	default:
		if (m->kind != SYSV && m->kind != PATCHED)
			resize(m, seed);
	}
}

static void fork_and_look(struct map *maps, unsigned seed)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < SLOTS; i++) {
			check_pages(&maps[i]);
			if (maps[i].pages)
				drop(&maps[i]);
			make(&maps[i], &seed);
			check_pages(&maps[i]);
		}
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("a child did not end well");
}

static void *live(void *arg)
{
	struct map maps[SLOTS] = {{NULL, 0, PRIVATE, 0}};
	unsigned seed = (unsigned)(uintptr_t)arg * 7919;

	for (int i = 0; i < STEPS; i++) {
		struct map *m = &maps[dice(&seed) % SLOTS];

		check_pages(m);
		if (m->pages == 0)
			make(m, &seed);
		else if (dice(&seed) % 4 == 0)
			drop(m);
		else
			change(m, &seed);
		if (i % 200 == 199)
			fork_and_look(maps, seed);
	}
	for (int i = 0; i < SLOTS; i++) {
		check_pages(&maps[i]);
		if (maps[i].pages)
			drop(&maps[i]);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, live, (void *)(i + 1)))
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

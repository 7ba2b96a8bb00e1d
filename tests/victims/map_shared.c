/* Shared memory of every kind stays shared over fork, and is really gone when it is given up. */
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "victim.h"

enum { CHILDREN = 6, STEP = 16384 };

static const size_t size = 24 * 1024 * 1024;

static void share(int *memory, const char *kind)
{
	pid_t child[CHILDREN];

	for (size_t i = 0; i < size / sizeof(int); i += STEP)
		memory[i] = (int)i;
	for (int c = 0; c < CHILDREN; c++) {
		child[c] = fork();
		if (!child[c]) {
			for (size_t i = 0; i < size / sizeof(int); i += STEP)
				__atomic_add_fetch(&memory[i], 1, __ATOMIC_RELAXED);
			exercise_heap((unsigned)c, 300);
			_exit(0);
		}
	}
	for (int c = 0; c < CHILDREN; c++)
		expect_child_ok(child[c], kind);
	for (size_t i = 0; i < size / sizeof(int); i += STEP)
		if (memory[i] != (int)i + CHILDREN)
			FAIL("%s is not shared: %d instead of %d", kind, memory[i],
				(int)i + CHILDREN);
}

static void *map(int fd, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void sysv(void)
{
	struct shmid_ds state;
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);

	if (id < 0)
		SKIP("no System V shared memory here, errno %d", errno);
	void *first = shmat(id, NULL, 0);
	void *second = shmat(id, NULL, SHM_RDONLY);

	CHECK(first != (void *)-1 && second != (void *)-1 && first != second);
	CHECK(!shmctl(id, IPC_STAT, &state) && state.shm_nattch == 2);
	share(first, "System V memory");
	CHECK(!memcmp(first, second, size));
	CHECK(!shmdt(second) && shmdt(second) == -1 && errno == EINVAL);
	CHECK(!shmctl(id, IPC_STAT, &state) && state.shm_nattch == 1);
	void *where = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(shmat(id, where, 0) == (void *)-1 && errno == EINVAL);
	CHECK(shmat(id, where, SHM_REMAP) == where && !memcmp(where, first, 4096));
	CHECK(!shmdt(where) && !shmctl(id, IPC_RMID, NULL) && !shmdt(first));
	CHECK(shmctl(id, IPC_STAT, &state) == -1);
	CHECK(shmat(-1, NULL, 0) == (void *)-1 && errno == EINVAL);
	CHECK(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600) == -1 && errno == EINVAL);
}

int main(void)
{
	char name[60];
	void *memory = map(-1, MAP_SHARED | MAP_ANONYMOUS);

	share(memory, "anonymous memory");
	CHECK(!munmap(memory, size));

	snprintf(name, sizeof(name), "/victim-%d", (int)getpid());
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && !ftruncate(fd, (off_t)size));
	CHECK(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
	memory = map(fd, MAP_SHARED);
	share(memory, "POSIX shared memory");
	CHECK(!munmap(memory, size) && !close(fd) && !shm_unlink(name));
	CHECK(shm_open(name, O_RDWR, 0) == -1 && errno == ENOENT);

	fd = memfd_create("sealed", MFD_ALLOW_SEALING);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == 0 && !ftruncate(fd, (off_t)size));
	memory = map(fd, MAP_SHARED);
	share(memory, "a memfd");
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EBUSY);
	CHECK(!munmap(memory, size));
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	CHECK(write(fd, "x", 1) == -1 && errno == EPERM);
	CHECK(mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	memory = map(fd, MAP_PRIVATE); /* copies may be written */
	((char *)memory)[0] = 1;
	CHECK(!munmap(memory, size) && !close(fd));
	CHECK(memfd_create("x", 0x4000) == -1 && errno == EINVAL);
	sysv();
	return pass();
}

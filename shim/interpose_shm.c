// SPDX-License-Identifier: MIT
/*
 * System V shared memory. shmget and shmctl need no look: a segment has no memory before it is
 * attached. The same goes for shm_open and memfd_create: what they return is recognised when it is
 * mapped, by the file system it lies on, which also works for descriptors that came from elsewhere.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/shm.h>

#include "shim/compiler.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/place.h"

LIFT_EXPORT void *shmat(int id, const void *addr, int flags)
{
	struct shmid_ds ds;
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_shmat))
		return LIFT_NEXT(shmat, void *, (int, const void *, int), (id, addr, flags));
	ret = lift_syscall(SYS_shmat, id, (long)addr, flags, 0, 0, 0);
	if (!lift_syserr(ret) && lift_place_active() &&
		lift_syscall(SYS_shmctl, id, IPC_STAT, (long)&ds, 0, 0, 0) == 0)
		lift_place_attached((uintptr_t)ret, ds.shm_segsz);
	return (void *)lift_result(ret);
}

LIFT_EXPORT int shmdt(const void *addr)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_shmdt))
		return LIFT_NEXT(shmdt, int, (const void *), (addr));
	if (lift_place_active())
		lift_place_detached((uintptr_t)addr);
	return (int)lift_result(lift_syscall(SYS_shmdt, (long)addr, 0, 0, 0, 0, 0));
}

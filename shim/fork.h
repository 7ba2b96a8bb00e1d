// SPDX-License-Identifier: MIT
/* What has to be done around fork(2). Called once, from the constructor. */
#ifndef NUMALIFT_SHIM_FORK_H
#define NUMALIFT_SHIM_FORK_H

void lift_fork_init(void);

#endif

// SPDX-License-Identifier: MIT
/*
 * The statistics page of this process: creates it, keeps it up to date, takes it away again. What
 * is in it: policy/stats_page.h. Nothing that happens to the file reaches the program: it is
 * written with pwrite(2), so that cutting it off raises no signal, the descriptor is compared
 * before each use and opened anew when the program has closed it, and what cannot be done costs the
 * page.
 *
 * Worker thread only, but for lift_stats_forked(); errno is left alone and nothing is allocated.
 * The worker blocks signals: a write beyond RLIMIT_FSIZE, which is avoided, would send one.
 */
#ifndef NUMALIFT_SHIM_STATS_H
#define NUMALIFT_SHIM_STATS_H

#include "policy/stats.h"

/*
 * Creates the page, which reads "waiting" until something is published. @option:
 *
 *     NULL, "", "auto"   /run/user/UID if it is ours, else /dev/shm
 *     "off"              none
 *     /folder, /folder/  there
 *     /path              that file; %p is the pid
 *
 * In a folder it is called numalift-UID-PID.stat, and pages of that name that dead processes of
 * this user have left there are taken away, some at a time. A file that is there already is
 * replaced only if it is the page of a dead process of the same user.
 *
 * 0, or -errno, and then there is no page: -EINVAL no absolute path, -EEXIST the file is somebody
 * else's, -EACCES, -EPERM (others may write to the folder), -ENOSPC, -EDQUOT, -EFBIG
 * (RLIMIT_FSIZE), -EROFS, -ENOENT and others. A page that was open before is closed.
 */
int lift_stats_open(const char *option);

/* Where it is; NULL: there is none. */
const char *lift_stats_path(void);

/* One moment's figures. Some six system calls; nothing when there is no page. */
void lift_stats_publish(const struct lift_stats *s);

/* Takes the page away. At exit that happens by itself. */
void lift_stats_close(void);

/* In the child of a fork, before anything else here: the page is the parent's. Async-signal-safe.
 */
void lift_stats_forked(void);

#endif

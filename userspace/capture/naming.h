/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of what threads wait for, looked up while the capture runs and written into it once each:
 * files, pipes and sockets, block devices, cgroups. What looking up costs is bounded: where too
 * much is asked, things stay without a name.
 */
#ifndef WAFFLE_CAPTURE_NAMING_H
#define WAFFLE_CAPTURE_NAMING_H

#include <sys/types.h>

#include "store/store.h"
#include "target/descriptors.h"

struct naming;

int naming_open(struct naming **naming, struct store_writer *writer, struct error *err);
void naming_close(struct naming *naming);

/* The number of a file in the capture's table of objects, or 0; `fd` may be another's by now.
 * `pid` 0: not known. Negative errno: of writing. */
/* `kind`: the first 8 bytes of the kernel's name of an anonymous inode, "[timerfd", or "". */
int64_t naming_file(struct naming *naming, pid_t pid, int fd, const struct file_key *key,
		    const char *kind, struct error *err);
/* Block devices are objects without an inode; cgroups those without a device. */
int64_t naming_device(struct naming *naming, uint32_t dev, struct error *err);
int64_t naming_cgroup(struct naming *naming, pid_t tid, uint64_t ino, struct error *err);

#endif

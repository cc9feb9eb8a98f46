/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which file systems answer without a server. A request to a network or FUSE file system
 * waits for its server, for ever if that is stuck. Devices are encoded as major << 20 | minor. */
#ifndef WAFFLE_TARGET_PROCESS_MOUNTS_H
#define WAFFLE_TARGET_PROCESS_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A device in any mount, for mounts_are_local(). */
#define MOUNTS_ANY UINT64_MAX

/* Whether a type is one of files on a local disk or in memory. An overlay counts, though its layers
 * may be of any type. */
bool mounts_type_is_local(const char *type);

/*
 * Whether all mounts that a process sees answer without a server, and one of them has that device.
 * False in doubt: there is an overlay, there are too many mounts, or the process is gone.
 */
bool mounts_are_local(pid_t pid, uint64_t device);

/* Whether a mount that a process sees has that device and waits for a server. True if there are too
 * many mounts to know. An overlay does not count. */
bool mounts_device_waits(pid_t pid, uint64_t device);

/* Whether a mount that a process sees has that device and a type of mounts_type_is_local(). False
 * in doubt: there are too many mounts. */
bool mounts_device_is_local(pid_t pid, uint64_t device);

/* Whether a mount that a process sees has that device and answers without a server. An overlay does
 * not count, nor do mounts in doubt. */
bool mounts_device_answers(pid_t pid, uint64_t device);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the objects that threads wait for: files, pipes and sockets, block devices, cgroups. They
 * are looked up while the capture runs, and each is written once. The time for lookups is bounded;
 * beyond the bound, objects have no name.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_OBJECT_NAMES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_OBJECT_NAMES_INTERNAL_H

#include <sys/types.h>

#include "bpf/record.h"
#include "store/store.h"
#include "target/process/descriptors.h"

struct object_names;

int object_names_open(struct object_names **names, struct store_writer *writer, struct error *err);
void object_names_close(struct object_names *names);

/* Number of a file in the capture's table of objects, or 0. `fd` is only a hint, since it may
 * refer to another file by now. `pid` 0: unknown. Negative errno: writing failed. */
/* `kind`: the first 8 bytes of the kernel's name of an anonymous inode, "[timerfd", or "". */
int64_t object_names_file(struct object_names *names, pid_t pid, int fd, const struct file_key *key,
			  const char *kind, struct error *err);
/* The same of a file that `pid` could not lock, and may have closed since then. `holder`, the
 * process that has locked it, still has it open; 0: unknown. */
int64_t object_names_locked(struct object_names *names, pid_t pid, int fd, pid_t holder,
			    const struct file_key *key, struct error *err);
/* Names a socket by its addresses, which the kernel has recorded, and by what it has sent again. */
int64_t object_names_endpoints(struct object_names *names,
			       const struct waffle_rec_endpoints *endpoints, struct error *err);
/* The number of such a name that says what was sent again during a wait; 0: there is none. */
uint32_t object_names_resent(struct object_names *names, const struct file_key *key,
			     uint16_t resent);
/* The number of a socket that is being connected and that is not the only one of its epoll; 0: it
 * is connected by now, or cannot be looked up. */
int64_t object_names_among(struct object_names *names, pid_t pid, int fd,
			   const struct file_key *key, struct error *err);
/* Names a list of descriptors, of which at most WAFFLE_POLLED_MAX are in `fds`; `count` is
 * greater if there are more. */
int64_t object_names_polled(struct object_names *names, pid_t pid, const int *fds, uint32_t count,
			    struct error *err);
/* Block devices are objects without an inode; cgroups are objects without a device.
 * `controller`: as of cgroup_path(); it is in the object's detail, "cgroup cpu". */
int64_t object_names_device(struct object_names *names, uint32_t dev, struct error *err);
int64_t object_names_cgroup(struct object_names *names, pid_t tid, uint64_t ino,
			    const char *controller, struct error *err);
/* Names the sockets at the other ends of the connections that threads waited for, if one of these
 * processes has them: a reader that is too slow may never have waited itself. Call it now and then,
 * and at the end of the capture. */
int object_names_peers(struct object_names *names, const pid_t *pids, size_t count,
		       struct error *err);
/* The next call of object_names_peers() searches for all other ends again: a process was added that
 * may have them. */
void object_names_peers_again(struct object_names *names);
/* Adds the server's ends of these connections that are not accepted yet. Call it at the end of the
 * capture: they may be accepted at any time. Then object_names_peers() finds the sockets that
 * listen there. */
int object_names_unaccepted(struct object_names *names, const pid_t *pids, size_t count,
			    struct error *err);
/* Adds the names of files that nobody had open any more when they were looked up, if one of these
 * processes has them open now. The earlier objects stay, with the same inode. Call it at the end of
 * the capture. */
int object_names_closed(struct object_names *names, const pid_t *pids, size_t count,
			struct error *err);
/* Adds the other ends of these connections again if they have something unread, and those that are
 * gone. Call it at the end of the capture, when all connections are known. */
int object_names_far_ends(struct object_names *names, const pid_t *pids, size_t count,
			  struct error *err);
/* Adds to the name of a pipe who holds its other end, or of a file who has its lock: `text`. `tid`,
 * a thread of process `pid`, has it open as `fd`. Later lookups give that name. */
int object_names_pipe(struct object_names *names, pid_t pid, pid_t tid, int fd,
		      const struct file_key *key, const char *text, struct error *err);
/* The same for a Unix socket, once: only threads at the same end wait for it. */
int object_names_unix(struct object_names *names, pid_t pid, pid_t tid, const struct file_key *key,
		      const char *text, struct error *err);
/* The same for a list of descriptors as of object_names_polled(). */
int object_names_polled_pipes(struct object_names *names, pid_t pid, const int *fds, uint32_t count,
			      const char *text, struct error *err);
/* Names a named pipe that process `pid` opens by its path, unless it has a name, with what it
 * lacks: "nobody has opened it to read". Later lookups give that name. */
int object_names_fifo(struct object_names *names, pid_t pid, const struct file_key *key,
		      const char *path, const char *lacks, struct error *err);
/* Forgets objects that a flight recorder no longer needs. */
void object_names_sweep(struct object_names *names);

#endif

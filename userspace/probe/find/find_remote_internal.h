/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker searches a file for calls (target/worker/worker.h). It has the same descriptions, since
 * it was forked after they were read. The reply carries the state of each description in this file.
 */
#ifndef WAFFLE_PROBE_FIND_FIND_REMOTE_INTERNAL_H
#define WAFFLE_PROBE_FIND_FIND_REMOTE_INTERNAL_H

#include "probe/spec/call_set.h"
#include "util/wire.h"

/* The descriptions that apply to a file: [0] if it is a library, [1] if it is a program. */
struct find_lists {
	VEC(uint32_t) of[2];
};

/* In find_file.c: searches the file in this process. */
int find_in_file(struct call_set *set, struct object *object, int fd,
		 const struct find_lists *lists, struct error *err);

/* The same in a worker. Replaces the states of the descriptions that were searched for. -EAGAIN: as
 * worker_ask(). */
int find_remote(struct call_set *set, struct object *object, int fd, const struct find_lists *lists,
		struct error *err);
/* Parses the reply. 0; -EPROTO: it is malformed; -ENOMEM. `file_bytes`: the size of the file. */
int find_decode(struct call_set *set, struct object *object, const struct find_lists *lists,
		uint64_t file_bytes, struct wire_in *in);

#endif

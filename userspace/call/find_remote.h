/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a worker looks for in a file (target/worker.h). The worker has the same descriptions,
 * as it was forked after they were read; what became of them so far is sent, and comes back.
 */
#ifndef WAFFLE_CALL_FIND_REMOTE_H
#define WAFFLE_CALL_FIND_REMOTE_H

#include "call/set.h"
#include "util/wire.h"

/* The descriptions that a file is searched for, if it is no program, and if it is one. */
struct find_lists {
	VEC(uint32_t) of[2];
};

/* find.c: looks through the file, here. */
int find_in_file(struct call_set *set, struct object *object, int fd,
		 const struct find_lists *lists, struct error *err);

/* The same by a worker. */
int find_remote(struct call_set *set, struct object *object, int fd, const struct find_lists *lists,
		struct error *err);
/* Its reply, which adds to the object and replaces the states of what was searched for. -EPROTO: it
 * makes no sense; -ENOMEM. `file_bytes`: how large the file is. */
int find_decode(struct call_set *set, struct object *object, const struct find_lists *lists,
		uint64_t file_bytes, struct wire_in *in);

#endif

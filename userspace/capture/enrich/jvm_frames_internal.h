/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frame of a stack that is in code of the JVM gets its name, which is read from the
 * memory of the process. Frames further out are dropped: that code keeps no frame pointers.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_JVM_FRAMES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_JVM_FRAMES_INTERNAL_H

#include "capture/enrich/frame_names_internal.h"
#include "kernel/kernel.h"
#include "store/store.h"
#include "target/process/jvm.h"

/* The JVM of a process; all 0: it has none. */
struct jvm_frames {
	struct jvm jvm;
	uint64_t from, to;    /* addresses of its code; 0: not known yet */
	uint64_t examined_ts; /* when they were looked for */
	uint32_t attempts;    /* so often */
	uint32_t reads;       /* of names in that second: */
	uint64_t second;
};

/* The stack of a record of `ts`. The new one is written to `addresses`, which has room for
 * stack->count of them. `program`: differs for each program that a pid runs. Returns 0, or a
 * negative errno: writing failed. */
int jvm_frames_name(struct jvm_frames *frames, struct frame_names *names,
		    const struct kernel *kernel, uint32_t program, struct store_stack *stack,
		    uint64_t ts, uint64_t *addresses, struct error *err);

/* Whether the JVM's code is known now. `image`: the memory of the process. */
bool jvm_frames_ready(struct jvm_frames *frames, const struct image *image);

/* A frame of a thread that is blocked, in code of the JVM: names it, and steps to its caller.
 * *address: with STORE_NAMED, or 0 if it has no name. False: the caller is unknown. */
bool jvm_frames_step(const struct jvm_frames *frames, struct frame_names *names,
		     const struct image *image, uint32_t pid, struct jvm_frame *frame,
		     uint64_t *address);

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Functions of Python as spans. The CPU watches two addresses of a function's code object for the
 * threads of the process (perf_event_open(2), PERF_TYPE_BREAKPOINT), so nothing is written into the
 * process, and other functions cost nothing:
 *
 *	the first instruction		read by the interpreter when a call begins
 *	the number of references	written before a call and after it: its frame has one
 */
#ifndef WAFFLE_PYTHON_H
#define WAFFLE_PYTHON_H

#include "stack.h"

/* An x86 CPU watches four addresses. */
#define WAFFLE_WATCHES_PER_PROCESS 2
/* The maximum number of addresses that are watched in all processes of a capture. */
#define WAFFLE_WATCHES_MAX 4096
/* Frames that are searched for the function. */
#define WAFFLE_WATCH_FRAMES_MAX 256

/* The map `python_watches` has it by both addresses. */
struct waffle_watch {
	struct waffle_python python;
	__u64 code; /* the code object */
	/* Its name and line at the time of arming. Another object may take its place later. */
	__u64 name;
	__u32 first_line;
	__u32 function; /* number of the function, for records */
	__u64 first;    /* address of its first instruction */
	/* In 3.11, a frame is still the innermost one when it releases its code, and it has
	 * executed this instruction then. 0: other versions. */
	__u32 return_opcode;
	__u32 reserved;
};

#endif

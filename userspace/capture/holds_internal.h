/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holds of one process (kernel/gate.h): which of them belong to which exec, and what they mean
 * for the program that then began.
 *
 * The gate's messages and the kernel's EXEC records come by different ways. So a record may be read
 * after the holds of the next exec, and a hold after the record of its own exec. The times tell: a
 * hold belongs to the first exec whose record is later than its begin.
 *
 *	hold (program)   hold (loader)   EXEC   hold (next program)   EXEC
 *	'------------- one exec ----------'     '------- the next -------'
 */
#ifndef WAFFLE_CAPTURE_HOLDS_INTERNAL_H
#define WAFFLE_CAPTURE_HOLDS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

struct hold {
	uint64_t id;       /* the gate's number; 0: it was not held */
	uint64_t begin_ts; /* when the process asked */
	uint64_t exec_ts;  /* time of the EXEC record that it belongs to; 0: none was read yet */
	char name[16];     /* of the file; "": not known */
	bool ready;        /* the program was armed before it began */
	bool missed;       /* the program began before all of it was armed */
	bool needed;       /* something was armed meanwhile, which is missing if it took too long */
	bool armed;        /* something was armed after `missed`, before the EXEC record was read */
	bool counted;      /* counted as a program that began before it was armed */
};

/* Zero-initialised it has no holds. */
struct holds {
	VEC(struct hold) list; /* the oldest first */
	uint64_t exec_ts;      /* time of the last EXEC record; 0: there was none */
};

/* Adds a hold, also one that the gate refused (id 0). If its EXEC record was read before, the
 * program has begun: then `exec_ts` and `missed` are set. NULL: out of memory. The result is valid
 * until the next call. */
struct hold *holds_add(struct holds *holds, uint64_t id, uint64_t begin_ts);
/* NULL: it is not known (any more). */
struct hold *holds_find(struct holds *holds, uint64_t id);
/* An EXEC record of that time was read. */
void holds_exec(struct holds *holds, uint64_t exec_ts);
void holds_free(struct holds *holds);

/* Combines the holds of one exec; `exec_ts` is the time of any one of them. Holds of an exec
 * that failed count for the next one. */
struct hold_sum {
	const char *name; /* of the program: the first file; "": not known */
	bool any;         /* there are holds */
	bool prepared;    /* the program was armed before its exec, without a hold */
	bool ready;       /* all of the program was armed before it began */
	bool armed;       /* some of it was armed after it began, before its EXEC record was read */
	bool counted;
};
struct hold_sum holds_sum(const struct holds *holds, uint64_t exec_ts);
/* The program that began with the last EXEC record was counted. */
void holds_count(struct holds *holds);
/* When the process asked for a program that it does not run yet. UINT64_MAX: it did not. */
uint64_t holds_next_ts(const struct holds *holds);
/* What was armed for such a program has been disarmed. */
void holds_disarmed(struct holds *holds);
/* Something was armed in the files that the process has mapped. They may be those of a program
 * whose EXEC record was not read yet. */
void holds_armed(struct holds *holds);
/* Whether the process has been armed for a program of its own, which it runs or is about to. */
bool holds_any_ready(const struct holds *holds);

#endif

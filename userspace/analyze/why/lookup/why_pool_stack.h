/* SPDX-License-Identifier: Apache-2.0 */
/* What a stack shows of a thread of a known pool: whether it has a job, and waits for another one.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POOL_STACK_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POOL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "symbolize/stack_names.h"

/*
 * A function in which each thread of a pool takes jobs and does them. Of Python, it has called
 * another function of Python if it does one; libuv's has not called the function `idle`.
 */
struct why_pool_row {
	const char *text; /* "a ThreadPoolExecutor" */
	const char *function;
	const char *source; /* the end of its path */
	const char *idle;   /* NULL: a pool of Python */
	bool grows;         /* the pool may start threads when it gets jobs */
	/* In these functions, as of meaning_is_listed(), of this source, a job waits for others;
	 * NULL: none are known. */
	const char *waits, *waits_source;
};

/* Of a process with more threads, no pool is known. */
#define WHY_POOL_THREADS 256

#define WHY_POOL_ROWS 3
extern const struct why_pool_row why_pool_rows[WHY_POOL_ROWS];

struct why_pool_stack {
	const struct why_pool_row *row; /* NULL: it is of no pool */
	unsigned idle;                  /* a bit for each row whose function `idle` is on it */
	bool python;                    /* functions of Python were called by that of the row */
	bool waits;                     /* one of them waits for another job */
	bool named;                     /* it has a function with a name */
	bool cut;                       /* the function of a pool may be further out */
};

/* `names` may be NULL, and the stack 0: unknown. */
struct why_pool_stack why_pool_stack(struct stack_names *names, uint32_t number, uint64_t ts);
/* Whether a thread with this stack, which is of a pool, has a job. */
bool why_pool_has_job(const struct why_pool_stack *stack);
/* Whether two threads may be of one pool by their names, which differ in the last number at most:
 * "ThreadPoolExecutor-0_1" and "ThreadPoolExecutor-0_2". */
bool why_pool_is_like(const struct model *model, uint32_t a, uint32_t b);

#endif

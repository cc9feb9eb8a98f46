/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of userspace/ that calls memory_failed() (util/memory.h) ends waffle-bpf when memory runs
 * out. libwaffle must never end its program. So its memory_failed() jumps back to the attempt that
 * is in progress. What the code had allocated is lost, and its objects must not be used again.
 *
 *	struct memory_attempt attempt;
 *	if (attempt_fails(&attempt))
 *		return error_set(err, ENOMEM, "out of memory");
 *	…
 *	attempt_end(&attempt);
 *
 * Local variables that change after attempt_fails() have no defined value when it returns true. The
 * code must hold no lock when it calls memory_failed().
 */
#ifndef WAFFLE_USDT_RECORD_ATTEMPT_H
#define WAFFLE_USDT_RECORD_ATTEMPT_H

#include <setjmp.h>

struct memory_attempt {
	struct memory_attempt *outer;
	jmp_buf back;
};

/* Begins an attempt of this thread. The result is true when memory has run out. */
#define attempt_fails(attempt) (attempt_begin(attempt), _setjmp((attempt)->back) != 0)

void attempt_begin(struct memory_attempt *attempt);
void attempt_end(struct memory_attempt *attempt);

#endif

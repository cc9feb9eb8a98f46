// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/attempt.h"

#include <stdlib.h>

#include "util/memory.h"

static __thread struct memory_attempt *innermost;

void attempt_begin(struct memory_attempt *attempt)
{
	attempt->outer = innermost;
	innermost = attempt;
}

void attempt_end(struct memory_attempt *attempt)
{
	innermost = attempt->outer;
}

_Noreturn void memory_failed(void)
{
	struct memory_attempt *attempt = innermost;

	if (!attempt)
		abort(); /* a fault of libwaffle: it used such code without an attempt */
	innermost = attempt->outer;
	_longjmp(attempt->back, 1);
}

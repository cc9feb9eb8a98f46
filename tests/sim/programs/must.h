/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a program with a message if a call of CUDA or NCCL failed: MUST(cudaMalloc(&at, 4096)). */
#ifndef SIM_MUST_H
#define SIM_MUST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cuda.h"
#include "sim_nccl.h"

static inline const char *must_error(const char *function, int result)
{
	function += strspn(function, "_p");
	if (!strncmp(function, "nccl", 4))
		return ncclGetErrorString((ncclResult_t)result);
	/* The driver's errors have the same numbers as the runtime's. */
	if (!strncmp(function, "cu", 2))
		return cudaGetErrorName((cudaError_t)result);
	return strerror(result);
}

/* `call` is the text of the call, "cudaMalloc(&at, 4096)" or "LOGGED(cudaMalloc, (&at, 4096),
 * …". */
static inline _Noreturn void must_fail(const char *call, int result)
{
	static const char logged[] = "LOGGED(";
	char function[64];

	if (!strncmp(call, logged, sizeof(logged) - 1))
		call += sizeof(logged) - 1;
	snprintf(function, sizeof(function), "%.*s", (int)strcspn(call, "(, "), call);
	fflush(NULL);
	fprintf(stderr, "%s: simulated: %s: error %d (%s)\n", program_invocation_short_name,
		function, result, must_error(function, result));
	exit(1);
}

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int must_result = (int)(call);                                                     \
                                                                                                   \
		if (must_result)                                                                   \
			must_fail(#call, must_result);                                             \
	} while (0)

#endif

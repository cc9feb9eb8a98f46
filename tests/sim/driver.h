/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the stand-in for libcuda.so.1. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "sim_cuda.h"
#include "simulation.h"
#include "stream.h"

/* The object behind a CUfunction and a CUkernel. */
struct CUfunc_st {
	char *name; /* mangled */
	bool timed; /* its first parameter is its duration */
	sim_kernel_run run;
	uint64_t launches;
};

struct CUstream_st {
	struct stream *stream;
};

/* The stream of a handle. NULL and the two special handles denote streams, too. */
struct stream *stream_of(CUstream handle, bool per_thread);
/* The default stream that waits for others. NULL: it was not used yet. */
struct stream *legacy_stream(void);
/* Submits an operation to a stream. With `wait`, waits for it. */
CUresult op_submit(struct stream *stream, struct op *op, bool wait);

/* A call has waited since `start_ns`, in the way that CUPTI numbers. `stream` may be NULL. */
void wait_observed(const char *name, uint32_t kind, const struct stream *stream, uint64_t start_ns);

/*
 * A function with a stream parameter has two bodies. In the second one the default stream is the
 * thread's own. NAME_on(…, per_thread) does the work. `seen` are the parameters for observers.
 */
#define SIM_API __attribute__((visibility("default")))
#define DEFINE_TWO(name, suffix, params, seen, ...)                                                \
	SIM_API CUresult name params                                                               \
	{                                                                                          \
		SIM_CALL_WITH(CUresult, seen);                                                     \
		return (CUresult)sim_api_result(&sim_api, (int)name##_on(__VA_ARGS__, false));     \
	}                                                                                          \
	CUresult name##suffix params;                                                              \
	SIM_API CUresult name##suffix params                                                       \
	{                                                                                          \
		SIM_CALL_WITH(CUresult, seen);                                                     \
		return (CUresult)sim_api_result(&sim_api, (int)name##_on(__VA_ARGS__, true));      \
	}

#endif

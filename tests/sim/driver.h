/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the stand-in of libcuda.so.1: what its files share. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "sim_cuda.h"
#include "simulation.h"
#include "stream.h"

/* Behind a CUfunction and a CUkernel. */
struct CUfunc_st {
	char *name; /* mangled */
	bool timed; /* its first parameter says how long it takes */
	sim_kernel_run run;
	uint64_t launches;
};

struct CUstream_st {
	struct stream *stream;
};

/* The stream behind a handle; NULL and the two special handles are streams too. */
struct stream *stream_of(CUstream handle, bool per_thread);
/* The default stream that waits for others; NULL: it was not used yet. */
struct stream *legacy_stream(void);
/* Puts an operation into a stream, and waits for it if `wait`. */
CUresult op_submit(struct stream *stream, struct op *op, bool wait);

/*
 * A function that takes a stream has two bodies: in the second one the default stream is the
 * thread's own. NAME_on(…, per_thread) does the work.
 */
#define SIM_API __attribute__((visibility("default")))
#define DEFINE_TWO(name, suffix, params, ...)                                                      \
	SIM_API CUresult name params                                                               \
	{                                                                                          \
		SIM_CALL(CUresult);                                                                \
		return name##_on(__VA_ARGS__, false);                                              \
	}                                                                                          \
	CUresult name##suffix params;                                                              \
	SIM_API CUresult name##suffix params                                                       \
	{                                                                                          \
		SIM_CALL(CUresult);                                                                \
		return name##_on(__VA_ARGS__, true);                                               \
	}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the stand-ins: the mark that distinguishes them from the real libraries, and the
 * settings in the environment. docs/simulation.md describes the variables.
 */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "observer.h"
#include "sim_cuda.h"

/* The code of a kernel, which runs in its stream's thread. Returns the time of its end. */
typedef uint64_t (*sim_kernel_run)(void *arg, uint64_t start_ns);

/*
 * The only symbol that the real libraries do not have. libnccl uses it to set the code of its
 * kernels. `text` is for people who inspect the file.
 */
struct waffle_simulation {
	const char *text;
	/* From now on the function runs `run` with the target of its first parameter. */
	void (*kernel_code)(CUfunction function, sim_kernel_run run);
	const struct sim_observer *observer; /* the stand-in of CUPTI sets it; NULL: none */
};

/* The library that has the driver's functions. HIP's stand-in contains them. */
#ifndef SIM_DRIVER_LIBRARY
#define SIM_DRIVER_LIBRARY "libcuda.so.1"
#endif

/* The ELF note by which waffle-bpf recognises a stand-in (include/waffle/abi.h). */
#define SIM_NOTE                                                                                   \
	__asm__(".pushsection .note.waffle, \"a\", @note\n"                                        \
		".balign 4\n"                                                                      \
		".long 7, 0, 2\n" /* WAFFLE_NOTE_SIMULATION */                                     \
		".asciz \"waffle\"\n"                                                              \
		".balign 4\n"                                                                      \
		".popsection\n")

enum sim_sync { SIM_SYNC_BLOCK, SIM_SYNC_SPIN, SIM_SYNC_YIELD };

/* "RANK:FACTOR[:FROM[:TO]]": that rank's operations FROM to TO take FACTOR times as long. */
struct sim_slow {
	bool on;
	double factor;
	uint64_t from, to;
};

#define SIM_FAILS_MAX 8
struct sim_fail {
	char function[64];
	uint64_t nth;
	int code;
};

struct sim_config {
	int rank;
	int devices;
	enum sim_sync sync;
	uint64_t init_ns, kernel_ns, launch_ns, copy_latency_ns, collective_latency_ns;
	double copy_bytes_per_ns, collective_bytes_per_ns;
	struct sim_slow slow_kernel, slow_copy;
	struct sim_fail fails[SIM_FAILS_MAX];
	unsigned fail_count;
};

/* Read from the environment once. An invalid value ends the program with a message. */
const struct sim_config *sim_config(void);
/* The factor by which the n-th operation (from 1) is slower; 1: it is not. */
double sim_slow_factor(const struct sim_slow *slow, uint64_t nth);
/* The error with which this call of `function` must fail. 0: none. */
int sim_call_error(const char *function, uint64_t *calls);

/* Must be the first statement of every function of the stand-ins. */
#define SIM_CALL(type) SIM_CALL_WITH(type, NULL)
/* The same, with the parameters that observers see, each in 8 bytes: SIM_SEEN(…). */
#define SIM_SEEN(...) ((const void *[]){__VA_ARGS__})
#define SIM_CALL_WITH(type, params)                                                                \
	struct sim_api sim_api __attribute__((__cleanup__(sim_api_end), __unused__)) =             \
		sim_api_begin(__func__, params);                                                   \
	do {                                                                                       \
		static uint64_t sim_calls;                                                         \
		if (__builtin_expect(sim_config()->fail_count != 0, 0)) {                          \
			int sim_error = sim_call_error(__func__, &sim_calls);                      \
			if (sim_error)                                                             \
				return (type)sim_api_result(&sim_api, sim_error);                  \
		}                                                                                  \
	} while (0)

uint64_t sim_now_ns(void);

#endif

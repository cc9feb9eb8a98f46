/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-ins share: the mark that tells them from the real libraries, and what the
 * environment asks of them. docs/simulation.md has the variables.
 */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_cuda.h"

/* What a kernel with code of its own does in its stream's thread: returns when it has ended. */
typedef uint64_t (*sim_kernel_run)(void *arg, uint64_t start_ns);

/*
 * The one symbol that the real libraries don't have. libnccl gives its kernels their code by it;
 * `text` is for people who look at the file.
 */
struct waffle_simulation {
	const char *text;
	/* From now on the function runs `run`, with what its first parameter points to. */
	void (*kernel_code)(CUfunction function, sim_kernel_run run);
};

/* The ELF note by which waffle-bpf knows a stand-in (include/waffle/abi.h). */
#define SIM_NOTE                                                                                   \
	__asm__(".pushsection .note.waffle, \"a\", @note\n"                                        \
		".balign 4\n"                                                                      \
		".long 7, 0, 2\n" /* WAFFLE_NOTE_SIMULATION */                                     \
		".asciz \"waffle\"\n"                                                              \
		".balign 4\n"                                                                      \
		".popsection\n")

enum sim_sync { SIM_SYNC_BLOCK, SIM_SYNC_SPIN, SIM_SYNC_YIELD };

/* "RANK:FACTOR[:FROM[:TO]]": that rank's are FACTOR times slower, from the FROM-th to the TO-th. */
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

/* Read from the environment once. A value that makes no sense ends the program with a message. */
const struct sim_config *sim_config(void);
/* By how much the n-th operation (from 1 on) is slower: 1 if it isn't. */
double sim_slow_factor(const struct sim_slow *slow, uint64_t nth);
/* The error with which this call of `function` is to fail; 0: none. */
int sim_call_error(const char *function, uint64_t *calls);

/* First statement of every function of the stand-ins. */
#define SIM_CALL(type)                                                                             \
	do {                                                                                       \
		static uint64_t sim_calls;                                                         \
		if (__builtin_expect(sim_config()->fail_count != 0, 0)) {                          \
			int sim_error = sim_call_error(__func__, &sim_calls);                      \
			if (sim_error)                                                             \
				return (type)sim_error;                                            \
		}                                                                                  \
	} while (0)

uint64_t sim_now_ns(void);

#endif

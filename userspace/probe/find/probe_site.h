/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses where in a function to set a probe. The kernel emulates a few instructions and replaces
 * some nops by a call, which must not harm the program. It executes all others out of line with
 * single-stepping, at twenty times the cost (docs/benchmarks.md). Functions often begin with such
 * an instruction, above all `endbr64`, and have an emulated one a few bytes later. The probe goes
 * there if it still sees the same as at the entry: the same arguments, the same stack pointer, and
 * one hit per call.
 */
#ifndef WAFFLE_PROBE_FIND_PROBE_SITE_H
#define WAFFLE_PROBE_FIND_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/object.h"

/* Capabilities of the running kernel. */
struct probe_site_kernel {
	uint32_t version;      /* major * 1000 + minor */
	uint8_t optimised_nop; /* length of the x86-64 nop that it replaces by a call; 0: none */
};

struct probe_site_kernel probe_site_kernel_running(void);

struct probe_site {
	uint16_t shift; /* bytes from the function's entry */
	uint8_t cost;   /* enum object_probe_cost */
};

/* Limit of the distance between entry and probe. */
#define PROBE_SITE_SHIFT_MAX 64

/* Longer functions are not read completely. In those no place is chosen that a loop might pass. */
#define PROBE_SITE_BYTES_MAX 16384

/*
 * `code` has `bytes` bytes from the function's entry at link-time `address`. `whole`: they are all
 * of the function. machine: EM_X86_64 or EM_AARCH64; for any other the cost is unknown. A return
 * probe may use the same place.
 */
struct probe_site probe_site_function(const struct probe_site_kernel *kernel, uint16_t machine,
				      const uint8_t *code, size_t bytes, bool whole,
				      uint64_t address);

/*
 * The same for a Go function, which has a different calling convention. It first checks the room on
 * its stack, and restarts after getting a larger one. If it begins like that, the probe comes after
 * the check.
 */
struct probe_site probe_site_go(const struct probe_site_kernel *kernel, uint16_t machine,
				const uint8_t *code, size_t bytes, uint64_t address);

/* Cost of a probe at exactly this instruction, for sites and USDT probes, which cannot be moved. */
enum object_probe_cost probe_site_cost(const struct probe_site_kernel *kernel, uint16_t machine,
				       const uint8_t *code, size_t bytes, uint64_t address);

#endif

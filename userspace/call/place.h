/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a function to set a probe. The kernel emulates a few instructions, or replaces a nop by
 * a call, which must not harm the program; all others it executes out of line in single-step, which
 * costs twenty times as much (docs/benchmarks.md). A function that begins with one of those, with
 * `endbr64` above all, mostly has an emulated one a few bytes further on, and is probed there if
 * everything that a probe at the entry sees is still true: arguments, stack pointer, and that every
 * call passes once.
 */
#ifndef WAFFLE_CALL_PLACE_H
#define WAFFLE_CALL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/object.h"

/* What the kernel that sets the probes can do. */
struct place_kernel {
	uint32_t version;      /* major * 1000 + minor */
	uint8_t optimised_nop; /* bytes of the nop of x86-64 that it replaces by a call; 0: none */
};

struct place_kernel place_kernel_running(void);

struct place {
	uint16_t shift; /* bytes from the function's entry */
	uint8_t cost;   /* enum object_probe_cost */
};

/* Bytes beyond the entry that are looked at. */
#define PLACE_SHIFT_MAX 64

/* Of longer functions no place is taken that a loop could pass, since not all is looked at. */
#define PLACE_BYTES_MAX 16384

/*
 * `code`: `bytes` bytes from the function's entry on, which lies at link-time `address`; `whole`:
 * they are all of the function. machine: EM_X86_64 or EM_AARCH64, whose functions are understood;
 * of any other the entry's cost is unknown. A return probe may stand at the same place.
 */
struct place place_function(const struct place_kernel *kernel, uint16_t machine,
			    const uint8_t *code, size_t bytes, bool whole, uint64_t address);

/*
 * The same of a function of Go, whose arguments are elsewhere. It looks first if there is room on
 * its stack, and begins anew when it was given more: the probe is behind that, if it begins so.
 */
struct place place_go(const struct place_kernel *kernel, uint16_t machine, const uint8_t *code,
		      size_t bytes, uint64_t address);

/* What a probe at exactly this instruction costs: of sites and USDT probes, which can't be moved.
 */
enum object_probe_cost place_cost(const struct place_kernel *kernel, uint16_t machine,
				  const uint8_t *code, size_t bytes, uint64_t address);

#endif

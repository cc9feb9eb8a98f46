/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code in this process: the function at an address, from the symbol table of its file.
 * Only with system calls, since dladdr() takes the loader's lock, which a thread that has crashed
 * may hold. What was found is kept for a second.
 */
#ifndef WAFFLE_USDT_FRAME_CODE_H
#define WAFFLE_USDT_FRAME_CODE_H

#include <stdint.h>

struct code_name {
	char function[96]; /* as in the symbol table, perhaps cut; "": unknown */
	char file[128];    /* program or library, its last bytes; "": unknown */
	uint64_t offset;   /* from the begin of the function, or the offset in the file */
};

/* Async-signal-safe. Without /proc nothing is known but the address, as `offset`. */
void code_find(uintptr_t pc, struct code_name *name);

#endif

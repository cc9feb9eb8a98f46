/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads texts from a process's memory whose addresses were arguments of calls. PyTorch registers
 * 24,000 kernels while it loads, each by a name, and these names are neighbours in memory. So the
 * image stays open from one text to the next, and several pages are read at once. These also answer
 * for other calls, if the calls were made before the pages were read.
 */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_HIT_TEXT_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_HIT_TEXT_H

#include <sys/types.h>

#include "kernel/kernel.h"

struct hit_text;

/* As in hit_image_open(), `kernel` may be NULL. NULL: out of memory. */
struct hit_text *hit_text_new(const struct kernel *kernel);
void hit_text_free(struct hit_text *texts);

/* A copy of the text at an address that the process passed at time `ts`; the caller frees it. NULL:
 * it can't be read, is longer than 4,095 bytes, the program is gone, or out of memory. */
char *hit_text_read(struct hit_text *texts, pid_t pid, uint64_t ts, uint64_t address);

/* The process has ended or runs another program: its image is not needed any more. */
void hit_text_forget(struct hit_text *texts, pid_t pid);

#endif

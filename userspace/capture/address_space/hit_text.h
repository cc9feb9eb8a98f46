/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in a process's memory to which calls pointed. A library that registers 24,000 kernels
 * passes as many texts, which lie side by side. So the image stays open from one text to the next,
 * and some pages are read at once. They serve the hits that were before.
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
 * it can't be read, is longer than 4,095 bytes, or the program is gone. */
char *hit_text_read(struct hit_text *texts, pid_t pid, uint64_t ts, uint64_t address);

/* The process has ended or runs another program: its image is not needed any more. */
void hit_text_forget(struct hit_text *texts, pid_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A stack frame as text. */
#ifndef WAFFLE_RENDER_TEXT_FRAME_H
#define WAFFLE_RENDER_TEXT_FRAME_H

#include <stdio.h>

#include "symbolize/stack_names.h"

/* Prints "queue_pop (shop.c:41) [inlined]" or "libfoo.so+0x1f20". Control characters are
 * replaced. */
void frame_put(FILE *out, const struct stack_frame *frame);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in Go. Their runtime moves goroutines between threads, so that a thread with nothing to
 * run says nothing about a goroutine. What can be known is what the program as a whole does, and
 * which answers of other processes it waits for.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_H

#include "analyze/why/why_walk_types.h"

void why_go_init(struct why_walk *walk);
/* Whether a thread belongs to a Go program, whose runtime runs changing goroutines on it. */
bool why_is_go(const struct why_walk *walk, uint32_t thread);
/* Whether a process is a Go program, by the files that were mapped. */
bool why_go_is_process(const struct model *model, struct stack_names *names, uint32_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of Python's multiprocessing managers. Such a process has a thread for each client, and
 * gives it the name of the client's process, so that it looks like that one.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_MANAGER_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_MANAGER_H

#include "analyze/why/why_walk_types.h"

/* The text in why.texts that a thread serves a client of a manager; 0: none of its stacks says so.
 */
uint32_t why_manager_text(struct why_walk *walk, uint32_t thread);

#endif

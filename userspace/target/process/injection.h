/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables by which NVIDIA's libraries load libwaffle-gpu into a program
 * (docs/gpu.md). They may also name the library of another tool.
 */
#ifndef WAFFLE_TARGET_PROCESS_INJECTION_H
#define WAFFLE_TARGET_PROCESS_INJECTION_H

#include <stdbool.h>

#define INJECTION_VARIABLES 3
/* CUDA's comes first. */
extern const char *const injection_variables[INJECTION_VARIABLES];

/* Whether a string of an environment, such as "NAME=value", sets one of them. */
bool injection_sets(const char *assignment);
/* Whether a value is a path of libwaffle-gpu, by its name. */
bool injection_is_ours(const char *value);

#endif

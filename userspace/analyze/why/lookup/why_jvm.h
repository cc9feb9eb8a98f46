/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the JVM. The JVM starts about twenty threads for itself. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_JVM_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_JVM_H

#include "model/model.h"
#include "symbolize/stack_names.h"

/* Whether a thread is the one that the process began with, and the program `java` runs main() in
 * another one: it only waits for the end of that. `names` as below. */
bool why_jvm_is_launcher(const struct model *model, struct stack_names *names, uint32_t thread);
/* Whether a thread is that one, or one that the JVM made for itself, by its name. A program may
 * give its own threads such names, but has no reason to. `names` may be NULL: then no process has
 * the JVM. */
bool why_jvm_is_own_thread(const struct model *model, struct stack_names *names, uint32_t thread);

#endif

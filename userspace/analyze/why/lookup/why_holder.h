/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_HOLDER_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_HOLDER_H

#include "store/host.h"
#include "store/store.h"
#include "target/process/pipe_ends.h"

/* A host's number of a process as the model has it; 0: no process has this number. */
static inline uint32_t why_pid_on_host(uint32_t host, uint32_t number)
{
	return store_pid_real(number) == number ? store_pid_of(host, number) : 0;
}

/* The only process that holds the other end of a pipe, or the lock of a file, as the descriptors of
 * all processes showed when the capture ended; 0: it is not known. `object` may be NULL. */
static inline uint32_t why_holder_pid(const struct store_object *object)
{
	return object ? why_pid_on_host(store_pid_host(object->pid),
					pipe_end_process(object->detail))
		      : 0;
}

#endif

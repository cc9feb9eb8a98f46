/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host by the names of OpenTelemetry's resources
 * (opentelemetry.io/docs/specs/semconv/resource), from /proc. */
#ifndef WAFFLE_EXPORT_PROCESS_RESOURCE_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_RESOURCE_INTERNAL_H

#include "target/process/container_id.h"
#include "target/process/rank.h"
#include "util/vec.h"

struct resource_process {
	uint32_t pid;
	char executable[128];               /* empty: unknown */
	char container[CONTAINER_ID_BYTES]; /* empty: none, or unknown */
	struct process_rank rank;
};

/* Processes as they were when they last could be read: their last spans come after their end. */
struct resource_cache {
	VEC(struct resource_process) list;
};

/* What is known of a process. `cache` may be NULL. */
void resource_find(struct resource_process *found, struct resource_cache *cache, uint32_t pid);
void resource_cache_free(struct resource_cache *cache);

#endif

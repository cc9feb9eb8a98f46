/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from /proc what an OpenTelemetry resource (opentelemetry.io/docs/specs/semconv/resource)
 * says of a process of this host. */
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

/* Keeps what was last read of each process, since the last spans of a process are sent after its
 * end. */
struct resource_cache {
	VEC(struct resource_process) list;
};

/* Reads a process, or takes what the cache has if it has ended. `cache` may be NULL. */
void resource_find(struct resource_process *found, struct resource_cache *cache, uint32_t pid);
void resource_cache_free(struct resource_cache *cache);

#endif

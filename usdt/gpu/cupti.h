/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI, NVIDIA's library that reports what GPUs did. A process may have one copy of it, since its
 * state is in the driver: so the copy that the process has loaded is used, and one is only loaded
 * if there is none.
 */
#ifndef WAFFLE_USDT_GPU_CUPTI_H
#define WAFFLE_USDT_GPU_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "usdt/gpu/cupti_abi.h"

/* Its functions, named as CUPTI names them without the prefix. Those of the second part may be
 * NULL: CUPTI has them from some version on. All return a CUptiResult. */
struct cupti_functions {
	int (*GetVersion)(uint32_t *version);
	int (*GetResultString)(int result, const char **text);
	int (*GetTimestamp)(uint64_t *ns);
	int (*GetCallbackName)(int domain, uint32_t cbid, const char **name);
	int (*Subscribe)(void **subscriber, cupti_callback callback, void *user);
	int (*Unsubscribe)(void *subscriber);
	int (*EnableCallback)(uint32_t on, void *subscriber, int domain, uint32_t cbid);
	int (*ActivityEnable)(int kind);
	int (*ActivityDisable)(int kind);
	int (*ActivityFlushAll)(uint32_t flag);
	int (*ActivityGetNextRecord)(uint8_t *buffer, size_t valid, uint8_t **record);
	int (*ActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *dropped);
	int (*ActivityRegisterCallbacks)(cupti_requested requested, cupti_completed completed);
	int (*ActivityRegisterTimestampCallback)(uint64_t (*now)(void));
	int (*Finalize)(void);

	int (*GetGraphId)(void *graph, uint32_t *id);
	int (*GetGraphExecId)(void *exec, uint32_t *id);
	int (*GetGraphNodeId)(void *node, uint64_t *id);
	int (*Subscribe_v2)(void **subscriber, cupti_callback callback, void *user,
			    struct cupti_subscriber *params);
	int (*ActivityEnable_v2)(void *subscriber, int kind, void *config);
	int (*ActivityDisable_v2)(void *subscriber, int kind, void *config);
	int (*ActivityGetNextRecord_v2)(void *subscriber, uint8_t *buffer, size_t valid,
					uint8_t **record);
	int (*ActivityGetNumDroppedRecords_v2)(void *subscriber, void *context, uint32_t stream,
					       size_t *dropped);
	int (*ActivityRegisterCallbacks_v2)(void *subscriber, cupti_requested_2 requested,
					    cupti_completed_2 completed);
};

struct cupti {
	struct cupti_functions call;
	uint32_t version;
	bool simulated; /* a stand-in of waffle */
};

/* The longest reason that cupti_open() and others write. */
#define CUPTI_REASON 256

/* Finds CUPTI, or loads it. Returns 0 or a negative errno with the reason. What was loaded stays.
 */
int cupti_open(struct cupti *cupti, char reason[CUPTI_REASON]);

/* Whether CUPTI has all functions with which several tools share it (CUDA 13.3). */
bool cupti_is_shared(const struct cupti *cupti);

/* "not supported (27)" */
void cupti_say(const struct cupti *cupti, int result, char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libwaffle-gpu knows of CUPTI's binary interface, in declarations of its own: the tree has no
 * header of NVIDIA. Numbers and offsets were read in the headers of CUDA 12.4, 12.9, 13.0 and 13.5.
 * A field has the same offset in each of these versions that has it. The records only grow at their
 * end, so records are read by offset and walked by cuptiActivityGetNextRecord() alone.
 */
#ifndef WAFFLE_USDT_GPU_CUPTI_ABI_H
#define WAFFLE_USDT_GPU_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* CUptiResult */
#define CUPTI_OK 0
#define CUPTI_IS_TAKEN 39 /* another subscriber is there */

/* cuptiGetVersion(): 18 is CUDA 12.0, 24 is 12.6, 28 is 12.9; from 13.0 on 130000 and so on. */
#define CUPTI_VERSION_OLDEST 18u
#define CUPTI_VERSION_FINALIZES 24u

/* CUpti_ActivityKind */
enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_CONTEXT = 9,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_MEMCPY_PEER = 22,
	CUPTI_SYNCHRONIZATION = 38,
	CUPTI_GRAPH_TRACE = 51,
	CUPTI_HOST_LAUNCH = 58, /* from 13.1 on */
};

/* CUpti_CallbackDomain */
enum cupti_domain { CUPTI_DRIVER_API = 1, CUPTI_RUNTIME_API = 2, CUPTI_RESOURCE = 3 };

/* CUpti_CallbackIdResource */
#define CUPTI_GRAPHNODE_CREATED 13u
#define CUPTI_GRAPHEXEC_CREATED 18u
#define CUPTI_GRAPHNODE_CLONED 20u

/* CUpti_ApiCallbackSite */
enum cupti_site { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };

/* CUpti_CallbackData */
struct cupti_call {
	int site;             /* enum cupti_site */
	const char *function; /* without the version: "cudaLaunchKernel" */
	const void *params;   /* the function's parameters, as members of a struct */
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};

/* CUpti_ResourceData */
struct cupti_resource {
	void *context;
	void *stream;
	const void *descriptor; /* of graphs a struct cupti_graph */
};

/* CUpti_GraphData */
struct cupti_graph {
	void *graph, *original_graph;
	void *node, *original_node;
	int node_type;
	void *dependency;
	void *exec;
};

/* CUpti_SubscriberParams, from 13.3 on */
struct cupti_subscriber {
	size_t size; /* up to the padding */
	const char *name;
	char *old_name; /* who holds CUPTI, written after CUPTI_IS_TAKEN */
	size_t old_name_size;
	uint8_t allow_others;
	uint8_t padding[7];
};
#define CUPTI_SUBSCRIBER_SIZE sizeof(struct cupti_subscriber)
#define CUPTI_OLD_NAME_SIZE 64

typedef void (*cupti_callback)(void *user, int domain, uint32_t cbid, const void *data);
typedef void (*cupti_requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				size_t valid);
/* Those of the interface for several subscribers have information that we don't need. */
typedef void (*cupti_requested_2)(uint8_t **buffer, size_t *size, size_t *records_max, void *info);
typedef void (*cupti_completed_2)(uint8_t *buffer, size_t size, size_t valid, void *info);

/* Bytes of a record that have all fields that are read. Every version's records have more. */
enum cupti_bytes {
	CUPTI_KERNEL_BYTES = 160,
	CUPTI_MEMCPY_BYTES = 76,
	CUPTI_PEER_BYTES = 84,
	CUPTI_MEMSET_BYTES = 76,
	CUPTI_SYNCHRONIZATION_BYTES = 40,
	CUPTI_GRAPH_BYTES = 40,
	CUPTI_HOST_BYTES = 48,
	CUPTI_CONTEXT_BYTES = 12,
};

#endif

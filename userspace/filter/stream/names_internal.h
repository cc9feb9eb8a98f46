/* SPDX-License-Identifier: Apache-2.0 */
/* The present names of threads, for `comm`. */
#ifndef WAFFLE_FILTER_STREAM_NAMES_INTERNAL_H
#define WAFFLE_FILTER_STREAM_NAMES_INTERNAL_H

#include "bpf/record.h"
#include "util/map.h"
#include "util/vec.h"

struct stream_name {
	uint64_t thread; /* tgid << 32 | tid */
	char comm[WAFFLE_COMM_BYTES];
};

struct stream_names {
	VEC(struct stream_name) list;
	VEC(uint32_t) free; /* entries of threads that have ended */
	struct map by_thread;
	uint32_t cursor; /* the next entry to use again when all are taken */
};

/* A name that finds no memory is forgotten. */
void stream_name_set(struct stream_names *names, uint64_t thread,
		     const char comm[WAFFLE_COMM_BYTES]);
/* NULL: it is not known. */
const char *stream_name_get(const struct stream_names *names, uint64_t thread);
void stream_name_remove(struct stream_names *names, uint64_t thread);
void stream_names_free(struct stream_names *names);

#endif

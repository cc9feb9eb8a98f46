/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Back along a program's own links, from an event or span to what it says caused it, and what
 * caused that, to the roots: where the NaN came from.
 *
 * What has no link of its own may have happened inside a span that has: then the walk goes on from
 * the innermost such span around it.
 */
#ifndef WAFFLE_ANALYZE_ORIGIN_H
#define WAFFLE_ANALYZE_ORIGIN_H

#include "model/model.h"

enum origin_via {
	ORIGIN_START,  /* what was asked for */
	ORIGIN_LINK,   /* the node above is linked to it as its cause */
	ORIGIN_INSIDE, /* the node above happened in it */
};
extern const char *const origin_via_names[];

struct origin_node {
	uint64_t id;
	uint64_t
		record; /* its number in the file, once origin_find_records() was called; 0: none */
	uint32_t index; /* in model.spans or model.events; MODEL_NONE: not in the capture */
	uint32_t depth; /* the node above is the last one before it that is one less deep */
	uint8_t kind;   /* enum model_node_kind */
	uint8_t via;    /* enum origin_via */
	bool root;      /* nothing leads further */
	bool repeated;  /* its causes are told where it came first */
};

struct origin {
	const struct model *model;
	VEC(struct origin_node) nodes;
};

/* -ENOMEM with a message. */
int origin_new(struct origin **origin, const struct model *model, enum model_node_kind kind,
	       uint32_t index, struct error *err);
/* Finds the numbers of the nodes' records, by reading the capture once more. */
int origin_find_records(struct origin *origin, struct error *err);
void origin_free(struct origin *origin);

#endif

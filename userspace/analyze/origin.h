/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a program's own links backwards: from an event or span to its causes, to their causes,
 * and so on to the roots. It answers questions such as "where did the NaN come from".
 *
 * A node without links may lie inside a span that has some. Then the walk continues from the
 * innermost such span.
 */
#ifndef WAFFLE_ANALYZE_ORIGIN_H
#define WAFFLE_ANALYZE_ORIGIN_H

#include "model/model.h"

enum origin_via {
	ORIGIN_START,  /* the node to explain */
	ORIGIN_LINK,   /* cause of the node above, by a link */
	ORIGIN_INSIDE, /* span around the node above */
};
extern const char *const origin_via_names[];

struct origin_node {
	uint64_t id;
	/* Record number in the file, after origin_find_records(); 0: none. */
	uint64_t record;
	uint32_t index; /* in model.spans or model.events; MODEL_NONE: not in the capture */
	/* The node above is the last one before this with a depth of one less. */
	uint32_t depth;
	uint8_t kind;  /* enum model_node_kind */
	uint8_t via;   /* enum origin_via */
	bool root;     /* it has no causes */
	bool repeated; /* its causes follow its first occurrence */
};

struct origin {
	const struct model *model;
	VEC(struct origin_node) nodes;
};

/* The caller frees the result with origin_free(); the model must outlive it. Returns 0 or -ENOMEM
 * with a message. */
int origin_new(struct origin **origin, const struct model *model, enum model_node_kind kind,
	       uint32_t index, struct error *err);
/* Finds the record numbers of the nodes by reading the capture again. Returns 0 or a negative errno
 * with a message. */
int origin_find_records(struct origin *origin, struct error *err);
void origin_free(struct origin *origin);

#endif

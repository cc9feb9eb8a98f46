/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a chain: processors with their options, separated by commas.
 *
 *	chain     = processor { "," processor }
 *	processor = name [ "(" option { "," option } ")" ]
 *	option    = [ name "=" ] value
 *	value     = "…" | '…' | any characters but , ( ) and quotes, and parentheses in pairs
 *
 * filter() takes all between its parentheses as an expression.
 */
#ifndef WAFFLE_EXPORT_PROCESS_CHAIN_TEXT_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_CHAIN_TEXT_INTERNAL_H

#include "export/process/processor_internal.h"
#include "util/vec.h"

#define CHAIN_TEXT_MAX (16u << 10) /* bytes */
#define CHAIN_PROCESSORS_MAX 32

struct chain_stage {
	const struct processor_type *type;
	void *config; /* of the type's config_bytes */
};

struct chain_stages {
	VEC(struct chain_stage) stages;
};

/* Parses a text. On an error, the message points at its place (util/source.h). Frees nothing that
 * it did not make; chain_stages_free() is for both cases. */
int chain_text_parse(struct chain_stages *stages, const char *origin, const char *text,
		     struct error *err);
/* The stage with defaults for all options. NULL: out of memory. */
struct chain_stage *chain_stages_insert(struct chain_stages *stages, size_t at,
					const struct processor_type *type);
void chain_stages_free(struct chain_stages *stages);

#endif

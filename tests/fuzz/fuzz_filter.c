// SPDX-License-Identifier: Apache-2.0
/*
 * Any text as a filter expression. A parsed expression meets the guarantees of
 * filter/expr_internal.h. A rejected one has a message that is safe for a terminal.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "util/utf8.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINE_COLUMNS 100

static void check_nodes(const struct filter_expr *filter)
{
	size_t leaves = 0;

	require(filter->root < filter->nodes.len);
	for (size_t i = 0; i < filter->nodes.len; i++) {
		const struct filter_node *node = &filter->nodes.data[i];

		switch (node->type) {
		case FILTER_AND:
		case FILTER_OR:
			require(node->left < i && node->right < i);
			continue;
		case FILTER_NOT:
			require(node->left < i);
			continue;
		case FILTER_TEST:
			require(node->predicate < filter->predicates.len);
			break;
		case FILTER_SAMPLE:
			require(node->keep && node->keep <= node->of);
			break;
		case FILTER_TRUE:
		case FILTER_FALSE:
			break;
		}
		leaves++;
	}
	require(leaves <= FILTER_OPERANDS_MAX);
}

static void check_literal(const struct filter_literal *literal, enum filter_op op)
{
	bool pattern = op == FILTER_MATCH || op == FILTER_NOT_MATCH;

	require(pattern == (literal->glob != NULL));
	require(!pattern || literal->type == FILTER_LITERAL_TEXT);
	require((literal->text != NULL) == (literal->type == FILTER_LITERAL_TEXT));
	switch (literal->type) {
	case FILTER_LITERAL_INTEGER:
		require(!literal->negative ||
			(literal->magnitude && literal->magnitude <= 1ull << 63));
		break;
	case FILTER_LITERAL_FLOAT:
		require(isfinite(literal->f64));
		break;
	case FILTER_LITERAL_TEXT:
		require(literal->text_len <= FILTER_TEXT_MAX);
		require(strlen(literal->text) == literal->text_len);
		break;
	case FILTER_LITERAL_BOOL:
		require(literal->magnitude <= 1);
		break;
	case FILTER_LITERAL_KIND:
		require(literal->magnitude < FILTER_KIND_COUNT);
		break;
	}
}

static void check_predicates(const struct filter_expr *filter)
{
	uint32_t literal = 0;

	require(filter->predicates.len <= FILTER_PREDICATES_MAX);
	for (size_t i = 0; i < filter->predicates.len; i++) {
		const struct filter_predicate *predicate = &filter->predicates.data[i];

		require(predicate->field < FILTER_FIELD_COUNT && predicate->op < FILTER_OP_COUNT);
		require((predicate->field == FILTER_KV) == (predicate->key != NULL));
		require(predicate->literal == literal && predicate->count);
		require(predicate->count == 1 || predicate->op == FILTER_IN);
		require(predicate->count <= FILTER_LITERALS_MAX);
		require(predicate->from < predicate->to);
		require(predicate->to <= strlen(filter->source));
		for (uint32_t n = 0; n < predicate->count; n++)
			check_literal(&filter->literals.data[literal + n], predicate->op);
		literal += predicate->count;
	}
	require(literal == filter->literals.len);
}

/* A line, or a line followed by the source and carets below it. */
static void check_message(const char *message)
{
	size_t columns = 0, line = 0;

	require(message[0] && strlen(message) < sizeof(((struct error *)0)->message) - 1);
	require(utf8_valid(message, strlen(message)) == strlen(message));
	for (; *message; message++) {
		if (*message == '\n') {
			columns = 0;
			line++;
			continue;
		}
		require((unsigned char)*message >= ' ' && *message != 0x7f);
		require(line < 2 || *message == ' ' || *message == '^' || *message == '~');
		columns += (*message & 0xc0) != 0x80;
		require(!line || columns <= LINE_COLUMNS);
	}
	require(line == 0 || line == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct filter_expr *filter;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (filter_parse(&filter, "--filter", text, &err)) {
		require(!filter);
		check_message(err.message);
	} else {
		require(!strcmp(filter_source(filter), text));
		check_nodes(filter);
		check_predicates(filter);
		require(!filter->rate.unit_ns || filter->rate.count);
		filter_wants_sched(filter);
		filter_free(filter);
	}
	free(text);
	return 0;
}

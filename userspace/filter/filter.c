// SPDX-License-Identifier: Apache-2.0
#include "filter/filter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/input.h"

/* A result, as far as it is known. */
enum truth { NO, YES, MAYBE };

/* A NULL `path` means standard input. */
static int parse_file(struct filter_expr **filter, const char *origin, const char *path,
		      struct error *err)
{
	/* One byte more than an expression may have. */
	const size_t max = FILTER_SOURCE_MAX + 1;
	const char *name = path ? path : "standard input";
	char *text = malloc(max + 1);
	ssize_t len = -ENOMEM;
	int result;

	if (text)
		len = path ? input_read(path, text, max) : input_read_fd(STDIN_FILENO, text, max);
	if (len < 0) {
		result = error_set(err, (int)-len, "%s: %s: %s", origin, name,
				   input_error((int)-len));
	} else if (len > FILTER_SOURCE_MAX) {
		result = error_set(err, EFBIG, "%s: %s: more than the %d bytes of an expression",
				   origin, name, FILTER_SOURCE_MAX);
	} else if (memchr(text, '\0', (size_t)len)) {
		result = error_set(err, EINVAL, "%s: %s: not a text file, it has a NUL byte",
				   origin, name);
	} else {
		text[len] = '\0';
		result = filter_parse(filter, name, text, err);
	}
	free(text);
	return result;
}

int filter_open(struct filter_expr **filter, const char *origin, const char *argument,
		struct error *err)
{
	const char *name = argument + 1;

	*filter = NULL;
	if (argument[0] != '@')
		return filter_parse(filter, origin, argument, err);
	if (!*name)
		return error_set(err, EINVAL,
				 "%s: '@' without a file: expected @FILE, or @- for standard input",
				 origin);
	return parse_file(filter, origin, strcmp(name, "-") != 0 ? name : NULL, err);
}

bool filter_uses(const struct filter_expr *filter, enum filter_field field)
{
	for (size_t i = 0; i < filter->predicates.len; i++)
		if (filter->predicates.data[i].field == field)
			return true;
	return false;
}

bool filter_samples(const struct filter_expr *filter)
{
	for (size_t i = 0; i < filter->nodes.len; i++)
		if (filter->nodes.data[i].type == FILTER_SAMPLE)
			return true;
	return false;
}

bool filter_asks_sites_only(const struct filter_expr *filter)
{
	for (size_t i = 0; i < filter->predicates.len; i++)
		if (!filter_fields[filter->predicates.data[i].field].at_site)
			return false;
	return !filter_samples(filter) && !filter->rate.unit_ns;
}

static enum truth predicate_for_sched(const struct filter_expr *filter,
				      const struct filter_predicate *predicate)
{
	bool found = false;

	if (predicate->field != FILTER_KIND)
		return MAYBE;
	for (uint32_t i = 0; i < predicate->count; i++)
		if (filter->literals.data[predicate->literal + i].magnitude == FILTER_KIND_SCHED)
			found = true;
	return found == (predicate->op != FILTER_NE) ? YES : NO;
}

static enum truth node_for_sched(const struct filter_expr *filter, uint32_t index)
{
	const struct filter_node *node = &filter->nodes.data[index];
	enum truth left, right, decides;

	switch (node->type) {
	case FILTER_TRUE:
		return YES;
	case FILTER_FALSE:
		return NO;
	case FILTER_TEST:
		return predicate_for_sched(filter, &filter->predicates.data[node->predicate]);
	case FILTER_NOT:
		left = node_for_sched(filter, node->left);
		return left == MAYBE ? MAYBE : left == YES ? NO : YES;
	case FILTER_AND:
	case FILTER_OR:
		decides = node->type == FILTER_AND ? NO : YES;
		left = node_for_sched(filter, node->left);
		right = node_for_sched(filter, node->right);
		if (left == decides || right == decides)
			return decides;
		return left == MAYBE ? left : right;
	case FILTER_SAMPLE:
		break;
	}
	return MAYBE;
}

bool filter_wants_sched(const struct filter_expr *filter)
{
	return node_for_sched(filter, filter->root) != NO;
}

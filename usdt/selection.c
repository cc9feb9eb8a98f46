// SPDX-License-Identifier: Apache-2.0
#include "usdt/selection.h"

#include <stdlib.h>

#include "filter/filter.h"
#include "filter/split.h"

struct selection {
	struct filter_expr *filter; /* NULL: everything */
	struct filter_rate_state rate;
};

int selection_open(struct selection **selection, const char *text, struct error *err)
{
	static const enum filter_field later[] = {FILTER_DUR, FILTER_DEPTH, FILTER_PARENT_NAME};
	struct selection *made = calloc(1, sizeof(*made));
	int result = 0;

	*selection = NULL;
	if (!made)
		return error_set(err, ENOMEM, "WAFFLE_FILTER: out of memory");
	if (text)
		result = filter_parse(&made->filter, "WAFFLE_FILTER", text, err);
	for (unsigned i = 0; text && !result && i < sizeof(later) / sizeof(later[0]); i++)
		if (filter_uses(made->filter, later[i]))
			result = error_set(err, EINVAL,
					   "WAFFLE_FILTER: %s can't be used while a program "
					   "records itself; filter the file instead",
					   filter_fields[later[i]].name);
	if (result)
		selection_free(made);
	else
		*selection = made;
	return result;
}

void selection_free(struct selection *selection)
{
	if (!selection)
		return;
	if (selection->filter)
		filter_free(selection->filter);
	free(selection);
}

const char *selection_text(const struct selection *selection)
{
	return selection->filter ? filter_source(selection->filter) : "";
}

enum selection_use selection_site(const struct selection *selection, const struct site_info *site)
{
	enum selection_use use = SELECTION_ASKS;
	struct residual residual = {0};

	if (!selection->filter)
		return SELECTION_ALWAYS;
	if (residual_make(&residual, selection->filter, site) && residual.nodes.len) {
		enum filter_node_type root = residual.nodes.data[residual.nodes.len - 1].type;

		if (root == FILTER_FALSE)
			use = SELECTION_NEVER;
		else if (root == FILTER_TRUE && !selection->filter->rate.unit_ns)
			use = SELECTION_ALWAYS;
	}
	residual_free(&residual);
	return use;
}

bool selection_takes(struct selection *selection, const struct filter_subject *subject, uint64_t ts)
{
	const struct filter_rate *rate = &selection->filter->rate;

	return filter_eval(selection->filter, subject) == FILTER_YES &&
	       (!rate->unit_ns || filter_rate_take(rate, &selection->rate, ts));
}

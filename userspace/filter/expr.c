// SPDX-License-Identifier: Apache-2.0
#include "filter/expr_internal.h"

#include <stdlib.h>

void filter_free(struct filter_expr *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->predicates.len; i++)
		free(filter->predicates.data[i].key);
	for (size_t i = 0; i < filter->literals.len; i++) {
		free(filter->literals.data[i].text);
		glob_free(filter->literals.data[i].glob);
	}
	vec_free(&filter->nodes);
	vec_free(&filter->predicates);
	vec_free(&filter->literals);
	free(filter->source);
	free(filter);
}

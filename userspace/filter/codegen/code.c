// SPDX-License-Identifier: Apache-2.0
#include "filter/codegen/code.h"

#include <string.h>

void filter_code_free(struct filter_code *code)
{
	vec_free(&code->insns);
	vec_free(&code->relocs);
	vec_free(&code->table);
}

static bool same(const void *a, size_t a_len, const void *b, size_t b_len, size_t size)
{
	return a_len == b_len && (!a_len || !memcmp(a, b, a_len * size));
}

bool filter_code_equal(const struct filter_code *a, const struct filter_code *b)
{
	return same(a->insns.data, a->insns.len, b->insns.data, b->insns.len,
		    sizeof(*a->insns.data)) &&
	       same(a->relocs.data, a->relocs.len, b->relocs.data, b->relocs.len,
		    sizeof(*a->relocs.data)) &&
	       same(a->table.data, a->table.len, b->table.data, b->table.len,
		    sizeof(*a->table.data));
}

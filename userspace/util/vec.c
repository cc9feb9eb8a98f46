// SPDX-License-Identifier: Apache-2.0
#include "util/vec.h"

#include <stdint.h>
#include <stdlib.h>

bool vec_grow_(void **data, size_t *cap, size_t len, size_t count, size_t size)
{
	size_t want = *cap ? *cap + *cap / 2 + 1 : 16;
	void *grown;

	/* No object is larger, and sanitizers take such a request for an error. */
	if (count > PTRDIFF_MAX / size - len)
		return false;
	if (want < len + count)
		want = len + count;
	if (want > PTRDIFF_MAX / size)
		return false;
	grown = realloc(*data, want * size);
	if (!grown)
		return false;
	*data = grown;
	*cap = want;
	return true;
}

void vec_free_(void **data, size_t *len, size_t *cap)
{
	free(*data);
	*data = NULL;
	*len = 0;
	*cap = 0;
}

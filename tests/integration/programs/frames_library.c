// SPDX-License-Identifier: Apache-2.0
/* A library that frames.c opens and closes. */
#include <waffle_macros.h>

void library_extract(waffle_context_t *context);

void library_extract(waffle_context_t *context)
{
	FRAME();
	*context = waffle_context_extract();
}

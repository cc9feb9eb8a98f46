/* SPDX-License-Identifier: Apache-2.0 */
/* The second translation unit: the same inline functions, and a site of its own. */
// clang-format off
#include "inline.h"

/* IN second */
void second(int n)
{
	WAFFLE_SPAN("second", KV_I64("n", n)); /* SITE span "second" "n":i64 */
	inline_span(forced(n));
	inline_event("second");
}

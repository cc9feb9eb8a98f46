/* SPDX-License-Identifier: Apache-2.0 */
/* The second C++ translation unit: instantiates the same templates and inline functions. */
// clang-format off
#include "classes.hpp"

/* IN second */
void second(int n)
{
	WAFFLE_SPAN("second", KV_I64("n", n)); /* SITE span "second" "n":i64 */
	inline_span(forced(n));
	inline_event("second");
	shared_inline(n);
	sink = pick(2, 3) + pick(n, 'c') + fold(n, n) + fold(1) + Box<int>{n}.get();
	sink = (Widget(1) + Widget(2)).method(3);
}

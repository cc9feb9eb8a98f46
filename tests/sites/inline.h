/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites in functions that several translation units share, in C and C++.
 *
 * In all files of this folder a comment behind a use says what must be read back from the ELF file:
 *	SITE[+lines] kind "name" "key":type …
 * where +lines allows the site's line to be up to so many lines further down (compilers differ for
 * a use that spans lines). IN names the function that encloses the sites that follow, CATEGORY
 * their category. SITE? is a site in code that a linker may drop.
 */
// clang-format off
#ifndef TESTS_SITES_INLINE_H
#define TESTS_SITES_INLINE_H

#include <stddef.h>
#include <waffle_macros.h>

extern volatile int sink;

/* IN inline_span */
static inline void inline_span(int n)
{
	WAFFLE_SPAN("inline span", KV_I64("n", n)); /* SITE span "inline span" "n":i64 */
	sink = sink + n;
}

/* IN inline_event */
static inline waffle_event_id_t inline_event(const char *text)
{
	return WAFFLE_EVENT("inline event", KV_STR("text", text)); /* SITE event "inline event" "text":str */
}

/* IN forced */
static inline __attribute__((always_inline)) int forced(int n)
{
	WAFFLE_SPAN("forced", KV_I64("n", n), KV_BOOL("odd", n & 1)); /* SITE span "forced" "n":i64 "odd":bool */
	WAFFLE_COUNTER("forced counter", n); /* SITE counter "forced counter" "value":number */
	return n + 1;
}

void second(int n);

#endif

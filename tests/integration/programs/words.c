// SPDX-License-Identifier: Apache-2.0
/* A site of each kind in a program that has macros of common words (words.h), before or behind
 * waffle's headers. In C and C++. */
#include <stdio.h>
#ifdef WORDS_BEHIND
#include <waffle_macros.h>
#endif
#include "words.h"
#ifndef WORDS_BEHIND
#include <waffle_macros.h>
#endif

int main(void)
{
	waffle_event_id_t made;
	waffle_span_t begun;
	char header[WAFFLE_TRACEPARENT_SIZE];
	double half = 0.5;

	WAFFLE_SPAN("span", KV_I64("i64", hit), KV_U64("u64", line), KV_F64("f64", half),
		    KV_BOOL("bool", kind), KV_STR("str", STR), KV_PTR("ptr", (PTR)0));
	INJECT(waffle_context_extract());
	made = EVENT("event", KV_I64("min", min(9, probe)));
	begun = WAFFLE_BEGIN("begun", KV_CAUSE_EVENT(made), KV_CAUSE_SPAN(WAFFLE_SPAN_ID()));
	WAFFLE_COUNTER("counter", NUMBER);
	LOG_WARN("log", KV_U64("count", count));
	WAFFLE_END(begun);
	printf("%d\n", waffle_context_to_traceparent(waffle_context_extract(), header));
	return 0;
}

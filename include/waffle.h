/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waffle: spans and events in C and C++ that cost nothing until somebody looks.
 *
 *	#include <waffle.h>
 *
 *	void step(int n, const char *shard)
 *	{
 *		WAFFLE_SPAN("step", KV_I64("n", n), KV_STR("shard", shard));
 *		…
 *		if (loss > limit)
 *			WAFFLE_EVENT("loss too high", KV_F64("loss", loss));
 *	}	// the span ends here
 *
 * Header only: C11 or later with gcc or clang, C++17 or later; x86-64 and aarch64 Linux. Names
 * and keys are string literals; up to sixteen keys (waffle/kv.h) in any order. While nobody traces,
 * a macro tests one 16-bit counter and evaluates no argument (as assert() does under NDEBUG: they
 * must not have side effects that matter). `waffle-bpf attach --pid P` arms the sites of a running
 * process. With -DWAFFLE_DISABLE all of this is compiled away. docs/instrumenting.md is the guide.
 */
#ifndef WAFFLE_H
#define WAFFLE_H

#include "waffle/abi.h"
#include "waffle/context.h"
#include "waffle/kv.h"

/* The value of WAFFLE_EVENT: the result of a call may go unused without a warning, also where the
 * use is an argument of the program's own macro. */
static inline __attribute__((always_inline)) waffle_event_id_t
waffle_event_result_(waffle_event_id_t id)
{
	return id;
}

#ifndef WAFFLE_DISABLE

#include "waffle/emit.h"

/*
 * WAFFLE_SPAN(name, key…): a span from here to the end of the enclosing block, current in between.
 * It is a declaration: write it as a statement of a block, not as the body of an `if`.
 */
#define WAFFLE_SPAN(...)                                                                           \
	WAFFLE_CALL_(WAFFLE_SPAN_, WAFFLE_CAT_(waffle_, __COUNTER__), WAFFLE_NAME_(__VA_ARGS__),   \
		     __VA_ARGS__)

/*
 * waffle_span_t s = WAFFLE_BEGIN(name, key…); … WAFFLE_END(s): a span that ends elsewhere, on
 * another thread too. Its parent is the current span. It does not become current itself, since
 * others may begin and end while it is open: WAFFLE_INJECT(waffle_span_context(s)) does that where
 * it is wanted.
 */
#define WAFFLE_BEGIN(...)                                                                          \
	WAFFLE_CALL_(WAFFLE_BEGIN_, WAFFLE_CAT_(waffle_, __COUNTER__), WAFFLE_NAME_(__VA_ARGS__),  \
		     __VA_ARGS__)
#define WAFFLE_END(span) waffle_end_(span)

/* WAFFLE_EVENT(name, key…) → waffle_event_id_t: something that happened. The null id if dormant. */
#define WAFFLE_EVENT(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_EVENT, "event", __VA_ARGS__)

/* WAFFLE_LOG_INFO(message, key…) → waffle_event_id_t: an event with a severity. */
#define WAFFLE_LOG_INFO(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_INFO, "log", __VA_ARGS__)
#define WAFFLE_LOG_WARN(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_WARN, "log", __VA_ARGS__)
#define WAFFLE_LOG_ERROR(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_ERROR, "log", __VA_ARGS__)

/* WAFFLE_COUNTER(name, value): the value of something now; any integer or floating-point type. */
#define WAFFLE_COUNTER(name, ...)                                                                  \
	WAFFLE_CALL_(WAFFLE_COUNTER_, WAFFLE_CAT_(waffle_, __COUNTER__), name,                     \
		     (NUMBER, "value", (__VA_ARGS__)))

/* WAFFLE_SPAN_ID() → waffle_span_id_t of the current span; the null id outside any active span. */
#define WAFFLE_SPAN_ID() waffle_current_span_()

/* WAFFLE_INJECT(context): makes it current to the end of the block. The null context changes
 * nothing. */
#define WAFFLE_INJECT(...)                                                                         \
	struct waffle_injected_ WAFFLE_CAT_(waffle_, __COUNTER__)                                  \
		__attribute__((cleanup(waffle_injected_end_), unused)) =                           \
			waffle_inject_(__VA_ARGS__)

static inline void waffle_end_(waffle_span_t span)
{
	if (__builtin_expect(span.id != 0, 0))
		waffle_span_end_(span.id, span.probe);
}

static inline waffle_span_id_t waffle_current_span_(void)
{
	waffle_span_id_t id = {waffle_thread_.context.span_id};

	return id;
}

/* Parts of the macros above: `at` names the locals of one use, so that uses can be nested. */

#define WAFFLE_META_(name, ...) WAFFLE_META_HEAD_(name) WAFFLE_MAP_(WAFFLE_KEY_META_, __VA_ARGS__)

#define WAFFLE_TEST_(at, kind, usdt, name, ...)                                                    \
	int at##armed;                                                                             \
	const void *at##probe;                                                                     \
	WAFFLE_SITE_TEST_(at##armed, at##probe, kind, usdt, WAFFLE_META_(name, __VA_ARGS__))

#define WAFFLE_ARMED_(at) __builtin_expect(at##armed, 0)

#define WAFFLE_WORDS_(at, ...)                                                                     \
	unsigned long long at##words[] = {0, 0, 0, 0 WAFFLE_MAP_(WAFFLE_KEY_WORD_, __VA_ARGS__)}

#define WAFFLE_WORDS_COUNT_(at) (sizeof(at##words) / sizeof(at##words[0]))

/* Letters of the keys if one of them is a string, known at compile time. */
#define WAFFLE_TYPES_(...)                                                                         \
	(__builtin_strchr("" WAFFLE_MAP_(WAFFLE_KEY_LETTER_, __VA_ARGS__), WAFFLE_KEY_STR)         \
		 ? "" WAFFLE_MAP_(WAFFLE_KEY_LETTER_, __VA_ARGS__)                                 \
		 : (const char *)0)

/* The scope's storage is only written when armed; what the dormant path carries is one pointer. */
#define WAFFLE_SPAN_(at, name, ...)                                                                \
	struct waffle_scope_ at##scope;                                                            \
	struct waffle_scope_ *const at##open __attribute__((cleanup(waffle_scope_end_),            \
							    unused)) = __extension__({             \
		WAFFLE_TEST_(at, WAFFLE_SITE_SPAN, "span", name, __VA_ARGS__);                     \
		WAFFLE_ARMED_(at) ? __extension__({                                                \
			WAFFLE_WORDS_(at, __VA_ARGS__);                                            \
			waffle_scope_enter_(&at##scope, at##probe, name, at##words,                \
					    WAFFLE_WORDS_COUNT_(at), WAFFLE_TYPES_(__VA_ARGS__));  \
		})                                                                                 \
				  : (struct waffle_scope_ *)0;                                     \
	})

#define WAFFLE_BEGIN_(at, name, ...)                                                               \
	__extension__({                                                                            \
		waffle_span_t at##span = {0, 0, 0, (const void *)0};                               \
		WAFFLE_TEST_(at, WAFFLE_SITE_SPAN, "span", name, __VA_ARGS__);                     \
		if (WAFFLE_ARMED_(at)) {                                                           \
			WAFFLE_WORDS_(at, __VA_ARGS__);                                            \
			at##span = waffle_span_begin_(at##probe, name, at##words,                  \
						      WAFFLE_WORDS_COUNT_(at),                     \
						      WAFFLE_TYPES_(__VA_ARGS__));                 \
		}                                                                                  \
		at##span;                                                                          \
	})

#define WAFFLE_EVENT_KIND_(kind, usdt, ...)                                                        \
	WAFFLE_CALL_(WAFFLE_EVENT_, WAFFLE_CAT_(waffle_, __COUNTER__), kind, usdt,                 \
		     WAFFLE_NAME_(__VA_ARGS__), __VA_ARGS__)

#define WAFFLE_EVENT_(at, kind, usdt, name, ...)                                                   \
	__extension__({                                                                            \
		waffle_event_id_t at##event = {0};                                                 \
		WAFFLE_TEST_(at, kind, usdt, name, __VA_ARGS__);                                   \
		if (WAFFLE_ARMED_(at)) {                                                           \
			WAFFLE_WORDS_(at, __VA_ARGS__);                                            \
			at##event =                                                                \
				waffle_event_(at##probe, name, at##words, WAFFLE_WORDS_COUNT_(at), \
					      WAFFLE_TYPES_(__VA_ARGS__));                         \
		}                                                                                  \
		waffle_event_result_(at##event);                                                   \
	})

#define WAFFLE_COUNTER_(at, name, value)                                                           \
	__extension__({                                                                            \
		WAFFLE_TEST_(at, WAFFLE_SITE_COUNTER, "counter", name, name, value);               \
		if (WAFFLE_ARMED_(at)) {                                                           \
			WAFFLE_WORDS_(at, name, value);                                            \
			waffle_counter_(at##probe, name, at##words, WAFFLE_WORDS_COUNT_(at));      \
		}                                                                                  \
		(void)0;                                                                           \
	})

#else /* WAFFLE_DISABLE: no code, no data; arguments are compiled, never evaluated */

#define WAFFLE_UNUSED_(...)                                                                        \
	do {                                                                                       \
		if (0) {                                                                           \
			WAFFLE_MAP_(WAFFLE_KEY_UNUSED_, __VA_ARGS__)                               \
		}                                                                                  \
	} while (0)

#define WAFFLE_SPAN(...) WAFFLE_UNUSED_(__VA_ARGS__)
#define WAFFLE_BEGIN(...)                                                                          \
	__extension__({                                                                            \
		WAFFLE_UNUSED_(__VA_ARGS__);                                                       \
		(waffle_span_t){0, 0, 0, (const void *)0};                                         \
	})
#define WAFFLE_END(span) ((void)(span))
#define WAFFLE_EVENT(...)                                                                          \
	__extension__({                                                                            \
		WAFFLE_UNUSED_(__VA_ARGS__);                                                       \
		waffle_event_result_((waffle_event_id_t){0});                                      \
	})
#define WAFFLE_LOG_INFO(...) WAFFLE_EVENT(__VA_ARGS__)
#define WAFFLE_LOG_WARN(...) WAFFLE_EVENT(__VA_ARGS__)
#define WAFFLE_LOG_ERROR(...) WAFFLE_EVENT(__VA_ARGS__)
#define WAFFLE_COUNTER(name, ...) WAFFLE_UNUSED_(name, (NUMBER, "value", (__VA_ARGS__)))
#define WAFFLE_SPAN_ID() __extension__((waffle_span_id_t){0})
#define WAFFLE_INJECT(...) ((void)(__VA_ARGS__))

#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waffle: spans and events in C and C++ that cost nothing until somebody traces.
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
 * Header only. Requires C11 or later with gcc or clang, or C++17 or later, on x86-64 or aarch64
 * Linux. Names and keys are string literals. A use has up to sixteen keys (waffle/kv.h) in any
 * order.
 *
 * While nobody traces, a macro tests one 16-bit counter and evaluates no argument. So arguments
 * must not have side effects that matter, as with assert() and NDEBUG. `waffle-bpf attach --pid P`
 * arms the sites of a running process. With -DWAFFLE_DISABLE all of this is compiled away.
 * docs/instrumenting.md is the guide.
 */
#ifndef WAFFLE_H
#define WAFFLE_H

/*
 * The program may define macros of any name before or after the include. So all names here begin
 * with waffle or end in _. The exceptions are members that a program uses; macros of those names
 * are suspended inside this header.
 */
#pragma push_macro("carried")
#pragma push_macro("file")
#pragma push_macro("id")
#pragma push_macro("kind")
#pragma push_macro("line")
#pragma push_macro("name")
#pragma push_macro("offset")
#pragma push_macro("parent")
#pragma push_macro("probe")
#pragma push_macro("span_id")
#pragma push_macro("trace_hi")
#pragma push_macro("trace_lo")
#pragma push_macro("value")
#undef carried
#undef file
#undef id
#undef kind
#undef line
#undef name
#undef offset
#undef parent
#undef probe
#undef span_id
#undef trace_hi
#undef trace_lo
#undef value

#include "waffle/abi.h"
#include "waffle/context.h"
#include "waffle/frame.h"
#include "waffle/kv.h"
#include "waffle/mode.h"

/* Null ids. Not {0}: clang without optimisation would call memset() for it. */
static __inline__ __attribute__((__always_inline__)) waffle_event_id_t waffle_event_null_(void)
{
	waffle_event_id_t id_;

	id_.value = 0;
	return id_;
}

static __inline__ __attribute__((__always_inline__)) waffle_span_t waffle_span_null_(void)
{
	waffle_span_t span_;

	span_.id = span_.trace_hi = span_.trace_lo = 0;
	span_.probe = NULL;
	return span_;
}

/* The value of WAFFLE_EVENT. The result of a call may be unused without a warning, even if the use
 * is an argument of one of the program's macros. */
static __inline__ __attribute__((__always_inline__)) waffle_event_id_t
waffle_event_result_(waffle_event_id_t id_)
{
	return id_;
}

#ifndef WAFFLE_DISABLE

#include "waffle/emit.h"

/*
 * WAFFLE_SPAN(name, key…): a span from here to the end of the enclosing block. It is the current
 * span in between. This is a declaration: write it as a statement of a block, not as the body of an
 * `if`.
 */
#define WAFFLE_SPAN(...)                                                                           \
	WAFFLE_CALL_(WAFFLE_SPAN_, WAFFLE_CAT_(waffle_, __COUNTER__), WAFFLE_NAME_(__VA_ARGS__),   \
		     __VA_ARGS__)

/*
 * waffle_span_t s = WAFFLE_BEGIN(name, key…); … WAFFLE_END(s): a span that ends elsewhere, possibly
 * on another thread. Its parent is the current span. It does not become current itself, since other
 * spans may begin and end while it is open. To make it current, use
 * WAFFLE_INJECT(waffle_span_context(s)).
 */
#define WAFFLE_BEGIN(...)                                                                          \
	WAFFLE_CALL_(WAFFLE_BEGIN_, WAFFLE_CAT_(waffle_, __COUNTER__), WAFFLE_NAME_(__VA_ARGS__),  \
		     __VA_ARGS__)
#define WAFFLE_END(span) waffle_end_(span)

/* WAFFLE_EVENT(name, key…) → waffle_event_id_t: an event. While dormant it returns the null id. */
#define WAFFLE_EVENT(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_EVENT, "event", __VA_ARGS__)

/* WAFFLE_LOG_INFO(message, key…) → waffle_event_id_t: an event with a severity. In full mode an
 * error has one more key, "frames", with a backtrace (frame.h), if it has less than sixteen. */
#define WAFFLE_LOG_INFO(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_INFO, "log", __VA_ARGS__)
#define WAFFLE_LOG_WARN(...) WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_WARN, "log", __VA_ARGS__)
#define WAFFLE_LOG_ERROR(...)                                                                      \
	WAFFLE_EVENT_KIND_(WAFFLE_SITE_LOG_ERROR, "log",                                           \
			   __VA_ARGS__ WAFFLE_ADD_FRAMES_(__VA_ARGS__))

/* WAFFLE_COUNTER(name, value): the current value, of any integer or floating-point type. */
#define WAFFLE_COUNTER(name, ...)                                                                  \
	WAFFLE_CALL_(WAFFLE_COUNTER_, WAFFLE_CAT_(waffle_, __COUNTER__), name,                     \
		     (WAFFLE_ALWAYS_, WAFFLE_NUMBER_, "value", (__VA_ARGS__)))

/* WAFFLE_SPAN_ID() → waffle_span_id_t of the current span. The null id outside any active span. */
#define WAFFLE_SPAN_ID() waffle_current_span_()

/* WAFFLE_INJECT(context): makes the context current to the end of the block, unless it is null. */
#define WAFFLE_INJECT(...)                                                                         \
	WAFFLE_CALL_(WAFFLE_INJECT_, WAFFLE_CAT_(waffle_, __COUNTER__), __VA_ARGS__)

static __inline__ void waffle_end_(waffle_span_t span_)
{
	if (__builtin_expect(span_.id != 0, 0))
		waffle_span_end_(span_.id, span_.probe);
}

static __inline__ waffle_span_id_t waffle_current_span_(void)
{
	waffle_span_id_t id_ = {waffle_thread_get_()->context_.span_id};

	return id_;
}

/* Parts of the macros above. `at` prefixes the local names of a use, so that uses can be nested. */

#define WAFFLE_META_(name, ...)                                                                    \
	WAFFLE_META_HEAD_(name)                                                                    \
	WAFFLE_MAP_(WAFFLE_KEY_META_, ~, __VA_ARGS__)                                              \
	WAFFLE_MAP_(WAFFLE_KEY_DEBUG_META_, ~, __VA_ARGS__)

/* One more key behind those of an error, unless it has sixteen already. */
#define WAFFLE_ADD_FRAMES_(...)                                                                    \
	WAFFLE_COUNT2_(__VA_ARGS__, WAFFLE_ADD_NONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_,            \
		       WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_,         \
		       WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_,         \
		       WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_,         \
		       WAFFLE_ADD_ONE_, WAFFLE_ADD_ONE_, ~)                                        \
	()
#define WAFFLE_ADD_NONE_()
#define WAFFLE_ADD_ONE_() , KV_DEBUG(KV_STR("frames", WAFFLE_FRAMES_TEXT_))

#define WAFFLE_TEST_(at, kind, usdt, name, ...)                                                    \
	int at##armed;                                                                             \
	unsigned at##mode __attribute__((__unused__));                                             \
	const void *at##probe;                                                                     \
	WAFFLE_SITE_TEST_(at##armed, at##probe, kind, usdt, WAFFLE_META_(name, __VA_ARGS__))

/* The mode is read once, since another thread may set it meanwhile. */
#define WAFFLE_ARMED_(at)                                                                          \
	(__builtin_expect(at##armed, 0) && (at##mode = waffle_mode_here_()) != WAFFLE_MODE_OFF)
#define WAFFLE_IS_FULL_(at) (at##mode == WAFFLE_MODE_FULL)

/*
 * The words of a frame with these keys. The first four words are not written here, since the step
 * (emit.h) fills them in. WAFFLE_STEP_ writes the others and makes the step, in one expression. So
 * the temporaries to which values refer live until the probe was called: in C++ they die at the end
 * of their full expression. The variable `armed` counts the words, since one more would take stack.
 */
#define WAFFLE_WORDS_(at, count) unsigned long long at##words[count]
#define WAFFLE_WORDS_OF_(at, ...) WAFFLE_WORDS_(at, 4 + WAFFLE_COUNT_(__VA_ARGS__))
#define WAFFLE_STEP_(at, step, ...) (at##armed = 4, WAFFLE_PUT_(at, __VA_ARGS__) step)
#define WAFFLE_PUT_(at, ...)                                                                       \
	WAFFLE_MAP_(WAFFLE_KEY_WORD_, at, __VA_ARGS__)                                             \
	WAFFLE_MAP_(WAFFLE_KEY_DEBUG_WORD_, at, __VA_ARGS__)
/* Two arguments: the words, and their number. Only in full mode the debug keys, which are last,
 * count. */
#define WAFFLE_FRAME_(at, ...)                                                                     \
	at##words, WAFFLE_DEBUG_COUNT_(at, __VA_ARGS__) && !WAFFLE_IS_FULL_(at)                    \
			   ? 4 + WAFFLE_COUNT_(__VA_ARGS__) - WAFFLE_DEBUG_COUNT_(at, __VA_ARGS__) \
			   : 4 + WAFFLE_COUNT_(__VA_ARGS__)
#define WAFFLE_DEBUG_COUNT_(at, ...) (0 WAFFLE_MAP_(WAFFLE_KEY_DEBUG_ONE_, at, __VA_ARGS__))

/* The type letters of the keys that are recorded, if one of them is a string, else NULL. Known at
 * compile time, unless there are debug keys. */
#define WAFFLE_TYPES_(at, ...)                                                                     \
	((0 WAFFLE_MAP_(WAFFLE_KEY_OR_STR_, at, __VA_ARGS__)) ||                                   \
			 ((0 WAFFLE_MAP_(WAFFLE_KEY_OR_DEBUG_STR_, at, __VA_ARGS__)) &&            \
			  WAFFLE_IS_FULL_(at))                                                     \
		 ? (WAFFLE_DEBUG_COUNT_(at, __VA_ARGS__) && WAFFLE_IS_FULL_(at)                    \
			    ? "" WAFFLE_MAP_(WAFFLE_KEY_LETTER_, at, __VA_ARGS__)                  \
				      WAFFLE_MAP_(WAFFLE_KEY_DEBUG_LETTER_, at, __VA_ARGS__)       \
			    : "" WAFFLE_MAP_(WAFFLE_KEY_LETTER_, at, __VA_ARGS__))                 \
		 : (const char *)0)

/*
 * Follows a variable that a cleanup function reads at the end of the block. In C, gcc lets a goto
 * or case jump over its initialisation into the block, but not into the scope of a type of variable
 * size. This one costs nothing. Other compilers reject such jumps by themselves. The last
 * declaration takes the semicolon.
 */
#if defined(__clang__) || defined(__cplusplus)
#define WAFFLE_NO_JUMP_(at)
#else
#define WAFFLE_NO_JUMP_(at)                                                                        \
	;                                                                                          \
	_Pragma("GCC diagnostic push") _Pragma(                                                    \
		"GCC diagnostic ignored \"-Wvla\"") typedef char at##jump[(at##open != 0) + 1]     \
		__attribute__((__unused__));                                                       \
	_Pragma("GCC diagnostic pop") typedef char at##last __attribute__((__unused__))
#endif

/* The scope's storage is only written when armed. The dormant path only carries one pointer. */
#define WAFFLE_SPAN_(at, name, ...)                                                                \
	struct waffle_scope_ at##scope;                                                            \
	struct waffle_scope_ *const at##open __attribute__((__cleanup__(waffle_scope_end_),        \
							    __unused__)) = __extension__({         \
		WAFFLE_WORDS_OF_(at, __VA_ARGS__);                                                 \
		WAFFLE_TEST_(at, WAFFLE_SITE_SPAN, "span", name, __VA_ARGS__);                     \
		WAFFLE_ARMED_(at)                                                                  \
		? WAFFLE_STEP_(at,                                                                 \
			       WAFFLE_SCOPE_ENTER_(at##mode, at##probe,                            \
						   WAFFLE_FRAME_(at, __VA_ARGS__),                 \
						   WAFFLE_TYPES_(at, __VA_ARGS__), &at##scope),    \
			       __VA_ARGS__)                                                        \
		: (struct waffle_scope_ *)0;                                                       \
	}) WAFFLE_NO_JUMP_(at)

#define WAFFLE_INJECT_(at, ...)                                                                    \
	struct waffle_scope_ at##scope;                                                            \
	struct waffle_scope_ *const at##open                                                       \
		__attribute__((__cleanup__(waffle_inject_end_), __unused__)) =                     \
			waffle_inject_(&at##scope, __VA_ARGS__) WAFFLE_NO_JUMP_(at)

#define WAFFLE_BEGIN_(at, name, ...)                                                               \
	__extension__({                                                                            \
		waffle_span_t at##span = waffle_span_null_();                                      \
		WAFFLE_WORDS_OF_(at, __VA_ARGS__);                                                 \
		WAFFLE_TEST_(at, WAFFLE_SITE_SPAN, "span", name, __VA_ARGS__);                     \
		if (WAFFLE_ARMED_(at))                                                             \
			WAFFLE_STEP_(at,                                                           \
				     (void)(at##span = waffle_span_begin_(                         \
						    at##probe, WAFFLE_FRAME_(at, __VA_ARGS__),     \
						    WAFFLE_TYPES_(at, __VA_ARGS__))),              \
				     __VA_ARGS__);                                                 \
		at##span;                                                                          \
	})

#define WAFFLE_EVENT_KIND_(kind, usdt, ...)                                                        \
	WAFFLE_CALL_(WAFFLE_EVENT_, WAFFLE_CAT_(waffle_, __COUNTER__), kind, usdt,                 \
		     WAFFLE_NAME_(__VA_ARGS__), __VA_ARGS__)

#define WAFFLE_EVENT_(at, kind, usdt, name, ...)                                                   \
	__extension__({                                                                            \
		waffle_event_id_t at##event = waffle_event_null_();                                \
		WAFFLE_WORDS_OF_(at, __VA_ARGS__);                                                 \
		WAFFLE_TEST_(at, kind, usdt, name, __VA_ARGS__);                                   \
		if (WAFFLE_ARMED_(at))                                                             \
			WAFFLE_STEP_(at,                                                           \
				     (void)(at##event = waffle_event_(                             \
						    at##probe, WAFFLE_FRAME_(at, __VA_ARGS__),     \
						    WAFFLE_TYPES_(at, __VA_ARGS__))),              \
				     __VA_ARGS__);                                                 \
		waffle_event_result_(at##event);                                                   \
	})

/* The value of a counter takes two words. */
#define WAFFLE_COUNTER_(at, name, value)                                                           \
	__extension__({                                                                            \
		WAFFLE_WORDS_(at, 6);                                                              \
		WAFFLE_TEST_(at, WAFFLE_SITE_COUNTER, "counter", name, name, value);               \
		if (WAFFLE_ARMED_(at))                                                             \
			(at##armed = 4, WAFFLE_MAP_(WAFFLE_KEY_NUMBER_, at, name, value)           \
						waffle_counter_(at##probe, at##words, 6));         \
		(void)0;                                                                           \
	})

#else /* WAFFLE_DISABLE: no code, no data; arguments are compiled but never evaluated */

#define WAFFLE_UNUSED_(...)                                                                        \
	do {                                                                                       \
		if (0) {                                                                           \
			WAFFLE_MAP_(WAFFLE_KEY_UNUSED_, ~, __VA_ARGS__)                            \
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
#define WAFFLE_COUNTER(name, ...)                                                                  \
	WAFFLE_UNUSED_(name, (WAFFLE_ALWAYS_, WAFFLE_NUMBER_, "value", (__VA_ARGS__)))
#define WAFFLE_SPAN_ID() __extension__((waffle_span_id_t){0})
#define WAFFLE_INJECT(...) ((void)(__VA_ARGS__))

#endif

#pragma pop_macro("carried")
#pragma pop_macro("file")
#pragma pop_macro("id")
#pragma pop_macro("kind")
#pragma pop_macro("line")
#pragma pop_macro("name")
#pragma pop_macro("offset")
#pragma pop_macro("parent")
#pragma pop_macro("probe")
#pragma pop_macro("span_id")
#pragma pop_macro("trace_hi")
#pragma pop_macro("trace_lo")
#pragma pop_macro("value")

#endif

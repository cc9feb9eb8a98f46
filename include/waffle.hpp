/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waffle for C++17 and later: spans and events whose keys take their types from the values.
 *
 *	#include <waffle.hpp>
 *
 *	void Worker::step(const std::string &shard)
 *	{
 *		WAFFLE_SPAN("step", "rank", this->rank, "shard", shard);
 *		…
 *		if (std::isnan(loss))
 *			nan = WAFFLE_EVENT("loss is NaN", "loss", loss);
 *	}	// the span ends here
 *
 *	WAFFLE_SPAN("recover", Waffle::CausedBy(nan));
 *
 * Behind the name come keys, which are string literals, each followed by its value, and causes. A
 * use has up to sixteen of them. A value may be
 *
 *	an integer or enum               recorded with 64 bits
 *	a bool or floating point number
 *	a std::string, std::string_view or const char *
 *	                                 up to 256 bytes are recorded, to the first NUL
 *	a std::chrono::duration          an integer, in nanoseconds
 *	a pointer                        an address, never dereferenced
 *	a SpanId or EventId              its number
 *	a std::optional of these         without a value if it is empty
 *
 * waffle/span.hpp has spans as objects, and names that are made at run time. A value is evaluated
 * once if the site is armed, and not at all while nobody traces (waffle.h). The
 * keys of C (KV_I64 and others, waffle/kv.h) may be used as well. docs/cpp.md is the guide.
 */
#ifndef WAFFLE_HPP
#define WAFFLE_HPP

#include "waffle.h"

#include <functional>
#include <utility>

#include "waffle/frame.hpp"
#include "waffle/meta.hpp"
#include "waffle/span.hpp"
#include "waffle/values.hpp"
#include "waffle/variant.hpp"

namespace Waffle
{

/* The context to which new spans and events belong: a trace and its current span. Null outside any
 * span. It can be copied to other threads. */
class Context
{
      public:
	constexpr Context() : context_()
	{
	}
	constexpr Context(waffle_context_t context) : context_(context)
	{
	}
	constexpr operator waffle_context_t() const
	{
		return context_;
	}
	constexpr explicit operator bool() const
	{
		return context_.span_id != 0;
	}

      private:
	waffle_context_t context_;
};

inline namespace WAFFLE_VARIANT_
{

inline Context ExtractContext()
{
	return waffle_context_extract();
}

/* Makes a context current on this thread for as long as the object lives, unless it is null.
 * Objects end in the reverse order of their begins, as local variables do. */
class InjectContext
{
      public:
	explicit InjectContext(const Context &context)
	{
#ifdef WAFFLE_DISABLE
		(void)context;
#else
		waffle_inject_(&scope_, context);
#endif
	}
	~InjectContext()
	{
#ifndef WAFFLE_DISABLE
		waffle_scope_pop_(&scope_);
#endif
	}
	InjectContext(const InjectContext &) = delete;
	InjectContext &operator=(const InjectContext &) = delete;

      private:
#ifndef WAFFLE_DISABLE
	waffle_scope_ scope_;
#endif
};

inline Context Span::context() const
{
	return waffle_span_context(span_);
}

/* The id of the current span. Null outside any span. */
inline SpanId CurrentSpanId()
{
	return WAFFLE_SPAN_ID();
}

/*
 * Bind(function): a function object that calls `function` in the context of the call of Bind(). For
 * thread pools, executors and callbacks: pool.submit(Waffle::Bind([=] { work(item); })).
 * waffle/threads.hpp has std::thread and std::async with it.
 */
template <class F> auto Bind(F &&function)
{
	return [context = ExtractContext(), function = std::forward<F>(function)](
		       auto &&...arguments) mutable -> decltype(auto) {
		InjectContext inject(context);

		return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
	};
}

} // namespace WAFFLE_VARIANT_

} // namespace Waffle

namespace waffle = Waffle;

#if defined(__cpp_impl_coroutine) && __has_include(<coroutine>)
#include "waffle/task.hpp"
#endif

/* The keys of C, as pairs of a key and a value. */
#undef KV_I64
#undef KV_U64
#undef KV_F64
#undef KV_BOOL
#undef KV_STR
#undef KV_PTR
#undef KV_CAUSE_SPAN
#undef KV_CAUSE_EVENT
#define KV_I64(key, ...) key, (long long)(__VA_ARGS__)
#define KV_U64(key, ...) key, (unsigned long long)(__VA_ARGS__)
#define KV_F64(key, ...) key, (double)(__VA_ARGS__)
#define KV_BOOL(key, ...) key, ((__VA_ARGS__) ? true : false)
#define KV_STR(key, ...) key, (const char *)(__VA_ARGS__)
#define KV_PTR(key, ...) key, (const void *)(__VA_ARGS__)
/* A key that is evaluated and recorded in full mode only (waffle/mode.h). */
#undef KV_DEBUG
#define KV_DEBUG(...) WAFFLE_CALL_(WAFFLE_CPP_DEBUG_, __VA_ARGS__)
#define WAFFLE_CPP_DEBUG_(key, ...)                                                                \
	key, (waffle_mode_get() == WAFFLE_MODE_FULL                                                \
		      ? ::Waffle::Detail_::some_(__VA_ARGS__)                                      \
		      : decltype(::Waffle::Detail_::some_(__VA_ARGS__))())
#define KV_CAUSE_SPAN(...) ::Waffle::CausedBy(::Waffle::SpanId(__VA_ARGS__))
#define KV_CAUSE_EVENT(...) ::Waffle::CausedBy(::Waffle::EventId(__VA_ARGS__))

#undef WAFFLE_SPAN
#undef WAFFLE_BEGIN
#undef WAFFLE_EVENT
#undef WAFFLE_LOG_INFO
#undef WAFFLE_LOG_WARN
#undef WAFFLE_LOG_ERROR

#ifndef WAFFLE_DISABLE

/* WAFFLE_SPAN(name, key, value, …): a span from here to the end of the enclosing block, and the
 * current one in between. A declaration, as in C. */
#define WAFFLE_SPAN(...)                                                                           \
	WAFFLE_CALL_(WAFFLE_CPP_SPAN_, WAFFLE_CAT_(waffle_, __COUNTER__), __VA_ARGS__)

/* waffle_span_t s = WAFFLE_BEGIN(name, key, value, …); … WAFFLE_END(s); as in C. */
#define WAFFLE_BEGIN(...)                                                                          \
	WAFFLE_CALL_(WAFFLE_CPP_BEGIN_, WAFFLE_CAT_(waffle_, __COUNTER__), __VA_ARGS__)

/* WAFFLE_EVENT(name, key, value, …) → Waffle::EventId, null while dormant; may be unused. */
#define WAFFLE_EVENT(...) WAFFLE_CPP_KIND_(WAFFLE_SITE_EVENT, "event", __VA_ARGS__)
#define WAFFLE_LOG_INFO(...) WAFFLE_CPP_KIND_(WAFFLE_SITE_LOG_INFO, "log", __VA_ARGS__)
#define WAFFLE_LOG_WARN(...) WAFFLE_CPP_KIND_(WAFFLE_SITE_LOG_WARN, "log", __VA_ARGS__)
#define WAFFLE_LOG_ERROR(...)                                                                      \
	WAFFLE_CPP_KIND_(WAFFLE_SITE_LOG_ERROR, "log", __VA_ARGS__, "frames",                      \
			 ::Waffle::Detail_::Frames_())

/* Parts of the macros above; `at` prefixes the local names of a use. The functions of the local
 * struct return pointers, since clang 14 can't deduce their type in a template. */
#define WAFFLE_CPP_TEST_(at, kind, usdt, ...)                                                      \
	struct at##tag {                                                                           \
		static constexpr const char *name_()                                               \
		{                                                                                  \
			return WAFFLE_NAME_(__VA_ARGS__);                                          \
		}                                                                                  \
		static constexpr const char *file_()                                               \
		{                                                                                  \
			return __FILE__;                                                           \
		}                                                                                  \
		static constexpr const char *category_()                                           \
		{                                                                                  \
			return WAFFLE_CATEGORY;                                                    \
		}                                                                                  \
		static constexpr const char *arguments_()                                          \
		{                                                                                  \
			return #__VA_ARGS__;                                                       \
		}                                                                                  \
	};                                                                                         \
	/* Apart, since gcc allows no statement expression in an argument of a template. */        \
	using at##types = decltype(::Waffle::Detail_::arguments_of_(__VA_ARGS__));                 \
	using at##meta = ::Waffle::Detail_::Meta_<at##tag, at##types>;                             \
	int at##armed;                                                                             \
	unsigned at##mode __attribute__((__unused__));                                             \
	const void *at##probe;                                                                     \
	WAFFLE_SITE_TEST_(at##armed, at##probe, kind, usdt, at##meta::text_.chars_)

#define WAFFLE_CPP_SPAN_(at, ...)                                                                  \
	struct waffle_scope_ at##scope;                                                            \
	struct waffle_scope_ *const at##open __attribute__((__cleanup__(waffle_scope_end_),        \
							    __unused__)) = __extension__({         \
		WAFFLE_CPP_TEST_(at, WAFFLE_SITE_SPAN, "span", __VA_ARGS__);                       \
		WAFFLE_ARMED_(at)                                                                  \
		? ::Waffle::Detail_::scope_enter_of_(&at##scope, at##mode, at##probe, __VA_ARGS__) \
		: (struct waffle_scope_ *)nullptr;                                                 \
	})

#define WAFFLE_CPP_BEGIN_(at, ...)                                                                 \
	__extension__({                                                                            \
		waffle_span_t at##span = waffle_span_null_();                                      \
		WAFFLE_CPP_TEST_(at, WAFFLE_SITE_SPAN, "span", __VA_ARGS__);                       \
		if (WAFFLE_ARMED_(at))                                                             \
			at##span = ::Waffle::Detail_::span_begin_of_(at##probe, __VA_ARGS__);      \
		at##span;                                                                          \
	})

#define WAFFLE_CPP_KIND_(kind, usdt, ...)                                                          \
	WAFFLE_CALL_(WAFFLE_CPP_EVENT_, WAFFLE_CAT_(waffle_, __COUNTER__), kind, usdt, __VA_ARGS__)

#define WAFFLE_CPP_EVENT_(at, kind, usdt, ...)                                                     \
	__extension__({                                                                            \
		::Waffle::EventId at##event;                                                       \
		WAFFLE_CPP_TEST_(at, kind, usdt, __VA_ARGS__);                                     \
		if (WAFFLE_ARMED_(at))                                                             \
			at##event = ::Waffle::Detail_::event_of_(at##probe, __VA_ARGS__);          \
		::Waffle::Detail_::event_result_(at##event);                                       \
	})

#else /* WAFFLE_DISABLE: arguments are compiled and never evaluated */

namespace Waffle
{
namespace Detail_
{
template <class... A> void unused_(const A &...)
{
}
} // namespace Detail_
} // namespace Waffle

#define WAFFLE_CPP_UNUSED_(...)                                                                    \
	do {                                                                                       \
		if (0)                                                                             \
			::Waffle::Detail_::unused_(__VA_ARGS__);                                   \
	} while (0)

#define WAFFLE_SPAN(...) WAFFLE_CPP_UNUSED_(__VA_ARGS__)
#define WAFFLE_BEGIN(...)                                                                          \
	__extension__({                                                                            \
		WAFFLE_CPP_UNUSED_(__VA_ARGS__);                                                   \
		waffle_span_null_();                                                               \
	})
#define WAFFLE_EVENT(...)                                                                          \
	__extension__({                                                                            \
		WAFFLE_CPP_UNUSED_(__VA_ARGS__);                                                   \
		::Waffle::Detail_::event_result_(::Waffle::EventId());                             \
	})
#define WAFFLE_LOG_INFO(...) WAFFLE_EVENT(__VA_ARGS__)
#define WAFFLE_LOG_WARN(...) WAFFLE_EVENT(__VA_ARGS__)
#define WAFFLE_LOG_ERROR(...) WAFFLE_EVENT(__VA_ARGS__)

#endif

#endif

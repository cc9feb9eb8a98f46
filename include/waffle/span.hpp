/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans as objects, and names that are made at run time.
 *
 *	Waffle::Span request(WAFFLE_BEGIN("request", "id", id));   // a literal: any program
 *	Waffle::Span call(function->name, "line", line);           // needs libwaffle
 *	queue.push(std::move(request));                            // it ends with its object
 *
 * A Span may move to another thread, so it is not the current span of any: others become its
 * children by InjectContext(span.context()). WAFFLE_SPAN is for a block.
 *
 * While nobody records, a use tests one word, but its arguments are evaluated. Armed, it also looks
 * up its name (docs/cpp.md says what that costs).
 */
#ifndef WAFFLE_SPAN_HPP
#define WAFFLE_SPAN_HPP

#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../waffle_named.h"
#include "meta.hpp"
#include "values.hpp"
#include "variant.hpp"

namespace Waffle
{

class Context;

namespace Detail_
{

/* A name with the place of its use. */
struct Name_ {
	std::string_view text_;
	const char *file_, *function_;
	unsigned line_;

	template <class T, class = std::enable_if_t<is_text_<T>>>
	Name_(const T &text, const char *file = __builtin_FILE(),
	      const char *function = __builtin_FUNCTION(), unsigned line = __builtin_LINE())
	    : text_(text), file_(file), function_(function), line_(line)
	{
	}
};

#ifndef WAFFLE_DISABLE

template <class> inline constexpr bool is_optional_ = false;
template <class T> inline constexpr bool is_optional_<std::optional<T>> = true;

/* Tells whether a recording or a tracer wants records of names. */
inline bool named_recorded_()
{
	static const unsigned long long *const gate_ = waffle_named_gate();

	return __builtin_expect(__atomic_load_n(gate_, __ATOMIC_RELAXED) != 0, 0);
}

/* A text up to its first NUL, as everywhere. */
inline waffle_value_t named_text_(std::string_view text_)
{
	return waffle_str_of(text_.data(), text_.substr(0, text_.find('\0')).size());
}

template <class T> waffle_value_t named_value_(const T &value_)
{
	if constexpr (is_optional_<T>) {
		return value_ ? named_value_(*value_) : waffle_str(nullptr);
	} else if constexpr (is_text_<T> && std::is_pointer_v<std::decay_t<T>>) {
		return waffle_str(value_);
	} else if constexpr (is_text_<T>) {
		return named_text_(value_);
	} else {
		unsigned long long word_ = 0;
		typename Value_<T>::Text_ none_;

		Value_<T>::put_(&word_, value_, none_);
		return waffle_value_word_(Value_<T>::letter_, word_);
	}
}

/* The keys and values of a use, from arguments such as those of a macro. */
template <class... A> class Named_
{
	using All_ = Arguments_<std::remove_cv_t<A>...>;
	static_assert(
		All_::roles_.valid_,
		"waffle: after the name come keys, which are string literals, each followed by "
		"its value, and causes");
	static_assert(All_::roles_.keys_ <= WAFFLE_KEYS_MAX, "waffle: at most 16 keys");

      public:
	waffle_key_t keys_[All_::roles_.keys_ + 1] = {};
	waffle_value_t values_[All_::roles_.keys_ + 1] = {};
	unsigned count_ = 0;

	Named_(const A &...arguments_)
	{
		put_(std::index_sequence_for<A...>(), arguments_...);
	}

	/* The name, made or found. Its text is copied, since it need not end with a NUL. */
	waffle_name_t *name_(const Name_ &place_, int kind_) const
	{
		waffle_name_spec spec_ = {};
		char text_[WAFFLE_NAME_MAX + 1];
		std::size_t size_ = place_.text_.copy(text_, WAFFLE_NAME_MAX);

		text_[size_] = '\0';
		spec_.size = sizeof(spec_);
		spec_.kind = kind_;
		spec_.name = text_;
		spec_.file = place_.file_;
		spec_.function = place_.function_;
		spec_.line = place_.line_;
		spec_.keys = keys_;
		spec_.key_count = count_;
		return waffle_name(&spec_);
	}

      private:
	template <std::size_t... index_>
	void put_(std::index_sequence<index_...>, [[maybe_unused]] const A &...arguments_)
	{
		(put_one_<index_>(arguments_), ...);
	}
	template <std::size_t index_, class T> void put_one_(const T &argument_)
	{
		constexpr Role_ role_ = All_::roles_.of_[index_];

		if constexpr (role_ == Role_::key_) {
			keys_[count_].name = argument_;
		} else {
			keys_[count_].type = Value_<std::remove_cv_t<T>>::letter_;
			values_[count_++] = named_value_(argument_);
		}
	}
};

#endif

} // namespace Detail_

inline namespace WAFFLE_VARIANT_
{

/* A span that ends when its object does, or with End(). It may be moved, also to other threads, but
 * is not to be used by two at once. Null by default. */
class Span
{
      public:
	Span() noexcept = default;

	/* Takes what WAFFLE_BEGIN has begun. */
	explicit Span(waffle_span_t span) noexcept : span_(span)
	{
	}

	/* Begins a span with a name that is made at run time, and with keys and causes as those of
	 * WAFFLE_SPAN. */
	template <class... A> explicit Span(Detail_::Name_ name, const A &...arguments)
	{
#ifndef WAFFLE_DISABLE
		if (!Detail_::named_recorded_())
			return;
		const Detail_::Named_<A...> use(arguments...);

		span_ = waffle_span_begin_named(use.name_(name, WAFFLE_SITE_SPAN), use.values_,
						use.count_);
		end_ = waffle_named_span_end;
#else
		((void)name, ..., (void)arguments);
#endif
	}

	Span(Span &&other) noexcept
	    : span_(std::exchange(other.span_, waffle_span_t())), end_(other.end_)
	{
	}
	Span &operator=(Span &&other) noexcept
	{
		if (this != &other) {
			End();
			span_ = std::exchange(other.span_, waffle_span_t());
			end_ = other.end_;
		}
		return *this;
	}
	~Span()
	{
		End();
	}

	/* Ends it now. Does nothing if it has ended, or never began. */
	void End() noexcept
	{
		if (__builtin_expect(span_.id != 0, 0))
			end_(std::exchange(span_, waffle_span_t()));
	}

	/* Null if nobody recorded it when it began, and after its end. */
	SpanId id() const noexcept
	{
		return waffle_span_id_t{span_.id};
	}
	explicit operator bool() const noexcept
	{
		return span_.id != 0;
	}
	/* The context inside it, for InjectContext and other threads and processes. */
	inline Context context() const;

      private:
	static void end_of_site_([[maybe_unused]] waffle_span_t span)
	{
		WAFFLE_END(span);
	}

	waffle_span_t span_ = {};
	/* Programs that begin no span with a name of run time need no libwaffle. */
	void (*end_)(waffle_span_t) = end_of_site_;
};

/* An event with a name that is made at run time. Null while nobody records it. */
template <class... A> [[nodiscard]] EventId Event(Detail_::Name_ name, const A &...arguments)
{
#ifndef WAFFLE_DISABLE
	if (!Detail_::named_recorded_())
		return EventId();
	const Detail_::Named_<A...> use(arguments...);

	return waffle_event_named(use.name_(name, WAFFLE_SITE_EVENT), use.values_, use.count_);
#else
	((void)name, ..., (void)arguments);
	return EventId();
#endif
}

} // namespace WAFFLE_VARIANT_

} // namespace Waffle

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of keys in C++: for each type its letter in the site's meta, and its words in the
 * frame (abi.h).
 */
#ifndef WAFFLE_VALUES_HPP
#define WAFFLE_VALUES_HPP

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "abi.h"
#include "context.h"
#ifndef WAFFLE_DISABLE
#include "emit.h"
#endif

namespace Waffle
{

/* The id of a span or an event. Null by default. A null id makes no link. */
template <class Id> struct IdOf_ {
	unsigned long long value = 0;

	constexpr IdOf_() = default;
	constexpr IdOf_(Id id_) : value(id_.value)
	{
	}
	constexpr operator Id() const
	{
		return Id{value};
	}
	constexpr explicit operator bool() const
	{
		return value != 0;
	}
	friend constexpr bool operator==(IdOf_ a_, IdOf_ b_)
	{
		return a_.value == b_.value;
	}
	friend constexpr bool operator!=(IdOf_ a_, IdOf_ b_)
	{
		return a_.value != b_.value;
	}
};

using SpanId = IdOf_<waffle_span_id_t>;
using EventId = IdOf_<waffle_event_id_t>;

namespace Detail_
{

template <class Id> struct Cause_ {
	unsigned long long number_;
};

template <class> inline constexpr bool never_ = false;

/*
 * How values of a type are recorded. `letter_` is the type of the key (WAFFLE_KEY_*). A value takes
 * `words_` words, and `layout_` has the letter with which waffle_emit_() copies each of them.
 * put_() writes the words. They may point into the value and into *text_, so both have to live
 * until the probe was called.
 */
template <class T, class = void> struct Value_ {
	static_assert(never_<T>,
		      "waffle: a value is a number, enum, bool, text, pointer, duration, id, or an "
		      "optional of these");
};

template <char letter_of_> struct Word_ {
	static constexpr char letter_ = letter_of_;
	static constexpr char layout_[] = {letter_of_, 0};
	static constexpr std::size_t words_ = 1;
	struct Text_ {
	};
};

template <class T>
inline constexpr bool is_text_ =
	std::is_convertible_v<const T &, std::string_view> && !std::is_same_v<T, std::nullptr_t>;

template <> struct Value_<bool> : Word_<WAFFLE_KEY_BOOL> {
	static void put_(unsigned long long *out_, bool value_, Text_ &)
	{
		*out_ = value_ ? 1 : 0;
	}
};

template <class T>
struct Value_<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
    : Word_<std::is_signed_v<T> ? WAFFLE_KEY_I64 : WAFFLE_KEY_U64> {
	static_assert(sizeof(T) <= 8, "waffle: integers have at most 64 bits");
	static void put_(unsigned long long *out_, const T &value_, typename Value_::Text_ &)
	{
		*out_ = static_cast<unsigned long long>(value_);
	}
};

template <class T>
struct Value_<T, std::enable_if_t<std::is_floating_point_v<T>>> : Word_<WAFFLE_KEY_F64> {
	static void put_(unsigned long long *out_, const T &value_, typename Value_::Text_ &)
	{
		double number_ = static_cast<double>(value_);

		__builtin_memcpy(out_, &number_, sizeof(number_));
	}
};

template <class T>
struct Value_<T, std::enable_if_t<std::is_enum_v<T>>> : Value_<std::underlying_type_t<T>> {
	using Base_ = Value_<std::underlying_type_t<T>>;

	static void put_(unsigned long long *out_, const T &value_, typename Base_::Text_ &text_)
	{
		Base_::put_(out_, static_cast<std::underlying_type_t<T>>(value_), text_);
	}
};

/* Addresses of data and of functions. Those of characters are texts. */
template <class T>
struct Value_<T, std::enable_if_t<std::is_pointer_v<std::decay_t<T>> && !is_text_<T>>>
    : Word_<WAFFLE_KEY_PTR> {
	static void put_(unsigned long long *out_, const T &value_, typename Value_::Text_ &)
	{
		*out_ = (unsigned long long)(__UINTPTR_TYPE__)value_;
	}
};

template <> struct Value_<std::nullptr_t> : Word_<WAFFLE_KEY_PTR> {
	static void put_(unsigned long long *out_, std::nullptr_t, Text_ &)
	{
		*out_ = 0;
	}
};

template <class Id> struct Value_<IdOf_<Id>> : Word_<WAFFLE_KEY_U64> {
	static void put_(unsigned long long *out_, IdOf_<Id> value_, typename Value_::Text_ &)
	{
		*out_ = value_.value;
	}
};

/* C's id types are recorded as Waffle's own. */
template <> struct Value_<waffle_span_id_t> : Value_<SpanId> {
};
template <> struct Value_<waffle_event_id_t> : Value_<EventId> {
};

template <class Rep, class Period>
struct Value_<std::chrono::duration<Rep, Period>> : Word_<WAFFLE_KEY_I64> {
	static void put_(unsigned long long *out_, const std::chrono::duration<Rep, Period> &value_,
			 typename Value_::Text_ &)
	{
		std::chrono::duration<long long, std::nano> whole_ =
			std::chrono::duration_cast<std::chrono::duration<long long, std::nano>>(
				value_);

		*out_ = static_cast<unsigned long long>(whole_.count());
	}
};

/* A text that need not end with a NUL. It is copied to *text_ with a NUL. The copy has room for one
 * byte more than is recorded, so that a text that is too long is seen to be cut. */
template <class T>
struct Value_<T, std::enable_if_t<is_text_<T> && !std::is_pointer_v<std::decay_t<T>> &&
				  !std::is_same_v<T, std::string>>> : Word_<WAFFLE_KEY_STR> {
	struct Text_ {
		char bytes_[WAFFLE_STR_MAX + 2];
	};
	static void put_(unsigned long long *out_, const T &value_, Text_ &text_)
	{
		std::string_view whole_ = value_;
		std::size_t size_ =
			whole_.size() < WAFFLE_STR_MAX + 1 ? whole_.size() : WAFFLE_STR_MAX + 1;

		if (size_)
			__builtin_memcpy(text_.bytes_, whole_.data(), size_);
		text_.bytes_[size_] = '\0';
		*out_ = (unsigned long long)(__UINTPTR_TYPE__)text_.bytes_;
	}
};

template <> struct Value_<std::string> : Word_<WAFFLE_KEY_STR> {
	static void put_(unsigned long long *out_, const std::string &value_, Text_ &)
	{
		*out_ = (unsigned long long)(__UINTPTR_TYPE__)value_.c_str();
	}
};

/* const char *, and literals. */
template <class T>
struct Value_<T, std::enable_if_t<is_text_<T> && std::is_pointer_v<std::decay_t<T>>>>
    : Word_<WAFFLE_KEY_STR> {
	static void put_(unsigned long long *out_, const char *value_, typename Value_::Text_ &)
	{
		*out_ = (unsigned long long)(__UINTPTR_TYPE__)value_;
	}
};

/* An optional value. A missing text is recorded as a null pointer. A number that may be missing is
 * recorded as two words: its type, which says whether it is there, and the number. */
template <class T>
struct Value_<std::optional<T>, std::enable_if_t<Value_<T>::letter_ == WAFFLE_KEY_STR>>
    : Value_<T> {
	static void put_(unsigned long long *out_, const std::optional<T> &value_,
			 typename Value_<T>::Text_ &text_)
	{
		if (value_)
			Value_<T>::put_(out_, *value_, text_);
		else
			*out_ = 0;
	}
};

template <class T>
struct Value_<std::optional<T>, std::enable_if_t<Value_<T>::letter_ != WAFFLE_KEY_STR>> {
	static constexpr char letter_ = WAFFLE_KEY_NUMBER;
	static constexpr char layout_[] = {WAFFLE_KEY_U64, WAFFLE_KEY_U64, 0};
	static constexpr std::size_t words_ = 2;
	static constexpr unsigned long long type_ =
		Value_<T>::letter_ == WAFFLE_KEY_I64   ? WAFFLE_NUMBER_I64
		: Value_<T>::letter_ == WAFFLE_KEY_F64 ? WAFFLE_NUMBER_F64
						       : WAFFLE_NUMBER_U64;
	using Text_ = typename Value_<T>::Text_;

	static void put_(unsigned long long *out_, const std::optional<T> &value_, Text_ &text_)
	{
		out_[0] = value_ ? type_ : (unsigned long long)WAFFLE_NUMBER_NONE;
		out_[1] = 0;
		if (value_)
			Value_<T>::put_(out_ + 1, *value_, text_);
	}
};

template <> struct Value_<Cause_<waffle_span_id_t>> : Word_<WAFFLE_KEY_CAUSE_SPAN> {
	static void put_(unsigned long long *out_, Cause_<waffle_span_id_t> value_, Text_ &)
	{
		*out_ = value_.number_;
	}
};

template <> struct Value_<Cause_<waffle_event_id_t>> : Word_<WAFFLE_KEY_CAUSE_EVENT> {
	static void put_(unsigned long long *out_, Cause_<waffle_event_id_t> value_, Text_ &)
	{
		*out_ = value_.number_;
	}
};

/* A value of KV_DEBUG in full mode. Texts are not copied. */
template <class T>
using Some_ = std::conditional_t<is_text_<T> && !std::is_pointer_v<std::decay_t<T>>,
				 std::string_view, std::decay_t<const T>>;
template <class T> std::optional<Some_<T>> some_(const T &value_)
{
	return value_;
}

/* The backtrace that WAFFLE_LOG_ERROR adds (emit.h), if there is room for a key. */
struct Frames_ {
};
#ifndef WAFFLE_DISABLE
template <> struct Value_<Frames_> : Word_<WAFFLE_KEY_STR> {
	static void put_(unsigned long long *out_, Frames_, Text_ &)
	{
		*out_ = (unsigned long long)(__UINTPTR_TYPE__)WAFFLE_FRAMES_TEXT_;
	}
};
#endif

/* The value of WAFFLE_EVENT, which may be unused. */
inline __attribute__((__always_inline__)) EventId event_result_(EventId id_)
{
	return id_;
}

} // namespace Detail_

/* A cause other than the parent, among the arguments of a span or an event. */
constexpr Detail_::Cause_<waffle_span_id_t> CausedBy(SpanId id_)
{
	return {id_.value};
}
constexpr Detail_::Cause_<waffle_event_id_t> CausedBy(EventId id_)
{
	return {id_.value};
}
constexpr Detail_::Cause_<waffle_span_id_t> CausedBy(waffle_span_id_t id_)
{
	return {id_.value};
}
constexpr Detail_::Cause_<waffle_event_id_t> CausedBy(waffle_event_id_t id_)
{
	return {id_.value};
}

} // namespace Waffle

#endif

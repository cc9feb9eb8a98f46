/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an armed site in C++: from the macro's arguments to the words of emit.h. */
#ifndef WAFFLE_FRAME_HPP
#define WAFFLE_FRAME_HPP

#ifndef WAFFLE_DISABLE

#include <utility>

#include "emit.h"
#include "meta.hpp"
#include "mode.h"
#include "values.hpp"

namespace Waffle
{
namespace Detail_
{

template <class... A> constexpr bool recorded_(std::size_t index_)
{
	Role_ role_ = Arguments_<A...>::roles_.of_[index_];

	return role_ == Role_::value_ || role_ == Role_::cause_;
}

/* Where the words of each argument are, and the letters of waffle_emit_(). */
template <class... A> struct Layout_ {
	struct Places_ {
		std::size_t at_[sizeof...(A) + 1] = {}, words_ = 0, letters_ = 0;
		char types_[2 * sizeof...(A) + 1] = {};
		bool text_ = false; /* one of them is a text */
		/* The same without the last argument. */
		char types_before_[2 * sizeof...(A) + 1] = {};
		bool text_before_ = false;
	};
	static constexpr Places_ places_make_()
	{
		constexpr std::size_t words_[] = {Value_<A>::words_..., 0};
		constexpr const char *layouts_[] = {Value_<A>::layout_..., nullptr};
		Places_ made_;

		for (std::size_t i_ = 0; i_ < sizeof...(A); i_++) {
			if (!recorded_<A...>(i_))
				continue;
			if (i_ + 1 == sizeof...(A)) {
				made_.text_before_ = made_.text_;
				for (std::size_t j_ = 0; j_ < made_.letters_; j_++)
					made_.types_before_[j_] = made_.types_[j_];
			}
			made_.at_[i_] = made_.words_;
			made_.words_ += words_[i_];
			for (const char *letter_ = layouts_[i_]; *letter_; letter_++) {
				made_.text_ |= *letter_ == WAFFLE_KEY_STR;
				made_.types_[made_.letters_++] = *letter_;
			}
		}
		return made_;
	}
	static constexpr Places_ places_ = places_make_();
};

/* The memory that one argument's text may need; nothing for keys. */
template <std::size_t index_, class T, bool recorded_> struct Slot_ {
	typename Value_<T>::Text_ text_;

	void put_(unsigned long long *out_, const T &value_)
	{
		Value_<T>::put_(out_, value_, text_);
	}
};
template <std::size_t index_, class T> struct Slot_<index_, T, false> {
	void put_(unsigned long long *, const T &)
	{
	}
};

template <class Indices, class... A> struct Slots_;
template <std::size_t... index_, class... A>
struct Slots_<std::index_sequence<index_...>, A...> : Slot_<index_, A, recorded_<A...>(index_)>... {
	void put_([[maybe_unused]] unsigned long long *words_, const A &...values_)
	{
		(Slot_<index_, A, recorded_<A...>(index_)>::put_(
			 words_ + Layout_<A...>::places_.at_[index_], values_),
		 ...);
	}
};

/* The words of a frame, as emit.h wants them. In fast mode the key "frames", which is last, is not
 * there. */
template <class... A> struct Frame_ {
	static constexpr const auto &places_ = Layout_<A...>::places_;
	static constexpr bool frames_ = Arguments_<A...>::roles_.frames_;

	unsigned long long words_[sizeof(waffle_frame) / 8 + places_.words_];
	std::size_t count_;
	const char *types_;
	Slots_<std::index_sequence_for<A...>, A...> slots_;

	explicit Frame_(const A &...values_)
	    : count_(sizeof(words_) / 8), types_(places_.text_ ? places_.types_ : nullptr)
	{
		slots_.put_(words_ + sizeof(waffle_frame) / 8, values_...);
		if (frames_ && waffle_mode_here_() != WAFFLE_MODE_FULL) {
			count_--;
			types_ = places_.text_before_ ? places_.types_before_ : nullptr;
		}
	}
};

/* How a value is passed to a function out of line. By value if that is cheap: a variable whose
 * address is taken would be kept in memory while the site is dormant, too. */
template <class T>
inline constexpr bool by_value_ = std::is_trivially_copyable_v<T> && !std::is_array_v<T> &&
				  !std::is_function_v<T> && sizeof(T) <= 16;
template <class T> using Passed_ = std::conditional_t<by_value_<T>, T, const T &>;

/* Arrays in memory stay there, and functions are passed as their address. */
template <class T>
inline __attribute__((__always_inline__)) Passed_<std::remove_cv_t<T>> pass_(const T &value_)
{
	return value_;
}

template <class... A>
__attribute__((__noinline__, __cold__)) waffle_scope_ *
scope_enter_(waffle_scope_ *scope_, [[maybe_unused]] unsigned mode_, const void *probe_,
	     Passed_<A>... values_)
{
	Frame_<A...> frame_(values_...);

	return WAFFLE_SCOPE_ENTER_(mode_, probe_, frame_.words_, frame_.count_, frame_.types_,
				   scope_);
}

template <class... A>
__attribute__((__noinline__, __cold__)) waffle_span_t span_begin_(const void *probe_,
								  Passed_<A>... values_)
{
	Frame_<A...> frame_(values_...);

	return waffle_span_begin_(probe_, frame_.words_, frame_.count_, frame_.types_);
}

template <class... A>
__attribute__((__noinline__, __cold__)) EventId event_(const void *probe_, Passed_<A>... values_)
{
	Frame_<A...> frame_(values_...);

	return waffle_event_(probe_, frame_.words_, frame_.count_, frame_.types_);
}

/* The same with the arguments of the macros. */
template <class Name, class... A>
inline __attribute__((__always_inline__)) waffle_scope_ *
scope_enter_of_(waffle_scope_ *scope_, unsigned mode_, const void *probe_, const Name &,
		const A &...values_)
{
	return scope_enter_<std::remove_cv_t<A>...>(scope_, mode_, probe_, pass_(values_)...);
}

template <class Name, class... A>
inline __attribute__((__always_inline__)) waffle_span_t
span_begin_of_(const void *probe_, const Name &, const A &...values_)
{
	return span_begin_<std::remove_cv_t<A>...>(probe_, pass_(values_)...);
}

template <class Name, class... A>
inline __attribute__((__always_inline__)) EventId event_of_(const void *probe_, const Name &,
							    const A &...values_)
{
	return event_<std::remove_cv_t<A>...>(probe_, pass_(values_)...);
}

} // namespace Detail_
} // namespace Waffle

#endif
#endif

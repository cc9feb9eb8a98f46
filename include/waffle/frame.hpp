/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an armed site in C++: from the macro's arguments to the words of emit.h. */
#ifndef WAFFLE_FRAME_HPP
#define WAFFLE_FRAME_HPP

#ifndef WAFFLE_DISABLE

#include <utility>

#include "emit.h"
#include "meta.hpp"
#include "values.hpp"

namespace Waffle {
namespace Detail_ {

/* Where the words of each argument are, and the letters of waffle_emit_(). */
template <class... A> struct Layout_ {
	struct Places_ {
		std::size_t at_[sizeof...(A) + 1] = {}, words_ = 0, letters_ = 0;
		char types_[2 * sizeof...(A) + 1] = {};
		bool text_ = false;
	};
	static constexpr Places_ places_make_()
	{
		constexpr std::size_t words_[] = {Value_<A>::words_..., 0};
		constexpr const char *layouts_[] = {Value_<A>::layout_..., nullptr};
		Places_ made_;

		for (std::size_t i_ = 0; i_ < sizeof...(A); i_++) {
			if (Arguments_<A...>::roles_.of_[i_] == Role_::key_)
				continue;
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
template <std::size_t index_, class T, Role_ role_> struct Slot_ {
	typename Value_<T>::Text_ text_;

	void put_(unsigned long long *out_, const T &value_)
	{
		Value_<T>::put_(out_, value_, text_);
	}
};
template <std::size_t index_, class T> struct Slot_<index_, T, Role_::key_> {
	void put_(unsigned long long *, const T &) {}
};

template <class Indices, class... A> struct Slots_;
template <std::size_t... index_, class... A>
struct Slots_<std::index_sequence<index_...>, A...>
    : Slot_<index_, A, Arguments_<A...>::roles_.of_[index_]>... {
	void put_([[maybe_unused]] unsigned long long *words_, const A &...values_)
	{
		(Slot_<index_, A, Arguments_<A...>::roles_.of_[index_]>::put_(
			 words_ + Layout_<A...>::places_.at_[index_], values_),
		 ...);
	}
};

template <class... A> struct Frame_ {
	static constexpr const auto &places_ = Layout_<A...>::places_;
	static constexpr std::size_t count_ = sizeof(waffle_frame) / 8 + places_.words_;

	unsigned long long words_[count_];
	Slots_<std::index_sequence_for<A...>, A...> slots_;

	Frame_(const void *probe_, const A &...values_)
	{
		words_[0] = (unsigned long long)(__UINTPTR_TYPE__)probe_;
		slots_.put_(words_ + sizeof(waffle_frame) / 8, values_...);
	}
	static const char *types_()
	{
		return places_.text_ ? places_.types_ : nullptr;
	}
};

template <std::size_t size_, class... A>
__attribute__((__noinline__, __cold__)) waffle_scope_ *
scope_enter_(waffle_scope_ *scope_, const void *probe_, const char (&name_)[size_],
	     const A &...values_)
{
	Frame_<A...> frame_(probe_, values_...);

	return waffle_scope_enter_(scope_, probe_, name_, frame_.words_, frame_.count_,
				   frame_.types_());
}

template <std::size_t size_, class... A>
__attribute__((__noinline__, __cold__)) waffle_span_t
span_begin_(const void *probe_, const char (&name_)[size_], const A &...values_)
{
	Frame_<A...> frame_(probe_, values_...);

	return waffle_span_begin_(probe_, name_, frame_.words_, frame_.count_, frame_.types_());
}

template <std::size_t size_, class... A>
__attribute__((__noinline__, __cold__)) EventId
event_(const void *probe_, const char (&name_)[size_], const A &...values_)
{
	Frame_<A...> frame_(probe_, values_...);

	return waffle_event_(probe_, name_, frame_.words_, frame_.count_, frame_.types_());
}

/* The value of WAFFLE_EVENT, which may be unused. */
inline __attribute__((__always_inline__)) EventId event_result_(EventId id_)
{
	return id_;
}

} // namespace Detail_
} // namespace Waffle

#endif
#endif

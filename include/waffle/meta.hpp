/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meta of a site in C++ (abi.h), made at compile time from the text of the macro's arguments
 * and from their types. The text is needed since the values are not constants, but the keys between
 * them are.
 */
#ifndef WAFFLE_META_HPP
#define WAFFLE_META_HPP

#include <cstddef>
#include <utility>

#include "values.hpp"

namespace Waffle
{
namespace Detail_
{

enum class Fault_ { none_, count_, key_, pairs_, escape_, keys_ };

constexpr bool is_digit_(char c_)
{
	return c_ >= '0' && c_ <= '9';
}

constexpr bool is_word_(char c_)
{
	return is_digit_(c_) || (c_ >= 'a' && c_ <= 'z') || (c_ >= 'A' && c_ <= 'Z') || c_ == '_' ||
	       c_ == '$' || (c_ & 0x80);
}

/* The index after the quoted literal that begins at text_[at_]. */
constexpr std::size_t quoted_end_(const char *text_, std::size_t at_)
{
	char quote_ = text_[at_++];

	for (; text_[at_] && text_[at_] != quote_; at_++)
		if (text_[at_] == '\\' && text_[at_ + 1])
			at_++;
	return text_[at_] ? at_ + 1 : at_;
}

/* The index after the raw literal whose opening quote is text_[at_]. */
constexpr std::size_t raw_end_(const char *text_, std::size_t at_)
{
	std::size_t from_ = ++at_, size_ = 0;

	while (text_[at_] && text_[at_] != '(')
		at_++;
	size_ = at_ - from_;
	for (; text_[at_]; at_++) {
		std::size_t same_ = 0;

		if (text_[at_] != ')')
			continue;
		while (same_ < size_ && text_[at_ + 1 + same_] == text_[from_ + same_])
			same_++;
		if (same_ == size_ && text_[at_ + 1 + size_] == '"')
			return at_ + size_ + 2;
	}
	return at_;
}

/* The index after the word or number that begins at text_[at_], and after the literal if the word
 * is a literal's prefix, as in u8"…". */
constexpr std::size_t word_end_(const char *text_, std::size_t at_)
{
	bool number_ = is_digit_(text_[at_]);

	while (is_word_(text_[at_]) ||
	       (number_ && (text_[at_] == '.' || (text_[at_] == '\'' && is_word_(text_[at_ + 1])))))
		at_++;
	if (!number_ && text_[at_] == '"' && text_[at_ - 1] == 'R')
		return raw_end_(text_, at_);
	return at_;
}

/* The index of the comma that ends the argument at text_[at_], or of the text's end. */
constexpr std::size_t argument_end_(const char *text_, std::size_t at_)
{
	int depth_ = 0;

	while (text_[at_] && (depth_ || text_[at_] != ',')) {
		char c_ = text_[at_];

		if (c_ == '"' || c_ == '\'') {
			at_ = quoted_end_(text_, at_);
		} else if (is_word_(c_)) {
			at_ = word_end_(text_, at_);
		} else {
			depth_ += (c_ == '(' || c_ == '[' || c_ == '{') -
				  (c_ == ')' || c_ == ']' || c_ == '}');
			at_++;
		}
	}
	return at_;
}

/* Collects the characters of names. In the first pass there is no buffer, and they are only
 * counted. In the second pass they are written. */
struct Out_ {
	char *to_ = nullptr;
	std::size_t size_ = 0;
	Fault_ fault_ = Fault_::none_;

	constexpr void put_(char c_)
	{
		if (to_)
			to_[size_] = c_;
		size_++;
	}
	constexpr void put_text_(const char *text_)
	{
		while (*text_)
			put_(*text_++);
		put_('\0');
	}
};

constexpr int hex_(char c_)
{
	return is_digit_(c_)            ? c_ - '0'
	       : c_ >= 'a' && c_ <= 'f' ? c_ - 'a' + 10
	       : c_ >= 'A' && c_ <= 'F' ? c_ - 'A' + 10
					: -1;
}

/* Puts the character that an escape sequence stands for. text_[at_] follows the backslash. Returns
 * the index after the sequence. */
constexpr std::size_t put_escape_(Out_ &out_, const char *text_, std::size_t at_)
{
	constexpr char from_[] = "abfnrtv\\\"'?", to_[] = "\a\b\f\n\r\t\v\\\"'?";
	int value_ = 0, digits_ = 0;

	for (std::size_t i_ = 0; from_[i_]; i_++) {
		if (text_[at_] == from_[i_]) {
			out_.put_(to_[i_]);
			return at_ + 1;
		}
	}
	if (text_[at_] == 'x') {
		for (at_++; hex_(text_[at_]) >= 0; at_++, digits_++)
			value_ = value_ * 16 + hex_(text_[at_]);
	} else {
		for (; digits_ < 3 && text_[at_] >= '0' && text_[at_] <= '7'; at_++, digits_++)
			value_ = value_ * 8 + (text_[at_] - '0');
	}
	if (!digits_ || !value_ || value_ > 255)
		out_.fault_ = Fault_::escape_;
	out_.put_(static_cast<char>(value_));
	return at_;
}

/* Puts the characters of all literals between text_[at_] and text_[end_]: one argument, which may
 * have several adjacent ones. */
constexpr void put_key_(Out_ &out_, const char *text_, std::size_t at_, std::size_t end_)
{
	bool found_ = false;

	while (at_ < end_) {
		if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t') {
			at_++;
			continue;
		}
		if (text_[at_] != '"') {
			out_.fault_ = Fault_::key_;
			return;
		}
		found_ = true;
		for (at_++; text_[at_] && text_[at_] != '"';) {
			if (text_[at_] == '\\')
				at_ = put_escape_(out_, text_, at_ + 1);
			else
				out_.put_(text_[at_++]);
		}
		at_++;
	}
	if (!found_)
		out_.fault_ = Fault_::key_;
	out_.put_('\0');
}

/* What each argument behind the name is. */
enum class Role_ : unsigned char { key_, value_, cause_, none_ };

template <class> inline constexpr bool is_cause_ = false;
template <class Id> inline constexpr bool is_cause_<Cause_<Id>> = true;
template <class> inline constexpr bool is_literal_ = false;
template <std::size_t size_> inline constexpr bool is_literal_<char[size_]> = true;

/* The types of the arguments behind the name. */
template <class... A> struct Arguments_ {
	static constexpr std::size_t count_ = sizeof...(A);

	struct Roles_ {
		Role_ of_[count_ + 1] = {};
		std::size_t keys_ = 0;
		bool valid_ = true;
		bool frames_ = false; /* the last value is Frames_ */
	};
	static constexpr Roles_ roles_make_()
	{
		constexpr bool causes_[] = {is_cause_<A>..., false};
		constexpr bool literals_[] = {is_literal_<A>..., false};
		[[maybe_unused]] constexpr bool frames_[] = {std::is_same_v<A, Frames_>..., false};
		Roles_ made_;

		for (std::size_t i_ = 0; i_ < count_; i_++) {
			made_.keys_++;
			if (causes_[i_]) {
				made_.of_[i_] = Role_::cause_;
				continue;
			}
			made_.valid_ &= literals_[i_] && i_ + 1 < count_ && !causes_[i_ + 1];
			made_.of_[i_] = Role_::key_;
			made_.of_[i_ + 1] = Role_::value_;
			i_++;
		}
		if constexpr (count_ >= 2) {
			made_.frames_ = frames_[count_ - 1] && made_.keys_ <= WAFFLE_KEYS_MAX;
			if (frames_[count_ - 1] && !made_.frames_) {
				made_.of_[count_ - 1] = made_.of_[count_ - 2] = Role_::none_;
				made_.keys_--;
			}
		}
		return made_;
	}
	static constexpr Roles_ roles_ = roles_make_();
};

template <class Name, class... A>
Arguments_<std::remove_cv_t<A>...> arguments_of_(const Name &, const A &...);

template <class Tag, class... A> constexpr Out_ meta_put_(char *to_, Arguments_<A...>)
{
	constexpr char letters_[] = {Value_<A>::letter_..., 0};
	const auto &roles_ = Arguments_<A...>::roles_;
	const char *text_ = Tag::arguments_();
	std::size_t at_ = argument_end_(text_, 0), end_ = 0;
	Out_ out_{to_};

	out_.put_text_(Tag::name_());
	out_.put_text_(Tag::file_());
	out_.put_text_(Tag::category_());
	for (std::size_t i_ = 0; i_ < sizeof...(A); i_++, at_ = end_) {
		if (!text_[at_]) {
			out_.fault_ = Fault_::count_;
			return out_;
		}
		end_ = argument_end_(text_, ++at_);
		if (roles_.of_[i_] == Role_::cause_) {
			out_.put_(letters_[i_]);
			out_.put_text_("cause");
		} else if (roles_.of_[i_] == Role_::key_) {
			out_.put_(letters_[i_ + 1]);
			put_key_(out_, text_, at_, end_);
		}
	}
	if (text_[at_])
		out_.fault_ = Fault_::count_;
	return out_;
}

template <std::size_t size_> struct Chars_ {
	char chars_[size_];
};

/* Hidden, so that code of a library can refer to it without a relocation. */
template <class Tag, class Arguments> struct __attribute__((__visibility__("hidden"))) Meta_ {
	static_assert(
		Arguments::roles_.valid_,
		"waffle: after the name come keys, which are string literals, each followed by "
		"its value, and causes");
	static_assert(Arguments::roles_.keys_ <= WAFFLE_KEYS_MAX, "waffle: at most 16 keys");
	static constexpr Out_ out_ = meta_put_<Tag>(nullptr, Arguments());
	static_assert(out_.fault_ != Fault_::count_,
		      "waffle: put parentheses around a value with a comma");
	static_assert(out_.fault_ != Fault_::key_, "waffle: a key is a plain string literal");
	static_assert(out_.fault_ != Fault_::escape_, "waffle: a key has an unknown escape");

	static constexpr Chars_<out_.size_> make_()
	{
		Chars_<out_.size_> made_{};

		meta_put_<Tag>(made_.chars_, Arguments());
		return made_;
	}
	static constexpr Chars_<out_.size_> text_ = make_();
};

} // namespace Detail_
} // namespace Waffle

#endif

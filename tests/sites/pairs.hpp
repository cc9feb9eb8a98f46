/* SPDX-License-Identifier: Apache-2.0 */
/* Sites whose keys take their types from the values (waffle.hpp). Comments as in inline.h. */
// clang-format off
#ifndef TESTS_SITES_PAIRS_HPP
#define TESTS_SITES_PAIRS_HPP

#include <array>
#include <map>
#include <waffle.hpp>

extern volatile int sink;

/* IN pairs_inline */
inline Waffle::EventId pairs_inline(const std::string &shard, int n)
{
	WAFFLE_SPAN("pairs inline", "shard", shard, "n", n); /* SITE span "pairs inline" "shard":str "n":i64 */
	return WAFFLE_EVENT("pairs inline event", "size", shard.size()); /* SITE event "pairs inline event" "size":u64 */
}

/* IN pairs_of */
template <typename T> T pairs_of(const T &value)
{
	WAFFLE_SPAN("pairs of", "value", value, "size", sizeof(T)); /* SITE span "pairs of" "value":i64 "size":u64 */
	auto twice = [&](auto by) {
		WAFFLE_EVENT("pairs lambda", "by", by, "value", value); /* SITE event "pairs lambda" "by":i64 "value":i64 IN operator() */
		return by;
	};
	return static_cast<T>(twice(value));
}

struct Rank {
	int rank = 3;
	unsigned flags : 5;
	volatile long moving = 1;
	Waffle::EventId source;

	/* IN Rank */
	explicit Rank(int n) : rank((WAFFLE_EVENT("pairs initializer"), n)), flags(1) /* SITE event "pairs initializer" */
	{
		WAFFLE_SPAN("pairs constructor", "rank", this->rank); /* SITE span "pairs constructor" "rank":i64 */
	}
	/* IN reduce */
	int reduce(std::size_t count)
	{
		WAFFLE_SPAN("NcclAllReduce", Waffle::CausedBy(source), "element_count", count, "rank", this->rank); /* SITE span "NcclAllReduce" "cause":cause_event "element_count":u64 "rank":i64 */
		WAFFLE_EVENT("members", "flags", flags, "moving", this->moving); /* SITE event "members" "flags":u64 "moving":i64 */
		return rank;
	}
};

template <typename... T> int folded(const T &...values)
{
	auto one = [](auto value) { WAFFLE_EVENT("folded", "value", value); }; /* SITE event "folded" "value":i64 IN operator() */

	(one(values), ...);
	return sizeof...(values);
}

#endif

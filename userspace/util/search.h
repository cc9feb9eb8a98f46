/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search. */
#ifndef WAFFLE_UTIL_SEARCH_H
#define WAFFLE_UTIL_SEARCH_H

#include <stdbool.h>

/*
 * The first index below `count` at which `before` is false, or `count` if it is true at all of
 * them. `before` is an expression of the index, whose name is `at`. What is searched must be in
 * order: `before` is true up to some index and false from there on. The result has the type of
 * `count`.
 *
 *	size_t first = lower_bound(list.len, i, list.data[i].ts < ts);  at or after ts
 *	size_t after = lower_bound(list.len, i, list.data[i].ts <= ts); after ts
 */
#define lower_bound(count, at, before) lower_bound_in(0, count, at, before)

/* The same among the indexes from `first` to before `end`. */
#define lower_bound_in(first, end, at, before)                                                     \
	({                                                                                         \
		__auto_type high_ = (end);                                                         \
		__typeof__(high_) low_ = (first);                                                  \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const __typeof__(high_) at = low_ + (high_ - low_) / 2;                    \
                                                                                                   \
			if (before)                                                                \
				low_ = at + 1;                                                     \
			else                                                                       \
				high_ = at;                                                        \
		}                                                                                  \
		low_;                                                                              \
	})

/*
 * The same as lower_bound(), for look-ups that are often close to the one before: it begins at
 * `near`, the last result, and doubles its range until that has the result. `near` may be any
 * index.
 */
#define lower_bound_near(count, near, at, before)                                                  \
	({                                                                                         \
		const __typeof__(count) end_ = (count), near_ = (near);                            \
		__typeof__(end_ + 0) first_ = 0, last_ = end_, step_ = 1;                          \
		bool ahead_ = false;                                                               \
                                                                                                   \
		if (near_ < end_) {                                                                \
			const __typeof__(end_) at = near_;                                         \
                                                                                                   \
			ahead_ = (before);                                                         \
		}                                                                                  \
		if (ahead_)                                                                        \
			first_ = near_ + 1;                                                        \
		else if (near_ < end_)                                                             \
			last_ = near_;                                                             \
		while (near_ < end_ && step_ < last_ - first_) {                                   \
			const __typeof__(end_) at = ahead_ ? first_ + step_ : last_ - step_;       \
			const bool low_side_ = (before);                                           \
                                                                                                   \
			if (low_side_)                                                             \
				first_ = at + 1;                                                   \
			else                                                                       \
				last_ = at;                                                        \
			if (low_side_ != ahead_)                                                   \
				break;                                                             \
			step_ *= 2;                                                                \
		}                                                                                  \
		lower_bound_in(first_, last_, at, before);                                         \
	})

#endif

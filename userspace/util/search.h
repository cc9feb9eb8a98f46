/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search. */
#ifndef WAFFLE_UTIL_SEARCH_H
#define WAFFLE_UTIL_SEARCH_H

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

#endif

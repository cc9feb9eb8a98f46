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

/* The same, but searches from `near`, which may be any index, and doubles the distance. For
 * look-ups that are mostly close to the last one, whose result is `near`. */
#define lower_bound_near(near, first, end, at, before)                                             \
	({                                                                                         \
		__auto_type to_ = (end);                                                           \
		__typeof__(to_) from_ = (first), step_ = 1;                                        \
                                                                                                   \
		{                                                                                  \
			__typeof__(to_) at = (near);                                               \
                                                                                                   \
			if (at >= from_ && at < to_ && (before)) {                                 \
				for (from_ = at + 1; step_ < to_ - from_; step_ *= 2) {            \
					at = from_ + step_;                                        \
					if (!(before)) {                                           \
						to_ = at;                                          \
						break;                                             \
					}                                                          \
					from_ = at + 1;                                            \
				}                                                                  \
			} else if (at >= from_ && at < to_) {                                      \
				for (to_ = at; step_ < to_ - from_; step_ *= 2) {                  \
					at = to_ - step_;                                          \
					if (before) {                                              \
						from_ = at + 1;                                    \
						break;                                             \
					}                                                          \
					to_ = at;                                                  \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
		lower_bound_in(from_, to_, at, before);                                            \
	})

#endif

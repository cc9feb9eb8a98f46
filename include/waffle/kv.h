/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of spans and events. A key is a tuple (WAFFLE_ALWAYS_, WAFFLE_TYPE_, "key", value) that
 * other macros take apart. Its type and name go into the site's meta at compile time, its value
 * into the frame at run time. The type has our prefix, because it is expanded and programs have
 * macros named PTR, U64 or BOOL. If the site is armed, each value is evaluated once; if it is
 * dormant, not at all.
 *
 * Debug keys begin with WAFFLE_DEBUG_ instead. They follow the other keys in the meta and in the
 * frame, wherever they stand in the use. So a frame without them is just shorter, and for readers
 * and filters their values were not recorded.
 */
#ifndef WAFFLE_KV_H
#define WAFFLE_KV_H

#include "abi.h"

/* Signed and unsigned integers of any width, floating point, truth values. */
#define KV_I64(key, ...) (WAFFLE_ALWAYS_, WAFFLE_I64_, key, (__VA_ARGS__))
#define KV_U64(key, ...) (WAFFLE_ALWAYS_, WAFFLE_U64_, key, (__VA_ARGS__))
#define KV_F64(key, ...) (WAFFLE_ALWAYS_, WAFFLE_F64_, key, (__VA_ARGS__))
#define KV_BOOL(key, ...) (WAFFLE_ALWAYS_, WAFFLE_BOOL_, key, (__VA_ARGS__))
/* A NUL-terminated string. Up to 256 bytes are copied; a longer one is marked as cut. */
#define KV_STR(key, ...) (WAFFLE_ALWAYS_, WAFFLE_STR_, key, (__VA_ARGS__))
/* An address, shown in hexadecimal and never dereferenced. */
#define KV_PTR(key, ...) (WAFFLE_ALWAYS_, WAFFLE_PTR_, key, (__VA_ARGS__))
/* Causes other than the parent: waffle_span_id_t, waffle_event_id_t. The null id makes no link. */
#define KV_CAUSE_SPAN(...) (WAFFLE_ALWAYS_, WAFFLE_CAUSE_SPAN_, "cause", (__VA_ARGS__))
#define KV_CAUSE_EVENT(...) (WAFFLE_ALWAYS_, WAFFLE_CAUSE_EVENT_, "cause", (__VA_ARGS__))
/* KV_DEBUG(KV_I64("n", n)): a key that is evaluated and recorded in full mode only (mode.h). */
#define KV_DEBUG(key) WAFFLE_AS_DEBUG_ key
#define WAFFLE_AS_DEBUG_(when, type, key, value) (WAFFLE_DEBUG_, type, key, value)

/* Type letters as in abi.h, but as literals that can be concatenated. */
#define WAFFLE_I64_LETTER "i"
#define WAFFLE_U64_LETTER "u"
#define WAFFLE_F64_LETTER "d"
#define WAFFLE_BOOL_LETTER "b"
#define WAFFLE_STR_LETTER "s"
#define WAFFLE_PTR_LETTER "p"
#define WAFFLE_NUMBER_LETTER "n"
#define WAFFLE_CAUSE_SPAN_LETTER "S"
#define WAFFLE_CAUSE_EVENT_LETTER "E"

/* The words of a value. */
#define WAFFLE_I64_WORD(value) (unsigned long long)(long long)value
#define WAFFLE_U64_WORD(value) (unsigned long long)value
#define WAFFLE_F64_WORD(value) waffle_word_f64_((double)value)
#define WAFFLE_BOOL_WORD(value) (value ? 1ull : 0ull)
#define WAFFLE_STR_WORD(value) waffle_word_str_(value)
#define WAFFLE_PTR_WORD(value) (unsigned long long)(__UINTPTR_TYPE__)value
#define WAFFLE_CAUSE_SPAN_WORD(value) waffle_word_span_(value)
#define WAFFLE_CAUSE_EVENT_WORD(value) waffle_word_event_(value)

/* 8 is real_type_class of gcc/typeclass.h, the class of floating-point types; clang agrees. */
#define WAFFLE_IS_REAL_(value) (__builtin_classify_type(value) == 8)
#define WAFFLE_IS_SIGNED_(value) ((__typeof__(value))-1 < (__typeof__(value))1)
#define WAFFLE_NUMBER_KIND_(value)                                                                 \
	(WAFFLE_IS_REAL_(value)     ? (unsigned long long)WAFFLE_NUMBER_F64                        \
	 : WAFFLE_IS_SIGNED_(value) ? (unsigned long long)WAFFLE_NUMBER_I64                        \
				    : (unsigned long long)WAFFLE_NUMBER_U64)
#define WAFFLE_NUMBER_VALUE_(value)                                                                \
	(WAFFLE_IS_REAL_(value) ? waffle_word_f64_((double)value) : (unsigned long long)value)

/*
 * Operations on a tuple, for WAFFLE_MAP_. Those of the two kinds of keys are apart: first all keys
 * that are always recorded, then the debug keys.
 */
#define WAFFLE_KEY_META_(at, when, type, key, value) when##ALWAYS_(type##LETTER key "\0")
#define WAFFLE_KEY_DEBUG_META_(at, when, type, key, value) when##DEBUG_(type##LETTER key "\0")
#define WAFFLE_KEY_LETTER_(at, when, type, key, value) when##ALWAYS_(type##LETTER)
#define WAFFLE_KEY_DEBUG_LETTER_(at, when, type, key, value) when##DEBUG_(type##LETTER)
#define WAFFLE_KEY_OR_STR_(at, when, type, key, value)                                             \
	when##ALWAYS_(|| type##LETTER[0] == WAFFLE_KEY_STR)
#define WAFFLE_KEY_OR_DEBUG_STR_(at, when, type, key, value)                                       \
	when##DEBUG_(|| type##LETTER[0] == WAFFLE_KEY_STR)
#define WAFFLE_KEY_WORD_(at, when, type, key, value)                                               \
	when##ALWAYS_(waffle_put_(at##words + at##armed++, type##WORD(value)), )
#define WAFFLE_KEY_DEBUG_WORD_(at, when, type, key, value)                                         \
	when##DEBUG_(waffle_put_(at##words + at##armed++,                                          \
				 WAFFLE_IS_FULL_(at) ? type##WORD(value) : 0ull), )
#define WAFFLE_KEY_NUMBER_(at, when, type, key, value)                                             \
	waffle_put_(at##words + at##armed++, WAFFLE_NUMBER_KIND_(value)),                          \
		waffle_put_(at##words + at##armed++, WAFFLE_NUMBER_VALUE_(value)),
#define WAFFLE_KEY_DEBUG_ONE_(at, when, type, key, value) when##DEBUG_(+1)
#define WAFFLE_KEY_UNUSED_(at, when, type, key, value) (void)value;

/* Keeps or drops what belongs to one kind of keys. */
#define WAFFLE_ALWAYS_ALWAYS_(...) __VA_ARGS__
#define WAFFLE_ALWAYS_DEBUG_(...)
#define WAFFLE_DEBUG_ALWAYS_(...)
#define WAFFLE_DEBUG_DEBUG_(...) __VA_ARGS__

/* WAFFLE_MAP_(op, at, name, tuple…): op(at, tuple's members…) op(at, …) …; WAFFLE_NAME_(name,
 * tuple…): name. */
#define WAFFLE_MAP_(op, at, ...)                                                                   \
	WAFFLE_CAT_(WAFFLE_MAP_, WAFFLE_COUNT_(__VA_ARGS__))(op, at, __VA_ARGS__)
#define WAFFLE_NAME_(...) WAFFLE_FIRST_(__VA_ARGS__, ~)
#define WAFFLE_FIRST_(first, ...) first
/* Expands the arguments before the macro sees them. */
#define WAFFLE_CALL_(macro, ...) macro(__VA_ARGS__)
#define WAFFLE_APPLY_(op, ...) op(__VA_ARGS__)
#define WAFFLE_MEMBERS_(...) __VA_ARGS__
#define WAFFLE_CAT_(a, b) WAFFLE_CAT2_(a, b)
#define WAFFLE_CAT2_(a, b) a##b

#define WAFFLE_COUNT_(...)                                                                         \
	WAFFLE_COUNT2_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, ~)
#define WAFFLE_COUNT2_(n, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, count, ...) count

#define WAFFLE_MAP_0(op, at, n)
#define WAFFLE_MAP_1(op, at, n, a) WAFFLE_APPLY_(op, at, WAFFLE_MEMBERS_ a)
#define WAFFLE_MAP_2(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_1(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_3(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_2(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_4(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_3(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_5(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_4(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_6(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_5(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_7(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_6(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_8(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_7(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_9(op, at, n, a, ...)                                                            \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_8(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_10(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_9(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_11(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_10(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_12(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_11(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_13(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_12(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_14(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_13(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_15(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_14(op, at, n, __VA_ARGS__)
#define WAFFLE_MAP_16(op, at, n, a, ...)                                                           \
	WAFFLE_MAP_1(op, at, n, a) WAFFLE_MAP_15(op, at, n, __VA_ARGS__)

#endif

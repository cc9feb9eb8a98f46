// SPDX-License-Identifier: Apache-2.0
#include "filter/number_test.h"

#include <linux/bpf.h>
#include <math.h>
#include <string.h>

#define SIGN (1ull << 63)

/* ---- integers ---- */

/* Wide enough for all 64-bit integers, signed and unsigned, and for any literal of that size. */
typedef __int128 wide;

/* The nearest integers around a literal: floor <= literal <= ceil. */
static void literal_bounds(const struct filter_literal *literal, wide *floor_, wide *ceil_)
{
	const wide far = (wide)1 << 65;

	if (literal->type == FILTER_LITERAL_FLOAT) {
		if (fabs(literal->f64) >= 0x1p65) {
			*floor_ = *ceil_ = literal->f64 < 0 ? -far : far;
			return;
		}
		*floor_ = (wide)floor(literal->f64);
		*ceil_ = (wide)ceil(literal->f64);
		return;
	}
	*floor_ = literal->negative ? -(wide)literal->magnitude : (wide)literal->magnitude;
	*ceil_ = *floor_;
}

/* Operators in the order of enum filter_op. */
static unsigned integer_op(enum number_class class, enum filter_op op)
{
	static const unsigned char ops[2][FILTER_GE + 1] = {
		[NUMBER_SIGNED] = {BPF_JEQ, BPF_JNE, BPF_JSLT, BPF_JSLE, BPF_JSGT, BPF_JSGE},
		[NUMBER_UNSIGNED] = {BPF_JEQ, BPF_JNE, BPF_JLT, BPF_JLE, BPF_JGT, BPF_JGE},
	};

	return ops[class][op];
}

static struct number_test integer_test(enum number_class class, enum filter_op op,
				       const struct filter_literal *literal)
{
	const wide low = class == NUMBER_SIGNED ? INT64_MIN : 0;
	const wide high = class == NUMBER_SIGNED ? (wide)INT64_MAX : (wide)UINT64_MAX;
	struct number_test test = {.class = class, .op = integer_op(class, op)};
	wide floor_, ceil_, value;
	bool inside;

	literal_bounds(literal, &floor_, &ceil_);
	switch (op) {
	case FILTER_EQ:
	case FILTER_NE:
		value = floor_;
		inside = floor_ == ceil_ && floor_ >= low && floor_ <= high;
		test.answer = inside            ? NUMBER_COMPARE
			      : op == FILTER_NE ? NUMBER_ALWAYS
						: NUMBER_NEVER;
		break;
	case FILTER_LT:
	case FILTER_GE:
		value = ceil_;
		inside = ceil_ > low && ceil_ <= high;
		test.answer = inside                                ? NUMBER_COMPARE
			      : (ceil_ > high) == (op == FILTER_LT) ? NUMBER_ALWAYS
								    : NUMBER_NEVER;
		break;
	default:
		value = floor_;
		inside = floor_ >= low && floor_ < high;
		test.answer = inside                                  ? NUMBER_COMPARE
			      : (floor_ >= high) == (op == FILTER_LE) ? NUMBER_ALWAYS
								      : NUMBER_NEVER;
		break;
	}
	test.value = (uint64_t)value;
	return test;
}

/* ---- floats ---- */

static uint64_t float_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Maps floats to unsigned numbers in the same order. -0 comes right before 0, and NaNs are at both
 * ends. */
static uint64_t float_place(double value)
{
	uint64_t bits = float_bits(value);

	return bits & SIGN ? ~bits : bits | SIGN;
}

/* The nearest floats around a literal: below <= literal <= above. */
static void float_bounds(const struct filter_literal *literal, double *below, double *above)
{
	double nearest, up, down;

	if (literal->type == FILTER_LITERAL_FLOAT) {
		*below = *above = literal->f64;
		return;
	}
	nearest = up = down = (double)literal->magnitude;
	if (nearest >= 0x1p64 || (uint64_t)nearest > literal->magnitude)
		down = nextafter(nearest, 0);
	else if ((uint64_t)nearest < literal->magnitude)
		up = nextafter(nearest, INFINITY);
	*below = literal->negative ? -up : down;
	*above = literal->negative ? -down : up;
}

/* The sign of a literal 0 does not matter: a range that includes 0 includes -0. */
static struct number_test float_range(double from, double to)
{
	struct number_test test = {
		.answer = NUMBER_COMPARE, .class = NUMBER_FLOAT, .op = BPF_JLE, .range = true};

	test.low = float_place(from == 0 ? -0.0 : from);
	test.span = float_place(to == 0 ? 0.0 : to) - test.low;
	return test;
}

static struct number_test float_test(enum filter_op op, const struct filter_literal *literal)
{
	struct number_test test = {.class = NUMBER_FLOAT, .answer = NUMBER_COMPARE};
	double below, above;

	float_bounds(literal, &below, &above);
	switch (op) {
	case FILTER_EQ:
	case FILTER_NE:
		if (below != above)
			test.answer = op == FILTER_NE ? NUMBER_ALWAYS : NUMBER_NEVER;
		test.op = op == FILTER_NE ? BPF_JNE : BPF_JEQ;
		test.value = below == 0 ? 0 : float_bits(below);
		return test;
	case FILTER_LT:
		return float_range(-INFINITY, below != above ? below : nextafter(below, -INFINITY));
	case FILTER_LE:
		return float_range(-INFINITY, below);
	case FILTER_GT:
		return float_range(below != above ? above : nextafter(above, INFINITY), INFINITY);
	default:
		return float_range(above, INFINITY);
	}
}

struct number_test number_test_make(enum number_class class, enum filter_op op,
				    const struct filter_literal *literal)
{
	op = op == FILTER_IN ? FILTER_EQ : op;
	return class == NUMBER_FLOAT ? float_test(op, literal) : integer_test(class, op, literal);
}

// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "export/process/exp_histogram_internal.h"

void exp_histogram_init(struct exp_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->scale = EXP_HISTOGRAM_SCALE_MAX;
}

/* The octave is exact, since it comes from the exponent. Within it, the logarithm may put a value
 * that is as good as equal to a bound on either side of it. */
int32_t exp_histogram_index(double value, int32_t scale)
{
	int exponent;
	double fraction = frexp(value, &exponent); /* value = fraction * 2^exponent, in [0.5, 1) */
	int32_t octave = exponent - 1, within;

	if (fraction == 0.5) /* a power of two is the upper bound of the bucket below */
		return scale > 0 ? octave * (1 << scale) - 1 : (octave - 1) >> -scale;
	if (scale <= 0)
		return octave >> -scale;
	within = (int32_t)(log2(2 * fraction) * (1 << scale));
	if (within >= 1 << scale)
		within = (1 << scale) - 1;
	return octave * (1 << scale) + within;
}

double exp_histogram_bound(int32_t index, int32_t scale)
{
	int64_t next = (int64_t)index + 1;

	if (scale <= 0)
		return ldexp(1, (int)(next * (1 << -scale)));
	return ldexp(exp2((double)(next & ((1 << scale) - 1)) / (1 << scale)),
		     (int)(next >> scale));
}

static void halve(struct exp_histogram *histogram)
{
	int32_t offset = histogram->offset >> 1;
	uint32_t used = 0;

	for (uint32_t i = 0; i < histogram->used; i++) {
		uint64_t count = histogram->buckets[i];
		uint32_t to = (uint32_t)(((histogram->offset + (int32_t)i) >> 1) - offset);

		histogram->buckets[i] = 0;
		histogram->buckets[to] += count;
		used = to + 1;
	}
	histogram->offset = offset;
	histogram->used = used;
	histogram->scale--;
}

void exp_histogram_coarsen(struct exp_histogram *histogram, int32_t scale, uint32_t buckets)
{
	while (histogram->scale > EXP_HISTOGRAM_SCALE_MIN &&
	       (histogram->scale > scale || histogram->used > buckets))
		halve(histogram);
}

/* The number of buckets if `index` were one of them. */
static int64_t span_with(const struct exp_histogram *histogram, int32_t index)
{
	int64_t first = histogram->offset, last = first + histogram->used - 1;

	return histogram->used ? (index > last ? index : last) - (index < first ? index : first) + 1
			       : 1;
}

static void bucket_add(struct exp_histogram *histogram, int32_t index)
{
	uint32_t move;

	if (!histogram->used) {
		histogram->offset = index;
	} else if (index < histogram->offset) {
		move = (uint32_t)(histogram->offset - index);
		memmove(histogram->buckets + move, histogram->buckets,
			histogram->used * sizeof(*histogram->buckets));
		memset(histogram->buckets, 0, move * sizeof(*histogram->buckets));
		histogram->offset = index;
		histogram->used += move;
	}
	if ((uint32_t)(index - histogram->offset) >= histogram->used)
		histogram->used = (uint32_t)(index - histogram->offset) + 1;
	histogram->buckets[index - histogram->offset]++;
}

bool exp_histogram_add(struct exp_histogram *histogram, double value)
{
	int32_t index;

	if (!(value >= 0) || isinf(value))
		return false;
	if (!histogram->count || value < histogram->min)
		histogram->min = value;
	if (!histogram->count || value > histogram->max)
		histogram->max = value;
	histogram->count++;
	histogram->sum += value;
	if (value == 0) {
		histogram->zeros++;
		return true;
	}
	while (span_with(histogram, index = exp_histogram_index(value, histogram->scale)) >
	       EXP_HISTOGRAM_BUCKETS)
		halve(histogram);
	bucket_add(histogram, index);
	return true;
}

void exp_histogram_exemplify(struct exp_histogram *histogram, const struct exemplar *exemplar)
{
	unsigned slot = exemplar->value > 0
				? (unsigned)ilogb(exemplar->value) % EXP_HISTOGRAM_EXEMPLARS
				: 0;

	histogram->exemplars[slot] = *exemplar;
}

const struct exemplar *exp_histogram_exemplar(const struct exp_histogram *histogram, double low,
					      double high)
{
	const struct exemplar *found = NULL;

	for (size_t i = 0; i < EXP_HISTOGRAM_EXEMPLARS; i++) {
		const struct exemplar *at = &histogram->exemplars[i];

		if (at->unix_ns && at->value > low && at->value <= high &&
		    (!found || at->unix_ns > found->unix_ns))
			found = at;
	}
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponential histograms, as OpenTelemetry's data model defines them (ExponentialHistogram): bucket
 * i counts the values in (base^i, base^(i+1)], base = 2^(2^-scale). When a value does not fit into
 * EXP_HISTOGRAM_BUCKETS buckets, neighbours are merged and the scale falls by one. So the relative
 * error follows from the range of the values: 4 % for a range of 1 to 1,000,000.
 */
#ifndef WAFFLE_EXPORT_PROCESS_EXP_HISTOGRAM_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_EXP_HISTOGRAM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define EXP_HISTOGRAM_BUCKETS 160
#define EXP_HISTOGRAM_SCALE_MAX 20
#define EXP_HISTOGRAM_SCALE_MIN (-10)
#define EXP_HISTOGRAM_EXEMPLARS 8

/* A record whose value is in a bucket. */
struct exemplar {
	double value;
	uint64_t unix_ns; /* 0: there is none */
	uint64_t trace_hi, trace_lo, span_id;
	bool fresh; /* newer than the last snapshot */
};

struct exp_histogram {
	uint64_t count, zeros; /* of all values; of the value 0 */
	double sum, min, max;  /* valid if count is not 0 */
	int32_t scale;
	int32_t offset; /* index of buckets[0] */
	uint32_t used;  /* buckets, from the first to the last one that is not 0 */
	uint64_t buckets[EXP_HISTOGRAM_BUCKETS];
	struct exemplar exemplars[EXP_HISTOGRAM_EXEMPLARS];
};

void exp_histogram_init(struct exp_histogram *histogram);
/* Counts a value. False: it is negative or not a number, and not counted. */
bool exp_histogram_add(struct exp_histogram *histogram, double value);
/* Keeps an exemplar: the latest one of each octave, of eight octaves. */
void exp_histogram_exemplify(struct exp_histogram *histogram, const struct exemplar *exemplar);
/* The latest exemplar whose value is in (low, high]; NULL: there is none. */
const struct exemplar *exp_histogram_exemplar(const struct exp_histogram *histogram, double low,
					      double high);
/* Merges buckets until the scale is at most `scale`, and there are at most `buckets`. */
void exp_histogram_coarsen(struct exp_histogram *histogram, int32_t scale, uint32_t buckets);
/* The bucket of a value greater than 0. */
int32_t exp_histogram_index(double value, int32_t scale);
/* The upper bound of a bucket, which belongs to it. */
double exp_histogram_bound(int32_t index, int32_t scale);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All lines that satisfy a set of bounds. A line is the correction of one clock to another: at the
 * time x of the first clock, the second one shows x + y, and y = offset + drift * x. A bound says
 * that y is at most, or at least, so much at some x.
 *
 * In the plane of offset and drift such a line is a point and a bound is a half plane. So the lines
 * that satisfy all bounds are a convex polygon, and each further bound cuts a part off. The extreme
 * values of y at any x lie at corners of the polygon. Bounds need not be kept, except those that
 * are edges.
 *
 *	struct clock_lines lines = {0};
 *
 *	if (!clock_lines_cut(&lines, &(struct clock_bound){.ts = 1000, .ns = 70, .upper = true}))
 *		… lines.conflict contradicts the bound
 *	clock_lines_at(&lines, 2000, &low, &high);
 */
#ifndef WAFFLE_MODEL_CLOCK_CLOCK_LINES_INTERNAL_H
#define WAFFLE_MODEL_CLOCK_CLOCK_LINES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/host.h"

/* The largest drift of two clocks that is taken for possible: the kernel corrects the rate of each
 * CLOCK_MONOTONIC by up to 500 ppm (MAXFREQ in linux/timex.h). */
#define CLOCK_DRIFT_MAX STORE_DRIFT_MAX

#define CLOCK_NO_TAG UINT32_MAX

/* Times and differences beyond 2^52 ns, 52 days, are ignored: a double has no room for their
 * nanoseconds. */
#define CLOCK_SPAN_MAX (INT64_C(1) << 52)

#define CLOCK_CORNERS_MAX 48

/* At the time `ts`, the correction is at most (`upper`) or at least ns. */
struct clock_bound {
	int64_t ts, ns;
	uint32_t tag; /* the caller's; CLOCK_NO_TAG: none */
	bool upper;
};

struct clock_corner {
	double offset, drift; /* relative to the origin, in ns and ns/ns */
	/* The edge from this corner to the next one: the bound that cut there. */
	double x, y;
	uint32_t tag;
	uint8_t kind; /* enum clock_edge */
};

/* All zero: every line. */
struct clock_lines {
	int64_t x0, y0; /* the origin: the first bound */
	uint32_t count; /* of corners; 0: every line */
	uint32_t conflict;
	struct clock_corner corners[CLOCK_CORNERS_MAX];
};

/*
 * Removes the lines that a bound forbids. False: none would be left. Then the lines stay as they
 * are, and `conflict` is the tag of an earlier bound that contradicts this one; CLOCK_NO_TAG: only
 * an impossible drift would satisfy both. A bound that would make more than CLOCK_CORNERS_MAX
 * corners is ignored, which leaves more lines than necessary but never fewer.
 */
bool clock_lines_cut(struct clock_lines *lines, const struct clock_bound *bound);

#define CLOCK_LOW_NONE INT64_MIN
#define CLOCK_HIGH_NONE INT64_MAX
/* The smallest and the largest correction at ts, rounded outwards. CLOCK_LOW_NONE and
 * CLOCK_HIGH_NONE: nothing bounds that side. */
void clock_lines_at(const struct clock_lines *lines, int64_t ts, int64_t *low, int64_t *high);

/* The middle of the drifts of all lines whose correction at ts is ns; 0: no line has it. */
double clock_lines_drift(const struct clock_lines *lines, int64_t ts, int64_t ns);

#endif

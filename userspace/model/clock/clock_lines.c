// SPDX-License-Identifier: Apache-2.0
#include "model/clock/clock_lines_internal.h"

#include <math.h>
#include <string.h>

/* Bounds are whole nanoseconds, so a corner that violates one by less does so by rounding. */
#define ROUNDING 0.01
/* No correction lies this far from the first bound's. */
#define OFFSET_MAX 0x1p53

/* What cut an edge: a bound on the correction, or the limits of drift and offset. */
enum clock_edge { EDGE_LOWER, EDGE_UPPER, EDGE_DRIFT, EDGE_OFFSET };

static double value_at(const struct clock_corner *corner, double x)
{
	return corner->offset + corner->drift * x;
}

/* ---- cutting ---- */

/* Starts with a rectangle of all offsets and drifts. */
static void lines_begin(struct clock_lines *lines, const struct clock_bound *bound)
{
	const double d = CLOCK_DRIFT_MAX, o = OFFSET_MAX;
	const struct clock_corner corners[] = {
		{-o, -d, 0, -d, CLOCK_NO_TAG, EDGE_DRIFT},
		{o, -d, 0, o, CLOCK_NO_TAG, EDGE_OFFSET},
		{o, d, 0, d, CLOCK_NO_TAG, EDGE_DRIFT},
		{-o, d, 0, -o, CLOCK_NO_TAG, EDGE_OFFSET},
	};

	lines->x0 = bound->ts;
	lines->y0 = bound->ns;
	lines->count = 4;
	memcpy(lines->corners, corners, sizeof(corners));
}

/* The corner between the edge of a corner and the bound's line offset + drift * x = y. It is
 * computed from the bounds and not from the corners, so errors do not add up. */
static struct clock_corner crossing(const struct clock_corner *edge, double x, double y)
{
	struct clock_corner at = *edge;

	if (edge->kind == EDGE_DRIFT)
		at.drift = edge->y;
	else if (edge->kind == EDGE_OFFSET)
		at.drift = (y - edge->y) / x;
	else
		at.drift = (y - edge->y) / (x - edge->x);
	at.offset = edge->kind == EDGE_OFFSET ? edge->y : y - at.drift * x;
	return at;
}

/* By how much a corner violates a bound; at most 0: not at all. */
static double excess(const struct clock_corner *corner, double x, double y, bool upper)
{
	return upper ? value_at(corner, x) - y : y - value_at(corner, x);
}

/* Stores the remaining corners. The polygon is convex, so the removed ones are neighbours. */
static void lines_keep(struct clock_lines *lines, double x, double y,
		       const struct clock_bound *bound)
{
	struct clock_corner kept[CLOCK_CORNERS_MAX + 1];
	bool upper = bound->upper;
	uint32_t count = 0;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct clock_corner *corner = &lines->corners[i];
		const struct clock_corner *next = &lines->corners[(i + 1) % lines->count];
		bool out = excess(corner, x, y, upper) > ROUNDING;
		bool next_out = excess(next, x, y, upper) > ROUNDING;

		if (count > CLOCK_CORNERS_MAX - 1)
			return;
		if (!out)
			kept[count++] = *corner;
		if (out == next_out)
			continue;
		kept[count] = crossing(corner, x, y);
		if (next_out) {
			/* The new edge begins where the old one leaves the bound. */
			kept[count].x = x;
			kept[count].y = y;
			kept[count].tag = bound->tag;
			kept[count].kind = upper ? EDGE_UPPER : EDGE_LOWER;
		}
		count++;
	}
	if (count > CLOCK_CORNERS_MAX)
		return;
	memcpy(lines->corners, kept, count * sizeof(*kept));
	lines->count = count;
}

/* The tag of the opposite bound that comes closest to an impossible one. */
static uint32_t nearest_tag(const struct clock_lines *lines, double x, double y, bool upper)
{
	double least = INFINITY;
	uint32_t tag = CLOCK_NO_TAG;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct clock_corner *corner = &lines->corners[i];
		const struct clock_corner *next = &lines->corners[(i + 1) % lines->count];
		double out = fmin(excess(corner, x, y, upper), excess(next, x, y, upper));

		if (corner->kind != (upper ? EDGE_LOWER : EDGE_UPPER) || out >= least)
			continue;
		least = out;
		tag = corner->tag;
	}
	return tag;
}

bool clock_lines_cut(struct clock_lines *lines, const struct clock_bound *bound)
{
	double x, y, worst = -1, least = INFINITY;

	if (!lines->count)
		lines_begin(lines, bound);
	if (bound->ts - lines->x0 > CLOCK_SPAN_MAX || lines->x0 - bound->ts > CLOCK_SPAN_MAX ||
	    bound->ns - lines->y0 > CLOCK_SPAN_MAX || lines->y0 - bound->ns > CLOCK_SPAN_MAX)
		return true;
	x = (double)(bound->ts - lines->x0);
	y = (double)(bound->ns - lines->y0);
	for (uint32_t i = 0; i < lines->count; i++) {
		double out = excess(&lines->corners[i], x, y, bound->upper);

		worst = fmax(worst, out);
		least = fmin(least, out);
	}
	if (worst <= ROUNDING)
		return true;
	if (least > ROUNDING) {
		lines->conflict = nearest_tag(lines, x, y, bound->upper);
		return false;
	}
	lines_keep(lines, x, y, bound);
	return true;
}

/* ---- values ---- */

void clock_lines_at(const struct clock_lines *lines, int64_t ts, int64_t *low, int64_t *high)
{
	double x = (double)(ts - lines->x0), least = INFINITY, most = -INFINITY;

	for (uint32_t i = 0; i < lines->count; i++) {
		double value = value_at(&lines->corners[i], x);

		least = fmin(least, value);
		most = fmax(most, value);
	}
	*low = CLOCK_LOW_NONE;
	*high = CLOCK_HIGH_NONE;
	if (lines->count && least > -OFFSET_MAX / 2)
		*low = lines->y0 + (int64_t)floor(least - ROUNDING);
	if (lines->count && most < OFFSET_MAX / 2)
		*high = lines->y0 + (int64_t)ceil(most + ROUNDING);
}

double clock_lines_drift(const struct clock_lines *lines, int64_t ts, int64_t ns)
{
	double x = (double)(ts - lines->x0), y = (double)(ns - lines->y0);
	double least = INFINITY, most = -INFINITY;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct clock_corner *a = &lines->corners[i];
		const struct clock_corner *b = &lines->corners[(i + 1) % lines->count];
		double from = value_at(a, x) - y, to = value_at(b, x) - y;
		double drift;

		if ((from < 0) == (to < 0))
			continue;
		drift = a->drift + (b->drift - a->drift) * (from / (from - to));
		least = fmin(least, drift);
		most = fmax(most, drift);
	}
	return most >= least ? (least + most) / 2 : 0;
}

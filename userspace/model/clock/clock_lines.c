// SPDX-License-Identifier: Apache-2.0
#include "model/clock/clock_lines_internal.h"

#include <math.h>
#include <string.h>

/* Bounds are whole nanoseconds. A corner that violates one by less than this, in ns, is only
 * rounded differently. */
#define ROUNDING 0.01
/* No correction lies this far from the first bound's. */
#define OFFSET_MAX 0x1p53

/* What cut an edge: a bound on the correction, or the limits of drift and offset. */
enum clock_edge { EDGE_LOWER, EDGE_UPPER, EDGE_DRIFT, EDGE_OFFSET };

/* Times and differences of times are any numbers of 64 bits. */
static double distance(int64_t from, int64_t to)
{
	return (double)((__int128)to - from);
}

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

/* A bound whose line is almost parallel to an edge crosses it nowhere near. The limit of the drift
 * leaves room for rounding. */
static bool corner_is_possible(const struct clock_corner *corner)
{
	return isfinite(corner->offset) && fabs(corner->drift) <= CLOCK_DRIFT_MAX * (1 + 1e-9);
}

/* By how much a corner violates a bound; at most 0: not at all. */
static double excess(const struct clock_corner *corner, double x, double y, bool upper)
{
	return upper ? value_at(corner, x) - y : y - value_at(corner, x);
}

/* Stores the remaining corners. The polygon is convex, so the removed ones are neighbours. A cut
 * whose corners can't be computed is left out. */
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
		if (!corner_is_possible(&kept[count]))
			return;
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

/* Whether a bound cuts nothing off. Nearly all bounds of a long job are like that. */
static bool all_satisfy(const struct clock_lines *lines, double x, double y, bool upper)
{
	for (uint32_t i = 0; i < lines->count; i++)
		if (excess(&lines->corners[i], x, y, upper) > ROUNDING)
			return false;
	return true;
}

static bool none_satisfies(const struct clock_lines *lines, double x, double y, bool upper)
{
	for (uint32_t i = 0; i < lines->count; i++)
		if (!(excess(&lines->corners[i], x, y, upper) > ROUNDING))
			return false;
	return true;
}

bool clock_lines_cut(struct clock_lines *lines, const struct clock_bound *bound)
{
	double x, y;

	if (!lines->count)
		lines_begin(lines, bound);
	x = distance(lines->x0, bound->ts);
	y = distance(lines->y0, bound->ns);
	if (fabs(x) > (double)CLOCK_SPAN_MAX || fabs(y) > (double)CLOCK_SPAN_MAX)
		return true;
	if (all_satisfy(lines, x, y, bound->upper))
		return true;
	if (none_satisfies(lines, x, y, bound->upper)) {
		lines->conflict = nearest_tag(lines, x, y, bound->upper);
		return false;
	}
	lines_keep(lines, x, y, bound);
	return true;
}

/* ---- values ---- */

/* False: the value is as large as what nothing bounds, or too large for a number of 64 bits. */
static bool bound_at(const struct clock_lines *lines, double value, int64_t *ns)
{
	return fabs(value) < OFFSET_MAX / 2 &&
	       !__builtin_add_overflow(lines->y0, (int64_t)value, ns);
}

void clock_lines_at(const struct clock_lines *lines, int64_t ts, int64_t *low, int64_t *high)
{
	double x = distance(lines->x0, ts), least = INFINITY, most = -INFINITY;

	for (uint32_t i = 0; i < lines->count; i++) {
		double value = value_at(&lines->corners[i], x);

		least = fmin(least, value);
		most = fmax(most, value);
	}
	if (!lines->count || !bound_at(lines, floor(least - ROUNDING), low))
		*low = CLOCK_LOW_NONE;
	if (!lines->count || !bound_at(lines, ceil(most + ROUNDING), high))
		*high = CLOCK_HIGH_NONE;
}

double clock_lines_drift(const struct clock_lines *lines, int64_t ts, int64_t ns)
{
	double x = distance(lines->x0, ts), y = distance(lines->y0, ns);
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
	if (!(most >= least))
		return 0;
	return fmax(-CLOCK_DRIFT_MAX, fmin((least + most) / 2, CLOCK_DRIFT_MAX));
}

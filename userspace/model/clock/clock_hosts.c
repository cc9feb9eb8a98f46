// SPDX-License-Identifier: Apache-2.0
#include "model/clock/clock_hosts_internal.h"

#include <math.h>
#include <stdlib.h>

#include "model/clock/clock_lines_internal.h"
#include "util/memory.h"

#define TS_MAX (INT64_C(1) << 61) /* differences of such times still have room */
/* Each round carries bounds over one more host; few jobs need more than three. */
#define ROUNDS_MAX 16

/* The corrections of `of`'s clock to `to`'s. */
struct pair {
	uint32_t of, to;
	struct clock_lines lines;
};

struct clock_hosts {
	uint32_t count;
	/* Of host `of` to host `to`: at of * count + to, the index in pairs + 1. Each fact looks up
	 * two pairs, so this is no hash map. */
	uint32_t *index;
	VEC(struct pair) pairs;
	bool contradicts;
	struct clock_conflict conflict;
};

struct clock_hosts *clock_hosts_new(uint32_t count)
{
	struct clock_hosts *hosts = memory_zeroed(1, sizeof(*hosts));

	hosts->count = count;
	hosts->index = memory_zeroed((size_t)count * count, sizeof(*hosts->index));
	return hosts;
}

void clock_hosts_free(struct clock_hosts *hosts)
{
	if (!hosts)
		return;
	free(hosts->index);
	vec_free(&hosts->pairs);
	free(hosts);
}

/* ---- facts ---- */

static struct pair *pair_of(struct clock_hosts *hosts, uint32_t of, uint32_t to)
{
	uint32_t *found = &hosts->index[(size_t)of * hosts->count + to];

	if (!*found) {
		vec_add(&hosts->pairs, (struct pair){.of = of, .to = to});
		*found = (uint32_t)hosts->pairs.len;
	}
	return &hosts->pairs.data[*found - 1];
}

static void contradict(struct clock_hosts *hosts, const struct pair *pair, uint32_t tag)
{
	if (hosts->contradicts)
		return;
	hosts->contradicts = true;
	hosts->conflict =
		(struct clock_conflict){.first = pair->of < pair->to ? pair->of : pair->to,
					.second = pair->of < pair->to ? pair->to : pair->of,
					.tag = tag,
					.other_tag = pair->lines.conflict};
}

static void bound_add(struct clock_hosts *hosts, uint32_t of, uint32_t to,
		      const struct clock_bound *bound)
{
	struct pair *pair = pair_of(hosts, of, to);

	if (!clock_lines_cut(&pair->lines, bound))
		contradict(hosts, pair, bound->tag);
}

void clock_hosts_add(struct clock_hosts *hosts, const struct clock_before *before)
{
	int64_t first_ts, second_ts;

	if (before->first == before->second || before->first >= hosts->count ||
	    before->second >= hosts->count || before->first_ts > TS_MAX ||
	    before->second_ts > TS_MAX)
		return;
	first_ts = (int64_t)before->first_ts;
	second_ts = (int64_t)before->second_ts;
	/* When the first host did it, the second host's clock showed at most second_ts. */
	bound_add(hosts, before->first, before->second,
		  &(struct clock_bound){first_ts, second_ts - first_ts, before->tag, true});
	bound_add(hosts, before->second, before->first,
		  &(struct clock_bound){second_ts, first_ts - second_ts, before->tag, false});
}

/* ---- closure ---- */

struct solving {
	struct clock_hosts *hosts;
	uint32_t reference;
	const struct clock_window *windows;
	struct pair *own; /* of each host, to the reference */
	bool *changed, *next_changed;
};

static int64_t knot(const struct clock_window *window, unsigned index)
{
	uint64_t from = window->from_ts < TS_MAX ? window->from_ts : TS_MAX;
	uint64_t to = window->to_ts < TS_MAX ? window->to_ts : TS_MAX;

	if (to < from)
		to = from;
	return (int64_t)(from + (to - from) / (CLOCK_KNOTS - 1) * index);
}

/* The time of the reference's clock when the host's clock shows ts. */
static void own_at(const struct solving *solving, uint32_t host, int64_t ts, int64_t *low,
		   int64_t *high)
{
	*low = *high = ts;
	if (host == solving->reference)
		return;
	clock_lines_at(&solving->own[host].lines, ts, low, high);
	if (*low != CLOCK_LOW_NONE)
		*low += ts;
	if (*high != CLOCK_HIGH_NONE)
		*high += ts;
}

/* Cuts the host's own lines, unless the bound would narrow them by a nanosecond at most. */
static void own_cut(struct solving *solving, uint32_t host, struct clock_bound bound)
{
	struct pair *own = &solving->own[host];
	int64_t low, high;

	clock_lines_at(&own->lines, bound.ts, &low, &high);
	if (bound.upper ? high <= bound.ns + 1 : low >= bound.ns - 1)
		return;
	if (!clock_lines_cut(&own->lines, &bound))
		contradict(solving->hosts, own, bound.tag);
	else
		solving->next_changed[host] = true;
}

/* Carries what is known of pair->to's clock over to that of pair->of, at one time of the latter. */
static void carry_at(struct solving *solving, const struct pair *pair, int64_t ts)
{
	int64_t low, high, from, to, ignored;

	clock_lines_at(&pair->lines, ts, &low, &high);
	if (low != CLOCK_LOW_NONE) {
		own_at(solving, pair->to, ts + low, &from, &ignored);
		if (from != CLOCK_LOW_NONE)
			own_cut(solving, pair->of,
				(struct clock_bound){ts, from - ts, CLOCK_NO_TAG, false});
	}
	if (high != CLOCK_HIGH_NONE) {
		own_at(solving, pair->to, ts + high, &ignored, &to);
		if (to != CLOCK_HIGH_NONE)
			own_cut(solving, pair->of,
				(struct clock_bound){ts, to - ts, CLOCK_NO_TAG, true});
	}
}

static void carry_all(struct solving *solving)
{
	struct clock_hosts *hosts = solving->hosts;

	for (size_t i = 0; i < hosts->pairs.len; i++) {
		const struct pair *pair = &hosts->pairs.data[i];

		if (pair->of == solving->reference || pair->to == solving->reference ||
		    !solving->changed[pair->to])
			continue;
		for (unsigned k = 0; k < CLOCK_KNOTS; k++)
			carry_at(solving, pair, knot(&solving->windows[pair->of], k));
	}
}

static void close_pairs(struct solving *solving)
{
	struct clock_hosts *hosts = solving->hosts;
	bool any = true;

	for (uint32_t i = 0; i < hosts->count; i++) {
		uint32_t found = hosts->index[(size_t)i * hosts->count + solving->reference];

		solving->own[i] = (struct pair){.of = i, .to = solving->reference};
		if (found)
			solving->own[i] = hosts->pairs.data[found - 1];
		solving->changed[i] = found;
	}
	for (unsigned round = 0; any && !hosts->contradicts && round < ROUNDS_MAX; round++) {
		bool *changed = solving->changed;

		carry_all(solving);
		any = false;
		for (uint32_t i = 0; i < hosts->count; i++) {
			any |= solving->next_changed[i];
			changed[i] = false;
		}
		solving->changed = solving->next_changed;
		solving->next_changed = changed;
	}
}

/* ---- estimates ---- */

/* The knot at which the corrections are known best. Of several that are about as good, it is one
 * near the middle of the time, so that an error of the drift adds up over half of the time at most.
 */
static unsigned narrowest(const int64_t *low, const int64_t *high)
{
	int64_t least = high[0] - low[0];
	unsigned best = 0, middle = CLOCK_KNOTS / 2;

	for (unsigned k = 1; k < CLOCK_KNOTS; k++)
		if (high[k] - low[k] < least)
			least = high[k] - low[k];
	for (unsigned k = 0; k < CLOCK_KNOTS; k++)
		if (high[k] - low[k] <= least + least / 50 &&
		    (k <= middle || high[best] - low[best] > least + least / 50))
			best = k;
	return best;
}

/* The estimate is a line through the middle of the corrections at that knot. */
static void estimate_make(const struct solving *solving, uint32_t host,
			  struct clock_estimate *estimate)
{
	const struct clock_lines *lines = &solving->own[host].lines;
	int64_t low[CLOCK_KNOTS], high[CLOCK_KNOTS];
	unsigned best;

	*estimate = (struct clock_estimate){0};
	for (unsigned k = 0; k < CLOCK_KNOTS; k++) {
		int64_t ts = knot(&solving->windows[host], k);

		estimate->knot_ts[k] = (uint64_t)ts;
		clock_lines_at(lines, ts, &low[k], &high[k]);
		if (low[k] == CLOCK_LOW_NONE || high[k] == CLOCK_HIGH_NONE)
			return;
	}
	best = narrowest(low, high);
	estimate->known = true;
	estimate->at_ts = estimate->knot_ts[best];
	estimate->low_ns = low[best];
	estimate->high_ns = high[best];
	estimate->offset_ns = low[best] + (high[best] - low[best]) / 2;
	estimate->drift = clock_lines_drift(lines, (int64_t)estimate->at_ts, estimate->offset_ns);
	for (unsigned k = 0; k < CLOCK_KNOTS; k++) {
		double line = (double)estimate->offset_ns +
			      estimate->drift *
				      ((double)(int64_t)(estimate->knot_ts[k] - estimate->at_ts));
		double below = line - (double)low[k], above = (double)high[k] - line;

		/* Corrected times are rounded to whole ns. */
		estimate->knot_error_ns[k] = (uint64_t)ceil(fmax(fmax(below, above), 0)) + 1;
	}
}

static void estimates_make(const struct solving *solving, struct clock_estimate *estimates)
{
	for (uint32_t i = 0; i < solving->hosts->count; i++) {
		if (i != solving->reference) {
			estimate_make(solving, i, &estimates[i]);
			continue;
		}
		estimates[i] = (struct clock_estimate){
			.known = true, .at_ts = (uint64_t)knot(&solving->windows[i], 0)};
		for (unsigned k = 0; k < CLOCK_KNOTS; k++)
			estimates[i].knot_ts[k] = (uint64_t)knot(&solving->windows[i], k);
	}
}

bool clock_hosts_solve(struct clock_hosts *hosts, uint32_t reference,
		       const struct clock_window *windows, struct clock_estimate *estimates,
		       struct clock_conflict *conflict)
{
	struct solving solving = {
		.hosts = hosts,
		.reference = reference,
		.windows = windows,
		.own = memory_zeroed(hosts->count, sizeof(*solving.own)),
		.changed = memory_zeroed(hosts->count, sizeof(*solving.changed)),
		.next_changed = memory_zeroed(hosts->count, sizeof(*solving.changed)),
	};

	close_pairs(&solving);
	if (!hosts->contradicts)
		estimates_make(&solving, estimates);
	else
		*conflict = hosts->conflict;
	free(solving.own);
	free(solving.changed);
	free(solving.next_changed);
	return !hosts->contradicts;
}

/* ---- the store's form ---- */

void clock_estimate_store(const struct clock_estimate *estimate, uint64_t collectives,
			  struct store_clock *clock)
{
	*clock = (struct store_clock){.offset_ns = estimate->offset_ns,
				      .drift = estimate->drift,
				      .at_ts = estimate->at_ts,
				      .collectives = collectives,
				      .kind = STORE_CLOCK_ALIGNED};
	for (unsigned k = 0; k < CLOCK_KNOTS; k++) {
		uint64_t ts = store_clock_apply(clock, estimate->knot_ts[k]);
		uint64_t ns = estimate->knot_error_ns[k];

		if (ns > clock->error_ns)
			clock->error_ns = ns;
		/* The knots of a host that was seen for an instant only coincide. */
		if (clock->error_count && ts <= clock->errors[clock->error_count - 1].ts)
			continue;
		clock->errors[clock->error_count++] = (struct store_clock_error){ts, ns};
	}
}

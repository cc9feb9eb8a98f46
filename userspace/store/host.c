// SPDX-License-Identifier: Apache-2.0
#include "store/host.h"

#include <math.h>

#include "store/record.h"

uint64_t store_clock_apply(const struct store_clock *clock, uint64_t ts)
{
	double late = clock->drift * (double)(int64_t)(ts - clock->at_ts);
	__int128 corrected = (__int128)ts + clock->offset_ns + (int64_t)floor(late);

	if (corrected < 0)
		return 0;
	return corrected > RECORD_TS_MAX ? RECORD_TS_MAX : (uint64_t)corrected;
}

static uint64_t drifted(uint64_t ns, uint64_t distance)
{
	/* Both the true drift and the estimated one are within the limit, on either side of 0. */
	double more = (double)distance * 2 * STORE_DRIFT_MAX;

	return more < 0x1p62 ? ns + (uint64_t)more : UINT64_MAX;
}

uint64_t store_clock_error_at(const struct store_clock *clock, uint64_t ts)
{
	const struct store_clock_error *errors = clock->errors, *a, *b;
	uint32_t k = 1, last = clock->error_count - 1;
	double part;

	if (clock->kind == STORE_CLOCK_REFERENCE)
		return 0;
	if (clock->kind != STORE_CLOCK_ALIGNED || !clock->error_count)
		return clock->kind == STORE_CLOCK_ALIGNED ? clock->error_ns : UINT64_MAX;
	if (ts <= errors[0].ts)
		return drifted(errors[0].ns, errors[0].ts - ts);
	if (ts >= errors[last].ts)
		return drifted(errors[last].ns, ts - errors[last].ts);
	while (errors[k].ts < ts)
		k++;
	a = &errors[k - 1];
	b = &errors[k];
	part = (double)(ts - a->ts) / (double)(b->ts - a->ts);
	return (uint64_t)ceil((double)a->ns + part * ((double)b->ns - (double)a->ns));
}

struct store_clock store_clock_by_wall(const struct store_host *host,
				       const struct store_host *reference)
{
	struct store_clock clock = {.error_ns = UINT64_MAX, .kind = STORE_CLOCK_NONE};

	if (!host->real_ns || !reference->real_ns)
		return clock;
	clock.kind = STORE_CLOCK_WALL;
	clock.offset_ns = (int64_t)((host->real_ns - host->mono_ns) -
				    (reference->real_ns - reference->mono_ns));
	return clock;
}

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

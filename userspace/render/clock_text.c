// SPDX-License-Identifier: Apache-2.0
#include "render/clock_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/units.h"

/* The smallest of the errors, where the clock is known best. */
static uint64_t least_error(const struct store_clock *clock)
{
	uint64_t least = clock->error_ns;

	for (uint32_t i = 0; i < clock->error_count; i++)
		if (clock->errors[i].ns < least)
			least = clock->errors[i].ns;
	return least;
}

const char *clock_text(char *text, const struct store_clock *clock)
{
	char most[UNITS_TEXT], least[UNITS_TEXT];
	char sign = clock->offset_ns < 0 ? '-' : '+';
	uint64_t ns =
		clock->offset_ns < 0 ? 0 - (uint64_t)clock->offset_ns : (uint64_t)clock->offset_ns;

	switch (clock->kind) {
	case STORE_CLOCK_REFERENCE:
		return "times are in its clock";
	case STORE_CLOCK_WALL:
		snprintf(text, CLOCK_TEXT,
			 "clock %c %" PRIu64 ".%09" PRIu64 " s by the wall clock, error unknown",
			 sign, ns / 1000000000, ns % 1000000000);
		return text;
	case STORE_CLOCK_ALIGNED:
		snprintf(text, CLOCK_TEXT,
			 "clock %c %" PRIu64 ".%09" PRIu64
			 " s, error %s to %s, drift %+.2f ppm, from %" PRIu64 " %s",
			 sign, ns / 1000000000, ns % 1000000000,
			 units_format_duration(least, least_error(clock)),
			 units_format_duration(most, clock->error_ns), clock->drift * 1e6,
			 clock->collectives,
			 units_plural(clock->collectives, "collective or message",
				      "collectives and messages"));
		return text;
	default:
		return "clock not aligned";
	}
}

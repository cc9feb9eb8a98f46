// SPDX-License-Identifier: Apache-2.0
/* libFuzzer target: any facts about the clocks of four hosts. Each result is an interval that
 * contains its estimate, and corrected times rise. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock/clock_hosts_internal.h"

#define HOSTS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct clock_estimate *estimate)
{
	struct store_clock clock;
	uint64_t previous = 0;

	if (!estimate->known)
		return;
	require(estimate->low_ns <= estimate->offset_ns &&
		estimate->offset_ns <= estimate->high_ns);
	require(estimate->drift >= -CLOCK_DRIFT_MAX && estimate->drift <= CLOCK_DRIFT_MAX);
	clock_estimate_store(estimate, 1, &clock);
	require(clock.error_count >= 1 && clock.error_count <= STORE_CLOCK_ERRORS);
	for (uint32_t i = 1; i < clock.error_count; i++)
		require(clock.errors[i - 1].ts < clock.errors[i].ts);
	for (unsigned k = 0; k < CLOCK_KNOTS; k++) {
		uint64_t ts = store_clock_apply(&clock, estimate->knot_ts[k]);

		require(ts >= previous);
		require(store_clock_error_at(&clock, ts) <= clock.error_ns + 1);
		previous = ts;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clock_hosts *hosts = clock_hosts_new(HOSTS);
	struct clock_estimate estimates[HOSTS];
	struct clock_window windows[HOSTS];
	struct clock_conflict conflict;
	bool solved;

	if (size < sizeof(windows)) {
		clock_hosts_free(hosts);
		return 0;
	}
	memcpy(windows, data, sizeof(windows));
	for (size_t at = sizeof(windows); size - at >= 2 * sizeof(uint64_t) + 1;
	     at += 2 * sizeof(uint64_t) + 1) {
		struct clock_before before = {
			.first = data[at] & 3, .second = data[at] >> 2 & 3, .tag = (uint32_t)at};

		memcpy(&before.first_ts, data + at + 1, sizeof(uint64_t));
		memcpy(&before.second_ts, data + at + 9, sizeof(uint64_t));
		clock_hosts_add(hosts, &before);
	}
	solved = clock_hosts_solve(hosts, data[0] & 3, windows, estimates, &conflict);
	for (uint32_t i = 0; solved && i < HOSTS; i++)
		check(&estimates[i]);
	require(!solved || estimates[data[0] & 3].known);
	clock_hosts_free(hosts);
	return 0;
}

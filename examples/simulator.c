// SPDX-License-Identifier: Apache-2.0
/*
 * A simulator that records what happens in its own time: requests come to a server with a queue and
 * some disks. Ten simulated seconds take some milliseconds.
 *
 *	WAFFLE_TRACE=disks.waffle build/examples/simulator
 *	build/waffle-bpf report disks.waffle
 *	build/waffle-bpf export disks.waffle --format perfetto -o disks.pftrace
 *
 * Each disk is a track, and so are the requests, which overlap. A request's span has the time that
 * it waited and the time that it was served as its children. The simulated clock begins at 0 when
 * the program does.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <waffle_track.h>

#define DISKS 3
#define SECOND 1000000000ull

/* All of the simulation's names and tracks, made once. */
static struct {
	waffle_name_t *request, *wait, *service, *lost, *queued;
	waffle_track_t *requests, *disks[DISKS], *queue;
} traced;

static waffle_name_t *name_of(int kind, const char *text, const waffle_key_t *key)
{
	struct waffle_name_spec spec = {0};

	spec.size = sizeof(spec);
	spec.kind = kind;
	spec.name = text;
	spec.category = "simulation";
	spec.keys = key;
	spec.key_count = key ? 1 : 0;
	return waffle_name(&spec);
}

static void names_make(void)
{
	static const waffle_key_t number = {WAFFLE_KEY_U64, "number"};
	static const waffle_key_t bytes = {WAFFLE_KEY_U64, "bytes"};
	struct timespec now;
	waffle_clock_t *clock = waffle_clock("simulation");

	/* Simulated time is 0 now, and runs as fast as CLOCK_MONOTONIC. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	waffle_clock_pair(clock, 0, (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec);
	traced.request = name_of(WAFFLE_SITE_SPAN, "request", &number);
	traced.wait = name_of(WAFFLE_SITE_SPAN, "wait", NULL);
	traced.service = name_of(WAFFLE_SITE_SPAN, "service", &bytes);
	traced.lost = name_of(WAFFLE_SITE_LOG_WARN, "request rejected", &number);
	traced.queued = name_of(WAFFLE_SITE_COUNTER, "wait ms", NULL);
	traced.requests = waffle_track("requests", NULL, clock);
	traced.queue = waffle_track("queue", NULL, clock);
	for (int i = 0; i < DISKS; i++) {
		char text[16];

		snprintf(text, sizeof(text), "disk %d", i);
		traced.disks[i] = waffle_track(text, "disks", clock);
	}
}

/* Records a request. Its children are recorded first, as its end is known last. */
static void request_record(uint64_t number, uint64_t arrival, uint64_t start, uint64_t end,
			   int disk, uint64_t bytes)
{
	waffle_context_t none = {0, 0, 0};
	waffle_reserved_t span = waffle_span_reserve(none);

	if (start > arrival)
		waffle_span_complete_in(traced.requests, traced.wait, span.own, arrival,
					start - arrival, NULL, 0);
	waffle_span_complete_in(traced.disks[disk], traced.service, span.own, start, end - start,
				WAFFLE_VALUES(waffle_u64(bytes)));
	waffle_span_complete_reserved(traced.requests, traced.request, span, arrival, end - arrival,
				      WAFFLE_VALUES(waffle_u64(number)));
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % limit;
}

int main(void)
{
	uint64_t free_at[DISKS] = {0}, now = 0, served = 0, waited = 0, rejected = 0;

	names_make();
	for (uint64_t number = 1; now < 10 * SECOND; number++) {
		uint64_t bytes = 4096 << random_below(8), start;
		int disk = 0;

		now += random_below(SECOND / 100);
		for (int i = 1; i < DISKS; i++)
			if (free_at[i] < free_at[disk])
				disk = i;
		start = free_at[disk] > now ? free_at[disk] : now;
		if (start - now > SECOND / 125) {
			waffle_event_at(traced.requests, traced.lost, now,
					WAFFLE_VALUES(waffle_u64(number)));
			rejected++;
			continue;
		}
		free_at[disk] = start + SECOND / 200 + bytes * 20;
		request_record(number, now, start, free_at[disk], disk, bytes);
		waffle_counter_at(traced.queue, traced.queued, now,
				  waffle_f64((double)(start - now) / 1e6));
		served++;
		waited += start > now;
	}
	printf("%llu served, %llu of them waited, %llu rejected\n", (unsigned long long)served,
	       (unsigned long long)waited, (unsigned long long)rejected);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Decodes what the Perfetto exporter writes for a capture made by hand. The whole format is
 * checked with the official schema in tests/integration/test_export.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/formats.h"
#include "model_capture.h"
#include "perfetto.pb-c.h"

#define BOOT 5000 /* boot time at CAPTURE_START, as capture_begin() says */

struct seen {
	Pf__EventType type;
	uint64_t uuid, ts; /* since CAPTURE_START */
};

struct freed {
	int32_t tid;
	uint64_t ts;
};

struct frequency {
	uint64_t ts;
	uint32_t cpu, khz;
};

struct decoded {
	VEC(struct seen) events;
	VEC(struct frequency) frequencies;
	VEC(Pf__TrackDescriptor *) tracks;
	VEC(struct freed) freed;
	uint64_t track_of[64], time_of[64]; /* by sequence: its track, its time so far */
	bool delta_of[64];
};

static void decode_ftrace(struct decoded *d, const Pf__FtraceEventBundle *bundle)
{
	for (size_t i = 0; i < bundle->n_event; i++) {
		const Pf__CpuFrequency *frequency = bundle->event[i]->cpu_frequency;

		if (frequency)
			vec_push(&d->frequencies,
				 (struct frequency){bundle->event[i]->timestamp - BOOT,
						    frequency->cpu_id, frequency->state});
		if (bundle->event[i]->sched_process_free)
			vec_push(&d->freed,
				 (struct freed){bundle->event[i]->sched_process_free->pid,
						bundle->event[i]->timestamp - BOOT});
	}
}

static void decode_packet(struct decoded *d, const uint8_t *data, size_t len)
{
	Pf__Packet *packet = pf__packet__unpack(NULL, len, data);
	Pf__EventPacket *event = pf__event_packet__unpack(NULL, len, data);
	uint32_t sequence;

	assert_non_null(packet);
	sequence = packet->trusted_packet_sequence_id;
	assert_in_range(sequence, 1, 63);
	if (packet->trace_packet_defaults) {
		const Pf__TrackEventDefaults *track =
			packet->trace_packet_defaults->track_event_defaults;

		d->track_of[sequence] = track ? track->track_uuid : 0;
		d->delta_of[sequence] = packet->clock_snapshot != NULL;
		d->time_of[sequence] = packet->timestamp;
	}
	if (packet->ftrace_events)
		decode_ftrace(d, packet->ftrace_events);
	if (event) {
		uint64_t ts = event->timestamp;

		if (d->delta_of[sequence])
			ts = d->time_of[sequence] += ts;
		vec_push(&d->events, (struct seen){event->track_event->type,
						   event->track_event->has_track_uuid
							   ? event->track_event->track_uuid
							   : d->track_of[sequence],
						   ts - BOOT});
		pf__event_packet__free_unpacked(event, NULL);
	}
	if (packet->track_descriptor) {
		vec_push(&d->tracks, packet->track_descriptor);
		packet->track_descriptor = NULL;
	}
	pf__packet__free_unpacked(packet, NULL);
}

static struct decoded export_and_decode(const struct model *model)
{
	struct decoded d = {0};
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t len = 0, at = 0;
	FILE *file = open_memstream(&text, &len);

	assert_int_equal(perfetto_write(model, file, &err), 0);
	fclose(file);
	while (at < len) {
		size_t size = 0;

		assert_int_equal(text[at++], 0x0a);
		for (unsigned shift = 0;; shift += 7) {
			size |= (size_t)(text[at] & 0x7f) << shift;
			if (!(text[at++] & 0x80))
				break;
		}
		assert_true(at + size <= len);
		decode_packet(&d, (const uint8_t *)text + at, size);
		at += size;
	}
	free(text);
	return d;
}

static void decoded_free(struct decoded *d)
{
	for (size_t i = 0; i < d->tracks.len; i++)
		pf__track_descriptor__free_unpacked(d->tracks.data[i], NULL);
	vec_free(&d->tracks);
	vec_free(&d->events);
	vec_free(&d->freed);
	vec_free(&d->frequencies);
}

/* The track of the n-th life of a tid. */
static const Pf__TrackDescriptor *thread_track(const struct decoded *d, int64_t tid, int n)
{
	for (size_t i = 0; i < d->tracks.len; i++) {
		if (d->tracks.data[i]->thread && d->tracks.data[i]->thread->tid == tid && n-- == 0)
			return d->tracks.data[i];
	}
	fail_msg("no track of thread %lld", (long long)tid);
	return NULL;
}

/* "B5 B7 E9 …" of a track */
static void track_is(const struct decoded *d, uint64_t uuid, const char *expected)
{
	static const char letters[] = "?BEIC";
	char text[256] = "", *at = text;

	for (size_t i = 0; i < d->events.len; i++) {
		if (d->events.data[i].uuid == uuid)
			at += snprintf(at, (size_t)(text + sizeof(text) - at), "%s%c%llu",
				       at == text ? "" : " ", letters[d->events.data[i].type],
				       (unsigned long long)d->events.data[i].ts);
	}
	assert_string_equal(text, expected);
}

static void test_spans_on_a_thread_nest_and_their_times_are_kept(void **state)
{
	struct capture c;
	struct decoded d;

	(void)state;
	capture_begin(&c, false);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_span(&c, CAPTURE_START + 5, 10, 1);
	capture_span(&c, CAPTURE_START + 7, 10, 2);
	capture_end(&c, CAPTURE_START + 9, 10, 2);
	capture_span(&c, CAPTURE_START + 9, 10, 3); /* in the moment that 2 ends */
	capture_end(&c, CAPTURE_START + 20, 10, 3);
	capture_end(&c, CAPTURE_START + 20, 10, 1);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	track_is(&d, thread_track(&d, 10, 0)->uuid, "B5 B7 E9 B9 E20 E20");
	decoded_free(&d);
	capture_free(&c);
}

static void test_spans_begun_before_the_capture_are_nested_the_longest_outside(void **state)
{
	struct capture c;
	struct decoded d;

	(void)state;
	capture_begin(&c, false);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_end(&c, CAPTURE_START + 5, 10, 1); /* the inner one ends first */
	capture_end(&c, CAPTURE_START + 8, 10, 2);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	track_is(&d, thread_track(&d, 10, 0)->uuid, "B0 B0 E5 E8");
	decoded_free(&d);
	capture_free(&c);
}

static void test_span_that_is_never_ended_ends_with_the_capture(void **state)
{
	struct capture c;
	struct decoded d;

	(void)state;
	capture_begin(&c, false);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_span(&c, CAPTURE_START + 5, 10, 1);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	track_is(&d, thread_track(&d, 10, 0)->uuid, "B5 E100");
	decoded_free(&d);
	capture_free(&c);
}

static void test_spans_that_overlap_go_to_as_many_tracks_as_are_open_at_once(void **state)
{
	struct capture c;
	struct decoded d;
	uint64_t pool = 0;
	size_t tracks = 0;

	(void)state;
	capture_begin(&c, false);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_span(&c, CAPTURE_START + 1, 10, 1);
	capture_span(&c, CAPTURE_START + 2, 10, 2); /* outlives 1 */
	capture_end(&c, CAPTURE_START + 3, 10, 1);
	capture_end(&c, CAPTURE_START + 6, 10, 2);
	capture_span(&c, CAPTURE_START + 6, 10, 3);
	capture_span(&c, CAPTURE_START + 7, 10, 4); /* outlives 3; the track of 2 is free */
	capture_end(&c, CAPTURE_START + 8, 10, 3);
	capture_end(&c, CAPTURE_START + 9, 10, 4);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	for (size_t i = 0; i < d.tracks.len; i++) {
		if (d.tracks.data[i]->name.len == 4 &&
		    memcmp(d.tracks.data[i]->name.data, "step", 4) == 0) {
			pool = d.tracks.data[i]->uuid;
			tracks++;
			assert_int_equal(d.tracks.data[i]->parent_uuid,
					 thread_track(&d, 10, 0)->parent_uuid);
		}
	}
	assert_int_equal(tracks, 1);
	track_is(&d, thread_track(&d, 10, 0)->uuid, "B1 E3 B6 E8");
	track_is(&d, pool, "B2 E6 B7 E9");
	decoded_free(&d);
	capture_free(&c);
}

static void test_tid_used_again_has_a_second_track_and_the_first_is_freed_before(void **state)
{
	struct capture c;
	struct decoded d;

	(void)state;
	capture_begin(&c, true);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_task(&c, CAPTURE_START + 1, 11, 0, "first");
	capture_span(&c, CAPTURE_START + 2, 11, 1);
	capture_end(&c, CAPTURE_START + 3, 11, 1);
	capture_switch(&c, CAPTURE_START + 4, 0, 11, 10, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_gone(&c, CAPTURE_START + 5, 11, WAFFLE_REC_EXIT);
	capture_task(&c, CAPTURE_START + 50, 11, CAPTURE_START + 50, "second");
	capture_span(&c, CAPTURE_START + 51, 11, 2);
	capture_end(&c, CAPTURE_START + 52, 11, 2);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	track_is(&d, thread_track(&d, 11, 0)->uuid, "B2 E3");
	track_is(&d, thread_track(&d, 11, 1)->uuid, "B51 E52");
	assert_int_equal(d.freed.len, 1);
	assert_int_equal(d.freed.data[0].tid, 11);
	assert_in_range(d.freed.data[0].ts, 5, 50);
	decoded_free(&d);
	capture_free(&c);
}

static void frequency(struct capture *c, uint64_t ts, uint16_t cpu, uint32_t khz, uint32_t flags)
{
	capture_add(c, &(struct waffle_rec_frequency){.rec = {ts, 0, WAFFLE_REC_FREQUENCY, cpu},
						      .khz = khz,
						      .flags = flags});
}

static void test_frequencies_are_those_of_cpus_that_tell_of_changes(void **state)
{
	struct capture c;
	struct decoded d;

	(void)state;
	capture_begin(&c, true);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	frequency(&c, CAPTURE_START + 1, 0, 3000000, WAFFLE_FREQUENCY_READ);
	frequency(&c, CAPTURE_START + 1, 1, 3000000, WAFFLE_FREQUENCY_READ);
	capture_switch(&c, CAPTURE_START + 4, 0, 11, 10, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&c, CAPTURE_START + 5, 1, 11, 10, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	frequency(&c, CAPTURE_START + 9, 0, 1200000, 0);
	d = export_and_decode(capture_load(&c, CAPTURE_START + 100));
	assert_int_equal(d.frequencies.len, 2);
	assert_int_equal(d.frequencies.data[0].khz, 3000000);
	assert_int_equal(d.frequencies.data[0].ts, 1);
	assert_int_equal(d.frequencies.data[1].khz, 1200000);
	assert_int_equal(d.frequencies.data[1].ts, 9);
	assert_int_equal(d.frequencies.data[0].cpu + d.frequencies.data[1].cpu, 0);
	decoded_free(&d);
	capture_free(&c);
}

static void test_keys_of_one_name_are_numbered(void **state)
{
	const struct site_info site = {
		.name = "mix",
		.category = "",
		.file = "a.c",
		.func = "f",
		.object = "/bin/a",
		.kind = WAFFLE_SITE_EVENT,
		.key_count = 2,
		.keys = {{WAFFLE_KEY_CAUSE_EVENT, "cause"}, {WAFFLE_KEY_CAUSE_EVENT, "cause"}}};
	struct error err = ERROR_INIT;
	struct capture c;
	char *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);

	(void)state;
	capture_begin(&c, false);
	capture_must(store_writer_add_site(c.writer, &site, &err), err);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	capture_hit(&c, CAPTURE_START + 5, 10, CAPTURE_SITES, 1, 0, 2, (uint64_t[]){2, 3});
	assert_int_equal(perfetto_write(capture_load(&c, CAPTURE_START + 100), file, &err), 0);
	fclose(file);
	assert_non_null(memmem(text, len, "cause_2", 7));
	free(text);
	capture_free(&c);
}

static void test_full_disk_is_an_error(void **state)
{
	struct capture c;
	struct error err = ERROR_INIT;
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	capture_begin(&c, false);
	capture_task(&c, CAPTURE_START, 10, 0, "main");
	assert_true(perfetto_write(capture_load(&c, CAPTURE_START + 100), full, &err) < 0);
	assert_string_equal(err.message, "perfetto: No space left on device");
	fclose(full);
	capture_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_on_a_thread_nest_and_their_times_are_kept),
		cmocka_unit_test(
			test_spans_begun_before_the_capture_are_nested_the_longest_outside),
		cmocka_unit_test(test_span_that_is_never_ended_ends_with_the_capture),
		cmocka_unit_test(test_spans_that_overlap_go_to_as_many_tracks_as_are_open_at_once),
		cmocka_unit_test(
			test_tid_used_again_has_a_second_track_and_the_first_is_freed_before),
		cmocka_unit_test(test_frequencies_are_those_of_cpus_that_tell_of_changes),
		cmocka_unit_test(test_keys_of_one_name_are_numbered),
		cmocka_unit_test(test_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

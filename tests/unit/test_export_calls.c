// SPDX-License-Identifier: Apache-2.0
/* Calls in the output of exporters: names of code, dimensions, links, stacks. */
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

#include "calls_capture.h"

#define COMM 0xc0ffee
#define NAMES_MAX 256

static void rank_reduce(struct capture *capture, uint64_t rank, uint64_t from, uint64_t to)
{
	const uint64_t init[] = {rank, 2}, comm = COMM;
	const uint64_t words[] = {64, 7, COMM, rank, 2, 0, 0xa};
	uint32_t pid = (uint32_t)(100 + rank), tid = (uint32_t)(200 + rank);

	call_hit_in(capture, pid, 1500 + rank, tid, CALL_COMM_INIT, 0x50 + rank, 2, init);
	call_return_in(capture, pid, 1510 + rank, tid, CALL_COMM_INIT, 0x50 + rank, 1, &comm);
	call_hit_in(capture, pid, from, tid, CALL_ALL_REDUCE, 0x60 + rank, 7, words);
	call_return_in(capture, pid, to, tid, CALL_ALL_REDUCE, 0x60 + rank, 0, NULL);
}

/* A launch 1 with stacks and the sync 2 that waits for it, and an all-reduce 0x60 and 0x61, rank 1
 * late. */
static const struct model *load_calls(struct capture *capture)
{
	const uint64_t user[] = {0x7000}, kernel[] = {0xffffffff81000010};
	struct waffle_rec_stack stack = {.rec = {2000, 20, WAFFLE_REC_STACK, 0},
					 .id = 1,
					 .kernel_stack = 2,
					 .user_stack = 1};
	struct store_mapping mapping = {.ts = 1000,
					.pid = CAPTURE_PID,
					.start = 0x6000,
					.end = 0x8000,
					.path = "/gone/app"};
	struct store_symbol symbol = {0xffffffff81000010, 0x10, "do_ioctl"};
	struct store_name name = {0x9000, CAPTURE_PID, "gemm(float*)", 0};
	struct error err = ERROR_INIT;

	calls_begin(capture);
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	capture_must(store_writer_add_stack(capture->writer,
					    &(struct store_stack){user, 1, CAPTURE_PID, false},
					    &err),
		     err);
	capture_must(store_writer_add_stack(capture->writer,
					    &(struct store_stack){kernel, 1, 0, false}, &err),
		     err);
	capture_must(store_writer_add_mapping(capture->writer, &mapping, &err), err);
	capture_must(store_writer_add_symbol(capture->writer, &symbol, &err), err);
	rank_reduce(capture, 0, 1600, 1620);
	rank_reduce(capture, 1, 1700, 1720);
	call_hit(capture, 2000, 20, CALL_LAUNCH, 1, 0x9000, 2 | 3ull << 32, 4, 0xa);
	capture_add(capture, &stack);
	call_span(capture, 2100, 2500, 20, CALL_SYNC, 2, 0xa);
	return capture_load(capture, 9000);
}

typedef int (*write_fn)(const struct model *model, FILE *out, struct error *err);

static char *written(const struct model *model, write_fn write, size_t *len)
{
	struct error err = ERROR_INIT;
	FILE *file = tmpfile();
	char *text;

	assert_non_null(file);
	capture_must(write(model, file, &err), err);
	*len = (size_t)ftell(file);
	rewind(file);
	text = malloc(*len + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *len, file), *len);
	text[*len] = '\0';
	fclose(file);
	return text;
}

/* The first line with a text in it, which it is cut off behind. */
static const char *line_with(char *text, const char *wanted)
{
	char *found = strstr(text, wanted), *end;

	if (!found)
		fail_msg("no %s", wanted);
	end = strchr(found, '\n');
	if (end)
		*end = '\0';
	while (found > text && found[-1] != '\n')
		found--;
	return found;
}

#define assert_has(text, wanted)                                                                   \
	do {                                                                                       \
		if (!strstr(text, wanted))                                                         \
			fail_msg("no %s in %s", wanted, text);                                     \
	} while (0)

static void test_ndjson_has_names_dimensions_links_and_stacks_of_calls(void **state)
{
	struct capture capture;
	const struct model *model = load_calls(&capture);
	size_t len;
	char *text = written(model, ndjson_write, &len);
	const char *line = line_with(text, "\"id\":\"0000000000000060\",\"name\"");

	(void)state;
	assert_has(line, "\"links\":[{\"kind\":\"span\",\"id\":\"0000000000000061\"}]");
	free(text);
	text = written(model, ndjson_write, &len);
	line = line_with(text, "\"id\":\"0000000000000001\",\"name\"");
	assert_has(line, "\"category\":\"cuda\"");
	assert_has(line,
		   "\"args\":{\"kernel\":\"gemm(float*)\",\"grid\":[2,3,4],\"stream\":\"0xa\"}");
	assert_has(line, "\"user_stack\":[{\"module\":\"/gone/app\",\"offset\":\"0x1000\"}]");
	assert_has(line, "\"kernel_stack\":[{\"function\":\"do_ioctl\",");
	assert_null(strstr(line, "\"links\""));
	free(text);
	text = written(model, ndjson_write, &len);
	line = line_with(text, "\"id\":\"0000000000000002\",\"name\"");
	assert_has(line, "\"links\":[{\"kind\":\"event\",\"id\":\"0000000000000001\"}]");
	assert_null(strstr(line, "_stack\""));
	free(text);
	capture_free(&capture);
}

static void test_chrome_has_an_arrow_or_else_the_cause_of_a_call(void **state)
{
	struct capture capture;
	const struct model *model = load_calls(&capture);
	size_t len;
	char *text = written(model, chrome_write, &len), *at;
	unsigned arrows = 0;

	(void)state;
	assert_has(text, "\"grid\":[2,3,4]");
	assert_has(text, "\"waffle.kernel_stack\":[{\"function\":\"do_ioctl\",");
	assert_has(text, "\"waffle.id\":\"0000000000000060\","
			 "\"waffle.caused_by\":\"0000000000000061\"");
	for (at = text; (at = strstr(at, "\"ph\":\"s\"")); at++)
		arrows++;
	assert_int_equal(arrows, 1); /* from the launch to the sync */
	at = strstr(text, "caused_by");
	assert_null(strstr(at + 1, "caused_by"));
	free(text);
	capture_free(&capture);
}

/* ---- Perfetto ---- */

struct found {
	unsigned stacks, grids, causes;
	uint64_t cause;
};

/* Numbers are the same in all sequences; each is defined where it is used first. */
static void look_at(struct found *found, const Pf__EventPacket *packet, char (*names)[32],
		    char *stack, uint64_t *stack_iid)
{
	const Pf__InternedData *data = packet->interned_data;
	const Pf__TrackEvent *event = packet->track_event;

	for (size_t i = 0; data && i < data->n_debug_annotation_names; i++) {
		const Pf__InternedName *name = data->debug_annotation_names[i];

		assert_true(name->iid < NAMES_MAX);
		snprintf(names[name->iid], 32, "%.*s", (int)name->name.len, name->name.data);
	}
	for (size_t i = 0; data && i < data->n_debug_annotation_string_values; i++) {
		const Pf__InternedName *text = data->debug_annotation_string_values[i];

		if (text->iid < 1ull << 40)
			continue;
		snprintf(stack, 64, "%.*s", (int)text->name.len, text->name.data);
		*stack_iid = text->iid;
	}
	for (size_t i = 0; i < event->n_debug_annotations; i++) {
		const Pf__Annotation *annotation = event->debug_annotations[i];
		const char *name = names[annotation->name_iid];

		if (!strcmp(name, "grid")) {
			found->grids++;
			assert_int_equal(annotation->string_value.len, 7);
			assert_memory_equal(annotation->string_value.data, "[2,3,4]", 7);
		} else if (!strcmp(name, "stack")) {
			found->stacks++;
			assert_int_equal(annotation->string_value_iid, *stack_iid);
		} else if (!strcmp(name, "caused_by")) {
			found->causes++;
			found->cause = annotation->pointer_value;
		}
	}
}

static void test_perfetto_has_dimensions_stacks_and_late_causes_as_annotations(void **state)
{
	struct capture capture;
	const struct model *model = load_calls(&capture);
	char names[NAMES_MAX][32] = {{0}}, stack[64] = "";
	struct found found = {0};
	uint64_t stack_iid = 0;
	size_t len, at = 0;
	char *text = written(model, perfetto_write, &len);

	(void)state;
	while (at < len) {
		Pf__EventPacket *packet;
		size_t size = 0;

		assert_int_equal(text[at++], 0x0a);
		for (unsigned shift = 0;; shift += 7) {
			size |= (size_t)(text[at] & 0x7f) << shift;
			if (!(text[at++] & 0x80))
				break;
		}
		packet = pf__event_packet__unpack(NULL, size, (const uint8_t *)text + at);
		if (packet && packet->track_event)
			look_at(&found, packet, names, stack, &stack_iid);
		if (packet)
			pf__event_packet__free_unpacked(packet, NULL);
		at += size;
	}
	assert_int_equal(found.grids, 1);
	assert_int_equal(found.stacks, 1);
	assert_string_equal(stack, "do_ioctl\napp+0x1000");
	assert_int_equal(found.causes, 1);
	assert_int_equal(found.cause, 0x61);
	free(text);
	capture_free(&capture);
}

static void test_records_of_calls_are_written_as_they_are(void **state)
{
	struct capture capture;
	const struct model *model = load_calls(&capture);
	size_t len;
	char *text = written(model, records_write, &len);

	(void)state;
	assert_has(text, "\"kind\":\"return\",\"ts\":2500,\"cpu\":0,\"tid\":20,"
			 "\"span_id\":\"0000000000000002\"");
	assert_has(text, "\"id\":\"0000000000000001\",\"kernel_stack\":2,\"user_stack\":1,"
			 "\"python_stack\":0");
	free(text);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ndjson_has_names_dimensions_links_and_stacks_of_calls),
		cmocka_unit_test(test_chrome_has_an_arrow_or_else_the_cause_of_a_call),
		cmocka_unit_test(
			test_perfetto_has_dimensions_stacks_and_late_causes_as_annotations),
		cmocka_unit_test(test_records_of_calls_are_written_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

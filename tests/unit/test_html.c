// SPDX-License-Identifier: Apache-2.0
/* The data in the page of made-up captures; tests/integration/test_html.py sees it drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "why_capture.h"

#include "analyze/histogram.h"
#include "render/html/html_report.h"

struct page {
	char *text;
	yajl_val data;
};

static struct page page_of(const struct model *model)
{
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct error err = ERROR_INIT;
	struct report *report;
	struct page page = {0};
	char *data, *end, why[256] = "";
	size_t size;
	FILE *out = open_memstream(&page.text, &size);

	assert_non_null(out);
	capture_must(report_new(&report, model, &options, &err), err);
	html_report_write(report, out);
	report_free(report);
	fclose(out);
	data = strstr(page.text, "id=\"data\">");
	assert_non_null(data);
	data += strlen("id=\"data\">");
	end = strstr(data, "</script>");
	assert_non_null(end);
	*end = 0;
	page.data = yajl_tree_parse(data, why, sizeof(why));
	*end = '<';
	if (!page.data)
		fail_msg("%s", why);
	return page;
}

static void page_free(struct page *page)
{
	yajl_tree_free(page->data);
	free(page->text);
}

/* A path of keys and indexes: "slowest/0/view/lanes". */
static yajl_val at(const struct page *page, const char *path)
{
	yajl_val value = page->data;
	char key[64];

	for (int len; value && sscanf(path, "%63[^/]%n", key, &len) == 1; path += !!*path) {
		path += len;
		if (YAJL_IS_ARRAY(value)) {
			size_t index = (size_t)strtoul(key, NULL, 10);

			value = index < value->u.array.len ? value->u.array.values[index] : NULL;
		} else {
			value = yajl_tree_get(value, (const char *[]){key, NULL}, yajl_t_any);
		}
	}
	return value;
}

static long long number(const struct page *page, const char *path)
{
	yajl_val value = at(page, path);

	if (!value || !YAJL_IS_INTEGER(value))
		fail_msg("%s is no number", path);
	return YAJL_GET_INTEGER(value);
}

static const char *string(const struct page *page, const char *path)
{
	const char *text = YAJL_GET_STRING(at(page, path));

	if (!text)
		fail_msg("%s is no text", path);
	return text;
}

static void test_bins_are_without_gaps_and_a_quarter_wide(void **state)
{
	(void)state;
	for (unsigned bin = 0; bin < HISTOGRAM_BINS; bin++) {
		uint64_t from = histogram_bin_from(bin);
		uint64_t next = bin + 1 < HISTOGRAM_BINS ? histogram_bin_from(bin + 1) : 0;

		assert_int_equal(histogram_bin(from), bin);
		assert_int_equal(histogram_bin(next - 1), bin);
		assert_true(bin < 4 || next - from <= from / 4);
	}
}

/* Thread 11 waits for 12 for 300 ns and then is runnable for 50; names are markup. */
static const struct model *hostile(struct capture *capture)
{
	capture_begin(capture, true);
	capture_task(capture, 1000, 11, 1, "</script><b>");
	capture_task(capture, 1000, 12, 1, "b\xff");
	capture_state(capture, 1000, 11, WAFFLE_THREAD_RUNNING, false);
	capture_span(capture, 2000, 11, 1);
	capture_hit(capture, 2100, 11, SITE_LOAD, 2, 1, 2, (uint64_t[]){0, 0});
	capture_switch(capture, 2200, 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(capture, 2550, 1, 0, 11, 0, 12, 2500);
	capture_end(capture, 2600, 11, 2);
	capture_end(capture, 3000, 11, 1);
	return capture_load(capture, 9000);
}

static void test_page_holds_times_states_and_wakers_of_a_slow_span(void **state)
{
	struct capture capture;
	const struct model *model = hostile(&capture);
	struct page page = page_of(model);

	(void)state;
	assert_int_equal(number(&page, "capture/duration_ns"), 8000);
	assert_int_equal(number(&page, "spans/0/total_ns"), 1000);
	assert_int_equal(number(&page, "spans/0/bins/0/0"), histogram_bin(1000));
	assert_int_equal(number(&page, "spans/0/bins/0/1"), 1);
	assert_string_equal(string(&page, "slowest/0/name"), "step");
	assert_string_equal(string(&page, "slowest/0/thread"), "</script><b> (11)");
	assert_int_equal(number(&page, "slowest/0/start_ns"), 1000);
	assert_int_equal(number(&page, "slowest/0/blocked_ns"), 300);
	assert_string_equal(string(&page, "slowest/0/wait/text"),
			    "in futex, woken by b\xef\xbf\xbd (12)");
	/* The window begins 51 ns before the span. */
	assert_int_equal(number(&page, "slowest/0/view/from_ns"), 949);
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/spans/1/1"), 151);
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/spans/1/2"), 651);
	/* Running, blocked, runnable, running. */
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/states/1/0"), 251);
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/states/1/1"), 551);
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/states/1/2"), WAFFLE_THREAD_BLOCKED);
	assert_int_equal(number(&page, "slowest/0/view/lanes/0/states/2/2"),
			 WAFFLE_THREAD_RUNNABLE);
	assert_null(at(&page, "slowest/0/view/lanes/0/states/4"));
	page_free(&page);
	capture_free(&capture);
}

static void request(struct capture *capture, uint64_t from, uint64_t to, uint32_t tid,
		    uint32_t bytes, uint8_t flags)
{
	capture_add(capture, &(struct waffle_rec_io){.rec = {to, tid, WAFFLE_REC_IO, 0},
						     .issue_ts = from,
						     .bytes = bytes,
						     .dev = 8,
						     .disk = 80,
						     .flags = WAFFLE_IO_WRITE | flags});
}

/* Which file thread 11 writes is not known. */
static void test_a_neighbour_at_the_disk_is_shown_without_an_object(void **state)
{
	struct capture capture;
	struct page page;

	(void)state;
	capture_begin(&capture, true);
	kernel_stack(&capture, 0xffff000000001000, "folio_wait_writeback");
	named(&capture, 11, 1, "writer");
	named(&capture, 60, 60, "backup");
	gets(&capture, 1000, 1, 0, 11, 0, 0, 0);
	capture_span(&capture, 2000, 11, 1);
	waits(&capture, 2100, 1, 11, 0, D, NR_FSYNC, 3, 0, 0);
	request(&capture, 2200, 3000, 60, 65536, WAFFLE_IO_NEIGHBOUR);
	request(&capture, 2110, 3090, 11, 4096, 0);
	gets(&capture, 3100, 1, 0, 11, 0, 3100, HARD);
	wait_details(&capture, 2100, 3100, 11, 0, 1, 0);
	capture_end(&capture, 3200, 11, 1);
	page = page_of(capture_load(&capture, 9000));
	assert_string_equal(string(&page, "slowest/0/causes/0/cause"), "disk-write");
	assert_string_equal(string(&page, "slowest/0/causes/0/object"), "disk shared with backup");
	page_free(&page);
	capture_free(&capture);
}

static void test_flame_is_the_blocked_time_with_its_waker(void **state)
{
	struct capture capture;
	struct page page = page_of(hostile(&capture));
	char path[64];

	(void)state;
	assert_int_equal(number(&page, "flame/blocked_ns"), 300);
	assert_int_equal(number(&page, "flame/stack_ns"), 0);
	assert_int_equal(number(&page, "flame/stacks/0/2"), 300);
	assert_int_equal(number(&page, "flame/stacks/0/3"), 1);
	assert_null(at(&page, "flame/stacks/1"));
	snprintf(path, sizeof(path), "texts/%lld", number(&page, "flame/stacks/0/1"));
	assert_string_equal(string(&page, path), "woken by b\xef\xbf\xbd");
	snprintf(path, sizeof(path), "texts/%lld", number(&page, "flame/stacks/0/5/0"));
	assert_string_equal(string(&page, path), "[futex]");
	page_free(&page);
	capture_free(&capture);
}

static void test_data_cannot_end_its_element(void **state)
{
	struct capture capture;
	struct page page = page_of(hostile(&capture));
	unsigned ends = 0;

	(void)state;
	for (const char *text = page.text; (text = strstr(text, "</script")); text++)
		ends++;
	assert_int_equal(ends, 3);
	assert_null(strstr(page.text, "<b>"));
	assert_non_null(strstr(page.text, "\\u003c/script>\\u003cb>"));
	page_free(&page);
	capture_free(&capture);
}

static void test_page_of_nothing_is_a_page(void **state)
{
	struct capture capture;
	struct page page;

	(void)state;
	capture_begin(&capture, false);
	page = page_of(capture_load(&capture, 2000));
	assert_null(at(&page, "spans/0"));
	assert_null(at(&page, "slowest/0"));
	assert_int_equal(number(&page, "flame/blocked_ns"), 0);
	assert_non_null(strstr(string(&page, "warnings/0"), "scheduler was not recorded"));
	page_free(&page);
	capture_free(&capture);
}

/* A chain of 60 spans, of which the first five have a cause each: five origins with long ways. */
static void test_story_of_many_steps_says_that_it_is_shortened(void **state)
{
	static const char cut[] = "  … shortened: why --event 0000000000000f00 prints it whole\n";
	struct capture capture;
	struct page page;
	const char *story;

	(void)state;
	capture_begin(&capture, false);
	capture_task(&capture, 1000, 11, 1, "fourteen-chars");
	for (uint64_t i = 0; i < 60; i++) {
		const uint64_t words[] = {i ? 0x1000 + i - 1 : 0, i < 5 ? 0xe00 + i : 0};

		capture_hit(&capture, 2000 + 2 * i, 11, SITE_LOAD, 0x1000 + i, 0, 2, words);
		if (i < 59)
			capture_end(&capture, 2001 + 2 * i, 11, 0x1000 + i);
	}
	capture_hit(&capture, 3000, 11, SITE_FOUND, 0xf00, 0x1000 + 59, 1, (uint64_t[]){0});
	page = page_of(capture_load(&capture, 5000));
	story = string(&page, "symptoms/0/story");
	assert_in_range(strlen(story), 10000, 16384 + sizeof(cut));
	assert_string_equal(story + strlen(story) - strlen(cut), cut);
	assert_int_equal(story[strlen(story) - strlen(cut) - 1], '\n');
	page_free(&page);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins_are_without_gaps_and_a_quarter_wide),
		cmocka_unit_test(test_page_holds_times_states_and_wakers_of_a_slow_span),
		cmocka_unit_test(test_a_neighbour_at_the_disk_is_shown_without_an_object),
		cmocka_unit_test(test_flame_is_the_blocked_time_with_its_waker),
		cmocka_unit_test(test_data_cannot_end_its_element),
		cmocka_unit_test(test_page_of_nothing_is_a_page),
		cmocka_unit_test(test_story_of_many_steps_says_that_it_is_shortened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Drawings of made-up captures, character by character. A column is 100 ns unless said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "render/text/lanes.h"
#include "render/text/view_text.h"

#define COLUMN 100
#define WIDTH 40
/* The begin of a column. */
#define AT(column) (CAPTURE_START + (column)*COLUMN)

#define LEGEND_ASCII                                                                               \
	"# running  + runnable  . blocked\n"                                                       \
	"< > goes on outside\n"                                                                    \
	"2-9 number of spans in a column\n"                                                        \
	"* more than 9\n"

static struct view_options options_of(void)
{
	return (struct view_options){.to_ts = UINT64_MAX, .width = WIDTH};
}

/* The drawing, to be freed; or the error's message if there is one. */
static char *draw(const struct model *model, struct view_options options)
{
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (view_print_text(model, &options, out, &err)) {
		assert_int_equal(ftell(out), 0);
		fputs(err.message, out);
	}
	fclose(out);
	return text;
}

static void assert_drawn(const struct model *model, struct view_options options, const char *wanted)
{
	char *text = draw(model, options);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_spans_are_nested_and_a_column_shows_the_state_that_took_most_of_it(void **state)
{
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	capture_task(&capture, AT(0), 11, 1, "main");
	capture_state(&capture, AT(0), 11, WAFFLE_THREAD_RUNNING, false);
	capture_span(&capture, AT(2), 11, 1);
	capture_hit(&capture, AT(4), 11, SITE_LOAD, 2, 1, 2, (uint64_t[]){0, 0});
	capture_end(&capture, AT(14), 11, 2);
	/* Column 20 has 60 ns running, column 25 has 60 ns runnable. */
	capture_switch(&capture, AT(20) + 60, 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&capture, AT(30), 1, 0, 11, 0, 12, AT(25) + 40);
	capture_end(&capture, AT(38), 11, 1);
	assert_drawn(capture_load(&capture, AT(40)), options_of(),
		     "a --fast\n"
		     "0 s to 0.000004 s: 4.00 us, a column is~\n"
		     "|0        |+1.00 us |+2.00 us |+3.00 us\n"
		     "main (11): running 76.5 %, runnable 11.~\n"
		     "  [step------------------------------]\n"
		     "    [load----]\n"
		     "#####################....+++++##########\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_column_that_hides_spans_says_how_many_it_has(void **state)
{
	struct capture capture;
	uint64_t id = 1;

	(void)state;
	capture_begin(&capture, false);
	capture_task(&capture, AT(0), 11, 1, "main");
	/* One of 60 ns; three of 20 ns in column 4; twelve of 5 ns in column 8. */
	capture_span(&capture, AT(2), 11, id);
	capture_end(&capture, AT(2) + 60, 11, id++);
	for (unsigned i = 0; i < 3; i++) {
		capture_span(&capture, AT(4) + i * 20, 11, id);
		capture_end(&capture, AT(4) + i * 20 + 20, 11, id++);
	}
	for (unsigned i = 0; i < 12; i++) {
		capture_span(&capture, AT(8) + i * 5, 11, id);
		capture_end(&capture, AT(8) + i * 5 + 5, 11, id++);
	}
	/* A short one in the last column of a long one, and one that ends in a column's middle. */
	capture_span(&capture, AT(10), 11, id);
	capture_end(&capture, AT(16) + 70, 11, id++);
	capture_span(&capture, AT(16) + 80, 11, id);
	capture_end(&capture, AT(16) + 90, 11, id++);
	capture_span(&capture, AT(20) + 50, 11, id);
	capture_end(&capture, AT(25) + 30, 11, id++);
	capture_span(&capture, AT(25) + 30, 11, id);
	capture_end(&capture, AT(30), 11, id++);
	assert_drawn(capture_load(&capture, AT(40)), options_of(),
		     "a --fast\n"
		     "0 s to 0.000004 s: 4.00 us, a column is~\n"
		     "|0        |+1.00 us |+2.00 us |+3.00 us\n"
		     "main (11): 20 spans\n"
		     "  | 3   * [step-2   [st~][st~]\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_utf8_draws_blocks_and_colour_ends_with_what_it_paints(void **state)
{
	struct view_options options = options_of();
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, true);
	/* Columns of a name can't be known of all letters. */
	capture_task(&capture, AT(0), 11, 1, "M\xc3\xbcll\xe7\x81\xab\033");
	capture_state(&capture, AT(0), 11, WAFFLE_THREAD_RUNNING, false);
	capture_span(&capture, AT(2), 11, 1);
	capture_switch(&capture, AT(10), 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&capture, AT(30), 1, 0, 11, 0, 12, AT(20));
	capture_end(&capture, AT(36), 11, 1);
	model = capture_load(&capture, AT(40));
	options.utf8 = true;
	options.width = 60;
	options.to_ts = AT(40);
	options.from_ts = AT(34);
	assert_drawn(model, options,
		     "a --fast\n"
		     "0.0000034 s to 0.000004 s: 600 ns, a column is 10 ns, 1 thr…\n"
		     "|0        |+100 ns  |+200 ns  |+300 ns  |+400 ns  |+500 ns\n"
		     "Müll?? (11): running 100.0 %, 1 span\n"
		     "<step──────────────┤\n"
		     "████████████████████████████████████████████████████████████\n"
		     "█ running  ▒ runnable  ░ blocked  < > goes on outside\n"
		     "2-9 number of spans in a column  * more than 9\n");
	options = options_of();
	options.colour = true;
	assert_drawn(model, options,
		     "\033[1ma --fast\n\033[0m"
		     "0 s to 0.000004 s: 4.00 us, a column is~\n"
		     "|0        |+1.00 us |+2.00 us |+3.00 us\n"
		     "\033[1mM?ll?? (11): running 50.0 %, runnable 2~\n\033[0m"
		     "  \033[36m[step----------------------------]\033[0m\n"
		     "\033[32m##########\033[0m\033[31m..........\033[0m\033[33m++++++++++\033[0m"
		     "\033[32m##########\033[0m\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_span_asked_for_is_drawn_whole_with_its_thread_first(void **state)
{
	struct view_options options = options_of();
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_task(&capture, AT(0), 11, 1, "main");
	capture_task(&capture, AT(0), 12, 1, "other");
	capture_span(&capture, AT(0), 11, 1);
	capture_hit(&capture, AT(100), 12, SITE_LOAD, 2, 0, 2, (uint64_t[]){0, 0});
	capture_end(&capture, AT(132), 12, 2);
	capture_hit(&capture, AT(200), 12, SITE_LOAD, 3, 0, 2, (uint64_t[]){0, 0});
	capture_end(&capture, AT(210), 12, 3);
	capture_end(&capture, AT(380), 11, 1);
	model = capture_load(&capture, AT(400));
	options.span = "load";
	assert_drawn(model, options,
		     "a --fast\n"
		     "0.000009899 s to 0.000013301 s: 3.40 us~\n"
		     "|0         |+1.00 us   |+2.00 us\n"
		     "other (12): 1 span\n"
		     " [load--------------------------------]\n"
		     "main (11): 1 span\n"
		     "<step---------------------------------->\n" LEGEND_ASCII);
	/* The other one, by a window. */
	options.from_ts = AT(190);
	options.lanes = 1;
	assert_drawn(model, options,
		     "a --fast\n"
		     "0.000019968 s to 0.000021032 s: 1.06 us~\n"
		     "|0                |+500 ns\n"
		     "other (12): 1 span\n"
		     " [load--------------------------------]\n"
		     "1 more thread; --top 0 shows all\n" LEGEND_ASCII);
	options.thread = "11";
	options.span = NULL;
	options.from_ts = AT(360);
	assert_drawn(model, options,
		     "a --fast\n"
		     "0.000036 s to 0.00004 s: 4.00 us, a col~\n"
		     "|0        |+1.00 us |+2.00 us |+3.00 us\n"
		     "main (11): 1 span\n"
		     "<step--------------]\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_what_is_not_there_is_an_error_and_nothing_is_drawn(void **state)
{
	struct view_options options = options_of();
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, AT(1), 11, 1);
	capture_end(&capture, AT(2), 11, 1);
	model = capture_load(&capture, AT(40));
	options.span = "stpe";
	assert_drawn(model, options,
		     "no span 'stpe' in that time; waffle-bpf report lists the names");
	options.span = NULL;
	options.thread = "12";
	assert_drawn(
		model, options,
		"no thread '12' did anything in that time; waffle-bpf report lists the threads");
	options.thread = NULL;
	options.from_ts = AT(41);
	assert_drawn(model, options,
		     "the capture ends before that time; waffle-bpf info shows how long it is");
	capture_free(&capture);
}

static void test_losses_are_marked_where_they_are(void **state)
{
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	capture_task(&capture, AT(0), 11, 1, "main");
	capture_state(&capture, AT(0), 11, WAFFLE_THREAD_RUNNING, false);
	capture_span(&capture, AT(1), 11, 1);
	capture_loss(&capture, AT(10), AT(12), WAFFLE_SOURCE_SCHED, 1234);
	capture_switch(&capture, AT(20), 1, 0, 11, 0, 0, 0);
	capture_switch(&capture, AT(30), 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	assert_drawn(capture_load(&capture, AT(40)), options_of(),
		     "a --fast\n"
		     "0 s to 0.000004 s: 4.00 us, a column is~\n"
		     "|0        |+1.00 us |+2.00 us |+3.00 us\n"
		     "          !!!\n"
		     "1,234 records were lost at the marks !:~\n"
		     "main (11): running 50.0 %, blocked 25.0~\n"
		     " [step--------------------------------->\n"
		     "##########          ##########..........\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_window_shorter_than_the_terminal_has_a_column_a_nanosecond(void **state)
{
	struct view_options options = options_of();
	struct capture capture;

	(void)state;
	capture_begin(&capture, false);
	capture_task(&capture, AT(0), 11, 1, "main");
	capture_span(&capture, AT(0) + 2, 11, 1);
	capture_end(&capture, AT(0) + 9, 11, 1);
	options.to_ts = AT(0) + 12;
	assert_drawn(capture_load(&capture, AT(40)), options,
		     "a --fast\n"
		     "0 s to 0.000000012 s: 12 ns, a column i~\n"
		     "|0\n"
		     "main (11): 1 span\n"
		     "  [step-]\n" LEGEND_ASCII);
	capture_free(&capture);
}

static void test_deep_spans_are_counted_not_drawn(void **state)
{
	struct capture capture;
	char *text;

	(void)state;
	capture_begin(&capture, false);
	for (uint64_t id = 1; id <= 20; id++)
		capture_span(&capture, AT(id), 11, id);
	for (uint64_t id = 20; id; id--)
		capture_end(&capture, AT(21) + 20 - id, 11, id);
	text = draw(capture_load(&capture, AT(40)), options_of());
	assert_non_null(strstr(text, "(11): 20 spans, 12 too deep to draw\n"));
	assert_non_null(strstr(text, "\n        [step--------]\n#"));
	assert_null(strstr(text, "\n         [step"));
	free(text);
	capture_free(&capture);
}

static void test_strip_stays_short_and_keeps_the_sum_of_what_it_was_given(void **state)
{
	struct strip strip = {.max = 10};
	uint64_t sum = 0, count = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		struct strip_item item = {.from_ts = 10 * i,
					  .to_ts = 10 * i + (i == 500 ? 3000 : 4),
					  .count = 1,
					  .ref = (uint32_t)i};

		item.ns[1 + i % 3] = item.to_ts - item.from_ts;
		strip_add(&strip, item);
		assert_true(strip.items.len <= 10);
	}
	for (size_t i = 0; i < strip.items.len; i++) {
		const struct strip_item *item = &strip.items.data[i];

		assert_true(i == 0 || item->from_ts > strip.items.data[i - 1].from_ts);
		assert_true(item->count == 1 || item->ref == MODEL_NONE);
		sum += item->ns[1] + item->ns[2] + item->ns[3];
		count += item->count;
	}
	assert_int_equal(sum, 999 * 4 + 3000);
	assert_int_equal(count, 1000);
	strip_free(&strip);
}

static void test_locale_and_width_come_from_the_environment(void **state)
{
	(void)state;
	setenv("COLUMNS", "123", 1);
	assert_int_equal(view_width_of(stdout), 123);
	setenv("COLUMNS", "3", 1);
	assert_int_equal(view_width_of(stdout), VIEW_WIDTH_MIN);
	setenv("COLUMNS", "99999", 1);
	assert_int_equal(view_width_of(stdout), VIEW_WIDTH_MAX);
	unsetenv("LC_ALL");
	setenv("LC_CTYPE", "", 1);
	setenv("LANG", "de_DE.UTF-8", 1);
	assert_true(view_utf8_locale());
	setenv("LC_CTYPE", "C.utf8", 1);
	setenv("LANG", "C", 1);
	assert_true(view_utf8_locale());
	setenv("LC_ALL", "de_DE.ISO-8859-1", 1);
	assert_false(view_utf8_locale());
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	assert_false(view_utf8_locale());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_spans_are_nested_and_a_column_shows_the_state_that_took_most_of_it),
		cmocka_unit_test(test_column_that_hides_spans_says_how_many_it_has),
		cmocka_unit_test(test_utf8_draws_blocks_and_colour_ends_with_what_it_paints),
		cmocka_unit_test(test_span_asked_for_is_drawn_whole_with_its_thread_first),
		cmocka_unit_test(test_what_is_not_there_is_an_error_and_nothing_is_drawn),
		cmocka_unit_test(test_losses_are_marked_where_they_are),
		cmocka_unit_test(test_window_shorter_than_the_terminal_has_a_column_a_nanosecond),
		cmocka_unit_test(test_deep_spans_are_counted_not_drawn),
		cmocka_unit_test(test_strip_stays_short_and_keeps_the_sum_of_what_it_was_given),
		cmocka_unit_test(test_locale_and_width_come_from_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

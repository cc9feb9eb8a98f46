/* SPDX-License-Identifier: Apache-2.0 */
/* A site, a frame and a subject made by hand, for evaluating expressions. Include it after
 * cmocka. */
#ifndef WAFFLE_TEST_FILTER_SUBJECT_H
#define WAFFLE_TEST_FILTER_SUBJECT_H

#include <string.h>

#include "filter/eval.h"
#include "filter/filter.h"

struct sample_frame {
	struct waffle_frame head;
	uint64_t words[64];
	unsigned count;
};

static inline void frame_word(struct sample_frame *frame, uint64_t word)
{
	frame->words[frame->count++] = word;
}

static inline void frame_float(struct sample_frame *frame, double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	frame_word(frame, word);
}

/* `marks`: WAFFLE_STR_CUT, WAFFLE_STR_NULL. */
static inline void frame_text(struct sample_frame *frame, const char *text, uint64_t marks)
{
	size_t len = strlen(text);

	frame_word(frame, len | marks);
	memcpy(&frame->words[frame->count], text, len);
	frame->count += (unsigned)(len + 7) / 8;
}

static inline uint32_t frame_size(const struct sample_frame *frame)
{
	return (uint32_t)(sizeof(frame->head) + 8 * frame->count);
}

/* Evaluates an expression. A syntax error is an error of the test. */
static inline enum filter_truth ask(const struct filter_subject *subject, const char *expression)
{
	struct filter_expr *filter;
	struct error err = ERROR_INIT;
	enum filter_truth truth;

	if (filter_parse(&filter, "test", expression, &err))
		fail_msg("%s", err.message);
	truth = filter_eval(filter, subject);
	filter_free(filter);
	return truth;
}

#define assert_yes(subject, expression)                                                            \
	assert_string_equal(truth_of(subject, expression), expression " yes")
#define assert_no(subject, expression)                                                             \
	assert_string_equal(truth_of(subject, expression), expression " no")
#define assert_unknown(subject, expression)                                                        \
	assert_string_equal(truth_of(subject, expression), expression " unknown")

/* Returns "EXPR yes", so that a failed assertion shows the expression. */
static inline const char *truth_of(const struct filter_subject *subject, const char *expression)
{
	static const char *const names[] = {
		[FILTER_NO] = "no", [FILTER_YES] = "yes", [FILTER_UNKNOWN] = "unknown"};
	static char text[512];

	snprintf(text, sizeof(text), "%s %s", expression, names[ask(subject, expression)]);
	return text;
}

static const struct site_info counter_site = {.name = "queue",
					      .category = "",
					      .file = "q.c",
					      .func = "",
					      .object = "app",
					      .kind = WAFFLE_SITE_COUNTER,
					      .key_count = 1,
					      .keys = {{WAFFLE_KEY_NUMBER, "value"}}};

static inline struct filter_subject counter_subject(struct sample_frame *frame)
{
	return (struct filter_subject){
		.site = &counter_site, .frame = frame, .frame_bytes = frame_size(frame)};
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Off-CPU time by where a thread waited and who ended the wait. It covers every blocked interval of
 * every thread, so its sum equals the threads' blocked_ns. Stacks are known except for short waits.
 */
#include <stdlib.h>
#include <string.h>

#include "render/html/html_internal.h"
#include "util/memory.h"

#define STACKS_MAX 1000

/* What the waits of one sum have in common. It is zeroed first, since it is compared as bytes. */
struct flame_key {
	uint32_t kernel_stack, user_stack;
	uint32_t thread, waker; /* names, as numbers of texts */
	int32_t syscall;        /* if there is no kernel stack */
};

struct flame_sum {
	struct flame_key key;
	uint64_t ns, waits;
	uint64_t ts; /* time of the first wait, when its stacks were taken */
};

/* The last wait of a thread, kept until it is known who ended it. */
struct flame_open {
	struct flame_key key;
	uint64_t ns, to_ts;
};

struct flame {
	struct html_page *page;
	struct flame_open *open; /* an entry for each thread; ns 0: none */
	struct strtab *keys;     /* number 0 is not a key */
	VEC(struct flame_sum) sums;
	uint64_t blocked_ns, stack_ns;
};

/* ---- sums ---- */

static void flame_add(struct flame *flame, const struct flame_open *open, uint32_t waker)
{
	struct flame_key key = open->key;
	uint32_t number;

	key.waker = waker;
	number = strtab_put(flame->keys, (const char *)&key, sizeof(key));
	while (flame->sums.len < number)
		vec_add(&flame->sums, (struct flame_sum){.key = key, .ts = open->to_ts - open->ns});
	flame->sums.data[number - 1].ns += open->ns;
	flame->sums.data[number - 1].waits++;
	flame->blocked_ns += open->ns;
	if (key.kernel_stack || key.user_stack)
		flame->stack_ns += open->ns;
}

static uint32_t waker_text(struct flame *flame, uint32_t thread, bool interrupt)
{
	char text[HTML_THREAD_TEXT + 16];

	if (interrupt)
		return html_text(flame->page, "woken by an interrupt");
	if (thread == MODEL_NONE)
		return html_text(flame->page, "waker not recorded");
	snprintf(text, sizeof(text), "woken by %.*s", WAFFLE_THREAD_NAME,
		 model_thread_name(flame->page->model, thread));
	return html_text(flame->page, text);
}

static void flame_close(struct flame *flame, uint32_t thread, const struct model_interval *next)
{
	struct flame_open *open = &flame->open[thread];
	const struct model_wake *wake;

	if (!open->ns)
		return;
	if (next && next->woken && next->from_ts == open->to_ts) {
		flame_add(flame, open, waker_text(flame, next->by, next->interrupt));
	} else {
		wake = model_wake_at(flame->page->model, thread, open->to_ts);
		flame_add(flame, open,
			  waker_text(flame, wake ? wake->waker : MODEL_NONE,
				     wake && wake->flags & (WAFFLE_SWITCH_WAKER_HARDIRQ |
							    WAFFLE_SWITCH_WAKER_SOFTIRQ)));
	}
	open->ns = 0;
}

static int flame_interval(const struct model_interval *interval, void *arg)
{
	struct flame *flame = arg;
	const struct model *model = flame->page->model;
	struct flame_open *open = &flame->open[interval->thread];
	const struct model_wait *wait;

	flame_close(flame, interval->thread, interval);
	if (interval->state != WAFFLE_THREAD_BLOCKED)
		return 0;
	wait = model_wait_at(model, interval->thread, interval->from_ts);
	memset(open, 0, sizeof(*open));
	open->ns = interval->to_ts - interval->from_ts;
	open->to_ts = interval->to_ts;
	open->key.thread = html_text(flame->page, model_thread_name(model, interval->thread));
	open->key.syscall = -1;
	if (wait) {
		open->key.kernel_stack = wait->kernel_stack;
		open->key.user_stack = wait->user_stack;
	}
	if (!open->key.kernel_stack)
		open->key.syscall = interval->syscall;
	return 0;
}

static int compare_sums(const void *left, const void *right)
{
	const struct flame_sum *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

/* ---- writing ---- */

/* Writes a sum as [thread, waker, ns, waits, [user frames], [kernel frames]]. */
static void sum_json(const struct flame *flame, const struct flame_sum *sum)
{
	struct json *json = flame->page->json;

	json_array_begin(json);
	json_u64(json, sum->key.thread);
	json_u64(json, sum->key.waker);
	json_u64(json, sum->ns);
	json_u64(json, sum->waits);
	html_stack(flame->page, sum->key.user_stack, sum->ts);
	if (sum->key.kernel_stack)
		html_stack(flame->page, sum->key.kernel_stack, sum->ts);
	else
		html_call(flame->page, sum->key.syscall);
	json_array_end(json);
}

static void flame_json(struct flame *flame)
{
	struct json *json = flame->page->json;
	uint64_t left_out = 0;

	json_key(json, "stacks");
	json_array_begin(json);
	for (size_t i = 0; i < flame->sums.len; i++) {
		if (i < STACKS_MAX && flame->page->text_bytes < HTML_TEXTS_MAX)
			sum_json(flame, &flame->sums.data[i]);
		else
			left_out += flame->sums.data[i].ns;
	}
	json_array_end(json);
	json_field_u64(json, "blocked_ns", flame->blocked_ns);
	json_field_u64(json, "stack_ns", flame->stack_ns);
	json_field_u64(json, "left_out_ns", left_out);
}

void html_flame(struct html_page *page)
{
	const struct model *model = page->model;
	struct flame flame = {.page = page,
			      .open = memory_zeroed(model->threads.len + 1, sizeof(*flame.open)),
			      .keys = strtab_make()};

	model_each_interval(model, flame_interval, &flame);
	for (uint32_t i = 0; i < model->threads.len; i++)
		flame_close(&flame, i, NULL);
	json_key(page->json, "flame");
	json_object_begin(page->json);
	if (flame.sums.len)
		qsort(flame.sums.data, flame.sums.len, sizeof(*flame.sums.data), compare_sums);
	flame_json(&flame);
	json_object_end(page->json);
	strtab_free(flame.keys);
	vec_free(&flame.sums);
	free(flame.open);
}

// SPDX-License-Identifier: Apache-2.0
/* What ran on CPUs: the samples of all threads, by the open spans of their thread and by stack. */
#include <stdlib.h>
#include <string.h>

#include "render/html/html_internal.h"
#include "util/memory.h"

#define STACKS_MAX 500
#define SPANS_SHOWN 8 /* outermost spans of a thread that enclose a sample */

/* What the samples of one sum have in common. It is zeroed first, since it is compared as bytes. */
struct oncpu_key {
	uint32_t kernel_frames, user_frames; /* numbers of oncpu.frames */
	uint32_t thread;                     /* name, as a number of texts */
	uint32_t spans[SPANS_SHOWN];         /* names, the outermost first; 0: no more */
	int32_t syscall;                     /* in the kernel without a stack of it */
	uint32_t kernel;
};

struct oncpu_sum {
	struct oncpu_key key;
	uint64_t count;
};

struct oncpu_open {
	uint32_t span, next; /* next: index in `open`, or MODEL_NONE */
};

/* The spans of each thread, and those that are open at the current sample. */
struct oncpu {
	struct html_page *page;
	uint32_t *spans, *begins;       /* indexes of spans by thread, and each thread's first */
	VEC(struct oncpu_open) open;    /* of the present thread, in a list */
	uint32_t first_open, last_open; /* of the list: MODEL_NONE: it is empty */
	uint32_t shown[SPANS_SHOWN];    /* the first ones that are open at the sample */
	uint32_t shown_count;
	/* Frames of stacks as numbers of texts. Most stacks differ only in the address of their
	 * innermost frame, and are the same in a graph of functions. */
	struct strtab *frames;
	struct map frames_of; /* stack → number of its frames */
	struct strtab *keys;  /* number 0 is not a key */
	VEC(struct oncpu_sum) sums;
};

/* Sorts the spans by thread; they stay sorted by their start. */
static void spans_sort(struct oncpu *oncpu)
{
	const struct model *model = oncpu->page->model;
	size_t threads = model->threads.len;

	oncpu->begins = memory_zeroed(threads + 2, sizeof(*oncpu->begins));
	oncpu->spans = memory_get((model->spans.len + 1) * sizeof(*oncpu->spans));
	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].thread < threads)
			oncpu->begins[model->spans.data[i].thread + 2]++;
	for (size_t i = 2; i < threads + 2; i++)
		oncpu->begins[i] += oncpu->begins[i - 1];
	for (uint32_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].thread < threads)
			oncpu->spans[oncpu->begins[model->spans.data[i].thread + 1]++] = i;
}

static void open_append(struct oncpu *oncpu, uint32_t span)
{
	uint32_t number = (uint32_t)oncpu->open.len;

	vec_add(&oncpu->open, (struct oncpu_open){span, MODEL_NONE});
	if (oncpu->first_open == MODEL_NONE)
		oncpu->first_open = number;
	else
		oncpu->open.data[oncpu->last_open].next = number;
	oncpu->last_open = number;
}

/*
 * Opens the thread's spans that begin up to ts, from *next on, and finds the first ones that are
 * open at ts. Spans that have ended are removed when the search comes by, so that a sample costs no
 * more if very many are open.
 */
static void spans_open(struct oncpu *oncpu, uint32_t thread, uint64_t ts, uint32_t *next)
{
	const struct model_span *spans = oncpu->page->model->spans.data;
	uint32_t *link, last = MODEL_NONE;

	for (; *next < oncpu->begins[thread + 1] && spans[oncpu->spans[*next]].start_ts <= ts;
	     (*next)++)
		if (spans[oncpu->spans[*next]].end_ts > ts)
			open_append(oncpu, oncpu->spans[*next]);
	oncpu->shown_count = 0;
	link = &oncpu->first_open;
	while (*link != MODEL_NONE && oncpu->shown_count < SPANS_SHOWN) {
		struct oncpu_open *open = &oncpu->open.data[*link];

		if (spans[open->span].end_ts > ts) {
			oncpu->shown[oncpu->shown_count++] = open->span;
			last = *link;
			link = &open->next;
			continue;
		}
		if (open->next == MODEL_NONE)
			oncpu->last_open = last;
		*link = open->next;
	}
}

static uint32_t frames_of(struct oncpu *oncpu, uint32_t stack, uint64_t ts)
{
	uint32_t known = map_get(&oncpu->frames_of, stack), texts[HTML_FRAMES_MAX], count = 0;

	if (known != MAP_NONE)
		return known;
	if (stack && oncpu->page->text_bytes < HTML_TEXTS_MAX)
		count = html_frames(oncpu->page, stack, ts, texts);
	known = strtab_put(oncpu->frames, (const char *)texts, count * sizeof(*texts));
	map_put(&oncpu->frames_of, stack, known);
	return known;
}

static void sample_add(struct oncpu *oncpu, const struct model_sample *sample)
{
	const struct model *model = oncpu->page->model;
	struct oncpu_key key;
	uint32_t number;

	memset(&key, 0, sizeof(key));
	key.kernel_frames = frames_of(oncpu, sample->kernel_stack, sample->ts);
	key.user_frames = frames_of(oncpu, sample->user_stack, sample->ts);
	key.thread = html_text(oncpu->page, model_thread_name(model, sample->thread));
	key.kernel = sample->kernel;
	key.syscall = sample->kernel && !sample->kernel_stack ? sample->syscall : -1;
	for (uint32_t i = 0; i < oncpu->shown_count; i++) {
		const struct model_span *span = &model->spans.data[oncpu->shown[i]];
		const char *name = model_site(model, span->site)->name;

		key.spans[i] = html_text(oncpu->page, *name ? name : "(no name)");
	}
	number = strtab_put(oncpu->keys, (const char *)&key, sizeof(key));
	while (oncpu->sums.len < number)
		vec_add(&oncpu->sums, (struct oncpu_sum){.key = key});
	oncpu->sums.data[number - 1].count++;
}

static void samples_add(struct oncpu *oncpu)
{
	const struct model *model = oncpu->page->model;
	uint32_t thread = MODEL_NONE, next = 0;

	for (size_t i = 0; i < model->samples.len; i++) {
		const struct model_sample *sample = &model->samples.data[i];

		if (sample->thread >= model->threads.len)
			continue;
		if (sample->thread != thread) {
			thread = sample->thread;
			next = oncpu->begins[thread];
			oncpu->open.len = 0;
			oncpu->first_open = MODEL_NONE;
		}
		spans_open(oncpu, thread, sample->ts, &next);
		sample_add(oncpu, sample);
	}
}

static int compare_sums(const void *left, const void *right)
{
	const struct oncpu_sum *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static void frames_json(const struct oncpu *oncpu, uint32_t number)
{
	const char *from = strtab_get(oncpu->frames, number);
	size_t count = strtab_length(oncpu->frames, number) / sizeof(uint32_t);
	uint32_t text;

	json_array_begin(oncpu->page->json);
	for (size_t i = 0; i < count; i++) {
		memcpy(&text, from + i * sizeof(text), sizeof(text));
		json_u64(oncpu->page->json, text);
	}
	json_array_end(oncpu->page->json);
}

/* Writes a sum as [thread, count, [spans], [user frames], [kernel frames]]. */
static void sum_json(const struct oncpu *oncpu, const struct oncpu_sum *sum)
{
	struct json *json = oncpu->page->json;

	json_array_begin(json);
	json_u64(json, sum->key.thread);
	json_u64(json, sum->count);
	json_array_begin(json);
	for (size_t i = 0; i < SPANS_SHOWN && sum->key.spans[i]; i++)
		json_u64(json, sum->key.spans[i]);
	json_array_end(json);
	frames_json(oncpu, sum->key.user_frames);
	if (sum->key.kernel && !sum->key.kernel_frames)
		html_call(oncpu->page, sum->key.syscall);
	else
		frames_json(oncpu, sum->key.kernel_frames);
	json_array_end(json);
}

static void oncpu_json(struct oncpu *oncpu)
{
	struct json *json = oncpu->page->json;
	uint64_t left_out = 0, count = 0;

	json_key(json, "oncpu");
	json_object_begin(json);
	json_key(json, "stacks");
	json_array_begin(json);
	for (size_t i = 0; i < oncpu->sums.len; i++) {
		count += oncpu->sums.data[i].count;
		if (i < STACKS_MAX && oncpu->page->text_bytes < HTML_TEXTS_MAX)
			sum_json(oncpu, &oncpu->sums.data[i]);
		else
			left_out += oncpu->sums.data[i].count;
	}
	json_array_end(json);
	json_field_u64(json, "samples", count);
	json_field_u64(json, "left_out", left_out);
	json_object_end(json);
}

void html_oncpu(struct html_page *page)
{
	struct oncpu oncpu = {.page = page};

	if (!page->model->samples.len)
		return;
	oncpu.keys = strtab_make();
	oncpu.frames = strtab_make();
	spans_sort(&oncpu);
	samples_add(&oncpu);
	if (oncpu.sums.len)
		qsort(oncpu.sums.data, oncpu.sums.len, sizeof(*oncpu.sums.data), compare_sums);
	oncpu_json(&oncpu);
	strtab_free(oncpu.keys);
	strtab_free(oncpu.frames);
	map_free(&oncpu.frames_of);
	vec_free(&oncpu.sums);
	vec_free(&oncpu.open);
	free(oncpu.spans);
	free(oncpu.begins);
}

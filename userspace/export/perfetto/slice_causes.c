// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/slice_causes_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/why_longest.h"
#include "render/place.h"
#include "util/memory.h"
#include "util/strtab.h"
#include "util/syscall_names.h"
#include "util/units.h"

#define CAUSES_MAX 3
/* Causes of a smaller part of the time are left out. */
#define CAUSE_PARTS 20
/* A span in which the thread had a CPU for all but this part needs no text: its states show it. */
#define RUNNING_PARTS 20

struct slice_causes {
	struct strtab *texts;
	uint32_t *numbers; /* by span */
	VEC(struct wait_slice) waits;
	uint64_t left_out;
};

/* Whether another thread than the instance's is to blame. */
static bool culprit_is_other(const struct why *why, const struct why_instance *instance,
			     const struct why_part *part)
{
	return part->thread != instance->thread && part->thread < why->model->threads.len;
}

/* Prints "holder (9626) in refresh". */
static void culprit_print(const struct why *why, const struct why_part *part, FILE *out)
{
	const struct model *model = why->model;
	char threads[PLACE_THREADS_TEXT];

	fputs(place_threads(threads, model, part->thread, why_part_name(why, part), part->threads,
			    part->processes),
	      out);
	if (part->span < model->spans.len)
		fprintf(out, " in %s", model_site(model, model->spans.data[part->span].site)->name);
}

/* Prints "58.3 % cpu-contention: cc1 (9525) 17.0 %, and 28 more". */
static void cause_print(const struct why *why, const struct why_instance *instance,
			const struct why_by_cause *sum, FILE *out)
{
	const struct why_part *part = &why->parts.data[instance->part + sum->largest];
	uint64_t whole = instance->to_ts - instance->from_ts;
	char share[UNITS_TEXT];

	fprintf(out, "%s %s", units_format_share(share, sum->ns, whole),
		why_causes[sum->cause].name);
	if (culprit_is_other(why, instance, part)) {
		fputs(": ", out);
		culprit_print(why, part, out);
	}
	if (part->object)
		fprintf(out, "%s%s", culprit_is_other(why, instance, part) ? ", " : ": ",
			strtab_get(why->texts, part->object));
	if (sum->culprits > 1)
		fprintf(out, " %s, and %u more", units_format_share(share, part->ns, whole),
			sum->culprits - 1);
}

/* The parts of an instance are unsorted here, and why_by_cause() takes the first of a cause for
 * its largest one. */
static int larger(const void *left, const void *right)
{
	const struct why_part *a = left, *b = right;

	return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

static uint32_t causes_sum(const struct why *why, const struct why_instance *instance,
			   struct why_by_cause *sums)
{
	qsort(&why->parts.data[instance->part], instance->part_count, sizeof(struct why_part),
	      larger);
	return why_by_cause(why, instance, sums);
}

/* Ends the stream, and returns the number of its text; 0: it is empty. */
static uint32_t text_take(struct slice_causes *causes, FILE *out, char **text, size_t *len)
{
	uint32_t number;

	memory_require(!fclose(out));
	number = *len ? strtab_put(causes->texts, *text, *len) : 0;
	free(*text);
	return number;
}

static uint32_t causes_text(struct slice_causes *causes, const struct why *why,
			    const struct why_instance *instance, const struct why_by_cause *sums,
			    uint32_t count)
{
	uint64_t whole = instance->to_ts - instance->from_ts;
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);

	for (uint32_t i = 0; i < count && i < CAUSES_MAX && sums[i].ns >= whole / CAUSE_PARTS;
	     i++) {
		fputs(i ? "; " : "", out);
		cause_print(why, instance, &sums[i], out);
	}
	return text_take(causes, out, &text, &len);
}

static void span_add(struct slice_causes *causes, const struct why *why,
		     const struct why_instance *instance)
{
	uint64_t whole = instance->to_ts - instance->from_ts;
	struct why_by_cause sums[WHY_BY_CAUSE_MAX];
	uint32_t count;

	if (!whole || instance->running_ns >= whole - whole / RUNNING_PARTS)
		return;
	count = causes_sum(why, instance, sums);
	causes->numbers[instance->span] = causes_text(causes, why, instance, sums, count);
}

/* ---- waits ---- */

static uint32_t text_put(struct slice_causes *causes, const char *text)
{
	return text && *text ? strtab_put(causes->texts, text, strlen(text)) : 0;
}

static uint32_t culprit_text(struct slice_causes *causes, const struct why *why,
			     const struct why_part *part)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);

	culprit_print(why, part, out);
	return text_take(causes, out, &text, &len);
}

static void wait_explain(struct slice_causes *causes, struct wait_slice *wait,
			 const struct why *why, const struct why_instance *instance)
{
	struct why_by_cause sums[WHY_BY_CAUSE_MAX];
	uint32_t count = causes_sum(why, instance, sums);
	const struct why_part *part;

	if (!count)
		return;
	part = &why->parts.data[instance->part + sums[0].largest];
	wait->cause = sums[0].cause;
	wait->texts[WAIT_CAUSE] = text_put(causes, why_causes[wait->cause].name);
	wait->texts[WAIT_GRADE] = text_put(causes, why_grade_names[part->grade]);
	if (count > 1)
		wait->texts[WAIT_CAUSES] = causes_text(causes, why, instance, sums, count);
	if (culprit_is_other(why, instance, part))
		wait->texts[WAIT_CULPRIT] = culprit_text(causes, why, part);
	wait->texts[WAIT_OBJECT] = text_put(causes, strtab_get(why->texts, part->object));
}

static void wait_add(struct slice_causes *causes, const struct why *why,
		     const struct why_instance *instance, const struct why_long *of)
{
	const struct model *model = why->model;
	struct wait_slice wait = {.from_ts = of->from_ts,
				  .to_ts = of->to_ts,
				  .thread = of->thread,
				  .cause = WHY_UNKNOWN};
	char waker[PLACE_THREADS_TEXT];

	wait_explain(causes, &wait, why, instance);
	if (of->syscall >= 0)
		wait.texts[WAIT_SYSCALL] = text_put(
			causes,
			syscall_name(model->hosts[model_host_of(model, of->thread)]->machine,
				     of->syscall));
	if (of->interrupt)
		wait.texts[WAIT_WOKEN_BY] = text_put(causes, "an interrupt");
	else if (of->by < model->threads.len)
		wait.texts[WAIT_WOKEN_BY] =
			text_put(causes, place_threads(waker, model, of->by,
						       model_thread_name(model, of->by), 1, 1));
	vec_add(&causes->waits, wait);
}

static void causes_add(const struct why *why, const struct why_instance *instance,
		       const struct why_long *of, void *arg)
{
	if (of->span != MODEL_NONE)
		span_add(arg, why, instance);
	else
		wait_add(arg, why, instance, of);
}

/* By thread; they come in order of time. */
static int by_thread(const void *left, const void *right)
{
	const struct wait_slice *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

struct slice_causes *slice_causes_open(const struct model *model, struct stack_names *names,
				       const struct gpu_timeline *timeline)
{
	struct error err = ERROR_INIT;
	struct slice_causes *causes;
	const struct why_query query = {.names = names, .timeline = timeline};
	struct why *why;

	if (!model->sched)
		return NULL;
	causes = memory_zeroed(1, sizeof(*causes));
	causes->texts = strtab_make();
	causes->numbers = memory_zeroed(model->spans.len + 1, sizeof(*causes->numbers));
	(void)why_longest(&why, model, &query, causes_add, causes, &causes->left_out, &err);
	why_free(why);
	if (causes->waits.len)
		qsort(causes->waits.data, causes->waits.len, sizeof(*causes->waits.data),
		      by_thread);
	return causes;
}

void slice_causes_close(struct slice_causes *causes)
{
	if (!causes)
		return;
	strtab_free(causes->texts);
	vec_free(&causes->waits);
	free(causes->numbers);
	free(causes);
}

uint32_t slice_causes_number(const struct slice_causes *causes, uint32_t span)
{
	return causes ? causes->numbers[span] : 0;
}

const struct wait_slice *slice_causes_waits(const struct slice_causes *causes, size_t *count,
					    uint64_t *left_out)
{
	*count = causes ? causes->waits.len : 0;
	*left_out = causes ? causes->left_out : 0;
	return causes ? causes->waits.data : NULL;
}

const char *slice_causes_text(const struct slice_causes *causes, uint32_t number, size_t *len)
{
	*len = strtab_length(causes->texts, number);
	return strtab_get(causes->texts, number);
}

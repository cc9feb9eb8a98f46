// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/slice_causes_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze/why/why.h"
#include "render/place.h"
#include "symbolize/stack_names.h"
#include "util/memory.h"
#include "util/strtab.h"
#include "util/units.h"

#define CAUSES_MAX 3
/* Causes of a smaller part of the time are left out. */
#define CAUSE_PARTS 20
/* A span in which the thread had a CPU for all but this part needs no text: its states show it. */
#define RUNNING_PARTS 20

struct slice_causes {
	struct strtab *texts;
	uint32_t *numbers; /* by span */
};

/* Prints the culprit and the object of a part, if another thread than the span's is to blame, or
 * there is an object. */
static void culprit_print(const struct why *why, const struct why_instance *instance,
			  const struct why_part *part, FILE *out)
{
	const struct model *model = why->model;
	bool other = part->thread != instance->thread && part->thread < model->threads.len;
	char threads[PLACE_THREADS_TEXT];

	if (other)
		fprintf(out, ": %s",
			place_threads(threads, model, part->thread, part->threads,
				      part->processes));
	if (other && part->span < model->spans.len)
		fprintf(out, " in %s", model_site(model, model->spans.data[part->span].site)->name);
	if (part->object)
		fprintf(out, "%s%s", other ? ", " : ": ", strtab_get(why->texts, part->object));
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
	culprit_print(why, instance, part, out);
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

static int causes_add(const struct why *why, const struct why_instance *instance, void *arg)
{
	struct slice_causes *causes = arg;
	uint64_t whole = instance->to_ts - instance->from_ts;
	struct why_by_cause sums[WHY_CAUSE_COUNT];
	char *text = NULL;
	uint32_t count;
	size_t len = 0;
	FILE *out;

	if (!whole || instance->running_ns >= whole - whole / RUNNING_PARTS)
		return 0;
	qsort(&why->parts.data[instance->part], instance->part_count, sizeof(struct why_part),
	      larger);
	count = why_by_cause(why, instance, sums);
	out = memory_stream(&text, &len);
	for (uint32_t i = 0; i < count && i < CAUSES_MAX && sums[i].ns >= whole / CAUSE_PARTS;
	     i++) {
		fputs(i ? "; " : "", out);
		cause_print(why, instance, &sums[i], out);
	}
	memory_require(!fclose(out));
	if (len)
		causes->numbers[instance->span] = strtab_put(causes->texts, text, len);
	free(text);
	return 0;
}

struct slice_causes *slice_causes_open(const struct model *model)
{
	struct error err = ERROR_INIT;
	struct slice_causes *causes;
	struct stack_names *names;
	struct why *why;

	if (!model->sched || !model->spans.len)
		return NULL;
	causes = memory_zeroed(1, sizeof(*causes));
	causes->texts = strtab_make();
	causes->numbers = memory_zeroed(model->spans.len, sizeof(*causes->numbers));
	names = stack_names_open(model->reader, true);
	(void)why_each(&why, model, names, causes_add, causes, &err);
	why_free(why);
	stack_names_close(names);
	return causes;
}

void slice_causes_close(struct slice_causes *causes)
{
	if (!causes)
		return;
	strtab_free(causes->texts);
	free(causes->numbers);
	free(causes);
}

uint32_t slice_causes_number(const struct slice_causes *causes, uint32_t span)
{
	return causes ? causes->numbers[span] : 0;
}

const char *slice_causes_text(const struct slice_causes *causes, uint32_t number, size_t *len)
{
	*len = strtab_length(causes->texts, number);
	return strtab_get(causes->texts, number);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for the model. Whatever the records of the input (records.h) contain, the model
 * meets the guarantees of model/model.h. The first byte selects which records are kept.
 */
#include "model/model.h"
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check_interval(const struct model_interval *interval, void *arg)
{
	uint64_t *last_to = arg;

	require(interval->from_ts < interval->to_ts);
	require(interval->to_ts >= *last_to);
	*last_to = interval->to_ts;
	return 0;
}

static int see_interval(const struct model_interval *interval, void *arg)
{
	(void)arg;
	require(interval->from_ts < interval->to_ts);
	return 0;
}

static void check_marks(const struct model *model)
{
	uint64_t middle = model->start_ts + (model->end_ts - model->start_ts) / 2;
	struct model_marks *marks = model_marks_new(model, 3, see_interval, NULL);

	model_marks_intervals(marks, model->start_ts, model->end_ts, see_interval, NULL);
	model_marks_intervals(marks, middle, middle, see_interval, NULL);
	model_marks_free(marks);
}

static void check_model(const struct model *model)
{
	uint64_t last_to = 0;

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		require(span->start_ts <= span->end_ts);
		require(!i || span[-1].start_ts <= span->start_ts);
		require(span->parent == MODEL_NONE || span->parent < i);
		require(span->thread < model->threads.len);
		require(span->end_thread < model->threads.len);
		require(span->running_ns + span->runnable_ns <= span->end_ts - span->start_ts);
	}
	for (size_t i = 1; i < model->events.len; i++)
		require(model->events.data[i - 1].ts <= model->events.data[i].ts);
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];
		size_t ends[] = {[MODEL_NODE_SPAN] = model->spans.len,
				 [MODEL_NODE_EVENT] = model->events.len};

		require(link->from < ends[link->from_kind]);
		require(link->to == MODEL_NONE || link->to < ends[link->to_kind]);
	}
	require(!model_each_interval(model, check_interval, &last_to));
	check_marks(model);
}

/* A filter with every kind of question that needs data of its own. */
static const struct filter_expr *a_filter(void)
{
	static struct filter_expr *filter;
	struct error err = ERROR_INIT;

	if (!filter)
		require(!filter_parse(
			&filter, "fuzz",
			"(dur > 10 || depth == 1 || parent.name ~ \"*a*\" || comm != \"b\" || "
			"cpu == 1 || sample(1/2) && kind == event) && rate(3/s)",
			&err));
	return filter;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct model_filter keep = {.filter = size && data[0] & 1 ? a_filter() : NULL,
					  .keep_children = size && data[0] & 2,
					  .compact = size && data[0] & 4};
	struct store_reader *reader = size ? records_reader(data + 1, size - 1, false) : NULL;
	struct error err = ERROR_INIT;
	struct model *model;

	if (!reader)
		return 0;
	if (!model_load(&model, reader, STORE_ALL, &keep, &err)) {
		check_model(model);
		if (model->spans.len)
			model_values_load(model, (uint32_t[]){0}, 1, &err);
		model_free(model);
	}
	store_reader_close(reader);
	return 0;
}

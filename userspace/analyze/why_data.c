// SPDX-License-Identifier: Apache-2.0
/* What is kept of a model: the intervals, switches and spans that have time in the windows. */
#include "analyze/why_internal.h"

#include <stdlib.h>

/* Spans around a moment that are looked at, and mappings that overlap. */
#define NESTED_MAX 1000
#define OVERLAPPING_MAX 16

/* ---- tables that last ---- */

static bool find_losses(struct why_data *data)
{
	const struct model *model = data->model;

	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];
		struct why_window window = {loss->from_ts, loss->to_ts};

		if (!loss->count || loss->source == WAFFLE_SOURCE_SPANS)
			continue;
		if (!vec_push(&data->losses.list, window) ||
		    (loss->source == WAFFLE_SOURCE_SCHED &&
		     !vec_push(&data->sched_losses.list, window)))
			return false;
	}
	windows_merge(&data->losses);
	windows_merge(&data->sched_losses);
	return true;
}

static int mapping_compare(const void *left, const void *right, void *arg)
{
	const struct store_reader *reader = arg;
	const struct store_mapping *a = store_reader_mapping(reader, *(const uint32_t *)left);
	const struct store_mapping *b = store_reader_mapping(reader, *(const uint32_t *)right);

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

static bool order_mappings(struct why_data *data)
{
	const struct store_reader *reader = data->model->reader;
	uint32_t count = store_reader_mapping_count(reader);

	if (!vec_reserve(&data->mapping_order, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		data->mapping_order.data[data->mapping_order.len++] = i;
	if (count)
		qsort_r(data->mapping_order.data, count, sizeof(uint32_t), mapping_compare,
			(void *)reader);
	return true;
}

static bool find_symbols(struct why_data *data)
{
	const struct store_reader *reader = data->model->reader;

	for (uint32_t i = 0; i < store_reader_symbol_count(reader); i++)
		if (!map_set(&data->symbols, store_reader_symbol(reader, i)->address, i))
			return false;
	return true;
}

const char *why_symbol(const struct why_data *data, uint64_t address)
{
	uint32_t index = map_get(&data->symbols, address);

	return index == MAP_NONE ? NULL : store_reader_symbol(data->model->reader, index)->name;
}

const struct store_mapping *why_mapping_at(const struct why_data *data, uint32_t pid,
					   uint64_t address)
{
	const struct store_reader *reader = data->model->reader;
	size_t low = 0, high = data->mapping_order.len;

	/* The first one that begins behind the address. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct store_mapping *mapping =
			store_reader_mapping(reader, data->mapping_order.data[middle]);

		if (mapping->pid < pid || (mapping->pid == pid && mapping->start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned i = 0; i < OVERLAPPING_MAX && low; i++) {
		const struct store_mapping *mapping =
			store_reader_mapping(reader, data->mapping_order.data[--low]);

		if (mapping->pid != pid)
			break;
		if (address < mapping->end)
			return mapping;
	}
	return NULL;
}

/* ---- intervals ---- */

static int keep_interval(const struct model_interval *from, void *arg)
{
	struct why_data *data = arg;
	struct why_thread *thread = &data->threads[from->thread];
	bool wanted = windows_overlap(&data->windows, from->from_ts, from->to_ts);
	bool after = thread->kept;

	thread->kept = wanted;
	/* Who ended a wait is told by what comes behind it. */
	if (!wanted && !after)
		return 0;
	return vec_push(&thread->intervals,
			(struct why_interval){
				.from_ts = from->from_ts,
				.to_ts = from->to_ts,
				.by = from->by,
				.args = from->args,
				.cpu = from->cpu,
				.task_state = from->task_state & 0xfff,
				.flags = (uint16_t)((from->woken ? WHY_INTERVAL_WOKEN : 0) |
						    (from->interrupt ? WHY_INTERVAL_INTERRUPT : 0) |
						    (from->open ? WHY_INTERVAL_OPEN : 0)),
				.syscall = from->syscall,
				.state = (uint16_t)from->state,
			})
		       ? 0
		       : -ENOMEM;
}

size_t why_interval_after(const struct why_data *data, uint32_t thread, uint64_t ts)
{
	const struct why_thread *of = &data->threads[thread];
	size_t low = 0, high = of->intervals.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (of->intervals.data[middle].to_ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct why_interval *why_interval_get(const struct why_data *data, uint32_t thread,
					    size_t index)
{
	const struct why_thread *of = &data->threads[thread];

	return index < of->intervals.len ? &of->intervals.data[index] : NULL;
}

/* ---- switches ---- */

static bool count_cpus(struct why_data *data)
{
	const struct model *model = data->model;

	for (size_t i = 0; i < model->switches.len; i++)
		if (model->switches.data[i].cpu >= data->cpu_count)
			data->cpu_count = model->switches.data[i].cpu + 1u;
	data->cpus = calloc(data->cpu_count + 1u, sizeof(*data->cpus));
	return data->cpus;
}

/* Those in the windows, and on each CPU the last one before each window. */
static bool keep_switches(struct why_data *data)
{
	const struct model *model = data->model;
	const struct why_window *window = data->windows.list.data;
	const struct why_window *end = window + data->windows.list.len;

	for (uint32_t i = 0; i < data->cpu_count; i++)
		data->cpus[i].last = MODEL_NONE;
	for (size_t i = 0; i < model->switches.len && window < end; i++) {
		const struct model_switch *sw = &model->switches.data[i];
		struct why_cpu *cpu = &data->cpus[sw->cpu];

		while (window < end && window->to_ts < sw->ts)
			window++;
		if (window < end && sw->ts < window->from_ts &&
		    (cpu->last == MODEL_NONE || cpu->last_window == window)) {
			cpu->last = (uint32_t)i;
			cpu->last_window = window;
			continue;
		}
		if (cpu->last != MODEL_NONE && !vec_push(&cpu->switches, cpu->last))
			return false;
		cpu->last = MODEL_NONE;
		if (window == end)
			break;
		/* Before a window, and the one before it was before an earlier window. */
		if (sw->ts < window->from_ts) {
			cpu->last = (uint32_t)i;
			cpu->last_window = window;
		} else if (!vec_push(&cpu->switches, (uint32_t)i)) {
			return false;
		}
	}
	/* What was on a CPU on which nothing was switched in the last windows. */
	for (uint32_t i = 0; i < data->cpu_count; i++)
		if (data->cpus[i].last != MODEL_NONE &&
		    !vec_push(&data->cpus[i].switches, data->cpus[i].last))
			return false;
	return true;
}

size_t why_switch_after(const struct why_data *data, uint32_t cpu, uint64_t ts)
{
	size_t low = 0, high = cpu < data->cpu_count ? data->cpus[cpu].switches.len : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (data->model->switches.data[data->cpus[cpu].switches.data[middle]].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- spans ---- */

static bool keep_spans(struct why_data *data)
{
	const struct model *model = data->model;
	uint32_t *top = malloc((model->threads.len + 1) * sizeof(*top));
	bool good = top;

	for (size_t i = 0; good && i < model->threads.len; i++)
		top[i] = MODEL_NONE;
	for (size_t i = 0; good && i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		struct why_thread *thread = &data->threads[span->thread];
		uint32_t outer = top[span->thread];

		if (!windows_overlap(&data->windows, span->start_ts, span->end_ts))
			continue;
		while (outer != MODEL_NONE &&
		       model->spans.data[thread->spans.data[outer].span].end_ts <= span->start_ts)
			outer = thread->spans.data[outer].outer;
		top[span->thread] = (uint32_t)thread->spans.len;
		good = vec_push(&thread->spans, (struct why_nested){(uint32_t)i, outer});
	}
	free(top);
	return good;
}

uint32_t why_span_at(const struct why_data *data, uint32_t thread, uint64_t ts, uint64_t *until_ts)
{
	const struct why_thread *of = &data->threads[thread];
	const struct model_span *spans = data->model->spans.data;
	size_t low = 0, high = of->spans.len;
	uint32_t at;

	/* The first one that starts after ts. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans[of->spans.data[middle].span].start_ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	*until_ts = low < of->spans.len ? spans[of->spans.data[low].span].start_ts : UINT64_MAX;
	at = low ? (uint32_t)low - 1 : MODEL_NONE;
	for (unsigned i = 0; i < NESTED_MAX && at != MODEL_NONE; i++) {
		uint64_t end_ts = spans[of->spans.data[at].span].end_ts;

		if (end_ts > ts) {
			*until_ts = end_ts < *until_ts ? end_ts : *until_ts;
			return of->spans.data[at].span;
		}
		at = of->spans.data[at].outer;
	}
	return MODEL_NONE;
}

/* ---- all of it ---- */

int why_data_init(struct why_data *data, const struct model *model, const struct why_names *names)
{
	*data = (struct why_data){.model = model, .names = names};
	data->threads = calloc(model->threads.len + 1, sizeof(*data->threads));
	if (data->threads && count_cpus(data) && find_losses(data) && order_mappings(data) &&
	    find_symbols(data))
		return 0;
	why_data_free(data);
	return -ENOMEM;
}

static void unload(struct why_data *data)
{
	for (size_t i = 0; data->threads && i < data->model->threads.len; i++) {
		vec_free(&data->threads[i].intervals);
		vec_free(&data->threads[i].spans);
		data->threads[i].kept = false;
	}
	for (uint32_t i = 0; data->cpus && i < data->cpu_count; i++)
		vec_free(&data->cpus[i].switches);
	vec_free(&data->windows.list);
}

int why_data_load(struct why_data *data, struct why_windows *windows)
{
	unload(data);
	windows_merge(windows);
	data->windows = *windows;
	*windows = (struct why_windows){0};
	if (!keep_switches(data) || !keep_spans(data))
		return -ENOMEM;
	return model_each_interval(data->model, keep_interval, data);
}

void why_data_free(struct why_data *data)
{
	unload(data);
	free(data->threads);
	free(data->cpus);
	vec_free(&data->losses.list);
	vec_free(&data->sched_losses.list);
	vec_free(&data->mapping_order);
	vec_free(&data->told);
	map_free(&data->stacks);
	map_free(&data->symbols);
	data->threads = NULL;
	data->cpus = NULL;
}

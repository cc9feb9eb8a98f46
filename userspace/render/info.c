// SPDX-License-Identifier: Apache-2.0
#include "render/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "render/disorder.h"
#include "render/job_ranks_internal.h"
#include "render/clock_text.h"
#include "render/json/hosts_json.h"
#include "render/json/summary_json.h"
#include "render/place.h"
#include "render/text/notices.h"
#include "store/record.h"
#include "util/terminal.h"
#include "util/units.h"

struct tally {
	uint64_t unfinished, begun_before, left, moved, with_sched, with_loss;
	uint64_t events, logs, counters, traced, sites;
};

static struct tally tally(const struct model *model)
{
	struct tally sum = {.sites = store_reader_site_count(model->reader)};

	for (size_t i = 0; i < model->spans.len; i++) {
		uint32_t flags = model->spans.data[i].flags;

		sum.unfinished += !!(flags & MODEL_SPAN_UNFINISHED);
		sum.begun_before += !!(flags & MODEL_SPAN_BEGUN_BEFORE);
		sum.left += !!(flags & MODEL_SPAN_LEFT);
		sum.moved += !!(flags & MODEL_SPAN_MOVED);
		sum.with_sched += !!(flags & MODEL_SPAN_HAS_SCHED);
		sum.with_loss += !!(flags & MODEL_SPAN_LOSS);
	}
	for (size_t i = 0; i < model->events.len; i++) {
		unsigned kind = model_site(model, model->events.data[i].site)->kind;

		sum.counters += kind == WAFFLE_SITE_COUNTER;
		sum.logs += site_kind_is_log(kind);
	}
	sum.events = model->events.len - sum.counters;
	for (size_t i = 0; i < model->threads.len; i++)
		sum.traced += model->threads.data[i].traced;
	return sum;
}

static const char *transport_name(const struct store_transport *transport)
{
	return transport->ring ? "ring" : "usdt";
}

static void processes_json(struct json *json, const struct model *model)
{
	json_key(json, "processes");
	json_array_begin(json);
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];

		json_object_begin(json);
		json_field_u64(json, "pid", model_pid_real(model, process->pid));
		if (process->ppid)
			json_field_u64(json, "ppid", model_pid_real(model, process->ppid));
		if (process->rank != MODEL_NONE) {
			json_field_u64(json, "rank", process->rank);
			json_field_u64(json, "world_size", process->world_size);
			json_field_string(json, "job", strtab_get(model->strings, process->job));
		}
		if (process->transport) {
			json_field_string(json, "transport", transport_name(process->transport));
			json_field_u64(json, "ring_records", process->transport->records);
			if (*process->transport->why)
				json_field_string(json, "transport_why", process->transport->why);
		}
		if (model->host_count > 1)
			json_field_string(json, "host", model->hosts[process->host]->name);
		json_field_string(json, "comm", model_thread_name(model, process->main_thread));
		json_field_string(json, "cmdline", strtab_get(model->strings, process->cmdline));
		json_object_end(json);
	}
	json_array_end(json);
}

static void sources_json(struct json *json, const char *sources)
{
	json_key(json, "sources");
	json_array_begin(json);
	for (const char *at = sources; *at;) {
		size_t len = strcspn(at, ",");
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		json_string(json, name);
		at += len + (at[len] == ',');
	}
	json_array_end(json);
}

int info_print_json(const struct model *model, FILE *out)
{
	const struct store_meta *meta = model->meta;
	struct json *json = json_new(out, true);
	struct tally sum = tally(model);

	json_object_begin(json);
	json_field_u64(json, "spans", model->spans.len);
	json_field_u64(json, "events", sum.events);
	json_field_u64(json, "links", model->links.len);
	json_field_u64(json, "collectives_unaligned", model->unaligned_collectives);
	disorder_put_json(model, json);
	json_field_u64(json, "threads", sum.traced);
	if (model->track_count)
		json_field_u64(json, "tracks", model->track_count);
	json_field_u64(json, "duration_ns", model->end_ts - model->start_ts);
	json_field_u64(json, "counters", sum.counters);
	json_field_u64(json, "logs", sum.logs);
	json_field_u64(json, "switches", model->switches.len);
	json_field_u64(json, "sites", sum.sites);
	json_field_u64(json, "spans_unfinished", sum.unfinished);
	json_field_u64(json, "spans_begun_before", sum.begun_before);
	json_field_u64(json, "spans_left", sum.left);
	json_field_u64(json, "spans_moved", sum.moved);
	json_field_u64(json, "spans_with_sched", sum.with_sched);
	json_field_u64(json, "spans_with_loss", sum.with_loss);
	json_field_u64(json, "start_ns", model->start_ts);
	json_field_u64(json, "end_ns", model->end_ts);
	json_field_u64(json, "start_boot_ns", meta->boot_ns);
	json_field_u64(json, "start_real_ns", meta->real_ns);
	json_field_string(json, "hostname", meta->hostname);
	hosts_json(json, model);
	job_ranks_json(json, model);
	json_field_string(json, "kernel", meta->kernel);
	json_field_string(json, "machine", meta->machine);
	json_field_string(json, "version", meta->version);
	json_field_string(json, "command", meta->command);
	json_field_u64(json, "cpus", meta->cpu_count);
	json_field_bool(json, "sched", meta->sched);
	sources_json(json, meta->sources);
	processes_json(json, model);
	summary_json_filter(json, model);
	summary_json_records(json, model);
	json_object_end(json);
	return json_close(json);
}

static void put_field(FILE *out, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "%-12s", name);
	terminal_put(out, text, strlen(text));
	fputc('\n', out);
}

static void put_filter(FILE *out, const char *expression)
{
	if (!*expression)
		return;
	fprintf(out, "%-12s", "filter");
	notice_put_expression(out, expression);
	fputc('\n', out);
}

static void put_start(FILE *out, const struct store_meta *meta)
{
	time_t seconds = (time_t)(meta->real_ns / 1000000000);
	struct tm tm;
	char text[64];

	if (meta->real_ns && localtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm))
		put_field(out, "started", text);
}

/* Processes without libwaffle have only one way. */
static void put_transport(FILE *out, const struct store_transport *transport)
{
	char count[UNITS_TEXT];

	if (!transport)
		return;
	fprintf(out, "  [%s", transport_name(transport));
	if (transport->records)
		fprintf(out, ": %s records", units_format_count(count, transport->records));
	if (*transport->why) {
		fputs(transport->ring ? "; some threads use the kernel: " : ": ", out);
		terminal_put(out, transport->why, strlen(transport->why));
	}
	fputc(']', out);
}

static void put_process(FILE *out, const struct model *model, const struct model_process *process)
{
	const char *cmdline = strtab_get(model->strings, process->cmdline);
	char place[PLACE_TEXT];

	fprintf(out, "%u  ", model_pid_real(model, process->pid));
	if (!*cmdline)
		cmdline = model_thread_name(model, process->main_thread);
	terminal_put(out, cmdline, strlen(cmdline));
	if (*place_of_process(place, model, process)) {
		fputs("  ", out);
		terminal_put(out, place, strlen(place));
	}
	put_transport(out, process->transport);
	fputc('\n', out);
}

/* Marks the processes that were traced: of those the file has a command line, or records of a
 * thread. NULL: out of memory. */
static bool *processes_traced(const struct model *model)
{
	bool *traced = calloc(model->processes.len + 1, sizeof(*traced));

	for (size_t i = 0; traced && i < model->processes.len; i++)
		traced[i] = *strtab_get(model->strings, model->processes.data[i].cmdline);
	for (size_t i = 0; traced && i < model->threads.len; i++) {
		const struct model_process *process = model_process_of(model, (uint32_t)i);

		if (process &&
		    (model->threads.data[i].traced || model_is_track(model, (uint32_t)i)))
			traced[process - model->processes.data] = true;
	}
	return traced;
}

/* The scheduler's records name every process that a traced thread met, which are most of the
 * machine's. */
static void put_processes(FILE *out, const struct model *model)
{
	bool *traced = processes_traced(model);
	const char *head = "processes";
	size_t others = 0;

	for (size_t i = 0; i < model->processes.len; i++) {
		if (traced && !traced[i]) {
			others++;
			continue;
		}
		fprintf(out, "%-12s", head);
		put_process(out, model, &model->processes.data[i]);
		head = "";
	}
	if (others)
		fprintf(out, "%-12s%zu %s not traced; --json has all\n", head, others,
			units_plural(others, "other is", "others are"));
	free(traced);
}

static void put_hosts(FILE *out, const struct model *model)
{
	char text[CLOCK_TEXT];

	for (uint32_t i = 0; model->host_count > 1 && i < model->host_count; i++) {
		const struct store_host *host = model->hosts[i];

		fprintf(out, "%-12s", i ? "" : "hosts");
		terminal_put(out, host->name, strlen(host->name));
		fprintf(out, "  %s\n", clock_text(text, &host->clock));
	}
}

static void put_what_is_missing(FILE *out, const struct model *model, const struct tally *sum)
{
	uint64_t bytes_cut;
	char text[UNITS_TEXT];

	if (store_reader_truncated(model->reader, &bytes_cut))
		fprintf(out,
			"cut off     or still being recorded: the last records are missing, %s at "
			"the "
			"end are unusable\n",
			units_format_bytes(text, bytes_cut));
	if (store_reader_skipped(model->reader))
		fprintf(out, "%-12s%s stacks and names: there are too many\n", "left out",
			units_format_count(text, store_reader_skipped(model->reader)));
	if (store_reader_newer(model->reader))
		fputs("newer       a newer waffle-bpf wrote the file, and reads more of it\n", out);
	if (model->losses.len)
		fprintf(out, "loss        in %zu %s, during which %" PRIu64 " %s open\n",
			model->losses.len, units_plural(model->losses.len, "interval", "intervals"),
			sum->with_loss, units_plural(sum->with_loss, "span was", "spans were"));
	if (model->bad_records)
		fprintf(out, "bad         %s %s left out\n",
			units_format_count(text, model->bad_records),
			units_plural(model->bad_records, BAD_RECORD));
}

void info_print_text(const struct model *model, FILE *out)
{
	const struct store_meta *meta = model->meta;
	struct tally sum = tally(model);
	char text[UNITS_TEXT];

	put_field(out, "command", meta->command);
	put_start(out, meta);
	put_field(out, "duration", units_format_duration(text, model->end_ts - model->start_ts));
	if (model->host_count < 2)
		put_field(out, "host", meta->hostname);
	put_hosts(out, model);
	job_ranks_put(out, model);
	put_field(out, "kernel", meta->kernel);
	put_field(out, "machine", meta->machine);
	fprintf(out, "%-12s%u\n", "CPUs", meta->cpu_count);
	put_field(out, "written by", meta->version);
	put_filter(out, meta->filter);
	if (*meta->trigger) {
		fprintf(out, "%-12s", "trigger");
		notice_put_trigger(out, model);
		fputc('\n', out);
	}
	put_processes(out, model);
	fprintf(out, "%-12s%" PRIu64 "\n", "threads", sum.traced);
	if (model->track_count)
		fprintf(out, "%-12s%" PRIu32 "\n", "tracks", model->track_count);
	fprintf(out, "%-12s%" PRIu64 "\n", "sites", sum.sites);
	fprintf(out, "%-12s%zu", "spans", model->spans.len);
	if (sum.unfinished || sum.begun_before)
		fprintf(out, ", %" PRIu64 " unfinished, %" PRIu64 " begun before", sum.unfinished,
			sum.begun_before);
	if (sum.left)
		fprintf(out, ", %" PRIu64 " left", sum.left);
	fprintf(out, "\n%-12s%" PRIu64 ", %" PRIu64 " of them log messages\n", "events", sum.events,
		sum.logs);
	fprintf(out, "%-12s%" PRIu64 " %s\n", "counters", sum.counters,
		units_plural(sum.counters, "value", "values"));
	fprintf(out, "%-12s%zu\n", "links", model->links.len);
	if (model->unaligned_collectives)
		fprintf(out,
			"%-12s%" PRIu64
			" %s: it is not certain which calls of other ranks they match\n",
			"collectives", model->unaligned_collectives,
			units_plural(model->unaligned_collectives, "call", "calls"));
	disorder_print_text(model, "            ", out);
	fprintf(out, "%-12s%s\n", "scheduler", meta->sched ? "recorded" : "not recorded");
	put_field(out, "sources", meta->sources);
	fprintf(out, "%-12s%zu\n", "switches", model->switches.len);
	fprintf(out, "%-12s", "records");
	notice_put_counts(out, &model->counts);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		fprintf(out, "  %-10s", record_source_name(i));
		notice_put_counts(out, &model->sources[i]);
	}
	put_what_is_missing(out, model, &sum);
	notice_put_simulated(out, model);
}

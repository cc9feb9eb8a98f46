// SPDX-License-Identifier: Apache-2.0
/* Rows that explain waits: "wait", "wake", "fault", "io", "signal", "quota", "stolen" and
 * "frequency". The rows "mapping" and "symbol" are needed to resolve their addresses. */
#include <inttypes.h>
#include <stdio.h>

#include "export/ndjson_waits_internal.h"
#include "render/place.h"

static void write_thread(struct json *json, const struct model *model, uint32_t thread,
			 const char *prefix)
{
	char key[32];

	if (thread >= model->threads.len)
		return;
	if (!*prefix) {
		json_field_u64(json, "pid", place_pid(model, thread));
		json_field_u64(json, "tid", place_tid(model, thread));
		json_field_string(json, "comm", model_thread_name(model, thread));
		place_json(json, model, thread);
		return;
	}
	snprintf(key, sizeof(key), "%s_tid", prefix);
	json_field_u64(json, key, place_tid(model, thread));
	json_field_string(json, prefix, model_thread_name(model, thread));
}

static void row_begin(struct json *json, const char *kind)
{
	json_object_begin(json);
	json_field_string(json, "kind", kind);
}

static void row_end(struct json *json)
{
	json_object_end(json);
	json_object_end(json);
	json_line(json);
}

static void args_begin(struct json *json)
{
	json_key(json, "args");
	json_object_begin(json);
}

/* Addresses are hexadecimal strings, since JavaScript's numbers can't represent all of them. */
static void write_stack(struct json *json, const struct model *model, const char *key,
			uint32_t number)
{
	const struct store_stack *stack = store_reader_stack(model->reader, number);
	char cut[32];

	if (!stack)
		return;
	json_key(json, key);
	json_array_begin(json);
	for (uint32_t i = 0; i < stack->count; i++) {
		char text[24];

		snprintf(text, sizeof(text), "0x%" PRIx64,
			 stack->pid ? stack->addresses[i]
				    : model_kernel_address_real(model, stack->addresses[i]));
		json_string(json, text);
	}
	json_array_end(json);
	if (!stack->cut)
		return;
	snprintf(cut, sizeof(cut), "%s_cut", key);
	json_field_bool(json, cut, true);
}

static void write_address(struct json *json, const char *key, uint64_t address)
{
	char text[24];

	if (!address)
		return;
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_field_string(json, key, text);
}

static void write_dev(struct json *json, uint32_t dev)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", dev >> 20, dev & 0xfffff);
	json_field_string(json, "dev", text);
}

static void write_wait(struct json *json, const struct model *model, const struct model_wait *wait)
{
	const struct store_object *object = store_reader_object(model->reader, wait->object);

	row_begin(json, "wait");
	write_thread(json, model, wait->thread, "");
	json_field_u64(json, "start_ns", wait->from_ts);
	json_field_u64(json, "end_ns", wait->to_ts);
	json_field_u64(json, "record", wait->record);
	args_begin(json);
	if (object) {
		json_field_string(json, "object", object->name);
		if (*object->detail)
			json_field_string(json, "detail", object->detail);
		json_field_u64(json, "ino", model_ino_real(model, object->ino));
	}
	write_address(json, "fault_address", wait->address);
	write_stack(json, model, "user_stack", wait->user_stack);
	write_stack(json, model, "kernel_stack", wait->kernel_stack);
	row_end(json);
}

static void write_wake(struct json *json, const struct model *model, const struct model_wake *wake)
{
	row_begin(json, "wake");
	write_thread(json, model, wake->waker, "");
	json_field_u64(json, "start_ns", wake->ts);
	args_begin(json);
	write_thread(json, model, wake->woken, "woken");
	if (wake->flags & WAFFLE_SWITCH_WAKER_INTERRUPT)
		json_field_bool(json, "interrupt", true);
	write_stack(json, model, "user_stack", wake->user_stack);
	write_stack(json, model, "kernel_stack", wake->kernel_stack);
	row_end(json);
}

static void write_fault(struct json *json, const struct model *model,
			const struct model_fault *fault)
{
	row_begin(json, "fault");
	write_thread(json, model, fault->thread, "");
	json_field_u64(json, "start_ns", fault->from_ts);
	json_field_u64(json, "end_ns", fault->to_ts);
	args_begin(json);
	json_field_u64(json, "count", fault->count);
	json_field_u64(json, "total_ns", fault->total_ns);
	json_field_bool(json, "major", fault->major);
	write_address(json, "address", fault->address);
	write_address(json, "ip", fault->ip);
	row_end(json);
}

static void write_io(struct json *json, const struct model *model, const struct model_io *io)
{
	row_begin(json, "io");
	write_thread(json, model, io->thread, "");
	json_field_u64(json, "start_ns", io->issue_ts);
	json_field_u64(json, "end_ns", io->done_ts);
	args_begin(json);
	write_dev(json, io->dev);
	json_field_u64(json, "sector", io->sector);
	json_field_u64(json, "bytes", io->bytes);
	json_field_bool(json, "write", io->flags & WAFFLE_IO_WRITE);
	json_field_bool(json, "sync", io->flags & WAFFLE_IO_SYNC);
	json_field_bool(json, "flush", io->flags & WAFFLE_IO_FLUSH);
	if (io->error)
		json_field_i64(json, "error", io->error);
	row_end(json);
}

static void write_signal(struct json *json, const struct model *model,
			 const struct model_signal *sent)
{
	row_begin(json, "signal");
	write_thread(json, model, sent->sender, "");
	json_field_u64(json, "start_ns", sent->ts);
	args_begin(json);
	write_thread(json, model, sent->target, "target");
	json_field_i64(json, "signo", sent->signo);
	json_field_i64(json, "code", sent->code);
	row_end(json);
}

static void write_quota(struct json *json, const struct model *model,
			const struct model_quota *quota)
{
	row_begin(json, "quota");
	write_thread(json, model, quota->thread, "");
	json_field_u64(json, "end_ns", quota->ts);
	args_begin(json);
	json_field_u64(json, "throttled_ns", quota->throttled_ns);
	json_field_u64(json, "cgroup", quota->cgroup);
	json_field_u64(json, "quota_ns", quota->quota_ns);
	json_field_u64(json, "period_ns", quota->period_ns);
	row_end(json);
}

static void write_stolen(struct json *json, const struct model *model,
			 const struct model_stolen *stolen)
{
	row_begin(json, "stolen");
	write_thread(json, model, stolen->thread, "");
	json_field_u64(json, "start_ns", stolen->from_ts);
	json_field_u64(json, "end_ns", stolen->to_ts);
	args_begin(json);
	json_field_u64(json, "stolen_ns", stolen->stolen_ns);
	if (stolen->by_tick)
		json_field_bool(json, "by_tick", true);
	row_end(json);
}

static void write_frequency(struct json *json, const struct model_frequency *frequency)
{
	row_begin(json, "frequency");
	json_field_u64(json, "cpu", frequency->cpu);
	json_field_u64(json, "start_ns", frequency->ts);
	args_begin(json);
	json_field_u64(json, "khz", frequency->khz);
	if (frequency->max_khz)
		json_field_u64(json, "max_khz", frequency->max_khz);
	if (frequency->read)
		json_field_bool(json, "read", true);
	row_end(json);
}

static void write_mapping(struct json *json, const struct model *model,
			  const struct store_mapping *mapping)
{
	char id[2 * sizeof(mapping->build_id) + 1] = "";

	for (uint32_t i = 0; i < mapping->build_id_bytes && i < sizeof(mapping->build_id); i++)
		snprintf(id + 2 * i, 3, "%02x", mapping->build_id[i]);
	row_begin(json, "mapping");
	json_field_u64(json, "pid", model_pid_real(model, mapping->pid));
	json_field_u64(json, "start_ns", mapping->ts);
	args_begin(json);
	write_address(json, "start", mapping->start);
	write_address(json, "end", mapping->end);
	json_field_u64(json, "offset", mapping->offset);
	json_field_string(json, "path", mapping->path);
	if (*id)
		json_field_string(json, "build_id", id);
	row_end(json);
}

static void write_symbol(struct json *json, const struct model *model,
			 const struct store_symbol *symbol)
{
	row_begin(json, "symbol");
	args_begin(json);
	write_address(json, "address", model_kernel_address_real(model, symbol->address));
	json_field_string(json, "name", symbol->name);
	json_field_u64(json, "offset", symbol->offset);
	row_end(json);
}

/* A function of Python or Java, whose number is among the addresses of stacks. */
static void write_named(struct json *json, const struct store_name *name)
{
	row_begin(json, "symbol");
	json_field_u64(json, "pid", name->pid);
	args_begin(json);
	write_address(json, "address", name->value);
	json_field_string(json, "name", name->name);
	row_end(json);
}

void ndjson_waits(struct json *json, const struct model *model)
{
	for (size_t i = 0; i < model->waits.len; i++)
		write_wait(json, model, &model->waits.data[i]);
	for (size_t i = 0; i < model->wakes.len; i++)
		write_wake(json, model, &model->wakes.data[i]);
	for (size_t i = 0; i < model->faults.len; i++)
		write_fault(json, model, &model->faults.data[i]);
	for (size_t i = 0; i < model->ios.len; i++)
		write_io(json, model, &model->ios.data[i]);
	for (size_t i = 0; i < model->signals.len; i++)
		write_signal(json, model, &model->signals.data[i]);
	for (size_t i = 0; i < model->quotas.len; i++)
		write_quota(json, model, &model->quotas.data[i]);
	for (size_t i = 0; i < model->stolen.len; i++)
		write_stolen(json, model, &model->stolen.data[i]);
	for (size_t i = 0; i < model->frequencies.len; i++)
		write_frequency(json, &model->frequencies.data[i]);
	for (uint32_t i = 0; i < store_reader_mapping_count(model->reader); i++)
		write_mapping(json, model, store_reader_mapping(model->reader, i));
	for (uint32_t i = 0; i < store_reader_symbol_count(model->reader); i++)
		write_symbol(json, model, store_reader_symbol(model->reader, i));
	for (uint32_t i = 0; i < store_reader_name_count(model->reader); i++)
		if (store_reader_name(model->reader, i)->value & STORE_NAMED)
			write_named(json, store_reader_name(model->reader, i));
}

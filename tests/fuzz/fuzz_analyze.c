// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: from a whole .waffle file to every output. The first byte of the input selects
 * the outputs. The rest is the file, whose checksums are corrected (checksums.h). Text for people
 * must not contain control characters. Text from the file must not end the page's script.
 */
#include "analyze/origin/origin.h"
#include "analyze/report.h"
#include "analyze/why/why.h"
#include "checksums.h"
#include "export/export.h"
#include "render/html/html_report.h"
#include "render/info.h"
#include "render/json/origin_json.h"
#include "render/text/origin_text.h"
#include "render/text/report_text.h"
#include "render/text/view_text.h"
#include "render/json/why_json.h"
#include "render/text/why_text.h"
#include "model/model.h"
#include "util/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum output { OUTPUT_REPORT, OUTPUT_WHY, OUTPUT_VIEW, OUTPUT_EXPORTS, OUTPUT_COUNT };

struct text {
	FILE *out;
	char *bytes;
	size_t len;
};

static void text_open(struct text *text)
{
	*text = (struct text){0};
	text->out = open_memstream(&text->bytes, &text->len);
	require(text->out);
}

static void text_close(struct text *text)
{
	require(!fclose(text->out));
}

/* Checks text that is shown to people. */
static void check_shown(struct text *text)
{
	text_close(text);
	for (size_t i = 0; i < text->len; i++)
		require(text->bytes[i] == '\n' ||
			!terminal_control(text->bytes + i, text->len - i));
	free(text->bytes);
}

/* The page has three scripts, its data and two of code, which end only where the page ends them. */
static void check_page(struct text *text)
{
	size_t ends = 0;

	text_close(text);
	for (const char *at = text->bytes; (at = strstr(at, "</script")); at++)
		ends++;
	require(ends == 3);
	free(text->bytes);
}

static void drop(struct text *text)
{
	text_close(text);
	free(text->bytes);
}

/* ---- a symbolizer whose answers follow from the question, so that a crash can be repeated ---- */

/* The Makefile links this program so that the library calls these functions. They do not use
 * `names`, since the page of a report opens a real symbolizer. */
struct stack_names {
	char unused;
};
static struct stack_names fake_names;

const char *__wrap_stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
					uint64_t address);
bool __wrap_stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
				     const char *name);
bool __wrap_stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping);
bool __wrap_stack_names_has_jvm(struct stack_names *names, uint32_t pid);
uint32_t __wrap_stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
				      const char **functions, uint32_t max);
uint32_t __wrap_stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
				 stack_frame_fn each, void *arg);

const char *__wrap_stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
					uint64_t address)
{
	static const char *const variables[] = {NULL, "_PyRuntime", "_PyRuntime+0x1b0",
						"table\033[31m_lock"};

	(void)names;
	return variables[(pid ^ ts ^ address) % (sizeof(variables) / sizeof(variables[0]))];
}

bool __wrap_stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
				     const char *name)
{
	(void)names;
	return (mapping->start ^ (unsigned char)*name) & 1;
}

bool __wrap_stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping)
{
	(void)names;
	return mapping->pid % 8 == 0;
}

bool __wrap_stack_names_has_jvm(struct stack_names *names, uint32_t pid)
{
	(void)names;
	return pid % 4 == 0;
}

uint32_t __wrap_stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
				      const char **functions, uint32_t max)
{
	static const char *const known[] = {
		"syscall",
		"__GI___lll_lock_wait",
		"pthread_mutex_lock",
		"pthread_cond_wait",
		"pthread_rwlock_wrlock",
		"pthread_barrier_wait",
		"runtime.futex",
		"core::futex::Mutex::lock",
		"ObjectMonitor::enter(JavaThread*)",
		"lock_PyThread_acquire_lock",
		"work\n",
		NULL,
	};
	uint32_t count = (stack ^ (uint32_t)ts) % 5;

	(void)names;
	for (uint32_t i = 0; i < count && i < max; i++)
		functions[i] = known[(stack + 3 * i) % (sizeof(known) / sizeof(known[0]))];
	return count < max ? count : max;
}

/* Every third frame is a function of Python. */
uint32_t __wrap_stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
				 stack_frame_fn each, void *arg)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count =
		__wrap_stack_names_functions(names, stack, ts, functions, STACK_NAMES_FUNCTIONS);

	for (uint32_t i = 0; i < count; i++)
		each(&(struct stack_frame){.function = functions[i],
					   .module = i % 3 ? "/lib/libc.so.6" : "[python]",
					   .file = stack % 2 ? "/lib/threading.py" : NULL},
		     arg);
	return count;
}

/* ---- outputs ---- */

static void print_report(const struct model *model)
{
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct report_view view = {0};
	struct error err = ERROR_INIT;
	struct report *report;
	struct text text;

	options.names = &fake_names;
	if (report_new(&report, model, &options, &err))
		return;
	text_open(&text);
	report_print_text(report, &view, text.out);
	info_print_text(model, text.out);
	check_shown(&text);
	text_open(&text);
	require(!report_print_json(report, text.out));
	require(!info_print_json(model, text.out));
	drop(&text);
	text_open(&text);
	html_report_write(report, text.out);
	check_page(&text);
	report_free(report);
}

static void print_origins(const struct model *model)
{
	const struct why_view view = {.evidence = true, .causes = 8};
	struct origin_index *index;
	struct error err = ERROR_INIT;
	struct origin *origin;
	struct text text;

	index = origin_index_new(model);
	for (uint32_t node = 0; node < 8; node++) {
		uint8_t kind = node % 2 ? MODEL_NODE_SPAN : MODEL_NODE_EVENT;
		size_t count = node % 2 ? model->spans.len : model->events.len;

		if (node / 2 >= count)
			continue;
		origin = origin_new(index, kind, (uint32_t)count - 1 - node / 2);
		require(!origin_find_records(origin, &err) || err.message[0]);
		text_open(&text);
		origin_print_text(origin, &view, text.out);
		check_shown(&text);
		text_open(&text);
		require(!origin_print_json(origin, text.out));
		drop(&text);
		origin_free(origin);
	}
	origin_index_free(index);
}

static void print_why(const struct model *model)
{
	const struct why_query query = {.slowest = 8, .names = &fake_names};
	const struct why_view view = {.evidence = true};
	struct error err = ERROR_INIT;
	struct why *why;
	struct text text;

	print_origins(model);
	if (!model->sched || why_new(&why, model, &query, &err))
		return;
	require(!why_records_find(why, &err) || err.message[0]);
	text_open(&text);
	why_print_text(why, &view, text.out);
	check_shown(&text);
	text_open(&text);
	require(!why_print_json(why, &view, text.out));
	drop(&text);
	why_free(why);
}

static void print_view(const struct model *model)
{
	const struct view_options options = {
		.to_ts = UINT64_MAX, .width = 80, .lanes = 8, .utf8 = true};
	struct error err = ERROR_INIT;
	struct text text;

	text_open(&text);
	require(!view_print_text(model, &options, text.out, &err) || err.message[0]);
	check_shown(&text);
}

static void export_all(const struct model *model)
{
	struct error err = ERROR_INIT;
	struct text text;

	for (size_t i = 0; i < exporter_count; i++) {
		text_open(&text);
		require(!exporters[i].write(model, text.out, &err) || err.message[0]);
		drop(&text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void (*const outputs[OUTPUT_COUNT])(const struct model *) = {print_report, print_why,
								     print_view, export_all};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	struct model *model;
	char path[64];
	int fd;

	if (!size)
		return 0;
	fd = damaged_file(data + 1, size - 1, path);
	if (!store_reader_open(&reader, path, &err)) {
		if (!model_load(&model, reader, STORE_ALL, NULL, &err)) {
			outputs[data[0] % OUTPUT_COUNT](model);
			model_free(model);
		}
		store_reader_close(reader);
	}
	close(fd);
	return 0;
}

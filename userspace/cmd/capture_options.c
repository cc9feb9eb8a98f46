// SPDX-License-Identifier: Apache-2.0
#include "cmd/capture_options_internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/explain.h"
#include "export/backend/send.h"
#include "render/explain.h"
#include "target/elf/objects.h"
#include "util/clock.h"
#include "util/memory_limit.h"
#include "util/outlet.h"
#include "util/output.h"
#include "util/terminal.h"
#include "util/units.h"

void capture_options_init(struct capture_options *options)
{
	*options = (struct capture_options){
		.sample_rate = SESSION_SAMPLE_RATE,
		.session = {.sources = CAPTURE_DEFAULT,
			    .kernel.config.wait_min_ns = SESSION_WAIT_MIN_NS,
			    .kernel.config.stack_gap_ns = SESSION_STACK_GAP_NS,
			    .kernel.ring_bytes = SESSION_RING_BYTES,
			    .sched_bytes = SESSION_SCHED_BYTES,
			    .recorder = {.after_ns = SESSION_RECORDER_AFTER_NS,
					 .cooldown_ns = SESSION_RECORDER_COOLDOWN_NS,
					 .max_files = SESSION_RECORDER_FILES,
					 .memory_bytes = SESSION_RECORDER_BYTES}}};
}

void capture_options_free(struct capture_options *options)
{
	target_options_free(&options->target);
	vec_free(&options->targets);
	vec_free(&options->sources);
	vec_free(&options->stack_words);
	vec_free(&options->redacted);
	stack_choice_free(options->session.stacks);
	account_free(options->account);
	filter_free((struct filter_expr *)(uintptr_t)options->session.recorder.trigger);
	redaction_free(&options->redaction);
	filter_options_free(&options->filter);
	probe_options_free(&options->probes);
}

static int lists_parse(struct capture_options *options, struct error *err)
{
	struct session_options *session = &options->session;
	int result = 0;

	for (size_t i = 0; !result && i < options->sources.len; i++)
		result = sources_parse(&session->sources, options->sources.data[i].text, err);
	if (options->sample_rate)
		session->kernel.config.sample_ns = 1000000000ull / options->sample_rate;
	else
		session->sources &= ~(uint32_t)CAPTURE_SAMPLES;
	for (size_t i = 0; !result && i < options->stack_words.len; i++)
		result = stack_choice_add(&session->stacks, options->stack_words.data[i].text, err);
	for (size_t i = 0; !result && i < options->redacted.len; i++)
		result = redaction_add(&options->redaction, options->redacted.data[i].text, err);
	if (!result && options->no_sched && !(session->sources &= CAPTURE_PROBES))
		result = error_set(err, EINVAL, "--no-sched: nothing is left of --sources");
	return result;
}

static int recorder_parse(struct capture_options *options, struct error *err)
{
	struct recorder_options *recorder = &options->session.recorder;
	struct filter_expr *trigger = NULL;
	int result = 0;

	if (options->trigger && !recorder->window_ns)
		return error_set(err, EINVAL, "--trigger needs a --flight-recorder");
	if (recorder->window_ns && options->session.max_bytes)
		return error_set(err, EINVAL,
				 "--max-size: --flight-recorder has --flight-memory instead");
	if (options->trigger)
		result = filter_open(&trigger, "--trigger", options->trigger, err);
	recorder->trigger = trigger;
	return result;
}

/* A bit for each enum call_table. */
static unsigned tables_wanted(const struct capture_options *options)
{
	static const uint32_t sources[CALL_TABLE_COUNT] = {[CALL_TABLE_CUDA] = CAPTURE_CUDA,
							   [CALL_TABLE_HIP] = CAPTURE_CUDA,
							   [CALL_TABLE_NCCL] = CAPTURE_NCCL,
							   [CALL_TABLE_TORCH] = CAPTURE_FRAMEWORKS,
							   [CALL_TABLE_JAX] = CAPTURE_FRAMEWORKS};
	unsigned tables = options->mpi ? 1u << CALL_TABLE_MPI : 0;

	for (unsigned i = 0; i < CALL_TABLE_COUNT; i++)
		if (options->session.sources & sources[i])
			tables |= 1u << i;
	return tables;
}

enum exit_code capture_options_open(const struct command *command, struct capture_options *options)
{
	enum exit_code code;
	struct error err = ERROR_INIT;

	if (lists_parse(options, &err) || recorder_parse(options, &err))
		return command_fail(command, &err, EXIT_USAGE);
	code = filter_options_open(command, &options->filter);
	options->session.filter = options->filter.filter;
	options->session.kernel.config.keep_children = options->filter.keep_children;
	if (options->redaction.args || options->redaction.keys.len)
		options->session.redaction = &options->redaction;
	if (code != EXIT_DONE)
		return code;
	code = probe_options_open(command, &options->probes, tables_wanted(options));
	options->session.calls = options->probes.calls;
	options->session.functions = options->probes.functions;
	options->session.function_count = options->probes.function_count;
	options->session.kernel.python = options->probes.function_count;
	return code;
}

/* The part of a default name before its number and ".waffle". */
static void default_stem(char *stem, size_t size, const char *program)
{
	time_t now = time(NULL);
	struct tm local;
	char stamp[32];
	char safe[64];
	size_t len = 0;

	for (; program[len] && len < sizeof(safe) - 1; len++) {
		char c = program[len];

		/* Only characters without a special meaning to shells and option parsers. */
		safe[len] = isalnum((unsigned char)c) || (len && strchr("-.+", c)) ? c : '_';
	}
	safe[len] = '\0';
	localtime_r(&now, &local);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	snprintf(stem, size, "%s-%s", len ? safe : "capture", stamp);
}

/*
 * A name such as "redis-server-20261121-051700.waffle"; characters that are not suitable for a file
 * name become '_'. An empty file reserves the name at once, since two captures may begin in the
 * same second.
 */
struct default_name {
	char text[256];
	struct stat taken; /* the empty file */
};

static int default_name(struct default_name *name, const char *program, struct error *err)
{
	char stem[128];
	int fd = -1;

	default_stem(stem, sizeof(stem), program);
	for (unsigned number = 1; fd < 0 && number < 1000; number++) {
		char suffix[16] = "";

		if (number > 1)
			snprintf(suffix, sizeof(suffix), "-%u", number);
		snprintf(name->text, sizeof(name->text), "%s%s.waffle", stem, suffix);
		fd = open(name->text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, OUTPUT_MODE);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return error_set(err, errno, "%s: %s; give another place with -o", name->text,
				 strerror(errno));
	output_give_to_caller(fd);
	fstat(fd, &name->taken);
	close(fd);
	return 0;
}

/* Removes the empty file of a capture that did not begin, unless it was replaced. */
static void default_name_release(const struct default_name *name)
{
	struct stat now;

	if (!lstat(name->text, &now) && now.st_dev == name->taken.st_dev &&
	    now.st_ino == name->taken.st_ino)
		unlink(name->text);
}

/* State of the progress line, which is shown only on a terminal. */
struct display {
	const struct capture_options *options;
	const char *command;
	bool terminal;
	bool line_open;
	uint64_t last_records, last_ns;
	struct outlet outlet; /* to stderr, while programs are traced */
};

static void display_clear(struct display *display)
{
	if (display->line_open)
		fputs("\r\033[K", display->outlet.stream);
	display->line_open = false;
}

static void display_tell(const char *line, void *arg)
{
	struct display *display = arg;

	display_clear(display);
	terminal_fault(display->outlet.stream, "waffle-bpf: %s: %s", display->command, line);
	fflush(display->outlet.stream);
}

static void display_notify(const char *line, void *arg)
{
	struct display *display = arg;

	if (!display->options->quiet)
		display_tell(line, arg);
}

static void display_progress(const struct session_result *so_far, uint64_t elapsed_ns, void *arg)
{
	struct display *display = arg;
	FILE *to = display->outlet.stream;
	uint64_t records = 0, lost = 0, total = display->options->session.duration_ns;
	char count[UNITS_TEXT], rate[UNITS_TEXT], drops[UNITS_TEXT], size[UNITS_TEXT],
		time_text[UNITS_TEXT], armed[ARMED_TEXT];
	uint64_t per_second = 0;

	if (outlet_is_full(&display->outlet))
		return;
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		records += so_far->counts[i].delivered;
		lost += so_far->counts[i].lost;
	}
	if (elapsed_ns > display->last_ns)
		per_second = (uint64_t)((double)(records - display->last_records) * 1e9 /
					(double)(elapsed_ns - display->last_ns));
	display->last_records = records;
	display->last_ns = elapsed_ns;
	fprintf(to, "\r\033[K%s: %s records, %s/s, %s lost, %s", armed_text(armed, &so_far->armed),
		units_format_count(count, records), units_format_count(rate, per_second),
		units_format_count(drops, lost), units_format_bytes(size, so_far->file_bytes));
	if (total)
		fprintf(to, ", %s left",
			units_format_duration(time_text,
					      total > elapsed_ns ? total - elapsed_ns : 0));
	else
		fprintf(to, ", %s; Ctrl-C to end", units_format_duration(time_text, elapsed_ns));
	fflush(to);
	display->line_open = true;
}

static void summary_print(const struct capture_options *options,
			  const struct session_result *result, const char *path)
{
	char count[UNITS_TEXT], lost_text[UNITS_TEXT], size[UNITS_TEXT], time_text[UNITS_TEXT],
		share[UNITS_TEXT], ready[UNITS_TEXT], cpu[UNITS_TEXT], armed[ARMED_TEXT];
	uint64_t records = 0, lost = 0;

	if (options->quiet)
		return;
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		records += result->counts[i].delivered;
		lost += result->counts[i].lost;
	}
	terminal_message(
		stderr,
		"%s: %s records in %s, %s lost, %s; %s armed; waffle-bpf used %s of CPU in %s "
		"until ready, then %s of a CPU",
		path, units_format_count(count, records),
		units_format_duration(time_text, result->duration_ns),
		units_format_count(lost_text, lost), units_format_bytes(size, result->file_bytes),
		armed_text(armed, &result->armed), units_format_duration(cpu, result->ready_cpu_ns),
		units_format_duration(ready, result->ready_ns),
		units_format_share(share, result->tracer_cpu_ns, result->recorded_ns));
}

static int report_print(const char *path, bool json)
{
	memory_limit_set(memory_limit_default());
	/* The filter has been applied already, so WAFFLE_FILTER must not be read again. */
	char *arguments[] = {(char *)(uintptr_t)path, "--filter=", "--json", NULL};

	return command_report.run(&command_report, json ? 3 : 2, arguments);
}

static int explain_show(const struct explain *explain, void *arg)
{
	const struct capture_options *options = arg;

	if (options->json)
		return explain_print_json(explain, stdout);
	explain_print_text(explain, stdout);
	return 0;
}

static int explain_command(const struct command *command, struct capture_options *options)
{
	struct display display = {.options = options, .command = command->name};
	struct session_events events = {
		.notify = display_notify,
		.tell = display_tell,
		.arg = &display,
	};
	struct error err = ERROR_INIT;

	display.outlet.stream = stderr;
	if (options->session.command && objects_command_is_script(options->session.command[0]))
		display_notify("the command is a script: its interpreter is shown; the sites of "
			       "programs that it starts are found when they start",
			       &display);
	if (session_explain(&options->session, &events, explain_show, options, &err))
		return command_fail(command, &err, EXIT_FAILED);
	return EXIT_DONE;
}

/* ---- processors ---- */

#define TICK_NS 1000000000ull
/* Exporters get so long at the end. */
#define PROCESS_WAIT_NS 5000000000ull

struct process_tap {
	struct session_tap tap;
	struct chain *chain;
	uint64_t ticked_ns;
};

static void process_record(const struct waffle_rec *rec, const struct site_info *site, void *arg)
{
	chain_record(((struct process_tap *)arg)->chain, rec, site);
}

static void process_round(void *arg)
{
	struct process_tap *process = arg;
	uint64_t now = clock_monotonic_ns();

	if (now - process->ticked_ns < TICK_NS)
		return;
	process->ticked_ns = now;
	chain_tick(process->chain, now);
}

static int process_open(struct process_tap *process, const struct command *command,
			struct capture_options *options, const char *program, struct error *err)
{
	int64_t offset = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_monotonic_ns());
	char *text = NULL;
	int result;

	if (options->spool && !options->to)
		return error_set(err, EINVAL, "--spool needs --to URL");
	if (!options->process && !options->to)
		return 0;
	if (options->to && !(text = backend_chain(options->to, options->spool, options->process)))
		return error_set(err, ENOMEM, "out of memory");
	process->tap = (struct session_tap){process_record, process_round, process};
	options->session.tap = &process->tap;
	result = process_options_open(&process->chain, command, text ? "--to" : "--process",
				      text ?: options->process, program, offset, false, err);
	free(text);
	return result;
}

static void process_close(struct process_tap *process)
{
	if (process->chain)
		chain_close(process->chain, clock_monotonic_ns(), PROCESS_WAIT_NS);
}

int capture_command(const struct command *command, struct capture_options *options,
		    const char *program, struct session_result *result)
{
	struct display display = {.options = options,
				  .command = command->name,
				  .terminal = isatty(STDERR_FILENO) && !options->quiet};
	struct session_events events = {
		.notify = options->quiet ? NULL : display_notify,
		.tell = display_tell,
		.progress = display.terminal ? display_progress : NULL,
		.arg = &display,
	};
	struct error err = ERROR_INIT;
	struct default_name name = {.text = ""};
	bool recorder = options->session.recorder.window_ns;
	struct process_tap process = {0};
	int code, reported = EXIT_DONE;

	*result = (struct session_result){.exit_status = -1};
	if (options->filter.explain)
		return explain_command(command, options);
	if (process_open(&process, command, options, program, &err))
		return command_fail(command, &err, EXIT_USAGE);
	if (!options->output && recorder) {
		default_stem(name.text, sizeof(name.text), program);
	} else if (!options->output && default_name(&name, program, &err)) {
		process_close(&process);
		return command_fail(command, &err, EXIT_FAILED);
	}
	options->session.output = options->output ? options->output : name.text;
	options->session.output_expands = options->output;
	outlet_open(&display.outlet, STDERR_FILENO);
	code = session_run(&options->session, &events, result, &err);
	display_clear(&display);
	process_close(&process);
	outlet_close(&display.outlet);
	if (!result->file_written) {
		if (!options->output && !recorder && !result->file_stuck)
			default_name_release(&name);
	} else {
		summary_print(options, result, result->output);
		if (!options->no_report)
			reported = report_print(result->output, options->json);
	}
	if (code)
		return command_fail(command, &err, EXIT_FAILED);
	return reported;
}

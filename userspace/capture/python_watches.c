// SPDX-License-Identifier: Apache-2.0
#include "capture/python_watches_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/vec.h"

#define PROCESSES_MAX 1024
/* Searches at a time: each has a cache of 16 MiB, and takes milliseconds a round. */
#define SEARCHES_MAX 2
#define STEP_BYTES (4ull << 20)   /* of memory in a round */
#define PARSE_WAIT_NS 20000000ull /* until the files of a process are parsed */
/* A process that is not Python is looked at again after a pause that doubles, within these limits.
 */
#define OTHER_MIN_NS 50000000ull
#define OTHER_MAX_NS 3200000000ull
/* A search that has not found everything is repeated after a pause, which is so many times as long
 * as the search, within these limits, and never less than PAUSE_TIMES_MIN times as long. */
#define PAUSE_TIMES 20
#define PAUSE_TIMES_MIN 4
#define PAUSE_MIN_NS 100000000ull
#define PAUSE_MAX_NS 10000000000ull
/* How often we check that the watched objects of a process are still there. */
#define LOOK_NS 1000000000ull
#define FAILURES_MAX 8       /* of watching functions of a process */
#define RETURN_VALUE_3_11 83 /* Include/opcode.h */

struct watched_function {
	uint64_t code, name; /* as in struct waffle_watch */
	uint32_t first_line;
	struct kernel_watch *watch;
};

struct watched_process {
	pid_t pid;
	/* It was forked by this process, or by another such child of it, whose watches apply to it:
	 * they end when those of that process are released. 0: it has its own. */
	pid_t inherits;
	bool done; /* everything was found, nothing can be, or a parent's watches apply */
	struct python python;
	struct python_codes codes;
	bool is_other; /* it has no interpreter yet */
	bool searching;
	bool searched;      /* to the end, once */
	uint64_t begin_ns;  /* of the search */
	uint64_t pause_ns;  /* if is_other */
	uint64_t next_ns;   /* when to continue */
	uint64_t looked_ns; /* see LOOK_NS */
	uint32_t found;     /* a bit for each spec */
	uint32_t failures;
	struct watched_function list[WAFFLE_WATCHES_PER_PROCESS];
	size_t count;
};

struct python_watches {
	struct python_watches_options options;
	VEC(struct watched_process) processes;
	const char *names[PYTHON_SPECS_MAX]; /* of the functions, not qualified */
	uint32_t found;                      /* in any process */
	uint32_t reported;                   /* specs with a message */
};

_Static_assert(PYTHON_SPECS_MAX < 32, "a bit for each");

int python_watches_open(struct python_watches **watches,
			const struct python_watches_options *options)
{
	*watches = calloc(1, sizeof(**watches));
	if (!*watches)
		return -ENOMEM;
	(*watches)->options = *options;
	for (size_t i = 0; i < options->spec_count; i++)
		(*watches)->names[i] = python_spec_name(&options->specs[i]);
	return 0;
}

static void process_clear(struct watched_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		kernel_watch_free(process->list[i].watch);
	python_codes_free(&process->codes);
	*process = (struct watched_process){.pid = process->pid};
}

void python_watches_close(struct python_watches *watches)
{
	if (!watches)
		return;
	for (size_t i = 0; i < watches->processes.len; i++)
		process_clear(&watches->processes.data[i]);
	vec_free(&watches->processes);
	free(watches);
}

/* ---- messages ---- */

__attribute__((format(printf, 3, 4))) static void report(struct python_watches *watches,
							 uint32_t spec, const char *format, ...)
{
	const struct python_spec *about = &watches->options.specs[spec];
	char text[512], line[1024 + PYTHON_FILE_MAX + PYTHON_NAME_MAX];
	va_list arguments;

	if (watches->reported >> spec & 1)
		return;
	watches->reported |= 1u << spec;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(line, sizeof(line), "python:%s:%s is not recorded%s", about->file, about->function,
		 text);
	watches->options.notify(line, watches->options.notify_arg);
}

static void report_all(struct python_watches *watches, const char *text)
{
	for (uint32_t i = 0; i < watches->options.spec_count; i++)
		report(watches, i, "%s", text);
}

static const char *watch_problem(int error)
{
	switch (error) {
	case ENOSPC:
		return "a debugger or another tracer uses the CPU's four watch registers";
	case EINVAL:
		return "this needs Linux 5.13 or later";
	case E2BIG:
		return "a capture has no room for more functions";
	case EUSERS:
		return "it has too many threads";
	case EEXIST:
		return "another process has another function at the same address";
	case EOPNOTSUPP:
	case ENODEV:
	case ENOENT:
		return "this machine does not let the kernel watch memory addresses";
	default:
		return strerror(error);
	}
}

/* ---- a function ---- */

static bool is_watched(const struct watched_process *process, uint64_t code)
{
	for (size_t i = 0; i < process->count; i++)
		if (process->list[i].code == code)
			return true;
	return false;
}

static int function_watch(struct python_watches *watches, struct watched_process *process,
			  const struct python_code *code, uint32_t number)
{
	const struct python *python = &process->python;
	struct waffle_watch watch = {
		.python = python->kernel,
		.code = code->address,
		.name = code->name,
		.first_line = code->first_line,
		.function = number,
		.first = code->first,
		.return_opcode = python->kernel.version >> 16 == 0x030b ? RETURN_VALUE_3_11 : 0,
	};
	struct kernel_watch *made;
	int result = kernel_watch_python(watches->options.kernel, &made, process->pid, &watch);

	if (result)
		return result;
	process->list[process->count++] = (struct watched_function){
		.code = code->address,
		.name = code->name,
		.first_line = code->first_line,
		.watch = made,
	};
	return 0;
}

/* A code object that a spec describes. */
static void function_take(struct python_watches *watches, struct watched_process *process,
			  const struct python_code *code, uint32_t spec)
{
	uint32_t number;
	int result;

	/* A program may make up any number of objects that can't be watched. */
	if (is_watched(process, code->address) || process->failures >= FAILURES_MAX)
		return;
	if (code->suspends) {
		report(watches, spec,
		       ": it is a generator or coroutine, whose calls pause; waffle.instrument "
		       "records it from inside (docs/python.md)");
		return;
	}
	if (process->count == WAFFLE_WATCHES_PER_PROCESS) {
		report(watches, spec,
		       " everywhere: more than %d functions match in pid %d, and the CPU watches "
		       "no more; not recorded is %s (%s:%u)",
		       WAFFLE_WATCHES_PER_PROCESS, process->pid, code->function.function,
		       code->function.file, code->first_line);
		return;
	}
	result = watches->options.number(code, &number, watches->options.number_arg);
	if (result == -ENOENT)
		return;
	result = result ?: function_watch(watches, process, code, number);
	process->failures += result != 0;
	if (result && result != -ESRCH)
		report(watches, spec, " in pid %d: %s", process->pid, watch_problem(-result));
}

struct function_search {
	struct python_watches *watches;
	struct watched_process *process;
};

static void code_found(const struct python_code *code, void *arg)
{
	const struct function_search *search = arg;
	const struct python_watches_options *options = &search->watches->options;
	bool qualified = !search->process->python.kernel.index_bytes;

	for (uint32_t i = 0; i < options->spec_count; i++) {
		if (!python_spec_matches(&options->specs[i], &code->function, qualified))
			continue;
		search->process->found |= 1u << i;
		search->watches->found |= 1u << i;
		function_take(search->watches, search->process, code, i);
	}
}

/* ---- a process ---- */

/* Finds the interpreter of a process, and reports one that is not supported. 0: it can be searched;
 * -EAGAIN: it is not known yet. */
static int interpreter_find(struct python_watches *watches, struct watched_process *process,
			    const struct image *image)
{
	struct python *python = &process->python;
	struct error gone = ERROR_INIT;
	struct mappings mappings;
	char text[160];
	int result;

	if (process_mappings(&mappings, process->pid, &gone))
		return -ESRCH;
	result = python_find(python, image, process->pid, &mappings, false);
	mappings_free(&mappings);
	process->is_other = !result && !python->found;
	if (!python->found)
		return -EAGAIN; /* it may still be loaded */
	if (result || (python->kernel.runtime && python->code_type))
		return result;
	snprintf(text, sizeof(text),
		 ": pid %d: %s; CPython 3.8 to 3.14 with the global lock is supported, on x86-64",
		 process->pid,
		 python->kernel.runtime ? "its interpreter does not export PyCode_Type"
					: "this version of Python is not supported");
	report_all(watches, text);
	return -ENOTSUP;
}

static void search_end(struct python_watches *watches, struct watched_process *process,
		       uint64_t now_ns)
{
	uint64_t took = now_ns - process->begin_ns, pause = PAUSE_TIMES * took;
	uint64_t most =
		took > PAUSE_MAX_NS / PAUSE_TIMES_MIN ? PAUSE_TIMES_MIN * took : PAUSE_MAX_NS;

	process->searching = false;
	process->searched = true;
	python_codes_free(&process->codes);
	pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause > most ? most : pause;
	process->next_ns = now_ns + pause;
	process->done = process->found == (1u << watches->options.spec_count) - 1;
}

/* Continues the search in a process. */
static void search_step(struct python_watches *watches, struct watched_process *process,
			const struct image *image, uint64_t now_ns)
{
	struct function_search search = {watches, process};

	if (!process->searching) {
		if (python_codes_begin(&process->codes, process->pid, watches->names,
				       watches->options.spec_count)) {
			process->done = true;
			return;
		}
		process->searching = true;
		process->begin_ns = now_ns;
	}
	if (!python_codes_step(&process->codes, &process->python, image, STEP_BYTES, code_found,
			       &search))
		search_end(watches, process, clock_monotonic_ns());
}

static uint64_t other_pause(struct watched_process *process)
{
	uint64_t pause = process->pause_ns < OTHER_MIN_NS ? OTHER_MIN_NS : 2 * process->pause_ns;

	process->pause_ns = pause < OTHER_MAX_NS ? pause : OTHER_MAX_NS;
	return process->pause_ns;
}

static void process_round(struct python_watches *watches, struct watched_process *process,
			  uint64_t now_ns)
{
	struct image image;
	int result = image_open(&image, process->pid);

	if (result) { /* it has ended, or nothing of it may be read */
		process->done = true;
		process->searching = false;
		python_codes_free(&process->codes);
		return;
	}
	if (!process->python.kernel.runtime || !process->python.code_type)
		result = interpreter_find(watches, process, &image);
	if (result == -EAGAIN)
		process->next_ns =
			now_ns + (process->is_other ? other_pause(process) : PARSE_WAIT_NS);
	else if (result)
		process->done = true;
	else
		search_step(watches, process, &image, now_ns);
	image_close(&image);
}

/* Whether a watched object is another one now, or none: its memory was used again. */
static bool is_replaced(const struct watched_process *process, const struct image *image,
			const struct watched_function *function)
{
	struct python_code code;
	uint64_t word;

	if (!image_read(image, function->code, &word, sizeof(word)))
		return false;
	return !python_code_at(&code, &process->python, image, function->code) ||
	       code.name != function->name || code.first_line != function->first_line;
}

/* Whether its watches are those of children, too, which may still have the objects. */
static bool has_heirs(const struct python_watches *watches, const struct watched_process *process)
{
	for (size_t i = 0; i < watches->processes.len; i++)
		if (watches->processes.data[i].inherits == process->pid)
			return true;
	return false;
}

/* Releases the watches of functions that the program has freed: each access to what is there now
 * would cost it a trap. Then it is searched again, as another object may have the function. */
static void process_look(const struct python_watches *watches, struct watched_process *process,
			 uint64_t now_ns)
{
	struct image image;

	if (!process->count || now_ns < process->looked_ns + LOOK_NS || has_heirs(watches, process))
		return;
	process->looked_ns = now_ns;
	if (image_open(&image, process->pid))
		return;
	for (size_t i = process->count; i > 0; i--) {
		struct watched_function *function = &process->list[i - 1];

		if (!is_replaced(process, &image, function))
			continue;
		kernel_watch_free(function->watch);
		*function = process->list[--process->count];
		process->found = 0;
		process->done = false;
	}
	image_close(&image);
}

bool python_watches_round(struct python_watches *watches, uint64_t now_ns)
{
	size_t searches = 0;

	for (size_t i = 0; i < watches->processes.len; i++)
		searches += watches->processes.data[i].searching;
	for (size_t i = 0; i < watches->processes.len; i++) {
		struct watched_process *process = &watches->processes.data[i];
		bool before = process->searching;

		process_look(watches, process, now_ns);
		if (process->done ||
		    (!before && (now_ns < process->next_ns || searches >= SEARCHES_MAX)))
			continue;
		process_round(watches, process, now_ns);
		searches += process->searching;
		searches -= before;
	}
	return searches > 0;
}

bool python_watches_searches(const struct python_watches *watches)
{
	for (size_t i = 0; i < watches->processes.len; i++) {
		const struct watched_process *process = &watches->processes.data[i];

		/* A process without Python is not waited for. */
		if (!process->done && !process->searched && !process->is_other)
			return true;
	}
	return false;
}

void python_watches_release(struct python_watches *watches)
{
	for (size_t i = 0; i < watches->processes.len; i++)
		process_clear(&watches->processes.data[i]);
	watches->processes.len = 0;
}

static struct watched_process *process_of(const struct python_watches *watches, pid_t pid)
{
	for (size_t i = 0; i < watches->processes.len; i++)
		if (watches->processes.data[i].pid == pid)
			return &watches->processes.data[i];
	return NULL;
}

void python_watches_add(struct python_watches *watches, pid_t pid)
{
	struct watched_process process = {.pid = pid};

	if (!process_of(watches, pid) && watches->processes.len < PROCESSES_MAX)
		(void)vec_push(&watches->processes, process);
}

/* Gives the watches of a process that ends to one of the children that they apply to: the kernel
 * removes a child's when the events that it inherited are closed. */
static void watches_hand_over(struct python_watches *watches, struct watched_process *process)
{
	struct watched_process *heir = NULL;

	for (size_t i = 0; i < watches->processes.len; i++) {
		struct watched_process *child = &watches->processes.data[i];

		if (child->inherits != process->pid)
			continue;
		child->inherits = heir ? heir->pid : 0;
		if (heir)
			continue;
		heir = child;
		heir->python = process->python;
		heir->found = process->found;
		memcpy(heir->list, process->list, sizeof(heir->list));
		heir->count = process->count;
		process->count = 0;
	}
}

static void process_remove(struct python_watches *watches, struct watched_process *process)
{
	watches_hand_over(watches, process);
	process_clear(process);
	*process = watches->processes.data[--watches->processes.len];
}

void python_watches_forget(struct python_watches *watches, pid_t pid)
{
	struct watched_process *process = process_of(watches, pid);

	if (process)
		process_remove(watches, process);
}

static void child_add(struct python_watches *watches, const struct waffle_rec_fork *fork)
{
	pid_t pid = (pid_t)fork->child_tgid;
	const struct watched_process *parent;
	struct watched_process *child;
	pid_t owner;

	python_watches_forget(watches, pid); /* of an earlier process with this pid */
	python_watches_add(watches, pid);
	parent = process_of(watches, (pid_t)fork->tgid);
	owner = !parent ? 0 : parent->count ? parent->pid : parent->inherits;
	child = process_of(watches, pid);
	/* The child has the parent's memory and its watches. */
	if (child && owner && owner != child->pid) {
		child->done = true;
		child->inherits = owner;
	}
}

void python_watches_process(struct python_watches *watches, const struct waffle_rec *rec)
{
	const struct waffle_rec_exit *exec = (const struct waffle_rec_exit *)rec;
	struct watched_process *process;

	if (rec->kind == WAFFLE_REC_FORK) {
		child_add(watches, (const struct waffle_rec_fork *)rec);
		return;
	}
	process = process_of(watches, (pid_t)exec->tgid);
	if (!process || rec->kind != WAFFLE_REC_EXEC)
		return; /* at the exit of its main thread a process may go on */
	watches_hand_over(watches, process);
	process_clear(process);
}

void python_watches_report(const struct python_watches *watches)
{
	char line[256 + PYTHON_FILE_MAX + PYTHON_NAME_MAX];

	for (uint32_t i = 0; i < watches->options.spec_count; i++) {
		const struct python_spec *spec = &watches->options.specs[i];

		if ((watches->found | watches->reported) >> i & 1)
			continue;
		snprintf(line, sizeof(line),
			 "python:%s:%s: no process had such a function; it is named as in its "
			 "source, and was looked for until the end",
			 spec->file, spec->function);
		watches->options.notify(line, watches->options.notify_arg);
	}
}

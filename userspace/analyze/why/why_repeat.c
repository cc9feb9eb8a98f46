// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/path.h"

/* Limit of the stacks to examine, which are taken evenly from all. */
#define STACKS_MAX 256
/* A function that is in so much of the time, in percent, does not return: main(), or a loop. */
#define LOOP_PERCENT 90
/* What a candidate needs at least. */
#define STACKS_MIN 5
#define TIME_PERCENT 20

/* ---- the choice ---- */

static bool is_same(const struct stack_frame *a, const struct stack_frame *b)
{
	return !strcmp(a->function, b->function) && !strcmp(a->module, b->module);
}

static bool has(const struct why_repeat_path *path, uint32_t depth, const struct stack_frame *frame)
{
	return path->depth > depth && is_same(&path->frames[depth], frame);
}

/* The function at a depth that has the most time, among the stacks that are marked. */
static const struct stack_frame *most_at(const struct why_repeat_path *paths, const bool *marked,
					 size_t count, uint32_t depth, uint64_t *most_ns)
{
	const struct stack_frame *most = NULL;

	*most_ns = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t ns = 0;

		if (!marked[i] || paths[i].depth <= depth)
			continue;
		for (size_t k = 0; k < count; k++)
			if (marked[k] && has(&paths[k], depth, &paths[i].frames[depth]))
				ns += paths[k].ns;
		if (ns > *most_ns) {
			*most_ns = ns;
			most = &paths[i].frames[depth];
		}
	}
	return most;
}

static bool is_same_below(const struct why_repeat_path *a, const struct why_repeat_path *b,
			  uint32_t depth)
{
	if (a->depth != b->depth)
		return false;
	for (; depth < a->depth; depth++)
		if (!is_same(&a->frames[depth], &b->frames[depth]))
			return false;
	return true;
}

/* Whether all stacks with this function are of waits at one place, as in a selector's select().
 * Then the thread waits for work there, and does none. */
static bool only_waits(const struct why_repeat_path *paths, const bool *marked, size_t count,
		       uint32_t depth, const struct stack_frame *frame)
{
	const struct why_repeat_path *first = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!marked[i] || !has(&paths[i], depth, frame))
			continue;
		if (!first)
			first = &paths[i];
		if (!paths[i].waits || !is_same_below(first, &paths[i], depth))
			return false;
	}
	return true;
}

/* What Go's runtime does on a thread is no step of the program. */
static bool is_of_runtime(const struct stack_frame *frame)
{
	return !stack_frame_is_python(frame) && !strncmp(frame->function, "runtime.", 8);
}

static bool take(const struct why_repeat_path *paths, const bool *marked, size_t count,
		 uint32_t depth, const struct stack_frame *frame,
		 struct why_repeat_candidate *candidate)
{
	char probe[512];

	*candidate = (struct why_repeat_candidate){.frame = *frame, .of = (uint32_t)count};
	for (size_t i = 0; i < count; i++)
		candidate->stacks += marked[i] && has(&paths[i], depth, frame);
	return candidate->stacks >= STACKS_MIN && !is_of_runtime(frame) &&
	       !only_waits(paths, marked, count, depth, frame) &&
	       why_repeat_probe(probe, sizeof(probe), frame);
}

/* Follows the functions that do not return, from the outermost one on. The next one is called again
 * and again, since there are other functions beside it. */
bool why_repeat_choose(const struct why_repeat_path *paths, size_t count,
		       struct why_repeat_candidate *candidate)
{
	bool *marked = memory_get((count + 1) * sizeof(*marked));
	uint64_t all_ns = 0, most_ns;
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		marked[i] = true;
		all_ns += paths[i].ns;
	}
	for (uint32_t depth = 0; depth < WHY_REPEAT_DEPTH && all_ns; depth++) {
		const struct stack_frame *most = most_at(paths, marked, count, depth, &most_ns);

		if (!most || most_ns < all_ns / 100 * TIME_PERCENT)
			break;
		if (most_ns < all_ns / 100 * LOOP_PERCENT) {
			found = depth && take(paths, marked, count, depth, most, candidate);
			break;
		}
		for (size_t i = 0; i < count; i++)
			marked[i] = marked[i] && has(&paths[i], depth, most);
	}
	free(marked);
	return found;
}

/* ---- stacks ---- */

/* Frames that no probe spec names, or that belong to the libraries of C and C++ or the interpreter.
 */
static bool is_skipped(const struct stack_frame *frame)
{
	static const char *const modules[] = {"libc.so", "libc-",    "libpthread",
					      "ld-",     "libgcc_s", "libstdc++",
					      "libc++",  "python",   "libpython"};
	const char *base;

	/* "<shop::Cart as core::fmt::Debug>::fmt" is written in another way in a probe spec. */
	if (frame->kernel || frame->inlined || !frame->function || !frame->module ||
	    *frame->function == '<')
		return true;
	base = path_base(frame->module);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strncmp(base, modules[i], strlen(modules[i])))
			return true;
	return false;
}

/* Stacks that are cut are kept: if they lack main(), the time that they stand for speaks against
 * any candidate. */
static void add_frame(const struct stack_frame *frame, void *arg)
{
	struct why_repeat_path *path = arg;

	if (frame->cut || is_skipped(frame))
		return;
	if (path->depth == WHY_REPEAT_DEPTH) /* the outermost ones are needed */
		memmove(path->frames, path->frames + 1, --path->depth * sizeof(*path->frames));
	path->frames[path->depth++] = *frame;
}

static void add_stack(struct why_repeat_path *paths, size_t *count, struct stack_names *names,
		      uint32_t stack, uint64_t ts, uint64_t ns, bool waits)
{
	struct why_repeat_path *path = &paths[*count];

	*path = (struct why_repeat_path){.ns = ns, .waits = waits};
	stack_names_each(names, stack, ts, add_frame, path);
	for (uint32_t i = 0; i < path->depth / 2; i++) {
		struct stack_frame frame = path->frames[i];

		path->frames[i] = path->frames[path->depth - 1 - i];
		path->frames[path->depth - 1 - i] = frame;
	}
	*count += path->depth > 0;
}

bool why_repeat_find(const struct model *model, struct stack_names *names, uint32_t thread,
		     struct why_repeat_candidate *candidate)
{
	struct why_repeat_path *paths = memory_get((2 * STACKS_MAX + 2) * sizeof(*paths));
	uint64_t sample_ns = model->threads.data[thread].running_ns;
	size_t waits = 0, samples = 0, count = 0, at = 0;
	bool found;

	for (size_t i = 0; i < model->waits.len; i++)
		waits += model->waits.data[i].thread == thread && model->waits.data[i].user_stack;
	for (size_t i = 0; i < model->samples.len; i++)
		samples += model->samples.data[i].thread == thread &&
			   model->samples.data[i].user_stack;
	for (size_t i = 0; i < model->waits.len; i++) {
		const struct model_wait *wait = &model->waits.data[i];

		if (wait->thread == thread && wait->user_stack &&
		    at++ % (waits / STACKS_MAX + 1) == 0)
			add_stack(paths, &count, names, wait->user_stack, wait->from_ts,
				  wait->to_ts - wait->from_ts, true);
	}
	at = 0;
	for (size_t i = 0; i < model->samples.len; i++) {
		const struct model_sample *sample = &model->samples.data[i];

		if (sample->thread == thread && sample->user_stack &&
		    at++ % (samples / STACKS_MAX + 1) == 0)
			add_stack(paths, &count, names, sample->user_stack, sample->ts,
				  sample_ns / samples, false);
	}
	found = why_repeat_choose(paths, count, candidate);
	free(paths);
	return found;
}

/* ---- the probe ---- */

static bool has_only(const char *text, const char *others)
{
	for (; *text; text++)
		if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
		      (*text >= '0' && *text <= '9') || strchr(others, *text)))
			return false;
	return true;
}

bool why_repeat_probe(char *text, size_t size, const struct stack_frame *frame)
{
	bool python = stack_frame_is_python(frame);
	const char *file = python ? frame->file : frame->module;
	int len;

	if (!file || !has_only(file, "/._+-") || !*frame->function ||
	    !has_only(frame->function, "_:.") || strstr(frame->function, ".."))
		return false;
	if (python)
		len = snprintf(text, size, "python:%s:%s", path_base(file), frame->function);
	else
		len = snprintf(text, size, "uprobe:%s:%s as span step", file, frame->function);
	return len < (int)size;
}

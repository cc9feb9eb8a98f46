// SPDX-License-Identifier: Apache-2.0
#include "capture/python_calls_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bpf/call.h"
#include "capture/python_watches_internal.h"
#include "util/vec.h"
#include "waffle/abi.h"

#define FUNCTIONS_MAX 1024
#define CALLS_MAX 16384 /* that are open */

/* A function that was found, perhaps in several processes. It lives as long as arming, which has
 * pointers to its texts. */
struct python_function {
	struct site_info info;
	char name[PYTHON_NAME_MAX], file[PYTHON_FILE_MAX];
	/* Arming's number. WAFFLE_SITE_UNKNOWN: the filter wants none of its calls. */
	uint32_t site;
};

/* A call from its first instruction on. */
struct python_call {
	uint64_t id, begin_ts;
	uint64_t frame;             /* 0: not known yet */
	uint64_t caller, caller_at; /* as in struct waffle_rec_watched */
	uint32_t tgid, tid, function;
	uint16_t cpu;
};

/* The last change of the number of references to a function's code on a thread. */
struct code_touch {
	uint32_t tgid, tid, function;
	uint64_t current, current_at;
};
#define TOUCHES 1024

enum call_end { CALL_RETURNED, CALL_LEFT, CALL_OPEN };

struct python_calls {
	struct python_calls_options options;
	struct python_watches *watches;
	VEC(struct python_function *) functions;
	VEC(struct python_call) list;       /* those of a thread are in the order of their begins */
	struct code_touch touches[TOUCHES]; /* one replaces another with the same hash */
	uint64_t seed;
};

/* ---- functions ---- */

/* Returns 0, -E2BIG or -ENOMEM. */
static int function_make(struct python_calls *calls, const struct python_code *code)
{
	const struct python_calls_options *options = &calls->options;
	struct python_function *made = NULL;

	if (calls->functions.len >= FUNCTIONS_MAX)
		return -E2BIG;
	made = calloc(1, sizeof(*made));
	if (!made || !vec_push(&calls->functions, made)) {
		free(made);
		return -ENOMEM;
	}
	memcpy(made->name, code->function.function, sizeof(made->name));
	memcpy(made->file, code->function.file, sizeof(made->file));
	made->info = (struct site_info){.name = made->name,
					.category = "python",
					.file = made->file,
					.func = made->name,
					.object = "",
					.line = code->first_line,
					.kind = WAFFLE_SITE_SPAN,
					/* The filter of records leaves calls to the kernel. */
					.call = !options->filter};
	made->site = options->filter && !record_filter_wants(options->filter, &made->info)
			     ? WAFFLE_SITE_UNKNOWN
			     : arming_add_name(options->arming, &made->info);
	return 0;
}

/* python_watches_options.number */
static int function_number(const struct python_code *code, uint32_t *number, void *arg)
{
	struct python_calls *calls = arg;
	const struct python_frame *wanted = &code->function;
	size_t i = 0;
	int result;

	for (; i < calls->functions.len; i++) {
		const struct python_function *known = calls->functions.data[i];

		if (known->info.line == code->first_line &&
		    !strcmp(known->name, wanted->function) && !strcmp(known->file, wanted->file))
			break;
	}
	result = i < calls->functions.len ? 0 : function_make(calls, code);
	if (result)
		return result;
	*number = (uint32_t)i;
	return calls->functions.data[i]->site == WAFFLE_SITE_UNKNOWN ? -ENOENT : 0;
}

int python_calls_open(struct python_calls **calls, const struct python_calls_options *options,
		      struct error *err)
{
	struct python_calls *made = calloc(1, sizeof(*made));
	struct python_watches_options watches = {.specs = options->specs,
						 .spec_count = options->spec_count,
						 .kernel = options->kernel,
						 .number = function_number,
						 .number_arg = made,
						 .notify = options->notify,
						 .notify_arg = options->notify_arg};

	*calls = NULL;
	if (!made || getrandom(&made->seed, sizeof(made->seed), 0) != sizeof(made->seed) ||
	    python_watches_open(&made->watches, &watches)) {
		free(made);
		return error_set(err, ENOMEM, "functions of Python: out of memory");
	}
	made->options = *options;
	*calls = made;
	return 0;
}

void python_calls_close(struct python_calls *calls)
{
	if (!calls)
		return;
	python_watches_close(calls->watches);
	for (size_t i = 0; i < calls->functions.len; i++)
		free(calls->functions.data[i]);
	vec_free(&calls->functions);
	vec_free(&calls->list);
	free(calls);
}

/* ---- records ---- */

/* Delivers a call. `ts`: its end; if it was left, when that was found; if it is open, ignored. */
static int call_deliver(struct python_calls *calls, const struct python_call *call, uint64_t ts,
			enum call_end how)
{
	const struct python_calls_options *options = &calls->options;
	uint32_t site = calls->functions.data[call->function]->site;
	struct {
		struct waffle_rec_hit hit;
		struct waffle_frame frame;
	} begin = {
		.hit = {.rec = {call->begin_ts, call->tid, WAFFLE_REC_HIT, call->cpu},
			.tgid = call->tgid,
			.site = site,
			.frame_bytes = sizeof(struct waffle_frame)},
		.frame = {.id = call->id},
	};
	struct waffle_rec_return end = {.rec = {ts, call->tid, WAFFLE_REC_RETURN, call->cpu},
					.span_id = call->id,
					.tgid = call->tgid,
					.site = site,
					.flags = how == CALL_LEFT ? WAFFLE_RETURN_LEFT : 0};
	struct waffle_rec_span_end filtered = {
		.rec = {ts, call->tid, how == CALL_RETURNED ? WAFFLE_REC_SPAN_END : 0, call->cpu},
		.span_id = call->id,
		.tgid = call->tgid,
		.site = site};

	if (options->filter)
		return record_filter_pass_track(options->filter, &begin.hit, &filtered,
						how == CALL_OPEN ? call->begin_ts : ts);
	return options->deliver(&begin.hit.rec, options->arg)
		       ?: (how == CALL_OPEN ? 0 : options->deliver(&end.rec, options->arg));
}

/* Delivers a call and removes it from the list. */
static int call_end(struct python_calls *calls, size_t at, uint64_t ts, enum call_end how)
{
	struct python_call call = calls->list.data[at];

	calls->list.len--;
	memmove(&calls->list.data[at], &calls->list.data[at + 1],
		(calls->list.len - at) * sizeof(call));
	return call_deliver(calls, &call, ts, how);
}

/* Ends a call that is left or open. If it is refused, that holds nothing else up. */
static int call_leave(struct python_calls *calls, size_t at, uint64_t ts, enum call_end how)
{
	int result = call_end(calls, at, ts, how);

	return result == -EINVAL ? 0 : result;
}

/* The innermost open call of the function on the record's thread. SIZE_MAX: none. */
static size_t innermost(const struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	for (size_t i = calls->list.len; i > 0; i--) {
		const struct python_call *call = &calls->list.data[i - 1];

		if (call->tid == rec->rec.tid && call->tgid == rec->tgid &&
		    call->function == rec->function)
			return i - 1;
	}
	return SIZE_MAX;
}

/* Ends the calls whose frames are not on the stack any more. `frame`: the innermost one of the
 * function that is. */
static int gone_end(struct python_calls *calls, const struct waffle_rec_watched *rec,
		    uint64_t frame)
{
	size_t at = innermost(calls, rec);
	int result = 0;

	while (!result && at != SIZE_MAX &&
	       (!calls->list.data[at].frame || calls->list.data[at].frame != frame)) {
		result = call_end(calls, at, rec->rec.ts, CALL_LEFT);
		at = innermost(calls, rec);
	}
	return result;
}

/* Returns -EINVAL if there is no room. One process leaves room for others. */
static int call_add(struct python_calls *calls, const struct python_call *call)
{
	size_t own = 0;

	if (calls->list.len >= CALLS_MAX)
		return -EINVAL;
	for (size_t i = 0; calls->list.len >= CALLS_MAX / 2 && i < calls->list.len; i++)
		own += calls->list.data[i].tgid == call->tgid;
	return own < CALLS_MAX / 2 && vec_push(&calls->list, *call) ? 0 : -EINVAL;
}

static struct code_touch *touch_of(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	return &calls->touches[(rec->rec.tid * 2654435761u ^ rec->function) % TOUCHES];
}

/* A thread that calls a function makes a reference to its code first, in the same instruction.
 * Others read instructions, too, for example to disassemble them. */
static bool is_call(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	const struct code_touch *touch = touch_of(calls, rec);

	return touch->tid == rec->rec.tid && touch->tgid == rec->tgid &&
	       touch->function == rec->function && touch->current == rec->current &&
	       touch->current_at == rec->current_at;
}

static void touch_note(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	*touch_of(calls, rec) = (struct code_touch){.tgid = rec->tgid,
						    .tid = rec->rec.tid,
						    .function = rec->function,
						    .current = rec->current,
						    .current_at = rec->current_at};
}

/* The frame of a call is known once it is on the stack. */
static void frame_learn(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	size_t at = innermost(calls, rec);
	struct python_call *call = at == SIZE_MAX ? NULL : &calls->list.data[at];

	if (call && !call->frame && rec->frame && rec->caller == call->caller &&
	    rec->caller_at == call->caller_at)
		call->frame = rec->frame;
}

/* The call's frame is not on the stack yet. Its caller is the innermost frame now. */
static int early_pass(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	struct python_call call = {.id = waffle_call_id(rec->rec.ts, rec->rec.tid, calls->seed),
				   .begin_ts = rec->rec.ts,
				   .caller = rec->current,
				   .caller_at = rec->current_at,
				   .tgid = rec->tgid,
				   .tid = rec->rec.tid,
				   .function = rec->function,
				   .cpu = rec->rec.cpu};
	int result = 0;

	if (!is_call(calls, rec))
		return 0;
	*touch_of(calls, rec) = (struct code_touch){0};
	if (!(rec->flags & WAFFLE_WATCHED_DEEP && !rec->frame))
		result = gone_end(calls, rec, rec->frame);
	if (result)
		return result;
	return call_add(calls, &call);
}

static int begin_pass(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	size_t at = innermost(calls, rec);
	struct python_call call = {.id = waffle_call_id(rec->rec.ts, rec->rec.tid, calls->seed),
				   .begin_ts = rec->rec.ts,
				   .frame = rec->frame,
				   .caller = rec->caller,
				   .caller_at = rec->caller_at,
				   .tgid = rec->tgid,
				   .tid = rec->rec.tid,
				   .function = rec->function,
				   .cpu = rec->rec.cpu};
	int result = 0;

	/* The first instruction may be read again, by a loop or when it is specialized. */
	if (at != SIZE_MAX && calls->list.data[at].frame == rec->frame &&
	    !(rec->flags & WAFFLE_WATCHED_FRESH))
		return 0;
	if (!(rec->flags & WAFFLE_WATCHED_DEEP))
		result = gone_end(calls, rec, rec->outer);
	if (result)
		return result;
	return call_add(calls, &call);
}

/* A reference to the code was made or released. */
static int released_pass(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	size_t at = innermost(calls, rec);
	const struct python_call *call;

	if (at == SIZE_MAX)
		return 0;
	call = &calls->list.data[at];
	if ((rec->current == call->caller && rec->current_at == call->caller_at) ||
	    (rec->flags & WAFFLE_WATCHED_RETURN && rec->frame == call->frame))
		return call_end(calls, at, rec->rec.ts, CALL_RETURNED);
	if (rec->flags & WAFFLE_WATCHED_DEEP && !rec->frame)
		return 0;
	return gone_end(calls, rec, rec->frame);
}

int python_calls_pass(struct python_calls *calls, const struct waffle_rec_watched *rec)
{
	int result;

	if (rec->function >= calls->functions.len)
		return -EINVAL;
	frame_learn(calls, rec);
	if (rec->flags & WAFFLE_WATCHED_EARLY)
		return early_pass(calls, rec);
	if (rec->flags & WAFFLE_WATCHED_BEGIN)
		return begin_pass(calls, rec);
	result = released_pass(calls, rec);
	touch_note(calls, rec);
	return result;
}

/* ---- processes ---- */

void python_calls_forget(struct python_calls *calls, pid_t pid)
{
	python_watches_forget(calls->watches, pid);
}

void python_calls_add(struct python_calls *calls, pid_t pid)
{
	python_watches_add(calls->watches, pid);
}

/* The calls of a thread that exits, or of a process that runs another program, are left. */
static int exit_pass(struct python_calls *calls, const struct waffle_rec_exit *rec)
{
	bool all = rec->rec.kind == WAFFLE_REC_EXEC;
	int result = 0;

	for (size_t i = calls->list.len; i > 0 && !result; i--) {
		const struct python_call *call = &calls->list.data[i - 1];

		if (all ? call->tgid == rec->tgid : call->tid == rec->rec.tid)
			result = call_leave(calls, i - 1, rec->rec.ts, CALL_LEFT);
	}
	return result;
}

int python_calls_process(struct python_calls *calls, const struct waffle_rec *rec)
{
	if (rec->kind != WAFFLE_REC_FORK || calls->options.follow)
		python_watches_process(calls->watches, rec);
	return rec->kind == WAFFLE_REC_FORK ? 0
					    : exit_pass(calls, (const struct waffle_rec_exit *)rec);
}

bool python_calls_round(struct python_calls *calls, uint64_t now_ns)
{
	return python_watches_round(calls->watches, now_ns);
}

uint64_t python_calls_functions(const struct python_calls *calls)
{
	uint64_t count = 0;

	for (size_t i = 0; i < calls->functions.len; i++)
		count += calls->functions.data[i]->site != WAFFLE_SITE_UNKNOWN;
	return count;
}

bool python_calls_searches(const struct python_calls *calls)
{
	return python_watches_searches(calls->watches);
}

void python_calls_disarm(struct python_calls *calls)
{
	python_watches_release(calls->watches);
}

int python_calls_finish(struct python_calls *calls)
{
	int result = 0;

	while (calls->list.len && !result)
		result = call_leave(calls, 0, 0, CALL_OPEN);
	python_watches_report(calls->watches);
	return result;
}

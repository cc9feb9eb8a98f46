// SPDX-License-Identifier: Apache-2.0
#include "usdt/frame/backtrace.h"

#include <string.h>

#include "usdt/frame/code.h"
#include "usdt/record/known_spans.h"

/* Below the stack pointer, on the same stack, are frames that longjmp() has left. Frames that are
 * further away are on another stack, whose code runs this one, as with coroutines. */
#define LEFT_BYTES (256u << 10)

/* ---- taking ---- */

/* All frames that are stored, innermost first. */
static size_t frames_copy(struct backtrace_frame *frames)
{
	struct waffle_thread_ *thread = waffle_thread_get_();
	unsigned depth = thread->frame_depth_;
	size_t count = 0;

	for (; depth && count < WAFFLE_FRAMES_; depth--) {
		struct waffle_frame_slot_ slot = *waffle_frame_at_(thread, depth - 1);

		/* This code may have interrupted a push. */
		if (slot.place_ && slot.site_)
			frames[count++] = (struct backtrace_frame){slot.site_, slot.place_, depth};
	}
	return count;
}

/* The part of the stack that the machine frames cover. */
static bool is_covered(const struct backtrace *trace, uintptr_t place)
{
	return trace->machine_count && place >= trace->machine[0].low &&
	       place < trace->machine[trace->machine_count - 1].low;
}

static bool is_beyond(const struct backtrace *trace, uintptr_t place)
{
	return trace->machine_cut && place >= trace->machine[trace->machine_count - 1].low;
}

/* Whether a frame is of the stack that was unwound. Those that longjmp() left may be at a place
 * that is in use again. The memory is there, since a machine frame has it. */
static bool frame_is_here(const struct backtrace *trace, const struct backtrace_frame *frame)
{
	const struct waffle_frame_scope_ *scope;

	if (!is_covered(trace, frame->place))
		return is_beyond(trace, frame->place);
	scope = (const void *)frame->place;
	return scope->thread_ == waffle_thread_get_() && scope->depth_ == frame->depth;
}

/* Whether a frame may be of the stack of a caller that is not this one. */
static bool frame_is_elsewhere(const struct backtrace *trace, const struct backtrace_frame *frame,
			       uintptr_t low)
{
	return !is_covered(trace, frame->place) &&
	       (frame->place >= low || low - frame->place > LEFT_BYTES);
}

/*
 * Removes frames that have ended without a pop. Between two frames of this stack they were left by
 * longjmp(), or belong to a coroutine that is suspended. Only around all frames of this stack there
 * can be those of another one.
 */
static void frames_choose(struct backtrace *trace, uintptr_t low)
{
	size_t last = 0, count = 0;

	for (size_t i = 0; i < trace->frame_count; i++)
		if (frame_is_here(trace, &trace->frames[i]))
			last = i + 1;
	for (size_t i = 0; i < trace->frame_count; i++)
		if (i < last ? frame_is_here(trace, &trace->frames[i])
			     : frame_is_elsewhere(trace, &trace->frames[i], low))
			trace->frames[count++] = trace->frames[i];
	trace->frame_count = count;
}

static bool span_is_here(const struct backtrace *trace, const struct known_span *span)
{
	const struct waffle_scope_ *scope = (const void *)span->place;

	if (span->thread != trace->thread || !span->place)
		return false;
	return is_covered(trace, span->place) ? scope->id_ == span->id
					      : is_beyond(trace, span->place);
}

static void spans_take(struct backtrace *trace)
{
	uint64_t id = waffle_thread_get_()->context_.span_id;
	struct known_span span;

	while (trace->span_count < BACKTRACE_SPANS && known_spans_get(id, &span)) {
		trace->spans[trace->span_count++] = (struct backtrace_span){
			.id = id,
			.meta = span.meta,
			.place = span.place,
			.line = (unsigned)span.line,
			.frame_depth = (unsigned)span.frame_depth,
			.own = span_is_here(trace, &span),
		};
		id = span.parent;
	}
}

void backtrace_take(struct backtrace *trace, uintptr_t from, const void *context)
{
	uintptr_t low = context ? machine_context_sp(context) : from;

	trace->thread = (uintptr_t)waffle_thread_get_();
	trace->span_count = 0;
	trace->frame_count = frames_copy(trace->frames);
	trace->machine_count = machine_unwind(trace->machine, BACKTRACE_MACHINE, from, context);
	trace->machine_cut = trace->machine_count == BACKTRACE_MACHINE;
	/* A jump to an address that is no code can't be unwound. It is the first frame. */
	if (!trace->machine_count && context) {
		trace->machine[0] =
			(struct machine_frame){.pc = machine_context_pc(context), .low = low};
		trace->machine_count = 1;
		trace->machine_cut = true;
	}
	frames_choose(trace, low);
	spans_take(trace);
}

/* ---- walking ---- */

struct entry_walk {
	const struct backtrace *trace;
	int (*each)(const waffle_entry_t *, void *);
	void *arg;
	size_t frame, span; /* the next ones */
	int count;
	bool stopped;
	bool inside; /* still in what called libwaffle */
};

static void entry_put(struct entry_walk *walk, const waffle_entry_t *entry)
{
	if (walk->stopped)
		return;
	walk->count++;
	walk->stopped = walk->each(entry, walk->arg) != 0;
	walk->inside = false;
}

static void frame_put(struct entry_walk *walk, const struct waffle_frame_site_ *site, bool carried)
{
	entry_put(walk, &(waffle_entry_t){.kind = WAFFLE_ENTRY_FRAME,
					  .name = site->function_,
					  .file = site->file_,
					  .line = site->line_,
					  .carried = carried});
}

static void span_put(struct entry_walk *walk, const struct backtrace_span *span)
{
	entry_put(walk, &(waffle_entry_t){.kind = WAFFLE_ENTRY_SPAN,
					  .name = span->meta,
					  .file = span->meta + strlen(span->meta) + 1,
					  .line = span->line,
					  .span_id = span->id,
					  .carried = !span->own});
}

/* Functions of the macros are inlined or not; they are not the program's. In C++ they are mangled:
 * _ZL13waffle_event_…, and _ZN6Waffle7Detail_… of waffle.hpp. */
static bool is_macro(const struct code_name *name)
{
	const char *at = name->function;
	size_t len = strcspn(at, ".");

	if (!strncmp(at, "_ZN6Waffle7Detail_", 18) || !strncmp(at, "_ZNK6Waffle7Detail_", 19))
		return true;
	if (!strncmp(at, "_ZL", 3)) {
		size_t mangled = 0;

		for (at += 3; *at >= '0' && *at <= '9'; at++)
			mangled = (mangled * 10 + (size_t)(*at - '0')) % 1000;
		len = strnlen(at, mangled);
	}
	return len > 7 && !strncmp(at, "waffle_", 7) &&
	       (at[len - 1] == '_' || !strncmp(at, "waffle_backtrace", 16));
}

static void machine_put(struct entry_walk *walk, const struct machine_frame *frame)
{
	struct code_name name;

	code_find(frame->pc, &name);
	if (walk->inside && is_macro(&name))
		return;
	entry_put(walk, &(waffle_entry_t){.kind = WAFFLE_ENTRY_MACHINE,
					  .name = *name.function ? name.function : NULL,
					  .file = *name.file ? name.file : NULL,
					  .offset = name.offset});
}

static bool is_in(uintptr_t place, uintptr_t low, uintptr_t high)
{
	return place >= low && place < high;
}

/* The spans and pushed frames within a part of the stack. Returns whether there was a frame. */
static bool part_put(struct entry_walk *walk, uintptr_t low, uintptr_t high)
{
	const struct backtrace *trace = walk->trace;
	bool framed = false;

	for (;;) {
		const struct backtrace_frame *frame = &trace->frames[walk->frame];
		const struct backtrace_span *span = &trace->spans[walk->span];
		bool frame_next =
			walk->frame < trace->frame_count && is_in(frame->place, low, high);
		bool span_next = walk->span < trace->span_count && span->own &&
				 is_in(span->place, low, high);

		if (span_next && (!frame_next || span->frame_depth >= frame->depth)) {
			span_put(walk, span);
			walk->span++;
		} else if (frame_next) {
			frame_put(walk, frame->site, false);
			walk->frame++;
			framed = true;
		} else {
			return framed;
		}
	}
}

/* glibc's search for the file of an address, which takes no lock; its result is a struct that other
 * libcs and older headers do not have. */
extern int find_object(void *address, void *result) __asm__("_dl_find_object")
	__attribute__((weak));

/* What other threads left may be constants of a library that was closed since. */
static bool is_loaded(const void *constant)
{
	uint64_t result[32];

	return !find_object || !find_object((void *)(uintptr_t)constant, result);
}

/* Whether this thread has the frame, so that it was listed. */
static bool frame_is_listed(const struct backtrace *trace, const struct waffle_frame_slot_ *slot)
{
	for (size_t i = 0; i < trace->frame_count; i++)
		if (trace->frames[i].place == slot->place_ && trace->frames[i].site == slot->site_)
			return true;
	return false;
}

static void carried_frames_put(struct entry_walk *walk, const struct known_frames *frames,
			       bool same)
{
	for (uint64_t i = 0; i < frames->count && i < KNOWN_FRAMES; i++)
		if (is_loaded(frames->slots[i].site_) &&
		    (!same || !frame_is_listed(walk->trace, &frames->slots[i])))
			frame_put(walk, frames->slots[i].site_, true);
}

/*
 * A span that is not open on this stack, with the frames around it. If its context came from
 * another thread than that of the span within it, also with the frames that thread had inside of
 * the span when its context was extracted.
 */
static uint64_t carried_span_put(struct entry_walk *walk, const struct backtrace_span *span,
				 uintptr_t thread)
{
	struct known_span open;
	struct known_frames inside;

	if (!known_spans_get(span->id, &open))
		return thread;
	if (open.thread != thread && known_spans_get_inside(span->id, &inside))
		carried_frames_put(walk, &inside, false);
	if (is_loaded(span->meta))
		span_put(walk, span);
	carried_frames_put(walk, &open.around, open.thread == walk->trace->thread);
	return open.thread;
}

int backtrace_walk(const struct backtrace *trace, int (*each)(const waffle_entry_t *, void *),
		   void *arg)
{
	struct entry_walk walk = {.trace = trace, .each = each, .arg = arg, .inside = true};
	uintptr_t thread = trace->thread;

	for (size_t i = 0; i < trace->machine_count && !walk.stopped; i++) {
		uintptr_t low = trace->machine[i].low;
		bool last = i + 1 == trace->machine_count;

		if (!part_put(&walk, low, last ? low : trace->machine[i + 1].low))
			machine_put(&walk, &trace->machine[i]);
		/* What is beyond, if there were too many machine frames. */
		if (last)
			part_put(&walk, low, UINTPTR_MAX);
	}
	for (; walk.frame < trace->frame_count && !walk.stopped; walk.frame++)
		frame_put(&walk, trace->frames[walk.frame].site, false);
	for (; walk.span < trace->span_count && !walk.stopped; walk.span++)
		thread = carried_span_put(&walk, &trace->spans[walk.span], thread);
	return walk.count;
}

/* ---- spans and contexts ---- */

/* The innermost of this thread's frames that are deeper than `depth`. */
static void frames_within(struct known_frames *frames, unsigned depth)
{
	struct backtrace_frame all[WAFFLE_FRAMES_];
	size_t count = frames_copy(all);

	memset(frames, 0, sizeof(*frames));
	for (size_t i = 0; i < count && frames->count < KNOWN_FRAMES; i++)
		if (all[i].depth > depth)
			frames->slots[frames->count++] =
				(struct waffle_frame_slot_){all[i].site, all[i].place};
}

static void span_closed(unsigned long long id)
{
	known_spans_remove(id);
}

void backtrace_span_opened(const char *meta, const unsigned long long *words,
			   const struct waffle_scope_ *scope)
{
	struct waffle_thread_ *thread = waffle_thread_get_();
	struct known_span parent, span = {
					  .id = words[0],
					  .parent = thread->context_.span_id,
					  .meta = meta,
					  .line = (uint32_t)words[1],
					  .thread = (uintptr_t)thread,
					  .place = scope ? waffle_place_(scope) : 0,
					  .frame_depth = thread->frame_depth_,
				  };
	bool within = known_spans_get(span.parent, &parent) && parent.thread == span.thread;

	frames_within(&span.around, within ? (unsigned)parent.frame_depth : 0);
	known_spans_add(&span);
	__atomic_store_n(&waffle_process_get_()->closed_, span_closed, __ATOMIC_RELAXED);
}

void backtrace_extracted(void)
{
	uint64_t id = waffle_thread_get_()->context_.span_id;
	struct known_span span;
	struct known_frames frames;

	if (!known_spans_get(id, &span) || span.thread != (uintptr_t)waffle_thread_get_())
		return;
	frames_within(&frames, (unsigned)span.frame_depth);
	known_spans_set_inside(id, &frames);
}

// SPDX-License-Identifier: Apache-2.0
#include "render/text/hang_text.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/why/lookup/why_roots.h"
#include "render/place.h"
#include "render/text/frame.h"
#include "render/text/why_node.h"
#include "util/syscall_names.h"
#include "util/terminal.h"
#include "util/units.h"

/* Limits of the text, unless everything is shown. */
#define WAITS_SHOWN 5  /* without an owner */
#define OWNED_SHOWN 20 /* with one, or stuck */
#define CYCLE_SHOWN 20 /* threads of a deadlock; its first line never has more */
#define FRAMES_SHOWN 8 /* the innermost ones; beyond them, those of Python up to as many */

struct hang_printer {
	const struct why_hangs *hangs;
	const struct hang_view *view;
	const struct model *model;
	FILE *out;
};

static void paint(const struct hang_printer *printer, const char *sequence)
{
	terminal_paint(printer->out, printer->view->colour, sequence);
}

static void put(const struct hang_printer *printer, const char *text)
{
	terminal_put(printer->out, text, strlen(text));
}

/* Prints "worker (4711)". */
static void put_thread(const struct hang_printer *printer, uint32_t thread)
{
	char place[PLACE_TEXT];

	put(printer, model_thread_name(printer->model, thread));
	fputs(" (", printer->out);
	put(printer, place_thread_apart(place, printer->model, thread));
	fputc(')', printer->out);
}

static const struct model_open_wait *wait_of(const struct hang_printer *printer,
					     const struct why_hung *hung)
{
	return &printer->model->open_waits.data[hung->wait];
}

const char *hang_lock_name(const struct hang_view *view, const struct model_open_wait *wait)
{
	return wait->lock && view->names
		       ? stack_names_variable(view->names,
					      view->model->threads.data[wait->thread].pid, wait->ts,
					      wait->lock)
		       : NULL;
}

/* Prints " on socket:[4711] (tcp 10.0.0.1:80 <-> 10.0.0.2:5000)". */
static void put_file(const struct hang_printer *printer, const struct model_open_wait *wait)
{
	const struct store_object *object =
		store_reader_object(printer->model->reader, wait->object);

	if (!object)
		return;
	fputs(" on ", printer->out);
	put(printer, object->name);
	if (!*object->detail)
		return;
	fputs(" (", printer->out);
	put(printer, object->detail);
	fputc(')', printer->out);
}

/* Then it does not wait for what its system call is for. */
static bool is_stopped(const struct model_open_wait *wait)
{
	return wait->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED);
}

/* Prints "is stopped by gdb (4711), which traces it, in poll". */
static void put_stop(const struct hang_printer *printer, const struct model_open_wait *wait,
		     const char *call)
{
	fputs("is stopped", printer->out);
	if (wait->tracer != MODEL_NONE) {
		fputs(" by ", printer->out);
		put_thread(printer, wait->tracer);
		fputs(", which traces it,", printer->out);
	}
	if (wait->syscall >= 0)
		fprintf(printer->out, " in %s", call ?: "a system call");
}

/* The number of the thread that had the lock when it ended. */
static uint32_t ended_owner(const struct hang_printer *printer, const struct model_open_wait *wait)
{
	return model_pid_real(printer->model, wait->ended);
}

/* Prints " for its children tar (4712), gzip (4713)". */
static void put_children(const struct hang_printer *printer, const struct model_open_wait *wait)
{
	uint32_t children[WHY_CHILDREN];
	uint32_t count = why_hang_children(printer->hangs, printer->model, wait, children);

	if (count)
		fputs(count > 1 ? " for its children " : " for its child ", printer->out);
	for (uint32_t i = 0; i < count && i < WHY_CHILDREN; i++) {
		fputs(i ? ", " : "", printer->out);
		put_thread(printer, children[i]);
	}
	if (count > WHY_CHILDREN)
		fprintf(printer->out, " and %" PRIu32 " more", count - WHY_CHILDREN);
}

/* Prints "lock 0x55b81365b080 (queue_lock), held by loader (4712)". */
static void put_awaited(const struct hang_printer *printer, const struct why_hung *hung)
{
	const struct model_open_wait *wait = wait_of(printer, hung);
	const char *name = hang_lock_name(printer->view, wait), *call = NULL;

	if (hung->owner != MODEL_NONE && wait->flags & WAFFLE_OPEN_WAIT_JOIN) {
		fputs("waits for the end of ", printer->out);
		put_thread(printer, hung->owner);
		return;
	}
	if (wait->syscall >= 0)
		call = syscall_name(printer->model->meta->machine, wait->syscall);
	if (is_stopped(wait))
		put_stop(printer, wait, call);
	else if (wait->lock)
		fprintf(printer->out, "waits for %s 0x%" PRIx64,
			hung->owner != MODEL_NONE || hung->awaits == WHY_AWAITS_ENDED ? "lock"
										      : "futex",
			wait->lock);
	else
		fprintf(printer->out, "%s in %s", model_blocked_text(wait->task_state),
			call
				?: wait->syscall < 0 ? "the kernel"
						     : "a system call");
	put_file(printer, wait);
	put_children(printer, wait);
	if (name) {
		fputs(" (", printer->out);
		put(printer, name);
		fputc(')', printer->out);
	}
	if (hung->awaits == WHY_AWAITS_ENDED)
		fprintf(printer->out, ", which thread %" PRIu32 " %s when it ended",
			ended_owner(printer, wait),
			why_ended_had(why_hang_is_shared(printer->model, wait)));
	/* The text of a file has who holds it. */
	if (hung->owner == MODEL_NONE || !wait->lock)
		return;
	fputs(hung->sure ? ", held by " : ", probably held by ", printer->out);
	if (hung->owner == wait->thread)
		fputs("the thread itself", printer->out);
	else
		put_thread(printer, hung->owner);
}

/* Prints ", since before the capture began" or ", since 3.21 s". */
static void put_since(const struct hang_printer *printer, const struct model_open_wait *wait)
{
	uint64_t start = printer->model->meta->start_ts;
	char text[UNITS_TEXT];

	if (wait->before) {
		fprintf(printer->out, ", since before %s",
			why_recorded_text(printer->model, wait->thread));
		return;
	}
	fprintf(printer->out, ", since %s, for ",
		units_format_duration(text, wait->from_ts > start ? wait->from_ts - start : 0));
	fputs(units_format_duration(text, wait->ts - wait->from_ts), printer->out);
}

struct frames {
	const struct hang_printer *printer;
	struct stack_frame
		own;           /* the innermost one of the program itself; its file NULL: unknown */
	uint32_t count, named; /* printed; of Python or Java */
	bool left_out;         /* since the last printed one */
};

static bool is_own(const struct frames *frames, const struct stack_frame *frame)
{
	const struct stack_frame *own = &frames->own;

	return own->file && frame->file && frame->function && frame->line == own->line &&
	       !strcmp(frame->file, own->file) && !strcmp(frame->function, own->function);
}

static bool is_shown(const struct frames *frames, const struct stack_frame *frame)
{
	return frames->printer->view->all || frames->count < FRAMES_SHOWN ||
	       (stack_frame_is_of_runtime(frame) && frames->named < FRAMES_SHOWN) ||
	       is_own(frames, frame);
}

static void frame_print(const struct stack_frame *frame, void *arg)
{
	struct frames *frames = arg;
	FILE *out = frames->printer->out;

	if (!is_shown(frames, frame)) {
		if (!frames->left_out)
			fputs(" ← …", out);
		frames->left_out = true;
		return;
	}
	frames->left_out = false;
	fputs(frames->count++ ? " ← " : "", out);
	frames->named += stack_frame_is_of_runtime(frame);
	frame_put(out, frame);
}

static void print_stack(const struct hang_printer *printer, uint32_t stack, uint64_t ts,
			const char *before)
{
	struct frames frames = {.printer = printer};

	if (!store_reader_stack(printer->model->reader, stack))
		return;
	if (!stack_names_own(printer->view->names, stack, ts, &frames.own))
		frames.own.file = NULL;
	paint(printer, TERMINAL_DIM);
	fputs(before, printer->out);
	stack_names_each(printer->view->names, stack, ts, frame_print, &frames);
	fputc('\n', printer->out);
	paint(printer, TERMINAL_END);
}

static void print_wait(const struct hang_printer *printer, const struct why_hung *hung)
{
	const struct model_open_wait *wait = wait_of(printer, hung);

	fputs("  ", printer->out);
	put_thread(printer, wait->thread);
	fputc(' ', printer->out);
	put_awaited(printer, hung);
	put_since(printer, wait);
	fputc('\n', printer->out);
	print_stack(printer, wait->user_stack, wait->ts, "    in ");
	if (printer->view->all || wait->task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		print_stack(printer, wait->kernel_stack, wait->ts, "    in the kernel: ");
}

static void print_stopped(const struct hang_printer *printer, const struct why_hung *hung)
{
	paint(printer, TERMINAL_BOLD);
	put_thread(printer, wait_of(printer, hung)->thread);
	fputs(" is stopped for ever by the C library: the kernel refused its lock, since the wait "
	      "would be a deadlock (EDEADLK) or the owner has ended (ESRCH)\n",
	      printer->out);
	paint(printer, TERMINAL_END);
	print_wait(printer, hung);
}

static void print_orphan(const struct hang_printer *printer, const struct why_hung *hung)
{
	const struct model_open_wait *wait = wait_of(printer, hung);
	bool shared = why_hang_is_shared(printer->model, wait);

	paint(printer, TERMINAL_BOLD);
	put_thread(printer, wait->thread);
	fprintf(printer->out, " %s for a lock that nobody can release: " WHY_ENDED_TEXT "\n",
		shared ? "may wait" : "waits", ended_owner(printer, wait), why_ended_had(shared));
	paint(printer, TERMINAL_END);
	print_wait(printer, hung);
}

/* Prints "a (11) → b (12) → a (11)". */
static void put_cycle(const struct hang_printer *printer, const struct why_deadlock *deadlock)
{
	uint32_t at = deadlock->first, shown = 0;

	for (; shown < deadlock->count && shown < CYCLE_SHOWN; shown++) {
		put_thread(printer, wait_of(printer, &printer->hangs->waits.data[at])->thread);
		fputs(" → ", printer->out);
		at = printer->hangs->waits.data[at].next;
	}
	if (shown < deadlock->count)
		fprintf(printer->out, "… %" PRIu32 " more → ", deadlock->count - shown);
	at = deadlock->first;
	put_thread(printer, wait_of(printer, &printer->hangs->waits.data[at])->thread);
}

static void print_more(FILE *out, uint32_t count)
{
	if (count)
		fprintf(out, "  … %" PRIu32 " more; --evidence shows all\n", count);
}

/* Prints "deadlock: a (11) → b (12) → a (11): each waits for …" and the waits. */
static void print_deadlock(const struct hang_printer *printer, const struct why_deadlock *deadlock)
{
	uint32_t at = deadlock->first, shown = 0;

	paint(printer, TERMINAL_BOLD);
	fputs(deadlock->perhaps ? "may be a deadlock: " : "deadlock: ", printer->out);
	put_cycle(printer, deadlock);
	fputs(deadlock->count == 1 ? ": it waits for what it holds itself\n"
	      : deadlock->others
		      ? ": each waits for the next one, at a pipe, for a lock or for its "
			"exit; only a signal or another thread of these processes can end that\n"
	      : deadlock->perhaps
		      ? ": each waits for the next one, at a pipe, for a lock or for its "
			"exit; only a signal can end that\n"
		      : ": each waits for what the next one holds\n",
	      printer->out);
	paint(printer, TERMINAL_END);
	for (; shown < deadlock->count && (printer->view->all || shown < CYCLE_SHOWN); shown++) {
		print_wait(printer, &printer->hangs->waits.data[at]);
		at = printer->hangs->waits.data[at].next;
	}
	print_more(printer->out, deadlock->count - shown);
}

/* Prints " in settle_account (settle.py:19)": the innermost function of the program itself. */
static void put_own_function(const struct hang_printer *printer, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(printer->model, thread);
	struct stack_frame own;

	if (!wait || !stack_names_own(printer->view->names, wait->user_stack, wait->ts, &own))
		return;
	fputs(" in ", printer->out);
	frame_put(printer->out, &own);
}

/* Prints "may be a deadlock: all 4 threads of a ThreadPoolExecutor, such as …". */
static void print_pool(const struct hang_printer *printer, const struct why_standstill *pool)
{
	paint(printer, TERMINAL_BOLD);
	if (pool->threads == 1)
		fprintf(printer->out, "may be a deadlock: the only thread of %s, ", pool->pool);
	else
		fprintf(printer->out, "may be a deadlock: all %" PRIu32 " threads of %s, such as ",
			pool->threads, pool->pool);
	put_thread(printer, pool->thread);
	fputs(pool->threads == 1 ? ", has a job that waits for another one"
				 : ", have jobs that wait for others",
	      printer->out);
	put_own_function(printer, pool->thread);
	fputs(pool->threads == 1
		      ? "; if that is queued in the same pool, no thread is left to do it\n"
		      : "; if those are queued in the same pool, no thread is left to do them\n",
	      printer->out);
	paint(printer, TERMINAL_END);
}

/* Prints "may be a deadlock: all 3 threads of hangs (4711) wait for …". */
static void print_standstill(const struct hang_printer *printer,
			     const struct why_standstill *standstill)
{
	const struct model_process *process = model_process_of(printer->model, standstill->thread);

	/* If all are stuck, some may still have a timeout: threads of Java. */
	paint(printer, TERMINAL_BOLD);
	if (standstill->of == 1 && !standstill->family)
		fputs("may be a deadlock: the only thread of ", printer->out);
	else if (standstill->threads == standstill->of)
		fprintf(printer->out, "may be a deadlock: all %" PRIu32 " threads of ",
			standstill->threads);
	else
		fprintf(printer->out, "may be a deadlock: %" PRIu32 " of %" PRIu32 " threads of ",
			standstill->threads, standstill->of);
	put_thread(printer, process ? process->main_thread : standstill->thread);
	fputs(standstill->family
		      ? " and its descendants wait for each other: for the end of a child, or a "
			"lock that they share, whose holder may have ended\n"
	      : standstill->of == 1
		      ? " waits for a lock that no other thread can release: it has it already, "
			"or a thread that has ended, or one of the parent at fork(); only a signal "
			"can end that\n"
	      : standstill->all_inside
		      ? " wait for another thread of it, none with a timeout; only a signal can "
			"end that\n"
		      : " have waited for others of it all the time, for locks or the end of a "
			"thread\n",
	      printer->out);
	paint(printer, TERMINAL_END);
}

bool hang_print_deadlocks(const struct why_hangs *hangs, const struct hang_view *view, FILE *out)
{
	const struct hang_printer printer = {hangs, view, view->model, out};

	for (size_t i = 0; i < hangs->deadlocks.len; i++)
		print_deadlock(&printer, &hangs->deadlocks.data[i]);
	for (size_t i = 0; (hangs->stopped || hangs->ended) && i < hangs->waits.len; i++) {
		if (hangs->waits.data[i].awaits == WHY_AWAITS_NOTHING)
			print_stopped(&printer, &hangs->waits.data[i]);
		else if (hangs->waits.data[i].awaits == WHY_AWAITS_ENDED)
			print_orphan(&printer, &hangs->waits.data[i]);
	}
	for (size_t i = 0; i < hangs->standstills.len; i++) {
		if (hangs->standstills.data[i].pool)
			print_pool(&printer, &hangs->standstills.data[i]);
		else
			print_standstill(&printer, &hangs->standstills.data[i]);
	}
	return hangs->deadlocks.len || hangs->stopped || hangs->ended || hangs->standstills.len;
}

void hang_print_waits(const struct why_hangs *hangs, const struct hang_view *view, FILE *out)
{
	const struct hang_printer printer = {hangs, view, view->model, out};
	uint32_t shown = 0, owned = 0, more = 0;

	for (size_t i = 0; i < hangs->waits.len; i++) {
		const struct why_hung *hung = &hangs->waits.data[i];
		bool is_owned = hung->owner != MODEL_NONE || hung->stuck;

		if (hung->deadlock != MODEL_NONE || why_awaits_in_vain(hung->awaits))
			continue;
		if (!view->all && (is_owned ? owned >= OWNED_SHOWN : shown >= WAITS_SHOWN)) {
			more++;
			continue;
		}
		if (!owned && !shown)
			fputs("Waits that go on when the capture ends:\n", out);
		owned += is_owned;
		shown += !is_owned;
		print_wait(&printer, hung);
	}
	print_more(out, more);
}

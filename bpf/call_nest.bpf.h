/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
// clang-format off
/*
 * Nested calls. The stack pointers at their entries tell which calls of a thread are still open,
 * since some never return (longjmp(), exceptions), and some jump to another function instead of
 * calling it.
 *
 * An outer event (WAFFLE_CALL_OUTER) is recorded itself, so an inner call that is nested in it is
 * not. The thread keeps the last outer event, with its stack pointer (event_sp) and return
 * address (event_link):
 *
 *	program calls cudaLaunchKernel()	the outer event
 *	  library calls cuLaunchKernel()	returns into the library: nested
 *	program calls cuLaunchKernel()		returns into the program: not nested
 */
// clang-format on
#ifndef WAFFLE_CALL_NEST_BPF_H
#define WAFFLE_CALL_NEST_BPF_H

#include "call_frame.bpf.h"

/* The bytes that a return takes off the stack. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_POPS 8
#else
#define RETURN_POPS 0
#endif

/* The word at an address of the process; 0: unreadable. Not inlined, since it takes stack. */
static __noinline __u64 user_word(__u64 address)
{
	__u64 word;

	return bpf_probe_read_user(&word, sizeof(word), (void *)address) ? 0 : word;
}

/* The return address of a function that is entered with this stack pointer and link register; 0:
 * unreadable. */
static __always_inline __u64 link_at(__u64 sp, __u64 link)
{
	barrier_var(link); /* or clang removes this argument from global functions */
	return RETURN_POPS ? user_word(sp) : link;
}

static __always_inline __u64 return_address(struct pt_regs *ctx)
{
	return link_at(PT_REGS_SP(ctx), PT_REGS_RET(ctx));
}

static __always_inline bool code_has(const struct waffle_call_thread *thread, __u64 address)
{
	return address - thread->code_start < thread->code_end - thread->code_start;
}

/* Whether the word at the outer event's stack pointer is unchanged. After the event has returned,
 * the program's next calls mostly overwrite it, unless that word of their frames is unused. */
static __always_inline bool outer_word_unchanged(const struct waffle_call_thread *thread)
{
	return user_word(thread->event_sp) == thread->event_word;
}

/* Two return addresses within this distance nearly always lie in the same object. */
#define NEAR_BYTES (1ull << 20)

/*
 * Whether the outer event is still open, so that the inner call is nested in it. Then the inner
 * call returns into the library, or the library has jumped to it. After the outer event has
 * returned, the program's own call returns into the program. The return address is not enough in
 * two cases, which the stack decides: an interposing library makes the inner call, or the library
 * is linked into the program.
 */
static __always_inline bool outer_is_open(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	__u64 sp = PT_REGS_SP(ctx), link = return_address(ctx);

	if (thread->event_sp <= sp)
		return thread->event_sp == sp && link == thread->event_link;
	if (!code_has(thread, link))
		return !thread->code_calls &&
		       link - thread->event_link + NEAR_BYTES > 2 * NEAR_BYTES &&
		       outer_word_unchanged(thread);
	thread->code_calls = true;
	return !code_has(thread, thread->event_link) || outer_word_unchanged(thread);
}

/*
 * Whether a call is nested in an outer one. An outer event is forgotten with the next inner call:
 * it starts one launch only, or has ended.
 */
static __always_inline bool call_is_inner(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	bool inner;

	if (thread->outer_open)
		return true;
	if (!thread->event_sp)
		return false;
	inner = outer_is_open(thread, ctx);
	thread->event_sp = 0;
	return inner;
}

/* Sets the range of the object's code that contains the outer event at `ip`. */
static __noinline int outer_code_set(struct waffle_call_thread *thread, __u64 ip, __u32 number)
{
	const struct waffle_fetch_program *fetch_program =
		bpf_map_lookup_elem(&fetch_programs, &number);

	if (!fetch_program)
		return 0;
	if (thread->code_start != ip - fetch_program->code_before)
		thread->code_calls = false;
	thread->code_start = ip - fetch_program->code_before;
	thread->code_end = ip + fetch_program->code_behind;
	thread->code_ip = ip;
	return 0;
}

/* Makes this event, whose registers were read, the last outer one: its stack pointer, its return
 * address and the code of its object. `word` is the word at its stack pointer. */
static __always_inline void outer_set(struct waffle_call_thread *thread, struct pt_regs *ctx,
				      __u32 fetch_program)
{
	__u64 word =
		thread->stack_words ? thread->words[WAFFLE_CALL_REGS] : user_word(PT_REGS_SP(ctx));

	if (thread->code_ip != PT_REGS_IP(ctx))
		outer_code_set(thread, PT_REGS_IP(ctx), fetch_program);
	thread->event_word = word;
#if defined(__TARGET_ARCH_x86)
	thread->event_link = word;
#else
	thread->event_link = PT_REGS_RET(ctx);
#endif
	thread->event_sp = PT_REGS_SP(ctx);
}

static __always_inline void open_pop(struct waffle_call_thread *thread, __u32 depth)
{
	thread->depth = depth;
	if (thread->outer_open && thread->open[depth & (WAFFLE_CALL_DEPTH_MAX - 1)].outer)
		thread->outer_open--;
}

/* Records that a call was left and will not return. `now`: when that was found. */
static __always_inline void left_emit(__u64 id, __u32 site, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_return *rec = record_reserve(cpu, sizeof(*rec));

	if (!rec)
		return;
	rec->span_id = id;
	rec->tgid = task->tgid;
	rec->site = site;
	rec->frame_bytes = 0;
	rec->flags = WAFFLE_RETURN_LEFT;
	rec->rec = (struct waffle_rec){
		.ts = now,
		.tid = task->pid,
		.kind = WAFFLE_REC_RETURN,
		.cpu = cpu,
	};
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

__noinline int call_left(struct waffle_call_thread *thread, __u64 at)
{
	const struct waffle_call_open *open;

	barrier_var(at);
	if (!thread || at >= WAFFLE_CALL_DEPTH_MAX)
		return 0;
	open = &thread->open[at];
	if (open->state == WAFFLE_OPEN_KEPT)
		left_emit(open->id, open->fetch_program, thread->now);
	return 0;
}

static __always_inline void open_drop(struct waffle_call_thread *thread, __u32 at)
{
	if (thread->open[at & (WAFFLE_CALL_DEPTH_MAX - 1)].sp)
		call_left(thread, at);
	open_pop(thread, at);
}

/* A walk over the open calls of a thread, the last one first. It uses bpf_loop(), since the
 * verifier would follow every round of a plain loop. */
struct open_walk {
	struct waffle_call_thread *thread;
	__u64 sp, ip; /* of the call that is entered or returns */
	__u64 signal_stack, signal_stack_size;
	__u64 found; /* WAFFLE_CALL_DEPTH_MAX: none */
	__u32 site;
};

/* The index of the call `rounds` before the last one; WAFFLE_CALL_DEPTH_MAX: there is none. */
static __always_inline __u64 open_before(const struct waffle_call_thread *thread, __u32 rounds)
{
	__u64 at = (__u64)thread->depth - 1 - rounds;

	return at < WAFFLE_CALL_DEPTH_MAX ? at : WAFFLE_CALL_DEPTH_MAX;
}

/* Reads the thread's alternate signal stack (sigaltstack()), which may lie anywhere. */
static __always_inline void signal_stack_get(struct open_walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();

	walk->signal_stack = task->sas_ss_sp;
	walk->signal_stack_size = task->sas_ss_size;
}

static __always_inline bool on_signal_stack(const struct open_walk *walk, __u64 sp)
{
	return sp - walk->signal_stack < walk->signal_stack_size;
}

/*
 * Whether a call with this stack pointer has ended when the thread's stack pointer is walk->sp. It
 * has if it lies lower on the same stack. A signal handler may run on another stack, anywhere.
 * While it does, the interrupted calls are still open. Once the thread has left that stack, all
 * calls on it have ended.
 */
static __always_inline bool open_is_over(const struct open_walk *walk, __u64 sp)
{
	bool on;

	if (!sp)
		return true;
	on = on_signal_stack(walk, sp);
	return on == on_signal_stack(walk, walk->sp) ? sp < walk->sp : on;
}

/* Whether the innermost call has ended. */
static __always_inline bool open_is_below(const struct open_walk *walk)
{
	__u64 at = open_before(walk->thread, 0);

	barrier_var(at);
	return at < WAFFLE_CALL_DEPTH_MAX && open_is_over(walk, walk->thread->open[at].sp);
}

static long open_drop_one(__u32 round, void *context)
{
	const struct open_walk *walk = context;

	if (!open_is_below(walk))
		return 1;
	open_drop(walk->thread, walk->thread->depth - 1);
	return 0;
}

/* Drops the calls that have ended: they have returned (sp is 0), or longjmp() or an exception
 * left them. Mostly there are none. */
static __always_inline void open_drop_below(struct open_walk *walk)
{
	if (open_is_below(walk))
		bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_drop_one, walk, 0);
}

static long open_drop_last(__u32 round, void *context)
{
	const struct open_walk *walk = context;
	__u64 at = open_before(walk->thread, 0);

	if (at >= WAFFLE_CALL_DEPTH_MAX)
		return 1;
	open_drop(walk->thread, at);
	return 0;
}

static __always_inline void calls_drop_all(struct waffle_call_thread *thread)
{
	struct open_walk walk = {.thread = thread};

	bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_drop_last, &walk, 0);
}

static long open_find_left(__u32 round, void *context)
{
	struct open_walk *walk = context;
	__u64 at = open_before(walk->thread, round);
	const struct waffle_call_open *open;

	barrier_var(at);
	if (at >= WAFFLE_CALL_DEPTH_MAX)
		return 1;
	open = &walk->thread->open[at];
	if (open->sp && open->sp != walk->sp)
		return 1;
	if (open->ip != walk->ip || open->fetch_program == walk->site)
		walk->found = at;
	return 0;
}

static long open_drop_found(__u32 round, void *context)
{
	const struct open_walk *walk = context;

	if (walk->thread->depth <= walk->found)
		return 1;
	open_drop(walk->thread, walk->thread->depth - 1);
	return 0;
}

/*
 * Drops calls with the same stack pointer as the new one: their caller calls again, so they were
 * left. Two kinds are still open: a function that jumped to this one instead of calling it, and the
 * same function by another spec.
 */
static __always_inline void open_drop_left(struct open_walk *walk)
{
	bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_find_left, walk, 0);
	if (walk->found < WAFFLE_CALL_DEPTH_MAX)
		bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_drop_found, walk, 0);
}

/* Drops the calls that have ended when `site` is entered. The function is global, so that the
 * verifier checks it only once. */
__noinline int call_drop_stale(struct waffle_call_thread *thread, __u64 sp, __u64 ip, __u64 link,
			       __u32 site)
{
	struct open_walk walk = {
		.thread = thread, .sp = sp, .ip = ip, .found = WAFFLE_CALL_DEPTH_MAX, .site = site};
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 top;

	if (!thread)
		return 0;
	signal_stack_get(&walk);
	open_drop_below(&walk);
	top = open_before(thread, 0);
	barrier_var(top);
	if (top >= WAFFLE_CALL_DEPTH_MAX || thread->open[top].sp != sp)
		return 0;
	link = link_at(sp, link);
	/* A function that another one jumped to (a tail call) returns to that one's caller. If
	 * that one has a return probe, it returns to the kernel's trampoline. */
	if (link && (link != thread->open[top].link || thread->open[top].ip == ip) &&
	    link != BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr))
		open_drop_left(&walk);
	return 0;
}

static long open_find_returning(__u32 round, void *context)
{
	struct open_walk *walk = context;
	__u64 at = open_before(walk->thread, round);
	struct waffle_call_open *open;

	barrier_var(at);
	if (at >= WAFFLE_CALL_DEPTH_MAX)
		return 1;
	open = &walk->thread->open[at];
	if (open->sp != walk->sp)
		return !open_is_over(walk, open->sp);
	if (open->fetch_program != walk->site)
		return 0;
	open->sp = 0; /* dropped when it is the last one */
	walk->found = at;
	return 1;
}

/*
 * The index of the call that returns, mostly the innermost one. It had this stack pointer at its
 * entry. Several calls may share it, and return in any order: functions that jumped to each other,
 * and one function with two specs. WAFFLE_CALL_DEPTH_MAX: its entry was not recorded.
 */
static __always_inline __u64 open_returning(struct waffle_call_thread *thread, __u64 sp, __u32 site)
{
	struct open_walk walk = {
		.thread = thread, .sp = sp, .found = WAFFLE_CALL_DEPTH_MAX, .site = site};

	signal_stack_get(&walk);
	open_drop_below(&walk);
	if (!open_find_returning(0, &walk))
		bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_find_returning, &walk, 0);
	return walk.found;
}

#endif

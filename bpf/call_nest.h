/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls in calls: which of them are under way in a thread is told by their stack pointers, as some
 * never return (longjmp(), exceptions) and some jump to another in place of calling it.
 */
#ifndef WAFFLE_CALL_NEST_H
#define WAFFLE_CALL_NEST_H

#include "call_frame.h"

/* What a return takes off the stack. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_POPS 8
#else
#define RETURN_POPS 0
#endif

/* The word at an address of the process; 0: it can't be read. Not inlined: call_plain.h. */
static __noinline __u64 user_word(__u64 address)
{
	__u64 word;

	return bpf_probe_read_user(&word, sizeof(word), (void *)address) ? 0 : word;
}

/* Where a function returns to that is entered with this stack pointer and link register; 0: it
 * can't be read. */
static __always_inline __u64 link_at(__u64 sp, __u64 link)
{
	barrier_var(link); /* else clang takes it for no argument any more of global functions */
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

/* What lay at the stack pointer of the event at outer_sp still does: what the program calls next
 * writes there, but for functions that have room there which they do not use. */
static __always_inline bool outer_lies(const struct waffle_call_thread *thread)
{
	return user_word(thread->outer_sp) == thread->outer_word;
}

/* What two calls return to that are made by the same object, nearly always. */
#define NEAR_BYTES (1ull << 20)

/*
 * The event at outer_sp is still being called: from its library, or by a jump in place of a call.
 * If it returned and the program calls the inner function itself, that returns to the program. In
 * between may be who is called in place of the inner function and calls it then, from elsewhere;
 * and a library that the program is linked with is not told from it. Then the stack tells.
 */
static __always_inline bool outer_holds(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	__u64 sp = PT_REGS_SP(ctx), link = return_address(ctx);

	if (thread->outer_sp <= sp)
		return thread->outer_sp == sp && link == thread->outer_link;
	if (!code_has(thread, link))
		return !thread->code_calls &&
		       link - thread->outer_link + NEAR_BYTES > 2 * NEAR_BYTES &&
		       outer_lies(thread);
	thread->code_calls = true;
	return !code_has(thread, thread->outer_link) || outer_lies(thread);
}

/*
 * To look where a call returns to takes longer than all else about it. Of CUDA's and NCCL's tables,
 * most calls that come to the inner function the way that another did are taken for nested as that
 * one was: from the same outer function, as far below it on the stack, and between the two a frame
 * of the same size (these libraries have frame pointers, and long ways). What can be taken for one
 * is a call by the program behind an outer event that failed before it came so far. So one in
 * WAY_LOOKS is looked at, at random; when one turns out not to be nested, those of its thread that
 * were not looked at are counted as lost, as some may have been like it, and from then on each is
 * looked at. So they are if the program's own come another way.
 */
#define WAY_LOOKS 16
#define WAY_BYTES_MIN 128 /* a short one may as well be that of a function around a call */

/* How far above the stack pointer the frame pointer is. */
static __always_inline __u64 frame_bytes(struct pt_regs *ctx)
{
	return PT_REGS_FP(ctx) - PT_REGS_SP(ctx);
}

static __always_inline bool way_known(const struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	return thread->way_ip == PT_REGS_IP(ctx) && thread->way_code_ip == thread->code_ip &&
	       thread->way_bytes == thread->outer_sp - PT_REGS_SP(ctx) &&
	       thread->way_frame == frame_bytes(ctx);
}

static __always_inline bool way_look(struct waffle_call_thread *thread)
{
	/* Knuth's MMIX generator, of which the high bits are good. */
	thread->way_random = thread->way_random * 6364136223846793005ull + 1442695040888963407ull;
	return thread->way_random < ~0ull / WAY_LOOKS;
}

static __always_inline void way_learn(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	__u64 bytes = thread->outer_sp - PT_REGS_SP(ctx);

	if (!thread->code_way || thread->outer_failed || bytes < WAY_BYTES_MIN ||
	    frame_bytes(ctx) >= bytes)
		return;
	thread->way_ip = PT_REGS_IP(ctx);
	thread->way_code_ip = thread->code_ip;
	thread->way_bytes = bytes;
	thread->way_frame = frame_bytes(ctx);
}

static __always_inline void outer_fail(struct waffle_call_thread *thread)
{
	thread->outer_failed = true;
	thread->way_ip = 0;
}

/* Whether a call is nested in the event at outer_sp, by a look. Not inlined, as it is rare and
 * takes stack. */
static __noinline int inner_look(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	if (outer_holds(thread, ctx)) {
		way_learn(thread, ctx);
		return true;
	}
	if (way_known(thread, ctx))
		loss_count(thread->way_skips);
	outer_fail(thread);
	return false;
}

/*
 * Whether a call is part of one that counts by itself. An event that does is forgotten when the
 * first call in it was met: what it starts is one launch.
 */
static __always_inline bool call_is_inner(struct waffle_call_thread *thread, struct pt_regs *ctx)
{
	bool inner = true;

	if (thread->outer)
		return true;
	if (!thread->outer_sp)
		return false;
	if (way_known(thread, ctx) && !way_look(thread))
		thread->way_skips++;
	else
		inner = inner_look(thread, ctx);
	thread->outer_sp = 0;
	return inner;
}

/* Where the code is that the event at `ip` is part of. */
static __noinline int outer_code_set(struct waffle_call_thread *thread, __u64 ip, __u32 number)
{
	const struct waffle_recipe *recipe = bpf_map_lookup_elem(&recipes, &number);

	if (!recipe)
		return 0;
	if (thread->code_start != ip - recipe->code_before)
		thread->code_calls = false;
	thread->code_start = ip - recipe->code_before;
	thread->code_end = ip + recipe->code_behind;
	thread->code_ip = ip;
	thread->code_way = (recipe->flags & WAFFLE_CALL_TABLE) != 0;
	return 0;
}

/* Remembers an event that counts by itself, by its recipe and the word at its stack pointer. */
static __always_inline void outer_set(struct waffle_call_thread *thread, struct pt_regs *ctx,
				      __u32 recipe, __u64 word)
{
	if (thread->outer_sp)
		outer_fail(thread); /* nothing was called in the one before */
	if (thread->code_ip != PT_REGS_IP(ctx))
		outer_code_set(thread, PT_REGS_IP(ctx), recipe);
	thread->outer_word = word;
#if defined(__TARGET_ARCH_x86)
	thread->outer_link = word;
#else
	thread->outer_link = PT_REGS_RET(ctx);
#endif
	thread->outer_sp = PT_REGS_SP(ctx);
}

/* The same of one whose registers were read. */
static __always_inline void outer_see(struct waffle_call_thread *thread, struct pt_regs *ctx,
				      __u32 recipe)
{
	outer_set(thread, ctx, recipe,
		  thread->stack_words ? thread->words[WAFFLE_CALL_REGS]
				      : user_word(PT_REGS_SP(ctx)));
}

static __always_inline void open_pop(struct waffle_call_thread *thread, __u32 depth)
{
	thread->depth = depth;
	if (thread->outer && thread->open[depth & (WAFFLE_CALL_DEPTH_MAX - 1)].outer)
		thread->outer--;
}

/* Tells that what is in the records will not end, at the time of what shows it. */
static __always_inline void left_tell(__u64 id, __u32 site, __u64 now)
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
		left_tell(open->id, open->recipe, thread->now);
	return 0;
}

static __always_inline void open_drop(struct waffle_call_thread *thread, __u32 at)
{
	if (thread->open[at & (WAFFLE_CALL_DEPTH_MAX - 1)].sp)
		call_left(thread, at);
	open_pop(thread, at);
}

/* A look at the calls of a thread from the last one on, by bpf_loop(): of any other loop the
 * verifier goes through all rounds. */
struct open_walk {
	struct waffle_call_thread *thread;
	__u64 sp, ip; /* of the call that is entered or returns */
	__u64 signal_stack, signal_stack_size;
	__u64 found; /* WAFFLE_CALL_DEPTH_MAX: none */
	__u32 site;
};

/* The call `rounds` before the last one; WAFFLE_CALL_DEPTH_MAX: there are not so many. */
static __always_inline __u64 open_before(const struct waffle_call_thread *thread, __u32 rounds)
{
	__u64 at = (__u64)thread->depth - 1 - rounds;

	return at < WAFFLE_CALL_DEPTH_MAX ? at : WAFFLE_CALL_DEPTH_MAX;
}

/* The stack that the thread has set aside for signals (sigaltstack()), which may lie anywhere. */
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
 * Whether a call with this stack pointer is over at walk->sp: it lies lower. What a signal has
 * interrupted goes on, wherever the handler's stack lies; and nothing of a handler does once the
 * thread is off its stack.
 */
static __always_inline bool open_is_over(const struct open_walk *walk, __u64 sp)
{
	bool on;

	if (!sp)
		return true;
	on = on_signal_stack(walk, sp);
	return on == on_signal_stack(walk, walk->sp) ? sp < walk->sp : on;
}

/* Whether the last call is over. */
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

/* What is lower than a stack pointer has returned (it has 0), or never will: longjmp(), an
 * exception. Mostly there is none. */
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
	if (open->ip != walk->ip || open->recipe == walk->site)
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
 * Calls with the stack pointer of one that is entered. Those that jumped to it in place of a call
 * are still under way: it returns to where the kernel makes functions return whose return is
 * probed. Those of the same entry are, too, by another description of the function. All others were
 * left, and the same caller calls again.
 */
static __always_inline void open_drop_left(struct open_walk *walk)
{
	bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_find_left, walk, 0);
	if (walk->found < WAFFLE_CALL_DEPTH_MAX)
		bpf_loop(WAFFLE_CALL_DEPTH_MAX, open_drop_found, walk, 0);
}

/* Drops the calls that are over when `site` is entered. Global: the verifier looks at it once. */
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
	/* One that was jumped to returns to where the other would: the kernel's trampoline, if that
	 * has a return probe. */
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
	if (open->recipe != walk->site)
		return 0;
	open->sp = 0; /* it goes when it is the last one */
	walk->found = at;
	return 1;
}

/*
 * The place of the call that returns: its entry had this stack pointer. Those of functions that
 * jumped to each other, or of one with two descriptions, have the same; they return in any order.
 * WAFFLE_CALL_DEPTH_MAX: the entry was not recorded. Mostly it is the last one.
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

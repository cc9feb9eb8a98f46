/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the frames of Python of the current thread, and copies texts. */
#ifndef WAFFLE_PYTHON_THREAD_BPF_H
#define WAFFLE_PYTHON_THREAD_BPF_H

#include "stack.h"

/* Defined in stack.bpf.c. */
extern struct stack_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAFFLE_MAX_TARGETS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct waffle_stack_process);
} stack_processes SEC(".maps");

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word;

	return bpf_probe_read_user(&word, sizeof(word), (void *)address) ? 0 : word;
}

/* The tid of a thread as its process sees it. It is read by a helper, since the verifier takes
 * milliseconds for a pointer that is followed from `task` (task_untrusted(), wait.h). */
static __always_inline __u32 task_seen_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid upid = {};
	__u32 level = BPF_CORE_READ(pid, level);

	bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]);
	return upid.nr;
}

/* The key of a thread in Python's list of thread states: thread_id, of pthread_self(), or
 * native_thread_id, of gettid(). */
static __always_inline __u64 thread_key(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task_seen_tid(task);
#endif
}

struct python_thread_search {
	const struct waffle_python *python;
	__u64 thread, key;
};

static long python_thread_step(__u32 index, void *context)
{
	struct python_thread_search *search = context;
	const struct waffle_python *python = search->python;

	if (!search->thread || word_at(search->thread + python->thread_key) == search->key)
		return 1;
	search->thread = word_at(search->thread + python->thread_next);
	return 0;
}

/* The innermost frame of the current thread. 0: it runs no Python, or is not found. */
static __always_inline __u64 python_innermost(const struct waffle_python *python,
					      struct task_struct *task)
{
	struct python_thread_search search = {.python = python, .key = thread_key(task)};
	__u64 frame;

	search.thread = word_at(python->runtime + python->interpreters_main);
	search.thread = search.thread ? word_at(search.thread + python->threads_head) : 0;
	bpf_loop(WAFFLE_PYTHON_THREADS_MAX, python_thread_step, &search, 0);
	if (!search.thread || word_at(search.thread + python->thread_key) != search.key)
		return 0;
	frame = word_at(search.thread + python->thread_frame);
	return python->has_cframe && frame ? word_at(frame + python->cframe_frame) : frame;
}

/* Copies the text of a str; longer ones are cut. */
static __always_inline void text_copy(const struct waffle_python *python, __u64 object,
				      struct waffle_code_text *text, void *to, __u32 room)
{
	__u64 length = word_at(object + WAFFLE_PYTHON_LENGTH), bytes;
	__u32 state = 0;

	bpf_probe_read_user(&state, sizeof(state), (void *)(object + WAFFLE_PYTHON_STATE));
	object += WAFFLE_PYTHON_ASCII(state) ? python->ascii_bytes : python->compact_bytes;
	bytes = length * WAFFLE_PYTHON_KIND(state);
	if (length > room || bytes > room)
		bytes = room;
	barrier_var(bytes); /* checked next to its use, for the verifier of 6.1 */
	if (bytes > room || bpf_probe_read_user(to, bytes, (void *)object))
		bytes = 0;
	text->state = state;
	text->bytes = bytes;
}

#endif

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Reads names of new threads from Python (thread_name.bpf.h). */
#include "vmlinux.h"
#include "thread_name.bpf.h"
#include "emit.bpf.h"
#include "python_thread.bpf.h"

#define WAFFLE_PYTHON_READ(context, to, bytes, address)                                            \
	bpf_probe_read_user(to, bytes, (void *)(address))
#include "python_object.h"

/* A new thread has some eight frames, and a Thread some fifteen attributes. */
#define FRAMES_MAX 64
#define KEYS_MAX 64

/* The context of bpf_loop() must be on the stack. */
struct name_search {
	const struct waffle_python *python;
	__u64 frame, outermost; /* the next one to look at; the last one of Python so far */
	struct waffle_python_table table;
	__u64 text_type;
	__u64 name_at; /* where the address of the name is; 0: not found */
	__u32 seen_tid;
};

static __always_inline const struct waffle_python *python_of(__u32 tgid)
{
	const struct waffle_stack_process *process = bpf_map_lookup_elem(&stack_processes, &tgid);

	if (!process || !process->python.runtime || !process->python.type_cached_keys ||
	    (privileged_seen && program_is_privileged(tgid)))
		return NULL;
	return &process->python;
}

__noinline int thread_name_wanted(__u32 tgid)
{
	return python_of(tgid) != NULL;
}

/* These two are global, so that the verifier checks them once, not once on each path to them. */
__noinline int thread_name_text(const struct waffle_python *python, __u64 object)
{
	return python ? waffle_python_text(NULL, python, object) : WAFFLE_TEXT_OTHER;
}

__noinline int thread_name_attributes(const struct waffle_python *python, __u64 object,
				      struct waffle_python_table *table)
{
	return python && table && waffle_python_attributes(NULL, python, object, table);
}

static long outer_frame(__u32 index, void *context)
{
	struct name_search *search = context;
	const struct waffle_python *python = search->python;
	__u8 owner = 0;

	if (!search->frame)
		return 1;
	if (python->owner_none)
		bpf_probe_read_user(&owner, 1, (void *)(search->frame + python->frame_owner));
	if (!python->owner_none || owner < python->owner_none)
		search->outermost = search->frame;
	search->frame = word_at(search->frame + python->frame_previous);
	return 0;
}

static long attribute_look(__u32 index, void *context)
{
	struct name_search *search = context;
	enum waffle_python_text text;
	__u64 key;

	if (index >= search->table.count)
		return 1;
	key = word_at(waffle_python_key_at(&search->table, index));
	text = key ? thread_name_text(search->python, key) : WAFFLE_TEXT_OTHER;
	if (text == WAFFLE_TEXT_NATIVE_ID) {
		search->seen_tid = waffle_python_number(
			NULL, search->python,
			word_at(waffle_python_value_at(&search->table, index)));
	} else if (text == WAFFLE_TEXT_NAME) {
		search->name_at = waffle_python_value_at(&search->table, index);
		search->text_type = word_at(key + WAFFLE_PYTHON_TYPE);
	}
	return search->name_at && search->seen_tid;
}

/* A thread that has no GIL may be renamed meanwhile. Userspace compares the two readings. */
static __always_inline int name_record(const struct name_search *search, struct task_struct *task)
{
	__u64 name = word_at(search->name_at);
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_code_text again = {};
	struct waffle_rec_python_name *rec;

	if (!name || word_at(name + WAFFLE_PYTHON_TYPE) != search->text_type)
		return THREAD_NAME_LATER;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return THREAD_NAME_LATER;
	record_begin(&rec->rec, WAFFLE_REC_PYTHON_NAME, task->pid, cpu);
	rec->tgid = task->tgid;
	rec->reserved = 0;
	text_copy(search->python, name, &rec->text, rec->name, sizeof(rec->name));
	text_copy(search->python, name, &again, rec->again, sizeof(rec->again));
	if (again.state != rec->text.state || again.bytes != rec->text.bytes ||
	    word_at(search->name_at) != name)
		rec->text.bytes = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return THREAD_NAME_TOLD;
}

__noinline int thread_name_emit(__u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct name_search search = {.python = python_of(tgid)};
	const struct waffle_python *python = search.python;
	__u64 code, object, function;

	if (!python)
		return THREAD_NAME_NONE;
	search.frame = python_innermost(python, task);
	bpf_loop(FRAMES_MAX, outer_frame, &search, 0);
	if (!search.outermost || search.frame)
		return THREAD_NAME_LATER;
	code = word_at(search.outermost + python->frame_code) & ~WAFFLE_PYTHON_MARKS;
	function = word_at(code + python->code_short_name);
	if (thread_name_text(python, function) != WAFFLE_TEXT_BOOTSTRAP)
		return THREAD_NAME_NONE;
	object = word_at(search.outermost + python->frame_locals) & ~WAFFLE_PYTHON_MARKS;
	if (!thread_name_attributes(python, object, &search.table))
		return THREAD_NAME_LATER;
	bpf_loop(KEYS_MAX, attribute_look, &search, 0);
	if (!search.name_at || !search.seen_tid || search.seen_tid != task_seen_tid(task))
		return THREAD_NAME_LATER;
	return name_record(&search, task);
}

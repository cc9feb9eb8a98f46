// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Walks the stack of the current thread when a span or event begins whose stacks are requested. */
#include "vmlinux.h"
#include "stack.h"
#include "emit.bpf.h"
#include "python_thread.bpf.h"
#include "thread_storage.bpf.h"
#include "uprobe.bpf.h"

#define WAFFLE_UNWIND_READ(context, word, address)                                                 \
	bpf_probe_read_user(word, sizeof(__u64), (void *)(address))
#include "unwind_step.h"

#define WAFFLE_STACK_PAGE_SHIFT 12 /* vm_pgoff counts pages of the kernel: 4 KiB */
#define RETURN_PROBES_MAX 32

struct slab_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WAFFLE_UNWIND_SLAB_PAGES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct waffle_unwind_page));
};

/* Userspace adds slabs when it needs space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WAFFLE_UNWIND_SLABS_MAX);
	__type(key, __u32);
	__array(values, struct slab_map);
} unwind_slabs SEC(".maps");

struct stack_processes_map stack_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAFFLE_STACK_FILES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct waffle_inode);
	__type(value, struct waffle_stack_file);
} stack_files SEC(".maps");

/* Code objects that were recorded. Name and line
 * distinguish objects that had one address in turn. */
struct code_key {
	__u64 code, name;
	__u32 tgid, first_line;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct code_key);
	__type(value, __u32);
} python_codes SEC(".maps");

/* The context of bpf_loop() must be on the stack. */
struct context {
	struct storage_walk *walk;
};

static __always_inline struct waffle_unwind_page *page_get(__u32 number)
{
	__u32 slab = number / WAFFLE_UNWIND_SLAB_PAGES, page = number % WAFFLE_UNWIND_SLAB_PAGES;
	void *pages = bpf_map_lookup_elem(&unwind_slabs, &slab);

	return pages ? bpf_map_lookup_elem(pages, &page) : NULL;
}

/*
 * The searches are global functions, so that the verifier checks each of them once, not in all
 * states that a walk can be in.
 */
int stack_mapping_find(struct storage_walk *walk, __u64 pc);
int stack_row_find(struct storage_walk *walk, __u32 pc);
int stack_area_find(struct storage_walk *walk, __u64 pc);

/* Finds the mapping that an address is in; false: none. */
__noinline int stack_mapping_find(struct storage_walk *walk, __u64 pc)
{
	struct waffle_unwind_mapping *mapping;
	struct waffle_unwind_page *page;
	__u32 low = 0, high, middle;

	if (!walk)
		return 0;
	high = walk->process.mappings;
	for (int i = 0; i < 12 && low < high; i++) { /* 2^11: WAFFLE_STACK_MAPPINGS_MAX */
		middle = (low + high) / 2;
		page = page_get(walk->process.page + middle / WAFFLE_UNWIND_PAGE_MAPPINGS);
		if (!page)
			return false;
		mapping = &page->mappings[middle % WAFFLE_UNWIND_PAGE_MAPPINGS];
		if (pc < mapping->start) {
			high = middle;
		} else if (pc >= mapping->end) {
			low = middle + 1;
		} else {
			walk->mapping = *mapping;
			return true;
		}
	}
	return false;
}

static long area_seen(struct task_struct *task, struct vm_area_struct *area, void *context)
{
	struct storage_walk *walk = ((struct context *)context)->walk;
	struct file *file = BPF_CORE_READ(area, vm_file);
	struct waffle_stack_file *known;
	struct waffle_inode key = {};

	walk->mapping.start = BPF_CORE_READ(area, vm_start);
	walk->mapping.end = BPF_CORE_READ(area, vm_end);
	walk->mapping.pages = 0;
	if (!file)
		return 0;
	key.ino = BPF_CORE_READ(file, f_inode, i_ino);
	key.dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	known = bpf_map_lookup_elem(&stack_files, &key);
	if (!known)
		return 0;
	walk->mapping.base = walk->mapping.start -
			     (BPF_CORE_READ(area, vm_pgoff) << WAFFLE_STACK_PAGE_SHIFT) +
			     known->shift;
	walk->mapping.page = known->page;
	walk->mapping.pages = known->pages;
	return 0;
}

/* Does what stack_mapping_find() does, but asks the kernel. So it finds mappings and processes
 * that are new. The scheduler's programs must not call it, since it waits for the lock of the
 * process's memory. */
__noinline int stack_area_find(struct storage_walk *walk, __u64 pc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct context context = {walk};

	if (!walk || walk->waits)
		return 0;
	walk->mapping.end = 0;
	bpf_find_vma(task, pc, area_seen, &context, 0);
	return pc >= walk->mapping.start && pc < walk->mapping.end;
}

/* The last page of the mapping's table that begins at `pc` or before. */
static __noinline __u32 page_find(struct storage_walk *walk, __u32 pc)
{
	__u32 low = 0, high = walk->mapping.pages, middle;
	struct waffle_unwind_page *page;

	for (int i = 0; i < 17 && low + 1 < high; i++) { /* 2^16 pages: CFI_ROWS_MAX */
		middle = (low + high) / 2;
		page = page_get(walk->mapping.page + middle);
		if (!page)
			return 0;
		if (page->rows[0].pc <= pc)
			low = middle;
		else
			high = middle;
	}
	return walk->mapping.page + low;
}

__noinline int stack_row_find(struct storage_walk *walk, __u32 pc)
{
	struct waffle_unwind_page *page;
	__u32 low, at;

	page = walk ? page_get(page_find(walk, pc)) : NULL;
	if (!page)
		return 0;
	/* The value is read from memory, so that the verifier does not know it. Otherwise it
	 * would follow 2^9 paths instead of 9. */
	low = walk->zero;
	for (__u32 step = WAFFLE_UNWIND_PAGE_ROWS / 2; step; step /= 2) {
		at = (low + step) % WAFFLE_UNWIND_PAGE_ROWS;
		if (page->rows[at].pc <= pc)
			low = at;
	}
	low %= WAFFLE_UNWIND_PAGE_ROWS;
	if (page->rows[low].pc <= pc)
		walk->row = page->rows[low];
	return 0;
}

static long return_probe(__u32 index, void *context)
{
	struct storage_walk *walk = ((struct context *)context)->walk;
	struct return_instance *at = (struct return_instance *)walk->return_probe;

	if (!at)
		return 1;
	walk->return_probe = (__u64)BPF_CORE_READ(at, next);
	if (BPF_CORE_READ(at, stack) != walk->return_stack)
		return 0;
	walk->regs.ip = BPF_CORE_READ(at, orig_ret_vaddr);
	return 1;
}

/* Return probes, waffle's own too, have replaced return addresses on the stack. The kernel has a
 * list of the original ones, innermost first, which is the order of a walk. */
static __noinline void trampoline_replace(struct storage_walk *walk)
{
	struct context context = {walk};

#if defined(__TARGET_ARCH_x86)
	walk->return_stack = walk->regs.sp - 8;
#else
	walk->return_stack = walk->regs.sp;
#endif
	bpf_loop(RETURN_PROBES_MAX, return_probe, &context, 0);
	if (walk->regs.ip == walk->trampoline)
		walk->regs.ip = 0;
}

static long walk_frame(__u32 index, void *context)
{
	struct storage_walk *walk = ((struct context *)context)->walk;
	__u64 pc = waffle_unwind_pc(&walk->regs);
	__u8 rule;

	/* A reader names a caller by the byte before its address. For code that a signal
	 * interrupted, this makes it the first byte of the instruction. */
	walk->words[index & (WAFFLE_FRAMES_USER_MAX - 1)] =
		walk->regs.ip + (index && walk->regs.exact);
	walk->count = index + 1;
	walk->row.rule = WAFFLE_UNWIND_UNKNOWN;
	if ((pc >= walk->mapping.start && pc < walk->mapping.end) || stack_mapping_find(walk, pc) ||
	    stack_area_find(walk, pc)) {
		pc -= walk->mapping.base;
		if (walk->mapping.pages && pc <= 0xffffffff)
			stack_row_find(walk, pc);
	}
	if (!index && walk->at_call && walk->row.rule == WAFFLE_UNWIND_UNKNOWN)
		walk->row = waffle_unwind_entry();
	if (!waffle_unwind_step(NULL, &walk->row, &walk->regs)) {
		/* A return address of 0 also ends the stack, unless
		 * frame pointers led there by chance. */
		rule = walk->row.rule & WAFFLE_UNWIND_RULE_BITS;
		if (rule == WAFFLE_UNWIND_END || (!walk->regs.ip && rule != WAFFLE_UNWIND_UNKNOWN))
			walk->cut = 0;
		return 1;
	}
	if (walk->trampoline && walk->regs.ip == walk->trampoline)
		trampoline_replace(walk);
	return walk->regs.ip < 4096;
}

static __always_inline void user_walk(struct storage_walk *walk, struct task_struct *task,
				      __u64 flags)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct context context = {walk};

	walk->regs.exact = 1;
#if defined(__TARGET_ARCH_x86)
	walk->regs.ip = regs->ip;
	walk->regs.sp = regs->sp;
	walk->regs.fp = regs->bp;
#elif defined(__TARGET_ARCH_arm64)
	walk->regs.ip = regs->pc;
	walk->regs.sp = regs->sp;
	walk->regs.fp = regs->regs[29];
	walk->regs.lr = regs->regs[30];
#endif
	if (flags & WAFFLE_STACK_SITE) { /* unwind from the probe to the code of the site */
		walk->regs.exact = 0;
#if defined(__TARGET_ARCH_x86)
		bpf_probe_read_user(&walk->regs.ip, sizeof(__u64), (void *)walk->regs.sp);
		walk->regs.sp += 8 + WAFFLE_RED_ZONE;
#else
		walk->regs.ip = walk->regs.lr;
#endif
	}
	walk->cut = walk->regs.ip ? WAFFLE_CUT_USER : 0; /* kernel threads have none */
	walk->at_call = (flags & WAFFLE_STACK_CALL) != 0;
	walk->mapping.start = walk->mapping.end = 0;
	walk->trampoline = 0;
	walk->return_probe = (__u64)BPF_CORE_READ(task, utask, return_instances);
	if (walk->return_probe)
		walk->trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	bpf_loop(WAFFLE_FRAMES_USER_MAX, walk_frame, &context, 0);
}

/* ---- Python ---- */

static __noinline bool code_emit(struct storage_walk *walk, const struct code_key *key)
{
	const struct waffle_python *python = &walk->process.python;
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_code *rec = record_reserve(cpu, sizeof(*rec));
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 table, bytes;

	if (!rec)
		return false;
	record_begin(&rec->rec, WAFFLE_REC_CODE, task->pid, cpu);
	rec->rec.ts = walk->ts; /* before the frames that refer to it */
	rec->code = key->code;
	rec->tgid = key->tgid;
	rec->first_line = key->first_line;
	rec->reserved = 0;
	text_copy(python, key->name, &rec->name_text, rec->name, sizeof(rec->name));
	text_copy(python, word_at(key->code + python->code_file), &rec->file_text, rec->file,
		  sizeof(rec->file));
	table = word_at(key->code + python->code_table);
	bytes = table ? word_at(table + WAFFLE_PYTHON_LENGTH) : 0;
	barrier_var(bytes);
	if (bytes > sizeof(rec->table) ||
	    bpf_probe_read_user(rec->table, bytes, (void *)(table + WAFFLE_PYTHON_BYTES)))
		bytes = 0;
	rec->table_bytes = bytes;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return true;
}

static __noinline void code_record(struct storage_walk *walk, __u64 code)
{
	const struct waffle_python *python = &walk->process.python;
	struct task_struct *task = bpf_get_current_task_btf();
	struct code_key key = {.code = code, .tgid = task->tgid};
	__u32 one = 1;

	key.name = word_at(code + python->code_name);
	bpf_probe_read_user(&key.first_line, sizeof(key.first_line),
			    (void *)(code + python->code_first_line));
	if (key.name && !bpf_map_lookup_elem(&python_codes, &key) && code_emit(walk, &key))
		bpf_map_update_elem(&python_codes, &key, &one, BPF_ANY);
}

/* The address of a frame's instruction, with WAFFLE_PYTHON_ENTRY if the frame is the outermost one
 * of a call of the interpreter's loop. */
static __always_inline __u64 instruction_address(const struct waffle_python *python, __u64 frame,
						 __u64 code)
{
	__s32 last = -1;
	__u8 entry = 0;
	__u64 instr;

	if (python->index_bytes) {
		bpf_probe_read_user(&last, sizeof(last), (void *)(frame + python->frame_instr));
		instr = code + python->code_instructions;
		if (last > 0)
			instr += (__u64)last * python->index_bytes;
		return instr | WAFFLE_PYTHON_ENTRY;
	}
	instr = word_at(frame + python->frame_instr);
	if (python->frame_entry)
		bpf_probe_read_user(&entry, 1, (void *)(frame + python->frame_entry));
	return entry ? instr | WAFFLE_PYTHON_ENTRY : instr;
}

static long python_frame(__u32 index, void *context)
{
	struct storage_walk *walk = ((struct context *)context)->walk;
	struct waffle_python *python = &walk->process.python;
	__u64 frame = walk->frame, code, instr;
	bool is_python;
	__u8 owner;
	__u32 at;

	if (!frame || bpf_probe_read_user(&owner, 1, (void *)(frame + python->frame_owner)))
		return 1;
	is_python = !python->owner_none || owner < python->owner_none;
	if (is_python && walk->python >= WAFFLE_FRAMES_PYTHON_MAX)
		return 1;
	code = word_at(frame + python->frame_code) & ~WAFFLE_PYTHON_MARKS;
	instr = instruction_address(python, frame, code);
	walk->frame = word_at(frame + python->frame_previous);
	at = walk->count + 2 * walk->python;
	if (!is_python) {
		if (walk->python)
			walk->words[(at - 1) & (WORDS - 1)] |= WAFFLE_PYTHON_ENTRY;
		return 0;
	}
	walk->words[at & (WORDS - 1)] = code;
	walk->words[(at + 1) & (WORDS - 1)] = instr;
	walk->python++;
	code_record(walk, code);
	return 0;
}

static __noinline void python_walk(struct storage_walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waffle_python *python = &walk->process.python;
	struct context context = {walk};

	walk->frame = python_innermost(python, task);
	bpf_loop(4 * WAFFLE_FRAMES_PYTHON_MAX, python_frame, &context, 0);
	if (walk->frame)
		walk->cut |= WAFFLE_CUT_PYTHON;
}

/* ---- records ---- */

/* The size of a reservation must be a constant, as in hit_copy(). */
static __always_inline int frames_copy(struct storage_walk *walk, __u32 room, __u64 id, __u64 ts,
				       __u32 kernel_stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_frames *rec = record_reserve(cpu, sizeof(*rec) + room);
	__u32 size = 8 * (walk->count + 2 * walk->python);

	if (!rec)
		return 0;
	rec->id = id;
	rec->tgid = task->tgid;
	rec->kernel_stack = kernel_stack;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_kernel(rec + 1, size, walk->words))
		size = 0;
	rec->frame_bytes = size;
	rec->python_count = size ? walk->python : 0;
	rec->cut = walk->cut;
	rec->reserved = 0;
	record_begin(&rec->rec, WAFFLE_REC_FRAMES, task->pid, cpu);
	rec->rec.ts = ts;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Stacks of waits are taken by the scheduler's programs, which may not be able to allocate. */
static __always_inline struct walks *walks_get(struct task_struct *task, __u64 flags)
{
	if (flags & WAFFLE_STACK_WAIT && !scheduler_allocates())
		return bpf_task_storage_get(&stack_walks, task, NULL, 0);
	return bpf_task_storage_get(&stack_walks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Returns the number of Python's frames. */
__noinline int stack_emit(__u64 id, __u64 ts, __u64 kernel_stack, __u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waffle_stack_process *process;
	__u32 tgid = task->tgid, words;
	struct walks *walks = walks_get(task, flags);
	struct storage_walk *walk;

	if (!walks) {
		if (!(flags & WAFFLE_STACK_SAMPLE))
			loss_count(1);
		return 0;
	}
	walk = flags & WAFFLE_STACK_WAIT ? &walks->of_wait : &walks->of_span;
	process = bpf_map_lookup_elem(&stack_processes, &tgid);
	if (process)
		walk->process = *process;
	else
		__builtin_memset(&walk->process, 0, sizeof(walk->process));
	walk->waits = (flags & WAFFLE_STACK_WAIT) != 0;
	walk->python = 0;
	walk->ts = ts;
	user_walk(walk, task, flags);
	if (walk->process.python.runtime)
		python_walk(walk);
	words = walk->count + 2 * walk->python;
	if (words <= 16)
		frames_copy(walk, 16 * 8, id, ts, kernel_stack);
	else if (words <= 48)
		frames_copy(walk, 48 * 8, id, ts, kernel_stack);
	else
		frames_copy(walk, 160 * 8, id, ts, kernel_stack);
	return walk->python;
}

__noinline int stack_fork(__u32 parent, __u32 child)
{
	const struct waffle_stack_process *process = bpf_map_lookup_elem(&stack_processes, &parent);
	struct waffle_stack_process same = {};

	if (!process || !process->python.runtime)
		return 0;
	same.python = process->python;
	bpf_map_update_elem(&stack_processes, &child, &same, BPF_NOEXIST);
	return 0;
}

/* A site whose stacks are requested, without a filter: see span.bpf.c. */
UPROBE(hit_stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now;

	if (!wanted(task))
		return 0;
	now = bpf_ktime_get_ns();
	hit_emit(ctx, task, now);
	return stack_emit(PT_REGS_PARM1(ctx), now, 0, WAFFLE_STACK_SITE);
}

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stacks of spans and events. Code without frame pointers is unwound in the kernel, by tables that
 * userspace makes of the files' .eh_frame (unwind.h). Python's frames are read from the
 * interpreter. Until userspace has read a file, only frame pointers are tried in it.
 */
#ifndef WAFFLE_STACK_H
#define WAFFLE_STACK_H

#include "record.h"
#include "unwind.h"

#define WAFFLE_PYTHON_THREADS_MAX 512 /* the most threads of an interpreter that are searched */

/* Offsets of the members in which CPython 3.8 and later keeps the state of its threads. They come
 * from target/process/python.c. Only threads of the main interpreter are found. */
struct waffle_python {
	__u64 runtime;           /* address of _PyRuntime; 0: no Python */
	__u32 interpreters_main; /* pyruntimestate: interpreters.main */
	__u32 threads_head;      /* PyInterpreterState: threads.head */
	__u32 thread_next;       /* PyThreadState: next */
	__u32 thread_key;        /* thread_id or native_thread_id: see stack.bpf.c */
	__u32 thread_frame;      /* current_frame, or cframe */
	__u32 cframe_frame;      /* _PyCFrame: current_frame */
	__u32 has_cframe;
	/* _PyInterpreterFrame; before 3.11 PyFrameObject */
	__u32 frame_code, frame_previous, frame_instr, frame_owner;
	/* Before 3.11, frame_instr is an index (f_lasti) in units of so many bytes instead of an
	 * address, and each call of a Python function is a call of the interpreter's loop. 0: since
	 * 3.11. */
	__u32 index_bytes;
	/* Frames with this owner or a greater one are not Python code. 0: frames have no owner. */
	__u32 owner_none;
	/* 3.11: a byte that is not 0 in the outermost frame of a call of the interpreter's loop. 0:
	 * there is none; since 3.12 a frame that is not Python code follows that one instead. */
	__u32 frame_entry;
	/* PyCodeObject */
	__u32 code_file, code_name, code_first_line, code_table, code_instructions;
	__u32 ascii_bytes;   /* size of a PyASCIIObject, which its text follows */
	__u32 compact_bytes; /* size of a PyCompactUnicodeObject, for other texts */
	__u32 version;       /* PY_VERSION_HEX; before 3.11 without the micro version; 0: unknown */
	/* For the names of threads; 0: unknown. */
	__u32 code_short_name;  /* PyCodeObject: co_name, which is not qualified */
	__u32 frame_locals;     /* of a frame: its local variables */
	__u32 type_cached_keys; /* PyHeapTypeObject: ht_cached_keys */
};

/* Offsets in objects that are the same in all versions: Include/object.h and
 * Include/cpython/object.h. */
#define WAFFLE_PYTHON_TYPE 8         /* PyObject: ob_type */
#define WAFFLE_PYTHON_TYPE_FLAGS 168 /* PyTypeObject: tp_flags */

/* Offsets in a str object: Include/cpython/unicodeobject.h. */
#define WAFFLE_PYTHON_LENGTH 16 /* characters; of a bytes object: bytes */
#define WAFFLE_PYTHON_STATE 32
#define WAFFLE_PYTHON_BYTES 32                       /* a bytes object's data */
#define WAFFLE_PYTHON_KIND(state) ((state) >> 2 & 7) /* bytes of a character */
#define WAFFLE_PYTHON_COMPACT(state) ((state) >> 5 & 1)
#define WAFFLE_PYTHON_ASCII(state) ((state) >> 6 & 1)
/* Bit of the instruction's address in a FRAMES record, which is even: the frame is the outermost
 * one of a call of the interpreter's loop. */
#define WAFFLE_PYTHON_ENTRY 1ull
/* Since Python 3.14, these bits of a reference are a tag. */
#define WAFFLE_PYTHON_MARKS 7ull

/* The data that a walk of a process's stacks needs. */
struct waffle_stack_process {
	__u32 page;     /* of its first mapping (unwind.h) */
	__u32 mappings; /* how many, in consecutive pages */
	struct waffle_python python;
};

#define WAFFLE_STACK_MAPPINGS_MAX 2048

/* A file's table, for mappings that userspace has not seen yet. */
struct waffle_stack_file {
	/* the table's base minus the address at which the file's first byte would be mapped */
	__u64 shift;
	__u32 page, pages;
};
#define WAFFLE_STACK_FILES_MAX 16384
/* In a cookie: the site's stacks are requested. */
#define WAFFLE_COOKIE_STACK (1ull << 63)

/* The methods of taking a stack. */
#define WAFFLE_STACK_SITE 1u    /* at a macro's probe, which code calls: include/waffle/arch.h */
#define WAFFLE_STACK_WAIT 4u    /* belongs to a wait or wake-up (id 0), not to a span */
#define WAFFLE_STACK_SAMPLE 16u /* with WAIT: a sample's; no loss counts if it finds no room */
#define WAFFLE_STACK_CALL 8u    /* at a function's entry: the frame pointer is still the caller's */

/* In the record of a wait or wake-up: its user stack is a FRAMES record of the same thread and
 * time. */
#define WAFFLE_STACK_BY_FRAMES 0xffffffffu

#ifdef __VMLINUX_H__
/*
 * Records the stacks of the span or event `id` of the current thread that began at `ts`. The user
 * stack is walked from where the thread entered the kernel. `kernel_stack`: a number of bpf/wait.h,
 * or 0. Returns the number of Python's frames, which take longest.
 */
int stack_emit(__u64 id, __u64 ts, __u64 kernel_stack, __u64 flags);

/* A process has forked: the child's Python is where the parent's is. */
int stack_fork(__u32 parent, __u32 child);
#endif

#endif

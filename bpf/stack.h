/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stacks of spans and events. Code without frame pointers is unwound in the kernel, by tables that
 * capture/ makes of the files' .eh_frame (unwind.h); Python's frames are read from the interpreter.
 * capture/ has to know a file first: until then only frame pointers are tried in it.
 */
#ifndef WAFFLE_STACK_H
#define WAFFLE_STACK_H

#include "record.h"
#include "unwind.h"

#define WAFFLE_PYTHON_THREADS_MAX 512 /* of an interpreter, that are looked through */

/*
 * Where CPython, 3.11 and later, keeps what its threads are doing: offsets of members, as
 * target/python.c knows them. Only threads of the main interpreter are found.
 */
struct waffle_python {
	__u64 runtime;           /* address of _PyRuntime; 0: no Python */
	__u32 interpreters_main; /* pyruntimestate: interpreters.main */
	__u32 threads_head;      /* PyInterpreterState: threads.head */
	__u32 thread_next;       /* PyThreadState: next */
	__u32 thread_key;        /* thread_id or native_thread_id: see stack.bpf.c */
	__u32 thread_frame;      /* current_frame, or cframe */
	__u32 cframe_frame;      /* _PyCFrame: current_frame */
	__u32 has_cframe;
	/* _PyInterpreterFrame */
	__u32 frame_code, frame_previous, frame_instr, frame_owner;
	__u32 owner_none; /* frames with this owner, or a greater one, are none of Python's code */
	/* PyCodeObject */
	__u32 code_file, code_name, code_first_line, code_table, code_instructions;
	__u32 ascii_bytes;   /* of a PyASCIIObject, behind which its text is */
	__u32 compact_bytes; /* of a PyCompactUnicodeObject: the same for other texts */
};

/* Of a str object: Include/cpython/unicodeobject.h. */
#define WAFFLE_PYTHON_LENGTH 16 /* characters; of a bytes object: bytes */
#define WAFFLE_PYTHON_STATE 32
#define WAFFLE_PYTHON_BYTES 32                       /* a bytes object's data */
#define WAFFLE_PYTHON_KIND(state) ((state) >> 2 & 7) /* bytes of a character */
#define WAFFLE_PYTHON_COMPACT(state) ((state) >> 5 & 1)
#define WAFFLE_PYTHON_ASCII(state) ((state) >> 6 & 1)
/* References have marks in these bits from 3.14 on. */
#define WAFFLE_PYTHON_MARKS 7ull

/* What the walk of a process's stacks needs. */
struct waffle_stack_process {
	__u32 page;     /* of its first mapping: unwind.h */
	__u32 mappings; /* how many; in pages that follow each other */
	struct waffle_python python;
};

#define WAFFLE_STACK_MAPPINGS_MAX 2048

/* A file's table, for processes that capture/ has not looked at since they mapped it. */
struct waffle_stack_file {
	__u64 shift; /* from where the file's first byte would be mapped to the table's base */
	__u32 page, pages;
};
#define WAFFLE_STACK_FILES_MAX 16384
/* In a cookie: the site's stacks are wanted. */
#define WAFFLE_COOKIE_STACK (1ull << 63)

/* How a stack is taken. */
#define WAFFLE_STACK_SITE 1u /* at a macro's probe, which is called: include/waffle/arch.h */
#define WAFFLE_STACK_NO_PYTHON 2u
#define WAFFLE_STACK_WAIT 4u /* of a wait or wake-up, not of a span: id 0 */
#define WAFFLE_STACK_CALL 8u /* as a call leaves it: the frame pointer is the caller's still */

/* In a wait's or wake-up's record: its user stack came before, as FRAMES of the same thread and
 * time. */
#define WAFFLE_STACK_BY_FRAMES 0xffffffffu

#ifdef __VMLINUX_H__
/*
 * Records the stacks of the span or event `id` of the current thread that began at `ts`, from where
 * the thread has entered the kernel. `kernel_stack` is a number of bpf/wait.h, or 0.
 */
int stack_emit(__u64 id, __u64 ts, __u64 kernel_stack, __u64 flags);

/* A process has a child: its Python is where the parent's is. */
int stack_fork(__u32 parent, __u32 child);
#endif

#endif

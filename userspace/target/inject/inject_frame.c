// SPDX-License-Identifier: Apache-2.0
/*
 * What a thread runs: a chain of calls on its own stack, each of which returns to the next.
 *
 *	lower addresses
 *	  …                 what the function uses
 *	  restorer          ← stack pointer when the function begins: it returns to rt_sigreturn() …
 *	  context 1         … which sets these registers: a call of memccpy() that restores errno
 *	  restorer          ← stack pointer then: it returns to rt_sigreturn() …
 *	  context 2         … which sets all registers and the signal mask as they were
 *	  vector registers  of context 2
 *	  errno, text
 *	  red zone          128 bytes that the program may use below its stack pointer
 *	higher addresses    the program's stack
 *
 * Contexts are those that the kernel makes when it delivers a signal (struct rt_sigframe in
 * arch/x86/include/asm/sigframe.h, struct ucontext and struct sigcontext in its uapi).
 */
#include "target/inject/inject_internal.h"

#ifdef __x86_64__

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <string.h>

/* struct ucontext of the kernel, which the libc's only resembles. */
struct inject_context {
	uint64_t flags, link;
	struct {
		uint64_t at;
		int32_t flags;
		uint64_t bytes;
	} signal_stack;
	struct sigcontext_64 machine;
	uint64_t mask;
};
_Static_assert(sizeof(struct inject_context) == 304, "as the kernel has it");

#define CONTEXT_VECTORS 1 /* UC_FP_XSTATE: they have the extended form */
#define CONTEXT_SS 6      /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
/* No mode of a signal stack, so that the thread keeps the one it has: rt_sigreturn() ignores what
 * it can't set. */
#define SIGNAL_STACK_KEEP 0x7f
#define RED_ZONE 128

/* Where XSAVE has its parts, and the software's bytes among them (struct _fpx_sw_bytes). */
#define XSAVE_SOFTWARE 464
#define XSAVE_HEADER 512
#define XSAVE_LEGACY_BYTES 512
#define XSAVE_MIN_BYTES 576
#define XSAVE_TILES (1ull << 18) /* AMX: the kernel gives room only to a thread that uses it */

/* What is laid out below the stack pointer, at its highest address first. */
struct layout {
	unsigned char *frame;
	uint64_t top, at; /* addresses in the process */
};

/* Takes bytes below what was taken. Returns their place in `frame`, or NULL. */
static void *layout_take(struct layout *layout, size_t bytes, uint64_t align)
{
	layout->at = (layout->at - bytes) & ~(align - 1);
	if (layout->top - layout->at > INJECT_FRAME_MAX)
		return NULL;
	return layout->frame + INJECT_FRAME_MAX - (layout->top - layout->at);
}

/* The bytes of XSAVE that a thread has which uses no tiles: the kernel rejects a context with more
 * than that. 0: unknown. */
static size_t vectors_default_bytes(uint64_t features)
{
	size_t most = XSAVE_MIN_BYTES;
	uint32_t size, offset, c, d;

	for (unsigned i = 2; i < 63; i++) {
		if (!(features >> i & 1) || 1ull << i == XSAVE_TILES)
			continue;
		if (!__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
			return 0;
		if (offset + size > most)
			most = offset + size;
	}
	return most;
}

/* Puts the vector registers, in the form of a context. *address: 0 if the thread has none. */
static bool vectors_put(struct layout *layout, const struct inject_thread *thread,
			uint64_t *address, bool *extended)
{
	struct _fpx_sw_bytes software = {.magic1 = FP_XSTATE_MAGIC1};
	uint64_t features, used;
	uint32_t end = FP_XSTATE_MAGIC2;
	unsigned char *place;
	size_t bytes = XSAVE_LEGACY_BYTES;

	*extended = thread->vector_bytes >= XSAVE_MIN_BYTES;
	if (*extended) {
		memcpy(&features, thread->vectors + XSAVE_SOFTWARE, sizeof(features));
		memcpy(&used, thread->vectors + XSAVE_HEADER, sizeof(used));
		bytes = used & XSAVE_TILES ? thread->vector_bytes : vectors_default_bytes(features);
		software.xfeatures = used & XSAVE_TILES ? features : features & ~XSAVE_TILES;
	}
	if (bytes < XSAVE_LEGACY_BYTES || bytes > thread->vector_bytes)
		return false;
	software.xstate_size = (uint32_t)bytes;
	software.extended_size = (uint32_t)(bytes + sizeof(end));
	place = layout_take(layout, bytes + sizeof(end), 64);
	if (!place)
		return false;
	memcpy(place, thread->vectors, bytes);
	if (*extended) {
		memcpy(place + XSAVE_SOFTWARE, &software, sizeof(software));
		memcpy(place + bytes, &end, sizeof(end));
	}
	*address = layout->at;
	return true;
}

static void context_set(struct inject_context *context, const struct user_regs_struct *registers,
			uint64_t mask)
{
	*context = (struct inject_context){
		.flags = CONTEXT_SS,
		.signal_stack.flags = SIGNAL_STACK_KEEP,
		.machine = {.r8 = registers->r8,
			    .r9 = registers->r9,
			    .r10 = registers->r10,
			    .r11 = registers->r11,
			    .r12 = registers->r12,
			    .r13 = registers->r13,
			    .r14 = registers->r14,
			    .r15 = registers->r15,
			    .di = registers->rdi,
			    .si = registers->rsi,
			    .bp = registers->rbp,
			    .bx = registers->rbx,
			    .dx = registers->rdx,
			    .ax = registers->rax,
			    .cx = registers->rcx,
			    .sp = registers->rsp,
			    .ip = registers->rip,
			    .flags = registers->eflags,
			    .cs = (uint16_t)registers->cs,
			    .ss = (uint16_t)registers->ss},
		.mask = mask,
	};
}

/* Puts a context with the return address in front of it. Returns the context, whose return address
 * is at layout->at. */
static struct inject_context *context_take(struct layout *layout, uint64_t restorer)
{
	/* A function begins with a stack pointer that is 8 more than a multiple of 16. */
	unsigned char *place = layout_take(layout, sizeof(struct inject_context) + 8, 16);

	if (!place || layout->top - (layout->at - 8) > INJECT_FRAME_MAX)
		return NULL;
	layout->at -= 8;
	place -= 8;
	memcpy(place, &restorer, sizeof(restorer));
	return (struct inject_context *)(place + 8);
}

/* A byte that is none of the four. */
static unsigned char byte_beside(const unsigned char bytes[4])
{
	unsigned char other = 0;

	while (memchr(bytes, other, 4))
		other++;
	return other;
}

/* The registers of a call that begins now. */
static struct user_regs_struct call_registers(const struct user_regs_struct *now, uint64_t function,
					      uint64_t stack)
{
	struct user_regs_struct made = *now;

	made.rip = function;
	made.rsp = stack;
	made.rbp = 0;
	made.eflags = 0x202; /* interrupts are on; direction and all else are off */
	made.orig_rax = UINT64_MAX;
	made.rax = 0;
	return made;
}

size_t inject_frame_make(unsigned char frame[INJECT_FRAME_MAX], uint64_t *at,
			 struct user_regs_struct *begin, const struct inject_thread *thread,
			 const struct inject_libc *libc, const struct inject_call *call,
			 uint64_t mask)
{
	uint64_t top = thread->registers.rsp - RED_ZONE, vectors, text_at, error_at;
	struct layout layout = {.frame = frame, .top = top, .at = top};
	size_t length = call->text ? strlen(call->text) + 1 : 0;
	struct user_regs_struct copy;
	struct inject_context *last, *first;
	unsigned char *text = layout_take(&layout, length, 8), *error;
	bool extended;

	text_at = layout.at;
	error = layout_take(&layout, sizeof(thread->error), 8);
	error_at = layout.at;
	if (!text || !error || !vectors_put(&layout, thread, &vectors, &extended))
		return 0;
	if (length)
		memcpy(text, call->text, length);
	memcpy(error, &thread->error, sizeof(thread->error));
	last = context_take(&layout, libc->restorer);
	if (!last)
		return 0;
	context_set(last, &thread->registers, thread->mask);
	last->flags |= extended ? CONTEXT_VECTORS : 0;
	last->machine.fpstate = vectors;
	copy = call_registers(&thread->registers, libc->copy, layout.at);
	copy.rdi = thread->registers.fs_base + libc->errno_at;
	copy.rsi = error_at;
	copy.rdx = byte_beside(error);
	copy.rcx = sizeof(thread->error);
	first = context_take(&layout, libc->restorer);
	if (!first)
		return 0;
	context_set(first, &copy, mask);
	*begin = call_registers(&thread->registers, call->function, layout.at);
	begin->rdi = call->text ? text_at : call->first;
	begin->rsi = call->second;
	*at = layout.at;
	/* What is used is the end of `frame`. */
	memmove(frame, frame + INJECT_FRAME_MAX - (top - layout.at), top - layout.at);
	return top - layout.at;
}

#endif

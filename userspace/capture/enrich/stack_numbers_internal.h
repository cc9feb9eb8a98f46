/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the stacks of records to the capture, each once, and gives each record the file's numbers
 * of its stacks in place of the kernel's.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_STACK_NUMBERS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_STACK_NUMBERS_INTERNAL_H

#include "capture/address_space/address_spaces.h"
#include "capture/enrich/stacks_internal.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct stack_numbers;

struct stack_numbers_uses {
	const struct kernel *kernel;
	struct store_writer *writer;
	struct address_spaces *spaces;
	struct stacks *stacks; /* NULL: frames of Python and Java are not named */
};

/* On failure, too, *numbers is to be closed. */
int stack_numbers_open(struct stack_numbers **numbers, const struct stack_numbers_uses *uses,
		       struct error *err);
void stack_numbers_close(struct stack_numbers *numbers);

/* Keeps the stack of a TRACE record, to which later records refer by its number. -EINVAL: the file
 * has no room for it, so the record counts as lost. */
int stack_numbers_trace(struct stack_numbers *numbers, const struct waffle_rec *rec,
			struct error *err);
/* Converts the kernel's FRAMES record to the file's STACK in place. The user stack of a wait (id 0)
 * is kept for the record of the wait. */
int stack_numbers_frames(struct stack_numbers *numbers, struct waffle_rec *rec, struct error *err);
/* Replaces the numbers of a wait or wake-up of thread `tid` whose stacks were taken at `ts`. */
void stack_numbers_replace(struct stack_numbers *numbers, uint32_t tid, uint64_t ts,
			   uint32_t *kernel_number, uint32_t *user_number);
/* Whether a kernel stack, by the file's number, is that of an interrupt. 0: no stack. */
bool stack_numbers_is_interrupt(const struct stack_numbers *numbers, uint32_t number);
/* Forgets stacks that a flight recorder no longer needs. */
void stack_numbers_sweep(struct stack_numbers *numbers);
/* The thread has ended. */
void stack_numbers_forget(struct stack_numbers *numbers, uint32_t tid);

/* Number of recorded stacks that are not in the file: its table was full, or too many others
 * arrived while a thread waited. */
uint64_t stack_numbers_left_out(const struct stack_numbers *numbers);
/* Number of stacks whose records came after those that refer to them, although BPF programs give
 * them earlier times (bpf/wait.h: TRACE_AHEAD_NS): a CPU stood still between the reading of the
 * clock and the record. */
uint64_t stack_numbers_late(const struct stack_numbers *numbers);

#endif

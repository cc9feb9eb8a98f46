// SPDX-License-Identifier: Apache-2.0
/*
 * Calls all kinds of probes without a tracer, as a span does that is open when the tracer leaves.
 * The program raises its semaphores itself: they are in a section that was given a name of which
 * the linker knows begin and end.
 *
 *	landing            guards its code (BTI), so that calls must arrive at a landing pad
 *	landing unguarded  the same, and then makes a call that does not: this shows the guard
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "waffle.h"

#define PROT_BTI_AARCH64 0x10
#define PAGE 4096ul

extern uint16_t __start_raised[], __stop_raised[];
extern char __executable_start[], etext[];

static int pass(long n)
{
	WAFFLE_SPAN("span", KV_I64("n", n), KV_STR("text", "text"));
	WAFFLE_END(WAFFLE_BEGIN("begun", KV_I64("n", n)));
	WAFFLE_COUNTER("counter", n);
	return WAFFLE_EVENT("event", KV_I64("n", n)).value != 0;
}

/* A function without a landing pad. */
__asm__(".text\n.globl without_landing\n.balign 4\nwithout_landing: nop\n\tret\n");
extern void without_landing(void);

int main(int argc, char **argv)
{
	uintptr_t begin = (uintptr_t)__executable_start & ~(PAGE - 1);
	void (*volatile call)(void) = without_landing;
	int dormant = pass(1), armed;

	(void)argv;
	for (uint16_t *s = __start_raised; s < __stop_raised; s++)
		*(volatile uint16_t *)s = 1;
	if (mprotect((void *)begin, (uintptr_t)etext - begin,
		     PROT_READ | PROT_EXEC | PROT_BTI_AARCH64)) {
		perror("mprotect");
		return 1;
	}
	armed = pass(2);
	if (argc > 1)
		call();
	dprintf(1, "dormant %d armed %d\n", dormant, armed);
	_exit(0); /* the C library's part of this code has no landing pads */
}

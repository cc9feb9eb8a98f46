// SPDX-License-Identifier: Apache-2.0
/* Leaves stack frames without returning: by coroutines with stacks of their own, and by longjmp().
 * Its output shows whether control went to the right places. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define WHOLE __attribute__((noipa))
#define TASKS 5

int task_step(int task, int step), scheduler_run(int step), jump_over(int n), jump_catch(int n);

static struct task {
	ucontext_t context;
	char stack[64 << 10];
	long sum;
} tasks[TASKS];
static ucontext_t scheduler;
static jmp_buf back;

/* It continues after others have run. */
WHOLE int task_step(int task, int step)
{
	tasks[task].sum += task * 100 + step;
	swapcontext(&tasks[task].context, &scheduler);
	return task + step;
}

static void task_run(int task)
{
	for (int step = 0; step < 10; step++)
		tasks[task].sum += task_step(task, step);
}

WHOLE int scheduler_run(int step)
{
	for (int i = 0; i < TASKS; i++)
		swapcontext(&scheduler, &tasks[(i + step) % TASKS].context);
	return step;
}

static WHOLE void leave(int really)
{
	if (really)
		longjmp(back, 7);
}

WHOLE int jump_over(int n)
{
	leave(1);
	return n;
}

WHOLE int jump_catch(int n)
{
	int jumped = setjmp(back);

	return jumped ? jumped + n : jump_over(n);
}

int main(void)
{
	static long sum;

	for (int i = 0; i < TASKS; i++) {
		getcontext(&tasks[i].context);
		tasks[i].context.uc_stack.ss_sp = tasks[i].stack;
		tasks[i].context.uc_stack.ss_size = sizeof(tasks[i].stack);
		tasks[i].context.uc_link = &scheduler;
		makecontext(&tasks[i].context, (void (*)(void))task_run, 1, i);
	}
	for (int step = 0; step < 10; step++)
		sum += scheduler_run(step);
	for (int i = 0; i < TASKS; i++)
		printf("task %ld\n", tasks[i].sum);
	for (int n = 0; n < 20; n++)
		sum += jump_catch(n % 5);
	printf("sum %ld\n", sum);
	return 0;
}

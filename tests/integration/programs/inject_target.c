// SPDX-License-Identifier: Apache-2.0
/*
 * A program into which a library is loaded while it runs. Its main thread waits in a system call,
 * in a loop, and checks that all registers, errno and the signal mask are the same after it. All
 * other threads allocate memory all the time. So the main thread is the one that is interrupted.
 *
 *	inject_target CALL THREADS
 *
 * CALL is poll, epoll, sleep, futex or read. A line on standard input is answered by "rounds N";
 * the end of it ends the program. It also counts the signals that it sends to itself while it
 * waits.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop;
static atomic_long rounds, handled;
static bool signals;

static void *allocate(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed;
	void *kept[64] = {NULL};

	while (!stop) {
		unsigned at = rand_r(&state) % 64;

		free(kept[at]);
		kept[at] = malloc(rand_r(&state) % 100000);
		if (!kept[at])
			abort();
	}
	for (int i = 0; i < 64; i++)
		free(kept[i]);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	handled++;
}

/* The system call in which the loop waits. */
static long arguments[6];
static long number;

static uint32_t word;
static struct timespec time_of_wait = {0, 200000000}, until;
static struct epoll_event event;

static void choose(const char *call)
{
	static struct pollfd none = {-1, POLLIN, 0};

	signals = !strcmp(call, "signals");
	if (!strcmp(call, "poll") || signals) {
		number = SYS_poll;
		arguments[0] = (long)&none;
		arguments[1] = 1;
		arguments[2] = 200;
	} else if (!strcmp(call, "epoll")) {
		number = SYS_epoll_wait;
		arguments[0] = epoll_create1(0);
		arguments[1] = (long)&event;
		arguments[2] = 1;
		arguments[3] = 200;
	} else if (!strcmp(call, "sleep")) {
		number = SYS_clock_nanosleep;
		arguments[0] = CLOCK_MONOTONIC;
		arguments[2] = (long)&time_of_wait;
	} else if (!strcmp(call, "futex")) {
		number = SYS_futex;
		arguments[0] = (long)&word;
		arguments[1] = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
		arguments[3] = (long)&until;
		arguments[5] = -1;
	}
}

/* The result of the system call if no signal interrupts it. */
static long result_of(const char *call)
{
	return strcmp(call, "futex") ? 0 : -ETIMEDOUT;
}

/* A wait in a system call with known values in all registers: those that a call keeps are compared
 * after it. Returns its result, or ends the program. */
static long wait_in_call(void)
{
	static uint64_t vectors[16][4], after[16][4], kept[7];
	long result;

	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 4; j++)
			vectors[i][j] = (uint64_t)rand() << 32 | (unsigned)rand();
	__asm__ volatile(
		"push %%rbp\n\tpush %%rbx\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n"
		"\tmov %[vectors], %%rcx\n"
#define LOAD(n) "\tvmovdqu " #n "*32(%%rcx), %%ymm" #n "\n"
		LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7) LOAD(8) LOAD(9)
			LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14)
				LOAD(15) "\tmov %[arguments], %%rax\n"
					 "\tmov 0(%%rax), %%rdi\n\tmov 8(%%rax), %%rsi\n\tmov "
					 "16(%%rax), %%rdx\n"
					 "\tmov 24(%%rax), %%r10\n\tmov 32(%%rax), %%r8\n\tmov "
					 "40(%%rax), %%r9\n"
					 "\tmov $0x1111, %%ebx\n\tmov $0x2222, %%ebp\n\tmov "
					 "$0x3333, %%r12d\n"
					 "\tmov $0x4444, %%r13d\n\tmov $0x5555, %%r14d\n\tmov "
					 "$0x6666, %%r15d\n"
					 "\tmovq $0x77777777, -8(%%rsp)\n\tmovq $0x78787878, "
					 "-128(%%rsp)\n" /* the red zone */
					 "\tmov %[number], %%rax\n\tsyscall\n"
					 "\tlea %[kept], %%rcx\n"
					 "\tmov %%rbx, 0(%%rcx)\n\tmov %%rbp, 8(%%rcx)\n\tmov "
					 "%%r12, 16(%%rcx)\n"
					 "\tmov %%r13, 24(%%rcx)\n\tmov %%r14, 32(%%rcx)\n\tmov "
					 "%%r15, 40(%%rcx)\n"
					 "\tmov -8(%%rsp), %%rdx\n\tadd -128(%%rsp), %%rdx\n\tmov "
					 "%%rdx, 48(%%rcx)\n"
					 "\tlea %[after], %%rcx\n"
#define STORE(n) "\tvmovdqu %%ymm" #n ", " #n "*32(%%rcx)\n"
		STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7) STORE(8)
			STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14)
				STORE(15) "\tpop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop "
					  "%%r12\n\tpop %%rbx\n\tpop %%rbp\n"
		: "=&a"(result), [kept] "=m"(kept), [after] "=m"(after)
		: [vectors] "r"(&vectors[0][0]), [arguments] "r"(arguments), [number] "m"(number)
		: "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "memory", "ymm0", "ymm1",
		  "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11",
		  "ymm12", "ymm13", "ymm14", "ymm15");
	if (memcmp(vectors, after, sizeof(vectors)))
		exit(3);
	if (kept[0] != 0x1111 || kept[1] != 0x2222 || kept[2] != 0x3333 || kept[3] != 0x4444 ||
	    kept[4] != 0x5555 || kept[5] != 0x6666 || kept[6] != 0x77777777ul + 0x78787878ul)
		exit(4);
	return result;
}

static void *wait_and_check(const char *call)
{
	sigset_t before, after;
	long result;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (!stop) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 200000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		errno = 1234;
		result = wait_in_call();
		if (errno != 1234)
			exit(5);
		if (result != result_of(call) && !(signals && result == -EINTR)) {
			fprintf(stderr, "%s: %ld\n", call, result);
			exit(6);
		}
		pthread_sigmask(SIG_SETMASK, NULL, &after);
		if (memcmp(&before, &after, sizeof(long)))
			exit(7);
		rounds++;
	}
	return NULL;
}

/* Answers lines, without ever waiting in a system call itself. */
static void *answer(void *unused)
{
	char byte;
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};

	(void)unused;
	for (;;) {
		if (poll(&in, 1, 0) <= 0) {
			sched_yield();
			continue;
		}
		if (read(STDIN_FILENO, &byte, 1) <= 0)
			break;
		if (byte == '\n') {
			if (signals)
				printf("handled %ld\n", atomic_load(&handled));
			else
				printf("rounds %ld\n", atomic_load(&rounds));
			fflush(stdout);
		}
	}
	stop = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t all[64], answers;

	signal(SIGUSR1, on_signal);
	choose(argc > 1 ? argv[1] : "poll");
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, allocate, (void *)(uintptr_t)i);
	pthread_create(&answers, NULL, answer, NULL);
	printf("ready\n");
	fflush(stdout);
	wait_and_check(argc > 1 ? argv[1] : "poll");
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	pthread_join(answers, NULL);
	printf("end\n");
	return 0;
}

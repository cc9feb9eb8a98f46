// SPDX-License-Identifier: Apache-2.0
/* Finds a thread that can be interrupted, and makes it call a function (inject.h). */
#include "target/inject/inject_internal.h"

#ifdef __x86_64__

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define FIND_NS 5000000000ull  /* until a thread is found */
#define STOP_NS 3000000000ull  /* until it has stopped */
#define CALL_NS 10000000000ull /* until the function has returned */
#define PAUSE_NS 2000000
/* A thread that sleeps for less may hold a lock meanwhile, as allocators do that wait for one. */
#define SLEEP_MIN_NS 5000000
/* Stack that is searched for the frame of a signal handler. */
#define STACK_SEARCH_BYTES (256u << 10)

/* Of glibc's struct pthread, which begins at the thread pointer and ends close to the end of the
 * stack; larger ones are those to come. */
#define DESCRIPTOR_WORDS 512
#define DESCRIPTOR_MAX (16u << 10)

/* Signals that a thread can block. */
#define MASK_ALL (~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)))

static void pause_short(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Reads a small file of a thread. False: it is gone. */
static bool thread_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fread(text, 1, size - 1, file);
	text[got] = '\0';
	fclose(file);
	return got > 0;
}

/* The signals that a thread blocks. False: it is gone. */
static bool mask_read(pid_t pid, pid_t tid, uint64_t *mask)
{
	char text[4096];
	const char *line;

	if (!thread_file(pid, tid, "status", text, sizeof(text)))
		return false;
	line = strstr(text, "\nSigBlk:");
	*mask = line ? strtoull(line + 8, NULL, 16) : 0;
	return line != NULL;
}

/* ---- whether a thread is suitable ---- */

/* Whether a descriptor is one for which a thread sleeps, and no file of a slow file system. */
static bool is_stream(pid_t pid, uint64_t fd)
{
	static const char *const kinds[] = {"pipe:[", "socket:[", "anon_inode:", "/dev/pts/",
					    "/dev/tty"};
	char path[64], target[256];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%llu", pid, (unsigned long long)fd);
	length = readlink(path, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(target, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

static bool is_long_sleep(const struct image *image, uint64_t request)
{
	struct timespec time;

	return image_read(image, request, &time, sizeof(time)) &&
	       (time.tv_sec > 0 || time.tv_nsec >= SLEEP_MIN_NS);
}

/* Whether it waits in a system call in which it can be interrupted. */
static bool call_is_safe(pid_t pid, const struct image *image, uint64_t number,
			 const uint64_t arguments[6])
{
	if (!inject_call_is_safe(number, arguments))
		return false;
	if (number == SYS_read)
		return is_stream(pid, arguments[0]);
	if (number == SYS_nanosleep)
		return is_long_sleep(image, arguments[0]);
	if (number == SYS_clock_nanosleep && !(arguments[1] & TIMER_ABSTIME))
		return is_long_sleep(image, arguments[2]);
	return true;
}

/* The mapping of a thread's stack. NULL: there is none. */
static const struct mapping *stack_find(const struct mappings *mappings, uint64_t pointer)
{
	for (size_t i = 0; i < mappings->list.len; i++)
		if (mappings->list.data[i].start <= pointer && pointer < mappings->list.data[i].end)
			return mappings->list.data[i].writable ? &mappings->list.data[i] : NULL;
	return NULL;
}

/* Whether the mapping has room below the pointer. That of the main thread grows. */
static bool stack_has_room(pid_t pid, const struct mapping *stack, uint64_t pointer)
{
	struct rlimit limit;

	if (pointer - stack->start >= INJECT_STACK_MIN)
		return true;
	if (strcmp(stack->path, "[stack]") || pointer - stack->start < INJECT_FRAME_MAX + 4096 ||
	    prlimit(pid, RLIMIT_STACK, NULL, &limit))
		return false;
	return limit.rlim_cur == RLIM_INFINITY ||
	       limit.rlim_cur > stack->end - pointer + INJECT_STACK_MIN;
}

/*
 * Whether the pointer is on the stack that the thread was made with, with room below it. Coroutines
 * and goroutines have small stacks of their own, below which is other data of the program.
 *
 * struct pthread has the lowest address of the stack, its size, and that of its guard, one after
 * the other. Where they are depends on the version.
 */
static bool stack_is_own(const struct image *image, const struct mapping *stack, uint64_t pointer,
			 uint64_t descriptor)
{
	uint64_t words[DESCRIPTOR_WORDS];
	size_t count = image_read_some(image, descriptor, words, sizeof(words)) / sizeof(*words);

	if (!strcmp(stack->path, "[stack]"))
		return true;
	for (size_t i = 0; i + 2 < count; i++) {
		uint64_t lowest = words[i], size = words[i + 1], guard = words[i + 2];
		uint64_t end = lowest + size;

		if (guard < size && lowest + guard >= stack->start && lowest + guard < pointer &&
		    pointer < descriptor && descriptor < end && end - descriptor <= DESCRIPTOR_MAX)
			return pointer - lowest - guard >= INJECT_STACK_MIN;
	}
	return false;
}

/*
 * Whether the thread may be in a signal handler, which has perhaps interrupted an allocator: the
 * handler returns to the restorer. An old address may also lie there by chance.
 */
static bool stack_has_handler(const struct image *image, const struct mapping *stack,
			      uint64_t pointer, uint64_t restorer)
{
	size_t left = stack->end - pointer;
	size_t bytes = left < STACK_SEARCH_BYTES ? left : STACK_SEARCH_BYTES;
	uint64_t *words = malloc(bytes);
	size_t got = words ? image_read_some(image, pointer, words, bytes) : 0;
	bool found = got < bytes;

	for (size_t i = 0; i < got / sizeof(*words) && !found; i++)
		found = words[i] == restorer;
	free(words);
	return found;
}

/* Whether a thread waits where it can be interrupted, by what /proc shows of it. */
static bool thread_may_do(pid_t pid, pid_t tid, const struct image *image,
			  const struct mappings *mappings, uint64_t restorer)
{
	unsigned long long a[6], pointer, code, number;
	uint64_t arguments[6], mask;
	const struct mapping *stack;
	char text[256];

	/* "running", or a number of -1 for a thread that waits outside of system calls. */
	if (!thread_file(pid, tid, "syscall", text, sizeof(text)) ||
	    sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx %llx", &number, &a[0], &a[1],
		   &a[2], &a[3], &a[4], &a[5], &pointer, &code) != 9)
		return false;
	for (int i = 0; i < 6; i++)
		arguments[i] = a[i];
	stack = stack_find(mappings, pointer);
	return call_is_safe(pid, image, number, arguments) && stack &&
	       stack_has_room(pid, stack, pointer) &&
	       !stack_has_handler(image, stack, pointer, restorer) && mask_read(pid, tid, &mask) &&
	       mask != MASK_ALL;
}

/* ---- stopping it ---- */

/* Stops a thread. False: it is gone, traced by another, goes on, or has not stopped yet. */
static bool thread_stop(pid_t tid)
{
	uint64_t end = clock_monotonic_ns() + STOP_NS;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return false;
	while (clock_monotonic_ns() < end) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 || (got && !WIFSTOPPED(status)))
			return false; /* it has ended */
		if (!got) {
			pause_short();
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
			return true;
		if (status >> 16) { /* it stops with its process */
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
			return false;
		}
		/* A signal came first. */
		ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(status));
	}
	/* Only a thread that has stopped can be detached. This one is when this process ends. */
	return false;
}

/* Reads the registers with which the thread makes the interrupted call again. False: it was in none
 * in which it can be interrupted. */
static bool thread_rewind(struct user_regs_struct *registers, pid_t tid, const struct image *image)
{
	static const unsigned char call[] = {0x0f, 0x05};
	unsigned char code[sizeof(call)];

	if (ptrace(PTRACE_GETREGS, tid, NULL, registers) || !inject_call_rewind(registers) ||
	    !image_read(image, registers->rip, code, sizeof(code)) ||
	    memcmp(code, call, sizeof(call)))
		return false;
	registers->orig_rax = UINT64_MAX; /* so that the kernel does not do it, too */
	return true;
}

/* Whether it still waits where it can be interrupted, by its registers. */
static bool thread_still_may(const struct user_regs_struct *registers, pid_t pid,
			     const struct image *image, const struct mappings *mappings,
			     uint64_t restorer)
{
	const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
				       registers->r10, registers->r8,  registers->r9};
	const struct mapping *stack = stack_find(mappings, registers->rsp);

	return call_is_safe(pid, image, registers->rax, arguments) && stack &&
	       stack_has_room(pid, stack, registers->rsp) &&
	       stack_is_own(image, stack, registers->rsp, registers->fs_base) &&
	       !stack_has_handler(image, stack, registers->rsp, restorer);
}

/* Reads what else is restored later. False: the thread can't be interrupted after all. */
static bool thread_read(struct inject_thread *thread, pid_t tid, const struct image *image,
			const struct inject_libc *libc)
{
	struct iovec vectors = {thread->vectors, sizeof(thread->vectors)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &vectors) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(thread->mask), &thread->mask) ||
	    !image_read(image, thread->registers.fs_base + libc->errno_at, &thread->error,
			sizeof(thread->error)))
		return false;
	thread->vector_bytes = vectors.iov_len;
	return thread->mask != MASK_ALL;
}

static bool memory_write(pid_t pid, uint64_t at, const void *bytes, size_t count)
{
	struct iovec from = {(void *)(uintptr_t)bytes, count}, to = {(void *)(uintptr_t)at, count};

	return process_vm_writev(pid, &from, 1, &to, 1, 0) == (ssize_t)count;
}

/* Makes a stopped thread begin the call. The order matters if waffle-bpf is killed in between: with
 * the registers alone, the thread does all of it, and only its signals come too early. */
static bool thread_begin(pid_t pid, pid_t tid, const struct inject_thread *thread,
			 const struct inject_libc *libc, const struct inject_call *call)
{
	unsigned char *frame = malloc(INJECT_FRAME_MAX);
	struct user_regs_struct begin;
	uint64_t at, mask = MASK_ALL;
	size_t bytes = frame ? inject_frame_make(frame, &at, &begin, thread, libc, call, mask) : 0;
	bool done = bytes && memory_write(pid, at, frame, bytes) &&
		    !ptrace(PTRACE_SETREGS, tid, NULL, &begin);

	if (done)
		ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask);
	free(frame);
	return done;
}

/* Makes a thread begin the call if it still can be interrupted. */
static bool thread_try(pid_t pid, pid_t tid, const struct image *image,
		       const struct mappings *mappings, const struct inject_libc *libc,
		       const struct inject_call *call)
{
	struct inject_thread thread;
	bool done = false;

	if (!thread_may_do(pid, tid, image, mappings, libc->restorer) || !thread_stop(tid))
		return false;
	/* In between it may have gone into another call. */
	if (thread_rewind(&thread.registers, tid, image)) {
		done = thread_still_may(&thread.registers, pid, image, mappings, libc->restorer) &&
		       thread_read(&thread, tid, image, libc) &&
		       thread_begin(pid, tid, &thread, libc, call);
		/* Without that, epoll_wait() would tell the program that it was interrupted. */
		if (!done)
			ptrace(PTRACE_SETREGS, tid, NULL, &thread.registers);
	}
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return done;
}

/* ---- the call ---- */

/* Tries all threads. Returns the one that has begun the call; 0: none. */
static pid_t threads_try(pid_t pid, const struct image *image, const struct inject_libc *libc,
			 const struct inject_call *call)
{
	struct mappings mappings;
	struct error ignored = ERROR_INIT;
	char path[32];
	struct dirent *entry;
	pid_t done = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks || process_mappings_all(&mappings, pid, &ignored)) {
		if (tasks)
			closedir(tasks);
		return 0;
	}
	while (!done && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && thread_try(pid, tid, image, &mappings, libc, call))
			done = tid;
	}
	mappings_free(&mappings);
	closedir(tasks);
	return done;
}

/* Waits until the thread has its signal mask again. */
static int call_wait(pid_t pid, pid_t tid, struct error *err)
{
	uint64_t end = clock_monotonic_ns() + CALL_NS, mask;

	while (clock_monotonic_ns() < end) {
		if (!mask_read(pid, tid, &mask))
			return error_set(err, ESRCH, "process %d has ended, or its thread %d", pid,
					 tid);
		if (mask != MASK_ALL)
			return 0;
		pause_short();
	}
	return error_set(err, EINPROGRESS,
			 "thread %d of process %d has not finished within 10 s; it goes on by "
			 "itself when its loader lets it",
			 tid, pid);
}

int inject_run(pid_t pid, const struct image *image, const struct inject_libc *libc,
	       const struct inject_call *call, struct error *err)
{
	uint64_t end = clock_monotonic_ns() + FIND_NS;
	pid_t tid = 0;

	while (!tid && clock_monotonic_ns() < end) {
		if (!image_is_there(image))
			return error_set(err, ESRCH, "process %d has ended", pid);
		tid = threads_try(pid, image, libc, call);
		if (!tid)
			pause_short();
	}
	if (!tid)
		return error_set(
			err, EBUSY,
			"none of its threads waits in a system call in which it can be "
			"interrupted; try again, or start the program with waffle-bpf run");
	return call_wait(pid, tid, err);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own log of its calls, to compare with a tracer's results. Each call is one line of
 * JSON, in the order of their returns. It has the name, the thread, the times of begin and return,
 * and the arguments, named as in the tables of userspace/call.
 */
#ifndef SIM_LOG_H
#define SIM_LOG_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static FILE *log_file;

static inline uint64_t log_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void log_open(const char *path)
{
	log_file = fopen(path, "we");
	if (!log_file) {
		perror(path);
		exit(1);
	}
}

__attribute__((format(printf, 5, 6))) static inline void log_call(const char *call,
								  uint64_t begin_ns,
								  uint64_t end_ns, int result,
								  const char *arguments, ...)
{
	char text[1024];
	va_list list;

	if (!log_file)
		return;
	va_start(list, arguments);
	vsnprintf(text, sizeof(text), arguments, list);
	va_end(list);
	flockfile(log_file);
	fprintf(log_file,
		"{\"call\": \"%s\", \"tid\": %ld, \"begin\": %" PRIu64 ", \"end\": %" PRIu64
		", \"result\": %d%s%s}\n",
		call, syscall(SYS_gettid), begin_ns, end_ns, result, *text ? ", " : "", text);
	funlockfile(log_file);
}

/*
 * LOGGED(cudaStreamSynchronize, (stream), "\"stream\": %lu", (uintptr_t)stream) calls the function,
 * logs the call and yields its result.
 */
#define LOGGED(function, arguments, ...)                                                           \
	({                                                                                         \
		uint64_t logged_begin = log_now_ns();                                              \
		int logged_result = (int)function arguments;                                       \
                                                                                                   \
		log_call(#function, logged_begin, log_now_ns(), logged_result, __VA_ARGS__);       \
		logged_result;                                                                     \
	})

/*
 * The hash that identifies a communicator on all of its ranks. No function of NCCL returns it; the
 * stand-in has it at the same offset as 2.28.9.
 */
static inline uint64_t comm_hash(const void *comm)
{
	return comm ? *(const uint64_t *)((const char *)comm + 0x1044c8) : 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures for the tests of why. Threads 10 to 49 belong to the target, the others are neighbours.
 * All wait with system calls of x86-64.
 */
#ifndef WAFFLE_TEST_WHY_CAPTURE_H
#define WAFFLE_TEST_WHY_CAPTURE_H

#include "analyze/why/why.h"
#include "model_capture.h"
#include "render/text/why_text.h"

enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_POLL = 7,
	NR_IOCTL = 16,
	NR_NANOSLEEP = 35,
	NR_CONNECT = 42,
	NR_ACCEPT = 43,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_WAIT4 = 61,
	NR_FLOCK = 73,
	NR_FSYNC = 74,
	NR_FUTEX = 202,
	NR_IO_GETEVENTS = 208,
	NR_IO_SUBMIT = 209,
	NR_EPOLL_WAIT = 232,
	NR_OPENAT = 257,
	NR_IO_URING_ENTER = 426,
	NR_NONE = -1,
};

#define FUTEX_MUTEX 0x80 /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG; with value 2 */
#define FUTEX_COND 0x89  /* FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG */

#define S WAFFLE_TASK_INTERRUPTIBLE
#define D WAFFLE_TASK_UNINTERRUPTIBLE
#define HARD WAFFLE_SWITCH_WAKER_HARDIRQ
#define SOFT WAFFLE_SWITCH_WAKER_SOFTIRQ

static inline bool is_traced(uint32_t tid)
{
	return tid >= 10 && tid < 50;
}

static inline uint8_t sides(uint32_t prev, uint32_t next)
{
	return (uint8_t)((is_traced(prev) ? WAFFLE_SWITCH_PREV_TRACED : 0) |
			 (is_traced(next) ? WAFFLE_SWITCH_NEXT_TRACED : 0));
}

/* `tid` waits in a system call and leaves the CPU to `next`. */
static inline void waits(struct capture *capture, uint64_t ts, uint16_t cpu, uint32_t tid,
			 uint32_t next, uint16_t state, int syscall, uint64_t a, uint64_t b,
			 uint64_t c)
{
	struct waffle_rec_switch rec = {.rec = {ts, tid, WAFFLE_REC_SWITCH, cpu},
					.next_tid = next,
					.prev_state = state,
					.flags = sides(tid, next),
					.syscall = syscall,
					.args = {a, b, c}};

	capture_add(capture, &rec);
}

/* For gets(): the thread came from another CPU while it was runnable. */
#define MOVED WAFFLE_SWITCH_STAYED

/* `tid`, woken at wake_ts, gets the CPU that `prev` leaves: idle, or preempted. */
static inline void gets(struct capture *capture, uint64_t ts, uint16_t cpu, uint32_t prev,
			uint32_t tid, uint32_t waker, uint64_t wake_ts, unsigned flags)
{
	struct waffle_rec_switch rec = {.rec = {ts, prev, WAFFLE_REC_SWITCH, cpu},
					.next_tid = tid,
					.waker_tid = waker,
					.wake_ts = wake_ts,
					.flags = (uint8_t)(sides(prev, tid) |
							   (flags ^ WAFFLE_SWITCH_STAYED) |
							   (wake_ts ? WAFFLE_SWITCH_WOKEN : 0) |
							   (prev ? WAFFLE_SWITCH_PREEMPTED : 0)),
					.syscall = -1};

	capture_add(capture, &rec);
}

static inline void named_as(struct capture *capture, uint32_t tid, uint32_t pid, const char *comm,
			    uint32_t flags)
{
	struct waffle_rec_task rec = {.rec = {CAPTURE_START, tid, WAFFLE_REC_TASK, 0},
				      .tgid = pid,
				      .flags = flags,
				      .start_ts = 1};

	strncpy(rec.comm, comm, sizeof(rec.comm) - 1);
	capture_add(capture, &rec);
}

static inline void named(struct capture *capture, uint32_t tid, uint32_t pid, const char *comm)
{
	named_as(capture, tid, pid, comm, is_traced(tid) ? WAFFLE_TASK_TRACED_FLAG : 0);
}

/* Records the details of a thread's wait from from_ts to ts. */
static inline void wait_details(struct capture *capture, uint64_t from_ts, uint64_t ts,
				uint32_t tid, uint32_t object, uint32_t kernel_stack,
				uint64_t address)
{
	struct waffle_rec_wait rec = {.rec = {ts, tid, WAFFLE_REC_WAIT, 0},
				      .from_ts = from_ts,
				      .object = object,
				      .kernel_stack = kernel_stack,
				      .address = address};

	capture_add(capture, &rec);
}

static inline void wake_details(struct capture *capture, uint64_t ts, uint32_t waker,
				uint32_t woken, uint32_t kernel_stack, uint32_t flags)
{
	struct waffle_rec_wake rec = {.rec = {ts, waker, WAFFLE_REC_WAKE, 0},
				      .woken_tid = woken,
				      .flags = flags,
				      .kernel_stack = kernel_stack};

	capture_add(capture, &rec);
}

static inline void io_done(struct capture *capture, uint64_t issue_ts, uint64_t ts, uint32_t tid,
			   uint32_t flags)
{
	struct waffle_rec_io rec = {.rec = {ts, tid, WAFFLE_REC_IO, 0},
				    .issue_ts = issue_ts,
				    .bytes = 4096,
				    .dev = 8,
				    .flags = flags};

	capture_add(capture, &rec);
}

/* Adds an object; the first one is number 1. */
static inline void object(struct capture *capture, const char *name, const char *detail)
{
	struct store_object add = {.pid = CAPTURE_PID, .name = name, .detail = detail};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_object(capture->writer, &add, &err), err);
}

/* Adds a file, numbered like other objects, on a device such as 8, that of io_done(). */
static inline void file_on(struct capture *capture, const char *name, uint32_t dev)
{
	struct store_object add = {
		.ino = 77, .dev = dev, .pid = CAPTURE_PID, .name = name, .detail = "ext4"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_object(capture->writer, &add, &err), err);
}

/* Adds a kernel stack of functions from `address` on, innermost first. The first stack is number 1.
 */
static inline void kernel_stack_of(struct capture *capture, uint64_t address,
				   const char *const *functions, uint32_t count)
{
	uint64_t addresses[8];
	struct store_stack stack = {.addresses = addresses, .count = count};
	struct error err = ERROR_INIT;

	for (uint32_t i = 0; i < count; i++) {
		struct store_symbol symbol = {.address = address + i, .name = functions[i]};

		addresses[i] = address + i;
		capture_must(store_writer_add_symbol(capture->writer, &symbol, &err), err);
	}
	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static inline void kernel_stack(struct capture *capture, uint64_t address, const char *function)
{
	kernel_stack_of(capture, address, &function, 1);
}

static inline void mapping_at(struct capture *capture, uint64_t ts, uint64_t start, uint64_t end,
			      const char *path)
{
	struct store_mapping add = {
		.ts = ts, .start = start, .end = end, .pid = CAPTURE_PID, .path = path};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_mapping(capture->writer, &add, &err), err);
}

static inline void mapping(struct capture *capture, uint64_t start, uint64_t end, const char *path)
{
	mapping_at(capture, CAPTURE_START, start, end, path);
}

/* ---- answers ---- */

static inline void check_chain(const struct why *why, const struct why_instance *instance,
			       const struct why_part *part)
{
	uint64_t from_ts = instance->from_ts, to_ts = instance->to_ts;

	assert_in_range(part->step_count, 1, 33);
	for (uint32_t i = 0; i < part->step_count; i++) {
		const struct why_step *step = &why->steps.data[part->step + i];

		assert_true(step->from_ts >= from_ts && step->to_ts <= to_ts);
		assert_true(step->from_ts < step->to_ts);
		from_ts = step->from_ts;
		to_ts = step->to_ts;
	}
	assert_true(instance->program || why->steps.data[part->step].thread == instance->thread);
	assert_true(to_ts - from_ts <= part->ns);
}

static inline bool has_idle(const struct why *why, const struct why_instance *instance)
{
	for (uint32_t i = 0; i < instance->part_count; i++)
		if (why->parts.data[instance->part + i].idle)
			return true;
	return false;
}

/* A known cause of at least a twentieth of the time comes before idle time, except that a thread
 * that is mostly idle may wait for a CPU now and then. */
static inline bool is_before_idle(const struct why_part *part, uint64_t length)
{
	return !part->idle && !part->capture && part->ns >= length / 20 &&
	       part->cause != WHY_UNKNOWN && part->cause != WHY_CPU_CONTENTION;
}

/* The longest part is the first, but what delays an event loop comes before its idle time, and both
 * before the capture itself. */
static inline void check_order(const struct why *why, const struct why_instance *instance)
{
	uint64_t length = instance->to_ts - instance->from_ts;
	bool idle = has_idle(why, instance);

	for (uint32_t i = 1; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		bool before = idle && is_before_idle(&part[-1], length);
		bool after = idle && is_before_idle(part, length);

		assert_true(before || !after);
		if (part->capture || part[-1].capture)
			assert_true(part->capture || part->ns < length / 20 ||
				    part->ns <= part[-1].ns);
		else
			assert_true(before != after || part[-1].ns >= part->ns);
	}
}

/* Conditions for every answer: parts sum to the whole, and no step exceeds its predecessor. */
static inline void check_why(const struct why *why)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];
		uint64_t sum = 0, length = instance->to_ts - instance->from_ts;

		assert_int_equal(instance->running_ns + instance->runnable_ns +
					 instance->blocked_ns + instance->unknown_ns,
				 length);
		for (uint32_t j = 0; j < instance->part_count; j++) {
			const struct why_part *part = &why->parts.data[instance->part + j];

			sum += part->ns;
			assert_true(part->ns && part->stretches);
			check_chain(why, instance, part);
		}
		assert_int_equal(sum, length);
		check_order(why, instance);
	}
}

/* Loads the capture and explains the requested spans. */
static inline struct why *ask(struct capture *capture, uint64_t end_ts,
			      const struct why_query *query)
{
	struct error err = ERROR_INIT;
	struct why *why;

	capture_load(capture, end_ts);
	capture_must(why_new(&why, capture->model, query, &err), err);
	check_why(why);
	return why;
}

static inline struct why *ask_span(struct capture *capture, uint64_t end_ts)
{
	return ask(capture, end_ts, &(struct why_query){.name = "step"});
}

static inline const struct why_part *part_of(const struct why *why, uint32_t number)
{
	const struct why_instance *instance = &why->instances.data[0];

	assert_true(number < instance->part_count);
	return &why->parts.data[instance->part + number];
}

static inline void check_part(const struct why *why, uint32_t number, const char *cause,
			      uint64_t ns, uint32_t culprit, const char *grade, const char *text)
{
	const struct why_part *part = part_of(why, number);

	assert_string_equal(why_causes[part->cause].name, cause);
	assert_int_equal(part->ns, ns);
	assert_int_equal(part->thread == MODEL_NONE ? 0
						    : why->model->threads.data[part->thread].tid,
			 culprit);
	assert_string_equal(why_grade_names[part->grade], grade);
	assert_string_equal(strtab_get(why->texts, part->object), text);
}

static inline void check_step(const struct why *why, uint32_t number, uint32_t step_number,
			      uint32_t tid, unsigned state, uint64_t from_ts, uint64_t to_ts)
{
	const struct why_part *part = part_of(why, number);
	const struct why_step *step = &why->steps.data[part->step + step_number];

	assert_true(step_number < part->step_count);
	assert_int_equal(why->model->threads.data[step->thread].tid, tid);
	assert_int_equal(step->state, state);
	assert_int_equal(step->from_ts, from_ts);
	assert_int_equal(step->to_ts, to_ts);
}

/* Fails unless the text of the answer contains `expected`. */
static inline void check_why_view(const struct why *why, const struct why_view *view,
				  const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	why_print_text(why, view, out);
	fclose(out);
	if (!strstr(text, expected))
		fail_msg("%s is not in:\n%s", expected, text);
	free(text);
}

/* The same, with all causes. */
static inline void check_why_text(const struct why *why, const char *expected)
{
	check_why_view(why, &(struct why_view){0}, expected);
}

/* Adds the site of requests (capture/requests.h) as the first one after capture_sites. */
#define SITE_REQUEST CAPTURE_SITES
static inline void add_request_site_named(struct capture *capture, const char *name)
{
	const struct site_info site = {.name = name,
				       .category = "request",
				       .file = "",
				       .func = "",
				       .object = "",
				       .kind = WAFFLE_SITE_SPAN};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_site(capture->writer, &site, &err), err);
}

static inline void add_request_site(struct capture *capture)
{
	add_request_site_named(capture, "HTTP GET");
}

static inline void done(struct capture *capture, struct why *why)
{
	why_free(why);
	capture_free(capture);
}

#endif

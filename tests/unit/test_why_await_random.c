// SPDX-License-Identifier: Apache-2.0
/* Calls of three processes made at random: whatever they say, the parts of a span sum up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_capture.h"

#define THREADS 6
#define DEPTH 4

struct open_span {
	uint64_t id;
	uint32_t site;
};

/* A thread has a CPU of its own, which it leaves when it blocks. */
struct worker {
	uint32_t tid;
	bool blocked;
	struct open_span open[DEPTH];
	unsigned depth;
	uint64_t seq;
};

struct machine {
	struct capture capture;
	struct worker workers[THREADS];
	uint64_t random, ts, ids;
};

static unsigned below(struct machine *machine, unsigned limit)
{
	machine->random = machine->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(machine->random >> 33) % limit;
}

static uint64_t some_stream(struct machine *machine)
{
	static const uint64_t streams[] = {0, 1, 2, STREAM, COMM_STREAM};

	return streams[below(machine, 5)];
}

static void worker_opens(struct machine *machine, struct worker *worker, uint32_t site,
			 unsigned count, const uint64_t *words)
{
	struct open_span *open = &worker->open[worker->depth++];

	*open = (struct open_span){++machine->ids, site};
	hit(&machine->capture, machine->ts, worker->tid, site, open->id, count, words);
}

static void worker_begins(struct machine *machine, struct worker *worker)
{
	uint64_t stream = some_stream(machine), event = 0xe1 + below(machine, 3);
	uint64_t rank = worker->tid / 10 - 1, bytes;

	switch (below(machine, 12)) {
	case 0:
		worker_opens(machine, worker, CALL_SYNC, WORDS(stream));
		break;
	case 1:
		worker_opens(machine, worker, CALL_SYNC_EVENT, WORDS(event));
		break;
	case 2:
		worker_opens(machine, worker, CALL_SYNC_DEVICE, 0, NULL);
		break;
	case 3:
		bytes = below(machine, 4096);
		worker_opens(machine, worker, CALL_COPY, WORDS(bytes, HTOD));
		break;
	case 4:
		worker_opens(machine, worker, CALL_COPY_ASYNC, WORDS(64, HTOD, stream));
		break;
	case 5:
		worker_opens(machine, worker, CALL_COMM_INIT, WORDS(rank, 3, COMM));
		break;
	case 6:
		worker->seq++;
		worker_opens(machine, worker, CALL_ALL_REDUCE,
			     WORDS(1024, 7, COMM, rank, 3, worker->seq, stream));
		break;
	case 7:
	case 8:
		worker->seq++;
		worker_opens(machine, worker, below(machine, 2) ? CALL_SEND : CALL_RECV,
			     WORDS(1024, below(machine, 3), COMM, rank, 3, worker->seq, stream));
		break;
	case 9:
		/* Known to be made, of one kind or the other; its handle comes at the return. */
		worker_opens(machine, worker, CALL_STREAM_CREATE, WORDS(below(machine, 2), stream));
		break;
	case 10:
		worker_opens(machine, worker, CALL_FREE, WORDS(0));
		break;
	default:
		worker_opens(machine, worker, SITE_STEP, 0, NULL);
	}
}

static void worker_ends(struct machine *machine, struct worker *worker)
{
	struct open_span *open = &worker->open[--worker->depth];

	if (open->site == SITE_STEP)
		ends(&machine->capture, machine->ts, worker->tid, open->site, open->id);
	else
		returns(&machine->capture, machine->ts, worker->tid, open->site, open->id);
}

static void worker_puts(struct machine *machine, struct worker *worker)
{
	uint64_t stream = some_stream(machine), event = 0xe1 + below(machine, 3);

	switch (below(machine, 3)) {
	case 0:
		launches(&machine->capture, machine->ts, worker->tid, GEMM, stream);
		break;
	case 1:
		records_event(&machine->capture, machine->ts, worker->tid, event, stream);
		break;
	default:
		stream_waits(&machine->capture, machine->ts, worker->tid, stream, event);
	}
}

static void worker_acts(struct machine *machine, struct worker *worker)
{
	static const int calls[] = {NR_FUTEX, NR_POLL, NR_IOCTL, NR_NANOSLEEP, NR_NONE};
	uint16_t cpu = (uint16_t)(worker->tid % 10 + worker->tid / 10 * 2);

	if (worker->blocked) {
		gets(&machine->capture, machine->ts, cpu, 0, worker->tid,
		     machine->workers[below(machine, THREADS)].tid, machine->ts - 1,
		     below(machine, 4) ? 0 : HARD);
		worker->blocked = false;
		return;
	}
	switch (below(machine, 4)) {
	case 0:
		if (worker->depth < DEPTH)
			worker_begins(machine, worker);
		break;
	case 1:
		if (worker->depth)
			worker_ends(machine, worker);
		break;
	case 2:
		worker_puts(machine, worker);
		break;
	default:
		waits(&machine->capture, machine->ts, cpu, worker->tid, 0,
		      below(machine, 6) ? S : D, calls[below(machine, 5)], 0x7f00,
		      below(machine, 2) ? FUTEX_MUTEX : FUTEX_COND, below(machine, 3));
		worker->blocked = true;
	}
}

/* The number of parts of a cause. */
static unsigned play(uint64_t seed, unsigned steps, enum why_cause cause)
{
	struct machine *machine = calloc(1, sizeof(*machine));
	unsigned found = 0;
	struct why *why;

	assert_non_null(machine);
	machine->random = seed;
	machine->ts = CAPTURE_START + 10;
	machine->ids = 0x100000;
	gpu_begin(&machine->capture);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct worker *worker = &machine->workers[i];

		worker->tid = 11 + i / 2 * 10 + i % 2;
		named(&machine->capture, worker->tid, pid_of(worker->tid), "worker");
		inits(&machine->capture, worker->tid, 3);
		worker->blocked = true;
	}
	for (unsigned i = 0; i < steps; i++) {
		machine->ts += 2 + below(machine, 40);
		worker_acts(machine, &machine->workers[below(machine, THREADS)]);
	}
	/* Sums and the order of times are checked in there. */
	why = ask(&machine->capture, machine->ts + 1, &(struct why_query){0});
	assert_true(why->instances.len);
	for (size_t i = 0; i < why->parts.len; i++)
		found += why->parts.data[i].cause == cause;
	done(&machine->capture, why);
	free(machine);
	return found;
}

static void test_parts_of_any_span_sum_to_its_duration(void **state)
{
	unsigned found = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		found += play(seed, 1500, WHY_GPU);
	assert_true(found > 100);
}

static void test_ranks_are_waited_for_in_calls_of_any_order(void **state)
{
	unsigned found = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 120; seed++)
		found += play(seed, 3000, WHY_COLLECTIVE);
	assert_true(found > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_any_span_sum_to_its_duration),
		cmocka_unit_test(test_ranks_are_waited_for_in_calls_of_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

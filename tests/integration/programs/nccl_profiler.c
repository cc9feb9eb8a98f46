// SPDX-License-Identifier: Apache-2.0
/*
 * Plays NCCL for its profiler plugin: nccl_profiler LIBRARY VERSION MODE. The structs are those of
 * NCCL's headers for each version. It prints what it does as lines of JSON, with the times before
 * and after each call. Modes:
 *
 *	one   tasks one after the other, with every kind of event
 *	many  threads that begin and end events of each other, in any order, also twice or never
 *	flood more tasks at once than the plugin has room for
 *	ask   answers each line of the input with the mask
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COLL = 2, P2P = 4, PROXY_OP = 8, PROXY_STEP = 16, KERNEL_CH = 64, KERNEL_PHASE = 32768 };

/* The members that all versions have the same way before the union: a u8 and padding, or a u64. */
#define HEAD                                                                                       \
	uint64_t type;                                                                             \
	void *parentObj;                                                                           \
	int rank, padding; /* the union is aligned to 8 bytes */

struct coll_v1 {
	HEAD const char *name;
	uint64_t commHash, seqNumber;
	uint8_t func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	uint8_t datatype;
	uint32_t op;
	size_t trafficBytes;
	uint8_t nMaxChannels, nWarps, algo, proto;
	int isCollnet, isNvls;
};

struct coll_v2 {
	HEAD const char *name;
	uint64_t commHash, seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	size_t trafficBytes;
	uint8_t nMaxChannels, nWarps;
	const char *algo, *proto;
};

struct coll_v3 {
	HEAD const char *name;
	uint64_t commHash, seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nMaxChannels, nWarps;
	const char *algo, *proto;
};

struct coll_v4 { /* also 5 and 6, which have parentGroup behind it */
	HEAD uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nChannels, nWarps;
	const char *algo, *proto;
	void *parentGroup;
};

struct coll_v7 { /* NCCL 2.32 */
	struct coll_v4 v4;
	const char *kernelVariant;
	bool isSymColl;
	uint64_t userTag;
};

struct p2p_v1 {
	HEAD const char *name;
	uint64_t commHash;
	uint8_t func;
	void *buff;
	uint8_t datatype;
	size_t count;
	int peer;
};

struct p2p_v2 { /* also 3 */
	HEAD const char *name;
	uint64_t commHash;
	const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
};

struct p2p_v4 {
	HEAD const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t nChannels;
	void *parentGroup; /* in 7 userTag is behind it */
};

struct proxy_op {
	HEAD pid_t pid;
	uint8_t channelId;
	int peer, nSteps, chunkSize, isSend;
};

struct proxy_step {
	HEAD int step;
};

struct kernel_ch {
	HEAD uint8_t channelId;
	uint64_t pTimer;
};

struct kernel_phase {
	HEAD uint8_t channelId, phaseId;
	const char *phaseName;
	uint64_t pTimer;
};

typedef int (*logger)(int level, unsigned long flags, const char *file, int line, const char *text,
		      ...);

struct profiler {
	const char *name;
	union {
		int (*v1)(void **context, int *mask);
		int (*v4)(void **context, int *mask, const char *name, uint64_t hash, int nodes,
			  int nranks, int rank, logger log);
		int (*v5)(void **context, uint64_t hash, int *mask, const char *name, int nodes,
			  int nranks, int rank, logger log);
	} init;
	int (*startEvent)(void *context, void **handle, void *description);
	int (*stopEvent)(void *handle);
	int (*recordEventState)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
};

static const struct profiler *profiler;
static int version, mask; /* as NCCL's ncclProfilerEventMask */
static void *context;

#define HASH UINT64_C(0xc0ffee0123456789)
#define RANK 3
#define NRANKS 8

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void must(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "nccl_profiler: %s\n", what);
	exit(1);
}

static void init(void)
{
	int result =
		version >= 5
			? profiler->init.v5(&context, HASH, &mask, "world", 1, NRANKS, RANK, NULL)
		: version == 4
			? profiler->init.v4(&context, &mask, "world", HASH, 1, NRANKS, RANK, NULL)
			: profiler->init.v1(&context, &mask);

	must(!result && context, "init");
}

static void *start(void *description, uint64_t type, void *parent)
{
	uint8_t *at = description;
	void *handle = (void *)-1;

	if (version >= 5)
		memcpy(at, &type, sizeof(type));
	else
		at[0] = (uint8_t)type; /* the bytes after it are padding */
	memcpy(at + 8, &parent, sizeof(parent));
	((struct proxy_step *)description)->rank = RANK;
	must(!profiler->startEvent(context, &handle, description), "startEvent");
	return handle;
}

static void *start_coll(uint64_t seq, size_t count, int channels, bool symmetric)
{
	/* Padding and all that the version does not have is garbage. */
	union {
		struct coll_v1 v1;
		struct coll_v2 v2;
		struct coll_v3 v3;
		struct coll_v4 v4;
		struct coll_v7 v7;
	} d;

	memset(&d, 0xa5, sizeof(d));
#define COMMON(member, channels_member)                                                            \
	d.member.seqNumber = seq;                                                                  \
	d.member.count = count;                                                                    \
	d.member.channels_member = (uint8_t)channels;
#define TEXTS(member)                                                                              \
	d.member.func = "AllReduce";                                                               \
	d.member.datatype = "ncclFloat32";                                                         \
	d.member.algo = "RING";                                                                    \
	d.member.proto = "LL128";
	if (version == 1) {
		COMMON(v1, nMaxChannels)
		d.v1.commHash = HASH;
		d.v1.func = 4;
		d.v1.datatype = 7;
		d.v1.algo = 1;
		d.v1.proto = 1;
	} else if (version == 2) {
		COMMON(v2, nMaxChannels)
		TEXTS(v2)
		d.v2.commHash = HASH;
	} else if (version == 3) {
		COMMON(v3, nMaxChannels)
		TEXTS(v3)
		d.v3.commHash = HASH;
	} else {
		COMMON(v4, nChannels)
		TEXTS(v4)
	}
	if (symmetric) {
		d.v7.isSymColl = true;
		d.v7.kernelVariant = "AllReduce_RSxLDMC_AGxSTMC";
		d.v7.v4.algo = "RSxLDMC_AGxSTMC";
		d.v7.v4.proto = "";
	}
	return start(&d, COLL, NULL);
}

static void *start_send(size_t count, int peer, int channels)
{
	union {
		struct p2p_v1 v1;
		struct p2p_v2 v2;
		struct p2p_v4 v4;
	} d;

	memset(&d, 0x5a, sizeof(d));
	if (version == 1) {
		d.v1.commHash = HASH;
		d.v1.func = 6;
		d.v1.datatype = 6;
		d.v1.count = count;
		d.v1.peer = peer;
	} else if (version <= 3) {
		d.v2.commHash = HASH;
		d.v2.func = "Send";
		d.v2.datatype = "ncclFloat16";
		d.v2.count = count;
		d.v2.peer = peer;
	} else {
		d.v4.func = "Send";
		d.v4.datatype = "ncclFloat16";
		d.v4.count = count;
		d.v4.peer = peer;
		d.v4.nChannels = (uint8_t)channels;
	}
	return start(&d, P2P, NULL);
}

static void *start_op(void *task, int channel, bool send)
{
	struct proxy_op d = {.pid = getpid(),
			     .channelId = (uint8_t)channel,
			     .peer = 1,
			     .nSteps = 2,
			     .isSend = send};

	return start(&d, PROXY_OP, task);
}

static void *start_step(void *op, int step)
{
	struct proxy_step d = {.step = step};

	return start(&d, PROXY_STEP, op);
}

static void *start_kernel(void *task, int channel, uint64_t timer)
{
	struct kernel_ch d = {.channelId = (uint8_t)channel, .pTimer = timer};

	return start(&d, KERNEL_CH, task);
}

static void stop(void *handle)
{
	must(!profiler->stopEvent(handle), "stopEvent");
}

/* Ends an event at a time of the GPU. */
static void stop_at(void *handle, int state, uint64_t timer)
{
	struct {
		uint64_t pTimer;
	} arguments = {timer};

	must(!profiler->recordEventState(handle, state, &arguments), "recordEventState");
	stop(handle);
}

/* NCCL reports a phase, which it knows from the kernel, before the end of its channel. */
static void phase_play(void *channel, uint8_t phase, uint64_t from, uint64_t to)
{
	static const char *const names[] = {"initial_sync", "compute", "final_sync"};
	struct kernel_phase d = {.phaseId = phase, .phaseName = names[phase], .pTimer = from};
	void *handle = start(&d, KERNEL_PHASE, channel);

	must(handle, "a phase has no handle");
	stop_at(handle, 31, to);
}

static void phases_play(void *channel, uint64_t i)
{
	phase_play(channel, 0, 5000 + i, 5100 + 10 * i);
	phase_play(channel, 1, 5100 + 10 * i, 8500);
	phase_play(channel, 2, 8500, 9000 + i);
}

static void stop_kernel(void *handle, uint64_t timer)
{
	stop_at(handle, 22, timer);
}

/* ---- one ---- */

/* Bounds of a time: what lies surely in between, and what at most does. */
struct bounds {
	uint64_t low, high;
};

struct moment {
	uint64_t before, after;
};

static void state(void *handle, int number, struct moment *at)
{
	size_t arguments = 65536;

	at->before = now();
	if (handle && number >= 0)
		must(!profiler->recordEventState(handle, number, &arguments), "recordEventState");
	else if (handle)
		stop(handle);
	at->after = now();
}

static void between(struct bounds *sum, struct moment from, struct moment to)
{
	sum->low += to.before - from.after;
	sum->high += to.after - from.before;
}

static void nap(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

enum { GPU, PEER, NETWORK, RECEIVE, WAITS };

/* A step of sending, then one of receiving. Returns when the last op has ended. */
static struct moment steps_play(void *task, struct bounds waits[WAITS])
{
	void *op = start_op(task, 0, true), *step = start_step(op, 0);
	struct moment at[5];
	int peer_state = version >= 4 ? 20 : 9; /* before version 4 it is part of the network's */

	state(step, 8, &at[0]);
	nap(2000);
	state(step, peer_state, &at[1]);
	nap(3000);
	state(step, 9, &at[2]);
	nap(4000);
	state(step, -1, &at[3]);
	stop(op);
	between(&waits[GPU], at[0], at[1]);
	between(&waits[version >= 4 ? PEER : NETWORK], at[1], at[2]);
	between(&waits[NETWORK], at[2], at[3]);
	op = start_op(task, 1, false);
	step = start_step(op, 1);
	state(step, 10, &at[0]);
	nap(5000);
	state(step, 11, &at[1]);
	nap(1000);
	state(step, 12, &at[2]);
	nap(2000);
	state(step, -1, &at[3]);
	state(op, -1, &at[4]);
	between(&waits[RECEIVE], at[0], at[1]);
	between(&waits[NETWORK], at[1], at[2]);
	between(&waits[GPU], at[2], at[3]);
	return at[4];
}

#define CHANNELS 4

static void task_play(uint64_t seq, bool message, bool steps, bool symmetric)
{
	struct bounds waits[WAITS] = {{0}};
	void *channels[CHANNELS] = {0}, *task;
	uint64_t begin[2], end[2];
	size_t count = 1000 + seq;

	begin[0] = now();
	task = message ? start_send(count, 5, CHANNELS)
		       : start_coll(seq, count, CHANNELS, symmetric);
	begin[1] = now();
	must(task && task != (void *)-1, "a task has no handle");
	end[0] = now();
	stop(task); /* it is enqueued; its parts come later */
	end[1] = now();
	for (int i = 0; i < CHANNELS && version >= 3; i++)
		channels[i] = start_kernel(task, i, 5000 + (uint64_t)i);
	if (steps) {
		struct moment last = steps_play(task, waits);

		end[0] = last.before;
		end[1] = last.after;
	}
	for (int i = 0; i < CHANNELS && version >= 3; i++) {
		if (symmetric)
			phases_play(channels[i], (uint64_t)i);
		end[0] = now();
		stop_kernel(channels[i], 9000 + (uint64_t)i);
		end[1] = now();
	}
	printf("{\"name\": \"%s\", \"seq\": %lu, \"bytes\": %zu, \"message\": %d, \"steps\": %d, "
	       "\"symmetric\": %d, "
	       "\"begin\": [%lu, %lu], \"end\": [%lu, %lu], \"gpu_wait_ns\": [%lu, %lu], "
	       "\"peer_wait_ns\": [%lu, %lu], \"network_wait_ns\": [%lu, %lu], "
	       "\"receive_wait_ns\": [%lu, %lu]}\n",
	       message ? "Send" : "AllReduce", seq, count * (message ? 2 : 4), message, steps,
	       symmetric, begin[0], begin[1], end[0], end[1], waits[GPU].low, waits[GPU].high,
	       waits[PEER].low, waits[PEER].high, waits[NETWORK].low, waits[NETWORK].high,
	       waits[RECEIVE].low, waits[RECEIVE].high);
}

static void play_one(void)
{
	for (uint64_t seq = 0; seq < 6; seq++)
		task_play(seq, seq % 3 == 2, seq % 2, false);
	if (version >= 7)
		task_play(6, false, false, true);
}

/* ---- many ---- */

#define THREADS 8
#define TASKS 400 /* per thread */

static void *begun[THREADS][TASKS], *ops[THREADS][TASKS], *kernels[THREADS][TASKS];
static pthread_barrier_t barrier;

static void *many_main(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, other = (me + 1) % THREADS;

	for (unsigned i = 0; i < TASKS; i++) {
		begun[me][i] = start_coll((uint64_t)me * TASKS + i, 1, 1, false);
		ops[me][i] = start_op(begun[me][i], 0, true);
		if (version >= 3)
			kernels[me][i] = start_kernel(begun[me][i], 0, i + 1);
	}
	pthread_barrier_wait(&barrier);
	for (unsigned n = 0; n < TASKS; n++) {
		unsigned i = (n * 7919u + me) % TASKS; /* another order: 7919 is prime */
		void *step = start_step(ops[other][i], 0);

		must(!profiler->recordEventState(step, (int)(n % 13) + 8, NULL), "state");
		if (n % 5)
			stop(step);
		if (n % 11) /* some never end */
			stop(ops[other][i]);
		if (version >= 7 && kernels[other][i])
			phase_play(kernels[other][i], n % 3, n, n + 100);
		if (version >= 3 && n % 7)
			stop_kernel(kernels[other][i], i + 100);
		stop(begun[other][i]);
		if (n % 3 == 0)
			stop(begun[other][i]); /* twice */
	}
	return NULL;
}

static void play_many(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, many_main, (void *)i), "pthread_create");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stop((void *)UINTPTR_MAX); /* handles that never were */
	stop((void *)0x1234567800000001);
	printf("{\"tasks\": %d}\n", THREADS * TASKS);
}

/* ---- flood ---- */

static void play_flood(void)
{
	unsigned refused = 0, count = 10000;

	for (unsigned i = 0; i < count; i++)
		refused += !start_coll(i, 1, 1, false);
	printf("{\"tasks\": %u, \"refused\": %u}\n", count, refused);
}

/* ---- ask ---- */

static void play_ask(void)
{
	char line[16];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "play", 4)) {
			task_play(0, false, true, false);
		} else {
			void *handle = start_coll(0, 1, 1, false);

			printf("mask %d handle %d\n", __atomic_load_n(&mask, __ATOMIC_RELAXED),
			       handle != NULL);
			stop(handle);
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	char symbol[32];
	void *library;

	must(argc == 4, "usage: nccl_profiler LIBRARY VERSION one|many|flood|ask");
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	must(library, "the library can't be loaded");
	version = atoi(argv[2]);
	snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
	profiler = dlsym(library, symbol);
	must(profiler && profiler->name && *profiler->name, "no such version");
	mask = 0;
	init();
	if (!strcmp(argv[3], "one"))
		play_one();
	else if (!strcmp(argv[3], "many"))
		play_many();
	else if (!strcmp(argv[3], "flood"))
		play_flood();
	else
		play_ask();
	must(!profiler->finalize(context), "finalize");
	dlclose(library); /* as NCCL does after the last communicator */
	return 0;
}

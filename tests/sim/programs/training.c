// SPDX-License-Identifier: Apache-2.0
/*
 * A simulated data-parallel training. Each rank is a process with its own loader thread. Every step
 * ends with an all-reduce of the gradients, after which all ranks are as slow as the slowest.
 *
 *	training [--ranks N] [--steps N] [--log FOLDER]
 *
 * WAFFLE_SIM_SLOW_LOADER=RANK:MS[:FROM[:EVERY]]: the loader of that rank takes MS longer to decode
 * the batch of step FROM and of every EVERY-th step after it. WAFFLE_SIM_NAN=RANK:STEP: the batch
 * of that step is broken on that rank, and the loss of all ranks is NaN from then on. With --log,
 * each rank writes its calls to FOLDER/rank-R.jsonl (log.h).
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fields.h"
#include "kernels.h"
#include "log.h"
#include "sim_nccl.h"
#include "waffle_macros.h"

#define US 1000ull
#define MS 1000000ull
#define RANKS_MAX 64
#define BATCH_BYTES (1u << 20)
#define GRADIENTS (1u << 20) /* floats */
#define BATCHES 2            /* batches that the loader may prepare in advance */
#define READ_NS (2 * MS)
#define DECODE_NS (1 * MS)

KERNEL(embed, "_Z5embedmPfi")
KERNEL(attention, "_Z9attentionmPfi")
KERNEL(mlp, "_Z3mlpmPfi")
KERNEL(mlp_backward, "_Z12mlp_backwardmPfi")
KERNEL(attention_backward, "_Z18attention_backwardmPfi")
KERNEL(adam, "_Z4adammPfi")

struct options {
	int ranks;
	long steps;
	const char *log;
};

struct slow_loader {
	long ms, from, every;
};

struct broken_batch {
	long rank, step; /* rank -1: there is none */
};

struct rank {
	int rank, ranks;
	long steps;
	struct slow_loader slow;
	struct broken_batch broken;

	pthread_mutex_t lock; /* protects loaded and taken */
	pthread_cond_t changed;
	long loaded, taken;
	float *batch[BATCHES];
	waffle_event_id_t cause[BATCHES]; /* what is wrong with the batch; null: nothing */

	ncclComm_t comm;
	cudaStream_t compute, network;
	cudaEvent_t gradients_done, reduced;
	float *device_batch, *weights, *gradients, *loss;
	float host_loss;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A fixed amount of CPU time, however long that takes on a busy machine. */
static void compute_ns(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;

	while (cpu_ns() < until)
		;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* ---- the loader ---- */

static bool loader_slow(const struct rank *rank, long step)
{
	const struct slow_loader *slow = &rank->slow;

	return slow->ms && step >= slow->from &&
	       (slow->every ? (step - slow->from) % slow->every == 0 : step == slow->from);
}

static void batch_load(struct rank *rank, long step)
{
	rank->cause[step % BATCHES] = (waffle_event_id_t){0};
	{
		SPAN("read shard", KV_I64("step", step));
		sleep_ns(READ_NS);
	}
	{
		SPAN("decode", KV_I64("step", step));
		compute_ns(DECODE_NS +
			   (loader_slow(rank, step) ? (uint64_t)rank->slow.ms * MS : 0));
		if (rank->rank == rank->broken.rank && step == rank->broken.step)
			rank->cause[step % BATCHES] = EVENT("broken batch", KV_I64("step", step),
							    KV_I64("rank", rank->rank));
	}
	memset(rank->batch[step % BATCHES], (int)step, BATCH_BYTES);
}

static void *loader_main(void *arg)
{
	struct rank *rank = arg;

	prctl(PR_SET_NAME, "loader");
	for (long step = 0; step < rank->steps; step++) {
		pthread_mutex_lock(&rank->lock);
		while (step - rank->taken >= BATCHES)
			pthread_cond_wait(&rank->changed, &rank->lock);
		pthread_mutex_unlock(&rank->lock);
		batch_load(rank, step);
		pthread_mutex_lock(&rank->lock);
		rank->loaded = step + 1;
		pthread_cond_broadcast(&rank->changed);
		pthread_mutex_unlock(&rank->lock);
	}
	return NULL;
}

/* ---- a step ---- */

static const float *batch_take(struct rank *rank, long step)
{
	SPAN("load");
	pthread_mutex_lock(&rank->lock);
	while (rank->loaded <= step)
		pthread_cond_wait(&rank->changed, &rank->lock);
	pthread_mutex_unlock(&rank->lock);
	return rank->batch[step % BATCHES];
}

static void batch_release(struct rank *rank, long step)
{
	pthread_mutex_lock(&rank->lock);
	rank->taken = step + 1;
	pthread_cond_broadcast(&rank->changed);
	pthread_mutex_unlock(&rank->lock);
}

static void copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
		 cudaStream_t stream)
{
	MUST(LOGGED(cudaMemcpyAsync, (dst, src, bytes, kind, stream),
		    "\"bytes\": %zu, \"kind\": %d, \"stream\": %lu", bytes, (int)kind,
		    (uintptr_t)stream));
}

/* `to` waits for all present operations of `from`. */
static void stream_follow(cudaStream_t to, cudaStream_t from, cudaEvent_t event)
{
	MUST(LOGGED(cudaEventRecord, (event, from), "\"event\": %lu, \"stream\": %lu",
		    (uintptr_t)event, (uintptr_t)from));
	MUST(LOGGED(cudaStreamWaitEvent, (to, event, 0), "\"stream\": %lu, \"event\": %lu",
		    (uintptr_t)to, (uintptr_t)event));
}

static void forward(struct rank *rank)
{
	dim3 grid = {64, 2, 1}, block = {256, 1, 1};

	SPAN("forward");
	LAUNCH(embed, grid, block, 0, rank->compute, 300 * US, rank->device_batch, 1);
	LAUNCH(attention, grid, block, 49152, rank->compute, 900 * US, rank->weights, 2);
	LAUNCH(mlp, grid, block, 0, rank->compute, 600 * US, rank->weights, 3);
}

static void backward(struct rank *rank, waffle_event_id_t cause)
{
	dim3 grid = {128, 1, 3}, block = {128, 2, 1};

	SPAN("backward", KV_CAUSE_EVENT(cause));
	LAUNCH(mlp_backward, grid, block, 0, rank->compute, 1200 * US, rank->gradients, 4);
	LAUNCH(attention_backward, grid, block, 0, rank->compute, 1800 * US, rank->gradients, 5);
	stream_follow(rank->network, rank->compute, rank->gradients_done);
	MUST(LOGGED(ncclAllReduce,
		    (rank->gradients, rank->gradients, GRADIENTS, ncclFloat32, ncclSum, rank->comm,
		     rank->network),
		    "\"count\": %u, \"datatype\": %d, \"op\": %d, \"comm\": %lu, \"rank\": %d, "
		    "\"nranks\": %d, \"stream\": %lu",
		    GRADIENTS, ncclFloat32, ncclSum, comm_hash(rank->comm), rank->rank, rank->ranks,
		    (uintptr_t)rank->network));
	stream_follow(rank->compute, rank->network, rank->reduced);
}

static void optimizer(struct rank *rank)
{
	dim3 grid = {32, 1, 1}, block = {512, 1, 1};

	SPAN("optimizer");
	LAUNCH(adam, grid, block, 0, rank->compute, 400 * US, rank->weights, 6);
	copy(&rank->host_loss, rank->loss, sizeof(rank->host_loss), cudaMemcpyDeviceToHost,
	     rank->compute);
	MUST(LOGGED(cudaStreamSynchronize, (rank->compute), "\"stream\": %lu",
		    (uintptr_t)rank->compute));
}

static void step_run(struct rank *rank, long step)
{
	const float *batch;

	SPAN("step", KV_I64("step", step), KV_I64("rank", rank->rank));
	batch = batch_take(rank, step);
	copy(rank->device_batch, batch, BATCH_BYTES, cudaMemcpyHostToDevice, rank->compute);
	forward(rank);
	backward(rank, rank->cause[step % BATCHES]);
	optimizer(rank);
	if (rank->broken.rank >= 0 && step >= rank->broken.step)
		EVENT("loss is NaN", KV_I64("step", step), KV_I64("rank", rank->rank));
	batch_release(rank, step);
}

/* ---- a rank ---- */

static void id_read(ncclUniqueId *id)
{
	const char *text = getenv("WAFFLE_SIM_UNIQUE_ID");

	for (size_t i = 0; i < sizeof(id->internal); i++) {
		unsigned int byte;

		if (!text || sscanf(text + 2 * i, "%2x", &byte) != 1) {
			fprintf(stderr, "training: WAFFLE_SIM_UNIQUE_ID is not set\n");
			exit(2);
		}
		id->internal[i] = (char)byte;
	}
}

static void *device_memory(size_t bytes)
{
	void *memory = NULL;

	MUST(LOGGED(cudaMalloc, (&memory, bytes), "\"bytes\": %zu, \"address\": %lu", bytes,
		    (uintptr_t)memory));
	return memory;
}

static void rank_setup(struct rank *rank)
{
	ncclUniqueId id;

	MUST(LOGGED(cudaSetDevice, (rank->rank), "\"device\": %d", rank->rank));
	MUST(LOGGED(cudaStreamCreate, (&rank->compute), "\"stream\": %lu",
		    (uintptr_t)rank->compute));
	MUST(LOGGED(cudaStreamCreate, (&rank->network), "\"stream\": %lu",
		    (uintptr_t)rank->network));
	MUST(cudaEventCreate(&rank->gradients_done));
	MUST(cudaEventCreate(&rank->reduced));
	rank->device_batch = device_memory(BATCH_BYTES);
	rank->weights = device_memory(GRADIENTS * sizeof(float));
	rank->gradients = device_memory(GRADIENTS * sizeof(float));
	rank->loss = device_memory(sizeof(float));
	MUST(LOGGED(cudaMemsetAsync, (rank->loss, 0, sizeof(float), rank->compute),
		    "\"bytes\": %zu, \"stream\": %lu", sizeof(float), (uintptr_t)rank->compute));
	id_read(&id);
	MUST(LOGGED(ncclCommInitRank, (&rank->comm, rank->ranks, id, rank->rank),
		    "\"rank\": %d, \"nranks\": %d, \"comm\": %lu", rank->rank, rank->ranks,
		    comm_hash(rank->comm)));
}

static struct slow_loader slow_loader_read(int rank)
{
	const char *text = getenv("WAFFLE_SIM_SLOW_LOADER");
	double fields[SIM_FIELDS_MAX] = {0};
	bool senseless;
	int count;

	if (!text || !*text)
		return (struct slow_loader){0};
	count = sim_fields(text, fields);
	senseless = count < 2 || (count == SIM_FIELDS_MAX && fields[3] < 1);
	for (int i = 0; i < count; i++)
		senseless = senseless || !sim_is_whole(fields[i]);
	if (senseless) {
		fprintf(stderr,
			"training: WAFFLE_SIM_SLOW_LOADER=%s makes no sense: it is "
			"RANK:MS[:FROM[:EVERY]]\n",
			text);
		exit(2);
	}
	if (fields[0] != rank)
		return (struct slow_loader){0};
	return (struct slow_loader){
		.ms = (long)fields[1], .from = (long)fields[2], .every = (long)fields[3]};
}

static struct broken_batch broken_batch_read(void)
{
	const char *text = getenv("WAFFLE_SIM_NAN");
	double fields[SIM_FIELDS_MAX] = {0};

	if (!text || !*text)
		return (struct broken_batch){.rank = -1};
	if (sim_fields(text, fields) != 2 || !sim_is_whole(fields[0]) || !sim_is_whole(fields[1])) {
		fprintf(stderr, "training: WAFFLE_SIM_NAN=%s makes no sense: it is RANK:STEP\n",
			text);
		exit(2);
	}
	return (struct broken_batch){(long)fields[0], (long)fields[1]};
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void rank_say(const struct rank *rank, uint64_t *took_ns)
{
	long slowest = 0;
	uint64_t worst;

	for (long step = 1; step < rank->steps; step++) {
		if (took_ns[step] > took_ns[slowest])
			slowest = step;
	}
	worst = took_ns[slowest];
	qsort(took_ns, (size_t)rank->steps, sizeof(*took_ns), by_value);
	printf("simulated training: %d ranks, %ld steps; slowest on rank 0: step %ld, %.1f ms "
	       "(median %.1f ms)\n",
	       rank->ranks, rank->steps, slowest, (double)worst / 1e6,
	       (double)took_ns[rank->steps / 2] / 1e6);
}

static int rank_main(const struct options *options)
{
	struct rank rank = {.rank = atoi(getenv("RANK")),
			    .ranks = options->ranks,
			    .steps = options->steps,
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .changed = PTHREAD_COND_INITIALIZER};
	uint64_t *took_ns = calloc((size_t)options->steps, sizeof(*took_ns));
	pthread_t loader;
	uint64_t hash;
	char text[4096];

	snprintf(text, sizeof(text), "rank %d", rank.rank);
	prctl(PR_SET_NAME, text);
	if (options->log) {
		snprintf(text, sizeof(text), "%s/rank-%d.jsonl", options->log, rank.rank);
		log_open(text);
	}
	rank.slow = slow_loader_read(rank.rank);
	rank.broken = broken_batch_read();
	for (int i = 0; i < BATCHES; i++)
		rank.batch[i] = malloc(BATCH_BYTES);
	rank_setup(&rank);
	MUST(pthread_create(&loader, NULL, loader_main, &rank));
	for (long step = 0; step < rank.steps; step++) {
		uint64_t begin = log_now_ns();

		step_run(&rank, step);
		took_ns[step] = log_now_ns() - begin;
	}
	MUST(pthread_join(loader, NULL));
	MUST(LOGGED(cudaDeviceSynchronize, (), "%s", ""));
	hash = comm_hash(rank.comm);
	MUST(LOGGED(ncclCommDestroy, (rank.comm), "\"comm\": %lu, \"rank\": %d, \"nranks\": %d",
		    hash, rank.rank, rank.ranks));
	if (log_file && fclose(log_file)) {
		perror("training: log");
		return 1;
	}
	if (!rank.rank)
		rank_say(&rank, took_ns);
	free(took_ns);
	return 0;
}

/* ---- all ranks ---- */

static void number_set(const char *name, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	setenv(name, text, 1);
}

static void id_make(void)
{
	char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
	ncclUniqueId id;

	MUST(ncclGetUniqueId(&id));
	for (size_t i = 0; i < sizeof(id.internal); i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);
	setenv("WAFFLE_SIM_UNIQUE_ID", text, 1);
}

/* Each rank runs a program of its own, as from a launcher. */
static int ranks_run(const struct options *options, char **argv)
{
	pid_t pids[RANKS_MAX];
	int failed = 0;

	slow_loader_read(0); /* report invalid values only once */
	broken_batch_read();
	id_make();
	number_set("WORLD_SIZE", options->ranks);
	for (int rank = 0; rank < options->ranks; rank++) {
		number_set("RANK", rank);
		number_set("LOCAL_RANK", rank);
		pids[rank] = fork();
		if (!pids[rank]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execv("/proc/self/exe", argv);
			perror("training: exec");
			_exit(127);
		}
	}
	for (int rank = 0; rank < options->ranks; rank++) {
		int status;

		if (wait(&status) < 0 || status) {
			/* Otherwise the other ranks would wait for it in the next all-reduce. */
			for (int other = 0; other < options->ranks && !failed; other++)
				kill(pids[other], SIGTERM);
			failed = 1;
		}
	}
	return failed;
}

static int usage(void)
{
	fprintf(stderr, "usage: training [--ranks 1…%d] [--steps N] [--log FOLDER]\n", RANKS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {{"ranks", required_argument, NULL, 'r'},
					      {"steps", required_argument, NULL, 's'},
					      {"log", required_argument, NULL, 'l'},
					      {NULL, 0, NULL, 0}};
	struct options options = {.ranks = 4, .steps = 40};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'r')
			options.ranks = atoi(optarg);
		else if (option == 's')
			options.steps = atol(optarg);
		else if (option == 'l')
			options.log = optarg;
		else
			return usage();
	}
	if (options.ranks < 1 || options.ranks > RANKS_MAX || options.steps < 1 || optind != argc)
		return usage();
	return getenv("WAFFLE_SIM_UNIQUE_ID") ? rank_main(&options) : ranks_run(&options, argv);
}

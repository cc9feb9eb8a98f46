// SPDX-License-Identifier: Apache-2.0
/*
 * gpu WAY SEED: the victim waits in cudaStreamSynchronize(), on the simulation (tests/sim), for
 *	kernel		a kernel that it has launched itself
 *	default		the same, on another stream: it waits for the default one
 *	streams		that kernel or a short one on another stream: it waits for the device
 *	frees		a kernel, in cudaFree()
 *	spins		the same as `kernel`, and the driver does not block but looks again and
 * again loader		an all-reduce of three ranks, a process each: the loader of the last one
 *			sleeps
 *	computes	the same, and the last one's own thread computes
 *	untraced	the same, and the last one is not traced
 *	sends		a receive: the rank that sends computes before
 */
#include "zoo.h"

#include "kernels.h"
#include "sim_nccl.h"

#define ROUNDS 6
#define RANKS 3
#define LAST 2 /* the rank that the others wait for */

KERNEL(gemm, "_Z4gemmmPfi")
KERNEL(softmax, "_Z7softmaxmPfi")

static const char *way;
static bool alone; /* no other ranks */
/* Rounds that the victim has begun, in memory of all ranks: the last one begins its work then. */
static atomic_int *begun;
static ncclUniqueId id;
static ncclComm_t comm;
static cudaStream_t stream, second;
static float *memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, loaded;

static void setup(int rank)
{
	MUST(cudaSetDevice(rank));
	MUST(cudaStreamCreate(&stream));
	if (!strcmp(way, "streams"))
		MUST(cudaStreamCreate(&second));
	MUST(cudaMalloc((void **)&memory, 4096));
	if (!alone)
		MUST(ncclCommInitRank(&comm, RANKS, id, rank));
}

static void reduce(void)
{
	MUST(ncclAllReduce(memory, memory, 1024, ncclFloat32, ncclSum, comm, stream));
	MUST(cudaStreamSynchronize(stream));
}

/* A rank's part of what they do together. */
static void meet(int rank)
{
	if (strcmp(way, "sends")) {
		reduce();
		return;
	}
	if (rank == LAST)
		MUST(ncclSend(memory, 1024, ncclFloat32, 0, comm, stream));
	else
		MUST(ncclRecv(memory, 1024, ncclFloat32, LAST, comm, stream));
	MUST(cudaStreamSynchronize(stream));
}

/* ---- the last rank ---- */

static void loader(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (asked <= i)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		zoo_time_begin(&t);
		{
			SPAN("load", KV_I64("i", i));
			sleep_ms(zoo_vary(i, 80, 160));
		}
		zoo_time_end(&t);
		pthread_mutex_lock(&lock);
		loaded = i + 1;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		zoo_say_cause(i, "sleep", zoo_blocked(&t), zoo_self(), "load", NULL);
	}
}

static void victim_wait(int i)
{
	while (*begun <= i)
		usleep(50);
}

static void batch_wait(int i)
{
	SPAN("batch");
	pthread_mutex_lock(&lock);
	asked = i + 1;
	pthread_cond_broadcast(&changed);
	while (loaded <= i)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void decode(int i)
{
	struct zoo_time t;

	zoo_time_begin(&t);
	{
		SPAN("decode");
		zoo_burn(zoo_vary(i, 80, 160));
	}
	zoo_time_end(&t);
	zoo_say_cause(i, "collective", t.running, zoo_self(), "decode",
		      strcmp(way, "sends") ? "ncclAllReduce" : "ncclSend");
}

static void last_rank(void)
{
	setup(LAST);
	for (int i = 0; i < ROUNDS; i++) {
		victim_wait(i);
		if (!strcmp(way, "loader"))
			batch_wait(i);
		else
			decode(i);
		meet(LAST);
	}
}

static void last(void)
{
	static const struct zoo_thread thread = {"loader", loader};
	pthread_t made;

	if (!strcmp(way, "loader"))
		zoo_need(!pthread_create(&made, NULL, zoo_thread_main, (void *)&thread), "pthread");
	last_rank();
	if (!strcmp(way, "loader"))
		pthread_join(made, NULL);
}

/* ---- the others ---- */

static void other(void)
{
	setup(1);
	for (int i = 0; i < ROUNDS && strcmp(way, "sends"); i++)
		reduce();
}

static void launch(int i)
{
	dim3 grid = {64, 1, 1}, block = {256, 1, 1};

	SPAN("forward");
	LAUNCH(gemm, grid, block, 0, stream, (uint64_t)zoo_vary(i, 80, 160) * ZOO_MS, memory, 1);
	if (second)
		LAUNCH(softmax, grid, block, 0, second, 1 * ZOO_MS, memory, 1);
}

static void wait_for_gpu(void)
{
	void *freed = memory;

	if (!strcmp(way, "frees"))
		MUST(cudaMalloc((void **)&memory, 4096));
	if (!strcmp(way, "streams"))
		MUST(cudaDeviceSynchronize());
	else if (!strcmp(way, "frees"))
		MUST(cudaFree(freed));
	else
		MUST(cudaStreamSynchronize(strcmp(way, "default") ? stream : NULL));
}

static void victim(void)
{
	struct zoo_time t, wait = {0};

	setup(0);
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			*begun = i + 1;
			if (alone) {
				launch(i);
				zoo_time_begin(&wait);
				wait_for_gpu();
				zoo_time_end(&wait);
			} else {
				meet(0);
			}
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		if (alone)
			zoo_say_cause(i, "gpu", wait.end - wait.begin - wait.runnable, zoo_self(),
				      "forward", "gemm");
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	zoo_need(begun != MAP_FAILED, "mmap");
	way = argc > 2 ? argv[1] : "kernel";
	alone = !strcmp(way, "kernel") || !strcmp(way, "spins") || !strcmp(way, "default") ||
		!strcmp(way, "streams") || !strcmp(way, "frees");
	if (!strcmp(way, "spins"))
		setenv("WAFFLE_SIM_SYNC", "spin", 1);
	if (!alone) {
		MUST(ncclGetUniqueId(&id));
		zoo_fork("rank1", other);
		zoo_fork_as(strcmp(way, "untraced") ? "process" : "outsider", "rank2", last);
	}
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}

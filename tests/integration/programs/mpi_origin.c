// SPDX-License-Identifier: Apache-2.0
/*
 * Ways in which a value of rank 1 reaches the other ranks. mpi_origin WAY: each rank that sees it
 * records "seen", and rank 1 declares "made" as the cause of the span in which it sends it.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <waffle_macros.h>

static int rank, ranks;

/* From rank 1 to 2, from there to 3, and so on around to 0. */
static void way_ring(double *value, waffle_event_id_t cause)
{
	if (rank != 1) {
		MPI_Status status;

		SPAN("receive");
		MPI_Recv(value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 &status);
	}
	if (rank != 0) {
		SPAN("send", KV_CAUSE_EVENT(cause));
		MPI_Send(value, 1, MPI_DOUBLE, (rank + 1) % ranks, 7, MPI_COMM_WORLD);
	}
}

static void way_broadcast(double *value, waffle_event_id_t cause)
{
	SPAN("share", KV_CAUSE_EVENT(cause));
	MPI_Bcast(value, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
}

/* The data arrives with MPI_Wait, in another span than the call. */
static void way_later(double *value, waffle_event_id_t cause)
{
	MPI_Request request;
	double sum = 0;

	{
		SPAN("start", KV_CAUSE_EVENT(cause));
		MPI_Iallreduce(value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
	}
	{
		SPAN("finish");
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	*value = sum;
}

/* Only rank 0 sees it. */
static void way_reduce(double *value, waffle_event_id_t cause)
{
	double sum = 0;

	SPAN("collect", KV_CAUSE_EVENT(cause));
	MPI_Reduce(value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	*value = rank ? 0 : sum;
}

/* Ranks from 1 on see it. */
static void way_scan(double *value, waffle_event_id_t cause)
{
	double sum = 0;

	SPAN("prefix", KV_CAUSE_EVENT(cause));
	MPI_Scan(value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	*value = sum;
}

static const struct {
	const char *name;
	void (*run)(double *value, waffle_event_id_t cause);
} ways[] = {
	{"ring", way_ring},     {"broadcast", way_broadcast}, {"later", way_later},
	{"reduce", way_reduce}, {"scan", way_scan},
};

int main(int argc, char **argv)
{
	waffle_event_id_t cause = {0};
	double value = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 1) {
		value = NAN;
		cause = WAFFLE_EVENT("made", KV_I64("rank", rank));
	}
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name))
			ways[i].run(&value, cause);
	if (isnan(value))
		WAFFLE_EVENT("seen", KV_I64("rank", rank));
	MPI_Finalize();
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * mpi_pair FOLDER ROUNDS: two ranks on two machines. Before and after the rounds, rank 0 asks rank
 * 1 for its time a thousand times. It writes the tightest bounds on how much their clocks differ:
 *
 *	clock at=T low=L high=H
 *
 * When rank 0's clock shows T, rank 1's shows T + L to T + H. This does not use waffle. In the
 * rounds the ranks meet in an all-reduce, to which either comes last in turn.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void ask(FILE *log)
{
	long best = 1L << 62, at = 0, low = 0, high = 0;

	for (int i = 0; i < 1000; i++) {
		long sent = now(), other, got;

		MPI_Send(&sent, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(&other, 1, MPI_LONG, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		got = now();
		if (got - sent >= best)
			continue;
		best = got - sent;
		at = sent;
		low = other - got;
		high = other - sent;
	}
	fprintf(log, "clock at=%ld low=%ld high=%ld\n", at, low, high);
}

static void answer(void)
{
	for (int i = 0; i < 1000; i++) {
		long sent, own;

		MPI_Recv(&sent, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		own = now();
		MPI_Send(&own, 1, MPI_LONG, 0, 2, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int rank, rounds;
	char path[4096];
	FILE *log;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rounds = atoi(argv[2]);
	snprintf(path, sizeof(path), "%s/%d.log", argv[1], rank);
	log = fopen(path, "w");
	if (!rank)
		ask(log);
	else
		answer();
	for (int round = 0; round < rounds; round++) {
		struct timespec pause = {0, round % 2 == rank ? 3000000 : 500000};
		double in = round, out;
		long begin;

		nanosleep(&pause, NULL);
		begin = now();
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		fprintf(log, "call round=%d begin=%ld end=%ld\n", round, begin, now());
	}
	if (!rank)
		ask(log);
	else
		answer();
	fclose(log);
	MPI_Finalize();
	return 0;
}

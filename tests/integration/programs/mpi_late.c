// SPDX-License-Identifier: Apache-2.0
/*
 * mpi_late FOLDER ROUNDS: ranks that meet in an all-reduce each round, of which the last rank comes
 * 20 ms late in every tenth. Other ranks come last in the other rounds. Every fourth all-reduce is
 * nonblocking. Each rank writes the begin and the end of its calls to FOLDER/RANK.
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

static void sleep_us(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&time, NULL);
}

static void reduce(int round)
{
	double in = round, out;
	MPI_Request request;

	if (round % 4 != 3) {
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		return;
	}
	MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, size, rounds;
	char path[4096];
	FILE *log;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
	log = fopen(path, "w");
	rounds = atoi(argv[2]);
	for (int round = 0; round < rounds; round++) {
		long begin;

		/* Each rank in turn comes last, by about a millisecond. */
		sleep_us(round % size == rank ? 2000 : 500);
		if (round % 10 == 5 && rank == size - 1)
			sleep_us(20000);
		begin = now();
		reduce(round);
		fprintf(log, "call round=%d begin=%ld end=%ld\n", round, begin, now());
	}
	fclose(log);
	MPI_Finalize();
	return 0;
}

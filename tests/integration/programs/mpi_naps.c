// SPDX-License-Identifier: Apache-2.0
/*
 * mpi_naps SECONDS KIND: rank 0 sleeps 20 ms each round, and the others wait for it. KIND is "recv"
 * (MPI_Recv, for rank 1 alone), "wait" (MPI_Irecv and MPI_Wait) or "bcast" (MPI_Bcast).
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void receive(int *on, int waits)
{
	MPI_Request request;

	if (!waits) {
		MPI_Recv(on, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Irecv(on, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	double end;
	int rank, on = 1;

	if (argc < 3)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	end = MPI_Wtime() + atof(argv[1]);
	while (on) {
		if (!rank) {
			nap();
			on = MPI_Wtime() < end;
		}
		if (!strcmp(argv[2], "bcast"))
			MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
		else if (rank)
			receive(&on, !strcmp(argv[2], "wait"));
		else
			MPI_Send(&on, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}

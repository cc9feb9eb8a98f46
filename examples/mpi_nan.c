// SPDX-License-Identifier: Apache-2.0
/*
 * Rank 1 makes a NaN, and an all-reduce spreads it to all ranks. From the symptom on any rank,
 * waffle-bpf finds the event on rank 1:
 *
 *	mpicc -Iinclude -o mpi_nan examples/mpi_nan.c
 *	sudo waffle-bpf run --probes mpi -o nan.waffle -- mpirun -n 4 ./mpi_nan
 *	waffle-bpf why --event "MPI_Allreduce result is NaN" nan.waffle
 */
#include <math.h>
#include <mpi.h>

#include <waffle_macros.h>

int main(int argc, char **argv)
{
	waffle_event_id_t cause_id = {0};
	double send_buf[1] = {1}, recv_buf[1];
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1) {
		send_buf[0] = NAN;
		cause_id = WAFFLE_EVENT("Creating NaN on purpose", KV_I64("rank", rank));
	}
	{
		SPAN("MPI_Allreduce_op", KV_CAUSE_EVENT(cause_id), KV_I64("rank", rank));
		MPI_Allreduce(send_buf, recv_buf, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (isnan(recv_buf[0]))
			WAFFLE_EVENT("MPI_Allreduce result is NaN");
	}
	MPI_Finalize();
	return 0;
}

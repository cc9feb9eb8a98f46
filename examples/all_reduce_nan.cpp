// SPDX-License-Identifier: Apache-2.0
/*
 * The wrapper of a collective, in C++: rank 1 finds a NaN in its input, and an all-reduce spreads
 * it. From the symptom on rank 0, waffle-bpf finds the event on rank 1:
 *
 *	mpicxx -std=c++17 -Iinclude -o all_reduce_nan examples/all_reduce_nan.cpp
 *	sudo waffle-bpf run --probes mpi -o nan.waffle -- mpirun -n 4 ./all_reduce_nan
 *	waffle-bpf why --event "Output buffer is NaN after AllReduce" nan.waffle
 */
#include <cmath>
#include <vector>

#include <mpi.h>

#include <waffle.hpp>

class Communicator
{
      public:
	explicit Communicator(MPI_Comm comm) : comm(comm)
	{
		MPI_Comm_rank(comm, &rank);
	}

	void AllReduce(const std::vector<double> &input, std::vector<double> &output)
	{
		Waffle::EventId nan_source_id;

		if (has_nan(input))
			nan_source_id =
				WAFFLE_EVENT("Input buffer contains NaN", "rank", this->rank,
					     "suggestion", "check the loss of this rank");
		WAFFLE_SPAN("NcclAllReduce", Waffle::CausedBy(nan_source_id), "element_count",
			    input.size(), "rank", this->rank);
		MPI_Allreduce(input.data(), output.data(), static_cast<int>(input.size()),
			      MPI_DOUBLE, MPI_SUM, comm);
		if (rank == 0 && has_nan(output))
			WAFFLE_EVENT("Output buffer is NaN after AllReduce");
	}

	int rank;

      private:
	static bool has_nan(const std::vector<double> &values)
	{
		for (double value : values)
			if (std::isnan(value))
				return true;
		return false;
	}

	MPI_Comm comm;
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	{
		Communicator all(MPI_COMM_WORLD);
		std::vector<double> input(8, all.rank == 1 ? NAN : 1.0), output(8);

		all.AllReduce(input, output);
	}
	MPI_Finalize();
	return 0;
}

# SPDX-License-Identifier: Apache-2.0
"""Open MPI and MPICH with four ranks under the ready set for MPI: every call of every rank is a span
with its arguments, as the program's own log has them."""

import collections
import subprocess

import pytest
from tracer import PROGRAMS, find_tool, parse_log

RANKS = 4
PEERS = ("dest", "source", "root")
WITHOUT_COUNT = ("MPI_Barrier", "MPI_Alltoallv")


# What is ours to start them with as root, and with more ranks than CPUs. A communicator is a pointer
# in one and a number in the other.
LIBRARIES = {
    "openmpi": (("--allow-run-as-root", "--oversubscribe"), str),
    "mpich": ((), int),
}


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture(scope="module")
def ring(library, tmp_path_factory):
    program = tmp_path_factory.mktemp("mpi") / "mpi_ring"
    subprocess.run([find_tool(f"mpicc.{library}"), "-O2", "-g", "-Wall", "-Werror", "-o", program,
                    PROGRAMS / "mpi_ring.c"], check=True)
    return program


def mpirun(library, program, folder):
    return (find_tool(f"mpirun.{library}"), *LIBRARIES[library][0], "-n", RANKS, program, folder)


def call_of(name, arguments):
    """What both know of a call."""
    peer = next((arguments[key] for key in PEERS if key in arguments), None)
    tag = arguments.get("tag") if "Send" in name or "Recv" in name or "send" in name or \
        "recv" in name else None
    count = None if name in WITHOUT_COUNT else arguments["count"]
    return name, count, peer, tag


def test_each_call_of_four_ranks_is_a_span_as_the_program_logged_it(
        waffle, library, ring, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    capture = waffle.run(*mpirun(library, ring, logs), options=("--probes", "mpi", "--no-sched"))
    capture.check_sums(lost=0)
    logged = {}
    for rank in range(RANKS):
        rows = parse_log((logs / str(rank)).read_text().splitlines())
        logged[rank] = collections.Counter(call_of(row["name"], row) for row in rows)
        assert sum(logged[rank].values()) == 20 * 12
    spans = capture.rows("span", category="mpi")
    _, kind = LIBRARIES[library]
    seen = collections.defaultdict(collections.Counter)
    ends = collections.defaultdict(collections.Counter)
    for row in spans:
        # A library's own calls inside another are not the program's.
        if "parent" in row:
            continue
        if row["name"] in ("MPI_Comm_rank", "MPI_Comm_size"):
            continue
        if row["name"] in ("MPI_Init", "MPI_Finalize"):
            ends[row["pid"]][row["name"]] += 1
        else:
            seen[row["pid"]][call_of(row["name"], row["args"])] += 1
        assert row["args"]["result"] == 0
        assert isinstance(row["args"].get("comm", kind()), kind)
        assert row["start_ns"] < row["end_ns"]
    assert len(seen) == len(logged) == RANKS
    # Which process is which rank, their peers tell.
    rank_of = {next(call[2] for call in calls if call[0] == "MPI_Send"): pid
               for pid, calls in seen.items()}
    for rank, calls in logged.items():
        assert seen[rank_of[(rank + 1) % RANKS]] == calls
    assert list(ends.values()) == RANKS * [{"MPI_Init": 1, "MPI_Finalize": 1}]

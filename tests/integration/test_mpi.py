# SPDX-License-Identifier: Apache-2.0
"""Open MPI and MPICH under the ready set for MPI: every call of every rank is a span with its
arguments, and the calls of different ranks that belong together are linked, as the program's own log
has them."""

import collections
import json
import re
import shlex
import subprocess

import pytest
from tracer import PROGRAMS, Capture, children_of, find_tool, parse_log, tries, wait_until

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
def built_with(library, tmp_path_factory):
    """built_with(name): a program of this folder, compiled for the library."""

    def build(name):
        program = tmp_path_factory.mktemp("mpi") / name
        subprocess.run([find_tool(f"mpicc.{library}"), "-O2", "-g", "-Wall", "-Werror", "-o", program,
                        PROGRAMS / f"{name}.c"], check=True)
        return program

    return build


@pytest.fixture(scope="module")
def ring(built_with):
    return built_with("mpi_ring")


@pytest.fixture(scope="module")
def meet(built_with):
    return built_with("mpi_meet")


@pytest.fixture(scope="module")
def late(built_with):
    return built_with("mpi_late")


def mpirun(library, program, folder, *arguments, ranks=RANKS):
    return (find_tool(f"mpirun.{library}"), *LIBRARIES[library][0], "-n", ranks, program, folder,
            *arguments)


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
    # On a busy machine a rank may begin before it is armed, which waffle-bpf says.
    if "began before being armed" not in capture.result.stderr:
        assert list(ends.values()) == RANKS * [{"MPI_Init": 1, "MPI_Finalize": 1}]


def linked(spans):
    """Sets of ids that links connect, by id."""
    groups = {row["id"]: {row["id"]} for row in spans}
    for row in spans:
        for link in row.get("links", []):
            if link["id"] in groups and groups[row["id"]] is not groups[link["id"]]:
                joined = groups[row["id"]] | groups[link["id"]]
                groups.update(dict.fromkeys(joined, joined))
    return groups


@tries(3)  # a rank that is armed late is not certain
def test_calls_that_belong_together_are_linked_as_the_program_logged_them(
        waffle, library, meet, tmp_path):
    for ranks in (2, 5, 8):
        logs = tmp_path / f"logs{ranks}"
        logs.mkdir(exist_ok=True)
        capture = waffle.run(*mpirun(library, meet, logs, ranks=ranks),
                             options=("--probes", "mpi", "--no-sched"))
        capture.check_sums(lost=0)
        assert capture.info()["collectives_unaligned"] == 0
        assert not capture.info()["collectives_in_different_order"]
        spans = sorted((row for row in capture.rows("span", category="mpi")
                        if "parent" not in row), key=lambda row: row["start_ns"])
        pid_of = {}
        for row in spans:
            if row["name"] == "MPI_Comm_rank" and row["pid"] not in pid_of.values():
                pid_of.setdefault(row["args"]["rank"], row["pid"])
        assert len(pid_of) == ranks
        wanted = collections.defaultdict(set)
        for rank in range(ranks):
            calls = parse_log((logs / str(rank)).read_text().splitlines())
            names = {call["name"] for call in calls}
            own = [row for row in spans if row["pid"] == pid_of[rank] and row["name"] in names]
            assert [row["name"] for row in own] == [call["name"] for call in calls]
            for row, call in zip(own, calls, strict=True):
                wanted[call["group"]].add(row["id"])
        found = linked(spans)
        for group, ids in wanted.items():
            assert found[min(ids)] == ids, group


@tries(3)  # a rank that is armed late is not certain
def test_collectives_in_different_order_are_reported_with_ranks(waffle, library, meet, tmp_path):
    capture = waffle.path("disorder.waffle")
    waffle.call("run", "--probes", "mpi", "--no-sched", "-o", capture, "--",
                *mpirun(library, meet, tmp_path, "disorder", ranks=3))
    info = json.loads(waffle.ok("info", "--json", capture).stdout)
    (found,) = info["collectives_in_different_order"]
    assert found["seq"] == 0
    assert found["ranks_that_differ"] == 1
    assert [(call["name"], call["rank"]) for call in found["calls"]] == \
        [("MPI_Ireduce", 1), ("MPI_Ibcast", 0)]
    for command in ("info", "report"):
        text = waffle.ok(command, capture).stdout
        assert "collective 0 of a communicator differs between ranks: rank 1 (pid " in text
        assert ") called MPI_Ireduce at " in text


# With --stacks, a busy machine often arms ranks of MPICH late: its library has large tables.
@pytest.mark.parametrize("library", ["openmpi"], indirect=True)
@tries(3)  # a rank that is armed late is not certain
def test_collectives_in_different_order_name_the_callers(waffle, library, meet, tmp_path):
    capture = waffle.path("callers.waffle")
    waffle.call("run", "--probes", "mpi", "--no-sched", "--stacks", "probes", "-o", capture, "--",
                *mpirun(library, meet, tmp_path, "disorder", ranks=3))
    (found,) = json.loads(waffle.ok("info", "--json", capture).stdout)["collectives_in_different_order"]
    for call in found["calls"]:
        assert call["within"] == "call_in_disorder"
        assert call["file"].endswith("mpi_meet.c")
        assert call["line"] > 0
    assert ", in call_in_disorder (" in waffle.ok("report", capture).stdout


@tries(3)  # a rank that is armed late is not certain
def test_two_jobs_of_one_capture_are_kept_apart(waffle, library, meet, tmp_path):
    job = shlex.join(str(word) for word in mpirun(library, meet, tmp_path, ranks=2))
    capture = waffle.run("sh", "-c", f"{job}; {job}", options=("--probes", "mpi", "--no-sched"))
    assert capture.info()["collectives_unaligned"] == 0
    spans = capture.rows("span", category="mpi")
    found = linked(spans)
    barriers = [row for row in spans if row["name"] == "MPI_Barrier"]
    assert len({row["pid"] for row in barriers}) == 4
    assert {len(found[row["id"]]) for row in barriers} == {1, 2}


@tries(3)  # on a busy machine ranks may wait for a CPU all the time
def test_why_names_the_late_rank_without_being_told_of_mpi(waffle, library, late, tmp_path):
    capture = Capture(waffle, waffle.path("late.waffle"))
    done = waffle.ok("why", "--slowest", "1", "-o", capture.path, "--", *mpirun(library, late, tmp_path, 100, ranks=2))
    assert re.search(r"^MPI_(?!Init|Finalize)\w+ [0-9a-f]{16} of ", done.stdout, re.M), done.stdout
    found = json.loads(waffle.ok("why", "--json", "--span", "MPI_Allreduce", "--slowest", "0", capture.path).stdout)
    late_ones = [span for span in found["instances"] if span["causes"][0]["cause"] == "sleep"]
    assert late_ones and late_ones[0]["causes"][0]["share"] > 0.5
    assert all(span["causes"][0]["culprit"]["pid"] != span["thread"]["pid"] for span in late_ones)
    assert "MPI_Wait" in {row["name"] for row in capture.rows("span", category="mpi")}


@pytest.fixture(scope="module")
def naps(built_with):
    return built_with("mpi_naps")


@pytest.mark.parametrize("library", ["openmpi"], indirect=True)
@pytest.mark.parametrize("kind, call", [("recv", "MPI_Recv"), ("wait", "MPI_Wait"),
                                        ("bcast", "MPI_Bcast")])
@tries(3)  # on a busy machine ranks may wait for a CPU all the time
def test_why_follows_the_waits_of_a_job_that_runs_already(waffle, library, naps, kind, call):
    """The rank that polls is never certainly at work; the one that sleeps is the cause."""
    command = [str(word) for word in mpirun(library, naps, 40, kind, ranks=2)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as job:
        try:
            wait_until(lambda: len(children_of(job.pid)) >= 2, "the ranks")
            capture = Capture(waffle, waffle.path("attached.waffle"))
            waffle.ok("why", "--slowest", "1", "-d", "3s", "-o", capture.path, "--pid", job.pid)
        finally:
            job.terminate()
    found = json.loads(waffle.ok("why", "--json", "--span", call, "--slowest", "0",
                                 capture.path).stdout)
    late_ones = [span for span in found["instances"] if span["causes"][0]["cause"] == "sleep"]
    sleepers = {span["causes"][0]["culprit"]["pid"] for span in late_ones}
    assert len(sleepers) == 1
    waits = [span for span in found["instances"] if span["thread"]["pid"] not in sleepers]
    assert len(late_ones) > len(waits) / 2
    assert all(span in waits and span["causes"][0]["grade"] == "likely" for span in late_ones)
    assert not [cause for span in waits for cause in span["causes"]
                if (cause["cause"], cause["grade"]) == ("running", "certain") and cause["share"] > 0.5]

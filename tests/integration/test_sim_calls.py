# SPDX-License-Identifier: Apache-2.0
"""What waffle-bpf says of CUDA's and NCCL's calls is what the program's own log says: each call
once, in order, on its thread, with its arguments. On the stand-ins of docs/simulation.md."""

import json
import os
import re
import shutil
import sys

import pytest

from sim_log import (
    began,
    check_all,
    check_call,
    check_sequences,
    is_of_nccl,
    of_calls,
    read_log,
)
from test_sim import RANKS, named, sim  # noqa: F401  (sim: a fixture)
from tracer import ROOT, Program, Waffle, compile_program, tries, wait_until

STEPS = 12


# With the runtime of CUDA 12, of CUDA 13, linked into the program; with NCCL linked into it.
PROGRAMS = ["calls", "calls-13", "calls-static", "calls-nccl"]


@pytest.fixture(scope="module", params=[("run", PROGRAMS[0])] + [("attach", p) for p in PROGRAMS])
def calls(request, sim, waffle_program, tmp_path_factory):  # noqa: F811
    """Every function once: traced from the start, or attached to before the first call."""
    folder = tmp_path_factory.mktemp("calls")
    waffle = Waffle(waffle_program, folder)
    log = folder / "calls.jsonl"
    how, program = request.param
    if how == "run":
        capture = waffle.run(sim / program, "--log", log)
    else:
        capture = attach_to_calls(waffle, sim / program, log)
    return capture.rows(), read_log(log)


EPOLL_WAIT = {"x86_64": {"232", "281"}, "aarch64": {"22"}}[os.uname().machine]


def is_armed(process):
    """A tracer that waits for events has armed all that is there."""
    assert process.poll() is None, process.communicate()
    with open(f"/proc/{process.pid}/syscall", encoding="ascii") as f:
        return f.read().split()[0] in EPOLL_WAIT


def attach_to_calls(waffle, path, log):
    program = Program([path, "--log", log, "--pause"])
    try:
        program.until("simulated calls: ready")
        attached = waffle.attach("--pid", program.pid, "-q", "--no-report")
        wait_until(lambda: is_armed(attached.process), "arming")
        program.say("go")
        program.until("simulated calls: done")
        program.say("end")
        program.finish()
        return attached.wait()
    finally:
        program.kill()


def test_calls_are_those_of_the_programs_log_argument_by_argument(calls):
    check_all(*calls)


def test_collectives_are_numbered_by_communicator(calls):
    check_sequences(*calls)


def test_communicator_at_the_address_of_an_earlier_one_is_numbered_from_0(waffle, sim):  # noqa: F811
    capture = waffle.run(
        sys.executable, ROOT / "tests/integration/programs/nccl_again.py", "3", stdin=None,
        env={**os.environ, "LD_LIBRARY_PATH": str(sim)},
    )  # fmt: skip
    made = capture.result.stdout.split()
    assert 1 < len(made) == len(set(made)) + 1
    rows = sorted((r for r in capture.rows() if r.get("name") == "ncclAllReduce"), key=began)
    assert [r["args"]["seq"] for r in rows] == [0, 1, 2] * len(made)
    assert len({r["args"]["comm"] for r in rows}) == len(made)


def test_what_nccl_launches_is_counted_once_beside_its_calls(calls):
    """One kernel for each rank in a group, though a group may hold two calls of a rank."""
    rows, logs = calls
    launches = [r for r in rows if r.get("name") == "cuLaunchKernel" and is_of_nccl(r)]
    groups = named(logs, "ncclGroupEnd")
    assert len(launches) == 2 * len(groups)


def test_what_makes_a_graph_is_recorded_and_waited_for_by_nobody(calls):
    """By the log: a launch, a graph of two streams, a synchronisation of each, its launches,
    and one of all streams."""
    rows, logs = calls
    ours = sorted(of_calls(rows), key=began)
    names = [r["call"] for r in logs]
    first = names.index("cudaStreamBeginCapture") - 1
    made = names.index("cudaStreamEndCapture")
    last = names.index("cuGraphLaunch") + 1
    begins = [r["begin"] for r in logs[first : last + 1]]
    mine = [r for r in ours if begins[0] <= began(r) <= logs[last]["end"]]
    assert [r["name"] for r in mine] == [
        "cudaLaunchKernel", "cudaStreamBeginCapture", "cudaLaunchKernel", "cudaEventRecord",
        "cudaStreamWaitEvent", "cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent",
        "cudaStreamEndCapture", "cudaStreamSynchronize", "cudaStreamSynchronize",
        "cudaGraphLaunch", "cuGraphLaunch", "cudaDeviceSynchronize",
    ]  # fmt: skip
    for row, logged in zip(mine, logs[first : last + 1]):
        check_call(row, logged)
    assert logs[made]["graph"] != 0
    ids = [r["id"] for r in mine]
    links = {i: sorted(ids.index(link["id"]) for link in r.get("links", []))
             for i, r in enumerate(mine)}  # fmt: skip
    assert {i: to for i, to in links.items() if to} == {9: [0], 13: [11, 12]}


@pytest.fixture(scope="module")
def training(sim, waffle_program, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("training")
    logs = folder / "logs"
    logs.mkdir()
    waffle = Waffle(waffle_program, folder)
    capture = waffle.run(
        sim / "training", "--ranks", RANKS, "--steps", STEPS, "--log", logs,
        env={**os.environ, "WAFFLE_SIM_SLOW_LOADER": "2:80:6"},
    )
    rows = capture.rows()
    return capture, rows, [read_log(logs / f"rank-{rank}.jsonl") for rank in range(RANKS)]


def test_four_ranks_at_once_are_recorded_call_by_call(training):
    capture, rows, logs = training
    pids = {log[0]["tid"] for log in logs}
    check_all([r for r in rows if r.get("pid") in pids], [row for log in logs for row in log])
    capture.check_sums(lost=0)


def test_a_communicator_has_one_name_on_all_ranks_and_ranks_are_right(training):
    _, rows, logs = training
    calls = [r for r in rows if r.get("name") == "ncclAllReduce"]
    assert len(calls) == RANKS * STEPS
    assert len({r["args"]["comm"] for r in calls}) == 1
    ranks = {log[0]["tid"]: rank for rank, log in enumerate(logs)}
    for row in calls:
        assert row["args"]["rank"] == ranks[row["pid"]]
        assert row["args"]["nranks"] == RANKS
    for rank_pid in ranks:
        mine = [r["args"]["seq"] for r in calls if r["pid"] == rank_pid]
        assert mine == list(range(STEPS))


def test_a_communicator_that_cant_be_read_has_the_rank_of_its_creation(sim, waffle):  # noqa: F811
    """The getters of this libnccl don't show the layout."""
    capture = waffle.run(
        sim / "training", "--ranks", RANKS, "--steps", STEPS,
        env={**os.environ, "LD_LIBRARY_PATH": str(sim / "opaque"),
             "WAFFLE_SIM_SLOW_LOADER": "2:80:6:3"},
    )  # fmt: skip
    rows = capture.rows()
    calls = [r for r in rows if r.get("name") == "ncclAllReduce"]
    assert len(calls) == RANKS * STEPS
    assert not any(key in r["args"] for r in calls for key in ("comm", "rank", "nranks"))
    inits = {r["pid"]: r["args"] for r in rows if r.get("name") == "ncclCommInitRank"}
    assert len({args["comm_id"] for args in inits.values()}) == 1
    for row in calls:
        assert row["args"]["comm_address"] == inits[row["pid"]]["comm_address"]
    stragglers = capture.report()["stragglers"]
    assert stragglers[0]["rank"] == 2
    assert {r["comm"] for r in stragglers} == {f"rank {rank}" for rank in range(RANKS)}
    for row in stragglers:
        assert row["comm"] == f"rank {row['rank']}" and row["calls"] == STEPS


def test_calls_are_nested_in_the_programs_own_spans(training):
    _, rows, _ = training
    spans = {r["id"]: r for r in rows if r["kind"] == "span"}
    inside = {"ncclAllReduce": "backward", "cudaStreamSynchronize": "optimizer"}
    for name, parent in inside.items():
        found = [spans[r["parent"]]["name"] for r in rows if r.get("name") == name]
        assert found == [parent] * (RANKS * STEPS)


def test_all_outputs_say_that_it_is_simulated(training, tmp_path):
    capture, rows, _ = training
    assert "simulated" in capture.report_text()
    assert capture.report()["simulated"] is True
    assert capture.info()["simulated"] is True
    [summary] = [r for r in rows if r["kind"] == "summary"]
    assert summary["simulated"] is True
    why = capture.waffle.ok("why", capture.path, "--span", "step", "--slowest", "1").stdout
    assert "simulated" in why
    chrome = json.loads(capture.export("chrome", tmp_path / "t.json").read_text())
    assert chrome["otherData"]["simulated"] is True
    assert b"simulated: CUDA and NCCL" in capture.export("perfetto").read_bytes()
    records = capture.export("records", tmp_path / "t.records").read_text().splitlines()
    assert json.loads(records[0]) == {"kind": "capture", "simulated": True}
    assert "simulated: CUDA and NCCL" in capture.waffle.ok("view", capture.path).stdout
    capture.waffle.ok("report", "--html", tmp_path / "t.html", capture.path)
    page = (tmp_path / "t.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert any(text.startswith("simulated: CUDA and NCCL") for text in data["warnings"])


HOST = """
import ctypes, sys

cuda, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
print("ready", flush=True)
sys.stdin.readline()
stream = ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuStreamCreate(ctypes.byref(stream), 1)
assert not %s
assert not cuda.cuStreamSynchronize(stream)
"""


# A callback of a stream gets the stream, 0 and what it was given: of no file, for so many ms.
HOSTS = {
    "usleep": "cuda.cuLaunchHostFunc(stream, libc.usleep, ctypes.c_void_p(300_000))",
    "poll": "cuda.cuStreamAddCallback(stream, libc.poll, ctypes.c_void_p(300), 0)",
}


@pytest.mark.parametrize("function", HOSTS)
@tries(3)  # a busy machine may come to the synchronisation when it is over
def test_a_host_function_is_named_and_followed_and_no_gpu(sim, waffle, start, function):  # noqa: F811
    library = sim / "libcuda.so.1"
    program = start(sys.executable, "-c", HOST % HOSTS[function], library)
    program.until("ready")
    attached = waffle.attach("-q", "--no-report", "-p", program.pid)
    attached.wait_calls(waffle, program.pid, library)
    program.finish()
    capture = attached.wait()
    answer = waffle.ok("why", "--json", "--span", "cuStreamSynchronize", capture.path).stdout
    [instance] = json.loads(answer)["instances"]
    assert "gpu" not in {cause["cause"] for cause in instance["causes"]}
    cause = instance["causes"][0]
    assert cause["grade"] == "likely" and (cause["cause"] == "sleep" or function == "poll")
    said = rf"waits for host function \w*{function} on stream 0x"
    assert re.match(said, cause["chain"][0]["meaning"])
    assert cause["chain"][-1]["comm"].startswith("sim stream")


@pytest.mark.parametrize("before", [0, 1, 70])
@pytest.mark.parametrize("how", ["", "kv.stream >= 0"])  # told as registers, or under a filter
def test_a_launch_by_the_driver_behind_a_failed_one_counts(sim, waffle, tmp_path, before, how):  # noqa: F811
    libraries = ["libcudart.so.12", "libnccl.so.2", "libcuda.so.1"]
    program = compile_program(
        "fallback.c",
        tmp_path / "fallback",
        "-D_GNU_SOURCE",
        f"-I{ROOT}",
        f"-I{ROOT}/tests/sim",
        f"-L{sim}",
        f"-Wl,-rpath,{sim}",
        *[f"-l:{library}" for library in libraries],
    )
    options = ["--filter", how] if how else []
    capture = waffle.run(program, str(before), options=options)
    first, failed, direct = map(int, capture.result.stdout.split("\n")[0].split())
    assert (first, failed, direct) == (before * 100, 200, 200)
    launches = [row["name"] for row in capture.rows("event") if "LaunchKernel" in row["name"]]
    assert launches.count("cudaLaunchKernel") == first + failed
    assert launches.count("cuLaunchKernel") == direct


def test_demo_explains_the_late_rank(sim, waffle):  # noqa: F811
    out = waffle.ok("demo", "-o", waffle.folder / "d.waffle", timeout=120).stdout
    assert out.startswith("A simulated training on simulated GPUs")
    assert (waffle.folder / "d.pftrace").stat().st_size > 10_000
    why = out[out.index("== Why") :]
    assert re.search(r"^step \w+ of rank [013] ", why, re.M)
    # The way from the wait to the late loader, which is in another process.
    assert re.search(r"waits for rank 2 in ncclAllReduce \(seq \d+\) ← arrived last: rank 2 ", why)
    assert re.search(r"^ +\d+\. .* user-work .* loader \(\d+, rank \d+\) in decode", why, re.M)
    assert re.search(r"running in decode", why)
    assert "simulated: CUDA and NCCL are stand-ins" in why


def test_demo_without_the_training_says_what_is_missing(waffle, waffle_program, tmp_path):
    alone = tmp_path / "waffle-bpf"
    shutil.copy(waffle_program, alone)
    waffle.program = alone
    waffle.fails(1, "demo", says=r"sim/training: neither this simulated training nor .*make sim")

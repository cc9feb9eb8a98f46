# SPDX-License-Identifier: Apache-2.0
"""What waffle-bpf says of CUDA's and NCCL's calls is what the program's own log says: each call
once, in order, on its thread, with its arguments. On the stand-ins of docs/simulation.md."""

import collections
import json
import os
import re
import shutil

import pytest

from test_sim import RANKS, named, read_log, sim  # noqa: F401  (sim: a fixture)
from tracer import Program, Waffle, wait_until

STEPS = 12
# They are there so that kernels have names; the programs don't log them.
NAMING = {
    "__cudaRegisterFunction",
    "__cudaGetKernel",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuModuleGetFunction",
}
NOT_WATCHED = {"cudaSetDevice", "cuModuleLoadData"}
ALIASES = {"__cudaLaunchKernel": "cudaLaunchKernel", "pncclAllReduce": "ncclAllReduce"}

COPY = ["HtoH", "HtoD", "DtoH", "DtoD", "default"]
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
TYPES += ["bfloat16", "f8e4m3", "f8e5m2"]
OPS = ["sum", "prod", "max", "min", "avg"]
WORDS = {"kind": COPY, "datatype": TYPES, "op": OPS}


def is_of_nccl(row):
    """A kernel that NCCL launches, which the program knows nothing of."""
    return str(row["args"].get("kernel", "")).startswith("ncclDevKernel_")


def of_calls(rows):
    return [
        row
        for row in rows
        if row.get("category") in ("cuda", "nccl")
        and row["name"] not in NAMING
        and not is_of_nccl(row)
    ]


def by_thread(rows, begin):
    threads = collections.defaultdict(list)
    for row in sorted(rows, key=begin):
        threads[row["tid"]].append(row)
    return threads


def number(value):
    """Pointers are shown in hexadecimal."""
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else value


def began(row):
    return row["start_ns"]


def check_call(row, logged):
    """One call as waffle-bpf has it and as the program has logged it."""
    assert row["name"] == ALIASES.get(logged["call"], logged["call"])
    assert logged["begin"] <= began(row) <= logged["end"]
    if row["kind"] == "span":
        assert row["end_ns"] <= logged["end"]
        assert row["args"].get("result", 0) == logged["result"]
    for key in set(logged) - {"call", "tid", "begin", "end", "result"}:
        expected = WORDS[key][logged[key]] if key in WORDS else logged[key]
        assert number(row["args"][key]) == expected, (row["name"], key)


def check_all(rows, logs):
    """Every call of the log once, in order, and no other."""
    ours = by_thread(of_calls(rows), began)
    logged = [row for row in logs if row["call"] not in NOT_WATCHED | NAMING]
    theirs = by_thread(logged, lambda row: row["begin"])
    assert set(ours) == set(theirs)
    for tid, calls in theirs.items():
        names = [ALIASES.get(call["call"], call["call"]) for call in calls]
        assert collections.Counter(r["name"] for r in ours[tid]) == collections.Counter(names)
        for row, call in zip(ours[tid], calls):
            check_call(row, call)


def check_sequences(rows, logs):
    """Collectives of a communicator are numbered from its creation on, on each rank."""
    seen = collections.Counter()
    for row in sorted((r for r in rows if "seq" in r.get("args", {})), key=began):
        args = row["args"]
        kind = row["name"] in ("ncclSend", "ncclRecv")
        key = (row["pid"], args["comm"], args["rank"], kind)
        assert args["seq"] == seen[key], row
        seen[key] += 1
    assert sum(seen.values()) == sum("datatype" in row for row in logs)


# With the runtime of CUDA 12, of CUDA 13, and linked into the program.
PROGRAMS = ["calls", "calls-13", "calls-static"]


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


def test_what_nccl_launches_is_counted_once_beside_its_calls(calls):
    """One kernel for each rank in a group, though a group may hold two calls of a rank."""
    rows, logs = calls
    launches = [r for r in rows if r.get("name") == "cuLaunchKernel" and is_of_nccl(r)]
    groups = named(logs, "ncclGroupEnd")
    assert len(launches) == 2 * len(groups)


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


def test_demo_explains_the_late_rank(sim, waffle):  # noqa: F811
    out = waffle.ok("demo", "-o", waffle.folder / "d.waffle", timeout=120).stdout
    assert out.startswith("A simulated training on simulated GPUs")
    assert (waffle.folder / "d.pftrace").stat().st_size > 10_000
    why = out[out.index("== Why") :]
    assert re.search(r"^step \w+ of rank [013] ", why, re.M)
    # The way from the wait to the late loader, which is in another process.
    assert re.search(r"waits for rank 2 in ncclAllReduce \(seq \d+\) ← arrived last: rank 2 ", why)
    assert re.search(r"^ +\d+\. .* user-work .* loader \(\d+\) in decode", why, re.M)
    assert re.search(r"running in decode", why)
    assert "simulated: CUDA and NCCL are stand-ins" in why


def test_demo_without_the_training_says_what_is_missing(waffle, waffle_program, tmp_path):
    alone = tmp_path / "waffle-bpf"
    shutil.copy(waffle_program, alone)
    waffle.program = alone
    waffle.fails(1, "demo", says=r"sim/training: the simulated training is not there.*make sim")

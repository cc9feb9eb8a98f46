# SPDX-License-Identifier: Apache-2.0
"""Parents and links of calls, against what a training program knows of itself: the step that each
of its calls belongs to, which waffle-bpf has from the program's own spans."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

from tracer import Capture, children_of, try_again, wait_until

RANKS = 4
ONLY = ("--sources", "spans,cuda,nccl")


@pytest.fixture(scope="session")
def training(waffle_program):
    program = waffle_program.parent / "sim" / "training"
    assert program.exists(), f"{program} is not built; run make sim"
    return program


class Rows:
    """Spans and events of a capture by id."""

    def __init__(self, capture):
        self.by_id = {
            row["id"]: row for row in capture.rows() if row["kind"] in ("span", "event")
        }

    def named(self, name):
        return [row for row in self.by_id.values() if row["name"] == name]

    def above(self, row, name):
        """The nearest span of a name around it."""
        while row and row["name"] != name:
            row = self.by_id.get(row.get("parent"))
        return row

    def step(self, row):
        step = self.above(row, "step")
        return step and step["args"]["step"]

    def causes(self, row):
        return [self.by_id[link["id"]] for link in row.get("links", [])]


def check_meetings(rows, steps):
    """The all-reduces that are linked are of one step and of all ranks, and lead to the last."""
    calls = {}
    for call in rows.named("ncclAllReduce"):
        if rows.step(call) in steps:
            calls.setdefault(rows.step(call), []).append(call)
    assert len(calls) == len(steps)
    for step, met in calls.items():
        assert len(met) == RANKS, step
        last = max(met, key=lambda call: call["start_ns"])
        for call in met:
            assert [cause["id"] for cause in rows.causes(call)] == (
                [] if call is last else [last["id"]]
            ), step


def test_collectives_of_all_ranks_meet_from_their_communicators_creation_on(waffle, training):
    capture = waffle.run(training, "--ranks", RANKS, "--steps", 6, options=ONLY)
    rows = Rows(capture)
    check_meetings(rows, set(range(6)))
    assert capture.info()["collectives_unaligned"] == 0


def test_collectives_of_all_ranks_meet_though_attached_to_in_the_middle(waffle, training, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    program = subprocess.Popen(
        [training, "--ranks", str(RANKS), "--steps", "2000", "--log", logs],
        stdout=subprocess.DEVNULL,
    )
    try:
        # The first block of a log is written when the communicator is long there.
        wait_until(
            lambda: len([log for log in logs.iterdir() if log.stat().st_size]) == RANKS, "the logs"
        )
        ranks = children_of(program.pid)
        attached = waffle.attach(
            *[word for pid in ranks for word in ("-p", pid)],
            *("--duration", "700ms", *ONLY, "-q", "--no-report"),
        )
        capture = attached.wait(timeout=60)
    finally:
        program.kill()
        program.wait()
    rows = Rows(capture)
    assert not rows.named("ncclCommInitRank")
    seen = [{rows.step(c) for c in rows.named("ncclAllReduce") if c["pid"] == p} for p in ranks]
    whole = set.intersection(*seen) - {None}
    assert len(whole) > 5
    check_meetings(rows, whole)


def test_calls_lie_in_the_programs_spans_and_a_wait_leads_to_what_it_waits_for(waffle, training):
    # The driver is loaded late; a longer start of it leaves the time to arm it.
    environment = {**os.environ, "WAFFLE_SIM_INIT_MS": "1000"}

    def traced():
        rows = Rows(waffle.run(training, "--ranks", 2, "--steps", 5, options=ONLY, env=environment))
        assert rows.named("cuLaunchKernel")
        return rows

    rows = try_again(traced, 3)
    launches = rows.named("cudaLaunchKernel")
    assert len(launches) >= 2 * 5 * 3
    for launch in launches:
        around = rows.by_id[launch["parent"]]
        assert around["name"] in ("forward", "backward", "optimizer")
        assert around["tid"] == launch["tid"] and around["trace"] == launch["trace"]
        assert around["start_ns"] <= launch["start_ns"] <= around["end_ns"]
    # NCCL's own kernels belong to the collective that launched them.
    inner = rows.named("cuLaunchKernel")
    assert {rows.by_id[launch["parent"]]["name"] for launch in inner} == {"ncclAllReduce"}
    waits = rows.named("cudaStreamSynchronize")
    assert len(waits) == 2 * 5
    for wait in waits:
        [cause] = rows.causes(wait)
        assert cause["pid"] == wait["pid"] and cause["start_ns"] < wait["start_ns"]
        assert cause["args"]["stream"] == wait["args"]["stream"]
        # Nothing that was put there later.
        assert not [
            row
            for row in rows.by_id.values()
            if row["pid"] == wait["pid"]
            and row.get("category") == "cuda"
            and row["args"].get("stream") == wait["args"]["stream"]
            and re.match(r"cudaLaunch|cudaMemcpy", row["name"])
            and cause["start_ns"] < row["start_ns"] < wait["start_ns"]
        ]
    for wait in rows.named("cudaStreamWaitEvent"):
        [cause] = rows.causes(wait)
        assert cause["name"] == "cudaEventRecord"
        assert cause["args"]["event"] == wait["args"]["event"]


def test_a_recv_leads_to_the_send_that_it_meets_and_the_end_of_a_group_to_what_is_in_it(
    waffle, training
):
    capture = waffle.run(training.parent / "calls", options=ONLY)
    rows = Rows(capture)
    sends, recvs = rows.named("ncclSend"), rows.named("ncclRecv")
    assert len(sends) == len(recvs) == 2
    for recv in recvs:
        [send] = rows.causes(recv)
        assert send["name"] == "ncclSend"
        assert send["args"]["comm"] == recv["args"]["comm"]
        assert send["args"]["peer"] == recv["args"]["rank"]
        assert send["args"]["rank"] == recv["args"]["peer"]
    groups = rows.named("ncclGroupEnd")
    inside = [sorted(c["id"] for c in rows.causes(group)) for group in groups]
    assert sorted(c["id"] for c in sends + recvs) in inside
    assert sum(map(len, inside)) == sum(
        row.get("category") == "nccl" and "seq" in row["args"] for row in rows.by_id.values()
    )
    assert capture.info()["collectives_unaligned"] == 0


@pytest.mark.parametrize("function", ["cudaStreamSynchronize", "cudaMemcpy", "ncclAllReduce"])
def test_a_call_that_failed_waits_for_nothing(waffle, training, function):
    environment = {**os.environ, "WAFFLE_SIM_FAIL": f"{function}:1:5"}
    capture = waffle.run(training.parent / "calls", options=ONLY, env=environment, code=1)
    rows = Rows(capture)
    [failed] = rows.named(function)
    assert failed["args"]["result"] == 5
    assert not rows.causes(failed)
    assert not any(failed in rows.causes(row) for row in rows.by_id.values())


def families(pid, count):
    """Of the children of a process, those that have so many children: these."""
    return [c for child in children_of(pid) if len(c := children_of(child)) == count]


def computed(pid, name):
    """CPU time of a process's threads of a name, in ticks."""
    ticks = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        head, _, tail = (task / "stat").read_text(encoding="ascii").rpartition(")")
        ticks += int(tail.split()[11]) if head.endswith(f"({name}") else 0
    return ticks


class Quiet:
    """Whether no thread of some processes has run, or wanted to, for some looks: longer than they
    sleep by themselves."""

    def __init__(self, pids):
        self.pids, self.last, self.looks = pids, None, 0

    def __call__(self):
        texts = [
            (task / "status").read_text(encoding="ascii")
            for pid in self.pids
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
        ]
        now = [re.findall(r"ctxt_switches:\t(\d+)", text) for text in texts]
        asleep = all("State:\tS" in text for text in texts)
        self.looks = self.looks + 1 if asleep and now == self.last else 0
        self.last = now
        return self.looks > 20


def test_a_rank_that_does_not_come_is_told_though_no_call_of_it_is_there(waffle, training):
    capture = Capture(waffle, waffle.path())
    process = subprocess.Popen(
        [waffle.program, "run", "-q", "--no-report", "-o", capture.path]
        + ["--", training, "--ranks", "3", "--steps", "9"],
        env={**os.environ, "WAFFLE_SIM_SLOW_LOADER": "2:600000:3"},
        start_new_session=True,
    )
    try:
        # The loader of rank 2 computes on and on, and the others wait for that rank.
        [ranks] = wait_until(lambda: families(process.pid, 3), "the ranks")
        wait_until(lambda: computed(ranks[2], "loader") > 10, "the slow batch")
        wait_until(Quiet(ranks[:2]), "those who wait")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    why = waffle.ok("why", "--span", "step", "--slowest", "0", capture.path).stdout
    for rank in (0, 1):
        waits = r" waits for rank 2, which has not come to ncclAllReduce ← not there: rank 2 "
        assert re.search(rf"^step \w+ of rank {rank} .*(\n.+)*{waits}", why, re.M), why

# SPDX-License-Identifier: Apache-2.0
"""Parents and links of calls, against what a training program knows of itself: the step that each
of its calls belongs to, which waffle-bpf has from the program's own spans."""

import os
import pathlib
import re
import subprocess

import pytest

from tracer import wait_until

RANKS = 4
ONLY = ("--sources", "spans,cuda,nccl")


@pytest.fixture(scope="session")
def training(waffle_program):
    program = waffle_program.parent / "sim" / "training"
    assert program.exists(), f"{program} is not built; run make sim"
    return program


def children_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


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
        capture = attached.wait(timeout=30)
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
    capture = waffle.run(training, "--ranks", 2, "--steps", 5, options=ONLY)
    rows = Rows(capture)
    launches = rows.named("cudaLaunchKernel")
    assert len(launches) >= 2 * 5 * 3
    for launch in launches:
        around = rows.by_id[launch["parent"]]
        assert around["name"] in ("forward", "backward", "optimizer")
        assert around["tid"] == launch["tid"] and around["trace"] == launch["trace"]
        assert around["start_ns"] <= launch["start_ns"] <= around["end_ns"]
    # NCCL's own kernels belong to the collective that launched them.
    inner = rows.named("cuLaunchKernel")
    assert inner
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

# SPDX-License-Identifier: Apache-2.0
"""Programs that execute another one: open spans and calls end at the exec."""

import os

import pytest

from tracer import named, parse_log

EXECS = 24  # more than the calls that a thread can be in


def test_calls_that_are_open_at_an_exec_hide_none_of_the_new_program(waffle, built):
    capture = waffle.run(
        built("execs.c"),
        EXECS,
        options=(
            "--sources", "spans",
            "--probe", "uprobe:exe:work(int64_t number) -> int64_t ret inner",
            "--probe", "uprobe:exe:again(void *program, long left) -> int ret outer",
        ),
    )  # fmt: skip
    capture.check_sums(lost=0)
    rows = capture.rows()
    calls = named(rows, "work")
    assert sorted(row["args"]["number"] for row in calls) == list(range(3 * (EXECS + 1)))
    assert all(row["args"]["ret"] == row["args"]["number"] + 1 for row in calls)
    left = named(rows, "again")
    assert [row["args"]["left"] for row in left] == list(range(EXECS, 0, -1))
    assert all(row.get("left") for row in left)


@pytest.mark.parametrize("old", [False, True])
def test_tracepoints_behind_an_exec(waffle, built, old):
    """`old`: as before Linux 6.4, where programs at tracepoints make nothing for a thread."""
    capture = waffle.run(
        built("execs.c"), 3,
        options=(
            "--sources", "sched",
            "--probe", "tracepoint:task:task_rename(newcomm)",
            "--probe", "tracepoint:sched:sched_process_exit(prio)",
        ),
        env=os.environ | ({"WAFFLE_STORAGE_OLD": "1"} if old else {}),
    )  # fmt: skip
    capture.check_sums(lost=0)
    rows = capture.rows("event")
    assert len(named(rows, "task_rename")) == 1 + 3  # by run, and by the program
    assert len(named(rows, "sched_process_exit")) == 1


def test_exec_by_another_thread_than_the_main_one(waffle, built):
    capture = waffle.run(built("thread_exec.c"))
    [said] = parse_log(capture.result.stdout.splitlines())
    capture.check_sums(lost=0)
    rows = [row for row in capture.rows("sched") if row["name"] == "running"]
    running = {
        tid: sum(r["end_ns"] - r["start_ns"] for r in rows if r["tid"] == tid)
        for tid in (said["pid"], said["worker"])
    }
    ends = [r["end_ns"] for r in rows if r["tid"] == said["worker"]]
    # By the time of the exec the worker had worked for 30 ms; behind it, for 20 ms and a little more.
    assert 25e6 < running[said["worker"]] < said["running"]
    assert max(ends) < max(r["end_ns"] for r in rows if r["tid"] == said["pid"])
    total = running[said["pid"]] + running[said["worker"]]
    assert abs(total - said["running"]) < 0.1 * said["running"], (running, said)


def test_fork_in_a_span_leaves_its_end_to_the_parent(waffle, built):
    capture = waffle.run(built("fork_span.c"))
    [parent] = [r for r in parse_log(capture.result.stdout.splitlines()) if r["kind"] == "parent"]
    capture.check_sums(lost=0)
    [span] = named(capture.rows(), "start workers")
    assert span["start_ns"] <= parent["begin"] + 10_000_000 and span["end_ns"] >= parent["end"]
    assert span["tid"] == parent["tid"] and not span.get("moved") and not span.get("unfinished")
    assert capture.info()["bad_records"] == 0

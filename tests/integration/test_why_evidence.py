# SPDX-License-Identifier: Apache-2.0
"""What `why` rests on: the records that it names, the CPUs, and what the kernel's stacks mean."""

import json
import os
import pathlib

import jsonschema
import pytest

from tracer import ROOT, tries

# What a record must be to be named as this.
KINDS = {
    "switch-out": ("switch", "state"),
    "switch-in": ("switch", "state"),
    "later switch-in": ("switch",),
    "switch-in of the other": ("switch",),
    "span begin": ("hit",),
    "wait": ("wait",),
    "wake": ("wake",),
    "fault": ("fault",),
    "io": ("io",),
    "signal": ("signal",),
    "quota": ("quota",),
    "stolen": ("stolen",),
    "frequency": ("frequency",),
    "loss": ("loss",),
}


class Why:
    def __init__(self, waffle, capture):
        schema = json.loads((ROOT / "docs" / "why.schema.json").read_text())
        out = waffle.ok("why", "--json", "--evidence", "--slowest", "0", capture.path).stdout
        self.answer = json.loads(out)
        jsonschema.Draft202012Validator(schema).validate(self.answer)
        lines = waffle.ok("export", capture.path, "-f", "records", "-o", "-").stdout
        self.records = [json.loads(line) for line in lines.splitlines()]
        self.rows = capture.rows()

    def instances(self, span="request"):
        return [i for i in self.answer["instances"] if i["span"] == span]

    def steps(self):
        for instance in self.answer["instances"]:
            for cause in instance["causes"]:
                yield from cause["chain"]

    def named(self, step, role):
        return [self.records[r["record"] - 1] for r in step["records"] if r["as"] == role]


@pytest.fixture
def explained(waffle, built):
    """explained(source, arguments): runs the program, and returns what `why` says about it."""

    def run(source, *arguments, options=()):
        program = built(source, "-fno-omit-frame-pointer")
        return Why(waffle, waffle.run(program, *arguments, options=options))

    return run


@pytest.fixture
def lock(explained):
    return explained("causes.c", "lock")


def ends(step):
    return step["start_ns"], step["start_ns"] + step["duration_ns"]


def check_step(why, step):
    """Each record is of the step's thread and has its times; returns how many were checked."""
    begin, end = ends(step)
    # The hypervisor takes the CPU from a thread that the kernel sees running.
    ran = step["state"] == "running" or bool(why.named(step, "stolen"))
    for named in step["records"]:
        record = why.records[named["record"] - 1]
        assert record["record"] == named["record"]
        assert record["kind"] in KINDS[named["as"]]
    for record in why.named(step, "switch-out"):
        assert record["tid"] == step["tid"]
        # A thread that ran goes at the end, one that waited has gone at the begin.
        assert record["ts"] >= end if ran else record["ts"] <= begin
    for record in why.named(step, "switch-in"):
        assert record.get("next_tid", record["tid"]) == step["tid"]
        assert record["ts"] <= begin if ran else record["ts"] >= end
        if step["state"] == "runnable" and not ran and record["kind"] == "switch":
            assert record["cpu"] == step["cpu"]
    for record in why.named(step, "wait"):
        assert record["tid"] == step["tid"] and record["from_ts"] <= begin and record["ts"] >= end
    for record in why.named(step, "wake"):
        assert record["woken_tid"] == step["tid"]
        if step["state"] == "blocked":
            assert record["ts"] >= end
        if step["by"]:
            assert step["state"] == "runnable" or record["tid"] == step["by"]["tid"]
    for record in why.named(step, "switch-in of the other"):
        assert record["next_tid"] == step["by"]["tid"] and record["ts"] <= begin
        assert record["cpu"] == step["cpu"]
    for record in why.named(step, "span begin"):
        assert record["ts"] <= begin
    for record in why.named(step, "fault"):
        assert record["tid"] == step["tid"] and record["from_ts"] < end
    for record in why.named(step, "stolen"):
        assert record["tid"] == step["tid"] and record["from_ts"] <= begin and record["ts"] >= end
    for record in why.named(step, "io"):
        assert record["issue_ts"] < end and record["ts"] > begin
    return len(step["records"])


def test_every_step_names_records_that_have_its_times(lock):
    assert [r["record"] for r in lock.records] == list(range(1, len(lock.records) + 1))
    steps = list(lock.steps())
    assert len(steps) > 20
    for step in steps:
        assert check_step(lock, step) >= 1, step
    for instance in lock.answer["instances"]:
        for cause in instance["causes"]:
            assert cause["records"] == sorted(
                {r["record"] for step in cause["chain"] for r in step["records"]}
            )


def test_a_wait_begins_and_ends_with_its_records_or_with_the_wait_that_it_explains(lock):
    for instance in lock.instances():
        sleep = next(c for c in instance["causes"] if c["cause"] == "sleep")
        first, last = sleep["chain"]
        span = (instance["start_ns"], instance["start_ns"] + instance["duration_ns"])
        for step, around in ((first, span), (last, ends(first))):
            [out] = lock.named(step, "switch-out")
            [back] = lock.named(step, "switch-in")
            assert ends(step) == (max(out["ts"], around[0]), min(back["wake_ts"], around[1]))
        [back] = lock.named(first, "switch-in")
        assert back["waker_tid"] == first["by"]["tid"] == last["tid"]


def test_wait_rows_of_ndjson_have_the_numbers_of_the_records(lock):
    waits = [row for row in lock.rows if row["kind"] == "wait"]
    assert waits
    for row in waits:
        record = lock.records[row["record"] - 1]
        assert (record["kind"], record["tid"]) == ("wait", row["tid"])
        assert (record["from_ts"], record["ts"]) == (row["start_ns"], row["end_ns"])


def test_numbers_are_those_of_the_file_in_a_window_too(waffle, built):
    capture = waffle.run(built("causes.c", "-fno-omit-frame-pointer"), "lock")

    def numbered(*options):
        out = waffle.ok("export", capture.path, "-f", "records", "-o", "-", *options).stdout
        return {row["record"]: row for row in map(json.loads, out.splitlines())}

    whole, part = numbered(), numbered("--from", "100ms", "--to", "200ms")
    assert 0 < len(part) < len(whole)
    assert all(whole[number] == row for number, row in part.items())


@tries(3)
def test_a_thread_that_was_moved_or_preempted_says_from_where_and_by_whom(explained):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    source, target = cpus[:2]
    why = explained("kernel_waits.c", "move", str(source), str(target))
    steps = [s for s in why.steps() if s["state"] == "runnable"]
    for step in steps:
        check_step(why, step)
        for out in why.named(step, "switch-out"):
            assert out["cpu"] == (step["cpu"] if step["from_cpu"] is None else step["from_cpu"])
            if step["preempted"]:
                assert step["preemptor"]["tid"] == out["next_tid"]
    moved = [s for s in steps if s["span"] == "request" and s["from_cpu"] == source]
    # On a busy machine others have that CPU as well, and the longest stretch may be theirs.
    assert any(s["by"] and s["cpu"] == target for s in moved), steps
    preempted = [s for s in steps if s["span"] == "crowded" and s["preempted"]]
    assert any(
        s["preemptor"] == s["by"] and s["cpu"] == target and s["from_cpu"] is None
        for s in preempted
    ), steps


# ---- what stacks mean ----


def file_system(path):
    """Of the mount that a path is on."""
    best, kind = "", None
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, name, *_ = line.split()
        if str(path).startswith(place) and len(place) >= len(best):
            best, kind = place, name
    return kind


@tries(3)
def test_a_sync_says_what_of_the_file_system_it_waits_for(explained, tmp_path):
    kind = file_system(tmp_path)
    if kind not in ("ext4", "xfs", "btrfs", "f2fs"):
        pytest.skip(f"{tmp_path} is on {kind}, which does not wait")
    why = explained("kernel_waits.c", "fsync", tmp_path / "synced")
    meanings = {
        step["meaning"]
        for instance in why.instances()
        for cause in instance["causes"] if cause["cause"] == "disk-write"
        for step in cause["chain"] if step["meaning"]
    }
    assert any(m.startswith("waits for ") and m.endswith(kind) for m in meanings), meanings


@tries(3)
def test_a_page_fault_behind_mmap_lock_is_a_lock_of_its_holder(explained):
    why = explained("kernel_waits.c", "mmap")
    [instance] = why.instances()
    lock = next(c for c in instance["causes"] if c["cause"] == "lock")
    assert lock["culprit"]["comm"] == "protector"
    assert lock["culprit"]["object"] == "the lock of the address space (mmap_lock)"
    assert lock["grade"] == "certain"
    waited = lock["chain"][0]
    assert waited["meaning"] == "waits for the lock of the address space (mmap_lock), page fault"
    assert waited["by"]["comm"] == "protector"
    [wait] = why.named(waited, "wait")
    assert int(wait["address"], 16)


@tries(3)
def test_the_parent_of_vfork_waits_for_its_child(explained):
    why = explained("kernel_waits.c", "vfork")
    [instance] = why.instances()
    sleep, work = (next(c for c in instance["causes"] if c["cause"] == name)
                   for name in ("sleep", "process-exit"))
    assert sleep["duration_ns"] > 30_000_000 and work["duration_ns"] > 10_000_000
    assert sleep["culprit"]["pid"] == work["culprit"]["pid"] != instance["thread"]["pid"]
    first = work["chain"][0]
    assert first["syscall"] in ("vfork", "clone")
    assert first["meaning"] == "waits for the child of vfork() to run a program or to end"
    for step in why.steps():
        check_step(why, step)

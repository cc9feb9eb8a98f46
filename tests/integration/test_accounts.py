# SPDX-License-Identifier: Apache-2.0
"""Produced = delivered + lost, exactly, and a loss is seen in everything that is shown."""

import json
import os
import re
import signal

from test_probes import arm
from tracer import named, parse_log, wait_until


def flooded(waffle, built, ms, *options):
    capture = waffle.run(built("steps.c"), options=options, stdin=None, input=f"flood {ms}\n")
    [said] = [r for r in parse_log(capture.result.stdout.splitlines()) if "flood" in r]
    return capture, said["flood"]


def test_small_buffers_overflow_and_every_record_is_accounted_for(waffle, built, tmp_path):
    capture, made = flooded(waffle, built, 500, "--ring-size", "4KiB", "--sched-size", "4KiB")
    records = capture.check_sums()
    assert records["lost"] > 0
    sources = records["sources"]
    for source in sources.values():
        assert source["produced"] == source["delivered"] + source["lost"]
    for key in ("produced", "delivered", "lost"):
        assert records[key] == sum(source[key] for source in sources.values())
    seen = [row["args"]["n"] for row in named(capture.rows(), "flood")]
    assert len(seen) == len(set(seen)) < made and seen == sorted(seen)
    # Only events are flooded: what is missing of them was counted as lost by their source, beside
    # the few records of threads and processes, more if others are busy on the machine.
    missing = made - len(seen)
    others = sources["spans"]["produced"] - made
    assert 0 < others < made / 100
    assert missing <= sources["spans"]["lost"] <= missing + others

    report = capture.report()
    assert report["records"] == records
    assert sum(loss["count"] for loss in report["loss"]) == records["lost"]
    assert sum(loss["count"] for loss in capture.info()["loss"]) == records["lost"]
    info = capture.info()
    for loss in info["loss"]:
        assert info["start_ns"] - 1e9 <= loss["from_ns"] < loss["to_ns"]

    text = capture.report_text()
    assert re.search(rf"{records['lost']:,} (records )?lost", text), text[-600:]
    info_text = waffle.ok("info", capture.path).stdout
    assert re.search(rf"{records['lost']:,} lost", info_text), info_text
    losses = capture.rows("loss")
    assert sum(row["args"]["count"] for row in losses) == records["lost"]
    assert {row["args"]["source"] for row in losses} >= {"spans"}

    chrome = json.load(open(capture.export("chrome"), encoding="utf-8"))
    events = chrome["traceEvents"] if isinstance(chrome, dict) else chrome
    marks = [event for event in events if "lost" in event.get("name", "").lower()]
    assert marks, "the loss is marked in Chrome's trace"
    counts = [event.get("args", {}).get("count") for event in marks]
    assert sum(count for count in counts if isinstance(count, int)) == records["lost"]

    trace = capture.export("perfetto").read_bytes()
    assert b"lost" in trace


def test_loss_is_in_the_summary_line(waffle, built):
    path = waffle.path()
    result = waffle.ok(
        "run", "--no-report", "--ring-size", "4KiB", "-o", path, "--", built("steps.c"),
        stdin=None, input="flood 200\n",
    )  # fmt: skip
    assert re.search(r"[1-9][\d.,]*[kMG]? lost", result.stderr), result.stderr


def test_default_buffers_lose_nothing_of_a_3_second_flood(waffle, built):
    capture, made = flooded(waffle, built, 3000, "--no-sched")
    capture_info = capture.info()
    records = capture_info["records"]
    assert records["lost"] == 0 and records["produced"] == records["delivered"]
    assert capture_info["events"] == made > 100_000
    [row] = [row for row in capture.report()["events"] if row["name"] == "flood"]
    assert row["count"] == made


def test_flood_with_the_scheduler_on_loses_nothing(waffle, built):
    capture, made = flooded(waffle, built, 200)
    assert capture.info()["records"]["lost"] == 0
    assert [row["args"]["n"] for row in named(capture.rows(), "flood")] == list(range(made))


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0]


def test_calls_for_which_a_cpu_has_no_slot_any_more_go_by_the_ring_buffer(waffle, built, start):
    path = built("burst.c")
    program = start(path)
    program.until("ready")
    call = f"uprobe:{path}:tick(u64 thread, u64 number) as event"
    attached = arm(waffle, program.pid, path, "--probe", call)
    os.kill(attached.process.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(attached.process.pid) == "T", "stopping the tracer")
    program.say("go")
    program.until("done")
    os.kill(attached.process.pid, signal.SIGCONT)
    program.finish()
    capture = attached.wait()
    capture.check_sums(lost=0)
    ticks = [row["args"] for row in named(capture.rows(), "tick")]
    for thread in (0, 1):
        assert [t["number"] for t in ticks if t["thread"] == thread] == list(range(10_000))

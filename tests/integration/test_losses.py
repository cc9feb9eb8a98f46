# SPDX-License-Identifier: Apache-2.0
"""Where records of the scheduler were lost, time is unknown, and nobody is blamed for it."""

import json

import pytest

from tracer import parse_log, tries

SLACK_NS = 3_000_000  # a wake-up that is under way when a span begins or ends
# The kernel looks at its clock before the tracepoint, waffle in it: of 100,000 switches a second that
# is some per cent. It shows where little was lost.
SLACK = 1.15


@pytest.mark.parametrize("size", ["4KiB", "64KiB", "256KiB"])
@tries(3)
def test_no_state_is_longer_than_the_kernel_says_when_switches_are_lost(waffle, built, size):
    capture = waffle.run(built("lossy.c", "-O2"), options=("--sched-size", size))
    out = waffle.ok("why", capture.path, "--span", "flooded", "--slowest", "0", "--json").stdout
    answer = json.loads(out)
    truths = parse_log(capture.result.stdout.splitlines())
    # On a busy machine the two threads may be too slow to fill a large buffer.
    assert answer["records"]["sources"]["sched"]["lost"] > 0 or size == "256KiB"
    instances = sorted(answer["instances"], key=lambda i: i["start_ns"])
    assert len(instances) == len(truths)
    for instance, truth in zip(instances, truths):
        parts = instance["parts"]
        blocked = truth["length"] - truth["running"] - truth["waiting"]
        assert parts["running_ns"] <= truth["running"] * SLACK + SLACK_NS
        assert parts["runnable_ns"] <= truth["waiting"] * SLACK + SLACK_NS
        assert parts["blocked_ns"] <= blocked * SLACK + SLACK_NS
        assert instance["loss"] or size == "256KiB"
        if instance["loss"]:
            assert parts["unknown_ns"] > 0
            assert all(cause["grade"] != "certain" for cause in instance["causes"])


def test_runs_of_programs_that_the_kernel_skipped_are_lost(waffle, built):
    """While a CPU is in a bpf() system call, the kernel skips what a tracepoint in an interrupt would run."""
    capture = waffle.run(
        built("bpf_busy.c", "-O2"),
        options=("--no-sched", "--probe", "tracepoint:timer:hrtimer_expire_entry as event expired"))
    spans = json.loads(waffle.ok("info", capture.path, "--json").stdout)["records"]["sources"]["spans"]
    assert spans["lost"] > 0
    assert spans["produced"] == spans["delivered"] + spans["lost"]
    losses = [r for r in map(json.loads, waffle.ok(
        "export", "-f", "records", "-o", "-", capture.path).stdout.splitlines()) if r["kind"] == "loss"]
    assert sum(loss["count"] for loss in losses) == spans["lost"]
    assert f"{spans['lost']} lost" in waffle.ok("info", capture.path).stdout

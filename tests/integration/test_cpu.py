# SPDX-License-Identifier: Apache-2.0
"""What a thread's time on a CPU was worth: stolen time against what the kernel counts itself."""

import json
import pathlib

import pytest

from tracer import parse_log

TICK_NS = 10_000_000
LEAST_NS = 50_000  # less is not told
FREQUENCY = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")


@pytest.fixture
def spin(waffle, built):
    program = built("spin.c")

    def run(milliseconds, *options):
        capture = waffle.run(program, str(milliseconds), options=options)
        capture.check_sums(lost=0)
        said = {row["kind"]: row for row in parse_log(capture.result.stdout.splitlines())}
        return capture, said

    return run


def test_what_is_stolen_is_what_the_kernel_leaves_out_of_cpu_time(spin):
    capture, said = spin(1500)
    begin, end, tid = said["begin"], said["end"], said["thread"]["tid"]
    rows = [row for row in capture.rows("stolen", tid=tid) if row["end_ns"] > begin["ts"]]
    assert bool(rows) <= ("steal" in capture.info()["sources"])
    stolen = sum(row["args"]["stolen_ns"] for row in rows)
    for row in rows:
        assert LEAST_NS <= row["args"]["stolen_ns"] <= row["end_ns"] - row["start_ns"]
    for one, next_one in zip(rows, rows[1:]):
        assert one["end_ns"] <= next_one["start_ns"]
    running = sum(
        min(row["end_ns"], end["ts"]) - max(row["start_ns"], begin["ts"])
        for row in capture.rows("sched", tid=tid, name="running")
        if row["end_ns"] > begin["ts"] and row["start_ns"] < end["ts"]
    )
    assert running > 100_000_000
    # Nothing is invented: the CPU lost no less, and that much is missing of the CPU time.
    assert stolen <= end["steal"] - begin["steal"] + 2 * TICK_NS
    by_tick = any("by_tick" in row["args"] for row in rows)  # then CPU time has it
    if "steal" in capture.info()["sources"] and not by_tick:
        assert abs(running - (end["exec"] - begin["exec"]) - stolen) <= 0.01 * running


def test_why_has_stolen_time_outside_of_running(spin, waffle):
    capture, said = spin(800)
    tid = said["thread"]["tid"]
    stolen = sum(row["args"]["stolen_ns"] for row in capture.rows("stolen", tid=tid))
    result = waffle.ok("why", "--json", "--thread", str(tid), capture.path)
    [instance] = json.loads(result.stdout)["instances"]
    told = sum(
        cause["duration_ns"]
        for cause in instance["causes"]
        if cause["culprit"]["object"] == "stolen by the hypervisor"
    )
    assert abs(told - stolen) <= 0.01 * stolen + 1000
    for cause in instance["causes"]:
        if cause["culprit"]["object"] == "stolen by the hypervisor":
            assert cause["cause"] == "cpu-contention" and cause["culprit"]["tid"] is None
        for step in cause["chain"]:
            assert FREQUENCY.exists() or "cpu_khz" not in step


def test_stolen_time_and_frequency_are_switched_on_and_off(spin):
    capture, _ = spin(300, "--sources=-steal,-frequency")
    assert not {"steal", "frequency"} & set(capture.info()["sources"])
    assert not capture.rows("stolen") and not capture.rows("frequency")
    capture, _ = spin(300, "--sources=sched,frequency")
    assert ("frequency" in capture.info()["sources"]) == FREQUENCY.exists()
    assert bool(capture.rows("frequency")) == FREQUENCY.exists()

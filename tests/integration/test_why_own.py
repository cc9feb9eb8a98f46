# SPDX-License-Identifier: Apache-2.0
"""What waffle itself does to a program, `why` names as its own."""

import json
import os
import signal
import time

from tracer import compile_program, parse_log, wait_until

MS = 1_000_000
HELD = "held by waffle-bpf (this capture)"
TIMES = 3


def stopped_state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def test_the_hold_of_a_childs_exec_is_waffles_own(waffle, built, start, tmp_path):
    """The gate holds a new program for 100 ms while the tracer is stopped. The parent's span waits
    for the child meanwhile."""
    quick = tmp_path / "quick.c"
    quick.write_text("int main(void) { return 0; }\n")
    child = compile_program(quick, tmp_path / "quick")
    path = waffle.path()
    traced = start(waffle.program, "run", "-q", "--no-report", "-o", path, "--",
                   built("spawns.c"), child)  # fmt: skip
    traced.until("ready")
    spawned = []
    for _ in range(TIMES):
        time.sleep(0.3)  # the time that a process may be held in a second is limited
        os.kill(traced.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: stopped_state(traced.pid), "the tracer is stopped")
            traced.say("go")
            spawned += parse_log(["spawned " + traced.until("spawned")])
        finally:
            os.kill(traced.pid, signal.SIGCONT)
    traced.finish()
    instances = json.loads(
        waffle.ok("why", "--json", "--span", "spawn", "--slowest", "0", path).stdout
    )["instances"]
    assert len(instances) == TIMES
    for instance in instances:
        # It takes longest, but comes after what the program itself does.
        longest = max(instance["causes"], key=lambda cause: cause["duration_ns"])
        assert (longest["cause"], longest["culprit"]["object"]) == ("stopped", HELD), instance
        assert longest["culprit"]["comm"] == "waffle-gate"
        # The hold ends 100 ms after the exec, and the child does nothing else that takes long.
        assert 50 * MS < longest["duration_ns"] <= instance["duration_ns"]
        assert instance["waffle_ns"] >= longest["duration_ns"]


def test_the_time_of_a_command_begins_with_its_program(waffle):
    """Before that, its thread waits in a copy of waffle-bpf until the capture is ready."""
    path = waffle.run("/bin/sh", "-c", "sleep 0.2; exec sleep 0.1").path
    [instance] = json.loads(waffle.ok("why", "--json", path).stdout)["instances"]
    records = map(json.loads, waffle.ok("export", "-f", "records", "-o", "-", path).stdout.splitlines())
    tid, first = instance["thread"]["tid"], instance["start_ns"]
    assert first == min(row["ts"] for row in records if row["kind"] == "exec" and row["tid"] == tid)
    assert instance["duration_ns"] >= 250 * MS

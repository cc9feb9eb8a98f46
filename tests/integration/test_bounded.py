# SPDX-License-Identifier: Apache-2.0
"""What the tracer takes of time and memory is bounded, whatever programs and machines do to it."""

import os
import pathlib
import time

from tracer import monotonic_ns

# Until the end of the recording after it was asked for. It takes 0.1 s on an idle machine; the bound
# is that of a machine whose CPUs are all taken several times over.
SOON_NS = 1_000_000_000


def resident(pid):
    """Bytes of memory that a process has."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has no memory")


def deluge(start, built, threads=3):
    program = start(built("deluge.c"), str(threads))
    program.until("ready")
    return program


def test_ctrl_c_is_heard_and_memory_is_bounded_while_programs_are_faster_than_the_drain(
    waffle, built, start
):
    program = deluge(start, built)
    attached = waffle.attach("--no-report", "--pid", program.pid)
    attached.wait_armed(program.pid, built("deluge.c"))
    os.setpriority(os.PRIO_PROCESS, attached.process.pid, 19)  # slower than they are for certain
    time.sleep(1)
    early = resident(attached.process.pid)
    time.sleep(2)
    late = resident(attached.process.pid)
    os.setpriority(os.PRIO_PROCESS, attached.process.pid, 0)
    asked = monotonic_ns()
    attached.signal()
    capture = attached.wait()
    program.kill()
    info = capture.info()
    records = info["records"]
    assert info["end_ns"] - asked < SOON_NS
    assert records["produced"] == records["delivered"] + records["lost"]
    assert records["delivered"] > 0
    assert late < early + (16 << 20), f"{early} bytes after 1 s, {late} after 3 s"


def test_a_duration_ends_in_time_while_programs_are_faster_than_the_drain(waffle, built, start):
    program = deluge(start, built)
    attached = waffle.attach("-d", "1s", "--no-report", "--pid", program.pid)
    attached.wait_armed(program.pid, built("deluge.c"))
    armed = monotonic_ns()
    capture = attached.wait()
    program.kill()
    assert capture.info()["end_ns"] - armed < 1_000_000_000 + SOON_NS

# SPDX-License-Identifier: Apache-2.0
"""A process whose main thread has exited, while others go on."""

from test_sim_calls import is_armed
from tracer import named, wait_until


def test_a_process_without_its_main_thread_is_armed(waffle, built, start):
    path = built("leader.c")
    program, other = start(path), start(path)
    for one in (program, other):
        one.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report")
    wait_until(lambda: is_armed(attached.process), "arming")
    for i in range(5):
        program.ask("make", "made")
        other.ask("make", "made")
    program.finish()
    capture = attached.wait()
    made = named(capture.rows(), "made")
    # The other one has hit the probe, but is no target.
    assert [(row["pid"], row["args"]["i"]) for row in made] == [(program.pid, i) for i in range(5)]
    assert "its main thread has exited" in capture.result.stderr

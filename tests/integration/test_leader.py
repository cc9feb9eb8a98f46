# SPDX-License-Identifier: Apache-2.0
"""A process whose main thread has exited, while others go on."""

import re

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
    assert re.search(r"\S* is armed in all processes that run it", capture.result.stderr)


FFLUSH = "uprobe:libc.so.6:fflush(ptr file)"


def flushed(waffle, built, start, *options):
    """What the program's calls of a function of libc become."""
    program = start(built("leader.c"))
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", "--probe", FFLUSH, *options)
    wait_until(lambda: is_armed(attached.process), "arming")
    for _ in range(5):
        program.ask("make", "made")
    program.finish()
    return attached.wait()


def test_functions_of_others_are_not_probed_for_a_process_without_its_main_thread(
    waffle, built, start
):
    capture = flushed(waffle, built, start)
    assert not named(capture.rows(), "fflush")
    assert len(named(capture.rows(), "made")) == 5, "its own sites are armed"
    assert re.search(
        r"libc\S* stays dormant in a process whose main thread has exited.*--machine-wide",
        capture.result.stderr,
    )


def test_functions_of_others_are_probed_with_consent(waffle, built, start):
    capture = flushed(waffle, built, start, "--machine-wide")
    assert len(named(capture.rows(), "fflush")) >= 5
    assert re.search(r"libc\S* is armed in all processes that run it", capture.result.stderr)

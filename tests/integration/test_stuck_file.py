# SPDX-License-Identifier: Apache-2.0
"""The capture's own file lies on a file system that stops to answer."""

import os
import re
import signal
import subprocess
import sys

import pytest

from stuck_folder import folder_fixture  # noqa: F401 - the fixture `folder`
from tracer import Attached, semaphores, wait_until


@pytest.fixture
def attached(waffle, folder, steps):
    made = Attached(waffle, ["--no-report", "-p", steps.pid], folder.path / "capture.waffle")
    waffle.running.append(made)
    made.wait_armed(steps.pid, steps.path)
    return made


def writer_is_stuck(pid):
    """Its writer waits for the file system."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        for child in children.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                if comm.read() != "waffle-writer\n":
                    continue
            with open(f"/proc/{child}/wchan", encoding="ascii") as wchan:
                return "request_wait_answer" in wchan.read() or "fuse" in wchan.read()
    return False


def is_dormant(program):
    return not any(semaphores(program.pid, program.path))


def test_the_file_is_whole_where_the_file_system_answers(attached, steps):
    steps.ask("span 3", "did")
    capture = attached.stop()
    assert [row["args"]["ms"] for row in capture.rows("span")] == [3]
    capture.check_sums(lost=0)


def test_the_first_ctrl_c_ends_the_capture_and_waits_some_seconds(attached, folder, steps):
    folder.stop()
    steps.ask("span 3", "did")
    wait_until(lambda: writer_is_stuck(attached.process.pid), "the writer is stuck")
    attached.signal()
    said = attached.wait_notice()
    assert "its file system does not answer: waiting" in said
    assert attached.process.poll() is None and is_dormant(steps)
    _, rest = attached.process.communicate(timeout=60)
    assert attached.process.returncode == 1
    said = re.search(r"capture.waffle: its file system does not answer; the (\d+) records before it are "
                     r"kept", rest)
    assert said, rest
    folder.go_on()
    # The file is what it was before: whole chunks of so many records.
    info = attached.capture.info()
    assert info["truncated"] and info["records"]["delivered"] >= int(said[1])
    assert len(attached.capture.rows("span")) == 0
    assert steps.ask("span 3", "did")


def test_the_second_ctrl_c_ends_it_at_once(attached, folder, steps):
    folder.stop()
    steps.ask("span 3", "did")
    wait_until(lambda: writer_is_stuck(attached.process.pid), "the writer is stuck")
    attached.signal()
    attached.wait_notice()
    os.kill(attached.process.pid, signal.SIGSTOP)  # both come to it in one turn, if it is slow
    attached.signal()
    os.kill(attached.process.pid, signal.SIGCONT)
    # The patience of the first one is five seconds.
    assert attached.process.wait(4) == 1
    assert is_dormant(steps)


def test_a_file_system_that_answers_again_gets_all(attached, folder, steps):
    folder.stop()
    steps.ask("span 3", "did")
    wait_until(lambda: writer_is_stuck(attached.process.pid), "the writer is stuck")
    attached.signal()
    attached.wait_notice()
    folder.go_on()
    capture = attached.wait()
    assert [row["args"]["ms"] for row in capture.rows("span")] == [3]
    capture.check_sums(lost=0)


def test_a_command_runs_to_its_end_and_its_programs_are_not_held(waffle, folder, built, start):
    path = folder.path / "run.waffle"
    traced = start(waffle.program, "run", "--no-report", "-q", "-o", path, "--", "sh", "-c",
                   f"echo ready; read go; {built('begins.c')} began 0; echo done; read end",
                   stderr=subprocess.PIPE)
    traced.until("ready")
    wait_until(path.exists, "the file has its name")
    folder.stop()
    wait_until(lambda: writer_is_stuck(traced.pid), "the writer is stuck")
    traced.say("go")
    traced.until("done")
    traced.process.stdin.close()
    assert traced.process.wait(60) == 1
    assert "its file system does not answer" in traced.process.stderr.read()

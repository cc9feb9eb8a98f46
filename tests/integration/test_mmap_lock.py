# SPDX-License-Identifier: Apache-2.0
"""A process that keeps its mmap_lock for ever, as any user's can, must not stop the tracer and all
fork() of the machine. Such a lock is kept here for some seconds at most: a timer ends it."""

import subprocess
import time

import pytest

from stuck_folder import mapped_folder_fixture  # noqa: F401 - the fixture `mapped_folder`
from tracer import Attached, semaphores, wait_until

KEPT_S = 2.5


def is_uninterruptible(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "D"

def is_free(holder):
    return not is_uninterruptible(holder.pid)


@pytest.fixture
def holder(mapped_folder, steps, start, built, request):
    """A process that maps the program and can keep its mmap_lock."""
    options = getattr(request, "param", [])
    program = start(built("keeps_mmap_lock.c"), mapped_folder.path / "file", steps.path, *options)
    program.until("ready")
    return program


@pytest.fixture
def keep(mapped_folder, holder):
    """keep(): the process keeps its mmap_lock for KEPT_S seconds. Returns it."""
    timers = []

    def begin():
        timers.append(subprocess.Popen(["sh", "-c", f"sleep {KEPT_S}; rm -f {mapped_folder.stuck}"]))
        mapped_folder.stop()
        holder.say("go")
        wait_until(lambda: is_uninterruptible(holder.pid), "the page is being written")
        return holder

    yield begin
    for timer in timers:
        timer.wait()
    holder.until("unmapped")


def test_nothing_is_armed_while_a_process_keeps_its_mmap_lock(waffle, steps, keep, tmp_path):
    holder = keep()
    with open(f"/proc/{holder.pid}/cmdline", "rb") as memory:  # as ps does: the lock names the reader now
        memory.read()
    attached = Attached(waffle, ["--no-report", "-p", steps.pid, "-d", "1ms"], tmp_path / "a.waffle")
    waffle.running.append(attached)
    _, said = attached.process.communicate(timeout=60)
    assert not is_free(holder), "the tracer waited for the lock"
    assert f"of process {holder.pid} " in said and "is blocked in munmap() and keeps" in said, said
    assert not any(semaphores(steps.pid, steps.path))


def test_what_was_refused_is_armed_when_the_lock_is_free(waffle, steps, keep, tmp_path):
    holder = keep()
    attached = Attached(waffle, ["--no-report", "-p", steps.pid], tmp_path / "a.waffle")
    waffle.running.append(attached)
    assert f"of process {holder.pid} " in attached.wait_notice()
    assert not any(semaphores(steps.pid, steps.path))
    attached.wait_armed(steps.pid, steps.path)
    assert is_free(holder)
    attached.stop()


def test_the_capture_is_written_while_the_probes_can_not_be_taken_off(waffle, steps, keep, tmp_path):
    attached = Attached(waffle, ["--no-report", "-p", steps.pid], tmp_path / "a.waffle")
    waffle.running.append(attached)
    attached.wait_armed(steps.pid, steps.path)
    steps.ask("span 3", "did")
    holder = keep()
    attached.signal()
    time.sleep(1.2)  # before that, another signal changes nothing
    attached.signal()
    wait_until(lambda: not attached.capture.info()["truncated"], "the capture is written", 1.0)
    assert not is_free(holder), "the tracer waited for the lock"
    _, said = attached.process.communicate(timeout=60)
    assert "the kernel does not take the probes off" in said, said
    assert [row["args"]["ms"] for row in attached.capture.rows("span")] == [3]


@pytest.mark.parametrize("holder", [[], ["replaces"]], indirect=True, ids=["reading", "writing"])
def test_the_capture_of_a_process_that_keeps_its_lock_is_written(waffle, holder, keep, start, tmp_path):
    free = start("sleep", "60")
    attached = Attached(waffle, ["--no-report", "-p", holder.pid, "-p", free.pid], tmp_path / "a.waffle")
    waffle.running.append(attached)
    attached.wait_ready()
    time.sleep(0.5)  # for what it reads of a process that is new
    keep()
    attached.signal()
    wait_until(lambda: not attached.capture.info()["truncated"], "the capture is written", 1.5)
    assert not is_free(holder), "the tracer waited for the lock"
    attached.wait()
    waits = {wait["tid"]: wait for wait in attached.capture.records("open_wait")}
    assert holder.pid in waits
    assert waits[free.pid]["user_stack"], "the stack of a process that keeps no lock is missing"


def test_all_is_armed_when_the_lock_is_free_again(waffle, steps, keep, tmp_path):
    holder = keep()
    wait_until(lambda: is_free(holder), "the page is written")
    attached = Attached(waffle, ["--no-report", "-p", steps.pid], tmp_path / "a.waffle")
    waffle.running.append(attached)
    attached.wait_armed(steps.pid, steps.path)
    attached.stop()

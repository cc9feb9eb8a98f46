# SPDX-License-Identifier: Apache-2.0
"""A file that takes long to parse: the drain goes on, and the file is armed when it has been parsed."""

import contextlib
import os
import pathlib
import re
import signal
import sys
import time

from test_worker import helpers_of
from tracer import children_of, named, wait_until

HOLD_S = 0.1  # of kernel/gate.h


@contextlib.contextmanager
def parsers_stopped(tracer):
    """Its workers do not answer, as if what they parse took them long."""
    workers = wait_until(
        lambda: [worker for helper in helpers_of(tracer) for worker in children_of(helper)], "a worker"
    )
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    for worker in workers:
        wait_until(
            lambda: pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1][1] == "T",
            "its stop",
        )
    try:
        yield
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)


def has_open(pid, path):
    """Whether a process has a descriptor of this file."""
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.path.samefile(descriptor, path):
                return True
    return False


def has_asked_for(tracer, library):
    """Whether a tracer has opened this file and is back in its loop, so that the request is sent."""
    loop = pathlib.Path(f"/proc/{tracer}/wchan")
    return has_open(tracer, library) and "epoll" in loop.read_text()


OPENS_IT = """
import ctypes, sys, time
print("ready", flush=True)
for line in sys.stdin:
    library = ctypes.CDLL(line.strip())
    print("opened", flush=True)
"""


def test_records_are_drained_while_a_file_is_parsed(waffle, built, start):
    library = built("library.c", "-shared", "-fPIC", name="libparsed.so")
    program, burst = start(sys.executable, "-c", OPENS_IT), start(built("asked.c"))
    program.until("ready")
    burst.until("ready")
    attached = waffle.attach("--no-report", "-p", program.pid, "-p", burst.pid)
    attached.wait_armed(burst.pid, built("asked.c"))
    size = attached.capture.path.stat().st_size
    with parsers_stopped(attached.process.pid):
        program.ask(str(library), "opened")
        burst.ask("make", "made")
        # The file grows a second after that at the latest: what was recorded is not in the rings.
        wait_until(lambda: attached.capture.path.stat().st_size > size, "records in the file")
        size = attached.capture.path.stat().st_size
        burst.ask("make", "made")
        wait_until(lambda: attached.capture.path.stat().st_size > size, "more of them")
    # When it has been parsed it is armed.
    attached.wait_armed(program.pid, library)
    program.finish()
    burst.finish()
    capture = attached.wait()
    assert len(named(capture.rows(), "made")) == 2
    capture.check_sums(lost=0)


def test_a_program_is_held_no_longer_than_its_bound_and_armed_when_it_is_parsed(
    waffle, built, start
):
    begins, asked = built("begins.c"), built("asked.c")
    launcher = (
        "import subprocess, sys, time\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    begun = time.monotonic()\n"
        "    child = subprocess.Popen(line.split(), stdin=subprocess.PIPE, text=True,\n"
        "                             stdout=subprocess.PIPE)\n"
        "    child.stdout.readline()\n"
        "    print('began', child.pid, time.monotonic() - begun, flush=True)\n"
    )
    program = start(sys.executable, "-c", launcher)
    program.until("ready")
    attached = waffle.attach("-f", "--no-report", "-p", program.pid)
    attached.wait_ready()
    program.ask(f"{begins} began 0", "began")  # what it loads is known from now on
    with parsers_stopped(attached.process.pid):
        pid, seconds = program.ask(str(asked), "began").split()
        assert float(seconds) < 20 * HOLD_S
    attached.wait_armed(int(pid), asked)
    os.kill(int(pid), signal.SIGTERM)
    program.finish()
    capture = attached.wait()
    late = re.search(r"programs? began before .* armed.*\((.*)\)", capture.result.stderr)
    assert late and "asked" in late[1], capture.result.stderr


def test_a_signal_and_the_end_of_the_targets_wait_for_no_parser(waffle, built, start):
    library = built("library.c", "-shared", "-fPIC", name="libparsed.so")
    for end in ("signal", "target", "duration"):
        program = start(sys.executable, "-c", OPENS_IT)
        program.until("ready")
        options = ["-d", "2s"] if end == "duration" else []
        attached = waffle.attach(*options, "--no-report", "-p", program.pid)
        attached.wait_armed(program.pid)
        with parsers_stopped(attached.process.pid):
            program.ask(str(library), "opened")
            wait_until(lambda: has_asked_for(attached.process.pid, library), "the request")
            begun = time.monotonic_ns()
            if end == "signal":
                attached.signal()
            elif end == "target":
                program.finish()
            capture = attached.wait(timeout=100)
        assert capture.info()["end_ns"] - begun < 20_000_000_000
        told = "libparsed.so: the capture ended while it was parsed"
        assert told in capture.result.stderr
        if end != "target":
            program.kill()

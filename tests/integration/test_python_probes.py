# SPDX-License-Identifier: Apache-2.0
"""--probe python:FILE:FUNCTION: one span for each call of a function of Python, in a program that nobody prepared."""

import json
import os
import subprocess
import sys

import pytest
from tracer import PROGRAMS, wait_until

SCRIPT = PROGRAMS / "python_calls.py"
PYTHONS = [sys.executable, *os.environ.get("WAFFLE_PYTHONS", "").split()]


def version(python):
    return tuple(json.loads(subprocess.check_output([python, "-c", "import sys; print(list(sys.version_info[:2]))"])))


def record(waffle, program, *functions, options=()):
    """Attaches, and returns when all is armed."""
    probes = [word for function in functions for word in ("--probe", f"python:python_calls.py:{function}")]
    attached = waffle.attach("-p", program.pid, "--no-report", *probes, *options)
    attached.wait_ready()
    return attached


def calls(waffle, start, tmp_path, python, *functions, mode=(), options=()):
    """The capture, and what the program says of its calls: {function: [(tid, begin, end)]}."""
    log = tmp_path / "log"
    program = start(python, SCRIPT, log, *mode)
    program.until("ready")
    attached = record(waffle, program, *functions, options=options)
    program.ask("go", "done")
    said = {}
    for name, *call in json.loads(log.read_text(encoding="utf-8")):
        said.setdefault(name, []).append(tuple(call))
    return attached.stop(), said


def spans(capture, name):
    return sorted(capture.rows("span", name=name), key=lambda row: row["start_ns"])


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", [(), ("fork",)], ids=["itself", "child"])
def test_each_call_is_a_span_within_the_times_that_the_program_says(waffle, start, tmp_path, python, mode):
    capture, said = calls(waffle, start, tmp_path, python, "train_step", "helper", mode=mode,
                          options=["--follow"] if mode else [])
    seen, expected = spans(capture, "train_step"), sorted(said["train_step"], key=lambda call: call[1])
    assert len(seen) == len(expected) == 55
    for row in seen:
        [(_, begin, end)] = [call for call in expected
                             if call[0] == row["tid"] and call[1] <= row["start_ns"] <= call[2]]
        assert begin <= row["start_ns"] and row["end_ns"] <= end and row["end_ns"] - row["start_ns"] >= 2_000_000
        assert row["category"] == "python"
    helpers = spans(capture, "helper")
    assert len(helpers) == 55  # what it does with its own code is no call
    parents = {row["id"]: row for row in seen}
    for row in helpers:
        outer = parents[row["parent"]]
        assert outer["tid"] == row["tid"] and outer["start_ns"] <= row["start_ns"] <= row["end_ns"] <= outer["end_ns"]
    capture.check_sums(lost=0)


@pytest.mark.parametrize("python", PYTHONS)
def test_recursion_and_exceptions(waffle, start, tmp_path, python):
    capture, said = calls(waffle, start, tmp_path, python, "descend", "fails")
    name = "Walker.descend" if version(python) >= (3, 11) else "descend"
    seen = spans(capture, name)
    assert len(seen) == 20 and len(said["descend"]) == 5
    for first in range(0, 20, 4):  # each is inside the one before
        nest = seen[first:first + 4]
        assert all(inner["parent"] == outer["id"] for outer, inner in zip(nest, nest[1:]))
        assert all(inner["end_ns"] <= outer["end_ns"] for outer, inner in zip(nest, nest[1:]))
    failed = spans(capture, "fails")
    assert len(failed) == 10
    if version(python) >= (3, 12):
        for row, (_, begin, end) in zip(failed, said["fails"]):
            assert begin <= row["start_ns"] and row["end_ns"] <= end and not row.get("left")
    else:  # its frame outlives the call
        assert all(row["left"] for row in failed)


def test_a_filter_applies_to_the_calls(waffle, start, tmp_path):
    capture, _ = calls(waffle, start, tmp_path, sys.executable, "train_step", "helper", options=["--filter", "dur > 1ms"])
    assert len(spans(capture, "train_step")) == 55
    assert all(row["end_ns"] - row["start_ns"] > 1_000_000 for row in spans(capture, "helper"))


def test_the_first_calls_of_a_command_are_found_once_the_function_exists(waffle, tmp_path):
    script = tmp_path / "late.py"
    script.write_text("import sys, time\ntime.sleep(0.3)\ndef late():\n    time.sleep(0.01)\n"
                      "end = time.monotonic() + 1.5\nwhile time.monotonic() < end: late()\n")
    capture = waffle.run(sys.executable, script, options=["--probe", "python:late.py:late"])
    assert spans(capture, "late")


def test_what_is_not_recorded_is_said(waffle, start, tmp_path):
    capture, _ = calls(waffle, start, tmp_path, sys.executable, "pauses", "nowhere", "Other.helper")
    text = capture.result.stderr
    assert "python:python_calls.py:pauses is not recorded: it is a generator or coroutine" in text
    assert "python:python_calls.py:nowhere: no process had such a function" in text
    assert "python:python_calls.py:Other.helper: no process had such a function" in text
    assert not capture.rows("span")


def test_calls_of_children_are_recorded_after_their_parent_has_exited(waffle, start, tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text("import os, sys, time\ndef step():\n    time.sleep(0.002)\n"
                      "print('ready', flush=True)\nsys.stdin.readline()\n"
                      "for level in range(3):\n    if os.fork(): step(); os._exit(0)\n    time.sleep(0.2)\n"
                      "for i in range(50): step()\nprint('done', flush=True)\n")
    program = start(sys.executable, script)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", "--follow", "--probe", "python:orphans.py:step")
    attached.wait_ready()
    program.ask("go", "done")
    seen = spans(attached.stop(), "step")
    assert len(seen) == 53 and len({row["pid"] for row in seen}) == 4


def test_calls_are_recorded_after_the_main_thread_has_exited(waffle, start, tmp_path):
    script = tmp_path / "leaves.py"
    script.write_text("import ctypes, os, sys, threading, time\ndef step():\n    time.sleep(0.001)\n"
                      "def work():\n    line = sys.stdin.readline()\n"
                      "    while open(f'/proc/{os.getpid()}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z':\n"
                      "        time.sleep(0.01)\n"
                      "    time.sleep(0.3)\n    for i in range(50): step()\n    print('done', flush=True)\n"
                      "    sys.stdin.readline()\n"
                      "threading.Thread(target=work).start()\nprint('ready', flush=True)\n"
                      "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
                      "ctypes.CDLL(None).pthread_exit(None)\n")
    program = start(sys.executable, script, tmp_path / "leave")
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", "--probe", "python:leaves.py:step")
    attached.wait_ready()
    (tmp_path / "leave").touch()
    program.ask("go", "done")
    assert len(spans(attached.stop(), "step")) == 50


def watches_of(tracer):
    """The number of perf events of a tracer."""
    folder, count = f"/proc/{tracer}/fd", 0
    for fd in os.listdir(folder):
        try:
            count += "perf_event" in os.readlink(f"{folder}/{fd}")
        except FileNotFoundError:  # it was closed meanwhile
            pass
    return count


def test_the_watches_of_a_freed_function_are_released(waffle, start, tmp_path):
    script = tmp_path / "frees.py"
    script.write_text("import sys, time\nspace = {}\n"
                      "exec(compile('def gone():\\n    pass\\n', 'frees_module.py', 'exec'), space)\n"
                      "print('ready', flush=True)\nsys.stdin.readline()\n"
                      "for i in range(10): space['gone']()\ndel space['gone']\n"
                      "keep = [bytes(i % 400 + 60) for i in range(20000)]\nprint('done', flush=True)\n"
                      "sys.stdin.readline()\n")
    program = start(sys.executable, script)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", "--probe", "python:frees_module.py:gone")
    attached.wait_ready()
    before = watches_of(attached.process.pid)
    program.ask("go", "done")
    wait_until(lambda: watches_of(attached.process.pid) == before - 2, "the watches to be released")
    assert len(spans(attached.stop(), "gone")) == 10


@pytest.mark.parametrize("spec, problem", [
    ("python:train.py", "needs a file and a function, such as python:train.py:train_step"),
    ("python::step", "needs a file and a function"),
    ("python:train.py:", "needs a file and a function"),
    ("python:train.py:step(int n)", "is given by its name alone"),
])
def test_a_wrong_description_ends_the_command(waffle, spec, problem):
    waffle.fails(2, "run", "--probe", spec, "--", "true", says=problem)

# SPDX-License-Identifier: Apache-2.0
"""Waits in Python have one stack of native frames and of Python's."""

import os
import re
import sys

import pytest

SLEEPER = """
import os, sys, time
class Store:
    def fetch(self, key):
        time.sleep(0.02)              # line 5
        return key
    def __getitem__(self, key):
        return self.fetch(key)        # line 8
def step(keys):
    return sorted(keys, key=Store().__getitem__)    # native code calls Python
def main():
    if "fork" in sys.argv and os.fork():
        print("ready", os.wait(), flush=True)
    print("ready", os.getpid(), flush=True)
    while True:
        step([1, 2])                  # line 16
main()
"""

PYTHONS = [sys.executable, *os.environ.get("WAFFLE_PYTHONS", "").split()]


def stacks_of(waffle, capture, tid):
    """(function, file, line) of each frame of the user stacks that `why` shows of a thread."""
    text = waffle.ok("why", "--thread", str(tid), "--evidence", capture.path).stdout
    lines = [line.split(" ← ")[1:] for line in text.splitlines() if "user stack ← " in line]
    assert lines, text
    found = [[re.match(r"(.*?)(?: \((.*):(\d+)\))?(?: \[inlined\])?$", frame).groups() for frame in line]
             for line in lines]
    return [[(name, file, int(number or 0)) for name, file, number in line] for line in found]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", ["one", "fork"])
def test_a_wait_has_the_functions_of_python_in_their_place(waffle, start, tmp_path, python, mode):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    program = start(python, script, mode)
    pid = int(program.until("ready"))
    attached = waffle.attach("-p", pid, "-q", "--no-report", "--stacks", "sched", "-d", "700ms")
    capture = attached.wait()
    stacks = stacks_of(waffle, capture, pid)
    python_frames = [[frame for frame in stack if frame[1] == "sleeper.py"] for stack in stacks]
    expected = [("Store.fetch", "sleeper.py", 5), ("Store.__getitem__", "sleeper.py", 8),
                ("step", "sleeper.py", 10), ("main", "sleeper.py", 16), ("<module>", "sleeper.py", 17)]
    assert expected in python_frames
    whole = stacks[python_frames.index(expected)]
    assert whole[0][0] == "clock_nanosleep"
    # Neither the interpreter's loop nor its calls are in the stack, but for what is innermost.
    at = whole.index(expected[0])
    assert 0 < at < 4 and whole[at:at + len(expected)] == expected
    assert not any("_PyEval_EvalFrameDefault" == name for name, _, _ in whole)
    numbers = {row["args"]["address"]: row["args"]["name"] for row in capture.rows("symbol") if row.get("pid") == pid}
    assert any(f"Store.fetch ({script}:5)" == numbers.get(address) for row in capture.rows("wait")
               for address in row["args"].get("user_stack", []))
    text = waffle.ok("why", "--thread", str(pid), capture.path).stdout
    assert "called within Store.fetch (sleeper.py:5)" in text


def test_native_code_between_functions_of_python_is_kept(waffle, start, tmp_path):
    script = tmp_path / "callback.py"
    script.write_text("""
import ctypes, os, time
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    time.sleep(0.02)
    return 0
def sort():
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
print("ready", os.getpid(), flush=True)
while True:
    sort()
""")
    program = start(sys.executable, script)
    program.until("ready")
    capture = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched", "-d", "700ms").wait()
    names = [[frame[0] for frame in stack] for stack in stacks_of(waffle, capture, program.pid)]
    found = [stack for stack in names if "compare" in stack and "sort" in stack]
    assert found
    between = found[0][found[0].index("compare") + 1:found[0].index("sort")]
    assert any(name and "qsort" in name for name in between)

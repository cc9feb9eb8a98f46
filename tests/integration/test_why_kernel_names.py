# SPDX-License-Identifier: Apache-2.0
"""A process that has the name of a thread of the kernel is not taken for one."""

import json
import os
import pathlib
import sys

import pytest

PF_KTHREAD = 0x00200000  # include/linux/sched.h

BUSY = "print('ready', flush=True)\nwhile True: pass"
NAMED = """
import ctypes
import sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)  # PR_SET_NAME
"""


def start_on_cpu(start, cpu, source, *arguments):
    program = start("taskset", "-c", str(cpu), sys.executable, "-c", source, *arguments)
    program.until("ready")
    return program


def is_kernel_thread(tid):
    """As /proc says it; None: the thread has ended."""
    try:
        text = pathlib.Path(f"/proc/{tid}/stat").read_text()
    except OSError:
        return None
    return bool(int(text.rpartition(")")[2].split()[6]) & PF_KTHREAD)


@pytest.mark.parametrize("name", ("kswapd0", "migration/1", "ksoftirqd/0"))
def test_a_busy_process_named_as_a_thread_of_the_kernel_is_a_process(waffle, start, tmp_path, name):
    cpu = min(os.sched_getaffinity(0))
    victim = start_on_cpu(start, cpu, BUSY)
    named = start_on_cpu(start, cpu, NAMED + BUSY, name)
    path = tmp_path / "x.waffle"
    waffle.ok("why", "--pid", victim.pid, "--duration", "1s", "-o", path)
    [instance] = json.loads(waffle.ok("why", "--json", path).stdout)["instances"]
    causes = [c for c in instance["causes"] if (c["culprit"] or {}).get("pid") == named.pid]
    shown = {(c["cause"], c["culprit"]["comm"], c["culprit"]["object"]) for c in causes}
    assert shown == {("cpu-contention", name, None)}
    assert sum(c["share"] for c in causes) > 0.05


def test_records_say_which_threads_are_the_kernels(waffle, start, tmp_path):
    cpu = min(os.sched_getaffinity(0))
    victim = start_on_cpu(start, cpu, BUSY)
    named = start_on_cpu(start, cpu, NAMED + BUSY, "kswapd0")
    path = tmp_path / "x.waffle"
    waffle.ok("why", "--pid", victim.pid, "--duration", "2s", "-o", path)
    lines = waffle.ok("export", path, "--format", "records", "-o", "-").stdout.splitlines()
    tasks = {record["tid"]: record["flags"] for record in map(json.loads, lines) if record["kind"] == "task"}
    known = {tid: is_kernel_thread(tid) for tid in tasks}
    assert known[named.pid] is False and True in known.values()
    for tid, kernel in known.items():
        if kernel is not None:
            assert tasks[tid] & 12 == (4 if kernel else 8)

# SPDX-License-Identifier: Apache-2.0
"""What zoo.h is to programs in C: the log that a program of the zoo in Python writes."""

import ctypes
import os
import sys
import time

MS = 1_000_000
PR_SET_NAME = 15


def name(comm):
    """Names the calling thread."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, comm.encode())


def go(*processes):
    """All is set up: the pids of the other processes to trace; returns when the program is to start."""
    for pid in processes:
        print(f"process role=other pid={pid}")
    print(f"ready pid={os.getpid()}", flush=True)
    sys.stdin.read()


def seed():
    return int(sys.argv[-1])


def pause_ms(i):
    """How long the one that is waited for takes in round i."""
    return 80 + (seed() * 7 + i * 13) % 60


def now():
    return time.monotonic_ns()


def victim(i, begin, end, tid=None):
    print(f"victim i={i} pid={os.getpid()} tid={tid or os.getpid()} begin={begin} end={end}")


def cause(i, what, ns, comm, pid, tid=None, thing="-"):
    print(f"cause i={i} cause={what} ns={ns} pid={pid} tid={tid or pid} comm={comm} span=- object={thing}", flush=True)


def ran(pid):
    """The CPU time of a process's first thread, exact while it is blocked."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def compute(ms):
    """Computes for so much CPU time, and returns how much it was."""
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < ms * MS:
        sum(x * x for x in range(2000))
    return time.thread_time_ns() - begin

# SPDX-License-Identifier: Apache-2.0
"""gil.py LIBRARY WAY SEED: the victim's span needs Python's GIL, which another thread
holds while it computes, or (WAY quiet) has given away while it does."""

import ctypes
import sys
import threading

ROUNDS = 8

free = ctypes.CDLL(sys.argv[1])  # gives the GIL away
keep = ctypes.PyDLL(sys.argv[1])  # keeps it
quiet = sys.argv[2] == "quiet"
turn = threading.Barrier(2)


def holder():
    keep.gil_name(b"holder")
    for i in range(ROUNDS):
        turn.wait()
        if quiet:
            free.gil_compute(i)
        else:
            free.gil_await(i)
            keep.gil_hold(i)


def victim():
    keep.gil_name(b"victim")
    for i in range(ROUNDS):
        turn.wait()
        if quiet:
            keep.gil_victim_begin(i, 0)
            sum(x * x for x in range(1_500_000))
        else:
            free.gil_victim_begin(i, 1)
        keep.gil_victim_end(i, not quiet)


free.gil_seed(int(sys.argv[3]))
threads = [threading.Thread(target=work) for work in (victim, holder)]
if int(sys.argv[3]) % 2:
    threads.reverse()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# SPDX-License-Identifier: Apache-2.0
"""gil.py LIBRARY WAY SEED: the victim's span needs Python's GIL, which another thread
holds while it computes, or (WAY quiet) has given away while it does; or (WAY event) it waits
for an event, with a timeout, that is set when the other thread has computed without the GIL; or
(WAY asyncio) an event loop awaits an executor that computes so, and has a timer each 3 ms."""

import asyncio
import concurrent.futures
import ctypes
import sys
import threading

ROUNDS = 8

free = ctypes.CDLL(sys.argv[1])  # gives the GIL away
keep = ctypes.PyDLL(sys.argv[1])  # keeps it
quiet = sys.argv[2] == "quiet"
events = [threading.Event() for _ in range(ROUNDS)] if sys.argv[2] == "event" else None
turn = threading.Barrier(2)


def holder():
    keep.gil_name(b"holder")
    for i in range(ROUNDS):
        turn.wait()
        if quiet:
            free.gil_compute(i, 0)
        elif events:
            free.gil_compute(i, 1)
            events[i].set()
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
        elif events:
            keep.gil_victim_begin(i, 0)
            events[i].wait(60)
        else:
            free.gil_victim_begin(i, 1)
        keep.gil_victim_end(i, not quiet)


def begin_executor():
    threading.current_thread().name = "holder"
    keep.gil_name(b"holder")


async def tick():
    while True:
        await asyncio.sleep(0.003)


async def loop():
    ticker = asyncio.create_task(tick())
    executor = concurrent.futures.ThreadPoolExecutor(1, initializer=begin_executor)
    for i in range(ROUNDS):
        await asyncio.sleep(0.01)
        keep.gil_victim_begin(i, 0)
        await asyncio.get_running_loop().run_in_executor(executor, free.gil_compute, i, 2)
        keep.gil_victim_end(i, 1)
    ticker.cancel()
    executor.shutdown()


def run_loop():
    keep.gil_name(b"victim")
    asyncio.run(loop())


free.gil_seed(int(sys.argv[3]))
if sys.argv[2] == "asyncio":
    run_loop()
    sys.exit()
threads = [threading.Thread(target=work, name=work.__name__) for work in (victim, holder)]
if int(sys.argv[3]) % 2:
    threads.reverse()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

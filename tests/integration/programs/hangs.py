# SPDX-License-Identifier: Apache-2.0
"""Two threads of Python that wait for each other's lock. With "beats", another one sleeps in a loop, one of a pool
is idle, and the main thread joins the first one."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

locks = threading.Lock(), threading.Lock()
both = threading.Barrier(3)


def take(number):
    with locks[number]:
        both.wait()
        if "later" in sys.argv:
            # The wait for the lock gets a stack, since the one before it is long (docs/sources.md).
            time.sleep(0.05)
        with locks[1 - number]:
            pass


def beat():
    while True:
        time.sleep(0.01)


if "later" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
if "beats" in sys.argv:
    threading.Thread(target=beat, daemon=True).start()
    pool = ThreadPoolExecutor(1)
    pool.submit(time.sleep, 0).result()
taking = [threading.Thread(target=take, args=(number,), daemon=True) for number in range(2)]
for thread in taking:
    thread.start()
both.wait()
print("going" if "later" in sys.argv else "ready", flush=True)
if "beats" in sys.argv:
    taking[0].join()
threading.Event().wait()

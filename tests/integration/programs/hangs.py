# SPDX-License-Identifier: Apache-2.0
"""Two threads of Python that wait for each other's lock."""

import sys
import threading
import time

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


if "later" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
for number in range(2):
    threading.Thread(target=take, args=(number,), daemon=True).start()
both.wait()
print("going" if "later" in sys.argv else "ready", flush=True)
threading.Event().wait()

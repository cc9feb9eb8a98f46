# SPDX-License-Identifier: Apache-2.0
"""Two threads of Python that wait for each other's lock."""

import threading

locks = threading.Lock(), threading.Lock()
both = threading.Barrier(3)


def take(number):
    with locks[number]:
        both.wait()
        with locks[1 - number]:
            pass


for number in range(2):
    threading.Thread(target=take, args=(number,), daemon=True).start()
both.wait()
print("ready", flush=True)
threading.Event().wait()

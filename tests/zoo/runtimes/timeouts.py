# SPDX-License-Identifier: Apache-2.0
"""timeouts.py SEED: the victim asks a queue.Queue with a timeout of 10 ms, again and again, until another thread
has slept and puts an item."""

import os
import queue
import threading
import time

import said

ROUNDS = 6
asked, items = queue.Queue(), queue.Queue()


def loader():
    said.name("loader")
    while True:
        time.sleep(asked.get() / 1000)
        items.put(threading.get_native_id())


def take():
    while True:
        try:
            return items.get(timeout=0.01)
        except queue.Empty:
            pass


said.name("victim")
threading.Thread(target=loader, name="loader", daemon=True).start()
said.go()
for i in range(ROUNDS):
    pause = said.pause_ms(i)
    begin = said.now()
    asked.put(pause)
    tid = take()
    said.victim(i, begin, said.now())
    said.cause(i, "sleep", pause * said.MS, "loader", os.getpid(), tid)

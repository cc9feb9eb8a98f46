# SPDX-License-Identifier: Apache-2.0
"""Calls functions of known names in known ways when a line says so, and writes down its own times:
python_calls.py LOG [fork]. With "fork" a child does it. Line numbers matter to no test."""

import json
import os
import sys
import threading
import time

log = []


def tid():
    return threading.get_native_id()


def noted(function):
    """Writes down the times around each call, outside of the function."""

    def run(*args):
        begin = time.monotonic_ns()
        try:
            return function(*args)
        finally:
            log.append((function.__name__, tid(), begin, time.monotonic_ns()))

    return run


def train_step(number):
    helper(number)
    time.sleep(0.002)
    return helper


def helper(number):
    """Touches its own code object, which is no call."""
    code = helper.__code__
    return code.co_code and [code for _ in range(3)]


def fails(number):
    time.sleep(0.001)
    raise ValueError(number)


class Walker:
    def descend(self, depth):
        if depth:
            self.descend(depth - 1)
        time.sleep(0.0005)


def pauses():
    yield 1


def everything():
    step = noted(train_step)
    for number in range(50):
        step(number)
    for number in range(10):
        try:
            noted(fails)(number)
        except ValueError:
            pass
    for _ in range(5):
        noted(Walker().descend)(3)
    list(pauses())
    threads = [threading.Thread(target=step, args=(1,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(log, file)


print("ready", flush=True)
sys.stdin.readline()
if sys.argv[2:] == ["fork"] and os.fork():
    os.wait()
else:
    everything()
print("done", flush=True)
sys.stdin.readline()

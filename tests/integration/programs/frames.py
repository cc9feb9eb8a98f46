# SPDX-License-Identifier: Apache-2.0
"""Calls a C function with a span from known chains of Python frames, and writes down what Python
itself says its stack is then: frames.py LIBRARY LOG [fork]. With "fork" a child does it, when it has
read another line."""

import ctypes
import functools
import json
import os
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
log = []


def note(number):
    """The frame that calls this function and its callers, as Python reports them."""
    stack = []
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)  # before 3.11 code has no qualified name
        stack.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    stack[0][2] += 1  # the span is in the next line
    log.append((number, stack))


def mark(number):
    note(number)
    return library.mark(number)


class Trainer:
    def __init__(self, depth):
        self.depth = depth

    def step(self, number):
        return self.descend(self.depth, number)

    def descend(self, depth, number):
        if depth:
            return self.descend(depth - 1, number)
        return (lambda: mark(number))()

    @functools.lru_cache(maxsize=None)
    def cached(self, number):
        return [mark(n) for n in (number,)]


def generate(number):
    yield mark(number)


def übung(number):
    """A name that is not ASCII."""
    return sorted([1], key=lambda _: mark(number))


def all_of_them(base):
    Trainer(3).step(base)
    Trainer(70).step(base + 1)  # more frames than are taken
    Trainer(0).cached(base + 2)
    next(generate(base + 3))
    übung(base + 4)
    exec(compile("\n\nmark(number)", "made.py", "exec"), {"mark": mark, "number": base + 5})
    for depth in range(40, 44):  # around as many as are taken
        Trainer(depth).step(base + depth)


def rounds():
    for round_ in range(50):
        all_of_them(100 * round_)
        thread = threading.Thread(target=all_of_them, args=(100 * round_ + 50,))
        thread.start()
        thread.join()
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(log, file)


print("ready", flush=True)
sys.stdin.readline()
if sys.argv[3:] == ["fork"]:
    if os.fork():
        os.wait()
        sys.exit()
    print("forked", flush=True)
    sys.stdin.readline()
rounds()

"""Threads of all kinds, which wait until the test is over. Prints which names Python knows them by.
One of them calls a function with a span, from a library that may be given: thread_names.py [LIBRARY].

Commands: "rename" gives a thread another name, "fork" makes a child from a thread; the end of the input ends it."""

import _thread
import concurrent.futures
import ctypes
import json
import os
import sys
import threading
import time

stop = threading.Event()
forks = threading.Event()


class Loader(threading.Thread):
    def __init__(self):
        super().__init__(name="loader of a subclass")

    def run(self):
        deep(200)
        while not stop.wait(0.01):
            mark(1)


mark = ctypes.CDLL(sys.argv[1]).mark if len(sys.argv) > 1 else lambda number: number


def wait():
    while not stop.wait(0.01):
        pass


def deep(depth):
    if depth:
        deep(depth - 1)
    else:
        stop.wait(3)


def tell(prefix):
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    del names[threading.main_thread().native_id]
    print(prefix, json.dumps({"pid": os.getpid(), "names": names}), flush=True)


def fork():
    while not forks.wait(0.05):
        if stop.is_set():
            return None
    parent = os.getpid()
    if os.fork():
        return wait()
    # Its only thread is the main one of its process.
    threading.Thread(target=wait, name="of the child", daemon=True).start()
    time.sleep(0.1)
    main_thread = threading.current_thread()  # of which Python still has the id in the parent
    names = {thread.native_id: thread.name for thread in threading.enumerate() if thread is not main_thread}
    print("child", json.dumps({"pid": os.getpid(), "names": names}), flush=True)
    while os.getppid() == parent:
        time.sleep(0.05)
    os._exit(0)


def main():
    many = threading.Thread(target=wait, name="with many attributes")
    for i in range(40):
        setattr(many, f"attribute_{i}", i)
    changed = threading.Thread(target=wait, name="with a dict")
    del changed.__dict__["_args"], changed.__dict__["_kwargs"]
    changed._args, changed._kwargs = (), {}
    named = [
        threading.Thread(target=wait, name="größer Ωμέγα 😀"),
        threading.Thread(target=wait, name="\033[31m\nred"),
        threading.Thread(target=wait, name="x" * 80),
        threading.Thread(target=wait),
        threading.Thread(target=fork, name="forks"),
        Loader(),
        many,
        changed,
    ]
    for thread in named:
        thread.start()
    _thread.start_new_thread(wait, ())
    empty = threading.Thread(target=wait)
    empty.start()
    empty.name = ""
    pool = concurrent.futures.ThreadPoolExecutor(3, "pool of workers")
    for _ in range(3):
        pool.submit(wait)
    time.sleep(0.1)
    tell("ready")
    for line in sys.stdin:
        if line == "rename\n":
            named[0].name = "renamed"
            tell("renamed")
        if line == "fork\n":
            forks.set()
    stop.set()


main()

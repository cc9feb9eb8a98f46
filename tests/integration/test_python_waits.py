# SPDX-License-Identifier: Apache-2.0
"""Waits in Python have one stack of native frames and of Python's."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from tracer import wait_until

SLEEPER = """
import os, select, sys, time
class Store:
    def fetch(self, key):
        time.sleep(pause)             # line 5
        return key
    def __getitem__(self, key):
        return self.fetch(key)        # line 8
def step(keys):
    return sorted(keys, key=Store().__getitem__)    # native code calls Python
def main():
    if "fork" in sys.argv and os.fork():
        print("ready", os.wait(), flush=True)
    print("ready", os.getpid(), flush=True)
    while True:
        step([1])
        if not select.select([sys.stdin], [], [], 0)[0]:
            continue
        if not sys.stdin.readline():
            break                     # the test is over
        step([1] * 50)                # meanwhile waffle finds the interpreter
        globals()["pause"] = 0.5
        step([1])                     # line 23
        print("done", flush=True)
pause = 0.02
main()
"""

PYTHONS = [sys.executable, *os.environ.get("WAFFLE_PYTHONS", "").split()]


def qualified(python):
    """Whether an interpreter's code objects have qualified names, as since 3.11."""
    return not subprocess.call([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"])


def has_loop(python):
    """Whether an interpreter is one loop, and no function for each instruction."""
    code = "import sys, sysconfig; sys.exit('tail-call-interp' in (sysconfig.get_config_var('CONFIG_ARGS') or ''))"
    return not subprocess.call([python, "-c", code])


def stacks_of(capture, pid):
    """The user stacks of the waits of a process: a function of Python as "Store.fetch (…/sleeper.py:5)", a native
    frame as its address."""
    names = {row["args"]["address"]: row["args"]["name"] for row in capture.rows("symbol") if row.get("pid") == pid}
    return [[names.get(address, address) for address in row["args"].get("user_stack", [])]
            for row in capture.rows("wait") if row["pid"] == pid]


def ran_ns(pid, tid):
    """The CPU time of a thread."""
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def native(frame):
    return frame.startswith("0x")


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", ["one", "fork"])
def test_a_wait_has_the_functions_of_python_in_their_place(waffle, start, tmp_path, python, mode):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    program = start(python, script, mode)
    pid = int(program.until("ready"))
    attached = waffle.attach("-p", pid, "-q", "--no-report", "--stacks", "sched")
    attached.wait_ready()
    program.ask("go", "done")
    capture = attached.stop()
    stacks = stacks_of(capture, pid)
    owner = "Store." if qualified(python) else ""
    expected = [f"{name} ({script}:{line})" for name, line in
                ((f"{owner}fetch", 5), (f"{owner}__getitem__", 8), ("step", 10), ("main", 23), ("<module>", 26))]
    # Those of the first waits may be cut, as the files are still being read.
    whole = [stack for stack in stacks if expected[0] in stack and expected[3] in stack and expected[-1] in stack]
    assert whole, stacks
    for stack in whole:
        at = stack.index(expected[0])
        # Neither the interpreter's loop nor its calls are in the stack, but for what is innermost. Without a loop,
        # the functions are last.
        assert 0 < at < 6 if has_loop(python) else at + len(expected) == len(stack)
        assert stack[at:at + len(expected)] == expected
        assert all(map(native, stack[:at] + stack[at + len(expected):]))
    text = waffle.ok("why", "--thread", str(pid), capture.path).stdout
    assert f"called within {owner}fetch (sleeper.py:5)" in text


def test_native_code_between_functions_of_python_is_kept(waffle, start, tmp_path):
    script = tmp_path / "callback.py"
    script.write_text("""
import ctypes, os, time
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    time.sleep(0.02)
    return 0
def sort():
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
print("ready", os.getpid(), flush=True)
while True:
    sort()
""")
    program = start(sys.executable, script)
    program.until("ready")
    capture = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched", "-d", "3s").wait()
    compare, sort = f"compare ({script}:6)", f"sort ({script}:9)"
    whole = [stack for stack in stacks_of(capture, program.pid) if compare in stack and sort in stack]
    # Those of the first waits may be cut, as the files are still being read. A whole one ends below <module>.
    while whole and not native(whole[0][-1]):
        whole.pop(0)
    assert len(whole) > 50
    for stack in whole:  # libffi, qsort() and _ctypes
        between = stack[stack.index(compare) + 1:stack.index(sort)]
        assert len(between) >= 3 and all(map(native, between))


HOLDER = """
import threading, time
def spin(n):
    x = 0
    for i in range(n):
        x += i * i
    return x
def hold():
    while True:
        spin(30000)
def victim():
    while True:
        time.sleep(0.005)
threads = [threading.Thread(target=target, daemon=True) for target in (hold, victim)]
for thread in threads:
    thread.start()
print("ready", *[thread.native_id for thread in threads], flush=True)
input()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_samples_name_the_function_of_python_that_held_the_interpreter(waffle, start, tmp_path, python):
    script = tmp_path / "holder.py"
    script.write_text(HOLDER)
    program = start(python, script)
    holder, waiter = map(int, program.until("ready").split())
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched")
    attached.wait_ready()
    before = ran_ns(program.pid, holder)
    wait_until(lambda: ran_ns(program.pid, holder) - before > 1_000_000_000, "a hundred samples")
    capture = attached.stop()
    for thread, cause in ((holder, "running"), (waiter, "gil")):
        answer = json.loads(waffle.ok("why", "--json", "--thread", str(thread), capture.path).stdout)
        [found] = [row for row in answer["instances"][0]["causes"] if row["cause"] == cause and row.get("samples")][:1]
        assert {place["function"] for place in found["samples"]["places"][:1]} == {"spin (holder.py)"}, found
        assert thread == holder or (found["grade"] == "likely" and found["culprit"]["tid"] == holder)


SERVER = """
import http.server, socketserver, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query()
        self.send_response(204)
        self.end_headers()
    def log_message(self, *args):
        pass
def query():
    time.sleep(0.08)
class Forking(socketserver.ForkingMixIn, http.server.HTTPServer):
    pass
kinds = {"threads": http.server.ThreadingHTTPServer, "forks": Forking}
server = kinds[sys.argv[1]](("127.0.0.1", 0), Handler)
print("ready", server.server_port, flush=True)
server.serve_forever()
"""
CLIENTS, REQUESTS = 4, 25


@pytest.mark.parametrize("kind", ["threads", "forks"])
def test_long_waits_of_new_threads_have_a_stack(waffle, start, tmp_path, kind):
    """A thread or a process for each request: its first waits are short, and then it waits for 80 ms."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    program = start(sys.executable, script, kind)
    port = int(program.until("ready"))

    def ask():
        for _ in range(REQUESTS):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
                answer.read()

    attached = waffle.attach("-p", program.pid, "--follow", "-q", "--no-report", "--stacks", "sched")
    attached.wait_ready()
    ask()  # meanwhile waffle reads the tables of the files
    begin_ns = time.monotonic_ns()
    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    capture = attached.stop()
    names = {(row["pid"], row["args"]["address"]) for row in capture.rows("symbol")
             if row["args"]["name"].startswith("query (")}
    explained = [row for row in capture.rows("wait")
                 if row["start_ns"] > begin_ns and row["end_ns"] - row["start_ns"] >= 75_000_000 and
                 any((row["pid"], address) in names for address in row["args"].get("user_stack", []))]
    assert len(explained) >= 0.95 * CLIENTS * REQUESTS


POOL = """
import threading
class Pool:
    def __init__(self, items):
        self.items, self.changed = items, threading.Condition()
    def take(self):
        with self.changed:
            while not self.items:
                self.changed.wait()
            return self.items.pop()
    def give(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify()
"""

USERS = """
import hashlib, sys, threading, time
sys.path.insert(0, sys.argv[1])
import store.pool
pool = store.pool.Pool(["connection"])
def serve():
    while True:
        item = pool.take()
        hashlib.sha256(DATA)    # the interpreter's lock is free meanwhile
        pool.give(item)
        time.sleep(0.001)       # it is another one's turn
DATA = bytes(5_000_000)
for i in range(4):
    threading.Thread(target=serve, name=f"web-{i}", daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_who_waits_for_a_pool_of_a_package_is_told_by_its_function(waffle, start, tmp_path):
    packages = tmp_path / "venv" / "site-packages"
    (packages / "store").mkdir(parents=True)
    (packages / "store" / "pool.py").write_text(POOL, encoding="utf-8")
    script = tmp_path / "users.py"
    script.write_text(USERS, encoding="utf-8")
    program = start(sys.executable, script, packages)
    program.until("ready")
    text = waffle.ok("why", "--pid", program.pid, "-d", "3s", "-o", tmp_path / "pool.waffle").stdout
    name = "Pool.take" if qualified(sys.executable) else "take"
    # On a busy machine, waits for a CPU may come before.
    [row] = re.findall(r"user-work +likely +[23] threads of web-N .* futexes, (.*)", text)[:1]
    assert row == f"awaited by {name} (store/pool.py:9), from serve (users.py:8)"
    text = waffle.ok("why", "--json", tmp_path / "pool.waffle").stdout
    waits = [step for part in json.loads(text)["instances"][0]["causes"] for step in part["chain"] if "own" in step]
    assert waits and all((step["package_function"], step["own"]) == (name, "serve") for step in waits
                         if step["function"] == ("Condition.wait" if "." in name else "wait"))

# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody prepared, in no span: event loops, threads that poll, pools. The first cause has to be the right
one."""

import re
import time

import pytest

import why_json
from tracer import tries

MS = 1_000_000

LOOP = """
import asyncio, sys, time
how = sys.argv[1]
def block():
    if how == "sleep":
        time.sleep(0.06)
    else:
        begin = time.thread_time()
        while time.thread_time() - begin < 0.06:
            pass
async def handler():
    while True:
        block()
        await asyncio.sleep(0.2)
async def tick():
    while True:
        await asyncio.sleep(0.11)
async def main():
    print("ready", flush=True)
    await asyncio.gather(tick(), handler())
asyncio.run(main())
"""

TRIES = """
import fcntl, os, sys, time
def take(file):
    while True:
        try:
            if sys.argv[2] == "flock":
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat("/nowhere")
        except OSError:
            time.sleep(0.01)
held, file = open(sys.argv[1], "w"), open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
print("ready", flush=True)
take(file)
"""

CRASH = """
import ctypes, os, resource, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def work():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.05:
        pass
    ctypes.string_at(0)
print("ready", flush=True)
while True:
    child = os.fork()
    if not child:
        work()
    os.waitpid(child, 0)
    time.sleep(0.02)
"""

SQLITE = """
import sqlite3, sys
def insert():
    mine.execute("begin immediate")
held, mine = (sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60) for _ in range(2))
held.execute("begin exclusive")
print("ready", flush=True)
insert()
"""

POOL = """
import concurrent.futures, time
def job():
    time.sleep(0.03)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print("ready", flush=True)
    while True:
        for future in [pool.submit(job) for _ in range(2)]:
            future.result()
"""

QUEUE = """
import concurrent.futures, sys, time
def job():
    time.sleep(0.03)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    concurrent.futures.wait([pool.submit(job) for _ in range(2)])
    print("ready", flush=True)
    while True:
        for future in [pool.submit(job) for _ in range(int(sys.argv[1]))]:
            future.result()
"""

SERVER = """
import asyncio, os, time
async def serve(reader, writer):
    while line := await reader.readline():
        while (await reader.readline()).strip():
            pass
        if b"slow" in line:
            await asyncio.to_thread(time.sleep, 0.3)
        else:
            begin = time.thread_time()
            while time.thread_time() - begin < 0.002:
                pass
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""

CLIENT = """
import http.client, sys, threading, time
def ask(path, pause):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    while True:
        connection.request("GET", path)
        connection.getresponse().read()
        time.sleep(pause)
threading.Thread(target=ask, args=("/slow", 0.01)).start()
print("ready", flush=True)
ask("/fast", 0.02)
"""

RETRY = """
import http.client, sys, time
def push():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    try:
        connection.request("POST", "/push", b"values")
        connection.getresponse().read()
    except ConnectionRefusedError:
        pass
    time.sleep(0.1)
print("ready", flush=True)
while True:
    push()
"""

BUSY_SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(503)
        self.send_header("content-length", "0")
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"""

# PR_SET_TIMERSLACK is 29.
SLACK = """
import ctypes, time
ctypes.CDLL(None).prctl(29, ctypes.c_ulong(40000000))
print("ready", flush=True)
while True:
    time.sleep(0.001)
"""

EPOLL = """
import select
epoll = select.epoll()
print("ready", flush=True)
while True:
    epoll.poll(0.8)
"""


@pytest.fixture
def explained(waffle, start, tmp_path):
    """explained(script, *arguments): the main thread of a program in a second, as JSON and as text. The program has run
    for a while when the capture begins. `options` are those of attach."""
    ask = why_json.asker(waffle)

    def run(script, *arguments, options=()):
        path = tmp_path / "program.py"
        path.write_text(script)
        program = start("python3", path, *arguments)
        program.until("ready")
        time.sleep(0.3)
        attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched", *options)
        attached.wait_ready()
        time.sleep(1.2)
        capture = attached.stop().path
        [instance] = ask(capture, "--thread", str(program.pid))["instances"]
        return instance, waffle.ok("why", "--thread", str(program.pid), capture).stdout

    return run


def first_line(text):
    return next(line for line in text.splitlines() if line.startswith("   1. "))


@tries(3)
@pytest.mark.parametrize("how, cause", [("sleep", "sleep"), ("cpu", "running")])
def test_the_call_that_blocks_an_event_loop_comes_before_its_idle_time(explained, how, cause):
    instance, text = explained(LOOP, how)
    first, *rest = instance["causes"]
    assert first["cause"] == cause and f" {cause} " in first_line(text)
    idle = [other for other in rest if "idle" in other]
    assert idle and sum(other["duration_ns"] for other in idle) > first["duration_ns"]
    assert ": idle, no event came" in text


@tries(3)
@pytest.mark.parametrize("what, cause", [("stat", "sleep"), ("flock", "lock")])
def test_a_thread_that_tries_something_again_and_again_seems_to_poll(explained, tmp_path, what, cause):
    instance, text = explained(TRIES, tmp_path / "lock", what)
    first = instance["causes"][0]
    assert first["cause"] == cause
    if what == "flock":  # the process itself has locked it
        assert first["culprit"]["tid"] is None and first["culprit"]["object"].startswith(f"{tmp_path}/lock (")
    assert first["polls"]["sleeps"] > 50
    assert 9 * MS < first["polls"]["slept_ns"] / first["polls"]["sleeps"] < 15 * MS
    assert "may poll in take (program.py:10): " in first_line(text)


@tries(3)
def test_the_busy_handler_of_sqlite_is_a_wait_for_a_lock(explained, tmp_path):
    instance, text = explained(SQLITE, tmp_path / "data.db")
    first = instance["causes"][0]
    assert first["cause"] == "lock" and first["grade"] == "likely"
    assert first["culprit"]["tid"] is None
    assert "the lock of an SQLite database: its holder is not recorded" in first_line(text)


@tries(3)
def test_children_that_a_signal_ends_are_named_and_explain_the_wait_for_them(explained):
    instance, text = explained(CRASH, options=["--tree"])
    assert instance["causes"][0]["cause"] == "process-exit" and instance["causes"][0]["grade"] == "certain"
    assert instance["causes"][0]["share"] > 0.4
    assert re.match(r"\d+ processes named \S+, children of \S+ \(\d+\), were ended by SIGSEGV; "
                    r"the longest of them lived for [\d.]+ ms\n", text), text


@tries(3)
def test_the_sleeps_of_a_pool_are_one_cause(explained):
    instance, text = explained(POOL)
    sleeps = [cause for cause in instance["causes"] if cause["cause"] == "sleep"]
    assert len([cause for cause in sleeps if cause["duration_ns"] > instance["duration_ns"] / 20]) == 1
    assert instance["causes"][0] == sleeps[0]
    assert sleeps[0]["threads"] == 2 and "polls" not in sleeps[0]
    assert " 2 threads of ThreadPoolExecutor-N_N" in first_line(text)


@tries(3)
@pytest.mark.parametrize("is_up", [True, False])
def test_sleeps_between_failed_requests_name_the_server(explained, start, tmp_path, is_up):
    (tmp_path / "server.py").write_text(BUSY_SERVER)
    server = start("python3", tmp_path / "server.py")
    port = server.until("port").split()[-1]
    if not is_up:
        server.kill()
    instance, text = explained(RETRY, port, options=("--requests",))
    first = instance["causes"][0]
    assert first["cause"] == "sleep" and first["duration_ns"] > instance["duration_ns"] * 0.8
    failure = "HTTP status 503 from" if is_up else "a refused connection to"
    assert first["culprit"]["object"] == f"after {failure} 127.0.0.1:{port}"
    assert f"after {failure}" in first_line(text)


@tries(3)
def test_sleeps_that_the_timer_slack_makes_longer_say_so(explained):
    instance, text = explained(SLACK)
    first = instance["causes"][0]
    assert first["cause"] == "sleep" and first["duration_ns"] > instance["duration_ns"] * 0.8
    assert first["culprit"]["object"] == "sleeps longer than asked, by its timer slack of 40.0 ms"
    assert "polls" not in first and re.search(r"blocked in .*: asked for (9\d\d us|1.00 ms)", text)


@tries(3)
def test_a_wait_from_before_the_capture_that_its_timeout_ended_is_a_timers(explained):
    instance, _ = explained(EPOLL)
    found = {cause["cause"] for cause in instance["causes"]}
    assert "timer" in found and "interrupt" not in found


@tries(3)
def test_the_clients_of_other_requests_delay_no_request_of_a_loop(waffle, start, tmp_path):
    """The server's loop is woken for each request of the fast client, while the slow request waits for a thread."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    server = start("python3", tmp_path / "server.py")
    port = server.until("port").split()[-1]
    client = start("python3", tmp_path / "client.py", port)
    client.until("ready")
    time.sleep(0.3)
    options = ("-p", client.pid, "-q", "--no-report", "--requests", "--stacks", "sched")
    attached = waffle.attach("-p", server.pid, *options)
    attached.wait_ready()
    time.sleep(1.5)
    ask = why_json.asker(waffle)
    [slow] = ask(attached.stop().path, "--where", "kv.path == '/slow'", "--slowest", "1")["instances"]
    slept = {server.pid: 0, client.pid: 0}
    for cause in slow["causes"]:
        if cause["cause"] == "sleep":
            slept[cause["culprit"]["pid"]] += cause["duration_ns"]
    assert slept[server.pid] > 100 * MS > 10 * slept[client.pid]


@tries(3)
@pytest.mark.parametrize("jobs", [6, 1])
def test_a_pool_is_full_if_none_of_its_threads_is_ever_idle(explained, jobs):
    instance, text = explained(QUEUE, jobs)
    full = "all 2 threads of a ThreadPoolExecutor, such as ThreadPoolExecu"
    assert ("full_pool" in instance) == (full in text) == (jobs == 6), text

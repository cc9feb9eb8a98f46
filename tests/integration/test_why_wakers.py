# SPDX-License-Identifier: Apache-2.0
"""`why --pid` also records processes that it did not name, if they end waits of the one that it did: programs/wakes.c."""

import ctypes
import json
import re
import sys
import threading
import time

import pytest

IPC_RMID = 0


@pytest.fixture
def wakes(built, start, tmp_path):
    """wakes(way, *roles): starts these processes, in this order."""
    path = tmp_path / "shared"

    def begin(way, *roles):
        programs = []
        for role in roles:
            programs.append(start(built("wakes.c", "-O1"), role, way, path))
            programs[-1].until("ready")
        return programs

    yield begin
    if path.exists():
        libc = ctypes.CDLL(None)
        libc.semctl(libc.semget(libc.ftok(str(path).encode(), 1), 2, 0), 0, IPC_RMID)


def ask(waffle, path, *programs, duration="3s"):
    pids = [word for program in programs for word in ("--pid", program.pid)]
    return waffle.ok("why", *pids, "--duration", duration, "-o", path)


def time_of(waffle, path, comm, *causes):
    """The share of the time of these causes, with that culprit."""
    instance = json.loads(waffle.ok("why", "--json", path).stdout)["instances"][0]
    return sum(cause["share"] for cause in instance["causes"]
               if cause["cause"] in causes and (cause["culprit"] or {}).get("comm") == comm)


@pytest.mark.parametrize("way", ("futex", "sem", "fifo"))
def test_a_process_that_wakes_the_named_one_again_and_again_is_recorded(waffle, wakes, tmp_path, way):
    worker, client = wakes(way, "worker", "client")
    done = ask(waffle, tmp_path / "x.waffle", client)
    assert re.search(rf"worker \({worker.pid}\) ends waits of what is recorded, and is recorded as well from [01]\.", done.stderr)
    assert f"\nclient ({client.pid}), at " in "\n" + done.stdout
    assert re.search(r"running: .*crunch, user", done.stdout)
    assert "record it as well" not in done.stderr
    assert time_of(waffle, tmp_path / "x.waffle", "worker", "not-recorded") < 0.3


def test_who_wakes_the_waker_is_recorded_too(waffle, wakes, tmp_path):
    worker, middle, last = wakes("sem", "worker", "middle", "last")
    done = ask(waffle, tmp_path / "x.waffle", last)
    for program, name in ((worker, "worker"), (middle, "middle")):
        assert f"{name} ({program.pid}) ends waits of what is recorded" in done.stderr
    assert re.search(r"running: .*crunch, user", done.stdout)


def test_children_of_a_waker_are_not_recorded(waffle, wakes, tmp_path):
    worker, client = wakes("futex", "parent", "client")
    assert f"parent ({worker.pid}) ends waits" in ask(waffle, tmp_path / "x.waffle", client).stderr
    records = waffle.ok("export", tmp_path / "x.waffle", "--format", "records", "-o", "-").stdout.splitlines()
    tasks = [record for record in map(json.loads, records) if record["kind"] == "task"]
    assert {record["tgid"] for record in tasks if record["flags"] & 1} == {worker.pid, client.pid}


def test_a_waker_does_not_keep_the_capture_alive(waffle, wakes, tmp_path):
    worker, client = wakes("futex", "worker", "client")
    begin = time.monotonic()
    threading.Timer(3, client.kill).start()
    assert f"worker ({worker.pid}) ends waits" in ask(waffle, tmp_path / "x.waffle", client, duration="30s").stderr
    assert time.monotonic() - begin < 20 and worker.alive()


def test_a_process_that_only_attach_records_brings_no_others(waffle, wakes, tmp_path):
    _, client = wakes("futex", "worker", "client")
    done = waffle.ok("attach", "--pid", client.pid, "--duration", "2s", "-o", tmp_path / "x.waffle")
    assert "recorded as well" not in done.stderr


BUSY_READER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
def work():
    for _ in range(1000000):
        pass
while True:
    work()
"""
WRITER = """
import socket, struct
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100000))
while True:
    try:
        connection.send(bytes(65536))
    except BlockingIOError:
        print("full", flush=True)
"""


def test_who_does_not_read_is_recorded_although_it_wakes_nobody(waffle, start, tmp_path):
    writer = start(sys.executable, "-c", WRITER)
    reader = start(sys.executable, "-c", BUSY_READER, writer.line())
    writer.until("full")
    done = ask(waffle, tmp_path / "x.waffle", writer, duration="4s")
    assert re.search(rf"\({reader.pid}\) is at the other end of a long wait, and is recorded as well from [01]\.", done.stderr)
    instance = json.loads(waffle.ok("why", "--json", tmp_path / "x.waffle").stdout)["instances"][0]
    assert sum(cause["share"] for cause in instance["causes"]
               if cause["cause"] == "socket" and (cause["culprit"] or {}).get("pid") == reader.pid) > 0.1
    assert re.search(r"running: .*work", done.stdout)


HUNG_SERVER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
lock = threading.Lock()
def reserve():
    lock.acquire()
with lock:
    reserve()
"""
CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.send(b"?")
print("ready", flush=True)
connection.recv(1)
"""


def test_a_server_that_hangs_is_recorded_although_it_ends_no_wait(waffle, start, tmp_path):
    server = start(sys.executable, "-c", HUNG_SERVER)
    client = start(sys.executable, "-c", CLIENT, server.line())
    client.until("ready")
    done = ask(waffle, tmp_path / "x.waffle", client, duration="4s")
    assert f"({server.pid}) is at the other end of a long wait, and is recorded as well" in done.stderr
    assert "reserve (" in done.stdout

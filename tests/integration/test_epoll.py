# SPDX-License-Identifier: Apache-2.0
"""Waits in epoll_wait(): which of the descriptors became ready, and who is to blame, against what the program says."""

import shutil
import socket
import sys
import time

import pytest

from tracer import PROGRAMS, wait_until
from why_json import asker

EPOLL = "anon_inode:[eventpoll]"
LONG_NS = 20_000_000


def epoll_waits(capture, tid):
    """The object of each long wait in epoll_wait(), with its detail: the thread has no other descriptor to wait for."""
    rows = [row["args"] for row in capture.rows("wait", tid=tid) if row["end_ns"] - row["start_ns"] > LONG_NS]
    return [(row["object"], row.get("detail", "")) for row in rows
            if row.get("object", "").startswith((EPOLL, "socket:", "pipe:"))]


@pytest.mark.parametrize("way", ["plain", "several", "asyncio"])
def test_a_wait_names_what_became_ready_unless_that_is_several(waffle, way):
    capture = waffle.run(sys.executable, PROGRAMS / "epolls.py", way)
    tid, *said = capture.result.stdout.split()
    found = epoll_waits(capture, int(tid))
    assert [name for name, _ in found] == [EPOLL if what in ("none", "several") else what for what in said]
    for name, detail in found:
        if name.startswith("socket:"):
            assert detail.startswith("tcp 127.0.0.1:"), detail


def test_the_chain_leads_to_the_peer_of_what_became_ready(waffle):
    capture = waffle.run(sys.executable, PROGRAMS / "epolls.py", "asyncio")
    _, *said = capture.result.stdout.split()
    text = waffle.ok("why", "--evidence", capture.path).stdout
    # The text has the longest one of each culprit.
    assert any(f"blocked in epoll_wait, ready: {name} (tcp 127.0.0.1:" in text for name in said), text
    [instance] = asker(waffle)(capture.path)["instances"]
    answerers = [cause for cause in instance["causes"] if cause["cause"] == "sleep"]
    assert answerers and all(cause["culprit"]["pid"] != instance["thread"]["pid"] for cause in answerers)


@pytest.fixture
def redis(tmp_path, start):
    server = shutil.which("redis-server")
    assert server, "redis-server is not installed; run make setup-check"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = start(server, "--port", str(port), "--save", "", "--dir", tmp_path)
    program.port = port

    def connect():
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            return None

    wait_until(connect, "redis-server to listen").close()
    return program


def test_redis_names_the_client_whose_command_came(waffle, redis):
    clients = [socket.create_connection(("127.0.0.1", redis.port)) for _ in range(3)]
    ports = [client.getsockname()[1] for client in clients]
    attached = waffle.attach(f"--pid={redis.pid}", "-q", "--no-report").wait_ready()
    asked = []
    for i in (0, 2, 1, 1, 0):
        time.sleep(0.03)
        clients[i].sendall(b"PING\r\n")
        assert clients[i].recv(100) == b"+PONG\r\n"
        asked.append(ports[i])
    capture = attached.stop()
    details = [row["args"].get("detail", "") for row in capture.rows("wait", tid=redis.pid)]
    came = [int(detail.rpartition(":")[2]) for detail in details if detail.startswith("tcp ")]
    # A timer of redis-server may end a wait just before a command comes.
    rest = iter(asked)
    assert len(came) >= len(asked) - 2 and all(port in rest for port in came), (came, asked)

# SPDX-License-Identifier: Apache-2.0
"""--requests: one span for each request that a server answers, without any mark in the server."""

import http.client
import socket
import sys
from pathlib import Path

import pytest
from tracer import find_tool, wait_until
from why_json import asker

SERVER = Path(__file__).parent / "programs" / "http_server.py"


@pytest.fixture
def web(start):
    """http_server.py with .port."""
    program = start(sys.executable, SERVER)
    program.port = int(program.line())
    return program


def record(waffle, program, *options):
    """Attaches, and returns when all is armed."""
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--requests", *options)
    attached.wait_ready()
    return attached


def get(connection, *paths):
    for path in paths:
        connection.request("GET", path)
        assert connection.getresponse().read() == b"done"


def requests(capture, key="path"):
    """(name, path or command, duration in ms, answered) of each request."""
    return [(row["name"], row["args"].get(key), (row["end_ns"] - row["start_ns"]) / 1e6, row["args"]["answered"])
            for row in capture.rows("span") if row["category"] == "request"]


def test_requests_of_http_last_until_their_answer_is_sent(waffle, web):
    attached = record(waffle, web)
    get(http.client.HTTPConnection("127.0.0.1", web.port),
        "/fast?password=KRAKATAU", "/slow/80", "/body/60", "/last")
    capture = attached.stop()
    capture.check_sums(lost=0)
    rows = requests(capture)[:3]  # that the last one was sent may be noted a little later
    assert [row[:2] for row in rows] == [("HTTP GET", path) for path in ("/fast", "/slow/80",
                                                                         "/body/60")]
    assert all(row[3] for row in rows)
    assert rows[1][2] >= 80 and rows[2][2] >= 60
    assert b"KRAKATAU" not in capture.path.read_bytes()


def test_why_names_the_cause_of_a_slow_request(waffle, web):
    attached = record(waffle, web, "--stacks", "sched")
    get(http.client.HTTPConnection("127.0.0.1", web.port), "/fast", "/slow/200", "/fast")
    [slowest] = asker(waffle)(attached.stop().path, "--span", "HTTP GET", "--slowest", "1"
                              )["instances"]
    assert slowest["causes"][0]["cause"] == "sleep" and slowest["causes"][0]["share"] > 0.5


def test_connections_that_are_older_and_those_without_an_answer(waffle, web):
    older = http.client.HTTPConnection("127.0.0.1", web.port)
    get(older, "/first")
    attached = record(waffle, web)
    get(older, "/older", "/older")
    never = http.client.HTTPConnection("127.0.0.1", web.port)
    never.request("GET", "/never")
    with pytest.raises(http.client.RemoteDisconnected):
        never.getresponse()
    rows = [(path, answered) for _, path, _, answered in requests(attached.stop())]
    assert ("/older", True) in rows and ("/never", False) in rows and len(rows) == 3


def test_a_request_that_is_open_at_the_end_is_recorded_without_an_end(waffle, web):
    attached = record(waffle, web)
    with socket.create_connection(("127.0.0.1", web.port)) as client:
        client.sendall(b"GET /slow/60000 HTTP/1.1\r\n\r\n")
        get(http.client.HTTPConnection("127.0.0.1", web.port), "/slow/1", "/fast")  # they come later
        rows = [row for row in attached.stop().rows("span") if row["category"] == "request"]
    unfinished = {row["args"]["path"]: row.get("unfinished", False) for row in rows}
    assert unfinished["/slow/60000"] and not unfinished["/slow/1"]


def test_filter_and_redaction_apply_to_requests(waffle, web):
    attached = record(waffle, web, "--filter", 'kv.path ~ "/slow/*" && dur > 20ms')
    get(http.client.HTTPConnection("127.0.0.1", web.port), "/fast", "/slow/1", "/slow/40", "/fast")
    assert [path for _, path, _, _ in requests(attached.stop())] == ["/slow/40"]
    attached = record(waffle, web, "--redact", "path")
    get(http.client.HTTPConnection("127.0.0.1", web.port), "/VESUVIUS")
    capture = attached.stop()
    assert [row[:2] for row in requests(capture)] == [("HTTP GET", None)]
    assert b"VESUVIUS" not in capture.path.read_bytes()


def redis_client(start, folder, family="tcp"):
    """A running redis-server, and a connection to it."""
    unix = folder / "s"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = start(find_tool("redis-server"), "--port", port, "--unixsocket", unix, "--save", "",
                   "--appendonly", "no", "--daemonize", "no", "--dir", folder)

    def connect():
        client = socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET)
        try:
            client.connect(str(unix) if family == "unix" else ("127.0.0.1", port))
        except OSError:
            return None
        return client

    return server, wait_until(connect, "redis-server to listen")


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_commands_of_redis_are_requests(waffle, start, tmp_path, family):
    """On a connection that is older than the capture."""
    server, client = redis_client(start, tmp_path, family)

    def call(*words):
        client.sendall(b"*%d\r\n" % len(words) +
                       b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
        assert client.recv(1000)

    call("PING")
    attached = record(waffle, server)
    call("SET", "KRAKATAU", "1")
    call("GET", "KRAKATAU")
    call("lrange", "none", "0", "9")
    capture = attached.stop()
    assert [row[:2] for row in requests(capture, "command")] == [
        ("RESP SET", "SET"), ("RESP GET", "GET"), ("RESP LRANGE", "LRANGE")]
    assert b"KRAKATAU" not in capture.path.read_bytes()


def test_requests_of_one_packet_have_a_span_each(waffle, start, tmp_path):
    server, client = redis_client(start, tmp_path)
    attached = record(waffle, server)
    keys = [b"KRAKATAU%d" % i for i in range(60)]
    client.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$4\r\n*1\r\n\r\n" % (len(key), key) for key in keys)
                   + b"*1\r\n$4\r\nPING\r\n")
    answer = b""
    while not answer.endswith(b"+PONG\r\n"):
        answer += client.recv(1000)
    capture = attached.stop()
    capture.check_sums(lost=0)
    rows = [row for row in capture.rows("span") if row["category"] == "request"]
    assert sorted(row["name"] for row in rows) == ["RESP PING"] + ["RESP SET"] * 60
    assert len({(row["start_ns"], row["end_ns"]) for row in rows}) == 1
    assert len({row["id"] for row in rows}) == 61
    assert b"KRAKATAU" not in capture.path.read_bytes()


def test_requests_of_http_that_come_together_have_a_span_each(waffle, web):
    attached = record(waffle, web)
    with socket.create_connection(("127.0.0.1", web.port)) as client:
        client.sendall(b"GET /fast HTTP/1.1\r\nHost: a\r\n\r\nGET /slow/20 HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = b""
        while answer.count(b"done") < 2:
            answer += client.recv(1000)
    assert {row[1]: row[3] for row in requests(attached.stop())} == {"/fast": True, "/slow/20": True}


def test_answers_that_look_like_commands_are_no_requests(waffle, start, tmp_path):
    """A client of redis receives arrays of texts, as a server does."""
    script = tmp_path / "client.py"
    script.write_text("""
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
server.close()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    client.sendall(b"LRANGE list 0 1\\r\\n")      # an inline command
    peer.recv(100)
    peer.sendall(b"*2\\r\\n$3\\r\\nSET\\r\\n$1\\r\\na\\r\\n")
    client.recv(100)
print("done", flush=True)
sys.stdin.readline()
""")
    program = start(sys.executable, script)
    program.until("ready")
    attached = record(waffle, program)
    program.ask("go", "done")
    assert requests(attached.stop(), "command") == []

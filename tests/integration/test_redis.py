# SPDX-License-Identifier: Apache-2.0
"""A program nobody here wrote: redis from its Debian source package, with ten macros inserted by a
script, traced under load, its counts compared with the statistics that it keeps itself."""

import collections
import socket
import subprocess
import sys
import time

import pytest
import redis_source
from tracer import ROOT, find_tool, semaphores, tries, wait_until

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402


class Client:
    """As much of the Redis protocol as a test needs."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.input = self.socket.makefile("rb")

    def call(self, *words):
        data = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(data) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in data))
        return self.reply()

    def reply(self):
        line = self.input.readline().rstrip(b"\r\n").decode()
        kind, rest = line[0], line[1:]
        if kind == "-":
            raise RuntimeError(rest)
        if kind == "$":
            size = int(rest)
            return None if size < 0 else self.input.read(size + 2)[:-2].decode()
        if kind == "*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == ":" else rest

    def info(self):
        """All of INFO; cmdstat_* by the name of the command."""
        values = {}
        for line in self.call("INFO", "everything").splitlines():
            name, colon, value = line.partition(":")
            if colon:
                values[name] = int(value) if value.isdigit() else value
        values["calls"] = collections.Counter({
            name.removeprefix("cmdstat_"): int(value.split(",")[0].removeprefix("calls="))
            for name, value in values.items() if name.startswith("cmdstat_")})
        return values


@pytest.fixture(scope="module")
def redis_server():
    return redis_source.build()


@pytest.fixture
def redis(redis_server, tmp_path, start):
    """A running server: its Program with .socket, .client and .path."""
    path = tmp_path / "s"
    program = start(redis_server, "--port", "0", "--unixsocket", path, "--save", "",
                    "--appendonly", "no", "--daemonize", "no", "--dir", tmp_path,
                    "--logfile", tmp_path / "log")
    program.path = redis_server
    program.socket = path

    def connect():
        try:
            return Client(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    program.client = wait_until(connect, "redis-server to listen")
    assert program.client.call("PING") == "PONG"
    return program


def benchmark(redis, *words):
    return subprocess.Popen(
        [find_tool("redis-benchmark"), "-s", str(redis.socket), "-q", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def unharmed(redis):
    assert redis.alive()
    assert redis.client.call("PING") == "PONG"
    values = semaphores(redis.pid, redis.path)
    assert values and not any(values)


def test_ten_sites_of_the_script_are_listed(waffle, redis_server):
    names = [words.split('"')[1] for _, _, words in redis_source.INSERTIONS]
    text = waffle.ok("list", redis_server).stdout
    assert len(names) == 10
    for name in names:
        assert f" {name}  " in text


def test_counts_are_those_of_redis_itself(waffle, redis, tmp_path):
    client = redis.client
    attached = waffle.attach_to(redis, redis.path)
    before = client.info()
    load = benchmark(redis, "-c", 8, "-n", 4000, "-r", 500, "-d", 64, "-t", "set,get,incr,lpush")
    assert load.wait(60) == 0
    for i in range(20):
        client.call("SET", f"brief{i}", "x", "PX", 1)
    wait_until(lambda: not any(client.call("GET", f"brief{i}") for i in range(20)), "keys to expire")
    client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    client.call("CONFIG", "SET", "maxmemory", client.info()["used_memory"] - 8192)
    client.call("SET", "one more", "x" * 1000)
    after = client.info()
    capture = attached.stop()
    unharmed(redis)

    capture.check_sums(lost=0)
    rows = capture.rows()
    named = collections.Counter((row["kind"], row.get("name")) for row in rows)

    def during(name):
        return after[name] - before[name]

    # The INFO that read `before` counts itself afterwards, the one that read `after` too.
    calls = after["calls"] - before["calls"] + collections.Counter(info=1)
    assert calls["set"] >= 4000 and calls["lpush"] >= 4000
    assert collections.Counter(row["args"]["command"] for row in rows
                               if row.get("name") == "call") == calls
    assert named["span", "call"] == during("total_commands_processed") + 1
    assert named["span", "processCommand"] == named["span", "call"]
    assert named["span", "readQueryFromClient"] == during("total_reads_processed") + 1
    assert named["span", "writeToClient"] == during("total_writes_processed") + 1
    assert named["event", "client created"] == during("total_connections_received") >= 32
    assert named["event", "expired"] == during("expired_keys") == 20
    assert named["event", "evicted"] == during("evicted_keys") > 0
    assert {row["args"]["key"] for row in rows if row.get("name") == "expired"} == {
        f"brief{i}" for i in range(20)}
    # The capture may begin or end within one.
    assert abs(named["span", "serverCron"] - named["counter", "clients"]) <= 1 < named["counter", "clients"]

    # Each command runs inside its processCommand, and took as long as redis thinks.
    spans = {row["id"]: row for row in rows if row["kind"] == "span"}
    for row in spans.values():
        if row["name"] == "call":
            parent = spans[row["parent"]]
            assert parent["name"] == "processCommand"
            assert parent["start_ns"] <= row["start_ns"] <= row["end_ns"] <= parent["end_ns"]
    report = {span["name"]: span for span in capture.report()["spans"]}
    assert report["call"]["count"] == named["span", "call"]

    trace = validate_perfetto.load(capture.export("perfetto"))
    assert trace.violations == []
    slices = collections.Counter(piece.name for piece in trace.slices)
    assert slices["call"] == named["span", "call"]


@tries(3)
def test_attached_in_the_middle_of_load_the_server_goes_on(waffle, redis):
    load = benchmark(redis, "-c", 8, "-l", "-r", 1000, "-t", "get,set")
    try:
        wait_until(lambda: redis.client.info()["total_commands_processed"] > 2000, "load")
        before, began = redis.client.info(), time.monotonic()
        attached = waffle.attach("-p", redis.pid, "-q", "--no-report", "--duration", "2s")
        capture = attached.wait(60)
        after, seconds = redis.client.info(), time.monotonic() - began
        unharmed(redis)
        # It goes on after the tracer has gone.
        wait_until(lambda: redis.client.info()["total_commands_processed"] >
                   after["total_commands_processed"] + 1000, "load after the tracer has gone")
    finally:
        load.kill()
        load.wait()
    capture.check_sums()
    report = {span["name"]: span["count"] for span in capture.report()["spans"]}
    processed = after["total_commands_processed"] - before["total_commands_processed"]
    assert 1000 < report["call"] <= processed + 1
    # Of its two seconds the trace has what redis did in them, give or take arming and disarming.
    assert report["call"] > processed * 2 / seconds * 0.5

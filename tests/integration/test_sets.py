# SPDX-License-Identifier: Apache-2.0
"""The ready sets of probes on programs that nobody here wrote, or that keep a log of their own: what
is recorded is what the program did, call by call."""

import collections
import concurrent.futures
import os
import socket
import ssl
import struct
import subprocess

import pytest
from test_probes import arm
from tracer import find_tool, parse_log


def mapped(pid, name):
    """The file of this name that a process has mapped."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        [path] = {line.split()[-1] for line in maps if name in line}
    return path


# ---- malloc ----

ALLOCATIONS = {1: ("malloc", "bytes"), 2: ("calloc", "count", "bytes"),
               3: ("realloc", "old", "bytes"), 4: ("free", "address")}


def allocations(path):
    """What the library that stands before malloc() has written: (name, arguments, result)."""
    with open(path, "rb") as words:
        while (row := struct.unpack("<4Q", words.read(32)))[0]:
            name, *keys = ALLOCATIONS[row[0]]
            yield name, tuple(row[1:1 + len(keys)]), 0 if name == "free" else row[3]


def number(value):
    return int(value, 16) if isinstance(value, str) else value or 0


@pytest.mark.parametrize("command", [
    ("/bin/ls", "-lR", "/etc/apt", "/etc/security"),
    ("/usr/bin/sort", "--parallel=3", "-u", "/usr/share/common-licenses/GPL-3"),
])
def test_malloc_set_sees_all_allocations_of_a_program(waffle, built, tmp_path, command):
    library = built("count_malloc.c", "-shared", "-fPIC", name="libcount_malloc.so")
    log = tmp_path / "log"
    capture = waffle.run(*command, options=("--probes", "malloc", "--no-sched"),
                         env={**os.environ, "LD_PRELOAD": str(library), "COUNT_MALLOC": str(log)})
    capture.check_sums(lost=0)
    rows = capture.rows("span", category="malloc")
    [pid] = {row["pid"] for row in rows}
    logged = collections.Counter(allocations(f"{log}.{pid}"))
    assert sum(logged.values()) > 50
    seen = collections.Counter()
    for row in rows:
        if row["name"] in ("mmap", "munmap") or "parent" in row:
            continue
        _, *keys = next(one for one in ALLOCATIONS.values() if one[0] == row["name"])
        result = 0 if row["name"] == "free" else number(row["args"]["address"])
        seen[row["name"], tuple(number(row["args"][key]) for key in keys), result] += 1
    assert seen == logged


# ---- pthread ----


def object_of(row):
    """What a call is made on: its first argument."""
    return number(next(iter(row["args"].values())))


@pytest.mark.parametrize("flags", [(), ("-static",)])
def test_pthread_set_sees_locks_as_the_program_logged_them(waffle, start, built, flags):
    program = built("locks.c", *flags)
    running = start(program)
    running.until("ready")
    file = program if flags else mapped(running.pid, "libc.so")
    attached = arm(waffle, running.pid, file, "--probes", "pthread")
    running.say("go")
    log = []
    while not (line := running.line()).startswith("done"):
        log.append(line)
    calls = parse_log(log)
    [holder] = [row["holder"] for row in parse_log([line])]
    capture = attached.wait(60)
    capture.check_sums(lost=0)
    objects = {call["object"] for call in calls}
    # Without those that the C library takes for itself.
    rows = [row for row in capture.rows() if row.get("category") == "pthread"
            and row["tid"] == running.pid
            and (row["name"] == "pthread_create" or object_of(row) in objects)]
    by_name = collections.defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    logged = collections.defaultdict(list)
    for call in calls:
        logged[call["name"]].append(call)
    assert len(logged["pthread_mutex_lock"]) == 52
    for name, expected in logged.items():
        got = sorted(by_name[name], key=lambda row: row["start_ns"])
        assert len(got) == len(expected), name
        for row, call in zip(got, expected):
            # Of an event the end can't be seen in every libc.
            assert call["begin"] <= row["start_ns"] <= row.get("end_ns", call["end"]) <= call["end"]
            if row["kind"] == "span":
                assert row["args"]["result"] == call["result"], row
            if name == "pthread_create":
                assert number(row["args"]["thread"]) == holder
                assert row["args"]["start"] == "holder"
            else:
                assert object_of(row) == call["object"]
    assert {row["result"] for row in logged["pthread_mutex_trylock"]} == {16}
    assert len(by_name["pthread_mutex_unlock"]) == 52


def test_set_finds_nothing_in_a_stripped_program_and_says_that_it_is(waffle, built, tmp_path):
    whole, stripped = built("locks.c", "-static"), tmp_path / "stripped"
    subprocess.check_call(["strip", "-o", stripped, whole])
    told = waffle.call("list", "--probes", "pthread", stripped).stderr
    assert "pthread: nothing that this set describes" in told
    assert f"{stripped} is stripped" in told
    told = waffle.call("list", "--probes", "openssl", whole).stderr
    assert "openssl: nothing that this set describes" in told and "stripped" not in told


# ---- OpenSSL ----

CLIENT = """
import socket, ssl
print("ready", flush=True)
path = input()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
sent = received = 0
with socket.socket(socket.AF_UNIX) as plain:
    plain.connect(path)
    with context.wrap_socket(plain) as tls:
        for size in (1, 100, 20000, 300000):
            tls.sendall(bytes(size))
            sent += size
            while received < sent:
                received += len(tls.recv(5000))
print(f"client sent={sent} received={received}", flush=True)
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run([find_tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout",
                    folder / "key", "-out", folder / "cert"], check=True, capture_output=True)
    return folder


def client_of(port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 20))


def echo(listener, certificate):
    """An echo server for one client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    plain, _ = listener.accept()
    with context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=True) as tls:
        while data := tls.recv(65536):
            tls.sendall(data)


def moved(rows, prefix):
    """Bytes that calls have moved: what the plain functions return, and the others write."""
    rows = [row for row in rows if row["name"].startswith(prefix) and row["args"]["result"] > 0]
    key = "read" if prefix == "SSL_read" else "written"
    return sum(row["args"].get(key, row["args"]["result"]) for row in rows)


def test_openssl_set_sees_the_bytes_that_openssls_own_server_moves(waffle, start, certificate):
    server = start(find_tool("openssl"), "s_server", "-accept", "127.0.0.1:0", "-naccept", "1",
                   "-cert", certificate / "cert", "-key", certificate / "key")
    port = int(server.until("ACCEPT 127.0.0.1:"))
    attached = arm(waffle, server.pid, mapped(server.pid, "libssl.so"), "--probes", "openssl")
    with client_of(port) as tls:
        sent = 0
        for number_ in range(1, 40):
            line = f"line {number_} {'x' * number_ * 50}\n"
            tls.sendall(line.encode())
            sent += len(line)
            server.until(line.strip())
        server.say("an answer")
        answer = tls.recv(100)
    server.process.wait(60)
    capture = attached.wait(60)
    capture.check_sums(lost=0)
    rows = [row for row in capture.rows("span", category="openssl") if "parent" not in row]
    assert answer == b"an answer\n"
    assert moved(rows, "SSL_write") == len(answer)
    assert moved(rows, "SSL_read") == sent
    assert all(row["args"]["bytes"] >= row["args"]["result"] for row in rows
               if row["name"] == "SSL_read")
    assert [row["args"]["result"] for row in rows if row["name"] == "SSL_accept"] == [1]


def test_openssl_set_sees_the_bytes_of_a_python_client(waffle, start, certificate, tmp_path):
    path = tmp_path / "socket"
    client = start("/usr/bin/python3", "-c", CLIENT)
    client.until("ready")
    attached = arm(waffle, client.pid, mapped(client.pid, "libssl.so"), "--probes", "openssl")
    with socket.socket(socket.AF_UNIX) as listener, \
            concurrent.futures.ThreadPoolExecutor(1) as threads:
        listener.bind(str(path))
        listener.listen()
        served = threads.submit(echo, listener, certificate)
        client.say(str(path))
        [said] = parse_log([client.line()])
        served.result(60)
    client.finish()
    capture = attached.wait(60)
    capture.check_sums(lost=0)
    rows = [row for row in capture.rows("span", category="openssl") if "parent" not in row]
    assert moved(rows, "SSL_write") == said["sent"] == 320101
    assert moved(rows, "SSL_read") == said["received"] == 320101

# SPDX-License-Identifier: Apache-2.0
"""`why --pid` on programs that know nothing of waffle: the first cause that it prints."""

import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "zoo"))

import zoo

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


@pytest.fixture
def first_cause(waffle, tmp_path):
    """first_cause(process): cause, grade, culprit of the first line for a running program."""

    def ask(process, duration="2s"):
        text = waffle.ok("why", f"--pid={process.pid}", f"--duration={duration}", "-o", tmp_path / "x.waffle").stdout
        line = next(line for line in text.splitlines() if re.match(r" +1\. ", line))
        found = re.match(r" +1\. +[\d.]+ % +[\d.]+ \w+ +(\S+) +(\S+) +(.*)", line)
        assert found, line
        return found.groups()

    return ask


@pytest.fixture
def launch():
    """launch(*command, **options): starts a program and waits until it has printed a line."""
    processes = []

    def run(*command, **options):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, **options)
        processes.append(process)
        assert process.stdout.readline()
        return process

    yield run
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def parked(tmp_path_factory):
    return zoo.build_other(PROGRAMS / "parked.go", tmp_path_factory.mktemp("go"))


@pytest.mark.parametrize("writes", (True, False))
def test_a_terminal_is_named_with_the_process_at_its_other_end(first_cause, launch, writes):
    master, terminal = os.openpty()
    done = threading.Event()

    def write():
        while not done.wait(0.05):
            os.write(master, b"line\n")

    writer = threading.Thread(target=write)
    if writes:
        writer.start()
    try:
        process = launch("sh", "-c", "echo ready; exec cat > /dev/null", stdin=terminal)
        cause, grade, culprit = first_cause(process)
    finally:
        done.set()
        if writes:
            writer.join()
        os.close(master)
        os.close(terminal)
    assert (cause, grade) == ("pipe", "likely" if writes else "unknown")
    assert f"terminal of process {os.getpid()}, " in culprit


PIPES = """
import os, signal, sys, time
mode, path = sys.argv[1:]
if mode == "fifo":
    os.mkfifo(path)
    both = os.open(path, os.O_RDWR)
    ends = [os.open(path, flags) for flags in (os.O_RDONLY, os.O_WRONLY)]
    os.close(both)
else:
    ends = os.pipe()
mine = mode == "full"  # it waits at this end, 1: to write
for i in range({"alone": 0, "several": 2}.get(mode, 1)):
    if not os.fork():
        with open("/proc/self/comm", "w") as comm:
            comm.write(f"helper{i}")
        os.close(ends[mine])
        time.sleep(1000) if mode == "sleeps" else signal.pause()
if mode != "alone":
    os.close(ends[not mine])
print(os.getpid(), flush=True)
while mode == "full":
    os.write(ends[1], bytes(4096))
os.read(ends[0], 1)
"""


@pytest.mark.parametrize("mode, cause, grade, culprit", (
    ("empty", "pipe", "likely", r"helper0 \((\d+)\), pipe:\[\d+\] \(write end of process \1, helper0\)"),
    ("fifo", "pipe", "likely", r"helper0 \((\d+)\), /\S+ \(fifo, write end of process \1, helper0\)"),
    ("full", "pipe", "likely", r"helper0 \((\d+)\), pipe:\[\d+\] \(read end of process \1, helper0\)"),
    ("sleeps", "sleep", "likely", r"helper0 \(\d+\)"),
    ("alone", "pipe", "likely", r"python\S* \((\d+)\), pipe:\[\d+\] \(write end of process \1, python.*"),
    ("several", "pipe", "unknown", r"pipe:\[\d+\] \(write end of 2 processes: helper0 \(\d+\), helper1 \(\d+\)\)"),
), ids=lambda value: value if value.isalpha() else "")
def test_a_pipe_is_named_with_the_process_at_its_other_end(first_cause, launch, tmp_path, mode, cause, grade, culprit):
    process = launch(sys.executable, "-c", PIPES, mode, tmp_path / "fifo", process_group=0)
    try:
        found = first_cause(process, "500ms")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    assert found[:2] == (cause, grade) and re.fullmatch(culprit + "(, called within .*)?", found[2]), found


READS = """
import os, sys
pipe = os.open(sys.argv[1], os.O_RDONLY)
print(flush=True)
os.read(pipe, 1)
"""


def test_a_stopped_process_at_the_other_end_of_a_pipe_explains_a_wait_though_it_is_not_recorded(first_cause, launch,
                                                                                              tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = subprocess.Popen(("sh", "-c", f"exec sleep 1000 > {path}"))
    try:
        reader = launch(sys.executable, "-c", READS, path)
        writer.send_signal(signal.SIGSTOP)
        os.waitpid(writer.pid, os.WUNTRACED)
        cause, grade, culprit = first_cause(reader, "500ms")
    finally:
        writer.kill()
        writer.wait()
    assert (cause, grade) == ("stopped", "likely")
    assert re.match(rf"/\S+ \(fifo, write end of process {writer.pid}, \w+, which is stopped\)", culprit), culprit


FAR_ENDS = """
import os, select, socket, sys, time
way, what = sys.argv[1:]
if way == "unix":
    near, far = socket.socketpair()
else:
    server = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(server.getsockname())
    far, _ = server.accept()
    server.close()
if what == "gone":
    far.setsockopt(socket.IPPROTO_TCP, 19, 1)  # TCP_REPAIR: closed without a packet
elif not os.fork():
    near.close()
    loop = select.epoll()
    loop.register(far, select.EPOLLIN | select.EPOLLET)
    while True:
        loop.poll()
        far.recv(1)
else:
    near.sendall(b"12345")
    time.sleep(0.2)
far.close()
print(os.getpid(), flush=True)
near.recv(1)
"""


@pytest.mark.parametrize("way, what, culprit", (
    ("tcp", "gone", r"socket:\[\d+\] \(tcp .*\): no socket is at the other end any more"),
    ("tcp", "unread", r"python\S* \(\d+\), socket:\[\d+\] \(tcp .*\): 4 bytes are unread there, while python\S* waits in "
                      r"epoll_wait"),
    ("unix", "unread", r"python\S* \(\d+\), socket:\[\d+\] \(unix, other end of process \d+, python\S*, with 4 bytes "
                       r"unread\): python\S* waits in epoll_wait"),
))
def test_the_other_end_of_a_connection_explains_a_wait_as_it_is_at_the_end(first_cause, launch, way, what, culprit):
    process = launch(sys.executable, "-c", FAR_ENDS, way, what, process_group=0)
    try:
        found = first_cause(process, "500ms")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    assert found[:2] == ("socket", "likely") and re.match(culprit, found[2]), found


CONNECTS = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(0)
others = [socket.socket() for _ in range(2)]
for other in others:
    other.setblocking(False)
    other.connect_ex(server.getsockname())
print(server.getsockname()[1], flush=True)
socket.create_connection(server.getsockname())
"""


def test_a_connection_without_an_answer_since_before_the_capture_has_its_address(first_cause, tmp_path):
    """The queue of the server is full, so the kernel drops the request."""
    with subprocess.Popen([sys.executable, "-c", CONNECTS], stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        time.sleep(1.5)
        cause, grade, culprit = first_cause(process, "1s")
        process.kill()
    assert (cause, grade) == ("socket", "unknown")
    assert re.search(rf"<-> 127\.0\.0\.1:{port}, SYN sent again", culprit)


FULL_QUEUE = """
import os, select, signal, socket, sys
server = socket.create_server(("127.0.0.1", 0), backlog=0)
others = [socket.socket() for _ in range(2)]
for other in others:
    other.setblocking(False)
    other.connect_ex(server.getsockname())
if not os.fork():
    with open("/proc/self/comm", "w") as comm:
        comm.write("helper")
    signal.pause()
address = server.getsockname()
server.close()
print(address[1], flush=True)
if len(sys.argv) > 2:
    os.execv(sys.argv[2], (sys.argv[2], f"127.0.0.1:{address[1]}"))
woken, idle, beside = os.eventfd(0), os.pipe(), socket.create_server(("127.0.0.1", 0))
while True:
    client = socket.socket()
    if sys.argv[1] == "timeout":
        client.settimeout(0.3)
        try:
            client.connect(address)
        except TimeoutError:
            pass
    elif sys.argv[1] == "list":
        client.setblocking(False)
        client.connect_ex(address)
        both = select.poll()
        both.register(client)
        both.register(woken, select.POLLIN)
        both.poll(300)
    else:
        client.setblocking(False)
        client.connect_ex(address)
        loop = select.epoll()
        for descriptor in [idle[0], client.fileno()] + [beside.fileno()] * (sys.argv[1] == "beside"):
            loop.register(descriptor, select.EPOLLIN)
        loop.poll(None if sys.argv[1] == "open" else 0.3)
        loop.close()
    client.close()
"""


@pytest.fixture(scope="session")
def dials(tmp_path_factory):
    return zoo.build_other(PROGRAMS / "dials.go", tmp_path_factory.mktemp("go"))


@pytest.fixture
def unaccepted(first_cause, dials):
    """unaccepted(mode): the first cause of a client of a server whose queue is full, and the server's port."""

    def ask(mode):
        command = [sys.executable, "-c", FULL_QUEUE, mode, *([dials] if mode == "go" else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as process:
            port = int(process.stdout.readline())
            time.sleep(0.5)
            try:
                return *first_cause(process), port
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    return ask


@pytest.mark.parametrize("mode", ("timeout", "list", "epoll", "go"))
def test_connections_that_nobody_accepts_name_the_server(unaccepted, mode):
    """Neither a list, an epoll nor a timeout shows what the socket waits for: it is being connected."""
    *found, culprit, port = unaccepted(mode)
    assert found == ["socket", "likely"]
    address = rf"127\.0\.0\.1:{port} \(tcp, SYN not answered\)"
    assert re.match(rf"helper \(\d+\), \d+ connections to {address}", culprit), culprit


def test_a_connection_that_nobody_accepts_until_the_end_names_the_server(unaccepted):
    *found, culprit, port = unaccepted("open")
    assert found == ["socket", "likely"]
    ends = rf"tcp 127\.0\.0\.1:\d+ <-> 127\.0\.0\.1:{port}, SYN sent again (once|\d+ times)"
    assert re.match(rf"helper \(\d+\), socket:\[\d+\] \({ends}\)", culprit), culprit


def test_a_loop_that_also_waits_for_others_is_idle_while_nobody_accepts_its_connection(unaccepted):
    cause, grade, culprit, _ = unaccepted("beside")
    assert cause == "timer", (grade, culprit)
    assert culprit.endswith("idle, no event came")


QUEUED = """
import os, select, signal, socket, sys
server = socket.create_server(("127.0.0.1", 0), backlog=0)
if sys.argv[1] == "deferred":
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 60)
client = socket.create_connection(server.getsockname())
if not os.fork():
    with open("/proc/self/comm", "w") as comm:
        comm.write("helper")
    signal.pause()
port = server.getsockname()[1]
server.close()
if sys.argv[1] != "deferred":
    client.sendall(b"a request")
both = select.poll()
both.register(client, select.POLLIN)
both.register(os.eventfd(0), select.POLLIN)
print(port, flush=True)
both.poll()
"""


@pytest.mark.parametrize("mode", ("queued", "deferred"))
def test_a_client_in_the_queue_of_a_socket_that_listens_names_the_server(first_cause, mode):
    """As with a queue that becomes full, the client of a deferred accept is connected, but the server is not."""
    with subprocess.Popen([sys.executable, "-c", QUEUED, mode], stdout=subprocess.PIPE, text=True,
                          process_group=0) as process:
        port = int(process.stdout.readline())
        try:
            cause, grade, culprit = first_cause(process, "1s")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert (cause, grade) == ("socket", "likely")
    ends = rf"tcp 127\.0\.0\.1:\d+ <-> 127\.0\.0\.1:{port}, not accepted yet"
    assert re.match(rf"helper \(\d+\), socket:\[\d+\] \({ends}\)", culprit), culprit


SILENT = """
import os, select, socket
for port in range(20000 + os.getpid() % 10000, 32768):  # no port of a client
    try:
        listener = socket.create_server(("127.0.0.1", port))
        break
    except OSError:
        pass
print(port, flush=True)
accepted = listener.accept()[0]
loop = select.epoll()
loop.register(listener)
loop.register(accepted, select.EPOLLIN | select.EPOLLET)
while True:
    loop.poll(0.02)
"""
LOOP_CLIENT = """
import select, socket, sys
pair = socket.create_server(("127.0.0.1", 0))
wakes = socket.create_connection(pair.getsockname())
woken, _ = pair.accept()
pair.close()
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"a request")
loop = select.epoll()
loop.register(woken, select.EPOLLIN)
loop.register(client, select.EPOLLIN)
print("asked", flush=True)
loop.poll(3600)
"""


def test_the_loop_of_a_client_comes_before_the_idle_loop_of_its_server(waffle, tmp_path):
    """The client also watches a connection by which it only wakes itself."""
    with subprocess.Popen([sys.executable, "-c", SILENT], stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline())
        with subprocess.Popen([sys.executable, "-c", LOOP_CLIENT, str(port)], stdout=subprocess.PIPE) as client:
            client.stdout.readline()
            pids = [f"--pid={process.pid}" for process in (client, server)]
            text = waffle.ok("why", *pids, "--duration=2s", "-o", tmp_path / "x.waffle").stdout
            client.kill()
        server.kill()
    line = next(line for line in text.splitlines() if re.match(r" +1\. ", line))
    assert f"({client.pid}), at" in text
    assert re.search(rf"socket +likely +.* <-> 127\.0\.0\.1:{port}\)", line), text


ALL_OPEN = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
try:
    while True:
        os.open("/", os.O_RDONLY)
except OSError:
    print("full", flush=True)
os.close(31)
if FULL:
    os.dup2(1, 31)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("full", (False, True))
def test_a_process_with_as_many_descriptors_as_it_may_have_says_so(waffle, launch, tmp_path, full):
    process = launch(sys.executable, "-c", ALL_OPEN.replace("FULL", str(full)))
    text = waffle.ok("why", f"--pid={process.pid}", "--duration=1s", "-o", tmp_path / "x.waffle").stdout
    line = f"({process.pid}) has all 32 descriptors open that it may have (RLIMIT_NOFILE)"
    assert (line in text) == full


OWN_DESCRIPTORS = """
import ctypes, os, threading
CLONE_FILES = 0x400
end, _ = os.pipe()
os.dup2(os.open("/dev/zero", os.O_RDONLY), 100)
def wait():
    assert not ctypes.CDLL(None).unshare(CLONE_FILES)
    os.dup2(end, 100)
    print(threading.get_native_id(), flush=True)
    os.read(100, 1)
threading.Thread(target=wait).start()
"""


def test_a_wait_from_before_the_capture_is_for_the_threads_own_descriptor(waffle, tmp_path):
    """The process has another file of that number."""
    path = tmp_path / "own.waffle"
    with subprocess.Popen([sys.executable, "-c", OWN_DESCRIPTORS], stdout=subprocess.PIPE, text=True) as process:
        tid = int(process.stdout.readline())
        time.sleep(0.3)
        waffle.ok("why", f"--pid={process.pid}", "--duration=500ms", "-o", path)
        process.kill()
    text = waffle.ok("why", "--thread", str(tid), path).stdout
    assert re.search(r"blocked in read on pipe:\[\d+\]", text), text
    assert "/dev/zero" not in text


@pytest.mark.parametrize("stripped", (False, True))
def test_a_program_in_go_that_only_timers_wake_sleeps_or_is_blocked(first_cause, launch, parked, tmp_path, stripped):
    if stripped:
        subprocess.run(["strip", "-o", tmp_path / "parked", parked], check=True)
        parked = tmp_path / "parked"
    cause, grade, culprit = first_cause(launch(parked, "sleep"))
    assert (cause, grade) == ("unknown", "unknown"), culprit
    assert re.match("no goroutine can run, until a timer of Go's runtime .*: goroutines may wait for work, or be blocked", culprit)


def test_a_file_lock_stands_before_the_idle_threads_of_go(first_cause, launch, parked, tmp_path):
    path = tmp_path / "lock"
    path.touch()
    done = threading.Event()

    def hold():
        with open(path, "w") as file:
            while not done.is_set():
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(0.05)
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(0.001)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        cause, grade, culprit = first_cause(launch(parked, "lock", path))
    finally:
        done.set()
        holder.join()
    assert (cause, grade) == ("sleep", "likely")
    assert re.match(rf"Thread-\d+ \(hold\) \(\d+\), holds the lock of {path} ", culprit)


READER = """
import os, sys
print("ready", flush=True)
pipe = os.open(sys.argv[1], os.O_RDONLY)
while os.read(pipe, 1):
    pass
"""
WRITER = """
import os, sys, threading, time
threading.stack_size(65536)
for _ in range(int(sys.argv[2])):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
pipe = os.open(sys.argv[1], os.O_WRONLY)
while True:
    time.sleep(0.05)
    os.write(pipe, b"x")
"""


def test_a_process_that_it_waited_for_is_suggested_if_it_was_not_recorded(waffle, launch, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    # Too many threads to be recorded without being named.
    reader, writer = (launch(sys.executable, "-c", code, tmp_path / "pipe", "256") for code in (READER, WRITER))
    ask = ("why", "--duration", "1s", "-o", tmp_path / "x.waffle", "--pid", reader.pid)
    said = waffle.ok(*ask).stderr
    assert f"process {writer.pid}, which it waited for, was not recorded: to see what it did, " in said
    assert f"record it as well: --pid {writer.pid}, or for all processes of this name --comm {comm(writer)}" in said
    done = waffle.ok(*ask, "--pid", writer.pid)
    assert "was not recorded" not in done.stderr and "sleep  " in done.stdout


def comm(process):
    return pathlib.Path(f"/proc/{process.pid}/comm").read_text().strip()


FILE_LOCKS = """
import fcntl, os, pathlib, sqlite3, sys, time
role, way, path = sys.argv[1:]
pathlib.Path("/proc/self/comm").write_text(role)
take = fcntl.flock if way == "flock" else fcntl.lockf
if way == "sqlite":
    base = sqlite3.connect(path, timeout=1000, isolation_level=None)
    base.execute("create table if not exists t(a)") if role == "holder" else print("ready", flush=True)
    base.execute("begin immediate")
while way != "sqlite":
    file = open(path, "w")
    if role == "holder":
        take(file, fcntl.LOCK_EX)
        break
    print("ready", flush=True)
    try:
        take(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()  # as filelock does
    time.sleep(0.02)
print("ready", flush=True)
while True:
    time.sleep(1000)
"""


@pytest.mark.parametrize("way", ("flock", "lockf", "sqlite"))
def test_a_lock_of_a_file_that_is_polled_names_the_file_and_who_has_locked_it(first_cause, launch, tmp_path, way):
    path = tmp_path / "shared"
    holder = launch(sys.executable, "-c", FILE_LOCKS, "holder", way, path)
    cause, grade, culprit = first_cause(launch(sys.executable, "-c", FILE_LOCKS, "poller", way, path), "1s")
    assert (cause, grade) == ("lock", "likely")
    assert culprit.startswith(f"holder ({holder.pid}), {path} ("), culprit


def test_the_work_of_a_traced_process_that_has_locked_the_file_is_named(launch, waffle, tmp_path):
    both = launch(sys.executable, "-c", """
import fcntl, os, sys, time
file = open(sys.argv[1], "w")
holds, held = os.pipe()
if os.fork() == 0:
    fcntl.flock(file := open(sys.argv[1], "w"), fcntl.LOCK_EX)
    os.write(held, b"x")
    time.sleep(1000)
os.read(holds, 1)
print("ready", flush=True)
while True:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(0.02)
""", tmp_path / "shared")
    [child] = pathlib.Path(f"/proc/{both.pid}/task/{both.pid}/children").read_text().split()
    try:
        capture = tmp_path / "x.waffle"
        waffle.ok("why", f"--pid={both.pid}", f"--pid={child}", "--duration=1s", "-o", capture)
        text = waffle.ok("why", f"--thread={both.pid}", capture).stdout
        name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
        assert f"/shared (ext4), which {name} ({child}) had ← locked by {name} ({child})" in text, text
    finally:
        os.kill(int(child), signal.SIGKILL)


LOCKS_AND_CLOSES = """
import fcntl, sys, time
path, hold, pause = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
print("ready", flush=True)
while True:
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(hold)
    time.sleep(pause)
"""


def test_a_locked_file_that_is_closed_at_once_has_the_name_that_another_process_knows(launch, waffle, tmp_path):
    path = tmp_path / "session"
    path.touch()
    time.sleep(1.1)  # the file has to be older than the capture
    holder = launch(sys.executable, "-c", LOCKS_AND_CLOSES, path, "0.2", "0.002")
    waiter = launch(sys.executable, "-c", LOCKS_AND_CLOSES, path, "0", "0.25")
    text = waffle.ok("why", "--pid", waiter.pid, "--pid", holder.pid, "--duration", "2s", "-o",
                     tmp_path / "x.waffle").stdout
    chains = text.split("Waits that go on")[0]
    assert re.search(rf"blocked in flock on {path} \(\w+\)", chains) and "inode" not in chains, text


def test_a_process_that_lets_others_go_first_is_said_to(launch, waffle, tmp_path):
    spin = ("taskset", "-c", "0", sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass")
    launch(*spin)
    victim = launch("nice", "-n", "19", *spin)
    text = waffle.ok("why", "--pid", victim.pid, "--duration", "1s", "-o", tmp_path / "x.waffle").stdout
    assert re.search(rf" cpu-contention .*, while \S+ \({victim.pid}\) has nice 19\n", text), text


READS_NOW_AND_THEN = """
import sys, time
print(1, flush=True)
for _ in range(40):
    time.sleep(0.2)
    open(sys.argv[1]).read()
"""


def test_a_reader_that_opens_a_named_pipe_late_is_to_blame(waffle, launch, first_cause, tmp_path):
    os.mkfifo(tmp_path / "ops")
    reader = launch(sys.executable, "-c", READS_NOW_AND_THEN, tmp_path / "ops")
    writer = launch(sys.executable, "-c", f"print(1, flush=True)\nwhile True: open({str(tmp_path / 'ops')!r}, 'w').close()")
    assert first_cause(writer, "1s")[0] == "sleep"  # it is recorded as well, as it ends these waits
    waffle.ok("attach", f"--pid={writer.pid}", "--duration=1s", "-o", tmp_path / "alone.waffle", "--no-report")
    text = waffle.ok("why", tmp_path / "alone.waffle").stdout
    assert re.search(rf"pipe +likely +.*\({reader.pid}\), somebody to open the other end of a named pipe", text), text


def test_who_opens_a_named_pipe_waits_for_its_other_end(first_cause, launch, tmp_path):
    os.mkfifo(tmp_path / "events")
    process = launch(sys.executable, "-c", f"print(1, flush=True); open({str(tmp_path / 'events')!r})")
    time.sleep(0.2)
    assert first_cause(process, "500ms") == ("pipe", "unknown", f"{tmp_path / 'events'} (fifo, nobody has opened it to write)")


SENDS = """
import os, socket, sys, threading
out, back = socket.socketpair()
def drains():
    while back.recv(1 << 20):
        pass
threading.Thread(target=drains, daemon=True).start()
file = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
while True:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    for at in range(0, os.fstat(file).st_size, 1 << 16):
        os.sendfile(out.fileno(), file, at, 1 << 16)
"""


def test_a_file_that_is_sent_is_named(waffle, launch, tmp_path):
    shard = tmp_path / "shard"
    shard.write_bytes(os.urandom(64 << 20))
    os.sync()
    process = launch(sys.executable, "-c", SENDS, shard)
    answer = json.loads(waffle.ok("why", f"--pid={process.pid}", "--duration=2s", "-o", tmp_path / "x.waffle", "--json",
                                  "--thread", process.pid).stdout)
    reads = [cause for cause in answer["instances"][0]["causes"] if cause["cause"] == "disk-read"]
    assert reads and all(str(shard) in cause["culprit"]["object"] for cause in reads)

# SPDX-License-Identifier: Apache-2.0
"""Programs that hang: `why` names who holds the lock and the cycle of a deadlock, with the stacks of
all its threads, also if nothing ever ran during the capture."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from chromium import open_page
from tracer import PROGRAMS, interpreters, wait_until
from why_json import asker

BLOCKED = "S"


def state_of(task):
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def until_blocked(program, names):
    """Waits until the threads of these names are blocked in a futex, or in one with priority inheritance."""
    folder = pathlib.Path(f"/proc/{program.pid}/task")

    def blocked():
        tasks = {(task / "comm").read_text().strip(): task for task in folder.iterdir()}
        return set(names) <= set(tasks) and all(
            state_of(tasks[name]) == BLOCKED and re.search("futex|rt_mutex", (tasks[name] / "wchan").read_text())
            for name in names
        )

    wait_until(blocked, f"{names} in a futex")


@pytest.fixture
def hang(waffle, built, start):
    """hang(mode, names): a capture of a program that hangs already, as `why` explains it."""
    ask = asker(waffle)

    def run(mode, names, *options):
        program = start(built("hangs.c", "-O2", "-pthread", "-g"), mode)
        program.until("going")
        until_blocked(program, names)
        path = waffle.path()
        waffle.ok("attach", "--pid", program.pid, "--duration", "200ms", "-o", path, "--no-report",
                  *options)
        return path, ask(path)

    return run


def waits(answer):
    return {wait["thread"]["comm"]: wait for wait in answer["open_waits"]}


def owner(wait):
    return wait["owner"] and wait["owner"]["comm"]


def functions(wait):
    return [frame.get("function") for frame in wait["user_stack"]]


@pytest.mark.parametrize("mode, count", [("two", 2), ("three", 3), ("robust", 2)])
def test_a_cycle_of_mutexes_is_a_deadlock_with_all_stacks(hang, waffle, mode, count):
    path, answer = hang(mode, [f"ring-{i}" for i in range(count)])
    found = waits(answer)
    assert answer["deadlocks"] == 1
    for i in range(count):
        wait = found[f"ring-{i}"]
        assert owner(wait) == f"ring-{(i + 1) % count}"
        assert (wait["grade"], wait["waits_for"], wait["deadlock"]) == ("certain", "lock", 0)
        assert wait["begun_before"] and wait["variable"].startswith("ring_lock")
        assert "ring_thread" in functions(wait)
    assert answer["open_waits"][0]["deadlock"] == 0  # the deadlock comes first
    text = waffle.ok("why", path).stdout
    first = text.splitlines()[0]
    assert first.startswith("deadlock: ") and first.count(" → ") == count
    names = [word for word in first.replace(":", "").split() if word.startswith("ring-")]
    begin = int(names[0][-1])
    assert names == [f"ring-{(begin + i) % count}" for i in range(count + 1)]
    assert text.count("ring_thread") >= count
    assert "deadlock: " in waffle.ok("report", path).stdout


def test_the_page_has_the_deadlock_and_the_other_waits_as_why_prints_them(hang, waffle, browser):
    path, _ = hang("two", ["ring-0", "ring-1"])
    page = path.with_suffix(".html")
    waffle.ok("report", "--html", page, path)
    open_page(browser, page)

    def shown(key):
        return browser.evaluate(f"document.querySelector('[data-hangs={key}]').textContent")

    text = waffle.ok("why", path).stdout
    assert "\n".join(shown("deadlocks").splitlines()) in text and "deadlock: " in shown("deadlocks")
    assert shown("open_waits") in text and "waits for the end of ring-1" in shown("open_waits")
    assert browser.evaluate("!document.getElementById('hangs').hidden")


def test_a_thread_that_waits_for_its_own_mutex_is_a_deadlock(hang, waffle):
    path, answer = hang("self", ["ring-0"])
    assert answer["deadlocks"] == 1
    assert owner(waits(answer)["ring-0"]) == "ring-0"
    assert "it waits for what it holds itself" in waffle.ok("why", path).stdout


def test_the_writer_of_a_read_write_lock_is_its_owner(hang):
    _, answer = hang("rwlock", ["writer", "reader"])
    found = waits(answer)
    assert answer["deadlocks"] == 1
    assert owner(found["reader"]) == "writer" and owner(found["writer"]) == "reader"
    assert found["reader"]["grade"] == "certain"


def test_a_lock_held_by_a_sleeper_is_the_sleep(hang):
    path, answer = hang("asleep", ["waiter"])
    found = waits(answer)
    assert answer["deadlocks"] == 0
    assert owner(found["waiter"]) == "sleeper" and found["waiter"]["deadlock"] is None


def has_containers():
    """Whether some process sees another number of itself than we do."""
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if re.search(r"^NSpid:\t\d+\t", status.read_text(), re.M):
                return True
    return False


@pytest.mark.parametrize("mode", ["ended", "orphan", "reaped"])
def test_a_mutex_whose_owner_has_ended_is_never_released(hang, waffle, mode):
    if mode == "reaped" and has_containers():
        pytest.skip("a process of a container may be the owner")
    path, answer = hang(mode, ["waiter"])
    wait = waits(answer)["waiter"]
    assert answer["ended_owners"] == 1 and "deadlocks" in answer and not answer["deadlocks"]
    assert (wait["waits_for"], wait["grade"], wait["owner"], wait["stuck"]) == ("lock", "likely", None, True)
    pid = wait["thread"]["pid"]
    assert wait["ended_owner"] != pid and not os.path.exists(f"/proc/{pid}/task/{wait['ended_owner']}")
    text = waffle.ok("why", path).stdout
    waits_for, had = ("waits", "had") if mode == "ended" else ("may wait", "may have had")
    assert f"{waits_for} for a lock that nobody can release: thread {wait['ended_owner']} {had} it when it ended" in text
    assert "may be a deadlock" not in text


def test_the_chain_of_an_open_wait_goes_on_at_the_owner(hang, waffle):
    path, _ = hang("asleep", ["waiter"])
    [instance] = asker(waffle)(path, "--thread", "waiter")["instances"]
    cause = instance["causes"][0]
    assert (cause["cause"], cause["grade"]) == ("sleep", "likely")  # it has not ended
    assert cause["culprit"]["comm"] == "sleeper"
    assert cause["chain"][0]["open"] and cause["chain"][0]["by"]["comm"] == "sleeper"


def test_a_condition_variable_has_no_owner(hang):
    _, answer = hang("condition", ["condition"])
    assert answer["deadlocks"] == 0
    assert owner(waits(answer)["condition"]) is None


def test_a_thread_that_joins_one_at_a_condition_variable_is_part_of_a_standstill(hang):
    _, answer = hang("condition", ["condition", "hangs"])
    assert [wait["waits_for"] for wait in answer["open_waits"]].count("thread") == 1
    assert answer["standstills"] == 1


def test_a_join_waits_for_the_end_of_its_thread(hang):
    _, answer = hang("two", ["ring-0", "ring-1"])
    [wait] = [wait for wait in answer["open_waits"] if wait["waits_for"] == "thread"]
    assert owner(wait) == "ring-1" and wait["deadlock"] is None


def test_a_deadlock_during_the_capture_has_its_time(waffle, built, start):
    program = start(built("hangs.c", "-O2", "-pthread", "-g"), "two", env={**os.environ, "LATE": "1"})
    program.until("ready")
    path = waffle.path()
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", path=path)
    attached.wait_armed(program.pid)
    program.process.send_signal(signal.SIGUSR1)
    program.until("going")
    until_blocked(program, ["ring-0", "ring-1"])
    attached.stop()
    answer = asker(waffle)(path)
    found = waits(answer)
    assert answer["deadlocks"] == 1
    for name in "ring-0", "ring-1":
        assert not found[name]["begun_before"] and found[name]["duration_ns"] > 0
        assert found[name]["user_stack"]


def test_a_thread_that_the_c_library_stopped_is_told(hang, waffle):
    path, answer = hang("inherit", ["ring-0", "ring-1"], "--stacks", "sched")
    assert answer["deadlocks"] == 0 and answer["stopped"] == 1
    found = waits(answer)
    stopped, waiting = sorted((found["ring-0"], found["ring-1"]), key=lambda wait: bool(wait["owner"]))
    assert stopped["waits_for"] == "nothing" and not stopped["owner"] and "ring_thread" in functions(stopped)
    assert owner(waiting) == stopped["thread"]["comm"] and waiting["stuck"]
    first = waffle.ok("why", path).stdout.splitlines()[0]
    assert re.match(rf"{owner(waiting)} \((thread )?\d+\) is stopped for ever by the C library", first)


def test_a_thread_that_hangs_is_explained_though_another_one_beats(waffle, built, start):
    program = start(built("hangs.c", "-O2", "-pthread", "-g"), "two", env={**os.environ, "BEATS": "1"})
    program.until("going")
    until_blocked(program, ["ring-0", "ring-1"])
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report")
    answer = asker(waffle)(path)
    assert answer["deadlocks"] == 1 and "standstills" not in answer
    assert answer["instances"][0]["thread"]["comm"] == "hangs"  # the main thread, which joins one of them
    assert {wait["thread"]["comm"] for wait in answer["open_waits"] if wait["stuck"]} == {
        "hangs", "ring-0", "ring-1"}


def until_all_blocked(program):
    tasks = list(pathlib.Path(f"/proc/{program.pid}/task").iterdir())
    wait_until(lambda: all("futex" in (task / "wchan").read_text() for task in tasks), "futex")


def interpreter_name(program):
    return pathlib.Path(f"/proc/{program.pid}/comm").read_text().strip()


def test_locks_of_python_have_no_recorded_owner(waffle, start):
    program = start(sys.executable, PROGRAMS / "hangs.py")
    program.until("ready")
    until_all_blocked(program)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "200ms", "-o", path, "--no-report")
    answer = asker(waffle)(path)
    assert answer["deadlocks"] == 0 and len(answer["open_waits"]) >= 3
    assert answer["standstills"] == 1
    said = f"may be a deadlock: all 3 threads of {interpreter_name(program)} ({program.pid}) wait for another thread of it"
    assert waffle.ok("why", path).stdout.startswith(said)
    assert not any(wait["owner"] for wait in answer["open_waits"])
    for wait in answer["open_waits"]:  # unwound through functions of the C library
        assert "PyThread_acquire_lock_timed" in functions(wait)


SHARED = """
import ctypes, mmap, sys, threading
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 4096, mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if sys.argv[1] == "shared" else mmap.MAP_PRIVATE))
word = ctypes.addressof(ctypes.c_uint32.from_buffer(memory))
def waits():  # as std::future::get() of libstdc++: FUTEX_WAIT, not private
    libc.syscall(202, ctypes.c_void_p(word), 0, 0, None)
threading.Thread(target=waits, daemon=True).start()
print("ready", flush=True)
waits()
"""


@pytest.mark.parametrize("memory", ("own", "shared"))
def test_only_memory_that_is_shared_may_have_a_futex_for_others(waffle, start, memory):
    program = start(sys.executable, "-c", SHARED, memory)
    program.until("ready")
    until_all_blocked(program)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report")
    answer = asker(waffle)(path)
    assert len(answer["open_waits"]) == 2
    assert answer.get("standstills", 0) == (memory == "own")


def names_its_locks(python):
    """Whether an interpreter has its symbol table. Debian's has not, and no function says that it waits for a lock."""
    sections = subprocess.run(["readelf", "-SW", pathlib.Path(python).resolve()], capture_output=True, text=True).stdout
    return ".symtab" in sections


ALONE = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
mutex, lock = ctypes.create_string_buffer(64), threading.Lock()
def holds():
    libc.pthread_mutex_lock(mutex)
    while True:
        time.sleep(0.01)
def again():
    if sys.argv[1] == "fork":
        libc.pthread_mutex_lock(mutex)
    with lock, lock:
        pass
if sys.argv[1] == "fork":
    threading.Thread(target=holds, daemon=True).start()
    time.sleep(0.1)
    child = os.fork()
    if child:
        print("ready", child, flush=True)
        os.wait()
else:
    print("ready", os.getpid(), flush=True)
again()
"""


@pytest.mark.parametrize("way", ("fork", "itself"))
def test_the_only_thread_of_a_process_waits_for_a_lock_that_nobody_can_release(waffle, start, way):
    program = start(sys.executable, "-c", ALONE, way)
    pid = int(program.until("ready"))
    wait_until(lambda: "futex" in pathlib.Path(f"/proc/{pid}/wchan").read_text(), "futex")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--tree", "--duration", "300ms", "-o", path, "--no-report", "--stacks",
              "sched")
    answer = asker(waffle)(path)
    assert answer["standstills"] == 1
    assert [wait["thread"]["tid"] for wait in answer["open_waits"] if wait["stuck"]] == [pid]
    assert answer["instances"][0]["thread"]["tid"] == pid
    cause = answer["instances"][0]["causes"][0]
    assert cause["cause"] == "lock" and cause["grade"] == "likely"
    text = waffle.ok("why", path).stdout
    said = f"may be a deadlock: the only thread of {interpreter_name(program)} ({pid}) waits for a lock that no other"
    assert text.startswith(said)
    assert "called within again (<string>:" in text


@pytest.mark.parametrize("python", interpreters())
def test_a_deadlock_of_python_shows_though_other_threads_go_on(waffle, start, python):
    program = start(python, PROGRAMS / "hangs.py", "beats")
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    answer = asker(waffle)(path)
    if not names_its_locks(python):
        assert answer["deadlocks"] == 0 and "standstills" not in answer
        return
    assert answer["deadlocks"] == 0 and answer["standstills"] == 1
    stuck = [wait for wait in answer["open_waits"] if wait["stuck"]]
    assert answer["open_waits"][:len(stuck)] == stuck and len(stuck) in (2, 3)  # the join is known by name
    assert [python_functions(wait)[0] for wait in stuck].count("take") == 2
    name = re.escape(interpreter_name(program))
    assert re.match(rf"may be a deadlock: [23] of 5 threads of {name} \({program.pid}\) have waited",
                    waffle.ok("why", path).stdout)
    assert answer["instances"][0]["thread"]["tid"] in [wait["thread"]["tid"] for wait in stuck]


BEATS = """
import threading, time
def beat():
    while True:
        time.sleep(0.01)
threading.Thread(target=beat, daemon=True).start()
"""
POOL = BEATS + """
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(2)
def part():
    pass
def job():
    pool.submit(part).result()
jobs = [pool.submit(job) for _ in range(8)]
time.sleep(0.2)
print("ready", flush=True)
jobs[0].result()
"""


@pytest.mark.parametrize("python", interpreters())
def test_jobs_that_wait_for_the_queue_of_their_own_full_pool_may_be_in_a_deadlock(waffle, start, tmp_path, python):
    (tmp_path / "pool.py").write_text(POOL)
    program = start(python, tmp_path / "pool.py")
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    said = r"may be a deadlock: all 2 threads of a ThreadPoolExecutor, such as .*, have jobs that wait for others"
    text = waffle.ok("why", path).stdout
    assert re.match(said + r" in job \(pool.py:\d+\); if those are queued", text), text
    answer = asker(waffle)(path)
    stuck = [wait["thread"]["tid"] for wait in answer["open_waits"] if wait["stuck"]]
    assert len(stuck) == 2 and answer["instances"][0]["thread"]["tid"] in stuck


POOL_OF_PROCESSES = """
import multiprocessing, multiprocessing.pool, time
if __name__ == "__main__":
    processes = multiprocessing.get_context("fork").Pool(2)
    threads = multiprocessing.pool.ThreadPool(2)
    def job(_):
        processes.apply(time.sleep, (10,))
    jobs = threads.map_async(job, range(2))
    time.sleep(0.2)
    print("ready", flush=True)
    jobs.get()
"""


@pytest.mark.parametrize("python", interpreters())
def test_jobs_that_wait_for_a_pool_of_processes_are_no_deadlock(waffle, start, tmp_path, python):
    """A thread reads what the processes answer."""
    (tmp_path / "pool.py").write_text(POOL_OF_PROCESSES)
    program = start(python, tmp_path / "pool.py")
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    answer = asker(waffle)(path)
    assert "standstills" not in answer and not any(wait["stuck"] for wait in answer["open_waits"])


SERVER = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("ready", listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.sendall(b"x")
while True:
    connection.recv(100)
"""
CLIENT = """
import socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
server.recv(1)
print("ready", flush=True)
server.settimeout(0.15)
def asks():
    while True:
        server.sendall(b"x")
        try:
            server.recv(1)
        except TimeoutError:
            pass
asks()
"""
TRACER = """
import ctypes, os, sys, time
pid = int(sys.argv[1])
assert ctypes.CDLL(None).ptrace(16, pid, None, None) == 0  # PTRACE_ATTACH
os.waitpid(pid, 0)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("way", ("signal", "tracer"))
def test_a_server_that_is_stopped_is_why_its_client_gets_no_answer(waffle, start, way):
    server = start(sys.executable, "-c", SERVER)
    client = start(sys.executable, "-c", CLIENT, server.until("ready"))
    client.until("ready")
    if way == "signal":
        os.kill(server.pid, signal.SIGSTOP)
    else:
        tracer = start(sys.executable, "-c", TRACER, server.pid)
        tracer.until("ready")
    wait_until(lambda: state_of(pathlib.Path(f"/proc/{server.pid}")) in "Tt", "stopped")
    path = waffle.path()
    waffle.ok("attach", "--pid", client.pid, "--pid", server.pid, "--duration", "900ms", "-o", path, "--no-report",
              "--stacks", "sched")
    answer = asker(waffle)(path)
    text = waffle.ok("why", path).stdout
    if way == "tracer":
        tracer.process.kill()
        tracer.process.wait()
    os.kill(server.pid, signal.SIGCONT)
    [wait] = [wait for wait in answer["open_waits"] if wait["thread"]["tid"] == server.pid]
    [instance] = answer["instances"]
    cause, name = instance["causes"][0], interpreter_name(server)
    assert instance["thread"]["tid"] == client.pid
    assert (cause["cause"], cause["grade"]) == ("stopped", "likely")
    assert cause["duration_ns"] > instance["duration_ns"] / 2
    if way == "signal":
        assert "tracer" not in wait and cause["culprit"]["tid"] is None
        assert f"{name} ({server.pid}), which has been stopped since before the capture began" in text
    else:
        assert wait["tracer"]["tid"] == cause["culprit"]["tid"] == tracer.pid
        assert f"({tracer.pid}), which has stopped {name} ({server.pid})" in text
        assert f"{name} ({server.pid}) is stopped by " in text


PROXY = """
import selectors, socket, sys
backend = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
backend.recv(1)
client = None
for port in range(20000, 30000):  # below those of clients
    try:
        listener = socket.create_server(("127.0.0.1", port))
        break
    except OSError:
        pass
loop = selectors.EpollSelector()
for each in backend, listener:
    loop.register(each, selectors.EVENT_READ)
print("ready", listener.getsockname()[1], flush=True)
while True:
    for key, _ in loop.select(0.1):
        if key.fileobj is listener:
            client, _ = listener.accept()
            loop.register(client, selectors.EVENT_READ)
            client.sendall(b"x")
        elif key.fileobj is client:
            backend.sendall(client.recv(100))
        else:
            client.sendall(backend.recv(100))
"""


def test_a_loop_that_waits_for_a_stopped_process_names_it(waffle, start):
    server = start(sys.executable, "-c", SERVER)
    proxy = start(sys.executable, "-c", PROXY, server.until("ready"))
    client = start(sys.executable, "-c", CLIENT, proxy.until("ready"))
    client.until("ready")
    os.kill(server.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pathlib.Path(f"/proc/{server.pid}")) == "T", "stopped")
    path = waffle.path()
    pids = [word for program in (client, proxy, server) for word in ("--pid", program.pid)]
    waffle.ok("attach", *pids, "--duration", "900ms", "-o", path, "--no-report", "--stacks", "sched")
    text = waffle.ok("why", "--thread", client.pid, path).stdout
    [instance] = asker(waffle)(path, "--thread", client.pid)["instances"]
    cause = instance["causes"][0]
    assert (cause["cause"], cause["grade"]) == ("stopped", "likely")
    assert cause["duration_ns"] > instance["duration_ns"] / 4  # some kernels do not report each timeout
    assert f"{interpreter_name(server)} ({server.pid}), which has been stopped since before the capture began" in text
    [proxied] = asker(waffle)(path, "--thread", proxy.pid)["instances"]  # in no span, so it only waits for events
    assert "stopped" not in [cause["cause"] for cause in proxied["causes"]]


ASLEEP = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print("ready", listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
time.sleep(1000)
"""
POLLS_WITH_EVENTFD = """
import os, select, socket, sys
poll = select.poll()
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
poll.register(server, select.POLLIN)
poll.register(os.eventfd(0), select.POLLIN)
print("ready", flush=True)
poll.poll()
"""


def test_a_poll_of_a_connection_and_an_eventfd_goes_on_with_the_server(waffle, start):
    """As the runtime of Ruby polls, since before the capture."""
    server = start(sys.executable, "-c", ASLEEP)
    client = start(sys.executable, "-c", POLLS_WITH_EVENTFD, server.until("ready"))
    client.until("ready")
    for program in (client, server):
        wait_until(lambda task=pathlib.Path(f"/proc/{program.pid}"): state_of(task) == BLOCKED, "blocked")
    path = waffle.path()
    waffle.ok("attach", "--pid", client.pid, "--pid", server.pid, "--duration", "300ms", "-o", path, "--no-report",
              "--stacks", "sched")
    [instance] = asker(waffle)(path, "--thread", client.pid)["instances"]
    cause = instance["causes"][0]
    assert (cause["cause"], cause["grade"], cause["culprit"]["tid"]) == ("sleep", "likely", server.pid)


LEFT = """
import os, select, sys, threading, time
print("ready", flush=True)
if sys.argv[1] == "condition":
    ready = threading.Condition()
    with ready:
        ready.wait()
read, write = os.pipe()
errors, to_errors = os.pipe()
if not os.fork():
    print("child", os.getpid(), flush=True)
    os.close(read)
    os.close(errors)
    time.sleep(1000)
os.close(write)
os.close(to_errors)
poll = select.poll()
poll.register(read, select.POLLIN)
if sys.argv[1] == "two":
    poll.register(errors, select.POLLIN)
if sys.argv[1] == "several":
    poll.register(0, 0)
poll.poll()
"""


def first_cause_of_left(waffle, start, way):
    program = start(sys.executable, "-c", LEFT, way)
    program.until("ready")
    child = int(program.until("child")) if way != "condition" else None
    time.sleep(0.3)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    if child:
        os.kill(child, signal.SIGKILL)
    text = waffle.ok("why", "--thread", program.pid, path).stdout
    return next(line for line in text.splitlines() if line.startswith("   1. ")), child


def test_the_only_descriptor_of_a_poll_from_before_the_capture_is_named(waffle, start):
    """As subprocess.communicate() polls a pipe that a daemon has inherited."""
    line, child = first_cause_of_left(waffle, start, "one")
    assert re.search(rf"pipe:\[\d+\] \(write end of process {child}, ", line), line


def test_a_poll_of_two_pipes_names_the_process_at_the_other_ends(waffle, start):
    """As subprocess.run(capture_output=True) polls the pipes that a daemon has inherited."""
    line, child = first_cause_of_left(waffle, start, "two")
    assert line.split()[5:7] == ["pipe", "unknown"], line
    assert re.search(rf"2 descriptors: pipe:\[\d+\], pipe:\[\d+\] \(other ends of process {child}, ", line), line


def test_of_several_descriptors_of_a_poll_none_is_guessed(waffle, start):
    line, child = first_cause_of_left(waffle, start, "several")
    assert line.split()[5:7] == ["unknown", "unknown"], line
    assert re.search(rf"2 descriptors: .*\(pipe:\[\d+\]: write end of process {child}, ", line), line


def test_a_wait_that_no_other_thread_is_left_to_end_says_so(waffle, start):
    line, _ = first_cause_of_left(waffle, start, "condition")
    assert "unknown" in line and ": no other thread of the process is left to end it" in line, line


IDLE = """
import queue, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(3)
list(pool.map(time.sleep, [0.01] * 6))
work, ready = queue.Queue(), threading.Condition()
workers = [threading.Thread(target=work.get, daemon=True) for _ in range(2)]
def waits():
    with ready:
        ready.wait()
for thread in workers + [threading.Thread(target=each, daemon=True) for each in (waits, workers[0].join)]:
    thread.start()
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("python", interpreters())
def test_idle_pools_of_python_are_no_deadlock(waffle, start, python):
    program = start(python, "-c", IDLE)
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    answer = asker(waffle)(path)
    assert len(answer["open_waits"]) >= 7 and "standstills" not in answer
    assert not any(wait["stuck"] for wait in answer["open_waits"])
    assert answer["instances"][0]["thread"]["tid"] == program.pid


@pytest.mark.parametrize("wakes", (True, False))
def test_threads_that_wait_with_a_timeout_or_for_others_are_no_standstill(waffle, start, wakes):
    """One of them waits for its timeout, or for what comes from outside."""
    waits = "threading.Event().wait(60)" if wakes else "sys.stdin.readline()"
    code = f"import sys, threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); " \
           f"print('ready', flush=True); {waits}"
    program = start(sys.executable, "-c", code)
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report")
    answer = asker(waffle)(path)
    assert len(answer["open_waits"]) == 2 and "standstills" not in answer
    assert "may be a deadlock" not in waffle.ok("why", path).stdout


OWN_DESCRIPTORS = """
import ctypes, os, subprocess, threading
def reads():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES
    mine, other = os.pipe()
    subprocess.Popen(("sleep", "1000"), pass_fds=(other,))
    os.close(other)
    print("ready", flush=True)
    os.read(mine, 1)
threading.Thread(target=reads).start()
"""


def test_a_pipe_of_a_thread_with_descriptors_of_its_own_is_named(waffle, start):
    program = start(sys.executable, "-c", OWN_DESCRIPTORS, process_group=0)
    try:
        program.until("ready")
        path = waffle.path()
        waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report")
        text = waffle.ok("why", path).stdout
    finally:
        os.killpg(program.pid, signal.SIGKILL)
    assert re.search(r"blocked in read on pipe:\[\d+\] \(write end of process \d+, sleep\)", text), text


OPENS_A_FIFO = """
import ctypes, os, struct, sys, threading
os.chdir(sys.argv[1])
name = "agent.fifo" if sys.argv[2] == "relative" else os.path.abspath("agent.fifo")
threading.Timer(0.1, print, ("ready",), {"flush": True}).start()
if sys.argv[3] == "openat2":
    how = struct.pack("QQQ", os.O_WRONLY, 0, 0)
    ctypes.CDLL(None).syscall(437, -100, name.encode(), how, len(how))
elif sys.argv[3] == "open":
    ctypes.CDLL(None).syscall(2, name.encode(), os.O_WRONLY)
else:
    open(name, "w")
"""

CALLS = ("openat", "openat2") + (("open",) if os.uname().machine == "x86_64" else ())


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", ("relative", "absolute"))
def test_a_named_pipe_that_nobody_reads_is_named_where_it_is_opened(waffle, start, tmp_path, way, call):
    os.mkfifo(tmp_path / "agent.fifo")
    program = start(sys.executable, "-c", OPENS_A_FIFO, tmp_path, way, call)
    program.until("ready")
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report")
    text = waffle.ok("why", path).stdout
    assert f"blocked in {call} on {tmp_path}/agent.fifo (fifo, nobody has opened it to read)" in text, text


FULL_QUEUE = """
import queue, sys, threading, time
lines = queue.Queue(5)
def collect():
    for number in range(100):
        lines.put(number)
        time.sleep(0.02)
threading.Thread(target=collect, name="collect", daemon=True).start()
pipe = open(sys.argv[1], "w")
"""


def test_a_thread_whose_queue_nobody_empties_waits_for_the_only_other_one(waffle, start, tmp_path):
    """The other one has opened a named pipe that nobody reads, before the queue was full."""
    os.mkfifo(tmp_path / "metrics")
    program = start(sys.executable, "-c", FULL_QUEUE, tmp_path / "metrics")
    wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) == 2, "two threads")
    time.sleep(0.5)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "500ms", "-o", path, "--no-report", "--stacks", "sched")
    [collect] = [tid for tid in os.listdir(f"/proc/{program.pid}/task") if int(tid) != program.pid]
    text = waffle.ok("why", "--thread", collect, path).stdout
    first = next(line for line in text.splitlines() if line.startswith("   1. "))
    assert first.split()[5] == "pipe" and "metrics (fifo, nobody has opened it to read)" in first, text
    assert f"({program.pid}), which spent" in text, text


LOCKS_FILES = """
import fcntl, sys, time
files = [open(path, "w") for path in sys.argv[2:]]
lock = getattr(fcntl, sys.argv[1])
lock(files[0], fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.readline()
for file in files[1:]:
    lock(file, fcntl.LOCK_EX)
time.sleep(1000)
"""


def test_processes_that_wait_for_each_others_file_locks_are_in_a_deadlock(waffle, start, tmp_path):
    files = [tmp_path / "prices", tmp_path / "stock"]
    both = [start(sys.executable, "-c", LOCKS_FILES, "flock", *files[::step]) for step in (1, -1)]
    for program in both:
        program.until("ready")
    for program in both:
        program.say("go on")
    time.sleep(0.3)
    first, second = sorted(both, key=lambda program: program.pid)
    path = waffle.path()
    waffle.ok("attach", "--pid", first.pid, "--pid", second.pid, "--duration", "300ms", "-o", path, "--no-report")
    text = waffle.ok("why", path).stdout
    assert re.match(rf"deadlock: \S+ \({first.pid}\) → \S+ \({second.pid}\) → \S+ \({first.pid}\): ", text), text
    wanted = files[1] if first is both[0] else files[0]
    assert re.search(rf"\({first.pid}\) blocked in flock on {wanted} \(\w+, locked by process {second.pid}, ", text), text


@pytest.mark.parametrize("call", ("flock", "lockf"))
def test_a_wait_for_a_file_lock_from_before_the_capture_goes_on_with_its_holder(waffle, start, tmp_path, call):
    own, other = tmp_path / "own", tmp_path / "other"
    holder, waiter = (start(sys.executable, "-c", LOCKS_FILES, call, *files) for files in ((own,), (other, own)))
    for program in (holder, waiter):
        program.until("ready")
        program.say("go on")
    time.sleep(0.3)
    path = waffle.path()
    waffle.ok("attach", "--pid", waiter.pid, "--pid", holder.pid, "--duration", "300ms", "-o", path, "--no-report")
    text = waffle.ok("why", "--thread", waiter.pid, path).stdout
    first = next(line for line in text.splitlines() if line.startswith("   1. "))
    assert first.split()[5:7] == ["sleep", "likely"] and f"({holder.pid})" in first, text
    assert re.search(rf"{own} \(\w+, locked by process {holder.pid}, .* ← not ended by \S+ \({holder.pid}\), which", text), text


TWO_READERS = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_SH)
print("ready", flush=True)
sys.stdin.readline()
fcntl.lockf(file, fcntl.LOCK_EX)
"""


def test_a_process_that_waits_to_write_a_file_does_not_wait_for_its_own_lock_to_read_it(waffle, start, tmp_path):
    file = tmp_path / "prices"
    file.touch()
    holder, waiter = (start(sys.executable, "-c", TWO_READERS, file) for _ in range(2))
    for program in (holder, waiter):
        program.until("ready")
    waiter.say("go on")
    time.sleep(0.3)
    path = waffle.path()
    waffle.ok("attach", "--pid", waiter.pid, "--duration", "300ms", "-o", path, "--no-report")
    text = waffle.ok("why", path).stdout
    assert re.search(rf"blocked in fcntl on {file} \(\w+, locked by process {holder.pid}, ", text), text
    assert "deadlock" not in text


MANY_SOCKETS = """
import os, socket, subprocess, threading, time
pairs = [socket.socketpair() for _ in range(260)]
for near, _ in pairs:
    threading.Thread(target=near.recv, args=(1,)).start()
ours, theirs = os.pipe()
child = subprocess.Popen(("sleep", "1000"), pass_fds=(theirs,))
os.close(theirs)
thread = threading.Thread(target=os.read, args=(ours, 1))
thread.start()
print("ready", child.pid, thread.native_id, flush=True)
"""


def test_many_sockets_leave_room_for_the_holders_of_pipes(waffle, start):
    program = start(sys.executable, "-c", MANY_SOCKETS)
    child, tid = (int(number) for number in program.until("ready").split())
    time.sleep(0.5)
    path = waffle.path()
    try:
        output = waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report").stderr
    finally:
        os.kill(child, signal.SIGKILL)
    assert "are known: there are too many" in output
    text = waffle.ok("why", "--thread", tid, path).stdout
    assert re.search(rf"pipe:\[\d+\] \(write end of process {child}, sleep\)", text), text


FULL_PIPES = """
import os, select, subprocess, sys
child = subprocess.Popen(("cat",), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
os.set_blocking(child.stdin.fileno(), False)
poll = select.poll()
poll.register(child.stdin, select.POLLOUT)
poll.register(os.eventfd(0), select.POLLIN)
print("child", child.pid, flush=True)
while poll.poll():
    os.write(child.stdin.fileno(), bytes(4096))
"""


def text_of_deadlock_with_cat(waffle, start, script):
    """What `why` says of a script that prints the number of its child `cat`, with which it may be in a deadlock."""
    program = start(sys.executable, "-c", script)
    child = int(program.until("child"))
    time.sleep(0.5)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--tree", "--duration", "300ms", "-o", path, "--no-report")
    text = waffle.ok("why", path).stdout
    assert text.startswith("may be a deadlock: ") and f" → cat ({child}) → " in text.splitlines()[0], text
    return text


def test_a_process_and_its_child_with_full_pipes_may_be_in_a_deadlock(waffle, start):
    """As Ruby's IO.popen("r+") polls the pipe, and an eventfd that only itself could write to."""
    text = text_of_deadlock_with_cat(waffle, start, FULL_PIPES)
    first = next(line for line in text.splitlines() if line.startswith("   1. "))
    assert first.split()[5:7] == ["pipe", "likely"], text


WAITS_BEFORE_IT_READS = """
import subprocess
child = subprocess.Popen(("cat", "/dev/zero"), stdout=subprocess.PIPE)
print("child", child.pid, flush=True)
child.wait()
"""


@pytest.mark.parametrize("beside", ("", BEATS), ids=("alone", "beside another thread"))
def test_a_process_that_waits_for_its_child_and_never_reads_may_be_in_a_deadlock(waffle, start, beside):
    """The manual of Popen.wait() warns of this one."""
    text = text_of_deadlock_with_cat(waffle, start, beside + WAITS_BEFORE_IT_READS)
    assert ("another thread of these processes" in text.splitlines()[0]) == bool(beside)


HOLDER_DIED = """
import multiprocessing, os, signal, time
def work(lock, number):
    time.sleep(0.1 * (number + 1))
    with lock:
        if not number:
            os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    lock = multiprocessing.Lock()
    workers = [multiprocessing.Process(target=work, args=(lock, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    print("ready", *(worker.pid for worker in workers), flush=True)
    for worker in workers[1:]:
        worker.join()
"""


# Debian's interpreter has no names of functions in _multiprocessing.
@pytest.mark.parametrize("python", interpreters() + [pytest.param("/usr/bin/python3", id="Debian")])
def test_processes_whose_lock_died_with_its_holder_wait_for_each_other(waffle, start, python):
    program = start(python, "-c", HOLDER_DIED)
    dead = int(program.until("ready").split()[0])
    time.sleep(0.6)
    text = waffle.ok("why", "--pid", program.pid, "--duration", "500ms", "-o", waffle.path()).stdout
    assert f"({dead}), child of " in text and "was ended by SIGKILL" in text, text
    assert re.search(rf"may be a deadlock: all 3 threads of \S+ \({program.pid}\) and its descendants wait", text), text
    assert re.search(rf"a lock of Python's multiprocessing: may be held by \S+ \({dead}\), which SIGKILL", text), text
    assert re.search(rf"\({program.pid}\) blocked in wait4 for its child \S+ \(\d+\), since before", text), text


CHILDREN = """
import os, subprocess, sys
children = [subprocess.Popen(("sleep", "1000")) for _ in range(int(sys.argv[1]))]
print("ready", flush=True)
children[0].wait() if sys.argv[2] == "one" else os.wait()
"""


@pytest.mark.parametrize("count, awaited", ((1, "any"), (2, "one"), (2, "any")))
def test_the_only_child_that_may_end_a_wait_from_before_the_capture_explains_it(waffle, start, count, awaited):
    program = start(sys.executable, "-c", CHILDREN, count, awaited, process_group=0)
    try:
        program.until("ready")
        path = waffle.path()
        waffle.ok("attach", "--pid", program.pid, "--tree", "--duration", "300ms", "-o", path, "--no-report")
        answer = asker(waffle)(path, "--thread", program.pid)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
    part = answer["instances"][0]["causes"][0]
    if count == 1 or awaited == "one":
        assert (part["cause"], part["grade"], part["culprit"]["comm"]) == ("sleep", "likely", "sleep")
    else:
        assert (part["cause"], part["grade"]) == ("process-exit", "unknown")


def python_functions(wait):
    """Those in files of Python, without their classes, which are not known before 3.11."""
    return [frame["function"].rpartition(".")[2] for frame in wait["user_stack"]
            if (frame.get("file") or "").endswith(".py")]


def test_the_text_of_a_deep_wait_has_the_function_of_the_program_itself(waffle, start, tmp_path):
    packages = tmp_path / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "deep.py").write_text("""import os
def dive(left):
    return dive(left - 1) if left else os.read(0, 1)
""")
    (tmp_path / "app.py").write_text(f"""import sys
sys.path.insert(0, {str(packages)!r})
import deep
def album():
    print("ready", flush=True)
    deep.dive(20)
album()
""")
    program = start(sys.executable, tmp_path / "app.py")
    program.until("ready")
    time.sleep(0.2)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "300ms", "-o", path, "--no-report", "--stacks", "sched")
    assert re.search("← … ← album \\(app.py:6\\)", waffle.ok("why", path).stdout)


@pytest.mark.parametrize("python", interpreters())
def test_threads_that_hung_in_python_before_the_capture_have_its_functions(waffle, start, python):
    program = start(python, PROGRAMS / "hangs.py")
    program.until("ready")
    until_all_blocked(program)
    path = waffle.path()
    waffle.ok("attach", "--pid", program.pid, "--duration", "200ms", "-o", path, "--no-report", "--stacks", "sched")
    waits = {tuple(python_functions(wait)): wait for wait in asker(waffle)(path)["open_waits"]}
    assert set(waits) == {("take", "run", "_bootstrap_inner", "_bootstrap"), ("wait", "wait", "<module>")}
    for wait in waits.values():  # and where they wait, without the interpreter's frames between
        names = functions(wait)
        assert wait["begun_before"] and not wait["owner"]
        assert "_PyEval_EvalFrameDefault" not in names
        assert not (wait["user_stack"][0].get("file") or "").endswith(".py")


def test_the_text_of_a_wait_has_the_functions_of_python(waffle, start):
    program = start(sys.executable, PROGRAMS / "hangs.py", "later")
    program.until("ready")
    path = waffle.path()
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched", path=path)
    attached.wait_armed(program.pid)
    program.ask("go", "going")
    until_all_blocked(program)
    attached.stop()
    assert waffle.ok("why", path).stdout.count("← take (hangs.py:") == 2

# SPDX-License-Identifier: Apache-2.0
"""Threads have the names that Python's module threading gave them, against what threading itself says."""

import json
import pathlib
import re
import sqlite3
import sys
import time

import pytest
import tracer
from tracer import children_of

PROGRAM = tracer.PROGRAMS / "thread_names.py"
SHORT = tracer.PROGRAMS / "short_threads.py"


def names_of(capture, pid):
    """The last name of each thread of a process that was found."""
    return {r["tid"]: r["name"] for r in capture.records("thread_name") if r["tgid"] == pid}


def expected_names(told):
    """As the program told them, cut to 63 bytes. A thread without a name has none."""
    names = {int(tid): name.encode()[:63].decode(errors="ignore") for tid, name in told["names"].items()}
    return {tid: name for tid, name in names.items() if name}


def kernel_name(pid, tid):
    return pathlib.Path(f"/proc/{pid}/task/{tid}/comm").read_text(encoding="utf-8").rstrip("\n")


def tids_of(pid):
    return {int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()}


@pytest.mark.parametrize("python", tracer.interpreters())
@pytest.mark.parametrize("options", [(), ("--stacks", "sched")], ids=["plain", "stacks"])
def test_threads_have_the_names_that_python_gave_them(waffle, start, python, options):
    program = start(python, PROGRAM)
    told = json.loads(program.until("ready"))
    tids = tids_of(program.pid)
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--duration", "1s", *options)
    capture = attached.wait()
    assert names_of(capture, program.pid) == expected_names(told)
    # The others keep the name that the kernel knows.
    rows = capture.rows("thread_state") or capture.rows("wait")
    shown = {row["tid"]: row["comm"] for row in rows if row["pid"] == program.pid}
    others = tids - set(expected_names(told))
    assert program.pid in others and len(others) == 3 and set(shown) >= tids - {program.pid}
    for tid in tids & set(shown):
        assert shown[tid] == expected_names(told).get(tid, kernel_name(program.pid, tid))
    capture.check_sums(lost=0)


def test_all_outputs_show_the_names(waffle, built, start, tmp_path):
    library = built("marked.c", "-shared", "-fPIC", name="libmarked.so")
    program = start(sys.executable, PROGRAM, library)
    told = json.loads(program.until("ready"))
    [loader] = [int(tid) for tid, name in told["names"].items() if name == "loader of a subclass"]
    capture = waffle.attach("-p", program.pid, "-q", "--no-report", "--duration", "4s").wait()
    said = waffle.ok("why", "--thread", "loader of a subclass", capture.path).stdout
    assert said.startswith(f"loader of a subclass ({loader}), process {program.pid}")
    why = json.loads(waffle.ok("why", "--thread", loader, "--json", capture.path).stdout)
    assert [instance["thread"]["comm"] for instance in why["instances"]] == ["loader of a subclass"]
    text = capture.report_text()
    assert re.search(rf"^  loader of a subclass .* {loader} +{program.pid}$", text, re.M)
    assert "größer Ωμέγα 😀" in text and "\033[31m" not in text and "\ufffd[31m\ufffdred" in text
    assert "loader of a subclass" in [thread["comm"] for thread in capture.report("--top", "0")["threads"]]
    waffle.ok("report", "--html", tmp_path / "page.html", capture.path)
    assert f"loader of a subclass ({loader})" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for form in ("perfetto", "chrome"):
        assert b"loader of a subclass" in capture.export(form).read_bytes()
    with sqlite3.connect(capture.export("sqlite")) as database:
        assert ("loader of a subclass",) in database.execute(f"SELECT comm FROM thread WHERE tid = {loader}").fetchall()
    # A window after the record of the name has it, too.
    late = json.loads(waffle.ok("report", "--json", "--from", "3s", capture.path).stdout)
    assert "loader of a subclass" in [thread["comm"] for thread in late["threads"]]
    # A filter compares the kernel's name, as it does while a program is traced.
    comm = kernel_name(program.pid, loader)
    assert capture.report("--filter", f'comm == "{comm}"')["spans"]
    assert not capture.report("--filter", 'comm == "loader of a subclass"')["spans"]


def test_a_new_name_is_found_at_the_end(waffle, start):
    program = start(sys.executable, PROGRAM)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    attached.wait_ready()
    told = json.loads(program.ask("rename", "renamed"))
    capture = attached.stop()
    names = names_of(capture, program.pid)
    assert names == expected_names(told) and "renamed" in names.values()


@pytest.mark.parametrize("python", tracer.interpreters())
@tracer.tries(3)  # whether waffle has seen the child's thread by the end is up to the machine, too
def test_threads_of_a_forked_worker_have_their_own_names(waffle, start, python):
    program = start(python, PROGRAM)
    parent = json.loads(program.until("ready"))
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--follow", "--machine-wide")
    attached.wait_ready()
    child = json.loads(program.ask("fork", "child"))
    time.sleep(0.3)
    capture = attached.stop()
    assert names_of(capture, program.pid) == expected_names(parent)
    assert names_of(capture, child["pid"]) == {int(tid): name for tid, name in child["names"].items()}
    assert list(child["names"].values()) == ["of the child"]


def test_a_process_that_sees_other_tids_has_the_names(waffle, start):
    program = start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, PROGRAM)
    told = json.loads(program.until("ready"))
    assert told["pid"] == 1
    [pid] = children_of(program.pid)
    capture = waffle.attach("-p", pid, "-q", "--no-report", "--duration", "1s").wait()
    assert sorted(names_of(capture, pid).values()) == sorted(expected_names(told).values())
    seen = {}
    for tid in tids_of(pid):
        status = pathlib.Path(f"/proc/{pid}/task/{tid}/status").read_text(encoding="utf-8")
        seen[tid] = int(re.search(r"NSpid:.*\t(\d+)", status).group(1))
    expected = expected_names(told)
    for tid, name in names_of(capture, pid).items():
        assert expected[seen[tid]] == name


def test_a_name_that_changes_all_the_time_is_one_that_the_thread_had(waffle, tmp_path):
    script = tmp_path / "changes.py"
    script.write_text(
        "import threading, time\n"
        "end = time.monotonic() + 1.5\n"
        "def work():\n"
        "    i = 0\n"
        "    while time.monotonic() < end:\n"
        "        i += 1\n"
        "        threading.current_thread().name = f'short-{i}' if i % 2 else f'a name that is a good deal longer {i}'\n"
        "        if i % 50 == 0: time.sleep(0.001)\n"
        "for i in range(8): threading.Thread(target=work).start()\n",
        encoding="utf-8",
    )
    capture = waffle.run(sys.executable, script)
    for name in [r["name"] for r in capture.records("thread_name")]:
        number = int(name.rpartition("-" if name.startswith("short") else " ")[2])
        assert name == (f"short-{number}" if number % 2 else f"a name that is a good deal longer {number}")


def test_threads_that_come_and_go_have_their_names_or_none(waffle, tmp_path):
    script = tmp_path / "churn.py"
    script.write_text(
        "import json, threading, time\n"
        "names = []\n"
        "def work(): names.append((threading.get_native_id(), threading.current_thread().name)); time.sleep(0.03)\n"
        "for i in range(300):\n"
        "    threading.Thread(target=work, name=f'short-{i}').start(); time.sleep(0.005)\n"
        "time.sleep(0.2)\n"
        "print(json.dumps(names))\n",
        encoding="utf-8",
    )
    capture = waffle.run(sys.executable, script)
    found = [(r["tid"], r["name"]) for r in capture.records("thread_name")]
    told = [tuple(pair) for pair in json.loads(capture.result.stdout)]
    assert len(told) == 300 and found and set(found) <= set(told)


def captured_short_threads(waffle, program, *options, pid=None):
    """Attaches to short_threads.py, and waits until the interpreter is found. Returns the names in the capture, and those
    that Python knew."""
    attached = waffle.attach("-p", pid or program.pid, "-q", "--no-report", *options)
    attached.wait_ready()
    time.sleep(1)
    told = json.loads(program.ask("go", "names"))
    return attached.stop(), told


def check_short_threads(found, expected):
    """A thread that renames itself has one of its two names, and most of them have the last one."""
    assert set(found) == set(expected)
    different = {tid: name for tid, name in found.items() if name != expected[tid]}
    assert all(expected[tid] == f"was {name}" for tid, name in different.items())
    assert len(different) < sum(name.startswith("was ") for name in expected.values()) / 2


@pytest.mark.parametrize("python", tracer.interpreters())
@pytest.mark.parametrize("options", [(), ("--stacks", "sched")], ids=["plain", "stacks"])
@tracer.tries(3)  # whether the interpreter is found by then is up to the machine, too
def test_threads_of_milliseconds_have_the_names_that_python_gave_them(waffle, start, python, options):
    program = start(python, SHORT)
    program.until("ready")
    capture, told = captured_short_threads(waffle, program, *options)
    check_short_threads(names_of(capture, program.pid), expected_names(told))
    capture.check_sums(lost=0)


@pytest.mark.parametrize("options", [(), ("--stacks", "sched")], ids=["plain", "stacks"])
@tracer.tries(3)  # whether the interpreter is found by then is up to the machine, too
def test_threads_of_milliseconds_of_a_forked_child_have_names(waffle, start, options):
    program = start(sys.executable, SHORT, "fork")
    program.until("ready")
    capture, told = captured_short_threads(waffle, program, "--follow", *options)
    check_short_threads(names_of(capture, told["pid"]), expected_names(told))


def test_threads_of_milliseconds_have_names_where_the_process_sees_other_tids(waffle, start):
    program = start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, SHORT)
    program.until("ready")
    [pid] = children_of(program.pid)
    capture, told = captured_short_threads(waffle, program, "--stacks", "sched", pid=pid)
    expected = list(expected_names(told).values())
    found = list(names_of(capture, pid).values())
    assert len(found) == len(expected) > 250 and told["pid"] == 1
    assert {name.removeprefix("was ") for name in found} == {name.removeprefix("was ") for name in expected}


def test_many_threads_whose_names_differ_in_numbers_are_of_one_kind(waffle, start, tmp_path):
    script = tmp_path / "jobs.py"
    script.write_text(
        "import sys, threading, time\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "def jobs(name, count):\n"
        "    threads = [threading.Thread(target=time.sleep, args=(0.02,), name=f'{name}-{i}') for i in range(count)]\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n"
        "jobs('job', 40)\n"
        "jobs('pool', 32)\n"
        "print('done', flush=True)\n"
        "sys.stdin.readline()\n",
        encoding="utf-8",
    )
    program = start(sys.executable, script)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--stacks", "sched")
    attached.wait_ready()
    time.sleep(1)
    program.ask("go", "done")
    capture = attached.stop()
    assert len(names_of(capture, program.pid)) == 72
    said = waffle.ok("why", "--thread", "job-N", capture.path).stdout
    assert said.startswith("40 threads named job-N, together ")
    assert waffle.ok("why", "--thread", "job-7", capture.path).stdout.startswith("job-7 (")
    assert waffle.ok("why", "--thread", "pool-7", capture.path).stdout.startswith("pool-7 (")
    assert "no thread 'pool-N'" in waffle.call("why", "--thread", "pool-N", capture.path).stderr


def test_made_up_threads_name_only_themselves(waffle, built, start):
    """A program that is no Python, but whose memory looks so, claims threads that it has and has not."""
    other = start(sys.executable, PROGRAM)
    other.until("ready")
    program = start(built("fake_python.c", "-rdynamic", name="fake-python"), other.pid)
    tid = int(program.until("ready"))
    capture = waffle.attach("-p", program.pid, "-q", "--no-report", "--duration", "1s").wait()
    assert names_of(capture, program.pid) == {tid: "\033[31mfake"}
    assert "\033" not in capture.report_text()

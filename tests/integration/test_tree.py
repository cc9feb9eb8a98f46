# SPDX-License-Identifier: Apache-2.0
"""Which processes attach traces: trees, cgroups, containers, units of systemd."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tracer import Program, wait_until
from why_json import asker

# Three workers, of which the first has a child of its own.
WORKERS = textwrap.dedent(
    """
    import multiprocessing, os, time

    def inner():
        print("inner", os.getpid(), flush=True)
        time.sleep(1000)

    def worker(number):
        if not number:
            multiprocessing.Process(target=inner, daemon=False).start()
        print("worker", os.getpid(), flush=True)
        time.sleep(1000)

    multiprocessing.set_start_method("fork")
    for number in range(3):
        multiprocessing.Process(target=worker, args=(number,)).start()
    print("ready", os.getpid(), flush=True)
    time.sleep(1000)
    """
)

# Makes a child each time that a file says so, and each child makes another: all stay.
GROWING = textwrap.dedent(
    """
    import os, sys, time

    print("ready", os.getpid(), flush=True)
    while not os.path.exists(sys.argv[1]):
        if os.fork() == 0:
            if os.fork():
                time.sleep(1000)
            time.sleep(1000)
        time.sleep(0.01)
    print("done", flush=True)
    time.sleep(1000)
    """
)


def children(pid):
    """All descendants of a process, as the kernel lists them."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            for child in file.read().split():
                found += [int(child), *children(int(child))]
    return found


@contextlib.contextmanager
def started(code, *arguments):
    """A Python program that has printed "ready". All its processes are ended afterwards."""
    program = Program([sys.executable, "-c", code, *arguments], start_new_session=True)
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, 9)
        program.kill()


@pytest.fixture
def workers():
    with started(WORKERS) as program:
        wait_until(lambda: len(children(program.pid)) == 4, "four processes")
        yield program


def traced(capture):
    return {thread["pid"] for thread in capture.report()["threads"]}


def attach(waffle, *arguments):
    """Attaches for a moment. Returns the traced processes, and what waffle said."""
    path = waffle.path()
    done = waffle.ok("attach", *arguments, "--duration", "300ms", "--no-report", "-o", path)
    report = waffle.ok("report", "--json", "--top", "0", path)
    return {thread["pid"] for thread in json.loads(report.stdout)["threads"]}, done.stderr


def test_a_tree_has_the_children_of_children(waffle, workers):
    found, said = attach(waffle, "--pid", str(workers.pid), "--tree")
    assert found == {workers.pid, *children(workers.pid)} and len(found) == 5
    assert "not traced" not in said


def test_without_tree_one_line_says_how_many_children_are_missing(waffle, workers):
    found, said = attach(waffle, "--pid", str(workers.pid))
    assert found == {workers.pid}
    assert len(re.findall("not traced", said)) == 1
    assert "attach: 4 child processes are not traced; use --tree\n" in said
    one = next(pid for pid in children(workers.pid) if children(pid))
    _, said = attach(waffle, "--pid", str(one), "--follow")
    assert "1 child process is not traced; use --tree, since --follow takes new ones only" in said
    leaf = next(pid for pid in children(workers.pid) if not children(pid))
    assert "not traced" not in attach(waffle, "--pid", str(leaf))[1]


def test_children_that_are_born_while_waffle_attaches_are_traced(waffle, tmp_path):
    with started(GROWING, str(tmp_path / "stop")) as program:
        wait_until(lambda: len(children(program.pid)) > 10, "children")
        attached = waffle.attach("--pid", str(program.pid), "--tree")
        attached.wait_armed(program.pid)
        born = len(children(program.pid))
        wait_until(lambda: len(children(program.pid)) > born + 10, "more children")
        (tmp_path / "stop").touch()
        program.until("done")
        alive = children(program.pid)
        # The last fork is recorded once the kernel's record of it was read.
        time.sleep(0.3)
        assert traced(attached.stop()) >= {program.pid, *alive}


def test_a_tree_that_has_waffle_in_it_leaves_waffle_out(waffle, tmp_path):
    path = tmp_path / "own.waffle"
    script = f"{waffle.program} attach --pid $$ --tree --duration 200ms --no-report -o {path}; true"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    names = waffle.ok("report", "--json", path).stdout
    assert '"sh"' in names and '"waffle-bpf"' not in names, done.stderr


CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids")


def hierarchy():
    """A folder where this test may make cgroups that have no controllers, or the one of pids."""
    for place in CGROUPS:
        with contextlib.suppress(OSError):
            folder = pathlib.Path(place, f"waffle-test-{os.getpid()}.slice")
            folder.mkdir()
            if (folder / "cgroup.procs").exists():
                return folder
            folder.rmdir()
    pytest.skip("gpu: no cgroup can be made here")


@pytest.fixture
def cgroup():
    """make("docker-1.scope", pid, …) makes a cgroup with these processes, and returns its path."""
    base = hierarchy()

    def make(name, *pids):
        folder = base / name
        folder.mkdir(parents=True)
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))
        return "/" + str(folder.relative_to(base.parent))

    yield make
    for name, _, _ in os.walk(base, topdown=False):
        folder = pathlib.Path(name)
        for pid in (folder / "cgroup.procs").read_text().split():
            (base.parent / "cgroup.procs").write_text(pid)
        wait_until(lambda folder=folder: removed(folder), f"{folder} is empty")


def removed(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def test_processes_of_a_cgroup_and_below(waffle, workers, cgroup):
    pids = children(workers.pid)
    path = cgroup("box", *pids[:2])
    cgroup("box/inner", pids[2])
    cgroup("boxer", pids[3])
    assert attach(waffle, "--cgroup", path)[0] == set(pids[:3])
    assert attach(waffle, "--cgroup", path[1:] + "/inner/")[0] == {pids[2]}


def test_processes_of_a_container_by_the_begin_of_its_id(waffle, workers, cgroup):
    pids = children(workers.pid)
    cgroup("docker-" + "ab12" * 16 + ".scope", pids[0], pids[1])
    cgroup("libpod-" + "ab34" * 16 + ".scope/container", pids[2])
    cgroup("libpod-conmon-" + "ab34" * 16 + ".scope", pids[3])
    assert attach(waffle, "--container", "ab12")[0] == set(pids[:2])
    assert attach(waffle, "--container", "ab34" * 16)[0] == {pids[2]}
    waffle.fails(1, "attach", "--container", "ab", says="--container ab: fits .*ab.* and .*--cgroup")
    cgroup("user@7.service/docker-" + "ab12" * 16 + ".scope", workers.pid)  # anybody may make this one
    waffle.fails(1, "attach", "--container", "ab12", says="--container ab12: fits .*ab12.* and .*--cgroup")
    waffle.fails(1, "attach", "--container", "cd", says="--container cd: no process is in it")


def test_processes_of_a_unit(waffle, workers, cgroup):
    pids = children(workers.pid)
    cgroup("waffletest.service", pids[0])
    cgroup("user@7.service/app/waffletest.service", pids[1])  # anybody may make this one
    cgroup("lxc.payload.1/system.slice/waffletest.service", pids[2])  # root of a container may make this one
    assert attach(waffle, "--unit", "waffletest")[0] == {pids[0]}
    assert attach(waffle, "--unit", "waffletest.service")[0] == {pids[0]}
    assert attach(waffle, "--unit", "user@7.service")[0] == {pids[1]}
    waffle.fails(1, "attach", "--unit", "nosuch", says="--unit nosuch: no process is in it")


# ---- why on running processes ----


def test_why_records_a_tree_and_explains_its_busiest_thread(waffle, workers, tmp_path):
    path = tmp_path / "kept.waffle"
    done = waffle.ok("why", "--pid", str(workers.pid), "--duration", "300ms", "-o", path)
    # All of them sleep: perhaps none runs meanwhile.
    assert re.search("there are no spans, so this is (the busiest thread|a thread that waited all the time)", done.stderr)
    assert f"{path}: " in done.stderr and path.exists()
    assert re.search(r"^python\S* \(\d+\)(, process \d+)?, at 0 ns: ", done.stdout, re.M)
    assert re.search(r"^   1\. +\d+\.\d %", done.stdout, re.M)
    assert "\nThe longest waits:\n" in done.stdout
    threads = json.loads(waffle.ok("report", "--json", path).stdout)["threads"]
    assert {thread["pid"] for thread in threads} == {workers.pid, *children(workers.pid)}


WAITS_FOR_CHILD = """
import os, sys
end, other = os.pipe()
if os.fork():
    while True:
        os.read(end, 1)
while True:
    sum(range(200000))
    os.write(other, b"x")
"""


def test_who_waits_for_the_busiest_thread(waffle, tmp_path):
    """The parent is named, which does nothing but wait for its child."""
    path = tmp_path / "waiters.waffle"
    with subprocess.Popen([sys.executable, "-c", WAITS_FOR_CHILD], start_new_session=True) as parent:
        try:
            wait_until(lambda: children(parent.pid), "the child has begun")
            [child] = children(parent.pid)
            shown = waffle.ok("why", "--pid", str(parent.pid), "--duration", "500ms", "-o", path).stdout
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert re.match(rf".* \({child}\)", shown)
    assert re.search(rf"^Threads that wait for it:\n +\d+\.\d % .* \({parent.pid}\)  (likely|certain)  "
                     r"blocked in read on pipe:", shown, re.M)
    [waiter] = asker(waffle)(path)["waiters"]
    assert waiter["thread"]["tid"] == parent.pid and waiter["share"] > 0.1
    assert waiter["longest"]["culprit"]["tid"] == child
    assert "waiters" not in json.loads(waffle.ok("why", "--json", "--thread", str(child), path).stdout)


def test_why_of_a_command_explains_its_spans_after_an_overview(waffle, built, tmp_path):
    path = tmp_path / "steps.waffle"
    done = waffle.ok("why", "-o", path, "--", built("steps.c"), stdin=None, input="span 3\nspan 4\nspan 5\nspan 6\n")
    assert re.search(r"^SPANS ", done.stdout, re.M) and re.search(r"^CAUSES ", done.stdout, re.M)
    assert len(re.findall(r"^step span [0-9a-f]{16} of ", done.stdout, re.M)) == 3
    assert path.exists()


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_why_of_a_command_passes_all_of_its_arguments(waffle, options):
    done = waffle.ok("why", *options, "--", "sh", "-c", 'echo "$@"; sleep 0.05', "sh", "--pid", "one", "two", "three")
    assert done.stdout.splitlines()[0] == "--pid one two three"


def test_why_explains_a_command_that_fails_and_exits_as_it_did(waffle, tmp_path):
    done = waffle.call("why", "-o", tmp_path / "x.waffle", "--", "sh", "-c", "sleep 0.05; exit 7")
    assert done.returncode == 7
    assert "sleep" in done.stdout


def test_ctrl_c_ends_the_recording_of_why_and_it_still_answers(waffle, workers, tmp_path):
    path = tmp_path / "early.waffle"
    command = [waffle.program, "why", "--pid", str(workers.pid), "--duration", "10m", "-o", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as why:
        wait_until(path.exists, "the capture has begun")
        time.sleep(0.3)
        why.send_signal(signal.SIGINT)
        out, said = why.communicate(timeout=60)
    assert why.returncode == 0, said
    assert "The longest waits:" in out


def test_what_why_can_not_record(waffle, workers):
    waffle.fails(2, "why", "--pid", "1", "x.waffle", says="files or running processes, not both")
    waffle.fails(2, "why", "--pid", "1", "--", "true", says="a command or running processes")
    waffle.fails(2, "why", "--duration", "1s", "x.waffle", says="--duration and --output")
    waffle.fails(2, "why", says="or what to record: --pid PID")
    waffle.fails(1, "why", "--pid", str(2**22 - 1), says="no such process")


def test_threads_of_one_name_are_explained_together(waffle, workers):
    path = waffle.path()
    waffle.ok("attach", "--pid", str(workers.pid), "--tree", "-d", "300ms", "--no-report", "-o", path)
    [name] = {t["comm"] for t in json.loads(waffle.ok("report", "--json", path).stdout)["threads"]}
    text = waffle.ok("why", "--thread", name, path).stdout
    assert text.startswith(f"5 threads named {name}, together ")
    assert re.search(r"^   1\. +\d+\.\d % .* sleep .* the thread itself$", text, re.M)
    found = json.loads(waffle.ok("why", "--json", "--thread", name, path).stdout)["instances"]
    assert {one["thread"]["pid"] for one in found} == {workers.pid, *children(workers.pid)}
    for one in found:
        assert sum(cause["duration_ns"] for cause in one["causes"]) == one["duration_ns"]


def test_the_report_without_spans_ends_with_the_busiest_thread(waffle, workers):
    path = waffle.path()
    done = waffle.ok("attach", "--pid", str(workers.pid), "--tree", "-d", "300ms", "-o", path)
    assert "\nTHE BUSIEST THREAD" in done.stdout
    assert "waffle-bpf why FILE --thread NUMBER" in done.stdout


def test_the_cost_that_attach_prints_has_arming_and_workers_in_it(waffle, workers):
    """The CPU time is compared with what the kernel counts for waffle-bpf and all its children, and
    the time until it was ready with the whole time that it took."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    _, said = attach_only(waffle, "--pid", str(workers.pid), "--tree", "--stacks", "sched")
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(
        r"used ([\d.]+) (\w+) of CPU in ([\d.]+) (\w+) until ready, then [\d.]+ % of a CPU", said
    )
    assert found, said
    cpu, ready = float(found[1]) * units[found[2]], float(found[3]) * units[found[4]]
    assert 0 < cpu <= used + 0.02  # the kernel counts the time of children in ticks
    assert 0 < ready <= took


def attach_only(waffle, *arguments):
    path = waffle.path()
    done = waffle.ok("attach", *arguments, "--duration", "200ms", "--no-report", "-o", path)
    return path, done.stderr

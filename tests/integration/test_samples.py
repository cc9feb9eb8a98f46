# SPDX-License-Identifier: Apache-2.0
"""Samples of running time: they name the code that ran, as often as it ran, and nothing else."""

import json
import os
import subprocess
import sys

import pytest
from tracer import Capture
from why_json import asker

RATE = 99
MS = 400  # of CPU time


@pytest.fixture
def work(waffle, built):
    """work(kind, options): a capture of samples.c, and its span as `why` explains it."""
    ask = asker(waffle)

    def run(kind, *options):
        program = built("samples.c", "-O2", "-pthread", "-fno-omit-frame-pointer")
        capture = waffle.run(program, kind, str(MS), options=options)
        [instance] = ask(capture.path, "--span", "work")["instances"]
        return capture, instance

    return run


def samples_of(instance, cause="running"):
    [found] = [c for c in instance["causes"] if c["cause"] == cause][:1]
    return found.get("samples", {"count": 0, "places": []})


def check_count(capture, instance, rate):
    """As many as the time demands: each has a chance that its CPU was just not interruptible, or
    that the virtual machine was not running."""
    expected = instance["parts"]["running_ns"] / 1e9 * rate
    count = samples_of(instance)["count"]
    assert expected * 0.3 <= count <= expected * 1.2 + 2, (count, expected)
    assert capture.result.returncode == 0


def share(samples, **wanted):
    rows = [p for p in samples["places"] if all(p[key] == value for key, value in wanted.items())]
    return sum(row["count"] for row in rows) / samples["count"]


def test_own_code_is_named_by_its_function(work, waffle):
    capture, instance = work("user")
    check_count(capture, instance, RATE)
    samples = samples_of(instance)
    assert samples["count"] == sum(place["count"] for place in samples["places"])
    assert share(samples, mode="user", function="gemm_kernel", module="samples") >= 0.8
    text = waffle.ok("why", "--span", "work", capture.path).stdout
    assert " % gemm_kernel, user" in text and f"({samples['count']} samples)" in text
    text = waffle.ok("report", capture.path).stdout
    assert " % gemm_kernel, user" in text


def test_work_of_the_kernel_is_named_by_the_system_call(work):
    capture, instance = work("kernel")
    check_count(capture, instance, RATE)
    assert share(samples_of(instance), mode="kernel", syscall="read", function=None) >= 0.8


def test_shares_are_those_of_the_time(work, waffle):
    capture, instance = work("both")
    samples = samples_of(instance)
    user = share(samples, mode="user", function="gemm_kernel")
    kernel = share(samples, mode="kernel", syscall="read")
    assert 0.5 <= user <= 0.83 and 0.17 <= kernel <= 0.5
    [row] = json.loads(waffle.ok("report", "--json", capture.path).stdout)["spans"]
    cause = next(cause for cause in row["causes"] if cause["cause"] == "running")
    assert cause["samples"] == samples


def test_spinning_for_a_lock_is_said(work, waffle):
    capture, instance = work("spin")
    assert share(samples_of(instance), mode="user", spins="user-lock") >= 0.7
    text = waffle.ok("why", "--span", "work", capture.path).stdout
    assert "pthread_spin_lock, user, spins for a lock" in text


def test_a_loop_that_waits_for_a_variable_spins(work, waffle):
    capture, instance = work("flag")
    assert share(samples_of(instance), mode="user", function="wait_for_flag", spins="pause") >= 0.4
    text = waffle.ok("why", "--span", "work", capture.path).stdout
    assert "wait_for_flag, user, spins in a loop that waits" in text
    capture, instance = work("user")
    assert share(samples_of(instance), spins="pause") == 0


def test_rate_is_chosen_and_samples_are_switched_off(work, waffle):
    capture, instance = work("user", "--sample-rate=500")
    check_count(capture, instance, 500)
    assert {row["period_ns"] for row in capture.records("sample")} == {2_000_000}
    for option in ("--sample-rate=0", "--sources=-samples"):
        capture, instance = work("user", option)
        assert "samples" not in capture.info()["sources"]
        assert not capture.records("sample")
        assert all("samples" not in cause for cause in instance["causes"])
        assert "these sources" not in capture.result.stderr


def test_only_threads_of_the_target_are_sampled(work, waffle):
    """Others compute meanwhile: the tests themselves, and what else the machine does."""
    capture, instance = work("user")
    tids = {row["tid"] for row in capture.records("sample")}
    assert tids == {instance["thread"]["tid"]}


def test_program_is_sampled_after_its_exec(work):
    capture, instance = work("exec")
    assert share(samples_of(instance), mode="user", function="gemm_kernel") >= 0.8


def test_samples_with_unwinding_tables(work):
    _, instance = work("user", "--stacks=sched")
    assert share(samples_of(instance), mode="user", function="gemm_kernel") >= 0.8


def test_a_cpu_whose_events_are_refused_is_said_and_the_others_have_theirs(waffle, built):
    library = built("refuse_event.c", "-shared", "-fPIC", "-D_GNU_SOURCE", name="librefuse.so")
    last = max(os.sched_getaffinity(0))
    path = waffle.path()
    result = waffle.ok("run", "--no-report", "-o", path, "--", "taskset", "-c", 0, built("spin.c"), 1000,
                       env={**os.environ, "LD_PRELOAD": str(library), "REFUSED_CPU": str(last)})
    assert (f"the kernel refused perf events of 1 of {last + 1} CPUs: samples and page faults of these may be missing: "
            "Permission denied") in result.stderr
    assert {row["cpu"] for row in Capture(waffle, path).records("sample")} == {0}


LIBRARY = """
import base64, zlib
def inner(data):
    for level in (1, 5, 9):
        zlib.compress(data, level)
def outer(data):
    inner(data)
"""
APP = """
import sys, time
sys.path.insert(0, sys.argv[1])
import packer
def step():
    packer.outer(b"some text " * 10000)
def main():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        step()
main()
"""


@pytest.mark.parametrize("folder", ("app/venv/lib/site-packages", "elsewhere"))
def test_the_own_function_that_calls_a_library_is_named(waffle, tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "app").mkdir(exist_ok=True)
    (tmp_path / folder / "packer.py").write_text(LIBRARY, encoding="utf-8")
    app = tmp_path / "app" / "app.py"
    app.write_text(APP, encoding="utf-8")
    path = tmp_path / "own.waffle"
    text = waffle.ok("why", "-o", path, "--", sys.executable, app, tmp_path / folder).stdout
    assert "within inner (packer.py), from step (app.py) (" in text
    found = json.loads(waffle.ok("why", "--json", path).stdout)
    samples = samples_of(found["instances"][0])
    assert samples["own"]["function"] == "step (app.py)" and samples["own"]["count"] >= 0.8 * samples["count"]


MANY = """
import time
names = [f"step_{i}" for i in range(60)]
for name in names:
    exec(f"def {name}():\\n    for i in range(20000): pass")
def parse():
    for name in names:
        globals()[name]()
end = time.monotonic() + 4
while time.monotonic() < end:
    parse()
"""


def test_many_functions_of_python_are_named_by_the_one_that_called_them(waffle, tmp_path):
    (tmp_path / "many.py").write_text(MANY, encoding="utf-8")
    found = json.loads(waffle.ok("why", "--json", "-o", tmp_path / "many.waffle", "--", sys.executable,
                                 tmp_path / "many.py").stdout)
    [thread] = [i for i in found["instances"] if i["parts"]["running_ns"]][:1]
    samples = samples_of(thread)
    assert samples["within"]["function"] == "parse (many.py)"
    assert samples["within"]["count"] >= 0.8 * samples["count"]
    assert samples["places"][0]["count"] < 0.5 * samples["count"]


COLLECTS = """
import gc
kept = [[i] for i in range(200_000)]
def allocate():
    for _ in range(20):
        gc.collect()
def count():
    for _ in range(6_000_000):
        pass
for _ in range(4):
    allocate()
    count()
"""


def printed(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def names_garbage_collection():
    """Whether python3 has a table with the functions that collect garbage; Debian's has none."""
    python = os.path.realpath(printed("python3", "-c", "import sys; print(sys.executable)").strip())
    libraries = [word for word in printed("ldd", python).split() if word.startswith("/") and "libpython" in word]
    return any("gc_collect" in printed("nm", file)
               for file in [python, *libraries])


def test_garbage_collection_of_python_is_said(waffle, tmp_path):
    (tmp_path / "collects.py").write_text(COLLECTS)
    capture = waffle.run("python3", tmp_path / "collects.py", options=("--stacks=sched",))
    [instance] = asker(waffle)(capture.path)["instances"]
    samples = samples_of(instance)
    what = ", garbage collection" if names_garbage_collection() else ""
    assert share(samples, mode="user", function=f"allocate (collects.py){what}") > 0.2
    assert share(samples, mode="user", function="count (collects.py)") > 0.02

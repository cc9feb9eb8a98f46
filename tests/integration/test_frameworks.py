# SPDX-License-Identifier: Apache-2.0
"""Steps of PyTorch and JAX without marks: what waffle records of programs that know nothing of it."""

import json
import os
import sys
from pathlib import Path

import pytest
from why_json import asker

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def job(start, waffle_program, tmp_path):
    """job(script, …): the running script, with PyTorch and JAX in its path, once it is ready."""
    frameworks = waffle_program.parent / "frameworks"
    assert frameworks.exists(), f"{frameworks} is not there; run make setup-check"
    environment = {**os.environ, "PYTHONPATH": str(frameworks), "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1",
                   "LD_LIBRARY_PATH": str(frameworks / "cuda-stubs")}

    def begin(script, *arguments, lines=1):
        program = start(sys.executable, script, *arguments, env=environment, cwd=tmp_path)
        for _ in range(lines):
            program.until("ready")
        return program

    return begin


def of(capture, name):
    return [row for row in capture.rows("span") if row["name"] == name]


def sleepers(waffle, capture, name):
    """Names of the threads for whose sleep some of the slowest spans waited most of their time. On a busy machine
    others wait for a CPU."""
    instances = asker(waffle)(capture.path, "--span", name, "--slowest", "20")["instances"]
    assert instances
    return {cause["culprit"]["comm"] for instance in instances for cause in instance["causes"]
            if cause["cause"] == "sleep" and cause["share"] > 0.4}


def test_steps_of_pytorch_and_the_wait_for_a_slow_worker(waffle, job):
    program = job(PROGRAMS / "train.py", "loader")
    attached = waffle.attach("-p", program.pid, "--tree", "-d", "3s", "-q", "--no-report")
    capture = attached.wait(300)
    steps, backward = of(capture, "step"), of(capture, "backward")
    assert len(steps) >= 3 and abs(len(steps) - len(backward)) <= 2
    data = of(capture, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    assert abs(len(data) - len(steps)) <= 2
    assert abs(len(of(capture, "Optimizer.step#SGD.step")) - len(steps)) <= 2
    ends = sorted((row["start_ns"], row.get("end_ns")) for row in steps)
    assert all(0 <= begin - end < 100000 for (_, end), (begin, _) in zip(ends, ends[1:]))
    assert "pt_data_worker" in sleepers(waffle, capture, "step")


def test_a_late_rank_of_gloo_is_the_cause_of_the_other_ranks_steps(waffle, job):
    program = job(PROGRAMS / "train.py", "ddp", lines=2)
    attached = waffle.attach("-p", program.pid, "--tree", "-d", "3s", "-q", "--no-report")
    capture = attached.wait(300)
    reduces = of(capture, "all_reduce")
    assert len({row["pid"] for row in reduces}) == 2
    assert sleepers(waffle, capture, "all_reduce")


def test_the_thread_of_a_loop_without_steps_is_explained(waffle, job, tmp_path):
    script = tmp_path / "evaluate.py"
    script.write_text("""
import time
import torch
from torch.utils.data import DataLoader

def write_out():
    time.sleep(0.03)

print("ready", flush=True)
for batch in DataLoader(torch.zeros(100000, 4), batch_size=4):
    with torch.no_grad():
        batch.sum()
    write_out()
""")
    program = job(script)
    attached = waffle.attach("-p", program.pid, "--stacks", "sched", "-d", "3s", "-q", "--no-report")
    capture = attached.wait(300)
    assert of(capture, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    shown = waffle.ok("why", capture.path)
    assert "the spans take little of the time, so this is the busiest thread" in shown.stderr
    assert "write_out (evaluate.py:" in shown.stdout
    answer = asker(waffle)(capture.path)
    assert [instance["span"] for instance in answer["instances"]] == [None]
    assert answer["instances"][0]["causes"][0]["cause"] == "sleep"


def compiled(waffle, program, *options):
    """The spans of a capture of three compilations, and what PyTorch measured of them."""
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", *options)
    attached.wait_ready()
    measured = json.loads(program.ask("go", "measured"))
    return attached.stop(), measured


def test_torch_compile_is_a_span_for_each_new_shape(waffle, job):
    program = job(PROGRAMS / "compile.py")
    capture, measured = compiled(waffle, program)
    spans = sorted(of(capture, "compile"), key=lambda row: row["start_ns"])
    assert {(row["category"], row["tid"], row.get("unfinished", False)) for row in spans} == {
        ("torch", program.pid, False)}
    lengths = [(row["end_ns"] - row["start_ns"]) / 1e9 for row in spans]
    forward, backward = lengths[0::2], lengths[1::2]
    assert len(forward) == len(measured["forward"]) == 3 and len(backward) == len(measured["backward"]) == 3
    # A counter begins before PyTorch's measurement of a forward pass, and after that of a backward pass.
    for length, inner, outer in zip(forward, measured["forward"], measured["calls"]):
        assert inner <= length <= outer
    for length, outer in zip(backward, measured["backward"]):
        assert length <= outer
    names = {row["name"] for row in capture.rows("span")}
    assert {"compile", "step", "backward"} == names
    shown = waffle.ok("report", capture.path).stdout
    assert "  compile " in shown and "wait counter" not in shown


def test_compilations_can_be_filtered(waffle, job):
    program = job(PROGRAMS / "compile.py")
    capture, _ = compiled(waffle, program, "--filter", 'name == "compile"')
    assert [row["name"] for row in capture.rows("span")] == ["compile"] * 6
    capture, measured = compiled(waffle, program, "--filter", 'name == "compile" && dur > 5ms')
    lengths = [row["end_ns"] - row["start_ns"] for row in of(capture, "compile")]
    assert len(lengths) >= sum(seconds > 0.005 for seconds in measured["forward"])
    assert all(length > 5e6 for length in lengths)
    capture, _ = compiled(waffle, program, "--filter", 'name == "backward"')
    assert {row["name"] for row in capture.rows("span")} == {"backward"}


def test_collectives_of_gloo_have_a_span_on_each_rank(waffle, job, tmp_path):
    program = job(PROGRAMS / "collectives.py", lines=2)
    attached = waffle.attach("-p", program.pid, "--tree", "-q", "--no-report")
    attached.wait_ready()
    (tmp_path / "go").touch()
    for _ in range(2):
        program.until("done")
    capture = attached.stop()
    for name in ("barrier", "broadcast", "all_gather", "all_to_all", "gather", "reduce", "scatter", "all_reduce"):
        spans = of(capture, name)
        counts = [len([row for row in spans if row["pid"] == pid]) for pid in {row["pid"] for row in spans}]
        assert counts == [5, 5], name
        assert not any(row.get("unfinished") or row.get("left") for row in spans)
    for name in ("c10d.init_process_group", "c10d.new_group"):
        assert len({row["pid"] for row in of(capture, name)}) == len(of(capture, name)) == 2, name
    # Rank 1 compiles before each barrier.
    culprits = [(cause["culprit"] or {}).get("span") for instance in
                asker(waffle)(capture.path, "--span", "barrier", "--slowest", "10")["instances"]
                for cause in instance["causes"]]
    assert "compile" in culprits


def test_jax_compiles_for_each_new_shape(waffle, job, tmp_path):
    script = tmp_path / "shapes.py"
    script.write_text("""
import sys
import jax, jax.numpy as jnp
square = jax.jit(lambda x: x @ x)
arrays = [jnp.ones((n, n)) for n in (2, 3, 4)]
print("ready", flush=True)
sys.stdin.readline()
for array in arrays:
    for _ in range(5):
        square(array).block_until_ready()
print("done", flush=True)
sys.stdin.readline()
""")
    program = job(script)
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    attached.wait_ready()
    program.ask("go", "done")
    capture = attached.stop()
    # A thread of XLA compiles: the main thread only hands it the work.
    assert [row["tid"] != program.pid for row in of(capture, "compile")] == [True] * 3
    assert len(of(capture, "execute")) >= 3


def test_the_last_step_of_a_job_comes_behind_the_complete_ones(waffle, job, waffle_program, tmp_path):
    """It has no next backward(), so it lasts until the program ends."""
    script = tmp_path / "short.py"
    script.write_text("""
import sys, time, torch
linear = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(linear.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    linear(torch.ones(4, 8)).sum().backward()
    optimizer.step()
step()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(5):
    step()
    time.sleep(0.01)
time.sleep(1)
""")
    program = job(script)
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    attached.wait_ready()
    program.say("go")
    program.finish()
    capture = attached.wait()
    instances = asker(waffle)(capture.path, "--span", "step")["instances"]
    assert [instance["unfinished"] for instance in instances] == [False] * 4 + [True]
    assert max(instances, key=lambda instance: instance["duration_ns"]) is instances[-1]
    shown = waffle.ok("why", capture.path, "--span", instances[-1]["id"]).stdout
    assert "  it never completed: the program ended in it\n" in shown


def test_nothing_is_armed_without_the_source(waffle, job):
    program = job(PROGRAMS / "train.py", "loader")
    capture = waffle.attach("-p", program.pid, "-d", "500ms", "-q", "--no-report", "--sources=-frameworks").wait()
    assert not [row for row in capture.rows("span") if row["category"] in ("torch", "jax")]


def test_a_function_twice_is_a_span_from_call_to_call(waffle, start, tmp_path):
    script = tmp_path / "laps.py"
    script.write_text("""
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
for ms in (20, 40, 60):
    os.getppid()
    time.sleep(ms / 1000)
os.getppid()
print("done", flush=True)
sys.stdin.readline()
""")
    program = start(sys.executable, script)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--probe",
                             "uprobe:libc:getppid..getppid key=tid as span lap")
    attached.wait_ready()
    program.ask("go", "done")
    laps = of(attached.stop(), "lap")
    assert [row.get("unfinished", False) for row in laps] == [False, False, False, True]
    for row, least in zip(laps, (20, 40, 60)):
        assert row["end_ns"] - row["start_ns"] >= least * 1e6
    assert all(0 <= then["start_ns"] - first["end_ns"] < 1e6 for first, then in zip(laps, laps[1:]))

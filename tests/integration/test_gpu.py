# SPDX-License-Identifier: Apache-2.0
"""A real CUDA program and a real NCCL all-reduce: what waffle-bpf decoded against the program's own
log. Without a GPU only the same with the stand-ins; `make gpu` needs one."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

import nvidia
from tracer import PROGRAMS, compile_program, wait_probed

# Without a GPU the tests use the simulation, and make gpu says so.
GPU = pathlib.Path("/dev/nvidiactl").exists() or "WAFFLE_GPU" in os.environ

KINDS = ["simulated", "real"] if GPU else ["simulated"]
NO_GPU = "GPU: only a machine with one runs this"


KERNEL_NS = 5_000_000


def plain(name):
    """The begin of a demangled name without spaces, which demanglers place differently; libwaffle
    keeps 255 bytes of a name."""
    return name.replace(" ", "")[:180]


def rows_of(waffle, path, name=None):
    rows = map(json.loads, waffle.ok("export", "-f", "ndjson", "-o", "-", path).stdout.splitlines())
    return [r for r in rows if "args" in r and name in (None, r.get("name"))]


def libraries(waffle, kind):
    if kind == "simulated":
        sim = waffle.program.parent / "sim"
        return [sim / name for name in ("libcuda.so.1", "libcudart.so.12", "libnccl.so.2")]
    return ["libcuda.so.1", nvidia.library("libcudart.so.*"), nvidia.library("libnccl.so.2")]


def seen(row, key):
    """A value as the program's log has it: pointers are printed in base 16."""
    value = row.get("args", {}).get(key)
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else value


def begin_of(row):
    return row["start_ns"]


@pytest.mark.parametrize("kind", KINDS)
def test_calls_are_decoded_as_the_program_made_them(kind, waffle, start):
    paths = libraries(waffle, kind)
    environment = dict(os.environ)
    if kind == "simulated":
        environment["LD_LIBRARY_PATH"] = str(paths[0].parent)
    program = start(sys.executable, PROGRAMS / "gpu.py", *paths, env=environment)
    program.until("ready")
    attached = waffle.attach("-p", program.pid)
    for path in paths[1:]:
        sites = json.loads(waffle.ok("list", "--json", path).stdout)["sites"]
        wait_probed(program.pid, path, sites)
    program.say("go")
    log = []
    while (line := program.line()) != "done":
        log += [json.loads(line)] if line.startswith("{") else []
    capture = attached.stop(timeout=60)
    assert bool(capture.info().get("simulated")) == (kind == "simulated")
    rows = [r for r in capture.rows() if r["kind"] in ("span", "event")]
    rows = sorted((r for r in rows if r["category"] in ("cuda", "nccl")), key=begin_of)

    for told in log:
        [row] = [
            r
            for r in rows
            if r["name"] == told["name"] and told["begin"] <= begin_of(r) <= told["end"]
        ]
        assert {k: seen(row, k) for k in told["args"]} == told["args"], told["name"]
        if row["kind"] == "span":
            assert row["args"]["result"] == 0 and row["end_ns"] <= told["end"]

    # What a call of the runtime has the driver do is not counted again.
    for told in (t for t in log if t["name"].startswith("cuda")):
        inside = [r["name"] for r in rows if told["begin"] <= begin_of(r) <= told["end"]]
        assert inside == [told["name"]]

    # Of the communicator the hash is known, the same in all calls.
    calls = [r for r in rows if r["name"] in ("ncclCommInitRank", "ncclAllReduce")]
    assert len({r["args"]["comm"] for r in calls}) == 1 and len(calls) == 4
    assert seen(calls[0], "comm") != 0
    capture.check_sums(lost=0)


def cupti_of(waffle, kind):
    """CUPTI's library. The real one comes with a wheel, as with torch, or with CUDA's toolkit."""
    if kind == "simulated":
        return waffle.program.parent / "sim/libcupti.so.12"
    places = [*nvidia.folder().glob("*/lib/libcupti.so.1[23]"),
              *pathlib.Path("/usr/local").glob("cuda*/extras/CUPTI/lib64/libcupti.so.1[23]")]
    assert places, "this GPU has no CUPTI: install nvidia-cuda-cupti into build/venv"
    return places[0]


@pytest.mark.parametrize("kind", KINDS)
def test_program_that_records_itself_has_the_event_that_orders_its_streams(kind, waffle, start, tmp_path):
    path, paths = tmp_path / "self.waffle", libraries(waffle, kind)
    folders = [cupti_of(waffle, kind).parent] + ([paths[0].parent] if kind == "simulated" else [])
    program = start(sys.executable, PROGRAMS / "gpu.py", *paths, env={
        **os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), "WAFFLE_TRACE": str(path),
        "CUDA_INJECTION64_PATH": str(waffle.program.parent / "libwaffle-gpu.so")})
    program.until("ready")
    program.say("go")
    log = []
    while (line := program.line()) != "done":
        log += [json.loads(line)] if line.startswith("{") else []
    program.finish()
    log = {told["name"]: told["args"] for told in log}
    event = log["cudaEventRecord"]["event"]
    rows = rows_of(waffle, path)
    assert [(r["name"], seen(r, "handle")) for r in sorted(rows, key=begin_of) if seen(r, "event") == event] == [
        ("event record", log["cudaEventRecord"]["stream"]),
        ("stream wait", log["cudaStreamWaitEvent"]["stream"]), ("wait", None)]
    assert {log["cudaEventRecord"]["stream"], log["cudaStreamWaitEvent"]["stream"]} <= {
        seen(r, "handle") for r in rows if r.get("name") == "stream create"}
    assert json.loads(waffle.ok("gpu", "--json", path).stdout)["not_attributed"]["unknown_waits"] == 0


def load(waffle, kind, injected, count, *nvml, **variables):
    """Runs programs/gpu_load.py with a library that CUDA loads into it. Returns what it prints."""
    sim = waffle.program.parent / "sim"
    driver = sim / "libcuda.so.1" if kind == "simulated" else "libcuda.so.1"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(cupti_of(waffle, kind).parent), "CUDA_INJECTION64_PATH": str(injected), **variables}
    done = subprocess.run([sys.executable, PROGRAMS / "gpu_load.py", driver, str(count), str(KERNEL_NS), str(KERNEL_NS),
                           *nvml], env=environment, check=True, timeout=120, capture_output=True, text=True)
    return json.loads(done.stdout)


def device_of(waffle, path):
    [device] = json.loads(waffle.ok("gpu", "--json", path).stdout)["devices"]
    return device


@pytest.mark.parametrize("kind", KINDS)
def test_utilisation_is_that_of_the_kernels_and_of_nvml(kind, waffle, tmp_path):
    """NVML's values are those of a GPU: without one, only the times of the program count."""
    path, library = tmp_path / "load.waffle", waffle.program.parent / "libwaffle-gpu.so"
    count, nvml = (400, ["libnvidia-ml.so.1"]) if kind == "real" else (40, [])
    told = load(waffle, kind, library, count, *nvml, WAFFLE_TRACE=str(path))
    device = device_of(waffle, path)
    assert device["operations"] >= count
    assert count * KERNEL_NS <= device["busy_ns"] <= sum(told["kernel_ns"])
    assert device["utilization"] == pytest.approx(device["busy_ns"] / device["window_ns"])
    if nvml:
        assert 100 * device["busy_ns"] / told["loop_ns"] == pytest.approx(told["nvml"], abs=10)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_and_their_times_are_those_that_cupti_alone_counts(kind, waffle, tmp_path):
    build, path, counted = waffle.program.parent, tmp_path / "load.waffle", tmp_path / "counted.json"
    tool = compile_program("cupti_count.c", tmp_path / "cupti_count.so", "-shared", "-fPIC", "-ldl")
    load(waffle, kind, tool, 50, CUPTI_COUNT_LIBRARY=str(cupti_of(waffle, kind)), CUPTI_COUNT_FILE=str(counted))
    load(waffle, kind, build / "libwaffle-gpu.so", 50, WAFFLE_TRACE=str(path))
    expected = json.loads(counted.read_text())
    [kernel] = device_of(waffle, path)["kernels"]
    assert (kernel["count"], expected["dropped"]) == (expected["kernels"], 0) and expected["kernels"] == 50
    assert kernel["total_ns"] == pytest.approx(expected["total_ns"], rel=0.05)


def test_kernels_and_their_times_are_those_of_nsys(waffle, tmp_path):
    if not GPU or not shutil.which("nsys"):
        pytest.skip(NO_GPU if not GPU else "GPU: Nsight Systems is not installed")
    path, report = tmp_path / "load.waffle", tmp_path / "load"
    load(waffle, "real", waffle.program.parent / "libwaffle-gpu.so", 50, WAFFLE_TRACE=str(path))
    subprocess.run(["nsys", "profile", "--trace=cuda", "--export=sqlite", "-o", report, sys.executable,
                    PROGRAMS / "gpu_load.py", "libcuda.so.1", "50", str(KERNEL_NS), str(KERNEL_NS)],
                   check=True, timeout=300, capture_output=True)
    with contextlib.closing(sqlite3.connect(report.with_suffix(".sqlite"))) as database:
        [row] = database.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    [kernel] = device_of(waffle, path)["kernels"]
    assert kernel["count"] == row[0] and kernel["total_ns"] == pytest.approx(row[1], rel=0.05)


def test_torch_training_has_the_kernels_that_its_own_profiler_counts(waffle, tmp_path):
    """On a GPU: libwaffle-gpu's operations of a training against those of PyTorch's profiler in a
    second run, and the ranges that PyTorch marks with NVTX."""
    if not GPU:
        pytest.skip(NO_GPU)
    program, path = PROGRAMS / "gpu_torch.py", tmp_path / "torch.waffle"
    library = waffle.program.parent / "libwaffle-gpu.so"
    injected = {"CUDA_INJECTION64_PATH": library, "NVTX_INJECTION64_PATH": library}
    environment = {**os.environ, **{k: str(v) for k, v in injected.items()}, "WAFFLE_TRACE": str(path)}
    subprocess.run([sys.executable, program], env=environment, check=True, timeout=300)
    done = subprocess.run([sys.executable, program, "profile"], check=True, timeout=300,
                          capture_output=True, text=True)
    expected = json.loads(done.stdout.splitlines()[-1])

    [session] = {r["args"]["simulated"] for r in rows_of(waffle, path, "session")}
    assert session is False
    operations = [r for r in rows_of(waffle, path) if r["args"].get("op") == "kernel"]
    counts = collections.Counter(plain(r["name"]) for r in operations)
    assert counts == sum((collections.Counter({plain(k): n}) for k, n in expected.items()),
                         collections.Counter())
    assert len(rows_of(waffle, path, "step")) == 20
    report = json.loads(waffle.ok("gpu", "--json", path).stdout)
    assert sum(k["count"] for d in report["devices"] for k in d["kernels"]) == len(operations)

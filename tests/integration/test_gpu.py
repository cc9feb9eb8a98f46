# SPDX-License-Identifier: Apache-2.0
"""A real CUDA program and a real NCCL all-reduce: what waffle-bpf decoded against the program's own
log. Without a GPU only the same with the stand-ins; `make gpu` needs one."""

import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

import nvidia
from tracer import PROGRAMS, wait_probed

GPU = pathlib.Path("/dev/nvidiactl").exists() or "WAFFLE_GPU" in os.environ


NO_GPU = "GPU: only a machine with one runs this"


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


@pytest.mark.parametrize("kind", ["simulated", "real"] if GPU else ["simulated"])
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

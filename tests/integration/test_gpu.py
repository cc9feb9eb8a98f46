# SPDX-License-Identifier: Apache-2.0
"""A real CUDA program and a real NCCL all-reduce: what waffle-bpf decoded against the program's own
log. Without a GPU only the same with the stand-ins; `make gpu` needs one."""

import json
import os
import pathlib
import sys

import pytest

import nvidia
from tracer import PROGRAMS, wait_probed

GPU = pathlib.Path("/dev/nvidiactl").exists() or "WAFFLE_GPU" in os.environ


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

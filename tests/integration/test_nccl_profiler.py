# SPDX-License-Identifier: Apache-2.0
"""NCCL's profiler plugin in libwaffle-gpu.so. programs/nccl_profiler.c plays NCCL, with the structs of
each version, and logs the times around its calls."""

import ctypes
import json
import os
import pathlib
import subprocess
import time

import pytest

import nvidia
from tracer import Capture, Program, compile_program, wait_until

VERSIONS = [1, 2, 3, 4, 5, 6, 7]
WAITS = ["gpu_wait_ns", "peer_wait_ns", "network_wait_ns", "receive_wait_ns"]
HASH = "0xc0ffee0123456789"
ROOM = 4096  # TASKS_MAX of usdt/gpu/nccl_tasks.c


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return compile_program(
        "nccl_profiler.c", tmp_path_factory.mktemp("nccl") / "nccl_profiler", "-D_GNU_SOURCE", "-ldl", "-lpthread"
    )


@pytest.fixture
def library(waffle_program):
    return waffle_program.parent / "libwaffle-gpu.so"


def record(waffle, tmp_path, *argv):
    """Runs the program, which records itself. Returns its rows and its log."""
    path = tmp_path / "out.waffle"
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "WAFFLE_TRACE": str(path)})
    assert done.returncode == 0, done.stderr
    return Capture(waffle, path).rows(), [json.loads(line) for line in done.stdout.splitlines()]


def spans_of(rows):
    ours = [r for r in rows if r.get("category") == "nccl.profiler"]
    spans = [r for r in ours if r["kind"] == "span"]
    return sorted(spans, key=lambda r: r["start_ns"]), [r["args"] for r in ours if r["name"] == "session"]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_collective_is_a_span_with_its_waits(waffle, tmp_path, played, library, version):
    rows, log = record(waffle, tmp_path, played, library, version, "one")
    spans, sessions = spans_of(rows)
    assert [r["name"] for r in spans] == [t["name"] for t in log]
    for row, told in zip(spans, log):
        args = row["args"]
        assert told["begin"][0] <= row["start_ns"] <= told["begin"][1]
        assert told["end"][0] <= row["end_ns"] <= told["end"][1]
        assert args["comm"] == HASH and args["rank"] == 3 and args["bytes"] == told["bytes"]
        assert args.get("nranks") == (8 if version >= 4 else None)
        if told["message"]:
            assert args["peer"] == 5 and args["datatype"] == "float16" and "seq" not in args
        else:
            assert args["seq"] == told["seq"] and args["datatype"] == "float32"
            expected = ("RSxLDMC_AGxSTMC", None, 4) if told["symmetric"] else ("RING", "LL128", 4)
            assert (args["algo"], args.get("proto"), args["channels"]) == expected
        kernel = version >= 3
        assert args["end"] == ("kernel" if kernel else "proxy" if told["steps"] else "enqueued")
        assert args.get("gpu_ns") == (9003 - 5000 if version >= 4 else None)
        assert ("queued_ns" in args) == kernel
        for key in WAITS:
            low, high = told[key]
            if told["symmetric"] and key == "peer_wait_ns":  # of the channel that waited the longest
                assert args[key] == (5130 - 5003) + (9003 - 8500)
            else:
                assert key not in args if not told["steps"] else low <= args[key] <= high
    assert {(r["group"], r["track"]) for r in spans} == {
        ("NCCL rank 3", "comm c0ffee0123456789" if version < 4 else "world comm c0ffee0123456789")}
    assert sessions[0]["state"] == "armed" and sessions[0]["version"] == version
    assert all(s["lost"] == s["lost_events"] == s["late"] == 0 for s in sessions)


@pytest.mark.parametrize("version", [2, 6, 7])
def test_events_of_many_threads_in_any_order_are_each_written_once(waffle, tmp_path, played, library, version):
    rows, log = record(waffle, tmp_path, played, library, version, "many")
    spans, sessions = spans_of(rows)
    assert sorted(r["args"]["seq"] for r in spans) == list(range(log[0]["tasks"]))
    assert all(r["start_ns"] <= r["end_ns"] for r in spans)
    assert sessions[-1]["lost"] == sessions[-1]["lost_events"] == 0


def test_what_has_no_room_is_counted(waffle, tmp_path, played, library):
    rows, log = record(waffle, tmp_path, played, library, 6, "flood")
    spans, sessions = spans_of(rows)
    assert log[0]["refused"] > 0
    assert len(spans) + log[0]["refused"] == log[0]["tasks"]
    assert len(spans) >= ROOM
    assert sessions[-1]["lost"] == log[0]["refused"]


def mask_of(program):
    program.say("mask")
    words = program.until("mask").split()
    return int(words[0]), int(words[2])


@pytest.mark.parametrize(["version", "mask"], [(6, 2 | 4 | 8 | 16 | 64),
                                               (7, 2 | 4 | 8 | 16 | 64 | 32768)])
def test_the_mask_is_0_while_nobody_records_and_follows_a_tracer(waffle, played, library, version, mask):
    program = Program([played, library, str(version), "ask"])
    try:
        program.until("ready")
        assert mask_of(program) == (0, 0)  # and no event begins
        attached = waffle.attach("--pid", program.pid, "-q", "--no-report")
        wait_until(lambda: mask_of(program)[0] == mask, "the mask")
        began = time.monotonic()
        told = []
        while time.monotonic() < began + 2:  # what is complete is written ten times a second
            program.say("play")
            told.append(json.loads(program.line()))
        capture = attached.stop()
        wait_until(lambda: mask_of(program) == (0, 0), "the mask")
        program.say("")
        program.finish()
    finally:
        program.kill()
    spans, _ = spans_of(capture.rows())
    assert 0 < len(spans) <= len(told)
    for row, line in zip(spans, told):
        assert line["begin"][0] <= row["start_ns"] <= line["begin"][1]
        assert line["end"][0] <= row["end_ns"] <= line["end"][1]


def test_other_names_that_are_recorded_leave_nccl_alone(waffle, tmp_path, played, library):
    path = tmp_path / "out.waffle"
    done = subprocess.run([played, library, "6", "one"], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "WAFFLE_TRACE": str(path), "WAFFLE_FILTER": 'category == "gpu"'})
    assert done.returncode == 1 and "a task has no handle" in done.stderr


@pytest.mark.skipif(nvidia.folder() is None, reason="no NVIDIA libraries here")
def test_nccl_looks_for_the_names_that_the_library_has(library):
    """NCCL itself can't be initialised without a GPU."""
    code = pathlib.Path(nvidia.library("libnccl.so.2")).read_bytes()
    ours = ctypes.CDLL(str(library))
    for version in VERSIONS:
        name = f"ncclProfiler_v{version}"
        assert code.count(name.encode() + b"\0") > 0
        assert ctypes.c_char_p.in_dll(ours, name).value == b"waffle"

# SPDX-License-Identifier: Apache-2.0
"""waffle.gpu: what it gives is what the commands print."""

import json
import pathlib
import sys

import pytest

from tracer import ROOT
from test_python import python, script  # noqa: F401  (fixtures)
from test_python_captures import reading
from test_replay import gpu_maker, made, replay_json  # noqa: F401  (fixtures)

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402


def test_timeline_and_replays_are_those_of_the_commands(script, waffle, made, tmp_path):  # noqa: F811
    path, truth = made(1)
    found = json.loads(reading(script, path, f"""
import json
gpu, Mode = waffle.gpu, waffle.gpu.ReplayMode
events = gpu.capture_trace(path)
timeline = gpu.build_timeline(events)
timeline.export_perfetto({str(tmp_path / "x.pftrace")!r})
replays = [gpu.replay_trace(events), gpu.replay_trace(events, mode=Mode.Partial, operations=(3, 7)),
           gpu.replay_trace(events, mode=Mode.StreamSpecific, stream="0:7"), gpu.replay_trace(events, Mode.DryRun),
           gpu.replay_trace(events, what_if="kernels: 2x")]
print(json.dumps({{
    "len": len(events), "utilization": timeline.gpu_utilization, "most": timeline.max_concurrent_ops,
    "names": sorted(set(events.operations["name"])), "busy": timeline.devices[0].busy_ns,
    "replays": [[one.mode, one.operations_executed, one.operations_total, one.deterministic] for one in replays],
    "faster": replays[-1].what_if[0].replayed_ns,
}}))
"""))
    device, = json.loads(waffle.ok("gpu", "--json", path).stdout)["devices"]
    assert found["len"] == truth["operations"] and "copy" in found["names"]
    assert (found["utilization"], found["most"]) == (device["utilization"], device["max_concurrency"])
    assert found["busy"] == device["busy_ns"]
    total = truth["operations"]
    stream = replay_json(waffle, path, "--stream", "0:7")["operations_total"]
    assert found["replays"] == [["full", total, total, True], ["partial", 5, 5, True],
                                ["stream", stream, stream, True], ["dry-run", 0, total, True],
                                ["full", total, total, True]]
    assert found["faster"] == replay_json(waffle, path, "-w", "kernels: 2x")["what_if"][0]["replayed_ns"]
    assert validate_perfetto.load(tmp_path / "x.pftrace").violations == []


def test_what_is_not_in_order_and_what_differs(script, made):  # noqa: F811
    (path, _), (early, _), (other, _) = made(6), made(5, "early"), made(6, "other")
    found = json.loads(reading(script, path, f"""
import json
gpu = waffle.gpu
dry = gpu.replay_trace(gpu.capture_trace({str(early)!r}), gpu.ReplayMode.DryRun)
compared = gpu.compare_traces(gpu.capture_trace(path), gpu.capture_trace({str(other)!r}))
same = gpu.compare_traces(gpu.capture_trace(path), gpu.capture_trace(path))
print(json.dumps([dry.violations, dry.deterministic, compared.divergence.what, same.divergence]))
"""))
    assert found[0] >= 1 and found[1:] == [False, "kernel", None]


@pytest.mark.parametrize("text, error", [
    ("waffle.gpu.capture_trace()", "ValueError: waffle.gpu: give the files"),
    ("waffle.gpu.capture_trace(path, duration_ms=1)", "ValueError: waffle.gpu: give files, or duration_ms"),
    ("waffle.gpu.replay_trace(events, stream=7)", "ValueError: waffle.gpu: stream is not for ReplayMode.Full"),
    ("waffle.gpu.replay_trace(events, waffle.gpu.ReplayMode.Partial)",
     "ValueError: waffle.gpu: ReplayMode.Partial needs"),
    ("waffle.gpu.replay_trace(events, what_if='graphs: 0')",
     "CommandError: waffle-bpf: replay: --what-if: 'graphs: 0' matches none"),
])
def test_mistakes_are_told(script, made, text, error):  # noqa: F811
    said = reading(script, made(2)[0], f"""
events = waffle.gpu.capture_trace(path)
try:
    {text}
except (ValueError, waffle.CommandError) as caught:
    print(type(caught).__name__ + ":", caught)
""")
    assert said.startswith(error)


# A program that keeps the stand-in of a GPU busy in a thread, and records itself meanwhile.
BUSY = """
import ctypes, threading
cuda = ctypes.CDLL("libcuda.so.1")
assert not cuda.cuInit(0)
module, function, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuModuleLoadData(ctypes.byref(module), b".version 6.0 (.param .u64 ns)")  # its time is its argument
assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin")
assert not cuda.cuStreamCreate(ctypes.byref(stream), 1)
done = threading.Event()

def work():
    ns = ctypes.c_uint64(200000)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(ns), ctypes.c_void_p))
    while not done.is_set():
        for _ in range(5):
            cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
        cuda.cuStreamSynchronize(stream)

thread = threading.Thread(target=work)
thread.start()
try:
    events = waffle.gpu.capture_trace(duration_ms=2000)
finally:
    done.set()
    thread.join()
"""


def test_a_program_captures_itself(script):  # noqa: F811
    build = pathlib.Path(script.waffle.program).parent
    found = json.loads(reading(script, "", BUSY + """
import json
timeline = waffle.gpu.build_timeline(events)
replay = waffle.gpu.replay_trace(events, what_if="kernel == 'spin': 2x".replace("'", '"'))
print(json.dumps([len(events), timeline.simulated, timeline.gpu_utilization, timeline.max_concurrent_ops,
                  replay.operations_executed, replay.operations_total, replay.what_if[0].changed]))
""", LD_LIBRARY_PATH=str(build / "sim"), CUDA_INJECTION64_PATH=str(build / "libwaffle-gpu.so")))
    count, simulated, utilization, most, executed, total, kernels = found
    assert simulated and most == 1 and 0 < utilization <= 1
    assert 5 < executed == total == kernels <= count

# SPDX-License-Identifier: Apache-2.0
"""Captures of GPU work at the limits: a CUDA graph of a million nodes, and 100,000 streams."""

import json
import subprocess

import pytest

import gpu_schedule
from test_gpu_timeline import Made, text_capture  # noqa: F401  (text_capture is a fixture)

NODES, GRAPH_STREAMS = 1_000_000, 8
STREAMS = 100_000


def graph_of_nodes():
    """One launch of a graph whose nodes overlap on eight streams, and the call that waits for it."""
    made = Made()
    start = gpu_schedule.START
    made.writer.hit(start + 90, 100, 100, "cudaGraphLaunch", 0x7F00)
    made.launch(100, 5)
    for node in range(NODES):
        at = 200 + node * 3
        made.op(at, at + (50 if node % 7 else 2), 5, stream=node % GRAPH_STREAMS)
    made.end = start + 3 * NODES + 1000
    call = made.writer.hit(start + 150, 100, 100, "cudaStreamSynchronize", 0x7F00)
    made.writer.ret(made.end - 10, 100, 100, "cudaStreamSynchronize", call, 0x7F00, 0)
    return made


def many_streams():
    """Streams of one operation each, half of which wait for another stream."""
    made = Made()
    at, start = 100, gpu_schedule.START
    for stream in range(STREAMS):
        handle = 0x1000 + 16 * stream
        if stream % 2:
            made.writer.hit(start + at, 100, 100, "cudaEventRecord", 0xE000, handle - 16)
            made.writer.hit(start + at + 1, 100, 100, "cudaStreamWaitEvent", handle, 0xE000)
        made.writer.hit(start + at + 2, 100, 100, "cudaLaunchKernel", handle)
        made.launch(at + 3, stream + 1)
        begin = at + 30 if stream % 2 else at + 10
        made.op(begin, begin + 10, stream + 1, stream=stream)
        at += 15
    made.end = start + at + 1000
    return made


@pytest.fixture(scope="module")
def written(text_capture, tmp_path_factory):  # noqa: F811
    """The path of a capture, by the function that makes it."""
    paths = {}

    def write(make):
        if make not in paths:
            paths[make] = tmp_path_factory.mktemp("large") / f"{make.__name__}.waffle"
            make().write(text_capture, paths[make])
        return paths[make]

    return write


def run(waffle, out, limit, *arguments):
    """What a command prints, with a limit of its memory, by way of a file."""
    with open(out, "wb") as file:
        subprocess.run([waffle.program, *map(str, arguments), "--memory-limit", f"{limit >> 20}MiB"], stdout=file,
                       check=True)
    return out.read_bytes()


def test_graph_of_a_million_nodes(waffle, written, tmp_path):
    path, out = written(graph_of_nodes), tmp_path / "out"
    device, = json.loads(run(waffle, out, 200 * NODES, "gpu", "--json", path))["devices"]
    assert device["operations"] == NODES and len(device["streams"]) == GRAPH_STREAMS
    assert device["launch_delay"]["count"] == GRAPH_STREAMS
    assert sum(kernel["count"] for kernel in device["kernels"]) == NODES
    assert sum(stream["operations"] for stream in device["streams"]) == NODES


def test_dependencies_of_a_graph_of_a_million_nodes(waffle, written, tmp_path):
    path, out = written(graph_of_nodes), tmp_path / "out"
    # Only the first node of a stream follows none of it.
    found = run(waffle, out, 200 * NODES, "gpu", "--graph", "json", path)
    assert found.count(b'"launch":0') == NODES
    assert NODES - 100 * GRAPH_STREAMS < found.count(b'"previous":') <= NODES - GRAPH_STREAMS
    assert run(waffle, out, 200 * NODES, "gpu", "--graph", "dot", path).count(b'[label="gemm<float>') == NODES


def test_replay_of_a_graph_of_a_million_nodes(waffle, written, tmp_path):
    path, out = written(graph_of_nodes), tmp_path / "out"
    found = json.loads(run(waffle, out, 300 * NODES, "replay", "--json", "--what-if", "kernels: 0", path))
    assert found["operations_executed"] == found["operations_total"] == NODES
    assert found["deterministic"] and abs(found["error"]) < 0.01 and found["dependencies"] > 2 * NODES
    assert found["what_if"][0]["changed"] == NODES
    found = json.loads(run(waffle, out, 300 * NODES, "replay", "--json", "--stream", "3", path))
    assert found["operations_executed"] == NODES // GRAPH_STREAMS


def test_hundred_thousand_streams(waffle, written, tmp_path):
    path, out = written(many_streams), tmp_path / "out"
    device, = json.loads(run(waffle, out, 2000 * STREAMS, "gpu", "--json", path))["devices"]
    assert len(device["streams"]) == STREAMS
    found = run(waffle, out, 2000 * STREAMS, "gpu", "--graph", "json", path)
    assert found.count(b'"kind":"event"') == STREAMS // 2
    found = json.loads(run(waffle, out, 2000 * STREAMS, "replay", "--json", path))
    # Each operation has its launch, and half of them an operation of another stream.
    assert found["operations_executed"] == STREAMS
    assert found["dependencies"] == STREAMS - 1 + STREAMS + STREAMS // 2
    assert found["violations"] == 0 and found["deterministic"]

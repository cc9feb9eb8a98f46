# SPDX-License-Identifier: Apache-2.0
"""What threads waited for if nobody recorded the calls of CUDA, as in a program that records itself: CUPTI says
when a call waited and for which stream, and the event `wait` says which thread did."""

import json
import os
import pathlib
import subprocess

import pytest

import gpu_schedule
from test_gpu_timeline import Made, gpu, text_capture  # noqa: F401  (fixtures)
from test_replay import replay, replay_json

START = gpu_schedule.START


class Waits(Made):
    """A kernel, a call that waits for it, and another kernel."""

    def __init__(self, kind="stream", event=True, streams=1, recorded=None):
        super().__init__()
        self.end = START + 2000
        for stream in range(streams):
            self.launch_on(100 + 10 * stream, 1 + stream, 0x10 + stream)
            self.op(200 + 10 * stream, 500 + 10 * stream, 1 + stream, stream=7 + stream)
        if recorded:
            self.writer.hit(START + 140, 100, 100, "event record", recorded, 0x10)
            self.writer.hit(START + 150, 100, 100, "wait_event", 20, "cuEventSynchronize", 0x9000)
        elif event:
            self.wait_event(150, 20)
        self.wait(160, 500 + 10 * streams + 10, 20, kind)
        self.launch(600, 21)
        self.op(700, 900, 21)

    def launch_on(self, at, correlation, handle):
        self.writer.hit(START + at, 100, 100, "launch_on", correlation, "cuLaunchKernel", handle)

    def wait_event(self, at, correlation, tid=100):
        self.writer.hit(START + at, tid, 100, "wait", correlation, "cuStreamSynchronize")

    def wait(self, start, end, correlation, kind, stream=7):
        start, end = start + START, end + START
        site, values = "synchronize", ("wait", 0, 1, stream, correlation, kind, 0)
        if kind == "context":
            site, values = "synchronize_context", ("wait", 1, correlation, kind)
        number = self.writer.hit(start, 100, 100, site, *values, track=1)
        self.writer.end(end, 100, 100, site, number)


def path_of(gpu, made):  # noqa: F811
    """Kinds and lengths of the pieces of the critical path, and the numbers of what is not known."""
    path, = gpu(made, "--graph=json")["critical_paths"]
    known = gpu(made, "--json")["not_attributed"]
    assert not known["calls_recorded"]
    pieces = [(piece["kind"], piece["to_ns"] - piece["from_ns"]) for piece in path]
    return pieces, (known["unknown_waits"], known["unknown_wait_ns"])


LAST = [("host", 80), ("launch", 100), ("operation", 200)]


def test_path_goes_through_the_wait_for_a_stream(gpu):  # noqa: F811
    pieces, unknown = path_of(gpu, Waits())
    assert pieces == [("host", 100), ("launch", 100), ("operation", 300), ("return", 20), *LAST]
    assert unknown == (0, 0)


def test_path_goes_through_the_wait_for_an_event(gpu):  # noqa: F811
    pieces, unknown = path_of(gpu, Waits("event", recorded=0x9000))
    assert pieces == [("host", 100), ("launch", 100), ("operation", 300), ("return", 20), *LAST]
    assert unknown == (0, 0)


def test_path_goes_through_the_wait_for_a_context(gpu):  # noqa: F811
    pieces, unknown = path_of(gpu, Waits("context", streams=2))
    # The second stream's kernel ended last.
    assert pieces == [("host", 110), ("launch", 100), ("operation", 300), ("return", 20), ("host", 70), *LAST[1:]]
    assert unknown == (0, 0)


@pytest.mark.parametrize("made", [Waits("event"), Waits(event=False), Waits("event", recorded=0x9008)],
                         ids=["event", "thread", "another"])
def test_wait_for_what_is_not_known_is_said(waffle, gpu, tmp_path, made):  # noqa: F811
    pieces, unknown = path_of(gpu, made)
    assert pieces == [("host", 600), *LAST[1:]]
    assert unknown == (1, 360)
    path = tmp_path / "made.waffle"
    said = waffle.ok("gpu", path).stdout
    assert "\nwhat 1 call of the host waited for is unknown: it counts as time of its thread\n" in said
    assert "\nwaits     1 call of the host waited 360 ns for unknown operations of the GPU\n" in replay(
        waffle, path).stdout
    refused = replay(waffle, path, "--what-if", "kernels: 2x", code=1).stderr
    assert "calls of the host waited for unknown operations of the GPU during 45 % of the time" in refused
    assert refused.count("\n") == 1


def test_what_if_waits_for_a_stream(waffle, text_capture, tmp_path):  # noqa: F811
    path = tmp_path / "made.waffle"
    Waits().write(text_capture, path)
    found = replay_json(waffle, path, "--what-if", "kernels: 0")
    assert (found["measured_ns"], found["error"], found["unknown_waits"]) == (800, 0, 0)
    # Both launches, the return of the call that waits, and the time of the thread.
    assert found["what_if"][0]["replayed_ns"] == 100 + 20 + 80 + 100


def test_two_threads_with_one_number_are_unknown(gpu):  # noqa: F811
    made = Waits()
    made.wait_event(155, 20, tid=101)
    assert path_of(gpu, made)[1] == (1, 360)


def test_a_call_that_makes_another_one_is_known(gpu):  # noqa: F811
    made = Waits()
    made.wait_event(155, 20)
    assert path_of(gpu, made)[1] == (0, 0)


def test_wait_for_nothing_new_is_no_dependency(gpu):  # noqa: F811
    made = Waits("context")
    made.wait_event(910, 22)
    made.wait(911, 912, 22, "context")
    made.wait_event(920, 23)
    made.wait(921, 922, 23, "context")
    assert [sync["operations"] for sync in gpu(made, "--graph=json")["synchronizations"]] == [[0], [1]]
    assert path_of(gpu, made)[1] == (0, 0)


def test_two_threads_that_wait_for_a_context_wait_for_the_same(gpu):  # noqa: F811
    """The second one begins before the first one has returned."""
    made = Waits("context")
    made.wait_event(155, 23, tid=101)
    made.wait(161, 525, 23, "context")
    assert [sync["operations"] for sync in gpu(made, "--graph=json")["synchronizations"]] == [[0], [0]]


def test_probes_know_it_better(gpu):  # noqa: F811
    made = Waits()
    made.writer.hit(START + 95, 100, 100, "cudaLaunchKernel", 0x7F00)
    call = made.writer.hit(START + 145, 100, 100, "cudaStreamSynchronize", 0x7F00)
    made.writer.ret(START + 530, 100, 100, "cudaStreamSynchronize", call, 0x7F00, 0)
    sync, = gpu(made, "--graph=json")["synchronizations"]
    assert (sync["start_ns"], sync["end_ns"]) == (START + 145, START + 530)
    assert gpu(made, "--json")["not_attributed"]["calls_recorded"]


# ---- recorded: the stand-ins of CUDA and CUPTI ----

def test_path_of_a_program_that_records_itself(waffle, tmp_path):
    build, path, steps = pathlib.Path(waffle.program).parent, tmp_path / "self.waffle", 20
    subprocess.run([build / "sim/training", "--ranks", "1", "--steps", str(steps)], check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, "WAFFLE_TRACE": str(path),
                        "CUDA_INJECTION64_PATH": str(build / "libwaffle-gpu.so")})
    found = json.loads(waffle.ok("gpu", "--json", path).stdout)
    assert found["simulated"] and found["not_attributed"]["unknown_waits"] == 0
    path_found, = found["critical_paths"]
    counts = {}
    for part in path_found["parts"]:
        counts[part["kind"]] = counts.get(part["kind"], 0) + part["count"]
    # The thread waits for the GPU at the end of each step.
    assert counts["return"] == steps - 1 and counts["operation"] > 5 * steps
    assert not found["not_attributed"]["scheduler_recorded"]
    said = waffle.ok("gpu", path).stdout
    assert "the wakers of threads are unknown: the scheduler was not recorded\n" in said
    assert "what streams waited for is unknown" not in said

# SPDX-License-Identifier: Apache-2.0
"""`waffle-bpf gpu` on random schedules, against a reference that goes through them instant by instant
(gpu_schedule.py)."""

import collections
import json
import os
import subprocess
import sys

import pytest

import gpu_schedule
import tracer

sys.path.insert(0, str(tracer.ROOT / "tests"))
import validate_perfetto  # noqa: E402

SEEDS = range(30)
CALLS = ["probes", "library", "both"]  # who recorded the calls that order streams


@pytest.fixture(scope="session")
def text_capture(waffle_program, tmp_path_factory):
    return tracer.compile_with_waffle(
        waffle_program, "text_capture.c", tmp_path_factory.mktemp("text") / "text_capture"
    )


@pytest.fixture
def gpu(waffle, text_capture, tmp_path):
    """Writes a schedule, and returns what `gpu` says of it."""

    def ask(schedule, *options):
        path = tmp_path / "made.waffle"
        schedule.write(text_capture, path)
        return json.loads(waffle.ok("gpu", *options, path).stdout)

    return ask


@pytest.mark.parametrize("lossy", [False, True], ids=["whole", "lossy"])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_a_random_schedule_are_those_of_the_reference(gpu, seed, lossy):
    schedule = gpu_schedule.Schedule(seed, lossy=lossy)
    if not schedule.ops:
        pytest.skip("gpu: no operations")
    truth = gpu_schedule.Truth(schedule)
    answer = gpu(schedule, "--json")
    assert answer["simulated"] is False
    assert answer["records"] == len(schedule.ops)
    assert answer["not_attributed"]["without_launch"] == schedule.without
    assert answer["not_attributed"]["unknown_operations"] == schedule.unknown
    assert [(device["pid"], device["device"]) for device in answer["devices"]] == truth.devices()
    for device in answer["devices"]:
        window = device["window_ns"]
        assert window == truth.to_ts - truth.from_ts
        if lossy:
            check_sums(device)
            continue
        expected = truth.device(device["pid"], device["device"])
        assert device["busy_ns"] == expected["busy"]
        assert device["utilization"] == pytest.approx(expected["busy"] / window)
        levels = {level["operations"]: level["ns"] for level in device["concurrency"]}
        assert levels == expected["levels"]
        assert device["max_concurrency"] == max(expected["levels"])
        assert device["communication"] == {"busy_ns": expected["comm"], "exposed_ns": expected["exposed"]}
        assert {key: ns for key, ns in device["idle"].items() if ns} == {
            key: ns for key, ns in expected["idle"].items() if ns
        }
        check_sums(device)
        kernels = {row["name"]: [row["count"], row["total_ns"]] for row in device["kernels"]}
        assert kernels == truth.sums(device["pid"], device["device"], "kernel")
        delays = truth.delays(device["pid"], device["device"])
        assert device["launch_delay"] == {
            "count": len(delays),
            "total_ns": sum(delays),
            "p50_ns": delays[(len(delays) * 50 + 99) // 100 - 1],
            "p99_ns": delays[(len(delays) * 99 + 99) // 100 - 1],
            "max_ns": delays[-1],
        }
        for stream in device["streams"]:
            expected = truth.states(device["pid"], device["device"], stream["stream"])
            assert stream["states"] == {f"{state}_ns": ns for state, ns in expected.items()}


def check_sums(device):
    window = device["window_ns"]
    assert sum(device["idle"].values()) == window - device["busy_ns"]
    assert sum(level["ns"] for level in device["concurrency"]) == window
    for stream in device["streams"]:
        assert sum(stream["states"].values()) == window


def numbers(schedule, graph):
    """Operations by their bits. Those of the schedule are in the order of the graph."""
    ids = [op["id"] for op in graph["operations"] if op["kind"] != "wait"]
    return {op.bit: number for op, number in zip(schedule.ops, ids, strict=True)}


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_dependencies_of_a_random_schedule_are_all_that_cuda_orders(gpu, seed, calls):
    schedule = gpu_schedule.Schedule(seed, actions=80, calls=calls)
    graph = gpu(schedule, "--graph=json")
    before = gpu_schedule.closure(graph)
    number = numbers(schedule, graph)
    assert not any(edge.get("violated") for edge in graph["edges"])
    for op in schedule.ops:
        assert before[number[op.bit]] == {number[bit] for bit in gpu_schedule.bits(op.before)}, op


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_critical_path_of_a_random_schedule_is_that_of_the_reference(gpu, seed, calls):
    schedule = gpu_schedule.Schedule(seed, actions=80, calls=calls)
    truth = gpu_schedule.Truth(schedule)
    graph = gpu(schedule, "--graph=json")
    number = numbers(schedule, graph)
    pids = sorted({op.pid for op in schedule.ops})
    assert len(graph["critical_paths"]) == len(pids)
    for pid, path in zip(pids, graph["critical_paths"]):
        got = [
            (piece["kind"], piece["from_ns"], piece["to_ns"], piece.get("operation", piece.get("tid")))
            for piece in path
        ]
        assert got == [
            (kind, low, high, number[what] if kind in ("operation", "gap", "launch") else what)
            for kind, low, high, what in truth.path(pid)
        ]
        assert all(one[2] == two[1] for one, two in zip(got, got[1:]))


@pytest.mark.parametrize("lossy", [False, True], ids=["whole", "lossy"])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_the_same_if_operations_are_among_the_spans(waffle, text_capture, tmp_path, seed, lossy):
    """Without a filter, operations are kept apart from the spans. A filter that everything passes needs
    them there."""
    path = tmp_path / "made.waffle"
    gpu_schedule.Schedule(seed, lossy=lossy).write(text_capture, path)
    for output in ("--json", "--graph=json", "--top=0"):
        alone = waffle.call("gpu", output, path).stdout
        among = waffle.call("gpu", output, "--filter", "tid >= 0", path).stdout
        assert alone == among


@pytest.mark.parametrize("seed", range(5))
def test_text_and_dot_have_all_operations(waffle, text_capture, tmp_path, seed):
    schedule = gpu_schedule.Schedule(seed)
    path = tmp_path / "made.waffle"
    schedule.write(text_capture, path)
    text = waffle.ok("gpu", "--top=0", path).stdout
    for pid, device in gpu_schedule.Truth(schedule).devices():
        assert f"GPU {device} of process {pid}" in text
    dot = waffle.ok("gpu", "--graph=dot", path).stdout
    assert dot.startswith("digraph gpu {") and dot.rstrip().endswith("}")
    for index in range(len(schedule.ops)):
        assert f"\to{index} [label=" in dot


# ---- captures with known faults ----


class Made:
    """A process with one stream, made by hand."""

    def __init__(self):
        self.writer = gpu_schedule.Writer()
        self.writer.line("process", 100)
        self.writer.line("task", gpu_schedule.START, 100, 100, "main")
        self.writer.line("track", gpu_schedule.START, 100, 1, "stream 7", "GPU 0")
        self.end = gpu_schedule.START + 1_000_000

    def launch(self, at, correlation, tid=100):
        at += gpu_schedule.START
        self.writer.hit(at, tid, 100, "launch", correlation, "cuLaunchKernel")

    def op(self, start, end, correlation, stream=7, kind="kernel", site="kernel"):
        start, end = start + gpu_schedule.START, end + gpu_schedule.START
        number = self.writer.hit(start, 100, 100, site, kind, 0, 1, stream, correlation, track=1)
        self.writer.end(end, 100, 100, site, number)

    def session(self, at, state, simulated=0):
        self.writer.hit(gpu_schedule.START + at, 100, 100, "session", state, simulated, 0)

    def write(self, program, path):
        self.writer.write(program, path, self.end)


class Named(Made):
    """Kernels with names of their own."""

    def __init__(self):
        super().__init__()
        self.sites = {}

    def kernel(self, start, end, name, stream=7):
        start, end, number = start + gpu_schedule.START, end + gpu_schedule.START, self.writer.id()
        if name not in self.sites:
            self.writer.line("site", gpu_schedule.SPAN, "none", 0, "gpu", name, *gpu_schedule.OP_KEYS)
            self.sites[name] = len(gpu_schedule.NAMES) + len(self.sites)
        self.writer.line("hit", start, 100, 100, self.sites[name], number, 0, 1, "kernel", 0, 1, stream, number)
        self.writer.line("end", end, 100, 100, self.sites[name], number)


class Ordered(Made):
    """Two streams, whose calls the library recorded. The second one waits for an event of the first."""

    def __init__(self, context=False, captured=False, handle=True):
        super().__init__()
        self.handle = handle
        self.put(100, 1, 0x10)
        self.op(200, 500, 1, stream=7)
        if captured:
            self.hit(300, "capture begin", 0x10)
        self.hit(310, "event record of a context", 0x9000) if context else self.hit(310, "event record", 0x9000, 0x10)
        self.hit(320, "stream wait", 0x9000, 0x20)
        if captured:
            self.hit(330, "capture end", 0x10, 0)
        self.put(400, 2, 0x20)
        self.op(600, 700, 2, stream=8)

    def hit(self, at, site, *values):
        self.writer.hit(gpu_schedule.START + at, 100, 100, site, *values)

    def put(self, at, correlation, handle):
        if self.handle:
            self.hit(at, "launch_on", correlation, "cuLaunchKernel", handle)
        else:
            self.launch(at, correlation)


@pytest.mark.parametrize("ordered, edges", [
    (Ordered(), [(0, 1)]), (Ordered(context=True), []), (Ordered(captured=True), []), (Ordered(handle=False), [])],
    ids=["event", "context", "captured", "stream"])
def test_event_of_the_library_orders_streams_that_are_known_and_run(gpu, ordered, edges):
    graph = gpu(ordered, "--graph=json")
    assert [(edge["from"], edge["to"]) for edge in graph["edges"]] == edges
    known = gpu(ordered, "--json")["not_attributed"]
    assert (known["calls_recorded"], known["events_recorded"]) == (False, True)


def test_operation_with_a_repeated_correlation_id_has_no_launch(gpu):
    made = Made()
    made.launch(100, 1)
    made.launch(200, 2)
    made.launch(300, 1)
    made.op(400, 500, 1)
    made.op(600, 700, 2)
    answer = gpu(made, "--json")
    assert answer["not_attributed"]["repeated_correlation"] == 1
    assert answer["devices"][0]["launch_delay"]["count"] == 1


def test_correlation_ids_begin_anew_with_each_arming(gpu):
    made = Made()
    made.session(10, "armed")
    made.launch(100, 1)
    made.op(200, 300, 1)
    made.session(400, "disarmed")
    made.session(500, "armed")
    made.launch(600, 1)
    made.op(700, 800, 1)
    graph = gpu(made, "--graph=json")
    assert [op["launch"] for op in graph["operations"]] == [0, 1]
    assert gpu(made, "--json")["not_attributed"]["repeated_correlation"] == 0


def test_window_of_a_device_is_the_time_in_which_it_was_recorded(gpu):
    made = Made()
    made.session(1000, "armed")
    made.launch(1100, 1)
    made.op(1500, 2000, 1)
    made.session(3000, "disarmed")
    device = gpu(made, "--json")["devices"][0]
    assert (device["window_ns"], device["busy_ns"]) == (2000, 500)
    assert device["idle"]["launch_starved_ns"] == 100 + 1000


def test_stream_without_operations_is_no_row(waffle, text_capture, tmp_path):
    made = Made()
    made.op(200, 300, 1)
    made.op(200, 300, 2, stream=8, kind="wait", site="odd")
    made.write(text_capture, tmp_path / "made.waffle")
    lines = waffle.ok("gpu", tmp_path / "made.waffle").stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("STREAMS"))
    assert lines[first + 1].split()[:2] == ["7", "1"]
    assert lines[first + 2] == "  1 stream without operations in this time"


def test_stand_in_is_called_simulated_in_all_outputs(waffle, text_capture, tmp_path, gpu):
    made = Made()
    made.session(10, "armed", simulated=1)
    made.op(200, 300, 1)
    assert gpu(made, "--json")["simulated"] is True
    assert gpu(made, "--graph=json")["simulated"] is True
    for command in ("gpu", "report", "view"):
        assert "simulated" in waffle.ok(command, tmp_path / "made.waffle").stdout


PARTS = [(), ("--filter", "dur > 1us"), ("--from", "20us"), ("--to", "900us")]


@pytest.mark.parametrize("part", PARTS, ids=["whole", "filter", "from", "to"])
def test_part_without_the_event_that_says_so_is_called_simulated(waffle, text_capture, tmp_path, part):
    made = Waiting(LONG_AND_SHORT)
    made.session(10, "armed", simulated=1)
    path, out = tmp_path / "made.waffle", tmp_path / "out"
    made.write(text_capture, path)
    for command in (["gpu"], ["gpu", "--graph=dot"], ["gpu", "--graph=json"], ["report"], ["view"]):
        assert "simulated" in waffle.ok(*command, *part, path).stdout, command
    for command in ("gpu", "report"):
        assert '"simulated": true' in waffle.ok(command, "--json", *part, path).stdout
    for form in ("perfetto", "chrome", "ndjson", "records", "otlp", "zipkin", "sqlite", "prometheus"):
        waffle.ok("export", "-f", form, "-o", out, *part, path)
        assert b"simulated" in out.read_bytes(), form
    if "--filter" in part:
        assert "simulated" in waffle.ok("why", *part, path).stdout
        assert "simulated" in waffle.ok("report", "--where", part[1], path).stdout
    else:
        assert "simulated" in waffle.ok("replay", *part, path).stdout


def test_report_folds_the_names_of_kernels(waffle, text_capture, tmp_path):
    made, name = Named(), "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel<Add<float> > >(int, Add<float>)"
    made.kernel(100, 150, name)
    path = tmp_path / "made.waffle"
    made.write(text_capture, path)
    text = waffle.ok("report", path).stdout
    assert text.count("  void at::native::elementwise_kernel<…> ") == 2  # spans, slowest
    assert name not in text
    assert [row["name"] for row in json.loads(waffle.ok("report", "--json", path).stdout)["spans"]] == [name]


def test_capture_without_times_says_how_to_get_them(waffle, text_capture, tmp_path):
    made = Made()
    made.write(text_capture, tmp_path / "made.waffle")
    result = waffle.call("gpu", tmp_path / "made.waffle")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and "run --gpu" in result.stderr


def test_operation_that_began_before_its_launch_is_counted_and_has_none(gpu):
    made = Made()
    made.launch(500, 1)
    made.op(400, 600, 1)
    answer = gpu(made, "--json")
    assert answer["not_attributed"]["before_launch"] == 1
    check_sums(answer["devices"][0])


def test_hundred_thousand_streams_and_a_graph_of_a_hundred_thousand_nodes(gpu):
    made = Made()
    for stream in range(100_000):
        made.op(1000 + stream, 200_000 + stream, 0, stream=stream)
    made.launch(100, 5)
    for node in range(100_000):
        made.op(200 + node, 300_000 + 7919 * node % 100_000, 5, stream=200_000)
    answer = gpu(made, "--json")
    device = answer["devices"][0]
    assert answer["records"] == 200_000 and len(device["streams"]) == 100_001
    assert device["busy_ns"] == 399_999 - 200
    check_sums(device)


# ---- captures that are made to be slow ----

MANY = 40_000


class Streams(Made):
    """Each of many streams has one operation."""

    def __init__(self, blocking=False):
        super().__init__()
        self.at = 0
        for number in range(MANY):
            handle = 0x1000 + 16 * number
            self.at += 10
            if blocking:
                call = self.writer.hit(gpu_schedule.START + self.at, 100, 100, "cudaStreamCreate", 0)
                self.writer.ret(gpu_schedule.START + self.at + 1, 100, 100, "cudaStreamCreate", call, 1, handle, 0)
            self.put(handle, 10 + number, number + 1)

    def put(self, handle, stream, correlation):
        begin = gpu_schedule.START + self.at
        self.writer.hit(begin + 3, 100, 100, "cudaLaunchKernel", handle)
        self.launch(self.at + 4, correlation)
        self.op(self.at + 5, self.at + 7, correlation, stream=stream)
        self.at += 10

    def wait(self, name, *values):
        """Calls of as many threads, each of which begins before the one before it has returned."""
        for call in range(MANY):
            begin = gpu_schedule.START + self.at
            number = self.writer.hit(begin, 200 + call, 100, name, *values)
            self.writer.ret(self.end - 1, 200 + call, 100, name, number, len(values), 0)
            self.at += 10


def answer_of(gpu, made):
    made.end = gpu_schedule.START + made.at + 1000
    answer = gpu(made, "--json")
    assert answer["not_attributed"]["edges_left_out"] > 0
    for device in answer["devices"]:
        check_sums(device)
    return answer


def test_many_threads_that_wait_for_a_device_with_many_streams(gpu):
    made = Streams()
    made.end = gpu_schedule.START + 100_000_000
    made.wait("cudaDeviceSynchronize")
    assert answer_of(gpu, made)["records"] == MANY


def test_many_threads_that_wait_for_a_default_stream_with_many_blocking_streams(gpu):
    made = Streams(blocking=True)
    made.end = gpu_schedule.START + 100_000_000
    made.put(0, 7, MANY + 1)
    for number in range(MANY):
        made.put(0x1000 + 16 * number, 10 + number, MANY + 2 + number)
    made.wait("cudaStreamSynchronize", 0)
    assert answer_of(gpu, made)["records"] == 2 * MANY + 1


def test_graph_of_many_nodes_that_wait_for_many_streams(gpu):
    made = Streams(blocking=True)
    begin = gpu_schedule.START + made.at
    made.writer.hit(begin, 100, 100, "cudaGraphLaunch", 0)
    made.launch(made.at + 1, MANY + 1)
    for node in range(4 * MANY):
        made.op(made.at + 2, made.at + 1_000_000 + node, MANY + 1)
    made.at += 2_000_000
    assert answer_of(gpu, made)["records"] == 5 * MANY


def test_many_waits_for_an_event_of_many_streams(gpu):
    made = Streams(blocking=True)
    begin = gpu_schedule.START + made.at
    made.writer.hit(begin, 100, 100, "cudaEventRecord", 0x9000, 0)
    for number in range(MANY):
        made.writer.hit(begin + 1 + number, 100, 100, "cudaStreamWaitEvent", 0x1000 + 16 * number, 0x9000)
        made.writer.hit(begin + 1 + number, 100, 100, "cudaEventRecord", 0x9008, 0x1000 + 16 * number)
    made.at += 1_000_000
    assert answer_of(gpu, made)["records"] == MANY


def test_launches_within_deeply_nested_calls(gpu):
    made = Made()
    for call in range(MANY):
        made.writer.hit(gpu_schedule.START + 10 + call, 100, 100, "cudaMemcpyAsync", 16)
    for number in range(MANY):
        made.launch(MANY + 100 + number, number + 1)
        made.op(MANY + 100 + number, MANY + 101 + number, number + 1)
    answer = gpu(made, "--json")
    assert answer["devices"][0]["spans"] == []
    assert answer["devices"][0]["launch_delay"]["count"] == MANY


@pytest.mark.parametrize("jump", [2**40, 2**61])
def test_clock_that_jumps(gpu, waffle, tmp_path, jump):
    made = Made()
    for number in range(1, 10):
        made.launch(100 * number, number)
        start, end = 100 * number + 10, 100 * number + 20
        made.op(start + (jump if number == 5 else 0), end + (jump if number > 4 else 0), number)
    made.op(0, 2**62, 77, stream=8)
    answer = gpu(made, "--json")
    assert answer["records"] == 10
    check_sums(answer["devices"][0])
    assert waffle.call("replay", tmp_path / "made.waffle").returncode in (0, 1)


def test_all_operations_have_one_correlation_id(gpu):
    made = Made()
    for number in range(MANY):
        made.launch(10 * number, 5, tid=100 + number % 2)
        made.op(10 * number + 5, 10 * number + 9, 5)
    answer = gpu(made, "--json")
    assert answer["not_attributed"]["repeated_correlation"] == MANY
    check_sums(answer["devices"][0])


# ---- why, by the GPU's times ----


class Waiting(Made):
    """A thread that launches on two streams and blocks in cudaDeviceSynchronize."""

    def __init__(self, kernels, times=True, blocks=True):
        super().__init__()
        begin = gpu_schedule.START
        self.writer.line("state", begin, 100, 100, 0, 1)
        step = self.writer.hit(begin + 1_000, 100, 100, "step")
        for i, (stream, start, end, site) in enumerate(kernels):
            self.writer.hit(begin + 2_000 + 10 * i, 100, 100, "cudaLaunchKernel", stream)
            self.launch(2_005 + 10 * i, i + 1)
            if times:
                self.op(start, end, i + 1, stream=stream, site=site)
        number = self.writer.hit(begin + 10_000, 100, 100, "cudaDeviceSynchronize")
        if blocks:
            self.writer.line("switch", begin + 11_000, 0, 100, 0, 1, 0, 0, 202)
            self.writer.line("switch", begin + 901_000, 0, 0, 100, 0, begin + 900_500, 0, -1)
        self.writer.ret(begin + 902_000, 100, 100, "cudaDeviceSynchronize", number, 0, 0)
        self.writer.end(begin + 903_000, 100, 100, "step", step)


LONG_AND_SHORT = [(0x10, 20_000, 900_000, "kernel"), (0x20, 20_000, 30_000, "nccl")]


@pytest.fixture
def cause(waffle, text_capture, tmp_path):
    def ask(made):
        path = tmp_path / "made.waffle"
        made.write(text_capture, path)
        answer = json.loads(waffle.ok("why", "--json", "--span=step", path).stdout)
        return next(part for part in answer["instances"][0]["causes"] if part["cause"] == "gpu")

    return ask


def test_why_names_the_kernel_that_ran_while_the_thread_waited(cause):
    part = cause(Waiting(LONG_AND_SHORT))
    assert part["grade"] == "certain"
    assert part["culprit"]["object"] == "kernel gemm<float> on stream 16 of GPU 0"
    assert part["chain"][0]["meaning"].endswith("kernel gemm<float> on stream 16 of GPU 0 ran for 880 us")


def test_thread_that_spins_while_a_kernel_runs_certainly_waits_for_it(cause):
    part = cause(Waiting([(0x10, 20_000, 900_000, "kernel")], blocks=False))
    assert (part["grade"], part["duration_ns"]) == ("certain", 890_000)
    part = cause(Waiting([(0x10, 20_000, 900_000, "kernel")], blocks=False, times=False))
    assert part["grade"] == "likely"


def test_why_infers_from_the_calls_without_times(cause):
    part = cause(Waiting(LONG_AND_SHORT, times=False))
    assert part["grade"] == "unknown"  # of two streams
    assert "stream 0x10" in part["culprit"]["object"]


def test_why_leaves_a_collective_to_the_ranks(cause):
    part = cause(Waiting([(0x10, 20_000, 30_000, "kernel"), (0x20, 20_000, 900_000, "nccl")]))
    assert part["grade"] == "unknown"


def test_launching_thread_is_explained_where_the_gpu_was_starved(gpu):
    made = Waiting(LONG_AND_SHORT)
    begin = gpu_schedule.START
    made.writer.line("switch", begin + 910_000, 0, 100, 0, 1, 0, 0, 0)
    made.writer.line("switch", begin + 960_000, 0, 0, 100, 0, begin + 959_000, 0, -1)
    made.launch(970_000, 9)
    made.op(975_000, 1_000_000, 9)
    answer = gpu(made, "--json")
    device = answer["devices"][0]
    assert device["starved"][0]["from_ns"] == begin + 900_000
    assert device["starved"][0]["to_ns"] == begin + 970_000
    assert sum(cause["ns"] for cause in answer["starved_causes"]) == device["idle"]["launch_starved_ns"]
    assert len(answer["starved_causes"]) > 1


def test_text_says_how_many_starved_times_are_explained(waffle, text_capture, tmp_path):
    def text(made):
        path = tmp_path / "made.waffle"
        made.write(text_capture, path)
        return waffle.ok("gpu", path).stdout

    made = Waiting(LONG_AND_SHORT)
    assert "explained: " not in text(made)
    for at in range(1_000_000, 1_150_000, 1000):
        made.launch(at, at)
        made.op(at + 100, at + 200, at)
    made.end += 1_000_000
    assert "  explained: the longest 100 of 152 launch-starved times, together " in text(made)


def test_perfetto_has_an_arrow_from_each_launch_to_its_operation(waffle, text_capture, tmp_path):
    path, out = tmp_path / "made.waffle", tmp_path / "made.pftrace"
    Waiting(LONG_AND_SHORT).write(text_capture, path)
    waffle.ok("export", "--format=perfetto", "-o", out, path)
    trace = validate_perfetto.load(out)
    assert not trace.violations
    arrows = {(cause.name, effect.name) for cause, effect in trace.flows}
    assert {("cudaLaunchKernel", "gemm<float>"), ("cudaLaunchKernel", "ncclDevKernel_AllReduce")} <= arrows
    assert {slice.track.name for slice in trace.slices} >= {"stream 7"}


def test_time_after_the_last_operation_is_not_the_gpus(waffle, text_capture, tmp_path):
    """The thread is woken 300 us after its kernel has ended."""
    path = tmp_path / "made.waffle"
    Waiting([(0x10, 20_000, 600_000, "kernel")]).write(text_capture, path)
    answer = json.loads(waffle.ok("why", "--json", "--span=step", path).stdout)
    times = {row["cause"]: row["duration_ns"] for row in answer["instances"][0]["by_cause"]}
    assert times["gpu"] == 600_000 - 10_000


def test_critical_path_goes_on_with_the_thread_that_woke_the_launching_one(gpu):
    """As in a backward pass: "main" hands work to a thread of a library, and both launch."""
    made = Made()
    begin = gpu_schedule.START
    made.writer.line("task", begin, 101, 100, "autograd")
    made.writer.line("state", begin, 100, 100, 0, 1)
    made.writer.line("state", begin, 101, 100, 1, 3)
    step = made.writer.hit(begin + 1_000, 100, 100, "step")
    made.launch(2_000, 1)
    made.op(3_000, 4_000, 1)
    made.writer.line("switch", begin + 11_000, 1, 0, 101, 0, begin + 10_000, 100, -1)
    made.launch(20_000, 2, tid=101)
    made.op(21_000, 30_000, 2)
    made.writer.end(begin + 50_000, 100, 100, "step", step)
    path = gpu(made, "--graph=json")["critical_paths"][0]
    got = [(piece["kind"], piece["from_ns"] - begin, piece["to_ns"] - begin, piece.get("tid")) for piece in path]
    assert got == [
        ("host", 0, 10_000, 100), ("host", 10_000, 20_000, 101),
        ("launch", 20_000, 21_000, None), ("operation", 21_000, 30_000, None),
    ]
    parts = gpu(made, "--json")["critical_paths"][0]["parts"]
    assert {(part["name"], part.get("span")) for part in parts if part["kind"] == "host"} == {
        ("main", "step"), ("autograd", None),
    }


class Copying(Made):
    """A thread launches a kernel and copies from or to the stream's memory, in a call of 500 us that names the
    stream. `kernel`: when the kernel runs. `copy`: when the copy does."""

    def __init__(self, direction, kernel, copy):
        super().__init__()
        begin = gpu_schedule.START
        self.session(10, "armed")
        self.writer.line("state", begin, 100, 100, 0, 1)
        step = self.writer.hit(begin + 1_000, 100, 100, "step")
        if kernel:
            self.writer.hit(begin + 2_000, 100, 100, "cudaLaunchKernel", 0x10)
            self.launch(2_005, 1)
            self.op(*kernel, 1)
        number = self.writer.hit(begin + 10_000, 100, 100, "cudaMemcpyAsync", 0x10)
        self.launch(11_000, 2)
        start, end = copy
        op = self.writer.hit(begin + start, 100, 100, "copy", "copy", 0, 1, 7, 2, direction, 4, track=1)
        self.writer.end(begin + end, 100, 100, "copy", op)
        self.writer.ret(begin + 510_000, 100, 100, "cudaMemcpyAsync", number, 1, 0)
        self.writer.end(begin + 520_000, 100, 100, "step", step)


@pytest.mark.parametrize("direction, kernel, copy, expected", [
    ("DtoH", (5_000, 480_000), (490_000, 495_000), ("certain", 485_000, "kernel gemm<float> on stream 7 of GPU 0")),
    # The driver works on such a copy itself, once the stream has come to it.
    ("HtoD", (5_000, 410_000), (411_000, 509_000), ("certain", 400_000, "kernel gemm<float> on stream 7 of GPU 0")),
    # Another process may have had the GPU.
    ("DtoH", (450_000, 480_000), (490_000, 495_000), ("likely", 485_000, "stream 7 of GPU 0, on which nothing ran")),
    # The copy was not done when the call returned: the memory is page-locked.
    ("DtoH", (5_000, 480_000), (515_000, 519_000), None),
    ("DtoD", (5_000, 480_000), (490_000, 495_000), None),
    # The driver took long to submit it.
    ("DtoH", None, (490_000, 495_000), None),
    ("DtoH", (5_000, 60_000), (490_000, 495_000), None),
    # The call went on for long: it waited for something else.
    ("DtoH", (5_000, 150_000), (155_000, 160_000), None),
], ids=["from the device", "to the device", "stalled", "page-locked", "on the device", "alone", "late", "early"])
def test_copy_that_names_a_stream_waited_if_the_times_show_it(waffle, text_capture, tmp_path, direction, kernel, copy,
                                                              expected):
    path = tmp_path / "made.waffle"
    Copying(direction, kernel, copy).write(text_capture, path)
    answer = json.loads(waffle.ok("why", "--json", "--span=step", path).stdout)
    parts = [part for part in answer["instances"][0]["causes"] if part["cause"] == "gpu"]
    assert [(part["grade"], part["duration_ns"], part["culprit"]["object"]) for part in parts] == [expected] * bool(expected)


@pytest.mark.parametrize("other", [False, True])
def test_a_stall_may_be_another_processs_only_if_the_program_had_no_other_work(waffle, text_capture, tmp_path, other):
    path = tmp_path / "made.waffle"
    made = Copying("DtoH", (450_000, 480_000), (490_000, 495_000))
    if other:
        made.op(20_000, 300_000, 7, stream=9)
    made.write(text_capture, path)
    text = waffle.ok("why", "--json", "--span=step", path).stdout
    assert "nothing ran on stream 7 of GPU 0; " in text
    assert ("the GPU may have worked for another process" in text) != other


def test_critical_path_goes_through_a_copy_that_waited(gpu):
    path = gpu(Copying("DtoH", (5_000, 480_000), (490_000, 495_000)), "--graph=json")["critical_paths"][0]
    assert [piece["kind"] for piece in path][-3:] == ["operation", "gap", "operation"]


@pytest.mark.parametrize("length, little", [(20_000, True), (200_000, False)])
def test_calls_and_operations_that_take_little_do_not_come_before_the_thread(waffle, text_capture, tmp_path, length,
                                                                            little):
    """The thread runs all the time, 1 ms."""
    made, begin = Made(), gpu_schedule.START
    made.writer.line("state", begin, 100, 100, 0, 1)
    number = made.writer.hit(begin + 10_000, 100, 100, "cudaMemcpyAsync", 0x10)
    made.launch(11_000, 2)
    made.op(12_000, 900_000, 2)
    made.writer.ret(begin + 10_000 + length, 100, 100, "cudaMemcpyAsync", number, 1, 0)
    path = tmp_path / "made.waffle"
    made.write(text_capture, path)
    result = waffle.ok("why", path)
    assert ("the spans take little of the time" in result.stderr) == little
    assert ("cudaMemcpyAsync" in result.stdout.split()[0]) != little


class Held(Made):
    """A thread is in one call of CUDA after the other, 200 us each, and wakes another thread behind each."""

    def __init__(self):
        super().__init__()
        begin = gpu_schedule.START
        self.writer.line("task", begin, 101, 100, "asker")
        self.writer.line("state", begin, 100, 100, 0, 1)
        self.writer.line("state", begin, 101, 100, 1, 3)
        for at in range(begin + 10_000, begin + 810_000, 200_000):
            number = self.writer.hit(at, 100, 100, "cudaMemcpyAsync", 0x10)
            self.writer.line("switch", at + 1_000, 1, 101, 0, 1, 0, 0, 202)
            self.writer.ret(at + 190_000, 100, 100, "cudaMemcpyAsync", number, 1, 0)
            self.writer.line("switch", at + 196_000, 1, 0, 101, 0, at + 195_000, 100, -1)


def test_threads_that_wait_for_the_caller_are_listed_below_its_calls(waffle, text_capture, tmp_path):
    path = tmp_path / "made.waffle"
    Held().write(text_capture, path)
    lines = waffle.ok("why", path).stdout.splitlines()
    title = lines.index("Threads that wait for main (100):")
    assert "asker (101)" in lines[title + 1] and not lines[title + 2]
    assert "Threads that wait for" not in waffle.ok("why", "--span=cudaMemcpyAsync", path).stdout
    answer = json.loads(waffle.ok("why", "--json", path).stdout)
    assert [waiter["thread"]["tid"] for waiter in answer["waiters"]] == [101]


def test_synchronisation_needs_no_launch(gpu):
    made = Made()
    made.op(100, 200, 1)
    made.op(300, 400, 7, kind="wait")
    answer = gpu(made, "--json")
    assert answer["not_attributed"]["unknown_operations"] == 0
    assert answer["not_attributed"]["without_launch"] == 1  # the kernel


def test_call_that_had_nothing_to_wait_for_is_not_the_gpus(waffle, text_capture, tmp_path):
    path = tmp_path / "made.waffle"
    Waiting([(0x10, 3_000, 5_000, "kernel")]).write(text_capture, path)
    answer = json.loads(waffle.ok("why", "--json", "--span=step", path).stdout)
    assert "gpu" not in [row["cause"] for row in answer["instances"][0]["by_cause"]]


def test_time_after_the_last_delivered_operation_is_in_no_window(gpu):
    """The tracer ended before the library delivered what was launched last."""
    made = Made()
    made.session(1000, "armed")
    made.launch(1500, 1)
    made.op(2000, 3000, 1)
    made.launch(5000, 2)
    made.launch(6000, 3)
    device = gpu(made, "--json")["devices"][0]
    assert device["window_ns"] == 4000
    assert device["idle"] == {
        "launch_starved_ns": 500 + 2000, "blocking_ns": 0, "dependency_stalled_ns": 500, "unknown_ns": 0,
    }


# ---- from the library to the numbers ----


def test_operations_of_a_simulated_program_are_those_that_cupti_delivered(waffle, waffle_program, tmp_path):
    build, path, log = waffle_program.parent, tmp_path / "calls.waffle", tmp_path / "cupti.log"
    subprocess.run([build / "sim/calls"], check=True, stdout=subprocess.DEVNULL, timeout=120, env={
        **os.environ, "CUDA_INJECTION64_PATH": str(build / "libwaffle-gpu.so"),
        "WAFFLE_TRACE": str(path), "WAFFLE_SIM_CUPTI_LOG": str(log),
    })
    delivered = collections.Counter(json.loads(line)["kind"] for line in log.read_text().splitlines())
    answer = json.loads(waffle.ok("gpu", "--json", path).stdout)
    assert answer["simulated"] is True
    counts = {
        kind: sum(row["count"] for device in answer["devices"] for row in device[kind])
        for kind in ("kernels", "copies", "sets")
    }
    # Kinds of CUPTI: 10 is a kernel, 1 and 22 are copies, 2 is a set.
    assert counts == {"kernels": delivered[10], "copies": delivered[1] + delivered[22], "sets": delivered[2]}
    assert answer["not_attributed"]["without_launch"] == 0
    for device in answer["devices"]:
        check_sums(device)
    text = waffle.ok("gpu", path).stdout
    assert "\nwhat threads did while nothing was launched is unknown: the scheduler was not recorded\n" in text

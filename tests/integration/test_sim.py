# SPDX-License-Identifier: Apache-2.0
"""The stand-ins of CUDA and NCCL (docs/simulation.md): they have the borders of the real libraries,
they do what a program asks of them, and what waffle-bpf says of a simulated run is what the
program's own log says."""

import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import nvidia
import pytest

from sim_log import read_log
from tracer import ROOT

SOURCES = ROOT / "tests" / "sim"
MARK = "waffle_simulation"  # the one symbol that the real libraries don't have
RANKS, STEPS = 4, 12
MS = 1_000_000


@pytest.fixture(scope="session")
def sim(waffle_program):
    """The folder of the stand-ins and their programs."""
    folder = waffle_program.parent / "sim"
    assert (folder / "libnccl.so.2").exists(), f"{folder} is not built; run make sim"
    return folder


@pytest.fixture(scope="session", name="nvidia")
def nvidia_folder():
    """The folder of NVIDIA's wheels, which are there for x86-64 only."""
    folder = nvidia.folder()
    if not folder and os.uname().machine != "x86_64":
        pytest.skip("no NVIDIA libraries for this machine")
    assert folder, "NVIDIA's libraries are not installed; run make setup"
    return folder


def run(*command, code=0, **environment):
    result = subprocess.run(
        [str(x) for x in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == code, f"exit {result.returncode}: {result.stderr}"
    return result


def exported(library):
    """{name: (version, binding)} of the functions and data that a library exports."""
    text = run("readelf", "-W", "--dyn-syms", library).stdout
    symbols = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 8 or words[6] == "UND" or words[3] not in ("FUNC", "OBJECT"):
            continue
        if words[4] not in ("GLOBAL", "WEAK"):
            continue
        name, _, version = words[7].partition("@@")
        symbols[name] = (version, words[4])
    return symbols


# ---- (a) the borders of the real libraries ----

REAL = {
    "libcudart.so.12": "cuda_runtime/lib/libcudart.so.12",
    "libcudart.so.13": "cu13/lib/libcudart.so.13",
    "libnccl.so.2": "nccl/lib/libnccl.so.2",
}


@pytest.mark.parametrize("name", REAL)
def test_all_that_a_stand_in_exports_is_in_the_real_library_with_the_same_version(
    sim, nvidia, name
):
    ours, real = exported(sim / name), exported(nvidia / REAL[name])
    del ours[MARK]
    assert len(ours) > 40
    assert {key: real.get(key) for key in ours} == ours


def sonames(library):
    text = run("readelf", "-d", library).stdout
    return re.findall(r"\((SONAME)\).*\[(.*)\]", text)


@pytest.mark.parametrize("name", REAL)
def test_sonames_are_those_of_the_real_libraries(sim, nvidia, name):
    assert sonames(sim / name) == sonames(nvidia / REAL[name]) == [("SONAME", name)]


def test_nccl_and_pnccl_are_one_function_as_in_the_real_library(sim, nvidia):
    for library in (sim / "libnccl.so.2", nvidia / REAL["libnccl.so.2"]):
        text = run("readelf", "-W", "--dyn-syms", library).stdout
        at = {w[7]: w[1] for w in map(str.split, text.splitlines()) if len(w) > 7}
        assert at["ncclAllReduce"] == at["pncclAllReduce"]
        assert at["ncclGroupEnd"] == at["pncclGroupEnd"]


# What NVIDIA's headers include that is for its compiler only, or in other wheels.
SHIMS = {
    "crt/host_defines.h": """
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define CUDARTAPI
#define CUDARTAPI_CDECL
""",
    "cuda_runtime.h": "#include <cuda_runtime_api.h>\n",
    "cuda_fp16.h": "",
    "cuda_bf16.h": "",
    "cuda_fp8.h": "",
}


@pytest.mark.parametrize("include", ["cuda_runtime/include", "cu13/include"])
def test_signatures_are_those_of_nvidias_headers(nvidia, tmp_path, include):
    """The stand-ins are compiled with NVIDIA's headers in place of their own: a definition that
    differs from its declaration is an error."""
    for name, text in SHIMS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    folders = [SOURCES, tmp_path, nvidia / include, nvidia / "nccl" / "include"]
    sources = [p for p in SOURCES.glob("*.c") if p.name not in ("stream.c", "simulation.c")]
    assert len(sources) >= 8
    run(
        "gcc",
        "-D_GNU_SOURCE",
        "-DSIM_NVIDIA_HEADERS",
        "-std=gnu17",
        "-Wall",
        "-Werror",
        "-fsyntax-only",
        *[f"-I{folder}" for folder in folders],
        *sources,
    )


def test_all_of_libcuda_is_declared_in_nvidias_header(sim, nvidia):
    """The driver comes with a GPU only; its header names what it exports. A second body is named
    in the header by a macro."""
    header = (nvidia / "cuda_runtime/include/cuda.h").read_text()
    ours = set(exported(sim / "libcuda.so.1")) - {MARK}
    assert len(ours) > 60
    missing = set()
    for name in ours:
        base = re.sub(r"_pt[sd][sz]$", "", name)
        plain = re.sub(r"_v2$", "", base)
        if name != base and not re.search(
            rf"#\s*define {plain}\s+__CUDA_API_PT[SD][SZ]\({base}\)", header
        ):
            missing.add(name)
        if not re.search(rf"\b{base}\b", header):
            missing.add(name)
    assert missing == set()


def test_stand_ins_are_marked_and_real_libraries_are_not(sim, nvidia, waffle):
    """By a note in the file, which list shows."""
    for name in ("libcuda.so.1", *REAL):
        assert MARK in exported(sim / name)
        out = waffle.ok("list", sim / name).stdout
        assert out.splitlines()[0].endswith(", simulated")
    for real in REAL.values():
        assert "simulated" not in waffle.ok("list", nvidia / real).stdout


# ---- (b) what programs see ----


def training(sim, folder, steps=STEPS, **environment):
    folder.mkdir()
    out = run(
        sim / "training", "--ranks", RANKS, "--steps", steps, "--log", folder, **environment
    ).stdout
    assert "simulated" in out
    return [read_log(folder / f"rank-{rank}.jsonl") for rank in range(RANKS)]


def named(rows, name):
    return [row for row in rows if row["call"] == name]


def step_ends(rows):
    """When each step ended: its synchronisation returned."""
    return [row["end"] for row in named(rows, "cudaStreamSynchronize")]


def test_training_calls_the_same_on_all_ranks(sim, tmp_path):
    logs = training(sim, tmp_path / "log")
    counts = [collections.Counter(row["call"] for row in rows) for rows in logs]
    assert counts[0]["ncclAllReduce"] == counts[0]["cudaStreamSynchronize"] == STEPS
    assert counts[0]["cudaLaunchKernel"] == 6 * STEPS
    assert counts[1:] == counts[:-1]
    for rank, rows in enumerate(logs):
        assert all(row["result"] == 0 for row in rows)
        assert {row["rank"] for row in named(rows, "ncclAllReduce")} == {rank}
    comms = {row["comm"] for rows in logs for row in named(rows, "ncclAllReduce")}
    assert len(comms) == 1


def test_no_rank_ends_a_step_before_all_have_called_its_all_reduce(sim, tmp_path):
    logs = training(sim, tmp_path / "log")
    for step in range(STEPS):
        last = max(named(rows, "ncclAllReduce")[step]["begin"] for rows in logs)
        assert all(step_ends(rows)[step] > last for rows in logs)


def test_a_late_loader_makes_all_ranks_late(sim, tmp_path):
    logs = training(sim, tmp_path / "log", WAFFLE_SIM_SLOW_LOADER="2:80:6")
    for rows in logs:
        ends = step_ends(rows)
        took = [end - begin for begin, end in zip(ends, ends[1:])]
        # Two batches may be ready ahead, which is less than 20 ms of work.
        assert max(took) == took[5] >= 60 * MS
    called = [named(rows, "ncclAllReduce")[6]["begin"] for rows in logs]
    assert max(called) == called[2] >= statistics.median(called) + 50 * MS


def step_times(rows):
    ends = [rows[0]["begin"], *step_ends(rows)]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def test_a_slow_kernel_and_a_slow_copy_slow_their_rank_down(sim, tmp_path):
    plain = training(sim, tmp_path / "plain")
    slow = training(sim, tmp_path / "slow", WAFFLE_SIM_SLOW_KERNEL="1:20:3:6")
    copy = training(sim, tmp_path / "copy", WAFFLE_SIM_SLOW_COPY="3:300:5:8")
    # A step has kernels of 5.2 ms and copies of 97 µs, times 20 or 300, and all ranks wait for
    # the slowest. A busy machine makes any step longer, but none shorter.
    assert min(step_times(plain[0])) < 60 * MS
    for rank in range(RANKS):
        assert min(step_times(slow[rank])[2:6]) > 80 * MS
        assert min(step_times(copy[rank])[2:4]) > 20 * MS


def test_a_call_can_be_made_to_fail(sim, tmp_path):
    log = tmp_path / "calls.jsonl"
    result = run(sim / "calls", "--log", log, code=1, WAFFLE_SIM_FAIL="cudaMalloc:2:2")
    expected = "calls: simulated: cudaMalloc: error 2 (cudaErrorMemoryAllocation)\n"
    assert result.stderr == expected
    assert [row["result"] for row in named(read_log(log), "cudaMalloc")] == [0, 2]


@pytest.mark.parametrize(
    "fail, says",
    [
        ("ncclAllReduce:1:5", "ncclAllReduce: error 5 (invalid usage (simulated))"),
        ("pncclSend:2:3", "ncclSend: error 3 (internal error (simulated))"),
        ("cuMemcpyAsync:1:700", "cudaMemcpyAsync: error 700 (cudaErrorIllegalAddress)"),
        ("cuEventRecord:2:400", "cuEventRecord: error 400 (cudaErrorInvalidResourceHandle)"),
        ("cudaStreamCreate:1:35", "cudaStreamCreate: error 35 (cudaErrorInsufficientDriver)"),
    ],
)
def test_a_program_names_the_call_that_failed(sim, fail, says):
    result = run(sim / "calls", code=1, WAFFLE_SIM_FAIL=fail)
    assert result.stderr == f"calls: simulated: {says}\n"


@pytest.mark.parametrize(
    "name, value",
    [
        ("WAFFLE_SIM_SYNC", "sometimes"),
        ("WAFFLE_SIM_COPY_GBPS", "-1"),
        ("WAFFLE_SIM_FAIL", "cudaMalloc"),
        ("WAFFLE_SIM_FAIL", "nope:1:1"),
        ("WAFFLE_SIM_FAIL", "cudaMalloc:2:2,cudaNope:1:1"),
        ("WAFFLE_SIM_FAIL", "ncclNope:1:1"),
        ("WAFFLE_SIM_FAIL", "cudaMalloc:0:2"),
        ("WAFFLE_SIM_FAIL", "cudaMalloc:-1:2"),
        ("WAFFLE_SIM_FAIL", "cudaMalloc:1:0"),
        ("WAFFLE_SIM_SLOW_COPY", "all"),
        ("WAFFLE_SIM_SLOW_COPY", "1:2:3:4:5"),
        ("WAFFLE_SIM_SLOW_COPY", "1:2:4:3"),
        ("WAFFLE_SIM_SLOW_KERNEL", "1:2x"),
        ("WAFFLE_SIM_SLOW_KERNEL", "1:2:0"),
        ("WAFFLE_SIM_SLOW_KERNEL", "1:2:"),
        ("WAFFLE_SIM_SLOW_KERNEL", "-1:2"),
    ],
)
@pytest.mark.parametrize("program", ["calls", "training"])
def test_a_setting_that_makes_no_sense_is_said(sim, program, name, value):
    result = run(sim / program, code=2, **{name: value})
    assert result.stderr.startswith(f"simulated CUDA: {name}={value} makes no sense")
    assert len(result.stderr.splitlines()) == 1


def test_a_function_that_the_driver_lacks_is_said_when_it_is_loaded(sim):
    result = run(sim / "calls", code=2, WAFFLE_SIM_FAIL="cuNope:1:1")
    assert result.stderr.startswith("simulated CUDA: WAFFLE_SIM_FAIL=cuNope:1:1 makes no sense")
    result = run(sim / "training", code=1, WAFFLE_SIM_FAIL="cuNope:1:1")  # the ranks say it
    assert "simulated CUDA: WAFFLE_SIM_FAIL=cuNope:1:1 makes no sense" in result.stderr


@pytest.mark.parametrize("value", ["1", "1:2x", "1:2:3:4:5", "1:2:3:0", "one:2", "1.5:2", "1:2:"])
def test_a_late_loader_that_makes_no_sense_is_said_once(sim, value):
    result = run(sim / "training", code=2, WAFFLE_SIM_SLOW_LOADER=value)
    says = f"training: WAFFLE_SIM_SLOW_LOADER={value} makes no sense: it is RANK:MS[:FROM[:EVERY]]"
    assert result.stderr == says + "\n"


@pytest.mark.parametrize("value", ["1", "1:2:3", "1:x", "1.5:2", "1:"])
def test_a_broken_batch_that_makes_no_sense_is_said_once(sim, value):
    result = run(sim / "training", code=2, WAFFLE_SIM_NAN=value)
    assert result.stderr == f"training: WAFFLE_SIM_NAN={value} makes no sense: it is RANK:STEP\n"


@pytest.mark.parametrize("sync", ["block", "spin", "yield"])
def test_all_calls_work_whatever_way_is_waited(sim, tmp_path, sync):
    log = tmp_path / "calls.jsonl"
    run(sim / "calls", "--log", log, WAFFLE_SIM_SYNC=sync)
    rows = read_log(log)
    failed = [row for row in rows if row["result"]]
    assert [row["call"] for row in failed] == ["cudaMalloc"]  # of no bytes
    assert len({row["call"] for row in rows}) > 60


def test_a_device_that_is_not_there_is_an_error_as_in_the_real_library(sim):
    result = run(sim / "calls", code=1, WAFFLE_SIM_DEVICES="0")
    assert result.stderr == "calls: simulated: cudaStreamCreate: error 100 (cudaErrorNoDevice)\n"
    result = run(sim / "training", code=1, WAFFLE_SIM_DEVICES="0")
    assert result.stderr.startswith("training: simulated: cudaSetDevice: error 100 (cudaError")


KERNEL_MS = 50
# What the event on the second stream is behind the one before a kernel on the first, in ms.
ORDER = """
import ctypes, sys

cuda = ctypes.CDLL(sys.argv[1])
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()

def call(name, *args):
    result = getattr(cuda, name)(*args)
    assert result == 0, (name, result)

def make(name, *args):
    made = ctypes.c_void_p()
    call(name, ctypes.byref(made), *args)
    return made

call("cuInit", 0)
module = make("cuModuleLoadData", None)
kernel = make("cuModuleGetFunction", module, b"k")
streams = {"legacy": None, "blocking": make("cuStreamCreate", 0),
           "free": make("cuStreamCreate", 1), "own": ctypes.c_void_p(2)}
before, after = make("cuEventCreate", 0), make("cuEventCreate", 0)
for line in sys.stdin:
    first, second = (streams[name] for name in line.split())
    ms = ctypes.c_float()
    call("cuEventRecord", before, first)
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, first, None, None)
    call("cuEventRecord", after, second)
    call("cuEventSynchronize", after)
    call("cuStreamSynchronize", first)
    call("cuEventElapsedTime", ctypes.byref(ms), before, after)
    print(ms.value, flush=True)
"""


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(sim):
    program = subprocess.Popen(
        [sys.executable, "-c", ORDER, sim / "libcuda.so.1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "WAFFLE_SIM_KERNEL_US": str(1000 * KERNEL_MS)},
    )

    def behind(first, second):
        program.stdin.write(f"{first} {second}\n")
        program.stdin.flush()
        return float(program.stdout.readline())

    with program:
        for pair in (("legacy", "blocking"), ("blocking", "legacy"), ("legacy", "own")):
            assert behind(*pair) >= KERNEL_MS, pair
        # A busy machine may take as long as the kernel between two calls, but not every time.
        for pair in (("legacy", "free"), ("free", "legacy"), ("own", "blocking")):
            assert any(behind(*pair) < KERNEL_MS for _ in range(20)), pair
        program.stdin.close()
    assert program.returncode == 0


GRAPH = (
    ORDER[: ORDER.index("streams =")]
    + """
def refused(code, name, *args):
    assert getattr(cuda, name)(*args) == code, name

def launch(stream):
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, None, None)

origin, other = make("cuStreamCreate", 1), make("cuStreamCreate", 1)
before, after, fork = (make("cuEventCreate", 0) for _ in range(3))

def elapsed(work):
    ms = ctypes.c_float()
    call("cuEventRecord", before, origin)
    work()
    call("cuStreamSynchronize", other)
    call("cuEventRecord", after, origin)
    call("cuEventSynchronize", after)
    call("cuEventElapsedTime", ctypes.byref(ms), before, after)
    return ms.value

graph, none = ctypes.c_void_p(), ctypes.c_void_p()

def capture():
    refused(900, "cuStreamBeginCapture_v2", None, 0)
    call("cuStreamBeginCapture_v2", origin, 0)
    refused(401, "cuStreamBeginCapture_v2", origin, 0)
    launch(origin)
    refused(905, "cuStreamWaitEvent", origin, before, 0)
    call("cuEventRecord", fork, origin)
    call("cuStreamWaitEvent", other, fork, 0)
    launch(other)
    for stream in (origin, other):
        refused(900, "cuStreamSynchronize", stream)
    refused(907, "cuEventSynchronize", fork)
    refused(903, "cuStreamEndCapture", other, ctypes.byref(none))
    call("cuStreamEndCapture", origin, ctypes.byref(graph))
    refused(401, "cuStreamEndCapture", origin, ctypes.byref(none))
    refused(907, "cuStreamWaitEvent", other, fork, 0)

captured = min(elapsed(capture) for _ in range(20))
ready = make("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
print(captured, elapsed(lambda: call("cuGraphLaunch", ready, origin)))
"""
)


def test_a_captured_stream_does_nothing_until_its_graph_is_launched(sim):
    out = run(sys.executable, "-c", GRAPH, sim / "libcuda.so.1",
              WAFFLE_SIM_KERNEL_US=str(1000 * KERNEL_MS)).stdout  # fmt: skip
    captured, launched = map(float, out.split())
    assert captured < KERNEL_MS and launched >= 2 * KERNEL_MS


DESTROY = (
    ORDER[: ORDER.index("streams =")]
    + """
import threading

destroyed, ran = threading.Event(), []
# It is over by itself if a destruction waits for it.
host = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: ran.append(destroyed.wait(20)))
stream, event = make("cuStreamCreate", 1), make("cuEventCreate", 0)
call("cuLaunchHostFunc", stream, host, None)
call("cuEventRecord", event, stream)
call("cuStreamDestroy_v2", stream)
refused = cuda.cuEventQuery(event)
destroyed.set()
call(sys.argv[2], *([event] if "Event" in sys.argv[2] else []))
print(refused, ran)
"""
)


@pytest.mark.parametrize("wait", ["cuCtxSynchronize", "cuEventSynchronize"])
def test_a_destroyed_streams_work_goes_on_and_is_waited_for(sim, wait):
    out = run(sys.executable, "-c", DESTROY, sim / "libcuda.so.1", wait).stdout
    assert out == "600 [True]\n"


def test_nothing_is_left_in_shared_memory(sim, tmp_path):
    def segments():
        return set(pathlib.Path("/dev/shm").glob("waffle-sim-*"))

    before = segments()
    training(sim, tmp_path / "log", steps=2)
    assert segments() <= before

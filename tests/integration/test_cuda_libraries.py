# SPDX-License-Identifier: Apache-2.0
"""The real libraries of CUDA and NCCL, without a GPU: which functions are found in them and where
they are probed, and calls that fail, as a program and as waffle-bpf saw them."""

import json
import mmap
import os
import re
import subprocess
import sys

import pytest

import nvidia
from tracer import PROGRAMS, wait_probed

pytestmark = pytest.mark.skipif(nvidia.folder() is None, reason="no NVIDIA libraries here")

LIBRARIES = ("libcudart.so.12", "libcudart.so.13", "libnccl.so.2")

PROBES = (
    "uprobe:libcudart:cudaRuntimeGetVersion(out int version) -> int result",
    "uprobe:libcudart:cudaGetDeviceCount(out int count) -> int result",
)


def exported(library):
    text = subprocess.check_output(["readelf", "-W", "--dyn-syms", library], text=True)
    return {
        fields[7].partition("@")[0]: int(fields[1], 16)
        for fields in map(str.split, text.splitlines())
        if len(fields) > 7 and fields[3] == "FUNC" and fields[6] != "UND"
    }


def wanted(library):
    """The names of the rows for a library."""
    return {
        name
        for table in nvidia.TABLES
        for row in nvidia.rows(table)
        if any(nvidia.is_of(lib, library) for lib in row.libs)
        for name in row.names
    }


@pytest.fixture
def listed(waffle):
    def sites(library, *options):
        path = nvidia.library(library)
        return json.loads(waffle.ok("list", "--json", *options, path).stdout)["sites"]

    return sites


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_row_of_a_function_that_is_there_finds_it_once(library, listed):
    there = exported(nvidia.library(library))
    names = wanted(library) & set(there)
    found = [site["func"] for site in listed(library)]
    assert len(found) == len(set(found))
    # pncclX is at the address of ncclX, and not found a second time.
    assert {there[name] for name in found} == {there[name] for name in names}
    assert set(found) == {n for n in names if not n.startswith("pnccl")}


def test_every_row_of_the_runtimes_and_of_nccl_is_of_one_of_these_versions():
    there = set.union(*(set(exported(nvidia.library(lib))) for lib in LIBRARIES))
    assert {n for lib in LIBRARIES for n in wanted(lib)} <= there


@pytest.mark.parametrize("library", LIBRARIES)
def test_probes_stand_where_they_are_cheap(library, listed):
    dear = {
        site["func"]
        for site in listed(library)
        for probe in site["probes"]
        if probe["cost"] not in ("emulated", "optimised")
    }
    # It begins by moving the stack pointer.
    assert dear == ({"ncclBcast"} if library == "libnccl.so.2" else set())


def test_fields_of_communicators_are_found(listed):
    keys = {site["func"]: [key["name"] for key in site["keys"]] for site in listed("libnccl.so.2")}
    for name in ("ncclAllReduce", "ncclSend", "ncclBcast"):
        assert {"comm", "rank", "nranks", "seq"} <= set(keys[name])
    assert "comm" in keys["ncclCommInitRank"]


def seen(row, key):
    """A value as waffle-bpf prints it, as the program's log has it."""
    value = row.get("args", {}).get(key)
    return int(value, 16) if isinstance(value, str) and re.match(r"0x[0-9a-f]+$", value) else value


def shown(value):
    return 0 if value is None else value


def test_calls_are_seen_as_the_program_made_them(waffle, start, listed):
    paths = [nvidia.library(library) for library in LIBRARIES]
    program = start(sys.executable, PROGRAMS / "nvidia_calls.py", *paths)
    program.until("ready")
    options = [word for spec in PROBES for word in ("--probe", spec)]
    attached = waffle.attach("-p", program.pid, *options)
    for path in paths:
        wait_probed(program.pid, path, listed(path.name))
    program.say("go")
    log = []
    while (line := program.line()) != "done":
        log += [json.loads(line)] if line.startswith("{") else []
    capture = attached.stop()
    rows = [r for r in capture.rows() if r["kind"] in ("span", "event")]
    rows = [r for r in rows if r["category"] in ("cuda", "nccl", "libcudart")]
    rows = sorted(rows, key=lambda r: r.get("start_ns", r.get("ts_ns")))
    assert [r["name"] for r in rows] == [told["name"] for told in log]
    for row, told in zip(rows, log):
        if row["kind"] == "event":
            del told["args"]["result"]
        got = {key: seen(row, key) for key in told["args"]}
        assert got == {key: shown(value) for key, value in told["args"].items()}, row["name"]
    capture.check_sums(lost=0)


def test_kernels_of_a_stripped_program_have_the_names_they_were_registered_under(waffle, tmp_path):
    sim = waffle.program.parent / "sim"
    program = tmp_path / "training"
    subprocess.check_call(["strip", "-o", program, sim / "training"])
    environment = {**os.environ, "LD_LIBRARY_PATH": str(sim)}
    capture = waffle.run(program, "--ranks", "1", "--steps", "3", env=environment)
    launches = [r for r in capture.rows("event") if r["name"] == "cudaLaunchKernel"]
    kernels = {r["args"]["kernel"].partition("(")[0] for r in launches}
    assert {"embed", "attention", "mlp"} <= kernels
    assert not any(k.startswith("0x") for k in kernels)


def test_a_stripped_program_with_nccl_linked_in_is_told(waffle, start, tmp_path):
    sim = waffle.program.parent / "sim"
    stripped = tmp_path / "stripped"
    subprocess.check_call(["strip", "-o", stripped, sim / "calls-nccl"])
    environment = {**os.environ, "LD_LIBRARY_PATH": str(sim)}
    told = f"{stripped} has NCCL linked into it and is stripped"
    whole = waffle.ok("list", sim / "calls-nccl")
    assert "ncclAllReduce" in whole.stdout and "stripped" not in whole.stderr
    assert told in waffle.ok("list", stripped).stderr
    ran = waffle.ok("run", "--no-report", "-o", waffle.path(), "--", stripped, env=environment)
    assert told in ran.stderr
    program = start(stripped, "--pause", env=environment)
    program.until("simulated calls: ready")
    assert told in waffle.ok(
        "attach", "-p", program.pid, "--no-report", "-d", "1ms", "-o", waffle.path()).stderr
    # One that has it as a library is not meant, and what tells is what the real one has, too.
    subprocess.check_call(["strip", "-o", stripped, sim / "calls"])
    assert "NCCL" not in waffle.ok("list", stripped).stderr
    with open(nvidia.library("libnccl.so.2"), "rb") as file, mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_READ) as real:
        assert re.search(rb"NCCL version \d[^\0]*\+cuda", real)


@pytest.mark.parametrize("simulated", [False, True])
def test_a_stripped_program_with_the_runtime_linked_in_is_told(
    waffle, built, tmp_path, simulated
):
    sim = waffle.program.parent / "sim"
    whole = sim / "calls-static" if simulated else built("static_cuda.c")
    stripped = tmp_path / "stripped"
    subprocess.check_call(["strip", "-o", stripped, whole])
    listed = waffle.ok("list", whole)
    assert "cudaLaunchKernel" in listed.stdout
    listed = waffle.ok("list", stripped)
    assert "cudaLaunchKernel" not in listed.stdout
    assert "CUDA's runtime linked into it and is stripped" in listed.stdout + listed.stderr
    assert "stripped" not in waffle.ok("list", nvidia.library("libcudart.so.13")).stderr

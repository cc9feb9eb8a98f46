# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks of NVTX, recorded by libwaffle-gpu in programs that use NVIDIA's header.

The records are compared with what programs/nvtx_ranges.c says that it did.
"""

import collections
import os
import struct
import subprocess
import time

import pytest

import nvidia
from recorder import Recorder
from tracer import Capture, named, wait_until

# struct nvtxGlobals_v3, as usdt/gpu/nvtx_abi.h has it.
CORE, CORE2, FUNCTIONS, BYTES = 560, 968, 48, 1168
ALL = ("outer", "inän", "registered", "across")


@pytest.fixture(scope="module")
def program(built):
    return built("nvtx_ranges.c", f"-I{nvidia.nvtx_headers()}", "-ldl")


@pytest.fixture
def recorder(waffle, program):
    return Recorder(waffle, program)


@pytest.fixture
def library(waffle_program):
    return waffle_program.parent / "libwaffle-gpu.so"


def function_pointers(pid, program):
    """The state of NVTX in a running program, and its function pointers."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        lines = [line.split() for line in maps if line.rstrip().endswith(str(program))]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for fields in lines:
            if "w" not in fields[1]:
                continue
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            memory.seek(begin)
            data = memory.read(end - begin)
            for at in range(0, len(data) - BYTES, 8):
                words = struct.unpack_from(f"<{BYTES // 8}Q", data, at)
                if words[CORE // 8:CORE // 8 + 2] == (0, begin + at + FUNCTIONS):
                    return words[0] & 0xffffffff, words[FUNCTIONS // 8:CORE // 8]
    raise AssertionError("no structure of NVTX in the program")


def dormant(pid, program):
    """The function pointers of a program that has called NVTX."""
    wait_until(lambda: function_pointers(pid, program)[0] == 2, "initialised")
    return function_pointers(pid, program)


def rounds_now(program):
    """How many rounds all threads of a running program have made."""
    return int(program.ask("count", "rounds"))


def finish(program):
    """Ends the program; returns how many rounds its threads made."""
    return [int(line) for line in program.finish()]


def check_structure(rows):
    """Of rounds that were recorded as a whole: who is whose parent."""
    rows = [row for row in rows if row.get("category") == "nvtx"]
    spans = {row["id"]: row for row in rows if row["kind"] == "span"}
    parents = collections.Counter()
    for row in rows:
        parents[row["name"], spans[row["parent"]]["name"] if row.get("parent") in spans else None] += 1
    assert set(parents) == {("outer", None), ("inän", "outer"), ("registered", "inän"),
                            ("mark", "registered"), ("plain", "outer"), ("across", None)}


def check_values(rows, domain=True):
    registered, marks = named(rows, "registered"), named(rows, "mark")
    first = -registered[0]["args"]["payload"]
    of_domain = {"domain": "numbers"} if domain else {}
    assert first >= 0
    for row in registered:
        assert row["args"] == {**of_domain, "category": "seven", "payload": row["args"]["payload"]}
        assert row["category"] == "nvtx"
    assert all(row["args"] == {**of_domain, "category": "9", "payload": 0.5} for row in marks)
    for name in ("outer", "inän", "across", "plain"):
        assert all(row["args"] == {} for row in named(rows, name))


@pytest.mark.parametrize("when", ["early", "late"])
def test_program_records_all_its_ranges_from_the_first(recorder, library, when):
    capture, program = recorder.start(when, "1", NVTX_INJECTION64_PATH=str(library))
    program.until("ready")
    wait_until(lambda: rounds_now(program) > 20, "rounds")
    rounds = finish(program)
    rows = capture.rows()
    for name in (*ALL, "mark", "plain"):
        assert len(named(rows, name)) == sum(rounds), name
    check_structure(rows)
    check_values(rows)
    payloads = [row["args"]["payload"] for row in named(rows, "registered")]
    assert payloads == [-n for n in range(rounds[0])]
    capture.check_sums(lost=0)


def test_range_may_end_on_another_thread(recorder, library):
    capture, program = recorder.start("late", "4", NVTX_INJECTION64_PATH=str(library))
    program.until("ready")
    wait_until(lambda: rounds_now(program) > 20, "rounds")
    rounds = finish(program)
    across = named(capture.rows(), "across")
    assert len(across) == sum(rounds)
    assert all(row["end_ns"] >= row["start_ns"] for row in across)


def test_dormant_program_has_no_functions_but_those_that_register(start, program, library):
    running = start(program, "late", "1", env={**os.environ,
                                               "NVTX_INJECTION64_PATH": str(library)})
    running.until("ready")
    _, pointers = dormant(running.pid, program)
    # Two that name categories of the default domain; of others: two more, two that register
    # strings and two that make domains.
    assert sum(pointer != 0 for pointer in pointers) == 8
    finish(running)


@pytest.mark.parametrize("when", ["early", "late"])
def test_attach_arms_and_restores_a_program_that_began_with_the_library(waffle, start, program,
                                                                        library, when):
    running = start(program, when, "2", env={**os.environ, "NVTX_INJECTION64_PATH": str(library)})
    running.until("ready")
    before = dormant(running.pid, program)
    attached = waffle.attach("--pid", running.pid)
    wait_until(lambda: sum(map(bool, function_pointers(running.pid, program)[1])) > 8, "armed")
    made = rounds_now(running)
    wait_until(lambda: rounds_now(running) > made + 50, "rounds")
    capture = attached.stop()
    wait_until(lambda: function_pointers(running.pid, program) == before, "restored")
    finish(running)
    rows = capture.rows(category="nvtx")
    assert all(len(named(rows, name)) > 20 for name in ALL)
    check_values(rows)
    # The program makes threads that end one range. Those that begin while the process is being armed
    # and have ended when their rings are found have lost their number, so their records count as lost.
    records = capture.check_sums()
    assert records["lost"] < records["produced"] / 20


def test_killed_tracer_leaves_a_program_that_restores_itself(waffle, start, program, library):
    running = start(program, "late", "2", env={**os.environ,
                                               "NVTX_INJECTION64_PATH": str(library)})
    running.until("ready")
    before = dormant(running.pid, program)
    attached = waffle.attach("--pid", running.pid)
    wait_until(lambda: function_pointers(running.pid, program) != before, "armed")
    attached.kill()
    wait_until(lambda: function_pointers(running.pid, program) == before, "restored")
    finish(running)


@pytest.mark.parametrize("when", ["early", "late"])
def test_attach_records_a_program_that_has_never_heard_of_it(waffle, start, program, when):
    """No variable is set, and NVTX was initialised before. Domains and strings that the program
    registered before, as with "late", have no names then; all others have."""
    running = start(program, when, "2")
    running.until("ready")
    before = dormant(running.pid, program)
    assert not any(before[1])
    for _ in range(2):
        attached = waffle.attach("--gpu", "--pid", running.pid)
        wait_until(lambda: any(function_pointers(running.pid, program)[1]), "armed")
        made = rounds_now(running)
        wait_until(lambda: rounds_now(running) > made + 50, "rounds")
        rows = attached.stop().rows(category="nvtx")
        wait_until(lambda: function_pointers(running.pid, program) == before, "restored")
        assert all(len(named(rows, name)) > 20 for name in ("outer", "inän", "across", "plain"))
        # The first rounds had begun before.
        known = named(rows, "registered")[10:]
        if when == "early":
            check_values(known + named(rows, "mark")[10:])
        else:
            assert not known
            lost = named(rows, "nvtx")
            assert {row["args"]["category"] for row in lost} == {"7"}
            assert all("domain" not in row["args"] for row in lost)
    finish(running)


def test_program_that_calls_nvtx_later_has_all_names(waffle, start, program):
    """The library initialises NVTX of objects that have not done so. So it sees what they register."""
    running = start(program, "never", "1")
    running.until("ready")
    assert function_pointers(running.pid, program)[0] == 0
    attached = waffle.attach("--gpu", "--pid", running.pid)
    wait_until(lambda: function_pointers(running.pid, program)[0] == 2, "initialised")
    attached.wait_ready()
    wait_until(lambda: rounds_now(running) > 50, "rounds")
    rows = attached.stop().rows(category="nvtx")
    wait_until(lambda: not any(function_pointers(running.pid, program)[1]), "restored")
    finish(running)
    check_values(rows)
    check_structure(rows)


def test_other_tool_keeps_its_pointers(waffle, built, start, program):
    """One line of the program names it, and its count of ranges is right."""
    tool = built("nvtx_tool.c", f"-I{nvidia.nvtx_headers()}", "-shared", "-fPIC")
    running = start(program, "late", "1", stderr=subprocess.PIPE,
                    env={**os.environ, "NVTX_INJECTION64_PATH": str(tool)})
    running.until("ready")
    before = dormant(running.pid, program)
    attached = waffle.attach("--gpu", "--pid", running.pid)
    said = running.process.stderr.readline()
    assert said == (f"waffle: NVTX is used by another tool, {tool}: its ranges are not recorded\n")
    assert function_pointers(running.pid, program) == before
    assert not attached.stop().rows(category="nvtx")
    [rounds] = finish(running)
    assert running.process.stderr.read() == f"pushed {rounds}\n"


@pytest.fixture(scope="module")
def payload(built):
    return built("nvtx_payload.c", f"-I{nvidia.nvtx_headers()}", "-ldl")


REDUCE = {"domain": "NCCL", "comm": 0xc0ffee, "Message size [bytes]": 1 << 20, "root": -3, "op": 2}


def check_payloads(rows):
    """Of one round."""
    rows = sorted((row for row in rows if row.get("category") == "nvtx"), key=lambda row: row["start_ns"])
    assert [(row["kind"], row["name"]) for row in rows] == [
        ("span", "ncclReduce"), ("span", "mixed"), ("span", "short"), ("span", "unknown"), ("span", "nvtx"),
        ("event", "nvtx"), ("span", "last")]
    values = {row["name"]: row["args"] for row in rows}
    assert values["ncclReduce"] == values["last"] == REDUCE
    assert values["mixed"] == {"domain": "NCCL", "small": -5, "part": 0.25, "text": "0x10", "address": "0x1234",
                               "handle": "kept", "real": 2.5}
    assert values["short"] == values["unknown"] == {"domain": "NCCL"}
    # All were popped, also those that the extension's function popped.
    assert not [row for row in rows if row.get("unfinished") or row.get("parent")]


def test_payloads_with_a_schema_are_keys(recorder, waffle, payload, library):
    capture, program = Recorder(waffle, payload).start(NVTX_INJECTION64_PATH=str(library))
    program.until("ready")
    program.ask("", "made")
    program.finish()
    check_payloads(capture.rows())


def test_schemas_are_known_to_a_tracer_that_comes_later(waffle, payload, library, start):
    program = start(payload, env={**os.environ, "NVTX_INJECTION64_PATH": str(library)})
    program.until("ready")
    program.ask("", "made")
    attached = waffle.attach("-q", "--no-report", "-p", program.pid)
    for _ in range(200):
        program.ask("", "made")
        time.sleep(0.01)
    capture = attached.stop()
    program.finish()
    rows = [row for row in capture.rows() if row.get("category") == "nvtx"]
    assert named(rows, "ncclReduce") and all(row["args"] == REDUCE for row in named(rows, "ncclReduce"))
    assert not [row for row in rows if row.get("parent")]

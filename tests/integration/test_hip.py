# SPDX-License-Identifier: Apache-2.0
"""What waffle-bpf says of the calls of HIP, RCCL and roctx is what the program's own log says. On the
stand-ins of tests/sim/hip."""

import json
import os

import pytest

from sim_log import began, by_thread, number, read_log, TYPES
from test_sim import sim  # noqa: F401  (a fixture)
from test_sim_calls import is_armed
from tracer import Program, Waffle, wait_until

COPY = ["HtoH", "HtoD", "DtoH", "DtoD", "default"]
OPS = ["sum", "prod", "max", "min", "avg"]
NOT_WATCHED = {"__hipRegisterFunction"}


def word(key, value):
    """A number as the tables name it."""
    table = {"kind": COPY, "datatype": TYPES, "op": OPS}.get(key)
    if table is None:
        return value
    return table[value] if value < len(table) else f"#{value}"


def library_path(folder):
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


@pytest.fixture(scope="module", params=["run", "attach"])
def calls(request, sim, waffle_program, tmp_path_factory):  # noqa: F811
    """Traced from the start, or attached to when the kernels were registered already."""
    folder = tmp_path_factory.mktemp("hip")
    waffle = Waffle(waffle_program, folder)
    log = folder / "calls.jsonl"
    options = ["--probes", "roctx"]
    if request.param == "run":
        capture = waffle.run(sim / "hip-calls", "--log", log, options=options)
        return capture, capture.rows(), read_log(log)
    program = Program([sim / "hip-calls", "--log", log, "--pause"])
    try:
        program.until("simulated calls: ready")
        attached = waffle.attach("--pid", program.pid, "-q", "--no-report", *options)
        wait_until(lambda: is_armed(attached.process), "arming")
        program.say("go")
        program.until("simulated calls: done")
        program.say("end")
        program.finish()
        capture = attached.wait()
    finally:
        program.kill()
    return capture, capture.rows(), read_log(log)


def of_gpu(rows):
    return [
        row
        for row in rows
        if row.get("category") in ("hip", "nccl") and row["name"] not in NOT_WATCHED
    ]


def test_calls_are_those_of_the_programs_log_argument_by_argument(calls):
    _, rows, log = calls
    [ours] = by_thread(of_gpu(rows), began).values()
    logged = [row for row in log if not row["call"].endswith("range")]
    # The program waits once within its ranges, without a line of its log.
    assert [r["name"] for r in ours] == [r["call"] for r in logged] + ["hipDeviceSynchronize"]
    assert len({r["call"] for r in logged}) > 45
    for row, call in zip(ours, logged):
        assert call["begin"] <= began(row) <= call["end"]
        if row["kind"] == "span":
            assert row["end_ns"] <= call["end"]
            assert row["args"].get("result", 0) == call["result"]
        # That of hipModuleGetFunction is shown by the name that the call gives it.
        for key in set(call) - {"call", "tid", "begin", "end", "result", "function"}:
            assert number(row["args"][key]) == word(key, call[key]), (row["name"], key)


def test_a_global_work_size_is_no_grid(calls):
    _, rows, _ = calls
    for row in rows:
        if row.get("name") in ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"):
            assert row["args"]["global"] == [34, 9, 5] and "grid" not in row["args"]


def test_synchronisations_wait_for_what_was_launched_on_their_stream(calls):
    """The links are those that the calls of CUDA would have: of the thread's own default stream,
    of a graph, of all streams."""
    _, rows, _ = calls
    ours = sorted(of_gpu(rows), key=began)
    names = {r["id"]: r for r in ours}
    at = next(i for i, r in enumerate(ours) if r["name"] == "hipStreamSynchronize_spt")
    assert [names[link["id"]]["name"] for link in ours[at]["links"]] == ["hipLaunchKernel_spt"]
    graph = next(i for i, r in enumerate(ours) if r["name"] == "hipGraphLaunch")
    assert [names[link["id"]]["name"] for link in ours[graph + 1]["links"]] == ["hipGraphLaunch"]


def test_ranges_of_roctx_are_spans(calls):
    _, rows, log = calls
    spans = {r["name"]: r for r in rows if r.get("category") == "roctx" and r["kind"] == "span"}
    marks = [r["name"] for r in rows if r.get("category") == "roctx" and r["kind"] == "event"]
    logged = {r["call"]: r for r in log if r["call"].endswith("range")}
    assert len(logged) == 2
    for name, row in logged.items():
        assert row["begin"] <= spans[name]["start_ns"] <= spans[name]["end_ns"] <= row["end"]
    assert spans["inner range"]["parent"] == spans["outer range"]["id"]
    assert marks == ["a mark", "roctxRangeStop"]
    stop = next(r for r in rows if r.get("name") == "roctxRangeStop")
    assert spans["roctxRangeStartA"]["args"]["id"] == stop["args"]["id"]


def test_it_counts_as_cuda_for_filters_and_sources(sim, waffle):  # noqa: F811
    capture = waffle.run(sim / "hip-calls", options=["--sources=-cuda"])
    assert not any(r.get("category") == "hip" for r in capture.rows())
    capture = waffle.run(sim / "hip-calls", options=["--filter", "kind == cuda"])
    assert {r.get("category") for r in capture.rows() if r["kind"] in ("span", "event")} == {"hip"}


@pytest.mark.parametrize("name", ["libamdhip64.so.6", "libamdhip64.so.7"])
def test_each_version_of_the_library_is_found_by_its_name(sim, waffle, name):  # noqa: F811
    listed = json.loads(waffle.ok("list", "--json", sim / name).stdout)
    names = {site["func"] for site in listed["sites"]}
    assert {"hipLaunchKernel", "hipLaunchKernel_spt", "hipMemcpyAsync"} <= names
    assert not any(name.startswith("cu") for name in names)

# SPDX-License-Identifier: Apache-2.0
"""libwaffle-gpu.so on the stand-in of CUPTI: what it records is compared with the stand-in's own log
of the records that it has delivered (docs/simulation.md)."""

import collections
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from sim_log import number, read_log
from test_exporters import collector  # noqa: F401  (a fixture)
from test_sim_calls import is_armed
from tracer import Capture, Program, compile_program, wait_until

OPS = {10: "kernel", 1: "copy", 22: "copy", 2: "set", 38: "wait", 51: "graph", 58: "host"}
VERSIONS = {"12.4": 22, "12.9": 28, "13.0": 130001, "13.5": 130500}


class Gpu:
    """Programs of the simulation with the library, and the log of what their CUPTI delivered."""

    def __init__(self, waffle, waffle_program, folder):
        self.waffle, self.folder = waffle, folder
        self.build = waffle_program.parent
        self.sim = self.build / "sim"
        self.log = folder / "cupti.log"

    def environment(self, **variables):
        """CUPTI is loaded by the library, or, that of 13.5, with the program as torch does it."""
        newest = variables.get("WAFFLE_SIM_CUPTI_VERSION") == "13.5"
        preload = {"LD_PRELOAD": str(self.sim / "cupti-13.5/libcupti.so.13")} if newest else {}
        return {**os.environ, "CUDA_INJECTION64_PATH": str(self.build / "libwaffle-gpu.so"),
                "WAFFLE_SIM_CUPTI_LOG": str(self.log), **preload, **variables}

    def record(self, program, *arguments, code=0, **variables):
        """Runs a program that records itself."""
        path = self.folder / "out.waffle"
        result = subprocess.run([self.sim / program, *map(str, arguments)], text=True, timeout=120, check=False,
                                capture_output=True, env=self.environment(WAFFLE_TRACE=str(path), **variables))
        assert result.returncode == code, result.stderr
        return Capture(self.waffle, path), result

    def delivered(self, *faults):
        """The records that CUPTI has delivered, or those with one of these faults, such as "dropped". Records of
        cuEventQuery() count only if they were dropped, since the library can't know what a dropped record was. The
        program may be writing the last line."""
        with open(self.log, encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.endswith("\n")]
        rows = [row for row in rows if row["name"] != "cuEventQuery" or row["fault"] == "dropped"]
        return [row for row in rows if row["fault"] in (faults or ("",))]


@pytest.fixture
def gpu(waffle, waffle_program, tmp_path):
    return Gpu(waffle, waffle_program, tmp_path)


def operations(rows):
    return [row for row in rows if row["kind"] == "span" and row.get("category") == "gpu"]


def sessions(rows):
    return [row["args"] for row in rows if row.get("name") == "session" and row.get("category") == "gpu"]


def of_log(row):
    """What a record of the log is as a recorded span."""
    op = OPS[row["kind"]]
    args = {"op": op, "device": 0, "context": 1, "correlation": row["correlation"]}
    if row["stream"] != 2**32 - 1:
        args["stream"] = row["stream"]
    if op == "kernel":
        args.update(grid=row["grid"], block=row["block"], shared_bytes=row["shared"] + 16, registers=42)
    if op in ("copy", "set"):
        args["bytes"] = row["bytes"]
    if row["node"] and op != "wait":
        args.update(graph=row["graph"], graph_node=row["node"])
    return args, row["start"], row["end"]


def of_span(row):
    assert row["args"]["simulated"] is True
    args = {key: value for key, value in row["args"].items()
            if key not in ("kind", "event", "clamped", "simulated")}
    return args, row["start_ns"], row["end_ns"]


def check_same(spans, records, error_ns=1000):
    """Each record is one span. Times may differ by the error of a simulated clock's reading."""
    key = lambda entry: (entry[0]["correlation"], entry[1], entry[2], sorted(map(str, entry[0].items())))
    ours = sorted(map(of_span, spans), key=key)
    theirs = sorted(map(of_log, records), key=key)
    assert len(ours) == len(theirs)
    for (args, start, end), (args_log, start_log, end_log) in zip(ours, theirs):
        # That of a context's synchronisation is only known when a record has named its device.
        assert {"device": 0, **args} == args_log
        assert abs(start - start_log) <= error_ns and abs(end - end_log) <= error_ns


PARTS = {"kernels": 'kv.op == "kernel"', "launches": 'name == "launch"', "waits": 'name == "wait"',
         "events": 'name == "event record"', "captures": 'name == "capture"'}


@pytest.mark.parametrize("part", PARTS)
def test_capture_whose_filter_left_the_session_out_is_called_simulated(gpu, part):
    capture, _ = gpu.record("calls", WAFFLE_FILTER=f'category == "gpu" && {PARTS[part]}')
    rows = [row for row in capture.rows() if row.get("category") == "gpu"]
    assert rows and not sessions(rows) and all(row["args"]["simulated"] for row in rows)
    assert capture.info()["simulated"] is True


@pytest.mark.parametrize("part", ["kernels", "launches"])
@pytest.mark.parametrize("processor", ["log(json,file={})", "metrics(file={})", "metrics(protobuf={})"])
def test_chain_without_the_session_says_simulated(gpu, tmp_path, processor, part):
    gpu.record("calls", WAFFLE_FILTER=f'category == "gpu" && {PARTS[part]}',
               WAFFLE_PROCESS=processor.format(tmp_path / "out"))
    assert b"simulated" in (tmp_path / "out").read_bytes()


def test_metrics_that_a_collector_gets_say_simulated(gpu, collector):  # noqa: F811
    server = collector()
    gpu.record("calls", WAFFLE_FILTER='category == "gpu" && name == "launch"',
               WAFFLE_PROCESS=f"metrics(),export(otlp={server.url})")
    metrics = server.metrics()
    assert metrics["waffle.records"].sum.data_points[0].as_int > 0
    assert [point.as_int for point in metrics["waffle.simulated"].gauge.data_points] == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_record_of_cupti_is_a_span_with_its_values_and_times(gpu, version):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI_VERSION=version)
    rows = capture.rows()
    spans = operations(rows)
    assert {"kernel", "copy", "set", "wait"} <= {span["args"]["op"] for span in spans}
    check_same(spans, gpu.delivered())
    assert [(s["state"], s["simulated"], s["cupti"]) for s in sessions(rows)] == [
        ("armed", True, VERSIONS[version]), ("disarmed", True, VERSIONS[version])]
    assert all(s[count] == 0 for s in sessions(rows) for count in ("dropped", "zero_times", "clamped", "unknown"))
    capture.check_sums(lost=0)


def test_each_operation_has_the_launch_that_gave_it_to_the_gpu(gpu):
    capture, _ = gpu.record("calls")
    rows = capture.rows()
    launches = [row for row in rows if row.get("name") == "launch"]
    by_number = {row["args"]["correlation"]: row for row in launches}
    assert len(by_number) == len(launches)
    for span in operations(rows):
        if span["args"]["op"] in ("kernel", "copy", "set"):
            launch = by_number[span["args"]["correlation"]]
            assert launch["start_ns"] <= span["start_ns"] + 1000
            assert launch["args"]["function"].startswith(
                {"kernel": ("cuLaunch", "cuGraphLaunch"), "copy": ("cuMemcpy", "cuGraphLaunch"),
                 "set": "cuMemset"}[span["args"]["op"]])
    # Only launches on the default stream have no handle.
    assert {row["args"]["handle"] for row in launches if row["args"]["function"] == "cuLaunchKernel"} - {"0x0"}


def test_filter_that_keeps_no_operation_is_the_reason_that_there_is_none(gpu, waffle):
    capture, _ = gpu.record("calls")
    waffle.fails(1, "gpu", "--filter", 'name == "nope"', capture.path,
                 says="out.waffle: the filter keeps no operation of a GPU; leave it out")


# ---- the order of streams ----

def of_log_order(logged):
    """The library's event for a call in the program's log; None: it has no event."""
    name = re.sub("^cu(da)?|(_v2)?(_pts[zd])?$", "", logged["call"])
    per_thread = logged["call"].endswith("_ptsz") and not logged.get("stream")
    stream = {"handle": 2 if per_thread else logged.get("stream")}
    return {
        "EventRecord": ("event record", stream | {"event": logged.get("event")}),
        "EventRecordWithFlags": ("event record", stream | {"event": logged.get("event")}),
        "StreamWaitEvent": ("stream wait", stream | {"event": logged.get("event")}),
        "StreamBeginCapture": ("capture begin", stream),
        "StreamEndCapture": ("capture end", stream | {"result": logged["result"]}),
        "StreamSynchronize": ("wait", stream),
        "EventSynchronize": ("wait", {"event": logged.get("event")}),
        "DeviceSynchronize": ("wait", {}),
        "CtxSynchronize": ("wait", {}),
    }.get(name)


def test_calls_that_order_streams_are_events_with_their_handles(gpu, tmp_path):
    capture, _ = gpu.record("calls", "--log", tmp_path / "calls.jsonl")
    logged = sorted(read_log(tmp_path / "calls.jsonl"), key=lambda row: row["begin"])
    expected = [(row["tid"], *of_log_order(row)) for row in logged if of_log_order(row)]
    names = {name for _, name, _ in expected}
    assert names == {"event record", "stream wait", "capture begin", "capture end", "wait"}
    rows = sorted((row for row in capture.rows() if row.get("category") == "gpu" and row["name"] in names),
                  key=lambda row: row["start_ns"])
    assert [
        (row["tid"], row["name"],
         {key: number(value) for key, value in row["args"].items() if key not in ("correlation", "function", "simulated")})
        for row in rows] == expected


def test_question_whether_an_event_is_done_is_no_wait(gpu):
    """CUPTI reports cuEventQuery() of an event that is done like cuEventSynchronize()."""
    capture, _ = gpu.record("calls")
    rows = capture.rows()
    asked = {row["args"]["correlation"] for row in rows
             if row.get("name") == "wait" and row["args"]["function"] == "cuEventSynchronize"}
    waited = {row["args"]["correlation"] for row in operations(rows)
              if row["args"]["op"] == "wait" and row["args"]["kind"] == "event"}
    assert len(asked) == 2 and waited == asked
    graph = json.loads(gpu.waffle.ok("gpu", "--json", capture.path).stdout)
    assert graph["not_attributed"]["unknown_waits"] == 0


def test_stream_that_can_not_be_made_is_no_event(gpu):
    capture, _ = gpu.record("calls", code=1, WAFFLE_SIM_FAIL="cuStreamCreate:2:2")
    made = [row["args"] for row in capture.rows() if row.get("name") == "stream create"]
    assert len(made) == 1 and made[0]["flags"] in (0, 1) and made[0]["handle"] != "0x0"


def edges_of(gpu, path):
    """Edges between streams. Operations are numbered without the calls that wait."""
    graph = json.loads(gpu.waffle.ok("gpu", "--graph=json", path).stdout)
    ids = [op["id"] for op in graph["operations"] if op["kind"] != "wait"]
    return [(ids.index(edge["from"]), ids.index(edge["to"]), edge["kind"]) for edge in graph["edges"]]


@pytest.mark.parametrize("program", [("calls",), ("training", "--ranks", 1, "--steps", 3)], ids=lambda program: program[0])
def test_program_that_records_itself_has_the_edges_that_probes_would_find(gpu, waffle, tmp_path, program):
    capture, _ = gpu.record(*program)
    edges = edges_of(gpu, capture.path)
    assert "event" in {kind for _, _, kind in edges}
    waffle.ok("run", "--gpu", "-q", "--no-report", "-o", tmp_path / "probes.waffle", "--", gpu.sim / program[0],
              *program[1:])
    assert edges == edges_of(gpu, tmp_path / "probes.waffle")


def test_call_that_a_probe_recorded_too_counts_once(gpu, waffle, tmp_path):
    """Its links are those of the probe's event."""
    path = tmp_path / "both.waffle"
    waffle.ok("run", "--gpu", "-q", "--no-report", "-o", path, "--", gpu.sim / "training", "--ranks", 1, "--steps", 3)
    linked = collections.defaultdict(list)
    for row in Capture(waffle, path).rows():
        linked[row.get("name")].append(bool(row.get("links")))
    for probe, event in (("cudaStreamWaitEvent", "stream wait"), ("cudaEventRecord", "event record")):
        assert len(linked[probe]) == len(linked[event]) == 6
        assert all(linked[probe]) and not any(linked[event])


@pytest.mark.parametrize("version", ["13.0", "13.5"])
def test_host_functions_are_recorded_where_cupti_can(gpu, version):
    capture, result = gpu.record("work", "host", WAFFLE_SIM_CUPTI_VERSION=version)
    spans = operations(capture.rows())
    assert "host functions 1" in result.stdout
    assert [span["name"] for span in spans if span["args"]["op"] == "host"] == ["host function"] * (version == "13.5")
    check_same(spans, gpu.delivered())


def test_a_late_arm_leaves_graphs_to_their_nodes(gpu, waffle):
    """CUDA 13.0's CUPTI crashes where graphs are watched as a whole that were made before, and so does
    the stand-in."""
    program = Program([gpu.sim / "work", "graph"], env=gpu.environment(WAFFLE_GPU_GRAPH="whole"))
    try:
        program.until("instantiated")
        attached = waffle.attach("--pid", program.process.pid)
        wait_until(lambda: gpu.log.exists() and len(gpu.delivered()) > 200, "kernels are delivered")
        capture = attached.stop()
        assert program.alive()
    finally:
        program.kill()
    kernels = [span for span in operations(capture.rows()) if span["args"]["op"] == "kernel"]
    assert kernels and all(span["args"]["graph_node"] for span in kernels)
    # Both kernels have the correlation of their one launch.
    assert set(collections.Counter(span["args"]["correlation"] for span in kernels).values()) == {2}


@pytest.mark.parametrize("what", ["fork", "close"])
def test_a_fork_and_a_closed_cupti_change_nothing(gpu, what):
    capture, _ = gpu.record("work", what)
    spans = operations(capture.rows())
    assert len([span for span in spans if span["args"]["op"] == "kernel"]) == 2
    check_same(spans, gpu.delivered())


def test_a_child_that_begins_to_use_cuda_has_a_thread_of_its_own(waffle_program):
    """Its parent, which loaded the library and forks workers, does not use CUDA itself."""
    code = f"""
import ctypes, os
library = ctypes.CDLL("{waffle_program.parent / 'libwaffle-gpu.so'}")
library.InitializeInjection()
child = os.fork()
if not child:
    library.InitializeInjection()
    library.InitializeInjection()
    os._exit(len(os.listdir("/proc/self/task")))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = subprocess.run([sys.executable, "-c", code], text=True, timeout=60, check=True, capture_output=True)
    assert result.stdout == "2\n"


@pytest.mark.parametrize("count, tracks", [(300, 300), (5000, 4097)])
def test_many_streams_have_a_track_each_up_to_a_limit(gpu, count, tracks):
    capture, _ = gpu.record("work", "streams", count)
    spans = operations(capture.rows())
    assert len({span["track"] for span in spans if span["args"]["op"] == "kernel"}) == tracks
    assert ("other streams" in {span["track"] for span in spans}) == (tracks < count)
    check_same(spans, gpu.delivered())


def test_a_way_of_graphs_that_is_not_known_is_said_once(gpu):
    _, result = gpu.record("work", "host", WAFFLE_GPU_GRAPH="all")
    assert result.stderr == ("waffle: WAFFLE_GPU_GRAPH: 'all': expected nodes or whole; graphs are recorded by "
                             "their nodes\n")


def test_nodes_of_a_graph_refer_to_their_capture(gpu):
    capture, _ = gpu.record("calls")
    rows = capture.rows()
    captures = [row["args"] for row in rows if row.get("name") == "capture"]
    nodes = {span["args"]["graph_node"] for span in operations(rows) if "graph_node" in span["args"]}
    cloned = {row["graph_node"]: row["from_graph"] for row in captures if row["from_graph"] and row["graph_node"]}
    captured = {row["graph_node"] for row in captures if not row["from_graph"]}
    assert nodes and nodes <= set(cloned)
    assert {cloned[node] for node in nodes} <= captured


def test_graphs_are_recorded_as_a_whole_on_request(gpu):
    capture, _ = gpu.record("calls", WAFFLE_GPU_GRAPH="whole")
    spans = operations(capture.rows())
    assert [span["name"] for span in spans if span["args"]["op"] == "graph"] == ["graph"] * 2
    assert not [span for span in spans if "graph_node" in span["args"]]


@pytest.mark.parametrize("fault, count", [("zero", "zero_times"), ("reversed", "zero_times"), ("drop", "dropped"),
                                          ("unknown", "unknown"), ("early", "clamped")])
def test_records_that_can_not_be_used_are_counted(gpu, fault, count):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI=f"{fault}:3")
    rows = capture.rows()
    last = sessions(rows)[-1]
    names = {"zero": "zero", "reversed": "reversed", "drop": "dropped", "early": "early"}
    wrong = gpu.delivered(names[fault]) if fault in names else []
    good = operations(rows)
    if fault == "unknown":
        assert last["unknown"] > 0
    elif fault == "early":
        # Only what has a launch can be before it.
        clamped = [span for span in good if span["args"].get("clamped")]
        assert 0 < len(clamped) == last["clamped"] <= len(wrong)
        good = [span for span in good if span["args"]["correlation"] not in {row["correlation"] for row in wrong}]
    else:
        assert last[count] == len(wrong) > 0
    numbers = {row["correlation"] for row in wrong}
    if fault != "early":
        check_same(good, gpu.delivered())
    else:
        check_same(good, [row for row in gpu.delivered() if row["correlation"] not in numbers])


def test_operations_that_began_before_their_launch_keep_it(gpu):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI="early:1")
    answer = json.loads(gpu.waffle.ok("gpu", "--json", capture.path).stdout)
    assert answer["sessions"][0]["clamped"] > 0
    assert {key: answer["not_attributed"][key] for key in ("without_launch", "before_launch")} == {
        "without_launch": 0, "before_launch": 0}


@pytest.mark.parametrize("fault, says", [
    ("zero", "operations had no times, and are lost"), ("reversed", "operations had no times, and are lost"),
    ("drop", "operations were dropped by CUPTI")])
def test_capture_whose_operations_are_all_lost_says_so(gpu, fault, says):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI=f"{fault}:1")
    line = gpu.waffle.fails(1, "gpu", capture.path, says="no operation is left")
    assert says in line


def test_text_counts_records_of_unknown_kinds(gpu):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI="unknown:2")
    [session] = json.loads(gpu.waffle.ok("gpu", "--json", capture.path).stdout)["sessions"]
    assert session["unknown"] > 1
    text = gpu.waffle.ok("gpu", capture.path).stdout
    assert f"{session['unknown']} records of CUPTI are of unknown kinds" in text


@pytest.mark.parametrize("fault", ["shuffle", "late", "clock", "shuffle,late,clock"])
def test_order_delay_and_another_tools_clock_change_nothing(gpu, fault):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI=fault)
    # Between two readings, another clock is taken to run evenly.
    check_same(operations(capture.rows()), gpu.delivered(), error_ns=50000 if "clock" in fault else 1000)


def test_a_tool_that_has_cupti_is_named_and_the_program_runs_on(gpu):
    capture, result = gpu.record("calls", WAFFLE_SIM_CUPTI="held:Nsight Systems", WAFFLE_SIM_CUPTI_VERSION="13.5")
    assert result.stderr.count("another tool has CUPTI: Nsight Systems") == 1
    assert result.stdout.endswith("done\n")
    [session] = sessions(capture.rows())
    assert session["state"] == "unavailable" and session["holder"] == "Nsight Systems"
    assert not operations(capture.rows())


def test_what_cupti_refuses_is_said_and_the_program_runs_on(gpu):
    capture, result = gpu.record("calls", WAFFLE_SIM_CUPTI="mig")
    assert result.stderr == ("waffle: the GPU's own times are not recorded: CUPTI's records of kernels: "
                             "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED (43)\n")
    assert result.stdout.endswith("done\n")
    # Nothing of CUPTI stays switched on.
    assert not gpu.delivered() and not operations(capture.rows())
    assert sessions(capture.rows())[-1]["state"] == "unavailable"


@pytest.mark.parametrize("flags, reason", [
    (["-DVERSION=17", "-DWHOLE"], "the process's CUPTI has version 17; waffle reads those from CUDA 12.0 on"),
    (["-DVERSION=22"], "the process's CUPTI has no cuptiFinalize")])
def test_a_cupti_that_is_too_old_is_not_used_and_the_program_runs_on(gpu, tmp_path, flags, reason):
    stub = compile_program("cupti_stub.c", tmp_path / "libcupti.so.12", "-shared", "-fPIC",
                           "-Wl,-soname,libcupti.so.12", *flags)
    capture, result = gpu.record("calls", LD_PRELOAD=str(stub))
    assert result.stderr == f"waffle: the GPU's own times are not recorded: {reason}\n"
    assert result.stdout.endswith("done\n")
    [session] = sessions(capture.rows())
    assert (session["state"], session["reason"]) == ("unavailable", reason)


def test_cupti_is_shared_where_its_holder_shares(gpu):
    capture, _ = gpu.record("calls", WAFFLE_SIM_CUPTI="held:dcgm,shared", WAFFLE_SIM_CUPTI_VERSION="13.5")
    assert [session["state"] for session in sessions(capture.rows())] == ["armed", "disarmed"]
    check_same(operations(capture.rows()), gpu.delivered())


def test_without_cupti_one_line_says_so_and_the_program_runs_on(gpu, tmp_path):
    folder = tmp_path / "without"
    folder.mkdir()
    for library in ("libcuda.so.1", "libcudart.so.12", "libnccl.so.2", "calls"):
        (folder / library).write_bytes((gpu.sim / library).read_bytes())
    (folder / "calls").chmod(0o755)
    result = subprocess.run([folder / "calls"], text=True, capture_output=True, timeout=60, check=False,
                            env={**gpu.environment(WAFFLE_TRACE=str(tmp_path / "out.waffle")),
                                 "LD_LIBRARY_PATH": str(folder)})
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1 and "no libcupti.so.12" in result.stderr


def test_the_library_needs_nothing_but_the_libc(gpu):
    """It is loaded into programs of other machines and containers."""
    out = subprocess.check_output(["readelf", "-dW", gpu.build / "libwaffle-gpu.so"], text=True)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", out))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}
    names = subprocess.check_output(["nm", "-D", "--defined-only", gpu.build / "libwaffle-gpu.so"], text=True)
    assert not [name for name in names.split() if re.match("elf_|ZSTD_|protobuf_|waffle_(trace|name)", name)]


def static_tls(library):
    out = subprocess.check_output(["readelf", "-lW", library], text=True)
    return int(re.search(r"^ +TLS +\S+ \S+ \S+ \S+ (0x\S+)", out, re.M).group(1), 16)


def test_the_library_finds_room_beside_libwaffle_and_other_libraries_with_static_storage(gpu, tmp_path):
    """glibc keeps 1664 bytes of each thread for the thread-local storage of libraries that are opened late."""
    assert static_tls(gpu.build / "libwaffle-gpu.so") < 200
    others = []
    for i in range(3):
        source, library = tmp_path / f"other{i}.c", tmp_path / f"libother{i}.so"
        source.write_text('__thread char room[160] __attribute__((tls_model("initial-exec"))) = {1};\n'
                          "char *other(void) { return room; }\n")
        subprocess.run(["gcc", "-fPIC", "-shared", "-o", library, source], check=True)
        others.append(library)
    code = "import ctypes, sys\nfor path in sys.argv[1:]: ctypes.CDLL(path)"
    libraries = [gpu.build / "libwaffle.so", *others, gpu.build / "libwaffle-gpu.so"]
    for order in (libraries, libraries[::-1]):
        result = subprocess.run([sys.executable, "-c", code, *order], text=True, timeout=60, check=False,
                                capture_output=True)
        assert (result.returncode, result.stderr) == (0, "")


BY_A_THREAD = """
import os, sys, threading
threading.Thread(target=lambda: os.execv(sys.argv[1], sys.argv[1:])).start()
threading.Event().wait()
"""


def kernels_and_launches(capture):
    rows = capture.rows()
    return (len([span for span in operations(rows) if span["args"]["op"] == "kernel"]),
            len([row for row in rows if row.get("name") == "launch"]))


@pytest.mark.parametrize("by", ["run", "thread"])
def test_run_records_all_of_a_program_that_uses_its_gpu_for_milliseconds(gpu, waffle, by):
    """An exec by another thread than the first is not held until the program is armed."""
    command = [gpu.sim / "work", "streams", "10"]
    if by == "thread":
        command = [os.path.realpath(sys.executable), "-c", BY_A_THREAD, *command]
    for _ in range(5):
        assert kernels_and_launches(waffle.run(*command, options=["--gpu"])) == (10, 10)


LATE = """
import ctypes, sys
print("ready", flush=True)
sys.stdin.readline()
cuda = ctypes.CDLL(sys.argv[1])
assert not cuda.cuInit(0)
module, function, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuModuleLoadData(ctypes.byref(module), b".version 6.0 (.param .u64 ns)")
assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin")
assert not cuda.cuStreamCreate(ctypes.byref(stream), 1)
ns = ctypes.c_uint64(1000)
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(ns), ctypes.c_void_p))
for _ in range(10):
    cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
cuda.cuStreamSynchronize(stream)
"""


def test_attach_arms_the_library_that_a_program_will_load_with_cuda(gpu, waffle):
    """Its environment names the library, and it has not used CUDA yet."""
    program = Program([sys.executable, "-c", LATE, gpu.sim / "libcuda.so.1"],
                      env=gpu.environment(LD_LIBRARY_PATH=str(gpu.sim)))
    try:
        program.until("ready")
        attached = waffle.attach("-p", program.pid, "-q", "--no-report")
        wait_until(lambda: is_armed(attached.process), "arming")
        program.say("go")
        program.finish()
        assert kernels_and_launches(attached.wait()) == (10, 10)
    finally:
        program.kill()


def test_a_tool_that_takes_the_records_of_cupti_gets_them_and_nothing_else_happens(gpu):
    """CUPTI gives all records to the callbacks that were registered last."""
    capture, result = gpu.record("work", "taken")
    assert result.stdout == "taken 1\nend\n" and result.stderr == ""
    assert kernels_and_launches(capture) == (1, 2)


def test_only_programs_that_load_the_library_are_said_to_have_rings(gpu, waffle):
    capture = waffle.run("sh", "-c", f"/bin/true; {gpu.sim / 'work'} host; /bin/true", options=["--gpu"])
    out = waffle.call("info", capture.path).stdout
    assert len(re.findall(r"\[ring", out)) == 1 and re.search(r"work host +\[ring: \d+ records\]", out)


def test_a_program_that_run_has_started_goes_on_when_waffle_has_ended(gpu):
    """The library waits only for a tracer that still runs."""
    for tracer in ("1.1", "nonsense", f"{os.getpid()}.1"):
        result = subprocess.run([gpu.sim / "work", "host"], text=True, capture_output=True, timeout=60, check=True,
                                env=gpu.environment(WAFFLE_GPU_TRACER=tracer))
        assert (result.stdout, result.stderr) == ("host functions 1\nend\n", "")


def test_a_program_with_a_libwaffle_of_its_own_is_told(gpu, waffle_program, tmp_path):
    """Its file has what it records itself, and the line says how to record both."""
    result = subprocess.run([gpu.sim / "work", "host"], text=True, capture_output=True, timeout=60, check=True,
                            env=gpu.environment(WAFFLE_TRACE=str(tmp_path / "out.waffle"),
                                                LD_PRELOAD=str(waffle_program.parent / "libwaffle.so")))
    assert result.stderr.count("\n") == 1 and "libwaffle of its own; waffle-bpf attach records both" in result.stderr
    assert not operations(Capture(gpu.waffle, tmp_path / "out.waffle").rows())


def test_attach_records_the_gpu_of_a_program_with_a_libwaffle_of_its_own(gpu, waffle, waffle_program):
    program = Program([gpu.sim / "work", "graph"],
                      env=gpu.environment(LD_PRELOAD=str(waffle_program.parent / "libwaffle.so")))
    try:
        program.until("instantiated")
        attached = waffle.attach("--pid", program.process.pid)
        wait_until(lambda: gpu.log.exists() and len(gpu.delivered()) > 500, "kernels are delivered")
        capture = attached.stop()
    finally:
        program.kill()
    assert [span for span in operations(capture.rows()) if span["args"]["op"] == "kernel"]


def test_a_program_that_nobody_records_is_as_without_the_library(gpu):
    """Dormant: CUPTI is not even loaded, and the one thread sleeps without a timer."""
    program = Program([gpu.sim / "launches", "driver", "20000", "30"], env=gpu.environment())
    try:
        pid = program.process.pid
        threads = lambda: {open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8").read().strip(): tid
                           for tid in os.listdir(f"/proc/{pid}/task")}
        wait_until(lambda: "waffle-gpu" in threads(), "the thread of the library")
        tid = threads()["waffle-gpu"]
        switches = lambda: [line for line in open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8")
                            if "ctxt_switches" in line]
        wait_until(lambda: open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8").read().split()[2] == "S", "it sleeps")
        before = switches()
        for _ in range(20):  # windows of some 100 ms
            program.line()
        assert switches() == before
        assert "libcupti" not in open(f"/proc/{pid}/maps", encoding="utf-8").read()
    finally:
        program.kill()


def test_run_lets_cuda_load_the_library(gpu, waffle, tmp_path):
    path, end = tmp_path / "run.waffle", tmp_path / "end"
    program = Program([waffle.program, "run", "--gpu", "-q", "--no-report", "-o", path, "--", gpu.sim / "work", "until", end],
                      env={**os.environ, "WAFFLE_SIM_CUPTI_LOG": str(gpu.log)})
    try:
        wait_until(lambda: gpu.log.exists() and len(gpu.delivered()) > 1000, "kernels are delivered")
        end.touch()
        program.finish()
    finally:
        program.kill()
    rows = Capture(waffle, path).rows()
    assert [session["state"] for session in sessions(rows)] == ["armed", "disarmed"]
    kernels = {span["args"]["correlation"] for span in operations(rows) if span["args"]["op"] == "kernel"}
    launches = {row["args"]["correlation"] for row in rows if row.get("name") == "launch"}
    assert len(kernels) > 400
    # A tracer arms names one after the other, so the first operations may be without their launch.
    assert len(kernels & launches) > 400


def test_run_leaves_the_library_of_another_tool(gpu, waffle):
    result = waffle.ok("run", "--gpu", "-o", gpu.folder / "other.waffle", "--", gpu.sim / "work", "host",
                       env={**os.environ, "CUDA_INJECTION64_PATH": "/tool.so"})
    assert "CUDA_INJECTION64_PATH is /tool.so, which stays" in result.stderr


def test_attach_arms_the_library_and_detach_gives_cupti_back(gpu, waffle):
    program = Program([gpu.sim / "launches", "runtime", "5000", "60"], env=gpu.environment())
    try:
        program.line()
        for turn in range(2):
            attached = waffle.attach("--pid", program.process.pid, path=gpu.folder / f"{turn}.waffle")
            before = len(gpu.delivered()) if gpu.log.exists() else 0
            # Of these, the ones of the last 0.1 s before the tracer goes are not in the capture: 500 launches.
            wait_until(lambda: gpu.log.exists() and len(gpu.delivered()) > before + 3000, "kernels are delivered")
            capture = attached.stop()
            rows = capture.rows()
            assert [s["state"] for s in sessions(rows)][:1] == ["armed"]
            kernels = {span["args"]["correlation"] for span in operations(rows) if span["args"]["op"] == "kernel"}
            launches = {row["args"]["correlation"] for row in rows if row.get("name") == "launch"}
            assert len(kernels & launches) > 500
            # What is delivered ends.
            def is_quiet():
                count = len(gpu.delivered())
                for _ in range(3):
                    program.line()
                return len(gpu.delivered()) == count
            wait_until(is_quiet, "nothing is delivered any more")
        assert program.alive()
    finally:
        program.kill()


def test_a_killed_tracer_leaves_cupti_given_back(gpu, waffle):
    program = Program([gpu.sim / "launches", "runtime", "5000", "60"], env=gpu.environment())
    try:
        program.line()
        attached = waffle.attach("--pid", program.process.pid)
        wait_until(lambda: gpu.log.exists() and len(gpu.delivered()) > 1000, "kernels are delivered")
        attached.signal(signal.SIGKILL)
        def is_quiet():
            count = len(gpu.delivered())
            for _ in range(3):
                program.line()
            return len(gpu.delivered()) == count
        wait_until(is_quiet, "nothing is delivered any more")
        assert program.alive()
    finally:
        program.kill()

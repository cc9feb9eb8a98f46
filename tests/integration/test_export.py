# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf export, on captures that make_capture.c writes: every value is known here."""
import json
import pathlib
import subprocess
import sys

import pytest

from tracer import ROOT, default_program, export_formats

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402

MS = 1_000_000
START = 1_000_000_000_000
BOOT = START + 5_000_000_000  # the boot time then
PROGRAM = pathlib.Path(default_program()).resolve()


@pytest.fixture(scope="module")
def captures(maker, tmp_path_factory):
    """captures(kind): the path of a capture."""
    folder = tmp_path_factory.mktemp("captures")

    def make(kind, *more):
        path = folder / f"{kind}.waffle"
        subprocess.run([maker, kind, path, *map(str, more)], check=True)
        return path

    return make


def export(capture, form, tmp_path, *options):
    out = tmp_path / f"out.{form}"
    done = subprocess.run([PROGRAM, "export", capture, "--format", form, "-o", out, *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def ndjson(capture, tmp_path, *options):
    lines = export(capture, "ndjson", tmp_path, *options).read_text().splitlines()
    return [json.loads(line) for line in lines]


def perfetto(capture, tmp_path, *options):
    trace = validate_perfetto.load(export(capture, "perfetto", tmp_path, *options))
    assert trace.violations == []
    return trace


def ms(ts):
    """Milliseconds since the begin of the capture."""
    return (ts - BOOT) / MS


def test_ndjson_spans_hold_ids_times_values_and_links(captures, tmp_path):
    spans = {o["id"]: o for o in ndjson(captures("scenario"), tmp_path) if o["kind"] == "span"}
    assert sorted(spans) == [f"{i:016x}" for i in range(0x1000, 0x1006)]
    assert spans[f"{0x1002:016x}"] == {
        "kind": "span", "id": "0000000000001002", "parent": "0000000000001001",
        "trace": "000000000000abcd0000000000001001", "name": "load", "pid": 100, "tid": 100,
        "comm": "train", "start_ns": START + 3 * MS, "end_ns": START + 14 * MS,
        "running_ns": 11 * MS, "runnable_ns": 0, "blocked_ns": 0, "args": {}}
    assert spans[f"{0x1001:016x}"]["args"] == {"rank": -3, "note": "ab\ufffd\"\nc…"}
    assert spans[f"{0x1001:016x}"]["category"] == "train"
    assert spans[f"{0x1001:016x}"]["unfinished"] is True
    assert spans[f"{0x1001:016x}"]["end_ns"] == START + 50 * MS
    assert spans[f"{0x1000:016x}"]["begun_before"] is True
    assert spans[f"{0x1000:016x}"]["start_ns"] == START
    assert spans[f"{0x1003:016x}"]["links"] == [{"kind": "event", "id": "0000000000002001"}]
    assert spans[f"{0x1003:016x}"]["args"] == {"scale": 2.5}
    assert [spans[f"{0x1003:016x}"][k] for k in ("running_ns", "runnable_ns", "blocked_ns")] == [
        6 * MS, 1 * MS, 1 * MS]
    assert spans[f"{0x1005:016x}"]["moved"] is True


def test_ndjson_events_counters_and_logs_are_told_apart(captures, tmp_path):
    lines = ndjson(captures("scenario"), tmp_path)
    events = {o["name"]: o for o in lines if o["kind"] == "event"}
    assert events["creating NaN"]["args"] == {"id": 42}
    assert events["creating NaN"]["id"] == "0000000000002001"
    assert "severity" not in events["creating NaN"]
    assert events["slow disk"]["severity"] == "warn"
    counters = {o["name"]: o["args"] for o in lines if o["kind"] == "counter"}
    assert counters == {"loss": {"value": 0.5}, "tokens": {"value": 123}}


def test_ndjson_thread_states_name_cpu_system_call_and_waker(captures, tmp_path):
    states = [(o["tid"], o["name"], (o["start_ns"] - START) // MS, (o["end_ns"] - START) // MS,
               o["args"]) for o in ndjson(captures("scenario"), tmp_path) if o["kind"] == "sched"]
    assert (101, "blocked", 10, 11, {"state": "S", "syscall": "read",
                                     "syscall_args": [7, 8, 9]}) in states
    assert (101, "runnable", 11, 12, {"cpu": 1, "waker_tid": 100, "waker": "train"}) in states
    assert (100, "runnable", 20, 22, {"cpu": 0, "preempted_by_tid": 200,
                                      "preempted_by": "neighbour"}) in states
    assert (101, "blocked", 36, 37, {"state": "S", "syscall": "futex",
                                     "syscall_args": [7, 8, 9]}) in states


def test_every_export_tells_what_was_lost(captures, tmp_path):
    capture = captures("loss")
    lines = ndjson(capture, tmp_path)
    assert [o for o in lines if o["kind"] == "loss"] == [
        {"kind": "loss", "start_ns": START + 40 * MS, "end_ns": START + 42 * MS,
         "args": {"source": "sched", "cpu": 0, "count": 77}}]
    assert lines[-1]["kind"] == "summary"
    records = lines[-1]["records"]
    assert records["lost"] == 77
    assert records["produced"] == records["delivered"] + 77
    chrome = json.loads(export(capture, "chrome", tmp_path).read_text())
    assert chrome["otherData"]["lost"] == 77
    assert [e["args"]["count"] for e in chrome["traceEvents"] if e["name"] == "records lost"] == [77]
    trace = perfetto(capture, tmp_path)
    assert (trace.lost, trace.lost_marked, trace.lost_cpus) == (77, 77, {0})
    assert [ms(i.ts) for i in trace.instants if i.track.name == "data loss"] == [42]


def test_perfetto_slices_nest_and_strays_have_tracks_of_their_own(captures, tmp_path):
    trace = perfetto(captures("scenario"), tmp_path)
    slices = {s.args["id"]: s for s in trace.slices}
    assert {i: (s.name, ms(s.ts), ms(s.end), s.track.tid, s.depth) for i, s in slices.items()} == {
        0x1000: ("load", 0, 1, 100, 0), 0x1001: ("step", 2, 50, 100, 0),
        0x1002: ("load", 3, 14, 100, 1), 0x1003: ("allreduce", 7, 15, 101, 0),
        0x1004: ("load", 13, 16, None, 0), 0x1005: ("load", 17, 19, None, 0)}
    assert slices[0x1000].args["begun_before"] is True
    assert slices[0x1001].args["unfinished"] is True
    assert slices[0x1001].args["rank"] == -3
    assert slices[0x1001].args["note"] == "ab\ufffd\"\nc…"
    assert slices[0x1001].args["trace"] == "000000000000abcd0000000000001001"
    assert slices[0x1002].args["parent"] == 0x1001
    assert slices[0x1005].args["end_tid"] == 100
    # One after the other, so one track is enough for both, below their process.
    assert slices[0x1004].track is slices[0x1005].track
    assert trace.tracks[slices[0x1004].track.parent].pid == 100
    assert [slices[0x1003].args[k] for k in ("running_ns", "runnable_ns", "blocked_ns")] == [
        6 * MS, 1 * MS, 1 * MS]


def test_perfetto_instants_flows_and_counters_have_the_values_of_the_program(captures, tmp_path):
    trace = perfetto(captures("scenario"), tmp_path)
    instants = {i.name: i for i in trace.instants if i.track.name != "capture"}
    assert sorted(instants) == ["creating NaN", "slow disk"]
    # The site has a key named id itself: that one keeps its name.
    assert instants["creating NaN"].args["id"] == 42
    assert instants["creating NaN"].args["waffle_id"] == 0x2001
    assert instants["slow disk"].args["severity"] == "warn"
    assert [(a.name, b.name) for a, b in trace.flows] == [("creating NaN", "allreduce")]
    assert [(t.name, ms(ts), value) for t, ts, value in trace.counters] == [
        ("loss", 5, 0.5), ("tokens", 18, 123)]
    assert all(trace.tracks[t.parent].pid == 100 for t, _, _ in trace.counters)


def test_perfetto_scheduler_data_shows_states_and_wakers(captures, tmp_path):
    trace = perfetto(captures("scenario"), tmp_path)
    states = {tid: [(s, ms(a), b and ms(b), waker) for t, s, a, b, waker, _ in
                    sorted(trace.states, key=lambda x: x[2]) if t == tid] for tid in (100, 101)}
    assert states[101] == [
        ("Running", 0, 10, None), ("S", 10, 11, None), ("R", 11, 12, 100),
        ("Running", 12, 36, None), ("S", 36, 37, None), ("R", 37, 38, 100),
        ("Running", 38, None, None)]
    assert states[100] == [
        ("Running", 0, 20, None), ("R+", 20, 22, None), ("Running", 22, 30, None),
        ("D", 30, 33, None), ("R", 33, 34, 200), ("Running", 34, None, None)]
    # 200 leaves the CPU once in the records; the other switch was lost.
    assert [(ms(ts), prev, after) for ts, cpu, prev, _, after in sorted(trace.switches)
            if cpu == 0] == [(0, 0, 100), (20, 100, 200), (22, 200, 100), (30, 100, 0),
                             (34, 0, 100)]
    assert [flags for _, waker, pid, flags in sorted(trace.wakings) if pid == 101] == [0, 0x10]


def long_waits(capture, tmp_path):
    """Blocked times of at least 1 ms, as threads' states show them: (tid, start, end)."""
    lines = ndjson(capture, tmp_path)
    (clock,) = [o["clock"] for o in lines if o["kind"] == "summary"]
    to_boot = clock["boot_ns"] - clock["monotonic_ns"]
    return sorted((o["tid"], o["start_ns"] + to_boot, o["end_ns"] + to_boot) for o in lines
                  if o["kind"] == "sched" and o["name"] == "blocked" and o["end_ns"] - o["start_ns"] >= MS)


def wait_times(trace):
    return sorted((trace.tracks[w.track.parent].tid, w.ts, w.end) for w in trace.waits)


def test_perfetto_waits_have_their_cause_and_who_ended_them(captures, tmp_path):
    trace = perfetto(captures("scenario"), tmp_path)
    assert [(ms(w.ts), ms(w.end), w.name, w.args["system_call"], w.args["woken_by"])
            for w in sorted(trace.waits, key=lambda w: w.ts)] == [
        (10, 11, "user-work", "read", "train (100)"),
        (30, 33, "disk-write", "write", "neighbour (200)"),
        (36, 37, "timer", "futex", "an interrupt")]
    assert wait_times(trace) == long_waits(captures("scenario"), tmp_path)
    lossy = captures("loss")
    assert wait_times(perfetto(lossy, tmp_path)) == long_waits(lossy, tmp_path)
    assert {w.track.name for w in trace.waits} == {"waits of train", "waits of loader\ufffd"}
    assert all(w.name == w.args["cause"] and w.args["grade"] == "likely" for w in trace.waits)


def test_perfetto_after_lost_switches_ends_nothing_twice(captures, tmp_path):
    trace = perfetto(captures("loss"), tmp_path)
    # 100 ran when records began to be lost, and came back after that.
    assert [(ms(ts), prev, state, after) for ts, cpu, prev, state, after in sorted(trace.switches)
            if cpu == 0][-2:] == [(40, 100, 0x80, 0), (44, 0, 0, 100)]


def test_window_leaves_out_the_rest_and_stays_valid(captures, tmp_path):
    trace = perfetto(captures("loss"), tmp_path, "--from", "13ms", "--to", "35ms")
    assert [ms(ts) for ts in trace.bounds] == [13, 35]
    lines = ndjson(captures("loss"), tmp_path, "--from", "13ms", "--to", "35ms")
    assert "creating NaN" not in {o.get("name") for o in lines}
    assert "tokens" in {o.get("name") for o in lines}


def test_chrome_json_has_times_in_microseconds_and_async_strays(captures, tmp_path):
    chrome = json.loads(export(captures("scenario"), "chrome", tmp_path).read_text())
    spans = [(e["name"], e["ts"], e["dur"], e["tid"]) for e in chrome["traceEvents"]
             if e["ph"] == "X"]
    assert spans == [("step", 2000, 48000, 100), ("load", 3000, 11000, 100),
                     ("allreduce", 7000, 8000, 101)]
    strays = [(e["ph"], e["id"], e["ts"]) for e in chrome["traceEvents"]
              if e["ph"] in "be" and e["cat"] != "sched"]
    assert strays == [("b", "0000000000001000", 0), ("e", "0000000000001000", 1000),
                      ("b", "0000000000001004", 13000), ("e", "0000000000001004", 16000),
                      ("b", "0000000000001005", 17000), ("e", "0000000000001005", 19000)]
    assert {e["name"]: e["args"] for e in chrome["traceEvents"] if e["ph"] == "C"} == {
        "loss": {"value": 0.5}, "tokens": {"value": 123}}


def test_large_capture_is_exported_whole_and_valid(captures, tmp_path):
    capture = captures("bench", 60000, 5)
    trace = perfetto(capture, tmp_path)
    assert len(trace.slices) == 60000 // 12 * 5
    assert len({s.args["id"] for s in trace.slices}) == len(trace.slices)
    assert sum(s.depth == 1 for s in trace.slices) == 60000 // 12 * 4
    out = export(capture, "perfetto", tmp_path)
    assert out.stat().st_size / 60000 <= 60


@pytest.mark.parametrize("seed", range(12))
def test_records_that_contradict_each_other_make_a_valid_trace(captures, tmp_path, seed):
    capture = captures("random", seed)
    trace = perfetto(capture, tmp_path)
    lines = ndjson(capture, tmp_path)
    assert sorted(s.args.get("id") for s in trace.slices) == sorted(
        int(o["id"], 16) for o in lines if o["kind"] == "span")
    assert sum(o["kind"] == "event" for o in lines) == sum(
        i.track.name not in ("capture", "data loss") for i in trace.instants)
    json.loads(export(capture, "chrome", tmp_path).read_text())
    assert set(wait_times(trace)) <= set(long_waits(capture, tmp_path))


def test_without_o_the_name_is_the_captures(captures, tmp_path):
    capture = tmp_path / "job.waffle"
    capture.write_bytes(captures("scenario").read_bytes())
    done = subprocess.run([PROGRAM, "export", capture, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["output"] == str(tmp_path / "job.pftrace")
    assert summary["bytes"] == (tmp_path / "job.pftrace").stat().st_size
    assert (summary["spans"], summary["links"], summary["records"]["lost"]) == (6, 1, 0)


@pytest.mark.parametrize("arguments, code", [
    ([], 2), (["a", "b"], 2), (["FILE", "--format", "svg"], 2), (["/nonexistent.waffle"], 1),
    (["FILE", "-o", "/nonexistent/out"], 1), (["FILE", "--from", "2s", "--to", "1s"], 2)])
def test_bad_usage_is_one_line_and_the_right_code(captures, arguments, code):
    capture = captures("scenario")
    arguments = [str(capture) if a == "FILE" else a for a in arguments]
    done = subprocess.run([PROGRAM, "export", *arguments], capture_output=True, text=True)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("waffle-bpf: export: ")


# The metrics of any capture fit into a pipe, and nobody sees who reads them.
@pytest.mark.parametrize("form", [form for form in export_formats() if form != "prometheus"])
def test_a_reader_that_goes_away_ends_an_export_quietly(waffle, maker, form):
    """`export -o - FILE | head`: as a shell reports the end by SIGPIPE."""
    path = waffle.path()
    subprocess.run([maker, "bench", path, "20000"], check=True)
    with subprocess.Popen(
        [waffle.program, "export", "--format", form, "-o", "-", path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as export:
        assert export.stdout.read(10)
        export.stdout.close()
        assert export.stderr.read() == b""
        assert export.wait() == 141

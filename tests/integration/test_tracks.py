# SPDX-License-Identifier: Apache-2.0
"""Tracks: spans with times that the program gives, in all outputs.

tracks.c prints what each of its records should be. NDJSON, Perfetto's official schema and the
records of the file are read here, and compared with that.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

import pytest
import waffle_file

from recorder import Recorder, compile_inside
from tracer import ROOT, Capture, named

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402


@pytest.fixture(scope="module")
def program(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "tracks.c", tmp_path_factory.mktemp("tracks") / "tracks")


@pytest.fixture
def recorder(waffle, program):
    return Recorder(waffle, program)


def expected(out):
    """What the program says: {(kind, i): (track, start, end)}."""
    found = {}
    for line in out.splitlines():
        kind, *rest = line.split(" ")
        if kind in ("span", "event", "counter"):
            i, *track, start, end = rest
            found[kind, int(i)] = (" ".join(track), int(start), int(end))
    return found


def recorded(rows, name):
    return {row["args"]["i"]: row for row in named(rows, name)}


def test_spans_have_their_own_times_and_their_track(recorder):
    capture, out = recorder.run("device")
    rows, wanted = capture.rows(), expected(out)
    [host] = named(rows, "host")
    spans = recorded(rows, "work")
    assert sorted(spans) == list(range(7))
    for i, span in spans.items():
        assert (span["track"], span["start_ns"], span["end_ns"]) == wanted["span", i]
        assert span["group"] == "device 0"
        assert (span["pid"], span["parent"]) == (host["pid"], host["id"])
        assert span["trace"] == host["trace"]
        # It is no thread, and the thread's times are not those of its tracks.
        assert not {"tid", "comm", "moved", "unfinished", "running_ns"} & set(span)
    assert not {"track", "group"} & set(host)
    [mark], [load] = named(rows, "mark"), named(rows, "load")
    assert (mark["track"], mark["start_ns"], 0) == wanted["event", 7]
    assert (load["track"], load["start_ns"], 0) == wanted["counter", 8]
    assert load["args"] == {"value": 0.5} and "id" not in load and mark["id"]
    capture.check_sums(lost=0)
    info = capture.info()
    assert (info["threads"], info["tracks"], info["spans"]) == (1, 2, 8)


def test_times_are_converted_by_the_pairs_of_the_program(recorder):
    capture, out = recorder.run("clocks")
    spans, wanted = recorded(capture.rows(), "work"), expected(out)
    assert sorted(spans) == [0, 1, 2, 3]
    for i, span in spans.items():
        assert (span["track"], span["start_ns"], span["end_ns"]) == wanted["span", i]


def test_children_may_be_recorded_before_their_parents(recorder):
    capture, out = recorder.run("nested")
    rows, wanted = capture.rows(), expected(out)
    outer, inner = recorded(rows, "outer"), recorded(rows, "inner")
    for i in range(100):
        assert (outer[i]["track"], outer[i]["start_ns"], outer[i]["end_ns"]) == wanted["span", i]
        assert inner[i]["parent"] == outer[i]["id"] and inner[i]["trace"] == outer[i]["trace"]
        assert inner[i]["start_ns"] == outer[i]["start_ns"] + 100
        assert "parent" not in outer[i]
    assert len({span["trace"] for span in outer.values()}) == 100


def test_threads_share_a_track_and_its_clock(recorder):
    capture, _ = recorder.run("beside")
    spans = recorded(capture.rows(), "work")
    assert sorted(spans) == list(range(20000))
    # Each thread adds pairs of lines that all have the same slope and offset.
    assert {span["end_ns"] - span["start_ns"] for span in spans.values()} == {5}
    assert {span["track"] for span in spans.values()} == {"shared"}
    capture.check_sums(lost=0)


def test_wrong_clocks_lose_only_what_they_time(recorder):
    says = (r"waffle: what is recorded on the track 'wrong' is more than 30 days away from now and "
            r"counts as lost: is its clock right\?\n")
    capture, out = recorder.run("wrong", says=says)
    spans, wanted = recorded(capture.rows(), "work"), expected(out)
    assert sorted(spans) == [0, 5]
    for i, span in spans.items():
        assert (span["track"], span["start_ns"], span["end_ns"]) == wanted["span", i]
    capture.check_sums(lost=4)


def test_records_of_the_file_are_those_of_the_page(recorder):
    """Read by the reader that follows docs/file-format.md. Without the two kinds, which an older
    reader skips, the spans would be on the thread, at the same times."""
    capture, out = recorder.run("device")
    wanted = expected(out)
    records = waffle_file.read(capture.path)
    tracks = {r["track"]: r for r in records if r["kind"] == 20}
    on = {r["id"]: r for r in records if r["kind"] == 21}
    hits = [r for r in records if r["kind"] == 1 and r["id"] in on]
    ends = {r["span_id"]: r["ts"] for r in records if r["kind"] == 2}
    assert {t["name"] for t in tracks.values()} == {"engine a", "engine b"}
    assert len(hits) == len(on) == 9
    times = collections.Counter((tracks[on[hit["id"]]["track"]]["name"], hit["ts"],
                                 ends.get(hit["id"], 0)) for hit in hits)
    assert times == collections.Counter(wanted.values())
    for hit in hits:
        assert (on[hit["id"]]["ts"], on[hit["id"]]["tid"]) == (hit["ts"], hit["tid"])


def perfetto_of(capture):
    """The official schema's reading of the trace."""
    trace = validate_perfetto.load(capture.export("perfetto"))
    assert not trace.violations
    return trace


def test_perfetto_has_a_track_each_with_slices_that_nest(recorder):
    capture, out = recorder.run("device")
    wanted, trace = expected(out), perfetto_of(capture)
    slices = {s.args["i"]: s for s in trace.slices if s.name == "work"}
    assert sorted(slices) == list(range(7))
    base = slices[0].ts - wanted["span", 0][1]
    for i, found in slices.items():
        track, start, end = wanted["span", i]
        assert (found.track.name, found.ts - base, found.end - base) == (track, start, end)
        group = trace.tracks[found.track.parent]
        assert group.name == "device 0" and trace.tracks[group.parent].pid
        assert found.track.tid is None
    # 3 overlaps 1, so it is beside it. 4 is inside of one of both.
    assert slices[3].track.uuid != slices[1].track.uuid
    assert slices[4].depth == 1
    assert {s.track.uuid for s in trace.slices if s.track.name == "engine b"} == {
        slices[6].track.uuid}
    [mark] = [i for i in trace.instants if i.name == "mark"]
    assert mark.track.uuid == slices[6].track.uuid
    [load] = trace.counters
    assert load


@pytest.mark.parametrize("mode", ["device", "windows", "nested"])
def test_stream_of_perfetto_has_the_same_tracks(recorder, mode):
    """Written by the program itself. It begins with the recording: what was before is left out."""
    path = recorder.waffle.path("live.pftrace")
    _, out = recorder.run(mode, path=path)
    wanted, trace = expected(out), validate_perfetto.load(path)
    assert not trace.violations
    wanted = {i: times for (kind, i), times in wanted.items() if kind == "span"}
    slices = {s.args["i"]: s for s in trace.slices if s.name in ("work", "outer")}
    base = max(slices.values(), key=lambda s: s.ts).ts - max(t[1] for t in wanted.values())
    for i, (track, start, end) in wanted.items():
        if mode == "device" and i in (0, 2):  # before the recording, all or a part of it
            continue
        found = slices[i]
        assert (found.track.name, found.ts - base, found.end - base) == (track, start, end)
        parent = trace.tracks[found.track.parent]
        group = {"device": "device 0", "windows": "late"}.get(mode)
        assert parent.name == group if group else parent.pid
    if mode == "device":
        assert 0 not in slices and {t.name for t in trace.tracks.values()} > {"engine b"}


@pytest.mark.parametrize("mode", ["device", "windows", "nested"])
def test_stream_of_chrome_has_the_same_tracks(recorder, mode):
    path = recorder.waffle.path("live.json")
    _, out = recorder.run(mode, path=path)
    wanted = expected(out)
    events = json.loads(path.read_text())
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    work = {e["args"]["i"]: e for e in events if e["name"] in ("work", "outer") and "args" in e}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    last = max(i for kind, i in wanted if kind == "span")
    base = work[last]["ts"] - wanted["span", last][1] / 1000
    for i, event in work.items():
        track, start, end = wanted["span", i]
        if mode == "device" and i == 2:
            continue
        length = event["dur"] if event["ph"] == "X" else ends[event["id"]] - event["ts"]
        assert names[event["tid"]].endswith(track)
        assert abs(event["ts"] - base - start / 1000) < 0.01
        assert round(length * 1000) == end - start
    # 2 ends 3 ms before the recording is used, and so perhaps before it began.
    missing = {i for kind, i in wanted if kind == "span"} - set(work)
    assert {0} <= missing <= {0, 2} if mode == "device" else not missing


def test_chrome_has_a_lane_for_each_track(recorder):
    capture, out = recorder.run("device")
    wanted = expected(out)
    events = json.loads(pathlib.Path(capture.export("chrome")).read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    work = {e["args"]["i"]: e for e in events if e["name"] == "work" and "args" in e}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    for i, event in work.items():
        track, start, end = wanted["span", i]
        length = event["dur"] if event["ph"] == "X" else ends[event["id"]] - event["ts"]
        assert names[event["tid"]] == f"device 0: {track}"
        assert round((event["ts"] - work[0]["ts"]) * 1000) == start - wanted["span", 0][1]
        assert round(length * 1000) == end - start
        assert event["tid"] >= 1 << 22  # no thread can have it


def test_people_see_tracks_beside_threads(recorder):
    capture, _ = recorder.run("device")
    waffle = capture.waffle
    text = capture.report_text()
    assert "1 thread, 2 tracks" in text
    assert "device 0: engine a (track of " in text
    lines = waffle.ok("view", capture.path).stdout.splitlines()
    assert lines[1].startswith("-9.9")  # what was before the capture is drawn, too
    assert [line for line in lines if line.startswith("device 0: engine a (track of ")]
    assert "tracks      2\n" in waffle.ok("info", capture.path).stdout
    page = waffle.path("report.html")
    waffle.ok("report", "--html", page, capture.path)
    assert "device 0: engine a (track of " in page.read_text()
    waffle.fails(1, "why", "--span", "work", capture.path,
                 says="on the track 'device 0: engine b', which has no thread")
    origin = waffle.ok("why", "--span", "work", "--origin", capture.path).stdout
    assert "span host" in origin


@pytest.mark.parametrize("expression, kept", [
    ("dur >= 3ms && dur < 1s", {1, 3}),
    ("kv.i == 6 || kind == counter", {6}),
    # 0 and 2 begin before their parent, which only a live filter knows then.
    ('parent.name == "host" && kind == span && !(kv.i in {0, 2})', {1, 3, 4, 5, 6}),
    ('comm == "engine b" && kind == span', {6}),
    ("depth == 1 && kv.i == 1", {1}),
    ("tid == 0 && kv.i > 4 && kind == span", {5, 6}),
    ('name == "mark"', set()),
])
def test_filters_see_the_same_live_and_in_the_file(recorder, expression, kept):
    live, _ = recorder.run("device", WAFFLE_FILTER=expression)
    whole, _ = recorder.run("device")
    path = live.waffle.path("filtered.ndjson")
    live.waffle.ok("export", whole.path, "--format", "ndjson", "--filter", expression, "-o", path)
    late = [json.loads(line) for line in path.read_text().splitlines()]
    for rows in (live.rows(), late):
        spans = recorded(rows, "work")
        assert set(spans) == kept
        assert all(span["track"] for span in spans.values())
    for kind in ("event", "counter"):
        count = {sum(r["kind"] == kind for r in rows) for rows in (live.rows(), late)}
        assert len(count) == 1
    live.check_sums(lost=0)


def test_metrics_tell_tracks_apart_as_filters_do(recorder):
    """In the field comm a track has its own name, and it has no tid."""
    path = recorder.waffle.folder / "tracks.prom"
    _, out = recorder.run("device", WAFFLE_PROCESS=f"metrics(by=comm+tid,file={path})")
    found = collections.Counter()
    for labels, value in re.findall(r'waffle_records_total\{(.*?)\} (\d+)', path.read_text()):
        labels = dict(re.findall(r'(\w+)="(.*?)"', labels))
        if labels["name"] == "work":
            assert "tid" not in labels
            found[labels["comm"]] += int(value)
    assert found == collections.Counter(track for (kind, _), (track, *_) in expected(out).items()
                                        if kind == "span")


def test_window_keeps_names_of_tracks_and_their_spans_in_it(recorder):
    capture, out = recorder.run("device")
    wanted = expected(out)
    path = capture.waffle.path("window.ndjson")
    capture.waffle.ok("export", capture.path, "--format", "ndjson", "--from", "2s", "-o", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    spans = recorded(rows, "work")
    assert {i: s["track"] for i, s in spans.items()} == {6: wanted["span", 6][0]}


def test_spans_of_tracks_may_be_later_than_the_end_of_the_capture(recorder):
    capture, _ = recorder.run("device")
    report = json.loads(capture.waffle.ok("report", "--json", "--from", "2s", capture.path).stdout)
    assert [(span["name"], span["count"]) for span in report["spans"]] == [("work", 1)]


def test_merged_files_keep_their_tracks(recorder):
    first, out = recorder.run("device")
    second, _ = recorder.run("device")
    merged = recorder.waffle.path("merged.waffle")
    recorder.waffle.ok("merge", "-o", merged, first.path, second.path)
    rows = Capture(recorder.waffle, merged).rows("span", name="work")
    assert len(rows) == 14 and {r["group"] for r in rows} == {"device 0"}
    assert len({r["pid"] for r in rows}) == 2
    wanted = {(track, start, end) for track, start, end in expected(out).values() if end}
    assert wanted <= {(r["track"], r["start_ns"], r["end_ns"]) for r in rows}


# ---- a tracer ----


def device_rows(wanted, rows):
    """Checks that the records are those of `tracks device`."""
    spans = recorded(rows, "work")
    assert sorted(spans) == list(range(7))
    for i, span in spans.items():
        assert (span["track"], span["start_ns"], span["end_ns"]) == wanted["span", i]
        assert span["group"] == "device 0" and "tid" not in span
    [mark], [load] = named(rows, "mark"), named(rows, "load")
    assert (mark["track"], mark["start_ns"], 0) == wanted["event", 7]
    assert (load["track"], load["start_ns"], 0) == wanted["counter", 8]
    return spans


def test_tracer_records_tracks_beside_the_scheduler(waffle, program):
    capture = waffle.run(program, "device", "500")
    rows, wanted = capture.rows(), expected(capture.result.stdout)
    spans = device_rows(wanted, rows)
    [host] = named(rows, "host")
    assert {span["parent"] for span in spans.values()} == {host["id"]}
    assert host["running_ns"] > 0 and not any("running_ns" in s for s in spans.values())
    assert not perfetto_of(capture).violations
    capture.check_sums(lost=0)
    # Threads are not longer than the capture, whatever tracks have.
    info = capture.info()
    for row in rows:
        if row["kind"] == "sched":
            assert row["end_ns"] - row["start_ns"] < 5e9
    assert info["tracks"] == 2
    waffle.fails(1, "why", "--span", "work", capture.path,
                 says="which has no thread that could wait")
    assert "host" in waffle.ok("why", "--span", "host", capture.path).stdout


@pytest.mark.parametrize("expression, kept", [
    ("dur >= 3ms && dur < 1s", {1, 3}),
    ("kv.i == 6 || kind == counter", {6}),
    ('parent.name == "host" && kind == span', set(range(7))),
    ('comm == "engine b" && kind == span', {6}),
    ("depth == 1 && kv.i < 2", {0, 1}),
    ("tid == 0 && kv.i > 4 && kind == span", {5, 6}),
    ('name == "mark"', set()),
])
def test_tracer_filters_tracks_as_the_program_itself_does(waffle, recorder, program, expression,
                                                          kept):
    options = ["--sources", "spans", "--filter", expression]
    traced = waffle.run(program, "device", "500", options=options)
    own, _ = recorder.run("device", WAFFLE_FILTER=expression)
    for capture in (traced, own):
        rows = capture.rows()
        spans = recorded(rows, "work")
        assert set(spans) == kept
        assert all(span["track"] for span in spans.values())
        capture.check_sums(lost=0)
    for kind in ("span", "event", "counter"):
        assert len({sum(r["kind"] == kind for r in c.rows()) for c in (traced, own)}) == 1


def test_tracer_counts_what_wrong_clocks_time_as_lost(waffle, program):
    capture = waffle.run(program, "wrong", "500", options=["--sources", "spans"])
    assert sorted(recorded(capture.rows(), "work")) == [0, 5]
    capture.check_sums(lost=4)


def test_tracer_and_the_program_itself_both_record_tracks(waffle, recorder, program):
    own = waffle.path("own.waffle")
    capture = waffle.run("env", f"WAFFLE_TRACE={own}", program, "device", "500",
                         options=["--sources", "spans"])
    wanted = expected(capture.result.stdout)
    device_rows(wanted, capture.rows())
    device_rows(wanted, Capture(waffle, own).rows())


def test_dormant_names_record_nothing_on_tracks(program):
    done = subprocess.run([program, "device"], text=True, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.stdout.endswith("end\n") and not done.stderr

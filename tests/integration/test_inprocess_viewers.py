# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves into a file for viewers: out.json and out.pftrace.

A deterministic program is recorded in each format. What a viewer finds in the file is compared with
`waffle-bpf export` of its .waffle file, and Perfetto's files are read with its official schema.
"""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from recorder import Recorder, compile_inside
from tracer import ROOT, Program

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402

COUNT = 200


@pytest.fixture(scope="module")
def timeline(waffle_program, tmp_path_factory):
    out = tmp_path_factory.mktemp("timeline") / "timeline"
    return compile_inside(waffle_program, "timeline.c", out)


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


@pytest.fixture
def record(waffle, timeline):
    """record(extension, arguments…): the file of a run."""
    recorder = Recorder(waffle, timeline)

    def run(extension, *arguments, **variables):
        path = waffle.path(f"out-{waffle.count}.{extension}")
        recorder.run(*arguments, path=path, **variables)
        return path

    return run


def exported(waffle, capture, form, extension):
    out = capture.with_suffix(f".exported.{extension}")
    waffle.ok("export", capture, "--format", form, "-o", out)
    return out


# ---- Chrome ----

class Chrome:
    """What a viewer makes of the events of a file."""

    def __init__(self, events):
        self.spans, self.instants, self.counters, self.flows = [], [], [], []
        self.threads, self.lost, self.bad = {}, 0, []
        begun, flows = {}, {}
        stacks = collections.defaultdict(list)
        for event in sorted(events, key=lambda e: e["ts"]):
            place, phase = (event["pid"], event["tid"]), event["ph"]
            if phase == "X":
                self.spans.append((event, event["ts"], event["ts"] + event["dur"]))
            elif phase == "B":
                stacks[place].append(event)
            elif phase == "E":
                begin = stacks[place].pop()
                assert begin["name"] == event["name"]
                begin["args"].update(event.get("args", {}))
                self.spans.append((begin, begin["ts"], event["ts"]))
            elif phase == "b":
                begun[event["id"], event["name"]] = event
            elif phase == "e":
                begin = begun.pop((event["id"], event["name"]))
                self.spans.append((begin, begin["ts"], event["ts"]))
            elif phase == "i" and event["name"] == "records lost":
                self.lost += event["args"]["count"]
            elif phase == "i":
                self.instants.append(event)
            elif phase == "C":
                self.counters.append(event)
            elif phase == "s":
                flows[event["id"]] = event
            elif phase == "f":
                self.flows.append((flows.pop(event["id"]), event))
            elif event["name"] == "thread_name":
                self.threads[event["tid"]] = event["args"]["name"]
        self.open = [*begun.values(), *(e for stack in stacks.values() for e in stack)]
        assert not flows

    def name(self, tid):
        return self.threads.get(tid, "?")

    def by_id(self):
        return {e["args"]["waffle.id"]: e for e in [*(s[0] for s in self.spans), *self.instants]
                if not e["args"].get("waffle.continued")}

    def contents(self):
        """All that does not differ between two runs."""
        ids = self.by_id()

        def args(event):
            kept = {k: v for k, v in event["args"].items() if k not in ("waffle.id", "cause")}
            parent = kept.pop("waffle.parent", None)
            if parent:
                kept["parent"] = ids[parent]["name"], ids[parent]["args"]["i"]
            return json.dumps(kept, sort_keys=True)

        def what(event):
            return event["name"], event["cat"], self.name(event["tid"]), args(event)

        return {
            "spans": collections.Counter(what(span) for span, _, _ in self.spans),
            "instants": collections.Counter(what(event) for event in self.instants),
            "counters": collections.Counter((e["name"], args(e)) for e in self.counters),
            "threads": set(self.threads.values()),
            "flows": len(self.flows),
        }


def load_array(path):
    text = path.read_text(encoding="utf-8")
    # One event a line, so that each prefix of lines is an array but for its bracket.
    lines = text.split("\n")
    assert lines[0] == "[" and lines[-2:] == ["]", ""]
    for line in lines[1:-2]:
        json.loads(line.removesuffix(","))
    return json.loads(text)


def test_chrome_array_has_what_the_exporter_writes(waffle, record):
    got = Chrome(load_array(record("json", COUNT)))
    wanted = json.loads(exported(waffle, record("waffle", COUNT), "chrome", "json").read_text())
    wanted = Chrome(wanted["traceEvents"])
    got_contents, wanted_contents = got.contents(), wanted.contents()
    for part, value in wanted_contents.items():
        assert got_contents[part] == value, part
    assert len(got.spans) == 5 * COUNT + 2 * min(COUNT, 64) + 1
    assert not got.open
    for (cause, effect) in got.flows:
        assert cause["ts"] <= effect["ts"]


def test_chrome_spans_longer_than_a_window_have_their_begin_and_end(record):
    started = time.monotonic()
    got = Chrome(load_array(record("json", 1, "slow")))
    assert time.monotonic() - started > 6.9
    spans = collections.defaultdict(list)
    for span, begin, end in got.spans:
        spans[span["name"]].append((span, begin, end))
    [(long, begin, end)] = spans["long"]
    assert 4.6e6 <= end - begin <= 30e6
    [(answer, inner_begin, inner_end)] = spans["answer"]
    assert begin <= inner_begin and inner_end <= end
    # `late` begins inside `early` and outlives it. Its slice ends there, and the rest follows.
    [(early, early_begin, early_end)] = spans["early"]
    (late, late_begin, late_end), (rest, rest_begin, rest_end) = sorted(spans["late"],
                                                                        key=lambda s: s[1])
    assert rest["args"]["waffle.continued"] and rest["args"]["waffle.id"] == late["args"]["waffle.id"]
    assert (late_end, rest_begin) == (early_end, early_end)
    assert 6.9e6 <= rest_end - late_begin
    names = [(got.by_id().get(c["args"]["waffle.id"])) for c in got.instants if c["name"] == "ask"]
    assert len(names) == 1
    asked = [f for f in got.flows if f[1]["ts"] == inner_begin]
    assert len(asked) == 1 and asked[0][0]["ts"] == names[0]["ts"]


def test_numbers_are_json_in_any_locale(record, tmp_path):
    """The decimal point of the program's locale is no part of JSON."""
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"],
                          check=False, capture_output=True)
    if made.returncode > 1:
        pytest.skip("no locale with a decimal comma can be made: the package 'locales' is missing")
    log = tmp_path / "log"
    got = Chrome(load_array(record("json", 3, "-", "de_DE.UTF-8", LOCPATH=str(tmp_path),
                                   says="waffle: WAFFLE_PROCESS: 1 span had not ended\n",
                                   WAFFLE_PROCESS=f'filter(name == "values"),log(json,file={log})')))
    assert [s["args"]["real"] for s, _, _ in got.spans if s["name"] == "values"] == [0.25, 1.25, 2.25]
    logged = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [row["args"]["real"] for row in logged] == [0.25, 1.25, 2.25]


# ---- Perfetto ----

def perfetto_contents(trace):
    def args(item):
        kept = {k: v for k, v in item.args.items()
                if k not in ("waffle_id", "parent", "trace", "cause", "end_tid")}
        if "waffle_id" not in item.args:  # the program has a key "id" of its own in one span
            kept.pop("id", None)
        return json.dumps(kept, sort_keys=True, default=str)

    def place(item):
        return item.track.name

    def what(item):
        return item.name, item.category, place(item), args(item)

    return {
        "slices": collections.Counter(what(s) for s in trace.slices),
        "depths": collections.Counter((s.name, s.depth) for s in trace.slices),
        "instants": collections.Counter(what(i) for i in trace.instants
                                        if i.track.name not in ("capture", "data loss")),
        "counters": collections.Counter((c[0].name, c[2]) for c in trace.counters),
        "tracks": {(t.name, bool(t.tid), t.counter) for t in trace.tracks.values()},
        "flows": collections.Counter((a.name, b.name, b.args.get("i")) for a, b in trace.flows),
    }


def test_perfetto_trace_has_what_the_exporter_writes(waffle, record):
    got = validate_perfetto.load(record("pftrace", COUNT))
    capture = record("waffle", COUNT)
    wanted = validate_perfetto.load(exported(waffle, capture, "perfetto", "pftrace"))
    assert got.violations == wanted.violations == []
    got_contents, wanted_contents = perfetto_contents(got), perfetto_contents(wanted)
    for part, value in wanted_contents.items():
        assert got_contents[part] == value, part


def test_perfetto_spans_longer_than_a_window_have_their_begin_and_end(record):
    got = validate_perfetto.load(record("pftrace", 1, "slow"))
    assert got.violations == []
    spans = collections.defaultdict(list)
    for span in got.slices:
        spans[span.name].append(span)
    [long], [answer], [early] = spans["long"], spans["answer"], spans["early"]
    assert all(part.args["unfinished"] for part in spans["left long ago"][-1:] + spans["left open"])
    assert long.end - long.ts >= 4.6e9 and answer.track is long.track and answer.end <= long.end
    late, rest = sorted(spans["late"], key=lambda s: s.ts)
    assert rest.args["continued"] and rest.args["id"] == late.args["id"]
    assert late.end == rest.ts == early.end and rest.end - late.ts >= 6.9e9
    # The cause was written before: a mark in its place begins the arrow.
    [(cause, effect)] = [f for f in got.flows if f[1].name == "answer"]
    [ask] = [i for i in got.instants if i.name == "ask"]
    assert (cause.name, cause.ts, cause.args["id"]) == ("cause", ask.ts, ask.args["id"])

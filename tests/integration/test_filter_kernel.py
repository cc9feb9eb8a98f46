# SPDX-License-Identifier: Apache-2.0
"""Filters in the kernel: which sites are armed, which records arrive, and the counts of both."""

import os
import re
import signal
import subprocess

import pytest

from tracer import Capture, compile_program, parse_log, semaphores, tries, wait_until


@pytest.fixture
def program(built):
    return built("filtered.c")


@pytest.fixture
def filtered(waffle, program):
    """filtered(EXPR, *ARGUMENTS): a program run to its end under a filter; its rows."""

    def run(expression, *arguments, options=(), env=None, lost=0):
        capture = waffle.run(
            program,
            *arguments,
            options=("--no-sched", "--filter", expression, *options),
            **({"env": {**os.environ, **env}} if env else {}),
        )
        capture.log = parse_log(capture.result.stdout.splitlines())
        capture.records = capture.check_sums(lost=lost)
        capture.hits = [
            row
            for row in capture.rows()
            if row["kind"] in ("span", "event", "counter", "log")
        ]
        return capture

    return run


def names(capture):
    return sorted(row["name"] for row in capture.hits)


def values(capture, name, key):
    return sorted(row["args"][key] for row in capture.hits if row["name"] == name)


def all_whole(capture):
    """No span lacks its begin or its end."""
    return all(
        row["end_ns"] >= row["start_ns"]
        and not row.get("unfinished")
        and not row.get("begun_before")
        for row in capture.hits
        if row["kind"] == "span"
    )


# ---- the static part ----


def test_sites_that_can_not_match_stay_dormant(waffle, program, start):
    running = start(
        waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--filter",
        'name == "copy"', "--", program, "wait", "events 7",
    )  # fmt: skip
    pid = int(running.until("waiting pid="))
    armed = semaphores(pid, program)
    assert armed.count(1) == 1
    assert armed.count(0) == len(armed) - 1 > 10
    running.say("go")
    running.finish()


def test_a_static_filter_delivers_what_it_names(filtered):
    expression = 'name == "request" || kind == event && name ~ "co*"'
    capture = filtered(expression, "events 9", "spans 20 0 0")
    assert names(capture) == ["copy"] * 9 + ["request"] * 20
    assert all_whole(capture)


def test_nothing_can_match_is_said(waffle, program, start):
    running = start(program)
    running.until("ready")
    nothing = ("--filter", 'name == "nothing"')
    attached = waffle.attach("-p", running.pid, "--no-report", *nothing)
    notice = attached.wait_notice()
    assert "no site can match the filter" in notice and "'copy'" in notice
    attached.stop()


# ---- decided at the hit ----


def test_events_pass_by_their_values(filtered):
    capture = filtered("kv.bytes >= 5000 && kv.bytes < 7k", "events 100", "spans 5 0 0")
    assert values(capture, "copy", "bytes") == list(range(5000, 7000, 100))
    assert set(names(capture)) == {"copy"}


def test_events_pass_by_texts_and_floats(filtered):
    capture = filtered('kv.kind == "device" && kv.ratio > 10.25', "events 50")
    expected = [i * 100 for i in range(50) if i % 2 and i / 2 > 10.25]
    assert values(capture, "copy", "bytes") == expected


def test_a_span_that_passes_brings_its_end(filtered):
    capture = filtered('kind == span && kv.n < 10', "spans 1000 0 0")
    assert values(capture, "request", "n") == list(range(10))
    assert all_whole(capture)
    # Ends of spans that did not pass are no records either.
    assert capture.records["produced"] < 40


@pytest.mark.parametrize(
    "expression, count",
    [
        ('comm == "filtered"', 10),
        ('comm != "filtered"', 0),
        ("cpu < 4096 && tid > 0 && pid > 1", 10),
    ],
)
def test_fields_of_the_thread(filtered, expression, count):
    assert len(filtered(f'name == "copy" && {expression}', "events 10").hits) == count


def test_the_rate_limits_each_window(filtered):
    capture = filtered('name == "copy" && rate(25/min)', "events 1000")
    assert len(capture.hits) in (25, 50)  # a minute may have begun meanwhile
    assert values(capture, "copy", "bytes")[:25] == list(range(0, 2500, 100))


def test_depth_and_parents_names(filtered):
    capture = filtered('name == "level" && depth >= 3', "levels 6")
    assert values(capture, "level", "left") == [1, 2, 3]
    capture = filtered('name == "leaf" && depth == 6 && parent.name == "level"', "levels 6")
    assert names(capture) == ["leaf"]
    capture = filtered('parent.name == "request" || depth == 0', "spans 3 0 0", "levels 3")
    assert names(capture) == ["in request"] * 3 + ["level"] + ["request"] * 3


def test_whole_traces_are_sampled_across_threads(filtered):
    capture = filtered("sample(1/4)", "traces 400")
    traces = {}
    for row in capture.hits:
        traces.setdefault(row["trace"], []).append(row["name"])
    assert 50 < len(traces) < 170
    for found in traces.values():
        assert sorted(found) == ["beside", "beside span", "in root", "root"]
    assert all_whole(capture)


# ---- decided at the end ----


@tries(3)
def test_only_slow_spans_are_delivered_whole(filtered):
    capture = filtered("dur > 10ms", "spans 2000 4 20")
    slow = [row for row in capture.log if row["kind"] == "slow"]
    rows = sorted(capture.hits, key=lambda row: row["start_ns"])
    assert [row["args"]["n"] for row in rows] == [row["n"] for row in slow] == [0, 500, 1000, 1500]
    for row, said in zip(rows, slow):
        assert said["begin"] <= row["start_ns"] < row["end_ns"] <= said["end"]
        assert row["name"] == "request" and row["kind"] == "span"
    assert capture.records["produced"] < 30


@tries(3)
def test_spans_with_long_frames_are_held_with_all_their_values(filtered):
    capture = filtered("dur > 10ms", "long 20", "long 0", "link 15", "family 15")
    [row] = [row for row in capture.hits if row["name"] == "long"]
    assert [len(row["args"][key].rstrip("…")) >= 256 for key in "abcd"] == [True] * 4
    assert names(capture) == ["effect", "long", "slow"]


@tries(3)
def test_a_held_span_keeps_its_links(filtered):
    capture = filtered('dur > 10ms || name == "cause"', "link 15", "link 0")
    effects = [row for row in capture.hits if row["name"] == "effect"]
    causes = {row["id"] for row in capture.hits if row["name"] == "cause"}
    assert len(effects) == 1 and len(causes) == 2
    assert effects[0]["links"][0]["id"] in causes
    assert effects[0]["args"]["text"] == "linked"


@tries(3)
def test_the_duration_and_what_is_known_at_the_begin(filtered):
    capture = filtered('dur > 10ms && kv.n != 500 || kv.n == 7', "spans 2000 4 15")
    assert values(capture, "request", "n") == [0, 7, 1000, 1500]
    capture = filtered('!(dur > 10ms) && kv.n < 3', "spans 2000 2 15")
    assert values(capture, "request", "n") == [1, 2]
    assert names(capture) == ["in request"] * 3 + ["request"] * 2


def test_what_can_not_be_held_is_counted_as_lost(filtered):
    capture = filtered('name == "held" && dur > 1ms', "hold 40000 20", lost=40000 - 32768)
    assert values(capture, "held", "n") == list(range(32768))
    assert all_whole(capture)


# ---- with --keep-children ----


def kept(filtered, expression, *arguments, **options):
    return filtered(expression, *arguments, options=("--keep-children",), **options)


SLOW = 'name == "slow" && dur > 10ms'
FAMILY = ["deep", "first", "last", "part", "slow"]


@tries(3)
def test_what_is_inside_a_slow_span_is_kept(filtered):
    capture = kept(
        filtered, SLOW, "family 0", "family 20", "family 0", "events 10"
    )  # fmt: skip
    assert names(capture) == FAMILY
    assert all_whole(capture)
    [slow] = [row for row in capture.hits if row["name"] == "slow"]
    [part] = [row for row in capture.hits if row["name"] == "part"]
    [deep] = [row for row in capture.hits if row["name"] == "deep"]
    assert (part["parent"], deep["parent"]) == (slow["id"], part["id"])
    assert slow["start_ns"] < part["start_ns"] < deep["start_ns"] < part["end_ns"] < slow["end_ns"]
    assert part["args"] == {"what": "a part"}


def test_what_is_inside_a_span_that_passes_at_once_is_kept(filtered):
    capture = kept(filtered, 'name == "slow"', "family 0", "events 3", "threads 0")
    assert names(capture) == sorted(FAMILY + ["beside", "beside span", "slow"])
    assert all_whole(capture)
    capture = kept(filtered, 'kv.ms == 1', "family 0", "family 1")
    assert names(capture) == FAMILY


@tries(3)
def test_held_spans_in_held_spans(filtered):
    everything = ["brief", "in brief", "in inner", "in outer", "inner", "outer"]
    assert names(kept(filtered, "dur > 10ms", "nested 20 0", "nested 0 0")) == everything
    assert names(kept(filtered, "dur > 10ms", "nested 20 20")) == everything
    capture = kept(filtered, 'name == "inner" && dur > 10ms', "nested 20 20")
    assert names(capture) == ["in inner", "inner"]
    capture = kept(filtered, 'name != "outer" && dur > 10ms', "nested 20 20")
    assert names(capture) == ["in inner", "inner"]
    assert all_whole(kept(filtered, "dur > 10ms", "nested 20 20", "nested 20 0"))


@tries(3)
def test_of_spans_that_overlap_only_the_kept_one_keeps_its_children(filtered):
    capture = kept(filtered, "dur > 10ms", "rival 20")
    assert names(capture) == ["in slow", "slow"]


@tries(3)
def test_the_newest_children_are_kept_and_the_others_are_counted(filtered):
    crowds = ("crowd 300 20", "crowd 300 0", "crowd 5 20")
    capture = kept(filtered, SLOW, *crowds, lost=300 - 128)
    rows = sorted(capture.hits, key=lambda row: row["start_ns"])
    crowd = [row["args"]["n"] for row in rows if row["name"] == "crowd"]
    assert crowd == list(range(172, 300)) + list(range(5))


@tries(3)
def test_children_on_other_threads_are_lost_unless_their_span_is_decided(filtered):
    capture = kept(filtered, SLOW, "threads 20", "threads 0", lost=2)
    assert names(capture) == ["slow"]


@tries(3)
def test_a_child_that_outlives_its_span_is_delivered_whole(filtered):
    capture = kept(filtered, SLOW, "survivor 20", "survivor 0")
    assert names(capture) == ["slow", "survivor"]
    assert all_whole(capture)
    capture = kept(filtered, 'dur > 10ms && name != "survivor"', "survivor 20")
    assert names(capture) == ["slow", "survivor"]
    assert all_whole(capture)


# ---- processes, libraries, kernels ----


def test_children_processes_are_filtered_alike(filtered):
    # Without --machine-wide, what a child did before it was armed is missing, and that is said.
    capture = filtered("dur > 10ms || kv.bytes == 300", "spans 10 1 15", "fork 5", "events 5",
                       options=["--machine-wide"])  # fmt: skip
    assert names(capture) == ["copy"] * 2 + ["request"] * 3
    assert len({row["pid"] for row in capture.hits}) == 2


def test_a_library_that_comes_late_has_its_own_programs(waffle, built, start, program):
    library = built("library.c", "-shared", "-fPIC", name="late.so")
    running = start(program)
    running.until("ready")
    attached = waffle.attach("-p", running.pid, "-q", "--no-report", "--no-sched", "--filter",
                             "kv.bytes == 100 || kv.i == 3")  # fmt: skip
    wait_until(lambda: any(semaphores(running.pid, program)), "arming")
    running.ask(f"library {library} 10", "opened")
    wait_until(lambda: all(semaphores(running.pid, library) or [0]), "arming of the library")
    running.ask("go", "did library=10")
    running.ask("events 4", "did")
    capture = attached.stop()
    rows = sorted((row["name"], *row["args"].values()) for row in capture.rows()
                  if row["kind"] in ("span", "event"))
    assert rows == [("copy", 100, "device", 0.5), ("library event", 3), ("library span", 3)]
    capture.check_sums(lost=0)


@tries(3)
def test_filters_without_links_for_many_probes(filtered):
    env = {"WAFFLE_UPROBE_SINGLE": "1"}
    capture = filtered("dur > 10ms || kv.bytes == 300", "spans 100 2 15", "events 5", env=env)
    assert names(capture) == ["copy", "request", "request"]
    capture = kept(filtered, SLOW, "family 20", "family 0", env=env)
    assert names(capture) == FAMILY


def test_a_killed_tracer_leaves_nothing(waffle, program, start):
    running = start(program)
    running.until("ready")
    attached = waffle.attach("-p", running.pid, "-q", "--no-report", "--keep-children", "--filter",
                             "dur > 10ms || kv.bytes == 1")  # fmt: skip
    wait_until(lambda: any(semaphores(running.pid, program)), "arming")
    attached.signal(signal.SIGKILL)
    attached.process.wait()
    wait_until(lambda: not any(semaphores(running.pid, program)), "disarming")
    running.ask("events 5", "did")


@tries(3)
def test_spans_left_open_by_dead_processes_are_forgotten(waffle, program, start):
    """More spans than can be held at a time, from processes that die before they end them."""
    pipe = waffle.path().with_suffix(".pipe")
    os.mkfifo(pipe)
    dying = f"{program} 'hold 20000 600000' > {pipe} & p=$!; read line < {pipe}"
    dying += "; kill -9 $p; wait $p; sleep 2"
    script = f"{dying}; {dying}; {program} 'hold 20000 20'"
    held = ("--no-sched", "--filter", 'name == "held" && dur > 1ms')
    capture = waffle.run("sh", "-c", script, options=held)
    assert capture.check_sums(lost=0)
    assert len([row for row in capture.rows("span") if row["name"] == "held"]) == 20000


def test_a_key_that_no_site_declares_is_said_for_a_command_too(waffle, program):
    options = ("--no-report", "-o", waffle.path(), "--filter", "kv.nothing > 3")
    done = waffle.ok("run", *options, "--", program)
    assert re.search(r"no site declares the key 'nothing'", done.stderr), done.stderr
    assert "no site can match the filter" in done.stderr


def test_sample_keeps_whole_traces_though_their_spans_can_not_match(filtered):
    """The spans are armed all the same: traces begin in them."""
    capture = filtered("kind == event && sample(1/2)", "traces 200")
    traces = {}
    for row in capture.hits:
        assert row["kind"] == "event"
        traces.setdefault(row["trace"], []).append(row)
    events = len([row for row in capture.log if row["kind"] == "event"])
    assert all(len(rows) == 2 for rows in traces.values())
    assert 60 <= len(traces) <= 140, f"{len(traces)} of 200 traces, {events} events logged"


def many_layouts(folder, count):
    """A program whose sites all take programs of their own. It hits each of them with n = 1, once
    all are armed: on a busy machine it is held for less time than that takes."""
    sites = []
    for i in range(count):
        keys = [f'KV_STR("t{j}", "x"), KV_I64("i{j}", {j})' for j in range(i % 5)]
        keys += [f'KV_I64("pad{j}", {j})' for j in range(i // 5 % 7)]
        keys += [f'KV_I64("n", (armed[{i}] = 1, n))']
        sites.append(f'static void f{i}(void) {{ SPAN("s{i}", {", ".join(keys)}); }}')
    calls = " ".join(f"f{i}();" for i in range(count))
    source = folder / "layouts.c"
    source.write_text(f"""#include <string.h>
#include <unistd.h>
#include <waffle_macros.h>
static long n;
static char armed[{count}];
{chr(10).join(sites)}
static void all(void) {{ {calls} }}
int main(void)
{{
        for (int tries = 0; tries < 6000 && memchr(armed, 0, sizeof(armed)); tries++) {{
                all();
                usleep(10000);
        }}
        usleep(100000); /* a site's counter rises a moment before its probe is there */
        n = 1;
        all();
        return 0;
}}
""", encoding="utf-8")
    return source


def test_many_kinds_of_sites_need_no_larger_limit_of_files(waffle, tmp_path):
    count = 35
    program = compile_program(many_layouts(tmp_path, count), tmp_path / "layouts", "-w")
    options = ("--no-sched", "--filter", 'kv.n == 1 && dur > 0 && comm ~ "*a*y*"')
    command = ["sh", "-c", f"ulimit -Sn 80; exec {waffle.program} \"$@\"", "sh", "run", "-q",
               "--no-report", "-o", waffle.path("many.waffle"), *options, "--", "sh", "-c",
               f"ulimit -Sn; {program}"]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "80", "the command has the limit that it was started with"
    capture = Capture(waffle, waffle.folder / "many.waffle")
    assert len([row for row in capture.rows() if row["kind"] == "span"]) == count

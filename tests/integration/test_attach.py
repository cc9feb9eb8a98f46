# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf attach on a running process: which records it takes, and what it leaves behind."""

import random
import json
import re
import signal
import subprocess
import time

import pytest

from tracer import monotonic_ns, named, parse_log, semaphores, tries, wait_until


def did(text):
    return parse_log(["did " + text])[0]


def test_only_what_happens_while_attached_is_seen(waffle, steps):
    steps.ask("event 100", "did")
    attached = waffle.attach_to(steps, steps.path)
    inside = did(steps.ask("event 50", "did"))
    span = did(steps.ask("span 5", "did"))
    capture = attached.stop()
    steps.ask("event 100", "did")
    rows = named(capture.rows(), "step event")
    assert [row["args"]["n"] for row in rows] == list(range(100, 150))
    assert all(inside["begin"] <= row["start_ns"] <= inside["end"] for row in rows)
    assert [row["start_ns"] for row in rows] == sorted(row["start_ns"] for row in rows)
    assert {row["pid"] for row in rows} == {steps.pid}
    [row] = named(capture.rows(), "step span")
    assert span["begin"] <= row["start_ns"] <= span["inside"]
    assert span["inside_end"] <= row["end_ns"] <= span["end"]
    capture.check_sums(lost=0)
    assert capture.info()["truncated"] is False
    assert capture.report()["events"][0]["count"] == 50
    assert steps.finish() == ["bye events=250 evaluated=51"]


def test_arguments_are_evaluated_once_when_armed_and_never_when_dormant(waffle, steps):
    steps.ask("event 1000", "did")
    assert steps.ask("evaluated", "did evaluated=") == "0"
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 37", "did")
    assert steps.ask("evaluated", "did evaluated=") == "37"
    attached.stop()
    steps.ask("event 1000", "did")
    assert steps.ask("evaluated", "did evaluated=") == "37"


def test_span_left_armed_after_begin_dormant_emits_nothing(waffle, steps):
    steps.ask("begin", "did begin=")
    steps.ask("outer", "did outer=")
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 1", "did")
    steps.ask("back", "did back=")
    steps.ask("end", "did end=")
    capture = attached.stop()
    [event] = capture.rows("event")
    assert "parent" not in event and "trace" not in event
    assert capture.rows("span") == []
    assert capture.info()["spans"] == 0
    assert steps.finish() == ["bye events=1 evaluated=1"]


def test_span_that_is_open_at_the_end_is_unfinished(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    begun = int(steps.ask("begin", "did begin="))
    steps.ask("span 1", "did")
    capture = attached.stop()
    [span] = named(capture.rows("span"), "step open")
    assert span["unfinished"] is True and span["start_ns"] <= begun
    assert span["end_ns"] == capture.info()["end_ns"]
    assert capture.info()["spans_unfinished"] == 1
    steps.ask("end", "did end=")
    again = waffle.attach_to(steps, steps.path)
    assert again.stop().rows("span") == []


def test_span_begun_under_one_tracer_ends_under_the_next(waffle, steps):
    first = waffle.attach_to(steps, steps.path)
    begun = int(steps.ask("begin", "did begin="))
    first.stop()
    second = waffle.attach_to(steps, steps.path)
    ended = int(steps.ask("end", "did end="))
    capture = second.stop()
    [span] = capture.rows("span")
    assert span["name"] == "step open" and span["begun_before"] is True
    assert span["start_ns"] == capture.info()["start_ns"] > begun
    assert span["end_ns"] <= ended


def test_semaphores_are_0_before_up_while_attached_and_0_after(waffle, steps):
    before = semaphores(steps.pid, steps.path)
    assert len(before) >= 6 and not any(before)
    attached = waffle.attach_to(steps, steps.path)
    assert set(semaphores(steps.pid, steps.path)) == {1}
    attached.stop()
    assert not any(semaphores(steps.pid, steps.path))


def test_killed_tracer_leaves_every_semaphore_at_0_and_a_readable_file(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 500", "did")
    # A chunk is written each second.
    wait_until(lambda: len(named(rows_if_any(attached.capture), "step event")) == 500, "a chunk")
    steps.ask("event 20", "did")
    attached.kill()
    wait_until(lambda: not any(semaphores(steps.pid, steps.path)), "disarming")
    rows = named(attached.capture.rows(), "step event")
    assert [row["args"]["n"] for row in rows] == list(range(500))
    assert attached.capture.info()["truncated"] is True
    assert "cut off" in attached.capture.report_text() or "killed" in attached.capture.report_text()
    evaluated = steps.ask("evaluated", "did evaluated=")
    assert evaluated == "520"
    steps.ask("event 10", "did")
    assert steps.ask("evaluated", "did evaluated=") == evaluated
    again = waffle.attach_to(steps, steps.path)
    steps.ask("event 3", "did")
    assert len(again.stop().rows("event")) == 3
    steps.finish()


def rows_if_any(capture):
    """Of a file that is being written: it may not be there yet."""
    try:
        return capture.rows()
    except AssertionError:
        return []


def test_tracer_killed_at_any_moment_leaves_a_dormant_healthy_program(waffle, built, start):
    program = start(built("flood.c"))
    program.until("ready")
    path = built("flood.c")
    chance = random.Random(1)
    for delay in [0.005, 0.03] + [chance.uniform(0, 0.4) for _ in range(6)]:
        attached = waffle.attach("-p", program.pid, "-q", "--no-report")
        time.sleep(delay)
        attached.kill()
        wait_until(lambda: not any(semaphores(program.pid, path)), f"disarming after {delay}")
        count = int(program.ask("count", "count="))
        wait_until(lambda: int(program.ask("count", "count=")) > count, "the program to go on")
    assert program.alive()
    attached = waffle.attach_to(program, path)
    count = int(program.ask("count", "count="))
    wait_until(lambda: int(program.ask("count", "count=")) > count + 20, "beats")
    capture = attached.stop()
    assert len(named(capture.rows(), "beat")) >= 20
    program.finish()


def test_two_tracers_both_get_everything_and_one_goes_on_alone(waffle, steps):
    first = waffle.attach_to(steps, steps.path)
    steps.ask("event 10", "did")
    second = waffle.attach("-p", steps.pid, "-q", "--no-report").wait_links()
    steps.ask("event 20", "did")
    one = first.stop()
    assert set(semaphores(steps.pid, steps.path)) == {1}
    steps.ask("event 40", "did")
    two = second.stop()
    assert not any(semaphores(steps.pid, steps.path))
    assert [r["args"]["n"] for r in named(one.rows(), "step event")] == list(range(30))
    assert [r["args"]["n"] for r in named(two.rows(), "step event")] == list(range(10, 70))
    assert steps.ask("evaluated", "did evaluated=") == "70"


def test_one_of_two_tracers_killed_does_not_disturb_the_other(waffle, steps):
    first = waffle.attach_to(steps, steps.path)
    second = waffle.attach("-p", steps.pid, "-q", "--no-report").wait_links()
    first.kill()
    assert set(semaphores(steps.pid, steps.path)) == {1}
    steps.ask("event 5", "did")
    assert len(named(second.stop().rows(), "step event")) == 5


def test_exit_of_the_target_ends_the_capture(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 9", "did")
    steps.finish()
    capture = attached.wait()
    assert len(named(capture.rows(), "step event")) == 9
    assert capture.info()["truncated"] is False
    capture.check_sums(lost=0)


def test_killed_target_ends_the_capture(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 9", "did")
    steps.ask("begin", "did begin=")
    steps.kill()
    capture = attached.wait()
    assert len(named(capture.rows(), "step event")) == 9
    [span] = named(capture.rows("span"), "step open")
    assert span["unfinished"] is True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_with_a_complete_file_and_the_report(waffle, steps, number):
    attached = waffle.attach("-p", steps.pid).wait_armed(steps.pid, steps.path)
    steps.ask("event 4", "did")
    attached.signal(number)
    capture = attached.wait()
    assert capture.info()["truncated"] is False
    assert "step event" in capture.result.stdout
    assert capture.result.stdout == capture.report_text()
    assert str(capture.path) in capture.result.stderr
    assert steps.alive()


def test_duration_ends_it(waffle, steps):
    begin = monotonic_ns()
    attached = waffle.attach("-p", steps.pid, "-q", "--json", "--duration", "400ms")
    capture = attached.wait()
    took = monotonic_ns() - begin
    assert 0.35e9 <= capture.info()["duration_ns"] <= took >= 0.4e9
    assert json.loads(capture.result.stdout) == capture.report()


@tries(3)  # the program has to run meanwhile
def test_duration_begins_when_all_is_armed(waffle, start):
    """To find some thousand functions takes longer than the capture is to last."""
    calls = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.001)"
    program = start("/usr/bin/python3", "-c", calls)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--sources", "spans", "-d",
                             "200ms", "--probe", "uprobe:exe:*Py* as event")
    times = sorted(row["start_ns"] for row in attached.wait().rows("event"))
    assert times and times[-1] - times[0] >= 0.15e9


def test_several_pids_and_names(waffle, built, start):
    path = built("steps.c", name="waffle_steps")
    programs = [start(path) for _ in range(3)]
    for program in programs:
        program.until("ready")
    for arguments in (
        ["-p", programs[0].pid, "-p", programs[1].pid, "-p", programs[0].pid],
        ["--comm", "waffle_steps"],
        ["--comm", "waffle_steps", "-p", programs[2].pid],
    ):
        expected = programs[:2] if "--comm" not in arguments else programs
        attached = waffle.attach(*arguments, "-q", "--no-report")
        for program in expected:
            attached.wait_armed(program.pid, path)
        assert set(semaphores(programs[0].pid, path)) == {1}
        for i, program in enumerate(programs):
            program.ask(f"event {10 + i}", "did")
        rows = attached.stop().rows("event")
        for i, program in enumerate(programs):
            count = len([row for row in rows if row["pid"] == program.pid])
            assert count == (10 + i if program in expected else 0)
    for program in programs:
        assert not any(semaphores(program.pid, path))


def test_threads_that_start_later_are_traced(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("threads 5", "did")
    capture = attached.stop()
    rows = named(capture.rows(), "thread event")
    assert [row["args"]["n"] for row in rows] == list(range(5))
    assert len({row["tid"] for row in rows}) == 5 and {row["pid"] for row in rows} == {steps.pid}
    assert capture.info()["threads"] == 6


@pytest.mark.parametrize("way", ["fork", "fork_exec", "vfork", "spawn", "exec", "thread"])
def test_follow_sees_what_the_process_starts(waffle, built, start, way):
    path = built("family.c")
    program = start(path, "wait", "20")
    program.until("ready")
    # A forked child is not held: tests/integration/test_hold.py.
    options = ["--follow", "--machine-wide"] if way == "fork" else ["--follow"]
    attached = waffle.attach_to(program, path, options=options)
    program.say(way)
    said = {row["who"]: row for row in parse_log(program.finish()) if row["kind"] == "worked"}
    ticks = named(attached.wait().rows(), "tick")
    whos = {"thread": ["parent", "thread", "after"], "exec": ["parent", "child"]}
    for who in whos.get(way, ["parent", "child", "after"]):
        mine = [row for row in ticks if row["args"]["who"] == who]
        assert [row["args"]["i"] for row in mine] == list(range(20)), who
        assert {row["pid"] for row in mine} == {said[who]["pid"]}


def test_without_follow_children_are_left_alone(waffle, built, start):
    path = built("family.c")
    program = start(path, "wait", "20")
    program.until("ready")
    attached = waffle.attach_to(program, path)
    program.say("fork")
    program.finish()
    ticks = named(attached.wait().rows(), "tick")
    assert {row["args"]["who"] for row in ticks} == {"parent", "after"}
    assert {row["pid"] for row in ticks} == {program.pid}
    assert len(ticks) == 40


def test_exec_of_another_program_while_attached(waffle, built, start):
    """The new program is armed soon after its exec, as a library opened late is."""
    steps, flood = built("steps.c"), built("flood.c")
    program = start(steps)
    program.until("ready")
    attached = waffle.attach_to(program, steps)
    program.ask("event 3", "did")
    program.say(f"exec {flood}")
    program.until("ready")
    wait_until(lambda: all(semaphores(program.pid, flood) or [0]), "arming of the new program")
    count = int(program.ask("count", "count="))
    wait_until(lambda: int(program.ask("count", "count=")) > count + 20, "beats")
    capture = attached.stop()
    assert len(named(capture.rows(), "step event")) == 3
    assert len(named(capture.rows(), "beat")) >= 20
    program.finish()


class Bpftrace:
    """bpftrace counting the hits of all events by name."""

    def __init__(self, program, path):
        # Probes are attached in their order or against it: a tick of either end tells that all are.
        script = (
            'interval:ms:20 { printf("tock\\n"); } '
            f"usdt:{path}:waffle:event_* {{ @n[str(arg1)] = count(); }} "
            'interval:ms:20 { printf("tick\\n"); }'
        )
        self.process = subprocess.Popen(
            ["bpftrace", "-p", str(program.pid), "-e", script],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        seen = set()
        wait_until(
            lambda: seen.add(self.process.stdout.readline().strip()) or seen >= {"tick", "tock"},
            "bpftrace to begin",
            20,
        )

    def counts(self):
        self.process.send_signal(signal.SIGINT)
        try:
            out = self.process.communicate(timeout=60)[0]
        finally:
            self.process.kill()
        return {name: int(count) for name, count in re.findall(r"@n\[(.*)\]: (\d+)", out)}


def test_bpftrace_lists_the_sites(waffle, steps):
    listed = subprocess.run(
        ["bpftrace", "-l", f"usdt:{steps.path}:*"], capture_output=True, text=True, check=True
    ).stdout.split()
    sites = json.loads(waffle.ok("list", "--json", steps.path).stdout)["sites"]
    wanted = {f"usdt:{steps.path}:waffle:{site['kind']}_{site['line']}" for site in sites}
    assert wanted and {name for name in listed if "span_end" not in name} == wanted
    assert any("waffle:span_end_" in name for name in listed)


def test_bpftrace_raises_a_semaphore_and_counts_the_hits(built, start):
    path = built("family.c")
    program = start(path, "wait", "20")
    program.until("ready")
    bpftrace = Bpftrace(program, path)
    assert sorted(set(semaphores(program.pid, path))) == [0, 1]
    program.say("none")
    program.finish()
    assert bpftrace.counts() == {"tick": 40}


def test_bpftrace_and_waffle_on_one_site(waffle, built, start):
    path = built("family.c")
    for waffle_first in (True, False):
        program = start(path, "wait", "20")
        program.until("ready")
        if waffle_first:
            attached = waffle.attach_to(program, path)
            bpftrace = Bpftrace(program, path)
        else:
            bpftrace = Bpftrace(program, path)
            attached = waffle.attach_to(program, path)
        program.say("none")
        program.finish()
        assert bpftrace.counts() == {"tick": 40}
        assert len(named(attached.wait().rows(), "tick")) == 40


def test_copies_that_bpftrace_probes_with_another_semaphore_are_left_out_alone(
    waffle, built, start
):
    """bpftrace gives both copies of an inlined site the semaphore of the first one; the kernel allows
    one semaphore an instruction, so waffle has to leave out that copy, and no more."""
    path = built("copies.c")
    program = start(path)
    program.until("ready")
    bpftrace = Bpftrace(program, path)
    attached = waffle.attach("-p", program.pid, "--no-report")
    notice = attached.wait_notice()
    assert "1 of" in notice and "another tracer" in notice and str(path) in notice
    program.ask("go", "did")
    rows = attached.stop().rows("event")
    assert sorted(row["name"] for row in rows) == ["copied", "single"]
    bpftrace.counts()
    again = waffle.attach_to(program, path)
    program.ask("go", "did")
    assert sorted(row["name"] for row in again.stop().rows("event")) == ["copied", "copied", "single"]
    program.finish()


def test_readelf_and_list_agree_on_the_sites(waffle, steps):
    notes = subprocess.run(
        ["readelf", "-nW", steps.path], capture_output=True, text=True, check=True
    ).stdout
    usdt = re.findall(r"Provider: waffle\s+Name: (\w+)", notes)
    listed = json.loads(waffle.ok("list", "--json", steps.path).stdout)
    assert len(notes.split("stapsdt")) - 1 >= len(usdt) > 0
    assert listed["bad_notes"] == 0
    mine = sum(site["copies"] for site in listed["sites"] if site["kind"] != "span_end")
    assert mine == len([name for name in usdt if not name.startswith("span_end")])
    by_name = {site["name"]: site for site in listed["sites"]}
    event = by_name["step event"]
    assert event["kind"] == "event" and event["func"] == "event"
    assert event["file"].endswith("steps.c") and event["keys"] == [{"name": "n", "type": "i64"}]
    source = open(event["file"], encoding="utf-8").read().splitlines()
    assert '"step event"' in source[event["line"] - 1]


def test_a_file_that_is_armed_in_all_processes_has_its_sites_all_the_same(waffle, built, start):
    """Breakpoints of a tracer that follows children must not show in what another one reads."""
    path = built("steps.c")
    program = start(path)
    program.until("ready")
    following = waffle.attach_to(program, path, options=["--follow"])
    before = json.loads(waffle.ok("list", "--json", path).stdout)
    assert len(before["sites"]) > 3 and before["bad_notes"] == 0
    second = waffle.attach("-p", program.pid, "-q", "--no-report").wait_links()
    program.ask("event 7", "did")
    for attached in (second, following):
        rows = attached.stop().rows("event")
        assert len([row for row in rows if row["name"] == "step event"]) == 7
    program.finish()


def test_a_capture_ends_at_one_moment_for_begins_and_ends(waffle, built, start):
    """Sites are disarmed one after the other; no end may come without its begin meanwhile."""
    program = start(built("flood.c"))
    program.until("ready")
    for _ in range(3):
        capture = waffle.attach("-p", program.pid, "-q", "--no-report", "-d", "200ms").wait()
        spans = capture.rows("span")
        assert spans
        assert not any(row.get("begun_before") for row in spans)
        # Each of its two threads may be inside a span.
        assert sum(bool(row.get("unfinished")) for row in spans) <= 2
    program.finish()


def test_captures_without_a_name_never_share_one(waffle, steps, tmp_path):
    started = [
        subprocess.Popen(
            [waffle.program, "attach", "-p", str(steps.pid), "-d", "100ms", "--no-report", "-q"],
            cwd=tmp_path,
        )
        for _ in range(4)
    ]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    assert len(list(tmp_path.glob("*.waffle"))) == 4

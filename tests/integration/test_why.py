# SPDX-License-Identifier: Apache-2.0
"""`why` on programs that say themselves what made them slow, and its JSON against the schema."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from test_export import validate_perfetto
import why_json
from tracer import parse_log, tries

MS = 1_000_000


@pytest.fixture
def why(waffle):
    return why_json.asker(waffle)


@pytest.fixture
def causes(waffle, built):
    """causes(mode, options): a capture of programs/causes.c, and the lines that it printed."""
    program = built("causes.c", "-fno-omit-frame-pointer")

    def run(mode, *options):
        capture = waffle.run(program, mode, options=options)
        return capture.path, parse_log(capture.result.stdout.splitlines())

    return run


def requests(log):
    """Each request that was logged, with its pieces: (request, {cause: (ns, tid, comm)})."""
    found, pieces = [], {}
    for row in log:
        if row["kind"] == "piece":
            pieces[row["cause"]] = row
        elif row["kind"] == "request":
            found.append((row, pieces))
            pieces = {}
    return found


def explained(request, instances):
    return next(
        i for i in instances
        if request["begin"] - MS <= i["start_ns"]
        and i["start_ns"] + i["duration_ns"] <= request["end"] + MS
    )


def find(instance, cause):
    return next((c for c in instance["causes"] if c["cause"] == cause), None)


def own(instance):
    """The causes but those that other programs of the machine are, in their order."""
    return [c for c in instance["causes"] if c["cause"] != "cpu-contention"]


def taken(instance):
    """What other programs took of it: how much that is, is not the tests' to say."""
    return instance["duration_ns"] - sum(c["duration_ns"] for c in own(instance))


def check_duration(instance, cause, said):
    """The time that a cause took is what the program says, which others' CPU time may be in."""
    assert said - taken(instance) - 2 * MS <= cause["duration_ns"] <= said + 2 * MS


# ---- real programs ----


@tries(3)
def test_a_lock_is_followed_to_what_its_holder_did(why, causes):
    path, log = causes("lock")
    instances = why(path, "--span", "request")["instances"]
    assert len(instances) == 4
    for request, pieces in requests(log):
        instance = explained(request, instances)
        first = own(instance)[0]
        assert (first["cause"], first["culprit"]["comm"]) == ("sleep", "holder")
        assert first["culprit"]["span"] == "refresh"
        assert instance["thread"]["tid"] == request["tid"]
        for name, row in pieces.items():
            cause = find(instance, name)
            assert cause["culprit"]["tid"] == row["tid"]
            check_duration(instance, cause, row["ns"])
        lock = find(instance, "lock")
        assert str(request["object"]) in lock["culprit"]["object"]
        assert lock["chain"][0]["syscall"] == "futex"
        assert lock["chain"][0]["by"]["comm"] == "holder"


@tries(3)
def test_slices_of_perfetto_have_the_causes_of_their_spans(waffle, why, causes, tmp_path):
    path, _ = causes("lock")
    trace = tmp_path / "trace"
    waffle.ok("export", path, "--format", "perfetto", "-o", trace)
    slices = {slice.args["id"]: slice.args for slice in validate_perfetto.load(trace).slices}
    for instance in why(path, "--span", "request")["instances"]:
        said = slices[int(instance["id"], 16)]["causes"].split("; ")
        for part, text in zip(instance["by_cause"], said):
            share, cause = re.match(r"([\d.]+) % ([\w-]+)", text).groups()
            assert cause == part["cause"] and abs(float(share) / 100 - part["share"]) < 0.002
        for text in said:
            assert "sleep" not in text or re.search(r"sleep: holder \(\d+\) in refresh", text)


@tries(3)
def test_waits_in_perfetto_have_the_causes_that_why_gives_them(waffle, why, causes, tmp_path):
    path, log = causes("lock")
    waffle.ok("export", path, "--format", "perfetto", "-o", tmp_path / "trace")
    trace = validate_perfetto.load(tmp_path / "trace")
    tid = requests(log)[0][0]["tid"]
    waits = [w for w in trace.waits if trace.tracks[w.track.parent].tid == tid]
    for wait in waits:
        begin, end = (f"{ts - trace.bounds[0]}ns" for ts in (wait.ts, wait.end))
        (instance,) = why(path, "--thread", tid, "--from", begin, "--to", end)["instances"]
        assert instance["duration_ns"] == instance["parts"]["blocked_ns"] == wait.end - wait.ts
        sums = [row["cause"] for row in instance["by_cause"]]
        assert wait.name == wait.args["cause"] == sums[0]
        assert wait.args["system_call"] == instance["causes"][0]["chain"][0]["syscall"]
        if "causes" in wait.args:
            said = re.findall(r"[\d.]+ % ([a-z-]+)", wait.args["causes"])
            assert set(said) <= set(sums) and said[0] == sums[0]
    locks = [w for w in waits if w.args["system_call"] == "futex" and w.end - w.ts > 40 * MS]
    assert len(locks) == len(requests(log))
    for wait in locks:
        if wait.name != "cpu-contention":
            assert re.fullmatch(r"holder \(\d+\) in refresh", wait.args["culprit"])
        assert re.fullmatch(r"holder \(\d+\)", wait.args["woken_by"])
        assert re.search(r"sleep: holder \(\d+\) in refresh", wait.args["causes"])
        assert re.search(r"^(use_cache|lock_rounds) \(causes.c:\d+\)", wait.args["stack"], re.M)


@tries(3)
def test_a_pipe_is_followed_to_another_process(why, causes):
    path, log = causes("pipe")
    instances = why(path, "--span", "request")["instances"]
    assert len(instances) == 4
    for request, pieces in requests(log):
        instance = explained(request, instances)
        first = own(instance)[0]
        assert (first["cause"], first["culprit"]["comm"]) == ("sleep", "backend")
        assert first["culprit"]["tid"] == pieces["sleep"]["tid"]
        check_duration(instance, first, pieces["sleep"]["ns"])
        # What is neither that sleep nor taken by others is next to nothing.
        assert first["duration_ns"] + taken(instance) > 0.9 * instance["duration_ns"]
        assert first["chain"][0]["syscall"] == "read"


@tries(3)
@pytest.mark.parametrize("mode", ("stays", "moved"))
def test_who_kept_the_cpu_is_certain_unless_the_thread_was_moved(why, causes, mode):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.fail("this test needs CPUs 0 and 1")
    path, _ = causes(mode)
    (instance,) = why(path, "--span", "request")["instances"]
    contention = [c for c in instance["causes"] if c["cause"] == "cpu-contention"]
    certain = [c for c in contention if c["grade"] == "certain"]
    assert sum(c["duration_ns"] for c in contention) > 20 * MS
    if mode == "stays":
        assert certain[0]["culprit"]["comm"] == "hog"
        assert certain[0]["duration_ns"] > 50 * MS
    else:
        assert sum(c["duration_ns"] for c in certain) < 5 * MS


@tries(3)
def test_many_short_processes_of_one_name_are_one_cause(waffle, why, start, tmp_path):
    cpu = str(min(os.sched_getaffinity(0)))
    compiler = tmp_path / "short-cc1"
    shutil.copy("/bin/sh", compiler)
    victim = start("taskset", "-c", cpu, sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass")
    victim.until("ready")
    attached = waffle.attach("-p", victim.pid, "-q", "--no-report")
    attached.wait_ready()
    for _ in range(12):
        subprocess.run(["taskset", "-c", cpu, compiler, "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"],
                       check=True)
    path = attached.stop().path
    (instance,) = why(path, "--thread", victim.pid)["instances"]
    [cause] = [c for c in instance["causes"] if c["culprit"].get("comm") == "short-cc1"]
    assert cause["cause"] == "cpu-contention"
    assert 10 <= cause["processes"] <= cause["threads"] == 12 and cause["stretches"] >= 12
    sums = {row["cause"]: row["culprits"] for row in instance["by_cause"]}
    assert sums["cpu-contention"] >= 12
    assert re.search(r"cpu-contention +\w+ +\d+ (processes|threads of \d+ processes) named short-cc1\n",
                     waffle.ok("why", path, "--thread", victim.pid).stdout)


@tries(3)
def test_a_child_has_the_name_of_the_program_that_it_ran_last(why, causes):
    path, _ = causes("child")
    instances = why(path, "--span", "request")["instances"]
    assert len(instances) == 4
    for instance in instances:
        # Whether its sleep is known depends on whether children are recorded, too.
        first = own(instance)[0]
        assert first["culprit"]["comm"] == "sleep"
        assert first["culprit"]["pid"] != instance["thread"]["pid"]


@tries(3)
def test_who_stopped_a_process_is_named_as_the_program_that_it_is(why, waffle, built, start):
    program = start(built("steps.c"))
    program.until("ready")
    capture = waffle.attach_to(program, built("steps.c"))
    shell = f"kill -STOP {program.pid}; sleep 0.2; kill -CONT {program.pid}"
    subprocess.run(["bash", "-c", f"exec sh -c '{shell}'"], check=True)
    path = capture.stop().path
    [instance] = why(path, "--thread", str(program.pid))["instances"]
    stopped = find(instance, "stopped")
    assert stopped["duration_ns"] > 150 * MS
    assert stopped["culprit"]["comm"] == "sh"


@tries(5)
def test_text_tells_the_chain_in_words_with_functions_and_evidence(waffle, causes):
    path, _ = causes("lock")
    text = waffle.ok("why", "--span", "request", "--slowest", "1", "--evidence", path).stdout
    assert re.match(r"request [0-9a-f]{16} of server \(\d+\), at [^:]+: [\d.]+ ms( .*)?\n", text)
    assert re.search(r"1\. +[\d.]+ % +[\d.]+ ms  sleep +certain  holder \(\d+\) in refresh", text)
    assert re.search(r"blocked on .*\(cache_lock\).* ← woken by holder \(\d+\), which spent", text)
    assert re.search(r"blocked in clock_nanosleep.* \[1\]", text)
    # How far back the stack goes depends on how the C library was built.
    assert re.search(r": record \d+ \(.*switch-out\), .*\(wait\).*\n +user stack ← \S+", text)
    assert re.search(r"waker's kernel stack ← .*futex_wake", text)
    assert "\033" not in text


@tries(3)
def test_a_thread_is_explained_in_a_window(waffle, why, causes):
    path, log = causes("lock")
    request, pieces = requests(log)[1]
    start = why(path, "--span", "request", "--slowest", "0")
    first = explained(request, start["instances"])
    begin = json.loads(waffle.ok("info", "--json", path).stdout)["start_ns"]
    at = [f"{t - begin}ns" for t in (first["start_ns"], first["start_ns"] + first["duration_ns"])]
    [instance] = why(path, "--thread", "server", "--from", at[0], "--to", at[1])["instances"]
    assert instance["span"] is None and instance["id"] is None
    assert instance["start_ns"] == first["start_ns"]
    assert instance["parts"] == first["parts"]
    assert [c["cause"] for c in own(instance)[:2]] == ["sleep", "lock"]
    assert own(instance)[0]["culprit"]["tid"] == pieces["sleep"]["tid"]


# ---- what cannot be ----


def test_what_cannot_be_explained_is_said_in_one_line(waffle, causes, tmp_path):
    path, _ = causes("lock")
    waffle.fails(1, "why", "--span", "reqest", path, says="no span 'reqest'; did you mean 'request'")
    waffle.fails(1, "why", "--thread", "holdr", path, says="did you mean 'holder'")
    waffle.fails(2, "why", "--from", "1ms", path, says="give --thread, too")
    waffle.fails(2, "why", "--thread", "holder", "--span", "request", path, says="give one of")
    waffle.fails(2, "why", "--thread", "holder", "--from", "2s", "--to", "1s", path, says="before --to")
    waffle.fails(1, "why", tmp_path / "none.waffle", says="none.waffle")
    waffle.fails(2, "why", says="give a .waffle file")


def test_a_capture_without_the_scheduler_is_not_explained(waffle, causes):
    path, _ = causes("lock", "--sources", "spans")
    waffle.fails(1, "why", path, says="scheduler was not recorded, so nothing can be explained")


HELD = "held by waffle-bpf (this capture)"


def test_what_the_tracer_itself_does_is_named_as_its_own(waffle, built, why):
    """`run` holds each new program until its probes are armed: nobody else is blamed for that."""
    capture = waffle.run(built("starts.c"), "3")
    instances = why(capture.path, "--span", "start", "--slowest", "0")["instances"]
    assert len(instances) == 3
    for instance in instances:
        own = 0
        for cause in instance["causes"]:
            culprit = cause["culprit"]
            if cause["cause"] == "stopped":
                assert culprit["object"] == HELD
                assert culprit["comm"] in (None, "waffle-bpf", "waffle-gate")
            if culprit["object"] in (HELD, "this capture"):
                own += cause["duration_ns"]
        assert instance["waffle_ns"] == own
    assert any(instance["waffle_ns"] for instance in instances)


def processes_of(pid):
    """A process, its children and theirs."""
    found = {pid}
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="utf-8").split():
                found |= processes_of(int(child))
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended
    return found


@pytest.fixture(name="one_cpu")
def all_on_one_cpu():
    """Programs that are started meanwhile share a CPU, so whoever runs there is seen."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    yield
    os.sched_setaffinity(0, cpus)


@pytest.mark.usefixtures("one_cpu")
def test_children_of_the_command_that_are_not_followed_are_not_of_this_capture(waffle):
    capture = waffle.run("sh", "-c", "sleep 0.1 | cat; true", options=("--no-follow",))
    tasks = capture.records("task")
    own = {row["comm"] for row in tasks if row["flags"] & 2}
    assert own and not own & {"sh", "sleep", "cat"}
    assert {"sleep", "cat"} <= {row["comm"] for row in tasks}


def test_the_processes_of_this_capture_are_its_own_and_those_of_another_are_not(
    waffle, built, start
):
    script = 'echo ready; read go; "$0" 1500 & "$1" 3; wait; echo done; read end'
    traced, other = (
        start("sh", "-c", script, str(built("spin.c")), str(built("starts.c"))) for _ in range(2)
    )
    captures = []
    for program in (traced, other):
        program.until("ready")
        captures.append(waffle.attach("-f", "-p", program.pid, "--no-report"))
    for program, capture in zip((traced, other), captures):
        capture.wait_ready()
        program.say("go")
    own, foreign = (processes_of(capture.process.pid) for capture in captures)
    traced.until("done")
    own |= processes_of(captures[0].process.pid)
    other.until("done")
    captures[1].stop()
    tasks = captures[0].stop().records("task")
    marked = {row["tgid"] for row in tasks if row["flags"] & 2}
    assert len(marked & own) >= 3, "waffle-bpf, its gate, and one that parses"
    assert not {row["tgid"] for row in tasks if not row["flags"] & 2} & own
    assert not marked & foreign

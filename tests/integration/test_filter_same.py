# SPDX-License-Identifier: Apache-2.0
"""One filter, decided in different places, keeps the same: in the kernel, in the tracer for records
that come through rings, in the program that records itself, and when a file is read.

Two of them look at the same run of a program, so that ids, traces and durations are the same. The
program and the expressions are pseudo-random; WAFFLE_SEED and WAFFLE_TRIALS choose them.
"""

import json
import os
import random

import pytest

from tracer import Capture, compile_program, semaphores, wait_until

SEED = int(os.environ.get("WAFFLE_SEED", "20261126"))
TRIALS = int(os.environ.get("WAFFLE_TRIALS", "6"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("same")


@pytest.fixture(scope="module")
def program(folder, libwaffle_flags):
    """The program, linked with libwaffle."""
    return compile_program("filter_random.c", folder / "filter_random", *libwaffle_flags)


# ---- expressions ----

TESTS = [
    lambda r: f'name {r.choice(["==", "!=", "~"])} "{r.choice(["outer", "inner", "tick", "o*"])}"',
    lambda r: f'kind {r.choice(["==", "!="])} {r.choice(["span", "event", "counter", "log"])}',
    lambda r: f"kv.n {r.choice(['<', '>='])} {r.randrange(300)}",
    lambda r: f"kv.ratio {r.choice(['<=', '>', '!='])} {r.randrange(6) / 2}",
    lambda r: f'kv.text {r.choice(["==", "!=", "~", "!~"])} "{r.choice(["alpha", "*a", ""])}"',
    lambda r: f"kv.value > {r.randrange(200)}",
    lambda r: f"dur {r.choice(['>', '>', '<'])} {r.choice([1, 3, 8])}ms",
    lambda r: f"depth {r.choice(['==', '>=', '<'])} {r.randrange(5)}",
    lambda r: f'parent.name {r.choice(["==", "!=", "!~"])} "{r.choice(["outer", "inner"])}"',
    lambda r: f'comm {r.choice(["==", "!="])} "{r.choice(["worker-0", "worker-1", "helper"])}"',
    lambda r: f"sample({r.randrange(1, 4)}/4)",
]


def expression(r, depth=2):
    if not depth or r.random() < 0.2:
        return r.choice(TESTS)(r)
    if r.random() < 0.15:
        return f"!({expression(r, depth - 1)})"
    parts = [expression(r, depth - 1) for _ in range(2)]
    return "(" + r.choice([" && ", " || "]).join(parts) + ")"


# ---- what was kept ----


def rows_of(capture, *options):
    """What a file has of the program, by what tells it apart: ids, or a counter's value."""
    out = capture.path.with_suffix(".ndjson")
    capture.waffle.ok("export", capture.path, "--format", "ndjson", *options, "-o", out)
    kept = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] not in ("span", "event", "counter", "log"):
            continue
        key = row["id"] if row["kind"] != "counter" else ("value", row["args"]["value"])
        assert key not in kept
        kept[key] = (row["kind"], row["name"], row["comm"], str(row["args"]),
                     row.get("unfinished", False), row.get("begun_before", False))
    return kept


def assert_same(one, other, what):
    only = [{key: value for key, value in a.items() if b.get(key) != value}
            for a, b in ((one, other), (other, one))]
    assert not any(only), f"{what}: {len(one)} and {len(other)}: {[list(x.items())[:5] for x in only]}"


class Runner:
    def __init__(self, waffle, program):
        self.waffle = waffle
        self.program = program
        self.count = 0

    def run(self, arguments, traced, inside):
        """The capture of a tracer with these options, and of the program itself in the same run."""
        self.count += 1
        own = self.waffle.path(f"own{self.count}.waffle")
        variables = {"WAFFLE_TRACE": str(own), **inside}
        capture = self.waffle.run(self.program, *arguments, options=("--no-sched", *traced),
                                  env={**os.environ, **variables})
        return capture, Capture(self.waffle, own)


@pytest.fixture
def runner(waffle, program):
    return Runner(waffle, program)


def variables(text, keep_children):
    return {"WAFFLE_FILTER": text, **({"WAFFLE_KEEP_CHILDREN": "1"} if keep_children else {})}


def options(text, keep_children):
    return ["--filter", text, *(["--keep-children"] if keep_children else [])]


def check(runner, arguments, text, keep_children, compares_file=True, only=("usdt", "ring")):
    """The same of each tracer and of the program itself; and of the file without a filter."""
    what = f"{text}, {keep_children=}, {arguments}"
    inside = variables(text, keep_children)
    for name in only:
        transport = ["--transport", name]
        traced, own = runner.run(arguments, [*transport, *options(text, keep_children)], inside)
        assert_same(rows_of(traced), rows_of(own), f"{name}: {what}")
        assert traced.info()["records"]["lost"] == own.info()["records"]["lost"], f"{name}: {what}"
    # The variable would filter the tracer's file, too.
    whole, own = runner.run(arguments, [*transport, "--filter", ""], inside)
    lost = own.check_sums()["lost"]
    whole.check_sums(lost=0)
    if compares_file and not lost:
        assert_same(rows_of(whole, *options(text, keep_children)), rows_of(own), f"file: {what}")
    return own


@pytest.mark.parametrize("trial", range(TRIALS))
def test_random_expressions_keep_the_same_everywhere(runner, trial):
    r = random.Random(SEED + trial)
    text, keep_children = expression(r), trial % 2 == 1
    # What is on another thread than its deferred parent is lost live, and kept in a file.
    check(runner, [SEED + trial, 3, 150], text, keep_children,
          compares_file=not keep_children or "dur" not in text)


def test_spans_that_are_decided_at_their_end_are_the_same_everywhere(runner):
    own = check(runner, [1, 3, 200], "dur > 5ms && depth >= 1 || kind == log", False)
    assert rows_of(own)


def test_children_of_slow_spans_are_the_same_everywhere(runner):
    own = check(runner, [2, 2, 300], 'kind == span && dur > 5ms', True, compares_file=False)
    assert rows_of(own)


def test_traces_are_sampled_alike_everywhere(runner):
    own = check(runner, [3, 2, 200], "sample(1/3)", False)
    assert rows_of(own)


def test_the_rate_takes_the_same_everywhere(runner):
    own = check(runner, [4, 1, 200], "kind != counter && rate(20/min)", False)
    assert len(rows_of(own)) in (20, 40)  # a minute may have begun meanwhile
    own = check(runner, [5, 1, 200], "dur > 1ms && rate(3/min)", False)
    assert len(rows_of(own)) in (3, 6)


def test_threads_that_end_make_room_for_others(runner):
    """More of them than have buffers for children at a time."""
    own = check(runner, ["brief", 1500], 'name == "outer" && dur > 0', True)
    assert sorted(name for _, name, *_ in rows_of(own).values()) == ["outer"] * 1500 + ["tick"] * 1500
    own.check_sums(lost=0)


@pytest.mark.parametrize("text, keep_children, count", [
    ("dur > 2ms", False, 20),
    ('name == "outer" && dur > 2ms', True, 40),
    ('kind == event && parent.name == "inner" && kv.text == "beta"', False, 67),
    ("depth == 1 && !(kv.n < 100)", False, 200),
])
def test_names_made_at_run_time_are_filtered_alike(runner, text, keep_children, count):
    """They come through rings only."""
    own = check(runner, ["named", 200], text, keep_children, only=["ring"])
    assert len(rows_of(own)) == count


@pytest.mark.parametrize("transport", ["usdt", "ring"])
def test_attach_filters_a_running_program(waffle, start, folder, libwaffle_flags, transport):
    program = folder / "filtered"
    if not program.exists():
        compile_program("filtered.c", program, *libwaffle_flags)
    running = start(program)
    running.until("ready")
    attached = waffle.attach("-p", running.pid, "-q", "--no-report", "--no-sched",
                             "--transport", transport, "--keep-children", "--filter",
                             'name == "slow" && dur > 10ms || kv.n == 3')  # fmt: skip
    wait_until(lambda: all(semaphores(running.pid, program)), "arming")
    for line, answer in (("events 3", "did events"), ("spans 5 0 0", "did spans"),
                         ("family 0", None), ("family 20", None), ("crowd 200 20", None),
                         ("events 1", "did events")):  # fmt: skip
        running.say(line)
        if answer:
            running.until(answer)
    capture = attached.stop()
    names = sorted(name for _, name, *_ in rows_of(capture).values())
    kept = ["deep", "first", "in request", "last", "part", "request", "slow", "slow"]
    # The fourth event of the crowd passes at once.
    assert names == sorted(kept + ["crowd"] * (128 + 1))
    capture.check_sums(lost=199 - 128)

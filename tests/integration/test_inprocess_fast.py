# SPDX-License-Identifier: Apache-2.0
"""The fast path of sites in programs that record themselves: same records as by the slow one."""

import os
import re
import subprocess

import pytest

from recorder import Recorder, compile_inside
from test_attach import Bpftrace
from tracer import semaphores, wait_until

COUNT = 20000  # turns, whose records fit in the ring


@pytest.fixture(scope="module")
def program(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside_fast.c",
                          tmp_path_factory.mktemp("fast") / "inside_fast")


@pytest.fixture(params=["fast", "slow"])
def recorder(waffle, program, request, monkeypatch):
    """The slow one is that of threads without a struct rseq, as the libc has it if it is told so."""
    if request.param == "slow":
        monkeypatch.setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
    return Recorder(waffle, program)


def by_name(rows, name):
    return [row for row in rows if row.get("name") == name and row["kind"] in ("span", "event")]


def test_all_numbers_of_keys_have_their_values(recorder):
    capture, _ = recorder.run("keys")
    rows = capture.rows()
    for name in ("event", "span"):
        found = [row.get("args", {}) for row in by_name(rows, name)]
        wanted = [{f"k{n}": n + 100 for n in range(1, count + 1)}
                  for count in (0, 1, 2, 3, 4, 5, 16)]
        assert found == wanted, name
    capture.check_sums(lost=0)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 20])
def test_spans_of_any_depth_have_their_parents(recorder, count):
    capture, _ = recorder.run("deep", count)
    rows = capture.rows()
    spans = sorted(by_name(rows, "deep"), key=lambda row: row["args"]["depth"])
    assert [span["args"]["depth"] for span in spans] == list(range(count))
    assert [span.get("parent") for span in spans] == [None, *(span["id"] for span in spans[:-1])]
    assert len({span["trace"] for span in spans}) == 1
    events = sorted(by_name(rows, "at"), key=lambda row: row["args"]["depth"])
    assert [event["parent"] for event in events] == [span["id"] for span in spans]
    capture.check_sums(lost=0)


def check_nested(rows):
    """Those of one turn belong together, whatever a handler did meanwhile."""
    outer = {row["args"]["i"]: row for row in by_name(rows, "outer")}
    inner = {row["args"]["i"]: row for row in by_name(rows, "inner")}
    assert all("parent" not in row for row in outer.values())
    assert len({row["id"] for row in [*outer.values(), *inner.values()]}) == len(outer) + len(inner)
    assert len({row["trace"] for row in outer.values()}) == len(outer)
    for i, row in inner.items():
        assert row["parent"] == outer[i]["id"] and row["trace"] == outer[i]["trace"]
    for name, around in (("in outer", outer), ("in inner", inner)):
        for row in by_name(rows, name):
            assert row["parent"] == around[row["args"]["i"]]["id"]
            assert row.get("args").get("again", row["args"]["i"]) == row["args"]["i"]
    handlers = {row["id"] for row in by_name(rows, "handler")}
    assert all(row["parent"] in handlers for row in by_name(rows, "handled"))
    return outer, inner, handlers


def test_handlers_with_spans_leave_the_context_as_it_was(recorder):
    capture, out = recorder.run("nested", COUNT, WAFFLE_RING_SIZE="64M")
    outer, inner, handlers = check_nested(capture.rows())
    assert sorted(outer) == sorted(inner) == list(range(COUNT))
    assert len(handlers) == int(re.search(r"handled (\d+)", out)[1]) > 20
    capture.check_sums(lost=0)


def test_spans_that_a_handler_jumped_out_of_are_not_the_parents_of_others(recorder):
    capture, out = recorder.run("jump", COUNT, WAFFLE_RING_SIZE="64M")
    outer, inner, handlers = check_nested(capture.rows())
    handled = int(re.search(r"handled (\d+)", out)[1])
    assert len(handlers) == handled > 20
    assert min(len(outer), len(inner)) >= COUNT - handled


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have no trap flag")
def test_a_handler_may_jump_out_of_any_instruction_of_a_span(waffle, program):
    """In the slow path: the sequences of the fast path begin again after each instruction."""
    recorder = Recorder(waffle, program)
    capture, out = recorder.run("stepped", WAFFLE_RING_SIZE="64M", GLIBC_TUNABLES="glibc.pthread.rseq=0")
    assert re.fullmatch(r"\d+\n", out) and 100 < int(out) < 20000
    alone = [row for row in by_name(capture.rows(), "stepped") if row["args"]["alone"]]
    assert sorted(row["args"]["i"] for row in alone) == list(range(int(out) + 1))
    assert all("parent" not in row for row in alone)
    assert len({row["trace"] for row in alone}) == len(alone)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have no fast path")
def test_a_handler_may_jump_out_of_any_instruction_behind_a_sequence(waffle, program):
    """Those that push the scope of a span whose begin is recorded, and that pop it."""
    capture, out = Recorder(waffle, program).run("committed")
    counts = [int(line) for line in out.splitlines()]
    assert len(counts) == 2 and all(8 < count < 40 for count in counts), out
    alone = [row for row in by_name(capture.rows(), "committed") if row["args"]["alone"]]
    assert [row["args"]["i"] for row in alone] == [*range(counts[0] + 2), *range(counts[1] + 2)]
    assert all("parent" not in row for row in alone)
    assert len({row["trace"] for row in alone}) == len(alone)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have no fast path")
def test_spans_that_a_handler_leaves_open_overwrite_nothing(recorder):
    """The depth grows before the fast path looks at it, and after. Only eight have a link."""
    capture, out = recorder.run("left")
    fast = "GLIBC_TUNABLES" not in os.environ
    assert out == f"handled {20 if fast else 0}\n"  # the slow path has no sequence
    assert len(by_name(capture.rows(), "begun")) == 20
    capture.check_sums(lost=0)


def test_a_span_whose_inner_ones_were_jumped_out_of_puts_its_context_back(recorder):
    capture, _ = recorder.run("abandoned", 100)
    rows = capture.rows()
    kept = {row["args"]["i"]: row for row in by_name(rows, "kept")}
    assert sorted(kept) == list(range(100))
    assert all("parent" not in row for row in kept.values())
    assert len({row["trace"] for row in kept.values()}) == 100
    lost = by_name(rows, "lost")
    assert len(lost) == sum(i % 12 + 1 for i in range(100))
    assert len(by_name(rows, "later")) == 50
    [outside] = by_name(rows, "outside")
    assert "parent" not in outside


def test_a_span_that_ends_elsewhere_in_an_equal_context_leaves_that_alone(recorder):
    """Depth and context of the thread are those of the span, but the scope is another one."""
    capture, _ = recorder.run("moved")
    rows = capture.rows()
    [outer], [span] = by_name(rows, "fiber"), by_name(rows, "span")
    assert span["parent"] == outer["id"]
    [within], [after] = by_name(rows, "within"), by_name(rows, "after")
    assert within["parent"] == span["id"] and "parent" not in after
    capture.check_sums(lost=0)


def test_a_span_at_the_address_of_a_lost_one_ends_only_itself(recorder):
    """Depth and address are those of the span that this thread has open, but its id is not."""
    capture, _ = recorder.run("again")
    rows = capture.rows()
    outer = {row["args"]["name"]: row for row in by_name(rows, "fiber")}
    spans = {row["parent"]: row for row in by_name(rows, "span")}
    assert len(spans) == 2
    [after] = by_name(rows, "after")
    assert after["parent"] == spans[outer["first"]["id"]]["id"]
    capture.check_sums(lost=0)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have no fast path")
def test_sites_take_the_fast_path_for_the_collector_and_for_a_tracer(waffle, program):
    _, out = Recorder(waffle, program).run("counted")
    assert out == "fast\n"
    capture = waffle.run(program, "counted", options=["--transport", "ring", "--no-sched"])
    assert capture.result.stdout == "fast\n"
    assert by_name(capture.rows(), "event")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have no fast path")
def test_sites_take_the_fast_path_of_whoever_is_the_only_reader(waffle, program, tmp_path):
    out = tmp_path / "own.waffle"
    alone = subprocess.run([program, "turns", out], capture_output=True, text=True, check=True)
    assert alone.stdout == "fast\nfast\nfast\n"
    traced = waffle.run(program, "turns", out, options=["--transport", "ring", "--no-sched"])
    assert traced.result.stdout == "fast\nslow\nfast\n"


def test_bpftrace_counts_the_hits_of_a_program_that_records_itself(waffle, program):
    """No tracer of ours: only the site's semaphore tells that somebody waits at its probe."""
    capture, started = Recorder(waffle, program).start("ticks")
    started.until("ready")
    for _ in range(5):
        started.ask("", "done")
    bpftrace = Bpftrace(started, str(program))
    wait_until(lambda: any(value & 0xff for value in semaphores(started.pid, str(program))),
               "bpftrace's semaphore")
    for _ in range(10):
        started.ask("", "done")
    assert bpftrace.counts() == {"tick": 10}
    started.ask("", "done")
    started.finish()
    assert len(by_name(capture.rows(), "tick")) == 16
    capture.check_sums(lost=0)

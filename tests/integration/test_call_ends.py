# SPDX-License-Identifier: Apache-2.0
"""Where calls end: functions that end in others, by tables, or nobody knows where."""

import subprocess

import pytest

from tracer import Capture, parse_log

ENDS = ("--probe", "uprobe:exe:ends_*(int n) -> int ret")


@pytest.fixture
def program(built):
    """It has no symbols but those of the functions that it exports."""
    return built("ends.c", "-rdynamic", "-s", "-fno-tree-switch-conversion")


def traced(waffle, tmp_path, program, *specs):
    """The program's output, which must be as without a tracer, and the capture's rows."""
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    out = tmp_path / "ends.waffle"
    command = ("run", "-q", "--no-report", "-o", out, "--sources", "spans", *specs, "--", program)
    result = waffle.ok(*command)
    assert result.stdout == alone
    capture = Capture(waffle, out)
    capture.check_sums(lost=0)
    return alone.splitlines(), [r for r in capture.rows() if r["kind"] in ("span", "event")]


def test_calls_end_where_the_function_does_that_they_jump_to(waffle, program, tmp_path):
    log, rows = traced(waffle, tmp_path, program, *ENDS)
    spans = {name: [r for r in rows if r["name"] == name and r["kind"] == "span"]
             for name in ("ends_outer", "ends_tail", "ends_leaf", "ends_used", "ends_twice")}
    for name, kind in (("ends_outer", "outer"), ("ends_used", "used")):
        told = [(r["n"], r["ret"]) for r in parse_log(log) if r["kind"] == kind]
        assert [(r["args"]["n"], r["args"]["ret"]) for r in spans[name]] == told
    for name, kind in (("ends_leaf", "leaf"), ("ends_tail", "tail")):
        told = [(r["n"], r["ret"]) for r in parse_log(log) if r["kind"] == kind]
        inner = {r["id"] for r in spans["ends_outer"]}
        alone = [r["args"] for r in spans[name] if r.get("parent") not in inner]
        assert [(args["n"], args["ret"]) for args in alone] == told
        assert len(spans[name]) == 2 * len(told)
    assert [r["args"]["ret"] for r in spans["ends_twice"]] == [
        3 * (n + 1) + 1 if n % 2 else n for n in range(8)
    ]
    assert not [r for of in spans.values() for r in of if r.get("left")]


def test_function_that_ends_nobody_knows_where_is_an_event(waffle, program):
    shown = waffle.call("list", *ENDS, program)
    assert {line.split()[1] for line in shown.stdout.splitlines() if "  event " in line} == {
        "ends_chosen", "ends_elsewhere"
    }
    assert "return ends_" not in shown.stdout
    assert " and 1 more of " in shown.stderr and "when they begin only" in shown.stderr


def test_calls_of_the_c_library_end_where_they_return(waffle, built, start):
    program = start(built("libc_ends.c"))
    program.until("ready")
    names = ("strtol", "bsearch", "sem_wait", "pthread_join")
    attached = waffle.attach(
        "-p", program.pid, "-q", "--no-report", "--sources", "spans", "--probe",
        f"uprobe:libc.so.6:{'|'.join(names)} -> long ret",
    ).wait_links()
    program.say("go")
    log = parse_log(program.finish())
    capture = attached.wait()
    capture.check_sums(lost=0)
    rows = [r for r in capture.rows() if r["kind"] in ("span", "event")]
    for name in names:
        ended = [r["args"]["ret"] for r in rows if r["name"] == name]
        assert [int32(r) for r in ended] == [int32(r["ret"]) for r in log if r["kind"] == name]
    assert all(r["kind"] == "span" and not r.get("left") for r in rows)


def int32(value):
    """What an int that was read as a long has in its low half."""
    return value & 0xFFFFFFFF


def test_call_goes_on_while_a_handler_runs_on_a_stack_of_its_own(waffle, built, tmp_path):
    """A stack above the thread's, and one below it. Every second handler is left by siglongjmp()."""
    program = built("signal_stack.c", "-rdynamic", "-O1")
    log, rows = traced(waffle, tmp_path, program, "--probe", "uprobe:exe:signal_*(int n) -> int ret")
    names = {r["id"]: (r["name"], r["args"]["n"]) for r in rows}
    calls = {name: [r for r in rows if r["name"] == name]
             for name in ("signal_interrupted", "signal_handled", "signal_inner")}
    ended = [r for r in calls["signal_interrupted"] if not r.get("left")]
    assert [f"returned {r['args']['ret']}" for r in ended] == log
    assert len(calls["signal_interrupted"]) == 42 and len(log) == 22
    assert all(r["args"]["n"] % 2 == bool(r.get("left")) for r in calls["signal_interrupted"])
    for row in calls["signal_handled"]:
        assert names[row["parent"]] == ("signal_interrupted", row["args"]["n"])
        assert bool(row.get("left")) == row["args"]["n"] % 2
    for row in calls["signal_inner"]:
        name, n = names[row["parent"]]
        assert name in ("signal_interrupted", "signal_handled") and n == row["args"]["n"]
    assert len(calls["signal_inner"]) == 2 * 42 + 22

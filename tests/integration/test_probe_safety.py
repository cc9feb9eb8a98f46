# SPDX-License-Identifier: Apache-2.0
"""Probes where they could do harm, or can't be set: the program does what it does without."""

import json
import platform
import subprocess

import pytest

from tracer import Capture

ODD = "uprobe:exe:odd_*(ptr count) as event"


def run(waffle, tmp_path, specs, *command, options=()):
    """Compares a program's outputs with and without probes. Returns the capture's rows."""
    alone = subprocess.run(command, capture_output=True, text=True, check=True, input="a\nb\n")
    out = tmp_path / "safety.waffle"
    probes = [word for spec in specs for word in ("--probe", spec)]
    result = waffle.ok("run", "--no-report", "-o", out, "--sources", "spans", *probes, *options,
                       "--", *command, stdin=None, input="a\nb\n")
    assert result.stdout == alone.stdout
    capture = Capture(waffle, out)
    return [r for r in capture.rows() if r["kind"] in ("span", "event")], result.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
@pytest.mark.parametrize("single", [False, True])
def test_function_that_the_kernel_cannot_probe_is_named_and_the_others_are_probed(
    waffle, built, tmp_path, monkeypatch, single
):
    if single:
        monkeypatch.setenv("WAFFLE_UPROBE_SINGLE", "1")
    rows, said = run(waffle, tmp_path, [ODD], built("odd.c"))
    assert [r["name"] for r in rows] == ["odd_plain"] * 2
    lines = said.splitlines()
    assert any("odd_halt can't be probed" in x and "all others are armed" in x for x in lines)
    assert any(" and 6 more of " in x and "can't be probed" in x and "all others" in x
               for x in lines)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
@pytest.mark.parametrize("function", ["odd_lock", "odd_flags", "odd_equal", "odd_or", "odd_syscall",
                                      "odd_repeated", "odd_loop"])
def test_description_of_nothing_but_what_cannot_be_probed_is_an_error(
    waffle, built, function
):
    program = built("odd.c")
    result = waffle.call("list", "--probe", f"uprobe:exe:{function} as event", program)
    assert result.returncode == 1
    assert f"{function} of " in result.stderr and "can't be probed" in result.stderr
    assert "all others" not in result.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="registers of x86-64")
@pytest.mark.parametrize("options", ["", " nounwind"])
def test_functions_of_go_are_events_with_go_s_arguments(waffle, built, tmp_path, options):
    spec = "uprobe:exe:main.work(int n, int more) -> int ret" + options
    rows, said = run(waffle, tmp_path, [spec], built("goish.c"))
    assert [r["kind"] for r in rows] == ["event"] * 5
    assert [r["args"] for r in rows] == [{"n": n, "more": 10 * n} for n in range(5)]
    assert "main.work of " in said and "as Go moves calls from thread to thread" in said


def test_coroutines_and_longjmp_go_on_as_without_probes(waffle, built, tmp_path):
    specs = ["uprobe:exe:task_step(int task, int step) -> int ret", "uprobe:exe:scheduler_run",
             "uprobe:exe:jump_*(int n) -> int ret", "uprobe:exe:_start"]
    rows, _ = run(waffle, tmp_path, specs, built("jumps.c"))
    steps = [(r["args"]["task"], r["args"]["step"]) for r in rows if r["name"] == "task_step"]
    assert sorted(steps) == [(task, step) for task in range(5) for step in range(10)]
    caught = [r["args"] for r in rows if r["name"] == "jump_catch"]
    assert [(args["n"], args["ret"]) for args in caught] == [(n % 5, n % 5 + 7) for n in range(20)]
    over = [r for r in rows if r["name"] == "jump_over"]
    assert len(over) == 20
    assert all(r.get("left") and "ret" not in r["args"] for r in over)
    assert [r["kind"] for r in rows if r["name"] == "_start"] == ["event"]


NOPS = 300  # calls of each function by the parent, twice, and by its child


@pytest.mark.skipif(platform.machine() != "x86_64", reason="nops of x86-64")
def test_nop_that_the_kernel_replaces_is_not_probed_and_children_live(waffle, built, tmp_path):
    """Linux 6.18 overwrites the data of nops_leaf(), and kills the child, if it is probed so."""
    program = built("nops.c")
    specs = ["uprobe:exe:nops_*(long n) -> long ret", "usdt:exe:nops:*"]
    # Nothing holds a forked child, so its first calls are seen only so.
    rows, said = run(waffle, tmp_path, specs, program, options=["--machine-wide"])
    assert [r["args"]["total"] for r in rows if r["name"] == "nops sum"] == [0] * 3
    for name in ("head", "leaf", "asked", "long_head", "long_leaf", "short"):
        calls = [r["args"] for r in rows if r["kind"] == "span" and r["name"] == f"nops_{name}"]
        assert [(c["n"], c["ret"]) for c in calls] == [(n, 2 * n) for n in range(NOPS)] * 3
    assert len([r for r in rows if r["name"] == "short"]) == 3 * NOPS
    listed = waffle.call("list", "--json", "--probe", specs[0], "--probe", specs[1], program)
    assert listed.returncode == 0
    probes = {
        site["func"]: {p["at"]: (p["shift"], p["cost"]) for p in site.get("probes", ())}
        for site in json.loads(listed.stdout)["sites"]
    }
    if "leaf" in probes:
        return  # to this kernel the nop is like other instructions
    assert probes["nops_head"]["entry"] == (5, "single-stepped")
    assert probes["short"] == {"entry": (0, "emulated")}
    assert "asked" not in probes
    for text in (said, listed.stderr):
        [line] = [x for x in text.splitlines() if "can't be probed" in x]
        assert "leaf and 2 more of " in line and "describe the functions around them" in line
        assert "all others that are described are probed" in line
    [line] = waffle.call("list", "--probe", "usdt:exe:nops:asked", program).stderr.splitlines()
    assert "asked of " in line and "describe the function around it ('uprobe:')" in line


def test_code_that_a_program_has_moved_is_said_to_be_unseen(waffle, built, start):
    path = built("moved.c")
    program = start(path)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", "--sources", "spans",
                             "--probe", "uprobe:exe:moved|stays(int n) as event")
    notice = attached.wait_notice()
    assert "1 of 2 probes of" in notice and "replaced the file's pages" in notice
    program.ask("go", "did sum=")
    program.finish()
    capture = attached.wait()
    assert "other pages" not in capture.result.stderr
    assert [r["args"]["n"] for r in capture.rows("event", name="stays")] == list(range(10)) * 3
    assert not capture.rows("event", name="moved")

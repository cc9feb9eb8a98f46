# SPDX-License-Identifier: Apache-2.0
"""Probed functions that exceptions and cancelled threads leave: the program does what it does
without a tracer."""

import subprocess

import pytest

from tracer import Capture

CATCH = "uprobe:exe:catcher(int n) -> int ret"
THROW = "uprobe:exe:thrower(int n) -> int ret"
JOIN = "uprobe:libc.so.6:pthread_join(u64 thread)"


@pytest.fixture
def program(built):
    return built("unwinding.cpp")


def test_exceptions_and_cancelled_threads_pass_probed_functions(waffle, program, tmp_path):
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    out = tmp_path / "unwinding.waffle"
    specs = ("--probe", CATCH, "--probe", THROW, "--probe", JOIN, "--probes", "pthread")
    traced = waffle.ok(
        "run", "-q", "--no-report", "-o", out, "--sources", "spans", *specs, "--", program
    )
    assert traced.stdout == alone
    rows = Capture(waffle, out).rows()
    caught = [r["args"] for r in rows if r.get("name") == "catcher"]
    assert caught == [{"n": n, "ret": n + 100 if n % 2 else n + 1} for n in range(50)]
    thrown = [r["args"] for r in rows if r.get("name") == "thrower"]
    assert [args["n"] for args in thrown] == list(range(50))
    assert [args["ret"] for args in thrown if "ret" in args] == [n + 1 for n in range(0, 50, 2)]


def test_list_says_where_a_call_ends(waffle, program):
    shown = waffle.ok("list", "--probe", THROW, program).stdout
    assert "ret thrower+" in shown and "return thrower" not in shown
    shown = waffle.ok("list", "--probe", THROW + " nounwind", program).stdout
    assert "return thrower" in shown and "ret thrower+" not in shown

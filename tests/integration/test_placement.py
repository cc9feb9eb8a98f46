# SPDX-License-Identifier: Apache-2.0
"""A function that begins with an instruction which the kernel must single-step is probed a few
bytes further on, where that is cheap and nothing has changed; what is seen is the same."""

import json
import os
import sys

import pytest

from tracer import PROGRAMS, wait_probed

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="functions of x86-64")

SPECS = (
    "uprobe:libplaced:placed_push|placed_nop5|placed_je|placed_loop|placed_changed|placed_deep"
    "(long a, long b) -> long ret",
    "uprobe:libplaced:placed_stack(long a, long b, long, long, long, long, long g) -> long ret",
)
PROBES = [word for spec in SPECS for word in ("--probe", spec)]
PLACES = {"push": 4, "nop5": 0, "je": 7, "stack": 7, "loop": 0, "changed": 0, "deep": 4}


@pytest.fixture
def library(built):
    return built("placed.c", "-shared", "-fPIC", name="libplaced.so")


def test_list_tells_where_probes_stand(waffle, library):
    sites = json.loads(waffle.ok("list", "--json", *PROBES, library).stdout)["sites"]
    places = {
        s["func"]: [(p["shift"], p["cost"]) for p in s["probes"] if p["at"] == "entry"]
        for s in sites
    }
    for name, shift in PLACES.items():
        [(at, cost)] = places[f"placed_{name}"]
        assert at == shift
        assert (cost == "single-stepped") == (shift == 0)


def test_entries_and_returns_are_seen_behind_the_entry_too(waffle, start, library):
    program = start(sys.executable, PROGRAMS / "placed_calls.py", library)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--sources", "spans", *PROBES)
    sites = json.loads(waffle.ok("list", "--json", *PROBES, library).stdout)["sites"]
    wait_probed(program.pid, library, sites)
    program.ask("go", "done")
    capture = attached.stop()
    rows = [r for r in capture.rows() if r["kind"] == "span"]
    for name in PLACES:
        mine = [r["args"] for r in rows if r["name"] == f"placed_{name}"]
        if name == "deep":
            # Each call makes as many more as its first argument says.
            made = [(a, t * 10 + 1) for t in range(4) for a in range(t * 10 + 1)]
            expected = {(a, b, a + b) for a, b in made}
            assert {(r["a"], r["b"], r["ret"]) for r in mine} <= expected
            # Of nested calls there are as many as a thread's stack of them has room for.
            assert len(mine) == sum(min(t * 10 + 1, 16) for t in range(4))
        elif name == "stack":
            sums = [(t * 10, t * 10 + 1, t * 10 + 6, 70 * t + 21) for t in range(4)]
            assert [(r["a"], r["b"], r["g"], r["ret"]) for r in mine] == sums
        else:
            sums = [(t * 10, t * 10 + 1, 20 * t + 1) for t in range(4)]
            assert [(r["a"], r["b"], r["ret"]) for r in mine] == sums
    capture.check_sums()

# SPDX-License-Identifier: Apache-2.0
"""The time line in the terminal, of a real capture."""

import os
import re

import pytest


@pytest.fixture
def drawn(waffle, built, start):
    """view(*OPTIONS): the lines that are drawn of one day of the shop."""
    program = start(built("shop.c"), 20)
    program.until("ready")
    attached = waffle.attach_to(program, built("shop.c"))
    program.say("go")
    program.finish()
    capture = attached.wait()
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}

    def view(*options):
        done = waffle.ok("view", *options, capture.path, env=environment)
        assert "\033" not in done.stdout
        return done.stdout.splitlines()

    view.capture = capture
    return view


def spans_of(lines, thread):
    [head] = [line for line in lines if line.startswith(f"{thread} (")]
    found = re.search(r", ([\d,]+) spans?", head)
    return int(found.group(1).replace(",", "")) if found else 0


def test_a_lane_for_each_thread_that_fits_the_width(drawn):
    lines = drawn()
    assert all(len(line) <= 100 for line in lines)
    assert spans_of(lines, "worker-0") == 60  # request, query, render
    assert spans_of(lines, "io") == 5


def test_a_filter_leaves_out_what_it_leaves_out_of_a_report(drawn):
    lines = drawn("--filter", 'name == "query"')
    assert spans_of(lines, "worker-0") == 20
    assert spans_of(lines, "io") == 0
    [left] = [line for line in lines if line.startswith("filtered: ")]
    kept = drawn.capture.report("--filter", 'name == "query"')["filter"]
    assert f"{kept['spans'] - kept['spans_kept']:,} spans" in left


def test_errors_are_one_line(drawn, waffle):
    path = drawn.capture.path
    waffle.fails(1, "view", "--span", "nosuch", path, says="nosuch")
    waffle.fails(1, "view", waffle.folder / "nofile", says="nofile")
    waffle.fails(2, "view", "--explain", path, says="needs a --filter")

# SPDX-License-Identifier: Apache-2.0
"""Modes off, fast and full: what programs record, in all ways to record them.

The program modes.c says how often it evaluated a debug value; the records say the rest.
"""

import json
import os
import subprocess

import pytest

from tracer import Capture, Program, compile_program, named, semaphores

# The value of the key "i" of each round's parts.
PLAIN, OFF, FULL = 0, 100, 200


@pytest.fixture(scope="module")
def program(waffle_program, tmp_path_factory, libwaffle_flags):
    return compile_program("modes.c", tmp_path_factory.mktemp("modes") / "modes", *libwaffle_flags)


def play(capture, program, modes, **variables):
    """Runs one round in each of these modes; the program's numbers of evaluated values."""
    environment = {**os.environ, "WAFFLE_TRACE": str(capture.path), **variables}
    running = Program([program], env=environment)
    running.until("ready")
    evaluated = [int(running.ask(mode, "evaluated")) for mode in modes]
    running.finish()
    return evaluated


def works(rows):
    """The spans "work" by their number."""
    spans = {row["args"]["i"]: row["args"] for row in named(rows, "work") if row["kind"] == "span"}
    assert {row["args"]["i"] for row in named(rows, "inside")} == set(spans)
    return spans


def fast(i):
    return {i: {"i": i}}


def full(i):
    return {i: {"i": i, "debug": i * 10, "text": "odd" if i % 2 else "even"}}


def test_fast_is_the_default_and_leaves_debug_keys_out(waffle, program):
    capture = Capture(waffle, waffle.path())
    assert play(capture, program, [""]) == [1]  # in the scope in full mode
    rows = capture.rows()
    assert works(rows) == {**fast(1), **full(201)}
    [error] = named(rows, "error")
    assert error["args"] == {"i": 1}
    assert not named(rows, "off")
    capture.check_sums(lost=0)


def test_modes_of_the_environment(waffle, program):
    for mode, evaluated, expected in (("off", 1, full(201)), ("fast", 1, {**fast(1), **full(201)}),
                                      ("full", 2, {**full(1), **full(201)})):
        capture = Capture(waffle, waffle.path())
        assert play(capture, program, [""], WAFFLE_MODE=mode) == [0 if mode == "off" else evaluated]
        # Off arms nothing, so that a scope has nothing to record either.
        assert works(capture.rows()) == ({} if mode == "off" else expected)


def test_off_arms_nothing_and_what_follows_arms_again(waffle, program):
    capture = Capture(waffle, waffle.path())
    running = Program([program], env={**os.environ, "WAFFLE_TRACE": str(capture.path),
                                      "WAFFLE_MODE": "off"})
    running.until("ready")
    assert set(semaphores(running.pid, program)) == {0}
    for mode, armed in (("full", True), ("off", False), ("fast", True)):
        running.ask(mode, "evaluated")
        assert (0 not in semaphores(running.pid, program)) == armed
        assert (set(semaphores(running.pid, program)) == {0}) != armed
    running.finish()
    assert works(capture.rows()) == {**full(1), **full(201), **fast(3), **full(203)}


def test_bad_mode_is_one_line_and_the_program_runs_untraced(waffle, program):
    path = waffle.path()
    done = subprocess.run([program], input="\n", text=True, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.PIPE, timeout=60,
                          env={**os.environ, "WAFFLE_TRACE": str(path), "WAFFLE_MODE": "loud"})
    assert done.returncode == 0 and done.stdout == "ready\nevaluated 0\n"
    assert done.stderr == ("waffle: WAFFLE_MODE: 'loud': expected off, fast or full; "
                           "the program runs untraced\n")
    assert not path.exists()


def test_a_debug_key_that_was_not_recorded_is_missing_for_filters(waffle, program):
    capture = Capture(waffle, waffle.path())
    play(capture, program, ["", "full"])
    waffle.ok("report", capture.path)
    out = waffle.path("filtered.ndjson")
    for expression, wanted in (("kv.debug >= 0", {201, 2, 202}), ("kv.debug != 0", {201, 2, 202}),
                               ('kv.text ~ "*"', {201, 2, 202}),
                               ("!(kv.debug >= 0)", {1})):
        waffle.ok("export", capture.path, "--format", "ndjson", "-o", out, "--filter",
                  f'name == "work" && {expression}')
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert {row["args"]["i"] for row in named(rows, "work")} == wanted, expression


def test_filters_while_recording_see_the_same(waffle, program):
    capture = Capture(waffle, waffle.path())
    play(capture, program, ["", "full"], WAFFLE_FILTER='name == "work" && kv.debug != 0')
    assert {row["args"]["i"] for row in named(capture.rows(), "work")} == {201, 2, 202}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_exceptions_end_modes_and_frames(built, compiler, level):
    program = built("modes_exceptions.cpp", level, compiler=compiler)
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout == ("sum 6\nframes 1, mode 3, scopes 0\nframes 0, mode 3, scopes 0\n")


@pytest.mark.parametrize("options", [[], ["--filter", 'name != "work" || kv.i < 1000']],
                         ids=["all", "filtered"])
def test_a_tracer_records_by_the_modes_too(waffle, built, options):
    """A program that has only the headers."""
    program = built("modes.c")
    running = Program([program])
    running.until("ready")
    attached = waffle.attach_to(running, program, options=options)
    for mode in ("", "off", "full"):
        running.ask(mode, "evaluated")
    running.finish()
    attached.wait()
    rows = attached.capture.rows()
    # A tracer arms the sites in mode off, too, so that its scopes count.
    assert works(rows) == {**fast(1), **full(201), **full(202), **full(3), **full(203)}
    errors = {row["args"]["i"]: row["args"] for row in named(rows, "error")}
    assert set(errors) == {1, 3}
    assert not named(rows, "off")
    attached.capture.check_sums(lost=0)


def test_a_tracer_that_filters_by_a_debug_key(waffle, built):
    program = built("modes.c")
    running = Program([program])
    running.until("ready")
    attached = waffle.attach_to(running, program,
                                options=["--filter", 'name != "work" || kv.debug != 0'])
    for mode in ("", "full"):
        running.ask(mode, "evaluated")
    running.finish()
    attached.wait()
    assert {row["args"]["i"] for row in named(attached.capture.rows(), "work")} == {201, 2, 202}

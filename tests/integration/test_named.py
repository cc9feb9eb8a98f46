# SPDX-License-Identifier: Apache-2.0
"""Names that a program makes at run time, recorded by libwaffle.

The records are compared with what the program says of itself, and with the values in named.c.
"""

import collections
import os
import re
import subprocess

import pytest

from recorder import Recorder, compile_inside
from tracer import Capture, named, semaphores, wait_until


@pytest.fixture(scope="module")
def program(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "named.c", tmp_path_factory.mktemp("named") / "named")


@pytest.fixture
def recorder(waffle, program):
    return Recorder(waffle, program)


def test_values_of_all_types_arrive(recorder):
    capture, _ = recorder.run("values")
    first, second = named(capture.rows(), "values")
    assert first["args"] == {"i": -5, "u": 2**64 - 1, "d": 0.25, "b": True, "p": "0x1234",
                             "s": "näme", "part": "pre", "null": None,
                             "long": "x" * 256 + "…"}
    # An unknown value is left out.
    assert second["args"] == {"i": -7, "u": 0, "d": 3.0, "b": True, "p": "0x0"}
    assert first["category"] == "script"


def test_script_is_recorded_with_its_structure(recorder):
    capture, out = recorder.run("script", 500)
    rows = capture.rows()
    assert out == "end\n"
    calls, inner, literal = (named(rows, n) for n in ("call", "inner", "literal"))
    caused, size = named(rows, "caused"), named(rows, "size")
    for all_of in (calls, inner, literal, caused):
        assert [r["args"]["i"] for r in all_of] == list(range(500))
    for i in range(500):
        assert inner[i]["parent"] == literal[i]["parent"] == caused[i]["parent"] == calls[i]["id"]
        assert calls[i]["args"]["before"] <= calls[i]["start_ns"] + 1000
        assert calls[i]["start_ns"] <= inner[i]["start_ns"] <= inner[i]["end_ns"]
        assert inner[i]["end_ns"] <= caused[i]["start_ns"] <= calls[i]["end_ns"]
    assert [r["args"]["value"] for r in size] == [i + 0.5 if i % 2 else -i for i in range(500)]
    for i in range(500):
        assert caused[i]["links"] == [{"kind": "span", "id": inner[i]["id"]},
                                      {"kind": "event", "id": literal[i]["id"]}]
    assert {r["severity"] for r in caused} == {"warn"}
    capture.check_sums(lost=0)


def test_threads_that_make_the_same_name_get_one(recorder):
    capture, out = recorder.run("makers")
    assert out == "end\n"
    rows = capture.rows("event")
    found = collections.Counter((r["name"], r["args"]["thread"]) for r in rows)
    assert found == {(f"made {i}", t): 1 for i in range(200) for t in range(16)}
    assert capture.info()["sites"] == 200 + 2  # and two macros'
    capture.check_sums(lost=0)


def test_bad_names_are_refused_once_and_odd_ones_are_cut(recorder):
    says = "waffle: the name 'bad key' is not recorded: the type of a key is not known\n"
    capture, out = recorder.run("bad", says=says)
    assert out.split("\n")[:4] == ["armed 0 id 0", "armed 0 id 0", "armed 0", "span 0"]
    cut, odd = capture.rows("event")
    assert cut["name"] == "y" * 254
    assert odd["name"] == "odd \x1b[31m\n\ufffd"
    assert "\x1b" not in capture.report_text()


def test_names_have_a_limit(recorder):
    says = r"waffle: the name 'many 65536' is not recorded: there are 65536 names already; .*\n"
    capture, _ = recorder.run("many", says=says)
    assert [r["name"] for r in capture.rows("event")] == [f"many {i}" for i in range(65536)]
    capture.check_sums(lost=0)


def test_handlers_may_use_names(recorder):
    capture, out = recorder.run("handler", 30000)
    counts = collections.Counter(r["name"] for r in capture.rows("event"))
    assert counts["between"] == 30000
    assert counts["handled"] == int(re.search(r"handled (\d+)", out)[1])
    capture.check_sums(lost=0)


def test_names_are_armed_while_somebody_records(waffle, program):
    first, second = waffle.path(), waffle.path()
    done = subprocess.run([program, "again", first, second], text=True, check=True, timeout=60,
                          stdout=subprocess.PIPE)
    assert done.stdout == "armed 0\narmed 1\narmed 0\narmed 1\narmed 0\nend\n"
    assert [r["args"]["i"] for r in Capture(waffle, first).rows("event")] == [1]
    assert [r["args"]["i"] for r in Capture(waffle, second).rows("event")] == [3]


def test_child_records_names_of_its_own(recorder):
    folder = recorder.waffle.folder
    capture, out = recorder.run("forks")
    assert [r["args"]["i"] for r in named(capture.rows(), "forks")] == [0]
    assert not named(capture.rows(), "of the child")

    _, out = recorder.run("forks", path=folder / "own-%p.waffle")
    child = int(re.search(r"child (\d+)", out)[1])
    rows = Capture(recorder.waffle, folder / f"own-{child}.waffle").rows("event")
    assert [(r["name"], r["args"]) for r in rows] == [("forks", {"i": 1}), ("of the child", {})]


@pytest.mark.parametrize("expression, kept", [
    ('name == "inner"', {"inner"}),
    ('category == "script" && kind == span', {"call", "inner"}),
    ("kv.i >= 90", {"call", "inner", "caused", "literal"}),
    ('file == "lib/script.py" && line == 42 && kind == counter', {"size"}),
])
def test_filters_arm_names_like_other_sites(recorder, expression, kept):
    capture, _ = recorder.run("script", 100, WAFFLE_FILTER=expression)
    rows = [r for r in capture.rows() if r["kind"] in ("span", "event", "counter", "log")]
    assert {r["name"] for r in rows} == kept
    for name in kept:
        assert len(named(rows, name)) == (10 if "kv.i" in expression else 100)
    capture.check_sums(lost=0)
    # Others stay dormant. There are two macros of one name.
    assert capture.info()["sites"] == len(kept) + ("literal" in kept)


def test_dormant_program_has_no_ring_and_no_thread(program):
    variables = {k: v for k, v in os.environ.items() if k != "WAFFLE_TRACE"}
    done = subprocess.run([program, "dormant"], text=True, check=True, env=variables,
                          stdout=subprocess.PIPE)
    assert done.stdout == "threads 1 rings 0\nend\n"


# ---- a tracer ----


def check_requests(rows, first, count, fresh):
    spans = {r["args"]["i"]: r for r in named(rows, "first")}
    events = {r["args"]["i"]: r for r in named(rows, fresh)}
    literals = {r["args"]["i"]: r for r in named(rows, "literal")}
    for i in range(first, first + count):
        assert events[i]["parent"] == literals[i]["parent"] == spans[i]["id"]
        assert spans[i]["start_ns"] <= events[i]["start_ns"] <= literals[i]["start_ns"]
        assert literals[i]["start_ns"] <= spans[i]["end_ns"]
        assert spans[i]["category"] == "script"


def armed(program):
    return program.ask("armed", "armed") == "1"


def attach(waffle, program, *options):
    """A tracer that has armed the program's literal site and its names."""
    tracer = waffle.attach_to(program, program.path, options=["--sources", "spans", *options])
    wait_until(lambda: armed(program), "the tracer's arming of names")
    return tracer


@pytest.fixture
def asked(program, start):
    made = start(program, "requests")
    made.until("ready")
    made.path = program
    assert not armed(made)
    return made


def test_tracer_arms_and_records_names_and_leaves_them_dormant(waffle, asked):
    assert asked.ask("50", "done") == "50"
    tracer = attach(waffle, asked)
    assert asked.ask("200", "done") == "250"
    assert asked.ask("200", "done") == "450"
    capture = tracer.stop()
    assert not armed(asked)
    assert asked.ask("10", "done") == "460"
    rows = capture.rows()
    check_requests(rows, 50, 200, "fresh 1")
    check_requests(rows, 250, 200, "fresh 2")
    assert sorted(r["args"]["i"] for r in named(rows, "first")) == list(range(50, 450))
    capture.check_sums(lost=0)


def test_killed_tracer_leaves_names_that_go_dormant_and_the_next_one_takes_over(waffle, asked):
    tracer = attach(waffle, asked)
    assert asked.ask("10", "done") == "10"
    tracer.process.kill()
    tracer.process.wait()
    wait_until(lambda: not any(semaphores(asked.pid, asked.path)), "the kernel's disarming")
    assert asked.ask("1", "done") == "11"  # its use disarms it
    assert not armed(asked)
    tracer = attach(waffle, asked)
    assert asked.ask("100", "done") == "111"
    capture = tracer.stop()
    rows = capture.rows()
    check_requests(rows, 11, 100, "fresh 2")
    assert sorted(r["args"]["i"] for r in named(rows, "first")) == list(range(11, 111))
    capture.check_sums(lost=0)


@pytest.mark.parametrize("expression, kept", [
    ('name ~ "fresh*"', lambda row: row["name"].startswith("fresh")),
    ("kv.i >= 20 && kind == span", lambda row: row["name"] == "first" and row["args"]["i"] >= 20),
    ('parent.name == "first" && kv.i < 5',
     lambda row: row["name"] != "first" and row["args"]["i"] < 5),
    ('category == "script"', lambda row: row["name"] != "literal"),
])
def test_tracer_filters_names_like_other_sites(waffle, program, expression, kept):
    """All of it, from its first name on: the command is held until it is armed."""
    def rows_of(*options):
        lines = waffle.path("requests.txt")
        lines.write_text("40\n")
        with open(lines, encoding="utf-8") as stdin:
            capture = waffle.run(program, "requests", "700", stdin=stdin,
                                 options=["--sources", "spans", *options])
        capture.check_sums(lost=0)
        return [r for r in capture.rows() if r["kind"] in ("span", "event")]

    whole, some = rows_of(), rows_of("--filter", expression)
    assert {(r["name"], r["args"]["i"]) for r in whole} == {
        (name, i) for name in ("first", "fresh 0", "literal") for i in range(40)}
    assert collections.Counter((r["name"], r["args"]["i"]) for r in some) == {
        (r["name"], r["args"]["i"]): 1 for r in whole if kept(r)}


def test_tracer_and_the_program_itself_both_record_names(recorder, start):
    capture, made = recorder.start("requests")
    made.until("ready")
    made.path = recorder.program
    wait_until(lambda: armed(made), "libwaffle's arming")
    tracer = recorder.waffle.attach_to(made, made.path, options=["--sources", "spans"])
    assert made.ask("100", "done") == "100"
    other = tracer.stop()
    assert made.ask("100", "done") == "200"
    made.finish()
    check_requests(other.rows(), 0, 100, "fresh 0")
    check_requests(capture.rows(), 0, 100, "fresh 0")
    check_requests(capture.rows(), 100, 100, "fresh 1")


def test_names_are_dormant_in_mode_off_as_other_sites_are(recorder):
    """Also in a scope of another mode, which only a tracer then records."""
    capture, _ = recorder.run("modes", WAFFLE_MODE="off")
    rows = capture.rows("event")
    assert [(r["name"], r["args"]["i"]) for r in rows] == [
        ("named", 1), ("named", 4), ("other", 5)]


@pytest.mark.parametrize("kill", [[], ["kill"]])
def test_child_in_a_sandbox_leaves_the_names_of_its_parent_alone(recorder, kill):
    """A child that uses no names makes no system calls for them."""
    capture, out = recorder.run("sandboxed", *kill)
    assert "status 0" in out
    assert [r["args"]["i"] for r in named(capture.rows(), "sandboxed")] == list(range(100))


def test_tracer_follows_names_into_children(waffle, program):
    """The child has the parent's names in memory of its own."""
    capture = waffle.run(program, "forks", "1000", options=["--sources", "spans"])
    child = int(re.search(r"child (\d+)", capture.result.stdout)[1])
    rows = capture.rows("event")
    assert sorted((r["name"], r["pid"] == child, r["args"].get("i")) for r in rows
                  if r["name"] != "literal") == [
        ("forks", False, 0), ("forks", True, 1), ("of the child", True, None)]
    capture.check_sums(lost=0)


def test_names_are_usable_from_cplusplus(waffle, waffle_program, tmp_path):
    source = tmp_path / "names.cpp"
    source.write_text(CPLUSPLUS)
    program = compile_inside(waffle_program, source, tmp_path / "names", "-Wpedantic")
    capture, _ = Recorder(waffle, program).run()
    [span], [event] = capture.rows("span"), capture.rows("event")
    assert (span["name"], span["args"]) == ("method", {"text": "temporary", "i": 3})
    assert event["parent"] == span["id"]


CPLUSPLUS = """
#include <string>
#include <waffle_named.h>

int main()
{
    waffle_key_t keys[] = {{WAFFLE_KEY_STR, "text"}, {WAFFLE_KEY_I64, "i"}};
    waffle_name_spec spec{};
    spec.size = sizeof(spec);
    spec.kind = WAFFLE_SITE_SPAN;
    spec.name = "method";
    spec.keys = keys;
    spec.key_count = 2;
    waffle_name_t *method = waffle_name(&spec);
    spec.kind = WAFFLE_SITE_EVENT;
    spec.key_count = 0;
    waffle_name_t *event = waffle_name(&spec);
    waffle_scope_t scope;
    waffle_scope_begin_named(&scope, method,
                             WAFFLE_VALUES(waffle_str((std::string("temp") + "orary").c_str()),
                                           waffle_i64(3)));
    waffle_event_named(event, NULL, 0);
    waffle_scope_end(&scope);
}
"""

# SPDX-License-Identifier: Apache-2.0
"""Backtraces of frames, spans and machine frames.

Lines are compared with the source, where comments name them, and addresses of machine frames with
addr2line.
"""

import json
import os
import re
import signal
import subprocess

import pytest

from tracer import Capture, compile_program, find_tool, named

SOURCE = "frames.c"


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def program(request, waffle_program, tmp_path_factory, libwaffle_flags):
    return compile_program(SOURCE, tmp_path_factory.mktemp("frames") / "frames", request.param,
                           "-g", "-Wno-infinite-recursion", *libwaffle_flags)


@pytest.fixture(scope="module")
def lines(request):
    """Line numbers by their names in comments."""
    text = (request.path.parent / "programs" / SOURCE).read_text(encoding="utf-8")
    return {match[1]: number for number, line in enumerate(text.splitlines(), 1)
            if (match := re.search(r"/\* LINE (.+) \*/", line))}


ENTRY = re.compile(
    r'#(?P<number>\d+)  (?:span "(?P<span>.+)" at (?P<span_file>.+):(?P<span_line>\d+)'
    r"|(?P<function>\S+) at (?P<file>.+):(?P<line>\d+)"
    r"|(?P<code>\S+)\+0x(?P<offset>[0-9a-f]+)(?: in (?P<module>\S+))? \(machine frame\)"
    r"|0x(?P<address>[0-9a-f]+) \(machine frame\))(?P<carried> \(carried\))?")


def backtraces(text):
    """Each backtrace as a list of matches."""
    found = []
    for line in text.splitlines():
        entry = ENTRY.fullmatch(line)
        if not entry:
            continue
        if entry["number"] == "0":
            found.append([])
        assert int(entry["number"]) == len(found[-1]), line
        found[-1].append(entry)
    return found


def chain(entries):
    """What a backtrace says of this program, in short: "inner:40", "span x:42", "~look"."""
    words = []
    for entry in entries:
        if entry["code"] and entry["module"] != "frames":
            continue
        if entry["span"]:
            word = f"span {entry['span']}:{entry['span_line']}"
        elif entry["function"]:
            word = f"{entry['function']}:{entry['line']}"
        else:
            word = "~" + re.sub(r"\.(cold|part|constprop|isra).*", "", entry["code"] or "nowhere")
        words.append(word + ("*" if entry["carried"] else ""))
    return words[:-1] if words and words[-1] == "~_start" else words


def expect(lines, *parts):
    """The same from names of lines: "inner=second" is function inner at the line "second"."""
    words = []
    for part in parts:
        name = part.removesuffix("*")
        function, _, line = name.partition("=")
        if not name.startswith("~"):
            name = f"{function}:{lines[line or function.removeprefix('span ')]}"
        words.append(name + ("*" if part.endswith("*") else ""))
    return words


def run(program, what, code=0, **variables):
    environment = {**os.environ, "WAFFLE_MODE": "full", **variables}
    done = subprocess.run([program, what], env=environment, stdout=subprocess.PIPE, timeout=60,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code, done
    return done


def record(waffle, program, what, code=0, **variables):
    capture = Capture(waffle, waffle.path())
    done = run(program, what, code, WAFFLE_TRACE=str(capture.path), **variables)
    return capture, done


NESTED = ("~look", "inner=second", "span inner span", "inner", "span unmarked span", "~unmarked",
          "inner=second", "span inner span", "inner", "nested", "main")


def line_of(program, function, offset):
    """What addr2line says of an address in a function."""
    find_tool("addr2line")
    symbols = subprocess.run(["nm", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    [start] = [int(line.split()[0], 16) for line in symbols.splitlines()
               if line.split()[-1] == function and line.split()[-2] in "tT"]
    out = subprocess.run(["addr2line", "-ie", program, hex(start + offset)], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return int(re.match(r".*:(\d+)", out.splitlines()[-1])[1])  # not that of an inlined function


def test_frames_spans_and_machine_frames_nest(waffle, program, lines):
    _, done = record(waffle, program, "nested")
    [entries] = backtraces(done.stdout)
    assert chain(entries) == expect(lines, *NESTED)
    assert not any(entry["carried"] for entry in entries)
    for entry in entries:
        if entry["module"] == "frames" and entry["code"] != "_start":
            line = line_of(program, entry["code"], int(entry["offset"], 16))
            assert line == lines["look" if entry["code"] == "look" else "unmarked call"]


def test_machine_frames_stand_for_all_without_full_mode(program):
    """They are also the functions of the same calls that were pushed in full mode."""
    [entries] = backtraces(run(program, "nested", WAFFLE_MODE="fast").stdout)
    assert chain(entries)[:4] == ["~look", "~inner", "~unmarked", "~inner"]
    assert chain(entries)[-1] == "~main"
    assert not any(entry["function"] or entry["span"] for entry in entries)


def test_dormant_spans_are_not_there_but_frames_are(program, lines):
    [entries] = backtraces(run(program, "nested").stdout)
    assert chain(entries) == expect(lines, *(part for part in NESTED if "span" not in part))


def test_an_error_has_the_backtrace_in_all_outputs(waffle, program, lines):
    capture, _ = record(waffle, program, "nested")
    wanted = f"nested frames.c:{lines['nested']} < main frames.c:{lines['main']}"
    [error] = named(capture.rows(), "nested error")
    assert error["args"] == {"code": 5, "frames": wanted}
    trace = json.loads(capture.export("chrome").read_text(encoding="utf-8"))
    [event] = [event for event in trace["traceEvents"] if event["name"] == "nested error"]
    assert event["args"]["frames"] == wanted
    perfetto = capture.export("perfetto")
    assert wanted.encode() in perfetto.read_bytes()
    found = capture.waffle.ok("report", capture.path, "--filter", f'kv.frames ~ "nested *{lines["main"]}"')
    assert "nested error" in found.stdout


def test_an_error_has_none_in_fast_mode(waffle, program):
    capture, _ = record(waffle, program, "nested", WAFFLE_MODE="fast")
    [error] = named(capture.rows(), "nested error")
    assert error["args"] == {"code": 5}


def test_contexts_carry_frames_and_spans_to_other_threads(waffle, program, lines):
    capture, done = record(waffle, program, "threads")
    [entries] = backtraces(done.stdout)
    assert chain(entries) == expect(
        lines, "~look", "third_main", "second_main=second extract*", "span second span*",
        "second_main=second inside*", "second_main*", "submit*", "span root span*", "threads*",
        "main*")
    [error] = named(capture.rows(), "third error")
    assert error["args"]["frames"].startswith(
        f'third_main frames.c:{lines["third_main"]} < second_main '
        f'frames.c:{lines["second extract"]} < span "second span"')


def test_a_span_of_another_thread_comes_with_the_frames_around_it(waffle, program, lines):
    _, done = record(waffle, program, "begun")
    [entries] = backtraces(done.stdout)
    words = chain(entries)
    assert words[:3] == expect(lines, "~look", "begun", "main")
    assert words[-2] == expect(lines, "span begun span*")[0]
    assert words[-1].startswith("begun_main:")


def test_frames_of_a_library_that_was_closed_are_left_out(waffle, program, lines, tmp_path):
    library = compile_program("frames_library.c", tmp_path / "libframes.so", "-fPIC", "-shared")
    capture, done = record(waffle, program, "closed", FRAMES_LIBRARY=str(library))
    carried = expect(lines, "span closed span*", "closed*", "main*")
    opened, closed = map(chain, backtraces(done.stdout))
    assert opened[:2] == closed[:2] == expect(lines, "~look", "closed_main")
    assert opened[2].startswith("library_extract:")
    assert opened[3:] == closed[2:] == carried
    assert len(named(capture.rows(), "closed error")) == 2


def test_coroutines_have_the_frames_of_their_stack_and_of_who_runs_them(program, lines):
    first, second, third, last = map(chain, backtraces(run(program, "coroutines").stdout))
    own = expect(lines, "coroutines", "main")
    assert first == ["~look", *own]  # what is suspended is not there
    assert second[:2] == expect(lines, "~look", "second_coroutine")
    assert second[-2:] == own
    assert third[:2] == expect(lines, "~look", "first_coroutine")
    assert third[-2:] == own
    assert last == ["~look", *own]


def test_handlers_have_what_they_interrupt_and_jumps_leave_nothing(program, lines):
    first, after, second, left = map(chain, backtraces(run(program, "signals").stdout))
    handler = expect(lines, "~look", "on_signal", "interrupted", "signals", "main")
    assert first == handler
    assert second == handler
    assert after == left == expect(lines, "~look", "signals", "main")


def test_deep_recursion_keeps_the_innermost_frames_and_restores_the_others(program, lines):
    deep, after = map(chain, backtraces(run(program, "deep").stdout))
    recurse = expect(lines, "recurse")[0]
    assert deep[1:33] == [recurse] * 32
    assert set(deep[33:]) == {"~recurse"}
    assert after == expect(lines, "~look", "deep", "main")


def test_a_callback_ends_the_backtrace(program):
    assert run(program, "callback").stdout == "counted 2\n"


def test_spans_of_names_made_at_run_time(waffle, program, lines):
    _, done = record(waffle, program, "named")
    texts = re.sub(r"#\d+  |/\S+/(?=frames.c)", "", done.stdout).splitlines()
    named_line = f"named at frames.c:{lines['named']}"
    assert texts[1:4] == ['span "bare span"', named_line, 'span "placed span" at script.py:7']
    after = texts[texts.index(texts[0], 1):]
    assert after[1] == named_line and not any(text.startswith("span") for text in after)


def test_errors_interrupt_others_and_all_have_their_backtrace(waffle, program, lines):
    capture, done = record(waffle, program, "errors")
    between, handled = map(int, done.stdout.split())
    rows = capture.rows("event")
    assert [row["args"]["i"] for row in named(rows, "between")] == list(range(between))
    assert [row["args"]["i"] for row in named(rows, "handled")] == list(range(handled))
    tail = f"errors frames.c:{lines['errors']} < main frames.c:{lines['main']}"
    for row in named(rows, "between"):
        assert re.fullmatch(rf'span "busy" frames.c:\d+ < {re.escape(tail)}', row["args"]["frames"])
    for row in named(rows, "handled"):
        assert row["args"]["frames"].startswith("on_timer frames.c:")
    capture.check_sums(lost=0)


# ---- faults ----


def fault(program, what, number, **variables):
    done = run(program, what, code=-number, **variables)
    head, *_ = done.stderr.splitlines()
    assert re.fullmatch(rf"waffle: signal {int(number)} \({number.name}\) in thread \d+; frames and "
                        r"spans, innermost first:", head), done.stderr
    [entries] = backtraces(done.stderr)
    return chain(entries)


@pytest.mark.parametrize("traced", [False, True], ids=["untraced", "traced"])
@pytest.mark.parametrize("what", ["null", "call", "abort"])
def test_a_fault_tells_where_the_program_was(waffle, program, lines, what, traced):
    number = signal.SIGABRT if what == "abort" else signal.SIGSEGV
    variables = {"WAFFLE_TRACE": str(waffle.path())} if traced else {}
    words = fault(program, what, number, **variables)
    wanted = expect(lines, *["span fault span"] * traced, "fault", "main")
    assert words == (["~nowhere", *wanted] if what == "call" else wanted)
    if traced:
        assert Capture(waffle, variables["WAFFLE_TRACE"]).info()["records"]["lost"] == 0


def test_a_fault_of_a_worker_tells_of_whom_it_works_for(waffle, program, lines):
    words = fault(program, "elsewhere", signal.SIGSEGV, WAFFLE_TRACE=str(waffle.path()))
    assert words == expect(lines, "span fault span", "fault", "~fault_main", "span far span*",
                           "fault_elsewhere*", "main*")


def test_an_overflow_of_the_stack_is_told_on_the_alternate_stack(program, lines):
    words = fault(program, "overflow", signal.SIGSEGV)
    endless = expect(lines, "endless")[0]
    frames = [word for word in words if not word.startswith("~")]
    assert frames == [endless] * len(frames) and len(frames) >= 31
    assert {word for word in words if word.startswith("~")} == {"~endless"}


def test_a_damaged_stack_is_followed_as_far_as_it_goes(program):
    """The program dies by its own fault, not by one of libwaffle's."""
    words = fault(program, "damaged", signal.SIGSEGV)
    assert words[0] in ("~damaged", "damaged:" + words[0].partition(":")[2])


def test_a_fault_that_the_program_handles_is_told_once(program, lines):
    done = run(program, "survive", WAFFLE_MODE="fast")
    assert done.stdout == "handled 11\nhandled 11\nsurvived\n"
    [entries] = backtraces(done.stderr)
    assert chain(entries) == expect(lines, "fault", "~survive", "~main")


def test_faults_tell_nothing_in_other_modes(program):
    done = run(program, "null", code=-signal.SIGSEGV, WAFFLE_MODE="fast")
    assert done.stderr == ""


# ---- a tracer ----


def test_a_tracer_records_the_backtrace_of_an_error(waffle, program, lines):
    capture = waffle.run(program, "nested", env={**os.environ, "WAFFLE_MODE": "full"})
    [error] = named(capture.rows(), "nested error")
    assert error["args"]["frames"] == (
        f"nested frames.c:{lines['nested']} < main frames.c:{lines['main']}")
    [entries] = backtraces(capture.result.stdout)
    assert chain(entries) == expect(lines, *NESTED)

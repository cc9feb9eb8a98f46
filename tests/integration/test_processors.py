# SPDX-License-Identifier: Apache-2.0
"""Chains of processors (docs/processors.md): in a program that is linked with libwaffle, in attach and
run, and over a finished file. What comes out is compared with what the program did."""

import json
import os
import re
import subprocess

import pytest

from recorder import compile_inside
from test_inprocess import LIBWAFFLE
from tracer import compile_program

STEPS = 50


@pytest.fixture(scope="module")
def processed(waffle_program, tmp_path_factory):
    """The program, linked with libwaffle."""
    folder, libraries = tmp_path_factory.mktemp("processed"), waffle_program.parent
    flags = [f"-L{libraries}", *LIBWAFFLE, f"-Wl,-rpath,{libraries}"]
    return compile_program("processed.c", folder / "processed", *flags)


class Processed:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def run(self, *arguments, chain=None, code=0, **variables):
        """Standard output and the lines of standard error."""
        env = {**os.environ, **({"WAFFLE_PROCESS": chain} if chain else {}), **variables}
        done = subprocess.run([self.program, *map(str, arguments)], text=True, check=False, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              timeout=120)
        assert done.returncode == code, done
        return done.stdout, done.stderr.splitlines()

    def log(self, *arguments, chain="log(json)", **variables):
        """The records of a log on standard error."""
        return [json.loads(line) for line in self.run(*arguments, chain=chain, **variables)[1]]


@pytest.fixture
def program(processed, tmp_path):
    return Processed(processed, tmp_path)


def names(rows):
    return [row["name"] for row in rows]


def test_log_has_each_whole_record(program):
    rows = program.log("steps", STEPS)
    spans = [r for r in rows if r["kind"] == "span"]
    ticks = {r["args"]["i"]: r for r in rows if r["name"] == "tick"}
    assert [s["args"]["i"] for s in spans] == list(range(STEPS))
    for i, span in enumerate(spans):
        assert span["args"]["parity"] == ("odd" if i % 2 else "even")
        assert span["dur_ns"] == span["end_ns"] - span["start_ns"]
        assert ticks[i]["parent"] == span["id"] and ticks[i]["trace"] == span["trace"]
        assert span["start_ns"] <= ticks[i]["start_ns"] <= span["end_ns"]
    [counter] = [r for r in rows if r["kind"] == "counter"]
    assert list(counter["args"].values()) == [42]
    [log] = [r for r in rows if r["name"] == "careful"]
    assert (log["severity"], log["args"]) == ("warn", {"code": 7})
    assert len(rows) == 2 * STEPS + 2


def test_log_agrees_with_the_file_of_the_same_run(program, waffle):
    path = waffle.path()
    rows = program.log("steps", STEPS, WAFFLE_TRACE=str(path))
    done = subprocess.run([waffle.program, "export", path, "--format", "ndjson", "-o", "-"],
                          text=True, check=True, stdout=subprocess.PIPE)
    kept = [json.loads(line) for line in done.stdout.splitlines()]
    kept = {r["id"]: r for r in kept if r["kind"] in ("span", "event") and "id" in r}
    assert len(kept) == 2 * STEPS + 1
    for row in (r for r in rows if "id" in r):
        for key in ("kind", "name", "trace", "parent", "pid", "tid", "comm", "start_ns", "args"):
            assert row.get(key) == kept[row["id"]].get(key), key
        assert row.get("end_ns") == kept[row["id"]].get("end_ns")


def test_finished_file_gives_the_same_log(program, waffle):
    path = waffle.path()
    rows = program.log("steps", STEPS, WAFFLE_TRACE=str(path))
    done = subprocess.run([waffle.program, "export", path, "--process", "log(json)"], text=True,
                          check=True, stderr=subprocess.PIPE)
    assert [json.loads(line) for line in done.stderr.splitlines()] == rows
    done = subprocess.run([waffle.program, "export", path, "--process", "log(json)", "--from", "1h"],
                          text=True, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["waffle-bpf: export: no record is within these times; waffle-bpf info "
                                        "shows how long the capture is"]


def test_filter_keeps_what_matches(program):
    rows = program.log("steps", STEPS, chain='filter(kind == span && kv.i in {3, 5, 99}),log')
    assert [r["args"]["i"] for r in rows] == [3, 5]
    rows = program.log("steps", STEPS, chain='filter(parent.name == "step" && depth == 1),log')
    assert names(rows) == ["tick"] * STEPS
    rows = program.log("steps", STEPS, chain="filter(dur >= 1ns && rate(2/min)),log")
    assert names(rows) == ["step"] * 2
    rows = program.log("steps", STEPS, chain="log", WAFFLE_FILTER="kind == span")
    assert names(rows) == ["step"] * STEPS


def test_sample_keeps_whole_traces(program):
    rows = program.log("steps", 1000, chain="sample(1/4),log")
    spans = {r["trace"] for r in rows if r["kind"] == "span"}
    ticks = {r["trace"] for r in rows if r["name"] == "tick"}
    assert spans == ticks and 150 < len(spans) < 350
    # The same rule as the filter's.
    again = program.log("steps", 1000, chain="sample(1/4),filter(sample(1/4)),log")
    assert len({r["trace"] for r in again if r["kind"] == "span"}) > 150


def test_later_processors_see_what_earlier_ones_pass_on(program):
    rows = program.log("steps", 20, chain="log(json,file=all.log),filter(kind == span),log(json)")
    assert names(rows) == ["step"] * 20
    everything = (program.folder / "all.log").read_text().splitlines()
    assert len(everything) == 42
    assert (program.folder / "all.log").stat().st_mode & 0o777 == 0o600


def test_batch_passes_on_everything_in_order(program):
    plain = program.log("steps", STEPS)
    batched = program.log("steps", STEPS, chain="batch(7),batch(3),log(json)")
    strip = [(r["kind"], r["name"], r["args"], r["comm"]) for r in plain]
    assert [(r["kind"], r["name"], r["args"], r["comm"]) for r in batched] == strip


def test_log_is_valid_json_and_safe_for_terminals(program):
    _, [line] = program.run("strange", chain="log")
    assert all(" " <= c and c not in "\x7f\x9b‮" for c in line)
    row = json.loads(line)
    assert row["name"] == "strange \x1b]0;x\x07"
    assert row["args"] == {"text": "a\x1b[31m\n\"\\\x7f\x9b ‮ � ä", "null": None,
                           "nan": "NaN", "third": 1 / 3, "yes": True, "most": 2**64 - 1,
                           "address": "0x10"}


def test_callbacks_get_records_in_a_thread_of_their_own(program):
    out, lines = program.run("callback", "filter(kind == span),call(odd),log(json)")
    assert out.splitlines() == ["start 0", "flush 0",
                                "calls 10, in a thread of its own: 1", "stop 0", "calls 10", "end"]
    assert [json.loads(line)["args"]["i"] for line in lines] == [1, 3, 5, 7, 9]


def test_sites_inside_of_a_callback_do_not_call_it_again(program):
    out, _ = program.run("callback", "call(print)")
    lines = [line for line in out.splitlines() if line.startswith(("span", "event"))]
    assert sorted(lines) == (["event tick depth ? parent 1 trace 1 values 1 dur none"] * 10
                             + ["span step depth ? parent 0 trace 1 values 2 dur some"] * 10)


def test_everything_passes_until_a_callback_is_there(program):
    out, lines = program.run("late", chain="filter(kind == span),call(odd),log(json)")
    assert "calls 10" in out
    assert [json.loads(line)["args"]["i"] for line in lines] == [*range(10), 11, 13, 15, 17, 19]


def test_wrong_calls_return_errors(program):
    out, lines = program.run("errors")
    assert out.splitlines() == [
        "no name -22", "bad name -22", "no text -22", "nothing to stop -3", "bad text -22", "start 0",
        "again -16", "stop by a callback -35", "remove 0", "stop 0", "end"]
    assert len(lines) == 2 and "unknown processor 'nonsense'" in lines[0], lines
    assert "records already" in lines[1]


@pytest.mark.parametrize("chain, says", [
    ("sampel(1/10)", "unknown processor 'sampel'; did you mean sample"),
    ("filter(nmae == \"x\")", "unknown field 'nmae'; did you mean name"),
    ("log(json", r"expected , or \) behind an option of log\(\)"),
    ("log(file=/nonexistent/x.log)", "/nonexistent/x.log: No such file or directory"),
    ("log(file=%q)", "%q in '%q' is not known; write %p for the pid or %% for %"),
])
def test_bad_chain_costs_one_line_and_the_program_runs(program, chain, says):
    earlier = program.folder / "earlier.waffle"
    earlier.write_text("a recording")
    out, lines = program.run("steps", 3, chain=chain, WAFFLE_TRACE=str(earlier))
    assert out == "end\n"
    assert len(lines) == 1, lines
    assert earlier.read_text() == "a recording"
    assert re.search(says, lines[0]) and lines[0].endswith("; the program runs untraced"), lines


def test_crash_leaves_the_log_complete(program):
    _, lines = program.run("crash", chain="log(json,file=crash.log)", code=-6)
    rows = [json.loads(x) for x in (program.folder / "crash.log").read_text().splitlines()]
    assert [r["args"]["i"] for r in rows if r["kind"] == "span"] == list(range(10)), lines


def test_child_of_fork_has_the_chain_too(program):
    rows = program.log("fork")
    spans = [(r["pid"], r["args"]["i"]) for r in rows if r["kind"] == "span"]
    pids = {pid for pid, _ in spans}
    assert len(pids) == 2
    assert sorted(i for _, i in spans) == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]


def test_pipe_that_nobody_reads_does_not_hold_up_the_program(program):
    """The log is longer than what a pipe and the queue of the log have room for."""
    env = {**os.environ, "WAFFLE_PROCESS": "log(json,file=/dev/stderr)"}
    with subprocess.Popen([program.program, "steps", "60000"], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.read() == "end\n"
        assert process.wait(timeout=120) == 0


def test_run_gives_all_records_to_a_chain(program, waffle):
    path = waffle.path()
    log = program.folder / "run.log"
    subprocess.run([waffle.program, "run", "-q", "--no-report", "-o", path, "--process",
                    f"filter(kind == span),log(json,file={log})", "--", program.program, "steps",
                    str(STEPS)], check=True, cwd=program.folder)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["args"]["i"] for r in rows if r["name"] == "step"] == list(range(STEPS))
    assert {r["comm"] for r in rows} == {"processed"}


@pytest.mark.parametrize("transport", ["ring", "usdt"])
def test_attach_gives_the_same_records_by_both_transports(program, waffle, transport):
    path, log = waffle.path(), program.folder / "attach.log"
    with subprocess.Popen([program.program, "ticking"], stdout=subprocess.DEVNULL) as process:
        try:
            subprocess.run([waffle.program, "attach", "--pid", str(process.pid), "-d", "1s", "-q",
                            "--no-report", "-o", path, "--transport", transport, "--process",
                            f"log(json,file={log})"], check=True, cwd=program.folder)
        finally:
            process.kill()
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    done = subprocess.run([waffle.program, "export", path, "--process", "log(json)"], text=True,
                          check=True, stderr=subprocess.PIPE)
    kept = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    strip = [{k: v for k, v in r.items() if k != "time"} for r in rows]
    assert strip == [{k: v for k, v in r.items() if k != "time"} for r in kept]
    numbers = [r["args"]["i"] for r in rows if r["kind"] == "span" and "unfinished" not in r]
    assert numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_redacted_values_reach_no_processor(program, waffle):
    log = program.folder / "run.log"
    subprocess.run([waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--redact",
                    "parity", "--process", f"filter(kind == span),log(json,file={log})", "--",
                    program.program, "steps", "5"], check=True, cwd=program.folder)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["args"] for r in rows if r["name"] == "step"] == [{"i": i} for i in range(5)]


@pytest.mark.parametrize("chain, says", [
    ("filer(x)", "unknown processor 'filer'; did you mean filter"),
    ("call(x)", "only a program that is linked with libwaffle has callbacks"),
])
def test_bad_chain_of_a_command_is_a_usage_error(program, waffle, chain, says):
    done = subprocess.run([waffle.program, "run", "--process", chain, "--", program.program], text=True,
                          check=False, cwd=program.folder, stderr=subprocess.PIPE)
    assert done.returncode == 2 and says in done.stderr
    assert not list(program.folder.glob("*.waffle"))


# ---- programs that close all descriptors, and go to another directory, as daemons do ----

@pytest.fixture(scope="module")
def own_files(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "own_files.c", tmp_path_factory.mktemp("own") / "own")


def run_own_files(program, what, folder, chain):
    (folder / "other").mkdir()
    return subprocess.run([program, what, folder / "other"], check=True, text=True, timeout=60,
                          cwd=folder, env={**os.environ, "WAFFLE_PROCESS": chain},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("chain", ["log(json)", "log(json,file=log)"])
def test_log_is_never_written_to_a_file_of_the_program(own_files, tmp_path, chain):
    done = run_own_files(own_files, "closes", tmp_path, chain)
    assert done.stdout == "end\n"
    own = list((tmp_path / "other").iterdir())
    assert len(own) == 61 and all(not path.read_bytes() for path in own)
    assert "not accepted: the program has closed its descriptor\n" in done.stderr
    log = done.stderr if chain == "log(json)" else (tmp_path / "log").read_text()
    assert '"name":"before"' in log and '"name":"after"' not in log


def test_metrics_stay_in_the_directory_where_the_program_began(own_files, tmp_path):
    done = run_own_files(own_files, "moves", tmp_path, "metrics(file=metrics.prom)")
    assert (done.stdout, done.stderr) == ("end\n", "")
    assert 'name="after"' in (tmp_path / "metrics.prom").read_text()
    assert not list((tmp_path / "other").iterdir())

# SPDX-License-Identifier: Apache-2.0
"""The flight recorder: what is in its files, and when it writes one.

The program numbers its events, so a file is complete if the numbers have no gap.
"""

import json
import os
import signal
import subprocess
import time

import pytest

import waffle_file
from stuck_folder import folder_fixture  # noqa: F401 - the fixture `folder`
from tracer import Capture, named, parse_log, semaphores, wait_until

WINDOW_NS, AFTER_NS = 2_000_000_000, 500_000_000
NOT_COUNTED = (5, 9, 23)  # states of threads, losses and open waits, which waffle-bpf itself makes
SLOW = 'name == "slow" && dur > 20ms'


class Recorder:
    """waffle-bpf attach --flight-recorder to a running programs/flight.c."""

    def __init__(self, waffle, program, path, *options):
        self.waffle, self.program, self.path = waffle, program, path
        base = ["--flight-recorder", "2s", "--after", "500ms", *options]
        self.attached = waffle.attach("-p", program.pid, *base, path=waffle.folder / "flight.waffle")

        def armed():
            assert self.attached.process.poll() is None, self.attached.process.communicate()
            values = semaphores(program.pid, path)
            return values and all(values)

        wait_until(armed, "arming")

    def file(self, number, folder=None):
        """The file with a number, once it is there."""
        path = (folder or self.waffle.folder) / f"flight-{number}.waffle"
        wait_until(path.exists, f"{path.name}; {self.attached.process.poll()}")
        return Capture(self.waffle, path)

    def end(self, code=0):
        """Ctrl-C, and what it said."""
        self.attached.signal(signal.SIGINT)
        return self.wait(code)

    def wait(self, code=0):
        return self.attached.wait(code=code).result.stderr

    def files(self):
        return sorted(path.name for path in self.waffle.folder.glob("*.waffle"))


@pytest.fixture
def flight(waffle, built, start):
    program = start(built("flight.c"))
    program.until("ready")
    return lambda *options: Recorder(waffle, program, built("flight.c"), *options)


def slow(recorder, ms=50):
    [row] = parse_log(["slow " + recorder.program.ask(f"slow {ms}", "slow")])
    return row


def check_complete(capture):
    """No tick is missing; the sums are those of the records that are in the file."""
    rows = capture.rows()
    ticks = named(rows, "tick")
    numbers = [row["args"]["i"] for row in ticks]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    records = capture.check_sums()
    kinds = [record["kind"] for record in waffle_file.read(capture.path)]
    assert records["delivered"] == sum(kind not in NOT_COUNTED for kind in kinds)
    info = capture.info()
    assert info["start_ns"] <= ticks[0]["start_ns"] and ticks[-1]["start_ns"] <= info["end_ns"]
    return rows, ticks, info


def test_file_has_the_time_before_and_after_the_span_that_triggered_it(flight):
    recorder = flight("--trigger", SLOW)
    time.sleep(5)
    span = slow(recorder)
    capture = recorder.file(1)
    rows, ticks, info = check_complete(capture)
    assert info["records"]["lost"] == 0
    assert ticks[0]["args"]["i"] > 0
    assert ticks[0]["start_ns"] <= span["end"] - WINDOW_NS + 100_000_000
    assert info["start_ns"] <= span["end"] - WINDOW_NS
    assert info["end_ns"] >= span["begin"] + 50_000_000 + AFTER_NS
    [row] = named(rows, "slow")
    assert row["args"] == {"ms": 50} and row["end_ns"] <= span["end"]
    assert info["trigger_ns"] == row["end_ns"]
    assert info["trigger"].startswith(f'span "slow" of thread {row["tid"]}, ')
    assert info["trigger"].endswith(f": {SLOW}")
    assert f'triggered by span "slow" of thread {row["tid"]}' in capture.report_text()
    # The scheduler is known from the first moment.
    assert row["running_ns"] is not None and row["blocked_ns"] >= 50_000_000 * 9 / 10
    why = json.loads(recorder.waffle.ok("why", "--json", "--span", "slow", capture.path).stdout)
    assert [instance["id"] for instance in why["instances"]] == [row["id"]]
    assert why["trigger_ns"] == row["end_ns"]
    said = recorder.end()
    assert "triggered by" in said and "flight-1.waffle" in said
    assert recorder.files() == ["flight-1.waffle"]


def test_spans_that_do_not_match_write_nothing(flight):
    recorder = flight("--trigger", SLOW)
    slow(recorder, 1)
    recorder.program.ask("mark 3", "marked")
    time.sleep(1.5)
    said = recorder.end()
    assert "triggered" not in said and "nothing matched the trigger; no file was written" in said
    assert recorder.files() == []


def test_event_triggers_by_the_value_of_a_key(flight):
    recorder = flight("--trigger", 'name == "mark" && kv.n == 3')
    for n in range(5):
        recorder.program.ask(f"mark {n}", "marked")
    capture = recorder.file(1)
    rows, _, info = check_complete(capture)
    assert info["trigger_ns"] == [r["start_ns"] for r in named(rows, "mark") if r["args"]["n"] == 3][0]
    recorder.end()


def test_cool_down_and_number_of_files_limit_what_is_written(flight):
    recorder = flight("--trigger", SLOW, "--cooldown", "3s", "--max-files", "2")
    slow(recorder)
    recorder.file(1)
    slow(recorder)
    time.sleep(1)
    assert recorder.files() == ["flight-1.waffle"]
    time.sleep(3)
    slow(recorder)
    said = recorder.wait()  # ends by itself
    assert recorder.files() == ["flight-1.waffle", "flight-2.waffle"]
    assert "1 more matched" in said
    assert "2 files were written; 1 more match was in a cool-down" in said
    [last] = [r for r in named(Capture(recorder.waffle, recorder.file(2).path).rows(), "slow")][-1:]
    assert recorder.file(2).info()["trigger_ns"] == last["end_ns"]


def test_sigusr1_writes_a_file_and_ctrl_c_does_not(flight):
    recorder = flight()
    time.sleep(1)
    recorder.attached.signal(signal.SIGUSR1)
    capture = recorder.file(1)
    check_complete(capture)
    assert capture.info()["trigger"] == "SIGUSR1"
    recorder.end()
    assert recorder.files() == ["flight-1.waffle"]


def test_ctrl_c_writes_what_was_triggered_already(flight):
    recorder = flight("--trigger", SLOW, "--after", "1h")
    slow(recorder)
    wait_until(lambda: "triggered" in recorder.attached.wait_notice(), "the trigger")
    recorder.end()
    assert recorder.files() == ["flight-1.waffle"]
    check_complete(recorder.file(1))


def test_span_that_began_before_the_file_is_shown_as_begun_before(flight):
    recorder = flight()
    recorder.program.ask("open", "opened")
    time.sleep(5)
    recorder.attached.signal(signal.SIGUSR1)
    rows, _, info = check_complete(recorder.file(1))
    [span] = named(rows, "long")
    assert span["begun_before"] and span["unfinished"]
    assert span["start_ns"] == info["start_ns"] and span["args"] == {"what": "held"}
    recorder.program.ask("close", "closed")
    recorder.attached.signal(signal.SIGUSR1)
    rows, _, info = check_complete(recorder.file(2))
    [span] = named(rows, "long")
    assert span["begun_before"] and not span.get("unfinished")
    assert span["args"] == {"what": "held"} and span["end_ns"] < info["end_ns"]
    time.sleep(5)
    recorder.attached.signal(signal.SIGUSR1)
    rows, _, info = check_complete(recorder.file(3))
    assert not named(rows, "long")
    recorder.end()


def test_memory_is_limited_and_the_file_says_from_when_it_is_complete(flight):
    recorder = flight("--flight-memory", "16MiB", "--flight-recorder", "1h")
    for _ in range(4):
        recorder.program.ask("burst 30000", "burst")
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    recorder.attached.signal(signal.SIGUSR1)
    capture = recorder.file(1)
    _, ticks, info = check_complete(capture)
    assert ticks[0]["args"]["i"] > 0
    assert info["start_ns"] < begun
    # The window is an hour, but what has no room is gone.
    assert capture.path.stat().st_size < 18 << 20
    recorder.end()


def test_files_of_others_are_not_replaced(flight, waffle):
    other = waffle.folder / "flight-1.waffle"
    other.write_text("mine", encoding="utf-8")
    recorder = flight()
    recorder.attached.signal(signal.SIGUSR1)
    check_complete(recorder.file(2))
    recorder.end()
    assert other.read_text(encoding="utf-8") == "mine"
    assert recorder.files() == ["flight-1.waffle", "flight-2.waffle"]


def test_file_system_that_is_full_costs_a_file_and_not_the_capture(flight, waffle):
    full = waffle.folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], check=True)
    try:
        recorder = flight("-o", full / "flight.waffle")
        time.sleep(1)
        recorder.program.ask("burst 2000", "burst")
        recorder.attached.signal(signal.SIGUSR1)
        wait_until(lambda: "No space" in recorder.attached.wait_notice(), "the error")
        assert recorder.attached.process.poll() is None
        said = recorder.end(code=1)
        assert "1 file was not written" in said
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def test_call_of_a_function_triggers_at_its_return(flight):
    recorder = flight("--probe", "uprobe:flight:slow_call(i64 ms) nounwind", "--trigger",
                      'name == "slow_call" && kv.ms == 60 && dur > 40ms')
    recorder.program.ask("call 50", "called")
    recorder.program.ask("call 60", "called")
    rows, _, info = check_complete(recorder.file(1))
    calls = named(rows, "slow_call")
    assert [row["args"]["ms"] for row in calls] == [50, 60]
    assert info["trigger_ns"] == calls[1]["end_ns"] and '"slow_call"' in info["trigger"]
    recorder.end()


def test_records_of_rings_are_kept_and_trigger(waffle, built, start, libwaffle_flags):
    path = built("flight.c", *libwaffle_flags)
    program = start(path)
    program.until("ready")
    recorder = Recorder(waffle, program, path, "--transport", "ring", "--trigger", SLOW)
    time.sleep(4)
    slow(recorder)
    rows, ticks, info = check_complete(recorder.file(1))
    assert ticks[0]["args"]["i"] > 0 and info["records"]["lost"] == 0
    assert info["trigger_ns"] == named(rows, "slow")[0]["end_ns"]
    assert info["processes"][0]["ring_records"] >= len(ticks)
    recorder.end()


def test_file_system_that_does_not_answer_stops_neither_the_capture_nor_its_end(flight, folder):
    recorder = flight("-o", folder.path / "flight.waffle")
    time.sleep(0.5)
    folder.stop()
    recorder.attached.signal(signal.SIGUSR1)
    wait_until(lambda: "triggered" in recorder.attached.wait_notice(), "the trigger")
    time.sleep(1)
    assert recorder.attached.process.poll() is None
    said = recorder.end(code=1)
    assert "the file system of the last file does not answer" in said
    assert not any(semaphores(recorder.program.pid, recorder.path))
    folder.go_on()
    check_complete(recorder.file(1, folder.path))


def test_command_that_ends_before_its_time_is_in_the_file(waffle, built):
    done = waffle.call("run", "--flight-recorder", "5s", "--trigger", SLOW, "--after", "1m",
                       "-o", waffle.folder / "flight.waffle", "--", built("flight.c"),
                       stdin=None, input="slow 50\nmark 1\nend\n")
    assert done.returncode == 0, done
    capture = Capture(waffle, waffle.folder / "flight-1.waffle")
    rows, ticks, info = check_complete(capture)
    assert len(named(rows, "slow")) == len(named(rows, "mark")) == 1
    assert info["records"]["lost"] == 0 and ticks[0]["args"]["i"] == 0


def test_default_name_has_program_time_and_number(flight, waffle, built, start):
    program = start(built("flight.c"))
    program.until("ready")
    folder = waffle.folder / "names"
    folder.mkdir()
    process = subprocess.Popen([waffle.program, "attach", "-p", str(program.pid),
                                "--flight-recorder", "2s", "--after", "0s", "--max-files", "1"],
                               cwd=folder, stderr=subprocess.PIPE)
    wait_until(lambda: any(semaphores(program.pid, built("flight.c")) or []), "arming")
    time.sleep(1)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 0
    [name] = os.listdir(folder)
    assert name.startswith("flight-2") and name.endswith("-1.waffle")


@pytest.mark.parametrize("options, says", [
    (["--trigger", "dur > 1s"], "--trigger needs a --flight-recorder"),
    (["--flight-recorder", "2s", "--trigger", "nmae == 1"], "unknown field 'nmae'"),
    (["--flight-recorder", "2s", "--max-size", "8MiB"], "--flight-memory"),
    (["--flight-recorder", "500ms"], "--flight-recorder"),
    (["--flight-recorder", "2s", "--max-files", "0"], "--max-files"),
])
def test_bad_options_are_refused_before_anything_is_armed(waffle, steps, options, says):
    result = waffle.call("attach", "-p", steps.pid, *options)
    assert result.returncode == 2 and says in result.stderr, result
    assert not any(semaphores(steps.pid, steps.path))


def test_folder_that_is_missing_is_an_error_at_the_start(waffle, steps):
    waffle.fails(1, "attach", "-p", steps.pid, "--flight-recorder", "2s", "-o",
                 waffle.folder / "missing" / "x.waffle", says="missing/x-1.waffle")

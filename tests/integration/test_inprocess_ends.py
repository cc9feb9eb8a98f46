# SPDX-License-Identifier: Apache-2.0
"""How recordings of a program by itself end: by exit, signals and kill, in each format, and on file
systems that fail or stop to answer."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from recorder import Recorder, compile_inside
from stuck_folder import folder_fixture  # noqa: F401 - the fixture `folder`
from tracer import ROOT, Capture, Program, semaphores, wait_until

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402

FORMATS = ("waffle", "json", "pftrace")


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


@pytest.fixture
def recorder(waffle, inside):
    return Recorder(waffle, inside)


def steps_in(waffle, path, finished=True):
    """The numbers of the steps and ticks in a file of any format, which is valid."""
    if path.suffix == ".waffle":
        rows = Capture(waffle, path).rows()
        return [sorted(r["args"]["i"] for r in rows if r["kind"] == kind)
                for kind in ("span", "event")]
    if path.suffix == ".json":
        text = path.read_text(encoding="utf-8")
        assert text.endswith("\n]\n") == finished
        events = json.loads(text if finished else text + "\n]")
        steps = [e for e in events if e["name"] == "step" and e["ph"] in "XB"]
        ticks = [e for e in events if e["name"] == "tick"]
        return [sorted(e["args"]["i"] for e in some) for some in (steps, ticks)]
    trace = validate_perfetto.load(path)
    allowed = set() if finished else {"loss", "bounds", "slice-open"}
    assert {check for check, _ in trace.violations} <= allowed, trace.violations
    return [sorted(s.args["i"] for s in some if s.name == name)
            for some, name in ((trace.slices, "step"), (trace.instants, "tick"))]


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("how, code", [("exit", 4), ("abort", -signal.SIGABRT),
                                       ("segv", -signal.SIGSEGV), ("term", -signal.SIGTERM)])
def test_end_keeps_all_records_in_each_format(recorder, extension, how, code):
    path = recorder.waffle.folder / f"out.{extension}"
    recorder.run("die", how, code=code, path=path)
    assert steps_in(recorder.waffle, path, finished=how == "exit") == [list(range(100))] * 2


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("how, code", [("kill", -signal.SIGKILL), ("_exit", 3)])
def test_sudden_end_keeps_all_but_the_last_second_in_each_format(recorder, extension, how, code):
    path = recorder.waffle.folder / f"out.{extension}"
    recorder.run("die", how, "later", code=code, path=path)
    assert steps_in(recorder.waffle, path, finished=False) == [list(range(100))] * 2


@pytest.mark.parametrize("extension", FORMATS)
def test_file_is_valid_at_any_time_and_grows(recorder, extension):
    """It is read while the program writes, as if it had been killed then."""
    waffle = recorder.waffle
    path = waffle.folder / f"out.{extension}"
    program = Program([recorder.program, "paced", "3000"], env=recorder.environment(path))
    program.until("ready")
    seen, copy = [], waffle.folder / f"copy.{extension}"
    for _ in range(6):
        before = time.monotonic()
        copy.write_bytes(path.read_bytes())
        done = int(program.ask("", "at"))
        if extension != "waffle":  # the copy may end within what is being written
            waffle.ok("repair", copy)
        steps, ticks = steps_in(waffle, copy, finished=extension == "json")
        assert steps == list(range(len(steps))) and ticks == list(range(len(ticks)))
        seen.append((done, len(steps)))
        time.sleep(max(0, 0.5 - (time.monotonic() - before)))
    program.finish()
    assert 0 < seen[-1][1] <= seen[-1][0] and sorted(seen) == seen
    assert len({kept for _, kept in seen}) > 2


def test_flush_in_the_programs_own_handler_keeps_all_records(recorder):
    """A handler that is installed after recording began replaces libwaffle's. It may flush."""
    for how in ("segv", "abort"):
        path = recorder.waffle.folder / f"{how}.waffle"
        _, out = recorder.run("die", how, "flushing", code=7, path=path)
        assert out == "my handler\n"
        assert steps_in(recorder.waffle, path) == [list(range(100))] * 2


def test_handler_from_before_the_recording_runs_after_the_flush_and_may_go_on(recorder):
    """It leaves by siglongjmp(), again and again, and is not delayed each time."""
    waffle = recorder.waffle
    path = waffle.folder / "recovered.waffle"
    done = subprocess.run([recorder.program, "recover", path, "2000"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert (done.stdout, done.stderr) == ("recovered 2000\nend\n", "")
    rows = Capture(waffle, path).rows("event")
    assert [r["args"]["i"] for r in rows if r["name"] == "fault"] == list(range(2000))


def test_handlers_that_call_each_other_end(waffle, waffle_program):
    """A crash reporter that was installed while the program recorded calls libwaffle's handler, which
    must not have become the one that calls it."""
    program = compile_inside(waffle_program, "chained.c", waffle.folder / "chained")
    path = waffle.folder / "chained.waffle"
    done = subprocess.run([program, path], check=False, timeout=60, stderr=subprocess.PIPE)
    assert done.returncode == -signal.SIGSEGV
    [event] = Capture(waffle, path).rows("event")
    assert event["name"] == "before the fault"


# ---- file systems ----

@pytest.mark.parametrize("extension", FORMATS)
def test_full_disk_ends_the_recording_and_leaves_a_valid_file(recorder, extension):
    folder = recorder.waffle.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", folder], check=True)
    try:
        path = folder / f"out.{extension}"
        program = Program([recorder.program, "request"], env=recorder.environment(path),
                          stderr=subprocess.PIPE)
        program.until("ready")
        done = 0

        def disarmed():
            nonlocal done
            done += 20000
            assert program.ask("20000", "done") == str(done)
            return not any(semaphores(program.pid, recorder.program))

        wait_until(disarmed, "the end of the recording")
        program.finish()
        assert program.process.returncode == 0
        [line] = program.process.stderr.read().splitlines()
        assert re.match(r"waffle: .*No space left.*; the program goes on untraced", line), line
        copy = recorder.waffle.folder / path.name  # in `small` there is no room for exports
        copy.write_bytes(path.read_bytes())
        steps, _ = steps_in(recorder.waffle, copy, finished=False)
        assert steps == list(range(len(steps)))
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("extension", FORMATS)
def test_file_system_that_stops_to_answer_does_not_block_the_program(recorder, folder, extension):
    path = folder.path / f"out.{extension}"
    program = Program([recorder.program, "request"], env=recorder.environment(path),
                      stderr=subprocess.PIPE)
    program.until("ready")
    assert program.ask("100", "done") == "100"
    wait_until(lambda: b"step" in path.read_bytes() or extension == "waffle", "the first steps")
    folder.stop()
    try:
        for count in range(1, 4):
            assert program.ask("50000", "done") == str(100 + count * 50000)
        program.process.stdin.close()
        program.until("end")
        # The line comes although the file system does not answer. The kernel does not let a process
        # end while one of its threads waits for such a file system.
        line = program.process.stderr.readline()
        assert re.fullmatch(r"waffle: .*: its file system does not answer\n", line), line
    finally:
        folder.go_on()
    assert program.process.wait(60) == 0


def test_file_system_that_never_answers_leaves_the_program_untraced(recorder, folder):
    """The file can't even be created: the program waits two seconds, and runs."""
    path = folder.path / "out.waffle"
    (folder.path / "other").write_bytes(b"")
    folder.stop()
    other = subprocess.Popen(["dd", "if=/dev/zero", f"of={folder.path / 'other'}", "count=1",
                              "status=none"])
    try:
        program = Program([recorder.program, "request"], env=recorder.environment(path),
                          stderr=subprocess.PIPE)
        program.until("ready")
        assert program.ask("10", "done") == "10"
        assert not any(semaphores(program.pid, recorder.program))
        program.process.stdin.close()
        line = program.process.stderr.readline()
        assert re.fullmatch(r"waffle: .*: its file system does not answer; the program runs untraced\n",
                            line), line
    finally:
        folder.go_on()
    assert program.process.wait(60) == 0
    other.wait(60)


def test_program_that_closes_all_descriptors_keeps_its_own_files(recorder):
    """libwaffle's descriptor has another file's number then, which it must not write to."""
    waffle = recorder.waffle
    mine = waffle.folder / "mine"
    path = waffle.path()
    done = subprocess.run([recorder.program, "closes", mine], check=True, text=True, timeout=60,
                          env=recorder.environment(path), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert mine.read_text() == "mine\n" * 20
    assert done.stdout == "end\n"
    # It is noticed with the next flush, or when the program ends before that.
    assert re.fullmatch(r"waffle: .*: the program has closed its descriptor; what was written before is "
                        r"kept(; the program goes on untraced)?\n", done.stderr), done.stderr
    assert Capture(waffle, path).info()["sites"] is not None

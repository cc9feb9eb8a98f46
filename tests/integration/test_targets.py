# SPDX-License-Identifier: Apache-2.0
"""Targets that are hard to reach: late libraries, deleted files, containers, static programs."""

import json
import os
import shutil
import subprocess

import pytest

from tracer import Capture, children_of, named, parse_log, semaphores, wait_until


def did(text):
    return parse_log(["did " + text])[0]


def listed(waffle, *arguments):
    return json.loads(waffle.ok("list", "--json", *arguments).stdout)["sites"]


@pytest.fixture
def library(built):
    return built("library.c", "-shared", "-fPIC", name="liblate.so")


def call_until_armed(program, pid, library):
    """Calls a library ten times at a time until it is armed, and once more; the numbers of all
    calls."""
    calls = []

    def armed():
        program.ask(f"open {library} 10", "did open=10")
        calls.extend(range(10))
        return set(semaphores(pid, library)) == {1}

    wait_until(armed, "arming of the library")
    armed()
    return calls


def check_called(capture, calls):
    """None is missing after the first that was seen."""
    seen = [row["args"]["i"] for row in named(capture.rows(), "library event")]
    assert len(seen) >= 10 and seen == calls[-len(seen) :]
    assert len(named(capture.rows(), "library span")) == len(seen)


def test_library_opened_while_attached_is_armed_while_it_is_used(
    waffle, built, start, library
):
    steps = built("steps.c")
    program = start(steps)
    program.until("ready")
    assert {os.path.basename(s["lib"]) for s in listed(waffle, "-p", program.pid)} == {"steps"}
    attached = waffle.attach_to(program, steps)
    calls = call_until_armed(program, program.pid, library)
    assert {os.path.basename(s["lib"]) for s in listed(waffle, "-p", program.pid)} == {
        "steps",
        "liblate.so",
    }
    check_called(attached.stop(), calls)
    assert not any(semaphores(program.pid, library))


def test_library_opened_before_attach(waffle, built, start, library):
    steps = built("steps.c")
    program = start(steps)
    program.until("ready")
    program.ask(f"open {library} 0", "did")
    attached = waffle.attach_to(program, steps, library)
    program.ask(f"open {library} 10", "did")
    rows = named(attached.stop().rows(), "library event")
    assert [row["args"]["i"] for row in rows] == list(range(10))
    sites = {(s["kind"], s["name"]) for s in listed(waffle, library)}
    assert {("span", "library span"), ("event", "library event")} <= sites


def test_late_library_under_run(waffle, built, start, library):
    path = waffle.path()
    program = start(waffle.program, "run", "-q", "--no-report", "-o", path, "--", built("steps.c"))
    calls = call_until_armed(program, int(program.until("ready pid=")), library)
    program.finish()
    check_called(Capture(waffle, path), calls)


def test_deleted_executable_and_library(waffle, built, start, library, tmp_path):
    steps, late = tmp_path / "gone", tmp_path / "libgone.so"
    shutil.copy(built("steps.c"), steps)
    shutil.copy(library, late)
    program = start(steps)
    program.until("ready")
    program.ask(f"open {late} 1", "did")
    steps.unlink()
    late.unlink()
    # Another file at the old path must not be taken for it.
    steps.write_text("something else")
    assert "step event" in {s["name"] for s in listed(waffle, "-p", program.pid)}
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    wait_until(
        lambda: all(semaphores(program.pid, steps, built("steps.c")) or [0])
        and all(semaphores(program.pid, late, library) or [0]),
        "arming of deleted files",
    )
    program.ask("event 12", "did")
    program.ask("span 1", "did")
    capture = attached.stop()
    assert len(named(capture.rows(), "step event")) == 12
    assert len(named(capture.rows(), "step span")) == 1
    assert not any(semaphores(program.pid, steps, built("steps.c")))


def test_process_in_another_mount_namespace(waffle, built, start):
    """Its program is on a file system that the tracer can't see."""
    steps = built("steps.c")
    script = f"mount -t tmpfs none /mnt && cp {steps} /mnt/hidden && exec /mnt/hidden"
    program = start("unshare", "-m", "sh", "-c", script)
    program.until("ready")
    assert not os.path.exists("/mnt/hidden")
    assert "step event" in {s["name"] for s in listed(waffle, "-p", program.pid)}
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    wait_until(
        lambda: all(semaphores(program.pid, "/mnt/hidden", steps) or [0]), "arming in a container"
    )
    program.ask("event 12", "did")
    capture = attached.stop()
    assert len(named(capture.rows(), "step event")) == 12
    assert not any(semaphores(program.pid, "/mnt/hidden", steps))


def test_process_in_another_pid_namespace(waffle, built, start):
    """Ids are those of the tracer's namespace."""
    steps = built("steps.c")
    program = start("unshare", "-p", "-f", "--mount-proc", steps)
    said = parse_log(["ready " + program.until("ready")])[0]
    assert said["pid"] == 1
    [pid] = children_of(program.pid)
    attached = waffle.attach("-p", pid, "-q", "--no-report").wait_armed(pid, steps)
    program.ask("event 12", "did")
    rows = named(attached.stop().rows(), "step event")
    assert len(rows) == 12 and {(row["pid"], row["tid"]) for row in rows} == {(pid, pid)}


@pytest.mark.parametrize("name, flags", [
    ("PID", ["-p", "-f", "--mount-proc"]), ("time", ["-T", "--monotonic", "100000", "-f"]),
])  # fmt: skip
def test_tracer_in_another_namespace_is_refused(waffle, tmp_path, name, flags):
    """There a process, or a moment, has another number than in the records of the kernel."""

    def inside(*command):
        return subprocess.run(["unshare", *flags, waffle.program, *command],
                              capture_output=True, text=True, check=False)

    for command in (["run", "-o", tmp_path / "x", "--", "true"], ["attach", "-p", "1"]):
        done = inside(*command)
        assert done.returncode == 1 and f"a {name} namespace of its own" in done.stderr
        assert done.stderr.count("\n") == 1
    done = inside("check", "--json")
    [found] = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "namespaces"]
    assert done.returncode == 1 and found["status"] == "missing"


@pytest.mark.parametrize(
    "flags",
    [
        ("-static",),
        ("-static-pie",),
        ("-no-pie", "-fno-pie"),
        ("-fPIE", "-pie"),
        ("-O0",),
        ("-O3", "-flto"),
        ("-s",),
        ("-Wl,-z,separate-code",),
        ("-Wl,-z,noseparate-code",),
    ],
    ids=" ".join,
)
def test_programs_of_all_kinds_of_link(waffle, built, start, flags):
    path = built("family.c", *flags)
    program = start(path, "wait", "30")
    program.until("ready")
    attached = waffle.attach_to(program, path)
    program.say("none")
    program.finish()
    capture = attached.wait()
    ticks, works = named(capture.rows(), "tick"), named(capture.rows(), "work")
    assert [row["args"]["i"] for row in ticks] == list(range(30)) * 2
    assert len(works) == 60 and not any("unfinished" in row for row in works)
    assert [row["parent"] for row in ticks] == [row["id"] for row in works]


def test_clang_program(waffle, built):
    rows = waffle.run(built("values.c", compiler="clang")).rows()
    assert len(named(rows, "thousand")) == 1000 and len(named(rows, "inner")) == 6


def test_program_without_sites_is_said_once_and_its_scheduler_recorded(waffle, start):
    program = start("sh", "-c", "while read x; do sleep 0.01; echo did; done")
    attached = waffle.attach("-p", program.pid)
    notice = attached.wait_notice()
    assert "no sites" in notice and "scheduler" in notice
    program.ask("go", "did")
    program.ask("go", "did")
    capture = attached.stop()
    assert capture.result.stderr.count("no sites") == 0  # read above: it does not come again
    assert capture.info()["switches"] > 0 and capture.info()["sites"] == 0
    assert capture.rows("sched", tid=program.pid)



def test_stripped_notes_are_like_no_sites(waffle, built, start, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(
        ["objcopy", "--remove-section=.note.waffle", "--remove-section=.note.stapsdt",
         built("steps.c"), bare],
        check=True,
    )  # fmt: skip
    program = start(bare)
    program.until("ready")
    attached = waffle.attach("-p", program.pid)
    assert "stripped; only the scheduler is recorded" in attached.wait_notice()
    program.ask("event 10", "did")
    assert program.ask("evaluated", "did evaluated=") == "0"
    capture = attached.stop()
    assert capture.info()["events"] == 0 and capture.rows("sched", tid=program.pid)
    assert listed(waffle, "-p", program.pid) == []
    attached = waffle.attach("-p", program.pid, "--no-sched")
    assert "stripped; without the scheduler nothing is recorded" in attached.wait_notice()
    attached.stop()


def test_a_program_replaced_by_a_new_build_while_it_runs(waffle, built, start, tmp_path):
    """The file that runs is armed, not the one that now has its name."""
    path = tmp_path / "service"
    shutil.copy(built("steps.c"), path)
    program = start(path)
    program.until("ready")
    new = tmp_path / "new"
    shutil.copy(built("flood.c"), new)
    new.rename(path)
    attached = waffle.attach("-p", program.pid, "-q", "--no-report")
    wait_until(
        lambda: all(semaphores(program.pid, path, built("steps.c")) or [0]), "arming"
    )
    program.ask("event 7", "did")
    assert len(named(attached.stop().rows(), "step event")) == 7

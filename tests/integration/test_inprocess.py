# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves with libwaffle: no root, no BPF, the same files.

What they print and count is compared with what was recorded. Each record carries the program's own
clock, read before or after it.
"""

import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

from recorder import LIBWAFFLE, Recorder, archive_libraries, compile_inside
from tracer import Capture, Program, compile_program, named, semaphores, wait_until

@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    """The program, linked with libwaffle."""
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = tmp_path_factory.mktemp("library") / "libinside.so"
    return compile_program("inside_library.c", out, "-fPIC", "-shared")


@pytest.fixture
def recorder(waffle, inside):
    return Recorder(waffle, inside)


def check_steps(rows, count, first=0, lost=0):
    """All steps of inside.c, in their order, at the times that the program saw itself."""
    spans = sorted((r for r in rows if r["kind"] == "span" and r["name"] == "step"
                    and first <= r["args"]["i"] < first + count), key=lambda r: r["args"]["i"])
    ticks = {r["args"]["i"]: r for r in rows if r["kind"] == "event" and r["name"] == "tick"}
    assert [s["args"]["i"] for s in spans] == list(range(first, first + count))
    for i, span in enumerate(spans, first):
        tick = ticks[i]
        assert tick["args"]["text"] == ("odd" if i % 2 else "even")
        assert tick["parent"] == span["id"]
        # The clock of rings is converted: 1 us is its bound.
        assert span["args"]["before"] <= span["start_ns"] + 1000
        assert span["start_ns"] <= tick["start_ns"] <= span["end_ns"]
        assert tick["args"]["after"] <= tick["start_ns"] + 1000
    for span, following in zip(spans, spans[1:]):
        assert span["end_ns"] <= following["args"]["before"] + 1000


def test_run_is_recorded_without_root_and_without_loss(recorder):
    capture, _ = recorder.run("steps", 1000)
    check_steps(capture.rows(), 1000)
    capture.check_sums(lost=0)
    info = capture.info()
    assert info["sched"] is False
    assert info["sources"] == ["spans"]
    assert "scheduler not recorded" in capture.report_text()


def test_program_compiled_with_older_headers_is_told_and_a_tracer_records_it(waffle, waffle_program,
                                                                             tmp_path):
    program = compile_inside(waffle_program, "other_version.c", tmp_path / "other_version")
    Recorder(waffle, program).run(
        says=rf"waffle: {program}: was compiled with the headers of another version of libwaffle, "
             "and is not recorded; compile it again\n")
    assert named(waffle.run(program, options=["--no-sched"]).rows(), "old")


def test_why_states_that_the_scheduler_was_not_recorded(recorder):
    capture, _ = recorder.run("steps", 10)
    capture.waffle.fails(1, "why", capture.path, says="the scheduler was not recorded")


def test_file_belongs_to_its_user_alone_and_needs_no_privileges(recorder, waffle_program, public):
    library = public(waffle_program.parent / "libwaffle.so.0")
    folder = recorder.waffle.folder
    os.chmod(folder, 0o777)
    for above in folder.parents[:-2]:
        os.chmod(above, os.stat(above).st_mode | 0o011)
    path = folder / "nobody.waffle"
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           recorder.program, "steps", "10"], check=False, text=True,
                          env=recorder.environment(path, LD_LIBRARY_PATH=str(library.parent)),
                          stderr=subprocess.PIPE)
    assert done.returncode == 0 and not done.stderr, done
    status = path.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (65534, 0o600)
    check_steps(Capture(recorder.waffle, path).rows(), 10)


def test_threads_have_their_names_and_records(recorder):
    capture, _ = recorder.run("threads", 8)
    rows = capture.rows()
    for number in range(1, 9):
        check_steps(rows, 1000, first=number * 1000000)
        comms = {r["comm"] for r in rows if r["kind"] in ("span", "event")
                 and r["args"]["i"] // 1000000 == number}
        assert comms == {f"worker-{number}"}
    capture.check_sums(lost=0)


def test_brief_threads_use_few_rings(recorder):
    capture, _ = recorder.run("brief", 3000)
    rows = [r for r in capture.rows("event") if r["name"] == "brief"]
    assert sorted(r["args"]["i"] for r in rows) == list(range(3000))
    capture.check_sums(lost=0)


def test_handlers_that_interrupt_records_lose_none(recorder):
    capture, out = recorder.run("handler", 30000)
    rows = capture.rows("event")
    counts = collections.Counter(r["name"] for r in rows)
    assert counts["between"] == 30000
    assert counts["handled"] == int(re.search(r"handled (\d+)", out)[1])
    capture.check_sums(lost=0)


def test_handlers_that_jump_out_of_records_lose_at_most_those(recorder):
    capture, out = recorder.run("jump", 30000)
    handled = int(re.search(r"handled (\d+)", out)[1])
    rows = capture.rows("event")
    counts = collections.Counter(r["name"] for r in rows)
    assert counts["jumped"] == handled
    assert 30000 - handled <= counts["between"] <= 30000
    between = [r["args"]["i"] for r in rows if r["name"] == "between"]
    assert between == sorted(set(between))


@pytest.mark.parametrize("how, code", [("abort", -signal.SIGABRT), ("segv", -signal.SIGSEGV),
                                       ("term", -signal.SIGTERM), ("exit", 4)])
def test_end_of_the_program_keeps_all_records(recorder, how, code):
    capture, _ = recorder.run("die", how, code=code)
    check_steps(capture.rows(), 100)
    capture.check_sums(lost=0)


@pytest.mark.parametrize("how, code", [("kill", -signal.SIGKILL), ("_exit", 3)])
def test_sudden_end_keeps_all_but_the_last_second(recorder, how, code):
    capture, _ = recorder.run("die", how, "later", code=code)
    check_steps(capture.rows(), 100)


def test_child_records_into_a_file_of_its_own_or_not_at_all(recorder):
    folder = recorder.waffle.folder
    capture, out = recorder.run("fork")
    child = int(re.search(r"child (\d+)", out)[1])
    assert {r["pid"] for r in capture.rows("span")} == {r["pid"] for r in capture.rows("event")}
    check_steps(capture.rows(), 20)
    assert child not in {r["pid"] for r in capture.rows("span")}

    _, out = recorder.run("fork", path=folder / "own-%p.waffle")
    child = int(re.search(r"child (\d+)", out)[1])
    files = {int(re.search(r"own-(\d+)", p.name)[1]): Capture(recorder.waffle, p)
             for p in folder.glob("own-*.waffle")}
    assert len(files) == 2
    check_steps(files.pop(child).rows(), 10, first=100)
    [parent] = files.values()
    check_steps(parent.rows(), 20)


def test_executed_child_does_not_overwrite_the_file(recorder):
    """The child of fork() executes the program again, with the same environment."""
    capture, _ = recorder.run("fork", "exec")
    assert len({r["pid"] for r in capture.rows("span")}) == 1
    check_steps(capture.rows(), 20)


def test_library_opened_late_is_armed_before_its_constructor(recorder, library):
    capture, _ = recorder.run("late", library)
    rows = capture.rows()
    assert [r["args"]["i"] for r in named(rows, "late work")] == [0, 1, 2]
    assert len(named(rows, "loaded")) == 3


def test_libraries_come_and_go_while_other_threads_record(recorder, library):
    capture, _ = recorder.run("beside", library)
    rows = capture.rows()
    assert [r["args"]["i"] for r in named(rows, "late work")] == list(range(200))
    assert len(named(rows, "loaded")) == 200
    for number in (1, 2, 3):
        check_steps(rows, 100, first=number * 1000000)
    capture.check_sums(lost=0)


def test_program_records_by_function_and_filters(waffle, inside):
    path = waffle.path()
    done = subprocess.run([inside, "function", path], text=True, check=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout.split("\n")[:6] == ["no size -22", "start 0", "again -16", "flush 0",
                                           "stop 0", "stop -3"]
    assert re.fullmatch(r"waffle: waffle_trace_start\(\): the options have no .size; .*\n"
                        r"waffle: .*: this process records already\n", done.stderr)
    rows = Capture(waffle, path).rows()
    assert [r["args"]["i"] for r in rows if r["kind"] == "event"] == [5, 6, 7, 8, 9]
    assert not [r for r in rows if r["kind"] == "span"]


@pytest.mark.parametrize("expression, kept", [
    ("kv.i < 10", lambda i: (i < 10, i < 10)),
    ('name == "step"', lambda i: (True, False)),
    ('kind == span && kv.i >= 95 || kv.text == "odd" && comm == "inside"',
     lambda i: (i >= 95, i % 2 == 1)),
    ("kind == event && rate(1000/s)", lambda i: (False, True)),
    ("sample(1/1) && !(kv.text == \"even\")", lambda i: (True, i % 2 == 1)),
    ("tid == 0", lambda i: (False, False)),
])
def test_filter_keeps_what_it_says(recorder, expression, kept):
    capture, _ = recorder.run("steps", 100, WAFFLE_FILTER=expression)
    rows = capture.rows()
    wanted = [kept(i) for i in range(100)]
    for kind, at in (("span", 0), ("event", 1)):
        found = sorted(r["args"]["i"] for r in rows if r["kind"] == kind)
        assert found == [i for i in range(100) if wanted[i][at]], kind
    assert all("end_ns" in r for r in rows if r["kind"] == "span")
    capture.check_sums(lost=0)


BAD = {
    "filter": (dict(WAFFLE_FILTER="nmae == 1"), None, r"waffle: WAFFLE_FILTER: unknown field"),
    "children": (dict(WAFFLE_KEEP_CHILDREN="yes"), None,
                 r"waffle: WAFFLE_KEEP_CHILDREN: 'yes': expected 0 or 1"),
    "children of all": (dict(WAFFLE_KEEP_CHILDREN="1"), None,
                        r"waffle: WAFFLE_KEEP_CHILDREN needs a WAFFLE_FILTER"),
    "folder": ({}, "missing/out.waffle", r"waffle: missing/out.waffle: can't be created: No such"),
    "directory": ({}, ".", r"waffle: \.: the format is chosen by the extension"),
    "empty": ({}, "", r"waffle: WAFFLE_TRACE: the name of the file is empty"),
    "letter": ({}, "out-%q.waffle", r"waffle: WAFFLE_TRACE: %q is not known; write %h for the host, "
               r"%p for the pid, %r for the rank or %% for %; the program runs untraced"),
    "end": ({}, "out-%", r"waffle: WAFFLE_TRACE: the name ends with %"),
    "no rank": ({}, "out-%r.waffle", r"waffle: WAFFLE_TRACE: %r is unknown: this process has no rank "
                r"from Open MPI, MPICH, Slurm or torchrun in its environment"),
    "extension": ({}, "out.trace", r"waffle: out.trace: the format is chosen by the extension, "
                  r"which has to be .waffle, .json or .pftrace; the program runs untraced"),
    "long": ({}, "x" * 5000, r"waffle: .*too long"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_variables_leave_the_program_alone(waffle, inside, name):
    variables, path, says = BAD[name]
    path = "out.waffle" if path is None else path
    done = subprocess.run([inside, "steps", "10"], cwd=waffle.folder, text=True, check=False,
                          env={**os.environ, "WAFFLE_TRACE": path, **variables}, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert re.match(says, done.stderr), done.stderr
    if name != "filter":  # its message shows the expression on two more lines
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(waffle.folder.glob("*.waffle"))


def test_set_user_id_program_ignores_the_variables(recorder):
    folder = recorder.waffle.folder
    program = folder / "privileged"
    shutil.copy(recorder.program, program)
    os.chmod(program, 0o4755)
    for above in [folder, *folder.parents[:-2]]:
        os.chmod(above, os.stat(above).st_mode | 0o011)
    open_folder = folder / "open"
    open_folder.mkdir()
    os.chmod(open_folder, 0o777)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program,
                           "steps", "10"], env=recorder.environment(open_folder / "out.waffle"),
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    assert not list(open_folder.iterdir())


def test_second_copy_of_the_library_leaves_the_first_alone(recorder, waffle_program):
    copy = recorder.waffle.folder / "libother.so"
    # The loader would take one of the same name for the same.
    data = (waffle_program.parent / "libwaffle.so").read_bytes()
    copy.write_bytes(data.replace(b"libwaffle.so.0\0", b"libaffle2.so.0\0"))
    capture, _ = recorder.run("steps", 100, LD_PRELOAD=str(copy))
    check_steps(capture.rows(), 100)
    # The first copy says what is wrong with a variable, and the second one does not repeat it.
    done = subprocess.run([recorder.program, "steps", "1"], text=True, check=True,
                          env={**os.environ, "WAFFLE_MODE": "fest", "LD_PRELOAD": str(copy)},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stderr.count("\n") == 1


def test_sandbox_without_memfd_still_records(recorder):
    """A seccomp filter denies memfd_create(): rings are then anonymous memory."""
    path = recorder.waffle.path()
    done = subprocess.run(["python3", "-c", SANDBOX, recorder.program, "threads", "2"],
                          check=False, text=True, env=recorder.environment(path),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    for number in (1, 2):
        check_steps(Capture(recorder.waffle, path).rows(), 1000, first=number * 1000000)


# Denies memfd_create() with ENOSYS in this process and what it executes.
SANDBOX = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38),
        (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_program_without_the_variable_is_dormant(waffle, inside):
    program = Program([inside, "request"])
    program.until("ready")
    try:
        assert set(semaphores(program.pid, inside)) == {0}
        assert program.ask("10", "done") == "10"
        assert len(os.listdir(f"/proc/{program.pid}/task")) == 1
    finally:
        program.finish()


def test_full_disk_ends_the_recording_but_not_the_program(recorder):
    folder = recorder.waffle.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", folder], check=True)
    try:
        path = folder / "out.waffle"
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
        [line] = program.process.stderr.read().splitlines()
        assert re.match(r"waffle: .*No space left.*; the program goes on untraced", line), line
        assert Capture(recorder.waffle, path).info()["sites"] is not None
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_tracer_and_the_program_itself_both_get_every_record(recorder):
    """waffle-bpf attaches to a program that records itself, and detaches while it goes on."""
    capture, program = recorder.start("request")
    program.until("ready")
    attached = recorder.waffle.attach("-p", program.pid, "-q", "--no-report", "--sources", "spans")

    def armed(bits, wanted):
        values = semaphores(program.pid, recorder.program)
        return values and all(bool(value & bits) == wanted for value in values)

    wait_until(lambda: armed(0xff, True) and attached.capture.path.exists(), "the tracer's arming")
    wait_until(lambda: armed(0xff00, True), "the library's arming")
    assert program.ask("500", "done") == "500"
    other = attached.stop()
    wait_until(lambda: armed(0xff, False), "the tracer's disarming")
    assert program.ask("300", "done") == "800"
    program.finish()
    check_steps(other.rows(), 500)
    other.check_sums(lost=0)
    check_steps(capture.rows(), 800)
    capture.check_sums(lost=0)


def test_programs_of_all_kinds_can_link_it(waffle, waffle_program, tmp_path):
    """The archive, a program without PIE, C++, and the other linker."""
    libraries = waffle_program.parent
    shared = [f"-L{libraries}", *LIBWAFFLE, f"-Wl,-rpath,{libraries}"]
    archive = ["-Wl,-u,waffle_trace_start", libraries / "libwaffle.a",
               *archive_libraries(waffle_program)]
    for name, flags in {"archive": archive, "archive-no-pie": [*archive, "-no-pie"],
                        "no-pie": [*shared, "-no-pie"], "lld": [*shared, "-fuse-ld=lld"]}.items():
        program = compile_program("inside.c", tmp_path / name, *map(str, flags))
        capture, _ = Recorder(waffle, program).run("steps", 100)
        check_steps(capture.rows(), 100)

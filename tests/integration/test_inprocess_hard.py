# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves, and do to threads, signals and libraries what real programs do.

Each way to protect a record from signal handlers is tested: the struct rseq of glibc, one that
libwaffle registers, and none, where it blocks signals.
"""

import collections
import os
import re
import subprocess
import sys

import pytest

from recorder import Recorder, archive_libraries, compile_inside
from tracer import PROGRAMS, ROOT, Capture, compile_program

# With this glibc registers no struct rseq, as its older versions.
OWN_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


@pytest.fixture(scope="module")
def hard(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside_hard.c", tmp_path_factory.mktemp("hard") / "hard")


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inside")
    return compile_inside(waffle_program, "inside.c", folder / "inside")


@pytest.fixture
def recorder(waffle, hard):
    return Recorder(waffle, hard)


@pytest.fixture(params=["libc", "own", "none"])
def way(request, tmp_path):
    """How records are protected: variables, and what runs the program."""
    if request.param == "libc":
        return {}, []
    if request.param == "own":
        return OWN_RSEQ, []
    script = tmp_path / "deny.py"
    script.write_text(DENY)
    return OWN_RSEQ, ["python3", str(script)]


# Denies rseq() with ENOSYS to what it executes.
DENY = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 334, "aarch64": 293}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38),
        (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(waffle, way, program, *arguments):
    """The capture of a run, and what it printed."""
    variables, runner = way
    path = waffle.path()
    done = subprocess.run([*runner, program, *map(str, arguments)], text=True, check=False,
                          env={**os.environ, "WAFFLE_TRACE": str(path), **variables},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    return Capture(waffle, path), done.stdout


def test_handlers_that_interrupt_records_lose_none(waffle, inside, way):
    capture, out = run(waffle, way, inside, "handler", 30000)
    counts = collections.Counter(r["name"] for r in capture.rows("event"))
    assert counts["between"] == 30000
    assert counts["handled"] == int(re.search(r"handled (\d+)", out)[1])
    capture.check_sums(lost=0)


def test_handlers_that_jump_out_of_records_leave_whole_ones(waffle, inside, way):
    capture, out = run(waffle, way, inside, "jump", 30000)
    handled = int(re.search(r"handled (\d+)", out)[1])
    rows = capture.rows("event")
    counts = collections.Counter(r["name"] for r in rows)
    assert counts["jumped"] == handled
    between = [r["args"]["i"] for r in rows if r["name"] == "between"]
    assert 30000 - handled <= len(between) <= 30000
    assert between == sorted(set(between))
    capture.check_sums(lost=0)


@pytest.mark.parametrize("mode", ["cancel", "asynchronous"])
def test_cancelled_threads_leave_all_records_that_they_wrote(waffle, hard, way, mode):
    variables, runner = way
    # Room for all records, however rarely the collector gets a CPU.
    way = {**variables, "WAFFLE_RING_SIZE": "64MiB"}, runner
    capture, out = run(waffle, way, hard, mode, 100)
    capture.check_sums(lost=0)
    recorded = collections.defaultdict(list)
    for row in capture.rows("event"):
        recorded[row["args"]["thread"]].append(row["args"]["i"])
    lines = [line.split() for line in out.splitlines()[:-1]]
    assert len(lines) == 100
    for number, count, cancelled in ((int(a), int(b), c) for a, b, c in lines):
        assert cancelled == "1"
        written = recorded[number]
        assert written == list(range(len(written)))
        # It may have been cancelled after the last record and before it counted it.
        assert count <= len(written) <= count + 1
    capture.check_sums(lost=0)


def test_ten_thousand_brief_threads_share_some_rings(waffle, hard, way):
    capture, out = run(waffle, way, hard, "brief", 10000)
    rows = capture.rows("event")
    assert sorted(r["args"]["i"] for r in rows) == list(range(10000))
    assert int(re.search(r"rings (\d+)", out)[1]) <= 8
    capture.check_sums(lost=0)


def test_detached_threads_end_with_their_rings(waffle, hard, way):
    capture, _ = run(waffle, way, hard, "detached", 2000)
    assert sorted(r["args"]["i"] for r in capture.rows("event")) == list(range(2000))


def test_destructors_of_a_thread_record_too(waffle, hard, way):
    capture, _ = run(waffle, way, hard, "leaving", 100)
    rows = capture.rows("event")
    for name in ("brief", "last"):
        assert sorted(r["args"]["i"] for r in rows if r["name"] == name) == list(range(1, 101))
    threads = {r["args"]["i"]: r["tid"] for r in rows if r["name"] == "brief"}
    assert all(threads[r["args"]["i"]] == r["tid"] for r in rows if r["name"] == "last")


def test_child_without_fork_handlers_writes_into_no_ring_of_its_parent(recorder):
    capture, _ = recorder.run("raw_fork", 20)
    rows = capture.rows("event")
    assert [r["args"]["i"] for r in rows if r["name"] == "parent"] == list(range(20))
    assert not [r for r in rows if r["name"] == "child"]
    capture.check_sums(lost=0)


def test_sandbox_that_kills_for_anything_unusual_is_not_provoked(recorder):
    capture, _ = recorder.run("sandboxed")
    assert sorted(r["args"]["i"] for r in capture.rows("event")) == list(range(1000))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="PR_SET_TSC is of x86")
def test_a_thread_that_must_not_read_the_counter_records_with_another_clock(waffle, hard):
    path = waffle.path()
    out = subprocess.run([hard, "forbidden", path], text=True, check=True, timeout=60,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (out.stdout, out.stderr) == ("flush 0\nstop 0\nend\n", "")
    capture = Capture(waffle, path)
    assert [r["args"]["i"] for r in capture.rows("event")] == [*range(100)] * 2
    capture.check_sums(lost=0)


@pytest.mark.parametrize("variable", [None, "16KiB"])
@pytest.mark.parametrize("small", [[], ["small"]])
def test_each_recording_has_rings_of_its_own_options(waffle, hard, small, variable):
    """A thread keeps no ring of an earlier recording. 16 KiB have room for a few hundred events."""
    paths = [waffle.path(), waffle.path()]
    environment = {**os.environ, **({"WAFFLE_RING_SIZE": variable} if variable else {})}
    subprocess.run([hard, "again", *paths, *small], check=True, timeout=60, env=environment)
    first, second = ([r["args"]["i"] for r in Capture(waffle, path).rows("event")]
                     for path in paths)
    assert len(first) < 500 and first == list(range(2000 - len(first), 2000))
    assert second == list(range(len(second)))[:len(second)]
    assert (len(second) < 2000) == bool(small or variable)


def named_library(folder, name):
    return compile_program("named_library.c", folder / f"lib{name}.so", "-fPIC", "-shared",
                           f'-DEVENT_NAME="{name}"')


def test_libraries_that_take_turns_at_one_address_keep_their_names(recorder):
    names = ["first", "second", "third"]
    paths = [named_library(recorder.waffle.folder, name) for name in names]
    capture, out = recorder.run("libraries", 3000, *paths)
    rows = [r for r in capture.rows("event") if r["name"] != "warm"]
    assert [r["name"] for r in rows] == names * 1000
    assert [r["args"]["i"] for r in rows] == list(range(3000))
    # A file is read once, and its sites are in the capture once.
    assert capture.info()["sites"] < 20
    before, after = map(int, re.findall(r"memory (\d+)", out))
    assert after - before < 768  # KiB: some 170 bytes for each time that one is opened


@pytest.mark.parametrize("kind", ["shared", "archive"])
def test_plugin_that_is_opened_locally_brings_libwaffle_with_it(waffle, waffle_program,
                                                                libwaffle_flags, tmp_path, kind):
    """It is closed while a thread that has recorded still runs."""
    archive = ["-Wl,-u,waffle_trace_start", waffle_program.parent / "libwaffle.a",
               *archive_libraries(waffle_program)]
    flags = libwaffle_flags if kind == "shared" else map(str, archive)
    program = compile_program("inside_plugin.c", tmp_path / "plugin")
    library = compile_program("named_library.c", tmp_path / "libplugin.so", "-fPIC", "-shared",
                              '-DEVENT_NAME="plugged"', *flags)
    # The loader keeps little room for the threads' storage of libraries that are opened late.
    capture, _ = Recorder(waffle, program).run(
        library, 50, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=4096")
    assert [r["args"]["i"] for r in named_events(capture, "plugged")] == list(range(50))
    capture.check_sums(lost=0)


TWO_PLUGINS = """
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path).inside_work(1)
"""


@pytest.mark.parametrize("name, found, says", [
    ("out.waffle", [["first"]], "another copy of libwaffle in this process records already"),
    ("out-%p.waffle", [["first"], ["second"]], "")])
def test_plugins_with_copies_that_do_not_see_each_other_lose_no_file(
        waffle, waffle_program, libwaffle_flags, tmp_path, name, found, says):
    """Without %p the second copy would replace the file of the first one."""
    archive = ["-Wl,-u,waffle_trace_start", str(waffle_program.parent / "libwaffle.a"),
               *archive_libraries(waffle_program)]
    plugins = [compile_program("named_library.c", tmp_path / f"lib{event}.so", "-fPIC", "-shared",
                               f'-DEVENT_NAME="{event}"', *flags)
               for event, flags in (("first", libwaffle_flags), ("second", archive))]
    done = subprocess.run([sys.executable, "-c", TWO_PLUGINS, *plugins], check=True, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "WAFFLE_TRACE": str(tmp_path / name),
                               "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=8192"})
    files = sorted(tmp_path.glob("out*.waffle"), key=lambda path: len(path.name))
    assert [[r["name"] for r in Capture(waffle, path).rows("event")] for path in files] == found
    assert says in done.stderr and len(done.stderr.splitlines()) == bool(says), done.stderr


def named_events(capture, name):
    return [r for r in capture.rows("event") if r["name"] == name]


def test_static_program_records_itself(waffle, waffle_program, tmp_path):
    """With what pkg-config says, and nothing else."""
    build = waffle_program.parent
    said = subprocess.run(["pkg-config", "--static", "--libs", f"--define-variable=libdir={build}",
                           "waffle"], env={**os.environ, "PKG_CONFIG_PATH": str(build)},
                          check=True, text=True, stdout=subprocess.PIPE).stdout
    program = compile_program("inside_hard.c", tmp_path / "static", "-static", *said.split())
    capture, _ = Recorder(waffle, program).run("leaving", 100)
    assert len(named_events(capture, "last")) == 100
    capture.check_sums(lost=0)


@pytest.mark.parametrize("what", ["umount -l /proc", "mount -o remount,ro /dev/shm"])
def test_program_needs_neither_proc_nor_a_writable_dev_shm(recorder, what):
    path = recorder.waffle.path()
    shm = "mount -t tmpfs shm /dev/shm; " if "shm" in what else ""
    script = f"{shm}{what} && exec {recorder.program} leaving 100"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], check=False, text=True,
                          env=recorder.environment(path), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    capture = Capture(recorder.waffle, path)
    assert len(named_events(capture, "last")) == 100
    capture.check_sums(lost=0)


def test_thread_sanitizer_finds_no_race(waffle, waffle_program, tmp_path):
    program = compile_inside(waffle_program, "inside.c", tmp_path / "tsan", "-fsanitize=thread")
    capture, _ = Recorder(waffle, program).run("threads", 4)
    assert len([r for r in capture.rows("span") if r["name"] == "step"]) == 4000
    capture.check_sums(lost=0)


def test_flight_recorder_keeps_the_latest_records(waffle, hard):
    path = waffle.path()
    out = subprocess.run([hard, "flight", path], check=True, text=True, stdout=subprocess.PIPE,
                         timeout=60).stdout
    assert out == "flush 0\nstop 0\nend\n"
    capture = Capture(waffle, path)
    rows = [r["args"]["i"] for r in capture.rows("event")]
    first = [i for i in rows if i < 100000]
    second = [i for i in rows if i >= 100000]
    # 64 KiB have room for 910 events of 72 bytes, of which a sixteenth is freed at once.
    for end, kept in ((100000, first), (200000, second)):
        assert kept == list(range(end - len(kept), end))
        assert 800 <= len(kept) <= 910
    capture.check_sums(lost=0)


def test_rings_work_with_musl(tmp_path):
    """musl has no struct rseq, and unmaps the stack of a detached thread before it ends."""
    sources = [ROOT / "usdt/ring" / name for name in ("ring.c", "ring_write.c", "rings.c",
                                                "shared_memory.c", "ticks.c")]
    program = tmp_path / "musl"
    subprocess.run(["musl-gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-static", f"-I{ROOT}",
                    f"-I{ROOT}/userspace", f"-I{ROOT}/include", "-o", program,
                    PROGRAMS / "rings_alone.c", *sources], check=True)
    done = subprocess.run([program], check=False, text=True, stdout=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ok\n")


@pytest.fixture(scope="module")
def stacks(waffle_program, tmp_path_factory):
    """Runs inside_stack.c: on little stack, or as it says what it used."""
    folder = tmp_path_factory.mktemp("stacks")
    program = compile_inside(waffle_program, "inside_stack.c", folder / "inside_stack")
    library = compile_program("inside_library.c", folder / "late.so", "-shared", "-fPIC")

    def run_on(what, *arguments, **variables):
        done = subprocess.run([program, what, library, *arguments], text=True, check=False,
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **variables}, timeout=120)
        assert done.returncode == 0, done
        return done

    return run_on


THINGS = ["sites", "library", "fork", "names", "context", "error", "recording", "mode"]


@pytest.mark.parametrize("mode", ["fast", "full"])
@pytest.mark.parametrize("what", [*THINGS, "fault"])
def test_threads_with_the_least_stack_do_all_that_others_do(stacks, what, mode):
    done = stacks(what, "5", WAFFLE_MODE=mode, WAFFLE_TRACE="%p.waffle",
                  WAFFLE_PROCESS="metrics(file=%p.prom)")
    assert done.stderr == "" or what == "fault"


@pytest.mark.parametrize("what", THINGS)
def test_libwaffle_takes_no_more_of_a_threads_stack_than_stated(stacks, what):
    """The numbers are those of docs/inprocess.md."""
    for mode, most in ("fast", 2048), ("full", 8192 if what == "error" else 2048):
        alone = int(stacks(what).stdout)
        used = int(stacks(what, WAFFLE_MODE=mode, WAFFLE_TRACE="%p.waffle").stdout)
        assert used - alone <= most


def test_library_that_was_replaced_on_disk_is_left_alone(waffle, waffle_program):
    """The file at its path has its semaphores elsewhere: writing there would change the program's data."""
    folder = waffle.folder
    old, new = folder / "library.so", folder / "new.so"
    for out, flags in ((old, ()), (new, ("-DMORE",))):
        compile_program(PROGRAMS / "replaced_library.c", out, "-shared", "-fPIC", *flags)
    program = compile_inside(waffle_program, "replaced.c", folder / "replaced", "-ldl")
    done = subprocess.run([program, old, new, folder / "out.waffle"], check=True, timeout=60, text=True,
                          stdout=subprocess.PIPE)
    assert done.stdout == "0\n0\n"
    assert not Capture(waffle, folder / "out.waffle").rows("event")

# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves and fork, execute, handle signals and end as real programs do."""

import os
import re
import signal
import subprocess
import time

import pytest

from recorder import Recorder, archive_libraries, compile_inside
from tracer import Capture, compile_program

OWN_EXIT = """
#include <sys/syscall.h>
#include <unistd.h>
#include <waffle.h>

static int ends;

void _exit(int status)
{
	ends++;
	syscall(SYS_exit_group, status + ends);
	__builtin_unreachable();
}

int main(void)
{
	WAFFLE_EVENT("kept", KV_I64("i", 0));
	_exit(40);
}
"""


@pytest.fixture(scope="module")
def lives(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "lives.c", tmp_path_factory.mktemp("lives") / "lives", "-ldl")


@pytest.fixture
def recorder(waffle, lives):
    return Recorder(waffle, lives)


def archive_flags(waffle_program):
    libraries = archive_libraries(waffle_program)
    return ["-static", "-Wl,-u,waffle_trace_start", str(waffle_program.parent / "libwaffle.a"),
            *["-lyajl_s" if flag == "-lyajl" else flag for flag in libraries]]  # Debian's name for it


def kept(capture):
    """The numbers of the program's events."""
    return [r["args"]["i"] for r in capture.rows("event") if r["name"] == "kept"]


# ---- callbacks ----

@pytest.mark.parametrize("early", [[], ["early"]], ids=["while it stops", "while it records"])
@pytest.mark.parametrize("what, printed", [
    ("mode", ""), ("trace_stop", "-35\n"), ("process_stop", "-35\n"), ("flush", "-35\n"),
    ("fork", "child 0\n")])
def test_callback_may_use_libwaffle_and_fork(lives, what, printed, early):
    """-35 is -EDEADLK: the recording can't end while a callback runs."""
    done = subprocess.run([lives, "callback", what, *early], check=False, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    runs = re.search("runs ([0-9]+)", done.stdout)[1]
    assert int(runs) >= 1
    assert (done.returncode, done.stdout, done.stderr) == (
        0, f"{printed}stop 0\nruns {runs}\nend\n", "")


def test_flush_that_waits_while_the_recording_ends_returns(lives):
    done = subprocess.run([lives, "flush_and_stop", "5"], check=False, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "flush 0\n" * 5 + "end\n", "")


# ---- children and other programs ----

def test_child_records_although_an_allocator_was_registered_later(recorder):
    """The allocator's lock is free only when its own handler of fork() has run in the child."""
    waffle = recorder.waffle
    _, out = recorder.run("allocator", path=waffle.folder / "out-%p.waffle")
    assert out == "child 0\nend\n"
    files = sorted(waffle.folder.glob("out-*.waffle"))
    assert sorted(kept(Capture(waffle, path)) for path in files) == [[0], list(range(100, 110))]


def test_child_finds_the_locks_of_the_loader_free(recorder):
    """libwaffle walks the loader's files all the time, so some children are made meanwhile."""
    _, out = recorder.run("walks", 10)
    assert out == "child 0\n" * 10 + "end\n"


def test_programs_that_one_process_executes_have_files_of_their_own(recorder):
    waffle = recorder.waffle
    recorder.run("executes", 2, path=waffle.folder / "out-%p.waffle")
    files = {re.sub("out-[0-9]+", "out", path.name): kept(Capture(waffle, path))
             for path in waffle.folder.glob("out-*.waffle")}
    assert files == {"out.waffle": list(range(200, 300)), "out-2.waffle": list(range(100, 200)),
                     "out-3.waffle": list(range(100))}


# ---- ends ----

@pytest.mark.parametrize("how", ["_exit", "_Exit", "quick_exit"])
def test_end_without_destructors_keeps_all_records(recorder, how):
    capture, _ = recorder.run("end", how, code=3)
    assert kept(capture) == list(range(100))


@pytest.mark.parametrize("how", ["_exit", "quick_exit"])
def test_end_of_a_static_program_keeps_all_records(waffle, waffle_program, tmp_path, how):
    program = compile_program("lives.c", tmp_path / "static", "-DSTATIC", *archive_flags(waffle_program))
    capture, _ = Recorder(waffle, program).run("end", how, code=3)
    assert kept(capture) == list(range(100))


@pytest.mark.parametrize("static", [False, True], ids=["library", "archive"])
def test_own_exit_of_a_program_is_the_one_that_runs(waffle, waffle_program, tmp_path, static):
    source = tmp_path / "own.c"
    source.write_text(OWN_EXIT)
    program = (compile_program(source, tmp_path / "own", *archive_flags(waffle_program)) if static
               else compile_inside(waffle_program, source, tmp_path / "own"))
    Recorder(waffle, program).run(code=41)


def test_handler_from_before_the_recording_that_ends_the_program_keeps_all_records(recorder):
    capture, _ = recorder.run("end", "handler", code=7, LIVES_HANDLER="1")
    assert kept(capture) == list(range(100))


def test_child_in_the_memory_of_its_parent_ends_only_itself(recorder):
    capture, out = recorder.run("end", "vfork", code=3)
    assert out == "child 0\n"
    assert kept(capture) == list(range(200))


def test_daemon_and_its_parent_keep_all_records(recorder):
    waffle = recorder.waffle
    _, out = recorder.run("end", "daemon", path=waffle.folder / "out-%p.waffle")
    led, pid = map(int, re.fullmatch(r"daemon (\d) (\d+)\n", out).groups())
    assert led == 1
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.01)
    files = sorted((kept(Capture(waffle, path)) for path in waffle.folder.glob("out-*.waffle")))
    assert files == [list(range(100)), list(range(100, 200))]


def test_process_ends_with_its_last_thread_after_main_has_left(recorder):
    capture, _ = recorder.run("end", "thread")
    assert kept(capture) == list(range(200))


FATAL = ["SIGTRAP", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR", "SIGSTKFLT", "SIGRTMIN",
         "SIGRTMAX"]


@pytest.mark.parametrize("name", FATAL)
def test_signal_that_ends_the_program_keeps_all_records(recorder, name):
    signo = int(getattr(signal, name))
    capture, _ = recorder.run("end", signo, code=-signo)
    assert kept(capture) == list(range(100))


# ---- what the program sees ----

def test_signals_without_a_handler_look_so_until_there_is_a_record(recorder):
    """Python, for example, installs its handler of SIGINT only if there is none."""
    _, out = recorder.run("dispositions")
    [first, ignored, kept_default, later, *_, last] = out.splitlines()
    assert (first, ignored, kept_default, last) == ("0", "ignored 1", "0", "end")
    assert int(later) > 0


def test_full_pipe_at_standard_error_stops_nobody(recorder):
    capture, out = recorder.run("full_pipe")
    assert out == "end\n"
    capture.check_sums(lost=1)


def test_damaged_stack_is_not_unwound_without_a_guard(recorder):
    """The program has replaced the handler that would end the unwinding."""
    _, out = recorder.run("damaged", WAFFLE_MODE="full")
    assert out == "other\nend\n"


def test_threads_in_a_sandbox_make_only_the_documented_system_calls(recorder):
    capture, out = recorder.run("sandboxed", 16)
    assert out == "end\n"
    assert sorted(kept(capture)) == list(range(16 * 20 * 100))
    capture.check_sums(lost=0)


def test_handler_that_does_not_want_the_other_stack_gets_its_own(lives, tmp_path):
    """The other one may be made for another handler, and have no room."""
    out = subprocess.run([lives, "plain_handler"], check=True, text=True, timeout=60, cwd=tmp_path,
                         stdout=subprocess.PIPE).stdout
    assert out == "on the other stack: 0\nend\n"


def test_handler_that_is_installed_while_libwaffle_looks_for_it_stays(recorder):
    _, out = recorder.run("sets_handler_meanwhile")
    assert out == "handled\nend\n"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="PR_SET_TSC is of x86")
@pytest.mark.parametrize("how, code", [("_exit", 0), ("flush", 0), (int(signal.SIGTERM), -15)])
def test_thread_that_must_not_read_the_counter_may_end_the_program(recorder, how, code):
    capture, _ = recorder.run("no_counter", how, code=code)
    assert kept(capture) == list(range(100))


def test_first_process_of_a_container_and_its_children_live_on_as_without_libwaffle(recorder):
    """A child in another namespace has the same pid. The kernel ignores signals to the process for
    which it has no handler."""
    _, out = recorder.run("namespaces", path=recorder.waffle.folder / "out-%p.waffle")
    if out.startswith("not permitted"):
        pytest.skip("needs a pid namespace")
    assert out == "child 0\npoll 0\nchild 0\nstatus 0\nend\n"


STUCK = "waffle: the recording can't end while the program has a lock that it needs, .*\n"


@pytest.mark.parametrize("how, code, printed, says", [
    ("exit", 3, "", STUCK), ("fork", 0, "child 0\nend\n", ""),
    ("stop", 0, "stop -35\nstart -16\nend\n",
     STUCK + "waffle: again.waffle: this process records already.*\n")])
def test_program_that_has_the_loaders_lock_may_end_and_fork(recorder, how, code, printed, says):
    """The collector waits for that lock. -35 is -EDEADLK, -16 is -EBUSY."""
    _, out = recorder.run("in_loader", how, code=code, says=says)
    assert out == printed


def test_handler_that_calls_exit_within_malloc_ends_the_program(recorder):
    """As handlers of SIGTERM do. Without libwaffle's threads malloc() would take no lock."""
    for _ in range(3):
        recorder.run("exits_in_malloc", code=3, says=f"({STUCK})?")

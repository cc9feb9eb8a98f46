# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves, and whose threads meet where one could wait for ever: for a lock
that its own thread or a waiting one has."""

import subprocess

import pytest

from recorder import Recorder, compile_inside
from tracer import Capture, compile_program

STUCK = "waffle: the recording can't end while the program has a lock that it needs, .*\n"


@pytest.fixture(scope="module")
def recorder_program(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "deadlocks.c", tmp_path_factory.mktemp("locks") / "locks",
                          "-rdynamic")


@pytest.fixture
def recorder(waffle, recorder_program):
    return Recorder(waffle, recorder_program)


@pytest.mark.parametrize("what", ["mode", "load", "stop", "name", "track", "pair", "callback",
                                  "fork"])
def test_handler_forks_while_its_thread_has_a_lock(recorder, what):
    """A fork() takes all locks of libwaffle."""
    _, out = recorder.run("handler_forks", what)
    assert out == "interrupted 1\nend\n"


def test_handler_exits_while_its_thread_ends_the_recording(recorder):
    path = recorder.waffle.path()
    done = subprocess.run([recorder.program, "handler_exits", path], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "waffle: processors: 1 span had not ended\n"
    Capture(recorder.waffle, path).check_sums(lost=0)


@pytest.mark.parametrize("what, printed, says", [
    ("fork", "child 0\nthread 0\nend\n", ""),
    ("mode", "thread 0\nend\n", ""),
    ("start", "constructor 0\nthread -16\nend\n",
     "waffle: started.waffle: this process records already\n")])
def test_constructor_and_thread_that_opens_libcurl_do_not_wait_for_each_other(
        recorder, tmp_path, what, printed, says):
    """The loader has its lock while the constructor runs. -16 is -EBUSY."""
    library = compile_program("deadlocks.c", tmp_path / "library.so", "-shared", "-fPIC",
                              "-DLIBRARY")
    done = subprocess.run([recorder.program, "constructor_waits", what, library], check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
                          timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, says)


@pytest.mark.parametrize("what, code, printed, says", [
    ("fork", 0, "child 0\nend\n", ""), ("exit", 3, "", STUCK), ("stop", 0, "stop -35\nend\n", STUCK)])
def test_callback_of_dl_iterate_phdr_does_not_wait_for_a_thread_that_waits_for_it(
        recorder, what, code, printed, says):
    """That thread has changed the mode, so it looks for the loader's files. -35 is -EDEADLK."""
    _, out = recorder.run("walk", what, code=code, says=says)
    assert out == printed

# SPDX-License-Identifier: Apache-2.0
"""libwaffle's lines on standard error never get into another file of the program, which may have closed
descriptor 2 and opened a file or a socket with this number."""

import subprocess
import sys

import pytest

# How each program begins. say() begins a recording that fails, of which libwaffle writes one line.
BEGIN = """
import ctypes, os, socket, sys
def load():
    global library
    library = ctypes.CDLL(sys.argv[1])
def say():
    assert library.waffle_trace_start(b"/nowhere/out.waffle", None)
def opened(flags):
    os.close(2)
    number = os.open(sys.argv[2], flags | os.O_CREAT, 0o600)
    os.set_inheritable(number, True)
    assert number == 2
"""
LINE = "waffle: "


def run(waffle_program, tmp_path, code):
    """What is on standard error, and what is in the program's file."""
    path = tmp_path / "data"
    result = subprocess.run([sys.executable, "-c", BEGIN + code, waffle_program.parent / "libwaffle.so", path],
                            text=True, timeout=60, check=False, capture_output=True)
    assert result.returncode == 0, result.stderr
    return result.stderr, path.read_text(encoding="utf-8") if path.exists() else None


def test_a_line_comes_on_standard_error(waffle_program, tmp_path):
    error, _ = run(waffle_program, tmp_path, "load(); say()")
    assert error.startswith(LINE) and error.count("\n") == 1


@pytest.mark.parametrize("flags", ["os.O_WRONLY", "os.O_RDWR", "os.O_WRONLY | os.O_APPEND"])
def test_a_file_that_gets_the_number_later_stays_as_it_is(waffle_program, tmp_path, flags):
    assert run(waffle_program, tmp_path, f"load(); opened({flags}); say()") == ("", "")


def test_a_file_that_has_the_number_when_the_library_is_loaded_stays_as_it_is(waffle_program, tmp_path):
    assert run(waffle_program, tmp_path, "opened(os.O_RDWR); load(); say()") == ("", "")


def test_a_socket_that_has_the_number_stays_as_it_is(waffle_program, tmp_path):
    code = """
os.close(2)
ours, theirs = socket.socketpair()
assert ours.fileno() == 2
ours.set_inheritable(True)
load()
say()
ours.close()
assert theirs.recv(1) == b""
"""
    assert run(waffle_program, tmp_path, code) == ("", None)


def test_a_log_to_which_a_daemon_redirects_both_descriptors_gets_the_line(waffle_program, tmp_path):
    code = """
load()
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(log, 1)
os.dup2(log, 2)
say()
"""
    error, log = run(waffle_program, tmp_path, code)
    assert error == "" and log.startswith(LINE) and log.count("\n") == 1

# SPDX-License-Identifier: Apache-2.0
"""32-bit programs: waffle-bpf says what it can't trace, and nothing that it records is wrong."""

import errno
import os
import struct
import subprocess

import pytest

PROBE = ("--probe", "uprobe:*compat*:compat_work(long number, str text) -> long")
SAYS = "a 32-bit file: sites and functions of 64-bit programs only can be traced"


@pytest.fixture
def compat(built):
    """A 32-bit program, if this machine runs any."""
    if os.uname().machine != "x86_64":
        pytest.skip("32-bit programs of x86")
    program = built("compat.c", "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie",
                    "-fno-stack-protector")
    try:
        subprocess.run([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    except OSError as error:
        assert error.errno == errno.ENOEXEC
        pytest.skip("a kernel without 32-bit programs")
    return program


def test_list_says_that_a_file_is_of_32_bits(waffle, tmp_path):
    header = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")  # ELFCLASS32, little-endian
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0, 0, 0, 0, 52, 32, 0, 40, 0, 0)
    file = tmp_path / "compat"
    file.write_bytes(header)
    waffle.fails(1, "list", file, says=SAYS)
    waffle.fails(1, "list", *PROBE, file, says=SAYS)


def test_a_32_bit_process_is_traced_but_for_its_functions(waffle, start, compat):
    program = start(compat)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", *PROBE)
    while SAYS not in (line := attached.wait_notice()):
        assert line
    for _ in range(3):
        program.ask("", "did")
    program.finish()
    capture = attached.wait()
    assert not capture.rows("span") and not capture.rows("event")
    blocked = [r for r in capture.rows("sched", name="blocked") if r["pid"] == program.pid]
    # What is read() there has the number of close() here.
    assert blocked and all("syscall" not in r["args"] for r in blocked)


def test_running_a_32_bit_program_says_so(waffle, compat):
    result = waffle.call("run", "--no-report", *PROBE, "--", compat, stdin=None, input="\n\n")
    assert result.returncode == 0 and result.stdout.count("did") == 2
    assert SAYS in result.stderr

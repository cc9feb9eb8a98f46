# SPDX-License-Identifier: Apache-2.0
"""What is read out of the built program by readelf: the defences that distributions build in."""

import os
import platform
import re
import subprocess

import pytest


@pytest.fixture(name="readelf")
def reader(waffle_program):
    def read(*options):
        return subprocess.run(
            ["readelf", "-W", *options, waffle_program], capture_output=True, text=True, check=True
        ).stdout

    return read


def is_static(readelf):
    return "INTERP" not in readelf("-l")


def test_addresses_are_chosen_at_random(readelf):
    assert re.search(r"Type:\s+DYN", readelf("-h"))
    assert re.search(r"FLAGS_1.*\bPIE\b", readelf("-d"))


def test_tables_of_pointers_are_read_only_before_main(readelf):
    segments = readelf("-l")
    assert re.search(r"GNU_RELRO", segments)
    assert re.search(r"FLAGS_1.*\bNOW\b", readelf("-d")), "bound lazily: .got.plt stays writable"
    assert ".got.plt" not in readelf("-S")


def test_no_memory_is_both_written_and_executed(readelf):
    segments = readelf("-l")
    [stack] = [line for line in segments.splitlines() if "GNU_STACK" in line]
    assert " RWE " not in stack and "E" not in stack.split()[-2]
    assert not re.search(r"LOAD.* RWE ", segments)


def test_overruns_of_buffers_end_the_program(readelf):
    """__stack_chk_fail is called by functions with arrays, the *_chk functions by what is fortified."""
    symbols = readelf("--dyn-syms") if not is_static(readelf) else readelf("-s")
    assert "__stack_chk_fail" in symbols
    if not os.environ.get("WAFFLE_UNOPTIMISED"):
        fortified = set(re.findall(r"__(\w+)_chk\b", symbols)) - {"stack"}
        assert {"snprintf", "vsnprintf"} <= fortified, fortified


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CET is of x86-64")
def test_indirect_branches_have_marks(waffle_program):
    """Whether the whole program has the note depends on the C library's start files (Debian 12's have
    none); that each object of ours has it does not."""
    notes = subprocess.run(
        ["readelf", "-nW", waffle_program.parent / "libwaffle-bpf.a"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    objects = notes.split("\nFile: ")[1:]
    assert len(objects) > 100
    for text in objects:
        features = re.search(r"x86 feature: (.*)", text)
        assert features and {"IBT", "SHSTK"} <= set(re.split(r"[, ]+", features[1])), text

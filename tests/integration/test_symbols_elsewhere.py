# SPDX-License-Identifier: Apache-2.0
"""Names where the program is not: a debug file of its build-id is enough."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from tracer import find_tool


def build_id(program):
    notes = subprocess.run(
        [find_tool("readelf"), "-n", program], check=True, capture_output=True, text=True
    ).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def keep_debug_file(program, folder):
    """Puts the program's debug file where debuggers look for it by the build-id."""
    name = build_id(program)
    place = folder / ".build-id" / name[:2] / f"{name[2:]}.debug"
    place.parent.mkdir(parents=True)
    subprocess.run([find_tool("objcopy"), "--only-keep-debug", program, place], check=True)
    return folder


class Elsewhere:
    def __init__(self, waffle, built, folder, kind):
        self.waffle = waffle
        self.program = folder / "moved"
        shutil.copy(built("causes.c", "-g", "-fno-omit-frame-pointer", *kind), self.program)
        self.debug = keep_debug_file(self.program, folder / "debug")
        self.capture = waffle.run(self.program, "lock")

    def names(self, folder):
        """How `why` explains the waits for the lock, and the objects of the causes."""
        env = {**os.environ, "WAFFLE_DEBUG_DIR": str(folder)}
        env.pop("DEBUGINFOD_URLS", None)
        arguments = ("why", self.capture.path, "--span", "request", "--slowest", "0")
        text = self.waffle.ok(*arguments, "--evidence", env=env).stdout
        answer = json.loads(self.waffle.ok(*arguments, "--json", env=env).stdout)
        return text, {
            c["culprit"]["object"] for i in answer["instances"] for c in i["causes"]
        }


@pytest.fixture(params=[("-fPIE", "-pie"), ("-no-pie",)], ids=["pie", "no-pie"])
def elsewhere(request, waffle, built, tmp_path):
    return Elsewhere(waffle, built, tmp_path, request.param)


def check_named(text, objects):
    assert re.search(r"(lock_rounds|holder) \(causes\.c:\d+\)", text), text
    assert any(o and o.endswith(" (cache_lock)") for o in objects), objects


def check_not_named(text, objects):
    assert "causes.c" not in text and "lock_rounds" not in text
    assert not any("cache_lock" in o for o in objects if o)
    assert re.search(r"moved\+0x[0-9a-f]+", text), text


def test_functions_and_locks_are_named_by_the_debug_file_alone(elsewhere):
    elsewhere.program.unlink()
    check_named(*elsewhere.names(elsewhere.debug))
    check_not_named(*elsewhere.names(pathlib.Path("/nonexistent")))


def test_another_program_in_its_place_names_nothing(elsewhere, built):
    other = built("waits.c", "-g")
    shutil.copy(other, elsewhere.program)
    check_named(*elsewhere.names(elsewhere.debug))
    check_not_named(*elsewhere.names(pathlib.Path("/nonexistent")))


def test_debug_file_is_read_with_what_dwz_took_out_of_it(elsewhere):
    """The common file is where a package of debug symbols has it, below the folder that is told. A
    FIFO in its place is left alone."""
    elsewhere.program.unlink()
    whole = elsewhere.names(elsewhere.debug)
    [debug] = (elsewhere.debug / ".build-id").rglob("*.debug")
    common = elsewhere.debug / ".dwz" / "common.debug"
    common.parent.mkdir()
    subprocess.run([find_tool("dwz"), "-m", common, "-M", "/usr/lib/debug/.dwz/common.debug",
                    debug, shutil.copy(debug, elsewhere.debug / "second")], check=True)
    assert elsewhere.names(elsewhere.debug) == whole
    common.unlink()
    without = elsewhere.names(elsewhere.debug)
    os.mkfifo(common)
    assert elsewhere.names(elsewhere.debug) == without != whole

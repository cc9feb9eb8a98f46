# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf repair: files that were cut off anywhere become valid, others stay as they are."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from recorder import Recorder, compile_inside
from tracer import ROOT, Capture, Program

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402

# What a trace lacks that was not finished.
UNFINISHED = {"loss", "bounds", "slice-open"}


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


@pytest.fixture(scope="module")
def killed(inside, tmp_path_factory):
    """killed(extension): the file of a program that was killed two seconds after its last step."""
    folder, made = tmp_path_factory.mktemp("killed"), {}

    def run(extension):
        if extension not in made:
            path = made[extension] = folder / f"out.{extension}"
            done = subprocess.run([inside, "die", "kill", "later"], check=False,
                                  env={**os.environ, "WAFFLE_TRACE": str(path)})
            assert done.returncode == -signal.SIGKILL
        return made[extension].read_bytes()

    return run


def cuts(data, count=60):
    """Places to cut: at each byte near the begin, and at some all over."""
    return [*range(1, 30), *range(30, len(data), max(1, len(data) // count)), len(data)]


def test_array_cut_anywhere_becomes_json_with_all_whole_events(waffle, killed):
    data, path = killed("json"), waffle.folder / "cut.json"
    events = json.loads(data + b"\n]")
    ends = [n for n in range(len(data)) if data[n:n + 3] == b"}},"] + [len(data)]
    for cut in cuts(data):
        path.write_bytes(data[:cut])
        if cut == 1:
            continue
        out = waffle.ok("repair", path).stdout
        left = json.loads(path.read_text(encoding="utf-8"))
        assert left == events[:len(left)], cut
        assert len(left) == sum(end + 2 <= cut for end in ends[:-1]) + (cut == len(data)), cut
        assert out.startswith(f"{path}: ") and len(out.splitlines()) == 1
        again = waffle.ok("repair", path).stdout
        assert re.search(r": is complete, with [0-9,]+ events?\n$", again)


def test_trace_cut_anywhere_becomes_one_of_whole_packets(waffle, killed):
    data, path = killed("pftrace"), waffle.folder / "cut.pftrace"
    whole = validate_perfetto.parse(data)
    assert {check for check, _ in whole.violations} <= UNFINISHED
    first = data[1] + 2
    for cut in cuts(data):
        path.write_bytes(data[:cut])
        if cut < first:
            waffle.fails(1, "repair", path, says="not a Perfetto trace")
            assert path.read_bytes() == data[:cut]
            continue
        waffle.ok("repair", path)
        left = path.read_bytes()
        assert data.startswith(left) and len(left) <= cut
        trace = validate_perfetto.parse(left)
        assert {check for check, _ in trace.violations} <= UNFINISHED, cut
        assert "is complete" in waffle.ok("repair", path).stdout
    assert len(trace.slices) == len(trace.instants) == 100


def test_capture_is_read_as_it_is_and_written_complete_elsewhere(waffle, killed):
    data, path = killed("waffle"), waffle.folder / "cut.waffle"
    path.write_bytes(data[:-3])
    out = waffle.ok("repair", path).stdout
    assert re.search("was cut off; all commands read it as it is", out)
    assert path.read_bytes() == data[:-3]
    whole = waffle.folder / "whole.waffle"
    waffle.ok("repair", path, "-o", whole)
    assert Capture(waffle, whole).rows() == Capture(waffle, path).rows()
    assert len(Capture(waffle, whole).rows("event")) == 100
    assert waffle.ok("repair", whole).stdout == f"{whole}: is complete\n"


def test_zeros_that_a_power_cut_leaves_are_dropped(waffle, killed):
    for extension in ("json", "pftrace"):
        path = waffle.folder / f"zeros.{extension}"
        path.write_bytes(killed(extension)[:-3] + bytes(5000))
        waffle.ok("repair", path)
        assert not path.read_bytes().count(bytes(5000))
        assert "is complete" in waffle.ok("repair", path).stdout


@pytest.mark.parametrize("name, data, says", [
    ("object.json", b'{"traceEvents": []}', "an object at byte 0"),
    ("numbers.json", b"[1, 2", "something that is not an event at byte 1"),
    ("arrays.json", b"[[1]", "another array at byte 1"),
    ("text.json", b"[{nonsense}", "no JSON at byte "),
    ("behind.json", b"[{}]\n[{}]", "something behind its end at byte 5"),
    ("binary.json", bytes(range(1, 256)), "no bracket at byte 0"),
    ("elsewhere.json", b'[{"a": 1},\0\0{"a": 2}]', "no text at byte 10"),
    ("deep.json", b"[" + b'{"a":' * 100, "too many brackets"),
    ("empty.json", b"", "no bracket at byte 0"),
    ("utf8.json", b'[{"a": "\xff\xff"}', "no JSON"),
    ("empty.pftrace", b"", "no packet begins at byte 0"),
    ("text.pftrace", b"[{}]", "no packet begins at byte 0"),
    ("fields.pftrace", b"\n\x02\x0f\x0f", "no packet begins at byte 0"),
    ("endless.pftrace", b"\n" + b"\xff" * 12, "no packet begins at byte 0"),
    ("middle.pftrace", b"\n\x02\x08\x01\x55\x55", "no packet begins at byte 4"),
    ("other.txt", b"hello", "is no .json, .pftrace or .waffle file"),
    ("other.waffle", b"hello", "not a .waffle file"),
    ("elf", b"\x7fELF\x02\x01", "is no .json, .pftrace or .waffle file"),
])
def test_what_is_no_such_file_is_refused_and_left_alone(waffle, name, data, says):
    path = waffle.folder / name
    path.write_bytes(data)
    waffle.fails(1, "repair", path, says=re.escape(says))
    assert path.read_bytes() == data
    assert not list(waffle.folder.glob(".waffle-*"))


def test_kind_of_file_without_an_extension_is_found(waffle, killed):
    for extension, kind in (("json", "events"), ("pftrace", "packets")):
        path = waffle.folder / f"copy-{extension}"
        path.write_bytes(killed(extension)[:-3])
        assert re.search(f"{kind}, [0-9]", waffle.ok("repair", path).stdout)


def test_what_is_no_regular_file_is_refused(waffle, killed):
    folder = waffle.folder
    os.mkfifo(folder / "pipe.json")
    waffle.fails(1, "repair", folder / "pipe.json", says="is not a regular file")
    waffle.fails(1, "repair", folder, says="is a directory")
    waffle.fails(1, "repair", folder / "missing.json", says="No such file")
    waffle.fails(1, "repair", "/dev/zero", says="is not a regular file")
    (folder / "real.json").write_bytes(killed("json"))
    (folder / "link.json").symlink_to("real.json")
    waffle.fails(1, "repair", folder / "link.json", says="is a symbolic link; name the file itself")
    assert (folder / "link.json").is_symlink()
    waffle.ok("repair", folder / "link.json", "-o", folder / "other.json")
    assert json.loads((folder / "other.json").read_text())
    waffle.fails(2, "repair", says="give one .json, .pftrace or .waffle file")
    waffle.fails(2, "repair", "a.json", "b.json", says="give one")
    waffle.fails(1, "repair", folder / "real.json", "-o", folder / "no" / "out.json", says="No such")


def test_file_that_is_still_written_is_left_alone(waffle, inside):
    path = waffle.folder / "live.json"
    program = Program([inside, "request"], env=Recorder(waffle, inside).environment(path))
    program.until("ready")
    before = path.read_bytes()
    waffle.fails(1, "repair", path, says="is still being written")
    assert path.read_bytes() == before
    program.finish()
    assert "is complete" in waffle.ok("repair", path).stdout


def test_full_disk_leaves_the_old_file(waffle, killed):
    folder = waffle.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", folder], check=True)
    try:
        path = folder / "out.json"
        path.write_bytes(killed("json")[:-5])
        before = path.read_bytes()
        assert len(before) > 32 << 10
        waffle.fails(1, "repair", path, says="No space left on device")
        assert path.read_bytes() == before and len(list(folder.iterdir())) == 1
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_huge_file_takes_little_memory(waffle):
    path = waffle.folder / "huge.json"
    with open(path, "wb") as out:
        out.write(b'[\n{"ph":"i"},\n')
        out.truncate(1 << 30)
    assert "1 event, " in waffle.ok("repair", "--memory-limit", "64MiB", path).stdout
    assert path.read_bytes() == b'[\n{"ph":"i"}\n]\n'
    string = waffle.folder / "string.json"
    with open(string, "wb") as out:
        out.write(b'[\n{"ph":"')
        for _ in range(70):
            out.write(b"a" * (1 << 20))
    waffle.fails(1, "repair", string, says="an event of more than 64 MiB")

# SPDX-License-Identifier: Apache-2.0
"""Where a program that records itself writes to: names with %p, %h and %r, and what is no file."""

import json
import os
import re
import socket
import stat
import subprocess
import threading

import pytest

from recorder import Recorder, compile_inside
from tracer import Capture


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


@pytest.fixture
def recorder(waffle, inside):
    return Recorder(waffle, inside)


def steps(waffle, path):
    return [r["args"]["i"] for r in Capture(waffle, path).rows("event")]


def untraced(recorder, path, says, variables=(), **options):
    """The program runs as always, and one line says why it is not recorded."""
    done = subprocess.run([recorder.program, "steps", "10"], check=False, text=True, timeout=60,
                          env=recorder.environment(path, **dict(variables)), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=recorder.waffle.folder, **options)
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert re.fullmatch(rf"waffle: {says}; the program runs untraced\n", done.stderr), done.stderr
    assert not list(recorder.waffle.folder.glob("**/.waffle-*"))


def test_name_has_host_pid_and_rank(recorder):
    folder = recorder.waffle.folder
    pattern = folder / "%h-%r-%p-100%%.waffle"
    program = subprocess.Popen([recorder.program, "steps", "10"], stdout=subprocess.DEVNULL,
                               env=recorder.environment(pattern, RANK="3", WORLD_SIZE="4"))
    assert program.wait(60) == 0
    path = folder / f"{socket.gethostname()}-3-{program.pid}-100%.waffle"
    assert steps(recorder.waffle, path) == list(range(10))
    [job] = [Capture(recorder.waffle, path).info()]
    assert job["command"].endswith("inside steps 10")


@pytest.mark.parametrize("extension", ["waffle", "json", "pftrace"])
def test_executed_child_has_a_file_of_its_own(recorder, extension):
    """The child of fork() executes the program again, which does not replace the file of the fork."""
    folder = recorder.waffle.folder
    recorder.run("fork", "exec", path=folder / f"own-%p.{extension}")
    [executed] = folder.glob(f"own-*-2.{extension}")
    parent, forked = sorted(set(folder.glob(f"own-*.{extension}")) - {executed},
                            key=lambda path: path.stat().st_size, reverse=True)
    assert executed.stem == f"{forked.stem}-2"
    if extension == "waffle":
        found = [sorted(steps(recorder.waffle, path)) for path in (parent, executed, forked)]
        assert found == [list(range(20)), list(range(20)), []]
    if extension == "json":
        for path in (parent, executed):
            events = json.loads(path.read_text())
            assert len([e for e in events if e["name"] == "tick"]) == 20
        assert '"tick"' not in forked.read_text()


def test_folder_and_links_to_devices_are_no_files(recorder):
    folder = recorder.waffle.folder
    (folder / "folder.waffle").mkdir()
    untraced(recorder, "folder.waffle", "folder.waffle: is a directory; name a file in it")
    (folder / "full.json").symlink_to("/dev/full")
    untraced(recorder, "full.json", "full.json: is a symbolic link to a device or a pipe; .*")
    untraced(recorder, "/dev/full", "/dev/full: the format is chosen by the extension, .*")
    untraced(recorder, "out.waffle/", "out.waffle/: the format is chosen by the extension, .*")
    untraced(recorder, "no/out.json", "no/out.json: can't be created: No such file or directory")
    untraced(recorder, f"{'x' * 300}.json", ".*: File name too long; nothing was written")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_folder_without_permission_leaves_the_program_untraced(recorder, waffle_program, public):
    library = public(waffle_program.parent / "libwaffle.so.0")
    folder = recorder.waffle.folder
    for above in [folder, *folder.parents[:-2], recorder.program.parent]:
        os.chmod(above, os.stat(above).st_mode | 0o011)
    closed = folder / "closed"
    closed.mkdir(mode=0o755)
    untraced(recorder, closed / "out.pftrace", f"{closed}/out.pftrace: can't be created: Permission denied",
             {"LD_LIBRARY_PATH": str(library.parent)}, user=65534, group=65534, extra_groups=[])
    assert not list(closed.iterdir())


def test_device_that_is_full_ends_the_recording(recorder):
    """A device node with the extension of a format."""
    folder = recorder.waffle.folder
    node = folder / "full.json"
    subprocess.run(["mknod", node, "c", "1", "7"], check=True)
    done = subprocess.run([recorder.program, "steps", "10"], check=False, text=True, timeout=60,
                          env=recorder.environment(node), capture_output=True)
    assert (done.returncode, done.stdout) == (0, "end\n")
    [line] = done.stderr.splitlines()
    assert re.match(rf"waffle: {node}: No space left on device", line), line


def test_fifo_is_written_if_somebody_reads_and_else_refused(recorder):
    folder = recorder.waffle.folder
    pipe = folder / "pipe.json"
    os.mkfifo(pipe)
    untraced(recorder, pipe, f"{pipe}: can't be written: nobody reads from it")
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    while True:  # until the reader has opened it
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            continue
        break
    reader.join()
    got.clear()
    holder = os.open(pipe, os.O_RDWR)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    recorder.run("steps", 10, path=pipe)
    os.close(holder)
    events = json.loads(reader.communicate(timeout=60)[0])
    assert len([e for e in events if e["name"] == "tick"]) == 10


def test_reader_of_a_fifo_that_goes_away_does_not_kill_the_program(recorder):
    """A write then fails with EPIPE, and SIGPIPE is not the program's."""
    pipe = recorder.waffle.folder / "pipe.json"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    program = subprocess.Popen([recorder.program, "request"], env=recorder.environment(pipe),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    os.close(holder)
    out, err = program.communicate("100\n", timeout=60)
    assert (program.returncode, out) == (0, "done 100\nend\n")
    assert re.match(rf"waffle: {pipe}: Broken pipe", err) and len(err.splitlines()) == 1, err


def test_set_user_id_program_ignores_all_variables(recorder):
    folder = recorder.waffle.folder
    program = folder / "privileged"
    program.write_bytes(recorder.program.read_bytes())
    os.chmod(program, 0o4755)
    for above in [folder, *folder.parents[:-2]]:
        os.chmod(above, os.stat(above).st_mode | 0o011)
    (folder / "open").mkdir()
    os.chmod(folder / "open", 0o777)
    for variables in ({}, {"WAFFLE_FILTER": "bad bad"}, {"WAFFLE_PROCESS": "bad"},
                      {"WAFFLE_MODE": "bad"}, {"WAFFLE_KEEP_CHILDREN": "bad"}):
        done = subprocess.run([program, "steps", "10"], check=False, text=True, user=65534,
                              group=65534, extra_groups=[], capture_output=True,
                              env=recorder.environment(folder / "open" / "out-%p.json", **variables))
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", ""), variables
    assert not list((folder / "open").iterdir())

# SPDX-License-Identifier: Apache-2.0
"""What waffle-bpf does to files as root: it removes and overwrites nothing that is not its own, and
what it writes is for its caller only."""

import ctypes
import os
import re
import select
import signal
import stat
import subprocess

import pytest

from tracer import export_formats

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def nothing_else(folder, *names):
    assert sorted(os.listdir(folder)) == sorted(names)


@pytest.fixture
def places(tmp_path):
    """A folder with a character device, a FIFO that is read, and yesterday's capture."""
    folder = tmp_path / "places"
    folder.mkdir()
    os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo(folder / "fifo")
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    (folder / "old.waffle").write_bytes(b"yesterday's")
    yield folder
    os.close(reader)


def failing_starts(pid):
    return (
        (["run", "--", "/no/such/command"], 127),
        (["run", "--", "/etc/passwd"], 126),
        (["attach", "--pid", pid, "--probe", "uprobe:exe:no_such_function()"], 1),
        (["attach", "--pid", 4194303], 1),
    )


def test_failed_start_removes_nothing(waffle, steps, places):
    before = {path.name: path.lstat() for path in places.iterdir()}
    for arguments, code in failing_starts(steps.pid):
        for name in before:
            result = waffle.call(arguments[0], "-o", places / name, *arguments[1:])
            assert result.returncode == code, result.stderr
            nothing_else(places, *before)
    for name, status in before.items():
        assert (places / name).lstat().st_ino == status.st_ino
        assert (places / name).lstat().st_mode == status.st_mode
    assert (places / "old.waffle").read_bytes() == b"yesterday's"


def test_failed_start_leaves_no_file_of_the_default_name(waffle, steps, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    for arguments, code in failing_starts(steps.pid):
        assert waffle.call(*arguments, cwd=folder).returncode == code
        nothing_else(folder)


def test_capture_replaces_yesterdays_once_it_has_begun(waffle, built, places):
    old = places / "old.waffle"
    waffle.ok("run", "-q", "--no-report", "-o", old, "--", built("values.c"))
    assert old.read_bytes().startswith(b"WAFFLE") or old.stat().st_size > 1000
    nothing_else(places, "device", "fifo", "old.waffle")


def test_failed_export_leaves_the_old_file(waffle, built, places):
    capture = waffle.run(built("values.c"))
    bent = places.parent / "bent.waffle"
    bent.write_bytes(b"no capture")
    old = places / "old.waffle"
    for form in export_formats():
        assert waffle.call("export", bent, "-f", form, "-o", old).returncode == 1
    assert waffle.call("report", "--html", old, bent).returncode == 1
    # The write itself fails: a file of more than a few KiB is not allowed.
    limited = f"ulimit -f 1; exec {waffle.program} export {capture.path} -f records -o {old}"
    assert subprocess.run(["bash", "-c", limited], check=False).returncode == 1
    assert old.read_bytes() == b"yesterday's"
    nothing_else(places, "device", "fifo", "old.waffle")


def test_all_files_are_for_the_caller_only(waffle, built, public, tmp_path):
    """With the most generous mask, and in place of files that everybody could read."""
    folder = tmp_path / "files"
    folder.mkdir()
    environment = dict(os.environ, SUDO_UID="65534", SUDO_GID="2345")
    options = {"cwd": folder, "env": environment, "umask": 0}
    program = public(built("values.c"))
    (folder / "a.html").write_text("old")
    (folder / "a.html").chmod(0o666)
    waffle.ok("run", "-q", "--no-report", "--", program, **options)
    [capture] = folder.glob("values-*.waffle")
    for form in export_formats():
        waffle.ok("export", capture, "-f", form, "-o", f"a.{form}", **options)
    waffle.ok("report", "--html", "a.html", capture, **options)
    assert len(list(folder.iterdir())) == 2 + len(export_formats())
    for path in folder.iterdir():
        status = path.stat()
        assert stat.S_IMODE(status.st_mode) == 0o600, path
        assert (status.st_uid, status.st_gid) == (65534, 2345), path


def test_default_name_is_safe_for_a_shell(waffle, built, tmp_path):
    odd = tmp_path / "-o$(touch x);'\"`\x1b&*.sh"
    os.link(built("values.c"), odd)
    folder = tmp_path / "files"
    folder.mkdir()
    waffle.ok("run", "-q", "--no-report", "--", odd, cwd=folder)
    [name] = os.listdir(folder)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\.waffle", name), name


def exchanging(one, other):
    """A process that exchanges two names as fast as it can."""
    child = os.fork()
    if child:
        return child
    libc = ctypes.CDLL(None)
    names = os.fsencode(one), os.fsencode(other)
    while True:
        libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)


def end(child):
    if child is not None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def both_there(folder):
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in folder.iterdir()}
    return kinds == {stat.S_IFIFO, stat.S_IFLNK}


def readable(descriptor):
    return bool(select.select([descriptor], [], [], 0)[0])


def test_link_that_takes_a_fifos_place_leads_root_nowhere(waffle, built, tmp_path):
    """The owner of a folder replaces a file between the check and the open."""
    capture = waffle.run("true", options=("--no-sched",))  # less than a pipe holds
    secret = tmp_path / "secret"
    secret.write_text("of root")
    folder = tmp_path / "theirs"
    folder.mkdir()
    child = reader = None
    try:
        for _ in range(60):
            # What an export put in their place goes, and both are there again.
            if child is None or not both_there(folder):
                end(child)
                for path in folder.iterdir():
                    path.unlink()
                if reader is not None:
                    os.close(reader)
                os.mkfifo(folder / "x")
                os.symlink(secret, folder / "link")
                reader = os.open(folder / "x", os.O_RDWR | os.O_NONBLOCK)
                child = exchanging(folder / "x", folder / "link")
            waffle.call("export", capture.path, "-f", "ndjson", "-o", folder / "x")
            assert secret.read_text() == "of root"
            if readable(reader):
                os.read(reader, 1 << 20)
    finally:
        end(child)
        os.close(reader)


def test_pipe_of_another_user_gets_nothing(waffle, built, tmp_path, monkeypatch):
    """In a folder for all, another user may make a FIFO where root is expected to write."""
    capture = waffle.run("true", options=("--no-sched",))  # less than a pipe holds
    monkeypatch.delenv("SUDO_UID", raising=False)
    trap = tmp_path / "trap"
    os.mkfifo(trap, 0o600)
    os.chown(trap, 65534, 65534)
    reader = os.open(trap, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for command in (
            ("run", "-o", trap, "--", "true"),
            ("export", capture.path, "-f", "ndjson", "-o", trap),
        ):
            waffle.fails(1, *command, says="is a pipe of another user")
            assert os.read(reader, 1) == b""
        # The caller of sudo may have made it for this.
        monkeypatch.setenv("SUDO_UID", "65534")
        waffle.ok("export", capture.path, "-f", "ndjson", "-o", trap)
        assert os.read(reader, 1) == b"{"
    finally:
        os.close(reader)


def test_link_to_a_device_is_refused(waffle, built, tmp_path):
    capture = waffle.run(built("values.c"))
    link = tmp_path / "link"
    os.symlink("/dev/null", link)
    waffle.fails(1, "export", capture.path, "-o", link, says="symbolic link to a device")
    waffle.fails(1, "run", "-o", link, "--", "true", says="symbolic link to a device")
    assert os.readlink(link) == "/dev/null"


def test_dev_stdout_is_the_callers_file_and_stays_a_device(waffle, built, tmp_path):
    capture = waffle.run(built("values.c"))
    out = tmp_path / "out"
    before = os.readlink("/dev/stdout")
    with open(out, "wb") as file:
        subprocess.run(
            [waffle.program, "export", capture.path, "-f", "ndjson", "-o", "/dev/stdout"],
            stdout=file,
            check=True,
        )
    if not os.path.islink("/dev/stdout"):
        os.unlink("/dev/stdout")
        os.symlink(before, "/dev/stdout")
        pytest.fail("/dev/stdout was replaced")
    assert b'"kind":"span"' in out.read_bytes()

# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line, the right exit code, nothing left behind, the target unharmed."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from tracer import ROOT, Capture, semaphores, wait_until


def free_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def nothing_left(folder, *allowed):
    assert sorted(p.name for p in folder.iterdir()) == sorted(allowed)


def test_no_such_process(waffle, tmp_path):
    pid = free_pid()
    waffle.fails(1, "attach", "-p", pid, says=rf"attach: pid {pid}: no such process")
    waffle.fails(1, "list", "-p", pid, says=rf"list: pid {pid}: no such process")
    waffle.fails(1, "attach", "--comm", "no_such_name", says="no_such_name: no process")
    nothing_left(tmp_path)


def test_a_process_that_has_ended_is_not_called_unmarked(waffle, tmp_path):
    ended = subprocess.Popen(["true"])  # nobody waits for it yet
    wait_until(lambda: pathlib.Path(f"/proc/{ended.pid}/stat").read_text().split()[2] == "Z", "end")
    waffle.fails(1, "attach", "-p", ended.pid, says=rf"pid {ended.pid}: it has ended")
    waffle.fails(1, "list", "-p", ended.pid, says=rf"pid {ended.pid}: it has ended")
    ended.wait()
    nothing_left(tmp_path)


def test_a_name_can_not_make_a_process_look_ended(waffle, start):
    """/proc/PID/stat has the name in parentheses, and the state behind it."""
    named = start("python3", "-c", "import time; open('/proc/self/comm', 'w').write('a) Z 1'); "
                  "print('ready', flush=True); time.sleep(60)")  # fmt: skip
    named.until("ready")
    assert waffle.ok("list", "-p", named.pid)


def test_a_thread_of_the_kernel_is_not_called_unmarked(waffle):
    assert waffle.ok("list", "-p", 2).stdout == "no sites: it is a thread of the kernel\n"
    text = waffle.ok("attach", "-p", 2, "-d", "200ms", "--no-report", "-o", waffle.path()).stderr
    assert "a thread of the kernel, which has no sites" in text


def test_second_of_two_pids_does_not_exist(waffle, steps, tmp_path):
    pid = free_pid()
    waffle.fails(1, "attach", "-p", steps.pid, "-p", pid, says=rf"pid {pid}: no such process")
    nothing_left(tmp_path)
    assert not any(semaphores(steps.pid, steps.path))


def test_id_of_a_thread_says_which_process_to_name(waffle, built, start, tmp_path):
    program = start(built("flood.c"))
    program.until("ready")
    tid = max(int(t) for t in os.listdir(f"/proc/{program.pid}/task"))
    waffle.fails(1, "attach", "-p", tid, says=rf"pid {tid}: .*--pid {program.pid}")
    nothing_left(tmp_path)


def test_process_that_exits_while_it_is_being_armed(waffle, built):
    """At whatever moment: one line and exit 1 without a file, or a whole short capture."""
    outcomes = set()
    for after in [*(0.03 * i for i in range(9)), "arming"]:
        target = subprocess.Popen(
            [built("steps.c")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        target.stdout.readline()
        attached = waffle.attach("-p", target.pid, "-q", "--no-report")
        if after == "arming":
            attached.wait_armed(target.pid, built("steps.c"))
        else:
            time.sleep(after)
        target.kill()
        target.wait()
        _, err = attached.process.communicate(timeout=60)
        code = attached.process.returncode
        outcomes.add(code)
        if code == 1:
            assert len(err.splitlines()) == 1 and f"pid {target.pid}" in err, err
            assert not attached.capture.path.exists()
        else:
            assert code == 0 and err == ""
            attached.capture.check_sums()
            assert attached.capture.info()["truncated"] is False
        assert [p for p in waffle.folder.iterdir() if p.suffix != ".waffle"] == [
            p for p in waffle.folder.iterdir() if p.suffix == ".ndjson"
        ]
    assert outcomes <= {0, 1} and 0 in outcomes


def test_what_is_no_ordinary_file_is_said_and_not_waited_for(waffle, tmp_path):
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    fifo.chmod(0o755)
    folder.mkdir()
    waffle.fails(1, "list", fifo, says=f"list: {fifo}: is not a regular file")
    waffle.fails(1, "list", "/dev/zero", says="list: /dev/zero: is not a regular file")
    waffle.fails(1, "list", folder, says=f"list: {folder}: is a directory")
    waffle.fails(1, "list", "--probe", f"uprobe:{fifo}:f", fifo, says="is not a regular file")
    waffle.fails(1, "list", "--probe", f"uprobe:{fifo}:f", "/bin/true", says="no file '/")
    waffle.fails(2, "list", "--probes", fifo, "/bin/true", says="nobody writes to this FIFO")
    waffle.fails(2, "list", "--probes", folder, "/bin/true", says=f"{folder}: is a directory")
    waffle.fails(1, "run", "--filter", f"@{fifo}", "--", "true", says="nobody writes to this FIFO")
    waffle.fails(1, "run", "-o", fifo, "--", "true", says=f"{fifo}: .*nobody reads from it")
    assert waffle.call("run", "--no-report", "--", fifo).returncode == 126
    nothing_left(tmp_path, "fifo", "folder")


def test_texts_may_come_from_a_pipe(waffle):
    for option in ("--probes", "--filter"):
        reading, writing = os.pipe()
        text = b"uprobe:libc:malloc\n" if option == "--probes" else b'name == "a"'
        name = f"/proc/self/fd/{reading}"
        process = subprocess.Popen(
            [waffle.program, *(["list"] if option == "--probes" else ["report"]), option,
             name if option == "--probes" else f"@{name}", "/no/such/file"],
            stderr=subprocess.PIPE, text=True, pass_fds=[reading])
        os.close(reading)
        os.write(writing, text)
        os.close(writing)
        assert re.search("/no/such/file: .*No such file", process.communicate(timeout=60)[1])


def test_not_root(waffle, steps, tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o777)
    open_folder.chmod(0o777)
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        if os.stat(folder).st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    program = open_folder / "waffle-bpf"
    shutil.copy(waffle.program, program)
    for arguments in (["attach", "-p", str(steps.pid)], ["run", "--", "true"]):
        result = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, *arguments],
            capture_output=True, text=True, cwd=open_folder, check=False,
        )  # fmt: skip
        assert result.returncode == 1, result.stderr
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert re.search("root|sudo", result.stderr), result.stderr
        nothing_left(open_folder, "waffle-bpf")
    assert not any(semaphores(steps.pid, steps.path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["attach"],
        ["attach", "-p", "zero"],
        ["attach", "-p", "0"],
        ["attach", "-p", "-5"],
        ["attach", "-p", "99999999999999999999"],
        ["attach", "-p", ""],
        ["attach", "-p", "1x"],
        ["attach", "-p"],
        ["attach", "-p", "1", "--duration", "soon"],
        ["attach", "-p", "1", "--duration", "0s"],
        ["attach", "-p", "1", "--duration", "-1s"],
        ["attach", "-p", "1", "--duration", "10"],
        ["attach", "-p", "1", "--ring-size", "1"],
        ["attach", "-p", "1", "--ring-size", "8GiB"],
        ["attach", "-p", "1", "--sched-size", "many"],
        ["attach", "-p", "1", "--no-sched", "--sources", "sched"],
        ["attach", "-p", "1", "--no-such-option"],
        ["attach", "-p", "1", "surplus"],
        ["attach", "--quiet=yes", "-p", "1"],
        ["run"],
        ["run", "--"],
        ["run", "--duration", "x", "--", "true"],
        ["run", "--min-wait", "999ns", "--", "true"],
        ["run", "--min-wait", "61s", "--", "true"],
        ["why", "--from", "0", "x.waffle"],
        ["report"],
        ["report", "--sort", "colour", "x.waffle"],
        ["report", "--top", "-1", "x.waffle"],
        ["export", "--format", "mp3", "x.waffle"],
        ["export"],
        ["info"],
        ["info", "--no-such"],
        ["list"],
        ["list", "--pid", "nine"],
        ["no-such-command"],
        ["--no-such-option"],
    ],
    ids=" ".join,
)
def test_bad_usage_is_exit_2_and_one_line(waffle, tmp_path, arguments):
    waffle.fails(2, *arguments)
    nothing_left(tmp_path)


def foreign_files(folder):
    """Files that are no captures: what each is, and its path."""
    for name, content in (
        ("empty", b""),
        ("text", b"hello, world\n" * 100),
        ("zeros", bytes(100_000)),
        ("elf", open("/bin/true", "rb").read()),
        ("random", os.urandom(5000)),
    ):
        path = folder / f"{name}.bin"
        path.write_bytes(content)
        yield path
    (folder / "directory").mkdir()
    yield folder / "directory"
    yield folder / "not there"


def test_foreign_files_are_refused_by_all_readers(waffle, tmp_path):
    for path in foreign_files(tmp_path):
        before = sorted(p.name for p in tmp_path.iterdir())
        for arguments in (["report"], ["info"], ["export", "-o", tmp_path / "out"]):
            waffle.fails(1, *arguments, path, says=re.escape(str(path)))
        assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_file_cut_anywhere_is_read_as_far_as_it_goes_or_refused(waffle, built, tmp_path):
    capture = waffle.run(built("values.c"))
    whole = capture.path.read_bytes()
    cut = tmp_path / "cut.waffle"
    for size in [len(whole) * i // 12 for i in range(12)] + [1, 7, 16, len(whole) - 1]:
        cut.write_bytes(whole[:size])
        for command in ("info", "report"):
            result = waffle.call(command, "--json", cut)
            if result.returncode:
                assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
            else:
                shown = Capture(waffle, cut)
                assert shown.info()["truncated"] is True
                records = shown.info()["records"]
                assert records["produced"] == records["delivered"] + records["lost"]
    assert waffle.call("info", cut).returncode == 0  # only the last byte is missing


def test_file_with_a_flipped_byte_never_crashes_a_reader(waffle, built, tmp_path):
    whole = bytearray(waffle.run(built("values.c")).path.read_bytes())
    bent = tmp_path / "bent.waffle"
    for at in range(0, len(whole), max(1, len(whole) // 25)):
        whole[at] ^= 0x5A
        bent.write_bytes(whole)
        result = waffle.call("report", bent)
        assert result.returncode in (0, 1) and result.stderr.count("\n") <= 1, result.stderr
        whole[at] ^= 0x5A


def test_unwritable_output(waffle, steps, tmp_path):
    for path in ("/no/such/folder/x.waffle", "/proc/x.waffle", tmp_path):
        waffle.fails(1, "attach", "-p", steps.pid, "-o", path, says=re.escape(str(path)))
        waffle.fails(1, "run", "-o", path, "--", "true", says=re.escape(str(path)))
    nothing_left(tmp_path)
    capture = waffle.run("true")
    waffle.fails(1, "export", capture.path, "-o", "/no/such/folder/x", says="/no/such/folder/x")
    assert not any(semaphores(steps.pid, steps.path))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few pages."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_ends_with_one_line_and_a_readable_file(waffle, built, start, small_disk):
    program = start(built("flood.c"))
    program.until("ready")
    path = small_disk / "x.waffle"
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", path=path)
    _, err = attached.process.communicate(timeout=30)
    assert attached.process.returncode == 1
    assert len(err.splitlines()) == 1, err
    assert "No space left" in err and str(path) in err, err
    nothing_left(small_disk, "x.waffle")
    # An export can't be written there either, but the capture was.
    kept = Capture(waffle, path)
    assert kept.info()["truncated"] is True
    assert kept.info()["events"] >= 0
    assert not any(semaphores(program.pid, built("flood.c")))
    assert program.alive()
    program.finish()


def test_export_to_a_full_disk_fails_and_leaves_nothing(waffle, built, small_disk):
    capture = waffle.run(built("values.c"))
    for form in ("ndjson", "chrome"):
        out = small_disk / f"x.{form}"
        waffle.fails(1, "export", capture.path, "-f", form, "-o", out, says="No space left")
        nothing_left(small_disk)


def test_report_into_a_closed_pipe_or_full_device(waffle, built):
    capture = waffle.run(built("values.c"))
    for arguments in (
        ["report", capture.path],
        ["report", "--json", capture.path],
        ["info", capture.path],
        ["list", built("values.c")],
        ["export", capture.path, "-f", "ndjson", "-o", "-"],
        ["help"],
    ):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run(
                [waffle.program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                check=False,
            )  # fmt: skip
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    piped = subprocess.run(
        ["sh", "-c", f"{waffle.program} report {capture.path} | head -1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(piped.stdout.splitlines()) == 1 and piped.stderr == ""


def test_file_belongs_to_the_user_who_called_sudo(waffle, tmp_path):
    environment = dict(os.environ, SUDO_UID="65534", SUDO_GID="2345")
    capture = waffle.run("true", env=environment)
    status = capture.path.stat()
    assert (status.st_uid, status.st_gid) == (65534, 2345)
    assert status.st_mode & 0o022 == 0
    out = tmp_path / "x.ndjson"
    waffle.ok("export", capture.path, "-f", "ndjson", "-o", out, env=environment)
    assert (out.stat().st_uid, out.stat().st_gid) == (65534, 2345)
    plain = waffle.run("true").path.stat()
    assert (plain.st_uid, plain.st_gid) == (0, 0)


def test_default_name_is_the_program_and_the_time(waffle, built):
    folder = waffle.folder / "here"
    folder.mkdir()
    waffle.ok("run", "-q", "--no-report", "--", built("values.c"), cwd=folder)
    [path] = folder.iterdir()
    assert re.fullmatch(r"values-\d{8}-\d{6}\.waffle", path.name)


def test_pipes_get_no_escape_sequences_and_no_progress(waffle, steps):
    attached = waffle.attach("-p", steps.pid, "--duration", "400ms")
    capture = attached.wait()
    assert "\x1b" not in capture.result.stdout + capture.result.stderr
    assert "\r" not in capture.result.stderr
    assert len(capture.result.stderr.splitlines()) == 1


def on_terminal(waffle, arguments, **environment):
    """What a command writes to a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(waffle.program), *[str(x) for x in arguments]],
        stdin=slave, stdout=slave, stderr=slave, cwd=waffle.folder,
        env=dict(os.environ, TERM="xterm", **environment),
    )  # fmt: skip
    os.close(slave)
    text = b""
    while True:
        ready, _, _ = select.select([master], [], [], 10)
        try:
            data = os.read(master, 65536) if ready else b""
        except OSError:
            data = b""
        if not data:
            break
        text += data
    os.close(master)
    assert process.wait(10) == 0, text
    return text.decode()


def test_terminal_shows_progress_on_one_line(waffle, steps):
    text = on_terminal(waffle, ["attach", "-p", steps.pid, "-d", "600ms", "-o", "t.waffle"])
    assert text.count("left") >= 3 and "\r" in text
    assert re.search(r"[\d,]+ records, [\d,.]+[kM]?/s, 0 lost", text)


def test_no_color_leaves_no_colours(waffle, built):
    capture = waffle.run(built("values.c"))
    text = on_terminal(waffle, ["report", capture.path], NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*m", text)
    quiet = waffle.ok("report", capture.path)
    assert "\x1b" not in quiet.stdout


def test_help_and_version_work_without_privileges(waffle):
    for arguments in (["--help"], ["help"], ["help", "attach"], ["attach", "--help"]):
        result = waffle.ok(*arguments)
        assert "Usage: waffle-bpf" in result.stdout and result.stderr == ""


def test_an_export_does_not_replace_its_own_capture(waffle, steps):
    capture = waffle.attach("-p", steps.pid, "-q", "--no-report", "-d", "50ms").wait()
    before = capture.path.read_bytes()
    for form in ("perfetto", "chrome", "ndjson"):
        waffle.fails(1, "export", capture.path, "--format", form, "-o", capture.path,
                     says="is the capture itself")  # fmt: skip
    assert capture.path.read_bytes() == before


def test_a_cut_off_file_accounts_for_what_it_holds(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    steps.ask("event 2000", "did")
    capture = attached.stop()
    whole = capture.info()["records"]
    data = capture.path.read_bytes()
    for part in (0.5, 0.8, 0.95):
        cut = Capture(waffle, waffle.path())
        cut.path.write_bytes(data[: int(len(data) * part)])
        records = cut.info()["records"]
        assert records["produced"] == records["delivered"] + records["lost"]
        events = len(cut.rows("event"))
        assert events <= records["delivered"] <= whole["delivered"]


def test_why_of_a_cut_off_file_without_spans_says_that_it_is_cut_off(waffle, steps):
    attached = waffle.attach_to(steps, steps.path)
    size = attached.capture.path.stat().st_size
    steps.ask("event 1", "did")
    wait_until(lambda: attached.capture.path.stat().st_size > size, "a chunk without spans")
    steps.ask("span 3", "did")
    capture = attached.stop()
    data = capture.path.read_bytes()
    cut = waffle.path()
    for size in range(len(data) - 1, 0, -16):
        cut.write_bytes(data[:size])
        result = waffle.call("why", cut)
        if result.returncode:
            break
    assert "there are no spans in what is left of the file, which is cut off" in result.stderr
    says = "there are no spans in what is left of the file, which is cut off"
    waffle.fails(1, "why", "--span", "step", cut, says=f"no span 'step': {says}")


def test_threads_keep_their_names_in_a_window(waffle, built, start):
    program = start(built("flood.c"))
    program.until("ready")
    capture = waffle.attach("-p", program.pid, "-q", "--no-report", "-d", "600ms").wait()
    program.finish()
    # Two spans in the middle, whenever the machine let them run.
    info, spans = capture.info(), sorted(capture.rows("span"), key=lambda row: row["start_ns"])
    one, two = (row["start_ns"] - info["start_ns"] for row in spans[len(spans) // 2 :][:2])
    out = capture.path.with_suffix(".ndjson")
    waffle.ok("export", capture.path, "--format", "ndjson", "--from", f"{one}ns",
              "--to", f"{two + 1}ns", "-o", out)  # fmt: skip
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    spans = [row for row in rows if row["kind"] == "span"]
    assert spans and {row["comm"] for row in spans} == {"flood"}


@pytest.mark.parametrize("command", [
    ["gpu"], ["report"], ["report", "--json"], ["why", "--thread", "calls"], ["view"],
    ["export", "-o", "-"], ["export", "--format", "ndjson", "-o", "-"]])
def test_times_after_the_end_of_a_capture_show_where_to_look(waffle, command):
    capture = ROOT / "tests/golden/captures/gpu-calls.waffle"
    waffle.fails(1, *command, "--from", "1h", capture, says="waffle-bpf info shows how long")


def test_more_calls_than_there_is_room_for(waffle, built, tmp_path):
    """A pattern that takes all the room is said to, and so is what came too late for it."""
    more = tmp_path / "more.c"
    more.write_text("".join(f"void more{i}(void);\nvoid more{i}(void) {{ }}\n"
                            for i in range(4100)), encoding="ascii")
    program = built("left.c", str(more))
    result = waffle.ok("list", "--probe", "uprobe:exe:more*",
                       "--probe", "usdt:exe:left:step__start", program)
    assert f"{program}: 4096 calls\n" in result.stdout
    lines = result.stderr.splitlines()
    assert len(lines) == 2 and all("there is room for 4096 calls in all" in x for x in lines)
    assert re.search(r"--probe: more\d+ and 3 more of ", lines[0]), lines
    assert re.search(rf"--probe: step__start( and \d more)? of {program} (is|are) not", lines[1])

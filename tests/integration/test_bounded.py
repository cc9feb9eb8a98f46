# SPDX-License-Identifier: Apache-2.0
"""What the tracer takes of time and memory is bounded, whatever programs and machines do to it."""

import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

import pytest

from tracer import PROGRAMS, Capture, export_formats, monotonic_ns, named, parse_log, wait_until

# Until the end of the recording after it was asked for. It takes 0.1 s on an idle machine; the bound
# is that of a machine whose CPUs are all taken several times over.
SOON_NS = 1_000_000_000


# Of the tracer's own memory. It grows and shrinks with the parts of the file that are being written,
# between 15 and 50 MiB. Three seconds of the programs below produce more than that.
OWN_MEMORY = 96 << 20


def own_memory(pid):
    """Bytes of memory that a process has for itself alone."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has no memory")


def deluge(start, built, threads=3):
    program = start(built("deluge.c"), str(threads))
    program.until("ready")
    return program


def test_ctrl_c_is_heard_and_memory_is_bounded_while_programs_are_faster_than_the_drain(
    waffle, built, start
):
    program = deluge(start, built)
    attached = waffle.attach("--no-report", "--pid", program.pid)
    attached.wait_armed(program.pid, built("deluge.c"))
    os.setpriority(os.PRIO_PROCESS, attached.process.pid, 19)  # slower than they are for certain
    own = []
    for _ in range(6):
        time.sleep(0.5)
        own.append(own_memory(attached.process.pid))
    os.setpriority(os.PRIO_PROCESS, attached.process.pid, 0)
    asked = monotonic_ns()
    attached.signal()
    capture = attached.wait()
    program.kill()
    info = capture.info()
    records = info["records"]
    assert info["end_ns"] - asked < SOON_NS
    assert records["produced"] == records["delivered"] + records["lost"]
    assert records["delivered"] > 0
    assert max(own) < OWN_MEMORY


def test_a_duration_ends_in_time_while_programs_are_faster_than_the_drain(waffle, built, start):
    program = deluge(start, built)
    attached = waffle.attach("-d", "1s", "--no-report", "--pid", program.pid)
    attached.wait_armed(program.pid, built("deluge.c"))
    armed = monotonic_ns()
    capture = attached.wait()
    program.kill()
    assert capture.info()["end_ns"] - armed < 1_000_000_000 + SOON_NS


READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
while True:
    os.pread(fd, 10, 0)
"""


@pytest.fixture
def slow_file(tmp_path, start):
    """A file of a file system that soon stops to answer, and what makes it stop."""
    folder, hung = tmp_path / "slow", tmp_path / "hung"
    folder.mkdir()
    server = start(sys.executable, PROGRAMS.parent / "slow_fuse.py", folder, hung)
    server.until("ready")
    yield folder / "file", hung.touch
    server.kill()
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_file_system_that_does_not_answer_stops_nothing(waffle, slow_file, start):
    path, hang = slow_file
    reader = start(sys.executable, "-c", READER, path)
    reader.until("ready")
    hang()
    begun = monotonic_ns()
    attached = waffle.attach("-d", "1s", "--no-report", "-p", reader.pid)
    capture = attached.wait(timeout=60)
    assert capture.info()["end_ns"] - begun < 10_000_000_000
    waits = [row for row in capture.rows() if str(path) in json.dumps(row)]
    assert len(waits) > 5, "the waits for the file have its name"


@contextlib.contextmanager
def served(tmp_path, start, library):
    """A library of a file system that soon stops to answer, and what makes it stop."""
    folder, hung = tmp_path / "slow", tmp_path / "hung"
    folder.mkdir()
    server = start(sys.executable, PROGRAMS.parent / "slow_fuse.py", folder, hung, library)
    server.until("ready")
    try:
        yield folder / "file", hung.touch
    finally:
        server.kill()
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def slow_library(tmp_path, start, built):
    with served(tmp_path, start, built("library.c", "-shared", "-fPIC", name="served.so")) as both:
        yield both


def test_a_library_whose_file_system_does_not_answer_stops_nothing(
    waffle, slow_library, start, built
):
    library, hang = slow_library
    program = start(built("filtered.c"))
    program.until("ready")
    program.ask(f"library {library} 0", "opened")
    program.say("go")
    program.until("did library")
    hang()
    attached = waffle.attach("--no-report", "-p", program.pid)
    attached.wait_armed(program.pid, built("filtered.c"))
    program.ask("events 4", "did")
    begun = monotonic_ns()
    capture = attached.stop(timeout=60)
    assert capture.info()["end_ns"] - begun < SOON_NS
    assert len(named(capture.rows(), "copy")) == 4
    assert f"{library}: its file system does not answer; its sites are not armed" in (
        capture.result.stderr
    )


def test_a_program_in_a_folder_that_does_not_answer_is_armed(waffle, slow_library, start, built):
    file, hang = slow_library
    path = waffle.path()
    shell = start(waffle.program, "run", "--no-report", "-o", path, "--", "sh")
    shell.ask(f"cd {file.parent}; echo there", "there")
    hang()
    [said] = parse_log(["began " + shell.ask(f"{built('begins.c')} began 0", "began")])
    shell.finish()
    [row] = named(Capture(waffle, path).rows(), "began")
    assert row["pid"] == said["pid"]


# Its next environment is in memory that is read from the file, of a part that nobody has read.
EXECUTES = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.execve.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
file = open(sys.argv[1])
memory = libc.mmap(None, 4096, 1, 2, file.fileno(), 4 << 20)
assert memory < 1 << 63
print("ready", flush=True)
sys.stdin.readline()
print("executes", flush=True)
libc.execve(b"/bin/true", (ctypes.c_char_p * 2)(b"true", None), memory)
"""


@pytest.fixture
def large_library(tmp_path, built):
    library = tmp_path / "large.so"
    library.write_bytes(built("library.c", "-shared", "-fPIC", name="served.so").read_bytes())
    os.truncate(library, 8 << 20)
    return library


def test_memory_whose_file_system_does_not_answer_stops_nothing(
    waffle, tmp_path, large_library, start, built
):
    """A program chooses what memory the tracer reads before its exec."""
    other = start(built("filtered.c"))
    other.until("ready")
    with served(tmp_path, start, large_library) as (file, hang):
        program = start(sys.executable, "-c", EXECUTES, file)
        program.until("ready")
        hang()
        attached = waffle.attach("--follow", "--no-report", "-p", program.pid, "-p", other.pid)
        attached.wait_armed(other.pid, built("filtered.c"))
        program.ask("go", "executes")
        other.ask("events 4", "did")
        begun = monotonic_ns()
        capture = attached.stop(timeout=60)
        assert capture.info()["end_ns"] - begun < SOON_NS
    assert len(named(capture.rows(), "copy")) == 4


def test_a_program_that_can_not_be_read_is_not_said_to_have_no_sites(waffle, tmp_path, start, built):
    with served(tmp_path, start, built("steps.c")) as (file, hang):
        program = start(file)
        program.until("ready")
        hang()
        attached = waffle.attach("--no-report", "-p", program.pid)
        attached.wait_armed(program.pid)
        capture = attached.stop(timeout=60)
    assert f"{file}: its file system does not answer" in capture.result.stderr
    assert "no sites" not in capture.result.stderr


def test_names_that_take_for_ever_stop_neither_the_drain_nor_the_end(waffle, built, start):
    path = built("hostile_names.c", "-rdynamic")
    program = start(path, 300)
    program.until("ready")
    attached = waffle.attach("--no-report", "-p", program.pid)
    attached.wait_calls(waffle, program.pid, path)
    program.say("go")
    program.until("named")
    # Each name takes a tenth of a second until it is given up; a name that is not, a minute.
    capture = attached.stop(timeout=40)
    assert len(named(capture.rows(), "named")) == 1
    assert len(capture.rows("span", name="__cudaRegisterFunction")) == 300
    # Nobody asks about this book-keeping, so reports leave it out, and `why` only takes it by name.
    assert "__cudaRegisterFunction" not in [row["name"] for row in capture.report()["spans"]]
    assert "300 calls of book-keeping are left out" in capture.report_text()
    assert not re.search("^__cudaRegisterFunction", waffle.ok("why", capture.path).stdout, re.M)
    assert "__cudaRegisterFunction" in waffle.ok("why", "--span", "__cudaRegisterFunction",
                                                 capture.path).stdout  # fmt: skip
    assert "some functions have no names" in capture.result.stderr


def test_a_reader_of_messages_that_has_stopped_stops_nothing(waffle, start, tmp_path):
    program = start("cat")
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        while os.write(theirs, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(theirs, True)
    path = tmp_path / "unread.waffle"
    command = [waffle.program, "attach", "-d", "500ms", "--no-report", "-o", path]
    tracer = subprocess.Popen(
        [*map(str, command), "-p", str(program.pid)],
        stderr=theirs,
    )
    os.close(theirs)

    def ended():
        info = waffle.call("info", "--json", path)
        return info.returncode == 0 and not json.loads(info.stdout)["truncated"]

    wait_until(ended, "end of the capture", timeout=20)
    assert tracer.poll() is None, "it waits to print its summary"
    text = b""
    while chunk := os.read(ours, 65536):
        text += chunk
    os.close(ours)
    assert tracer.wait(20) == 0
    said = text.decode().strip("x")
    assert "no sites" in said and "records in" in said, said


def test_a_capture_that_takes_more_memory_than_allowed_ends_with_one_line(waffle, maker):
    path = waffle.path()
    subprocess.run([maker, "bench", path, "2000000"], check=True)
    assert path.stat().st_size < 40 << 20
    for command in ("report", "info", "why", "view"):
        waffle.fails(1, command, "--memory-limit", "64MiB", path, says="the limit is 64.0 MiB")
    waffle.ok("report", path)


READERS = {
    "report": ["report"],
    "report --json": ["report", "--json"],
    "report --html": ["report", "--html", "{out}"],
    "why": ["why"],
    "view": ["view"],
    "info": ["info"],
    **{
        f"export {form}": ["export", "-f", form, "-o", "{out}"]
        for form in export_formats()
    },
}


@pytest.fixture(scope="module")
def bomb(maker, tmp_path_factory):
    path = tmp_path_factory.mktemp("bomb") / "bomb.waffle"
    subprocess.run([maker, "alike", path, "8000000"], check=True)
    assert path.stat().st_size < 1 << 20
    return path


@pytest.mark.parametrize("reader", READERS)
def test_a_small_capture_of_very_many_records_takes_no_more_memory_than_allowed(
    waffle, bomb, tmp_path, reader
):
    out = tmp_path / "out"
    command = [part.format(out=out) for part in READERS[reader]]
    result = waffle.call(*command, "--memory-limit", "100MiB", bomb)
    # What goes through it record by record may get by with that.
    if result.returncode:
        assert result.returncode == 1
        assert "the limit is 100 MiB" in result.stderr and result.stderr.count("\n") == 1
        assert "read a part of the file with --from and --to" in result.stderr
        assert not out.exists()
    else:
        assert reader == "export records"
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2 << 20  # KiB


# The peak of a process includes what its parent had at the fork, so a small process starts the command.
PEAK = """
import os, sys
out = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=out)
_, status, usage = os.wait4(pid, 0)
assert status == 0
print(usage.ru_maxrss * 1024)
"""


@pytest.mark.parametrize("command, most", [(["report"], 97), (["why", "--slowest", "10"], 80)])
def test_a_record_takes_a_bounded_amount_of_memory(waffle, maker, tmp_path, command, most):
    """The memory that 900,000 records more take, so that what the program itself needs does not count."""
    peaks = []
    for records in (100_000, 1_000_000):
        path = tmp_path / f"{records}.waffle"
        subprocess.run([maker, "bench", path, str(records)], check=True)
        peak = subprocess.run([sys.executable, "-c", PEAK, waffle.program, *command, path],
                              stdout=subprocess.PIPE, check=True)
        peaks.append(int(peak.stdout))
    assert (peaks[1] - peaks[0]) / 900_000 < most


def test_max_size_ends_the_capture_with_what_it_has(waffle, built, start):
    program = deluge(start, built)
    attached = waffle.attach("--max-size", "4MiB", "--no-report", "--pid", program.pid)
    capture = attached.wait()
    program.kill()
    assert "has reached its --max-size of 4.00 MiB" in capture.result.stderr
    assert 1 << 20 < capture.path.stat().st_size <= 4 << 20
    info = capture.info()
    assert not info["truncated"]
    assert info["records"]["produced"] == info["records"]["delivered"] + info["records"]["lost"]


def test_more_processes_than_descriptors_are_followed_to_their_ends(waffle, built, start):
    count = 700

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (768, 768))

    program = start(built("crowd.c"), str(count))
    program.until("ready")
    # Links of their own would take more descriptors than there are.
    attached = waffle.attach("-f", "--machine-wide", "--no-report", "-p", program.pid,
                             preexec_fn=few)
    attached.wait_armed(program.pid, built("crowd.c"))
    assert program.ask("go", "made=") == str(count)
    time.sleep(0.5)
    assert len(os.listdir(f"/proc/{attached.process.pid}/fd")) < 700
    program.finish()
    capture = attached.wait(timeout=30)  # it ends with the last process, which it must hear of
    for name in ("born", "dying"):
        assert {row["args"]["n"] for row in named(capture.rows(), name)} == set(range(count))
    assert len(named(capture.rows(), "alone")) == 1


def test_a_limit_below_the_descriptors_of_the_programs_says_how_many_are_needed(waffle, start):
    program = start("sleep", "100")

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    waffle.fails(1, "attach", "--duration", "100ms", "-p", program.pid, preexec_fn=few,
                 says="Too many open files; at least 200 descriptors are needed, raise 'ulimit -n'$")

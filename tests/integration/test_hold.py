# SPDX-License-Identifier: Apache-2.0
"""How run holds new programs until they are armed, and whom its probes hit."""

import collections
import ctypes
import mmap
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from tracer import PROGRAMS, Capture, compile_program, find_tool, named, parse_log, wait_until

TRAP = {"x86_64": b"\xcc", "aarch64": b"\x05\x00\x20\xd4"}[os.uname().machine]


def began(capture):
    return named(capture.rows(), "began")


def said(text):
    return [row for row in parse_log(text.splitlines()) if row["kind"] == "began"]


def next_began(program):
    return parse_log(["began " + program.until("began")])[0]


# ---- a parent sees nothing ----


def observed(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                            stdin=subprocess.DEVNULL, **options)
    return result.returncode, result.stdout, result.stderr


def parents(folder):
    job = folder / "job.sh"
    job.write_text("set -m\n(sleep 0.05; echo done) > out || echo failed: $?\ncat out\n")
    wait = folder / "wait.py"
    wait.write_text(
        "import os\n"
        "pid = os.posix_spawn('/bin/sleep', ['sleep', '0.05'], os.environ)\n"
        "states = []\n"
        "while not states or not os.WIFEXITED(states[-1]):\n"
        "    states.append(os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)[1])\n"
        "print(states)\n"
    )
    return {
        "su": ["su", "nobody", "-s", "/bin/sh", "-c", "sleep 0.05; echo ran"],
        "runuser": ["runuser", "-u", "nobody", "--", "sh", "-c", "sleep 0.05; echo ran"],
        "script": ["script", "-qec", "sleep 0.05; echo ran", "/dev/null"],
        "job control": ["bash", str(job)],
        "waitpid": [sys.executable, str(wait)],
    }


@pytest.mark.parametrize("parent", ["su", "runuser", "script", "job control", "waitpid"])
def test_a_parent_does_not_see_that_its_child_is_held(waffle, tmp_path, parent):
    command = parents(tmp_path)[parent]
    find_tool(command[0])
    expected = observed(*command, cwd=tmp_path)
    assert expected[0] == 0 and expected[1]
    code, out, said = observed(waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--",
                               *command, cwd=tmp_path)  # fmt: skip
    # On a busy machine such a short capture may end before all files are read.
    unread = "the capture ended while it was parsed"
    rest = "".join(line for line in said.splitlines(keepends=True) if unread not in line)
    assert (code, out, rest) == expected


# ---- every program is armed before it begins ----


@pytest.fixture(scope="module")
def execs(built):
    return built("begins.c")


def check_began(capture, program, count=1):
    rows = said(capture.result.stdout)
    assert len(rows) == count
    assert sorted(row["pid"] for row in began(capture)) == sorted(row["pid"] for row in rows)
    assert "began before" not in capture.result.stderr
    return rows


def test_three_hundred_short_programs_are_each_seen_from_their_first_event(waffle, execs):
    capture = waffle.run(execs, "many", 300, execs)
    check_began(capture, execs, 300)
    capture.check_sums(lost=0)


def test_a_program_without_libraries(waffle, tmp_path):
    program = compile_program("begins.c", tmp_path / "static", "-static")
    check_began(waffle.run("sh", "-c", f"{program} began 0; true"), program)


def test_a_script_and_the_interpreter_that_it_names(waffle, execs, tmp_path):
    copy = tmp_path / "execs"
    shutil.copy(execs, copy)
    script = tmp_path / "script"
    script.write_text(f"#!{copy} began\n")
    script.chmod(0o755)
    for command in ([script], ["sh", "-c", f"{script}; true"]):
        capture = waffle.run(*command)
        assert len(began(capture)) == 1


def test_programs_on_a_file_system_of_memory_and_on_an_overlay(waffle, execs, tmp_path):
    script = tmp_path / "mounts.sh"
    script.write_text(
        f"mount -t tmpfs none {tmp_path}/m && cd {tmp_path}/m && mkdir lower upper work all\n"
        f"cp {execs} lower/execs\n"
        "mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work all || exit 9\n"
        "lower/execs began 0\n"
        "for i in 1 2 3; do all/execs began 0; done\n"
    )
    (tmp_path / "m").mkdir()
    capture = waffle.run("unshare", "-m", "sh", script)
    check_began(capture, execs, 4)


def test_a_program_that_sees_a_hundred_file_systems(waffle, execs, tmp_path):
    """As of containers. The program is on the one that was mounted last."""
    script = tmp_path / "mounts.py"
    script.write_text(
        "import ctypes, os, shutil, subprocess\n"
        "mount = ctypes.CDLL(None, use_errno=True).mount\n"
        "for i in range(100):\n"
        f"    place = f'{tmp_path}/m{{i}}'\n"
        "    os.mkdir(place)\n"
        "    assert not mount(b'none', place.encode(), b'tmpfs', 0, None)\n"
        f"shutil.copy('{execs}', place)\n"
        "subprocess.run(['/bin/true'], check=True)\n"
        f"subprocess.run([f'{{place}}/{execs.name}', 'began', '0'], check=True)\n"
    )
    capture = waffle.run("unshare", "-m", sys.executable, script)
    [row] = said(capture.result.stdout)
    assert [began_row["pid"] for began_row in began(capture)] == [row["pid"]]
    assert execs.name not in capture.result.stderr  # `true` is held while all are marked


def test_a_file_system_that_has_the_number_of_one_that_is_gone(waffle, execs, tmp_path):
    """The kernel frees the number some time after the unmount."""
    place = tmp_path / "m"
    place.mkdir()
    script = tmp_path / "mounts.sh"
    script.write_text(
        f"add() {{ mount -t tmpfs none {place}; now=$(stat -c %d {place}); }}\n"
        f"run() {{ cp {execs} {place} && {place}/{execs.name} began 0; }}\n"
        "add; run; first=$now; now=\n"
        f"for i in $(seq 200); do until umount {place} 2> {tmp_path}/busy; do sleep 0.01; done\n"
        "sleep 0.05; add; [ $now = $first ] && break; done\n"
        "run; [ $now = $first ]\n"
    )
    check_began(waffle.run("unshare", "-m", "sh", script), execs, 2)


def test_a_variable_for_the_loader_that_was_exported_by_a_shell(waffle, tmp_path):
    library = compile_program("library.c", tmp_path / "liblate.so", "-shared", "-fPIC")
    compile_program("needs_library.c", tmp_path / "user", f"-L{tmp_path}", "-llate")
    (tmp_path / "elsewhere").mkdir()
    library.rename(tmp_path / "elsewhere" / library.name)
    capture = waffle.run("sh", "-c",
                         f"export LD_LIBRARY_PATH={tmp_path}/elsewhere; {tmp_path}/user; true")
    events = named(capture.rows(), "library event")
    assert [row["args"]["i"] for row in events] == list(range(-1, 100))


def test_an_exec_by_another_thread_is_armed_and_said_to_be_late(waffle, execs, tmp_path):
    """The kernel binds probes to the main thread, which such an exec replaces."""
    first, moved, last = (shutil.copy(execs, tmp_path / name) for name in ("first", "moved", "last"))
    capture = waffle.run("sh", "-c", f"{first} thread {moved}; {last} began 0",
                         options=["--probes", "malloc"])
    rows = said(capture.result.stdout)
    assert len(rows) == 2
    assert rows[1]["pid"] in {row["pid"] for row in began(capture)}
    # On a busy machine, others may be late, too. Each is counted once.
    late = re.findall(r"(\d+) programs? began before being armed.*\((.*)\)",
                      capture.result.stderr)
    names = [name for _, listed in late for name in listed.split(", ")]
    assert "moved" in names and sum(int(count) for count, _ in late) == len(set(names))


@pytest.mark.parametrize("stopped", [None, 0, 1])
def test_two_waffles_see_each_program_from_its_first_event(waffle, execs, start, stopped):
    """The gates hold a program one after the other. One whose tracer is stopped takes its full time,
    which does not count for the other."""
    shell = start("sh", "-c", f"echo ready; read go; {execs} many 10 {execs}; echo done; read go")
    shell.until("ready")
    both = [waffle.attach("--follow", "-q", "--no-report", "-p", shell.pid) for _ in range(2)]
    for attached in both:
        attached.wait_armed(shell.pid)
    if stopped is not None:
        os.kill(both[stopped].process.pid, signal.SIGSTOP)
    shell.say("go")
    pids = sorted(next_began(shell)["pid"] for _ in range(10))
    shell.until("done")
    if stopped is not None:
        os.kill(both[stopped].process.pid, signal.SIGCONT)
    for i, attached in enumerate(both):
        capture = attached.stop()
        if i != stopped:
            assert sorted(row["pid"] for row in began(capture)) == pids
            assert "began before" not in capture.result.stderr


# ---- a program is not held for long ----


def test_a_program_starts_while_the_tracer_is_stopped(waffle, execs, start):
    attached = start(waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--",
                     "sh", "-c", f"echo ready; read go; {execs} began 0; read end")
    attached.until("ready")
    os.kill(attached.pid, signal.SIGSTOP)
    try:
        before = time.monotonic()
        attached.say("go")
        next_began(attached)
        # It was held, and let go although the tracer answers nothing.
        assert time.monotonic() - before > 0.05
    finally:
        os.kill(attached.pid, signal.SIGCONT)


def process_of(pid, name):
    """A child of the tracer."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text(encoding="utf-8").split():
            if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == f"{name}\n":
                return int(child)
    return None


def gate_of(pid):
    return process_of(pid, "waffle-gate")


def running(waffle, start, command):
    with open(waffle.folder / "errors", "w", encoding="utf-8") as errors:
        traced = start(waffle.program, "run", "--no-report", "-o", waffle.path(), "--", "sh",
                       "-c", command, stderr=errors)
    traced.until("ready")
    return traced, wait_until(lambda: gate_of(traced.pid), "the gate runs")


def test_a_shells_environment_is_not_read_string_by_string(waffle, start):
    """Its variables lie where the program began, and those that it has set in its heap."""
    names = [f"VARIABLE_{i}" for i in range(60)]
    command = f"export {names[0]}=changed; echo ready; read go; true; for i in {' '.join(names)}; do /bin/true; done; echo done; read end"
    with open(waffle.folder / "errors", "w", encoding="utf-8") as errors:
        traced = start(waffle.program, "run", "--no-report", "-o", waffle.path(), "--", "sh", "-c", command,
                       stderr=errors, env={**os.environ, **{name: "x" * 50 for name in names}})
    traced.until("ready")
    opener = wait_until(lambda: process_of(traced.pid, "waffle-opener"), "the opener runs")
    reads = re.compile(r"syscr: (\d+)")
    before = int(reads.search(pathlib.Path(f"/proc/{opener}/io").read_text(encoding="utf-8"))[1])
    traced.say("go")
    traced.until("done")
    after = int(reads.search(pathlib.Path(f"/proc/{opener}/io").read_text(encoding="utf-8"))[1])
    traced.say("end")
    assert len(names) < after - before < 30 * len(names)


@pytest.mark.parametrize("killed", ["tracer", "gate", "both"])
def test_programs_start_when_a_process_of_the_tracer_is_killed(waffle, execs, start, killed):
    traced, gate = running(waffle, start, f"echo ready; read go; {execs} began 0; read end")
    for pid, name in ((traced.pid, "tracer"), (gate, "gate")):
        if killed in (name, "both"):
            os.kill(pid, signal.SIGKILL)
    traced.say("go")
    next_began(traced)
    wait_until(lambda: not pathlib.Path(f"/proc/{gate}").exists(), "the gate ends")
    subprocess.run(["true"], check=True, timeout=10)


def test_programs_of_all_start_when_the_gate_is_stopped(waffle, execs, start):
    traced, gate = running(waffle, start, f"echo ready; read go; {execs} began 0; read end")
    os.kill(gate, signal.SIGSTOP)
    subprocess.run(["true"], check=True, timeout=10)
    wait_until(lambda: gate_of(traced.pid) is None, "the kernel kills the gate")
    traced.say("go")
    next_began(traced)
    errors = waffle.folder / "errors"
    wait_until(lambda: "killed or stopped" in errors.read_text(encoding="utf-8"), "it is said")


def following(waffle, start, pid):
    """waffle-bpf attach --follow, and its gate."""
    with open(waffle.folder / "errors", "w", encoding="utf-8") as errors:
        tracer = start(waffle.program, "attach", "--follow", "--no-report", "-o", waffle.path(),
                       "-p", pid, stderr=errors)
    return tracer, wait_until(lambda: gate_of(tracer.pid), "the gate runs")


@pytest.fixture
def users_folder():
    """A folder of nobody's, where nobody may use FUSE, as users of most machines may."""
    with tempfile.TemporaryDirectory(prefix="waffle-public-") as folder:
        os.chown(folder, 65534, 65534)
        os.mknod(f"{folder}/fuse-device", 0o600 | stat.S_IFCHR, os.makedev(10, 229))
        os.chown(f"{folder}/fuse-device", 65534, 65534)
        yield folder


def test_the_gate_opens_no_file_whose_server_is_a_user(waffle, users_folder, start):
    """While such a server does not answer, the gate could not be killed, and no program of the
    machine would start."""
    user = start(sys.executable, PROGRAMS.parent / "users_overlay.py", 65534,
                 f"{users_folder}/fuse-device", users_folder, 1.5)
    user.until("ready")
    _, gate = following(waffle, start, user.pid)
    user.say("go")
    assert user.until("exit ") == "0"
    time.sleep(0.7)  # longer than a gate that does not come back is left alone
    assert pathlib.Path(f"/proc/{gate}").exists()
    assert "killed or stopped" not in (waffle.folder / "errors").read_text(encoding="utf-8")


LEASE = """
import fcntl, os, signal, sys, time
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_write_lease_makes_only_the_exec_of_its_own_file_fail(waffle, execs, users_folder, start):
    """The kernel opens each file for the gate. Whoever has a lease could let it wait for 45 s, and
    with it all programs of the machine. The file system is this test's own: other gates do not
    watch it."""
    (waffle.folder / "lease.py").write_text(LEASE)
    script = waffle.folder / "script"
    script.write_text(
        f"mount -t tmpfs none {users_folder} && cp /bin/true {users_folder}/leased\n"
        f"chown 65534 {users_folder} {users_folder}/leased\n"
        f"{execs} began 0\n"
        f"{sys.executable} {waffle.folder}/lease.py {users_folder}/leased & \n"
        f"read go; {users_folder}/leased; echo exit $?; {execs} began 0; kill $!\n"
    )
    traced, gate = running(waffle, start, f"exec unshare -m sh {script}")
    traced.say("go")
    subprocess.run(["true"], check=True, timeout=10)
    assert traced.until("exit ") == "126"
    # The same gate holds the next program.
    pid = next_began(traced)["pid"]
    assert pathlib.Path(f"/proc/{gate}").exists()
    traced.process.wait(60)
    capture = Capture(waffle, waffle.folder / f"capture-{waffle.count}.waffle")
    assert pid in [row["pid"] for row in began(capture)]


# ---- whom probes hit ----


Mapping = collections.namedtuple("Mapping", "start end offset path")


def file_mappings(pid):
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6:
            start, end = (int(word, 16) for word in words[0].split("-"))
            yield Mapping(start, end, int(words[2], 16), words[5])


def first_bytes_of_malloc(pid=None):
    # In a python that is not position-independent, CDLL(None).malloc is in the executable's PLT.
    address = ctypes.cast(ctypes.CDLL("libc.so.6").malloc, ctypes.c_void_p).value
    if pid is None:
        return ctypes.string_at(address, len(TRAP))
    # This process may have the file mapped elsewhere too, to read it.
    ours = next(m for m in file_mappings("self") if m.start <= address < m.end)
    offset = address - ours.start + ours.offset
    found = [m for m in file_mappings(pid)
             if m.path == ours.path and m.offset <= offset < m.offset + m.end - m.start]
    assert found, f"{ours} is not mapped in {pid}"
    theirs = found[0]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(theirs.start + offset - theirs.offset)
        return memory.read(len(TRAP))


def test_other_programs_do_not_hit_the_probes_of_run(waffle, start):
    before = first_bytes_of_malloc()
    sleeper = start("sleep", "60")
    with open(waffle.folder / "errors", "w", encoding="utf-8") as errors:
        traced = start(waffle.program, "run", "--no-report", "-o", waffle.path(), "--probes",
                       "malloc", "--", "sh", "-c", "echo ready $$; read go", stderr=errors)
    target = traced.until("ready")
    # It was armed before it began.
    said_first = (waffle.folder / "errors").read_text(encoding="utf-8")
    assert first_bytes_of_malloc(target) == TRAP, said_first
    assert first_bytes_of_malloc() == before != TRAP
    assert first_bytes_of_malloc(sleeper.pid) != TRAP


def privately_mapped(path):
    """As git, and tools of elfutils, read a file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE,
                                             mmap.PROT_READ) as memory:  # fmt: skip
        return bytes(memory)


@pytest.mark.parametrize("option", ["--quiet", "--machine-wide"])
def test_breakpoints_are_not_in_what_other_programs_read(waffle, built, start, option):
    """The kernel sets those of a uprobe that is not bound to processes in every private mapping."""
    path = built("family.c")
    before = privately_mapped(path)
    traced = start(waffle.program, "run", option, "--no-report", "-o", waffle.path(), "--",
                   path, "wait", "1", stderr=subprocess.DEVNULL)
    traced.until("ready")
    # It is armed: it could not have begun otherwise.
    found = privately_mapped(path)
    differs = {found[at : at + len(TRAP)] for at in range(len(before)) if before[at] != found[at]}
    assert TRAP in differs if option == "--machine-wide" else found == before
    traced.say("none")


def ticks(capture):
    return [row["args"]["i"] for row in named(capture.rows(), "tick")
            if row["args"]["who"] == "child"]


def test_a_forked_child_is_armed_soon_and_what_is_missing_is_said(waffle, built):
    capture = waffle.run(built("family.c"), "fork", 20000)
    seen = ticks(capture)
    # From some tick on it is all of them.
    assert seen and seen == list(range(20000 - len(seen), 20000))
    assert "1 child was forked from armed processes" in capture.result.stderr
    assert "--machine-wide" in capture.result.stderr


def test_machine_wide_a_forked_child_is_seen_from_its_first_instruction(waffle, built):
    capture = waffle.run(built("family.c"), "fork", 200, options=["--machine-wide"])
    assert ticks(capture) == list(range(200))
    assert "were forked" not in capture.result.stderr
    told = waffle.call("run", "--machine-wide", "--no-report", "-o", waffle.path(), "--", "true")
    assert told.stderr.count("--machine-wide: all programs that run the traced files") == 1


def test_many_processes_leave_nothing_open(waffle, execs, start):
    """Each takes links of its own, which end with it."""
    traced = start(waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--",
                   "sh", "-c", f"{execs} many 20 {execs}; echo first; read go;"
                               f"{execs} many 200 {execs}; echo ready; read go")

    def open_files():
        return len(os.listdir(f"/proc/{traced.pid}/fd"))

    traced.until("first")
    time.sleep(0.5)
    before = open_files()
    traced.say("go")
    traced.until("ready")
    wait_until(lambda: open_files() <= before + 5, "the links of ended processes are closed")
    traced.say("go")

# SPDX-License-Identifier: Apache-2.0
"""attach --gpu: libwaffle-gpu is loaded into running programs, which notice nothing of it."""

import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import pytest

from tracer import PROGRAMS, children_of, wait_until

PLAIN = "import time\nprint('ready', flush=True)\n"


def has_library(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return "libwaffle-gpu.so" in maps.read()


def attach(waffle, *arguments, code=0):
    result = waffle.call("attach", "-q", "--no-report", "-d", "10ms", "-o", waffle.path(), "--gpu",
                         *arguments)
    assert result.returncode == code, result.stderr
    return result.stderr


@pytest.mark.parametrize("call", ["poll", "epoll", "sleep", "futex"])
def test_program_keeps_registers_errno_and_mask(waffle, built, start, call):
    """All other threads of the program allocate memory all the time. It checks itself what it has
    after each call, and ends with an error if anything differs."""
    program = start(built("inject_target.c"), call, "2")
    program.until("ready")
    attach(waffle, "-p", program.pid)
    assert has_library(program.pid)
    before = int(program.ask("", "rounds"))
    wait_until(lambda: int(program.ask("", "rounds")) > before + 2, "rounds")
    assert program.finish()[-1] == "end"


def test_tracer_that_is_killed_at_any_moment_does_no_harm(waffle, built, start):
    """Also its process that does the loading. The program ends as if nothing had been."""
    for delay_ms in range(0, 60, 6):
        program = start(built("inject_target.c"), "poll", "1")
        program.until("ready")
        attached = waffle.attach("-q", "--no-report", "--gpu", "-p", program.pid,
                                 start_new_session=True)
        time.sleep(delay_ms / 1000)
        os.killpg(attached.process.pid, signal.SIGKILL)
        attached.process.wait()
        before = int(program.ask("", "rounds"))
        wait_until(lambda p=program, b=before: int(p.ask("", "rounds")) > b + 1, "rounds")
        assert program.finish()[-1] == "end"


def test_library_is_loaded_once(waffle, built, start):
    program = start(built("inject_target.c"), "poll", "1")
    program.until("ready")
    for _ in range(3):
        attach(waffle, "-p", program.pid)
    with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
        code = [line for line in maps if "libwaffle-gpu.so" in line and "r-xp" in line]
    assert len(code) == 1
    assert len([name for name in threads(program.pid) if name == "waffle-gpu"]) == 1
    program.finish()


def threads(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as comm:
            yield comm.read().strip()


@pytest.mark.parametrize("wait", ["time.sleep(3600)", "sys.stdin.read()",
                                  "threading.Event().wait()", "select.select([0], [], [])"])
def test_python_that_waits(waffle, start, wait):
    program = start(sys.executable, "-c", "import select, sys, threading\n" + PLAIN + wait)
    program.until("ready")
    attach(waffle, "-p", program.pid)
    assert has_library(program.pid)
    assert program.alive()


def test_signals_that_come_meanwhile_are_delivered(waffle, built, start):
    """One after the other, each when the one before has been handled, while the library is loaded:
    the handler counts all of them."""
    program = start(built("inject_target.c"), "signals", "1")
    program.until("ready")
    attached = waffle.attach("-q", "--no-report", "-d", "10ms", "--gpu", "-p", program.pid)
    sent = 0
    while attached.process.poll() is None:
        os.kill(program.pid, signal.SIGUSR1)
        sent += 1
        wait_until(lambda n=sent: int(program.ask("", "handled")) == n, "the signal")
    attached.wait()
    assert has_library(program.pid)
    assert program.finish()[-1] == "end"


def refused(waffle, pid, says):
    line = waffle.fails(1, "attach", "--gpu", "-p", pid, says=says)
    assert line.startswith("waffle-bpf: attach: --gpu: loading the library into process")


def test_stopped_and_traced_programs_are_left_alone(waffle, start):
    program = start(sys.executable, "-c", PLAIN + "time.sleep(3600)")
    program.until("ready")
    os.kill(program.pid, signal.SIGSTOP)
    refused(waffle, program.pid, "it is stopped")
    os.kill(program.pid, signal.SIGCONT)
    with subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(program.pid)],
                          stderr=subprocess.PIPE, text=True) as strace:
        strace.stderr.readline()
        refused(waffle, program.pid, f"process {strace.pid} traces it")
        strace.terminate()
    assert not has_library(program.pid)


def test_static_program_is_refused(waffle, built, start):
    program = start(built("inject_target.c", "-static"), "poll", "1")
    program.until("ready")
    refused(waffle, program.pid, "it is a static program, or its libc is not glibc")
    assert program.finish()[-1] == "end"


def test_program_with_musl_is_refused(waffle, built, start, tmp_path):
    source = tmp_path / "wait.c"
    source.write_text('#include <stdio.h>\n#include <unistd.h>\n'
                      'int main(void) { puts("ready"); fflush(stdout); return pause(); }\n')
    subprocess.run(["musl-gcc", source, "-o", tmp_path / "wait"], check=True)
    program = start(tmp_path / "wait")
    program.until("ready")
    refused(waffle, program.pid, "its libc is musl, not glibc")


def test_program_in_a_sandbox_is_refused(waffle, start):
    """A filter of its own, which allows everything."""
    code = """
import ctypes, struct
program = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000))
class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("at", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Filter(1, ctypes.addressof(program))), 0, 0) == 0
"""
    program = start(sys.executable, "-c", code + PLAIN + "time.sleep(3600)")
    program.until("ready")
    refused(waffle, program.pid, "its sandbox")


def test_program_that_never_waits_is_left_alone(waffle, start):
    program = start(sys.executable, "-c", PLAIN + "while True: pass")
    program.until("ready")
    refused(waffle, program.pid, "none of its threads waits")
    assert program.alive() and not has_library(program.pid)


@pytest.mark.parametrize("thread", ["main", "thread"])
def test_thread_on_a_small_stack_is_left_alone(waffle, built, start, thread):
    """Below the stack of a coroutine are other data of the program."""
    program = start(built("inject_fiber.c"), thread)
    program.until("ready")
    refused(waffle, program.pid, "none of its threads waits")
    assert program.finish()[-1] == "end"


def test_program_that_has_mapped_files_to_read_them(waffle, start):
    """As programs do that name functions: the files of the libraries are not the libraries."""
    code = f"""
import mmap
paths = {{line.split()[-1] for line in open("/proc/self/maps") if "libc.so.6" in line}}
kept = []
for path in [*paths, "{waffle.program.parent / 'libwaffle-gpu.so'}"]:
    with open(path, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
"""
    program = start(sys.executable, "-c", code + PLAIN + "time.sleep(3600)")
    program.until("ready")
    attach(waffle, "-p", program.pid)
    assert "waffle-gpu" in threads(program.pid)
    assert program.alive()


def test_program_in_other_namespaces_that_sees_the_file(waffle, start):
    """As in a container that has the library at the same place, where the process is number 1 or 2."""
    program = start("unshare", "--mount", "--pid", "--fork", "--mount-proc", sys.executable, "-c",
                    PLAIN + "time.sleep(3600)")
    program.until("ready")
    [pid] = children_of(program.pid)
    attach(waffle, "-p", pid)
    assert "waffle-gpu" in threads(pid)
    os.kill(pid, signal.SIGKILL)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def test_program_that_waits_in_vfork_and_its_child_are_left_alone(waffle, start, tmp_path):
    """The parent can't be interrupted, and the child has the parent's memory."""
    source, path = tmp_path / "vforks.c", tmp_path / "vforks"
    source.write_text("""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	if (!vfork()) {
		write(1, "ready\\n", 6);
		pause();
		_exit(0);
	}
}
""")
    subprocess.run(["gcc", "-w", source, "-o", path], check=True)
    program = start(path)
    program.until("ready")
    [child] = children_of(program.pid)
    wait_until(lambda: state_of(child) == "S" and state_of(program.pid) == "D", "both wait")
    refused(waffle, child, f"it has the memory of process {program.pid}")
    refused(waffle, program.pid, "none of its threads waits")
    assert not has_library(program.pid)
    os.kill(child, signal.SIGKILL)


def test_program_with_32_bits_is_refused(waffle, start, tmp_path):
    """A file that only has a header and the code of pause()."""
    path = tmp_path / "small"
    code = b"\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7"
    base, size = 0x08048000, 84 + 9
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1,
                         0, 0, 0)
    path.write_bytes(header + struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096) + code)
    path.chmod(0o755)
    program = start(path)
    wait_until(lambda: os.readlink(f"/proc/{program.pid}/exe") == str(path), "exec")
    refused(waffle, program.pid, "it is no program of x86-64")
    assert program.alive()


def test_program_that_gained_privileges_is_refused(waffle, start, tmp_path):
    os.chmod(tmp_path, 0o755)
    path = tmp_path / "sleep"
    path.write_bytes(pathlib.Path("/bin/sleep").read_bytes())
    os.chown(path, 65534, 65534)
    path.chmod(0o6755)
    program = start(path, "3600")
    wait_until(lambda: os.readlink(f"/proc/{program.pid}/exe") == str(path), "exec")
    line = waffle.fails(1, "attach", "--gpu", "-p", program.pid)
    assert "its program may not be read" in line or "it gained privileges" in line
    assert not has_library(program.pid)


def test_program_on_a_file_system_that_does_not_answer_is_refused(waffle, built, start, tmp_path):
    folder, hung = tmp_path / "folder", tmp_path / "hung"
    folder.mkdir()
    server = start(sys.executable, PROGRAMS.parent / "slow_fuse.py", folder, hung,
                   built("inject_target.c", "-static"))
    server.until("ready")
    try:
        program = start(folder / "file", "poll", "1")
        program.until("ready")
        hung.touch()
        refused(waffle, program.pid, "the file system of its program does not answer")
    finally:
        hung.unlink(missing_ok=True)
        subprocess.run(["umount", "-l", folder], check=True)
        server.kill()


@pytest.mark.parametrize("namespaces", [["--mount"], ["--mount", "--pid", "--fork", "--mount-proc"]])
def test_program_that_does_not_see_the_file_is_refused(waffle, start, namespaces):
    """It has another folder where the library is, as in a container."""
    script = f"mount -t tmpfs none {waffle.program.parent} && echo ready && exec sleep 3600"
    program = start("unshare", *namespaces, "sh", "-c", script)
    program.until("ready")
    [pid] = children_of(program.pid) if "--fork" in namespaces else [program.pid]
    wait_until(lambda: list(threads(pid)) == ["sleep"], "exec")
    refused(waffle, pid, "it does not see")
    assert list(threads(pid)) == ["sleep"]
    os.kill(pid, signal.SIGKILL)


def test_file_that_others_can_write_is_refused(waffle, start, tmp_path):
    """A copy of waffle-bpf with a library beside it that anybody can replace."""
    os.chmod(tmp_path, 0o755)
    for name in ("waffle-bpf", "libwaffle-gpu.so"):
        data = (waffle.program.parent / name).read_bytes()
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o755 if name == "waffle-bpf" else 0o777)
    program = start(sys.executable, "-c", PLAIN + "time.sleep(3600)")
    program.until("ready")
    waffle.program = tmp_path / "waffle-bpf"
    refused(waffle, program.pid, "others than root")
    assert not has_library(program.pid)

# SPDX-License-Identifier: Apache-2.0
"""Driving the real waffle-bpf on real processes: what the tests of attach and run share."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def wait_until(condition, what, timeout=60.0):
    """Polls until condition() is true, and returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"timed out: {what}")
        time.sleep(0.005)


def busy_share(seconds=0.3):
    """The share of this machine's CPU time that is in use now, from 0 to 1."""

    def look():
        with open("/proc/stat", encoding="ascii") as stat:
            ticks = [int(x) for x in stat.readline().split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]  # idle, and idle while a disk works

    all_before, idle_before = look()
    time.sleep(seconds)
    all_after, idle_after = look()
    return 1 - (idle_after - idle_before) / max(all_after - all_before, 1)


RUN_AGAIN = []  # what failed and was run again, a line each: conftest.py puts it into the report


def try_again(attempt, count):
    """The value of attempt(). If it fails, it is run again in a quiet moment of the machine, `count`
    times in all, and the report says so. It is for what a busy machine spoils: who gets the CPU, what
    takes how long, which of the waits have a stack within the budget (docs/sources.md). A test that
    also fails in a quiet moment fails; the message tells of each time."""
    failed = []
    while True:
        try:
            return attempt()
        except Exception as error:
            failed.append(f"try {len(failed) + 1} of {count}: {type(error).__name__}: {error}")
            if len(failed) == count:
                raise AssertionError("\n".join(failed)) from error
            RUN_AGAIN.append(failed[-1].splitlines()[0])
            end = time.monotonic() + 30
            while busy_share() > 0.1 and time.monotonic() < end:
                pass


def tries(count):
    """Of a test: it is tried again as in try_again()."""

    def decorate(test):
        @functools.wraps(test)
        def run(**fixtures):
            try_again(lambda: test(**fixtures), count)

        return run

    return decorate


def probed_bytes(pid, inode, offsets):
    """The bytes in a process's memory at these offsets of a file; None: not mapped."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        lines = [line.split(None, 5) for line in maps]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for offset in offsets:
            for fields in lines:
                start, end = (int(x, 16) for x in fields[0].split("-"))
                base = int(fields[2], 16)
                if int(fields[4]) == inode and base <= offset < base + end - start:
                    if "x" in fields[1]:
                        memory.seek(start + offset - base)
                        found.append(memory.read(1))
    return found


def monotonic_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def wait_probed(pid, library, sites):
    """Waits until a breakpoint is at the last probe that `list` shows for a library."""
    offset = max(probe["offset"] for site in sites for probe in site["probes"])
    plain = pathlib.Path(library).read_bytes()[offset]

    def is_probed():
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            lines = [line.split() for line in maps if line.rstrip().endswith(str(library))]
        for fields in lines:
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            at = offset - int(fields[2], 16)
            if 0 <= at < end - begin and "x" in fields[1]:
                with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                    memory.seek(begin + at)
                    return memory.read(1)[0] != plain
        return False

    wait_until(is_probed, f"probes in {library}")


# ---- semaphores, read without any of waffle's own code ----


def _elf_semaphores(path):
    """Addresses of all semaphores of an ELF file (from readelf's reading of the USDT notes), and
    the file offset and address of the segment that holds them."""
    notes = subprocess.run(
        ["readelf", "-nW", path], capture_output=True, text=True, check=False
    ).stdout
    found = {int(x, 16) for x in re.findall(r"Semaphore: (0x[0-9a-f]+)", notes)} - {0}
    segments = subprocess.run(
        ["readelf", "-lW", path], capture_output=True, text=True, check=False
    ).stdout
    loads = [
        tuple(int(x, 16) for x in m)
        for m in re.findall(
            r"LOAD\s+(0x[0-9a-f]+) (0x[0-9a-f]+) 0x[0-9a-f]+ (0x[0-9a-f]+)", segments
        )
    ]
    return sorted(found), loads


def semaphores(pid, path, elf=None):
    """Values of all semaphores of a file in a process; None if the file is not mapped there. `elf`
    is where to read the file if it is no longer at `path`."""
    addresses, loads = _elf_semaphores(elf or path)
    base = None
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            for line in maps:
                fields = line.split(None, 5)
                # The path of a file in another mount namespace is shown from that one's root on,
                # which may be above ours.
                if len(fields) == 6 and fields[5].removesuffix("\n").removesuffix(
                    " (deleted)"
                ).endswith(str(path)):
                    start = int(fields[0].split("-")[0], 16)
                    offset = int(fields[2], 16)
                    page = loads[0][1] - loads[0][0]
                    if offset == 0:
                        base = start - page
                        break
        if base is None:
            return None
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            values = []
            for address in addresses:
                memory.seek(base + address)
                values.append(struct.unpack("<H", memory.read(2))[0])
            return values
    except (FileNotFoundError, ProcessLookupError, OSError):
        return None


def children_of(pid):
    """The processes that the main thread of a process has started."""
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


# ---- the programs under test ----


def compile_program(source, out, *flags, compiler=None):
    """Compiles a program of tests/integration/programs as an application would be."""
    path = PROGRAMS / source
    cplusplus = path.suffix == ".cpp"
    command = [compiler or ("g++" if cplusplus else "gcc")]
    command += ["-std=c++17"] if cplusplus else ["-std=gnu11"]
    command += ["-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include"]
    out = pathlib.Path(out).resolve()
    command += ["-o", str(out), str(path), *flags, "-pthread"]
    subprocess.run(command, check=True, cwd=out.parent)  # where some leave more files
    return out


LIBRARIES = "-lbpf -lelf -ldw -lprotobuf-c -lzstd -lyajl -lseccomp -lz -lm -lpthread".split()


def compile_with_waffle(waffle_program, source, out, *flags):
    """Compiles a program of tests/integration that is linked with waffle's own library."""
    folders = [ROOT, ROOT / "userspace", ROOT / "include", ROOT / "tests" / "unit"]
    command = ["gcc", "-std=gnu17", "-O1", "-D_GNU_SOURCE", *[f"-I{folder}" for folder in folders]]
    command += [ROOT / "tests" / "integration" / source]
    command += [pathlib.Path(waffle_program).parent / "libwaffle-bpf.a", *LIBRARIES, *flags, "-o", out]
    subprocess.run(command, check=True)
    return out


class Program:
    """A running program that prints lines and obeys lines."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            [str(x) for x in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            **options,
        )
        self.pid = self.process.pid

    def line(self):
        text = self.process.stdout.readline()
        assert text, f"{self.process.args[0]} ended early: {self.process.wait()}"
        return text.rstrip("\n")

    def until(self, prefix):
        """The rest of the next line that begins so."""
        while True:
            text = self.line()
            if text.startswith(prefix):
                return text[len(prefix) :].strip()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text, prefix):
        self.say(text)
        return self.until(prefix)

    def alive(self):
        return self.process.poll() is None

    def finish(self, timeout=60):
        """Closes its input, and returns the rest of its output."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        assert self.process.wait(timeout) == 0, f"exit status {self.process.returncode}"
        return rest.splitlines()

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()


def parse_log(lines):
    """Lines of "kind key=value …": dicts, numbers as int."""
    rows = []
    for line in lines:
        words = line.split()
        row = {"kind": words[0]} if words else {}
        for word in words[1:]:
            key, _, value = word.partition("=")
            row[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
        if row:
            rows.append(row)
    return rows


def named(rows, name):
    """Spans, events and what else has that name; not states of threads."""
    return [row for row in rows if row.get("name") == name and row["kind"] != "sched"]


# ---- waffle-bpf ----


@dataclasses.dataclass
class Capture:
    """A .waffle file and what the commands say of it."""

    waffle: "Waffle"
    path: pathlib.Path
    result: subprocess.CompletedProcess = None

    def report(self, *options):
        return json.loads(self.waffle.ok("report", "--json", *options, self.path).stdout)

    def report_text(self):
        return self.waffle.ok("report", self.path).stdout

    def info(self):
        return json.loads(self.waffle.ok("info", "--json", self.path).stdout)

    def export(self, form, out=None):
        out = out or self.path.with_suffix("." + form)
        self.waffle.ok("export", self.path, "--format", form, "-o", out)
        return pathlib.Path(out)

    def rows(self, kind=None, **equal):
        """Objects of the NDJSON export."""
        with open(self.export("ndjson"), encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return [
            row
            for row in rows
            if (kind is None or row["kind"] == kind)
            and all(row.get(key) == value for key, value in equal.items())
        ]

    def records(self, kind=None):
        """Objects of the export of records."""
        with open(self.export("records"), encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        return [record for record in records if kind is None or record["kind"] == kind]

    def check_sums(self, lost=None):
        """Produced = delivered + lost, the same in report, info and NDJSON."""
        records = self.info()["records"]
        assert records["produced"] == records["delivered"] + records["lost"]
        assert self.report()["records"] == records
        [summary] = self.rows("summary")
        for key in ("produced", "delivered", "lost"):
            assert summary["records"][key] == records[key]
        if lost is not None:
            assert records["lost"] == lost
        return records


class Attached:
    """waffle-bpf attach in the background."""

    def __init__(self, waffle, arguments, path, **options):
        self.waffle = waffle
        self.capture = Capture(waffle, path)
        self.process = subprocess.Popen(
            [str(waffle.program), "attach", "-o", str(path), *[str(x) for x in arguments]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def check_runs(self):
        if self.process.poll() is not None:
            raise AssertionError(f"attach ended: {self.process.communicate()}")

    def wait_ready(self):
        """Waits until all is armed: the file has its name then."""

        def ready():
            self.check_runs()
            return self.capture.path.exists()

        wait_until(ready, "attach to be ready")
        return self

    def wait_armed(self, pid, *paths, timeout=60.0):
        """Waits until all semaphores of these files are up in a process."""

        def armed():
            self.check_runs()
            found = (semaphores(pid, path) for path in paths)
            return all(values and all(values) for values in found) and self.capture.path.exists()

        wait_until(armed, f"arming of {[str(p) for p in paths]} in {pid}", timeout)
        return self

    def wait_calls(self, waffle, pid, library):
        """Waits until the probes of all calls in a library are in a process's memory."""
        sites = json.loads(waffle.ok("list", "--json", library).stdout)["sites"]
        offsets = sorted({p["offset"] for s in sites for p in s.get("probes", [])})
        data, inode = pathlib.Path(library).read_bytes(), os.stat(library).st_ino
        plain = [data[offset : offset + 1] for offset in offsets]

        def armed():
            self.check_runs()
            now = probed_bytes(pid, inode, offsets)
            return now and all(a != b for a, b in zip(now, plain))

        wait_until(armed, f"probes in {library}")
        return self

    def links(self):
        """How many uprobe links are there."""
        found = 0
        for path in pathlib.Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            try:
                found += "link_type:\tuprobe_multi" in path.read_text()
            except OSError:
                pass
        return found

    def wait_links(self, count=2):
        """Waits until so many uprobe links are there, and all is armed: the file has its name then.
        A filter may need more links than the two of a file."""

        def armed():
            self.check_runs()
            return self.links() >= count and self.capture.path.exists()

        wait_until(armed, "links")
        return self

    def wait_notice(self):
        """The next line that it says while it runs."""
        return self.process.stderr.readline()

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def stop(self, timeout=60):
        """Ctrl-C, and the capture."""
        self.signal()
        return self.wait(timeout)

    def wait(self, timeout=60, code=0):
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == code, f"exit {self.process.returncode}: {err}"
        self.capture.result = subprocess.CompletedProcess(
            self.process.args, self.process.returncode, out, err
        )
        return self.capture

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Waffle:
    """The program under test, in a folder of its own."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.count = 0
        self.running = []

    def path(self, name=None):
        self.count += 1
        return self.folder / (name or f"capture-{self.count}.waffle")

    def call(self, *arguments, timeout=240, **options):
        """Runs a command to its end."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [str(self.program), *[str(x) for x in arguments]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
            **{"cwd": self.folder, **options},
        )

    def ok(self, *arguments, **options):
        result = self.call(*arguments, **options)
        assert result.returncode == 0, f"{arguments}: exit {result.returncode}: {result.stderr}"
        return result

    def fails(self, code, *arguments, says=None, **options):
        """The command fails with one clear line."""
        result = self.call(*arguments, **options)
        assert result.returncode == code, (
            f"{arguments}: exit {result.returncode}, not {code}: {result.stderr!r}"
        )
        lines = result.stderr.splitlines()
        assert len(lines) == 1, f"{arguments}: not one line: {result.stderr!r}"
        assert lines[0].startswith("waffle-bpf"), lines[0]
        if says:
            assert re.search(says, lines[0]), lines[0]
        return lines[0]

    def run(self, *command, options=(), code=0, **process_options):
        """waffle-bpf run: the capture, with the command's output in .result.stdout."""
        capture = Capture(self, self.path())
        capture.result = self.call(
            "run", "-q", "--no-report", "-o", capture.path, *options, "--", *command,
            **process_options,
        )
        assert capture.result.returncode == code, (
            f"exit {capture.result.returncode}: {capture.result.stderr}"
        )
        return capture

    def attach(self, *arguments, path=None, **options):
        attached = Attached(self, arguments, path or self.path(), **options)
        self.running.append(attached)
        return attached

    def attach_to(self, program, *paths, options=(), **process_options):
        """Attaches to a Program and waits until these files are armed in it."""
        attached = self.attach("-p", program.pid, "-q", "--no-report", *options, **process_options)
        return attached.wait_armed(program.pid, *paths)


def interpreters():
    """Pythons from 3.8 on, one a version: those in the path, of pyenv and in $WAFFLE_PYTHONS."""
    found = {}
    names = ["python3", "/usr/bin/python3"] + [f"python3.{minor}" for minor in range(8, 15)]
    if "PYENV_ROOT" in os.environ:
        names += pathlib.Path(os.environ["PYENV_ROOT"]).glob("versions/*/bin/python3")
    for name in names + os.environ.get("WAFFLE_PYTHONS", "").split():
        try:
            output = subprocess.run(
                [name, "-c", "import sys; print(*sys.version_info[:2], sys.executable)"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split(maxsplit=2)
        except (OSError, subprocess.CalledProcessError, ValueError):
            continue
        if (3, 8) <= (int(output[0]), int(output[1])):
            found.setdefault((int(output[0]), int(output[1])), output[2].strip())
    return [pytest.param(path, id=f"{v[0]}.{v[1]}") for v, path in sorted(found.items())]


def with_tracefs(*command):
    """The command in a mount namespace where tracefs is mounted; machines need not have it."""
    script = """mountpoint -q /sys/kernel/tracing ||
        mount -t tracefs tracefs /sys/kernel/tracing && exec "$@\""""
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


def without_tracefs(*command):
    """The command in a mount namespace where tracefs is mounted nowhere."""
    script = """for type in tracefs debugfs; do
        while read -r _ folder kind _; do
            [ "$kind" != $type ] || umount -l "$folder" || exit
        done < /proc/self/mounts
    done
    exec "$@\""""
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


def find_tool(name):
    path = shutil.which(name)
    assert path, f"{name} is not installed; run make setup"
    return path


def default_program():
    return os.environ.get("WAFFLE_BPF") or ROOT / "build" / "waffle-bpf"


@functools.cache
def export_formats():
    """The formats that the program itself names."""
    said = subprocess.run([default_program(), "export", "--format", "", "none"],
                          capture_output=True, text=True, check=False).stderr
    return re.split(", | or ", said.strip().partition(" write ")[2])

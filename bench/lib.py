# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: starting tracers, and comparing interleaved windows of one run."""

import contextlib
import ctypes
import functools
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
WAFFLE = str(BUILD / "waffle-bpf")
WINDOW_NS = 100_000_000  # of window.h
EPOLL_WAIT = {"x86_64": {232, 281}, "aarch64": {22}}[os.uname().machine]


class Skipped(Exception):
    """A row that cannot be measured here; its text says why."""


class Row:
    """One line of the table. No target: it is there to compare with."""

    def __init__(self, name, value, unit, target=None, at_least=False, note=""):
        self.name, self.value, self.unit, self.note = name, value, unit, note
        self.target, self.at_least = target, at_least

    def met(self):
        if self.target is None or self.value is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def cells(self):
        met = {None: "-", True: "yes", False: "no"}[self.met()]
        bound = "≥" if self.at_least else "≤"
        target = "" if self.target is None else f"{bound} {self.target:g}"
        value = "-" if self.value is None else f"{self.value:.4g} {self.unit}".strip()
        return [self.name, value, target, met, self.note]

    def json(self):
        keys = ("name", "value", "unit", "target", "note")
        return {k: getattr(self, k) for k in keys} | {"met": self.met()}


def program(name):
    return str(BUILD / "bench" / name)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def wait_until(condition, what, timeout=60.0):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"timed out: {what}")
        time.sleep(0.002)


def on_cpu(cpu, argv):
    return argv if cpu is None else ["taskset", "-c", str(cpu), *argv]


def urgent(argv):
    """With the highest weight of the usual scheduling class: what else runs here gets in the way
    as little as can be."""
    return ["nice", "-n", "-20", *argv]


@contextlib.contextmanager
def running(argv, stop=signal.SIGKILL, **options):
    """A process, ended at the end of the block."""
    process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(stop)
        process.wait()


def proc_read(pid, tid, name):
    with open(f"/proc/{pid}/task/{tid}/{name}", encoding="ascii") as f:
        return f.read()


def waits_for_events(pid):
    """Whether a process waits in its main loop: a tracer that does is armed."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            number = f.read().split()[0]
    except (OSError, IndexError):
        return False
    return number.isdigit() and int(number) in EPOLL_WAIT


def is_probed(pid, path, offset):
    """Whether the instruction there of a file is another one in the memory of a process."""
    with open(path, "rb") as f:
        f.seek(offset)
        own = f.read(1)
    memory = open(f"/proc/{pid}/mem", "rb", 0)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, memory as mem:
        for line in maps:
            addresses, mode, start, _, _, *name = line.split(maxsplit=5)
            first, end = (int(a, 16) for a in addresses.split("-"))
            at = first + offset - int(start, 16)
            if "x" in mode and name and name[0].rstrip("\n") == path and first <= at < end:
                mem.seek(at)
                return mem.read(1) != own
    return False


class Scratch:
    """A folder of our own for what the tracers write."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="waffle-bench-")

    def path(self, name):
        return os.path.join(self.folder.name, name)


SCRATCH = Scratch()


# ---- tracers: each a function that returns a context in which it is armed ----


def nothing():
    return contextlib.nullcontext()


@contextlib.contextmanager
def waffle(pid, *options, cpu=1, armed=None):
    """`armed`: tells whether it is, of a tracer that may have so much to read that it is never seen
    to wait."""
    argv = [WAFFLE, "attach", "--pid", str(pid), "-q", "--no-report"]
    argv += ["-o", SCRATCH.path("window.waffle"), *options]
    with running(on_cpu(cpu, urgent(argv)), signal.SIGINT) as tracer:
        ready = armed or (lambda: waits_for_events(tracer.pid))
        wait_until(lambda: ready() or tracer.poll() is not None, "arming")
        if tracer.poll() is not None:
            raise RuntimeError("waffle-bpf attach ended early")
        yield tracer


@contextlib.contextmanager
def baseline(*arguments, cpu=1):
    argv = on_cpu(cpu, urgent([program("baseline"), *map(str, arguments)]))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with running(argv, **pipes) as tracer:
        if tracer.stdout.readline() != b"ready\n":
            raise RuntimeError("baseline could not attach")
        yield tracer
        tracer.stdin.close()
        tracer.wait()


@contextlib.contextmanager
def peer(argv, ready, cpu=1):
    """A tracer of others, of the whole machine; `ready`: how a line of it begins when it is."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with running(on_cpu(cpu, argv), signal.SIGINT, **pipes) as tracer:
        if not any(line.startswith(ready) for line in tracer.stdout):
            raise RuntimeError(f"{argv[0]} ended early")
        threading.Thread(target=tracer.stdout.read, daemon=True).start()
        yield tracer


@contextlib.contextmanager
def perf_sched(cpu=1):
    argv = on_cpu(cpu, ["perf", "sched", "record", "-o", SCRATCH.path("perf.data")])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with running(argv, signal.SIGINT, **quiet) as tracer:
        time.sleep(0.5)
        if tracer.poll() is not None:
            raise RuntimeError("perf sched record ended early")
        yield tracer


def wprof(*options):
    argv = ["wprof", "-d", "1000000", "-D", SCRATCH.path("wprof.data"), *options]
    return peer(argv, "Running...")


def perf_works():
    argv = ["perf", "sched", "record", "-o", SCRATCH.path("try.data"), "true"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return shutil.which("perf") and not subprocess.run(argv, check=False, **quiet).returncode


def peers():
    """Those that are installed, as name → tracer. wprof takes no stacks unless it is told to."""
    found = {}
    if perf_works():
        found["perf sched record"] = perf_sched
    if shutil.which("wprof"):
        found["wprof"] = wprof
        found["wprof with stacks"] = functools.partial(wprof, "-Soffcpu", "-Swaker")
    return found


# ---- windows ----


class Workload:
    """A program of window.h: collects its lines while it runs."""

    def __init__(self, argv):
        self.process = subprocess.Popen(
            urgent(argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.pid = self.process.pid
        self.windows = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            end, cost = line.split()
            self.windows.append((int(end), float(cost)))

    def between(self, start, end):
        """Costs in the windows that lie in [start, end] as a whole."""
        time.sleep(0.01)
        return [c for t, c in self.windows if t - WINDOW_NS * 1.1 >= start and t <= end]

    def __enter__(self):
        wait_until(lambda: self.windows, "the workload's first window")
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.reader.join()


SETTLE = 0.1


def interleave(workload, tracers, rounds, seconds):
    """Goes round the tracers (name → function); returns name → medians, one a round. Windows in
    which a tracer starts or ends belong to none."""
    costs = {name: [] for name in tracers}
    names = list(tracers)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            with tracers[name]():
                time.sleep(SETTLE)
                start = now_ns()
                time.sleep(seconds)
                windows = workload.between(start, now_ns())
            time.sleep(SETTLE)
            costs[name].append(statistics.median(windows) if windows else math.nan)
    return costs


def ratio(costs, name, base):
    """Median over the rounds of one round's ratio: what slows the machine slows both."""
    ratios = [a / b for a, b in zip(costs[name], costs[base])]
    ratios = [r for r in ratios if not math.isnan(r)]
    if not ratios:
        raise RuntimeError(f"no windows to compare {name} and {base} by")
    return statistics.median(ratios)


def typical(costs):
    """Median of the rounds that have a window; a busy machine may leave one without."""
    return statistics.median(c for c in costs if not math.isnan(c))


# ---- what BPF programs take ----


@contextlib.contextmanager
def bpf_stats():
    """The kernel counts runs of BPF programs and their time meanwhile."""
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    if not switch.exists():
        raise Skipped("this kernel does not count the time of BPF programs")
    before = switch.read_text(encoding="ascii")
    switch.write_text("1", encoding="ascii")
    try:
        yield
    finally:
        switch.write_text(before, encoding="ascii")


PERF_EVENT_PROGRAM = 7  # BPF_PROG_TYPE_PERF_EVENT


def bpf_runs(pid, kind=None):
    """ns and runs so far of all programs that a process has descriptors of (proc_pid_fdinfo(5)), or
    of those of one type."""
    programs = {}
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            fields = dict(line.split(":", 1) for line in info.read_text().splitlines())
        except (OSError, ValueError):
            continue
        if "run_time_ns" in fields and kind in (None, int(fields["prog_type"])):
            programs[fields["prog_id"]] = int(fields["run_time_ns"]), int(fields["run_cnt"])
    return [sum(column) for column in zip(*programs.values())] or [0, 0]


# ---- single steps ----


def instructions_of_loop(pid, steps=6000):
    """How many instructions the loop has that a process is in, seen by stepping through it."""
    if os.uname().machine != "x86_64":
        raise Skipped("single steps are counted on x86-64 only")
    attach, step, peek, detach = 16, 9, 3, 17
    rip = 16 * 8
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(attach, pid, None, None):
        raise Skipped("ptrace is not allowed")
    os.waitpid(pid, 0)
    seen = {}
    for _ in range(steps):
        at = libc.ptrace(peek, pid, rip, None)
        seen[at] = seen.get(at, 0) + 1
        libc.ptrace(step, pid, None, None)
        os.waitpid(pid, 0)
    libc.ptrace(detach, pid, None, None)
    often = max(seen.values())
    return sum(count > often / 2 for count in seen.values())

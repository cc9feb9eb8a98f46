# SPDX-License-Identifier: Apache-2.0
"""Running a scenario of scenarios.py: its build, its cgroups, its program, its log.

    with zoo.running(scenario, zoo.build(scenario, folder), seed) as program:
        # attach to program.pids()
        program.go()
        log = program.finish()
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
BUILD = HERE.parents[1] / "build"
SIM_SOURCES = HERE.parents[1] / "tests" / "sim"
SIM_LIBRARIES = ["-l:libcudart.so.12", "-l:libnccl.so.2"]
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# A slow disk is a real one that a cgroup may use at this rate only; the part that waits for the
# cgroup's turn, 100 ms at most at a time, is spent where the disk's own time would be: blocked
# without interruption in the read, with the request not yet issued to the device.
DISK_RATE = 4 << 20
DISK_READS = 1000
# What the victim of cpu_quota may use: 10 ms in each 50.
QUOTA_US, PERIOD_US = 10_000, 50_000
SHARES = 102_400
# What the cgroup of memory_limit may use.
MEMORY_BYTES = 32 << 20


# ---- building, and what a scenario needs ----


def beside(name):
    """A folder beside the waffle-bpf under test."""
    return pathlib.Path(os.environ.get("WAFFLE_BPF", BUILD / "waffle-bpf")).resolve().parent / name


def program(name):
    """A compiler or interpreter; Go may be the one that scripts/servers.sh has installed."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/local/go/bin", str(beside("servers") / "go/bin")])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not installed; run make setup-check"
    return found


# How a file of another language becomes one that runs, and how it is run.
LANGUAGES = {
    ".go": (lambda source, out: [program("go"), "build", "-o", out, source], lambda built: [built]),
    ".rs": (lambda source, out: [program("rustc"), "-O", "-g", "-o", out, source], lambda built: [built]),
    ".java": (
        lambda source, out: [program("javac"), "-d", out, source],
        lambda built: [program("java"), "-XX:+UseSerialGC", "-cp", built, built.stem],
    ),
    ".js": (None, lambda built: [program("node"), built]),
    ".py": (None, lambda built: [sys.executable, built]),
}


def build_other(source, folder):
    """Compiles a program of another language, if that has to be."""
    compiler, _ = LANGUAGES[source.suffix]
    if not compiler:
        return source
    out = pathlib.Path(folder) / source.suffix[1:] / source.stem
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        environment = {**os.environ, "GOFLAGS": "-buildvcs=false"}
        subprocess.run(compiler(source, out), check=True, env=environment)
    return out


def build(scenario, folder):
    """Compiles a scenario's program as an application would be; returns the file."""
    source = HERE / scenario.source
    if scenario.unmarked:
        return build_other(source, folder)
    flags = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    libraries = ["-pthread"]
    out = pathlib.Path(folder) / source.stem
    if scenario.library:
        source, out = source.with_suffix(".c"), out.with_suffix(".so")
        flags += ["-shared", "-fPIC"]
    if "simulation" in scenario.needs:
        flags += [f"-I{SIM_SOURCES}", f"-I{SIM_SOURCES / 'programs'}"]
        libraries += [f"-L{simulation()}", f"-Wl,-rpath,{simulation()}", *SIM_LIBRARIES]
    if not out.exists():
        subprocess.run(["gcc", *flags, "-o", out, source, *libraries], check=True)
    return out


def simulation():
    """The folder with the stand-ins of CUDA and NCCL, beside the waffle-bpf under test."""
    return beside("sim")


def libraries(scenario):
    """Those that it is linked with and whose calls are recorded; the driver is loaded later."""
    if "simulation" not in scenario.needs:
        return []
    return [simulation() / name.removeprefix("-l:") for name in SIM_LIBRARIES]


def command(scenario, built, seed):
    arguments = [*scenario.arguments, str(seed)]
    if scenario.unmarked:
        return [*map(str, LANGUAGES[(HERE / scenario.source).suffix][1](built)), *arguments]
    if scenario.library:
        return [sys.executable, str(HERE / scenario.source), str(built), *arguments]
    return [str(built), *arguments]


def disk_of(folder):
    """"major:minor" of the whole disk that a folder is on; None if it is on no block device."""
    number = os.stat(folder).st_dev
    entry = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not entry.exists():
        return None
    if (entry / "partition").exists():
        entry = entry.resolve().parent
    return (entry / "dev").read_text().strip()


def zoo_folder():
    return os.environ.get("ZOO_DIR", "/var/tmp")


def missing(scenario):
    """Why a scenario cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if "simulation" in scenario.needs and not (simulation() / "libcuda.so.1").exists():
        return f"{simulation()} has no simulation of CUDA: make sim"
    if "torch" in scenario.needs and not beside("frameworks").exists():
        return f"{beside('frameworks')} is not there; run make setup-check"
    if "disk" in scenario.needs and not disk_of(zoo_folder()):
        return f"{zoo_folder()} is on no block device: set ZOO_DIR"
    if "blkio" in scenario.cgroups and not any(
        CGROUPS.glob("blkio/blkio.throttle.read_bps_device")
    ):
        return "needs the blkio controller of cgroup v1"
    if "quota" in scenario.cgroups and not any(CGROUPS.glob("cpu/cpu.cfs_quota_us")):
        return "needs the cpu controller of cgroup v1, with CFS bandwidth"
    if "memory" in scenario.cgroups and not any(CGROUPS.glob("memory/memory.limit_in_bytes")):
        return "needs the memory controller of cgroup v1"
    return None


# ---- cgroups ----


def _settings(kind):
    """Controller, variable of the environment, and files of a cgroup."""
    disk = f"{disk_of(zoo_folder())} {DISK_RATE}"
    return {
        "blkio": (
            "blkio",
            "ZOO_BLKIO",
            {
                "blkio.throttle.read_bps_device": disk,
                "blkio.throttle.write_bps_device": disk,
                "blkio.throttle.read_iops_device": f"{disk_of(zoo_folder())} {DISK_READS}",
            },
        ),
        "quota": (
            "cpu",
            "ZOO_CPU",
            {
                "cpu.cfs_period_us": PERIOD_US,
                "cpu.cfs_quota_us": QUOTA_US,
                "cpu.shares": SHARES,
            },
        ),
        "memory": ("memory", "ZOO_MEMORY", {"memory.limit_in_bytes": MEMORY_BYTES}),
        # A hundred times the weight of what else runs on the machine, so that a busy machine puts
        # little contention of its own into the answers.
        "shield": ("cpu", "ZOO_SHIELD", {"cpu.shares": SHARES}),
    }[kind]


@contextlib.contextmanager
def cgroups(kinds):
    """Makes cgroups for one run and yields the environment that names them; they are removed when
    nobody is in them any more."""
    made, environment = [], {}
    try:
        for kind in kinds:
            controller, variable, files = _settings(kind)
            folder = CGROUPS / controller / f"zoo-{os.getpid()}-{kind}"
            folder.mkdir()
            made.append(folder)
            for name, value in files.items():
                (folder / name).write_text(str(value))
            environment[variable] = str(folder)
        yield environment
    finally:
        for folder in made:
            folder.rmdir()


def of_torch(scenario):
    """PyTorch's place, and that of the stand-ins for NVIDIA's libraries."""
    if "torch" not in scenario.needs:
        return {}
    frameworks = beside("frameworks")
    return {"PYTHONPATH": str(frameworks), "LD_LIBRARY_PATH": str(frameworks / "cuda-stubs"), "PYTHONDONTWRITEBYTECODE": "1"}


class Running:
    """A scenario's program, started, set up, and waiting to be told to go."""

    def __init__(self, scenario, built, seed, environment):
        def enter():
            if "ZOO_SHIELD" in environment:
                with open(environment["ZOO_SHIELD"] + "/tasks", "w", encoding="ascii") as tasks:
                    tasks.write("0")

        self.scenario = scenario
        self.environment = environment
        self.process = subprocess.Popen(
            command(scenario, built, seed),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, **of_torch(scenario), "ZOO_DIR": zoo_folder(), "UV_THREADPOOL_SIZE": "1"},
            preexec_fn=enter,
        )
        self.lines = []
        while not self.lines or not self.lines[-1].startswith("ready"):
            line = self.process.stdout.readline()
            assert line, f"{scenario.name} ended before it was ready"
            self.lines.append(line)

    def pids(self):
        """All processes, the first one last."""
        return [row["pid"] for row in parse(self.lines) if row["kind"] in ("process", "ready")]

    def go(self):
        self.process.stdin.close()

    def finish(self, timeout=60):
        """The whole log, as parsed rows."""
        self.lines += self.process.stdout.readlines()
        assert self.process.wait(timeout) == 0, f"{self.scenario.name} failed"
        return parse(self.lines)


@contextlib.contextmanager
def running(scenario, built, seed, shield=True):
    """with running(…) as program: attach to program.pids(), program.go(), program.finish()."""
    kinds = (("shield",) if shield and (CGROUPS / "cpu/cpu.shares").exists() else ()) + tuple(
        scenario.cgroups
    )
    with cgroups(kinds) as environment:
        program = Running(scenario, built, seed, environment)
        try:
            yield program
        finally:
            program.process.kill()
            program.process.wait()
            program.process.stdout.close()
            wait_for_empty(environment.values())


def wait_for_empty(folders):
    """A hog outlives its parent for a moment."""
    end = time.monotonic() + 5
    while time.monotonic() < end and any(
        (pathlib.Path(folder) / "tasks").read_text() for folder in folders
    ):
        time.sleep(0.005)


def parse(lines):
    """Lines of "kind key=value …" as dicts; numbers as int, "-" as None."""
    rows = []
    for line in lines:
        words = line.split()
        if not words:
            continue
        row = {"kind": words[0]}
        for word in words[1:]:
            key, _, value = word.partition("=")
            row[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
            if value == "-":
                row[key] = None
        rows.append(row)
    return rows


def rounds(log):
    """What the program itself says of each span of the victim: {i: (victim, causes)}, the causes
    by falling `ns`, each with its `share` of the span's duration."""
    found = {row["i"]: (row, []) for row in log if row["kind"] == "victim"}
    for row in log:
        if row["kind"] == "cause":
            victim, causes = found[row["i"]]
            row["share"] = min(1.0, row["ns"] / (victim["end"] - victim["begin"]))
            causes.append(row)
    for _, causes in found.values():
        causes.sort(key=lambda cause: -cause["ns"])
    return found


def temporary():
    return tempfile.TemporaryDirectory(prefix="zoo-")

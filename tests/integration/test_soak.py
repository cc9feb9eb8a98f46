# SPDX-License-Identifier: Apache-2.0
"""A tracer takes no more of anything the longer it runs. Some seconds of it belong to make check; `make
soak` is an hour, or MINUTES."""

import ctypes
import dataclasses
import json
import os
import pathlib
import platform
import signal
import statistics
import time

import pytest

from tracer import Capture, named, parse_log, semaphores, wait_until

SECONDS = float(os.environ.get("WAFFLE_SOAK_SECONDS", "18"))
BYTES_MAX = 16 << 20  # more than at half of the time
DESCRIPTORS_MAX = 60  # those of children that live just then are up to 50 more or less

# Maps that make room by themselves are full on purpose.
HASH, PERCPU_HASH = 1, 5
MAP_GET_NEXT_KEY, OBJ_GET_INFO = 4, 15
BPF, PIDFD_OPEN, PIDFD_GETFD = {"x86_64": (321, 434, 438), "aarch64": (280, 434, 438)}[
    platform.machine()
]
libc = ctypes.CDLL(None, use_errno=True)


class MapInfo(ctypes.Structure):
    """struct bpf_map_info of include/uapi/linux/bpf.h, its beginning."""

    _fields_ = [(name, ctypes.c_uint32) for name in "type id key value max flags".split()]
    _fields_ += [("name", ctypes.c_char * 16)]


class InfoAttr(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_uint32), ("len", ctypes.c_uint32), ("info", ctypes.c_uint64)]


class KeyAttr(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_uint64), ("key", ctypes.c_uint64), ("next", ctypes.c_uint64)]


def bpf(command, attr):
    return libc.syscall(BPF, command, ctypes.byref(attr), ctypes.sizeof(attr))


def map_fill(fd):
    """Entries of a map, by asking the kernel for one key behind the other."""
    info = MapInfo()
    if bpf(OBJ_GET_INFO, InfoAttr(fd, ctypes.sizeof(info), ctypes.addressof(info))):
        return None, 0, 0
    if info.type not in (HASH, PERCPU_HASH):
        return None, 0, 0
    keys = [ctypes.create_string_buffer(info.key) for _ in range(2)]
    count, key = 0, None
    # A key that is deleted meanwhile begins it again.
    while count <= 2 * info.max:
        at = ctypes.addressof(key) if key else 0
        following = keys[count % 2]
        if bpf(MAP_GET_NEXT_KEY, KeyAttr(fd, at, ctypes.addressof(following))):
            break
        count, key = count + 1, following
    return info.name.decode(), count, info.max


def map_fills(pid):
    """By name: entries and room of the hash maps that a process has."""
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    fills = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            if "bpf-map" not in os.readlink(f"/proc/{pid}/fd/{number}"):
                continue
        except FileNotFoundError:
            continue
        fd = libc.syscall(PIDFD_GETFD, process, int(number), 0)
        name, count, room = map_fill(fd)
        if name:
            fills[name] = (count, room)
        if fd >= 0:
            os.close(fd)
    os.close(process)
    return fills


@dataclasses.dataclass
class Sample:
    """What a tracer has."""

    resident: int
    descriptors: int
    fills: dict

    @staticmethod
    def of(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        # Of its own: pages of the kernel's buffers count as well once they were used.
        [kib] = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")]
        return Sample(int(kib) * 1024, len(os.listdir(f"/proc/{pid}/fd")), map_fills(pid))

    @staticmethod
    def typical(pid):
        """The medians over a while: links that a thread closes behind the loop come and go."""
        samples = []
        for _ in range(9):
            samples.append(Sample.of(pid))
            time.sleep(0.2)
        return Sample(
            statistics.median(sample.resident for sample in samples),
            statistics.median(sample.descriptors for sample in samples),
            samples[-1].fills,
        )


@pytest.mark.parametrize(
    "options",
    [("--stacks", "spans,sched"), ("--filter", "dur > 50us || name == 'late' || name == 'child'")],
    ids=["stacks", "filter"],
)
def test_a_tracer_takes_no_more_the_longer_it_runs(waffle, built, start, options):
    signal.alarm(int(SECONDS) * 2 + 600)
    library = built("library.c", "-shared", "-fPIC", name="library.so")
    source = built("churn.c", "-fno-omit-frame-pointer", "-ldl")
    program = start(source, library, "jump")
    program.until("ready")
    attached = waffle.attach("-f", "--no-report", *options, "-p", program.pid)
    attached.wait_armed(program.pid, source)
    time.sleep(SECONDS / 2)
    half = Sample.typical(attached.process.pid)
    time.sleep(SECONDS / 2)
    assert attached.process.poll() is None
    end = Sample.typical(attached.process.pid)
    [said] = parse_log(["made " + program.ask("end", "made")])
    program.until("late")
    program.finish()
    capture = attached.wait(timeout=120)
    info = capture.info()

    assert min(said[key] for key in ("turns", "forks", "execs", "threads", "loads")) > 10, said
    assert end.resident < half.resident + BYTES_MAX, (half.resident, end.resident, said)
    assert end.descriptors < half.descriptors + DESCRIPTORS_MAX, said
    assert {"targets"} <= set(end.fills)
    for name, (count, room) in end.fills.items():
        before = half.fills.get(name, (0, room))[0]
        # What is left behind makes room when a table is half full.
        most = max(before + 64, before + room / 50, room * 0.6)
        assert count < most, f"{name}: {before}, then {count} of {room}"
    records = info["records"]
    assert records["produced"] == records["delivered"] + records["lost"]
    assert records["lost"] < records["produced"] / 100, attached.capture.result.stderr
    out = capture.path.with_suffix(".late")
    waffle.ok("export", capture.path, "--format", "ndjson", "-o", out, "--filter", 'name == "late"')
    rows = parse_json_lines(out)
    assert [row["args"]["turns"] for row in named(rows, "late")] == [said["turns"]]


def test_a_flight_recorder_takes_no_more_the_longer_it_runs(waffle, built, start):
    """Its memory is filled in the first half: it drops what is older than two seconds."""
    signal.alarm(int(SECONDS) * 2 + 600)
    library = built("library.c", "-shared", "-fPIC", name="library.so")
    source = built("churn.c", "-fno-omit-frame-pointer", "-ldl")
    program = start(source, library, "jump")
    program.until("ready")
    attached = waffle.attach("-f", "--flight-recorder", "2s", "--cooldown", "0s", "--after", "0s",
                             "--max-files", 100000, "-p", program.pid)
    wait_until(lambda: all(semaphores(program.pid, source) or [0]), "arming")
    time.sleep(SECONDS / 2)
    half = Sample.typical(attached.process.pid)
    for _ in range(5):
        attached.signal(signal.SIGUSR1)
        time.sleep(SECONDS / 10)
    assert attached.process.poll() is None
    end = Sample.typical(attached.process.pid)
    files = sorted(waffle.folder.glob("*.waffle"), key=lambda path: path.stat().st_mtime)
    program.ask("end", "made")
    program.until("late")
    program.finish()
    attached.wait(timeout=120)
    assert end.resident < half.resident + BYTES_MAX, (half.resident, end.resident)
    assert end.descriptors < half.descriptors + DESCRIPTORS_MAX
    assert len(files) >= 2
    # A file that was written while many processes came and went is whole.
    info = Capture(waffle, files[-1]).check_sums()
    assert info["produced"] > 1000


def parse_json_lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

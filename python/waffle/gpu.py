# SPDX-License-Identifier: Apache-2.0
"""What a GPU did, from a capture: how busy it was, and what a change would bring.

    events = waffle.gpu.capture_trace("train.waffle")       # or duration_ms=500: of this process
    timeline = waffle.gpu.build_timeline(events)
    print(timeline.gpu_utilization, timeline.max_concurrent_ops)
    replay = waffle.gpu.replay_trace(events, what_if="kernels: 2x")

All of it is what `waffle-bpf gpu`, `replay` and `export` say (docs/gpu.md, docs/replay.md).
"""

import enum
import json
import os
import shutil
import tempfile
import types

from ._captures import CommandError, _files, _run, read

__all__ = ["CommandError", "Events", "Replay", "ReplayMode", "Timeline", "build_timeline", "capture_trace",
           "compare_traces", "export_perfetto", "replay_trace"]


class ReplayMode(enum.Enum):
    """Which part of a capture replay_trace() replays."""

    Full = "full"
    Partial = "partial"  # from_ms, to_ms, operations
    DryRun = "dry-run"  # nothing: it checks that all is in order
    StreamSpecific = "stream"  # stream


class Events:
    """A capture, in one file or in the files of a job. What capture_trace() recorded is in a temporary file, which
    lives as long as this object; save() keeps it."""

    def __init__(self, files, folder=None):
        self.files = files
        self._folder = folder
        self._operations = None

    @property
    def operations(self):
        """A waffle.Table of what the GPU did: kernels, copies and others, with their times and values."""
        if self._operations is None:
            self._operations = read(*self.files, filter='category == "gpu" && kind == span').spans
        return self._operations

    def save(self, path):
        """Copies the capture, if it is one file."""
        if len(self.files) != 1:
            raise ValueError("waffle.gpu: these are the files of a job already")
        shutil.copyfile(self.files[0], path)

    def __len__(self):
        return len(self.operations)

    def __repr__(self):
        return f"<waffle.gpu.Events of {', '.join(map(str, self.files))}>"


def _wait(process, codes=(0,)):
    """What a command prints, if it ends with one of the codes."""
    out, said = process.communicate()
    if process.returncode not in codes or (process.returncode and not out):
        raise CommandError(said.strip() or f"waffle-bpf ended with {process.returncode}")
    return out


def capture_trace(*files, duration_ms=None, pid=None):
    """Events of captures, or of a running process for a time: this one, or that with the pid. Other threads go on
    meanwhile. It attaches waffle-bpf, which needs root and also records the calls of CUDA. libwaffle-gpu has to be in
    the process (docs/gpu.md)."""
    if files and (duration_ms is not None or pid is not None):
        raise ValueError("waffle.gpu: give files, or duration_ms for a process, not both")
    if files:
        return Events(_files(files))
    if duration_ms is None:
        raise ValueError("waffle.gpu: give the files of a capture, or duration_ms to record")
    folder = tempfile.TemporaryDirectory(prefix="waffle-gpu-")
    path = os.path.join(folder.name, "capture.waffle")
    _wait(_run("attach", "--pid", str(pid or os.getpid()), "--duration", f"{duration_ms}ms", "--sources",
               "spans,cuda,nccl", "--no-report", "--quiet", "--output", path))
    return Events([path], folder)


# ---- time line ----


class Timeline:
    """What `waffle-bpf gpu --json` prints, as attributes, and two numbers over all devices: gpu_utilization is the
    part of the time in which they were busy, max_concurrent_ops the most operations of a device at one time."""

    def __init__(self, events, found):
        self._events = events
        self.__dict__.update(found.__dict__)
        window = sum(device.window_ns for device in found.devices)
        self.gpu_utilization = sum(device.busy_ns for device in found.devices) / window if window else 0.0
        self.max_concurrent_ops = max((device.max_concurrency for device in found.devices), default=0)

    def export_perfetto(self, path):
        export_perfetto(self, path)

    def __repr__(self):
        return (f"<waffle.gpu.Timeline of {len(self.devices)} devices: utilization {self.gpu_utilization:.3f}, "
                f"at most {self.max_concurrent_ops} at a time>")


def _objects(text):
    return json.loads(text, object_hook=lambda fields: types.SimpleNamespace(**fields))


def build_timeline(events):
    """The waffle.gpu.Timeline of events."""
    return Timeline(events, _objects(_wait(_run("gpu", "--json", *events.files))))


def export_perfetto(events, path):
    """Writes events, or those of a Timeline, for https://ui.perfetto.dev."""
    files = getattr(events, "_events", events).files
    _wait(_run("export", "--format", "perfetto", "--output", os.fspath(path), *files))


# ---- replay ----


class Replay:
    """What `waffle-bpf replay --json` prints, as attributes. A dry run executes nothing, and has no replayed_ns and
    no error."""

    def __init__(self, found):
        self.__dict__.update(found.__dict__)

    def __repr__(self):
        return (f"<waffle.gpu.Replay {self.mode}: {self.operations_executed} of {self.operations_total} operations, "
                f"{'' if self.deterministic else 'not '}deterministic>")


def _part(mode, part):
    """The options of a part, each of which belongs to one mode."""
    given = {name for name, value in part.items() if value is not None}
    allowed = {ReplayMode.Partial: {"from_ms", "to_ms", "operations"}, ReplayMode.StreamSpecific: {"stream"},
               ReplayMode.DryRun: set(part)}.get(mode, set())
    if given - allowed:
        raise ValueError(f"waffle.gpu: {', '.join(sorted(given - allowed))} is not for {mode}")
    if mode in (ReplayMode.Partial, ReplayMode.StreamSpecific) and not given:
        raise ValueError(f"waffle.gpu: {mode} needs {' or '.join(sorted(allowed))}")
    options = []
    for name, option in (("from_ms", "--from"), ("to_ms", "--to")):
        if part[name] is not None:
            options += [option, f"{round(part[name] * 1e6)}ns"]
    if part["operations"] is not None:
        first, last = part["operations"]
        options += ["--operations", f"{first}-{last}"]
    return options + (["--stream", str(part["stream"])] if part["stream"] is not None else [])


def replay_trace(events, mode=ReplayMode.Full, *, from_ms=None, to_ms=None, operations=None, stream=None, what_if=()):
    """Schedules the operations again by their dependencies. `operations` is a pair of numbers that count from 1,
    `stream` a number or "DEVICE:NUMBER", `what_if` one change or several, as docs/replay.md explains them."""
    mode = ReplayMode(mode)
    options = _part(mode, {"from_ms": from_ms, "to_ms": to_ms, "operations": operations, "stream": stream})
    if mode is ReplayMode.DryRun:
        options.append("--dry-run")
    for one in (what_if,) if isinstance(what_if, str) else what_if:
        options += ["--what-if", one]
    # A dry run that finds something in the wrong order ends with 1.
    codes = (0, 1) if mode is ReplayMode.DryRun else (0,)
    return Replay(_objects(_wait(_run("replay", "--json", *options, *events.files), codes)))


def compare_traces(one, other):
    """The first difference of the operations of two captures, and how their times differ: what `waffle-bpf replay
    --compare --json` prints, as attributes."""
    files = (*one.files, *other.files)
    return _objects(_wait(_run("replay", "--compare", "--json", *files), (0, 1)))

# SPDX-License-Identifier: Apache-2.0
"""What it costs to watch CUDA and NCCL. The libraries are stand-ins (docs/simulation.md) in which a
launch itself takes next to nothing, so that the probes are what is measured."""

import collections
import contextlib
import functools
import json
import re
import signal
import statistics
import subprocess
import time

from lib import (
    BUILD,
    SCRATCH,
    WAFFLE,
    Row,
    Workload,
    baseline,
    interleave,
    is_probed,
    now_ns,
    nothing,
    ratio,
    running,
    typical,
    urgent,
    wait_until,
    waffle,
    waits_for_events,
)

SIM = BUILD / "sim"
RATE = 20_000
PROCESSES = 8
FUNCTIONS = 50


def entry(library, function):
    """Library, and offset of the instruction in it that waffle probes at a function's entry."""
    out = subprocess.check_output([WAFFLE, "list", "--json", str(SIM / library)])
    [site] = [s for s in json.loads(out)["sites"] if s["func"] == function]
    [offset] = [p["offset"] for p in site["probes"] if p["at"] == "entry"]
    return str(SIM / library), offset


@contextlib.contextmanager
def empty(pid, *entries):
    with contextlib.ExitStack() as stack:
        for path, offset in entries:
            stack.enter_context(baseline("offset", pid, path, offset))
        yield


DECODED = ("--sources", "spans,cuda,nccl")


def workload(kind, rate):
    return Workload([str(SIM / "launches"), kind, str(rate), "600"])


def one_launch(scale, kind, entries):
    """ns that a launch takes longer: with empty programs at the entries, and decoded."""
    with workload(kind, 0) as load:
        tracers = {
            "untraced": nothing,
            "empty": functools.partial(empty, load.pid, *entries),
            "decoded": functools.partial(
                waffle, load.pid, *DECODED,
                armed=lambda: all(is_probed(load.pid, *entry) for entry in entries)),
        }
        costs = interleave(load, tracers, scale.rounds, scale.seconds)
    over = {k: [a - b for a, b in zip(v, costs["untraced"])] for k, v in costs.items()}
    return over, typical(costs["untraced"])


def middle(values):
    """As text: the median of percents, and from where to where they are."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f}) %"


def speed_lost(scale, kind, entries):
    """Percents of its speed that a program loses which makes RATE launches a second: tracer → one
    of each of several processes, as their memory lies differently; and the rate, untraced."""
    lost, rates = collections.defaultdict(list), []
    for _ in range(scale.processes):
        with workload(kind, RATE) as load:
            tracers = {
                "untraced": nothing,
                "empty": functools.partial(empty, load.pid, *entries),
                "decoded": functools.partial(waffle, load.pid, *DECODED),
                "all": functools.partial(waffle, load.pid),
            }
            costs = interleave(load, tracers, scale.few, scale.seconds)
        rates.append(1e9 / typical(costs["untraced"]))
        for name in list(tracers)[1:]:
            lost[name].append((1 - 1 / ratio(costs, name, "untraced")) * 100)
    return lost, statistics.median(rates)


def launches(scale):
    driver = entry("libcuda.so.1", "cuLaunchKernel")
    runtime = entry("libcudart.so.12", "cudaLaunchKernel")
    took = {}  # ns that a decoded launch takes longer, by who launches
    over, alone = one_launch(scale, "driver", [driver])
    took["driver"] = typical(over["decoded"])
    yield Row("decoded launch by the driver / empty uprobe", ratio(over, "decoded", "empty"), "x",
              1.5, note=f"{took['driver']:.0f} ns, empty uprobe "
              f"{typical(over['empty']):.0f} ns, on a simulated launch of {alone:.0f} ns")
    over, alone = one_launch(scale, "runtime", [runtime, driver])
    took["runtime"] = typical(over["decoded"])
    yield Row("decoded launch by the runtime / two empty uprobes",
              ratio(over, "decoded", "empty"), "x", 1.5,
              note=f"the runtime calls the driver, and the two are counted once: "
              f"{took['runtime']:.0f} ns, two empty uprobes "
              f"{typical(over['empty']):.0f} ns")
    for kind, entries in (("driver", [driver]), ("runtime", [runtime, driver])):
        lost, rate = speed_lost(scale, kind, entries)
        said = (f"{rate:,.0f} a second untraced; with empty uprobes {middle(lost['empty'])}; by "
                f"the {took[kind]:.0f} ns a launch {100 / (1 + 1e9 / rate / took[kind]):.2f} %")
        for name, what in (("decoded", "calls only"), ("all", "with the scheduler")):
            yield Row(f"{RATE:,} launches a second by the {kind}, speed lost, {what}",
                      statistics.median(lost[name]), "%", 3,
                      note=f"{len(lost[name])} processes: {middle(lost[name])}; {said}")


def attach_once(pids):
    """Seconds until all is armed, and what waffle says of the CPU time that it took."""
    argv = urgent([WAFFLE, "attach", "--no-report", "-o", SCRATCH.path("calls.waffle")])
    for pid in pids:
        argv += ["--pid", str(pid)]
    start = now_ns()
    with running(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
        wait_until(lambda: waits_for_events(tracer.pid) or tracer.poll() is not None, "arming")
        took = (now_ns() - start) / 1e9
        if tracer.poll() is not None:
            raise RuntimeError(f"waffle-bpf attach ended early: {tracer.stderr.read()}")
        tracer.send_signal(signal.SIGINT)
        said = re.search(r"[\d.]+ \w+(?= of CPU in [\d.]+ \w+ until ready)", tracer.stderr.read())
    return took, said.group(0)


def functions_of(pid):
    out = subprocess.check_output([WAFFLE, "list", "--json", "--pid", str(pid)])
    return sum(site["call"] for site in json.loads(out)["sites"])


def attach_calls(scale):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        argv = [str(SIM / "launches"), "runtime", "100", "600"]
        targets = [stack.enter_context(running(argv, **quiet)) for _ in range(PROCESSES)]
        time.sleep(0.5)
        functions = functions_of(targets[0].pid)
        if functions < FUNCTIONS:
            raise RuntimeError(f"only {functions} functions were found")
        runs = [attach_once([t.pid for t in targets]) for _ in range(max(3, scale.pairs // 2))]
    yield Row(f"attach to {functions} functions in each of {PROCESSES} processes",
              statistics.median(took for took, _ in runs), "s", 1,
              note=f"from the start of waffle-bpf attach on; {min(runs)[1]} of CPU time")

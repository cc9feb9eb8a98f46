# SPDX-License-Identifier: Apache-2.0
"""What it costs to record switches, and what explains waits."""

import functools
import math
import os
import re
import statistics
import time

from lib import (
    PERF_EVENT_PROGRAM,
    SETTLE,
    Row,
    Workload,
    baseline,
    bpf_runs,
    bpf_stats,
    interleave,
    nothing,
    now_ns,
    peers,
    proc_read,
    program,
    ratio,
    running,
    typical,
    waffle,
)


def switches(scale):
    for kind, target in (("pipe", 1.22), ("futex", 1.25)):
        with Workload([program("pingpong"), kind, "0", "600"]) as load:
            tracers = {
                "untraced": nothing,
                "waffle": functools.partial(waffle, load.pid),
                "bare counter": functools.partial(baseline, "count"),
                **peers(),
            }
            costs = interleave(load, tracers, scale.rounds, scale.seconds)
        for name in list(tracers)[1:]:
            ns = typical(costs[name]), typical(costs["untraced"])
            yield Row(f"{kind} hand-over, {name}", ratio(costs, name, "untraced"), "x",
                      target if name == "waffle" else None,
                      note=f"{ns[0]:.0f} ns a switch, untraced {ns[1]:.0f} ns")


# What each records beyond the scheduler, in the order of --sources.
SOURCES = ("stacks", "files", "faults", "io", "signals", "quota", "steal")
TURNS = (("sched", "sched", None), *((f"sched,{name}", f"{name}, beyond sched", "sched")
                                     for name in SOURCES), (None, "all sources", None))


def switch_rate(pid, seconds):
    """Switches a second of all threads of a process, as the kernel counts them."""
    def count():
        return sum(int(n) for tid in os.listdir(f"/proc/{pid}/task")
                   for n in re.findall(r"ctxt_switches:\s+(\d+)", proc_read(pid, tid, "status")))

    start, before = now_ns(), count()
    time.sleep(seconds)
    after, end = count(), now_ns()
    return (after - before) / (end - start) * 1e9


def traced_with(load, chosen):
    return functools.partial(waffle, load.pid, *(("--sources", chosen) if chosen else ()))


def sources(scale):
    """Threads that hand over 20,000 times a second on one CPU, and all waits are long enough to be
    explained. What all sources cost together is the row that counts: it has many short rounds."""
    with Workload([program("turns"), "4", "20000", "0", "600"]) as load:
        rate = switch_rate(load.pid, scale.seconds)
        many = {"untraced": nothing, "all": traced_with(load, None)}
        costs = interleave(load, many, scale.many, scale.short)
        few = {"untraced": nothing} | {what: traced_with(load, chosen)
                                       for chosen, what, _ in TURNS if chosen}
        costs_few = interleave(load, few, scale.rounds, scale.seconds)
    us = typical(costs["untraced"]) / 1000
    for chosen, what, base in TURNS:
        name, of = (what, costs_few) if chosen else ("all", costs)
        lost, error = percent_lost(of, name, base or "untraced")
        yield Row(f"20,000 switches a second, {what}", lost, "%", None if chosen else 2,
                  note=f"± {error:.1f} %; {rate:,.0f} switches a second, {us:.1f} us each, untraced")


def percent_lost(costs, name, base):
    """% of time lost to a tracer, and the standard error of that median by the quartiles."""
    ratios = [(a / b - 1) * 100 for a, b in zip(costs[name], costs[base])]
    ratios = [r for r in ratios if not math.isnan(r)]
    if len(ratios) < 2:
        raise RuntimeError(f"too few windows to compare {name} and {base} by")
    quartiles = statistics.quantiles(ratios, n=4)
    error = 1.253 * (quartiles[2] - quartiles[0]) / 1.349 / math.sqrt(len(ratios))
    return statistics.median(ratios), error


def programs_once(load, chosen, seconds, kind=None):
    """ns a second that BPF programs of a capture ran on all CPUs, and how often they did."""
    with traced_with(load, chosen)() as tracer:
        time.sleep(SETTLE)
        start, before = now_ns(), bpf_runs(tracer.pid, kind)
        time.sleep(seconds)
        after, elapsed = bpf_runs(tracer.pid, kind), (now_ns() - start) / 1e9
    return [(b - a) / elapsed for a, b in zip(before, after)]


def programs(scale):
    """The same program: how long the BPF programs themselves run, by the kernel's own count, which
    other programs disturb little. Windows of time cost more: calling them, the cache, the tracer."""
    with Workload([program("turns"), "4", "20000", "0", "600"]) as load, bpf_stats():
        rate = switch_rate(load.pid, scale.seconds)
        runs = {what: [programs_once(load, chosen, scale.seconds) for _ in range(scale.few)]
                for chosen, what, _ in TURNS}
    median = {what: [statistics.median(x) for x in zip(*of)] for what, of in runs.items()}
    for _, what, base in TURNS:
        ns, times = median[what]
        if base:
            ns, times = ns - median[base][0], times - median[base][1]
        yield Row(f"20,000 switches a second, BPF programs of {what}", ns / 1e7, "%",
                  note=f"{ns / rate:.0f} ns and {times / rate:.1f} runs a switch, "
                  f"{rate:,.0f} switches a second untraced")


def samples(scale):
    """A program that computes all the time, so that each sample of its CPU is one of it. First what
    it loses, then what the program at the samples takes, which other programs disturb little."""
    with Workload([program("compute"), "0", "600"]) as load:
        tracers = {"untraced": nothing, "none": traced_with(load, "sched"),
                   "samples": traced_with(load, "sched,samples")}
        costs = interleave(load, tracers, scale.many, scale.short)
        lost, error = percent_lost(costs, "samples", "none")
        yield Row("computing, samples, beyond sched", lost, "%", 0.5, note=f"± {error:.1f} %")
        with bpf_stats():
            runs = [programs_once(load, "sched,samples", scale.seconds, PERF_EVENT_PROGRAM)
                    for _ in range(scale.few)]
    ns, times = (statistics.median(column) for column in zip(*runs))
    yield Row("computing, BPF program of samples", ns / 1e7, "%", 0.5,
              note=f"of a CPU; {times:.0f} runs a second on all CPUs, {ns / times / 1000:.1f} us each")


def first_touch(scale):
    """Minor page faults and nothing else."""
    with Workload([program("touch"), "0", "600"]) as load:
        tracers = {
            "untraced": nothing,
            "sched": functools.partial(waffle, load.pid, "--sources", "sched"),
            "faults": functools.partial(waffle, load.pid, "--sources", "sched,faults"),
        }
        costs = interleave(load, tracers, scale.rounds, scale.seconds)
    ns = typical(costs["untraced"]), typical(costs["faults"])
    yield Row("minor page fault, faults", ratio(costs, "faults", "untraced"), "x",
              note=f"{ns[1]:.0f} ns a fault, untraced {ns[0]:.0f} ns")


def neighbours(scale):
    for kind in ("pipe", "futex"):
        with running(["sleep", "600"]) as idle:
            with Workload([program("pingpong"), kind, "0", "600"]) as load:
                tracers = {
                    "untraced": nothing,
                    "waffle": functools.partial(waffle, idle.pid),
                }
                costs = interleave(load, tracers, scale.rounds, scale.seconds)
        yield Row(f"{kind} hand-over beside a traced process", ratio(costs, "waffle", "untraced"),
                  "x", 1.1)

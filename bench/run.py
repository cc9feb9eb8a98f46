#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what waffle costs and prints one table. Ratios are within one run, of windows that
alternate between the things compared. Needs root; docs/benchmarks.md explains the rows."""

import argparse
import functools
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import backends  # noqa: E402
import calls  # noqa: E402
import gpu_library  # noqa: E402
import placement  # noqa: E402
import python_bench  # noqa: E402
import scheduling  # noqa: E402
import sites  # noqa: E402
from lib import (  # noqa: E402
    ROOT,
    SCRATCH,
    WAFFLE,
    Row,
    Skipped,
    Workload,
    baseline,
    instructions_of_loop,
    interleave,
    nothing,
    now_ns,
    on_cpu,
    peers,
    proc_read,
    program,
    ratio,
    running,
    typical,
    urgent,
    waffle,
    wait_until,
    waits_for_events,
)


class Scale:
    """How long to measure: for numbers, or only to see that all of it runs."""

    def __init__(self, quick):
        self.rounds = 2 if quick else 9
        self.many, self.short = (3, 0.25) if quick else (60, 0.4)
        self.few = 1 if quick else 5
        self.seconds = 0.25 if quick else 0.6
        self.long_s = 1.5 if quick else 10
        self.records = 200_000 if quick else 10_000_000
        self.sites = 1_000 if quick else 10_000
        self.requests = 20_000 if quick else 120_000
        self.pairs = 1 if quick else 8
        self.processes = 2 if quick else 9


# ---- sites ----


def dormant(scale):
    modes = ["empty", "event", "span"]
    costs = {m: [] for m in modes}
    for i in range(scale.processes):
        for mode in modes[i % 3 :] + modes[: i % 3]:
            argv = urgent([program("emit"), mode, "0", "0.45"])
            out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            costs[mode].append(statistics.median(float(x.split()[1]) for x in out.splitlines()))
    counts = {}
    for mode in modes:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with running([program("emit"), mode, "0", "60"], **quiet) as process:
            time.sleep(0.05)
            counts[mode] = instructions_of_loop(process.pid)
    empty = min(costs["empty"])
    for mode in modes[1:]:
        note = f"empty loop {empty:.3f} ns, with {mode} {min(costs[mode]):.3f} ns"
        yield Row(f"dormant {mode}, two keys", max(0.0, min(costs[mode]) - empty), "ns", 0.5,
                  note=note)
        yield Row(f"dormant {mode}, instructions", counts[mode] - counts["empty"], "", 4)


def armed(scale):
    for mode, target in (("event", 1.4), ("span", None)):
        emit = program("emit")
        with Workload([emit, mode, "0", "600"]) as load:
            tracers = {
                "empty": functools.partial(baseline, "empty", load.pid, emit),
                "waffle": functools.partial(waffle, load.pid),
            }
            costs = interleave(load, tracers, scale.rounds, scale.seconds)
        ns = {name: typical(c) for name, c in costs.items()}
        what = "begin and end" if mode == "span" else "two integers"
        yield Row(f"armed {mode} / empty program", ratio(costs, "waffle", "empty"), "x", target,
                  note=f"{what}: {ns['waffle']:.0f} ns, empty program {ns['empty']:.0f} ns")


def inside(scale):
    """Sites of a program that records itself, beside its reading of the clock."""
    ratios, costs = {"event": [], "span": [], "event_full": [], "span_full": [], "frame_full": []}, {}
    for _ in range(scale.rounds):
        out = SCRATCH.path("inside.waffle")
        text = subprocess.run(urgent([program("inside"), "0", "100"]), check=True, text=True,
                              stdout=subprocess.PIPE,
                              env={**os.environ, "WAFFLE_TRACE": str(out)}).stdout
        costs = {name: float(ns) for name, ns in (line.split() for line in text.splitlines())}
        for name, found in ratios.items():
            found.append(costs[name] / costs["clock"])
    for name, target in (("event", 1.6), ("span", 3.2)):
        what = "begin and end" if name == "span" else "two integers"
        yield Row(f"recorded {name} / read of the counter", statistics.median(ratios[name]), "x",
                  target, note=f"{what}: {costs[name]:.1f} ns, counter {costs['clock']:.1f} ns")
    for name, what in (("event_full", "recorded event in full mode"),
                       ("span_full", "recorded span in full mode"),
                       ("frame_full", "pushed and popped frame in full mode")):
        yield Row(f"{what} / read of the counter", statistics.median(ratios[name]), "x",
                  note=f"{costs[name]:.1f} ns; in fast mode a frame {costs['frame_fast']:.1f} ns, "
                       f"in mode off an armed event {costs['event_off']:.1f} ns")


LTTNG = """
set -e
mount -t tmpfs shm /dev/shm
export LTTNG_HOME={folder} HOME={folder}
lttng-sessiond --daemonize --no-kernel --pidfile={folder}/pid
trap 'kill $(cat {folder}/pid)' EXIT
lttng -q create bench --output={folder}/out
lttng -q enable-event -u waffle_bench:event
lttng -q start
nice -n -20 {program} 0 50
lttng -q destroy bench
"""


def lttng(scale):
    """The same event by LTTng-UST, in turn with that of inside()."""
    if not os.path.exists(program("lttng")) or not shutil.which("lttng-sessiond"):
        raise Skipped("no lttng-tools and liblttng-ust-dev")
    ratios, ns = [], 0.0
    for turn in range(scale.rounds):
        folder = SCRATCH.path(f"lttng-{turn}")
        os.mkdir(folder)
        script = LTTNG.format(folder=folder, program=program("lttng"))
        text = subprocess.run(["unshare", "-m", "bash", "-c", script], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        theirs = {name: float(value) for name, value in map(str.split, text.splitlines())}
        text = subprocess.run(urgent([program("inside"), "0", "50"]), check=True, text=True,
                              stdout=subprocess.PIPE,
                              env={**os.environ, "WAFFLE_TRACE": SCRATCH.path("beside.waffle")})
        ours = {name: float(value) for name, value in map(str.split, text.stdout.splitlines())}
        ns = theirs["event"]
        ratios.append(ns / theirs["clock"] / (ours["event"] / ours["clock"]))
    yield Row("LTTng-UST event / recorded event", statistics.median(ratios), "x", 5, at_least=True,
              note=f"two integers: LTTng-UST {ns:.0f} ns")


def drain(scale):
    """Records are taken out of rings on one CPU."""
    rates = {"read": [], "gather": []}
    for _ in range(scale.rounds):
        text = subprocess.run(urgent([program("drain"), "0", "50"]), check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for name, value in map(str.split, text.splitlines()):
            rates[name].append(1e3 / float(value))
    yield Row("records drained from rings", statistics.median(rates["read"]), "million/s", 10,
              at_least=True)
    yield Row("records drained into one order", statistics.median(rates["gather"]), "million/s",
              10, at_least=True, note="as the collector does, before filters and the file")


def lost_of_file(path):
    """What a file says at its end of the records that are not in it."""
    if path.endswith(".waffle"):
        info = subprocess.run([WAFFLE, "info", path, "--json"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return json.loads(info)["records"]["lost"]
    with open(path, "rb") as file:
        file.seek(-256, os.SEEK_END)
        tail = file.read()
    if path.endswith(".json"):
        return int(re.search(rb'"lost":(\d+)}}\n]\n$', tail).group(1))
    # The last packet is TraceStats (field 35): a BufferStats for each source, each with
    # trace_writer_packet_loss (field 19, a varint). The first source is that of spans.
    at, lost, shift = tail.rindex(b"\x9a\x02"), 0, 0
    at = tail.index(b"\x98\x01", at) + 2
    while True:
        lost |= (tail[at] & 0x7F) << shift
        if tail[at] < 0x80:
            return lost
        at, shift = at + 1, shift + 7


def collected(scale):
    """A program records itself at a rate."""
    seconds = "1" if scale.rounds < 9 else "10"

    def run(rate, form):
        out = SCRATCH.path(f"rate.{form}")
        text = subprocess.run(urgent([program("rate"), "0", str(rate), seconds]), check=True,
                              text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "WAFFLE_TRACE": out}).stdout
        events, cpu, took = text.split()
        lost, size = lost_of_file(out), os.path.getsize(out)
        os.unlink(out)
        return int(events), int(cpu) / float(took) / 1e7, lost, size

    shares = [run(10_000, "waffle")[1] for _ in range(scale.rounds)]
    yield Row("collector at 10,000 events/s", statistics.median(shares), "% of a CPU", 1)
    for form in ("waffle", "json", "pftrace"):
        events, share, lost, size = run(1_000_000, form)
        yield Row(f"lost of a million events/s, .{form}", lost, "", 0,
                  note=f"{events:,} events, the collector took {share:.0f} % of a CPU, "
                       f"{size / events:.1f} bytes an event")


def threads(scale):
    """Threads that record at the same time, one on each CPU."""
    count = min(len(os.sched_getaffinity(0)), 64)
    ratios = []
    for _ in range(scale.rounds):
        costs = []
        for number in (1, count):
            out = SCRATCH.path("threads.waffle")
            text = subprocess.run(urgent([program("threads"), str(number), "50"]), check=True,
                                  text=True, stdout=subprocess.PIPE,
                                  env={**os.environ, "WAFFLE_TRACE": out}).stdout
            costs.append(float(text))
        ratios.append(costs[1] / costs[0])
    yield Row(f"recorded event, {count} threads / one", statistics.median(ratios), "x", 1.2,
              note="CPU time of an event while all record")


def transports(scale):
    """The same sites under a tracer, which reads the rings, or gets the hits from the kernel."""
    costs = {"ring": [], "usdt": []}
    for _ in range(scale.rounds):
        for way, found in costs.items():
            argv = [WAFFLE, "run", "-q", "--no-report", "--no-sched", "--transport", way]
            argv += ["-o", SCRATCH.path("way.waffle"), "--", program("inside"), "0", "30", "10000"]
            text = subprocess.run(on_cpu(1, urgent(argv)), check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            found.append({name: float(ns) for name, ns in map(str.split, text.splitlines())})
    middle = {way: {name: statistics.median(cost[name] for cost in found) for name in found[0]}
              for way, found in costs.items()}
    for name, target in (("event", 1.6), ("span", 3.2)):
        ring, kernel = (middle[way][name] for way in ("ring", "usdt"))
        clock = middle["ring"]["clock"]
        yield Row(f"{name} over a ring / read of the counter", ring / clock, "x", target,
                  note=f"{ring:.1f} ns, counter {clock:.1f} ns")
        yield Row(f"{name} over the kernel / over a ring", kernel / ring, "x", None,
                  note=f"{kernel:.0f} ns, {ring:.1f} ns")


def attach(scale):
    path = sites.build(scale.sites)
    times = {"armed": [], "disarmed": [], "exit": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for _ in range(1 if scale.sites < 10_000 else 5):
        with running([path]) as target:
            view = sites.Semaphores(target.pid, path)
            if len(view) != scale.sites:
                raise RuntimeError(f"{len(view)} semaphores of {scale.sites} sites")
            argv = [WAFFLE, "attach", "--pid", str(target.pid), "-q", "--no-report"]
            start = time.monotonic()
            with running([*argv, "-o", SCRATCH.path("sites.waffle")], **quiet) as tracer:
                wait_until(lambda: view.raised() == len(view), "all sites armed", 60)
                times["armed"].append(time.monotonic() - start)
                wait_until(lambda: waits_for_events(tracer.pid), "the tracer's loop")
                start = time.monotonic()
                tracer.send_signal(signal.SIGINT)
                wait_until(lambda: view.raised() == 0, "all sites disarmed", 60)
                times["disarmed"].append(time.monotonic() - start)
                tracer.wait()
                times["exit"].append(time.monotonic() - start)
    median = {k: statistics.median(v) for k, v in times.items()}
    yield Row(f"attach to {scale.sites:,} sites", median["armed"], "s", 1)
    yield Row(f"detach from {scale.sites:,} sites", median["disarmed"], "s", 1,
              note=f"program gone after {median['exit']:.2f} s")


# ---- filters ----

# Of the event `text`: its four integers pass, then the string does or does not.
INTEGERS = "kv.a >= 0 && kv.b > 0 && kv.c == 3 && kv.d < 100"
PASSES, FAILS = (f'{INTEGERS} && kv.path == "/var/lib/data/shard-000{i}.bin"' for i in (7, 8))


def decisions(scale):
    emit = program("emit")
    with Workload([emit, "text", "0", "600"]) as load:
        tracers = {
            "empty": functools.partial(baseline, "empty", load.pid, emit),
            "unfiltered": functools.partial(waffle, load.pid),
            "rejected": functools.partial(waffle, load.pid, "--filter", FAILS),
            "accepted": functools.partial(waffle, load.pid, "--filter", PASSES),
        }
        costs = interleave(load, tracers, scale.rounds, scale.seconds)
    ns = {name: typical(c) for name, c in costs.items()}
    what = "four integer and one string predicate"
    yield Row("event rejected / empty program", ratio(costs, "rejected", "empty"), "x", 1.15,
              note=f"{what}: {ns['rejected']:.0f} ns, empty program {ns['empty']:.0f} ns")
    yield Row("event accepted / unfiltered", ratio(costs, "accepted", "unfiltered"), "x", 1.1,
              note=f"{ns['accepted']:.0f} ns, unfiltered {ns['unfiltered']:.0f} ns")


def slow_once(seconds, *options):
    """Spans, delivered records and % of a CPU of one capture of spans of which few are slow."""
    path = SCRATCH.path("slow.waffle")
    argv = [WAFFLE, "run", "--no-report", "-o", path, *options, "--", program("emit"), "slow", "0"]
    done = subprocess.run([*argv, str(seconds)], capture_output=True, text=True, check=True)
    spans = int(re.search(r"^(\d+)$", done.stderr, re.M).group(1))
    cpu = float(re.search(r"then ([\d.]+) % of a CPU", done.stderr).group(1))
    info = json.loads(subprocess.check_output([WAFFLE, "info", "--json", path]))
    return spans, info["records"]["delivered"], cpu


def slow_spans(scale):
    spans, records, cpu = slow_once(scale.long_s)
    few_spans, few_records, few_cpu = slow_once(scale.long_s, "--filter", "dur > 500us")
    yield Row("dur > 500us, records fewer by", records / spans / (few_records / few_spans), "x",
              1000, True, f"one span in 10,000 is slow: {records:,} records of {spans:,} spans, "
              f"filtered {few_records:,} of {few_spans:,}")
    yield Row("dur > 500us, the tracer's CPU lower by", cpu / few_cpu, "x", 20, True,
              f"{cpu:g} % of a CPU, filtered {few_cpu:g} %")


def longest_filter(scale):
    """64 predicates of all kinds, none of which arming can decide."""
    kinds = ["kv.a > {i}", "kv.b != {i}", 'kv.path ~ "*shard*{i}*.bin"', "kv.c in {{1, 2, {i}}}",
             'kv.path == "/var/lib/data/shard-{i:04}.bin"', 'comm !~ "x*{i}?y*"', "kv.d <= {i}.5",
             "tid != {i}"]
    expression = " || ".join(kinds[i % len(kinds)].format(i=i) for i in range(64))
    with running([program("emit"), "text", "0", "600"], stdout=subprocess.DEVNULL) as load:
        argv = [WAFFLE, "attach", "--pid", str(load.pid), "--filter", expression, "--explain"]
        plans = [json.loads(subprocess.check_output([*argv, "--json"])) for _ in range(scale.pairs)]
    lengths = [len(p["hit"]) for p in plans[0]["programs"] if p["hit"]]
    yield Row("loading 64 predicates", statistics.median(p["load_ns"] for p in plans) / 1e6, "ms",
              200, note=f"for {len(lengths)} kinds of sites, the longest program has "
              f"{max(lengths):,} instructions")


# ---- captures ----


def flood(scale):
    path = SCRATCH.path("flood.waffle")
    argv = [WAFFLE, "run", "--no-report", "-o", path, "--", program("emit"), "event", "0"]
    done = subprocess.run([*argv, str(scale.long_s)], capture_output=True, text=True, check=True)
    own = int(re.search(r"^(\d+)$", done.stderr, re.M).group(1))
    cpu = float(re.search(r"then ([\d.]+) % of a CPU", done.stderr).group(1))
    info = json.loads(subprocess.check_output([WAFFLE, "info", "--json", path]))
    yield Row(f"flood for {scale.long_s:g} s, records lost", info["records"]["lost"], "", 0,
              note=f"{own:,} events by the program's own count")
    yield Row("flood, events that differ from the program's count", abs(own - info["events"]), "",
              0)
    yield Row("flood, the tracer's own CPU", cpu, "%")


def schedstat(pid):
    """Of every thread: the time, and its running and runnable ns so far. They are read while the
    thread sleeps: the kernel does not count a time slice that still lasts."""
    times = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        while tid not in times:
            before, at = proc_read(pid, tid, "schedstat"), now_ns()
            sleeps = proc_read(pid, tid, "stat").rpartition(")")[2].split()[0] == "S"
            if sleeps and proc_read(pid, tid, "schedstat") == before:
                times[tid] = (at, *map(int, before.split()[:2]))
            else:
                time.sleep(0.0005)
    return times


def sched_sums(path, windows):
    """Of every thread in a capture: running and runnable ns within its (start, end)."""
    sums = {tid: [0, 0] for tid in windows}
    argv = [WAFFLE, "export", "--format", "ndjson", "-o", "-", path]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as export:
        for line in export.stdout:
            o = json.loads(line)
            if o["kind"] != "sched" or o["name"] not in ("running", "runnable"):
                continue
            start, end = windows[str(o["tid"])]
            ns = max(0, min(end, o["end_ns"]) - max(start, o["start_ns"]))
            sums[str(o["tid"])][o["name"] == "runnable"] += ns
    return sums


def stolen_ms():
    """Time that the hypervisor kept the CPUs from this machine: the kernel takes it off the
    running time of whichever thread it thinks ran."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * 1000 // os.sysconf("SC_CLK_TCK")


def account_once(path, seconds):
    """Stolen ms, and of every thread (kernel's, ours) of running and of runnable ns."""
    with running([program("load"), "8", str(seconds + 60)]) as load:
        time.sleep(0.2)
        argv = [WAFFLE, "attach", "--pid", str(load.pid), "-q", "--no-report", "-o", path]
        with running(argv, signal.SIGINT) as tracer:
            wait_until(lambda: waits_for_events(tracer.pid), "arming")
            stolen, before = stolen_ms(), schedstat(load.pid)
            time.sleep(seconds)
            after, stolen = schedstat(load.pid), stolen_ms() - stolen
    sums = sched_sums(path, {tid: (before[tid][0], after[tid][0]) for tid in before})
    pairs = [[(after[t][i] - before[t][i], sums[t][i - 1]) for t in before] for i in (1, 2)]
    return stolen, pairs


def accounting(scale):
    runs = []
    while len(runs) < 3 and (not runs or min(runs)[0] > 20):
        runs.append(account_once(SCRATCH.path("load.waffle"), scale.long_s))
    stolen, pairs = min(runs)
    for state, threads in zip(("running", "runnable"), pairs):
        errors = [abs(b - a) / a * 100 for a, b in threads if a >= 100_000_000]
        yield Row(f"{state} time against schedstat", max(errors, default=None), "%", 1,
                  note=f"worst of {len(errors)} threads in {scale.long_s:g} s under load; "
                  f"{stolen} ms stolen by the hypervisor")


def timed(argv):
    """Seconds and peak resident bytes of a command."""
    start = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(argv)}: status {status}")
    return time.monotonic() - start, usage.ru_maxrss * 1024, usage


def large(scale):
    path, trace = SCRATCH.path("large.waffle"), SCRATCH.path("large.pftrace")
    subprocess.run([program("store_bench"), str(scale.records), path], check=True,
                   stdout=subprocess.DEVNULL)
    size = os.path.getsize(path)
    yield Row("bytes a record on disk", size / scale.records, "B", 16,
              note=f"{scale.records:,} records of spans and switches")
    times = 1 if scale.records < 10_000_000 else 3
    for name, options, target, most in (("report with causes", ["report"], 8, 60),
                                        ("why --slowest 10", ["why", "--slowest", "10"], 4, 45)):
        runs = [timed([WAFFLE, *options, path]) for _ in range(times)]
        cpu = statistics.median(r[2].ru_utime + r[2].ru_stime for r in runs)
        yield Row(name, statistics.median(r[0] for r in runs), "s", target,
                  note=f"{cpu:.1f} s of CPU time")
        yield Row(f"{name}, peak memory a record", max(r[1] for r in runs) / scale.records, "B",
                  most)
    argv = [WAFFLE, "export", "--format", "perfetto", "-o", trace, path]
    runs = [timed(argv) for _ in range(times)]
    best = statistics.median(r[0] for r in runs)
    cpu = ", ".join(f"{statistics.median(getattr(r[2], k) for r in runs):.1f} s {name}"
                    for k, name in (("ru_utime", "user"), ("ru_stime", "system")))
    yield Row("Perfetto export, million records a second", scale.records / best / 1e6, "", 2.5,
              True, f"{best:.1f} s: {cpu}")
    yield Row("bytes a record in the Perfetto file", os.path.getsize(trace) / scale.records, "B",
              60)
    os.unlink(path)
    os.unlink(trace)


def huge(scale):
    """Ten times as many records: the memory of all of them at once."""
    path, records = SCRATCH.path("huge.waffle"), 10 * scale.records
    subprocess.run([program("store_bench"), str(records), path], check=True,
                   stdout=subprocess.DEVNULL)
    for name, options in (("report", ["report"]), ("why --slowest 10", ["why", "--slowest", "10"])):
        seconds, peak, _ = timed([WAFFLE, *options, path])
        yield Row(f"{name} of {records:,} records, peak memory", peak / 2**30, "GiB", 4,
                  note=f"{peak / records:.1f} B a record; {seconds:.0f} s")
    os.unlink(path)


def jobs(scale):
    """Many files as one: written to one file, and a report of 256 ranks."""
    out = SCRATCH.path("job.waffle")
    for ranks, each in ((16, max(scale.records // 10, 10_000)),
                        (256, max(scale.records // 250, 1_000))):
        paths = [SCRATCH.path(f"job.{rank}.waffle") for rank in range(ranks)]
        for rank, path in enumerate(paths):
            subprocess.run([program("store_bench"), str(each), path, str(rank), str(ranks)],
                           check=True, stdout=subprocess.DEVNULL)
        if ranks == 16:
            runs = [timed([WAFFLE, "merge", "--align", "wall", "-o", out, *paths])
                    for _ in range(3)]
            seconds = statistics.median(r[0] for r in runs)
            cpu = statistics.median(r[2].ru_utime + r[2].ru_stime for r in runs)
            yield Row("merge, million records a second", ranks * each / seconds / 1e6, "", 2, True,
                      note=f"{ranks} files of {each:,} records; {cpu:.1f} s of CPU time")
            os.unlink(out)
        else:
            seconds, peak, _ = timed([WAFFLE, "report", *paths])
            yield Row("report of 256 ranks, peak memory", peak / 1e9, "GB", 2,
                      note=f"{ranks} files of {each:,} records; {seconds:.1f} s")
        for path in paths:
            os.unlink(path)


def origins(scale):
    """The origin of one event in a job of 16 ranks, each with a file of its own."""
    ranks, each = 16, max(scale.records // 10, 10_000)
    paths = [SCRATCH.path(f"rank.{rank}.waffle") for rank in range(ranks)]
    subprocess.run([program("origin_bench"), str(ranks), str(each), SCRATCH.path("rank.%r.waffle")],
                   check=True, stdout=subprocess.DEVNULL)
    runs = [timed([WAFFLE, "why", "--event", "loss is NaN", *paths]) for _ in range(3)]
    cpu = statistics.median(r[2].ru_utime + r[2].ru_stime for r in runs)
    yield Row("origins of one event, 16 files", statistics.median(r[0] for r in runs), "s", 3,
              note=f"of {each:,} records each; {cpu:.1f} s of CPU time")
    yield Row("origins, peak memory a record", max(r[1] for r in runs) / (ranks * each), "B", 150)
    for path in paths:
        os.unlink(path)


def gpu_timeline(scale):
    """What GPUs did, of a capture with the launches and operations of libwaffle-gpu."""
    count, path = scale.records, SCRATCH.path("gpu.waffle")
    subprocess.run([program("gpu_bench"), str(count), path], check=True, stdout=subprocess.DEVNULL)
    runs = [timed([WAFFLE, "gpu", "--json", path]) for _ in range(1 if count < 10_000_000 else 3)]
    cpu = statistics.median(r[2].ru_utime + r[2].ru_stime for r in runs)
    yield Row(f"gpu, {count:,} operations", statistics.median(r[0] for r in runs), "s", 10,
              note=f"each with its launch; {cpu:.1f} s of CPU time")
    yield Row("gpu, peak memory an operation", max(r[1] for r in runs) / count, "B",
              100 if count >= 10_000_000 else None)
    yield from replays(count, path)
    os.unlink(path)


def replays(count, path):
    """The same work scheduled again."""
    times = 1 if count < 10_000_000 else 3
    parts = []
    for _ in range(times):
        text = subprocess.run([program("replay_bench"), path], check=True, text=True, stdout=subprocess.PIPE).stdout
        parts.append({name: float(value) for name, value in map(str.split, text.splitlines())})
    cpu = {name: statistics.median(part[name] for part in parts) for name in parts[0]}
    yield Row("replay, million operations a second", count / cpu["replay"] / 1e6, "", 2, at_least=True,
              note="each with its launch: the graph, its check and the schedule, in CPU time; before that "
                   f"{cpu['read']:.1f} s for reading and {cpu['timeline']:.1f} s for the time line")
    runs = [timed([WAFFLE, "replay", path]) for _ in range(times)]
    cpu = statistics.median(r[2].ru_utime + r[2].ru_stime for r in runs)
    yield Row(f"replay, {count:,} operations, all of the command", statistics.median(r[0] for r in runs), "s",
              note=f"{cpu:.1f} s of CPU time")
    yield Row("replay, peak memory an operation", max(r[1] for r in runs) / count, "B",
              250 if count >= 10_000_000 else None, note="with its launch, which is a node of its own")


# ---- whole programs ----


def redis_rate(port, requests):
    argv = ["redis-benchmark", "-p", str(port), "-t", "get", "-c", "50", "-n", str(requests)]
    out = subprocess.check_output(on_cpu(1, [*argv, "--csv"]), text=True)
    return float(re.search(r'^"GET","([\d.]+)"', out, re.M).group(1))


def redis(scale):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        raise Skipped("redis is not installed")
    port = 17379
    argv = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    folder = os.path.dirname(SCRATCH.path("x"))
    with running(on_cpu(0, argv), stdout=subprocess.DEVNULL, cwd=folder) as server:
        ping = ["redis-cli", "-p", str(port), "ping"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        wait_until(lambda: not subprocess.run(ping, check=False, **quiet).returncode, "redis")
        redis_rate(port, scale.requests // 4)
        tracers = {
            "untraced": nothing,
            "traced": functools.partial(waffle, server.pid),
            **{f"traced by {name}": tracer for name, tracer in peers().items()},
        }
        rates = {name: [] for name in tracers}
        for i in range(scale.pairs):
            names = list(tracers)
            for name in names[i % len(names) :] + names[: i % len(names)]:
                with tracers[name]():
                    rates[name].append(redis_rate(port, scale.requests))
    for name in list(tracers)[1:]:
        lost = [(1 - b / a) * 100 for a, b in zip(rates["untraced"], rates[name])]
        yield Row(f"redis GET, operations lost when {name}",
                  statistics.median(lost), "%", 5 if name == "traced" else None,
                  note=f"{statistics.median(rates['untraced']) / 1000:.0f}k operations a second "
                  f"untraced, {len(lost)} rounds" +
                  ("; wprof by default: 5 to 11 %" if name == "traced" else ""))


def ready_times(pid, count, *options):
    """CPU time and time until attach is ready, in s: medians."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
    times = []
    for _ in range(count):
        argv = [WAFFLE, "attach", "--pid", str(pid), "--no-report", "--duration", "10ms", *options]
        argv += ["-o", SCRATCH.path("ready.waffle")]
        text = subprocess.run(argv, capture_output=True, text=True, check=True).stderr
        found = re.search(r"([\d.]+) (\w+) of CPU in ([\d.]+) (\w+) until ready", text).groups()
        times.append([float(found[i]) * units[found[i + 1]] for i in (0, 2)])
    return [statistics.median(column) for column in zip(*times)]


def ready(scale):
    with running(["sleep", "600"]) as target:
        cpu, _ = ready_times(target.pid, max(scale.pairs, 2))
    yield Row("ready to trace, CPU time", cpu, "s", 0.15)


def torch_program(then):
    """The command and the environment of a program that imports PyTorch."""
    frameworks = ROOT / "build" / "frameworks"
    environment = {**os.environ, "PYTHONPATH": str(frameworks), "LD_LIBRARY_PATH": str(frameworks / "cuda-stubs"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return [ROOT / "build/venv/bin/python", "-c", f"import torch; {then}"], environment


def import_torch(scale):
    """With the start and the end of waffle-bpf. PyTorch registers 24,000 kernels, which are calls of CUDA."""
    argv, environment = torch_program("pass")
    traced = [WAFFLE, "run", "--quiet", "--no-report", "--stacks", "sched", "-o", SCRATCH.path("torch.waffle"), "--"]
    times = {(): [], tuple(traced): []}
    for count in range(max(scale.pairs, 3) + 1):
        for before, seconds in times.items():
            start = time.monotonic()
            subprocess.run([*before, *argv], env=environment, check=True, capture_output=True)
            if count:  # the first ones fill the caches
                seconds.append(time.monotonic() - start)
    plain, recorded = map(statistics.median, times.values())
    yield Row("import torch under run --stacks sched / untraced", recorded / plain, "x", 1.3,
              note=f"{plain:.2f} s untraced, {len(times[()])} runs of each in turn")


def ready_torch(scale):
    """PyTorch's libraries are 1.5 GB. The first attach fills the cache."""
    argv, environment = torch_program("print('ready', flush=True); input()")
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
        assert target.stdout.readline() == b"ready\n"
        ready_times(target.pid, 1, "--stacks", "sched")
        cpu, wall = ready_times(target.pid, max(scale.pairs, 3), "--stacks", "sched")
        target.communicate(b"\n")
    yield Row("ready with PyTorch and stacks, CPU time", cpu, "s", 0.3)
    yield Row("ready with PyTorch and stacks", wall, "s", 0.5)


GROUPS = (dormant, armed, inside, lttng, python_bench.python, backends.cpp, drain, collected, threads, transports, attach, decisions,
          slow_spans, longest_filter, flood, accounting, large, huge, backends.sending, backends.database,
          jobs, origins, gpu_timeline, scheduling.switches, scheduling.sources, scheduling.programs, scheduling.samples,
          scheduling.first_touch,
          scheduling.neighbours, placement.placement, calls.launches, calls.attach_calls, gpu_library.gpu_library,
          redis, ready, ready_torch, import_torch)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    model = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} CPUs ({model}), Linux {platform.release()}"


def print_table(rows):
    table = [["name", "measured", "target", "met", ""]] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(4)]
    print(f"\n{machine()}, load {os.getloadavg()[0]:.1f}")
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        print("  ".join([*cells, line[4]]).rstrip())


def measure(groups, scale):
    rows, failed = [], False
    for group in groups:
        start = time.monotonic()
        try:
            rows.extend(group(scale))
        except Skipped as reason:
            rows.append(Row(group.__name__, None, "", note=f"skipped: {reason}"))
        except Exception as error:  # noqa: BLE001 - the other groups' rows would be lost
            note = f"failed: {type(error).__name__}: {error}"
            rows.append(Row(group.__name__, None, "", note=note))
            failed = True
        print(f"{group.__name__}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return rows, failed


def main():
    names = {g.__name__: g for g in GROUPS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only see that everything runs")
    parser.add_argument("--only", nargs="+", choices=names, default=list(names), metavar="NAME",
                        help=f"of {' '.join(names)}")
    parser.add_argument("--json", metavar="FILE", help="write the table to FILE as well")
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("bench: needs root, to trace; run it with sudo")
    if not os.path.exists(WAFFLE) or not os.path.exists(program("load")):
        sys.exit("bench: the programs are not built; run make bench")
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("bench: needs two CPUs, one for the program and one for the tracer")
    os.chdir(ROOT)
    rows, failed = measure([names[n] for n in options.only], Scale(options.quick))
    print_table(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"machine": machine(), "rows": [r.json() for r in rows]}, f, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

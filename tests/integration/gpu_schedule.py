# SPDX-License-Identifier: Apache-2.0
"""Random schedules of GPU work, written as a capture, and what is true of them by brute force.

The schedule is simulated by CUDA's rules: streams are in order, a stream that waits for an event goes on
when what was before the event is done, and the default stream and the blocking streams wait for each
other. Each operation has the set of all operations before it (`before`, a set of bits), so nothing of
the reference follows edges."""

import collections
import random
import subprocess

SPAN, EVENT = 1, 3
START = 1_000_000_000_000
STATES = ("idle", "queued", "running", "waiting", "complete")

SITES = {
    "step": (SPAN, "none", 0, "train", "step", []),
    "kernel": (SPAN, "none", 0, "gpu", "gemm<float>", None),
    "nccl": (SPAN, "none", 0, "gpu", "ncclDevKernel_AllReduce", None),
    "copy": (SPAN, "none", 0, "gpu", "copy", None),
    "set": (SPAN, "none", 0, "gpu", "set", None),
    "odd": (SPAN, "none", 0, "gpu", "odd", None),
    "launch": (EVENT, "none", 0, "gpu", "launch", ["u:correlation", "s:function"]),
    "wait": (EVENT, "none", 0, "gpu", "wait", ["u:correlation", "s:function"]),
    "launch_on": (EVENT, "none", 0, "gpu", "launch", ["u:correlation", "s:function", "p:handle"]),
    "wait_stream": (EVENT, "none", 0, "gpu", "wait", ["u:correlation", "s:function", "p:handle"]),
    "wait_event": (EVENT, "none", 0, "gpu", "wait", ["u:correlation", "s:function", "p:event"]),
    "event record": (EVENT, "none", 0, "gpu", "event record", ["p:event", "p:handle"]),
    "event record of a context": (EVENT, "none", 0, "gpu", "event record", ["p:event"]),
    "stream wait": (EVENT, "none", 0, "gpu", "stream wait", ["p:event", "p:handle"]),
    "stream create": (EVENT, "none", 0, "gpu", "stream create", ["p:handle", "u:flags"]),
    "capture begin": (EVENT, "none", 0, "gpu", "capture begin", ["p:handle"]),
    "capture end": (EVENT, "none", 0, "gpu", "capture end", ["p:handle", "u:result"]),
    "synchronize": (SPAN, "none", 0, "gpu", "synchronize", None),
    "synchronize_context": (
        SPAN, "none", 0, "gpu", "synchronize", ["s:op", "u:context", "u:correlation", "s:kind"],
    ),
    "session": (EVENT, "none", 0, "gpu", "session", ["s:state", "b:simulated", "u:dropped"]),
    "cudaLaunchKernel": (EVENT, "launch", 1, "cuda", "cudaLaunchKernel", ["p:stream"]),
    "cudaGraphLaunch": (EVENT, "launch", 1, "cuda", "cudaGraphLaunch", ["p:stream"]),
    "cudaMemcpyAsync": (SPAN, "copy", 1, "cuda", "cudaMemcpyAsync", ["p:stream", "i:result"]),
    "cudaMemcpy": (SPAN, "copy", 1, "cuda", "cudaMemcpy", ["u:bytes", "i:result"]),
    "cudaMemsetAsync": (SPAN, "set", 1, "cuda", "cudaMemsetAsync", ["p:stream", "i:result"]),
    "cudaEventRecord": (EVENT, "event_record", 1, "cuda", "cudaEventRecord", ["p:event", "p:stream"]),
    "cudaStreamWaitEvent": (
        EVENT, "stream_wait", 1, "cuda", "cudaStreamWaitEvent", ["p:stream", "p:event"],
    ),
    "cudaStreamSynchronize": (
        SPAN, "sync_stream", 1, "cuda", "cudaStreamSynchronize", ["p:stream", "i:result"],
    ),
    "cudaEventSynchronize": (
        SPAN, "sync_event", 1, "cuda", "cudaEventSynchronize", ["p:event", "i:result"],
    ),
    "cudaDeviceSynchronize": (SPAN, "sync_device", 1, "cuda", "cudaDeviceSynchronize", ["i:result"]),
    "cudaStreamCreate": (
        SPAN, "stream_create", 1, "cuda", "cudaStreamCreateWithFlags",
        ["u:flags", "p:stream", "i:result"],
    ),
}
OP_KEYS = ["s:op", "u:device", "u:context", "u:stream", "u:correlation", "s:kind", "u:bytes"]
NAMES = list(SITES)


class Writer:
    """Lines for text_capture.c."""

    def __init__(self):
        self.lines = []
        self.ids = 0
        for kind, role, call, category, name, keys in SITES.values():
            self.line("site", kind, role, call, category, name, *(OP_KEYS if keys is None else keys))

    def line(self, *fields):
        self.lines.append("\t".join(map(str, fields)))

    def id(self):
        self.ids += 1
        return self.ids

    def hit(self, ts, tid, pid, site, *values, parent=0, track=0):
        number = self.id()
        self.line("hit", ts, tid, pid, NAMES.index(site), number, parent, track, *values)
        return number

    def end(self, ts, tid, pid, site, number):
        self.line("end", ts, tid, pid, NAMES.index(site), number)

    def ret(self, ts, tid, pid, site, number, first, *values):
        self.line("return", ts, tid, pid, NAMES.index(site), number, first, *values)

    def write(self, program, path, end):
        subprocess.run(
            [program, path, str(START), str(end)],
            input="\n".join(self.lines) + "\n",
            text=True,
            check=True,
        )


Op = collections.namedtuple("Op", "pid device stream start end launched tid before bit kind name")


class Stream:
    def __init__(self, handle, number, device, blocking):
        self.handle, self.number, self.device, self.blocking = handle, number, device, blocking
        self.before = 0  # all operations that its next one comes after
        self.free = 0  # when its last one ends


class Process:
    def __init__(self, pid, rng):
        self.pid = pid
        self.devices = rng.randint(1, 3)
        self.streams = [Stream(0, 7, 0, "legacy")]
        for i in range(rng.randint(1, 5)):
            blocking = rng.random() < 0.5
            self.streams.append(Stream(0x1000 + 16 * i, 13 + i, rng.randrange(self.devices), blocking))
        self.events = [0x9000 + 8 * i for i in range(4)]
        self.recorded = {}
        self.threads = [pid + i for i in range(rng.randint(1, 3))]
        self.correlation = 0
        self.last = START


class Schedule:
    """A random schedule. `ops` are its operations; `syncs` are (start, end, tid, before). With `prompt`, the GPU
    begins each operation as soon as it can. The calls that order streams are those that probes record, or events
    of the library, or both."""

    def __init__(self, seed, actions=60, lossy=False, processes=None, prompt=False, calls="probes"):
        self.rng = random.Random(seed)
        self.probes, self.library = calls != "library", calls != "probes"
        self.writer, self.lossy, self.prompt = Writer(), lossy, prompt
        self.ops, self.syncs, self.late = [], [], []
        self.ends, self.used, self.steps = set(), set(), {}
        self.unknown = self.repeated = self.without = 0
        self.processes = [
            Process(100 * (i + 1), self.rng) for i in range(processes or self.rng.randint(1, 2))
        ]
        self.clock = {}
        for process in self.processes:
            self.begin(process)
        for _ in range(actions):
            self.act()
        self.end = max([START + 1000, *self.clock.values(), *(op.end for op in self.ops)]) + 500
        for process in self.processes:
            for tid in process.threads:
                self.writer.end(self.end - 10, tid, process.pid, "step", self.steps[tid])
        self.rng.shuffle(self.late)  # the device's buffers come late, and in any order
        for write in self.late:
            write()
        self.ops.sort(key=lambda op: (op.pid, op.device, op.stream, op.start))

    def begin(self, process):
        self.writer.line("process", process.pid)
        for tid in process.threads:
            self.writer.line("task", START, tid, process.pid, f"thread-{tid}")
            self.clock[tid] = START + self.rng.randint(1, 50)
        for tid in process.threads:
            self.steps[tid] = self.writer.hit(self.tick(tid), tid, process.pid, "step")
        for number, stream in enumerate(process.streams):
            self.writer.line(
                "track", START, process.pid, number + 1, f"stream {stream.number}", f"GPU {stream.device}"
            )
            if stream.blocking == "legacy":
                continue
            tid, pid = process.threads[0], process.pid
            flags = 0 if stream.blocking else 1
            if self.probes:
                call = self.writer.hit(self.call(process, tid), tid, pid, "cudaStreamCreate", flags)
                self.writer.ret(self.tick(tid), tid, pid, "cudaStreamCreate", call, 1, stream.handle, 0)
            if self.library:
                self.writer.hit(self.call(process, tid), tid, pid, "stream create", stream.handle, flags)

    def call(self, process, tid):
        """When a thread's next call begins: calls take effect in the order in which they are made up."""
        self.clock[tid] = max(self.clock[tid], process.last)
        process.last = self.tick(tid)
        return process.last

    def tick(self, tid, low=1, high=30):
        """A later time of a thread, at which nothing else happens."""
        ts = self.clock[tid] + self.rng.randint(low, high)
        while ts in self.used:
            ts += 1
        self.used.add(ts)
        self.clock[tid] = ts
        return ts

    # ---- the GPU ----

    def delay(self, ns):
        return 0 if self.prompt else ns

    def run(self, process, stream, launched, tid, correlation, kind, name, after):
        start = max(launched + self.delay(self.rng.randint(0, 40)), stream.free)
        for op in self.ops:
            if op.pid == process.pid and after >> op.bit & 1:
                start = max(start, op.end)
        start += self.delay(self.rng.choice([0, 0, self.rng.randint(0, 20)]))
        end = start + self.rng.choice([0 + self.prompt, self.rng.randint(1, 30), self.rng.randint(1, 300)])
        while end in self.ends:
            end += 1
        self.ends.add(end)
        stream.free = end + (start == end)
        known = launched
        if self.lossy and self.rng.random() < 0.1:
            known = None
            self.without += 1
            correlation += 1_000_000
        op = Op(
            process.pid, stream.device, stream.number, start, end, known, tid, after, len(self.ops), kind, name
        )
        self.ops.append(op)
        values = (kind, stream.device, 1, stream.number, correlation)
        if kind == "copy":
            values += ("HtoD", 4096)
        track = process.streams.index(stream) + 1
        site = {"kernel": "nccl" if name.startswith("nccl") else "kernel"}.get(kind, kind)

        def write():
            number = self.writer.hit(start, tid, process.pid, site, *values, track=track)
            self.writer.end(end, tid, process.pid, site, number)

        self.late.append(write)
        if self.lossy and self.rng.random() < 0.05:
            self.unknown += 1
            self.late.append(
                lambda: self.writer.end(
                    start + 1, tid, process.pid, "odd",
                    self.writer.hit(start, tid, process.pid, "odd", "future", 0, 1, 7, 1, track=1),
                )
            )
        return 1 << op.bit

    def before(self, process, stream):
        """All that a call on a stream comes after."""
        before = stream.before
        for other in process.streams:
            if stream.blocking == "legacy" and other.blocking is True:
                before |= other.before
            if stream.blocking is True and other.blocking == "legacy":
                before |= other.before
        return before

    def launch(self, process, tid, stream, call, kinds, span):
        pid = process.pid
        number = None
        at = self.call(process, tid)
        if not self.probes:
            span = None
        elif span:
            number = self.writer.hit(at, tid, pid, call, *([stream.handle] if span == "stream" else [4096]))
        else:
            self.writer.hit(at, tid, pid, call, stream.handle)
        process.correlation += 1
        launched = self.tick(tid, 1, 5)
        values, parent = (process.correlation, call), self.steps[tid]
        if self.library:
            self.writer.hit(launched, tid, pid, "launch_on", *values, stream.handle, parent=parent)
        else:
            self.writer.hit(launched, tid, pid, "launch", *values, parent=parent)
        if not self.probes:
            process.last = launched
        done = after = self.before(process, stream)
        for kind in kinds:
            name = self.rng.choice(["gemm<float>", "ncclDevKernel_AllReduce"]) if kind == "kernel" else kind
            bit = self.run(process, stream, launched, tid, process.correlation, kind, name, after)
            done |= bit
            after |= bit
        stream.before = done
        if not span:
            return
        if span == "copied":
            end = max(op.end for op in self.ops if done >> op.bit & 1)
            self.clock[tid] = max(self.clock[tid], end)
        returned = self.tick(tid)
        self.writer.ret(returned, tid, pid, call, number, 1, 0)
        if span == "copied":
            self.syncs.append((at, returned, tid, done))

    # ---- the host ----

    def sync(self, process, tid, call, before, *values, stream=None):
        start = self.call(process, tid)
        number = self.probes and self.writer.hit(start, tid, process.pid, call, *values)
        inner = self.library and self.wait_event(process, tid, call, *values)
        if not self.probes:
            start = inner
        ends = [op.end for op in self.ops if op.pid == process.pid and before >> op.bit & 1]
        self.clock[tid] = max([self.clock[tid], *ends])
        end = self.tick(tid)
        if self.library:
            self.wait_record(process, tid, call, inner, end, stream)
        if self.probes:
            self.writer.ret(self.tick(tid), tid, process.pid, call, number, len(values), 0)
            end = self.clock[tid]
        self.syncs.append((start, end, tid, before))

    def wait_event(self, process, tid, call, *values):
        """The library's event in a call that waits. Returns when CUPTI says that the wait began."""
        process.correlation += 1
        site = {"cudaStreamSynchronize": "wait_stream", "cudaEventSynchronize": "wait_event"}.get(call, "wait")
        at = self.tick(tid)
        self.writer.hit(at, tid, process.pid, site, process.correlation, call, *values)
        if not self.probes:
            process.last = at
        return self.tick(tid, 1, 3)

    def wait_record(self, process, tid, call, start, end, stream):
        """CUPTI's record of a call that waited. That of an event does not say the stream."""
        kind = {"cudaStreamSynchronize": "stream", "cudaEventSynchronize": "event"}.get(call, "context")
        site, values = "synchronize_context", ("wait", 1, process.correlation, kind)
        if stream:
            site = "synchronize"
            values = ("wait", stream.device, 1, stream.number, process.correlation, kind, 0)

        def write():
            number = self.writer.hit(start, tid, process.pid, site, *values, track=1)
            self.writer.end(end, tid, process.pid, site, number)

        self.late.append(write)

    def order(self, process, tid, probe, event, stream, *values):
        """A call that records an event, or makes a stream wait for one. `values` are those of the probe."""
        at = self.call(process, tid)
        if self.probes:
            self.writer.hit(at, tid, process.pid, probe, *values)
        if self.library:
            site = {"cudaEventRecord": "event record", "cudaStreamWaitEvent": "stream wait"}[probe]
            self.writer.hit(self.tick(tid) if self.probes else at, tid, process.pid, site, event, stream.handle)

    def act(self):
        process = self.rng.choice(self.processes)
        # In the order of time, since calls take effect in this order.
        tid = min(process.threads, key=self.clock.get)
        stream = self.rng.choice(process.streams)
        event = self.rng.choice(process.events)
        what = self.rng.random()
        if what < 0.40:
            self.launch(process, tid, stream, "cudaLaunchKernel", ["kernel"], None)
        elif what < 0.46:
            kinds = ["kernel"] * self.rng.randint(2, 6)
            self.launch(process, tid, stream, "cudaGraphLaunch", kinds, None)
        elif what < 0.54:
            self.launch(process, tid, stream, "cudaMemcpyAsync", ["copy"], "stream")
        elif what < 0.58:
            self.launch(process, tid, stream, "cudaMemsetAsync", ["set"], "stream")
        elif what < 0.62:
            self.launch(process, tid, process.streams[0], "cudaMemcpy", ["copy"], "copied")
        elif what < 0.76:
            self.order(process, tid, "cudaEventRecord", event, stream, event, stream.handle)
            process.recorded[event] = self.before(process, stream)
        elif what < 0.88:
            self.order(process, tid, "cudaStreamWaitEvent", event, stream, stream.handle, event)
            stream.before |= process.recorded.get(event, 0)
        elif what < 0.92:
            before = self.awaited(process, stream)
            self.sync(process, tid, "cudaStreamSynchronize", before, stream.handle, stream=stream)
        elif what < 0.96:
            self.sync(process, tid, "cudaEventSynchronize", process.recorded.get(event, 0), event)
        else:
            before = 0
            for each in process.streams:
                before |= each.before
            self.sync(process, tid, "cudaDeviceSynchronize", before)

    def awaited(self, process, stream):
        return self.before(process, stream) if stream.blocking == "legacy" else stream.before

    def write(self, program, path):
        self.writer.write(program, path, self.end)


# ---- what is true, instant by instant ----


class Truth:
    def __init__(self, schedule):
        self.schedule = schedule
        self.from_ts, self.to_ts = START, schedule.end
        self.by_bit = {op.bit: op for op in schedule.ops}

    def devices(self):
        return sorted({(op.pid, op.device) for op in self.schedule.ops})

    def instants(self, ops):
        """The stretches between all times at which anything changes."""
        times = {self.from_ts, self.to_ts}
        for op in ops:
            times |= {op.start, op.end, op.launched or op.start}
            times |= {self.by_bit[bit].end for bit in bits(op.before)}
        times = sorted(time for time in times if self.from_ts <= time <= self.to_ts)
        return list(zip(times, times[1:]))

    def ready(self, op, streams=None):
        """When the last of those before an operation ended."""
        ends = [
            self.by_bit[bit].end
            for bit in bits(op.before)
            if streams is None or (self.by_bit[bit].device, self.by_bit[bit].stream) != streams
        ]
        return max(ends, default=0)

    def device(self, pid, device):
        ops = [op for op in self.schedule.ops if (op.pid, op.device) == (pid, device)]
        work = sorted((op for op in ops if op.start < op.end), key=lambda op: op.start)
        levels = collections.Counter()
        idle = collections.Counter()
        busy = comm = exposed = 0
        for low, high in self.instants(ops):
            now = [op for op in work if op.start <= low and high <= op.end]
            levels[len(now)] += high - low
            nccl = any(op.name.startswith("nccl") for op in now)
            other = any(op.kind == "kernel" and not op.name.startswith("nccl") for op in now)
            comm += (high - low) * nccl
            exposed += (high - low) * (nccl and not other)
            if now:
                busy += high - low
                continue
            following = [op for op in work if op.start >= high]
            idle[self.why_idle(following, high)] += high - low
        return {
            "busy": busy,
            "levels": {level: ns for level, ns in levels.items() if ns},
            "idle": idle,
            "comm": comm,
            "exposed": exposed,
        }

    def delays(self, pid, device):
        """From each launch to the begin of its first operation on a stream, sorted."""
        first = {}
        for op in self.schedule.ops:
            if (op.pid, op.device) == (pid, device) and op.launched is not None:
                first.setdefault((op.launched, op.stream), op.start - op.launched)
        return sorted(first.values())

    def sums(self, pid, device, kind):
        """Operations by name: (count, total time)."""
        sums = collections.defaultdict(lambda: [0, 0])
        for op in self.schedule.ops:
            if (op.pid, op.device, op.kind) == (pid, device, kind):
                sums[op.name][0] += 1
                sums[op.name][1] += op.end - op.start
        return dict(sums)

    def why_idle(self, following, until):
        if not following:
            return "launch_starved_ns"
        op = min(following, key=lambda op: (op.start, op.stream))
        if op.launched is None:
            return "unknown_ns"
        if until <= op.launched:
            return "launch_starved_ns"
        return "blocking_ns" if until <= self.ready(op) else "dependency_stalled_ns"

    def states(self, pid, device, stream):
        ops = [op for op in self.schedule.ops if (op.pid, op.device, op.stream) == (pid, device, stream)]
        states = dict.fromkeys(STATES, 0)
        for low, high in self.instants(ops):
            following = [op for op in ops if op.start >= high]
            if any(op.start <= low and high <= op.end for op in ops):
                state = "running"
            elif not following:
                state = "complete"
            else:
                state = self.state_before(following[0], high)
            states[state] += high - low
        return states

    def state_before(self, op, until):
        if op.launched is None or until <= op.launched:
            return "idle"
        return "waiting" if until <= self.ready(op, (op.device, op.stream)) else "queued"

    def path(self, pid):
        """The critical path, from its end: (kind, from, to, bit or tid)."""
        ops = [op for op in self.schedule.ops if op.pid == pid]
        pieces = []
        op = max(ops, key=lambda op: op.end, default=None)
        while op:
            pieces.append(("operation", op.start, op.end, op.bit))
            ready = self.ready(op)
            if ready and (op.launched is None or ready >= op.launched):
                pieces.append(("gap", ready, op.start, op.bit))
                op = next(other for other in ops if other.end == ready)
                continue
            if op.launched is None:
                break
            pieces.append(("launch", op.launched, op.start, op.bit))
            tid = op.tid
            waited = self.waited(tid, op.launched)
            pieces.append(("host", waited[1] if waited else self.from_ts, op.launched, tid))
            op = waited and waited[0]
            if op:
                pieces.append(("return", op.end, waited[1], tid))
        return [piece for piece in reversed(pieces) if piece[1] < piece[2]]

    def waited(self, tid, until):
        """The last synchronisation of a thread that really waited: its operation and its end."""
        for start, end, by, before in sorted(self.schedule.syncs, key=lambda sync: -sync[1]):
            last = max((self.by_bit[bit] for bit in bits(before)), key=lambda op: op.end, default=None)
            if by == tid and end <= until and last and start < last.end <= end:
                return last, end
        return None


def bits(number):
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def closure(graph):
    """All operations before each one, by the edges that waffle found: {id: set of ids}."""
    direct = collections.defaultdict(set)
    for op in graph["operations"]:
        if "previous" in op:
            direct[op["id"]].add(op["previous"])
    for edge in graph["edges"]:
        direct[edge["to"]].add(edge["from"])
    before = {}
    for op in sorted(graph["operations"], key=lambda op: (op["start_ns"], op["end_ns"])):
        found = set()
        for source in direct[op["id"]]:
            found |= {source} | before[source]
        before[op["id"]] = found
    return before

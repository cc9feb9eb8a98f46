# SPDX-License-Identifier: Apache-2.0
"""The checks of validate_perfetto.py that need the whole of a trace: what belongs to what, in the
order of time. They complete the trace, too."""
from collections import defaultdict

from perfetto_trace import BEGIN, END, Track

TASK_STATES = {0: "R", 1: "S", 2: "D", 4: "T", 8: "t", 0x10: "X", 0x20: "Z", 0x40: "P", 0x80: "I",
               0x100: "R+"}


class Whole:
    """`read` is the Reader that has read all packets."""

    def __init__(self, read):
        self.read = read
        self.trace = read.trace

    def check(self):
        self.hierarchy()
        self.slices()
        self.sched()
        self.identity()
        self.losses()
        self.bounds()

    def hierarchy(self):
        tracks = self.trace.tracks
        for track in tracks.values():
            seen, at = {track.uuid}, track.parent
            while at:
                if at not in tracks:
                    self.trace.bad("parent", f"track {track.uuid} '{track.name}' is below {at}, "
                                   "which is nowhere described: its events vanish")
                    break
                if at in seen:
                    self.trace.bad("parent", f"track {track.uuid} is below itself")
                    break
                seen.add(at)
                at = tracks[at].parent

    def is_waits(self, track):
        """It is the track of a thread's waits."""
        above = self.trace.tracks.get(track.parent)
        return track.name.startswith("waits of ") and above and above.tid is not None

    def slices(self):
        stacks = defaultdict(list)
        carriers = defaultdict(list)
        open_flows = {}
        for ts, _, kind, uuid, item, flows, ends in sorted(self.read.events, key=lambda e: e[:2]):
            track = self.trace.tracks.get(uuid)
            if track is None:
                self.trace.bad("track", f"an event on track {uuid}, which is not described")
                track = self.trace.tracks[uuid] = Track(uuid)
            stack = stacks[uuid]
            item.track = track
            if kind == END:
                if not stack:
                    self.trace.bad("slice-end", f"an end at {ts} on track {uuid}: none is open")
                    continue
                args, item = item.args, stack.pop()
                item.args.update(args)  # those of both events are the slice's
                item.end = ts
            elif kind == BEGIN:
                item.depth = len(stack)
                stack.append(item)
                (self.trace.waits if self.is_waits(track) else self.trace.slices).append(item)
            else:
                item.end = ts
                self.trace.instants.append(item)
            for flow in flows + ends:
                carriers[flow].append(item)
                if flow in open_flows:
                    cause = open_flows[flow]
                    if cause.ts > item.ts:
                        self.trace.bad("flow", f"flow {flow} is drawn against time")
                    if cause is item:
                        self.trace.bad("flow", f"flow {flow} goes from a slice to itself")
                    self.trace.flows.append((cause, item))
                elif flow in ends:
                    self.trace.bad("flow", f"flow {flow} ends before it begins")
                open_flows[flow] = item
                if flow in ends:
                    del open_flows[flow]
        for flow, items in carriers.items():
            if len(items) < 2:
                self.trace.bad("flow", f"flow {flow} has one carrier, '{items[0].name}'")
        for uuid, stack in stacks.items():
            for item in stack:
                self.trace.bad("slice-open", f"'{item.name}' at {item.ts} on track {uuid} "
                               "has no end")
        self.nesting()

    def nesting(self):
        by_track = defaultdict(list)
        for item in self.trace.slices + self.trace.waits:
            if item.end is None:
                continue
            if item.end < item.ts:
                self.trace.bad("nesting", f"'{item.name}' ends before it begins")
            by_track[item.track.uuid].append(item)
        for items in by_track.values():
            around = []
            for item in items:
                del around[item.depth:]
                if around and around[-1].end is not None and item.end > around[-1].end:
                    self.trace.bad("nesting", f"'{item.name}' outlives '{around[-1].name}', "
                                   "which it is inside")
                around.append(item)

    def sched(self):
        current, running, latest = {}, {}, {}
        wakened = {e[5] for e in self.read.ftrace if e[3] == "waking"}
        for pid in self.read.wakeups - wakened:
            self.trace.bad("wakeup", f"a wakeup of {pid} without a waking: its waker is not shown")
        for event in sorted(self.read.ftrace, key=lambda e: (e[0], e[1], e[2])):
            ts, cpu, _, kind, *what = event
            if kind == "free":
                latest.pop(what[0], None)
            elif kind == "waking":
                waker, pid, flags = what
                if waker is None and cpu not in current:
                    self.trace.bad("first-switch", f"a compact waking on CPU {cpu} before any "
                                   "switch there is dropped")
                    continue
                waker = current.get(cpu) if waker is None else waker
                self.trace.wakings.append((ts, waker, pid, flags))
                state = latest.get(pid)
                if state is None or state[1] not in ("R", "Running"):
                    self.set_state(latest, pid, ts, "R", waker)
            else:
                self.switch(ts, cpu, kind, what, current, latest)
        for state in latest.values():
            self.trace.states.append(tuple(state))

    def switch(self, ts, cpu, kind, what, current, latest):
        if kind == "compact":
            state, pid = what
            prev = current.get(cpu)
            if prev is None:
                self.trace.bad("first-switch", f"the first switch of CPU {cpu} is compact: it is "
                               "thrown away")
                prev = 0
        else:
            prev, state, pid = what
            if cpu in current and current[cpu] != prev:
                self.trace.bad("sched-continuity", f"CPU {cpu}: {prev} leaves at {ts}, but "
                               f"{current[cpu]} was running (mismatched_sched_switch_tids)")
        if state not in TASK_STATES:
            self.trace.bad("prev-state", f"state {state:#x} of {prev} at {ts} is not normalised")
        current[cpu] = pid
        self.trace.switches.append((ts, cpu, prev, state, pid))
        if prev:
            self.set_state(latest, prev, ts, TASK_STATES.get(state), None)
        if pid:
            self.set_state(latest, pid, ts, "Running", None, cpu)

    def set_state(self, latest, tid, ts, state, waker, cpu=None):
        """self.trace.states: (tid, state, from, to, waker, cpu), as the thread_state table."""
        old = latest.get(tid)
        if old:
            old[3] = ts
            self.trace.states.append(tuple(old))
        latest[tid] = [tid, state, ts, None, waker, cpu]

    def identity(self):
        lives = defaultdict(list)
        for track in self.read.described:
            lives[track.tid].append(track)
        for tid, tracks in lives.items():
            tracks.sort(key=lambda t: t.ts or 0)
            for old, new in zip(tracks, tracks[1:]):
                freed = [ts for ts, pid in self.read.frees
                         if pid == tid and (old.ts or 0) <= ts <= (new.ts or 0)]
                if not freed:
                    self.trace.bad("tid-reuse", f"tid {tid} is described twice and the first one "
                                   "was not freed between")

    def losses(self):
        for number in self.read.dropped - self.read.writer_stats:
            self.trace.bad("packet-dropped", f"sequence {number} says that packets were dropped, "
                           "without writer_stats nobody sees it")
        marks = [i for i in self.trace.instants if i.track.name == "data loss"]
        self.trace.lost_marked = sum(m.args.get("count", 0) for m in marks)
        if self.trace.packets and not self.read.stats_seen:
            self.trace.bad("loss", "no statistics: whether records were lost is not told")
        if self.trace.lost != self.trace.lost_marked:
            self.trace.bad("loss", f"{self.trace.lost} records were lost, {self.trace.lost_marked} "
                           "are marked on the data loss track")
        if self.trace.lost_cpus and not self.trace.lost:
            self.trace.bad("loss", "a CPU lost records, the statistics say none")

    def bounds(self):
        first, last = self.trace.bounds
        if first is None or last is None:
            self.trace.bad("bounds", "the trace does not say when it began and ended")
            return
        times = [e[0] for e in self.read.events] + [e[0] for e in self.read.ftrace] + [
            c[1] for c in self.trace.counters] + [
                t.ts for t in self.trace.tracks.values() if t.ts is not None]
        outside = [ts for ts in times if not first <= ts <= last]
        if outside:
            self.trace.bad("bounds", f"{len(outside)} times are outside {first}…{last}, the "
                           f"first is {outside[0]}")

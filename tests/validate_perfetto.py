#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Perfetto trace with the official schema, as the trace processor would, and complains.

As a program: validate_perfetto.py FILE... prints every violation and exits with 1 if there is one.
As a module: trace = load(path); trace.violations, trace.slices, trace.waits, trace.instants, trace.counters,
trace.switches, trace.states, trace.flows, trace.tracks. Times are the trace's (CLOCK_BOOTTIME, ns).

The checks are those mistakes that the trace processor takes without an error, or that lose data:
a violation is (check, text), and test_validator.py has a broken trace for each check.
"""
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from perfetto_trace import BEGIN, COUNTER, END, INSTANT, Slice, Trace, Track
from perfetto_whole import Whole

BOOTTIME = 6
CLEARED, NEEDS_STATE = 1, 2


@dataclass
class Sequence:
    valid: bool = False
    seen: bool = False
    names: dict = field(default_factory=lambda: defaultdict(dict))
    clock: int = None
    track: int = 0
    clocks: dict = field(default_factory=dict)  # id -> [boot time, incremental]
    first: bool = True


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            return None, at
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def split(data, trace):
    """The packets of a file; one that is cut off is a violation (the trace processor is silent)."""
    at = 0
    while at < len(data):
        if data[at] != 0x0A:
            trace.bad("framing", f"byte {at} is not the begin of a packet")
            return
        size, body = varint(data, at + 1)
        if size is None or body + size > len(data):
            trace.bad("framing", f"the packet at byte {at} is cut off")
            return
        packet = pb.TracePacket()
        try:
            packet.ParseFromString(data[body:body + size])
        except Exception as error:  # of protobuf, whichever implementation
            trace.bad("framing", f"the packet at byte {at}: {error}")
            return
        yield packet
        at = body + size


def annotation_value(annotation, interned, complain):
    """`interned` has the names of the sequence; those of nested annotations may be among them."""
    strings, names = (interned[f"debug_annotation_{kind}"] for kind in ("string_values", "names"))
    kind = annotation.WhichOneof("value")
    if kind == "string_value_iid":
        iid = annotation.string_value_iid
        if iid not in strings:
            complain("interned", f"string value {iid} of an annotation was never defined")
            return None
        return strings[iid]
    if annotation.dict_entries:
        return {names.get(a.name_iid, a.name): annotation_value(a, interned, complain)
                for a in annotation.dict_entries}
    if annotation.array_values:
        return [annotation_value(a, interned, complain) for a in annotation.array_values]
    if kind is None:
        complain("annotation", "an annotation has no value")
        return None
    return getattr(annotation, kind)


class Reader:
    def __init__(self):
        self.trace = Trace()
        self.sequences = defaultdict(Sequence)
        self.events = []  # (ts, order, kind, …)
        self.ftrace = []  # (ts, cpu, order, kind, …)
        self.order = 0
        self.dropped = set()
        self.writer_stats = set()
        self.boot_seen = None
        self.wakeups = set()
        self.frees = []
        self.stats_seen = False
        self.described = []

    # ---- packets ----

    def read(self, data):
        for packet in split(data, self.trace):
            self.trace.packets += 1
            self.packet(packet)
        Whole(self).check()
        return self.trace

    def bad(self, check, text):
        self.trace.bad(check, f"packet {self.trace.packets}: {text}")

    def packet(self, packet):
        number = packet.trusted_packet_sequence_id
        sequence = self.sequences[number]
        self.sequence_state(packet, number, sequence)
        if packet.HasField("clock_snapshot"):
            self.clock_snapshot(packet, sequence)
        ts = self.time(packet, sequence)
        for member, handle in (("track_descriptor", self.descriptor),
                               ("track_event", self.track_event),
                               ("ftrace_events", self.bundle),
                               ("service_event", self.service_event),
                               ("system_info", self.system_info),
                               ("trace_stats", self.trace_stats),
                               ("trace_attributes", self.trace_attributes)):
            if packet.HasField(member):
                handle(packet, sequence, ts)

    def sequence_state(self, packet, number, sequence):
        flags = packet.sequence_flags | (CLEARED if packet.incremental_state_cleared else 0)
        if packet.previous_packet_dropped:
            if not sequence.first:
                self.dropped.add(number)
            if not flags & CLEARED:
                sequence.valid = False
        if flags & CLEARED:
            sequence.valid = True
            sequence.names.clear()
            sequence.clock = None
            sequence.track = 0
        sequence.first = False
        needs = packet.HasField("interned_data") or flags & NEEDS_STATE or packet.HasField(
            "track_event")
        if needs and number == 0:
            self.bad("sequence-id", "no trusted_packet_sequence_id")
        elif needs and not sequence.valid:
            self.bad("incremental-state", f"sequence {number} is used before its first flag 1")
        if packet.HasField("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults
            sequence.clock = defaults.timestamp_clock_id or None
            sequence.track = defaults.track_event_defaults.track_uuid
        if not packet.HasField("interned_data") or not sequence.valid:
            return
        for descriptor, entries in packet.interned_data.ListFields():
            for entry in entries:
                if not entry.iid:
                    self.bad("interned", f"number 0 in {descriptor.name}")
                text = entry.str.decode("utf-8", "replace") if hasattr(entry, "str") else getattr(
                    entry, "name", None)
                sequence.names[descriptor.name][entry.iid] = text

    def clock_snapshot(self, packet, sequence):
        clocks = {c.clock_id: c for c in packet.clock_snapshot.clocks}
        if BOOTTIME not in clocks:
            self.bad("clock", "a clock snapshot without BOOTTIME")
            return
        boot = clocks[BOOTTIME].timestamp
        if self.boot_seen is not None and boot < self.boot_seen:
            self.bad("clock", "BOOTTIME goes back from a snapshot to the next")
        if self.boot_seen is None:
            self.trace.clocks = {i: c.timestamp for i, c in clocks.items()}
        self.boot_seen = boot
        for number, clock in clocks.items():
            if 64 <= number < 128:
                sequence.clocks[number] = [boot, clock.is_incremental, clock.timestamp]

    def time(self, packet, sequence):
        if not packet.HasField("timestamp"):
            return None
        if self.boot_seen is None:
            self.bad("clock", "a timestamp before the first clock snapshot")
            self.boot_seen = 0
        clock = packet.timestamp_clock_id or sequence.clock or BOOTTIME
        if clock == BOOTTIME:
            ts = packet.timestamp
        elif clock in sequence.clocks:
            state = sequence.clocks[clock]
            if state[1]:
                state[0] = (state[0] + packet.timestamp) % 2**64
                ts = state[0]
            else:
                ts = state[0] + packet.timestamp - state[2]
        elif clock in self.trace.clocks and 64 > clock:
            ts = packet.timestamp - self.trace.clocks[clock] + self.trace.clocks[BOOTTIME]
        else:
            self.bad("clock", f"clock {clock} has no snapshot")
            ts = packet.timestamp
        if not 0 <= ts < 2**63:
            self.bad("bounds", f"time {ts} is negative")
        return ts

    def system_info(self, packet, sequence, ts):
        self.trace.system = packet.system_info
        name = packet.system_info.utsname
        match = re.match(r"(\d+)\.(\d+)(\.|$)", name.release)
        if name.sysname != "Linux" or not match:
            self.bad("utsname", f"'{name.sysname} {name.release}' is not Linux X.Y.")
        elif (int(match[1]), int(match[2])) < (4, 14):
            self.bad("utsname", f"{name.release} has another prev_state")

    def trace_attributes(self, packet, sequence, ts):
        for attribute in packet.trace_attributes.attribute:
            kind = attribute.WhichOneof("value")
            self.trace.attributes[attribute.key] = getattr(attribute, kind) if kind else None

    def service_event(self, packet, sequence, ts):
        event = packet.service_event
        if event.all_data_sources_flushed or event.read_tracing_buffers_completed:
            self.bad("flush-mark", "a flush mark makes late packets be dropped")
        if event.tracing_started:
            self.trace.bounds[0] = ts
        if event.tracing_disabled:
            self.trace.bounds[1] = ts

    def trace_stats(self, packet, sequence, ts):
        self.stats_seen = True
        self.writer_stats |= {w.sequence_id for w in packet.trace_stats.writer_stats}
        self.trace.lost = sum(b.trace_writer_packet_loss for b in packet.trace_stats.buffer_stats)

    def descriptor(self, packet, sequence, ts):
        d = packet.track_descriptor
        if not d.uuid:
            self.bad("descriptor", "no uuid")
            return
        track = Track(d.uuid, d.parent_uuid, d.name or d.static_name, ts=ts,
                      counter=d.HasField("counter"))
        if d.HasField("thread"):
            track.pid, track.tid = d.thread.pid, d.thread.tid
            track.name = d.thread.thread_name
            if not d.thread.HasField("pid") or not d.thread.HasField("tid"):
                self.bad("descriptor", f"thread track {d.uuid} has no pid or tid")
        elif d.HasField("process"):
            track.pid = d.process.pid
            track.name = d.process.process_name
            if not d.process.HasField("pid"):
                self.bad("descriptor", f"process track {d.uuid} has no pid")
        if (d.HasField("thread") or d.HasField("process")) and ts is None:
            self.bad("descriptor-time", f"track {d.uuid} has no timestamp")
        old = self.trace.tracks.get(d.uuid)
        if old and (old.parent, old.pid, old.tid, old.counter) != (track.parent, track.pid,
                                                                   track.tid, track.counter):
            self.bad("descriptor", f"track {d.uuid} is described in two ways")
        if not old and d.HasField("thread"):
            self.described.append(track)
        self.trace.tracks[d.uuid] = track

    # ---- track events ----

    def track_event(self, packet, sequence, ts):
        event = packet.track_event
        if ts is None:
            self.bad("event-time", "an event has no timestamp")
            return
        uuid = event.track_uuid if event.HasField("track_uuid") else sequence.track
        self.order += 1
        if event.type == COUNTER:
            self.counter(event, uuid, ts)
            return
        name = self.lookup(sequence, "event_names", event.name_iid) if event.name_iid \
            else event.name
        categories = [self.lookup(sequence, "event_categories", iid)
                      for iid in event.category_iids] + list(event.categories)
        args = {}
        for annotation in event.debug_annotations:
            key = self.lookup(sequence, "debug_annotation_names", annotation.name_iid) \
                if annotation.name_iid else annotation.name
            if not key:
                self.bad("annotation", "an annotation has no name")
            elif key in args:
                self.bad("annotation", f"two annotations named {key}")
            args[key] = annotation_value(annotation, sequence.names, self.bad)
        if event.type in (BEGIN, INSTANT) and not name:
            self.bad("slice-name", f"a slice on track {uuid} has no name")
        if event.type not in (BEGIN, END, INSTANT):
            self.bad("event-type", f"type {event.type}")
        item = Slice(None, name, ts, args, ",".join(c or "" for c in categories))
        self.events.append((ts, self.order, event.type, uuid, item, list(event.flow_ids),
                            list(event.terminating_flow_ids)))

    def lookup(self, sequence, kind, iid):
        if iid not in sequence.names[kind]:
            self.bad("interned", f"number {iid} of {kind} was never defined")
            return None
        return sequence.names[kind][iid]

    def counter(self, event, uuid, ts):
        track = self.trace.tracks.get(uuid)
        if track is None or not track.counter:
            self.bad("counter-descriptor", f"a value of track {uuid} before its descriptor")
            return
        kind = event.WhichOneof("counter_value_field")
        if kind is None:
            self.bad("counter-value", f"counter {track.name} without a value")
            return
        self.trace.counters.append((track, ts, getattr(event, kind)))

    # ---- scheduler ----

    def bundle(self, packet, sequence, ts):
        bundle = packet.ftrace_events
        if not bundle.HasField("cpu"):
            self.bad("bundle", "a bundle without a CPU")
        if ts is None:
            self.bad("bundle", "a bundle without a timestamp")
        if self.trace.system is None:
            self.bad("utsname", "scheduler data before the system's name")
            self.trace.system = pb.SystemInfo()
        if bundle.lost_events:
            self.trace.lost_cpus.add(bundle.cpu)
        for event in bundle.event:
            self.ftrace_event(event, bundle.cpu)
        if bundle.HasField("compact_sched"):
            self.compact(bundle.compact_sched, bundle.cpu)

    def push(self, ts, cpu, *what):
        self.order += 1
        self.ftrace.append((ts, cpu, self.order) + what)

    def ftrace_event(self, event, cpu):
        kind = event.WhichOneof("event")
        if not event.HasField("pid"):
            self.bad("bundle", f"{kind} without a pid")
        if kind == "sched_switch":
            e = event.sched_switch
            self.push(event.timestamp, cpu, "switch", e.prev_pid, e.prev_state, e.next_pid)
        elif kind == "sched_waking":
            self.push(event.timestamp, cpu, "waking", event.pid, event.sched_waking.pid, None)
        elif kind in ("sched_wakeup", "sched_wakeup_new"):
            self.wakeups.add(getattr(event, kind).pid)
        elif kind == "cpu_frequency":
            e = event.cpu_frequency
            self.trace.frequencies.append((event.timestamp, e.cpu_id, e.state))
            if e.cpu_id != cpu:
                self.bad("bundle", f"the frequency of CPU {e.cpu_id} in a bundle of CPU {cpu}")
        elif kind == "sched_process_free":
            self.frees.append((event.timestamp, event.sched_process_free.pid))
            self.push(event.timestamp, cpu, "free", event.sched_process_free.pid)

    def compact(self, c, cpu):
        switches = {len(a) for a in (c.switch_timestamp, c.switch_prev_state, c.switch_next_pid,
                                     c.switch_next_prio, c.switch_next_comm_index)}
        wakings = {len(a) for a in (c.waking_timestamp, c.waking_pid, c.waking_target_cpu,
                                    c.waking_prio, c.waking_comm_index)}
        names = len(c.intern_table)
        if len(switches) > 1 or len(wakings) > 1:
            self.bad("compact-arrays", "the arrays differ in length")
            return
        if any(i >= names for i in list(c.switch_next_comm_index) + list(c.waking_comm_index)):
            self.bad("compact-arrays", "a name's number is outside the bundle's table")
        if c.waking_common_flags and len(c.waking_common_flags) != len(c.waking_timestamp):
            self.bad("compact-arrays", "the flags differ in length")
        ts = 0
        for delta, state, pid in zip(c.switch_timestamp, c.switch_prev_state, c.switch_next_pid):
            ts = (ts + delta) % 2**64
            self.push(ts, cpu, "compact", state, pid)
        ts = 0
        flags = list(c.waking_common_flags) or [None] * len(c.waking_pid)
        for delta, pid, flag in zip(c.waking_timestamp, c.waking_pid, flags):
            ts = (ts + delta) % 2**64
            self.push(ts, cpu, "waking", None, pid, flag)

def parse(data):
    return Reader().read(data)


def load(path):
    with open(path, "rb") as file:
        return parse(file.read())


def main(paths):
    bad = False
    for path in paths:
        trace = load(path)
        for check, text in trace.violations[:50]:
            print(f"{path}: {check}: {text}")
        bad = bad or bool(trace.violations)
        print(f"{path}: {trace.packets} packets, {len(trace.slices)} slices, "
              f"{len(trace.instants)} instants, {len(trace.counters)} counter values, "
              f"{len(trace.flows)} flows, {len(trace.switches)} switches, {trace.lost} lost, "
              f"{len(trace.violations)} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Each check of tests/validate_perfetto.py finds the mistake that it is for, and nothing else."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import validate_perfetto as v  # noqa: E402

pb = v.pb
T0 = 1_000_000


def packet(trace, ts=T0, seq=1, flags=2):
    p = trace.packet.add(trusted_packet_sequence_id=seq, sequence_flags=flags)
    if ts is not None:
        p.timestamp = ts
    return p


def event(trace, kind, ts, seq=2, **fields):
    p = packet(trace, ts, seq)
    p.track_event.type = kind
    for key, value in fields.items():
        if key in ("flow_ids", "terminating_flow_ids"):
            getattr(p.track_event, key).extend(value)
        else:
            setattr(p.track_event, key, value)
    return p


def good():
    """A small trace with one of everything."""
    t = pb.Trace()
    p = packet(t, flags=3)
    for clock, ts in ((6, T0), (3, 5), (1, 10**18)):
        p.clock_snapshot.clocks.add(clock_id=clock, timestamp=ts)
    p = packet(t)
    p.system_info.utsname.sysname = "Linux"
    p.system_info.utsname.release = "6.1.0-13-amd64"
    packet(t).service_event.tracing_started = True
    d = packet(t).track_descriptor
    d.uuid, d.process.pid, d.process.process_name = 1, 10, "p"
    d = packet(t).track_descriptor
    d.uuid, d.parent_uuid, d.thread.pid, d.thread.tid = 2, 1, 10, 10
    d = packet(t).track_descriptor
    d.uuid, d.parent_uuid, d.name = 3, 1, "count"
    d.counter.SetInParent()
    p = packet(t, seq=2, flags=3)
    p.trace_packet_defaults.track_event_defaults.track_uuid = 2
    p = event(t, v.BEGIN, T0 + 10, name_iid=1, flow_ids=[7])
    p.interned_data.event_names.add(iid=1, name="outer")
    p.interned_data.debug_annotation_names.add(iid=1, name="key")
    p.track_event.debug_annotations.add(name_iid=1, int_value=5)
    event(t, v.BEGIN, T0 + 20, name_iid=1, terminating_flow_ids=[7])
    event(t, v.END, T0 + 30)
    event(t, v.INSTANT, T0 + 35, name="instant")
    event(t, v.END, T0 + 40)
    event(t, v.COUNTER, T0 + 12, track_uuid=3, counter_value=4)
    b = packet(t).ftrace_events
    b.cpu = 0
    e = b.event.add(timestamp=T0, pid=0)
    e.sched_switch.next_pid = 10
    b = packet(t).ftrace_events
    b.cpu = 0
    c = b.compact_sched
    c.intern_table.extend(["p", "swapper"])
    c.switch_timestamp.extend([T0 + 15, 10])
    c.switch_prev_state.extend([1, 0])
    c.switch_next_pid.extend([0, 10])
    c.switch_next_prio.extend([120, 120])
    c.switch_next_comm_index.extend([1, 0])
    c.waking_timestamp.append(T0 + 20)
    c.waking_pid.append(10)
    c.waking_target_cpu.append(0)
    c.waking_prio.append(120)
    c.waking_comm_index.append(0)
    packet(t, T0 + 100).service_event.tracing_disabled = True
    packet(t, T0 + 100).trace_stats.buffer_stats.add(trace_writer_packet_loss=0)
    return t


def find(t, member, nth=0):
    return [p for p in t.packet if p.HasField(member)][nth]


def drop(t, member, nth=0):
    kept = [p for p in t.packet]
    gone = find(t, member, nth)
    del t.packet[:]
    t.packet.extend(p for p in kept if p is not gone)


def checks(t, cut=0):
    data = t.SerializeToString()
    return {check for check, _ in v.parse(data[:len(data) - cut]).violations}


def test_good_trace_has_no_violation_and_is_read_right():
    trace = v.parse(good().SerializeToString())
    assert trace.violations == []
    assert [(s.name, s.ts - T0, s.end - T0, s.depth) for s in trace.slices] == [
        ("outer", 10, 40, 0), ("outer", 20, 30, 1)]
    assert trace.slices[0].args == {"key": 5}
    assert [(a.ts - T0, b.ts - T0) for a, b in trace.flows] == [(10, 20)]
    assert [(c[0].name, c[1] - T0, c[2]) for c in trace.counters] == [("count", 12, 4)]
    states = sorted((s, a - T0, waker) for tid, s, a, _, waker, _ in trace.states if tid == 10)
    assert states == [("R", 20, 0), ("Running", 0, None), ("Running", 25, None), ("S", 15, None)]


def no_utsname(t):
    drop(t, "system_info")


def old_release(t):
    find(t, "system_info").system_info.utsname.release = "4.4.0"


def unreadable_release(t):
    find(t, "system_info").system_info.utsname.release = "6.1-x"


def raw_prev_state(t):
    find(t, "ftrace_events", 1).ftrace_events.compact_sched.switch_prev_state[0] = 0x2001


def two_bits_of_prev_state(t):
    find(t, "ftrace_events", 1).ftrace_events.compact_sched.switch_prev_state[0] = 3


def first_switch_compact(t):
    drop(t, "ftrace_events")


def compact_waking_first(t):
    c = find(t, "ftrace_events", 1).ftrace_events.compact_sched
    b = packet(t).ftrace_events
    b.cpu = 1
    b.compact_sched.intern_table.append("p")
    for name in ("waking_pid", "waking_target_cpu", "waking_prio", "waking_comm_index",
                 "waking_timestamp"):
        getattr(b.compact_sched, name).extend(getattr(c, name))


def wakeup_only(t):
    e = find(t, "ftrace_events").ftrace_events.event.add(timestamp=T0 + 2, pid=0)
    e.sched_wakeup.pid = 55


def event_without_sequence(t):
    find(t, "track_event").ClearField("trusted_packet_sequence_id")


def no_cleared_flag(t):
    find(t, "trace_packet_defaults").sequence_flags = 2


def parent_not_described(t):
    find(t, "track_descriptor", 1).track_descriptor.parent_uuid = 99


def counter_before_descriptor(t):
    moved = pb.TracePacket()
    moved.CopyFrom(find(t, "track_descriptor", 2))
    drop(t, "track_descriptor", 2)
    t.packet.append(moved)


def thread_without_time(t):
    find(t, "track_descriptor", 1).ClearField("timestamp")


def dropped_without_statistics(t):
    p = find(t, "track_event", 1)
    p.previous_packet_dropped = 1
    p.sequence_flags = 3
    p.track_event.name = "x"
    p.track_event.ClearField("name_iid")
    p.trace_packet_defaults.track_event_defaults.track_uuid = 2


def end_without_begin(t):
    event(t, v.END, T0 + 50)


def begin_without_end(t):
    event(t, v.BEGIN, T0 + 50, name="open")


def slice_without_name(t):
    find(t, "track_event", 3).track_event.name = ""


def name_never_defined(t):
    find(t, "track_event", 1).track_event.name_iid = 9


def annotation_name_never_defined(t):
    find(t, "track_event").track_event.debug_annotations[0].name_iid = 9


def annotation_without_name(t):
    find(t, "track_event").track_event.debug_annotations[0].ClearField("name_iid")


def event_on_no_track(t):
    event(t, v.INSTANT, T0 + 50, name="lost", track_uuid=77)


def flow_with_one_carrier(t):
    event(t, v.INSTANT, T0 + 50, name="x", flow_ids=[8])


def flow_ends_first(t):
    event(t, v.INSTANT, T0 + 50, name="x", terminating_flow_ids=[8])
    event(t, v.INSTANT, T0 + 60, name="y", flow_ids=[8])


def switch_from_another(t):
    e = find(t, "ftrace_events").ftrace_events.event.add(timestamp=T0 + 50, pid=0)
    e.sched_switch.prev_pid = 33


def arrays_of_other_length(t):
    find(t, "ftrace_events", 1).ftrace_events.compact_sched.switch_next_prio.append(1)


def comm_outside_table(t):
    find(t, "ftrace_events", 1).ftrace_events.compact_sched.switch_next_comm_index[0] = 2


def no_clock_snapshot(t):
    find(t, "clock_snapshot").ClearField("clock_snapshot")


def boot_time_goes_back(t):
    packet(t).clock_snapshot.clocks.add(clock_id=6, timestamp=T0 - 1)


def clock_without_snapshot(t):
    find(t, "track_event", 3).timestamp_clock_id = 70


def time_before_the_capture(t):
    event(t, v.INSTANT, T0 - 1, name="early")


def time_after_the_capture(t):
    find(t, "ftrace_events").ftrace_events.event.add(
        timestamp=T0 + 101, pid=0).sched_waking.pid = 10


def bounds_not_told(t):
    drop(t, "service_event", 1)


def flush_marked(t):
    packet(t).service_event.read_tracing_buffers_completed = True


def loss_not_marked(t):
    find(t, "trace_stats").trace_stats.buffer_stats[0].trace_writer_packet_loss = 3


def loss_of_a_cpu_not_counted(t):
    find(t, "ftrace_events").ftrace_events.lost_events = True


def no_statistics(t):
    drop(t, "trace_stats")


def tid_described_twice(t):
    d = packet(t, T0 + 60).track_descriptor
    d.uuid, d.parent_uuid, d.thread.pid, d.thread.tid = 5, 1, 10, 10


def track_described_in_two_ways(t):
    d = packet(t).track_descriptor
    d.uuid, d.parent_uuid, d.thread.pid, d.thread.tid = 2, 1, 10, 11


BROKEN = {
    no_utsname: "utsname", old_release: "utsname", unreadable_release: "utsname",
    raw_prev_state: "prev-state", two_bits_of_prev_state: "prev-state",
    first_switch_compact: "first-switch", compact_waking_first: "first-switch",
    wakeup_only: "wakeup", event_without_sequence: "sequence-id",
    no_cleared_flag: "incremental-state", parent_not_described: "parent",
    counter_before_descriptor: "counter-descriptor", thread_without_time: "descriptor-time",
    dropped_without_statistics: "packet-dropped", end_without_begin: "slice-end",
    begin_without_end: "slice-open", slice_without_name: "slice-name",
    name_never_defined: "interned", annotation_name_never_defined: "interned",
    annotation_without_name: "annotation", event_on_no_track: "track",
    flow_with_one_carrier: "flow", flow_ends_first: "flow",
    switch_from_another: "sched-continuity", arrays_of_other_length: "compact-arrays",
    comm_outside_table: "compact-arrays", no_clock_snapshot: "clock",
    boot_time_goes_back: "clock", clock_without_snapshot: "clock",
    time_before_the_capture: "bounds", time_after_the_capture: "bounds",
    bounds_not_told: "bounds", flush_marked: "flush-mark", loss_not_marked: "loss",
    loss_of_a_cpu_not_counted: "loss", no_statistics: "loss",
    tid_described_twice: "tid-reuse", track_described_in_two_ways: "descriptor",
}


@pytest.mark.parametrize("break_it", BROKEN, ids=lambda f: f.__name__)
def test_broken_trace_is_found(break_it):
    trace = good()
    break_it(trace)
    assert BROKEN[break_it] in checks(trace)


def test_file_cut_inside_a_packet_is_found():
    assert "framing" in checks(good(), cut=1)


def test_program_exits_with_1_for_a_broken_trace(tmp_path, capsys):
    broken = good()
    end_without_begin(broken)
    (tmp_path / "good").write_bytes(good().SerializeToString())
    (tmp_path / "broken").write_bytes(broken.SerializeToString())
    assert v.main([str(tmp_path / "good")]) == 0
    assert v.main([str(tmp_path / "good"), str(tmp_path / "broken")]) == 1
    assert "slice-end" in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""What validate_perfetto.py makes of a trace."""
from dataclasses import dataclass, field

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # types of track events


@dataclass
class Track:
    uuid: int
    parent: int = 0
    name: str = ""
    pid: int = None
    tid: int = None
    counter: bool = False
    ts: int = None


@dataclass
class Slice:
    track: Track
    name: str
    ts: int
    args: dict
    category: str = ""
    end: int = None
    depth: int = 0
    flows: list = field(default_factory=list)


class Trace:
    def __init__(self):
        self.violations = []
        self.tracks = {}
        self.slices, self.instants, self.counters = [], [], []
        self.waits = []  # slices of the tracks of threads' waits, which are not in `slices`
        self.frequencies = []  # time, CPU, kHz
        self.switches, self.states, self.wakings = [], [], []
        self.flows = []  # (cause, caused)
        self.lost = 0  # by the trace's statistics
        self.lost_marked = 0  # by the marks on the data loss track
        self.lost_cpus = set()
        self.bounds = [None, None]
        self.clocks = {}
        self.packets = 0
        self.system = None
        self.attributes = {}

    def bad(self, check, text):
        self.violations.append((check, text))

    def threads(self, tid):
        return [t for t in self.tracks.values() if t.tid == tid]

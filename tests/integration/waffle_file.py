# SPDX-License-Identifier: Apache-2.0
"""A reader of .waffle files that follows docs/file-format.md and nothing else. It checks what the
page says of headers, indexes and counts, and gives the records of the kinds that the page has:

    read(path)    a list of dicts: kind (its number), ts, cpu, tid, and the fields of that kind
"""

import struct
import subprocess
import zlib
from types import SimpleNamespace

MASK = (1 << 64) - 1
GOLDEN_RATIO = 0x9E3779B97F4A7C15
RAW_MAX = {8: 64 << 20}  # all other chunks: 1 MiB
UNKNOWN_SITE = 0xFFFFFFFF

# The words of the kinds from 10 on; a pair is one word, its lower half first.
STACKS = ("kernel_stack", "user_stack")
WORDS = {
    10: ["from_ts", STACKS, ("dev", "object"), "ino", "address"],
    11: [("woken_tid", "flags"), STACKS],
    12: ["from_ts", "total_ns", "address", "ip", ("count", "flags")],
    13: ["issue_ts", "sector", ("bytes", "dev"), ("flags", "error"), ("disk", "reserved")],
    14: [("target_tid", "target_tgid"), ("signo", "code")],
    15: ["throttled_ns", "cgroup", "quota_ns", "period_ns"],
    16: ["from_ts", "stolen_ns", ("flags", "reserved")],
    17: [("khz", "max_khz"), ("flags", "reserved")],
    19: ["id", STACKS, ("python_stack", "reserved")],
    20: [("tgid", "track"), *[f"name.{i}" for i in range(8)], *[f"group.{i}" for i in range(8)]],
    21: ["id", ("tgid", "track")],
    22: [STACKS, ("syscall", "flags"), "period_ns"],
    23: ["from_ts", STACKS, "lock", ("owner_tid", "flags"), ("tracer_pid", "ended_tid"), "tracer_comm.0", "tracer_comm.1"],
    24: [("tgid", "reserved"), "start_ts", *[f"name.{i}" for i in range(8)]],
    25: ["cgroup", "limit_bytes", "used_bytes", "user_bytes", ("user_pid", "flags"), "user_comm.0", "user_comm.1"],
    26: ["cgroup", "limit", ("dev", "kind")],
    27: ["ino", ("dev", "object"), ("holder_pid", "flags"), "holder_comm.0", "holder_comm.1"],
    28: ["ino", ("dev", "object"), ("status", "reserved")],
    29: ["from_ts", "asked_ns", "slack_ns"],
}
TEXTS = {20: {"name": 8, "group": 8}, 23: {"tracer_comm": 2}, 24: {"name": 8}, 25: {"user_comm": 2}, 27: {"holder_comm": 2}}  # their lengths in words
SIGNED = {"error", "signo", "code", "syscall"}
KINDS = range(1, 30)
# Files of version 1 have no table of lengths.
VERSION_1 = {kind: len(WORDS.get(kind, ())) for kind in range(1, 20)} | {13: 4}


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & MASK

    def zigzag(self):
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def difference(self, base):
        return base + self.zigzag() & MASK

    def varints(self, count):
        return [self.varint() for _ in range(count)]

    def string(self):
        return self.take(self.varint())


def version_of(data):
    magic, version, zero, crc = struct.unpack("<8sHHI", data[:16])
    assert (magic, zero) == (b"\x89WAFFLE\n", 0) and crc == zlib.crc32(data[:12])
    assert version in (1, 2)
    return version


def split(data):
    """The chunks: type, entries, earliest and latest time, offset, stored bytes, payload."""
    at = 16
    while at + 48 <= len(data):
        (magic, kind, codec, stored, raw, count, crc, first, last, zero, header_crc) = struct.unpack(
            "<4sHHIIIIQQII", data[at : at + 48]
        )
        if at + 48 + stored > len(data):
            return  # the file was cut off here
        assert magic == b"CHNK" and header_crc == zlib.crc32(data[at : at + 44]) and not zero
        payload = data[at + 48 : at + 48 + stored]
        assert crc == zlib.crc32(payload) and stored <= raw <= RAW_MAX.get(kind, 1 << 20)
        if codec:
            payload = subprocess.run(
                ["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE, check=True
            ).stdout
        assert len(payload) == raw
        yield SimpleNamespace(type=kind, count=count, first=first, last=last, offset=at,
                              stored=stored, payload=payload)  # fmt: skip
        at += 48 + stored


class Thread:
    def __init__(self, tid, tgid):
        self.tid, self.tgid = tid, tgid
        self.block = (0, -1, [0, 0, 0])
        # Of its spans and events, and of its calls.
        self.ids = {call: SimpleNamespace(last=0, trace=(0, 0), open=[]) for call in (False, True)}


class Data:
    """The records of a DATA or TASKS chunk."""

    def __init__(self, chunk, sites, lengths):
        self.cursor, self.count = Cursor(chunk.payload), chunk.count
        self.lengths = lengths
        self.sites, self.site_state = sites, {}
        self.ts = self.cpu = self.tgid = self.seed = 0
        self.threads, self.current, self.blocks = [], {}, []
        self.words = {kind: [0] * len(names) for kind, names in WORDS.items()}

    def records(self):
        others = {1: self.hit, 2: self.span_end, 3: self.switch, 4: self.task, 5: self.state,
                  6: self.fork, 7: self.exit, 8: self.exit, 9: self.loss,
                  18: self.call_return}  # fmt: skip
        for _ in range(self.count):
            tag = self.cursor.byte()
            kind = tag & 15 or self.cursor.byte()
            if not tag & 0x10:
                self.cpu = self.cursor.varint()
            thread = self.current[self.cpu] if tag & 0x20 else self.thread()
            self.ts = self.cursor.difference(self.ts)
            head = {"kind": kind, "ts": self.ts, "cpu": self.cpu, "tid": thread.tid}
            packed = others[kind](tag, thread) if kind in others else {}
            yield {**head, **packed, **self.of_words(kind)}
        assert self.cursor.at == len(self.cursor.data)

    def thread(self):
        number = self.cursor.varint()
        if not number:
            self.threads.append(Thread(self.cursor.varint(), self.tgid))
        return self.threads[number - 1]

    def tgid_of(self, tag, thread):
        if tag & 0x40:
            self.tgid = thread.tgid = self.cursor.varint()
        self.current[self.cpu] = thread
        return thread.tgid

    def site(self, number):
        count = len(self.sites[number].types)
        new = SimpleNamespace(keys=count, last=[0] * count, second=[0] * count)
        return self.sites[number], self.site_state.setdefault(number, new)

    def values(self, number, first, end):
        """Returns the number of bytes that they have in a frame."""
        site, state = self.site(number)
        cursor, size = self.cursor, 0
        for key in range(first, end):
            size += 8
            if site.types[key] == "s":
                length = cursor.varint() & 0xFFFFFFFF
                cursor.take(length)
                size += (length + 7) // 8 * 8
            elif site.types[key] == "d":
                cursor.take(8)
            elif site.types[key] == "n":
                cursor.varint()
                state.last[key] = cursor.difference(state.last[key])
                size += 8
            else:
                state.last[key] = cursor.difference(state.last[key])
                if site.types[key] == "v":
                    state.second[key] = cursor.difference(state.second[key])
                    size += 8
        return size

    def mixed(self, thread, with_number):
        return ((self.ts << 22) + thread.tid) * GOLDEN_RATIO & MASK ^ with_number

    def hit(self, tag, thread):
        cursor = self.cursor
        row = {"tgid": self.tgid_of(tag, thread), "site": cursor.varint()}
        flags = cursor.byte() if tag & 0x80 else 0
        if flags == 0x40:
            row["frame_bytes"] = len(cursor.string())
            return row
        site, state = self.site(row["site"])
        ids = thread.ids[site.call]
        if flags & 0x80:
            state.keys = cursor.byte()
        row["id"] = self.id_of(flags & 3, site, ids, thread)
        inner = ids.open[-1][0] if ids.open and not site.call else 0
        parent = flags >> 2 & 3
        row["parent"] = [lambda: inner, lambda: 0, lambda: cursor.difference(ids.last)][parent]()
        trace = self.trace_of(flags >> 4 & 3, ids, row["id"])
        self.hit_update(row, site, ids, inner, thread)
        ids.trace = trace
        row["frame_bytes"] = 32 + self.values(row["site"], 0, state.keys)
        return row

    def id_of(self, how, site, ids, thread):
        if how == 0:
            return ids.last + 1 & MASK
        if how == 1:
            return 0
        if how == 2:
            return self.cursor.difference(ids.last)
        return self.mixed(thread, self.seed) if site.call else ids.last + 3 & MASK

    def trace_of(self, how, ids, number):
        if how == 0:
            return ids.trace
        if how == 1:
            return 0, 0
        if how == 2:
            return self.cursor.u64(), self.cursor.u64()
        return (number - 2 & MASK) * GOLDEN_RATIO & MASK, number - 1 & MASK

    def hit_update(self, row, site, ids, inner, thread):
        if not site.call and row["parent"] != inner:
            while ids.open and ids.open[-1][0] != row["parent"]:
                ids.open.pop()
            if not ids.open and row["parent"]:
                ids.open.append((row["parent"], UNKNOWN_SITE))
        if row["id"]:
            ids.last = row["id"]
            if site.call:
                self.seed = self.mixed(thread, row["id"])
        if site.kind == 1:  # a span
            if site.call and len(ids.open) == 16:
                del ids.open[0]
            if len(ids.open) < 16:
                ids.open.append((row["id"], row["site"]))

    def ended(self, follows, ids):
        if follows:
            number = self.cursor.difference(ids.last), self.cursor.varint() - 1 & UNKNOWN_SITE
        else:
            number = ids.open[-1]
        for at in reversed(range(len(ids.open))):
            if ids.open[at][0] == number[0]:
                del ids.open[at]
                break
        return {"span_id": number[0], "site": number[1]}

    def span_end(self, tag, thread):
        return {"tgid": self.tgid_of(tag, thread), **self.ended(tag & 0x80, thread.ids[False])}

    def call_return(self, tag, thread):
        row = {"tgid": self.tgid_of(tag, thread)}
        flags = self.cursor.byte() if tag & 0x80 else 0
        row.update(self.ended(flags & 1, thread.ids[True]))
        if flags & 8:
            return {**row, "frame_bytes": 0}
        if flags & 4:
            return {**row, "frame_bytes": len(self.cursor.string())}
        site, state = self.site(row["site"])
        if flags & 2:
            state.keys = self.cursor.byte()
        return {**row, "frame_bytes": self.values(row["site"], state.keys, len(site.types))}

    def switch(self, tag, thread):
        cursor, following = self.cursor, self.thread()
        row = {"next_tid": following.tid, "flags": cursor.byte(), "waker_tid": 0, "wake_ts": 0}
        if tag & 0x40:
            row.update(waker_tid=self.thread().tid, wake_ts=self.ts - cursor.zigzag())
        self.current[self.cpu] = following
        if not tag & 0x80:
            known = cursor.varint()
            if known:
                thread.block = self.blocks[known - 1]
            else:
                state, call = cursor.varint(), cursor.zigzag()
                thread.block = (state, call, [cursor.difference(x) for x in thread.block[2]])
                self.blocks += [thread.block] * (len(self.blocks) < 1024)
        return {**row, "prev_state": thread.block[0], "syscall": thread.block[1]}

    def task(self, _tag, _thread):
        tgid, flags, _ = self.cursor.varints(3)
        name = self.cursor.take(16).rstrip(b"\0").decode(errors="replace")
        return {"tgid": tgid, "flags": flags, "comm": name}

    def state(self, _tag, _thread):
        tgid, state, task_state = self.cursor.varints(3)
        call, at_end = self.cursor.zigzag(), self.cursor.varint()
        self.cursor.varints(5)
        return {"tgid": tgid, "state": state, "task_state": task_state, "syscall": call,
                "at_end": at_end}  # fmt: skip

    def fork(self, _tag, _thread):
        return {"tgid": self.cursor.varint(), "child_tgid": self.cursor.varint()}

    def exit(self, _tag, _thread):
        return {"tgid": self.cursor.varint(), "code": self.cursor.zigzag()}

    def loss(self, _tag, _thread):
        source, since = self.cursor.varint(), self.ts - self.cursor.zigzag()
        return {"source": source, "from_ts": since, "count": self.cursor.varint()}

    def of_words(self, kind):
        row, names_of, count = {}, WORDS.get(kind, []), self.lengths[kind]
        last = self.words.get(kind)
        for at, names in enumerate(names_of):
            last[at] = self.cursor.difference(last[at]) if at < count else 0
            if isinstance(names, tuple):
                for half, name in enumerate(names):
                    number = last[at] >> 32 * half & 0xFFFFFFFF
                    row[name] = number - (number >> 31 << 32) * (name in SIGNED)
            else:
                row[names] = last[at]
        self.cursor.varints(max(0, count - len(names_of)))
        for text, length in TEXTS.get(kind, {}).items():
            words = [row.pop(f"{text}.{i}") for i in range(length)]
            row[text] = struct.pack(f"<{length}Q", *words).rstrip(b"\0").decode()
        return row


def read_lengths(cursor):
    rows = [cursor.varints(2) for _ in range(cursor.varint())]
    lengths = dict(rows)
    assert len(lengths) == len(rows)
    assert all(0 < kind < 256 and words <= 1024 for kind, words in rows)
    return lengths


def read_sites(cursor, count, strings):
    for _ in range(count):
        kind = cursor.varint()
        cursor.varint()
        assert all(number < len(strings) for number in cursor.varints(5))
        keys = [cursor.varints(2) for _ in range(cursor.varint())]
        yield SimpleNamespace(kind=kind & 0xFF, call=bool(kind & 256),
                              types=[chr(letter) for letter, _ in keys])  # fmt: skip


def skip_entry(kind, cursor):
    """An entry of the tables that records do not need to be decoded."""
    if kind == 10:
        cursor.varint()
        count = cursor.varint()
        assert count <= 127
        cursor.varints(count)
    elif kind == 12:
        cursor.varints(8)
        assert len(cursor.string()) <= 20
        cursor.varints(3 * cursor.varint())
    else:
        cursor.varints({4: 4, 11: 5, 13: 3, 14: 3, 15: 4, 16: 5, 19: 5, 20: 4}[kind])


def check_index(index, chunks):
    cursor, earliest, at = Cursor(index.payload), 0, 16
    for chunk in chunks[: chunks.index(index)]:
        assert cursor.varints(3) == [chunk.type, chunk.stored, chunk.count] and at == chunk.offset
        earliest = cursor.difference(earliest)
        assert (earliest, earliest + cursor.varint()) == (chunk.first, chunk.last)
        at += 48 + chunk.stored
    assert cursor.at == len(index.payload)


def check_counts(chunk, index):
    words = struct.unpack("<27Q", chunk.payload)
    assert words[2] <= 8 and not any(words[3 + 3 * words[2] :])
    if chunk.type == 9:
        assert words[0] == index.offset
        for produced, delivered, lost in zip(*(words[3 + i : 3 + 3 * words[2] : 3] for i in range(3))):
            assert produced == delivered + lost


def read(path):
    data = path.read_bytes()
    version, chunks, lengths = version_of(data), list(split(data)), VERSION_1
    strings, sites, records, index = [b""], [], [], None
    assert chunks[0].type == 1
    for chunk in chunks:
        cursor = Cursor(chunk.payload)
        if chunk.type == 1:
            cursor.varints(5)
            for at in range(7):
                if version > 1 or at < 5 or cursor.at < len(chunk.payload):
                    cursor.string()
            if version > 1:
                lengths = read_lengths(cursor)
                cursor.at = len(chunk.payload)  # the boot, and what later versions add
        elif chunk.type == 2:
            strings += [cursor.string() for _ in range(chunk.count)]
        elif chunk.type == 3:
            sites += read_sites(cursor, chunk.count, strings)
        elif chunk.type in (5, 6):
            found = list(Data(chunk, sites, lengths).records())
            times = [row["ts"] for row in found]
            assert (min(times), max(times)) == (chunk.first, chunk.last)
            if chunk.type == 6:
                records += [row for row in found if row["kind"] in KINDS]
            continue
        elif chunk.type == 8:
            index = chunk
            check_index(index, chunks)
            continue
        elif chunk.type in (7, 9):
            check_counts(chunk, index)
            continue
        else:
            for _ in range(chunk.count):
                skip_entry(chunk.type, cursor)
        assert cursor.at == len(chunk.payload), chunk.type
    assert not index or [chunk.type for chunk in chunks[-2:]] == [8, 9]
    return records

# SPDX-License-Identifier: Apache-2.0
"""Captures as tables, and explanations as objects: what `waffle-bpf export` and `why` print."""

import array
import json
import os
import shutil
import subprocess
import types

from . import _native


class CommandError(Exception):
    """waffle-bpf failed; the text is what it said."""


def _program():
    named = os.environ.get("WAFFLE_BPF") or shutil.which("waffle-bpf")
    if not named:
        raise CommandError("waffle: waffle-bpf is not in PATH, and WAFFLE_BPF does not name it")
    return named


def _files(files):
    return [os.fspath(one) for one in files]


def _run(*arguments):
    process = subprocess.Popen([_program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               encoding="utf-8", stdin=subprocess.DEVNULL)
    return process


def _check(process):
    said = process.stderr.read()
    if process.wait():
        raise CommandError(said.strip() or f"waffle-bpf ended with {process.returncode}")


# ---- tables ----

_INTEGER, _REAL, _BOOL, _TEXT, _ID = "l", "g", "b", "u", "L"  # formats of Arrow

# The columns: name, format, and the key of docs/ndjson.md, with a dot for what is within args.
_PLACE = [("pid", _INTEGER, "pid"), ("tid", _INTEGER, "tid"), ("thread", _TEXT, "comm"), ("track", _TEXT, "track"),
          ("rank", _INTEGER, "rank"), ("host", _TEXT, "host")]
_IDS = [("name", _TEXT, "name"), ("category", _TEXT, "category"), ("id", _ID, "id"), ("parent", _ID, "parent"),
        ("trace", _TEXT, "trace")]
_TABLES = {
    "spans": [*_IDS, ("start_ns", _INTEGER, "start_ns"), ("end_ns", _INTEGER, "end_ns"),
              ("running_ns", _INTEGER, "running_ns"), ("runnable_ns", _INTEGER, "runnable_ns"),
              ("blocked_ns", _INTEGER, "blocked_ns"), ("unfinished", _BOOL, "unfinished"), *_PLACE,
              ("args", _TEXT, "args")],
    "events": [*_IDS, ("severity", _TEXT, "severity"), ("time_ns", _INTEGER, "start_ns"), *_PLACE,
               ("args", _TEXT, "args")],
    "counters": [("name", _TEXT, "name"), ("time_ns", _INTEGER, "start_ns"), ("value", _REAL, ".value"),
                 ("parent", _ID, "parent"), *_PLACE],
    "waits": [("start_ns", _INTEGER, "start_ns"), ("end_ns", _INTEGER, "end_ns"), ("state", _TEXT, "name"),
              ("syscall", _TEXT, ".syscall"), ("waker", _TEXT, ".waker"), ("waker_tid", _INTEGER, ".waker_tid"),
              ("cpu", _INTEGER, ".cpu"), *_PLACE],
    "causes": [("effect", _ID, "effect"), ("effect_kind", _TEXT, "effect_kind"), ("cause", _ID, "cause"),
               ("cause_kind", _TEXT, "cause_kind")],
}
_KINDS = {"span": "spans", "event": "events", "counter": "counters", "sched": "waits"}


class _Column:
    """Collects values, and becomes what _native.arrow_stream() takes."""

    def __init__(self, name, form, key):
        self.name, self.form, self.key = name, form, key
        self.inside = key.startswith(".")
        self.known = bytearray()
        self.nulls = 0
        self.values = array.array({_INTEGER: "q", _ID: "Q", _REAL: "d", _BOOL: "b"}.get(form, "q"))
        self.texts = bytearray()
        if form == _TEXT:
            self.values.append(0)

    def add(self, row):
        value = row.get("args", {}).get(self.key[1:]) if self.inside else row.get(self.key)
        if self.form == _BOOL:
            value = bool(value)
        elif value is None or (self.form == _REAL and isinstance(value, str)):
            # "NaN" and the infinities are texts in JSON.
            value = float(value) if value is not None else None
        self.known.append(value is not None)
        self.nulls += value is None
        if self.form == _TEXT:
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                self.texts += text.encode("utf-8", "backslashreplace")
            self.values.append(len(self.texts))
        elif self.form == _ID:
            self.values.append(int(value, 16) if value is not None else 0)
        else:
            self.values.append(value if value is not None else 0)

    def _bits(self, flags):
        made = bytearray((len(flags) + 7) // 8)
        for at, flag in enumerate(flags):
            if flag:
                made[at >> 3] |= 1 << (at & 7)
        return bytes(made)

    def arrow(self):
        """Large texts ("U") have offsets of 64 bits."""
        known = self._bits(self.known) if self.nulls else None
        head = self.name, "U" if self.form == _TEXT else self.form, len(self.known), self.nulls, known
        if self.form == _TEXT:
            return (*head, self.values, bytes(self.texts))
        return (*head, self._bits(self.values) if self.form == _BOOL else self.values)

    def value(self, at):
        if not self.known[at]:
            return None
        if self.form == _TEXT:
            return self.texts[self.values[at]:self.values[at + 1]].decode()
        return bool(self.values[at]) if self.form == _BOOL else self.values[at]


class Table:
    """Columns. pandas, polars, pyarrow and DuckDB read it by Arrow's C data interface, without a copy:
    polars.DataFrame(table), pyarrow.table(table), duckdb.sql("select … from table"). Its length is the number of
    rows, and table["name"] is a list of a column's values."""

    def __init__(self, columns):
        self._columns = columns
        self._arrow = tuple(column.arrow() for column in columns)

    @property
    def columns(self):
        return [column.name for column in self._columns]

    def __len__(self):
        return len(self._columns[0].known)

    def __getitem__(self, name):
        for column in self._columns:
            if column.name == name:
                return [column.value(at) for at in range(len(self))]
        raise KeyError(name)

    def rows(self):
        """Each row as a dict."""
        for at in range(len(self)):
            yield {column.name: column.value(at) for column in self._columns}

    def __arrow_c_stream__(self, requested_schema=None):
        return _native.arrow_stream(self._arrow)

    def __repr__(self):
        return f"<waffle.Table of {len(self)} rows: {', '.join(self.columns)}>"


class Capture:
    """The tables of a capture: spans, events, counters, waits (what threads did when, if the scheduler was
    recorded) and causes (links)."""

    def __init__(self, tables):
        self._tables = tables
        for name, table in tables.items():
            setattr(self, name, table)

    def __repr__(self):
        return f"<waffle.Capture of {', '.join(f'{len(table)} {name}' for name, table in self._tables.items())}>"


def read(*files, filter=None):
    """Reads a capture, or the files of a job together, into a waffle.Capture.

        capture = waffle.read("out.waffle")
        frame = polars.DataFrame(capture.spans)
    """
    collected = {name: [_Column(*column) for column in columns] for name, columns in _TABLES.items()}
    options = ["--filter", filter] if filter else []
    process = _run("export", "--format", "ndjson", "-o", "-", *options, *_files(files))
    try:
        for line in process.stdout:
            row = json.loads(line)
            kind = row["kind"]
            if kind not in _KINDS:
                continue
            for column in collected[_KINDS[kind]]:
                column.add(row)
            for link in row.get("links", ()):
                made = {"effect": row["id"], "effect_kind": kind, "cause": link["id"], "cause_kind": link["kind"]}
                for column in collected["causes"]:
                    column.add(made)
        _check(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.stdout.close()
        process.stderr.close()
        process.wait()
    return Capture({name: Table(columns) for name, columns in collected.items()})


def why(*files, span=None, event=None, origin=False, thread=None, slowest=None, filter=None):
    """What made spans slow, or where an event came from, as `waffle-bpf why` explains it. The result has the
    fields of docs/why.schema.json as attributes: why("out.waffle", span="step").instances[0].causes[0].cause"""
    options = []
    for name, value in (("span", span), ("event", event), ("thread", thread), ("slowest", slowest), ("filter", filter)):
        if value is not None:
            options += [f"--{name}", str(value)]
    if origin:
        options.append("--origin")
    process = _run("why", "--json", *options, *_files(files))
    out, said = process.communicate()
    if process.returncode:
        raise CommandError(said.strip() or f"waffle-bpf ended with {process.returncode}")
    return json.loads(out, object_hook=lambda fields: types.SimpleNamespace(**fields))

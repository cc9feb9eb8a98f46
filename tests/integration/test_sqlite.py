# SPDX-License-Identifier: Apache-2.0
"""export --format sqlite (docs/sqlite.md): what is in the tables is what NDJSON and `why` say, and each
query of the page runs."""

import json
import math
import re
import sqlite3
import subprocess

import pytest

from test_processors import Processed, processed  # noqa: F401
from tracer import ROOT

CAPTURES = ROOT / "tests/golden/captures"
JOB, VALUES = CAPTURES / "sim-training-joined.waffle", CAPTURES / "values.waffle"


def run(waffle, *arguments, code=0, **options):
    done = subprocess.run([waffle.program, *arguments], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, check=False, **options)
    assert done.returncode == code, done
    return done


@pytest.fixture
def database(waffle):
    def make(capture):
        path = waffle.path("x.db")
        run(waffle, "export", capture, "--format", "sqlite", "--to", path)
        opened = sqlite3.connect(path)
        opened.row_factory = sqlite3.Row
        assert opened.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return opened

    return make


def rows_of(waffle, capture):
    done = run(waffle, "export", capture, "--format", "ndjson", "-o", "-")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("capture", [JOB, VALUES], ids=["job", "values"])
def test_spans_events_and_links_are_those_of_ndjson(waffle, database, capture):
    db = database(capture)
    rows = rows_of(waffle, capture)
    spans = {r["id"]: r for r in rows if r["kind"] == "span"}
    found = {s["id"]: s for s in db.execute("SELECT * FROM spans")}
    assert set(found) == set(spans)
    for span_id, row in spans.items():
        span = found[span_id]
        assert (span["name"], span["pid"], span["start_ns"], span["end_ns"]) == (
            row["name"], row["pid"], row["start_ns"], row["end_ns"])
        assert (span["tid"], span["trace"]) == (row.get("tid"), row.get("trace", "0" * 32))
        for key in ("running_ns", "runnable_ns", "blocked_ns"):
            assert span[key] == row.get(key)
        if row.get("parent") in spans:
            parent = db.execute("SELECT id FROM spans WHERE span = ?", [span["parent"]]).fetchone()
            assert parent["id"] == row["parent"]
    events = [r for r in rows if r["kind"] in ("event", "counter")]
    assert db.execute("SELECT count(*) FROM events").fetchone()[0] == len(events)
    linked = sum(len(r.get("links", [])) for r in rows)
    assert db.execute("SELECT count(*) FROM links").fetchone()[0] == linked


def test_values_have_their_types(waffle, database):
    db = database(VALUES)
    for row in rows_of(waffle, VALUES):
        if row["kind"] != "event" or not row.get("id"):
            continue
        event = int(row["id"], 16)
        event -= (event >= 2**63) * 2**64
        found = {v["key"]: v["value"] for v in db.execute(
            "SELECT key, value FROM event_value JOIN event USING (event) WHERE id = ?", [event])}
        for key, value in row["args"].items():
            if isinstance(value, (int, float)) and abs(value) < 2**53:
                assert found[key] == value
            elif isinstance(value, str) and value.isascii() and key in found:
                assert str(found[key]) == value


def test_causes_are_those_of_why(waffle, database):
    db = database(JOB)
    for span in db.execute("SELECT * FROM spans WHERE cause IS NOT NULL ORDER BY dur_ns DESC LIMIT 3"):
        said = json.loads(run(waffle, "why", JOB, "--span", span["id"], "--json").stdout)
        [instance] = said["instances"]
        causes = [(c["cause"], c["duration_ns"]) for c in db.execute(
            "SELECT cause, ns AS duration_ns FROM cause WHERE span = ? ORDER BY place",
            [span["span"]])]
        assert sum(ns for _, ns in causes) == instance["duration_ns"] == span["dur_ns"]
        totals = {}
        for cause in instance["causes"]:
            totals[cause["cause"]] = totals.get(cause["cause"], 0) + cause["duration_ns"]
        mine = {}
        for cause, ns in causes:
            mine[cause] = mine.get(cause, 0) + ns
        assert mine == totals


def test_waits_are_the_blocked_intervals(waffle, database):
    db = database(JOB)
    blocked = {(r["tid"], r["start_ns"], r["end_ns"]) for r in rows_of(waffle, JOB)
               if r["kind"] == "sched" and r["name"] == "blocked"}
    assert blocked
    assert {tuple(r) for r in db.execute("SELECT tid, start_ns, end_ns FROM waits")} == blocked
    assert db.execute("SELECT count(*) FROM waits WHERE waker IS NOT NULL").fetchone()[0]


QUERIES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/sqlite.md").read_text(), re.S)


def test_each_query_of_the_page_runs(database):
    db = database(JOB)
    assert len(QUERIES) > 10
    empty = 0
    for query in QUERIES:
        assert query.startswith("-- ") and len(query.splitlines()) > 1
        empty += not db.execute(query).fetchall()
    # No rank is known in this capture, and nothing was lost.
    assert empty <= 2


def test_page_names_all_views_tables_and_columns(database):
    db = database(JOB)
    page = (ROOT / "docs/sqlite.md").read_text()
    for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
        assert f"`{row['name']}`" in page


def test_strange_text_and_numbers_are_readable(waffle, database, processed, tmp_path):  # noqa: F811
    path = waffle.path("strange.waffle")
    Processed(processed, tmp_path).run("strange", WAFFLE_TRACE=str(path))
    values = {v["key"]: v["value"] for v in database(path).execute("SELECT * FROM event_value")}
    assert values["text"].startswith("a\x1b[31m\n") and "�" in values["text"]
    assert values["nan"] == "NaN" and values["third"] == 1 / 3 and values["yes"] == 1
    assert values["most"] == str(2**64 - 1) and values["address"] == "0x10"
    assert values["null"] is None and not math.isnan(values["third"])


def test_standard_output_gets_the_database(waffle, tmp_path):
    done = subprocess.run([waffle.program, "export", VALUES, "--format", "sqlite", "-o", "-"],
                          check=True, stdout=subprocess.PIPE)
    assert done.stdout.startswith(b"SQLite format 3\0")


def test_missing_library_is_one_line_and_leaves_the_old_file(waffle, tmp_path):
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", tmp_path / "libsqlite3.so.0"],
                   check=True)
    old = tmp_path / "old.db"
    old.write_text("old")
    done = run(waffle, "export", VALUES, "--format", "sqlite", "--to", old, code=1,
               env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert len(done.stderr.splitlines()) == 1 and "libsqlite3.so.0 is too old" in done.stderr
    assert old.read_text() == "old"

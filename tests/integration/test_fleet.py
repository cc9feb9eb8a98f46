# SPDX-License-Identifier: Apache-2.0
"""docs/fleet.md: a hundred generated ranks send their captures through a real collector, ClickHouse (chdb)
gets them as the collector's exporter writes them, and each query of the page runs."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import pytest

from servers import OtelCollector, Sink, server_file, start_server
from tracer import ROOT, compile_with_waffle, wait_until

RANKS, STEPS = 100, 20
# By rank: milliseconds in each "load".
LATE = {17: 50, 42: 30, 93: 20}
QUERIES = dict(re.findall(r"```sql\n-- (.*?)\n(.*?)```", (ROOT / "docs/fleet.md").read_text(), re.S))

# The columns of the collector's table.
TABLE = """
CREATE TABLE otel_traces (
  Timestamp DateTime64(9), TraceId String, SpanId String, ParentSpanId String, TraceState String,
  SpanName LowCardinality(String), SpanKind LowCardinality(String),
  ServiceName LowCardinality(String), ResourceAttributes Map(LowCardinality(String), String),
  ScopeName String, ScopeVersion String, SpanAttributes Map(LowCardinality(String), String),
  Duration UInt64, StatusCode LowCardinality(String), StatusMessage String,
  Events Nested(Timestamp DateTime64(9), Name LowCardinality(String),
                Attributes Map(LowCardinality(String), String)),
  Links Nested(TraceId String, SpanId String, TraceState String,
               Attributes Map(LowCardinality(String), String)))
ENGINE = MergeTree PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
"""

# Runs in a process of its own, since ClickHouse takes over signals: the queries as JSON on its input,
# the answers on its output.
ASK = """
import json, sys
from chdb import session
asked = json.load(sys.stdin)
db = session.Session()
for statement in asked["prepare"]:
    db.query(statement)
print(json.dumps([json.loads(db.query(q, "JSON").bytes())["data"] for q in asked["queries"]]))
"""


def text_map(attributes):
    return {a["key"]: str(next(iter(a["value"].values()))) for a in attributes}


def rows_of(resource):
    """Rows of the table, as the collector's exporter makes them of a ResourceSpans."""
    about = text_map(resource["resource"]["attributes"])
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            yield {"Timestamp": f"{begin // 10**9}.{begin % 10**9:09}", "TraceId": span["traceId"],
                   "SpanId": span["spanId"], "ParentSpanId": span.get("parentSpanId", ""),
                   "SpanName": span["name"], "SpanKind": "Internal",
                   "ServiceName": about["service.name"], "ResourceAttributes": about,
                   "ScopeName": scope["scope"]["name"], "ScopeVersion": scope["scope"]["version"],
                   "SpanAttributes": text_map(span["attributes"]), "Duration": end - begin}


@pytest.fixture(scope="module")
def answers(waffle_program, tmp_path_factory):
    """{question: rows}"""
    folder, sink = tmp_path_factory.mktemp("fleet"), Sink()
    maker = compile_with_waffle(waffle_program, "make_capture.c", folder / "make_capture")
    collector = start_server(OtelCollector, tmp_path_factory.mktemp, sink)
    began = time.time_ns() - 60 * 10**9

    def send(rank):
        path = folder / f"{rank}.waffle"
        subprocess.run([maker, "rank", path, str(rank), str(LATE.get(rank, 0)), str(began)], check=True)
        subprocess.run([waffle_program, "export", path, "--to", collector.url], check=True,
                       stdout=subprocess.DEVNULL)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        # One rank sends nothing.
        list(pool.map(send, [r for r in range(RANKS) if r != 55]))
    wait_until(lambda: len(sink.spans()) >= (RANKS - 1) * STEPS * 3, "all spans behind the collector")
    rows = folder / "rows.jsonl"
    with open(rows, "w", encoding="utf-8") as out:
        for resource in sink.resources():
            for row in rows_of(resource):
                out.write(json.dumps(row) + "\n")
    collector.close()
    sink.close()
    columns = "Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, " \
              "ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration"
    asked = {"prepare": [TABLE, f"INSERT INTO otel_traces ({columns}) SELECT {columns} "
                         f"FROM file('{rows}', 'JSONEachRow')"], "queries": list(QUERIES.values())}
    done = subprocess.run([sys.executable, "-c", ASK], input=json.dumps(asked), text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": str(server_file("chdb"))},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(QUERIES, json.loads(done.stdout)))


def answer(answers, begin):
    [found] = [rows for question, rows in answers.items() if question.startswith(begin)]
    return found


def test_page_finds_the_late_ranks_and_why(answers):
    rows = answer(answers, "Which ranks were late")
    assert [(int(r["rank"]), float(r["late_ms"]), int(r["times"])) for r in rows] == [
        (rank, ms, STEPS) for rank, ms in LATE.items()]
    assert {(r["cause"], r["grade"]) for r in rows} == {("sleep", "certain")}
    assert [r["host"] for r in rows] == [f"node-{rank // 8:02}" for rank in LATE]
    assert [int(r["rank"]) for r in answer(answers, "Who came last")[:3]] == list(LATE)


def test_page_finds_what_differs_and_who_is_missing(answers):
    first = answer(answers, "Which kinds of spans differ")[0]
    assert (first["SpanName"], int(first["slowest_rank"]), float(first["slowest"])) == ("load", 17, 59)
    assert [int(r["rank"]) for r in answer(answers, "Which ranks sent nothing")] == [55]
    assert answer(answers, "Is it the host")[0]["host"] == "node-02"
    steps = answer(answers, "One step of the slowest")
    assert [(r["SpanName"], r["cause"]) for r in steps] == [
        ("step", "sleep"), ("load", "sleep"), ("allreduce", "socket")]


def test_times_of_the_job_are_exact(answers):
    shares = {int(r["rank"]): r for r in answer(answers, "How much of a step")}
    assert len(shares) == RANKS - 1
    for row in shares.values():
        # Whoever loads longer waits for less in the collective: it blocks for 78 of 92 ms.
        assert float(row["running"]) == round(100 * 14 / 92, 1)
        assert float(row["running"]) + float(row["blocked"]) == pytest.approx(100, abs=0.11)
    spent = {(r["SpanName"], r["cause"]): float(r["seconds"]) for r in answer(answers, "What was the time")}
    assert spent["load", "sleep"] == round(sum(LATE.values()) * STEPS / 1e3, 2)


def test_every_query_of_the_page_finds_something(answers):
    assert len(answers) == len(QUERIES) >= 9 and all(answers.values())

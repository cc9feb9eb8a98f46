# SPDX-License-Identifier: Apache-2.0
"""export --to URL and the formats that servers take (docs/backends.md): real servers get captures, and what
they answer is compared with the capture's NDJSON. Other servers are down, slow, overloaded or broken."""

import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from servers import (Crowd, Jaeger, MetricsPage, OtelCollector, Prometheus, Sink, Zipkin, get_json,
                     start_server)
from test_exporters import attributes, certificate, collector, ids_to_base64  # noqa: F401
from test_processors import Processed, processed  # noqa: F401
from test_tree import CGROUPS, cgroup  # noqa: F401
from tracer import ROOT, wait_until

CAPTURES = ROOT / "tests/golden/captures"
# Two ranks that wait for each other, with what the scheduler did, and a capture of events in and
# outside of spans.
JOB, EVENTS = CAPTURES / "sim-training-joined.waffle", CAPTURES / "values.waffle"
SMALL, COUNTERS = CAPTURES / "family.waffle", CAPTURES / "training.waffle"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    servers = []

    def make(kind, *arguments):
        servers.append(start_server(kind, tmp_path_factory.mktemp, *arguments))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def jaeger(made):
    return made(Jaeger)


@pytest.fixture(scope="module")
def zipkin(made):
    return made(Zipkin)


@pytest.fixture(scope="module")
def otelcol(made):
    sink = Sink()
    server = made(OtelCollector, sink)
    server.sink = sink
    yield server
    sink.close()


class Truth:
    """A capture by its NDJSON."""

    def __init__(self, waffle, path):
        done = subprocess.run([waffle.program, "export", path, "--format", "ndjson", "-o", "-"],
                              check=True, stdout=subprocess.PIPE)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.spans = {r["id"]: r for r in rows if r["kind"] == "span"}
        self.events = {r["id"]: r for r in rows if r["kind"] == "event"}
        self.counters = [r for r in rows if r["kind"] == "counter"]
        [summary] = [r for r in rows if r["kind"] == "summary"]
        self.offset = summary["clock"]["real_ns"] - summary["clock"]["monotonic_ns"]
        self.host = summary["hosts"][0]["host"] if "hosts" in summary else None

    def trace_of(self, row):
        return row.get("trace") or row["id"].rjust(32, "0")

    def traces(self):
        return {self.trace_of(r) for r in self.spans.values()}

    def inside(self, span_id):
        return [e for e in self.events.values() if e.get("parent") == span_id]

    def target(self, link):
        """Trace and span id under which a server knows a cause."""
        row = (self.spans if link["kind"] == "span" else self.events).get(link["id"])
        if link["kind"] == "event" and row and row.get("parent") in self.spans:
            row = self.spans[row["parent"]]
        return (self.trace_of(row), row["id"]) if row else None

    def links(self, span_id):
        """Those of a span and of its events."""
        rows = [self.spans[span_id], *self.inside(span_id)]
        found = {self.target(link) for row in rows for link in row.get("links", [])}
        return {link for link in found if link and link[1] != span_id}


@pytest.fixture
def send(waffle):
    def export(path, url, *options, code=0, **variables):
        done = subprocess.run([waffle.program, "export", path, "--to", url, *options], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, **variables}, timeout=120)
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    return export


# ---- Jaeger ----

def jaeger_tags(holder):
    return {tag["key"]: tag["value"] for tag in holder["tags"]}


def check_jaeger_span(truth, span, row):
    assert span["operationName"] == row["name"] and span["traceID"] == truth.trace_of(row)
    # The server counts in microseconds.
    assert span["startTime"] == (row["start_ns"] + truth.offset) // 1000
    assert span["duration"] == (row["end_ns"] - row["start_ns"]) // 1000
    tags = jaeger_tags(span)
    for key in ("running_ns", "runnable_ns", "blocked_ns"):
        assert tags.get(f"waffle.{key}") == row.get(key)
    for key, value in row["args"].items():
        if isinstance(value, (int, str)) and key in tags:
            assert tags[key] == value
    references = {(r["refType"], r["traceID"], r["spanID"]) for r in span["references"]}
    links = {("FOLLOWS_FROM", *link) for link in truth.links(row["id"])}
    if row.get("parent"):
        references.discard(("CHILD_OF", truth.trace_of(row), row["parent"]))
    assert references == links


def check_jaeger_spans(jaeger, truth, said):
    """Jaeger has all spans of a capture that was sent; returns them by their ids."""
    assert f"{len(truth.spans) + len(truth.events)} spans and events were sent" in said
    found = {}
    for trace in truth.traces():
        wait_until(lambda: jaeger.trace(trace), "the trace in Jaeger")  # noqa: B023
        found.update(jaeger.trace(trace))
    assert set(found) >= set(truth.spans)
    for span_id, row in truth.spans.items():
        check_jaeger_span(truth, found[span_id], row)
    return found


def test_jaeger_has_every_span_to_the_microsecond(jaeger, send, waffle):
    truth = Truth(waffle, JOB)
    found = check_jaeger_spans(jaeger, truth, send(JOB, jaeger.url))
    for span_id in truth.spans:
        process = jaeger_tags(found[span_id]["process"])
        assert process["process.pid"] == truth.spans[span_id]["pid"] and process["host.name"]
        # Calls of CUDA have a key "event", which Jaeger would take for the name.
        logs = [jaeger_tags({"tags": log["fields"]})["event"] for log in found[span_id]["logs"]]
        assert sorted(logs) == sorted(e["name"] for e in truth.inside(span_id))
    # Links lead to spans of the other rank, which the server has.
    crossing = [(span_id, link) for span_id in truth.spans for link in truth.links(span_id)
                if truth.spans.get(link[1], {}).get("pid") not in (None, truth.spans[span_id]["pid"])]
    assert crossing and all(link[1] in found for _, link in crossing)


def test_jaeger_has_causes_as_why_names_them(jaeger, send, waffle):
    truth = Truth(waffle, JOB)
    send(JOB, jaeger.url)
    row = max(truth.spans.values(), key=lambda r: r["end_ns"] - r["start_ns"]
              if "running_ns" in r and not r.get("unfinished") else 0)
    wait_until(lambda: row["id"] in jaeger.trace(truth.trace_of(row)), "the span in Jaeger")
    tags = jaeger_tags(jaeger.trace(truth.trace_of(row))[row["id"]])
    done = subprocess.run([waffle.program, "why", JOB, "--span", row["id"], "--json"], check=True,
                          stdout=subprocess.PIPE)
    [instance] = json.loads(done.stdout)["instances"]
    first = max(instance["causes"], key=lambda c: c["duration_ns"])
    assert tags["waffle.cause"] == first["cause"]
    assert tags["waffle.cause.grade"] == first["grade"]
    assert tags["waffle.cause.duration_ns"] == first["duration_ns"]


def test_events_outside_of_spans_and_strange_values_arrive(jaeger, send, waffle, processed,  # noqa: F811
                                                           tmp_path):
    """Text that is not UTF-8, and a number that JSON does not have: Jaeger still shows the trace."""
    path = waffle.path()
    Processed(processed, tmp_path).run("strange", WAFFLE_TRACE=str(path))
    truth = Truth(waffle, path)
    send(path, jaeger.url)
    [row] = truth.events.values()
    trace = truth.trace_of(row)
    wait_until(lambda: jaeger.trace(trace), "the event in Jaeger")
    [span] = jaeger.trace(trace).values()
    tags = jaeger_tags(span)
    assert span["duration"] == 0 and span["spanID"] == row["id"]
    assert tags["text"].startswith("a\x1b[31m\n") and "�" in tags["text"]
    assert str(tags["nan"]) == "NaN" and tags["third"] == 1 / 3 and tags["yes"] is True
    assert tags["most"] == str(2**64 - 1)


def test_hostile_keys_and_values_are_readable_everywhere(jaeger, zipkin, otelcol, send, waffle, built,
                                                         libwaffle_flags):
    """Of a text, programs give the first 256 bytes."""
    path = waffle.path()
    program = built("hostile_values.c", *libwaffle_flags)
    subprocess.run([program], check=True, env={**os.environ, "WAFFLE_TRACE": str(path)})
    truth = Truth(waffle, path)
    [row] = truth.spans.values()
    trace, key = truth.trace_of(row), "key \ufffd\ufffd"
    for url in (jaeger.url, zipkin.url + "/api/v2/spans", otelcol.url):
        send(path, url)
    wait_until(lambda: jaeger.trace(trace) and zipkin.trace(trace) and any(
        s["spanId"] == row["id"] for s in otelcol.sink.spans()), "the span in all servers")
    [span] = jaeger.trace(trace).values()
    assert span["operationName"] == "hostile \ufffd"
    tags = jaeger_tags(span)
    assert (tags[key], tags["nan"], tags["inf"]) == ("x" * 256, "NaN", "-Infinity")
    [log] = span["logs"]
    fields = jaeger_tags({"tags": log["fields"]})
    assert (fields["event"], fields["waffle.kv.event"]) == ("inside", "not its name")
    [span] = zipkin.trace(trace).values()
    assert span["tags"][key] == "x" * 256 and span["annotations"][0]["value"].startswith("inside ")
    [span] = [s for s in otelcol.sink.spans() if s["spanId"] == row["id"]]
    assert {a["key"] for a in span["attributes"]} >= {key, "nan", "inf", "event"}


# ---- Zipkin ----

def test_zipkin_has_every_span_to_the_microsecond(zipkin, send, waffle):
    truth = Truth(waffle, JOB)
    send(JOB, zipkin.url + "/api/v2/spans")
    found = {}
    for trace in truth.traces():
        wait_until(lambda: zipkin.trace(trace), "the trace in Zipkin")  # noqa: B023
        found.update(zipkin.trace(trace))
    for span_id, row in truth.spans.items():
        span = found[span_id]
        # Zipkin lowers the case of names.
        assert span["name"] == row["name"].lower()
        assert span["timestamp"] == (row["start_ns"] + truth.offset) // 1000
        assert span["duration"] == max(1, -(-(row["end_ns"] - row["start_ns"]) // 1000))
        assert span.get("parentId") == row.get("parent")
        for key in ("running_ns", "runnable_ns", "blocked_ns"):
            assert span["tags"].get(f"waffle.{key}") == (str(row[key]) if key in row else None)
        assert span["tags"]["process.pid"] == str(row["pid"])
        links = {tuple(x.split("-")) for x in span["tags"].get("waffle.caused_by", "").split()}
        assert links == truth.links(span_id)
        assert len(span.get("annotations", [])) == len(truth.inside(span_id))


# ---- an OpenTelemetry collector ----

def test_collector_forwards_what_it_got(otelcol, send, waffle):
    truth = Truth(waffle, JOB)
    send(JOB, otelcol.url + "/v1/traces")
    wait_until(lambda: len(otelcol.sink.spans()) >= len(truth.spans), "all spans behind the collector")
    spans = {s["spanId"]: s for s in otelcol.sink.spans()}
    for span_id, row in truth.spans.items():
        span = spans[span_id]
        assert int(span["startTimeUnixNano"]) == row["start_ns"] + truth.offset
        assert int(span["endTimeUnixNano"]) == row["end_ns"] + truth.offset
        assert {(x["traceId"], x["spanId"]) for x in span.get("links", [])} == truth.links(span_id)
    for resource in otelcol.sink.resources():
        keys = {a["key"] for a in resource["resource"]["attributes"]}
        assert keys >= {"service.name", "service.instance.id", "host.name", "host.arch", "os.type",
                        "process.pid", "process.executable.name", "telemetry.sdk.name"}
        assert "process.command_line" not in keys


def points_of(metrics, pid):
    """Sorted (name, time, value) of the counters of a process in OTLP's JSON."""
    return sorted((attribute["value"]["stringValue"], int(point["timeUnixNano"]),
                   int(point["asInt"]) if "asInt" in point else point["asDouble"])
                  for about, metric in metrics if metric["name"] == "waffle.counter"
                  and {"key": "process.pid", "value": {"intValue": str(pid)}} in about
                  for point in metric["gauge"]["dataPoints"]
                  for attribute in point["attributes"] if attribute["key"] == "name")


def counters_of(truth):
    return sorted((r["name"], r["start_ns"] + truth.offset, r["args"]["value"])
                  for r in truth.counters)


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_collector_has_each_value_of_a_counter(made, send, waffle, way):
    sink = Sink()
    server = made(OtelCollector, sink)
    truth = Truth(waffle, COUNTERS)
    said = send(COUNTERS, server.grpc if way == "grpc" else server.url)
    assert f"So were {len(truth.counters)} values of counters." in said
    [pid] = {r["pid"] for r in truth.counters}
    wait_until(lambda: points_of(sink.metrics(), pid) == counters_of(truth), "the counters")
    sink.close()


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_jaeger_takes_no_counters_and_that_is_said(jaeger, send, waffle, way):
    truth = Truth(waffle, COUNTERS)
    said = send(COUNTERS, jaeger.grpc if way == "grpc" else jaeger.url)
    assert f"{len(truth.counters)} values of counters were not: the server takes no metrics." in said
    span_id, row = next(iter(truth.spans.items()))
    wait_until(lambda: span_id in jaeger.trace(truth.trace_of(row)), "a span in Jaeger")


def test_file_has_values_of_counters(waffle):
    truth, out = Truth(waffle, COUNTERS), waffle.path("x.otlp.jsonl")
    subprocess.run([waffle.program, "export", COUNTERS, "--format", "otlp", "--to", out], check=True,
                   stdout=subprocess.DEVNULL)
    sink = Sink()
    sink.bodies = out.read_text().splitlines()
    [pid] = {r["pid"] for r in truth.counters}
    assert points_of(sink.metrics(), pid) == counters_of(truth)
    sink.close()


def test_attach_sends_counters_while_the_program_runs(made, waffle, processed):  # noqa: F811
    sink = Sink()
    server = made(OtelCollector, sink)
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url))
    assert "dropped" not in capture.result.stderr
    truth = Truth(waffle, capture.path)
    [row] = truth.counters
    # Live, the clock of day is that of the moment.
    wait_until(lambda: [(name, value) for name, _, value in points_of(sink.metrics(), row["pid"])]
               == [(row["name"], row["args"]["value"])], "the counter")
    sink.close()


# ---- files ----

@pytest.mark.parametrize("capture", [JOB, EVENTS], ids=["job", "events"])
def test_file_of_otlp_is_valid_and_whole(waffle, capture):
    truth = Truth(waffle, capture)
    out = waffle.path("x.otlp.jsonl")
    subprocess.run([waffle.program, "export", capture, "--format", "otlp", "--to", out], check=True,
                   stdout=subprocess.DEVNULL)
    spans = {}
    for line in out.read_text().splitlines():
        text = json.loads(line)
        if "resourceMetrics" in text:
            continue
        ids_to_base64(text)
        message = json_format.ParseDict(text, trace_service_pb2.ExportTraceServiceRequest())
        spans.update({s.span_id.hex(): s for r in message.resource_spans for scope in r.scope_spans
                      for s in scope.spans})
    alone = {i for i, e in truth.events.items() if e.get("parent") not in truth.spans}
    assert set(spans) == set(truth.spans) | alone
    for span_id, row in truth.spans.items():
        assert [e.name for e in spans[span_id].events] == [
            e["name"] for e in sorted(truth.inside(span_id), key=lambda e: e["start_ns"])]


def test_file_of_zipkin_is_what_its_server_takes(zipkin, waffle):
    out = waffle.path("x.json")
    subprocess.run([waffle.program, "export", EVENTS, "--format", "zipkin", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    spans = json.loads(out.read_text())
    request = urllib.request.Request(zipkin.url + "/api/v2/spans", data=out.read_bytes(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 202
    wait_until(lambda: spans[0]["id"] in zipkin.trace(spans[0]["traceId"]), "the span in Zipkin")


# ---- options ----

@pytest.mark.parametrize("options, says", [
    (["--to", "5x"], "--to '5x': expected a time such as 10s, a URL, or a file such as ./5x"),
    (["--to", "ftp://h"], "expected a URL such as http://localhost:4318"),
    (["--to", "http://user:pass@h"], "a URL must not have a password"),
    (["--format", "chrome", "--to", "http://h"],
     "--to URL: chrome is a format of files; otlp, zipkin and prometheus are sent"),
    (["--to", "http://h", "-o", "x"], "give either a URL or a file to write"),
    (["--to", "a", "--to", "b"], "--to 'b': the output is already 'a'"),
    (["--ca", "x", "--to", "f"], "--headers and --ca need --to URL"),
    (["--to", "http://h", "--headers", "/nonexistent"], "/nonexistent: No such file"),
])
def test_wrong_options_cost_one_line(waffle, options, says):
    done = subprocess.run([waffle.program, "export", SMALL, *options], text=True, check=False,
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=waffle.folder)
    assert done.returncode in (1, 2) and not done.stdout
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr
    assert "pass@" not in done.stderr and not list(waffle.folder.iterdir())


def test_time_and_url_may_be_given_together(waffle, collector, send):  # noqa: F811
    server = collector()
    send(JOB, server.url, "--from", "0s", "--to", "50ms")
    whole = collector()
    send(JOB, whole.url)
    assert 0 < len(server.spans()) < len(whole.spans())


# ---- servers that fail ----

def spans_of(waffle, path):
    truth = Truth(waffle, path)
    return len(truth.spans) + len(truth.events)


def test_server_that_is_down_costs_an_error(waffle, send, collector):  # noqa: F811
    server = collector()
    server.close()
    total = spans_of(waffle, SMALL)
    retry, error = send(SMALL, server.url, "--wait", "1s", code=1).splitlines()
    assert "it is tried again" in retry
    assert f"{server.url}: {total} of {total} records were not accepted: " in error
    assert "onnect" in error


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_refusal_is_one_line(waffle, send, collector, status):  # noqa: F811
    server = collector((status, {}, b"no, thanks\n\x1b[31m"))
    total = spans_of(waffle, SMALL)
    [line] = send(SMALL, server.url, code=1).splitlines()
    assert f"{total} of {total} records were not accepted: HTTP status {status}: no, thanks" in line
    assert "\x1b" not in line


def test_overloaded_server_is_asked_again_when_it_says(send, collector):  # noqa: F811
    server = collector((429, {"Retry-After": "1"}, b"later"), (200, {}, b""))
    send(SMALL, server.url)
    first, second = server.requests
    assert first.body == second.body and second.time - first.time >= 1


def test_four_requests_are_under_way_at_the_same_time(waffle, send, processed, tmp_path):  # noqa: F811
    path, server = waffle.path(), Crowd()
    Processed(processed, tmp_path).run("wide", 300, WAFFLE_TRACE=str(path))
    send(path, server.url, "--wait", "100s")
    server.server.shutdown()
    assert not server.together.broken
    assert server.spans == len(Truth(waffle, path).spans)


def test_server_that_asks_for_an_hour_is_not_waited_for(send, collector):  # noqa: F811
    server = collector((503, {"Retry-After": "3600"}, b"maintenance"))
    began = time.monotonic()
    lines = send(SMALL, server.url, "--wait", "1s", code=1).splitlines()
    assert time.monotonic() - began < 60 and "maintenance" in lines[-1]


def test_slow_server_is_given_up(send, collector):  # noqa: F811
    gate = threading.Event()
    server = collector(gate=gate)
    lines = send(SMALL, server.url, "--wait", "1s", code=1).splitlines()
    assert "were not accepted" in lines[-1]
    gate.set()


class Breaking:
    """Breaks the connection in the middle of the first request, then in the middle of the second answer."""

    def __init__(self):
        self.bodies = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        for number in range(3):
            connection, _ = self.listener.accept()
            with connection:
                head, body = connection.recv(100), b""
                if number == 0:
                    continue
                while b"\r\n\r\n" not in head:
                    head += connection.recv(65536)
                head, _, body = head.partition(b"\r\n\r\n")
                [length] = [int(x.split(b":")[1]) for x in head.split(b"\r\n")
                            if x.lower().startswith(b"content-length")]
                while len(body) < length:
                    body += connection.recv(65536)
                self.bodies.append(body)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" if number == 2
                                   else b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        self.listener.close()


def test_connection_that_breaks_halfway_is_tried_again(send):
    server = Breaking()
    send(SMALL, server.url)
    server.thread.join(10)
    first, second = server.bodies
    assert first == second


def test_bad_certificate_is_an_error_at_once(send, collector, certificate):  # noqa: F811
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server = collector(context=context)
    [line] = send(SMALL, server.url, code=1).splitlines()
    assert "certificate" in line and not server.requests
    assert "sent" in send(SMALL, server.url, "--ca", certificate / "cert.pem")
    assert server.spans()


def test_secret_headers_arrive_and_are_not_printed(send, collector, tmp_path):  # noqa: F811
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer s3cr3t-of-the-test\n")
    server = collector((403, {}, b"who is Bearer s3cr3t-of-the-test?"))
    said = send(SMALL, server.url, "--headers", headers, code=1)
    assert server.requests[0].headers["Authorization"] == "Bearer s3cr3t-of-the-test"
    assert "s3cr3t" not in said


def test_failed_export_leaves_the_old_file(waffle, tmp_path):
    old = tmp_path / "old.json"
    old.write_text("old")
    broken = tmp_path / "broken.waffle"
    broken.write_bytes(b"WAFFLE" + bytes(100))
    for form in ("otlp", "zipkin"):
        done = subprocess.run([waffle.program, "export", broken, "--format", form, "--to", old],
                              stderr=subprocess.PIPE, check=False, text=True)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert old.read_text() == "old"


def test_service_is_the_program_or_what_the_variable_says(send, collector):  # noqa: F811
    server = collector()
    send(SMALL, server.url, OTEL_SERVICE_NAME="shop")
    resource = attributes(server.requests[0].message().resource_spans[0].resource)
    assert resource["service.name"] == "shop"


# ---- while a program runs ----

def test_attach_sends_spans_while_the_program_runs(jaeger, waffle, steps):
    attached = waffle.attach_to(steps, steps.path, options=("--to", jaeger.url))
    steps.ask("span 1", "did span")

    def spans():
        answer = get_json(f"{jaeger.query}/api/traces?service=steps&lookback=1h&limit=100")
        return {s["spanID"]: s for trace in answer["data"] or [] for s in trace["spans"]}

    wait_until(spans, "the span in Jaeger, before the end of the recording")
    assert attached.process.poll() is None
    steps.ask("span 2", "did span")
    capture = attached.stop()
    assert not capture.result.stderr
    truth = Truth(waffle, capture.path)
    wait_until(lambda: len(spans()) >= len(truth.spans), "all spans in Jaeger")
    for span_id, row in truth.spans.items():
        span = spans()[span_id]
        assert abs(span["startTime"] - (row["start_ns"] + truth.offset) / 1000) < 1000
        assert span["duration"] == (row["end_ns"] - row["start_ns"]) // 1000
        tags = jaeger_tags(span)
        assert tags["ms"] == row["args"]["ms"]
        # It sleeps, so the scheduler's part is not nothing.
        assert row["running_ns"] > 0 and row["blocked_ns"] > 500_000
        for key in ("running_ns", "runnable_ns", "blocked_ns"):
            assert tags[f"waffle.{key}"] == row[key]


def test_scheduler_times_of_a_busy_program_are_sent_as_the_capture_has_them(otelcol, waffle, built):
    """Threads that compute, wait for each other, and are preempted."""
    program = built("slow_ones.c", "-pthread")
    capture = waffle.run(program, options=("--to", otelcol.url))
    truth = Truth(waffle, capture.path)

    def spans():
        return {s["spanId"]: {a["key"]: a["value"] for a in s["attributes"]}
                for s in otelcol.sink.spans() if s["spanId"] in truth.spans}

    wait_until(lambda: len(spans()) == len(truth.spans), "all spans behind the collector")
    compared = 0
    for span_id, found in spans().items():
        row = truth.spans[span_id]
        if "waffle.running_ns" not in found:
            continue
        compared += 1
        for key in ("running_ns", "runnable_ns", "blocked_ns"):
            assert int(found[f"waffle.{key}"]["intValue"]) == row[key], (key, row)
    assert compared >= 0.9 * len(truth.spans)


def test_resource_of_a_traced_process_has_its_container(collector, waffle, steps, cgroup):  # noqa: F811
    container = "0123456789abcdef" * 4
    cgroup(f"docker-{container}.scope", steps.process.pid)
    server = collector()
    attached = waffle.attach_to(steps, steps.path, options=("--to", server.url))
    steps.ask("span 1", "did span")
    path = attached.stop().path
    resource = attributes(server.requests[0].message().resource_spans[0].resource)
    assert resource["process.pid"] == steps.process.pid
    assert resource["container.id"] == container
    assert resource["process.executable.name"] == "steps"
    # The capture has it, too, also after it was copied.
    assert resource_in(waffle, path, "steps")["container.id"] == container
    merged = path.with_name("merged.waffle")
    waffle.ok("merge", path, "-o", merged)
    assert resource_in(waffle, merged, "steps")["container.id"] == container


def resource_in(waffle, path, program):
    """The resource of a program in a capture, as it is exported."""
    lines = waffle.ok("export", path, "--format", "otlp", "--to", "-").stdout.splitlines()
    [found] = {json.dumps(attributes_json(resource["resource"])): attributes_json(resource["resource"])
               for line in lines for resource in json.loads(line).get("resourceSpans", [])
               if attributes_json(resource["resource"]).get("process.executable.name") == program}.values()
    return found


def attributes_json(holder):
    return {item["key"]: next(iter(item["value"].values())) for item in holder["attributes"]}


def test_resource_of_a_program_that_records_itself_has_its_rank_and_container(waffle, cgroup, processed,  # noqa: F811
                                                                              tmp_path):
    container = "89abcdef01234567" * 4
    path = tmp_path / "own.waffle"
    name = cgroup(f"docker-{container}.scope")
    [folder] = [place + name for place in CGROUPS if os.path.exists(place + name)]
    subprocess.run(["sh", "-c", f'echo $$ > "{folder}/cgroup.procs"; exec "$@"', "sh", processed, "steps", "1"],
                   check=True, env={**os.environ, "WAFFLE_TRACE": str(path), "RANK": "3", "WORLD_SIZE": "8"})
    resource = resource_in(waffle, path, "processed")
    assert (resource["waffle.rank"], resource["waffle.world_size"], resource["container.id"]) == ("3", "8", container)


def test_run_sends_to_zipkin_what_passes_the_chain(zipkin, waffle, processed):  # noqa: F811
    capture = waffle.run(processed, "steps", 10, options=(
        "--process", "filter(kv.i >= 5)", "--to", zipkin.url + "/api/v2/spans"))
    truth = Truth(waffle, capture.path)
    for span_id, row in truth.spans.items():
        found = zipkin.trace(truth.trace_of(row)).get(span_id)
        assert (row["args"]["i"] >= 5) == bool(found)


def test_server_that_is_down_fills_the_spool(waffle, processed, collector, tmp_path):  # noqa: F811
    server = collector()
    server.close()
    spool = tmp_path / "spool"
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url, "--spool", spool))
    assert "22 records are in the spool" in capture.result.stderr
    server = collector()
    capture = waffle.run(processed, "sleep", 10, options=("--to", server.url, "--spool", spool))
    numbers = sorted(attributes(s)["i"] for s in server.spans() if s.name == "step")
    assert numbers == sorted([*range(10)] * 2) and not list(spool.glob("*.parcel"))


def test_drops_are_counted_and_shown(waffle, processed, collector):  # noqa: F811
    server = collector()
    server.close()
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url))
    [line] = [x for x in capture.result.stderr.splitlines() if "dropped" in x]
    assert "--to: export(): 22 records were dropped: " in line and "onnect" in line


def test_overloaded_server_is_asked_again_while_the_program_runs(waffle, steps, collector):  # noqa: F811
    server = collector((429, {"Retry-After": "2"}, b"later"), (200, {}, b""))
    attached = waffle.attach_to(steps, steps.path, options=("--to", server.url))
    steps.ask("span 1", "did span")
    wait_until(lambda: len(server.requests) >= 2, "the second try, before the end of the recording")
    result = attached.stop().result
    first, second = server.requests[:2]
    # By itself, the first wait is a second at most.
    assert first.body == second.body and second.time - first.time >= 2
    assert "HTTP status 429: later; it is tried again" in result.stderr
    assert "dropped" not in result.stderr


def test_connection_that_breaks_while_the_program_runs_is_tried_again(waffle, steps):
    server = Breaking()
    attached = waffle.attach_to(steps, steps.path, options=("--to", server.url))
    steps.ask("span 1", "did span")
    wait_until(lambda: len(server.bodies) == 2, "the third try, before the end of the recording")
    result = attached.stop().result
    first, second = server.bodies
    assert first == second and "dropped" not in result.stderr


def test_bad_certificate_drops_what_is_counted(waffle, processed, collector, certificate):  # noqa: F811
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server = collector(context=context)
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url))
    [line] = [x for x in capture.result.stderr.splitlines() if "dropped" in x]
    assert "22 records were dropped: " in line and "certificate" in line and not server.requests
    assert Truth(waffle, capture.path).spans  # the capture is whole


def test_refusals_are_counted_while_the_program_runs(waffle, processed, collector):  # noqa: F811
    server = collector((403, {}, b"no"))
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url))
    first, total = [x for x in capture.result.stderr.splitlines() if "not accepted" in x]
    assert "--to: export(): " in first and "HTTP status 403: no" in first
    assert "--to: export(): 22 records were not accepted in all: HTTP status 403: no" in total


def test_server_that_never_answers_fills_the_queue_and_drops_are_counted(waffle, processed,  # noqa: F811
                                                                         collector):  # noqa: F811
    gate = threading.Event()
    server = collector(gate=gate)
    capture = waffle.run(processed, "steps", 10, options=("--to", server.url))
    [line] = [x for x in capture.result.stderr.splitlines() if "dropped" in x]
    assert "22 records were dropped" in line
    gate.set()


def test_hostile_keys_and_values_arrive_while_the_program_runs(jaeger, waffle, built):
    """Keys that are not UTF-8, a value of 64 KiB, NaN."""
    capture = waffle.run(built("hostile_values.c"), options=("--to", jaeger.url))
    assert "dropped" not in capture.result.stderr
    [row] = Truth(waffle, capture.path).spans.values()
    trace = row.get("trace") or row["id"].rjust(32, "0")
    wait_until(lambda: jaeger.trace(trace), "the span in Jaeger")
    [span] = jaeger.trace(trace).values()
    tags = jaeger_tags(span)
    assert (tags["key \ufffd\ufffd"], tags["nan"]) == ("x" * 256, "NaN")


@pytest.mark.parametrize("options, says", [
    (["--to", "x.db"], "--to: export(): 'x.db': expected a URL such as http://localhost:4318"),
    (["--spool", "x"], "--spool needs --to URL"),
])
def test_wrong_options_of_run_cost_one_line(waffle, options, says):
    waffle.fails(2, "run", *options, "--", "true", says=re.escape(says))


# ---- Prometheus ----

@pytest.fixture(scope="module")
def scraped(made, tmp_path_factory, waffle_program):
    """JOB in a Prometheus that has scraped it twice."""
    path = tmp_path_factory.mktemp("metrics") / "job.prom"
    subprocess.run([waffle_program, "export", JOB, "--format", "prometheus", "--to", path], check=True,
                   stdout=subprocess.DEVNULL)
    page = MetricsPage(path)
    server = made(Prometheus, page)
    wait_until(lambda: page.scrapes >= 2 and server.query("waffle_records_total"), "two scrapes")
    yield server
    page.close()


def test_prometheus_takes_all_series(scraped, waffle):
    truth = Truth(waffle, JOB)
    counts = {}
    for kind, rows in (("span", truth.spans), ("event", truth.events)):
        for row in rows.values():
            key = (("kind", kind), ("name", row["name"]))
            counts[key] = counts.get(key, 0) + 1
    assert scraped.query("waffle_records_total") == counts
    assert scraped.query("up") == {(): 1}
    [target] = scraped.ask("targets")["activeTargets"]
    assert target["lastError"] == ""


def whole_durations(truth, name):
    return [r["end_ns"] - r["start_ns"] for r in truth.spans.values() if r["name"] == name
            and not {"unfinished", "begun_before", "left"} & set(r)]


def check_exemplars(server, truth, series):
    """Those of a series of durations lead to spans, and have their durations."""
    last = max(r["end_ns"] for r in truth.spans.values()) + truth.offset
    found = server.ask("query_exemplars", query=series, start=last / 1e9 - 60, end=last / 1e9 + 60)
    exemplars = [e for one in found for e in one["exemplars"]]
    assert exemplars
    for exemplar in exemplars:
        row = truth.spans[exemplar["labels"]["span_id"]]
        assert exemplar["labels"]["trace_id"] == truth.trace_of(row)
        assert float(exemplar["value"]) == pytest.approx((row["end_ns"] - row["start_ns"]) / 1e9)


def test_prometheus_has_durations_with_exemplars(scraped, waffle):
    truth = Truth(waffle, JOB)
    steps = whole_durations(truth, "step")
    select = 'waffle_span_duration_seconds_%s{name="step"}'
    [count] = scraped.query(select % "count").values()
    [total] = scraped.query(select % "sum").values()
    assert count == len(steps) and total == pytest.approx(sum(steps) / 1e9)
    [median] = scraped.query(f"histogram_quantile(0.5, {select % 'bucket'})").values()
    # Four buckets an octave.
    assert median == pytest.approx(sorted(steps)[len(steps) // 2] / 1e9, rel=0.25)
    check_exemplars(scraped, truth, select % "bucket")


def test_prometheus_has_causes_that_sum_to_the_time_of_spans(scraped, waffle):
    truth = Truth(waffle, JOB)
    whole = [r for r in truth.spans.values() if r["name"] == "step"
             and not {"unfinished", "begun_before"} & set(r)]
    [total] = scraped.query('sum(waffle_cause_seconds_total{name="step"})').values()
    assert total == pytest.approx(sum(r["end_ns"] - r["start_ns"] for r in whole) / 1e9)
    assert set(scraped.query("sum by (state) (waffle_thread_seconds_total)")) == {
        (("state", x),) for x in ("running", "runnable", "blocked")}
    assert scraped.query('sum(waffle_lost_records_total)') == {(): 0}


@pytest.fixture(scope="module")
def written(made):
    """A Prometheus that takes remote write."""
    return made(Prometheus)


def native_histogram(server, select):
    """The histogram of a series, as the query API gives it."""
    [result] = server.ask("query", query=select)["result"]
    return result["histogram"][1]


def check_native_histogram(found, values):
    """Each value is in the bucket that has it, and all buckets are exact."""
    assert int(found["count"]) == len(values)
    assert float(found["sum"]) == pytest.approx(sum(values))
    total = 0
    for _, low, high, count in found["buckets"]:
        # A bound that is printed may differ from the exact one in its last digits.
        low, high = float(low) * (1 - 1e-12), float(high) * (1 + 1e-12)
        assert int(count) <= sum(low <= v <= high for v in values)
        total += int(count)
        # 160 buckets: a value is known better than in the text's four buckets an octave.
        assert high / low < 2 ** 0.25
    assert total == len(values)


def test_prometheus_gets_native_histograms_with_exemplars(written, send, waffle):
    truth = Truth(waffle, JOB)
    said = send(JOB, written.url + "/api/v1/write", OTEL_SERVICE_NAME="written")
    assert re.search(r": \d+ series were sent", said)
    durations = [ns / 1e9 for ns in whole_durations(truth, "step")]
    check_native_histogram(native_histogram(
        written, 'waffle_span_duration_seconds{name="step",job="written"}'), durations)
    [median] = written.query(
        'histogram_quantile(0.5, waffle_span_duration_seconds{name="step"})').values()
    assert median == pytest.approx(sorted(durations)[len(durations) // 2], rel=0.1)
    check_exemplars(written, truth, 'waffle_span_duration_seconds{name="step"}')


def test_remote_write_has_what_the_text_has(written, scraped, send):
    send(JOB, written.url, "--format", "prometheus", OTEL_SERVICE_NAME="same")
    for metric in ("waffle_records_total", "waffle_cause_seconds_total", "waffle_thread_seconds_total",
                   "waffle_lost_records_total", "waffle_overflowed_total"):
        assert scraped.query(metric) and written.query(metric + '{job="same"}') == scraped.query(metric)


def test_chain_of_a_program_writes_to_prometheus(written, processed, tmp_path):  # noqa: F811
    program = Processed(processed, tmp_path)
    _, lines = program.run("steps", 40, chain="log(json,file=all.log),"
                           f"metrics(histogram=dur,by=kv.parity),export(prometheus={written.url}/)",
                           OTEL_SERVICE_NAME="chained")
    assert not lines
    rows = [json.loads(x) for x in (tmp_path / "all.log").read_text().splitlines()]
    for parity in ("even", "odd"):
        durations = [r["dur_ns"] / 1e9 for r in rows if r["kind"] == "span"
                     and r["args"]["parity"] == parity]
        check_native_histogram(native_histogram(
            written, f'waffle_span_duration_seconds{{parity="{parity}",job="chained"}}'), durations)
    [depth] = written.query('waffle_counter{name="depth",job="chained"}').values()
    assert depth == 42


def test_run_writes_to_prometheus_while_the_program_runs(written, waffle, processed):  # noqa: F811
    waffle.run(processed, "steps", 10, options=("--to", written.url + "/api/v1/write"))
    found = native_histogram(written, 'waffle_span_duration_seconds{name="step",job="processed"}')
    assert int(found["count"]) == 10


def test_prometheus_without_its_receiver_is_an_error(send, collector):  # noqa: F811
    server = collector((404, {}, b"no such page"))
    [line] = send(JOB, server.url + "/api/v1/write", code=1).splitlines()
    assert "HTTP status 404: no such page" in line

# SPDX-License-Identifier: Apache-2.0
"""OTLP over gRPC (docs/backends.md): real servers take it, others answer with errors, ask for patience or
break the connection."""

import ssl
import subprocess

import pytest

from grpc_server import GrpcServer, retry_info
from test_backends import (JOB, SMALL, Truth, check_jaeger_spans, jaeger, made, otelcol,  # noqa: F401
                           send, spans_of)
from test_exporters import certificate  # noqa: F401
from test_processors import Processed, processed  # noqa: F401
from tracer import wait_until

DONE = ([("grpc-status", "0")], b"")


@pytest.fixture
def server():
    made = []  # noqa: F811

    def make(*answers, **options):
        made.append(GrpcServer(answers or (DONE,), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def failed(status, message=None, *more):
    return [("grpc-status", str(status)), *([("grpc-message", message)] if message else []), *more], b""


# ---- real servers ----

def test_jaeger_has_every_span_to_the_microsecond(jaeger, send, waffle):  # noqa: F811
    truth = Truth(waffle, JOB)
    check_jaeger_spans(jaeger, truth, send(JOB, jaeger.grpc))


def test_collector_forwards_what_it_got(otelcol, send, waffle):  # noqa: F811
    truth = Truth(waffle, JOB)
    send(JOB, otelcol.grpc)
    wait_until(lambda: len(otelcol.sink.spans()) >= len(truth.spans), "all spans behind the collector")
    spans = {s["spanId"]: s for s in otelcol.sink.spans()}
    for span_id, row in truth.spans.items():
        assert int(spans[span_id]["startTimeUnixNano"]) == row["start_ns"] + truth.offset
        assert int(spans[span_id]["endTimeUnixNano"]) == row["end_ns"] + truth.offset


def test_all_of_many_requests_arrive(jaeger, send, waffle):  # noqa: F811
    """libcurl 7.88 can't use a connection again."""
    truth = Truth(waffle, JOB)
    subprocess.run([waffle.program, "export", JOB, "--process",
                    f"filter(kind == span),batch(50),export(otlp={jaeger.grpc})"], check=True)
    for span_id, row in truth.spans.items():
        wait_until(lambda: span_id in jaeger.trace(truth.trace_of(row)), "the span")  # noqa: B023


def test_requests_are_no_longer_than_servers_take(otelcol, send, waffle, processed, tmp_path):  # noqa: F811
    """A collector takes 4 MiB in a request. 300 spans with 100 events each are twice as long."""
    path = waffle.path()
    Processed(processed, tmp_path).run("wide", 300, WAFFLE_TRACE=str(path))
    truth = Truth(waffle, path)
    assert len(truth.events) > 20_000
    assert f"{len(truth.spans) + len(truth.events):,} spans and events were sent" in send(path, otelcol.grpc)
    wait_until(lambda: truth.spans.keys() <= {s["spanId"] for s in otelcol.sink.spans()}, "all spans")
    sent = {s["spanId"]: s for s in otelcol.sink.spans()}
    for span_id in truth.spans:
        assert len(sent[span_id].get("events", [])) == len(truth.inside(span_id))


def test_chain_of_a_program_sends_spans_and_metrics(otelcol, processed, tmp_path):  # noqa: F811
    _, lines = Processed(processed, tmp_path).run(
        "steps", 40, chain=f"metrics(histogram=dur),export(otlp={otelcol.grpc})",
        OTEL_SERVICE_NAME="by-grpc")
    assert not lines

    def own(things):
        return [(about, thing) for about, thing in things
                if {"key": "service.name", "value": {"stringValue": "by-grpc"}} in about]

    def spans():
        return own((r["resource"]["attributes"], span) for r in otelcol.sink.resources()
                   for scope in r["scopeSpans"] for span in scope["spans"])

    wait_until(lambda: len(spans()) >= 41 and own(otelcol.sink.metrics()), "spans and metrics")
    assert sorted(s["name"] for _, s in spans()) == ["careful", *["step"] * 40]
    assert "waffle.span.duration" in {m["name"] for _, m in own(otelcol.sink.metrics())}


def test_attach_sends_while_the_program_runs(jaeger, waffle, steps):  # noqa: F811
    attached = waffle.attach_to(steps, steps.path, options=("--to", jaeger.grpc))
    steps.ask("span 1", "did span")
    capture = attached.stop()
    assert not capture.result.stderr
    truth = Truth(waffle, capture.path)
    [row] = truth.spans.values()
    wait_until(lambda: row["id"] in jaeger.trace(truth.trace_of(row)), "the span in Jaeger")


# ---- servers that fail ----

def test_request_is_longer_than_a_window_of_http2(send, server, waffle):
    grpc = server()
    send(JOB, grpc.url)
    assert max(len(call.body) for call in grpc.calls) > 65535
    assert {s.span_id.hex() for call in grpc.calls for s in call.spans()} >= set(
        Truth(waffle, JOB).spans)


@pytest.mark.parametrize("status, name", [
    (2, "UNKNOWN"), (3, "INVALID_ARGUMENT"), (7, "PERMISSION_DENIED"), (8, "RESOURCE_EXHAUSTED"),
    (12, "UNIMPLEMENTED"), (13, "INTERNAL"), (16, "UNAUTHENTICATED"), (99, "unknown")])
def test_refusal_is_one_line(waffle, send, server, status, name):
    grpc = server(failed(status, "no,%20thanks%0A%1b[31m 100%"))
    total = spans_of(waffle, SMALL)
    [line] = send(SMALL, grpc.url, code=1).splitlines()
    assert (f"{total} of {total} records were not accepted: gRPC status {status} ({name}): no, thanks"
            in line)
    assert "\x1b" not in line and "100%" in line and len(grpc.calls) == 1


@pytest.mark.parametrize("status, name", [(14, "UNAVAILABLE"), (4, "DEADLINE_EXCEEDED"),
                                          (10, "ABORTED")])
def test_temporary_failure_is_tried_again(send, server, status, name):
    grpc = server(failed(status, "later"), DONE)
    send(SMALL, grpc.url)
    first, second = grpc.calls
    assert first.body == second.body


@pytest.mark.parametrize("status", [8, 14])
def test_overloaded_server_is_asked_again_when_it_says(send, server, status):
    grpc = server(failed(status, "busy", ("grpc-status-details-bin", retry_info(3))), DONE)
    send(SMALL, grpc.url)
    first, second = grpc.calls
    # By itself, the first wait is a second at most.
    assert first.body == second.body and second.time - first.time >= 3


def test_partial_success_is_said_and_not_sent_again(waffle, send, server):
    partial = b"\x0a\x0b\x08\x03\x12\x07too old"
    grpc = server(([("grpc-status", "0")], partial))
    total = spans_of(waffle, SMALL)
    [line] = send(SMALL, grpc.url, code=1).splitlines()
    assert f"3 of {total} records were not accepted: too old" in line and len(grpc.calls) == 1


def test_connection_that_breaks_halfway_is_tried_again(send, server):
    grpc = server(DONE, cut=1)
    send(SMALL, grpc.url)
    first, second = grpc.calls
    assert first.body == second.body


def test_answer_without_a_status_is_refused(send, server):
    grpc = server(([("x", "y")], b""))
    [line] = send(SMALL, grpc.url, code=1).splitlines()
    assert "the answer has no grpc-status; is this a server of gRPC?" in line


def test_server_that_is_down_costs_an_error(send, server):
    grpc = server()
    grpc.close()
    lines = send(SMALL, grpc.url, "--wait", "1s", code=1).splitlines()
    assert "it is tried again" in lines[0] and "were not accepted" in lines[-1]


def test_certificates_are_checked(send, server, certificate):  # noqa: F811
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.set_alpn_protocols(["h2"])
    grpc = server(context=context)
    [line] = send(SMALL, grpc.url, code=1).splitlines()
    assert "certificate" in line and not grpc.calls
    send(SMALL, grpc.url, "--ca", certificate / "cert.pem")
    assert grpc.calls


def test_secrets_are_not_printed(send, server, tmp_path):
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer s3cr3t-of-the-test\n")
    grpc = server(failed(16, "who is s3cr3t-of-the-test?"))
    assert "s3cr3t" not in send(SMALL, grpc.url, "--headers", headers, code=1)


@pytest.mark.parametrize("options, says", [
    (["--to", "grpc://h:4317/v1/traces"], "gRPC has no paths; expected a URL such as grpc://localhost:4317"),
    (["--to", "grpc://h", "--format", "zipkin"], "only otlp goes by gRPC"),
])
def test_wrong_urls_cost_one_line(send, options, says):
    [line] = send(SMALL, options[1], *options[2:], code=1).splitlines()
    assert says in line

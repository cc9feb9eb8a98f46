# SPDX-License-Identifier: Apache-2.0
"""Contexts that go from Python's OpenTelemetry through a C program and back.

A C program is a server and a client at once: it takes the context out of a request and sends it on
with a request of its own. Both ends are OpenTelemetry's own propagators.
"""

import http.server
import os
import subprocess
import sys
import threading
import urllib.request

import pytest
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.b3 import B3MultiFormat, B3SingleFormat
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tracer import Capture, ROOT

PROPAGATORS = {"tracecontext": TraceContextTextMapPropagator(), "baggage": W3CBaggagePropagator(),
               "b3": B3SingleFormat(), "b3multi": B3MultiFormat()}
TRACE, SPAN = 0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331
B3_FORMATS = ["b3", "b3multi"]


def composite(names):
    return CompositePropagator([PROPAGATORS[name] for name in names.split(",") if name != "none"])


def context(trace_id=TRACE, sampled=True, state=(), **items):
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if sampled else 0)
    span = trace.SpanContext(trace_id, SPAN, is_remote=False, trace_flags=flags,
                             trace_state=trace.TraceState(list(state)))
    made = trace.set_span_in_context(trace.NonRecordingSpan(span))
    for name, value in items.items():
        made = baggage.set_baggage(name, value, made)
    return made


def span_of(made):
    return trace.get_current_span(made).get_span_context()


@pytest.fixture(scope="module")
def programs(waffle_program, tmp_path_factory):
    """The examples, compiled as their reader would."""
    folder, libraries = tmp_path_factory.mktemp("examples"), waffle_program.parent
    for name in ("propagate_http", "propagate_child"):
        subprocess.run(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include",
                        "-o", folder / name, f"{ROOT}/examples/{name}.c", f"-L{libraries}",
                        "-lwaffle", f"-Wl,-rpath,{libraries}"], check=True)
    return folder


class Next(http.server.BaseHTTPRequestHandler):
    """The service behind the relay: keeps the headers that it gets."""

    def do_GET(self):
        self.server.got.append(self.headers)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Relay:
    def __init__(self, program, **variables):
        self.next = http.server.HTTPServer(("127.0.0.1", 0), Next)
        self.next.got = []
        self.thread = threading.Thread(target=self.next.serve_forever)
        self.thread.start()
        self.program = subprocess.Popen([program, "0", str(self.next.server_port)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **variables})
        self.port = int(self.program.stdout.readline())

    def ask(self, headers):
        """What the next service gets after a request with these headers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", headers=headers)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).close()
        return {name.lower(): value for name, value in self.next.got.pop().items()}

    def end(self):
        self.next.shutdown()
        self.thread.join()
        self.next.server_close()
        self.program.terminate()
        return self.program.communicate(timeout=60)[1]


@pytest.fixture
def relay(programs):
    relays = []

    def start(**variables):
        relays.append(Relay(programs / "propagate_http", **variables))
        return relays[-1]

    yield start
    for made in relays:
        made.end()


def through(made, names, relayed):
    """The context that OpenTelemetry reads behind the relay, and the headers."""
    headers = {}
    composite(names).inject(headers, made)
    got = relayed.ask(headers)
    return composite(names).extract(got), got


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("names", ["tracecontext,baggage", "b3,baggage", "b3multi,baggage",
                                   "b3multi,b3,tracecontext"])
def test_context_passes_a_relay_that_records_nothing_unchanged(relay, names, sampled):
    sent = context(sampled=sampled, state=[("foo", "1"), ("t@v", "a b")], user="alice")
    seen, headers = through(sent, names, relay(OTEL_PROPAGATORS=names))
    span = span_of(seen)
    assert (span.trace_id, span.span_id, bool(span.trace_flags & 1)) == (TRACE, SPAN, sampled)
    if "tracecontext" in names:
        assert list(span.trace_state.items()) == [("foo", "1"), ("t@v", "a b")]
    if "baggage" in names:
        assert baggage.get_all(seen) == {"user": "alice", "relay": "C"}
    else:
        assert "baggage" not in headers


@pytest.mark.parametrize("names", ["tracecontext,baggage", "b3", "b3multi"])
def test_relay_that_records_is_the_parent_behind_it_and_the_child_before_it(relay, names, waffle):
    path = waffle.path()
    relayed = relay(OTEL_PROPAGATORS=names, WAFFLE_TRACE=str(path))
    seen, _ = through(context(user="alice"), names, relayed)
    assert relayed.end() == ""
    rows = Capture(waffle, path).rows()
    spans = {row["name"]: row for row in rows if row["kind"] == "span"}
    assert span_of(seen).trace_id == TRACE
    assert f"{span_of(seen).span_id:016x}" == spans["send"]["id"]
    assert spans["send"]["parent"] == spans["request"]["id"]
    assert spans["request"]["parent"] == f"{SPAN:016x}"
    assert spans["request"]["trace"] == f"{TRACE:032x}"
    assert [row["args"]["name"] for row in rows if row.get("name") == "user"] == (
        ["alice"] if "baggage" in names else [])


@pytest.mark.parametrize("name", B3_FORMATS)
def test_trace_ids_of_64_bits_are_sent_with_64_bits(relay, name):
    relayed = relay(OTEL_PROPAGATORS=name)
    short = f"{TRACE & (1 << 64) - 1:016x}"
    headers = {"b3": f"{short}-{SPAN:016x}-1"} if name == "b3" else {
        "X-B3-TraceId": short, "X-B3-SpanId": f"{SPAN:016x}", "X-B3-Sampled": "1"}
    got = relayed.ask(headers)
    assert (got["b3"].split("-")[0] if name == "b3" else got["x-b3-traceid"]) == short
    assert span_of(PROPAGATORS[name].extract(got)).trace_id == int(short, 16)


@pytest.mark.parametrize("name", B3_FORMATS)
def test_debug_flag_and_denial_pass_the_relay(relay, name):
    relayed = relay(OTEL_PROPAGATORS=name)
    single = name == "b3"
    ids = {"X-B3-TraceId": f"{TRACE:032x}", "X-B3-SpanId": f"{SPAN:016x}"}
    debug = {"b3": f"{TRACE:032x}-{SPAN:016x}-d"} if single else {**ids, "X-B3-Flags": "1"}
    got = relayed.ask(debug)
    assert got["b3"].endswith("-d") if single else got["x-b3-flags"] == "1"
    got = relayed.ask({"b3": "0"} if single else {"X-B3-Sampled": "0"})
    assert got["b3" if single else "x-b3-sampled"] == "0"


def test_values_of_baggage_are_the_same_at_both_ends(relay):
    relayed = relay(OTEL_PROPAGATORS="baggage")
    values = {"plain": "v1", "signs": "a=b;c,d%e\"f\\", "text": "Grüße €", "plus": "1+1"}
    seen, headers = through(context(**values), "baggage", relayed)
    assert baggage.get_all(seen) == {**values, "relay": "C"}
    assert set(headers["baggage"]) <= set(map(chr, range(0x21, 0x7f)))


def test_headers_that_are_not_valid_begin_a_new_trace(relay, waffle):
    path = waffle.path()
    relayed = relay(WAFFLE_TRACE=str(path))
    got = relayed.ask({"traceparent": f"ff-{TRACE:032x}-{SPAN:016x}-01", "tracestate": "foo=1"})
    span = span_of(PROPAGATORS["tracecontext"].extract(got))
    assert span.is_valid and span.trace_id != TRACE and "tracestate" not in got
    assert span.trace_flags & 1


def test_unknown_propagator_costs_one_line_and_the_default_is_used(relay):
    relayed = relay(OTEL_PROPAGATORS="tracecontext,jaeger")
    seen, _ = through(context(user="alice"), "tracecontext,baggage", relayed)
    assert span_of(seen).span_id == SPAN and baggage.get_baggage("user", seen) == "alice"
    said = relayed.end()
    assert said.count("\n") == 1 and "OTEL_PROPAGATORS is 'tracecontext,jaeger'" in said


PRINT = [sys.executable, "-c", "import os; print(dict(os.environ))"]


@pytest.mark.parametrize("names", ["tracecontext,baggage", "b3", "b3multi"])
def test_child_gets_the_span_that_started_it(programs, waffle, names):
    path, headers = waffle.path(), {}
    composite(names).inject(headers, context(state=[("foo", "1")], user="alice"))
    variables = {name.upper().replace("-", "_"): value for name, value in headers.items()}
    done = subprocess.run([programs / "propagate_child", *PRINT], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=60,
                          env={**os.environ, **variables, "OTEL_PROPAGATORS": names,
                               "WAFFLE_TRACE": str(path)})
    got = {name.lower().replace("_", "-"): value for name, value in eval(done.stdout).items()}
    seen = composite(names).extract(got)
    (span,) = [row for row in Capture(waffle, path).rows() if row["kind"] == "span"]
    assert span["parent"] == f"{SPAN:016x}" and span["trace"] == f"{TRACE:032x}"
    assert f"{span_of(seen).span_id:016x}" == span["id"]
    assert span_of(seen).trace_id == TRACE
    if "tracecontext" in names:
        assert list(span_of(seen).trace_state.items()) == [("foo", "1")]
        assert baggage.get_all(seen) == {"user": "alice"}


def test_context_of_an_earlier_process_does_not_reach_the_child(programs):
    """Also in formats that the program does not speak."""
    variables = {"TRACEPARENT": f"00-{TRACE:032x}-{SPAN:016x}-01", "B3": "0", "BAGGAGE": "a=1"}
    done = subprocess.run([programs / "propagate_child", *PRINT], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=60,
                          env={**os.environ, **variables, "OTEL_PROPAGATORS": "none"})
    assert not set(eval(done.stdout)) & set(variables)


def test_header_compiles_as_cpp17_without_warnings(tmp_path):
    source = tmp_path / "wire.cpp"
    source.write_text("#include <waffle_propagate.h>\n"
                      "int main() { waffle_wire_context wire = {}; waffle_carrier carrier = {};\n"
                      "\treturn !carrier.get && wire.sampling == WAFFLE_SAMPLING_UNKNOWN ? 0 : 1; }\n",
                      encoding="utf-8")
    for compiler in ("g++", "clang++"):
        subprocess.run([compiler, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
                        "-Werror", f"-I{ROOT}/include", "-o", tmp_path / "wire", source], check=True)
        subprocess.run([tmp_path / "wire"], check=True)

# SPDX-License-Identifier: Apache-2.0
"""The Python package's connections to others: exporters, propagators, logging, and instrumentation of
OpenTelemetry. The other side is a real server, or OpenTelemetry's own code."""

import json
import subprocess
import sys
import time
from datetime import datetime
from types import SimpleNamespace

import pytest
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.b3 import B3MultiFormat
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client.openmetrics import parser as openmetrics

from servers import Prometheus, start_server
from test_backends import check_native_histogram
from test_exporters import Collector
from test_python import METHODS, Script, parents, python, script  # noqa: F401  (fixtures)
from tracer import Capture, wait_until

W3C = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
TRACE, SPAN = 0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331


# ---- exporters ----


def service_of(request):
    [resource] = request.message().resource_spans
    return {item.key: item.value.string_value for item in resource.resource.attributes}["service.name"]


def test_a_program_that_exits_at_once_has_sent_its_spans_to_jaeger(script):
    collector = Collector()
    done = script.alone(f"""
        waffle.set_exporter(waffle.JaegerExporter("{collector.url}", service_name="trainer, the"))
        with waffle.span("outer", n=3, text="x"):
            waffle.event("inside")
        """)
    assert not done.stderr
    [span] = collector.spans()
    assert span.name == "outer" and [event.name for event in span.events] == ["inside"]
    assert service_of(collector.requests[0]) == "trainer, the"
    values = {item.key: item.value for item in span.attributes}
    assert values["n"].int_value == 3 and values["text"].string_value == "x"


def test_zipkin_gets_json_and_a_child_of_fork_sends_its_own(script):
    collector = Collector()
    script.alone(f"""
        import os
        waffle.set_exporter(waffle.ZipkinExporter("{collector.url}", service_name="z"))
        with waffle.span("parent"):
            pid = os.fork()
            if not pid:
                with waffle.span("child"): pass
                os._exit(0)
            os.waitpid(pid, 0)
        """)
    spans = {span["name"]: span for request in collector.requests for span in json.loads(request.body)}
    assert all(request.path == "/api/v2/spans" for request in collector.requests)
    assert spans["child"]["parentId"] == spans["parent"]["id"] and spans["child"]["localEndpoint"]["serviceName"] == "z"


def test_hostile_names_keys_and_values_arrive(script):
    collector = Collector()
    done = script.alone(f"""
        waffle.set_exporter(waffle.OTLPExporter("{collector.url}"))
        with waffle.span("na\\udcffme", **{{"": 1, "\\udcff": 2, "a b": 3}}, long="x" * 65536, broken="a\\udcff", nul="a\\0b",
                         nan=float("nan"), inf=-float("inf"), big=1 << 80, list=list(range(100000)), none=None): pass
        waffle.event("n" * 65536)
        waffle.counter("depth", float("nan"))
        """)
    assert not done.stderr
    spans = {span.name: span for span in collector.spans()}
    [name] = [name for name in spans if not name.startswith("n" * 255)]
    values = {item.key: item.value for item in spans[name].attributes}
    assert set(values) >= {"(empty)", "(not valid Unicode)", "a b", "long", "nan", "inf"} and "\x00" not in name
    assert values["long"].string_value.startswith("x" * 256) and len(values["long"].string_value) < 300
    assert values["nan"].string_value == "NaN" and values["inf"].string_value == "-Infinity"
    assert values["big"].string_value == "int of 81 bits" and values["list"].string_value == "list of 100000"


@pytest.mark.parametrize("method", METHODS)
def test_processes_that_begin_after_set_exporter_send_their_spans(script, method):
    collector = Collector()
    done = script.alone(f"""
        import multiprocessing
        def work(n):
            with waffle.span("work", n=n): return n
        if __name__ == "__main__":
            waffle.set_exporter(waffle.OTLPExporter("{collector.url}", service_name="job"), filter='name != "left out"')
            context = multiprocessing.get_context("{method}")
            with waffle.span("parent"):
                process = context.Process(target=work, args=(0,)); process.start(); process.join()
                assert process.exitcode == 0
                with context.Pool(2) as pool: print(pool.map(work, [1, 2]))
        """)
    assert done.stdout == "[1, 2]\n" and not done.stderr
    spans = {}
    for span in collector.spans():
        spans.setdefault(span.name, []).append(span)
    [parent] = spans["parent"]
    assert sorted(span.attributes[0].value.int_value for span in spans["work"]) == [0, 1, 2]
    assert all(span.parent_span_id == parent.span_id and span.trace_id == parent.trace_id for span in spans["work"])
    assert {service_of(request) for request in collector.requests} == {"job"}


@pytest.mark.parametrize("method", METHODS)
def test_children_and_their_children_write_logs_and_metrics_of_their_own(script, method, tmp_path):
    script.alone(f"""
        import multiprocessing, os
        def child(context):
            with waffle.span("child", pid=os.getpid()): pass
            process = context.Process(target=grandchild); process.start(); process.join()
        def grandchild():
            with waffle.span("grandchild", pid=os.getpid()): pass
        if __name__ == "__main__":
            os.chdir({str(tmp_path)!r})
            waffle.set_exporter(waffle.LogExporter("all.log"), waffle.PrometheusExporter(path="%p.prom"),
                                waffle.PrometheusExporter(port=0))
            context = multiprocessing.get_context("{method}")
            process = context.Process(target=child, args=(context,)); process.start(); process.join()
        """)
    rows = [json.loads(line) for line in (tmp_path / "all.log").read_text().splitlines()]
    pids = {row["name"]: row["args"]["pid"] for row in rows if row["kind"] == "span"}
    assert set(pids) == {"child", "grandchild"}
    for name, pid in pids.items():
        families = openmetrics.text_string_to_metric_families((tmp_path / f"{pid}.prom").read_text())
        [records] = [family for family in families if family.name == "waffle_records"]
        assert [sample.labels["name"] for sample in records.samples if sample.labels["kind"] == "span"] == [name]


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(3)", "raise ValueError", "os._exit(4)",
                                 "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_last_spans_arrive_however_a_program_ends_while_threads_trace(script, end):
    collector = Collector()
    code = {"pass": 0, "raise SystemExit(3)": 3, "raise ValueError": 1, "os._exit(4)": 4}.get(end, -15)
    script.alone(f"""
        import os, signal, threading
        waffle.set_exporter(waffle.JaegerExporter("{collector.url}"))
        begun = threading.Barrier(4)
        @waffle.instrument
        def step(n):
            with waffle.span("inside"): pass
        def forever():
            step(0); begun.wait()
            while True: step(1)
        for _ in range(3): threading.Thread(target=forever, daemon=True).start()
        begun.wait()
        waffle.set_exporter(waffle.JaegerExporter("{collector.url}"))  # the spans of before are sent
        with waffle.span("last"): pass
        {end}
        """, code=code)
    names = [span.name for span in collector.spans()]
    assert names.count("last") == 1 and names.count("step") >= 3


def test_exporters_can_be_combined_replaced_and_ended(script):
    folder = script.folder
    done = script.alone(f"""
        import urllib.request
        prometheus = waffle.PrometheusExporter(port=0)
        waffle.set_exporter(waffle.FileExporter({str(folder / "a.waffle")!r}), prometheus, filter='name != "no"')
        for n in range(5):
            with waffle.span("counted"): pass
        waffle.event("no")
        text = ""
        while "counted" not in text:
            text = urllib.request.urlopen("http://localhost:%d/metrics" % prometheus.port).read().decode()
        print(text)
        waffle.set_exporter(waffle.LogExporter({str(folder / "b.log")!r}))
        waffle.event("logged", n=1)
        waffle.set_exporter(waffle.ChromeExporter({str(folder / "c.json")!r}))
        waffle.event("chrome")
        waffle.set_exporter()
        print("recorded", waffle.is_recorded())
        for wrong in (lambda: waffle.set_exporter(waffle.FileExporter("x.waffle"), waffle.ChromeExporter("y.json")),
                      lambda: waffle.PerfettoExporter("x.json"), lambda: waffle.PrometheusExporter()):
            try: wrong()
            except ValueError as error: print(error)
        for wrong in ("http://localhost:4318", waffle.JaegerExporter):
            try: waffle.set_exporter(wrong)
            except TypeError as error: print(error)
        print(set(["JaegerExporter", "jax", "read", "span"]) - set(dir(waffle)))
        """, no_proxy="localhost")
    text, _, rest = done.stdout.partition("# EOF")
    families = {family.name: family for family in openmetrics.text_string_to_metric_families(text + "# EOF\n")}
    [sample] = [s for s in families["waffle_records"].samples if s.labels["name"] == "counted"]
    assert sample.value == 5
    assert rest.split("\n")[2:] == [
        "recorded False", "waffle: only one exporter may write a capture, but these do: x.waffle, y.json",
        "waffle: the name of the file must end with .pftrace: x.json",
        "waffle: PrometheusExporter takes either a port or a path",
        "waffle: set_exporter() takes exporters, such as waffle.JaegerExporter(), not 'http://localhost:4318'",
        "waffle: set_exporter() takes exporters, such as waffle.JaegerExporter(), not <class "
        "'waffle._exporters.JaegerExporter'>", "set()", ""]
    assert [row["name"] for row in Capture(script.waffle, folder / "a.waffle").rows("span")] == ["counted"] * 5
    [logged] = [json.loads(line) for line in (folder / "b.log").read_text().splitlines()]
    assert logged["name"] == "logged" and logged["args"] == {"n": 1}
    assert any(event["name"] == "chrome" for event in json.loads((folder / "c.json").read_text()))


def test_prometheus_scrapes_native_histograms_with_exemplars(script, tmp_path):
    path = script.write("""
        import sys, time
        prometheus = waffle.PrometheusExporter(port=0, address="127.0.0.1")
        waffle.set_exporter(waffle.LogExporter("all.log"), prometheus)
        for n in range(20):
            with waffle.span("counted"): time.sleep(0.0001 * n)
        waffle.counter("depth", 7)
        print(prometheus.port, flush=True)
        sys.stdin.read()
        """)
    program = subprocess.Popen([script.python, path], env=script.environment(), text=True, cwd=tmp_path,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    page = SimpleNamespace(address=f"127.0.0.1:{int(program.stdout.readline())}")
    server = start_server(Prometheus, lambda _: make_folder(tmp_path), page)
    try:
        select = 'waffle_span_duration_seconds{name="counted"}'
        found = wait_until(lambda: (every_span(server, select, 20)), "all spans")
        rows = [json.loads(line) for line in (tmp_path / "all.log").read_text().splitlines()]
        spans = {row["id"]: row for row in rows if row["kind"] == "span"}
        check_native_histogram(found, [row["dur_ns"] / 1e9 for row in spans.values()])
        assert server.query("waffle_counter") == {(("kind", "counter"), ("name", "depth")): 7}
        assert server.query("waffle_overflowed_total") == {(): 0}
        exemplars = [exemplar for one in server.ask("query_exemplars", query=select, start=time.time() - 600,
                                                    end=time.time() + 60) for exemplar in one["exemplars"]]
        assert exemplars
        for exemplar in exemplars:
            span = spans[exemplar["labels"]["span_id"]]
            assert float(exemplar["value"]) == pytest.approx(span["dur_ns"] / 1e9)
            assert float(exemplar["timestamp"]) == pytest.approx(
                datetime.fromisoformat(span["time"]).timestamp() + span["dur_ns"] / 1e9, abs=0.002)
    finally:
        server.close()
        program.communicate("", timeout=60)
    assert program.returncode == 0


def make_folder(path):
    folder = path / "server"
    folder.mkdir(exist_ok=True)
    return folder


def every_span(server, select, count):
    """The native histogram of a series when it has counted so many spans."""
    series = server.ask("query", query=select)["result"]
    found = series and series[0].get("histogram")
    return found and int(found[1]["count"]) == count and found[1]


def test_metrics_are_served_in_the_format_that_is_asked_for_and_by_the_process_that_set_it(script):
    done = script.alone("""
        import os, sys, urllib.request, warnings
        warnings.simplefilter("ignore")     # of fork(), since there is a thread
        prometheus = waffle.PrometheusExporter(port=0)
        waffle.set_exporter(prometheus)
        url = "http://localhost:%d/metrics" % prometheus.port
        with waffle.span("x"): pass
        for accept in ("", "text/plain", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3",
                       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
                       "application/openmetrics-text;q=0.8", "application/vnd.google.protobuf;q=0.4,"
                       "application/openmetrics-text;q=0.5", "application/vnd.google.protobuf;q=x"):
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept})) as answer:
                print(answer.headers["Content-Type"].split(";")[0])
        pid = os.fork()
        if not pid:
            waffle.set_exporter()       # the child has the socket, but not the thread that answers
            sys.exit(0)                 # and does not remove the files of its parent
        print("child", os.waitpid(pid, 0)[1])
        text = ""
        while '"after"' not in text:
            with waffle.span("after"): pass
            with urllib.request.urlopen(url) as answer: text = answer.read().decode()
        taken = waffle.PrometheusExporter(port=0)
        try:
            waffle.set_exporter(taken, waffle.PrometheusExporter(port=prometheus.port, address="192.0.2.1"))
        except OSError:
            print("taken", taken._server)
        """, no_proxy="localhost")
    text, protobuf = "application/openmetrics-text", "application/vnd.google.protobuf"
    assert done.stdout.splitlines() == [text, text, text, protobuf, text, text, "child 0", "taken None"]
    assert not done.stderr


def test_an_exporter_that_can_not_begin_says_what_is_wrong_in_its_own_words(script):
    done = script.alone("""
        for wrong in (lambda: waffle.set_exporter(waffle.OTLPExporter("ftp://x")),
                      lambda: waffle.set_exporter(waffle.PrometheusExporter(path="x.prom", metrics="limit=1")),
                      lambda: waffle.set_exporter(waffle.LogExporter("x.log"), filter="dur >"),
                      lambda: waffle.trace_start(process="metrics()")):
            try: wrong()
            except OSError as error: print(error.errno)
        """)
    assert done.stdout.split() == ["22"] * 4
    lines = done.stderr.splitlines()
    assert len(lines) == 4 and "WAFFLE_" not in done.stderr
    assert "processors: " in lines[0] and "processors: " in lines[1] and "filter: " in lines[2]
    assert "export(prometheus=URL)" in lines[3]


# ---- propagators ----


def test_headers_are_those_that_opentelemetry_reads_and_writes(script):
    sent = {}
    context = trace.set_span_in_context(trace.NonRecordingSpan(trace.SpanContext(
        TRACE, SPAN, is_remote=False, trace_flags=trace.TraceFlags(1), trace_state=trace.TraceState([("v", "1")]))))
    W3C.inject(sent, baggage.set_baggage("user", "älice", context))
    capture = script.record(f"""
        import json
        received = waffle.extract({sent!r})
        assert received.sampled and received.baggage("user") == "älice" and received.tracestate("v") == "1"
        received.set_baggage("tier", "gold"); received.set_baggage("gone", None)
        try: received.set_baggage("bad key", "x")
        except ValueError: pass
        with received.context, waffle.span("request"):
            print(json.dumps(waffle.inject({{}}, received)))
            print(json.dumps(waffle.inject([], received, propagators="b3multi")))
            print(json.dumps({{k: v for k, v in waffle.environment({{"A": "1", "TRACEPARENT": "old"}}, received).items()}}))
        none = waffle.extract([(b"Traceparent", b"bad"), ("x", None)])
        print(bool(none.context), none.sampled, none.baggage("user"), waffle.inject({{}}))
        """)
    first, second, third, fourth = capture.result.stdout.splitlines()
    [request] = capture.rows("span", name="request")
    assert request["parent"] == f"{SPAN:016x}" and request["trace"] == f"{TRACE:032x}"
    seen = W3C.extract(json.loads(first))
    span = trace.get_current_span(seen).get_span_context()
    assert (span.trace_id, f"{span.span_id:016x}", span.trace_state.get("v")) == (TRACE, request["id"], "1")
    assert baggage.get_all(seen) == {"user": "älice", "tier": "gold"}
    again = trace.get_current_span(B3MultiFormat().extract(dict(json.loads(second)))).get_span_context()
    assert f"{again.span_id:016x}" == request["id"]
    made = json.loads(third)
    assert made["A"] == "1" and made["TRACEPARENT"].split("-")[2] == request["id"] and "BAGGAGE" in made
    assert fourth == "False None None {}"


def test_a_child_continues_the_trace_that_its_environment_has(script):
    child = script.folder / "child.py"
    child.write_text("import waffle\nwith waffle.from_environment().context:\n    waffle.event('in child')\n")
    capture = script.record(f"""
        import subprocess, sys
        with waffle.span("starter"):
            environment = waffle.environment()
            environment["WAFFLE_TRACE"] = {str(script.folder / "child.waffle")!r}
            subprocess.run([sys.executable, {str(child)!r}], env=environment, check=True)
        """)
    [event] = Capture(script.waffle, script.folder / "child.waffle").rows("event")
    assert event["parent"] == capture.rows("span", name="starter")[0]["id"]


# ---- logging ----


def test_messages_of_logging_are_events_of_the_current_span(script):
    capture = script.record("""
        import logging
        logging.basicConfig(level=logging.DEBUG, handlers=[waffle.LoggingHandler()])
        log = logging.getLogger("app")
        with waffle.span("work"):
            log.warning("%d retries of %s", 3, "disk", extra={"host": "a"})
        try: 1 / 0
        except ZeroDivisionError: log.exception("failed")
        log.debug("plain")
        """)
    rows = capture.rows("event")
    [work] = capture.rows("span", name="work")
    assert [(row["name"], row["severity"], row.get("parent")) for row in rows] == [
        ("%d retries of %s", "warn", work["id"]), ("failed", "error", None), ("plain", "info", None)]
    first, second = rows[0]["args"], rows[1]["args"]
    assert (first["message"], first["logger"], first["host"]) == ("3 retries of disk", "app", "a")
    assert second["exception"] == "ZeroDivisionError"


# ---- OpenTelemetry ----


def test_spans_of_opentelemetry_come_with_parents_links_and_attributes(script):
    capture = script.record("""
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        provider = TracerProvider(); provider.add_span_processor(waffle.otel.SpanProcessor())
        tracer = provider.get_tracer("app")
        with tracer.start_as_current_span("server", attributes={"http.method": "GET"}) as server:
            with waffle.span("own"):
                waffle.event("deep")
            with tracer.start_as_current_span("query"): waffle.event("in query")
            server.set_attribute("http.status", 500); server.add_event("retry", {"n": 1})
            server.set_status(trace.StatusCode.ERROR, "no")
        with tracer.start_as_current_span("later", links=[trace.Link(server.get_span_context())]): pass
        with waffle.span("outer"):
            with tracer.start_as_current_span("inner"): pass
        left = tracer.start_span("left open")
        waffle.event("after")
        provider.shutdown()
        """, PYTHONPATH=f"{script.packages}:{':'.join(path for path in sys.path if 'site-packages' in path)}")
    assert parents(capture.rows()) == [
        ("server", None), ("own", "server"), ("deep", "own"), ("query", "server"), ("in query", "query"),
        ("retry", "server"), ("attributes", "server"), ("failed", "server"), ("later", None), ("outer", None),
        ("inner", "outer"), ("left open", None), ("after", None)]
    [server] = capture.rows("span", name="server")
    assert server["args"] == {"http.method": "GET"} and all(row.get("end_ns") for row in capture.rows("span"))
    assert capture.rows("event", name="attributes")[0]["args"] == {"http.status": 500}
    assert capture.rows("event", name="failed")[0]["args"] == {"description": "no"}

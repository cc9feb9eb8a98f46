# SPDX-License-Identifier: Apache-2.0
"""metrics() and export() of a chain (docs/processors.md): a real HTTP server takes what a program or a
finished file sends, and the official protobuf schema of OpenTelemetry decodes it. The server is also
slow, down, overloaded or rejects; the program must not notice, and nothing may be lost unsaid."""

import http.server
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics

from servers import Crowd
from test_processors import Processed, processed  # noqa: F401  (a fixture)
from tracer import wait_until

STEPS = 40


class Request:
    def __init__(self, path, headers, body):
        self.path = path
        self.headers = headers
        self.body = body
        self.time = time.monotonic()

    def message(self):
        kind = (trace_service_pb2.ExportTraceServiceRequest if self.path.endswith("/v1/traces")
                else metrics_service_pb2.ExportMetricsServiceRequest)()
        if self.headers["Content-Type"] == "application/json":
            text = json.loads(self.body)
            ids_to_base64(text)
            json_format.ParseDict(text, kind)
        else:
            assert self.headers["Content-Type"] == "application/x-protobuf"
            kind.ParseFromString(self.body)
        return kind


def ids_to_base64(value):
    """OTLP has ids in hexadecimal where protobuf's own JSON has base64."""
    import base64
    if isinstance(value, list):
        for item in value:
            ids_to_base64(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("traceId", "spanId", "parentSpanId"):
                value[key] = base64.b64encode(bytes.fromhex(item)).decode()
            else:
                ids_to_base64(item)


class Collector:
    """answers: a list of (status, headers, body); the last one is repeated. `gate`: requests wait for
    it."""

    def __init__(self, answers=((200, {}, b""),), gate=None, context=None):
        self.requests = []
        self.lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    number = len(collector.requests)
                    collector.requests.append(Request(self.path, self.headers, body))
                if gate:
                    gate.wait()
                status, headers, answer = answers[min(number, len(answers) - 1)]
                try:
                    self.send_response(status)
                    for key, value in headers.items():
                        self.send_header(key, value)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # the exporter did not wait

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if context else "http"
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def spans(self, requests=None):
        return [span for request in (self.requests if requests is None else requests)
                if request.path.endswith("/v1/traces")
                for resource in request.message().resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    def metrics(self):
        """The last state of each metric."""
        return {metric.name: metric for request in self.requests
                if request.path.endswith("/v1/metrics")
                for resource in request.message().resource_metrics
                for scope in resource.scope_metrics for metric in scope.metrics}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector():
    made = []

    def make(*answers, **options):
        made.append(Collector(answers or ((200, {}, b""),), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def program(processed, tmp_path):  # noqa: F811
    return Processed(processed, tmp_path)


@pytest.fixture
def capture(program, waffle):
    """A finished file of STEPS steps, and how to pass it through a chain."""
    path = waffle.path()
    program.run("steps", STEPS, WAFFLE_TRACE=str(path))

    def export(chain, code=0, **variables):
        done = subprocess.run([waffle.program, "export", path, "--process", chain], text=True,
                              check=False, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, **variables}, timeout=120)
        assert done.returncode == code, done
        return done.stderr

    return export


def attributes(holder):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in holder.attributes}


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_spans_arrive_whole_with_their_events(program, collector, encoding):
    server = collector()
    _, lines = program.run("steps", STEPS, chain="log(json,file=all.log),"
                           f"export(otlp={server.url},encoding={encoding})")
    assert not lines
    rows = [json.loads(x) for x in (program.folder / "all.log").read_text().splitlines()]
    spans = {s.span_id.hex(): s for s in server.spans()}
    assert len(spans) == len(server.spans())
    offset = None
    for row in (r for r in rows if r["kind"] == "span"):
        span = spans.pop(row["id"])
        assert (span.name, span.trace_id.hex()) == (row["name"], row["trace"])
        offset = offset or span.start_time_unix_nano - row["start_ns"]
        assert span.start_time_unix_nano == row["start_ns"] + offset
        assert span.end_time_unix_nano == row["end_ns"] + offset
        values = attributes(span)
        assert {"i": values["i"], "parity": values["parity"]} == row["args"]
        assert (values["thread.id"], values["thread.name"]) == (row["tid"], row["comm"])
        assert values["code.function.name"] == "steps"
        [tick] = [r for r in rows if r["name"] == "tick" and r["parent"] == row["id"]]
        [event] = span.events
        assert (event.name, attributes(event)["i"]) == ("tick", tick["args"]["i"])
        assert event.time_unix_nano == tick["start_ns"] + offset
    assert abs(offset + time.clock_gettime_ns(time.CLOCK_MONOTONIC) - time.time_ns()) < 1e9
    # The log message is outside any span.
    [careful] = spans.values()
    assert careful.name == "careful" and attributes(careful)["waffle.severity"] == "warn"
    assert careful.start_time_unix_nano == careful.end_time_unix_nano


def test_resource_names_the_program(program, collector):
    server = collector()
    program.run("steps", 1, chain=f"export(otlp={server.url}/)",
                OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test,service.name=no")
    resource = attributes(server.requests[0].message().resource_spans[0].resource)
    assert resource["service.name"] == "processed"
    assert resource["deployment.environment"] == "test"
    assert re.fullmatch(r".+:\d+", resource["service.instance.id"])
    program.run("steps", 1, chain=f"export(otlp={server.url})", OTEL_SERVICE_NAME="shop")
    spans = [r for r in server.requests if r.path == "/v1/traces"][-1]
    resource = attributes(spans.message().resource_spans[0].resource)
    assert resource["service.name"] == "shop"


def test_resource_has_host_process_and_rank(program, collector):
    server = collector()
    program.run("steps", 1, chain=f"export(otlp={server.url})", RANK="3", WORLD_SIZE="8",
                TORCHELASTIC_RUN_ID="job-7")
    resource = attributes(server.requests[0].message().resource_spans[0].resource)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}
    assert (resource["host.name"], resource["os.type"]) == (os.uname().nodename, "linux")
    assert resource["host.arch"] == machine.get(os.uname().machine, os.uname().machine)
    assert resource["os.version"] == os.uname().release
    assert resource["process.executable.name"] == "processed" and resource["process.pid"] > 1
    assert (resource["waffle.rank"], resource["waffle.world_size"]) == (3, 8)
    assert "job-7" in resource["waffle.job"]
    own = re.findall(r"[/-]([0-9a-f]{64})(?:\.scope|/|$)", open("/proc/self/cgroup").read(), re.M)
    assert resource.get("container.id") == (own[-1] if own else None)


def test_links_and_parents_of_strange_values_are_valid(program, collector):
    server = collector()
    program.run("strange", chain=f"export(otlp={server.url})")
    [span] = server.spans()
    values = attributes(span)
    assert values["text"].startswith("a\x1b[31m\n") and "�" in values["text"]
    assert values["most"] == str(2**64 - 1) and values["third"] == 1 / 3


def test_batches_bound_the_requests(capture, collector):
    server = collector()
    capture(f"filter(kind == span),batch(16),export(otlp={server.url})")
    assert [len(server.spans([r])) for r in server.requests] == [16, 16, 8]


def test_four_requests_are_under_way_at_the_same_time(capture):
    """The server answers none before four have come."""
    server = Crowd()
    capture(f"filter(kind == span),batch(5),export(otlp={server.url},requests=4)")
    server.server.shutdown()
    assert not server.together.broken and server.spans == STEPS


def test_metrics_arrive_as_exponential_histograms(program, collector):
    server = collector()
    program.run("steps", STEPS, chain="log(json,file=all.log),metrics(histogram=dur+kv.i,"
                f"by=kv.parity),export(otlp={server.url})")
    rows = [json.loads(x) for x in (program.folder / "all.log").read_text().splitlines()]
    metrics = server.metrics()
    counts = {(attributes(p)["name"], attributes(p).get("parity")): p.as_int
              for p in metrics["waffle.records"].sum.data_points}
    assert counts == {("step", "even"): STEPS // 2, ("step", "odd"): STEPS // 2,
                      ("tick", None): STEPS, ("careful", None): 1}
    [gauge] = metrics["waffle.counter"].gauge.data_points
    assert (attributes(gauge)["name"], gauge.as_double) == ("depth", 42)
    for point in metrics["waffle.span.duration"].exponential_histogram.data_points:
        durations = [r["dur_ns"] / 1e9 for r in rows if r["kind"] == "span"
                     and r["args"]["parity"] == attributes(point)["parity"]]
        assert point.count == len(durations) and point.sum == pytest.approx(sum(durations))
        assert (point.min, point.max) == (min(durations), max(durations))
        check_buckets(point, durations)
        ids = {r["id"] for r in rows if r["kind"] == "span"}
        assert point.exemplars and all(e.span_id.hex() in ids for e in point.exemplars)
    values = [p for p in metrics["waffle.kv.i"].exponential_histogram.data_points
              if attributes(p)["name"] == "tick"]
    check_buckets(values[0], list(range(STEPS)))


def check_buckets(point, values):
    """Against bounds of exact integers: base^(i * 2^scale) is a power of two."""
    from fractions import Fraction
    base = 2.0 ** (2.0 ** -point.scale)
    expected = [0] * len(point.positive.bucket_counts)
    for value in values:
        if value == 0:
            continue
        for at in range(len(expected)):
            low = base ** (point.positive.offset + at)
            if low * (1 - 1e-9) < value <= base ** (point.positive.offset + at + 1) * (1 + 1e-9):
                expected[at] += 1
                break
        else:
            raise AssertionError(f"{value} is in no bucket")
    assert point.zero_count == values.count(0)
    # A value as good as at a bound may be on either side of it.
    have = list(point.positive.bucket_counts)
    assert sum(have) == sum(expected) == len(values) - values.count(0)
    assert sum(abs(a - b) for a, b in zip(have, expected)) <= 2 * sum(
        1 for v in values if v and Fraction(v).numerator & (Fraction(v).numerator - 1) == 0)


def test_zipkin_takes_spans_with_their_events(program, collector):
    server = collector((202, {}, b""))
    program.run("steps", STEPS, chain="log(json,file=all.log),metrics(file=m.prom),"
                f"export(zipkin={server.url})")
    rows = {r["id"]: r for r in map(json.loads, (program.folder / "all.log").read_text().splitlines())
            if "id" in r}
    assert {(r.path, r.headers["Content-Type"]) for r in server.requests} == {
        ("/api/v2/spans", "application/json")}
    spans = [s for r in server.requests for s in json.loads(r.body)]
    assert len(spans) == STEPS + 1
    for span in spans:
        row = rows[span["id"]]
        assert (span["name"], span["localEndpoint"]) == (row["name"], {"serviceName": "processed"})
        assert span["tags"]["thread.name"] == "processed"
        if row["kind"] == "span":
            assert span["traceId"] == row["trace"]
            assert span["duration"] == max(1, -(-row["dur_ns"] // 1000))
            assert span["tags"]["i"] == str(row["args"]["i"])
            [annotation] = span["annotations"]
            assert annotation["value"] == f"tick i={row['args']['i']}"


def test_server_that_is_down_does_not_hold_up_the_program(program, collector):
    server = collector()
    server.close()
    out, lines = program.run("steps", STEPS, chain=f"export(otlp={server.url})")
    assert out == "end\n"
    [line] = [x for x in lines if "dropped" in x]
    assert re.search(rf"export\(\): {2 * STEPS + 2} records were dropped: .*[Cc]onnect", line), lines


def test_server_that_never_answers_does_not_hold_up_the_program(program, collector):
    """The queue is shorter than what the program records."""
    gate = threading.Event()
    server = collector(gate=gate)
    out, lines = program.run("steps", 20000, chain=f"export(otlp={server.url},queue=64KiB)")
    assert out == "end\n" and len(server.requests) == 1
    assert any("its queue is full" in x for x in lines)
    [line] = [x for x in lines if "were dropped" in x]
    assert int(re.search(r"(\d+) records were dropped", line)[1]) == 40002
    gate.set()


@pytest.mark.parametrize("status", [429, 503])
def test_overloaded_server_is_asked_again_when_it_says(capture, collector, status):
    server = collector((status, {"Retry-After": "1"}, b"later"), (200, {}, b""))
    stderr = capture(f"filter(kind == span),export(otlp={server.url})")
    assert f"HTTP status {status}: later; it is tried again" in stderr
    first, second = server.requests
    assert first.body == second.body and second.time - first.time >= 1
    assert len(server.spans([second])) == STEPS


def test_errors_of_the_server_are_tried_again(capture, collector):
    server = collector((502, {}, b""), (504, {}, b""), (200, {}, b""))
    capture(f"filter(kind == span),export(otlp={server.url})")
    assert len(server.requests) == 3 and len(server.spans(server.requests[2:])) == STEPS


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500, 302])
def test_rejected_request_is_not_sent_again(capture, collector, status):
    headers = {"Location": "/elsewhere"} if status == 302 else {}
    server = collector((status, headers, b"no, thanks\n"))
    stderr = capture(f"filter(kind == span),export(otlp={server.url})", code=1)
    assert [r.path for r in server.requests] == ["/v1/traces"]
    assert f"{STEPS} records were not accepted: HTTP status {status}: no, thanks" in stderr


def test_all_refusals_are_counted_at_the_end(capture, collector):
    server = collector((403, {}, b"no"))
    stderr = capture(f"filter(kind == span),batch(10),export(otlp={server.url})", code=1)
    assert len(server.requests) == STEPS / 10
    assert "export(): 10 records were not accepted: HTTP status 403: no" in stderr
    assert f"export(): {STEPS} records were not accepted in all: HTTP status 403: no" in stderr


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_partial_success_is_said_and_not_sent_again(capture, collector, encoding):
    answer = trace_service_pb2.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3
    answer.partial_success.error_message = "too old"
    body = (answer.SerializeToString() if encoding == "protobuf"
            else json_format.MessageToJson(answer).encode())
    server = collector((200, {}, body))
    stderr = capture(f"filter(kind == span),export(otlp={server.url},encoding={encoding})", code=1)
    assert len(server.requests) == 1
    assert "3 records were not accepted: too old" in stderr


def test_spool_delivers_later_and_in_order(program, collector):
    server = collector()
    server.close()
    chain = "filter(kind == span),batch(10),export(otlp={},spool=spool)"
    _, lines = program.run("steps", STEPS, chain=chain.format(server.url))
    assert any(f"{STEPS} records are in the spool" in x for x in lines), lines
    spool = program.folder / "spool"
    assert spool.stat().st_mode & 0o777 == 0o700
    kept = list(spool.glob("*.parcel"))
    assert len(kept) == STEPS // 10 and all(p.stat().st_mode & 0o777 == 0o600 for p in kept)
    server = collector()
    # The next run delivers what it has itself, and the spool while it lives.
    out, lines = program.run("sleep", 5, chain=chain.format(server.url))
    assert not lines
    numbers = [attributes(s)["i"] for s in server.spans()]
    assert sorted(numbers) == sorted([*range(STEPS), *range(5)])
    assert [n for n in numbers if n >= 5] == list(range(5, STEPS))
    assert not list(spool.glob("*.parcel"))


def spooled(folder):
    """Records in a spool, by the names of its files."""
    return sum(int(re.search(r"-(\d+)\.parcel$", p.name)[1]) for p in folder.glob("*.parcel"))


def test_killed_program_leaves_its_spool(program, collector):
    """After a first failure, requests go to the disk as they come."""
    server = collector()
    server.close()
    env = {**os.environ, "WAFFLE_PROCESS": "filter(kind == span),batch(10,time=100ms),"
           f"export(otlp={server.url},spool=spool)"}
    with subprocess.Popen([program.program, "ticking"], env=env, cwd=program.folder,
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        spool = program.folder / "spool"
        wait_until(lambda: len(list(spool.glob("*.parcel"))) >= 5, "five requests in the spool")
        process.kill()
    kept = spooled(spool)
    server = collector()
    program.run("sleep", 0, chain=f"filter(kind == span),export(otlp={server.url},spool=spool)")
    numbers = [attributes(s)["i"] for s in server.spans()]
    assert len(numbers) == kept and numbers == list(range(kept))
    assert not list(spool.glob("*.parcel"))


def test_full_spool_drops_the_oldest_and_says_so(program, collector):
    server = collector()
    server.close()
    _, lines = program.run("steps", 3000, chain="filter(kind == span),batch(100),"
                           f"export(otlp={server.url},spool=spool,spool-limit=64KiB)")
    kept = spooled(program.folder / "spool")
    assert 0 < kept < 3000
    text = "\n".join(lines)
    assert f"{kept} records are in the spool" in text
    assert f"{3000 - kept} records were dropped" in text
    assert sum(p.stat().st_size for p in (program.folder / "spool").iterdir()) <= 65536


def test_headers_arrive_and_are_never_printed(program, collector):
    secret = "s3cr3t-of-the-test"
    headers = program.folder / "headers"
    headers.write_text(f"# of the test\nX-Api-Key: {secret}-file\n")
    answer = f"rejected Bearer {secret} and {secret}-file".encode()
    server = collector((401, {}, answer))
    _, lines = program.run("steps", 3, chain=f"export(otlp={server.url},headers={headers})",
                           OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer%20{secret}")
    got = server.requests[0].headers
    assert (got["Authorization"], got["X-Api-Key"]) == (f"Bearer {secret}", f"{secret}-file")
    assert any("HTTP status 401: rejected ***" in x for x in lines), lines
    assert secret not in "\n".join(lines)


def test_a_program_that_dies_writes_its_metrics_and_sends_its_batches(program, collector):
    server = collector()
    program.run("crash", chain="filter(kind == span),metrics(histogram=dur,file=app.prom,every=1h),"
                f"batch(1000,time=1h),export(otlp={server.url})", code=-signal.SIGABRT)
    assert 'waffle_records_total{kind="span",name="step"} 10' in (program.folder / "app.prom").read_text()
    spans = [r for r in server.requests if r.path == "/v1/traces"]
    assert len(spans) == 1
    # A server that does not answer holds it up for a moment.
    program.run("crash", chain="filter(kind == span),batch(1000,time=1h),export(otlp=http://127.0.0.1:9)",
                code=-signal.SIGABRT)


def test_a_part_of_a_header_is_not_printed(program, collector):
    """A server repeats the credentials without their scheme, or one of several."""
    server = collector((401, {}, b"bad credentials dXNlcjpwYXNz, or secret abcdefgh"))
    headers = program.folder / "headers"
    headers.write_text('Authorization: Basic dXNlcjpwYXNz\nX-Sign: id=5, value="abcdefgh"\n')
    _, lines = program.run("steps", 3, chain=f"export(otlp={server.url},headers={headers})")
    assert any("HTTP status 401: bad credentials ***" in x for x in lines), lines
    assert "dXNl" not in "\n".join(lines) and "abcdefgh" not in "\n".join(lines)


@pytest.mark.parametrize("chain", [
    "export(otlp=ftp://user:s3cret@h/)",
    "export(zipkin=http://h/?token=s3cret)",
    "export(otlp=http://h,headers=Authorization: Basic s3cret)",
    "nonsense,export(otlp=http://h/?token=s3cret)",
    "export(otlp=http://user:s3cret@h,header=Authorization: s3cret)",
    "export(otlp=http://h,token=s3cret)",
    "export(otlp=http://h,headers='Authorization: Basic s3cret',)",
])
def test_secrets_in_the_text_of_a_chain_are_not_printed(program, chain):
    out, lines = program.run("steps", 3, chain=chain)
    assert out == "end\n" and len(lines) == 1
    assert "s3cret" not in lines[0], lines


@pytest.mark.parametrize("chain, says", [
    ("export(otlp=localhost:4318)", "expected a URL such as http://localhost:4318"),
    ("export(otlp=file:///etc/passwd)", "expected a URL such as http://localhost:4318"),
    ("export(zipkin=localhost:9411)", "export(): 'localhost:9411': expected a URL"),
    ("export(otlp=http://user:pass@h/)", "a URL must not have a password"),
    ("export(otlp=http://h,headers=/nonexistent)", "/nonexistent: No such file or directory"),
    ("export", "needs otlp=URL, zipkin=URL or prometheus=URL, as in export(otlp=http://localhost:4318)"),
    ("export(prometheus=http://h)", "sends the metrics of a metrics() before it"),
    ("export(otlp=http://h,zipkin=http://h)", "export() needs otlp=URL, zipkin=URL or prometheus=URL"),
    ("export(otlp=http://h,timeout=1ns)", "timeout is too small: expected 100ms to 10m"),
    ("export(otlp=http://h,spool=/nonexistent/x)", "/nonexistent/x: No such file or directory"),
    ("export(otlp=http://h,requests=17)", "requests is too large: expected 1 to 16"),
    ("metrics(histogram=dur),export(prometheus=http://h,requests=2)", "takes no requests="),
    ("metrics", "metrics() leads nowhere"),
    ("metrics(file=/nonexistent/x)", "/nonexistent/x: can't be created: No such file"),
    ("metrics(by=nmae,file=x)", "'nmae': expected kv.KEY, category"),
    ("metrics(histogram=name,file=x)", "'name': expected dur or kv.KEY"),
])
def test_bad_options_cost_one_line(program, chain, says):
    out, lines = program.run("steps", 3, chain=chain)
    assert out == "end\n" and len(lines) == 1
    assert says in lines[0] and "pass@" not in lines[0], lines


def test_program_without_libcurl_runs_untraced(program, tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", tmp_path / name], check=True)
    out, lines = program.run("steps", 3, chain="export(otlp=http://127.0.0.1:1)",
                             LD_LIBRARY_PATH=str(tmp_path))
    assert out == "end\n"
    assert len(lines) == 1 and "install libcurl4; the program runs untraced" in lines[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out",
                    folder / "cert.pem"], check=True, stderr=subprocess.DEVNULL)
    return folder


def test_certificates_are_checked(program, collector, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server = collector(context=context)
    out, lines = program.run("steps", 3, chain=f"filter(kind == span),export(otlp={server.url})")
    assert out == "end\n" and not server.requests
    assert any("3 records were dropped" in x and "certificate" in x for x in lines), lines
    _, lines = program.run("steps", 3, chain="filter(kind == span),"
                           f"export(otlp={server.url},ca={certificate}/cert.pem)")
    assert not lines and len(server.spans()) == 3


# ---- metrics as a file ----

def families(text, parse):
    return {family.name: family for family in parse(text)}


def test_openmetrics_file_has_all_counts_and_exemplars(program):
    program.run("steps", STEPS, chain="log(json,file=all.log),"
                "metrics(histogram=dur,by=kv.parity,file=app-%p.prom)")
    [path] = program.folder.glob("app-*.prom")
    rows = [json.loads(x) for x in (program.folder / "all.log").read_text().splitlines()]
    found = families(path.read_text(), openmetrics.text_string_to_metric_families)
    counts = {(s.labels["kind"], s.labels["name"], s.labels.get("parity")): s.value
              for s in found["waffle_records"].samples}
    assert counts == {("span", "step", "even"): STEPS / 2, ("span", "step", "odd"): STEPS / 2,
                      ("event", "tick", None): STEPS, ("log", "careful", None): 1}
    assert [s.value for s in found["waffle_counter"].samples] == [42]
    histogram = found["waffle_span_duration_seconds"]
    ids = {r["id"] for r in rows if "id" in r}
    exemplars = [s.exemplar for s in histogram.samples if s.exemplar]
    assert exemplars and all(e.labels["span_id"] in ids for e in exemplars)
    for parity in ("even", "odd"):
        durations = [r["dur_ns"] / 1e9 for r in rows if r["kind"] == "span"
                     and r["args"]["parity"] == parity]
        for sample in (s for s in histogram.samples if s.labels["parity"] == parity):
            if sample.name.endswith("_bucket"):
                below = sum(d <= float(sample.labels["le"]) for d in durations)
                assert sample.value == below
            elif sample.name.endswith("_count"):
                assert sample.value == len(durations)
            else:
                assert sample.value == pytest.approx(sum(durations))


def test_prometheus_file_is_valid(program):
    program.run("strange", chain="metrics(histogram=kv.third,by=kv.text,file=m.prom,"
                "format=prometheus)")
    text = (program.folder / "m.prom").read_text()
    assert "\x1b" not in text and "# EOF" not in text
    found = families(text, prometheus.text_string_to_metric_families)
    [sample] = found["waffle_records"].samples
    assert sample.value == 1 and sample.labels["kind"] == "event"
    assert (program.folder / "m.prom").stat().st_mode & 0o777 == 0o600


def test_decimal_comma_of_the_program_reaches_no_output(program, collector):
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", program.folder / "de_DE.UTF-8"],
                          check=False)
    assert made.returncode <= 1, "the package 'locales' is missing"  # 1: warnings
    server = collector()
    program.run("strange", "-", "de_DE.UTF-8", LOCPATH=str(program.folder),
                chain="metrics(histogram=kv.third,by=kv.third,file=m.prom),"
                f"export(zipkin={server.url})")
    text = (program.folder / "m.prom").read_text()
    found = families(text, openmetrics.text_string_to_metric_families)
    [third] = [s for s in found["waffle_kv_third"].samples if s.name.endswith("_sum")]
    assert third.value == 1 / 3 and third.labels["third"] == "0.333333"
    [span] = json.loads(server.requests[0].body)
    assert float(span["tags"]["third"]) == 1 / 3


def test_cardinality_is_bounded(program):
    program.run("steps", 500, chain="filter(kind == span),metrics(by=kv.i,limit=20,file=m.prom)")
    text = (program.folder / "m.prom").read_text()
    found = families(text, openmetrics.text_string_to_metric_families)
    samples = found["waffle_records"].samples
    assert len(samples) == 21 and sum(s.value for s in samples) == 500
    [overflow] = [s for s in samples if s.labels.get("overflow") == "true"]
    assert overflow.value == 480
    assert [s.value for s in found["waffle_overflowed"].samples] == [480]


def test_metrics_of_a_finished_file(capture, tmp_path):
    capture(f"metrics(histogram=dur,file={tmp_path}/m.prom)")
    found = families((tmp_path / "m.prom").read_text(), openmetrics.text_string_to_metric_families)
    [count] = [s.value for s in found["waffle_span_duration_seconds"].samples
               if s.name.endswith("_count")]
    assert count == STEPS

# SPDX-License-Identifier: Apache-2.0
"""Servers that a test starts and ends: real ones, which scripts/servers.sh has made, and Crowd."""

import http.server
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tracer import default_program, find_tool

# Zipkin starts for ten seconds on a quiet machine.
READY_S = 120


def server_file(name):
    import pathlib
    path = pathlib.Path(default_program()).resolve().parent / "servers" / name
    assert path.exists(), f"{path} is not there; run make setup-check"
    return path


def free_ports(count):
    """Ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for one in sockets:
        one.close()
    return ports


def get(url, headers=None):
    """The body of an answer; None: the server is not there or says that there is nothing."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}),
                                    timeout=10) as answer:
            return answer.read()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def get_json(url):
    body = get(url)
    return None if body is None else json.loads(body)


def start_server(kind, make_folder, *arguments):
    """Again if it ends at once: somebody may have taken one of its ports since they were chosen."""
    for attempt in range(3):
        try:
            return kind(make_folder(kind.__name__), *arguments)
        except ServerEnded:
            if attempt == 2:
                raise


class ServerEnded(Exception):
    pass


class Server:
    """A process that listens on ports of this host only."""

    def __init__(self, folder, command, ready):
        self.folder = folder
        self.log = folder / "log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder,
                                            stdin=subprocess.DEVNULL)
        end = time.monotonic() + READY_S
        while not ready():
            if self.process.poll() is not None:
                raise ServerEnded(self.log.read_text()[-2000:])
            if time.monotonic() > end:
                self.close()
                raise AssertionError(f"not ready after {READY_S} s: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def close(self):
        # Nothing that it keeps is needed, and Jaeger takes seconds to end by itself.
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Jaeger(Server):
    def __init__(self, folder):
        flags = ["collector.otlp.http.host-port", "query.http-server.host-port",
                 "admin.http.host-port", "collector.otlp.grpc.host-port",
                 "query.grpc-server.host-port", "collector.http-server.host-port",
                 "collector.grpc-server.host-port"]
        ports = free_ports(len(flags))
        self.url, self.query = (f"http://127.0.0.1:{port}" for port in ports[:2])
        self.grpc = f"grpc://127.0.0.1:{ports[3]}"
        super().__init__(folder, [server_file("jaeger")] + [
            f"--{flag}=127.0.0.1:{port}" for flag, port in zip(flags, ports)],
            lambda: get(f"http://127.0.0.1:{ports[2]}") and get(self.query + "/api/services"))

    def trace(self, trace_id):
        """{span id: span with its process} of a trace."""
        answer = get_json(f"{self.query}/api/traces/{trace_id}")
        if not answer or not answer["data"]:
            return {}
        [trace] = answer["data"]
        return {span["spanID"]: {**span, "process": trace["processes"][span["processID"]]}
                for span in trace["spans"]}


class Zipkin(Server):
    def __init__(self, folder):
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        super().__init__(folder, [
            find_tool("java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar",
            server_file("zipkin.jar"), "--armeria.ports[0].ip=127.0.0.1",
            f"--armeria.ports[0].port={port}", "--armeria.ports[0].protocols[0]=http"],
            lambda: get(self.url + "/health"))

    def trace(self, trace_id):
        return {span["id"]: span for span in get_json(f"{self.url}/api/v2/trace/{trace_id}") or []}


class QuietHandler(http.server.BaseHTTPRequestHandler):
    def answer_nothing(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def serving(handler):
    """A server on a free port of this machine, whose requests the handler answers in threads."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Sink:
    """Takes the requests that a collector forwards, as JSON."""

    def __init__(self):
        self.bodies = []
        sink = self

        class Handler(QuietHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.bodies.append(body)
                self.answer_nothing()

        self.server = serving(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def resources(self):
        return [r for body in list(self.bodies) for r in json.loads(body).get("resourceSpans", [])]

    def spans(self):
        return [span for r in self.resources() for scope in r["scopeSpans"]
                for span in scope["spans"]]

    def metrics(self):
        """[(attributes of the resource, metric)]"""
        return [(r["resource"]["attributes"], metric) for body in list(self.bodies)
                for r in json.loads(body).get("resourceMetrics", []) for scope in r["scopeMetrics"]
                for metric in scope["metrics"]]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class OtelCollector(Server):
    """An OpenTelemetry collector that forwards everything to a Sink."""

    def __init__(self, folder, sink):
        http_port, grpc_port = free_ports(2)
        self.url = f"http://127.0.0.1:{http_port}"
        self.grpc = f"grpc://127.0.0.1:{grpc_port}"
        config = folder / "config.yaml"
        config.write_text(f"""
receivers:
  otlp:
    protocols:
      http: {{endpoint: 127.0.0.1:{http_port}}}
      grpc: {{endpoint: 127.0.0.1:{grpc_port}}}
exporters:
  otlphttp: {{endpoint: "{sink.url}", encoding: json, compression: none}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlphttp]}}
    metrics: {{receivers: [otlp], exporters: [otlphttp]}}
""")
        super().__init__(folder, [server_file("otelcol"), "--config", config], self.listens(http_port))

    @staticmethod
    def listens(port):
        def look():
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            except OSError:
                return False
        return look


class MetricsPage:
    """Serves a file to whoever scrapes it."""

    def __init__(self, path):
        page = self
        page.scrapes = 0

        class Handler(QuietHandler):
            def do_GET(self):
                page.scrapes += 1
                body = path.read_bytes()
                self.send_response(200)
                self.send_header("Content-Type",
                                 "application/openmetrics-text; version=1.0.0; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = serving(Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Prometheus(Server):
    """Debian's prometheus, which scrapes a MetricsPage each second, if there is one, and takes remote write."""

    def __init__(self, folder, page=None):
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s, scrape_timeout: 1s}\n" + (
            "scrape_configs:\n- job_name: waffle\n  static_configs:\n"
            f"  - targets: ['{page.address}']\n" if page else ""))
        super().__init__(folder, [
            find_tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            "--enable-feature=exemplar-storage,native-histograms"],
            lambda: get(self.url + "/-/ready"))

    def ask(self, api, **parameters):
        answer = get_json(f"{self.url}/api/v1/{api}?{urllib.parse.urlencode(parameters)}")
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, text):
        """{labels without the target's: value}"""
        return {tuple(sorted((k, v) for k, v in r["metric"].items()
                             if k not in ("__name__", "instance", "job"))): float(r["value"][1])
                for r in self.ask("query", query=text)["result"]}


class Crowd:
    """Answers the first four requests when all of them have come, and counts the spans of all requests."""

    def __init__(self):
        self.together, self.lock = threading.Barrier(4), threading.Lock()
        self.spans, self.served = 0, 0
        crowd = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802
                message = trace_service_pb2.ExportTraceServiceRequest()
                message.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                with crowd.lock:
                    crowd.served += 1
                    number = crowd.served
                    crowd.spans += sum(len(scope.spans) for resource in message.resource_spans
                                       for scope in resource.scope_spans)
                if number <= 4:
                    crowd.together.wait(60)
                self.answer_nothing()

        self.server = serving(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

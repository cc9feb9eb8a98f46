# SPDX-License-Identifier: Apache-2.0
"""Where records go while the program runs: chains of processors (docs/processors.md), and files."""

import functools
import http.server
import os
import shutil
import tempfile
import threading
import weakref

from . import _follow, _trace


def _quoted(value):
    """A value in the text of a chain."""
    text = os.fspath(value) if hasattr(value, "__fspath__") else str(value)
    for quote in "\"'":
        if quote not in text:
            return quote + text + quote
    raise ValueError(f"waffle: {text!r} has both kinds of quotes")


def _options(given):
    """`give_up=60` becomes `give-up=60s`."""
    seconds = ("timeout", "give_up")
    text = ""
    for name, value in given.items():
        if value is None:
            continue
        if name in seconds and isinstance(value, (int, float)):
            value = f"{int(value * 1000)}ms"
        text += f",{name.replace('_', '-')}={_quoted(value)}"
    return text


class Exporter:
    """What set_exporter() takes: a chain of processors, or a file."""

    path = None
    chain = None
    service_name = None
    # Whether child processes that multiprocessing spawns get the same exporter.
    is_of_children = False

    def start(self):
        """Before the recording begins."""

    def stop(self):
        """After it has ended."""


class OTLPExporter(Exporter):
    """Sends spans to a collector of OpenTelemetry, or whatever understands OTLP over HTTP.

    `options` are those of the processor export(): headers, ca, timeout, queue, give_up, spool, spool_limit,
    encoding. `sample` is a share such as "1/10", `metrics` the text of metrics() in front of it.
    """

    kind = "otlp"
    is_of_children = True

    def __init__(self, endpoint="http://localhost:4318", *, service_name=None, sample=None, metrics=None, **options):
        parts = []
        if metrics is not None:
            parts.append(f"metrics({metrics})")
        if sample is not None:
            parts.append(f"sample({sample})")
        parts.append(f"export({self.kind}={_quoted(endpoint)}{_options(options)})")
        self.chain = ",".join(parts)
        self.service_name = service_name


class JaegerExporter(OTLPExporter):
    """Sends spans to Jaeger, which takes OTLP."""


class ZipkinExporter(OTLPExporter):
    """Sends spans to Zipkin."""

    kind = "zipkin"

    def __init__(self, endpoint="http://localhost:9411", **options):
        super().__init__(endpoint, **options)


class LogExporter(Exporter):
    """Writes a line of JSON for each record, to a file or to standard error."""

    is_of_children = True

    def __init__(self, path=None):
        self.chain = f"log(json{'' if path is None else ',file=' + _quoted(path)})"


class FileExporter(Exporter):
    """Writes a .waffle file, which all commands of waffle-bpf read."""

    extension = ".waffle"

    def __init__(self, path):
        self.path = os.fspath(path)
        self.is_of_children = "%p" in self.path
        if not self.path.endswith(self.extension):
            raise ValueError(f"waffle: the name of the file must end with {self.extension}: {self.path}")


class PerfettoExporter(FileExporter):
    """Writes a file for https://ui.perfetto.dev."""

    extension = ".pftrace"


class ChromeExporter(FileExporter):
    """Writes a Chrome trace, which Perfetto and chrome://tracing read."""

    extension = ".json"


_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"


def _weight(accept, kind):
    """How much a scraper wants a type of content, as its Accept header says: 0 to 1."""
    for choice in accept.split(","):
        name, *parameters = (part.strip() for part in choice.split(";"))
        if name.lower() == kind:
            weights = [one[2:] for one in parameters if one.startswith("q=")]
            try:
                return float(weights[0]) if weights else 1.0
            except ValueError:
                return 0.0
    return 0.0


class _Metrics(http.server.BaseHTTPRequestHandler):
    def __init__(self, text, protobuf, *args):
        self._text = text
        self._protobuf = protobuf
        super().__init__(*args)

    def do_GET(self):
        # Prometheus asks for protobuf first if it takes native histograms, which only protobuf has.
        accept = self.headers.get("Accept", "")
        weight = _weight(accept, "application/vnd.google.protobuf")
        is_protobuf = weight > 0 and weight >= _weight(accept, "application/openmetrics-text")
        try:
            with open(self._protobuf if is_protobuf else self._text, "rb") as file:
                body = file.read()
        except OSError:  # nothing is written yet
            body = b"" if is_protobuf else b"# EOF\n"
        self.send_response(200)
        self.send_header("Content-Type", _PROTOBUF if is_protobuf else _OPENMETRICS)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def _remove(folder, process):
    if process == os.getpid():  # not in a child of fork()
        shutil.rmtree(folder, ignore_errors=True)


class PrometheusExporter(Exporter):
    """Metrics of all records, in a file or to be scraped from a port.

    `metrics` is the text of the processor, such as "histogram=dur,by=kv.status". With `port` (0: any that is
    free, which `port` then is) a thread answers GET requests on `address`; the metrics are those of this process,
    as of at most a second ago. Prometheus gets native histograms if it asks for them.
    """

    def __init__(self, port=None, *, path=None, address="localhost", metrics="histogram=dur"):
        if (port is None) == (path is None):
            raise ValueError("waffle: PrometheusExporter takes either a port or a path")
        self.port = port
        self._server = None
        self._address = address
        self._process = os.getpid()
        protobuf = ""
        if path is None:
            folder = tempfile.mkdtemp(prefix="waffle-metrics-")
            weakref.finalize(self, _remove, folder, self._process)
            path = os.path.join(folder, "metrics-%p.prom")
            protobuf = f",protobuf={_quoted(os.path.join(folder, 'metrics-%p.pb'))}"
            self._files = [os.path.join(folder, f"metrics-{self._process}.{end}") for end in ("prom", "pb")]
        else:
            self.is_of_children = "%p" in os.fspath(path)
        every = "" if "every=" in metrics else ",every=1s"
        self.chain = f"metrics({metrics},file={_quoted(path)}{protobuf}{every})"

    def start(self):
        if self.port is None:
            return
        handler = functools.partial(_Metrics, *self._files)
        self._server = http.server.ThreadingHTTPServer((self._address, self.port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        if self._server:
            if self._process == os.getpid():  # a child of fork() has no thread that could end
                self._server.shutdown()
            self._server.server_close()
            self._server = None


_active = ()


def _recording(exporters, options):
    """Arguments of trace_start()."""
    path = next((exporter.path for exporter in exporters if exporter.path), None)
    chains = [exporter.chain for exporter in exporters if exporter.chain]
    return {"path": path, "process": ",".join(chains) or None, **options}


def set_exporter(*exporters, filter=None, **options):
    """Sends what the program records to exporters, of which one may be a file. Those that were set before end
    first; without any, that is all. `filter` and `options` are those of trace_start().

        waffle.set_exporter(waffle.JaegerExporter(service_name="trainer"))

    A service name is also that of the processes that this one starts (OTEL_SERVICE_NAME).
    """
    global _active
    for exporter in exporters:
        if not isinstance(exporter, Exporter):
            raise TypeError(f"waffle: set_exporter() takes exporters, such as waffle.JaegerExporter(), not {exporter!r}")
    paths = [exporter.path for exporter in exporters if exporter.path]
    if len(paths) > 1:
        raise ValueError("waffle: only one exporter may write a capture, but these do: " + ", ".join(paths))
    options["filter"] = filter
    if _active:
        try:
            _trace.trace_stop()
        except OSError:
            pass
        for exporter in _active:
            exporter.stop()
        _active = ()
        _follow.recording = None
    if not exporters:
        return
    try:
        for exporter in exporters:
            if exporter.service_name:
                os.environ["OTEL_SERVICE_NAME"] = exporter.service_name
            exporter.start()
        _trace.trace_start(**_recording(exporters, options))
    except BaseException:
        for exporter in exporters:
            exporter.stop()
        raise
    _active = exporters
    of_children = [exporter for exporter in exporters if exporter.is_of_children]
    _follow.recording = _recording(of_children, options) if of_children else None

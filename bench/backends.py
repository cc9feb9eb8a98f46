# SPDX-License-Identifier: Apache-2.0
"""Spans on their way to others: to a collector, into SQLite. And C++ beside OpenTelemetry's SDK."""

import contextlib
import os
import re
import socket
import sqlite3
import statistics
import subprocess
import time

from lib import BUILD, SCRATCH, WAFFLE, Row, Skipped, program, running, urgent, wait_until

SPANS_A_SECOND = 200_000
ROWS_A_SECOND = 300_000
RATIO = 10

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "{listens}"}}}}}}}}
exporters: {{otlphttp: {{endpoint: "{sink}", compression: none}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlphttp]}}}}
"""


def capture(scale):
    """A file with a million spans: the same records as those of the group `large`."""
    path = SCRATCH.path("spans.waffle")
    if not os.path.exists(path):
        subprocess.run([program("store_bench"), str(scale.records * 3 // 10), path], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def cpu_time(usage):
    return usage.ru_utime + usage.ru_stime


def finished(argv):
    """Seconds and resources of a process, and what it said."""
    start = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(text)
    return time.monotonic() - start, usage, text


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def sink():
    """A server that only answers, as its URL."""
    with subprocess.Popen([program("sink")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


@contextlib.contextmanager
def collector(where):
    """A collector of OpenTelemetry that sends everything on to an URL, as its own URL."""
    server = BUILD / "servers" / "otelcol"
    if not server.exists():
        raise Skipped("no collector; run make setup-check")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, quiet = SCRATCH.path("collector.yaml"), {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(listens=f"127.0.0.1:{port}", sink=where))
    with running([server, "--config", config], **quiet):
        wait_until(lambda: listens(port), "the collector", 60)
        yield f"http://127.0.0.1:{port}"


def sent(scale, path, url):
    """Spans a second, and the CPU time of a run."""
    rates, times = [], []
    for _ in range(min(scale.rounds, 3)):
        seconds, usage, text = finished(urgent([WAFFLE, "export", "--to", url, path]))
        count = int(re.search(r"([\d,]+) spans and events were sent", text).group(1).replace(",", ""))
        rates.append(count / seconds)
        times.append(cpu_time(usage))
    return statistics.median(rates), f"{count:,} spans, {statistics.median(times):.1f} s of CPU time"


def sending(scale):
    path = capture(scale)
    with sink() as where:
        rate, note = sent(scale, path, where)
        yield Row("spans sent a second, to a server that only answers", rate, "", note=note)
        with collector(where) as url:
            rate, note = sent(scale, path, url)
            yield Row("spans sent a second, to a collector", rate, "", SPANS_A_SECOND, True,
                      note=f"{note}; the collector sends them on")


def database(scale):
    """The exporter's rows: those of all tables."""
    path, out, rates, times = capture(scale), SCRATCH.path("spans.sqlite"), [], []
    for _ in range(min(scale.rounds, 3)):
        seconds, usage, _ = finished(urgent([WAFFLE, "export", "--format", "sqlite", "-o", out, path]))
        db = sqlite3.connect(out)
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = sum(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name, in tables)
        [spans] = db.execute("SELECT count(*) FROM span").fetchone()
        db.close()
        rates.append(rows / seconds)
        times.append(cpu_time(usage))
        os.unlink(out)
    yield Row("SQLite export, rows a second", statistics.median(rates), "", ROWS_A_SECOND, True,
              note=f"{rows:,} rows with {spans:,} spans, {statistics.median(times):.1f} s of CPU time")


def cpp(scale):
    """A span with two integers in C++, and OpenTelemetry's."""
    if not os.path.exists(program("cpp_sites")):
        raise Skipped("no opentelemetry-cpp-dev")
    for state, variables in (("dormant", {}), ("recorded", {"WAFFLE_TRACE": str(SCRATCH.path("cpp.waffle"))})):
        found = []
        for _ in range(scale.few):
            text = subprocess.run(urgent([program("cpp_sites"), state, "0", str(10 * scale.rounds)]), check=True,
                                  text=True, stdout=subprocess.PIPE, env={**os.environ, **variables}).stdout
            found.append({name: float(ns) for name, ns in map(str.split, text.splitlines())})
        ns = {name: statistics.median(costs[name] for costs in found) for name in found[0]}
        # A dormant site takes less than can be measured beside an empty loop.
        ours = max(ns["waffle"], 0.1)
        yield Row(f"C++, {state} span", ns["waffle"], "ns", 0.5 if state == "dormant" else None,
                  note="two integers, beyond an empty loop")
        yield Row("… OpenTelemetry / waffle", ns["sdk"] / ours, "x", RATIO, at_least=True,
                  note=f"OpenTelemetry: {ns['sdk']:.0f} ns, its API without an SDK {ns['api']:.0f} ns")

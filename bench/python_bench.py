# SPDX-License-Identifier: Apache-2.0
"""The Python package, as its wheel installs it, beside OpenTelemetry's SDK in the same process."""

import json
import os
import statistics
import subprocess

from lib import BUILD, ROOT, SCRATCH, Row, Skipped

# ns; the targets. None: there to compare with.
TARGETS = {
    "dormant": {"span": 60, "decorated call": 80},
    "recorded": {"span": 400, "decorated call": None},
}
RATIO = 10


def run(rounds, **variables):
    python, wheels = BUILD / "venv" / "bin" / "python", list((BUILD / "python" / "wheel").glob("*.whl"))
    if not wheels or not python.exists():
        raise Skipped("run make setup-check python")
    packages = SCRATCH.path("python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--upgrade", "--target", packages,
                    *wheels], check=True)
    out = subprocess.run([python, ROOT / "bench" / "python_sites.py", str(rounds)], check=True, text=True,
                         stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(packages), **variables}).stdout
    found = json.loads(out)
    assert found["armed"] == bool(variables)
    return found["costs"]


def python(scale):
    for state, variables in (
            ("dormant", {}),
            ("recorded", {"WAFFLE_TRACE": str(SCRATCH.path("python.waffle")), "WAFFLE_RING_SIZE": "64MiB"})):
        costs = run(3 * scale.rounds, **variables)
        for what, target in TARGETS[state].items():
            value = statistics.median(costs[what])
            note = ""
            if what == "decorated call":
                note = f"a plain call: {statistics.median(costs['plain call']):.0f} ns"
            yield Row(f"Python, {state} {what}", value, "ns", target, note=note)
            other = costs[f"OpenTelemetry: {what}"]
            ratio = statistics.median(b / a for a, b in zip(costs[what], other))
            yield Row("… OpenTelemetry / waffle", ratio, "x", RATIO, at_least=True,
                      note=f"OpenTelemetry: {statistics.median(other):.0f} ns")

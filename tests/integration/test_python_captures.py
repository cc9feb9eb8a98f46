# SPDX-License-Identifier: Apache-2.0
"""waffle.read() and waffle.why(): what they give is what the commands print, and Arrow's own library reads
the tables."""

import json
import sys

from test_python import Script, python, script  # noqa: F401  (fixtures)

RECORDED = """
with waffle.span("outer", n=1, text="ä") as outer:
    cause = waffle.event("cause")
    with waffle.span("inner", caused_by=cause): pass
waffle.event("effect", caused_by=[outer, cause])
waffle.log(1, "warned")
for value in (1, 2.5, float("nan")): waffle.counter("depth", value)
"""


def reading(script, path, text, **variables):
    """Runs a program that reads the capture, with nanoarrow to be imported."""
    done = script.alone(f"path = {str(path)!r}\n{text}", WAFFLE_BPF=str(script.waffle.program),
                        PYTHONPATH=f"{script.packages}:{':'.join(p for p in sys.path if 'site-packages' in p)}",
                        **variables)
    assert not done.stderr
    return done.stdout


def test_tables_have_the_rows_of_the_export(script):
    capture = script.record(RECORDED)
    found = json.loads(reading(script, capture.path, """
import json
capture = waffle.read(path)
tables = {name: list(getattr(capture, name).rows()) for name in ("spans", "events", "counters", "waits", "causes")}
print(json.dumps(tables))
assert capture.spans["name"] == [row["name"] for row in tables["spans"]] and len(capture.spans) == 2
assert len(waffle.read(path, filter='name == "inner"').spans) == 1
assert repr(capture).startswith("<waffle.Capture of 2 spans, "), repr(capture)
"""))
    spans, events = capture.rows("span"), capture.rows("event")
    assert [(row["name"], row["id"], row["start_ns"], row["end_ns"], row["tid"]) for row in found["spans"]] == [
        (row["name"], int(row["id"], 16), row["start_ns"], row["end_ns"], row["tid"]) for row in spans]
    assert found["spans"][0]["parent"] is None and found["spans"][1]["parent"] == found["spans"][0]["id"]
    assert json.loads(found["spans"][0]["args"]) == {"n": 1, "text": "ä"} and found["spans"][0]["running_ns"] is None
    assert [(row["name"], row["severity"]) for row in found["events"]] == [
        (row["name"], row.get("severity")) for row in events]
    values = [row["value"] for row in found["counters"]]
    assert values[:2] == [1, 2.5] and values[2] != values[2]
    outer, inner = (row["id"] for row in found["spans"])
    cause, effect = (row["id"] for row in found["events"][:2])
    assert sorted((row["effect"], row["cause"], row["cause_kind"]) for row in found["causes"]) == sorted([
        (inner, cause, "event"), (effect, outer, "span"), (effect, cause, "event")])
    assert found["waits"] == []


def test_arrow_reads_the_tables_without_a_copy_of_ours(script):
    capture = script.record(RECORDED)
    assert reading(script, capture.path, """
import gc, nanoarrow
table = waffle.read(path)
for one in (table.spans, table.events, table.counters, table.waits, table.causes):
    array = nanoarrow.Array(one)
    assert len(array) == len(one), (len(array), len(one))
    names = [field.name for field in array.schema.fields]
    assert names == one.columns
    rows = [dict(zip(names, row)) for row in array.to_pylist()] if len(array) and isinstance(array.to_pylist()[0], tuple) \\
        else array.to_pylist()
    assert repr(rows) == repr(list(one.rows())), (rows[:1], list(one.rows())[:1])
array = nanoarrow.Array(table.spans)
unread = table.spans.__arrow_c_stream__()
del table, one, unread; gc.collect()
print(array.to_pylist()[0]["name"])
""") == "outer\n"


def test_waits_and_explanations_are_those_of_the_tracer(waffle, script):
    program = script.write("""
        import time
        for _ in range(10):  # names are recorded some ms after the first of them is made
            with waffle.span("slow"):
                time.sleep(0.05)
        """)
    capture = waffle.run(script.python, program, env=script.environment())
    why = json.loads(waffle.ok("why", "--json", "--span", "slow", capture.path).stdout)
    out = reading(script, capture.path, """
capture = waffle.read(path)
slow = [row for row in capture.spans.rows() if row["name"] == "slow"][-1]
waits = [row for row in capture.waits.rows() if row["tid"] == slow["tid"] and row["state"] == "blocked"
         and slow["start_ns"] <= row["start_ns"] <= slow["end_ns"]]
print(slow["blocked_ns"] > 45e6, max(row["end_ns"] - row["start_ns"] for row in waits) > 45e6)
why = waffle.why(path, span="slow")
print(bool(why.instances), why.records.produced)
for wrong in (lambda: waffle.why(path, span="no such span"), lambda: waffle.read("/nowhere.waffle")):
    try: wrong()
    except waffle.CommandError as error: print("waffle-bpf: " in str(error))
""")
    assert out == f"True True\nTrue {why['records']['produced']}\nTrue\nTrue\n"

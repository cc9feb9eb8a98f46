#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads `waffle-bpf export --format ndjson` of the demo and tells where its slowest step waited."""

import json
import sys


def milliseconds(ns):
    return f"{ns / 1e6:.1f} ms"


def share(span):
    whole = max(span["end_ns"] - span["start_ns"], 1)
    return ", ".join(f"{state} {milliseconds(span[state + '_ns'])} ({span[state + '_ns'] / whole:.0%})"
                     for state in ("running", "runnable", "blocked"))


def main():
    spans = [record for record in map(json.loads, sys.stdin)
             if record["kind"] == "span" and "end_ns" in record and "blocked_ns" in record]
    steps = [span for span in spans if span["name"] == "step"]
    if not steps:
        sys.exit("demo: the trace has no step")
    slow = max(steps, key=lambda span: span["end_ns"] - span["start_ns"])
    print(f"step {slow['args']['step']} took {milliseconds(slow['end_ns'] - slow['start_ns'])}:"
          f" {share(slow)}")
    inside = [span for span in spans if span.get("parent") == slow["id"]]
    for span in sorted(inside, key=lambda span: span["start_ns"]):
        print(f"  {span['name']:<12} {milliseconds(span['end_ns'] - span['start_ns']):>9}: {share(span)}")
    beside = [span for span in spans if span["tid"] != slow["tid"]
              and span["name"] == "load shard"
              and span["start_ns"] < slow["end_ns"] and span["end_ns"] > slow["start_ns"]]
    for span in sorted(beside, key=lambda span: span["start_ns"] - span["end_ns"])[:1]:
        print(f"meanwhile {span['comm']} was in '{span['name']}' for"
              f" {milliseconds(span['end_ns'] - span['start_ns'])}: {share(span)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Compares the calls of CUDA and NCCL that waffle-bpf recorded with the log of the simulated program
(docs/simulation.md): each call once, in order, on its thread, with its arguments."""

import collections
import json

# They are there so that kernels have names; the programs don't log them.
NAMING = {
    "__cudaRegisterFunction",
    "__cudaGetKernel",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuModuleGetFunction",
}
NOT_WATCHED = {"cudaSetDevice", "cuModuleLoadData"}
ALIASES = {"__cudaLaunchKernel": "cudaLaunchKernel", "pncclAllReduce": "ncclAllReduce"}

COPY = ["HtoH", "HtoD", "DtoH", "DtoD", "default"]
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
TYPES += ["bfloat16", "f8e4m3", "f8e5m2"]
OPS = ["sum", "prod", "max", "min", "avg"]
WORDS = {"kind": COPY, "datatype": TYPES, "op": OPS}


def read_log(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def is_of_nccl(row):
    """A kernel that NCCL launches, which the program knows nothing of."""
    return str(row["args"].get("kernel", "")).startswith("ncclDevKernel_")


def of_calls(rows):
    return [
        row
        for row in rows
        if row.get("category") in ("cuda", "nccl")
        and row["name"] not in NAMING
        and not is_of_nccl(row)
    ]


def by_thread(rows, begin):
    threads = collections.defaultdict(list)
    for row in sorted(rows, key=begin):
        threads[row["tid"]].append(row)
    return threads


def number(value):
    """Pointers are shown in hexadecimal."""
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else value


def began(row):
    return row["start_ns"]


def check_call(row, logged):
    """One call as waffle-bpf has it and as the program has logged it."""
    assert row["name"] == ALIASES.get(logged["call"], logged["call"])
    assert logged["begin"] <= began(row) <= logged["end"]
    if row["kind"] == "span":
        assert row["end_ns"] <= logged["end"]
        assert row["args"].get("result", 0) == logged["result"]
    for key in set(logged) - {"call", "tid", "begin", "end", "result"}:
        expected = WORDS[key][logged[key]] if key in WORDS else logged[key]
        assert number(row["args"][key]) == expected, (row["name"], key)


def check_all(rows, logs):
    """Every call of the log once, in order, and no other."""
    ours = by_thread(of_calls(rows), began)
    logged = [row for row in logs if row["call"] not in NOT_WATCHED | NAMING]
    theirs = by_thread(logged, lambda row: row["begin"])
    assert set(ours) == set(theirs)
    for tid, calls in theirs.items():
        names = [ALIASES.get(call["call"], call["call"]) for call in calls]
        assert collections.Counter(r["name"] for r in ours[tid]) == collections.Counter(names)
        for row, call in zip(ours[tid], calls):
            check_call(row, call)


def check_sequences(rows, logs):
    """Collectives of a communicator are numbered from its creation on, on each rank."""
    seen = collections.Counter()
    for row in sorted((r for r in rows if "seq" in r.get("args", {})), key=began):
        args = row["args"]
        kind = row["name"] in ("ncclSend", "ncclRecv")
        key = (row["pid"], args["comm"], args["rank"], kind)
        assert args["seq"] == seen[key], row
        seen[key] += 1
    assert sum(seen.values()) == sum("datatype" in row for row in logs)

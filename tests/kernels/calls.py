# SPDX-License-Identifier: Apache-2.0
"""Calls that the guest captured, judged against what their programs said:

    scripts()           {name: shell script}: what the guest runs, for out/NAME.waffle
    verdicts(folder)    {name: reason it failed, or ""}; the folder is `out` of the guest

The simulated CUDA and NCCL with stacks; functions whose returns are seen by `ret` instructions and by
return probes, nested and in pairs, with stacks; filters on them; tracepoints.
"""

import json
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

import sim_log  # noqa: E402

FUNCTIONS = (
    "uprobe:libcalled:called_add(int a, long b) -> long ret",
    "uprobe:libcalled:called_text(str text, u16 n) -> u64 ret nounwind",
    "uprobe:libcalled:called_nest(int depth) -> int ret",
    "uprobe:libcalled:called_submit(long id, str name)..called_complete(int status, long id) "
    "key=id as span job",
)
POINTS = (
    "tracepoint:task:task_rename(oldcomm, newcomm)",
    "tracepoint:sched:sched_process_exit(prio)",
)
INPUT = "add 12\\ntext hello\\nnest 3\\njobs 6\\n"
# What is mapped of a program is known some time after its begin, and its stacks from then on.
CALLER = f"{{ sleep 2; printf '{INPUT}'; }} | exec caller"
RENAMING = 'for name in alpha beta gamma; do printf %s "$name" >/proc/self/comm; done; (exit 0); :'
FILTER = "kv.a >= 3 && kv.ret < 6000000048 || dur < 1h && kv.depth == 1 || kv.status == 2"
POINT_FILTER = 'kv.newcomm ~ "*eta" || kv.prio > 0 && comm == "gamma"'


def run(name, options, command):
    words = ["waffle-bpf", "run", "--no-report", "-o", f"out/{name}.waffle", *options, "--", *command]
    return shlex.join(words) + "\n"


def probes(specs):
    return [word for spec in specs for word in ("--probe", spec)]


def scripts():
    functions, points = probes(FUNCTIONS), probes(POINTS)
    shell, renaming = ["sh", "-c", CALLER], ["sh", "-c", RENAMING]
    return {
        "cuda": run("cuda", ["--stacks", "cuda,nccl"], ["calls", "--log", "out/cuda.log"]),
        "functions": run("functions", [*functions, "--stacks", "probes"], shell),
        "call-filter": run("call-filter", [*functions, "--filter", FILTER], shell),
        "tracepoints": run("tracepoints", points, renaming),
        "point-filter": run("point-filter", [*points, "--filter", POINT_FILTER], renaming),
    }


def rows_of(folder, name):
    with open(folder / f"{name}.ndjson", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    [summary] = [row for row in rows if row["kind"] == "summary"]
    assert not summary["records"]["lost"], summary
    return sorted(
        (row for row in rows if row["kind"] in ("span", "event")), key=lambda row: row["start_ns"]
    )


def said(folder, name):
    """Rows of `caller`: its lines "called_add a=1 b=2"."""
    lines = (folder / f"{name}.said").read_text(encoding="utf-8").splitlines()
    return [
        {"name": words[0], **dict(word.split("=", 1) for word in words[1:])}
        for words in map(str.split, lines)
        if words and all("=" in word for word in words[1:])
    ]


def same(found, expected):
    assert found == expected, f"{found} but {expected}"


def callers(row):
    return [frame.get("function") for frame in row["user_stack"]]


def check_cuda(folder):
    rows, log = rows_of(folder, "cuda"), sim_log.read_log(folder / "cuda.log")
    assert len(log) > 100
    sim_log.check_all(rows, log)
    sim_log.check_sequences(rows, log)
    launches = [row for row in rows if row["name"] == "cudaLaunchKernel"]
    names = callers(launches[-1])
    assert names[0] == "cudaLaunchKernel" and "main" in names, names


def check_functions(folder):
    rows, told = rows_of(folder, "functions"), said(folder, "functions")

    def both(name, *keys):
        found = [[str(r["args"][key]) for key in keys] for r in rows if r["name"] == name]
        same(found, [[r[key] for key in keys] for r in told if r["name"] == name])
        return len(found)

    same(both("called_add", "a", "b", "ret"), 12)
    same(both("called_text", "n", "ret"), 1)
    nested = [row for row in rows if row["name"] == "called_nest"]
    same([row["args"] for row in nested], [{"depth": n, "ret": n} for n in (3, 2, 1, 0)])
    same([row["parent"] for row in nested[1:]], [row["id"] for row in nested[:-1]])
    for row in nested:
        same(callers(row).count("called_nest"), 4 - row["args"]["depth"])
    jobs = [row for row in rows if row["name"] == "job"]
    same([[r["args"]["id"], r["args"]["status"]] for r in jobs], [[i, i % 3] for i in range(6)])
    assert all(row["tid"] != row["end_tid"] for row in jobs)


def check_call_filter(folder):
    args = [row["args"] for row in rows_of(folder, "call-filter")]
    same([a["a"] for a in args if "a" in a], [3, 4, 5])
    same([a["depth"] for a in args if "depth" in a], [1])
    same([a["id"] for a in args if "id" in a], [2, 5])
    same(len(args), 6)


def check_tracepoints(folder):
    rows = rows_of(folder, "tracepoints")
    names = [r["args"]["newcomm"] for r in rows if r["name"] == "task_rename"]
    same([name for name in names if name in ("alpha", "beta", "gamma")], ["alpha", "beta", "gamma"])
    same(len([row for row in rows if row["name"] == "sched_process_exit"]), 2)


def check_point_filter(folder):
    rows = rows_of(folder, "point-filter")
    same([r["args"]["newcomm"] for r in rows if r["name"] == "task_rename"], ["beta"])
    same(len(rows), 3)  # and the two exits


CHECKS = {
    "cuda": check_cuda,
    "functions": check_functions,
    "call-filter": check_call_filter,
    "tracepoints": check_tracepoints,
    "point-filter": check_point_filter,
}


def attempt(check, folder):
    """Its reason; a check that could not even find what it looks at has failed, too."""
    try:
        check(folder)
    except (AssertionError, LookupError, ValueError, TypeError, OSError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:500]
    return ""


def verdicts(folder):
    return {name: attempt(check, folder) for name, check in CHECKS.items()}

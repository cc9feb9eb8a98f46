#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records captures for tests/golden: record.py [NAME…] records those, or all; --list names them.

It needs root, a disk below /var/tmp, and what `make` builds. The captures and the programs appear in
a new folder of /var/tmp, which the last line names; README.md says what to do with them.

A capture holds paths, a host name and process names. Hence all is done in a mount namespace where
the repository is /mnt/src and programs and data are in /mnt/bin and /mnt/data; the host is "golden".
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cases

PLACE = pathlib.Path("/mnt")
SOURCE, BIN, DATA = PLACE / "src", PLACE / "bin", PLACE / "data"
CAPTURES = DATA / "captures"

if os.environ.get("WAFFLE_GOLDEN_INSIDE"):
    sys.path[:0] = [str(SOURCE / "tests" / "integration"), str(SOURCE / "tests" / "zoo")]
    import gpu_schedule as schedules
    import scenarios
    import tracer
    import zoo

PROGRAMS = SOURCE / "tests" / "integration" / "programs"
OWN = SOURCE / "tests" / "golden" / "programs"
SIM = SOURCE / "build" / "sim"
WAFFLE = SOURCE / "build" / "waffle-bpf"


# ---- building ----


def changed(path, pattern, text):
    """A copy of a source in /mnt/data, with fewer rounds: the capture is to be small."""
    found, count = re.subn(pattern, text, path.read_text(encoding="utf-8"))
    assert count == 1, f"{path}: {count} times {pattern}"
    copy = DATA / path.name
    copy.write_text(found, encoding="utf-8")
    return copy


def build(source, *flags, name=None):
    """A program in /mnt/bin, as an application would be built."""
    path = OWN / source if (OWN / source).exists() else PROGRAMS / source
    out = BIN / (name or path.stem)
    compiler = ["g++", "-std=c++17"] if path.suffix == ".cpp" else ["gcc", "-std=gnu11"]
    if not out.exists():
        subprocess.run(
            [*compiler, "-O2", "-g", f"-I{SOURCE}/include", f"-I{PROGRAMS}", "-o", out, path, *flags, "-pthread"],
            check=True, cwd=BIN)
    return out


# ---- ways to record ----


def run(name, *command, options=(), stdin=None, env=None, code=0):
    """`waffle-bpf run` of a command."""
    done = subprocess.run(
        [WAFFLE, "run", "-q", "--no-report", "-o", CAPTURES / f"{name}.waffle", *options, "--",
         *[str(word) for word in command]],
        input=stdin, text=True, cwd=DATA, env={**os.environ, **(env or {})},
        stdout=subprocess.DEVNULL, timeout=120, check=False)
    assert done.returncode == code, f"{name}: exit status {done.returncode}"


@contextlib.contextmanager
def attached(name, pids, options=(), armed=None, calls=()):
    """`waffle-bpf attach`, from when all is armed."""
    waffle = tracer.Waffle(WAFFLE, DATA)
    pids = [f"--pid={pid}" for pid in pids]
    made = waffle.attach(*pids, "-q", "--no-report", *options, path=CAPTURES / f"{name}.waffle")
    try:
        for pid in pids:
            pid = int(pid.partition("=")[2])
            if armed:
                made.wait_armed(pid, armed)
            for library in calls:
                made.wait_calls(waffle, pid, library)
        tracer.wait_until(made.capture.path.exists, "the capture")
        yield made
    finally:
        made.kill()


def attach(name, command, lines=("go",), options=(), armed=None, pause=0.0, stop=False, kill=False):
    """A program that prints "ready". It reads lines from its input once waffle-bpf is attached."""
    program = tracer.Program(command, cwd=DATA)
    program.until("ready")
    with attached(name, [program.pid], options, armed) as made:
        time.sleep(pause)
        for line in lines:
            program.say(line)
        if kill:
            time.sleep(1.5)
            made.process.kill()
            program.kill()
            return
        if not stop:
            program.finish()
            made.wait()
            return
        time.sleep(0.3)
        made.stop()
    program.kill()


def scenario(name, suffix="", options=()):
    """A program of tests/zoo."""
    [row] = [row for row in scenarios.SCENARIOS if row.name == name]
    if zoo.HERE != DATA / "zoo":
        shutil.copytree(zoo.HERE, DATA / "zoo", ignore=shutil.ignore_patterns("__pycache__"))
        (DATA / "integration").symlink_to(SOURCE / "tests" / "integration")
        for path in (DATA / "zoo").iterdir():
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(r"^(#define ROUNDS|ROUNDS =) \d+", r"\1 2", text, flags=re.M),
                            encoding="utf-8")
        zoo.HERE = DATA / "zoo"
    built = zoo.build(row, BIN)
    with zoo.running(row, built, 1) as program:
        with attached(f"zoo-{name}{suffix}", program.pids(), options, armed=built,
                      calls=zoo.libraries(row)) as made:
            program.go()
            program.finish()
            made.wait()


# ---- the captures ----

RECORDS = {}


def record(function):
    RECORDS[function.__name__.replace("_", "-")] = function
    return function


@record
def values(name):
    run(name, build("values.c"), options=["--no-sched"])


@record
def values_stacks(name):
    run(name, build("values.c"), options=["--stacks", "spans"])


@record
def shop(name):
    run(name, build("shop.c"), 8, stdin="go\n", options=["--sources", "spans,sched"])


@record
def shop_no_args(name):
    run(name, build("shop.c"), 4, stdin="go\n", options=["--no-args"])


@record
def shop_redact(name):
    run(name, build("shop.c"), 4, stdin="go\n", options=["--redact", "user,table"])


@record
def shop_filter(name):
    run(name, build("shop.c"), 8, stdin="go\n",
        options=["--filter", 'name == "request" && dur > 300us', "--keep-children"])


@record
def family(name):
    attach(name, [build("family.c"), "wait", "5"], ["fork"], ["--follow", "--machine-wide"])


for way in ("fork", "fork_exec", "vfork", "spawn", "exec", "thread"):
    RECORDS[f"family-run-{way}"] = lambda name, way=way: run(name, build("family.c"), way, "5")


@record
def family_exec(name):
    attach(name, [build("family.c"), "wait", "5"], ["exec"], ["--follow"])


@record
def family_not_followed(name):
    attach(name, [build("family.c"), "wait", "5"], ["fork"])


@record
def outside(name):
    run(name, build("outside.c"))


@record
def outside_not_followed(name):
    run(name, build("outside.c"), options=["--no-follow"])


@record
def outside_sched(name):
    run(name, build("outside.c"), options=["--no-follow", "--sources", "spans,sched"])


@record
def outside_stacks(name):
    run(name, build("outside.c"), options=["--no-follow", "--stacks", "sched"])


@record
def execs(name):
    run(name, build("execs.c"), 3)


@record
def thread_exec(name):
    run(name, build("thread_exec.c"))


@record
def fork_span(name):
    run(name, build("fork_span.c"))


@record
def steps_unfinished(name):
    path = build("steps.c")
    attach(name, [path], ["outer", "event 3", "span 5", "begin", "threads 2"], armed=path,
           stop=True)


@record
def killed(name):
    path = build("steps.c")
    attach(name, [path], [*["span 20"] * 10], armed=path, kill=True)


@record
def lost(name):
    run(name, build("steps.c"), stdin="span 2\nthreads 2\nflood 40\nspan 2\n",
        options=["--ring-size", "64k", "--sources", "spans,sched"])


@record
def lost_switches(name):
    source = changed(PROGRAMS / "lossy.c", r"ROUND_NS 300000000ll", "ROUND_NS 30000000ll")
    run(name, build(source), options=["--sched-size", "4k"])


EXPLAIN = ("sleep lock pipe eventfd timerfd tcp unix read direct fsync minor major copy stop "
           "spin").split()
for mode in EXPLAIN:
    RECORDS[f"explain-{mode}"] = lambda name, mode=mode: run(
        name, build("explain.c", "-fno-omit-frame-pointer"), mode, DATA / f"file-{mode}")

KERNEL_WAITS = {"fsync": [DATA / "synced"], "mmap": [], "vfork": [], "move": ["0", "1"]}
for mode, arguments in KERNEL_WAITS.items():
    RECORDS[f"kernel-{mode}"] = lambda name, mode=mode, arguments=arguments: run(
        name, build("kernel_waits.c"), mode, *arguments)


@record
def kernel_fsync_stacks(name):
    run(name, build("kernel_waits.c"), "fsync", DATA / "synced",
        options=["--stacks", "sched,spans"])


HANDLE = ("uprobe:exe:handle_request(struct request *r, int turn) {r->path, "
          "r->connection->fd as fd, r->connection->port, r->method, r->bytes, r->weight} "
          '-> int result as span "{method} {path}"')
JOBS = ("uprobe:exe:job_begin(long id, char *name)..job_end(struct job *j) {j->status} "
        "key=id..*(long)(j) as span job category work")
CLIMB = "uprobe:exe:climb(int depth) -> int steps"


@record
def probed(name):
    attach(name, [build("probed.c")], ["go"], ["--probe", HANDLE, "--probe", JOBS, "--probe", CLIMB,
           "--stacks", "probes"], pause=3)


USE = ["--no-sched", "--probe", "uprobe:exe:use(code function, int id) as event"]


@record
def reused_handles(name):
    run(name, build("reused.c", "-DNAMED=unused"), "handles",
        options=[*USE, "--probe", "uprobe:exe:get(out code function, str kernel) -> int role name"])


@record
def reused_plugins(name):
    """Libraries that are opened and closed in turn, at the same addresses; stacks through them."""
    plugins = []
    for plugin in ("plugin_a", "plugin_b"):
        file = build("reused.c", f"-DNAMED={plugin}", "-Dmain=other", "-shared", "-fPIC",
                     name=f"{plugin}.so")
        plugins.append(f"{file}:{plugin}")
    run(name, build("reused.c", "-DNAMED=unused"), "plugins", *plugins,
        options=[*USE, "--stacks", "probes", "--probe", "uprobe:libc.so.6:usleep(unsigned us) as event"])


@record
def reused_execs(name):
    """Two programs of one process with different functions at one address."""
    first, second = [build("reused.c", f"-DNAMED={own}", "-no-pie", name=own)
                     for own in ("first", "second")]
    run(name, first, "execs", second, options=[*USE, "--stacks", "probes"])


@record
def tracepoints(name):
    run(name, build("family.c"), "fork", "3",
        options=["--probe", "tracepoint:sched:sched_process_fork", "--probes", "malloc"], code=0)


@record
def python(name):
    library = build("marked.c", "-shared", "-fPIC", name="libmarked.so")
    source = changed(PROGRAMS / "frames.py", r"range\(50\)", "range(1)")
    attach(name, ["/usr/bin/python3", source, library, DATA / "log"],
           options=["--stacks", "spans,sched"], armed=library)


@record
def sim_calls(name):
    run(name, SIM / "calls", options=["--sources", "spans,cuda,nccl,sched,stacks"])


@record
def sim_calls_13_stacks(name):
    run(name, SIM / "calls-13", options=["--stacks", "cuda,nccl"])


@record
def sim_training(name):
    run(name, SIM / "training", "--ranks", 3, "--steps", 3,
        env={"WAFFLE_SIM_SLOW_LOADER": "1:60:1:2"})


@record
def sim_training_filter(name):
    run(name, SIM / "training", "--ranks", 2, "--steps", 6,
        options=["--filter", 'name == "step" && kv.rank == 1', "--keep-children"],
        env={"WAFFLE_SIM_SLOW_LOADER": "1:60:2:2"})


@record
def sim_training_no_sched(name):
    run(name, SIM / "training", "--ranks", 2, "--steps", 4, options=["--no-sched"])


@record
def sim_training_joined(name):
    """From when the communicator is there already, and for some steps."""
    command = [str(SIM / "training"), "--ranks", "2", "--steps", "1000"]
    program = subprocess.Popen(command, cwd=DATA, stdout=subprocess.DEVNULL)
    time.sleep(1.5)
    children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
    pids = [int(pid) for pid in children.read_text(encoding="ascii").split()]
    try:
        with attached(name, pids, ["--duration", "60ms"]) as made:
            made.wait()
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        program.kill()
        program.wait()


@record
def gpu_calls(name):
    """The GPU's own times, as the stand-in of CUPTI has them."""
    run(name, SIM / "calls", options=["--gpu", "--sources", "spans,cuda,nccl,sched"])


@record
def gpu_schedule(name):
    """A random schedule of three devices and two processes, which no program ran."""
    writer = tracer.compile_with_waffle(WAFFLE, "text_capture.c", DATA / "text_capture")
    schedules.Schedule(5).write(writer, CAPTURES / f"{name}.waffle")


NUMBERS = ("uprobe:exe:numbers(int i, unsigned u, long l, char c, bool b, str s, double, ptr p, "
           'short sh, u8 uc) -> int r as span "numbers {i} {u} {b} {s} {p}"')
FIELDS = ("uprobe:exe:fields(struct outer *o, char text[16]) {text, out o->id as after, o->path, "
          "o->inner.weight, o->ok, o->low} -> long r "
          'as span "fields {text} {after} {path} {weight} {ok} {low}"')


@record
def types(name):
    attach(name, [build("types.c")], ["go"], ["--probe", NUMBERS, "--probe", FIELDS, "--no-sched"],
           pause=3, stop=True)


@record
def training(name):
    run(name, build("../../../examples/training.c", name="training"), "--steps", 18)


@record
def slow_ones(name):
    run(name, build("slow_ones.c"))


for mode in ("lock", "pipe", "child", "origin"):
    RECORDS[f"causes-{mode}"] = lambda name, mode=mode: run(
        name, build("causes.c", "-fno-omit-frame-pointer"), mode)


@record
def secrets(name):
    run(name, build("secrets.c"), "--password=secret",
        options=["--probe", "uprobe:exe:find_secret(char *user, long number) -> char *answer"])


@record
def secrets_redacted(name):
    run(name, build("secrets.c"), "--password=secret",
        options=["--probe", "uprobe:exe:find_secret(char *user, long number) -> char *answer",
                 "--redact", "token,answer"])


@record
def secrets_no_args(name):
    run(name, build("secrets.c"), "--password=secret",
        options=["--probe", "uprobe:exe:find_secret(char *user, long number) -> char *answer",
                 "--no-args"])


@record
def cplusplus(name):
    run(name, build("cplusplus.cpp"), options=["--stacks", "spans"])


@record
def left_spans(name):
    run(name, build("left_spans.c"), 400, options=["--filter", "dur > 50us", "--no-sched"])


@record
def ends(name):
    run(name, build("ends.c", "-rdynamic", "-fno-tree-switch-conversion"),
        options=["--probe", "uprobe:exe:ends_*(int n) -> int ret"])


@record
def ends_late(name):
    """The same with records that come late."""
    ends(name)


@record
def left(name):
    """Calls that are left by siglongjmp()."""
    run(name, build("signal_stack.c", "-rdynamic", "-O1"),
        options=["--sources", "spans", "--probe", "uprobe:exe:signal_*(int n) -> int ret"])


@record
def samples(name):
    run(name, build("samples.c", "-pthread", "-fno-omit-frame-pointer"), "both", "100",
        options=["--sources=spans,sched,samples", "--sample-rate=400"])


@record
def hangs(name):
    """Three threads in a deadlock, which is older than the capture."""
    attach(name, [build("hangs.c"), "three"], lines=(), stop=True,
           options=["--sources=sched,stacks"])


@record
def tracks(name):
    """A program that records itself, with tracks."""
    libraries = SOURCE / "build"
    program = build("tracks.c", f"-L{libraries}", "-Wl,-u,waffle_trace_start", "-lwaffle")
    subprocess.run([program, "device"], check=True, cwd=DATA, stdout=subprocess.DEVNULL,
                   env={**os.environ, "LD_LIBRARY_PATH": str(libraries),
                        "WAFFLE_TRACE": str(CAPTURES / f"{name}.waffle")})


def made(name, *arguments):
    """A capture without a kernel, of tests/integration/make_capture.c."""
    program = BIN / "make_capture"
    if not program.exists():
        source = changed(SOURCE / "tests" / "integration" / "make_capture.c", "i < 3000",
                         "i < 1000")
        tracer.compile_with_waffle(WAFFLE, source, program)
    subprocess.run([program, arguments[0], CAPTURES / f"{name}.waffle", *arguments[1:]], check=True)


for seed in ("1", "2", "3"):
    RECORDS[f"random-{seed}"] = lambda name, seed=seed: made(name, "random", seed)
RECORDS["made"] = lambda name: made(name, "scenario")
# The same, of version 2 of the file format.
RECORDS["made-2"] = RECORDS["made"]
RECORDS["made-loss"] = lambda name: made(name, "loss")


INDEX, END = 8, 9  # chunks


def has_end(data):
    return any(kind == END for _, kind, *_ in cases.chunks(data))


def scrub(name):
    """Replaces the names of this machine in a capture. One without an end gets none."""
    program = BIN / "scrub"
    if not program.exists():
        tracer.compile_with_waffle(WAFFLE, SOURCE / "tests" / "golden" / "scrub.c", program)
    path = CAPTURES / f"{name}.waffle"
    finished = has_end(path.read_bytes())
    late = ["late"] if name.endswith("-late") else []
    subprocess.run([program, path, f"{path}.scrubbed", *late], check=True)
    os.replace(f"{path}.scrubbed", path)
    if not finished:
        data = path.read_bytes()
        path.write_bytes(data[: [at for at, kind, *_ in cases.chunks(data) if kind == INDEX][0]])
    path.chmod(0o644)


def add_scenarios():
    for row in scenarios.SCENARIOS:
        RECORDS[f"zoo-{row.name}"] = lambda name, row=row: scenario(row.name)
        # Only switches: the system calls alone show what the waits were for.
        RECORDS[f"zoo-{row.name}-sched"] = lambda name, row=row: scenario(
            row.name, "-sched", ["--sources", "spans,sched,cuda,nccl"])


# ---- running ----


def inside(names):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    add_scenarios()
    if names == ["--list"]:
        print("\n".join(RECORDS))
        return 0
    os.environ.update(ZOO_DIR=str(DATA), WAFFLE_BPF=str(WAFFLE))
    failed = []
    for name in names or RECORDS:
        try:
            RECORDS[name](name)
            scrub(name)
            size = (CAPTURES / f"{name}.waffle").stat().st_size
            print(f"{name}: {size} bytes", flush=True)
        except Exception as problem:  # the others are recorded all the same
            failed.append(name)
            print(f"{name}: FAILED: {type(problem).__name__}: {problem}", flush=True)
    print(f"{len(failed)} failed: {' '.join(failed)}")
    return 1 if failed else 0


def outside(names):
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="waffle-golden-", dir="/var/tmp"))
    for name in ("src", "bin", "data", "data/captures"):
        (folder / name).mkdir()
    script = (
        f"mount --bind {folder} {PLACE} && mount --bind {root} {SOURCE} && hostname golden && "
        f'exec env -i PATH="$PATH" TERM=dumb HOME=/root WAFFLE_GOLDEN_INSIDE=1 '
        f'/usr/bin/python3 {SOURCE}/tests/golden/record.py "$@"'
    )
    code = subprocess.run(["unshare", "--mount", "--uts", "sh", "-c", script, "sh", *names],
                          check=False).returncode
    print(f"captures in {folder}/data/captures, programs in {folder}/bin")
    return code


if __name__ == "__main__":
    sys.exit((inside if os.environ.get("WAFFLE_GOLDEN_INSIDE") else outside)(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds, lints and runs every test, and adds up what passed.

Each step is a function that yields (name, message) pairs, message None for a pass. A test that is
skipped failed: what is not run is not known to work. Only what needs a GPU may be skipped, and says
so by a reason that begins with "gpu". The last line printed is "N passed, N failed".

    check.py            all steps
    check.py lint unit  these

What only the tests need is installed while the steps before them run.
"""

import glob
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ.get("BUILD", "build")
RESULTS = f"{BUILD}/check"
JOBS = max(2, os.cpu_count() or 2)
AS_ROOT = ["sudo", "-E"] if os.geteuid() else []
# The short run tells of what was broken, and can be repeated; `make fuzz` looks for what is new.
FUZZ_SEED = "1"
FUZZ_SECONDS = int(os.environ.get("FUZZ_SECONDS", "2"))

# Where unit tests are built: a folder, and the flags that differ. Kept in step with `make asan`.
UNIT_BUILDS = {
    "unit": {"BUILD": BUILD},
    "unit, ASan and UBSan": {"BUILD": f"{BUILD}/asan", "SANITIZE": "address,undefined"},
}


# The unit tests of aarch64, in an emulator. Left out are those of what it lacks (bpf(2), seccomp,
# openat2(2), the kernel's /proc/self/stat), of this machine's own programs, those that run themselves,
# and very slow ones. Every function signs its return address (-mbranch-protection). With the emulator's
# own algorithm for that the tests take a fifth of the time. Now and then a child of a fork() hangs, since
# one of the emulator's own threads held a lock at the fork(). Then the program runs again, up to
# EMULATOR_RUNS times, and the output says so.
ARM64 = f"{BUILD}/arm64"
EMULATOR = ["qemu-aarch64", "-cpu", "max,pauth-impdef=on", "-L", f"{ARM64}/root"]
EMULATOR_RUNS = 3
ARM64_NOT = {f"test_{name}" for name in (
    "address_spaces call_answers call_fields call_find call_tracepoint calls_filter calls_kernel "
    "calls_words file_cache clock cpus filter_kernel filter_longest input kernel_cpus kernel_sweep "
    "keep kernel_tasks needed opener origin_leaves origin_random peek probe_unwind rank_gained "
    "store_damage symbols tracer_id worker").split()}

# Of thousands of tests on real processes and clocks, a few fail where the machine itself stalls. If no
# more than AGAIN_MAX failed, each has to pass AGAIN_RUNS times in a row. What broke does not.
AGAIN_MAX = 4
AGAIN_RUNS = 3

# Test files that neither measure time nor watch the whole machine, and pass on a machine with five times
# as much to do as it can. BESIDE_JOBS of them run at once, the longest first: mostly they wait for the
# kernel to attach and to release probes. All others run one after the other, on a machine that is quiet.
BESIDE_JOBS = JOBS + 1
BESIDE = [f"tests/{name}.py" for name in (
    "integration/test_sites integration/test_transport integration/test_instrumented integration/test_gpu_library "
    "integration/test_frameworks integration/test_cpp integration/test_flight "
    "integration/test_backends integration/test_python_frameworks integration/test_why_made_up "
    "integration/test_inprocess_hard integration/test_attach integration/test_soak "
    "integration/test_probe_dwarf integration/test_hangs integration/test_bounded "
    "integration/test_inprocess_ends integration/test_targets integration/test_capabilities "
    "integration/test_inject integration/test_stacks integration/test_filter_kernel "
    "integration/test_late integration/test_call_links "
    "integration/test_tree integration/test_probes integration/test_inprocess_lives "
    "integration/test_named integration/test_filter_same integration/test_tracks "
    "integration/test_inprocess integration/test_gpu_timeline integration/test_hip "
    "integration/test_nccl_profiler integration/test_origin golden/test_golden "
    "integration/test_sim_calls integration/test_probe_paths integration/test_probe_safety "
    "integration/test_output_files integration/test_bad_input integration/test_probe_types "
    "integration/test_needed integration/test_calls_filter integration/test_filter_docs "
    "integration/test_ndjson integration/test_html integration/test_export "
    "integration/test_filter_explain integration/test_file_format integration/test_redact "
    "integration/test_view integration/test_images integration/test_cuda_headers "
    "integration/test_cuda_libraries integration/test_symbols_elsewhere "
    "integration/test_call_ends integration/test_calls_unwinding integration/test_probe_docs "
    "integration/test_compat integration/test_terminal_text integration/test_validator "
    "integration/test_propagation integration/test_processors integration/test_exporters "
    "integration/test_python integration/test_modes integration/test_backtraces "
    "integration/test_repair integration/test_inprocess_names integration/test_python_backends "
    "integration/test_python_perfetto integration/test_python_captures "
    "integration/test_python_docs integration/test_inprocess_viewers "
    "integration/test_inprocess_deadlocks integration/test_grpc integration/test_sqlite "
    "integration/test_fleet integration/test_requests integration/test_replay "
    "integration/test_python_gpu integration/test_python_waits "
    "integration/test_privileges integration/test_leader integration/test_accounts "
    "integration/test_execs integration/test_left_spans "
    "integration/test_reused integration/test_say integration/test_parsing "
    "integration/test_many_stacks integration/test_frame integration/test_worker "
    "integration/test_hardening integration/test_python_probes integration/test_report_causes "
    "integration/test_sim integration/test_nvtx integration/test_gpu integration/test_postgresql "
    "integration/test_safety_docs integration/test_stuck_file integration/test_sets "
    "integration/test_inprocess_fast").split()]

NOT_DONE = "not done after"  # begins the message of a command that took too long


def run(command, timeout, log=None, env=None):
    """Runs a command; returns an empty string, or why it failed with the end of its output."""
    full_env = {name: value for name, value in os.environ.items() if name not in
                ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    full_env.update(env or {})
    try:
        done = subprocess.run(command, env=full_env, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    except subprocess.TimeoutExpired as expired:
        tail = (expired.stdout or b"")[-2000:]
        return f"{NOT_DONE} {timeout} s\n{tail.decode(errors='replace')}"
    if log:
        with open(log, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    return "" if done.returncode == 0 else f"exit status {done.returncode}\n{done.stdout[-4000:]}"


def make(target, timeout=900, **variables):
    return run(["make", "-s", "-k", f"-j{JOBS}", target] + [f"{k}={v}" for k, v in variables.items()],
               timeout)


def step_build():
    yield "make", make("all")
    yield "make examples", make("examples")
    yield "make python", make("python")
    yield "waffle-bpf --version", run([f"{BUILD}/waffle-bpf", "--version"], 10)


def step_lint():
    yield "order of folders", make("lint-includes")
    yield "clang-format", make("lint-format")
    yield "gcc, clang and clang-tidy", make("lint-code")
    yield "docs/commands.md is what waffle-bpf prints", make("lint-docs")


def junit_results(path):
    """Results of one JUnit file, of cmocka or pytest."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname') or ''} {case.get('name')}".strip()
        message = ""
        for bad in case:
            text = (bad.get("message") or bad.text or "").strip()
            if bad.tag in ("failure", "error"):
                message = (bad.get("message") or "") + "\n" + (bad.text or "")
            elif bad.tag == "skipped" and not text.lower().startswith("gpu"):
                message = f"skipped: {text}"
        yield name, message


def unit_program(program, emulator=()):
    """Runs a program of unit tests; what it did not report because it crashed is one failure."""
    name = os.path.basename(program)
    path = os.path.abspath(f"{RESULTS}/{program.replace('/', '-')}")  # a test may change folders
    for old in glob.glob(f"{path}-*.xml"):
        os.remove(old)
    failed = run([*emulator, program], 120, log=f"{path}.log",
                 env={"CMOCKA_MESSAGE_OUTPUT": "XML", "CMOCKA_XML_FILE": f"{path}-%g.xml"})
    results = []
    for report in glob.glob(f"{path}-*.xml"):
        results += [(f"{name} {case}", message) for case, message in junit_results(report)]
    if not results or (failed and not any(message for _, message in results)):
        results.append((name, failed or "no test ran"))
    return results


def emulated_program(program):
    """The same for aarch64."""
    for _ in range(EMULATOR_RUNS):
        results = unit_program(program, EMULATOR)
        hung = [message for _, message in results if message.startswith(NOT_DONE)]
        if not hung:
            break
        print(f"run again: {os.path.basename(program)}: {hung[0].strip()}", flush=True)
    return results


def step_unit():
    for label, variables in UNIT_BUILDS.items():
        yield f"{label}: built", make("unit-programs", **variables)
        names = [os.path.basename(path)[:-2] for path in sorted(glob.glob("tests/unit/test_*.c"))]
        programs = [f"{variables['BUILD']}/unit/{name}" for name in names]
        with ThreadPoolExecutor(JOBS) as pool:
            for results in pool.map(unit_program, [p for p in programs if os.path.exists(p)]):
                yield from ((f"{label}: {name}", message) for name, message in results)


def step_arm64():
    """For aarch64: everything is compiled, and the unit tests that an emulator can run are run."""
    yield "make arm64", make("arm64", timeout=1800)
    programs = [f"{ARM64}/unit/{os.path.basename(path)[:-2]}"
                for path in sorted(glob.glob("tests/unit/test_*.c"))]
    programs = [p for p in programs if os.path.basename(p) not in ARM64_NOT and os.path.exists(p)]
    with ThreadPoolExecutor(JOBS) as pool:
        for results in pool.map(emulated_program, programs):
            yield from results


def fuzz_target(name):
    return name, run(["scripts/fuzz.sh", name, str(FUZZ_SECONDS), FUZZ_SEED], FUZZ_SECONDS + 90)


def step_fuzz():
    names = [os.path.basename(path)[:-2] for path in sorted(glob.glob("tests/fuzz/fuzz_*.c"))]
    if names:
        yield "built", make("fuzz-programs")
    with ThreadPoolExecutor(JOBS) as pool:
        yield from pool.map(fuzz_target, names)


def pytest_results(name, *arguments):
    """Runs pytest and returns the results; `name` is that of its report and log."""
    report = f"{RESULTS}/{name}.xml"
    if os.path.exists(report):
        os.remove(report)
    failed = run([*AS_ROOT, f"{BUILD}/venv/bin/pytest", "-q", "-rfEs", "-p", "no:cacheprovider",
                  f"--junitxml={report}", *arguments], 1800, log=f"{RESULTS}/{name}.log")
    if not os.path.exists(report):
        return [(name, failed or "no report")]
    results = list(junit_results(report))
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        for again in case.iterfind(".//property[@name='run again']"):
            print(f"run again: {case.get('name')}: {again.get('value')}", flush=True)
    if failed and not any(message for _, message in results):
        results.append((name, failed))
    return results


def pytest_file(path):
    return pytest_results(f"pytest-{os.path.basename(path)[:-3]}", path)


def redis_results():
    return [("redis: built", run([*AS_ROOT, sys.executable, "tests/integration/redis_source.py"], 900))]


def passes_again(name):
    """Whether a test of pytest passes AGAIN_RUNS times in a row with nothing beside it."""
    module, _, test = name.partition(" ")
    node = f"{module.replace('.', '/')}.py::{test}"
    return all(not message for run in range(AGAIN_RUNS)
               for _, message in pytest_results(f"again-{run}", node))


def again(results):
    """The same results; where few tests failed, those that pass again have passed, and it is told."""
    failed = [name for name, message in results if message]
    if len(failed) > AGAIN_MAX:
        return results
    spoilt = {name for name in failed if passes_again(name)}
    for name, message in results:
        if name in spoilt:
            print(f"run again: {name}: {message.strip()}", flush=True)
    return [(name, "" if name in spoilt else message) for name, message in results]


class SetUp:
    """The installation of what only the tests need. It runs beside other steps, at a low priority."""

    def __init__(self):
        self.log = f"{RESULTS}/set-up.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["nice", "scripts/setup.sh", "check"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)

    def finish(self):
        """Waits for its end. Returns an empty string; of a failure, the status and the end of the output."""
        status = self.process.wait()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return f"exit status {status}\n{log.read()[-4000:]}" if status else ""


def step_integration(set_up):
    yield "set-up", set_up.finish()
    results = []
    with ThreadPoolExecutor(BESIDE_JOBS) as pool:
        redis = pool.submit(redis_results)
        for some in pool.map(pytest_file, BESIDE):
            results += some
        results += redis.result()
    results += pytest_results("pytest", *[f"--ignore={path}" for path in BESIDE], "tests")
    yield from again(results)


STEPS = {"build": step_build, "unit": step_unit, "lint": step_lint, "aarch64": step_arm64,
         "fuzz": step_fuzz, "tests": step_integration}


def main(words):
    """Runs the steps with these labels, or all."""
    os.makedirs(RESULTS, exist_ok=True)
    if set(words) - set(STEPS):
        sys.exit(f"check.py: the steps are {', '.join(STEPS)}")
    labels = [label for label in STEPS if label in (words or STEPS)]
    passed, failed = 0, []
    set_up = None
    for label in labels:
        if label != "build" and "tests" in labels:
            set_up = set_up or SetUp()
        began, before = time.monotonic(), (passed, len(failed))
        for name, message in STEPS[label](set_up) if label == "tests" else STEPS[label]():
            if message:
                failed.append(f"{label}: {name}")
                print(f"FAILED {label}: {name}: {message.strip()}", flush=True)
            else:
                passed += 1
        print(f"{label}: {passed - before[0]} passed, {len(failed) - before[1]} failed"
              f" ({time.monotonic() - began:.0f} s)", flush=True)
        if label == "build" and failed:
            break
    for name in failed:  # again, since where the output is long its middle may be cut
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

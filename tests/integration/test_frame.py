# SPDX-License-Identifier: Apache-2.0
"""The program's surface: commands and exit codes, check, help, install, static link, the demo."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
WAFFLE = BUILD / "waffle-bpf"
COMMANDS = [
    "attach", "run", "list", "report", "why", "gpu", "replay", "view", "info", "export", "merge", "repair", "check", "demo",
    "help",
]


def waffle(*arguments, **options):
    return subprocess.run([WAFFLE, *map(str, arguments)], stdin=subprocess.DEVNULL, timeout=60,
                          capture_output=True, text=True, check=False, **options)


def make(*arguments):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "-s", "-C", ROOT, *arguments], env=env, timeout=300,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments, message", [
    (["atach"], "waffle-bpf: atach: no such command; did you mean attach?\n"),
    (["frobnicate"], "waffle-bpf: frobnicate: no such command; see waffle-bpf help\n"),
    (["check", "--jsn"], "waffle-bpf: check: --jsn: no such option; did you mean --json?\n"),
    (["check", "now"], "waffle-bpf: check: 'now': takes no arguments\n"),
    (["attach", "--pid", "1", "--duration", "10x"],
     "waffle-bpf: attach: --duration: '10x' is not a time, write 10s, 500ms, 1m30s\n"),
])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, message):
    done = waffle(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_no_command_shows_the_overview_on_stderr():
    done = waffle()
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split()[0] for line in done.stderr.splitlines()
            if re.match(r"  [a-z]+ +[A-Z]", line)] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_in_every_form(command):
    asked, told = waffle(command, "--help"), waffle("help", command)
    assert asked.returncode == told.returncode == 0
    assert asked.stdout == told.stdout
    assert asked.stdout.startswith(f"Usage: waffle-bpf {command} ")
    assert f"\n.SS {command}\n" in waffle("help", "--man").stdout
    assert f"\n## {command}\n" in waffle("help", "--markdown").stdout


def test_output_that_cannot_be_written_is_a_failure_and_a_closed_pipe_is_not():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([WAFFLE, "help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "waffle-bpf: standard output could not be written; is the disk full?\n"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([WAFFLE, "help"], stdout=writer, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_finds_this_machine_ready_and_a_user_without_rights_not(tmp_path):
    done = waffle("check", "--json")
    found = json.loads(done.stdout)
    states = {check["name"]: check["status"] for check in found["checks"]}
    assert (done.returncode, found["ready"]) == (0, True)
    assert states["privileges"] == states["tracepoints"] == states["ring buffer"] == "ok"
    kernel = next(check for check in found["checks"] if check["name"] == "kernel")
    assert f"Linux {os.uname().release} " in kernel["detail"]

    program = Path("/tmp") / f"waffle-bpf-{os.getpid()}"  # where everybody may read
    shutil.copy(WAFFLE, program)
    try:
        done = subprocess.run([program, "check", "--json"], user=65534, group=65534,
                              extra_groups=[], capture_output=True, text=True, timeout=60,
                              cwd="/", check=False)
    finally:
        program.unlink()
    found = json.loads(done.stdout)
    states = {check["name"]: check["status"] for check in found["checks"]}
    assert (done.returncode, found["ready"]) == (1, False)
    assert (states["privileges"], states["tracepoints"]) == ("missing", "unknown")


def test_install_puts_everything_in_place_and_headers_compile_from_there(tmp_path):
    make("install", f"BUILD={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert (tmp_path / "usr/bin/waffle-bpf").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "usr/share/man/man8/waffle-bpf.8").read_text().startswith(".TH WAFFLE")
    source = tmp_path / "use.c"
    source.write_text('#include <waffle_macros.h>\nint main(void) { SPAN("s"); return 0; }\n')
    program = tmp_path / "use"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I",
                    tmp_path / "usr/include", "-o", program, source], check=True, timeout=60)
    assert "use.c:2" in waffle("list", program).stdout


def test_static_binary_needs_no_library(tmp_path):
    # Everything is compiled already, and only linked again.
    for name in ("obj", "gen", "bpf", "flags", "libwaffle-bpf.a"):
        subprocess.run(["cp", "-a", BUILD / name, tmp_path / name], check=True)
    make("STATIC=1", f"BUILD={tmp_path}", f"{tmp_path}/waffle-bpf")
    ldd = subprocess.run(["ldd", tmp_path / "waffle-bpf"], capture_output=True, text=True,
                         check=False, timeout=60)
    assert "statically linked" in ldd.stdout or "not a dynamic executable" in ldd.stderr
    done = subprocess.run([tmp_path / "waffle-bpf", "check"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_slow_steps_of_the_demo_are_explained_by_blocked_time(tmp_path):
    log, capture = tmp_path / "steps", tmp_path / "demo.waffle"
    done = waffle("run", "-o", capture, "--", BUILD / "examples/training", "--log", log)
    assert done.returncode == 0, done.stderr
    own = [json.loads(line) for line in log.read_text().splitlines()]
    records = [json.loads(line) for line in
               waffle("export", capture, "--format", "ndjson", "-o", "-").stdout.splitlines()]
    spans = [record for record in records if record["kind"] == "span"]
    steps = sorted((span for span in spans if span["name"] == "step"),
                   key=lambda span: span["args"]["step"])
    assert [span["args"]["step"] for span in steps] == [entry["step"] for entry in own]
    for span, entry in zip(steps, own):
        assert entry["start_ns"] <= span["start_ns"] <= span["end_ns"] <= entry["end_ns"]

    def own_ns(span):
        """Without what a busy machine adds."""
        return span["end_ns"] - span["start_ns"] - span["runnable_ns"]

    slow = [span for span in steps if own_ns(span) > 50_000_000]
    assert slow
    for span in slow:
        assert span["blocked_ns"] > 0.8 * own_ns(span)
        inside = [child for child in spans if child.get("parent") == span["id"]]
        assert {child["name"] for child in inside} == {"wait batch", "forward", "backward"}
        wait = next(child for child in inside if child["name"] == "wait batch")
        assert wait["blocked_ns"] > 0.9 * own_ns(wait)
    count = {name: sum(span["name"] == name for span in spans)
             for name in ("load shard", "disk read", "flush backlog", "save weights")}
    assert count == {"load shard": 48, "disk read": 48, "flush backlog": 3, "save weights": 4}
    depths = [record for record in records if record["kind"] == "counter"
              and record["name"] == "queue depth"]
    assert len(depths) == 2 * len(own)

# SPDX-License-Identifier: Apache-2.0
"""Files of others are parsed by processes without privileges, also while a capture runs."""
import os
import subprocess
from pathlib import Path

from tracer import children_of, default_program, wait_until

WAFFLE_BPF = default_program()


def helpers_of(pid: int) -> list[int]:
    return [child for child in children_of(pid) if children_of(child)]


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def test_parsers_of_an_attach_have_no_privileges(tmp_path):
    target = subprocess.Popen(["sleep", "60"])
    tracer = subprocess.Popen([WAFFLE_BPF, "attach", "-q", "--no-report", "-o", tmp_path / "x.waffle",
                               "-p", str(target.pid)])
    try:
        # A helper's child is a worker. The guardian, which has privileges, parses nothing.
        helpers = wait_until(lambda: helpers_of(tracer.pid), "a worker")
        for helper in helpers:
            for pid in (helper, *children_of(helper)):
                seen = status(pid)
                assert int(seen["CapEff"], 16) == int(seen["CapBnd"], 16) == 0
                assert int(seen["CapPrm"], 16) == int(seen["CapAmb"], 16) == 0
                assert seen["NoNewPrivs"].strip() == "1"
                assert min(map(int, seen["Uid"].split())) > 0xF0000000  # nobody has it
                assert min(map(int, seen["Gid"].split())) > 0xF0000000  # nobody has it
                assert seen["Groups"].split() == []
            for worker in children_of(helper):
                wait_until(lambda: status(worker)["Seccomp"].strip() == "2", "the filter")
                links = [os.readlink(f"/proc/{worker}/fd/{fd}") for fd in range(4)]
                assert links[:3] == ["/dev/null"] * 3 and links[3].startswith("socket:")
                wait_until(lambda: len(os.listdir(f"/proc/{worker}/fd")) == 4, "its idleness")
                # Nothing that the tracer shares with the kernel.
                maps = Path(f"/proc/{worker}/maps").read_text()
                assert not [line for line in maps.splitlines() if line.split()[1][3] == "s"]
        parsers = helpers + [worker for helper in helpers for worker in children_of(helper)]
        tracer.send_signal(2)
        assert tracer.wait() == 0
        # Not even as zombies, which would stay where process 1 does not look after them.
        assert not [pid for pid in parsers if Path(f"/proc/{pid}").exists()]
    finally:
        tracer.kill()
        tracer.wait()
        target.kill()
        target.wait()


def test_parsers_end_with_a_tracer_that_is_killed(tmp_path):
    target = subprocess.Popen(["sleep", "60"])
    tracer = subprocess.Popen([WAFFLE_BPF, "attach", "-q", "--no-report", "-o", tmp_path / "x.waffle",
                               "-p", str(target.pid)])
    try:
        helpers = wait_until(lambda: helpers_of(tracer.pid), "a worker")
        all_of_them = helpers + [worker for helper in helpers for worker in children_of(helper)]
        tracer.kill()
        tracer.wait()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in all_of_them), "their end")
    finally:
        target.kill()
        target.wait()

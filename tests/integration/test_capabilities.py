# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf as an unprivileged user with a few capabilities: what works, and which messages explain
the rest."""

import json
import os
import shutil
import subprocess
import tempfile
import pathlib

import pytest

from tracer import Capture, wait_until

NOBODY = 65534
ALL = ("bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore", "kill")
FALSE = "built without waffle.h"


@pytest.fixture(name="limited")
def limited_program(waffle, public):
    """limited(capabilities, argument…): waffle-bpf as nobody, with these capabilities alone, in a
    folder of its own."""
    program = public(waffle.program)
    with tempfile.TemporaryDirectory(prefix="waffle-nobody-") as folder:
        os.chown(folder, NOBODY, NOBODY)

        def call(capabilities, *arguments):
            caps = ",".join(f"+{name}" for name in capabilities)
            command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            if caps:
                command += [f"--inh-caps={caps}", f"--ambient-caps={caps}"]
            return subprocess.run(
                [*command, program, *[str(x) for x in arguments]],
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip

        call.folder = pathlib.Path(folder)
        yield call


def without(*names):
    return [name for name in ALL if name not in names]


def states(result):
    return {row["name"]: row for row in json.loads(result.stdout)["checks"]}


def test_check_says_what_each_missing_capability_costs(limited):
    whole = limited(ALL, "check", "--json")
    rows = states(whole)
    assert whole.returncode == 0 and json.loads(whole.stdout)["ready"]
    for name in ("sys_ptrace", "dac_read_search", "checkpoint_restore", "kill"):
        row = f"CAP_{name.upper()}"
        assert rows[row]["status"] == "ok"
        lacking = states(limited(without(name), "check", "--json"))
        assert lacking[row]["status"] == "limited" and "without it" in lacking[row]["advice"]
        costs = {row}
        if name == "dac_read_search" and rows["tracefs"]["status"] == "ok":
            costs.add("tracefs")  # it is mounted, and root's
        assert {r for r in lacking if lacking[r]["status"] != rows[r]["status"]} == costs
    for name in ("bpf", "perfmon"):
        lacking = limited(without(name), "check", "--json")
        assert lacking.returncode == 1
        assert states(lacking)["privileges"]["status"] == "missing"
        assert states(lacking)["privileges"]["detail"] == f"lacks CAP_{name.upper()}"
    assert "0750" in states(limited((), "check", "--json"))["privileges"]["advice"]


@pytest.fixture(name="others")
def programs_of_root(built, start, public):
    """One that everybody may read, one in a folder of root's."""
    started = []
    for path in (public(built("steps.c")), built("steps.c")):
        private = path
        if path == built("steps.c"):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="waffle-private-"))
            private = pathlib.Path(shutil.copy(path, folder))
            started.append(folder)
        program = start(private)
        program.until("ready")
        program.path = private
        started.append(program)
    yield started[0], started[2]
    shutil.rmtree(started[1])


def denied(limited, capabilities, pid):
    """The messages of attach and list about a process whose files can't be read."""
    attached = limited(capabilities, "attach", "-p", pid, "-d", "100ms", "--no-report", "-o", "x")
    assert attached.returncode == 0, attached.stderr
    listed = limited(capabilities, "list", "-p", pid)
    assert listed.returncode == 1
    assert FALSE not in attached.stderr + listed.stderr + listed.stdout
    return attached.stderr, listed.stderr


def test_files_that_may_not_be_read_are_not_files_without_sites(limited, others):
    program, private = others
    for said in denied(limited, ("bpf", "perfmon"), program.pid):
        assert "denied" in said or "not permitted" in said, said
        assert "CAP_SYS_PTRACE" in said, said
    for said in denied(limited, ("bpf", "perfmon", "sys_ptrace"), private.pid):
        assert f"{private.path}: Permission denied" in said, said
        assert "CAP_DAC_READ_SEARCH" in said, said


def test_six_capabilities_are_enough(limited, waffle, others, built, public):
    for program in others:
        attached = limited(ALL, "attach", "-p", program.pid, "-d", "300ms", "--no-report", "-o", "a")
        assert attached.returncode == 0, attached.stderr
        assert "denied" not in attached.stderr and FALSE not in attached.stderr
        info = Capture(waffle, limited.folder / "a").info()
        assert info["sites"] > 5
        listed = limited(ALL, "list", "--json", "-p", program.pid)
        assert len(json.loads(listed.stdout)["sites"]) == info["sites"]
    ran = limited(ALL, "run", "-q", "--no-report", "-o", "r", "--", public(built("values.c")))
    assert ran.returncode == 0, ran.stderr
    capture = Capture(waffle, limited.folder / "r")
    assert capture.info()["spans"] > 0
    assert capture.path.stat().st_uid == NOBODY


def test_rings_need_a_capability_of_their_own(limited, waffle, built, public, libwaffle_flags):
    program = public(built("transport.c", *libwaffle_flags))
    for capabilities, way in ((ALL, "ring"), (without("checkpoint_restore"), "usdt")):
        ran = limited(capabilities, "run", "--no-report", "-o", way, "--", program,
                      "steps 0 300 100")
        assert ran.returncode == 0, ran.stderr
        assert ("CAP_CHECKPOINT_RESTORE" in ran.stderr) == (way == "usdt")
        info = Capture(waffle, limited.folder / way).info()
        assert info["spans"] == 600
        [process] = [p for p in info["processes"] if "transport" in p]
        assert process["transport"] == way
        assert (process["ring_records"] > 1000) == (way == "ring")


def test_functions_of_the_kernel_have_names_with_these_six(limited, waffle):
    """CAP_SYSLOG is what /proc/kallsyms asks for, which is not read."""
    command = ["dd", "if=/dev/zero", "of=written", "bs=4k", "count=20", "oflag=sync"]
    ran = limited(ALL, "run", "-q", "--no-report", "-o", "synced", "--", *command)
    assert ran.returncode == 0, ran.stderr
    capture = Capture(waffle, limited.folder / "synced")
    names = {row["args"]["name"] for row in capture.rows("symbol")}
    assert any("fsync" in name for name in names), names


def test_nothing_is_possible_without_and_says_so(limited, others):
    for arguments in (["attach", "-p", others[0].pid], ["run", "--", "true"]):
        result = limited((), *arguments, "-o", "x")
        assert result.returncode == 1 and "CAP_BPF" in result.stderr, result.stderr
    assert limited((), "list", "-p", others[0].pid).returncode == 1
    wait_until(lambda: not list(limited.folder.iterdir()), "an empty folder", 1)


def test_without_sys_admin_the_command_is_armed_at_its_begin_and_later_programs_are_not_held(
    limited, waffle, built, public
):
    program = public(built("begins.c"))
    path = limited.folder / "begins.waffle"
    result = limited(ALL, "run", "--no-report", "-o", path, "--", program, "began", 0)
    assert result.returncode == 0, result.stderr
    assert len(Capture(waffle, path).rows("event", name="began")) == 1
    held = "new programs are not held until they are armed (CAP_SYS_ADMIN is missing)"
    assert result.stderr.count(held) == 1
    assert states(limited(ALL, "check", "--json"))["exec hold"]["status"] == "limited"
    later = limited(ALL, "run", "--no-report", "-o", path, "--", program, "many", 3, program)
    assert later.returncode == 0 and later.stdout.count("began pid=") == 3

# SPDX-License-Identifier: Apache-2.0
"""Which privileges waffle-bpf drops after its start, by what the kernel reports of the process."""

import os
import pathlib
import subprocess

from tracer import wait_until

# include/uapi/linux/capability.h
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL = 0, 1, 2, 3, 5
NET_ADMIN, NET_RAW, SYS_MODULE, SYS_RAWIO, SYS_PTRACE = 12, 13, 16, 17, 19
SYS_BOOT, SYS_TIME, MKNOD = 22, 25, 27


def state(pid, thread=None):
    path = f"/proc/{pid}/task/{thread}/status" if thread else f"/proc/{pid}/status"
    with open(path, encoding="ascii") as status:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    return int(fields["NoNewPrivs"]), {
        name: int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")
    }


def held(mask):
    return {bit for bit in range(64) if mask >> bit & 1}


def writes(pid):
    """Whether it sleeps in write(2)."""
    with open(f"/proc/{pid}/wchan", encoding="ascii") as wchan:
        return "pipe_write" in wchan.read()


def own():
    return held(state("self")[1]["CapEff"])


def comm(task):
    return (task / "comm").read_text(encoding="utf-8").strip()


def family(pid):
    """The folders of all threads of a process and its children."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        yield task
        for child in (task / "children").read_text(encoding="utf-8").split():
            yield from family(child)


def test_tracer_keeps_what_tracing_needs(waffle, steps):
    """Each of its threads and processes, also those for stacks and new programs."""
    attached = waffle.attach_to(steps, steps.path, options=("--stacks", "sched", "--follow"))
    given_up = {NET_ADMIN, NET_RAW, SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, MKNOD}
    tasks = list(family(attached.process.pid))
    assert {"waffle-bpf", "waffle-gate", "waffle-writer", "waffle-opener"} <= {*map(comm, tasks)}
    assert [comm(task) for task in tasks].count("waffle-bpf") > 1
    for task in tasks:
        no_new, sets = state(task.parents[1].name, task.name)
        assert no_new == 1, comm(task)
        for name, mask in sets.items():
            assert not held(mask) & given_up, (comm(task), name)
    _, sets = state(attached.process.pid)
    assert held(sets["CapEff"]) >= {SYS_PTRACE, KILL, DAC_READ_SEARCH} & own()
    steps.ask("span 3", "did")
    assert attached.stop().rows("span")


def test_command_has_the_rights_that_it_would_have_without(waffle):
    plain = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
    traced = waffle.run("cat", "/proc/self/status", options=("--user", "root")).result

    def rights(text):
        return [x for x in text.splitlines() if x.startswith(("Cap", "NoNewPrivs", "Seccomp"))]

    assert rights(traced.stdout) == rights(plain.stdout)


def test_readers_of_captures_keep_rights_over_files_only(waffle, built, tmp_path):
    """While a thread writes to a pipe that nobody reads."""
    capture = waffle.run(built("values.c"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    with subprocess.Popen(
        [waffle.program, "export", capture.path, "-f", "records", "-o", pipe]
    ) as process:
        try:
            # It has filled what the pipe holds.
            wait_until(lambda: writes(process.pid), "a write that waits")
            no_new, sets = state(process.pid)
            assert no_new == 1
            for name, mask in sets.items():
                assert held(mask) <= {CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER}, name
        finally:
            process.kill()
    os.close(reader)

# SPDX-License-Identifier: Apache-2.0
"""Libraries that a program opens by dlopen() while it is traced, and calls at once: what can be
known of them beforehand is armed, so that the first call is seen."""

import json
import os
import re
import shutil
import sys

import pytest

from sim_log import began
from test_calls import ADD, ONLY, args_of, called, caller, logged, named, probes  # noqa: F401
from test_sim import sim  # noqa: F401
from test_sim_calls import is_armed
from tracer import PROGRAMS, probed_bytes, tries, wait_until

LAUNCHES = 40


def attach(waffle, program, *options, **process_options):
    """Armed when it waits for events."""
    attached = waffle.attach(
        "-p", program.pid, "-q", "--no-report", *options, **process_options
    )
    wait_until(lambda: is_armed(attached.process), "arming")
    return attached


def with_path(folder, **more):
    return {**os.environ, "LD_LIBRARY_PATH": str(folder), **more}


# ---- CUDA ----


def wheel(folder, library):
    """A Python environment with a wheel of NVIDIA's in it."""
    packages = folder / "lib" / "python3.99" / "site-packages"
    lib = packages / "nvidia" / "cuda_runtime" / "lib"
    lib.mkdir(parents=True)
    return shutil.copy(library, lib)


PLACES = {
    "environment": lambda sim, folder: (  # noqa: F811
        sim / "libcudart.so.12", with_path(sim)),
    "wheel": lambda sim, folder: (  # noqa: F811
        wheel(folder, sim / "libcudart.so.12"),
        with_path("", VIRTUAL_ENV=str(folder), LD_PRELOAD=str(sim / "libcuda.so.1"))),
}  # fmt: skip


def launched(capture):
    rows = [r for r in capture.rows() if r.get("name") == "cudaLaunchKernel"]
    return [r["args"]["grid"] for r in sorted(rows, key=began)]


EXPECTED = [[i + 1, 1, 1] for i in range(LAUNCHES)]


@pytest.mark.parametrize("place", PLACES)
def test_first_launches_after_dlopen_are_seen(
    waffle, start, sim, tmp_path, place  # noqa: F811
):
    library, environment = PLACES[place](sim, tmp_path / "env")
    program = start(sys.executable, PROGRAMS / "late_cuda.py", env=environment)
    program.until("ready")
    attached = attach(waffle, program)
    program.ask(f"{library} {LAUNCHES}", f"launched {LAUNCHES} result=0")
    program.finish()
    capture = attached.wait()
    assert launched(capture) == EXPECTED
    capture.check_sums(lost=0)
    assert capture.info()["simulated"] is True


def test_first_launches_after_dlopen_under_run(waffle, sim):  # noqa: F811
    """A program whose use of CUDA shows beforehand only in its folders."""
    capture = waffle.run(
        sys.executable, PROGRAMS / "late_cuda.py", env=with_path(sim), stdin=None,
        input=f"{sim / 'libcudart.so.12'} {LAUNCHES}\n",
    )  # fmt: skip
    assert launched(capture) == EXPECTED


def test_what_is_never_opened_is_not_in_the_capture(waffle, start, sim):  # noqa: F811
    program = start(sys.executable, PROGRAMS / "late_cuda.py", env=with_path(sim))
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", *probes(ADD))
    wait_until(lambda: is_armed(attached.process), "arming")
    program.finish()
    capture = attached.wait()
    assert "CUDA" not in capture.result.stderr
    info = capture.info()
    assert "simulated" not in info
    assert info["sites"] == 0


# ---- --probe ----


def links(process):
    """How many links of uprobes a tracer has."""
    found = 0
    for path in os.listdir(f"/proc/{process.pid}/fdinfo"):
        try:
            with open(f"/proc/{process.pid}/fdinfo/{path}", encoding="utf-8") as info:
                found += "link_type:\tuprobe_multi" in info.read()
        except OSError:
            pass
    return found


def ways(called):  # noqa: F811
    """How the library may be known beforehand: of each the description and the environment."""
    return {
        "path": (ADD.replace("libcalled", str(called)), None),
        "folder": (ADD, with_path(f"/nowhere:{called.parent}")),
    }


@pytest.mark.parametrize("single", ["", "1"])
@pytest.mark.parametrize("way", ["path", "folder"])
def test_first_calls_after_dlopen_are_seen(waffle, start, caller, called, way, single):  # noqa: F811
    spec, environment = ways(called)[way]
    program = start(caller, env=environment)
    program.until("ready")
    more = {"env": {**os.environ, "WAFFLE_UPROBE_SINGLE": single}} if single else {}
    attached = attach(waffle, program, *ONLY, *probes(spec), **more)
    program.say(f"open {called}\nadd 50")
    log = logged(program.finish(), "called_add")
    capture = attached.wait()
    rows = named(capture, "called_add")
    assert args_of(rows, "a", "ret") == [(r["a"], r["ret"]) for r in log] and len(rows) == 50
    assert capture.check_sums(lost=0)["produced"] >= 100


def test_a_library_of_lld_that_was_expected_is_armed_when_its_loader_is_done(waffle, start, built):
    """It has a described function, so that it is looked for before it is opened. Its semaphores may
    only be raised after its loader is done, which is soon after the dlopen()."""
    library = built("library.c", "-shared", "-fPIC", "-fuse-ld=lld", name="liblate.so")
    program = start(built("steps.c"))
    program.until("ready")
    attached = attach(waffle, program, "--probe", f"uprobe:{library}:library_call(int i)")
    program.ask(f"open {library} 1000", "did open=1000")
    program.finish()
    assert named(attached.wait(), "library event")


def test_runpath_of_the_program(waffle, start, built, called):  # noqa: F811
    program = start(built("caller.c", "-Wl,-rpath,$ORIGIN/../" + called.parent.name, name="rpath"))
    program.until("ready")
    attached = attach(waffle, program, *ONLY, *probes(ADD))
    program.say("open libcalled.so\nadd 50")
    program.finish()
    assert args_of(named(attached.wait(), "called_add"), "a") == [(i,) for i in range(50)]


def test_first_calls_after_dlopen_in_another_root(waffle, start, caller, called):  # noqa: F811
    """Its root is a folder with a library of its own, which an absolute link leads to."""
    script = (
        "mount -t tmpfs none /mnt && mkdir /mnt/own /mnt/lib /mnt/lib64 /mnt/usr && "
        f"cp {caller} /mnt/caller && cp {called} /mnt/own/libcalled.so.1 && "
        "for i in usr lib lib64; do mkdir -p /mnt/$i && mount --bind /$i /mnt/$i; done && "
        "mkdir /mnt/links && ln -s /own/libcalled.so.1 /mnt/links/libcalled.so && "
        "exec chroot /mnt /caller"
    )
    program = start("unshare", "-m", "sh", "-c", script, env=with_path("/links"))
    program.until("ready")
    attached = attach(waffle, program, *ONLY, *probes(ADD))
    program.say("open /links/libcalled.so\nadd 50")
    program.finish()
    assert args_of(named(attached.wait(), "called_add"), "a") == [(i,) for i in range(50)]


def test_what_is_said_of_a_library_that_is_not_open_yet(waffle, start, caller, called):  # noqa: F811
    program = start(caller, env=with_path(called.parent))
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", *ONLY, *probes(ADD))
    assert re.search(
        rf"no file 'libcalled' in a traced process yet; if it opens {called} its calls are "
        "recorded from the first one on",
        attached.wait_notice(),
    )
    program.finish()
    capture = attached.wait()
    assert "armed 1 probe" not in capture.result.stderr
    assert capture.rows("event") == capture.rows("span") == []


def test_library_that_is_replaced_before_it_is_opened(waffle, start, caller, called, tmp_path):  # noqa: F811
    """Another file under that name is found when it is mapped."""
    library = tmp_path / "libcalled.so"
    shutil.copy(called, library)
    program = start(caller, env=with_path(tmp_path))
    program.until("ready")
    attached = attach(waffle, program, *ONLY, *probes(ADD))
    shutil.copy(called, tmp_path / "new")
    (tmp_path / "new").rename(library)
    program.ask(f"open {library}", "did")
    called_until_seen(waffle, program, attached, library)


def test_library_that_is_written_to_is_disarmed(waffle, start, built, caller, called, tmp_path):  # noqa: F811
    """Its functions have moved, so the old probes would break the program."""
    library = tmp_path / "libcalled.so"
    shutil.copy(called, library)
    other = built("called.c", "-shared", "-fPIC", "-O0", name="other.so").read_bytes()
    assert other != called.read_bytes()
    program = start(caller, env=with_path(tmp_path))
    program.until("ready")
    attached = attach(waffle, program, *ONLY, *probes(ADD))
    assert links(attached.process)
    library.write_bytes(other)
    wait_until(lambda: not links(attached.process), "disarming")
    program.ask(f"open {library}", "did")
    called_until_seen(waffle, program, attached, library)


def test_library_that_is_written_to_between_two_loads(waffle, start, caller, called, tmp_path):  # noqa: F811
    """As a plugin that is built anew: it is armed when it is loaded again."""
    library = tmp_path / "libcalled.so"
    shutil.copy(called, library)
    program = start(caller, library)
    program.until("ready")
    attached = attach(waffle, program, *ONLY, *probes(ADD))
    assert links(attached.process)
    program.ask("close", "did")
    library.write_bytes(called.read_bytes())
    wait_until(lambda: not links(attached.process), "disarming")
    program.ask(f"open {library}", "did")
    called_until_seen(waffle, program, attached, library)


def test_function_of_a_program_that_a_shell_begins(waffle, start, caller, called):  # noqa: F811
    """The shell has none of that name, which is an error only if its children are not followed."""
    shell = start("sh", "-c", f"echo ready; read go; {caller} {called}; true")
    shell.until("ready")
    specs = probes("uprobe:exe:thread_main as event")
    attached = attach(waffle, shell, "--follow", *ONLY, *specs)
    shell.say("go")
    shell.until("ready pid=")
    wait_until(lambda: links(attached.process), "arming")
    shell.ask("threads 3", "did")
    shell.finish()
    assert len(attached.wait().rows("event")) == 3
    shell = start("sh", "-c", "echo ready; read end")
    shell.until("ready")
    plain = waffle.call("attach", "-p", shell.pid, "--no-report", *ONLY, *specs)
    assert plain.returncode and "no function 'thread_main' in " in plain.stderr


MANY = "many(i64 left, i64 b, i64 c, i64 d, i64 e, i64 f, i64 g, i64 h, i64 i, i64 j)"


@tries(3)  # on a busy machine one may be over before it is armed
def test_programs_that_exec_while_they_are_armed(waffle, start, built):
    """From some generation on all calls are seen, of each function; nothing went wrong meanwhile."""
    again = built("again.c")
    shell = start("sh", "-c", f"echo ready; read go; {again} 600 & {again} 600 & wait")
    shell.until("ready")
    specs = probes("uprobe:exe:few(i64 left) as event", f"uprobe:exe:{MANY} as event")
    attached = attach(waffle, shell, "--follow", *ONLY, *specs)
    shell.say("go")
    shell.finish()
    capture = attached.wait()
    assert "arming" not in capture.result.stderr
    for name in ("few", "many"):
        left = {}
        for row in named(capture, name):
            left.setdefault(row["pid"], []).append(row["args"]["left"])
        assert len(left) == 2
        for seen in left.values():
            assert seen == list(range(seen[0], -1, -1))


def called_until_seen(waffle, program, attached, library):
    """Calls until the probes are in it: from some call on all are seen, with the right results."""
    sites = json.loads(waffle.ok("list", "--json", library, *probes(ADD)).stdout)["sites"]
    offsets = [probe["offset"] for site in sites for probe in site["probes"]]
    plain = [library.read_bytes()[offset : offset + 1] for offset in offsets]

    def armed():
        program.ask("add 10", "did")
        now = probed_bytes(program.pid, os.stat(library).st_ino, offsets)
        return len(now) == len(plain) and all(a != b for a, b in zip(now, plain))

    wait_until(armed, "arming")
    program.ask("add 10", "did")
    program.finish()
    seen = args_of(named(attached.wait(), "called_add"), "a", "ret")
    calls = [(i, i + i * 1000000007) for i in range(10)] * (len(seen) // 10 + 1)
    assert len(seen) >= 10 and seen == calls[-len(seen) :]

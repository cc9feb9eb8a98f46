# SPDX-License-Identifier: Apache-2.0
"""Libraries that a program is linked with: armed under `run` before it begins."""

import re
import shutil
import subprocess

import pytest

from test_calls import ADD, ONLY, args_of, called, link, logged, probes  # noqa: F401
from test_calls import named as called_rows
from test_run import check_user_of_library, user_of_library  # noqa: F401
from tracer import Capture


def test_library_that_the_cache_of_another_root_knows(waffle, user_of_library, tmp_path):  # noqa: F811
    """It lies in a folder that nothing else names."""
    library, user = user_of_library
    needed = subprocess.run(["ldd", user], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        place = tmp_path / ("odd/" + library.name if path == str(library) else path[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.conf").write_text("/odd\n", encoding="ascii")
    subprocess.run(["ldconfig", "-r", tmp_path], check=True)
    shutil.copy(user, tmp_path)
    check_user_of_library(waffle.run("chroot", tmp_path, f"/{user.name}").rows())


def test_library_that_is_preloaded_for_all_programs(waffle, built, tmp_path):
    """/etc/ld.so.preload of the program's own root; its name stands for what is needed."""
    library = built("library.c", "-shared", "-fPIC", "-Wl,-soname,liblate.so", name="liblate.so")
    user = built("needs_library.c", f"-L{library.parent}", "-llate", name="preloaded")
    needed = subprocess.run(["ldd", user], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        place = tmp_path / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (tmp_path / "odd").mkdir()
    shutil.copy(library, tmp_path / "odd/other-name.so")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text("# x\n/odd/other-name.so # y\n", encoding="ascii")
    shutil.copy(user, tmp_path)
    check_user_of_library(waffle.run("chroot", tmp_path, f"/{user.name}").rows())


# ---- another file during the capture ----


def replace(library, other):
    other.rename(library)


def replace_link(library, other):
    link = library.with_name("link")
    link.symlink_to(other)
    link.rename(library)


def write(library, other):
    library.write_bytes(other.read_bytes())


WAYS = {
    "renamed": (replace, "was replaced by another file"),
    "link": (replace_link, "was replaced by another file"),
    "written": (write, "was written to"),
}


class Shell:
    """A shell under `waffle-bpf run`, which runs the commands that a test sends."""

    def __init__(self, waffle, start, *options):
        self.capture = Capture(waffle, waffle.path())
        command = [waffle.program, "run", "--no-report", "-o", self.capture.path, *options]
        self.program = start(*command, "--", "sh", stderr=subprocess.PIPE)

    def runs(self, command):
        """Its output."""
        self.program.say(f"{command}; echo it has ended")
        return list(iter(self.program.line, "it has ended"))

    def says(self, text):
        """The line of standard error with it."""
        return next(line for line in self.program.process.stderr if text in line)

    def ends(self):
        """What else it has said."""
        self.program.process.stdin.close()
        said = self.program.process.stderr.read()
        self.program.finish()
        return said


@pytest.mark.parametrize("way", WAYS)
def test_short_programs_have_a_library_that_was_replaced(
    waffle, start, built, called, tmp_path, way  # noqa: F811
):
    """A program that was seen before is looked at again. What was replaced is said once."""
    change, says = WAYS[way]
    library, old = tmp_path / "libcalled.so", tmp_path / "old.so"
    shutil.copy(called, old)
    library.symlink_to(old) if way == "link" else old.rename(library)
    linked = link(built, library)
    shell = Shell(waffle, start, *ONLY, *probes(ADD))
    told = shell.runs(f"echo 'add 3' | {linked}")
    told += shell.runs(f"echo 'add 3' | {linked}")
    for i in range(2):
        other = tmp_path / f"other-{i}.so"
        shutil.copy(built("called.c", "-shared", "-fPIC", f"-O{i}", name="other.so"), other)
        change(library, other)
        if i == 0:
            assert f"{library} {says}" in shell.says(says)
            told += shell.runs(f"echo 'add 4' | {linked}")
    said = shell.ends()
    assert says not in said
    calls = [(r["a"], r["ret"]) for r in logged(told, "called_add")]
    assert len(calls) == 10
    assert args_of(called_rows(shell.capture, "called_add"), "a", "ret") == calls, said


def test_sites_of_a_library_that_was_replaced(waffle, start, user_of_library, tmp_path):  # noqa: F811
    library, user = user_of_library
    place = tmp_path / library.name
    shutil.copy(library, place)
    shell = Shell(waffle, start)
    command = f"LD_LIBRARY_PATH={tmp_path} LD_PRELOAD={place} {user}"
    shell.runs(command)
    shutil.copy(library, tmp_path / "new")
    (tmp_path / "new").rename(place)
    assert f"{place} was replaced" in shell.says("was replaced")
    shell.runs(command)
    assert "replaced" not in shell.ends()
    events = shell.capture.rows("event", name="library event")
    assert [row["args"]["i"] for row in events] == 2 * list(range(-1, 100))

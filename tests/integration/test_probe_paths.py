# SPDX-License-Identifier: Apache-2.0
"""The library of a description by its path: it is the file that the path leads to, however the
kernel, the loader and whoever describes it spell that."""

import json
import os
import pathlib
import re
import shutil

import pytest

from test_calls import ONLY, args_of, attach, begin_caller, called, caller, named, probes  # noqa: F401
from test_late import attach as attach_waiting

SPELLED = {
    "file": "real/libcalled.so.1.0",
    "soname link": "real/libcalled.so.1",
    "folder link": "linked/libcalled.so.1.0",
    "both": "linked/libcalled.so.1",
    "dots": "linked/../real/libcalled.so.1",
    "pattern": "real/*.so.1.0",
    "pattern in folder link": "linked/libc*.so.1.0",
    "pattern of folders": "linked/../re*/libcalled.so.1.0",
}


def add_of(path):
    return f"uprobe:{path}:called_add(int a, long b) -> long ret"


def lay_out(folder, library):
    """A library with its soname's link, and a link to its folder."""
    (folder / "real").mkdir()
    shutil.copy(library, folder / "real" / "libcalled.so.1.0")
    (folder / "real" / "libcalled.so.1").symlink_to("libcalled.so.1.0")
    (folder / "real" / "libcalled.so").symlink_to("libcalled.so.1.0")
    (folder / "linked").symlink_to(folder / "real")
    return folder


@pytest.fixture
def laid_out(tmp_path, called):  # noqa: F811
    return lay_out(tmp_path, called)


def listed(waffle, *arguments):
    found = json.loads(waffle.ok("list", "--json", *arguments).stdout)
    return [site["name"] for site in found["sites"] if site["call"]]


@pytest.fixture(params=["file", "both"])
def running(request, laid_out, start, caller):  # noqa: F811
    """It opens the library by one of its paths."""
    return begin_caller(start, caller, laid_out / SPELLED[request.param])


def test_list_finds_the_file_of_a_process_by_each_path(waffle, laid_out, running):
    for path in SPELLED.values():
        spec = add_of(laid_out / path)
        assert listed(waffle, *probes(spec), "--pid", running.pid) == ["called_add"], path


def test_list_finds_a_file_by_each_path(waffle, laid_out):
    for shown in ("real/libcalled.so.1.0", "linked/libcalled.so.1"):
        for path in SPELLED.values():
            spec = add_of(laid_out / path)
            assert listed(waffle, *probes(spec), laid_out / shown) == ["called_add"], path


def test_another_file_is_not_taken(waffle, laid_out, running, called):  # noqa: F811
    (laid_out / "other").mkdir()
    shutil.copy(called, laid_out / "other" / "libcalled.so.1.0")
    (laid_out / "to_other").symlink_to(laid_out / "other")
    for path in ("other/libcalled.so.1.0", "to_other/libcalled.so.1.0", "to_other/*", "nowhere/*",
                 "linked/lib", "linked"):
        result = waffle.call("list", *probes(add_of(laid_out / path)), "--pid", running.pid)
        assert result.returncode == 1 and "no file" in result.stderr, path


def test_attach_records_by_paths_with_links(laid_out, running, attach):  # noqa: F811
    paths = [laid_out / SPELLED[x] for x in ("both", "pattern in folder link")]
    attached = attach(running, laid_out / SPELLED["file"], [add_of(x) for x in paths])
    running.say("add 5")
    running.finish()
    rows = named(attached.wait(), "called_add")
    assert sorted(args_of(rows, "a")) == sorted([(i,) for i in range(5)] * len(paths))


@pytest.mark.parametrize("folder", ["real", "linked"])
@pytest.mark.parametrize("spelled", SPELLED)
def test_run_records_by_each_path(waffle, laid_out, built, called, folder, spelled):  # noqa: F811
    """The loader finds the library by a link."""
    program = built(
        "caller.c", "-Wl,--no-as-needed", f"-L{called.parent}", "-lcalled", name="linked")
    spec = add_of(laid_out / SPELLED[spelled])
    script = f"echo 'add 5' | LD_LIBRARY_PATH={laid_out / folder} exec {program}"
    capture = waffle.run("sh", "-c", script, options=[*ONLY, *probes(spec)])
    assert args_of(named(capture, "called_add"), "a") == [(i,) for i in range(5)]


def test_library_that_is_opened_later_is_armed_by_a_link(waffle, start, laid_out, caller):  # noqa: F811
    program = start(caller)
    program.until("ready")
    attached = attach_waiting(waffle, program, *ONLY, *probes(add_of(laid_out / SPELLED["both"])))
    program.say(f"open {laid_out / SPELLED['file']}\nadd 50")
    program.finish()
    assert args_of(named(attached.wait(), "called_add"), "a") == [(i,) for i in range(50)]


def libc_spelled(pid):
    """libc as the kernel shows it and by /lib, which is a link to /usr/lib."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        shown = next(x.split(None, 5)[5].strip() for x in maps if "/libc.so.6" in x)
    if not os.path.islink("/lib") or not shown.startswith("/usr/lib/"):
        pytest.skip("/lib is no link to /usr/lib here")
    name = shown.removeprefix("/usr/lib")
    return ["/usr/lib" + name, "/lib" + name, "/usr/lib/*/libc.so.6", "/lib/*/libc.so.6"]


def test_libc_by_lib_and_by_usr_lib(waffle, start, caller, called):  # noqa: F811
    program = begin_caller(start, caller, called)
    specs = [f"uprobe:{path}:malloc(size_t bytes) -> ptr ret category c{i}"
             for i, path in enumerate(libc_spelled(program.pid))]
    for spec in specs:
        assert listed(waffle, *probes(spec), "--pid", program.pid) == ["malloc"], spec
    script = f"echo plain | exec {caller} {called}"
    capture = waffle.run("sh", "-c", script, options=[*ONLY, *probes(*specs)])
    rows = [r for r in named(capture, "malloc") if r["args"]["bytes"] == 4242]
    assert sorted(r["category"] for r in rows) == [f"c{i}" for i in range(len(specs))]


def test_usdt_probes_of_a_program_by_its_link(waffle, built, tmp_path):
    program, link = built("left.c"), tmp_path / "link"
    link.symlink_to(program)
    for path in (program, link):
        for command in (program, link):
            capture = waffle.run(
                command, options=[*ONLY, *probes(f"usdt:{path}:left:step__start(int depth)")])
            assert len(named(capture, "step__start")) == 13, (path, command)


@pytest.mark.parametrize("inside", [
    "/mnt/real/libcalled.so", "/mnt/linked/libcalled.so", "/mnt/linked/*.so"])
def test_path_with_a_link_of_another_mount_namespace(
        waffle, start, attach, caller, called, inside):  # noqa: F811
    script = (
        f"mount -t tmpfs none /mnt && cp {caller} /mnt/hidden && mkdir /mnt/real && "
        f"cp {called} /mnt/real/libcalled.so && ln -s /mnt/real /mnt/linked && "
        "exec /mnt/hidden /mnt/linked/libcalled.so"
    )
    program = start("unshare", "-m", "sh", "-c", script)
    program.until("ready")
    spec = add_of(inside)
    assert listed(waffle, *probes(spec), "--pid", program.pid) == ["called_add"]
    attached = attach_waiting(waffle, program, *ONLY, *probes(spec))
    program.say("add 5")
    program.finish()
    assert args_of(named(attached.wait(), "called_add"), "a") == [(i,) for i in range(5)]


@pytest.mark.parametrize("path", [
    "/own/libcalled.so.1", "/links/libcalled.so", "/folder/libc*.so.1", "as the kernel shows it"])
def test_path_as_seen_below_another_root(waffle, start, caller, called, path):  # noqa: F811
    script = (
        "mount -t tmpfs none /mnt && mkdir /mnt/own /mnt/links /mnt/lib /mnt/lib64 /mnt/usr && "
        f"cp {caller} /mnt/caller && cp {called} /mnt/own/libcalled.so.1 && "
        "for i in usr lib lib64; do mkdir -p /mnt/$i && mount --bind /$i /mnt/$i; done && "
        "ln -s /own/libcalled.so.1 /mnt/links/libcalled.so && ln -s own /mnt/folder && "
        "exec chroot /mnt /caller /links/libcalled.so"
    )
    program = start("unshare", "-m", "sh", "-c", script)
    program.until("ready")
    if path == "as the kernel shows it":
        # "/mnt/own/libcalled.so.1", unless the tests have a root of their own.
        maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text(encoding="utf-8")
        path = re.search(r"/\S*/own/libcalled\.so\.1", maps)[0]
        assert path.endswith("/mnt/own/libcalled.so.1")
    assert listed(waffle, *probes(add_of(path)), "--pid", program.pid) == ["called_add"]

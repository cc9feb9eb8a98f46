#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that data flows one way: lint_includes.py FOLDER…, the folders of userspace/ in their order.

A file may include files of its own folder and of the folders before it. The folders of
analyze/why/ have an order as well. Within a folder, files call each other without a circle. So do
modules include each other: a module is NAME.c with NAME.h and NAME_internal.h, or one of them. A
header that only its own folder includes ends in _internal.h, one that only BPF programs include in
.bpf.h. Each tag is defined once. Tests do not count. One line a violation."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path("userspace")
SOURCES = [ROOT, pathlib.Path("usdt"), pathlib.Path("bpf"), pathlib.Path("include"), pathlib.Path("vmlinux")]
# The kernel has one for each machine.
KERNEL_BY_MACHINE = {"pt_regs"}
# What the records show; waits that do not end; the sums of an answer; calls that wait for GPUs and
# ranks; what ended a wait; its cause; the walk from thread to thread.
WHY = "analyze/why"
# The types of the folder itself, which all of them may include, use only the first one.
WHY_TYPES = re.compile(r"why_(\w+_)?types\.h|why_verdict\.h")
WHY_FOLDERS = ("lookup", "hang", "parts", "await", "series", "cause", "walk")
MAY_EXIT = ("util", "model", "symbolize", "analyze", "render", "export", "cmd")
TAG = re.compile(r"\b(?:struct|union|enum) (\w+)\s*\{")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# The definition of a function, whose body begins on a line of its own.
DEFINITION = re.compile(r"^(static )?\w[\w \*]*?[ \*](\w+)\([^;{}]*\)\n\{", re.MULTILINE)
# A function is called or its address taken; tags and members may have the name of one.
USE = re.compile(r"(?<!struct )(?<!enum )(?<!\.)(?<!->)\b[a-z_]\w*\b(?=[(,);}])")


def folder_order(folders):
    place = {folder: at for at, folder in enumerate(folders)}
    for path in sorted(ROOT.rglob("*.[ch]")):
        folder = path.relative_to(ROOT).parts[0]
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            other = pathlib.PurePath(include).parts[0]
            if (ROOT / include).exists() and place.get(other, -1) > place.get(folder, len(folders)):
                yield f"{path}: includes {include}, but {other}/ comes after {folder}/"


def why_order():
    """The files of the folder itself may be included by all, so only its folders have an order."""
    place = {f"{WHY}/{folder}": at for at, folder in enumerate(WHY_FOLDERS)}
    for path in sorted((ROOT / WHY).rglob("*.[ch]")):
        own = path.relative_to(ROOT).parent.as_posix()
        last = 0 if own == WHY and WHY_TYPES.fullmatch(path.name) else place.get(own, len(place))
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            other = pathlib.PurePath(include).parent.as_posix()
            if place.get(other, -1) > last:
                yield f"{path}: includes {include}, but {other}/ comes later"


def exits():
    """util/memory.h ends the process, so what traces programs or writes files must not use it."""
    for path in sorted(ROOT.rglob("*.[ch]")):
        if (path.relative_to(ROOT).parts[0] not in MAY_EXIT
                and "util/memory.h" in INCLUDE.findall(path.read_text(encoding="utf-8"))):
            yield f"{path}: includes util/memory.h, which is only for {', '.join(MAY_EXIT)}"


def files_used():
    """For each source file the files of its folder whose functions it names."""
    texts = {path.relative_to(ROOT).as_posix(): NO_CODE.sub('""', path.read_text(encoding="utf-8"))
             for path in sorted(ROOT.rglob("*.c"))}
    home, own = {}, collections.defaultdict(set)
    for name, text in texts.items():
        for static, function in DEFINITION.findall(text):
            if static:
                own[name].add(function)
            else:
                home[function] = name
    used = {}
    for name, text in texts.items():
        others = {home.get(word) for word in set(USE.findall(text)) - own[name]} - {None, name}
        used[name] = {other for other in others if other.split("/")[0] == name.split("/")[0]}
    return used


def reached(used, start):
    seen, left = set(), [start]
    while left:
        for other in used[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def circles(used):
    """The largest sets of files of which each uses all others, if only by way of some of them."""
    reach = {name: reached(used, name) for name in used}
    found = {tuple(sorted(other for other in reach[name] if name in reach[other]))
             for name in used if name in reach[name]}
    return sorted(found)


def call_circles():
    for circle in circles(files_used()):
        yield f"userspace/: these files call each other in a circle: {' '.join(circle)}"


def modules_included():
    """For each module the others that it includes."""
    module = lambda path: re.sub(r"(_internal)?\.[ch]$", "", path)
    included = collections.defaultdict(set)
    for path in sorted(ROOT.rglob("*.[ch]")):
        name = path.relative_to(ROOT).as_posix()
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if (ROOT / include).exists() and module(include) != module(name):
                included[module(name)].add(module(include))
                included[module(include)]  # a module that includes none has an entry, too
    return dict(included)


def include_circles():
    for circle in circles(modules_included()):
        yield f"userspace/: these modules include each other in a circle: {' '.join(circle)}"


def sources():
    return {path: path.read_text(encoding="utf-8")
            for root in SOURCES for path in sorted(root.rglob("*.[ch]"))}


def header_names(texts):
    users = collections.defaultdict(set)
    for path, text in texts.items():
        for include in INCLUDE.findall(text):
            for header in (ROOT / include, pathlib.Path(include), path.parent / include):
                if header in texts:
                    users[header].add(path)
                    break
    for header, used_by in users.items():
        of_bpf = header.parts[0] == "bpf" and all(path.parts[0] == "bpf" for path in used_by)
        of_folder = (header.parts[0] == ROOT.name
                     and all(path.parent == header.parent for path in used_by))
        if of_bpf != header.name.endswith(".bpf.h"):
            yield f"{header}: .bpf.h is for what only BPF programs include, and only for that"
        if of_folder != header.name.endswith("_internal.h"):
            yield f"{header}: _internal.h is for what only its folder includes, and only for that"


def tags_once(texts):
    places = collections.defaultdict(list)
    for path, text in texts.items():
        for tag in TAG.findall(NO_CODE.sub('""', text)):
            places[tag].append(path)
    for tag, paths in places.items():
        if len(paths) > 1 and tag not in KERNEL_BY_MACHINE:
            yield f"{tag}: defined in {' and '.join(map(str, paths))}"


def main(folders):
    texts = sources()
    bad = [*folder_order(folders), *why_order(), *exits(), *call_circles(), *include_circles(),
           *header_names(texts), *tags_once(texts)]
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

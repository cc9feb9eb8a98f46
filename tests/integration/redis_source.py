#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a redis-server with waffle's macros in it, out of the Debian source package.

	redis_source.py [FOLDER]	prints the path of the server

The source comes through apt from the mirrors that the system uses already, with a configuration of
our own, since many systems have no deb-src in theirs. Under FOLDER (default build/redis) the source
and the server are kept: a second run needs no network, and builds only after a change of a macro or
of a header.
"""

import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# File, text before which or behind which a macro goes, and the macro. "name(" is the definition of
# that function, whose body the macro then begins.
INSERTIONS = [
    ("server.c", "call(", 'WAFFLE_SPAN("call", KV_STR("command", c->cmd->fullname), '
     'KV_I64("argc", c->argc), KV_U64("client", c->id));'),
    ("server.c", "processCommand(", 'WAFFLE_SPAN("processCommand", KV_I64("argc", c->argc));'),
    ("server.c", "beforeSleep(", 'WAFFLE_SPAN("beforeSleep");'),
    ("server.c", "serverCron(", 'WAFFLE_SPAN("serverCron", KV_I64("hz", server.hz));'),
    ("server.c", "serverCron(", 'WAFFLE_COUNTER("clients", listLength(server.clients));'),
    ("networking.c", "readQueryFromClient(",
     'WAFFLE_SPAN("readQueryFromClient", KV_PTR("connection", conn));'),
    ("networking.c", "writeToClient(",
     'WAFFLE_SPAN("writeToClient", KV_U64("client", c->id), KV_BOOL("handler", handler_installed));'),
    ("networking.c", "createClient(",
     'WAFFLE_LOG_INFO("client created", KV_PTR("connection", conn));'),
    ("db.c", "deleteExpiredKeyAndPropagate(",
     'WAFFLE_EVENT("expired", KV_STR("key", keyobj->ptr), KV_I64("db", db->id));'),
    ("evict.c", "server.stat_evictedkeys++;", 'WAFFLE_EVENT("evicted", KV_STR("key", bestkey));'),
]


def insert(text, where, macro):
    """The text of a C file with the macro at that one place."""
    if where.endswith("("):
        place = re.compile(rf"^\w[\w *]*\b{re.escape(where)}[^;{{]*\)\s*\{{$", re.MULTILINE)
    else:
        place = re.compile(re.escape(where))
    found = list(place.finditer(text))
    assert len(found) == 1, f"{where}: found {len(found)} times"
    return f"{text[:found[0].end()]}\n\t{macro}\n{text[found[0].end():]}"


def instrument(source):
    """Puts all macros into an unpacked source."""
    for name in sorted({row[0] for row in INSERTIONS}):
        path = source / "src" / name
        text = path.read_text(encoding="utf-8")
        # Backwards: the last one inserted at a place stands first.
        for _, where, macro in reversed([row for row in INSERTIONS if row[0] == name]):
            text = insert(text, where, macro)
        # Behind redis's own headers, which choose what the system's headers declare.
        text = text.replace('#include "server.h"\n', '#include "server.h"\n#include <waffle.h>\n', 1)
        path.write_text(text, encoding="utf-8")


def run(*command, log, **options):
    with open(log, "a", encoding="utf-8") as out:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        tail = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")[-3000:]
        raise RuntimeError(f"{command[0]}: exit status {done.returncode}\n{tail}")


def apt_sources(folder):
    """The system's sources with source packages in place of binary ones."""
    folder.mkdir(parents=True)
    for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
        text = pathlib.Path(path).read_text(encoding="utf-8")
        text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
        (folder / pathlib.Path(path).name).write_text(text, encoding="utf-8")
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if os.path.exists(path):
            lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
            lines = [re.sub(r"^deb\s", "deb-src ", line) for line in lines
                     if re.match(r"deb\s", line)]
            (folder / pathlib.Path(path).name).write_text("\n".join(lines) + "\n",
                                                          encoding="utf-8")


def download(folder):
    """The upstream archive of the Debian source package."""
    kept = sorted(folder.glob("redis_*.orig.tar.*"))
    if kept:
        return kept[0]
    shutil.rmtree(folder, ignore_errors=True)
    apt = folder / "apt"
    apt_sources(apt / "sources")
    for needed in ("lists/partial", "cache/archives/partial"):
        (apt / needed).mkdir(parents=True)
    options = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": apt / "sources",
               "Dir::State::lists": apt / "lists", "Dir::Cache": apt / "cache",
               "APT::Sandbox::User": "root", "Acquire::Retries": "3"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    log = folder / "download.log"
    run("apt-get", "-q", *words, "update", log=log, cwd=folder)
    run("apt-get", "-q", *words, "source", "--download-only", "redis", log=log, cwd=folder)
    shutil.rmtree(apt)
    [archive] = folder.glob("redis_*.orig.tar.*")
    return archive


def fingerprint(archive):
    """Of all that the server is made of."""
    digest = hashlib.sha256(repr(INSERTIONS).encode() + archive.read_bytes())
    for path in sorted(ROOT.glob("include/**/*.h")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build(folder=ROOT / "build" / "redis"):
    """The path of the server, built if it is not there."""
    folder = pathlib.Path(folder).resolve()
    archive = download(folder / "source")
    place = folder / fingerprint(archive)
    server = place / "redis-server"
    if server.exists():
        return server
    for old in folder.glob("*/redis-server"):
        shutil.rmtree(old.parent)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    run("tar", "-xf", archive, "-C", place, log=place / "build.log")
    [source] = [path for path in place.iterdir() if path.is_dir()]
    instrument(source)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "BUILD")}
    run("make", "-C", source / "src", f"-j{os.cpu_count() or 2}", "MALLOC=libc", "OPTIMIZATION=-O2",
        "BUILD_TLS=no", "USE_SYSTEMD=no", f"REDIS_CFLAGS=-I{ROOT}/include", "redis-server",
        log=place / "build.log", env=environment)
    shutil.move(source / "src" / "redis-server", server)
    shutil.rmtree(source)
    return server


if __name__ == "__main__":
    print(build(*sys.argv[1:2]))

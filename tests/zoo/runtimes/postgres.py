# SPDX-License-Identifier: Apache-2.0
"""postgres.py WAY SEED: the victim is a client of PostgreSQL.
	lock	its update waits for a row that another client's transaction has, whose backend computes
	fsync	its commit waits for a disk that is slow for its backend
"""

import os
import pathlib
import pwd
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

import said

ROUNDS = 6
SETTINGS = ("listen_addresses=", "autovacuum=off", "max_logical_replication_workers=0", "jit=off",
            "max_parallel_workers=0", "checkpoint_timeout=1h", "wal_compression=off")


class Client:
    """A session, by the protocol of version 3."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{folder}/.s.PGSQL.5432")
        start = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.send(struct.pack("!i", len(start) + 4) + start)
        self.pid = struct.unpack("!i", re.search(rb"K\0\0\0\x0c(....)", self.end(), re.S)[1])[0]

    def say(self, query):
        text = query.encode() + b"\0"
        self.socket.send(b"Q" + struct.pack("!i", len(text) + 4) + text)

    def end(self):
        """What comes until the server is ready for the next query."""
        got = b""
        while not re.search(rb"Z\0\0\0\x05[ITE]$", got):
            more = self.socket.recv(65536)
            assert more and b"FATAL" not in more and b"ERROR" not in more, got + more
            got += more
        return got

    def ask(self, query):
        self.say(query)
        return self.end()


def newest_server():
    return max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[4]))


def start(folder):
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder, "stdout": subprocess.DEVNULL}
    programs = newest_server()
    subprocess.run([programs / "initdb", "-D", f"{folder}/data", "-A", "trust", "-N", "-U", "postgres"], check=True,
                   **as_user)
    with open(f"{folder}/log", "wb") as log:
        server = subprocess.Popen([programs / "postgres", "-D", f"{folder}/data", "-k", folder,
                                   *[word for setting in SETTINGS for word in ("-c", setting)]], stderr=log, **as_user)
    while "ready to accept" not in pathlib.Path(folder, "log").read_text():
        time.sleep(0.01)
    return server


def wait_for_lock(i):
    """The other transaction has the row; its backend's time between both looks is the cause."""
    other.ask("begin; update rows set x = 1")
    before = said.ran(other.pid)
    begin = said.now()
    other.say(f"select count(*) from generate_series(1, {400000 + 40000 * ((said.seed() + i) % 5)}); commit")
    victim.ask("update rows set x = 2")
    end = said.now()
    other.end()
    said.victim(i, begin, end)
    said.cause(i, "lock", said.ran(other.pid) - before, "postgres", other.pid)


def commit(i):
    """What does not run is the disk's."""
    before = said.ran(victim.pid)
    begin = said.now()
    victim.ask(f"insert into texts select md5(n::text) from generate_series(1, {6000 + 500 * ((said.seed() + i) % 5)}) n")
    end = said.now()
    said.victim(i, begin, end)
    said.cause(i, "disk-write", end - begin - (said.ran(victim.pid) - before), "postgres", victim.pid)


with tempfile.TemporaryDirectory(dir=os.environ["ZOO_DIR"]) as folder:
    server = start(folder)
    victim, other = Client(folder), Client(folder)
    victim.ask("create table rows(x int); insert into rows values(0); create table texts(x text)")
    victim.ask("checkpoint")
    said.name("victim")
    if sys.argv[1] == "fsync":
        pathlib.Path(os.environ["ZOO_BLKIO"], "tasks").write_text(str(victim.pid), encoding="ascii")
    said.go(server.pid, victim.pid, other.pid)
    for number in range(ROUNDS):
        wait_for_lock(number) if sys.argv[1] == "lock" else commit(number)
    server.terminate()
    victim.socket.close()
    other.socket.close()
    server.wait()

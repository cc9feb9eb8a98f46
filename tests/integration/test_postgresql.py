# SPDX-License-Identifier: Apache-2.0
"""A server that nobody here wrote or built: Debian's PostgreSQL under pgbench, traced by its own
USDT probes, the counts compared with the statistics that it keeps itself."""

import collections
import json
import os
import pathlib
import pwd
import signal
import subprocess
import tempfile
import time

import pytest
from tracer import wait_until

TRANSACTIONS = 400
CLIENTS = 4


def newest_server():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"),
                   key=lambda path: int(path.parts[4]))
    assert found, "PostgreSQL is not installed; run make setup"
    return found[-1].parent


class Psql:
    """One session that stays open, so that its work can be distinguished from that of others."""

    def __init__(self, start, server, database):
        self.program = start(server.bin / "psql", "-XAtq", "-h", server.folder, "-U", "postgres",
                             "-d", database)
        self.pid = int(self.ask("select pg_backend_pid()"))

    def ask(self, query):
        self.program.say(query + ";")
        return self.program.line()


class Server:
    """A cluster of its own: no background worker runs transactions."""

    settings = ("listen_addresses=", "autovacuum=off", "max_logical_replication_workers=0",
                "fsync=off", "jit=off", "max_parallel_workers=0")

    def __init__(self, folder, start):
        self.bin = newest_server()
        self.path = self.bin / "postgres"
        self.folder = folder
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder}
        subprocess.run([self.bin / "initdb", "-D", folder / "data", "-A", "trust", "-N",
                        "-U", "postgres"], check=True, stdout=subprocess.DEVNULL, **as_user)
        options = [word for setting in self.settings for word in ("-c", setting)]
        with open(folder / "log", "wb") as log:
            self.program = start(self.path, "-D", folder / "data", "-k", folder, *options,
                                 stderr=log, **as_user)
        self.pid = self.program.pid
        wait_until(lambda: "ready to accept" in (folder / "log").read_text(), "PostgreSQL to start")
        self.run("createdb", "bench")
        self.run("pgbench", "-i", "-q", "-s", "1", "bench")

    def run(self, name, *words):
        return subprocess.run([self.bin / name, "-h", self.folder, "-U", "postgres", *words],
                              check=True, capture_output=True, text=True).stdout

    def stop(self):
        self.program.process.send_signal(signal.SIGINT)  # does not wait for its clients
        self.program.process.wait(20)


@pytest.fixture
def server(start):
    # Not pytest's own folder: that is for root only, and the server does not run as root.
    with tempfile.TemporaryDirectory(prefix="waffle-postgresql-") as folder:
        made = Server(pathlib.Path(folder), start)
        yield made
        made.stop()


def statistics(monitor):
    commits, rollbacks = monitor.ask(
        "select xact_commit || ' ' || xact_rollback from pg_stat_database "
        "where datname = 'bench'").split()
    return collections.Counter(commit=int(commits), abort=int(rollbacks))


def settled(monitor, backends=0):
    """The statistics once those who made them have ended."""
    count = "select count(*) from pg_stat_activity where datname = 'bench'"
    wait_until(lambda: int(monitor.ask(count)) == backends, "clients to be gone")
    return statistics(monitor)


def bench(server, *words):
    return server.run("pgbench", "-n", "-c", str(CLIENTS), "-t", str(TRANSACTIONS // CLIENTS),
                      *words, "bench")


def test_transactions_are_as_many_as_postgresql_counts(waffle, server, start):
    monitor = Psql(start, server, "postgres")
    before = settled(monitor)
    attached = waffle.attach("-p", server.pid, "--follow", "--machine-wide", "-q", "--no-report", "--no-sched",
                             "--probe", "usdt:postgres:postgresql:transaction__commit as event commit",
                             "--probe", "usdt:postgres:postgresql:transaction__abort as event abort",
                             "--probes", "postgresql")
    attached.wait_links(2)
    bench(server)
    server.run("psql", "-XAtqc", "begin; select 1; rollback", "bench")
    after = settled(monitor)
    capture = attached.stop(30)

    capture.check_sums(lost=0)
    rows = [row for row in capture.rows() if row.get("pid") not in (monitor.pid, server.pid)]
    counts = collections.Counter(row["name"] for row in rows if row["kind"] == "event")
    assert after["commit"] - before["commit"] >= TRANSACTIONS
    assert counts["commit"] == after["commit"] - before["commit"]
    assert counts["abort"] == after["abort"] - before["abort"] == 1

    # Each of them was a span, with its queries inside.
    spans = [row for row in rows if row["kind"] == "span" and row["category"] == "postgresql"]
    named = collections.defaultdict(list)
    for row in spans:
        named[row["name"]].append(row)
    assert len(named["transaction"]) == counts["commit"] + counts["abort"]
    texts = collections.Counter(row["args"]["query"].split()[0].rstrip(";") for row in named["query"])
    assert texts["UPDATE"] == 3 * TRANSACTIONS
    assert texts["INSERT"] == texts["BEGIN"] == texts["END"] == TRANSACTIONS
    by_id = {row["id"]: row for row in spans}
    inside = collections.Counter(by_id[row["parent"]]["name"] for row in spans
                                 if row["name"] == "plan" and row.get("parent") in by_id)
    assert inside["query"] > 4 * TRANSACTIONS
    for row in named["execute"]:
        if row.get("parent") in by_id:
            parent = by_id[row["parent"]]
            assert parent["start_ns"] <= row["start_ns"] <= row["end_ns"] <= parent["end_ns"]


ERRORS = """
begin;
select 1/0;
select 'refused';
rollback;
do $$ begin perform 1/0; exception when others then null; end $$;
syntax error here;
select 'last';
"""


def test_errors_leave_no_span_open(waffle, server):
    attached = waffle.attach("-p", server.pid, "--follow", "--machine-wide", "-q", "--no-report", "--no-sched",
                             "--probes", "postgresql")
    attached.wait_links(2)
    said = subprocess.run([server.bin / "psql", "-XAtq", "-h", server.folder, "-U", "postgres",
                           "-d", "bench"], input=ERRORS, capture_output=True, text=True, check=True)
    assert said.stdout == "last\n" and said.stderr.count("ERROR: ") == 3
    capture = attached.stop(60)
    capture.check_sums(lost=0)
    queries = capture.rows("span", category="postgresql", name="query")
    assert len(queries) == 7
    for row in queries:
        text = row["args"]["query"]
        assert "unfinished" not in row and "parent" not in row
        assert row.get("left", False) == text.startswith(("select 1/0", "select 'ref", "syntax"))
    by_id = {row["id"]: row for row in queries}
    for row in capture.rows("span", category="postgresql", name="execute"):
        assert "left" not in row and "unfinished" not in row
        if row.get("parent") in by_id:
            assert "left" not in by_id[row["parent"]]


def test_filter_leaves_probes_dormant(waffle, server):
    attached = waffle.attach("-p", server.pid, "--follow", "--machine-wide", "-q", "--no-report", "--no-sched",
                             "--probe", "usdt:postgres:postgresql:query__start(str text) "
                                        "as event query",
                             "--probe", "usdt:postgres:postgresql:transaction__commit as event "
                                        "commit category done",
                             "--filter", 'category == "done"')
    attached.wait_links(1)
    bench(server)
    rows = attached.stop(30).rows("event")
    assert {row["name"] for row in rows} == {"commit"}
    assert len(rows) >= TRANSACTIONS


def test_unknown_probe_of_the_server_is_said_with_near_names(waffle, server):
    attached = waffle.attach("-p", server.pid, "-q", "--no-report", "-d", "1s",
                             "--probe", "usdt:postgres:postgresql:query__strat")
    out, err = attached.process.communicate(timeout=60)
    assert "no USDT probe 'query__strat' in " in err and "did you mean query__start" in err, err + out


def test_why_of_a_running_server_finds_who_held_the_lock(waffle, server, start):
    """One command, nothing prepared: a session waits for a row that another one has locked for the
    whole recording. All backends existed before it."""
    holder, waiter = Psql(start, server, "bench"), Psql(start, server, "bench")
    monitor = Psql(start, server, "postgres")
    holder.ask("begin; update pgbench_branches set bbalance = 1 where bid = 1; select 1")
    waiter.program.say("update pgbench_branches set bbalance = 2 where bid = 1;")
    waiting = f"select count(*) from pg_locks where pid = {waiter.pid} and not granted"
    wait_until(lambda: monitor.ask(waiting) != "0", "the second session to wait")
    path = waffle.path()
    done = waffle.ok("why", "--pid", server.pid, "--duration", "1s", "-o", path)
    assert "The longest waits:" in done.stdout
    threads = json.loads(waffle.ok("report", "--json", path).stdout)["threads"]
    assert {server.pid, holder.pid, waiter.pid, monitor.pid} <= {one["pid"] for one in threads}
    # All threads of one name together, as PostgreSQL names its backends.
    together = waffle.ok("why", "--thread", "postgres", path).stdout
    assert f"{len(threads)} threads named postgres, together " in together
    assert str(waiter.pid) in together
    holder.ask("commit; select 1")


@pytest.mark.parametrize("ends", (True, False))
def test_why_of_a_backend_that_waits_for_a_row_says_lock(waffle, server, start, ends):
    """The holder is not recorded: it is known if it ends the wait during the capture. After a second
    the backend looks for deadlocks, which ends nothing."""
    holder, waiter = Psql(start, server, "bench"), Psql(start, server, "bench")
    monitor = Psql(start, server, "postgres")
    holder.ask("begin; update pgbench_branches set bbalance = 1 where bid = 1; select 1")
    attached = waffle.attach("-p", waiter.pid, "-q", "--no-report", "--stacks", "sched")
    attached.wait_ready()
    waiter.program.say("update pgbench_branches set bbalance = 2 where bid = 1;")
    waiting = f"select count(*) from pg_locks where pid = {waiter.pid} and not granted"
    wait_until(lambda: monitor.ask(waiting) != "0", "the second session to wait")
    time.sleep(1.2)
    if ends:
        holder.ask("commit; select 1")
        wait_until(lambda: monitor.ask(waiting) == "0", "the second session to go on")
    capture = attached.stop(60)
    [instance] = json.loads(waffle.ok("why", "--json", "--thread", waiter.pid, capture.path).stdout)["instances"]
    [lock, *others] = [cause for cause in instance["causes"] if cause["cause"] == "lock"]
    assert not others and lock["duration_ns"] > 1_100_000_000
    assert lock["culprit"]["object"] == "the lock of a row in PostgreSQL"
    assert (lock["culprit"]["tid"], lock["grade"]) == (holder.pid if ends else None, "likely")
    assert not any(cause["cause"] in ("timer", "not-recorded") and cause["share"] > 0.05 for cause in instance["causes"])
    if not ends:
        holder.ask("commit; select 1")

# SPDX-License-Identifier: Apache-2.0
"""Several files as one job: a file of each rank of real MPI jobs, two captures at once of processes
that take turns on a CPU, and files that do not belong together."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import tempfile

import pytest
from tracer import (
    PROGRAMS,
    Program,
    compile_with_waffle,
    find_tool,
    tries,
    wait_until,
)

RANKS = 3
LIBRARIES = {"openmpi": ("--allow-run-as-root", "--oversubscribe"), "mpich": ()}


def ok(waffle, *arguments):
    return waffle.ok(*arguments)


def raw(waffle, *arguments):
    """What it writes to standard output, as bytes."""
    return subprocess.run([waffle.program, *arguments], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def attach_all(waffle, paths, targets):
    """One waffle-bpf for each file, all of them recording."""
    attached = [
        waffle.attach(*[word for pid in own for word in ("--pid", pid)], "-q", "--no-report",
                      path=path)
        for path, own in zip(paths, targets)
    ]
    for one, path in zip(attached, paths):
        wait_until(path.exists, f"{path} to be recorded")
        # The file gets its name a little before the scheduler is recorded: then the tracer waits.
        loop = pathlib.Path(f"/proc/{one.process.pid}/wchan")
        wait_until(lambda loop=loop: "epoll" in loop.read_text(), f"{path} to be recorded")
    return attached


def read_json(waffle, command, *arguments):
    return json.loads(ok(waffle, command, "--json", *arguments).stdout)


@pytest.fixture(scope="module", params=LIBRARIES)
def job(request, waffle_program, tmp_path_factory):
    """A folder with a file of each rank."""
    folder = tmp_path_factory.mktemp("job")
    library = request.param
    subprocess.run([find_tool(f"mpicc.{library}"), "-O2", "-g", "-o", folder / "ring",
                    PROGRAMS / "mpi_ring.c"], check=True)
    subprocess.run([find_tool(f"mpirun.{library}"), *LIBRARIES[library], "-n", str(RANKS),
                    waffle_program, "run", "-q", "--no-report", "--user", "root",
                    "--probes", "mpi", "-o", folder / "job.%h.%r.waffle", "--",
                    folder / "ring", folder], check=True, timeout=120)
    return folder


def files_of(folder):
    return sorted(folder.glob("job.*.waffle"))


# ---- a file of each rank ----


def test_every_rank_has_a_file_named_by_host_and_rank(job):
    names = [f"job.{socket.gethostname()}.{rank}.waffle" for rank in range(RANKS)]
    assert [file.name for file in files_of(job)] == names


def test_job_has_what_its_files_have(waffle, job):
    files = files_of(job)
    alone = [read_json(waffle, "info", file) for file in files]
    together = read_json(waffle, "info", *files)
    for key in ("spans", "events"):
        assert together[key] == sum(one[key] for one in alone)
    for key in ("produced", "delivered", "lost"):
        assert together["records"][key] == sum(one["records"][key] for one in alone)
    assert together["start_ns"] == min(one["start_ns"] for one in alone)
    assert together["end_ns"] == max(one["end_ns"] for one in alone)
    assert "hosts" not in together  # one boot
    assert [one["file"] for one in together["captures"]] == [str(file) for file in files]
    [ranks] = together["jobs"]
    assert (ranks["ranks"], ranks["world_size"], ranks["ranks_missing"]) == (RANKS, RANKS, [])
    traced = {one["rank"]: one for one in together["processes"] if "rank" in one}
    assert sorted(traced) == list(range(RANKS))
    for rank, file in enumerate(files):
        [own] = [one for one in alone[rank]["processes"] if one.get("rank") == rank]
        assert traced[rank]["pid"] == own["pid"]


def test_threads_times_are_those_of_their_own_files(waffle, job):
    """A neighbour that another file traced changes nothing."""
    files = files_of(job)
    together = {one["tid"]: one for one in read_json(waffle, "report", *files)["threads"]}
    for file in files:
        for thread in read_json(waffle, "report", file)["threads"]:
            if "running_ns" not in thread:
                continue
            other = together[thread["tid"]]
            for state in ("running_ns", "runnable_ns", "blocked_ns"):
                # The first of two records of a switch counts for both threads.
                assert abs(other[state] - thread[state]) <= 0.02 * thread[state] + 100_000, thread


def test_merged_file_shows_the_same(waffle, job, tmp_path):
    files, one = files_of(job), tmp_path / "all.waffle"
    told = ok(waffle, "merge", "-o", one, *files).stdout
    delivered = re.search(r"([\d,]+) delivered", ok(waffle, "info", one).stdout).group(1)
    assert f": {delivered} records of {RANKS} captures from 1 host" in told
    for command in (("info", "--json"), ("info",), ("report", "--json"), ("report",),
                    ("why", "--json", "--slowest", "3"), ("view",),
                    ("export", "--format", "perfetto", "-o", "-"),
                    ("export", "--format", "chrome", "-o", "-")):
        many = raw(waffle, *command, *files)
        assert raw(waffle, *command, one) == many, command
        assert many
    # In a merged file records are numbered by time.
    rows = [
        [{key: value for key, value in json.loads(line).items() if key != "record"}
         for line in raw(waffle, "export", "--format", "ndjson", "-o", "-", *names).splitlines()]
        for names in (files, [one])
    ]
    assert rows[0] == rows[1]


def test_missing_rank_is_told_by_every_command(waffle, job, tmp_path):
    files = files_of(job)
    told = waffle.call("report", *files[1:])
    assert told.returncode == 0
    assert f"no file has rank 0 of {RANKS}" in told.stderr
    merged = tmp_path / "all.waffle"
    ok(waffle, "merge", "-o", merged, *files[1:])
    assert waffle.call("report", merged).stderr == told.stderr
    [ranks] = read_json(waffle, "info", *files[1:])["jobs"]
    assert ranks["ranks_missing"] == [{"from": 0, "to": 0}]
    assert "missing: 0" in ok(waffle, "info", *files[1:]).stdout


def test_same_file_and_its_copy_are_an_error(waffle, job, tmp_path):
    files = files_of(job)
    copy = tmp_path / "copy.waffle"
    shutil.copy(files[0], copy)
    for other in (files[0], copy):
        refused = waffle.call("report", files[0], other)
        assert refused.returncode == 1
        assert f"{files[0]} and {other} are the same capture; give it once" in refused.stderr


def test_cut_off_file_is_told_and_the_rest_is_used(waffle, job, tmp_path):
    files = files_of(job)
    cut = tmp_path / files[0].name
    cut.write_bytes(files[0].read_bytes()[:-400])
    told = waffle.call("info", "--json", cut, *files[1:])
    assert told.returncode == 0
    assert f"{cut} is still being recorded, or was cut off: its last records are missing" in told.stderr
    info = json.loads(told.stdout)
    assert [one["truncated"] for one in info["captures"]] == [True] + [False] * (RANKS - 1)
    whole = read_json(waffle, "info", *files)
    assert 0 < info["spans"] <= whole["spans"]


# ---- several hosts ----


@pytest.fixture(scope="module")
def hosts(job, waffle_program, tmp_path_factory):
    """The same files, as if each rank had been on a host of its own."""
    folder = tmp_path_factory.mktemp("hosts")
    skew = compile_with_waffle(waffle_program, "skew_capture.c", folder / "skew")
    files = [folder / f"host.{rank}.waffle" for rank in range(RANKS)]
    for rank, file in enumerate(files):
        subprocess.run([skew, files_of(job)[rank], file, f"node-{rank}",
                        str(rank * 3600 * 10**9), str(rank * 1e-5), str(rank * 10**6)], check=True)
    return files


def test_processes_have_rank_and_host_in_every_output(waffle, job, hosts):
    info = read_json(waffle, "info", *hosts)
    assert [host["name"] for host in info["hosts"]] == [f"node-{rank}" for rank in range(RANKS)]
    alone = [read_json(waffle, "info", file)["processes"] for file in files_of(job)]
    for rank in range(RANKS):
        [own] = [one for one in info["processes"] if one.get("rank") == rank]
        [before] = [one for one in alone[rank] if one.get("rank") == rank]
        assert (own["host"], own["pid"]) == (f"node-{rank}", before["pid"])
        place = f"({own['pid']}, rank {rank} on node-{rank})"
        assert place in ok(waffle, "view", *hosts).stdout
        assert place in ok(waffle, "why", "--thread", own["pid"], *hosts).stdout
        threads = read_json(waffle, "report", *hosts)["threads"]
        assert [one["host"] for one in threads if one.get("rank") == rank and
                one["tid"] == own["pid"]] == [f"node-{rank}"]
        rows = [json.loads(line) for line in
                raw(waffle, "export", "--format", "ndjson", "-o", "-", *hosts).splitlines()]
        assert {row["host"] for row in rows if row.get("rank") == rank} == {f"node-{rank}"}
        assert f"ring rank {rank} on node-{rank}".encode() in \
            raw(waffle, "export", "--format", "perfetto", "-o", "-", *hosts)


def test_merged_file_of_several_hosts_shows_the_same(waffle, hosts, tmp_path):
    one = tmp_path / "all.waffle"
    ok(waffle, "merge", "-o", one, *hosts)
    for command in (("info", "--json"), ("report", "--json"), ("why", "--json", "--slowest", "3"),
                    ("view",), ("export", "--format", "perfetto", "-o", "-"),
                    ("export", "--format", "chrome", "-o", "-")):
        assert raw(waffle, *command, one) == raw(waffle, *command, *hosts), command
    refused = waffle.call("report", one, hosts[0])
    assert refused.returncode == 1
    assert "was merged from files of 3 hosts" in refused.stderr


def test_rank_that_was_started_again_is_told(waffle, tmp_path):
    environment = os.environ | {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "7"}
    paths = [tmp_path / name for name in ("first.waffle", "second.waffle")]
    for path in paths:
        subprocess.run([waffle.program, "run", "-q", "--no-report", "--user", "root", "-o", path,
                        "--", "sleep", "0.05"], check=True, env=environment)
    [ranks] = read_json(waffle, "info", *paths)["jobs"]
    assert (ranks["ranks"], ranks["ranks_restarted"]) == (1, 1)
    assert "ranks       1 of 2 of job slurm:7, missing: 0; started again: 1" in \
        ok(waffle, "info", *paths).stdout


# ---- two captures at once ----


def load_times(waffle, files, load):
    """A thread's time in each state during its load."""
    rows = [json.loads(line) for line in
            raw(waffle, "export", "--format", "ndjson", "-o", "-", *files).splitlines()]
    sums = {"running": 0, "runnable": 0, "blocked": 0}
    for row in rows:
        if row["kind"] == "sched" and row["tid"] == load["pid"]:
            begin, end = max(row["start_ns"], load["begin"]), min(row["end_ns"], load["end"])
            sums[row["name"]] += max(0, end - begin)
    return sums


@tries(3)
def test_two_captures_at_once_are_as_one_of_both(waffle, built, tmp_path):
    """Each has the switches between the two processes from its own side."""
    program = Program([built("pair.c"), "600"])
    pids = [int(pid) for pid in program.until("pids").split()]
    paths = [tmp_path / name for name in ("left.waffle", "right.waffle", "both.waffle")]
    targets = ([pids[0]], [pids[1]], pids)
    attached = attach_all(waffle, paths, targets)
    program.say("go")
    loads = [dict(pair.split("=") for pair in program.until("load").split()) for _ in pids]
    loads = [{key: int(value) for key, value in load.items()} for load in loads]
    for one in attached:
        one.stop()
    program.say("end")
    program.finish()
    for load in loads:
        joined, both = load_times(waffle, paths[:2], load), load_times(waffle, paths[2:], load)
        whole = load["end"] - load["begin"]
        assert abs(sum(joined.values()) - whole) < 0.01 * whole
        for state, ns in both.items():
            assert abs(joined[state] - ns) < 0.01 * whole, (state, joined, both)
        for state in ("running", "runnable"):
            assert abs(joined[state] - load[state]) < 0.02 * whole, (state, joined, load)
    # A switch between the two is one.
    switches = [read_json(waffle, "info", *names)["switches"] for names in (paths[:2], paths[2:])]
    assert abs(switches[0] - switches[1]) < 0.05 * switches[1]


def test_process_in_two_files_of_one_time_is_an_error(waffle, built, tmp_path):
    program = Program([built("pair.c"), "50"])
    pid = program.until("pids").split()[0]
    paths = [tmp_path / name for name in ("one.waffle", "two.waffle")]
    attached = attach_all(waffle, paths, [[pid], [pid]])
    program.say("go")
    program.until("load")
    for one in attached:
        one.stop()
    program.say("end")
    program.finish()
    refused = waffle.call("report", *paths)
    assert refused.returncode == 1
    assert f"{paths[0]} and {paths[1]} both traced process {pid}" in refused.stderr


# ---- the name of the file ----


@pytest.mark.parametrize("pattern, problem", [
    ("x.%r.waffle", "%r is unknown"),
    ("x.%q.waffle", "%q is not known"),
    ("x.%", "ends with %"),
])
def test_name_that_can_not_be_made_is_an_error(waffle, tmp_path, pattern, problem):
    environment = {key: value for key, value in os.environ.items() if "RANK" not in key}
    refused = subprocess.run([waffle.program, "run", "-o", tmp_path / pattern, "--", "true"],
                             capture_output=True, text=True, check=False, env=environment)
    assert refused.returncode == 1
    assert problem in refused.stderr
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_attach_names_the_file_by_the_targets_rank(waffle, tmp_path):
    environment = os.environ | {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77"}
    with subprocess.Popen(["sleep", "30"], env=environment) as target:
        ok(waffle, "attach", "-q", "--no-report", "--pid", target.pid, "--duration", "100ms",
           "-o", tmp_path / "%r.%p.%%.waffle")
        ok(waffle, "attach", "-q", "--no-report", "--pid", target.pid, "--duration", "100ms",
           "-o", tmp_path / "%r.waffle")
        before = (tmp_path / "3.waffle").read_bytes()
        refused = waffle.call("attach", "-q", "--no-report", "--pid", target.pid, "--duration",
                              "100ms", "-o", tmp_path / "%r.waffle")
        target.kill()
    # The target chose the name, so the file must not be replaced.
    assert refused.returncode == 1
    assert "3.waffle exists: another process says that it is rank 3" in refused.stderr
    assert (tmp_path / "3.waffle").read_bytes() == before
    path = tmp_path / f"3.{target.pid}.%.waffle"
    [process] = [one for one in read_json(waffle, "info", path)["processes"] if "rank" in one]
    assert (process["rank"], process["world_size"], process["job"]) == (3, 8, "slurm:77")


def test_job_is_not_read_from_a_program_that_gained_rights(waffle, tmp_path):
    """Its environment is private."""
    folder = pathlib.Path(tempfile.mkdtemp())  # which others may enter
    program = folder / "gains"
    shutil.copy("/bin/sleep", program)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    os.chmod(folder, 0o755)
    environment = {"RANK": "1", "WORLD_SIZE": "2", "PATH": os.environ["PATH"]}
    with subprocess.Popen([program, "30"], env=environment, user=1) as target:
        refused = waffle.call("attach", "-q", "--no-report", "--pid", target.pid, "--duration",
                         "100ms", "-o", tmp_path / "%r.waffle")
        os.kill(target.pid, 9)
    shutil.rmtree(folder)
    assert refused.returncode == 1
    assert "%r is unknown" in refused.stderr

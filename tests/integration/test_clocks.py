# SPDX-License-Identifier: Apache-2.0
"""Jobs of MPI in which each rank has a waffle-bpf and a file of its own. The files are rewritten as if
each rank's host had a clock of its own (skew_capture.c). So the true clocks are known, and the job
with one clock has the true answers."""

import dataclasses
import json
import os
import pathlib
import subprocess

import pytest
import tracer
from tracer import PROGRAMS, default_program, find_tool, parse_log

PROGRAM = pathlib.Path(default_program()).resolve()
ROUNDS = 60
US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
LIBRARIES = {"openmpi": ("--allow-run-as-root", "--oversubscribe"), "mpich": ()}
RANK_VARIABLE = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}


@dataclasses.dataclass
class Skew:
    """A clock that shows t + offset + drift * (t - start) at time t, and how wrong the wall clock
    is."""

    offset: int
    drift: float
    wall: int
    start: int = 0

    def of(self, time):
        return time + self.offset + self.drift * (time - self.start)


# Some hosts booted before the first one, and some after it.
SKEWS = [Skew(12 * 3600 * SECOND, 0, 0)] + [
    Skew(rank * 4 * 3600 * SECOND + rank * 12_345_678, drift, rank * 70 * MS)
    for rank, drift in enumerate((40e-6, -25e-6, 1e-6, 150e-6, -80e-6, 0, 10e-6), 1)
]


@pytest.fixture(scope="module", name="skew_capture")
def skew_capture_fixture(waffle_program, tmp_path_factory):
    return tracer.compile_with_waffle(
        waffle_program, "skew_capture.c", tmp_path_factory.mktemp("skew") / "skew_capture")


@dataclasses.dataclass
class Job:
    """Files of ranks on one host, the same on several hosts, and the ranks' logs."""

    files: list
    skewed: list
    skews: list
    logs: list

    def shortest_transfers(self, one, other):
        """The shortest times from a rank's begin to the other's end, in both directions. They bound
        the difference of the two clocks from both sides."""
        rounds = list(zip(self.logs[one], self.logs[other]))
        return (min(b["end"] - a["begin"] for a, b in rounds),
                min(a["end"] - b["begin"] for a, b in rounds))


def run_job(library, ranks, options, program, folder, skew_capture):
    logs = folder / "logs"
    logs.mkdir()
    script = (f'exec {PROGRAM} run -q --no-report --probes mpi {options} '
              f'-o {folder}/one.${RANK_VARIABLE[library]}.waffle -- "$@"')
    subprocess.run([find_tool(f"mpirun.{library}"), *LIBRARIES[library], "-n", str(ranks), "sh",
                    "-c", script, "sh", program, logs, str(ROUNDS)], check=True, timeout=120)
    job = Job([], [], [], [])
    for rank in range(ranks):
        job.files.append(folder / f"one.{rank}.waffle")
        info = json.loads(tracer_run("info", "--json", job.files[-1]))
        skew = dataclasses.replace(SKEWS[rank], start=info["start_ns"])
        job.skews.append(skew)
        job.skewed.append(folder / f"many.{rank}.waffle")
        subprocess.run([skew_capture, job.files[-1], job.skewed[-1], f"node-{rank}",
                        str(skew.offset), repr(skew.drift), str(skew.wall)], check=True)
        rows = parse_log((logs / str(rank)).read_text().splitlines())
        job.logs.append([{key: int(row[key]) for key in ("round", "begin", "end")}
                         for row in rows])
    return job


def tracer_run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module", params=LIBRARIES, name="late")
def late_fixture(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("mpi") / "mpi_late"
    subprocess.run([find_tool(f"mpicc.{request.param}"), "-O2", "-g", "-Wall", "-Werror", "-o",
                    program, PROGRAMS / "mpi_late.c"], check=True)
    return request.param, program


@pytest.fixture(scope="module", name="job")
def job_fixture(late, tmp_path_factory, skew_capture):
    """Three ranks with the scheduler."""
    library, program = late
    return run_job(library, 3, "", program, tmp_path_factory.mktemp("job"), skew_capture)


def error_at(clock, time):
    """By linear interpolation, as docs/ranks.md says."""
    errors = [(row["at_ns"], row["error_ns"]) for row in clock["errors"]]
    for (a, error_a), (b, error_b) in zip(errors, errors[1:]):
        if a <= time <= b:
            return error_a + (error_b - error_a) * (time - a) / (b - a)
    nearest = min(errors, key=lambda row: abs(row[0] - time))
    return nearest[1] + 2e-3 * abs(time - nearest[0])


def check_clocks(job, hosts, narrow):
    """The true clock is within the error of the found one, at any time of the job."""
    from_ns = min(row["begin"] for log in job.logs for row in log)
    to_ns = max(row["end"] for log in job.logs for row in log)
    assert hosts[0]["clock"]["kind"] == "reference"
    for rank, (host, skew) in enumerate(zip(hosts[1:], job.skews[1:]), 1):
        clock = host["clock"]
        assert clock["kind"] == "aligned"
        assert clock["collectives"] >= ROUNDS
        for step in range(-20, 121):
            time = from_ns + (to_ns - from_ns) * step / 100
            shown, expected = skew.of(time), job.skews[0].of(time)
            found = shown + clock["offset_ns"] + clock["drift"] * (shown - clock["at_ns"])
            assert abs(found - expected) <= error_at(clock, found) + 2, (host["name"], step)
        # Where the clocks are known best. The shortest transfers are at different times, and
        # between them the drift is not known.
        best = min(row["error_ns"] for row in clock["errors"])
        print(f"{host['name']}: {2 * best} ns wide, shortest transfers "
              f"{job.shortest_transfers(0, rank)} ns")
        if narrow:
            assert 2 * best <= 3 * sum(job.shortest_transfers(0, rank)), host["name"]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_clocks_are_found_within_their_error(late, ranks, tmp_path, skew_capture):
    library, program = late
    job = run_job(library, ranks, "--no-sched", program, tmp_path, skew_capture)
    info = json.loads(tracer_run("info", "--json", *job.skewed))
    assert [host["name"] for host in info["hosts"]] == [f"node-{i}" for i in range(ranks)]
    # MPICH's ranks poll without a pause. If there are more of them than CPUs, hardly any transfer
    # is short, and these are far apart.
    check_clocks(job, info["hosts"], library == "openmpi" or ranks <= os.cpu_count())
    assert "hosts" not in json.loads(tracer_run("info", "--json", *job.files))


def stragglers(*arguments):
    report = json.loads(tracer_run("report", "--json", *arguments))
    rows = {row["rank"]: row for row in report["stragglers"]}
    return report, [rows[rank] for rank in sorted(rows)]


def test_stragglers_are_those_of_the_job_with_one_clock(job):
    _, expected = stragglers(*job.files)
    report, found = stragglers(*job.skewed)
    info = json.loads(tracer_run("info", "--json", *job.skewed))
    error = max(host["clock"]["error_ns"] for host in info["hosts"])
    for one, other in zip(expected, found):
        assert one["calls"] == other["calls"] >= ROUNDS
        assert abs(one["made_wait_ns"] - other["made_wait_ns"]) <= 2 * error * other["calls"]
        assert one["unsure_ns"] == 0
    logged = [0] * len(job.logs)
    for calls in zip(*job.logs):
        begins = [row["begin"] for row in calls]
        logged[begins.index(max(begins))] += sum(max(begins) - begin for begin in begins)
    for one, ns in zip(expected, logged):
        assert abs(one["made_wait_ns"] - ns) < 0.1 * ns + MS
    assert report["stragglers"][0]["rank"] == logged.index(max(logged))


def instances(*arguments):
    """Of all-reduces, by the span's id, the causes."""
    why = json.loads(tracer_run("why", "--json", "--span", "MPI_Allreduce", *arguments))
    return {instance["id"]: instance for instance in why["instances"]}


def sleep_of_last_rank(instance):
    """How long the instance waited for the sleep of a rank that was late, and the cause."""
    for cause in instance["causes"]:
        if cause["cause"] == "sleep" and cause["culprit"]["pid"] != instance["thread"]["pid"]:
            return cause["duration_ns"], cause
    return 0, None


def test_why_follows_a_wait_to_the_last_rank_on_another_host(job):
    one, many = instances("--slowest", "1000", *job.files), instances("--slowest", "1000", *job.skewed)
    # The waits for rank 2, which sleeps 20 ms now and then.
    waits = {span: sleep_of_last_rank(one[span])[0] for span in one}
    long = sorted((span for span in waits if waits[span] > 10 * MS), key=waits.get, reverse=True)
    found = {span: sleep_of_last_rank(many[span]) for span in long}
    assert found[long[0]][0] == pytest.approx(waits[long[0]], abs=2 * MS)
    # The order of two arrivals may be within the error of the clocks; that of all hardly is.
    certain = [cause for _, cause in found.values() if cause and cause["grade"] == "certain"]
    assert certain
    for cause in certain:
        [step] = [step for step in cause["chain"] if step.get("arrival")]
        assert step["span"] == "MPI_Allreduce"


def test_hosts_without_a_common_collective_get_the_wall_clock(waffle, skew_capture, tmp_path):
    waffle.ok("run", "-q", "--no-report", "-o", tmp_path / "one.waffle", "--", "/bin/true")
    files = [tmp_path / f"{host}.waffle" for host in ("node-a", "node-b")]
    for path in files:
        subprocess.run([skew_capture, tmp_path / "one.waffle", path, path.stem, "0", "0", "0"], check=True)
    told = waffle.ok("info", *files)
    assert "by the wall clock, error unknown" in told.stdout
    assert "is of a communicator whose creation was recorded" in told.stderr
    assert "start the ranks with waffle-bpf run" in told.stderr


def test_other_ways_to_align(job):
    wall = json.loads(tracer_run("info", "--json", "--align", "wall", *job.skewed))["hosts"]
    for host, skew in zip(wall[1:], job.skews[1:]):
        assert host["clock"]["kind"] == "wall"
        assert host["clock"]["error_ns"] is None
        # The wall clock of this host is wrong by this much, and that of the first host by 0.
        expected = skew.wall - skew.offset + job.skews[0].offset
        assert abs(host["clock"]["offset_ns"] - expected) < MS
    none = json.loads(tracer_run("info", "--json", "--align", "none", *job.skewed))["hosts"]
    assert all(host["clock"]["offset_ns"] == 0 for host in none)
    # Without a common clock, the shortest call came last, which is not sure.
    _, rows = stragglers("--align", "wall", *job.skewed)
    assert sum(row["made_wait_ns"] for row in rows) > 10 * MS
    assert all(row["unsure_ns"] == row["made_wait_ns"] for row in rows)


def test_files_of_different_runs_contradict_each_other(late, job, tmp_path, skew_capture):
    library, program = late
    other = run_job(library, 3, "--no-sched", program, tmp_path, skew_capture)
    says = tracer_run("info", *job.skewed[:2], other.skewed[2], code=1)
    assert len(says.splitlines()) == 1
    # Open MPI names its jobs, so the clocks need not be compared.
    assert "cannot be aligned" in says if library == "mpich" else "files of one job" in says
    assert pathlib.Path(other.skewed[2]).name in says
    if library == "mpich":
        check_contradiction([*job.skewed[:2], other.skewed[2]], tmp_path)


def check_contradiction(files, folder):
    """Every command ends with one line, and with the ways out that it names."""
    commands = [("report",), ("why", "--span", "MPI_Allreduce"), ("view",),
                ("export", "--format", "ndjson", "-o", folder / "out.ndjson"),
                ("merge", "-o", folder / "out.waffle")]
    for command in commands:
        says = tracer_run(*command, *files, code=1)
        assert len(says.splitlines()) == 1
        assert "contradicts MPI_Allreduce number" in says
        assert "--align wall or --align none" in says
        for align in ("wall", "none"):
            tracer_run(*command, "--align", align, *files)
    # info shows what it can: it is the command with which one finds the file that is wrong.
    done = subprocess.run([PROGRAM, "info", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be aligned" in done.stderr
    for path in files:
        assert str(path) in done.stdout
    assert "node-2  clock" in done.stdout and "by the wall clock, error unknown" in done.stdout


def test_a_rank_that_two_files_claim_is_named_with_both(job, tmp_path, skew_capture):
    again = tmp_path / "again.waffle"
    subprocess.run([skew_capture, job.files[1], again, "node-9", "0", "0", "0"], check=True)
    files = [*job.skewed[:2], again]
    info = json.loads(tracer_run("info", "--json", *files))
    [claim] = info["ranks_claimed_twice"]
    assert claim["rank"] == 1
    assert {(one["host"], one["file"]) for one in claim["processes"]} == \
        {("node-1", str(job.skewed[1])), ("node-9", str(again))}
    # Not even what ranks do that nobody else claims is matched.
    assert info["collectives_unaligned"] >= 3 * ROUNDS
    for command in ("info", "report"):
        [line] = [line for line in tracer_run(command, *files).splitlines() if "claimed by" in line]
        assert str(job.skewed[1]) in line and str(again) in line
    for instance in instances("--slowest", "1000", *files).values():
        assert all(cause["grade"] != "certain" for cause in instance["causes"]
                   if "culprit" in cause and cause["culprit"]["pid"] != instance["thread"]["pid"]
                   and cause["cause"] == "sleep")

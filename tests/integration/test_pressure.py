# SPDX-License-Identifier: Apache-2.0
"""What makes a disk, the memory or a CPU slow: a neighbour, and limits of a cgroup or a thread. `why`
names them in the line of the cause, or above the causes."""

import os
import pathlib
import re
import sys

import pytest
from tracer import PROGRAMS, tries, wait_until
from why_json import asker

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MIB = 1 << 20


@pytest.fixture
def run(start):
    """run("name", cgroup or "", "read", …): pressed.py, when it is ready."""
    def program(*arguments):
        process = start(sys.executable, PROGRAMS / "pressed.py", *arguments)
        process.until("ready")
        return process
    return program


@pytest.fixture
def cgroup():
    """cgroup(controller, {file of version 1 or of 2: text}) makes a cgroup with one of these files."""
    made = []

    def make(controller, files):
        old = CGROUPS / {"io": "blkio"}.get(controller, controller)
        folder = (old if old.is_dir() else CGROUPS) / f"waffle-pressure-{os.getpid()}-{len(made)}"
        if not old.is_dir():
            (CGROUPS / "cgroup.subtree_control").write_text(f"+{controller}")
        folder.mkdir()
        made.append(folder)
        for name, text in files.items():
            if (folder / name).exists():
                (folder / name).write_text(text)
        return folder

    yield make
    for folder in made:
        for pid in (folder / "cgroup.procs").read_text().split():
            (folder.parent / "cgroup.procs").write_text(pid)
        folder.rmdir()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data"
    with open(path, "wb") as out:
        for _ in range(64):
            out.write(os.urandom(MIB))
        os.fsync(out.fileno())
    return path


@pytest.fixture
def causes(waffle):
    """causes(process): what `why` says of a second of its main thread, (cause, object, share)."""
    def of(process):
        path = waffle.path()
        waffle.ok("attach", "--pid", process.pid, "--duration", "1s", "-o", path, "--no-report")
        [instance] = asker(waffle)(path, "--thread", process.pid)["instances"]
        found = [(row["cause"], row["culprit"]["object"] or "", row["share"], row.get("disk_shared_with")) for row in instance["causes"]]
        return found, waffle.ok("why", path, "--thread", process.pid).stdout
    return of


@tries(3)
def test_a_disk_read_names_the_neighbour_that_used_the_disk(run, causes, file):
    for _ in range(3):
        run("neighbour", "", "read", file, 4 * MIB)
    victim = run("victim", "", "read", file, 4096)
    found, text = causes(victim)
    read = next(row for row in found if row[0] == "disk-read")
    assert read[1] == f"{file} (ext4)" and read[3]["comm"] == "neighbour" and read[3]["bytes"] > 4 * MIB
    assert f"{file} (ext4), disk shared with neighbour" in text
    assert "MiB for neighbour (" in text


def test_a_disk_without_neighbours_has_none(run, causes, file):
    found, text = causes(run("victim", "", "read", file, MIB))
    assert "disk-read" in [row[0] for row in found] and "shared with victim" not in text
    assert "io.max" not in text and "blkio.throttle" not in text and "used up" not in text


@tries(3)
@pytest.mark.parametrize("way", ("read", "ring"))
def test_a_disk_read_names_the_limit_of_its_cgroup(run, causes, cgroup, file, way):
    """A wait in io_uring_enter() names no file."""
    device = os.stat(file).st_dev
    limit = f"{os.major(device)}:{os.minor(device)} "
    folder = cgroup("io", {"blkio.throttle.read_bps_device": f"{limit}{MIB}", "io.max": f"{limit}rbps={MIB}"})
    found, _ = causes(run("victim", folder, way, file, 65536))
    what = f"{file} (ext4)" if way == "read" else "anon_inode:[io_uring]"
    where = "io.max" if os.path.exists(f"{folder}/io.max") else "blkio.throttle.read_bps_device"
    assert found[0][:2] == ("disk-read", f"{what}, and its cgroup {folder} is limited to 1.00 MiB of reads a second ({where})")
    assert found[0][2] > 0.5


@tries(3)
@pytest.mark.parametrize("arguments", (("ring-sync",), ("submit", 65536)))
def test_a_write_is_one_to_its_file_if_no_argument_of_the_system_call_names_it(run, causes, cgroup, file, arguments):
    """A worker of io_uring executes the request, and io_submit() has a list of them."""
    device = os.stat(file).st_dev
    limit = f"{os.major(device)}:{os.minor(device)} "
    folder = cgroup("io", {"blkio.throttle.write_bps_device": f"{limit}{MIB}", "io.max": f"{limit}wbps={MIB}"})
    found, _ = causes(run("victim", folder, arguments[0], file, *arguments[1:]))
    assert found[0][0] == "disk-write" and found[0][1].startswith(f"{file} (ext4)") and found[0][2] > 0.5, found


def memory_limit(folder):
    """The file that has the limit, by the version of cgroups."""
    [name] = [name for name in ("memory.limit_in_bytes", "memory.max") if (folder / name).exists()]
    return name


@tries(3)
def test_a_wait_for_memory_names_the_limit_and_who_uses_the_memory(run, causes, cgroup, tmp_path):
    folder = cgroup("memory", {"memory.limit_in_bytes": str(64 * MIB), "memory.max": str(64 * MIB)})
    run("holder", folder, "hold", 30 * MIB)
    found, text = causes(run("victim", folder, "write", tmp_path / "written"))
    name = memory_limit(folder)
    [limit, *_] = [row[1] for row in found if name in row[1]]
    assert f"{name} 64.0 MiB of {folder} used up, the most by holder (" in limit
    assert "of its cgroup's memory" in text


@tries(3)
def test_reads_of_files_name_the_limit_above_the_causes(run, causes, cgroup, file):
    folder = cgroup("memory", {"memory.limit_in_bytes": str(32 * MIB), "memory.max": str(32 * MIB)})
    victim = run("victim", folder, "again", file)
    [used] = [folder / name for name in ("memory.usage_in_bytes", "memory.current") if (folder / name).exists()]
    wait_until(lambda: int(used.read_text()) > 31 * MIB, "the cgroup is full")
    try:
        found, text = causes(victim)
    finally:
        victim.kill()  # another try must not find its pages
    assert sum(row[2] for row in found if row[0] == "disk-read") > 0.3
    assert re.search(rf"^  {memory_limit(folder)} 32.0 MiB of {folder} used up, .*; pages of files are dropped early$",
                     text.split("   1.")[0], re.M)


@tries(3)
def test_page_faults_name_the_limit_above_the_causes(run, causes, cgroup, file):
    """The file is twice as large as the limit, so that its pages are freed again and again."""
    folder = cgroup("memory", {"memory.limit_in_bytes": str(32 * MIB), "memory.max": str(32 * MIB)})
    found, text = causes(run("victim", folder, "touch", file))
    assert sum(row[2] for row in found if row[0].startswith("page-fault-")) > 0.1
    assert re.search(rf"^  {memory_limit(folder)} 32.0 MiB of {folder} used up", text.split("   1.")[0], re.M)


@tries(3)
@pytest.mark.parametrize("hogs", (1, 3))
def test_a_quota_names_the_processes_that_used_it_without_being_recorded(run, causes, cgroup, hogs):
    folder = cgroup("cpu", {"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "10000", "cpu.max": "10000 50000"})
    hogs = [run("hog", folder, "spin", 1000, 0) for _ in range(hogs)]
    found, text = causes(run("victim", folder, "spin", 2, 5))
    assert [row for row in found if row[:2] == ("cpu-quota", str(folder)) and row[2] > 0.2], found
    [named] = set(re.findall(r"cpu-quota +likely +(hog \(\d+\)), ", text))
    assert int(re.search(r"\d+", named)[0]) in [hog.pid for hog in hogs]
    more = f" and {len(hogs) - 1} more" if len(hogs) > 1 else ""
    assert f", in the capture mostly {named}{more} [" in text


@pytest.mark.parametrize("limit", ("1", "max"))
def test_a_process_of_a_cgroup_without_room_for_another_one_says_so(run, causes, cgroup, limit):
    folder = cgroup("pids", {"pids.max": limit})
    victim = run("victim", folder, "spin", 1, 20)
    _, text = causes(victim)
    line = f"victim ({victim.pid}) is in cgroup {folder}, which has all 1 processes and threads that it may have (pids.max)"
    assert line in text if limit == "1" else "(pids.max)" not in text


@tries(3)
@pytest.mark.parametrize("idle", (False, True))
def test_a_process_that_others_go_before_says_so(run, causes, cgroup, idle):
    folder = cgroup("cpu", {"cpu.shares": "64", "cpu.weight": "5"})
    for _ in range(os.cpu_count()):
        run("other", "", "spin", 1000, 0)
    victim = run("victim", folder, "spin", 1000, 0)
    if idle:
        os.sched_setscheduler(victim.pid, os.SCHED_IDLE, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, victim.pid, 7)
    _, text = causes(victim)
    weight = "cpu.shares 64, not 1024" if (folder / "cpu.shares").exists() else "cpu.weight 5, not 100"
    own = "policy is SCHED_IDLE" if idle else "nice value is 7"
    assert f"\n  its {own}; its cgroup {folder} has {weight}\n" in text


@tries(3)
@pytest.mark.parametrize("bound", (False, True))
def test_threads_bound_to_a_cpu_for_which_they_wait_say_so(run, causes, bound):
    cpu = min(os.sched_getaffinity(0))
    processes = [run("victim", "", "spin", 1000, 0) for _ in range(2 if bound else os.cpu_count() * 2)]
    for process in processes:
        os.sched_setaffinity(process.pid, {cpu} if bound else range(os.cpu_count()))
    found, text = causes(processes[0])
    assert sum(row[2] for row in found if row[0] == "cpu-contention") > 0.3
    assert (f"\n  it may run on cpu {cpu} only (affinity or cpuset)\n" in text) == bound

# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf replay (docs/replay.md) on captures of random programs, whose GPU follows known rules."""

import json
import os
import pathlib
import subprocess

import pytest

import gpu_schedule
from test_gpu_timeline import CALLS, Made, text_capture  # noqa: F401  (text_capture is a fixture)
from tracer import ROOT, compile_with_waffle

GPU = pathlib.Path("/dev/nvidiactl").exists() or "WAFFLE_GPU" in os.environ


@pytest.fixture(scope="session")
def gpu_maker(waffle_program, tmp_path_factory):
    return compile_with_waffle(waffle_program, "make_gpu_capture.c", tmp_path_factory.mktemp("maker") / "make",
                               "-lcmocka", "-lcapstone")


@pytest.fixture
def made(gpu_maker, tmp_path):
    """made(seed, what): the path of a capture, and what its GPU did."""

    def make(seed, *what, count=150):
        path = tmp_path / f"{seed}-{'-'.join(what)}.waffle"
        done = subprocess.run([gpu_maker, path, str(count), str(seed), *what], stdout=subprocess.PIPE, check=True)
        return path, json.loads(done.stdout)

    return make


def replay(waffle, *arguments, code=0):
    done = subprocess.run([waffle.program, "replay", *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == code, done
    return done


def replay_json(waffle, *arguments, code=0):
    return json.loads(replay(waffle, *arguments, "--json", code=code).stdout)


@pytest.mark.parametrize("seed", range(1, 9))
def test_unmodified_replay_is_exact_and_what_if_is_the_changed_program(waffle, made, seed):
    path, truth = made(seed)
    _, faster = made(seed, "faster")
    found = replay_json(waffle, path, "--what-if", "kernels: 2x")
    assert (found["operations_total"], found["operations_executed"]) == (truth["operations"], truth["operations"])
    assert found["error"] == 0 and found["deterministic"] and found["violations"] == 0
    assert found["measured_ns"] == found["replayed_ns"]
    # The program's own makespan has no calls that wait, which may end after the last operation.
    assert found["replayed_ns"] >= truth["makespan_ns"]
    answer, = found["what_if"]
    assert answer["low_ns"] == answer["replayed_ns"] == answer["high_ns"] >= faster["makespan_ns"]
    again = replay_json(waffle, made(seed, "faster")[0])
    assert answer["replayed_ns"] == again["measured_ns"]


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("seed", range(60))
def test_replay_of_a_schedule_of_all_kinds_is_what_was_measured(
    waffle, text_capture, tmp_path, seed, calls  # noqa: F811
):
    """Graphs, copies, sets, events, blocking streams, several devices and processes."""
    schedule = gpu_schedule.Schedule(seed, prompt=True, calls=calls)
    if not schedule.ops:
        schedule = gpu_schedule.Schedule(seed + 1000, prompt=True, calls=calls)
    path = tmp_path / "made.waffle"
    schedule.write(text_capture, path)
    found = replay_json(waffle, path)
    assert found["operations_executed"] == len(schedule.ops)
    assert found["violations"] == 0 and found["deterministic"]
    assert found["error"] == 0 and found["replayed_ns"] == found["measured_ns"]


def test_text_says_the_same(waffle, made):
    path, truth = made(3)
    said = replay(waffle, path, "--what-if", "kernels: 0").stdout
    assert f"{truth['operations']} operations and " in said and "error +0.00 %" in said
    assert "all in order" in said and "kernels: 0" in said


def test_parts(waffle, made):
    path, truth = made(4)
    total = truth["operations"]
    assert replay_json(waffle, path, "--operations", "3-7")["operations_executed"] == 5
    assert replay_json(waffle, path, "--operations", "3-7")["mode"] == "partial"
    assert replay_json(waffle, path, "--operations", f"{total}-")["operations_total"] == 1
    streams = [replay_json(waffle, path, "--stream", f"0:{7 + stream}") for stream in range(9)]
    assert sum(stream["operations_executed"] for stream in streams) == total
    assert all(stream["mode"] == "stream" and stream["error"] == 0 for stream in streams)
    early = replay_json(waffle, path, "--to", "1500ns")["operations_total"]
    late = replay_json(waffle, path, "--from", "1500ns")["operations_total"]
    assert 0 < early < total and early + late == total


def test_times_count_from_the_begin_of_the_capture(waffle, text_capture, tmp_path, monkeypatch):  # noqa: F811
    """As with other commands, also if the first operations began before it."""
    schedule = gpu_schedule.Schedule(5, prompt=True)
    whole, later = tmp_path / "whole.waffle", tmp_path / "later.waffle"
    schedule.write(text_capture, whole)
    begin = sorted(op.start for op in schedule.ops)[len(schedule.ops) // 2]
    passed = begin - gpu_schedule.START
    monkeypatch.setattr(gpu_schedule, "START", gpu_schedule.START + passed // 2)
    schedule.write(text_capture, later)
    total = replay_json(waffle, whole)["operations_total"]
    assert replay_json(waffle, later)["operations_total"] == total
    late = replay_json(waffle, whole, "--from", f"{passed}ns")["operations_total"]
    assert 0 < late < total
    assert replay_json(waffle, later, "--from", f"{passed - passed // 2}ns")["operations_total"] == late


def test_dry_run_lists_violations_and_fails(waffle, made):
    path, _ = made(5)
    good = replay_json(waffle, path, "--dry-run")
    assert good["mode"] == "dry-run" and good["violations"] == 0 and "replayed_ns" not in good
    path, _ = made(5, "early")
    bad = replay_json(waffle, path, "--dry-run", code=1)
    assert bad["violations"] >= 1 and not bad["deterministic"] and bad["violated"][0]["early_ns"] == 1
    assert "violated:" in replay(waffle, path, "--dry-run", code=1).stdout


def test_compare(waffle, made):
    path, truth = made(6)
    same = replay_json(waffle, "--compare", path, made(6, "slower")[0])
    assert same["deterministic"] and same["divergence"] is None and same["operations_equal"] == truth["operations"]
    kernels = [row for row in same["spread"] if row["name"] != "copy"]
    assert all(row["b_ns"] == row["a_ns"] + 10 * row["count"] and row["max_difference_ns"] == 10 for row in kernels)
    other = replay_json(waffle, "--compare", path, made(6, "other")[0], code=1)
    assert other["divergence"]["what"] == "kernel" and other["diverging_streams"] == 1
    assert other["divergence"]["a"]["name"] != other["divergence"]["b"]["name"]
    assert ": kernel\n" in replay(waffle, "--compare", path, made(6, "other")[0], code=1).stdout


def test_text_of_a_comparison_names_a_copy_once_and_counts_one_stream(waffle, text_capture, tmp_path):  # noqa: F811
    paths = []
    for size in (64, 65):
        made = Made()
        made.launch(100, 1)
        made.op(200, 300, 1)
        made.launch(400, 2)
        begin = gpu_schedule.START + 500
        copy = made.writer.hit(begin, 100, 100, "copy", "copy", 0, 1, 7, 2, "HtoD", size, track=1)
        made.writer.end(begin + 100, 100, 100, "copy", copy)
        paths.append(tmp_path / f"{size}.waffle")
        made.write(text_capture, paths[-1])
    said = replay(waffle, "--compare", *paths, code=1).stdout
    assert said.startswith("A: 2 operations on 1 stream; B: 2 operations on 1 stream\n")
    assert "\n  A: copy (stream 7 of GPU 0), bytes 64, kind HtoD, " in said


def test_captures_of_different_programs_are_no_comparison(waffle, gpu_maker, made, tmp_path):
    one, two = (made(seed, count=1)[0] for seed in (1, 2))
    names = {replay_json(waffle, "--compare", path, path)["spread"][0]["name"] for path in (one, two)}
    assert len(names) == 2
    said = replay(waffle, "--compare", one, two, code=1).stderr
    assert "are captures of different programs" in said and said.count("\n") == 1


@pytest.mark.parametrize("arguments, code, says", [
    (["--what-if", "graphs: 0"], 1, "matches none"),
    (["--what-if", "rank 1: not late"], 1, "changes nothing"),
    (["--what-if", "copies"], 2, "has no ':'"),
    (["--what-if", "copies: soon"], 2, "is no change"),
    (["--what-if", "copies: 0", "--dry-run"], 2, "leave --what-if and --on-gpu out"),
    (["--operations", "7-3"], 2, "is no range"),
    (["--stream", "x"], 2, "is no stream"),
    (["--what-if", "kernels: 99999999s"], 1, "would take more than"),
    (["--what-if", "kernels: 1e-300x"], 1, "would take more than"),
    (["--what-if", "rate(1/s): 2x"], 2, "rate() is for captures"),
    (["--stream", "99"], 1, "no operation is in this part"),
    (["--from", "2ms", "--to", "1ms"], 2, "--from has to be before --to"),
    (["--from", "1h"], 1, "the capture ends before that time"),
    (["--compare"], 2, "needs two .waffle files"),
])
def test_mistakes_are_told_in_one_line(waffle, made, arguments, code, says):
    said = replay(waffle, made(7)[0], *arguments, code=code).stderr
    assert says in said and said.count("\n") == 1


def on_gpu(waffle, path, *options, code=0, **variables):
    """With the stand-in of CUDA."""
    sim = pathlib.Path(waffle.program).parent / "sim"
    done = subprocess.run([waffle.program, "replay", path, "--on-gpu", *options], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": str(sim), "WAFFLE_SIM_INIT_MS": "1", **variables})
    assert done.returncode == code, done
    return done


def test_the_schedule_runs_again_on_a_gpu_and_says_that_it_is_simulated(waffle, made):
    path, truth = made(9)
    found = json.loads(on_gpu(waffle, path, "--json").stdout)["on_gpu"]
    assert found["simulated"] and found["device"].startswith("simulated GPU") and found["operations"] == truth["operations"]
    # Launches have a cost, which the GPU of the capture has not.
    assert found["ns"] >= truth["makespan_ns"]
    stream = json.loads(on_gpu(waffle, path, "--json", "--stream", "7").stdout)
    assert stream["on_gpu"]["operations"] == stream["operations_total"]
    assert ", simulated)" in on_gpu(waffle, path).stdout


@pytest.mark.parametrize("seed", range(20))
def test_schedules_of_all_kinds_run_again(waffle, text_capture, tmp_path, seed):  # noqa: F811
    schedule = gpu_schedule.Schedule(seed, processes=1)
    path = tmp_path / "made.waffle"
    schedule.write(text_capture, path)
    several = len({op.device for op in schedule.ops}) > 1
    done = on_gpu(waffle, path, "--json", code=1 if several or not schedule.ops else 0)
    if several:
        assert "the work of several GPUs" in done.stderr
    elif schedule.ops:
        assert json.loads(done.stdout)["on_gpu"]["operations"] == len(schedule.ops)


@pytest.mark.skipif(not GPU, reason="gpu: only a machine with one runs this")
def test_the_schedule_runs_again_on_a_real_gpu(waffle, made):
    path, truth = made(9, "long")
    found = replay_json(waffle, path, "--on-gpu")["on_gpu"]
    assert not found["simulated"] and found["operations"] == truth["operations"]
    # What depends on each other takes at least as long as its kernels spin.
    assert found["ns"] > truth["makespan_ns"] / 2


def test_without_a_gpu_it_says_so(waffle, made):
    path, _ = made(9)
    said = on_gpu(waffle, path, code=1, WAFFLE_SIM_DEVICES="0").stderr
    assert "--on-gpu: cuInit failed: CUDA_ERROR_NO_DEVICE" in said and said.count("\n") == 1


def test_a_capture_without_gpu_times_says_so(waffle):
    said = replay(waffle, ROOT / "tests/golden/captures/sim-training-joined.waffle", code=1).stderr
    assert "has no operations of a GPU" in said and said.count("\n") == 1


# ---- Chakra ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a message, by number: numbers, and bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        assert key & 7 in (0, 2)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found.setdefault(key >> 3, []).append(value)
    return found


def messages(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield fields(data[at:at + size])
        at += size
    assert at == len(data)


def packed(data):
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def test_chakra_does_not_replace_the_capture(waffle, made):
    path, _ = made(8)
    before = path.read_bytes()
    done = replay(waffle, path, "--chakra", path, code=1)
    assert "is the capture itself" in done.stderr and path.read_bytes() == before


def test_a_reader_that_goes_away_ends_a_trace_quietly(waffle, made):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([waffle.program, "replay", "--chakra", "-", made(8)[0]], stdout=writer,
                          stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_chakra_has_all_nodes_and_dependencies(waffle, made):
    path, truth = made(8)
    out = waffle.path("x.et")
    replay(waffle, path, "--chakra", out)
    head, *nodes = messages(out.read_bytes())
    assert head == {1: [b"1.0.0"]}
    attributes = [{fields(one)[1][0]: fields(one) for one in node[10]} for node in nodes]
    operations = [node for node, has in zip(nodes, attributes) if not has[b"is_cpu_op"][27][0]]
    assert len(operations) == truth["operations"]
    ids = [node[1][0] for node in nodes]
    assert len(set(ids)) == len(ids)
    found = replay_json(waffle, path)
    dependencies = sum(len(packed(one)) for node in nodes for field in (4, 5) for one in node.get(field, []))
    assert dependencies == found["dependencies"]
    for node in nodes:
        assert all(before < node[1][0] for field in (4, 5) for one in node.get(field, []) for before in packed(one))
    kernels = {node[2][0] for node in operations if node[3] == [4]}
    assert kernels <= {b"gemm_a", b"gemm_b", b"softmax"}
    copies = [has for node, has in zip(nodes, attributes) if node[3] == [2]]
    assert all(has[b"tensor_size"][13] == [4096] for has in copies)
    made_of = sum(has[b"duration_ns"][13][0] for has in attributes if not has[b"is_cpu_op"][27][0])
    whole = replay_json(waffle, "--compare", path, path)
    assert made_of == sum(row["a_ns"] for row in whole["spread"])


def test_all_outputs_say_simulated(waffle, text_capture, tmp_path):  # noqa: F811
    paths = []
    for simulated in (0, 1):
        made = Made()
        made.session(10, "armed", simulated)
        made.launch(100, 1)
        made.op(200, 300, 1)
        paths.append(tmp_path / f"{simulated}.waffle")
        made.write(text_capture, paths[-1])
    real, stand_in = paths
    out = tmp_path / "x.et"
    for arguments, simulated in (([real], False), ([stand_in], True), (["--dry-run", stand_in], True),
                                 (["--compare", real, real], False), (["--compare", real, stand_in], True),
                                 (["--compare", stand_in, real], True), (["--stream", "7", stand_in], True)):
        assert replay_json(waffle, *arguments).get("simulated", False) is simulated
        assert replay(waffle, *arguments).stdout.startswith("simulated: ") is simulated
    for path, simulated in ((real, False), (stand_in, True)):
        replay(waffle, path, "--chakra", out)
        head = next(messages(out.read_bytes()))
        assert (2 in head) is simulated
        if simulated:
            assert fields(head[2][0]) == {1: [b"simulated"], 27: [1]}


# ---- recorded: the stand-ins of CUDA, NCCL and CUPTI ----

@pytest.fixture(scope="module")
def training(waffle_program, tmp_path_factory):
    """A training of three ranks, whose rank 1 has slow kernels. Its makespan is not known, but what made it."""
    build = pathlib.Path(waffle_program).parent
    path = tmp_path_factory.mktemp("training") / "training.waffle"
    subprocess.run([waffle_program, "run", "--quiet", "--no-report", "--sources", "spans,cuda,nccl", "--output", path,
                    "--", build / "sim/training", "--ranks", "3", "--steps", "80"],
                   stdout=subprocess.DEVNULL, check=True,
                   env={**os.environ, "CUDA_INJECTION64_PATH": str(build / "libwaffle-gpu.so"),
                        "WAFFLE_SIM_SLOW_KERNEL": "1:2"})
    return path


def test_recorded_training_replays_and_knows_who_was_late(waffle, training):
    ranks = [f"rank {rank}: not late" for rank in range(3)]
    found = replay_json(waffle, training, *(f"--what-if={one}" for one in [*ranks, "kernels: 2x", "launches: 0"]))
    assert found["simulated"] and found["operations_executed"] == found["operations_total"] > 100
    assert abs(found["error"]) < 0.1
    change = {row["what_if"]: row["change"] for row in found["what_if"]}
    # The others wait for half of the time of their steps.
    assert change["rank 1: not late"] < -0.2 and change["kernels: 2x"] < -0.2
    assert change["rank 1: not late"] < min(change["rank 0: not late"], change["rank 2: not late"])
    assert all(row["changed"] for row in found["what_if"])
    # Launches of kernels are events, so nobody knows how long they took; those of copies have a duration.
    launches = found["what_if"][-1]
    assert launches["untimed"] > 0 and not any(row["untimed"] for row in found["what_if"][:-1])
    for row in found["what_if"]:
        assert row["change"] == pytest.approx(row["replayed_ns"] / row["unmodified_ns"] - 1)
    said = replay(waffle, training, "--what-if=launches: 0").stdout
    assert f"({launches['changed']:,} changed, {launches['untimed']:,} not: their time is unknown)\n" in said


def test_launches_whose_time_is_unknown_are_not_said_to_be_changed(waffle, waffle_program, tmp_path):
    build, path = pathlib.Path(waffle_program).parent, tmp_path / "own.waffle"
    subprocess.run([build / "sim/work", "streams", "20"], stdout=subprocess.DEVNULL, check=True,
                   env={**os.environ, "CUDA_INJECTION64_PATH": str(build / "libwaffle-gpu.so"),
                        "LD_LIBRARY_PATH": str(build / "sim"), "WAFFLE_TRACE": str(path)})
    said = replay(waffle, path, "--what-if=launches: 0", code=1).stderr
    assert "'launches: 0' changes nothing: how long these calls took was not recorded" in said and said.count("\n") == 1


def test_recorded_runs_of_a_program_are_the_same(waffle, training):
    found = replay_json(waffle, "--compare", training, training)
    assert found["simulated"] and found["deterministic"] and found["operations_equal"] == found["operations_a"]

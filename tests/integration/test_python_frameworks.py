# SPDX-License-Identifier: Apache-2.0
"""waffle.jax and waffle.torch with the real JAX and PyTorch, on the CPU. scripts/setup.sh installs them into a
folder of their own (tests/requirements-frameworks.txt)."""

import subprocess

import pytest

from servers import Jaeger, start_server
from test_python import Script, python, script  # noqa: F401  (fixtures)
from tracer import ROOT, named, wait_until

DEVICES = "--xla_force_host_platform_device_count=4"


@pytest.fixture(scope="session")
def frameworks(waffle_program):
    folder = waffle_program.parent / "frameworks"
    assert folder.exists(), f"{folder} is not there; run make setup-check"
    return folder


@pytest.fixture
def with_frameworks(script, frameworks):  # noqa: F811
    """Variables for a program that imports JAX or PyTorch."""
    return {"PYTHONPATH": f"{script.packages}:{frameworks}", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": DEVICES,
            "LD_LIBRARY_PATH": str(frameworks / "cuda-stubs"), "PYTHONDONTWRITEBYTECODE": "1"}


def children(rows, parent):
    """Names of the spans in a span, in order of their begins."""
    return [row["name"] for row in sorted(rows, key=lambda row: row["start_ns"]) if row.get("parent") == parent["id"]]


# ---- JAX ----


def test_jax_compiles_in_the_first_call_and_dispatches_in_each(script, with_frameworks):  # noqa: F811
    text = """
        waffle.jax.hooks(); waffle.jax.hooks()
        import inspect, jax, jax.numpy as jnp
        @jax.jit
        def square(x, n=3):
            with waffle.span("inside", n=n): waffle.event("moment")
            return x @ x
        @jax.jit
        @waffle.instrument
        def whole(x): return square(x) + 1
        @jax.jit(static_argnums=1)
        def times(x, n): return x * n
        x = jnp.ones((8, 8))
        for name in ("first", "second"):
            with waffle.span(name): print(square(x)[0, 0])
        with waffle.span("nested"): whole(x)
        with waffle.span("mapped"): print(jax.vmap(square)(jnp.ones((2, 3, 3))).shape, jax.grad(lambda x: square(x).sum())(x).shape)
        with waffle.span("static"): print(times(x, 2)[0, 0])
        with waffle.span("by hand"), jax.disable_jit(): square(x)
        with waffle.span("error"):
            try: jax.jit(lambda x: 1 / 0)(x)
            except ZeroDivisionError as error: print(error)
        with jax.profiler.StepTraceAnnotation("train", step_num=4): waffle.event("in step")
        count = []
        def once(x): count.append(1); return x
        for _ in range(3): jax.jit(once)(x)
        try: print(jax.jit(fun=once)(x).shape)      # as JAX itself: older versions allow it
        except TypeError as error: print("positional-only" in str(error))
        print(len(count), inspect.signature(square), square.__name__, square.__wrapped__.__name__,
              isinstance(square, jax.stages.Wrapped), square.lower(x).compile()(x).shape, bool(waffle.current()))
        """
    alone, capture = script.alone(text, **with_frameworks), script.record(text, **with_frameworks)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    rows = capture.rows("span")
    [first], [second], [nested], [mapped], [by_hand] = (
        named(rows, name) for name in ("first", "second", "nested", "mapped", "by hand"))
    dispatched = [row for row in rows if row.get("parent") == first["id"]][0]
    assert dispatched["name"] == "jit(square)" and dispatched["args"] == {"x": "float32[8,8]"}
    phases = [row for row in rows if row["name"] in ("jax trace", "jax lower", "jax compile")
              and first["start_ns"] <= row["start_ns"] and row["end_ns"] <= dispatched["end_ns"]]
    assert [(row["name"], row["args"]["function"]) for row in sorted(phases, key=lambda row: row["start_ns"])] == [
        ("jax trace", "square"), ("jax lower", "jit(square)"), ("jax compile", "jit(square)")]
    [inside] = [row for row in named(rows, "inside") if row["parent"] == phases[0]["id"]]
    assert inside["args"] == {"n": 3, "traced": True}
    assert capture.rows("event", name="moment")[0]["args"] == {"traced": True}
    [again] = [row for row in rows if row.get("parent") == second["id"] and row["name"] == "jit(square)"]
    assert not [row for row in rows if row.get("parent") == again["id"]]  # what is compiled is not traced again
    of_whole = [row for row in rows if row.get("parent") == nested["id"]][0]
    assert of_whole["name"] == "jit(whole)" and "traced" not in of_whole["args"]
    assert {row["name"]: row["args"].get("traced") for row in rows if row["name"] == "whole"} == {"whole": True}
    within = [row for row in named(rows, "inside") if mapped["start_ns"] <= row["start_ns"] <= mapped["end_ns"]]
    assert within and all(row["args"]["traced"] for row in within)
    by_hand_rows = [row for row in named(rows, "inside") if by_hand["start_ns"] <= row["start_ns"] <= by_hand["end_ns"]]
    assert [row["args"] for row in by_hand_rows] == [{"n": 3}]
    assert capture.rows("span", name="train")[0]["args"] == {"step_num": 4}
    assert all(row.get("end_ns") for row in rows)


def test_the_example_of_a_sharded_product_has_its_spans_in_jaeger(script, with_frameworks, tmp_path_factory):  # noqa: F811
    jaeger = start_server(Jaeger, tmp_path_factory.mktemp)
    try:
        done = subprocess.run([script.python, ROOT / "examples/sharded_matmul.py", "--size", "64", "--calls", "2",
                               "--jaeger", jaeger.url], env=script.environment(**with_frameworks), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "on 4 devices" in done.stdout and "the results are the same" in done.stdout
        trace_id = done.stdout.split()[-1]
        wait_until(lambda: any(span["operationName"] == "sharded_matmul" for span in jaeger.trace(trace_id).values()),
                   "the root in Jaeger")
        spans = list(jaeger.trace(trace_id).values())
    finally:
        jaeger.close()
    parent = {span["spanID"]: span["references"][0]["spanID"] for span in spans if span["references"]}
    tags = {span["spanID"]: {tag["key"]: tag["value"] for tag in span["tags"]} for span in spans}
    measured = {tags[span["spanID"]]["what"]: span["spanID"] for span in spans if span["operationName"] == "measure"}
    assert {what: tags[one]["devices"] for what, one in measured.items()} == {"local": 1, "sharded": 4}
    for one in measured.values():
        calls = [span["spanID"] for span in spans if parent.get(span["spanID"]) == one]
        assert len(calls) == 3
        for call in calls:
            inside = sorted(span["operationName"] for span in spans if parent.get(span["spanID"]) == call)
            assert inside == ["jit(product)", "wait"]
    compiled = [span for span in spans if span["operationName"] == "jax compile"
                and tags[span["spanID"]]["function"] == "jit(product)"]
    assert len(compiled) == 2  # once for each sharding
    traced = [tags[span["spanID"]] for span in spans if span["operationName"] == "in product"]
    assert traced and all(one["traced"] is True for one in traced)
    assert {span["process"]["serviceName"] for span in spans} == {"sharded_matmul"}


# ---- PyTorch ----

TRAINING = """
import warnings; warnings.simplefilter("ignore")
waffle.torch.hooks(); waffle.torch.hooks()
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.full, self.act = nn.Linear(4, 4), nn.ReLU(inplace=True)
    def forward(self, x): return self.act(self.full(x)) + x
class Bad(nn.Module):
    def forward(self, x): raise ValueError("no")
model = nn.Sequential(nn.Linear(8, 4), Block(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(8, 8), torch.randn(8, 1))
"""


def test_torch_training_has_spans_of_its_modules_batches_and_steps(script, with_frameworks):  # noqa: F811
    text = TRAINING + """
for n, (x, y) in enumerate(DataLoader(data, batch_size=4)):
    with waffle.span("step", n=n):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item())
with torch.profiler.record_function("range"): waffle.event("in range")
@torch.profiler.record_function("decorated")
def twice(n): return 2 * n
print(twice(2), twice(3), bool(waffle.current()))
@torch.profiler.record_function("recursive")
def factorial(n): return n * factorial(n - 1) if n else 1
print(factorial(3), bool(waffle.current()))
"""
    alone, capture = script.alone(text, **with_frameworks), script.record(text, **with_frameworks)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    rows = capture.rows("span")
    steps = capture.rows("span", name="step")
    assert len(steps) == 2 and len(named(rows, "DataLoader next")) == 3  # the last says that there are no more
    assert len(named(rows, "recursive")) == 4 and all(row.get("end_ns") for row in named(rows, "recursive"))
    assert len(named(rows, "decorated")) == 2 and not capture.rows("event", name="exception")
    [inside] = capture.rows("event", name="in range")
    assert inside["parent"] == named(rows, "range")[0]["id"]
    for step in steps:
        assert children(rows, step) == ["Sequential.forward", "backward", "optimizer step"]
        whole, back, update = (next(row for row in rows if row.get("parent") == step["id"] and row["name"] == name)
                               for name in ("Sequential.forward", "backward", "optimizer step"))
        assert whole["args"] == {"input": "float32[4,8]"} and update["args"] == {"optimizer": "SGD"}
        assert children(rows, whole) == ["Linear.forward", "Block.forward", "Linear.forward"]
        modules = {row["args"].get("module"): row for row in rows
                   if row["name"].endswith(".forward") and whole["start_ns"] <= row["start_ns"] <= whole["end_ns"]}
        assert list(modules) == [None, "0", "1", "1.full", "1.act", "2"]
        backs = {row["args"].get("module"): row for row in rows if row.get("parent") == back["id"] for row in [
            {**row, "args": row.get("args", {})}]}
        assert {name: row["name"] for name, row in backs.items()} == {
            None: "Sequential.backward", "0": "Linear.backward", "1": "Block.backward", "1.full": "Linear.backward",
            "1.act": "ReLU.backward", "2": "Linear.backward"}
        for name, row in backs.items():
            assert row["links"] == [{"kind": "span", "id": modules[name]["id"]}]
            assert back["start_ns"] <= row["start_ns"] <= row["end_ns"] <= back["end_ns"]
        assert backs["2"]["end_ns"] <= backs["1"]["end_ns"] <= backs["0"]["end_ns"]
        assert backs["2"]["start_ns"] <= backs["1"]["start_ns"] <= backs["1.full"]["start_ns"] <= backs["0"]["start_ns"]


def test_torch_behaves_the_same_where_graphs_are_kept_compiled_or_made_again(script, with_frameworks):  # noqa: F811
    text = TRAINING + """
import logging; logging.disable()
from torch.utils.checkpoint import checkpoint
block = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
x, y = torch.randn(2, 3), torch.randn(2, 3, requires_grad=True)
def gradients(): return [one.grad.sum().item() for one in block.parameters()]
with waffle.span("kept"):
    out = block(x).sum(); out.backward(retain_graph=True); out.backward(); print(gradients())
with waffle.span("compiled"): torch.compile(block, backend="eager")(x).sum().backward(); print(gradients())
with waffle.span("again"): checkpoint(block, y, use_reentrant=False).sum().backward(); print(gradients())
with waffle.span("reentrant"): checkpoint(block, y, use_reentrant=True).sum().backward(); print(gradients(), y.grad.sum().item())
with waffle.span("no graph"), torch.no_grad(): print(block(x).sum().item())
with waffle.span("grad"): print(torch.autograd.grad(block(x).sum(), list(block.parameters()))[0].sum().item())
with waffle.span("mapped"): print(torch.func.vmap(block)(x).sum().item())
with waffle.span("error"):
    try: nn.Sequential(Bad())(x)
    except ValueError as error: print(error)
    waffle.event("after the error")
print(bool(waffle.current()))
"""
    alone, capture = script.alone(text, **with_frameworks), script.record(text, **with_frameworks)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    rows = capture.rows("span")
    assert all(row.get("end_ns") for row in rows)
    [kept], [error] = named(rows, "kept"), named(rows, "error")
    assert children(rows, kept) == ["Sequential.forward", "backward", "backward"]
    for back in named(rows, "backward")[:2]:
        assert sorted(children(rows, back)) == ["Linear.backward", "ReLU.backward", "Sequential.backward"]
    assert capture.rows("event", name="after the error")[0]["parent"] == error["id"]
    [grad] = named(rows, "autograd.grad")
    assert len(children(rows, grad)) == 3


def test_torch_modules_may_get_anything_and_run_backward_in_several_threads(script, with_frameworks):  # noqa: F811
    text = TRAINING + """
import threading, time
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.full = nn.Linear(2, 2)
    def __eq__(self, other): return self is other       # and so it has no hash
    def forward(self, values, x): return self.full(x) + values[0]
circle = [1]
circle.append(circle)
odd = Odd()
print(odd(circle, torch.ones(1, 2)).sum().item(), odd([2] * 1000000, torch.ones(1, 2)).sum().item())
both = threading.Barrier(2)
class Meet(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x.clone()
    @staticmethod
    def backward(context, gradient):
        both.wait(60)                                   # here both passes run
        return gradient
def work(n):
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with waffle.span("thread", n=n): Meet.apply(module(torch.ones(1, 2))).sum().backward()
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    alone, capture = script.alone(text, **with_frameworks), script.record(text, **with_frameworks)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    rows = capture.rows("span")
    assert len(named(rows, "Odd.forward")) == 2 and {row["args"]["input"] for row in named(rows, "Odd.forward")} == {
        "float32[1,2]"}
    for thread in named(rows, "thread"):
        assert children(rows, thread) == ["Sequential.forward", "backward"]
        [back] = [row for row in named(rows, "backward") if row.get("parent") == thread["id"]]
        assert sorted(children(rows, back)) == ["Linear.backward", "ReLU.backward", "Sequential.backward"]
        forwards = {row["id"] for row in rows if row["name"].endswith(".forward") and row["tid"] == thread["tid"]}
        assert all(link["id"] in forwards for row in rows if row.get("parent") == back["id"] for link in row["links"])

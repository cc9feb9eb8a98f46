# SPDX-License-Identifier: Apache-2.0
"""waffle.hpp: the values of all types as they were given, contexts that follow work to other threads
and through coroutines, and what the compiler says of a wrong use. tests/sites has the sites themselves."""

import os
import subprocess

import pytest

from tracer import Capture, PROGRAMS, ROOT, find_tool, named

COMPILERS = ["g++", "clang++"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror"]
LONGER = "y" * 256 + "…"


@pytest.fixture(scope="module", params=COMPILERS)
def pairs(built, request):
    return built(PROGRAMS / "pairs.cpp", "-std=c++17", "-O2", "-pthread", *WARNINGS,
                 name=f"pairs-{request.param}", compiler=find_tool(request.param))


def args_of(capture, name, kind="event"):
    [row] = capture.rows(kind, name=name)
    return row["args"]


def test_values_of_all_types_are_recorded_as_they_were_given(waffle, pairs):
    capture = waffle.run(pairs, "values", options=("--no-sched",))
    capture.check_sums(lost=0)
    assert args_of(capture, "integers") == {
        "char": -1, "long": 1 << 40, "huge": (1 << 64) - 1, "bool": True, "scoped": -2,
        "flag": 1 << 63, "bits": 5, "rank": -7}
    assert args_of(capture, "reals") == {"float": 1.5, "double": -0.25, "long double": 2.0,
                                         "nan": "NaN"}
    assert args_of(capture, "texts") == {
        "literal": "x", "string": "temporary", "view": "abc", "empty": "", "null": None,
        "longer": LONGER, "longer view": LONGER}
    assert args_of(capture, "durations") == {"ms": 3_000_000, "half": 500_000_000,
                                             "back": -1_000_000_000}
    assert args_of(capture, "optionals") == {"some": 4, "after": 5, "text": "t", "no text": None,
                                             "real": 0.5, "last": 6}
    assert args_of(capture, "pointers") == {"null": "0x0", "number": "0x1234"}
    assert args_of(capture, "of C") == {"i": -1, "s": "text", "b": True}
    [linked] = capture.rows("event", name="linked")
    [begun] = capture.rows("span", name="begun")
    assert linked["links"] == [{"kind": "span", "id": begun["id"]}]


@pytest.mark.parametrize(("expression", "kept"), [
    ("kv.some == 4", ["optionals"]), ("kv.none >= 0", []), ("kv.none != 7", []), ("kv.after == 5", ["optionals"]),
    ("kv.real > 0.25", ["optionals"]), ("kv.last == 6", ["optionals"]), ("kv.view ~ 'ab*'", ["texts"]),
    ("kv.half == 500000000", ["durations"])])
def test_filters_compare_the_values_in_the_kernel_as_in_the_file(waffle, pairs, expression, kept):
    live = waffle.run(pairs, "values", options=("--no-sched", "--filter", expression))
    assert [row["name"] for row in live.rows("event")] == kept
    whole = waffle.run(pairs, "values", options=("--no-sched",))
    rows = waffle.ok("export", "--format", "ndjson", "--filter", expression, "-o", "-",
                     whole.path).stdout
    assert [line for line in rows.splitlines() if '"kind":"event"' in line].__len__() == len(kept)


def test_values_are_evaluated_once_when_armed_and_never_while_dormant(waffle, pairs):
    alone = subprocess.run([pairs, "once"], stdout=subprocess.PIPE, check=True, timeout=60)
    assert alone.stdout == b"0\n"
    capture = waffle.run(pairs, "once", options=("--no-sched",))
    assert capture.result.stdout.splitlines()[0] == "3"
    assert args_of(capture, "span", "span") == {"n": 1, "text": "2"}


def test_work_from_a_queue_has_the_dispatching_span_as_its_parent(waffle, pairs):
    capture = waffle.run(pairs, "queue", options=("--no-sched",))
    dispatched = {row["id"]: row for row in capture.rows("span", name="dispatch")}
    work = capture.rows("span", name="work")
    assert len(dispatched) == len(work) == 3
    for row in work:
        parent = dispatched[row["parent"]]
        assert parent["args"] == row["args"] and parent["trace"] == row["trace"]
        assert parent["tid"] != row["tid"]


def test_threads_futures_and_pools_keep_the_context_of_the_starter(waffle, pairs):
    capture = waffle.run(pairs, "bound", options=("--no-sched",))
    [starter] = capture.rows("span", name="starter")
    [pool] = capture.rows("span", name="of the pool")
    for name in ("in thread", "in async", "in pool"):
        [event] = capture.rows("event", name=name)
        assert event["parent"] == starter["id"] and event["tid"] != starter["tid"]
    [after] = capture.rows("event", name="after the work")
    assert after["parent"] == pool["id"]


def test_debug_keys_are_evaluated_in_full_mode_only(waffle, built, libwaffle_flags, tmp_path):
    program = built(PROGRAMS / "pairs.cpp", "-std=c++17", "-pthread", *libwaffle_flags,
                    name="pairs-full", compiler=find_tool("g++"))
    found = {}
    for mode in ("fast", "full"):
        path = tmp_path / f"{mode}.waffle"
        done = subprocess.run([program, "full"], stdout=subprocess.PIPE, check=True, timeout=60, text=True,
                              env={**os.environ, "WAFFLE_TRACE": str(path), "WAFFLE_MODE": mode})
        rows = Capture(waffle, path).rows("event")
        [debug], [failed] = named(rows, "debug"), named(rows, "failed")
        found[mode] = done.stdout, debug["args"], failed["args"]
    assert found["fast"] == ("0\n", {"always": 1, "text": None}, {"n": 3})
    count, debug, failed = found["full"]
    assert (count, debug) == ("1\n", {"always": 1, "number": 2, "text": "t"})
    assert failed["n"] == 3 and "full" in failed["frames"] and "pairs.cpp" in failed["frames"]


# ---- spans as objects, and names of run time ----


def test_a_span_moves_and_ends_once_where_its_object_does(waffle, built):
    program = built(PROGRAMS / "spans.cpp", "-std=c++17", *WARNINGS, name="spans-literal")
    alone = subprocess.run([program, "literal"], stdout=subprocess.PIPE, check=True, timeout=60, text=True)
    assert alone.stdout == "0 0 1\n0\n"  # dormant: all ids are null
    capture = waffle.run(program, "literal", options=("--no-sched",))
    capture.check_sums(lost=0)
    assert capture.result.stdout.splitlines()[:2] == ["0 1 0", "0"]
    first, second, third = sorted(capture.rows("span", name="literal"), key=lambda row: row["args"]["i"])
    [inside] = capture.rows("event", name="inside")
    [elsewhere] = capture.rows("event", name="elsewhere")
    assert inside["parent"] == second["id"] and elsewhere.get("parent") is None
    # The first was ended, the second went to another thread, and the third ends with the vector.
    assert inside["start_ns"] < first["end_ns"] < elsewhere["start_ns"] < second["end_ns"] < third["end_ns"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_names_of_run_time_have_the_values_and_causes_of_macros(waffle, built, libwaffle_flags, tmp_path, compiler):
    program = built(PROGRAMS / "spans.cpp", "-std=c++17", "-DNAMED", *WARNINGS, *libwaffle_flags,
                    name=f"spans-{compiler}", compiler=find_tool(compiler))
    path = tmp_path / "spans.waffle"
    subprocess.run([program, "named"], check=True, timeout=60, env={**os.environ, "WAFFLE_TRACE": str(path)})
    capture = Capture(waffle, path)
    [cause] = capture.rows("event", name="cause")
    assert cause["args"] == {"n": 7}
    for name in ("parse", "bind"):
        [span] = capture.rows("span", name=name)
        assert span["args"] == {"text": "t", "view": "abc", "real": 0.5, "yes": True, "ms": 3_000_000,
                                "some": -4, "address": "0x10"}
        assert span["links"] == [{"kind": "event", "id": cause["id"]}]
        [inside] = [row for row in capture.rows("event", name="from a buffer") if row["parent"] == span["id"]]
        assert span["start_ns"] < inside["start_ns"] < span["end_ns"]
    source = (PROGRAMS / "spans.cpp").read_text().splitlines()
    [line] = [number for number, text in enumerate(source, 1) if "Waffle::Span span(name" in text]
    rows = waffle.ok("export", "--format", "ndjson", "--filter",
                     f'file ~ "*spans.cpp" && line >= {line} && line < {line + 4}',
                     "-o", "-", path).stdout
    assert rows.count('"kind":"span"') == 2
    [after] = capture.rows("span", name="after")
    assert after["end_tid"] != after["tid"] and not after.get("links")


def test_an_event_whose_id_is_dropped_is_a_warning(tmp_path):
    source = tmp_path / "dropped.cpp"
    source.write_text('#include <waffle.hpp>\nint main() { Waffle::Event("x"); }\n')
    done = subprocess.run([find_tool("g++"), "-std=c++17", "-Wall", f"-I{ROOT / 'include'}", "-fsyntax-only",
                           source], stderr=subprocess.PIPE, text=True, check=True, timeout=120)
    assert "nodiscard" in done.stderr


# ---- coroutines ----


def test_tasks_keep_their_spans_over_suspensions_and_threads(waffle, built):
    program = built(PROGRAMS / "tasks.cpp", "-std=c++20", "-O2", "-pthread", *WARNINGS,
                    name="tasks", compiler=find_tool("g++"))
    capture = waffle.run(program, options=("--no-sched",))
    capture.check_sums(lost=0)
    assert capture.result.stdout.splitlines()[:2] == ["6", "caught"]
    names = {row["id"]: row["name"] for kind in ("span", "event") for row in capture.rows(kind)}
    parents = [(row["name"], names.get(row.get("parent")))
               for kind in ("span", "event") for row in capture.rows(kind)]
    assert sorted(parents, key=str) == sorted(
        [("main", None), ("outer", "main"), *[("inner", "outer")] * 3, *[("in inner", "inner")] * 3,
         *[("in outer", "outer")] * 3, ("thrower", "main"), ("after", "main")], key=str)
    # What runs on behind a suspension is on another thread.
    assert len({row["tid"] for row in capture.rows("event", name="in inner")}) == 3
    for row in capture.rows("span", name="inner"):
        [inside] = [event for event in capture.rows("event", name="in inner")
                    if event["parent"] == row["id"]]
        assert row["start_ns"] < inside["start_ns"] < row["end_ns"]


# ---- causes across ranks ----


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_nan_on_rank_0_comes_from_the_event_on_rank_1(waffle, tmp_path, library):
    program = tmp_path / "all_reduce_nan"
    subprocess.run([find_tool(f"mpicxx.{library}"), "-std=c++17", "-O2", f"-I{ROOT / 'include'}",
                    "-o", program, ROOT / "examples" / "all_reduce_nan.cpp"], check=True)
    options = ("--allow-run-as-root", "--oversubscribe") if library == "openmpi" else ()
    capture = waffle.run(find_tool(f"mpirun.{library}"), *options, "-n", 4, program,
                         options=("--no-sched", "--probes", "mpi"))
    [cause] = capture.rows("event", name="Input buffer contains NaN")
    assert cause["args"] == {"rank": 1, "suggestion": "check the loss of this rank"}
    reduced = capture.rows("span", name="NcclAllReduce")
    assert sorted((row["args"]["rank"], row["args"]["element_count"], len(row.get("links", ())))
                  for row in reduced) == [(0, 8, 0), (1, 8, 1), (2, 8, 0), (3, 8, 0)]
    text = waffle.ok("why", "--event", "Output buffer is NaN after AllReduce", capture.path).stdout
    assert "Input buffer contains NaN" in text and "rank 1" in text


# ---- the compiler ----


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("use", "message"), [
    ('WAFFLE_EVENT("x", "key")', "each followed by its value"),
    ('WAFFLE_EVENT("x", 1, 2)', "each followed by its value"),
    ('WAFFLE_EVENT("x", "key", std::pair<int, int>(1, 2).first)', "put parentheses around"),
    ('WAFFLE_EVENT("x", "key", std::string{}, "y", (std::pair<int, int>(1, 2)))', "a value is a number"),
    ('WAFFLE_EVENT("x", "k\\u00e9y", 1)', "unknown escape"),
    ("WAFFLE_EVENT(\"x\", " + ", ".join(f'"k{i}", {i}' for i in range(17)) + ")", "at most 16 keys"),
])
def test_a_wrong_use_is_one_clear_error(tmp_path, compiler, use, message):
    source = tmp_path / "wrong.cpp"
    source.write_text(f"#include <waffle.hpp>\nint main() {{ {use}; }}\n")
    done = subprocess.run([find_tool(compiler), "-std=c++17", f"-I{ROOT / 'include'}", "-fsyntax-only",
                           source], stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode and message in done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_compiles_behind_a_static_variable_with_a_destructor(tmp_path, compiler):
    """For which g++ declares __dso_handle by itself."""
    source = tmp_path / "static.cpp"
    source.write_text("""
#include <string>
inline std::string &name() { static std::string text = "a"; return text; }
#include <waffle.hpp>
int main() { WAFFLE_SPAN("span", "name", name()); }
""")
    subprocess.run([find_tool(compiler), "-std=c++17", *WARNINGS, f"-I{ROOT / 'include'}", "-o", tmp_path / "static",
                    source], check=True, timeout=120)
    subprocess.run([tmp_path / "static"], check=True, timeout=60)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20", "c++2b"])
@pytest.mark.parametrize("flags", [("-O0",), ("-DWAFFLE_DISABLE",), ("-fno-exceptions", "-fno-rtti")])
def test_it_compiles_without_a_warning(tmp_path, compiler, standard, flags):
    for source in ("pairs.cpp", "spans.cpp"):
        subprocess.run([find_tool(compiler), f"-std={standard}", *WARNINGS, *flags, "-DNAMED",
                        f"-I{ROOT / 'include'}", "-pthread", "-c", "-o", tmp_path / "object.o",
                        PROGRAMS / source], check=True, timeout=120)


@pytest.mark.parametrize("disabled_first", [True, False])
def test_units_with_and_without_waffle_are_one_program(waffle, libwaffle_flags, tmp_path, disabled_first):
    """Without optimisation nothing is inlined, and the linker takes the first definition of all."""
    objects = []
    for disabled in (True, False) if disabled_first else (False, True):
        objects.append(tmp_path / f"{disabled}.o")
        subprocess.run(["g++", "-std=c++20", "-O0", f"-I{ROOT / 'include'}", "-c", "-o", objects[-1],
                        PROGRAMS / "variants.cpp", *(["-DWAFFLE_DISABLE", "-DOTHER"] * disabled)],
                       check=True)
    program = tmp_path / "variants"
    subprocess.run(["g++", "-o", program, *objects, *libwaffle_flags, "-pthread"], check=True)
    path = waffle.path()
    done = subprocess.run([program], env={**os.environ, "WAFFLE_TRACE": str(path)}, text=True,
                          check=True, stdout=subprocess.PIPE, timeout=60)
    assert done.stdout == "1 1\n"
    rows = [r for r in Capture(waffle, path).rows() if r["kind"] in ("span", "event")]
    assert sorted(r["name"] for r in rows) == ["behind", "in thread", "span", "task"]
    [span] = [r for r in rows if r["name"] == "span"]
    assert all(r["parent"] == span["id"] for r in rows if r is not span)


MODULE = """module;
#include <waffle.hpp>
export module worker;
export class Worker
{
      public:
	void step(int number)
	{
		WAFFLE_SPAN("step", "rank", this->rank, "number", number);
		[this] { WAFFLE_EVENT("in lambda", "rank", rank); }();
	}

      private:
	int rank = 3;
};
template <class T> T twice(T value)
{
	WAFFLE_SPAN("twice", "value", value);
	return value + value;
}
export int four() { return twice(2); }
"""


def test_sites_in_a_module_of_cpp20_are_recorded(waffle, tmp_path):
    """gcc's modules. docs/cpp.md has what neither gcc 12 nor clang 14 can do: exported templates."""
    (tmp_path / "worker.cpp").write_text(MODULE)
    (tmp_path / "main.cpp").write_text("import worker;\nint main() { Worker().step(4); return four() - 4; }\n")
    for name in ("worker", "main"):
        subprocess.run([find_tool("g++"), "-std=c++20", "-fmodules-ts", f"-I{ROOT / 'include'}", "-O2", "-c",
                        f"{name}.cpp"], cwd=tmp_path, check=True, timeout=120)
    subprocess.run([find_tool("g++"), "-o", "main", "main.o", "worker.o"], cwd=tmp_path, check=True, timeout=120)
    capture = waffle.run(tmp_path / "main", options=("--no-sched",))
    assert args_of(capture, "step", "span") == {"rank": 3, "number": 4}
    assert args_of(capture, "in lambda") == {"rank": 3}
    assert args_of(capture, "twice", "span") == {"value": 2}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_dormant_use_has_the_instructions_of_c(tmp_path, compiler):
    """The same function with the macros of C and of C++: one test and one branch each, and no more."""
    listings = {}
    for name, include, use in (("c", "waffle.h", 'KV_I64("a", a), KV_I64("b", b)'),
                               ("c++", "waffle.hpp", '"a", a, "b", b')):
        source = tmp_path / f"{name.replace('+', 'p')}.cpp"
        source.write_text(f'#include <{include}>\nextern "C" long hot(long a, long b)\n'
                          f'{{ WAFFLE_EVENT("e", {use}); return a * b; }}\n')
        out = source.with_suffix(".o")
        subprocess.run([find_tool(compiler), "-std=c++17", "-O2", f"-I{ROOT / 'include'}", "-c", "-o", out,
                        source], check=True, timeout=120)
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", out], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        body = text.split("<hot>:")[1].split("\n\n")[0]
        listings[name] = [line.split("\t")[1].split()[0] for line in body.splitlines()[1:] if "\t" in line]
    # Up to the first return: what a dormant site executes.
    dormant = {name: words[: words.index("ret") + 1] for name, words in listings.items()}
    assert dormant["c"].count("cmpw") == dormant["c++"].count("cmpw") == 1
    assert len(dormant["c++"]) <= len(dormant["c"])

# SPDX-License-Identifier: Apache-2.0
"""Sites of every shape, compiled in every way, are read back exactly from the ELF file.

The sources are in tests/sites; what must be read is in their comments. The matrix is compiled once,
in parallel; each test looks at its part. A check takes a third of the matrix, in which each form of
code meets each level and each compiler; `make sites` takes all of it.
"""

import collections
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tracer import ROOT, find_tool

sys.path.insert(0, str(ROOT / "tests" / "sites"))
import expected  # noqa: E402

SITES = "tests/sites"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

Language = collections.namedtuple("Language", "sources headers compilers")
LANGUAGES = {
    "c": Language(["first.c", "second.c"], ["inline.h", "shapes.h"],
                  {"gcc": "gcc", "clang": "clang"}),
    "c++": Language(["first.cpp", "second.cpp", "pairs.cpp"],
                    ["inline.h", "shapes.h", "classes.hpp", "pairs.hpp"],
                    {"gcc": "g++", "clang": "clang++"}),
}
STANDARDS = {"c11": "c", "c17": "c", "c++17": "c++", "c++20": "c++"}
LEVELS = {"O0": ["-O0"], "O2": ["-O2"], "O3": ["-O3", "-g"], "lto": ["-O2", "-flto"],
          "sections": ["-O2", "-ffunction-sections", "-fdata-sections"]}
LINK_LEVEL = {"sections": ["-Wl,--gc-sections"]}
# How code is compiled and linked.
FORMS = {"-fno-pie": ["-no-pie"], "-fPIE": ["-pie"], "-fPIC": ["-pie", "-shared"]}
LINKERS = ["bfd", "lld"]
COMPILERS = ["gcc", "clang"]

WANTED = {name: expected.read(*language.headers, *language.sources)
          for name, language in LANGUAGES.items()}


def measured(standard, level):
    """The newer standards change no code, so that they need not be tried at every level."""
    return standard in ("c11", "c++17") or level in ("O0", "O2")


def forms(compiler, standard, level):
    if "WAFFLE_ALL_SITES" in os.environ:
        return list(FORMS)
    turn = COMPILERS.index(compiler) + list(STANDARDS).index(standard) + list(LEVELS).index(level)
    return [list(FORMS)[turn % len(FORMS)]]


def call(*command, **options):
    """Runs a command in the root of the tree, so that files are named as there; its output."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, timeout=120, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-3000:]}"
    return done.stdout


def linkers(compiler, level):
    """Link-time optimisation needs the linker of the compiler's own kind."""
    if level == "lto":
        return ["bfd" if compiler == "gcc" else "lld"]
    return LINKERS


class Builder:
    """Compiles, links and lists, each in a pool of threads; results are futures."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.pool = ThreadPoolExecutor(os.cpu_count() or 2)

    def list(self, path):
        done = subprocess.run([self.program, "list", "--json", path], stdout=subprocess.PIPE,
                              check=True, timeout=60)
        return json.loads(done.stdout)

    def compile(self, name, driver, standard, flags):
        """Object files of all sources."""
        objects = []
        for source in LANGUAGES[STANDARDS[standard]].sources:
            objects.append(self.folder / f"{name}-{source}.o")
            call(*driver, f"-std={standard}", *WARNINGS, *flags, "-Iinclude", "-c", "-o",
                 objects[-1], f"{SITES}/{source}")
        return objects

    def check(self, path, standard, may_drop=False):
        """The sites of a file are those expected; returns the listing."""
        listing = self.list(path)
        wrong = expected.differences(WANTED[STANDARDS[standard]], listing["sites"], may_drop)
        assert not wrong, f"{path.name}:\n" + "\n".join(wrong[:20])
        assert listing["bad_notes"] == 0, path.name
        return listing

    def variant(self, compiler, standard, level, form):
        """One way to compile, with all that is linked of it, by all linkers, stripped and not."""
        driver = [LANGUAGES[STANDARDS[standard]].compilers[compiler]]
        name = re.sub(r"\W", "_", f"{compiler}-{standard}-{level}{form}")
        objects = self.compile(name, driver, standard, [*LEVELS[level], form])
        for linker in linkers(compiler, level):
            for link in FORMS[form]:
                out = self.folder / f"{name}-{linker}{link}"
                call(*driver, *LEVELS[level], form, link, *LINK_LEVEL.get(level, []),
                     f"-fuse-ld={linker}", "-o", out, *objects)
                self.look(out, standard, link == "-shared",
                          level in ("lto", "sections") and link != "-shared")

    def look(self, out, standard, shared, may_drop):
        """Reads a linked file back, runs it, and reads it back stripped."""
        listing = self.check(out, standard, may_drop)
        check_usdt(out, listing)
        if not shared:
            call(out)
        call("strip", "-s", out)
        if self.list(out) != listing:
            raise AssertionError(f"{out.name}: not the same sites after strip")
        out.unlink()


def check_usdt(path, listing):
    """As many plain USDT notes as copies of sites, by kind, each with a semaphore of its own."""
    notes = re.findall(r"Provider: waffle\s+Name: (\w+)\s+Location: (\w+), .*Semaphore: (\w+)",
                       call("readelf", "-nW", path))
    # Those of code that lld dropped stay behind, with addresses in no section.
    code = min(int(address, 16) for address in
               re.findall(r"LOAD\s+\w+ (\w+) \w+ \w+ \w+ R E", call("readelf", "-lW", path)))
    notes = [note for note in notes if int(note[1], 16) >= code]
    notes = [(*name.rsplit("_", 1), place, semaphore) for name, place, semaphore in notes]
    found = collections.Counter((kind, int(line)) for kind, line, _, _ in notes
                                if kind != "span_end")
    wanted = collections.Counter()
    for site in listing["sites"]:
        kind = "log" if site["kind"].startswith("log_") else site["kind"]
        wanted[kind, site["line"]] += site["copies"]
    assert found == wanted
    places = [int(place, 16) for _, _, place, _ in notes]
    semaphores = [int(semaphore, 16) for kind, _, _, semaphore in notes if kind != "span_end"]
    assert 0 not in places and 0 not in semaphores
    assert len(set(places)) == len(places)
    assert len(set(semaphores)) == len(semaphores)


@pytest.fixture(scope="module")
def builder(waffle_program, tmp_path_factory):
    made = Builder(waffle_program, tmp_path_factory.mktemp("sites"))
    yield made
    made.pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def matrix(builder):
    return {(compiler, standard, level): [
                builder.pool.submit(builder.variant, compiler, standard, level, form)
                for form in forms(compiler, standard, level)]
            for compiler in COMPILERS for standard in STANDARDS for level in LEVELS
            if measured(standard, level)}


@pytest.mark.parametrize(("standard", "level"), [
    (standard, level) for standard in STANDARDS for level in LEVELS if measured(standard, level)])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_site_is_read_back_however_it_was_compiled(matrix, compiler, standard, level):
    for result in matrix[compiler, standard, level]:
        result.result()


def test_the_sources_hold_sites_of_every_kind_type_and_number_of_keys():
    sites = WANTED["c++"]
    assert {site.kind for site in sites} == {"span", "event", "counter", "log_info", "log_warn",
                                             "log_error"}
    assert {form for site in sites for _, form in site.keys} == {
        "i64", "u64", "f64", "bool", "str", "ptr", "number", "cause_span", "cause_event"}
    assert {0, 1, 2, 8, 15, 16} <= {len(site.keys) for site in sites}
    assert len(sites) > 100
    assert len({site[:6] for site in sites}) > 100


def test_copies_of_inline_functions_and_templates_are_one_site(builder):
    objects = builder.compile("copies", ["g++"], "c++17", ["-O2"])
    out = builder.folder / "copies"
    call("g++", "-o", out, *objects)
    copies = {(site["name"], site["line"]): site["copies"] for site in builder.list(out)["sites"]}
    by_name = collections.Counter()
    for (name, _), count in copies.items():
        by_name[name] += count
    assert by_name["pick"] >= 4  # pick<int, int>, <double, long>, <char, unsigned>, <int, char>, …
    assert by_name["Box::get"] >= 2
    assert by_name["forced"] >= 3
    assert by_name["plain span"] >= 1


def test_a_relocatable_file_lists_without_a_crash(builder):
    objects = builder.compile("objects", ["gcc"], "c11", ["-O2"])
    result = subprocess.run([builder.program, "list", "--json", objects[0]],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert result.returncode in (0, 1)


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_aarch64_sites_are_read_back(builder, compiler, standard, level):
    cross = "aarch64-linux-gnu-"
    if compiler == "gcc":
        driver = [cross + ("gcc" if STANDARDS[standard] == "c" else "g++")]
    else:
        driver = [LANGUAGES[STANDARDS[standard]].compilers["clang"], "--target=aarch64-linux-gnu"]
    find_tool(driver[0])
    for form, link_forms in FORMS.items():
        name = re.sub(r"\W", "_", f"aarch64-{compiler}-{standard}-{level}{form}")
        objects = builder.compile(name, driver, standard, [*LEVELS[level], form])
        linker = [] if compiler == "gcc" else ["-fuse-ld=lld"]
        for link in link_forms:
            out = builder.folder / f"{name}{link}"
            call(*driver, link, *linker, "-o", out, *objects)
            check_usdt(out, builder.check(out, standard))


# ---- -DWAFFLE_DISABLE ----


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_disabled_nothing_of_waffle_is_left(builder, compiler, standard, level):
    driver = [LANGUAGES[STANDARDS[standard]].compilers[compiler]]
    name = re.sub(r"\W", "_", f"disabled-{compiler}-{standard}-{level}")
    objects = builder.compile(name, driver, standard, LEVELS[level] + ["-DWAFFLE_DISABLE"])
    for path in objects:
        sections = call("readelf", "-SW", path)
        for section in (".note.waffle", ".note.stapsdt", ".probes", ".stapsdt.base"):
            assert section not in sections
        # Functions on contexts stay: a program may parse a traceparent without waffle's macros.
        left = {line.split()[-1] for line in call("nm", path).splitlines() if "waffle" in line}
        assert {name for name in left if not re.search(
            r"waffle_(context_(extract|(to|from)_traceparent)|hex_)|waffle_(event_id|span)_t", name)
               } == set()
    out = builder.folder / name
    call(*driver, "-o", out, *objects)
    call(out)
    strings = call("strings", out)
    for site in WANTED[STANDARDS[standard]]:
        if len(site.name) > 8 and site.name.isascii() and site.name.isprintable():
            assert site.name not in strings or site.name in ("destructor",), site.name
    assert builder.list(out)["sites"] == []


ARGUMENTS = r"""
#include <stdio.h>
#include <waffle_macros.h>
static int evaluated;
static int count(void) { return ++evaluated; }
int main(void)
{
	waffle_event_id_t id;
	{
		SPAN("span", KV_I64("a", count()), KV_STR("b", count() ? "x" : "y"));
		id = EVENT("event", KV_I64("a", count()), KV_F64("b", count()));
		COUNTER("counter", count());
		WAFFLE_END(WAFFLE_BEGIN("begin", KV_I64("a", count())));
		LOG_WARN("log", KV_CAUSE_EVENT(EVENT("cause", KV_I64("a", count()))));
	}
	printf("%d %d\n", evaluated, id.value != 0);
	return 0;
}
"""


@pytest.mark.parametrize("flags", [[], ["-DWAFFLE_DISABLE"]], ids=["dormant", "disabled"])
@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "clang++"])
def test_arguments_are_compiled_but_not_evaluated(tmp_path, compiler, flags):
    source = tmp_path / ("arguments.cpp" if "++" in compiler else "arguments.c")
    source.write_text(ARGUMENTS, encoding="utf-8")
    for level in ("-O0", "-O2"):
        call(compiler, level, *flags, *WARNINGS, "-Iinclude", "-o", tmp_path / "arguments", source)
        assert call(tmp_path / "arguments") == "0 0\n"
    source.write_text(ARGUMENTS.replace("count()))", "no_such_function()))"), encoding="utf-8")
    with pytest.raises(AssertionError, match="no_such_function"):
        call(compiler, *flags, "-Werror=implicit-function-declaration", "-Iinclude", "-o",
             tmp_path / "arguments", source)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_conversions_are_explicit(builder, compiler):
    for standard in ("c11", "c++17"):
        driver = [LANGUAGES[STANDARDS[standard]].compilers[compiler]]
        builder.compile(f"conversion-{compiler}-{standard.replace('+', 'x')}", driver, standard,
                        ["-O2", "-Wconversion", "-Wsign-conversion", "-Wundef", "-Wcast-qual"])


# ---- the cost of dormant code ----


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """steps(compiler): instructions that one pass of each loop of dormant.c executes."""
    folder = tmp_path_factory.mktemp("steps")
    call("gcc", "-O2", *WARNINGS, "-o", folder / "steps", f"{SITES}/steps.c")

    def count(compiler, level):
        out = folder / f"dormant-{compiler}{level}"
        call(compiler, "-std=c11", level, *WARNINGS, "-Iinclude", "-o", out, f"{SITES}/dormant.c")
        return {words[0]: float(words[1]) for words in
                map(str.split, call(folder / "steps", out).splitlines())}

    return count


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_dormant_site_executes_at_most_four_instructions(steps, compiler, level):
    counted = steps(compiler, level)
    assert counted["empty"] >= 2
    assert set(counted) >= {"span", "span_keys", "event", "event_keys", "counter", "begin_end"}
    # What a loop executes before and after its 1000 passes is the fraction.
    assert {shape: count for shape, count in counted.items()
            if round(count) - round(counted["empty"]) > 4} == {}

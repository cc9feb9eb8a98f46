# SPDX-License-Identifier: Apache-2.0
"""Values that stand for one function after another have the name of each while it is theirs."""

from test_calls import ONLY, logged, named, probes

USE = "uprobe:exe:use(code function, int id) as event"
GET = "uprobe:exe:get(out code function, str kernel) -> int role name"
RUNS_MAX = 20


def check(waffle, specs, *command):
    result = waffle.run(*command, options=[*ONLY, *probes(*specs)])
    told = [(row["id"], row["name"]) for row in logged(result.result.stdout.splitlines(), "use")]
    uses = [row["args"] for row in named(result, "use")]
    assert told and [(args["id"], args["function"]) for args in uses] == told
    return result


def test_handle_has_the_name_that_it_was_got_by_last(waffle, built):
    program = built("reused.c", "-DNAMED=unused")
    capture = check(waffle, [USE, GET], program, "handles")
    got = [row["args"] for row in named(capture, "get")]
    assert len(got) == 12 and all(args["function"] == args["kernel"] for args in got)


def plugins(built):
    """The program, and its arguments."""
    program = built("reused.c", "-DNAMED=unused")
    names = [f"plugin_{letter}" for letter in "abc"]
    files = [
        built("reused.c", f"-DNAMED={name}", "-Dmain=other", "-shared", "-fPIC", name=f"{name}.so")
        for name in names
    ]
    return [program, "plugins", *[f"{file}:{name}" for file, name in zip(files, names)]]


def test_address_has_the_name_of_the_library_that_is_there(waffle, built):
    check(waffle, [USE], *plugins(built))


def test_frame_is_of_the_library_that_was_there(waffle, built):
    sleep = "uprobe:libc.so.6:usleep(unsigned us) as event"
    command = plugins(built)
    modules = {word.split(":")[1]: word.split(":")[0] for word in command[2:]}
    # The first stacks end in a library that was not read yet, and say so. The program is so short that this may be true
    # of all, in particular if the C library's tables are not in the cache.
    for _ in range(RUNS_MAX):
        result = waffle.run(*command, options=[*ONLY, "--stacks", "probes", *probes(sleep)])
        told = [(row["id"], row["name"]) for row in logged(result.result.stdout.splitlines(), "use")]
        calls = {row["args"]["us"]: row for row in named(result, "usleep")}
        assert list(calls) == [number for number, _ in told]
        known = {us: row["user_stack"][1] for us, row in calls.items() if row["user_stack"][1:]}
        assert all(calls[us]["user_stack_cut"] for us in calls.keys() - known)
        assert all((us, frame["function"]) in told for us, frame in known.items())
        assert all(frame["module"] == modules[frame["function"]] for frame in known.values())
        if len(known) > len(told) / 2:
            return
    assert False, f"most stacks were cut in each of {RUNS_MAX} captures"


def test_address_has_the_name_of_the_program_that_is_there(waffle, built):
    first, second = [
        built("reused.c", f"-DNAMED={name}", "-no-pie", name=name) for name in ("first", "second")
    ]
    capture = check(waffle, [USE], first, "execs", second)
    assert {row["args"]["function"] for row in named(capture, "use")} == {"first", "second"}

# SPDX-License-Identifier: Apache-2.0
"""Values that stand for one function after another have the name of each while it is theirs."""

from test_calls import ONLY, logged, named, probes

USE = "uprobe:exe:use(code function, int id) as event"
GET = "uprobe:exe:get(out code function, str kernel) -> int role name"


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
    options = [*ONLY, "--stacks", "probes", *probes(sleep)]
    # The tables of the C library, which is large, are in the cache after that. They are read beside a capture, and may
    # be read only when the program has ended.
    waffle.run(*command, options=options)
    result = waffle.run(*command, options=options)
    told = [(row["id"], row["name"]) for row in logged(result.result.stdout.splitlines(), "use")]
    calls = {row["args"]["us"]: row for row in named(result, "usleep")}
    assert list(calls) == [number for number, _ in told]
    # On a busy machine the first stacks end in a library that was not read yet, and say so.
    known = {us: row["user_stack"][1] for us, row in calls.items() if row["user_stack"][1:]}
    assert all(calls[us]["user_stack_cut"] for us in calls.keys() - known)
    assert len(known) > len(told) / 2
    assert all((us, frame["function"]) in told for us, frame in known.items())
    modules = {word.split(":")[1]: word.split(":")[0] for word in command[2:]}
    assert all(frame["module"] == modules[frame["function"]] for frame in known.values())


def test_address_has_the_name_of_the_program_that_is_there(waffle, built):
    first, second = [
        built("reused.c", f"-DNAMED={name}", "-no-pie", name=name) for name in ("first", "second")
    ]
    capture = check(waffle, [USE], first, "execs", second)
    assert {row["args"]["function"] for row in named(capture, "use")} == {"first", "second"}

# SPDX-License-Identifier: Apache-2.0
"""Parameters, fields and results of all types, and filters that ask them."""

import pytest
from test_probes import arm
from tracer import PROGRAMS

NUMBERS = ("uprobe:exe:numbers(int i, unsigned u, long l, char c, bool b, str s, double, ptr p, "
           "short sh, u8 uc) -> int r")
FIELDS = ("uprobe:exe:fields(struct outer *o, char text[16]) {text, o->id as before, out o->id as "
          "after, o->path, o->inner.port, o->inner.tag, o->inner.weight, o->peer->tag as peer, "
          "o->color, o->side, o->mask, o->ok, o->done, o->low, o->high} -> long r")


def typed(waffle, start, program, *options):
    """The calls of types.c as they were recorded."""
    running = start(program)
    running.until("ready")
    attached = arm(waffle, running.pid, program, "--probe", NUMBERS, "--probe", FIELDS,
                   more=options)
    running.ask("go", "done")
    capture = attached.stop()
    capture.check_sums(lost=0)
    return capture.rows("span")


def test_values_of_all_types_are_what_the_program_passed(waffle, start, built):
    rows = typed(waffle, start, built("types.c"))
    numbers = [row["args"] for row in rows if row["name"] == "numbers"]
    [pointer] = {args.pop("p") for args in numbers}
    assert int(pointer, 16) > 4096
    assert numbers == [
        {"i": i, "u": 4000000000, "l": -5000000000, "c": ord("c") + i, "b": bool(i & 1),
         "s": "odd" if i % 2 else "even", "sh": i - 7, "uc": 200 + i, "r": 2 * i}
        for i in range(-2, 3)]
    assert [row["args"] for row in rows if row["name"] == "fields"] == [
        {"text": "hello", "before": turn, "after": turn + 1, "path": "/x", "port": 80,
         "tag": "full tag", "weight": turn + 1.5, "peer": "peer", "color": 2, "side": -2,
         "mask": 0xc0000000, "ok": True, "done": "finished", "low": -3, "high": 200,
         "r": turn + 1} for turn in range(1, 6)]


@pytest.mark.parametrize("expression, kept", [
    ("kv.i < 0 || kv.before > 4", 3),
    ("kv.u > 3999999999 && kv.l == -5000000000 && kv.c <= 99 || kv.high == 0", 3),
    ('kv.b == true || kv.text == "hello" && kv.after == 3', 3),
    ('kv.s == "odd" || kv.peer ~ "p*r" && kv.weight >= 5.5', 4),
    ("kv.p != 0 && kv.sh < -7 || kv.port == 81", 2),
    ("kv.uc == 202 || kv.color == 2 && kv.ok == true && kv.low == -3 && kv.high == 200", 6),
    ("kv.side < 0 && kv.mask > 2147483647 && kv.before > 1 || kv.i == 2", 5),
])
def test_filters_ask_values_of_all_types(waffle, start, built, expression, kept):
    assert len(typed(waffle, start, built("types.c"), "--filter", expression)) == kept


@pytest.mark.parametrize("flags", [(), ("-flto",)])
def test_struct_is_that_of_the_functions_own_source_file(waffle, built, flags):
    """Two files have structs of one name; each function returns the field that is asked for."""
    other = PROGRAMS / "structs_other.c"
    program = built("structs.c", "-fno-inline", other, *flags, name="structs" + "".join(flags))
    specs = [f"uprobe:exe:{f}(struct state *s) {{s->x}} -> int r" for f in ("here", "there")]
    specs += [f"uprobe:exe:{f}(pair_t *p) {{p->v}} -> int r" for f in ("here_pair", "there_pair")]
    specs += ["uprobe:exe:away(struct far *f) {f->x} -> int r"]
    capture = waffle.run(program, options=[w for s in specs for w in ("--probe", s)])
    seen = {row["name"]: row["args"] for row in capture.rows("span")}
    values = {"here": 11, "there": 22, "here_pair": 77, "there_pair": 6, "away": 55}
    assert {name: args["r"] for name, args in seen.items()} == values
    assert {name: args.get("x", args.get("v")) for name, args in seen.items()} == values


def test_structs_of_one_name_that_differ_are_not_guessed(waffle, built):
    program = built("structs.c", PROGRAMS / "structs_other.c", name="structs_twice")
    spec = "uprobe:exe:_start(struct state *s) {s->x} as event"
    result = waffle.call("list", "--probe", spec, program)
    assert result.returncode != 0 and "several structs 'state'" in result.stderr
    assert "^" in result.stderr

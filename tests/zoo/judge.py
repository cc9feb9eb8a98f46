# SPDX-License-Identifier: Apache-2.0
"""What `why` says of a program of the zoo, against its row and against the program's own log:

    judge.check(row, log, instances)
"""

import re

import zoo

GRADES = ["unknown", "likely", "certain"]
# Of a share that the program has measured from inside, and of the time between its own two looks at
# the clock that a span has at least: else the program lost its CPU between a look and its span, and
# what it measured is not the span's. An emulated machine is less exact than a real one.
TOLERANCE, OVERLAP = 0.1, 0.95
EMULATED = (0.25, 0.8)
# Shares below are no verdict.
SMALL = 0.05
# Spans are not judged of which other programs took more: there that is what is right.
DISTURBED = 0.25
# Spans of which a program has to be judged by at least so many: the others were disturbed by what
# else ran, as the program's own log says.
JUDGED_MIN = 3
# The machine may take a part of a span in a way that the log does not show: then `why` differs from
# the log. If that is so for more than half of the spans, it is waffle's fault. A cause that is wrong
# and `certain` is its fault each time.
RIGHT = 0.5
# In a row that may be late, a woken thread is late if it gets its CPU after more than this.
LATE_NS = 200_000
# Samples of which the judge asks what most of them show.
SAMPLES_MIN = 8
# So many may end by a wake-up of which the kernel told nothing: some virtual machines run no BPF
# program while their agent (process 1) has the CPU, also not for an interrupt on top of it.
UNTOLD_MAX = 2


def explained(victim, instances):
    """The instance of a logged span, the one that lies over most of it, and how much of it that
    is."""

    def common(instance):
        begin, end = instance["start_ns"], instance["start_ns"] + instance["duration_ns"]
        return min(end, victim["end"]) - max(begin, victim["begin"])

    best = max(instances, key=common)
    part = common(best) / (victim["end"] - victim["begin"])
    assert part > 0, f"no span explained at {victim['begin']}"
    assert best["thread"]["tid"] == victim["tid"]
    return best, part


def told(instance):
    return [
        f"{c['cause']} {c['share']:.2f} {c['grade']} {c['culprit']['comm']}"
        f"/{c['culprit']['span']}/{c['culprit']['object']}"
        for c in instance["causes"][:5]
    ]


def check_share(row, logged, instance, tolerance):
    """The program's own measure of a cause has in it what others took of the CPU meanwhile."""
    first, *rest = instance["causes"]
    tolerance = max(tolerance, row.tolerance)
    taken = sum(cause["share"] for cause in rest if cause["cause"] == "cpu-contention")
    low, high = logged["share"] - tolerance - taken, logged["share"] + tolerance
    assert low <= first["share"] <= high, f"measured {logged['share']:.2f}"


def check_code(row, first):
    """What most samples of the cause show."""
    samples = first.get("samples", {"count": 0})
    if row.code and samples["count"] >= SAMPLES_MIN:
        most = samples["places"][0]
        keys = ("mode", "function", "syscall", "spins")
        assert tuple(most[key] for key in keys) == row.code
        assert most["count"] > samples["count"] / 2


def check_first(row, logged, instance, tolerance):
    """The first cause, against the row and what the program has measured in this very span."""
    first = instance["causes"][0]
    culprit = first["culprit"]
    assert first["cause"] == row.cause
    assert culprit["comm"] == row.culprit
    assert culprit["tid"] == (logged["tid"] if row.culprit else None)
    if row.span:
        assert culprit["span"] == row.span
    if row.object == "cgroup":
        assert "cgroup" in culprit["object"]
    elif row.object == "ready":  # and nothing else that its epoll watches
        assert culprit["object"] == logged["object"]
    elif row.object and logged["object"]:
        assert logged["object"] in (culprit["object"] or "")
    if row.says:
        assert culprit["object"] == row.says
    if row.adds:
        assert re.search(row.adds, culprit["object"] or "")
    if row.neighbour:
        assert first["disk_shared_with"]["comm"] == row.neighbour
    check_code(row, first)
    check_share(row, logged, instance, tolerance)
    late = row.late and instance["parts"]["runnable_ns"] > LATE_NS
    weakest = min(row.grade, "likely", key=GRADES.index) if late else row.grade
    assert GRADES.index(first["grade"]) >= GRADES.index(weakest)


def falsely_sure(sure, instance):
    """Causes of a tenth and more of a span that are `certain` and not among (cause, culprit, span).
    Who took the CPU is what the program's log cannot know."""
    return [
        cause
        for cause in instance["causes"]
        if cause["grade"] == "certain"
        and cause["share"] >= 2 * SMALL
        and cause["cause"] != "cpu-contention"
        and (cause["cause"], cause["culprit"]["comm"], cause["culprit"]["span"]) not in sure
    ]


def is_wrong_and_certain(row, instance):
    """Of the first cause, if that is not the CPU that another program had."""
    first = instance["causes"][0]
    culprit = first["culprit"]
    right = first["cause"] == row.cause and culprit["comm"] == row.culprit
    right = right and (not row.span or culprit["span"] == row.span)
    return not right and first["grade"] == "certain" and first["cause"] != "cpu-contention"


def check_others(row, ranked, instance):
    """The order of what comes next, and nothing that is not there."""
    names = [cause["cause"] for cause in instance["causes"]]
    logged = [cause["cause"] for cause in ranked if cause["share"] > 2 * SMALL]
    expected = [name for name in row.second if name in logged]
    assert names[1 : 1 + len(expected)] == expected
    allowed = {row.cause, "running", "cpu-contention", *row.second, *row.others}
    false = [c for c in instance["causes"] if c["share"] >= SMALL and c["cause"] not in allowed]
    assert not false


def taken_by_others(ranked, instance):
    """The share of contention by whom the program's log does not name."""
    named = {cause["comm"] for cause in ranked}
    return sum(
        cause["share"]
        for cause in instance["causes"]
        if cause["cause"] == "cpu-contention" and cause["culprit"]["comm"] not in named
    )


def is_untold(instance):
    """Whether no record says who woke the thread from its longest wait."""
    first = instance["causes"][0]
    last = first["chain"][-1]
    return first["cause"] == "unknown" and last["state"] == "blocked" and not last["interrupt"]


def check_sums(instance):
    parts = instance["parts"]
    assert sum(parts.values()) == instance["duration_ns"]
    assert sum(cause["duration_ns"] for cause in instance["causes"]) == instance["duration_ns"]
    # What the capture itself took comes later.
    shares = [cause["share"] for cause in instance["causes"] if "capture" not in cause]
    assert shares == sorted(shares, reverse=True)


def check(row, log, instances, exact=(TOLERANCE, OVERLAP)):
    """Of one run: the program's log against what `why` says of its spans."""
    judged = untold = 0
    wrong = []
    for i, (victim, ranked) in zoo.rounds(log).items():
        instance, part = explained(victim, instances)
        check_sums(instance)
        if part < exact[1]:
            continue
        if not ranked or ranked[0]["cause"] != row.cause or ranked[0]["share"] < row.share - 0.1:
            continue
        if taken_by_others(ranked, instance) > DISTURBED:
            continue
        if is_untold(instance) and untold < UNTOLD_MAX:
            untold += 1
            continue
        judged += 1
        logged = [f"{c['cause']} {c['share']:.2f} {c['comm']}" for c in ranked]
        said = f"round {i}: logged {logged}\ntold {told(instance)}"
        if row.sure is not None:
            assert not falsely_sure(row.sure, instance), said
            continue
        assert not is_wrong_and_certain(row, instance), said
        try:
            check_first(row, ranked[0], instance, exact[0])
            check_others(row, ranked, instance)
        except AssertionError as error:
            wrong.append(f"{error}\n{said}")
    assert judged >= JUDGED_MIN, f"only {judged} spans went as they should on this busy machine"
    assert len(wrong) <= (1 - RIGHT) * judged, f"{len(wrong)} of {judged}: " + "\n".join(wrong)

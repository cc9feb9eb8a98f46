# SPDX-License-Identifier: Apache-2.0
"""The commands that are run on each capture; README.md says how to add some.

A line is what follows `waffle-bpf`. "@tty" before it runs it on a terminal, NAME=VALUE sets a variable
of the environment. A command runs in an empty folder where the captures that it names are links.
"""

import struct
import zlib

# On every capture; {c} is its name.
COMMON = """
info {c}
info --json {c}
report {c}
report --json {c}
report --html report.html {c}
why --evidence --slowest 3 {c}
why --json --evidence --slowest 5 {c}
view {c}
export {c}
export --format chrome {c}
export --format ndjson {c}
export --format records {c}
"""

# On those that can't be read.
FEW = """
info {c}
report --json {c}
export --format ndjson {c}
"""

MORE = {
    "shop": """
report --sort count --top 2 {c}
report --sort p50 {c}
report --sort p99 {c}
report --sort max {c}
report --sort running {c}
report --sort runnable {c}
report --sort blocked {c}
report --sort name --top 0 {c}
report --sort size {c}
report --from 5ms --to 20ms {c}
report --from 10s {c}
report --from 2ms --to 1ms {c}
report --html a.html --json {c}
report --html - --from 5ms --to 6ms {c}
report --memory-limit 1 {c}
report --memory-limit 64MiB {c}
report --filter 'kind == span' {c}
report --filter 'name ~ "re*" && kind != counter' {c}
report --filter 'category == "db"' --json {c}
report --filter '!(category == "web" || comm == "io")' {c}
report --filter 'file == "shop.c" && line >= 1 && line < 60' {c}
report --filter 'func == "serve" || func ~ "*_cache"' {c}
report --filter 'lib !~ "*.so*" && kind in {event, log}' {c}
report --filter 'dur > 300us' --keep-children {c}
report --filter 'dur > 300us' --keep-children --json {c}
report --filter 'depth == 0' {c}
report --filter 'depth in {1, 2} && kind == event' {c}
report --filter 'parent.name == "request" && name != "render"' {c}
report --filter 'kind == event && !(parent.name ~ "re*")' {c}
report --filter 'kv.bytes > 1MiB || kv.cost > 0.5 && kv.cost <= 2.5' {c}
report --filter 'kv.cached == false && kv.rows >= 1k' {c}
report --filter 'kv.table in {"orders", "users"}' {c}
report --filter 'kv.user ~ "*@example.com" && name == "request"' {c}
report --filter 'kind == counter && kv.value > 20' {c}
report --filter 'kind == log && name ~ "*[Tt]imeout*"' {c}
report --filter 'kind in {span, sched} && sample(1/3)' {c}
report --filter 'sample(50%) || dur > 10ms' {c}
report --filter 'name == "cache_miss" && rate(100/s)' {c}
report --filter 'kv.nothing == 1' {c}
report --filter 'nmae == 1' {c}
report --filter 'name == ' {c}
report --filter 'kv.bytes == "x" && name == 7' {c}
report --filter 'name == "nobody"' {c}
WAFFLE_FILTER='name == "flush"' report {c}
WAFFLE_FILTER='name ==' report {c}
report --filter 'name == "request" && dur > 1ms && sample(10%)' --explain {c}
report --filter 'name == "request" && dur > 1ms && kv.id in {1, 2}' --explain --json {c}
report --explain {c}
report --keep-children {c}
report --filter 'pid == 1 || tid > 1 && cpu in {0, 1}' {c}
report --filter 'comm ~ "worker-[01]" && kind == span' {c}
report --filter 'comm ~ "worker-[!0-2]*" && kv.n > 3' {c}
report --filter 'kv.cost >= 1.25 && kv.rows < 2.5k' {c}
report --filter 'kv.cost == -1 || kv.n >= 0.5 && kv.n < 9.5' {c}
report --filter 'kv.n in {1, 2.5, 0x10, 1e3}' {c}
report --filter '7 <= kv.n && 10ms > dur' {c}
report --filter 'kv.key == "page\\x3a4" || kv.key ~ "sess\\\\*"' {c}
report --filter 'name ~ "\\q"' {c}
report --filter 'name == "open' {c}
report --filter 'name == "a" name' {c}
report --filter 'name == "request" # a comment' {c}
report --filter '(name == "request"' {c}
report --filter 'name == "request")' {c}
report --filter 'name = "request"' {c}
report --filter 'name == request' {c}
report --filter 'name AND kind' {c}
report --filter 'not name == "a"' {c}
report --filter 'kind == spam' {c}
report --filter 'kind < span' {c}
report --filter 'dur > 10MiB' {c}
report --filter 'dur > 10xs' {c}
report --filter 'dur > 0.3ns' {c}
report --filter 'dur > 99999999999999999999' {c}
report --filter 'dur > "x"' {c}
report --filter 'kv.n > 0x' {c}
report --filter 'kv.n > 0xfffffffffffffffff' {c}
report --filter 'kv.n' {c}
report --filter 'kv == 1' {c}
report --filter 'kv."" == 1' {c}
report --filter 'line ~ "x"' {c}
report --filter 'name in {}' {c}
report --filter 'name in {"a", 1}' {c}
report --filter 'name in "a"' {c}
report --filter 'sample(0/3)' {c}
report --filter 'sample(5/3)' {c}
report --filter 'sample(120%)' {c}
report --filter 'sample 3' {c}
report --filter 'rate(100/day)' {c}
report --filter 'rate(0/s)' {c}
report --filter 'rate(5/min)' {c}
report --filter '3 ~ name' {c}
report --filter '' {c}
report --filter '@' {c}
report --filter '@nothing' {c}
report --filter @/mnt/bin/shop {c}
report --filter 'ß == 1' {c}
report --filter 'true' {c}
report --filter 'false' {c}
report --filter '!true || kv.n == true' {c}
why --filter 'name == "request"' {c}
why --filter 'kind == span' --slowest 1 {c}
why --where 'kv.user == "ann@example.com"' --slowest 2 --median {c}
why --where 'kv.user == "ann@example.com"' --slowest 2 --median --json {c}
why --where 'name == "nothing"' {c}
why --where 'name == "query"' --span request {c}
why --where 'name ==' {c}
why --where 'name == "query"' --thread worker-0 {c}
why --median --event retry {c}
why --compare {c}
why --compare --slowest 3 {c} {c}
report --where 'kv.user == "ann@example.com"' {c}
report --where 'dur > 300us' --filter 'name == "request"' --json {c}
report --compare --html x {c} {c}
why --span request --slowest 2 {c}
why --span requset {c}
why --span 0x1 {c}
why --thread worker-0 {c}
why --thread worker-0 --from 2ms --to 9ms --json {c}
why --thread worker-9 {c}
why --thread worker-0 --from 9s {c}
why --thread 1 {c}
why --from 1ms {c}
why --event retry {c}
why --event nothing --span request {c}
view --width 60 --top 2 {c}
view --span flush {c}
view --span fush {c}
view --thread io --from 1ms --to 30ms {c}
view --thread nobody {c}
view --from 1h {c}
view --filter 'name == "query"' {c}
LC_ALL=C view {c}
COLUMNS=50 view {c}
@tty view {c}
@tty NO_COLOR=1 view {c}
@tty report {c}
@tty why --evidence --slowest 2 {c}
export --format ndjson --filter 'name == "query" && kv.rows > 0' -o - {c}
export --format chrome --from 5ms --to 9ms -o - {c}
export --format records --from 5ms --to 9ms -o - {c}
export --from 5ms --to 9ms -o part.pftrace --json {c}
export --format ndjson --keep-children --filter 'name == "query"' -o - {c}
export --format xml {c}
export --from 2ms --to 1ms {c}
export --from 10s -o - {c}
export -o {c} {c}
export -o '' {c}
export -o /nowhere/x {c}
""",
    "causes-origin": """
why --event failed {c}
why --event nothing {c}
why --event 0x1 {c}
""",
    "hangs": """
why {c}
why --thread ring-1 {c}
@tty why {c}
""",
    "zoo-gil": """
why --compare zoo-gil-sched.waffle {c}
why --compare --json --span victim zoo-gil-sched.waffle {c}
why --compare --span nobody zoo-gil-sched.waffle {c}
report --compare --top 0 zoo-gil-sched.waffle {c}
""",
    "family-run-fork_exec": """
why --span tick --slowest 1 {c}
why --thread family {c}
""",
    "kernel-fsync-stacks": """
@tty report {c}
@tty why --evidence --slowest 2 {c}
why --thread kernel_waits --evidence {c}
why --thread kernel_waits --from 10ms --to 60ms --json {c}
""",
    "sim-training": """
why --span step --slowest 0 {c}
why --span 'all-reduce' --evidence {c}
report --filter 'kind == nccl' {c}
report --filter 'kind == cuda && kv.kernel ~ "*adam*"' --json {c}
report --filter 'name == "step" && kv.rank == 1' --keep-children {c}
report --from 20ms --to 200ms {c}
view --span step {c}
@tty view --top 4 {c}
export --format ndjson --from 100ms --to 150ms -o - {c}
""",
    "sim-calls": """
report --top 0 --sort name {c}
why --slowest 0 {c}
""",
    "gpu-calls": """
gpu {c}
gpu --json {c}
gpu --html gpu.html {c}
gpu --graph json {c}
gpu --filter 'kv.op == "copy"' {c}
@tty gpu --top 3 {c}
""",
    "gpu-schedule": """
gpu {c}
gpu --top 0 {c}
gpu --json {c}
gpu --html gpu.html {c}
gpu --html - --json {c}
gpu --graph dot {c}
gpu --graph json {c}
gpu --from 500ns --to 2us {c}
gpu --from 500ns --to 2us --json {c}
gpu --from 2ms --to 1ms {c}
""",
    "outside": """
why --slowest 0 {c}
gpu {c}
""",
    "outside-not-followed": """
why --slowest 0 {c}
why --slowest 0 --json --evidence {c}
report --top 0 {c}
""",
    "outside-sched": """
why --slowest 0 {c}
""",
    "outside-stacks": """
why --slowest 0 {c}
""",
    "types": """
report --filter 'kv.p != 0 && kv.sh < -7 || kv.weight >= 3.5' {c}
""",
    "training": """
why --span step --slowest 1 --evidence {c}
why --thread main {c}
view --from 20ms --to 90ms --top 0 {c}
report --filter 'name == "step" && dur > 20ms' --keep-children {c}
""",
    "slow-ones": """
report --filter 'name == "request"' {c}
why --span load {c}
""",
    "python": """
why --thread python3 --evidence {c}
""",
    "probed": """
report --filter 'name ~ "POST*"' {c}
report --filter 'kv.path == "/page/3" || kv.depth == 2' {c}
""",
    "made": """
view --top 0 {c}
why --event 0x2001 --evidence {c}
why --event 0x2001 --json {c}
why --event 'creating NaN' {c}
why --span allreduce --json {c}
why --span 0x1003 {c}
""",
    "made-loss": """
view --from 30ms {c}
why --thread train --from 30ms {c}
@tty report {c}
""",
    "values": """
why --event 'effect event' {c}
why --event 'cause event' --json {c}
why --event 'MPI_Allreduce result is NaN' --evidence {c}
report --filter 'kv.k15 ~ "abc*"' {c}
report --filter 'kv.tenth == 0.1 || kv.nan != 1' {c}
report --filter 'kv.most > 9223372036854775807' {c}
report --filter 'kv.utf8 ~ "*e*" && kv.plain == "hello"' {c}
""",
    "commands": """
help
--help
--version
help attach
help report
help nothing
help --man
help --markdown
reprot
report
report a b
report nothing.waffle
report --jsno x
report --top
report --top x
report --json=1 x
report -q x
report /mnt
info /mnt/bin/values
why x y
view
export
export a b
info
info --memory-limit x y
attach
attach --pid 0
attach --pid 1 --duration 0
attach --sources nothing --pid 1
attach --stacks nothing: --pid 1
attach --ring-size 1 --pid 1
attach --max-size 1k --pid 1
attach --probe nonsense --pid 1
attach --probes /nowhere --pid 1
attach --filter 'name ==' --pid 1
run
run --user nobody-such -- true
demo x
check x
list
list /nowhere
list /mnt/bin/values
list --json /mnt/bin/values
list --json /mnt/bin/cplusplus
list --probe 'uprobe:exe:handle_request(struct request *r, int turn) {r->path, r->connection->fd as fd} -> int result' /mnt/bin/probed
list --probe 'uprobe:exe:climb(int depth) -> int steps' --json /mnt/bin/probed
list --probe 'uprobe:exe:clim(int depth)' /mnt/bin/probed
list --probe 'uprobe:exe:handle_request(struct request *r) {r->pth}' /mnt/bin/probed
list --probe 'usdt:exe:none:none' /mnt/bin/probed
list --probes mpi /mnt/bin/probed
list --probe 'tracepoint:sched:sched_switch' /mnt/bin/probed
list --probe 'uprobe:exe:numbers(int i, ptr p, code c) -> int r' --json /mnt/bin/types
list --help
report --top=
report --to 5 x
list --pid x
list --js /mnt/bin/shop
""",
}


# ---- captures that are made of others ----


def chunks(data):
    """(offset, type, stored bytes, records) of each chunk: docs/file-format.md."""
    at = 16
    while at + 48 <= len(data):
        kind, _, stored, _, records = struct.unpack_from("<HHIII", data, at + 4)
        yield at, kind, stored, records
        at += 48 + stored


STRINGS, DATA, INDEX, END = 2, 6, 8, 9


def cut(base):
    """The writer was killed within its last chunk of records."""
    data = base("sim-calls-13-stacks")
    last = [chunk for chunk in chunks(data) if chunk[1] == DATA][-1]
    return data[: last[0] + 48 + last[2] // 2]


def without_end(base):
    """The writer was killed before it could write its index."""
    data = base("sim-training-no-sched")
    [end] = [chunk for chunk in chunks(data) if chunk[1] == END]
    return data[: end[0]]


def damaged(base):
    """A byte in the middle chunk of records is another one."""
    data = bytearray(base("sim-training"))
    found = [chunk for chunk in chunks(data) if chunk[1] == DATA]
    at, _, stored, _ = found[len(found) // 2]
    data[at + 48 + stored // 2] ^= 0x55
    return bytes(data)


def damaged_header(base):
    """The header of a chunk is overwritten."""
    data = bytearray(base("training"))
    found = [chunk for chunk in chunks(data) if chunk[1] == DATA]
    at = found[len(found) // 2][0]
    data[at : at + 16] = b"\xff" * 16
    return bytes(data)


def damaged_without_end(base):
    """Both: the chunks behind the damage have to be searched for."""
    data = damaged_header(base)
    return data[: [chunk for chunk in chunks(base("training")) if chunk[1] == INDEX][0][0]]


def damaged_strings(base):
    """A table that others refer to."""
    data = bytearray(base("kernel-vfork"))
    [at, _, stored, _] = [chunk for chunk in chunks(data) if chunk[1] == STRINGS][0]
    data[at + 48 + stored // 2] ^= 0x55
    return bytes(data)


def version(number):
    """A file of that version: this reader knows 1."""

    def make(base):
        head = bytearray(base("made")[:12])
        head[8] = number
        return bytes(head) + struct.pack("<I", zlib.crc32(head)) + base("made")[16:]

    return make


DERIVED = {
    "cut": cut,
    "without-end": without_end,
    "damaged": damaged,
    "damaged-header": damaged_header,
    "damaged-without-end": damaged_without_end,
    "damaged-strings": damaged_strings,
    "version-99": version(99),
    "version-0": version(0),
    "empty": lambda base: b"",
    "head": lambda base: base("made")[:10],
    "head-only": lambda base: base("made")[:16],
    "bad-head": lambda base: base("made")[:9] + b"\x01" + base("made")[10:],
    "text": lambda base: b"This is not a capture.\n" * 40,
}


UNREADABLE = {"version-99", "version-0", "empty", "head", "head-only", "bad-head", "text",
              "damaged", "damaged-header", "damaged-strings", "damaged-without-end"}


def table(text, capture):
    return [line.replace("{c}", f"{capture}.waffle") for line in text.strip().splitlines()]


def cases(names):
    """{name: command lines}; "commands" are those that read no capture."""
    found = {name: table(FEW if name in UNREADABLE else COMMON, name)
             + table(MORE.get(name, ""), name) for name in [*names, *DERIVED]}
    found["commands"] = table(MORE["commands"], "")
    assert set(MORE) <= set(found), set(MORE) - set(found)
    return found

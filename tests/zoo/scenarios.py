# SPDX-License-Identifier: Apache-2.0
"""The zoo: programs that are slow for one known reason each, and what `why` has to say of them.

How the right answers were chosen. A cause is what stands at the end of the chain of waits, not
what the victim itself waits for:
  - the last thread of the chain is blocked on nothing that anybody else does: `sleep`, `timer`,
    `disk-read`, `disk-write`, `page-fault-major`, `stopped`, `cpu-quota`;
  - it is runnable and does not run: `cpu-contention`, the culprit is who runs in its place;
  - it runs: the time is named after the last link of the chain, since that is what made its
    running somebody's wait: `lock` (a mutex's holder), `gil`, `pipe`, `socket`, `process-exit`;
    a condition variable or semaphore says nothing of who must come, so there it is
    `user-work`, with the other thread's span; without any link it is `running`.
The peers behind pipe, socket and process-exit have no spans, so that `user-work` ("its span
named") is no second right answer there.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Seen:
    """What an observer sees of a thread while the victim's spans are open: in a share of the
    samples of at least `share` it was in one of these states (as in /proc/PID/stat) and, if
    given, in one of these system calls. `runnable` and `running` are shares of the time, by
    schedstat."""

    states: str = ""
    calls: tuple = ()
    share: float = 0.8
    runnable: float = 0.0
    running: float = 0.0


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One row. `cause`, `culprit` (the name of a thread), `span` (open in the culprit) and `object`
    are the first cause of each of the victim's spans; `share` is the least share of the span's
    duration it has on a quiet machine (what it was in each span, the program's log says, also
    when the machine was busy), `grade` the weakest grade it may have, `tolerance` how far from the
    log the share may be where a part of it is an estimate. `second` are the causes that
    must come next; `others` are those that may appear beside (small shares of `running` and
    `cpu-contention` may always). `object` is a kind; which one it is, is in the program's log;
    `says` is all of what is said of it, and `adds` a pattern of what is said beside what the log has.
    `neighbour` is whom the disk was shared with. `culprit` is None where nobody who is traced is to
    blame, and `rounds` the number of the victim's spans. A wait that others may end as well is certain only if none of them ran before the thread could
    check what it waited for: such a row may be `late`."""

    name: str
    source: str
    arguments: tuple = ()
    cause: str = "running"
    culprit: str | None = "victim"
    span: str | None = None
    object: str | None = None
    says: str | None = None
    adds: str | None = None
    neighbour: str | None = None
    share: float = 0.85
    grade: str = "certain"
    late: bool = False  # `likely` will do for a span in which the victim got its CPU late
    rounds: int = 6
    tolerance: float = 0.0  # of the share, if it takes more than all others
    second: tuple = ()
    others: tuple = ()
    cgroups: tuple = ()
    needs: tuple = ()
    victim: Seen = Seen()
    other: Seen | None = None  # of the culprit, or of `watch`
    watch: str | None = None
    wakers: tuple = ()
    check: str | None = None
    quiet: bool = False
    # `why` explains the program as a whole: the rounds follow one another, and nobody chooses a thread.
    whole: bool = False
    # What most samples of the first cause show: (mode, function, system call, what it spins for).
    # Spans with few samples are not asked.
    code: tuple | None = None
    # Where records can't tell the cause in each run: what may be `certain` of a tenth of a span or
    # more, as (cause, culprit, span); all else has to be less. None: the first cause is judged.
    sure: tuple | None = None

    @property
    def unmarked(self):
        """Of another language, or a server: nothing in it is a span, and `why` explains a thread."""
        return self.source.startswith("runtimes/")

    @property
    def library(self):
        return self.source.endswith(".py") and not self.unmarked


FUTEX = ("futex",)

# Programs of other languages, and servers: none of them knows of waffle, and `why` explains the victim's
# thread from the begin to the end of each round. What of a runtime's own lies between who waits and who
# computes is part of the chain. None of it is `certain`: runtimes have locks and queues of their own.
RUNTIMES = tuple(
    Scenario(
        name,
        f"runtimes/{source}",
        arguments,
        cause=cause,
        culprit=culprit,
        grade="likely",
        share=share,
        others=others,
        cgroups=("blkio",) if "disk" in needs else (),
        needs=needs,
        victim=Seen("SR", share=0.5),
        whole=name == "go_tcp",
        tolerance=0.25 if name == "go_tcp" else 0.0,  # of all rounds, and the time around them
    )
    for name, source, arguments, cause, culprit, share, others, needs in (
        ("go_channel", "channel.go", ("chan",), "user-work", "sender", 0.8, (), ()),
        ("go_mutex", "channel.go", ("mutex",), "user-work", "holder", 0.8, (), ()),
        ("go_poller", "channel.go", ("poll",), "pipe", "peer", 0.8, ("user-work",), ()),
        ("go_tcp", "channel.go", ("tcp",), "sleep", "server", 0.8, ("idle", "socket"), ()),
        ("java_monitor", "Monitor.java", ("monitor",), "lock", "holder", 0.8, ("user-work",), ()),
        ("java_queue", "Monitor.java", ("queue",), "user-work", "holder", 0.8, (), ()),
        ("java_gc", "Monitor.java", ("gc",), "user-work", "VM Thread", 0.8, (), ()),
        ("rust_mutex", "locks.rs", ("mutex",), "lock", "holder", 0.8, (), ()),
        ("rust_channel", "locks.rs", ("mpsc",), "user-work", "holder", 0.8, (), ()),
        ("node_pool", "loop.js", ("pool",), "user-work", "worker", 0.7, (), ()),
        ("node_busy", "loop.js", ("busy",), "running", "victim", 0.8, (), ()),
        ("postgres_lock", "postgres.py", ("lock",), "lock", "postgres", 0.7, ("socket",), ()),
        ("postgres_fsync", "postgres.py", ("fsync",), "disk-write", "postgres", 0.5, ("socket",), ("disk",)),
        ("redis_slow", "redis_server.py", ("slow",), "sleep", "redis-server", 0.8, (), ()),
        ("redis_blpop", "redis_server.py", ("blpop",), "socket", "pusher", 0.8, (), ()),
        ("queue_timeouts", "timeouts.py", (), "sleep", "loader", 0.8, (), ()),
        ("torch_loader", "torch_job.py", ("loader",), "sleep", "pt_data_worker", 0.7, (), ("torch",)),
        ("torch_late", "torch_job.py", ("ddp",), "sleep", "late", 0.7, (), ("torch",)),
    )
)

SCENARIOS = (
    # Two on one CPU, weights 335 and 1024: the victim is runnable for three quarters of its span
    # and runs the rest. It never blocks, so nothing else may appear. Of many short turns the
    # culprit is the one that ran for most of the victim's runnable time.
    Scenario(
        "cpu_hog",
        "cpu_hog.c",
        cause="cpu-contention",
        culprit="hog",
        span="burn",
        share=0.6,
        second=("running",),
        victim=Seen("R", runnable=0.6),
        check="same_cpu",
    ),
    # Two that are not traced follow one another on the victim's CPU: the one that took it from the
    # victim is gone at once.
    Scenario(
        "cpu_relay",
        "cpu_relay.c",
        cause="cpu-contention",
        culprit="hog",
        share=0.7,
        second=("running",),
        victim=Seen("R", runnable=0.6),
    ),
    # The victim waits in futex(2), its holder in clock_nanosleep(2): the mutex is a link, what the
    # holder does is the cause. `lock` would be wrong: nobody computes under it.
    Scenario(
        "mutex_sleeps",
        "mutex.c",
        ("sleeps",),
        cause="sleep",
        culprit="holder",
        span="hold",
        share=0.9,
        victim=Seen("S", FUTEX),
        other=Seen("S", ("clock_nanosleep", "nanosleep")),
        wakers=("holder",),
    ),
    # The holder needs its CPU for a quarter of the time and is kept from it by a hog for the rest:
    # the hog is to blame (`cpu-contention`, 0.7), not the lock or its holder (`lock`, 0.25).
    Scenario(
        "mutex_preempted",
        "mutex.c",
        ("preempted",),
        cause="cpu-contention",
        culprit="hog",
        span="burn",
        share=0.6,
        second=("lock",),
        victim=Seen("S", FUTEX),
        other=Seen("R", runnable=0.6),
        watch="holder",
        wakers=("holder",),
        check="same_cpu",
    ),
    # The holder runs all the time: that is what `lock` means. The object's address is in the log,
    # its name by the symbols is table_lock.
    Scenario(
        "mutex_computes",
        "mutex.c",
        ("computes",),
        cause="lock",
        culprit="holder",
        span="hold",
        object="lock",
        share=0.85,
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.85),
        wakers=("holder",),
    ),
    # The same with a lock for readers and writers, which the C library waits for by the same system
    # call as for a condition variable: what it is, its functions tell.
    Scenario(
        "rwlock_computes",
        "mutex.c",
        ("writes",),
        cause="lock",
        culprit="holder",
        span="hold",
        object="variable",
        share=0.85,
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.85),
        wakers=("holder",),
    ),
    # The producer is uninterruptible (D) in pread(2) of a throttled disk; it is woken by the disk's
    # interrupt or by the throttle's timer, both without a thread to follow: the disk is the end.
    # A little of the rest is the producer's own running (`user-work`, below 0.02).
    Scenario(
        "cond_disk",
        "cond.c",
        ("reads",),
        cause="disk-read",
        culprit="producer",
        span="decode",
        object="file",
        share=0.85,
        late=True,
        others=("user-work",),
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("S", FUTEX),
        other=Seen("D", ("pread64",)),
        wakers=("producer",),
        check="bytes_read",
    ),
    # The same condition variable, the producer computing in its span.
    Scenario(
        "cond_computes",
        "cond.c",
        ("computes",),
        cause="user-work",
        culprit="producer",
        span="decode",
        share=0.85,
        late=True,
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.85),
        wakers=("producer",),
    ),
    # write(2) waits for the reader to make room. The reader is a process without spans which
    # computes, so the chain ends at running code behind a pipe. Were it asleep, the cause would
    # be `sleep`; were it not recorded, `pipe` still, but not `certain`.
    Scenario(
        "pipe_full",
        "pipe_full.c",
        cause="pipe",
        culprit="drain",
        object="pipe",
        share=0.85,
        victim=Seen("S", ("write",)),
        other=Seen("R", running=0.85),
        wakers=("drain",),
    ),
    # The same over TCP: the answer comes through the loopback's softirq, which runs in the peer's
    # own context, or, when the machine is busy, in ksoftirqd's: then the waker is no evidence and
    # the peer follows from the connection's other end only. Hence `likely` will do.
    Scenario(
        "socket_computes",
        "socket_peer.c",
        ("computes",),
        cause="socket",
        culprit="peer",
        object="socket",
        share=0.85,
        grade="likely",
        victim=Seen("S", ("read",)),
        other=Seen("R", running=0.85),
        wakers=("peer", "ksoftirqd"),
    ),
    # A peer that sleeps before it answers: the chain goes on through the socket to its sleep.
    Scenario(
        "socket_sleeps",
        "socket_peer.c",
        ("sleeps",),
        cause="sleep",
        culprit="peer",
        share=0.85,
        grade="likely",
        victim=Seen("S", ("read",)),
        other=Seen("S", ("clock_nanosleep", "nanosleep")),
        wakers=("peer", "ksoftirqd"),
    ),
    # A peer that reads too slowly and never waits at the connection: mostly a timer's acknowledgement
    # makes room, so only its descriptors show that it is the other end.
    Scenario(
        "socket_drains",
        "socket_peer.c",
        ("drains",),
        cause="sleep",
        culprit="peer",
        share=0.85,
        grade="likely",
        victim=Seen("S", ("write",)),
        other=Seen("S", ("clock_nanosleep", "nanosleep")),
    ),
    # Answers that no write(2) gives: the end of a connection, a splice(2) and a sendfile(2). With
    # Nagle's algorithm neither end works on it.
    *(
        Scenario(
            f"socket_{way}",
            "socket_ends.c",
            (way,),
            cause=cause,
            culprit=culprit,
            grade="likely",
            share=share,
            victim=Seen("S", ("read",)),
        )
        for way, cause, culprit, share in (
            ("closes", "socket", "peer", 0.85),
            ("exits", "socket", "peer", 0.85),
            ("splices", "socket", "peer", 0.85),
            ("sends", "socket", "peer", 0.85),
            ("nagle", "socket", None, 0.8),
            ("silent", "timer", "victim", 0.85),
        )
    ),
    # The kernel drops the first SYN: nobody computes until it is sent again, after a second.
    Scenario(
        "socket_syn",
        "syn.c",
        cause="socket",
        culprit=None,
        object="socket",
        adds=r", SYN sent again once\)",
        rounds=4,  # of a second each
        grade="likely",
        victim=Seen("S", ("connect",)),
    ),
    # A neighbour that is not traced has the disk read much more than the victim does.
    Scenario(
        "disk_neighbour",
        "disk_neighbour.c",
        cause="disk-read",
        span="victim",
        object="file",
        neighbour="neighbour",
        share=0.8,
        needs=("disk",),
        victim=Seen("DR"),
    ),
    # The cgroup may use no more memory, and a neighbour that is not traced has most of it: the victim
    # waits for its own pages to be written before it gets others. Who ended the wait is a thread of
    # the kernel, so `likely` will do; the victim runs while it writes and looks for pages to free.
    Scenario(
        "memory_limit",
        "memory_limit.c",
        cause="disk-write",
        span="victim",
        object="file",
        adds=r", memory\.(max|limit_in_bytes) 32\.0 MiB of \S+-memory used up, the most by neighbour \(",
        share=0.55,
        rounds=8,
        grade="likely",
        second=("running",),
        cgroups=("memory",),
        needs=("disk",),
        victim=Seen("DR"),
    ),
    # Mostly the data, written by the victim itself at the throttled rate (write-back of a v1
    # cgroup is not throttled, so it is fsync that issues it), the rest the journal's commit:
    # there the victim is woken by jbd2, which waited for the same disk.
    Scenario(
        "fsync",
        "fsync.c",
        cause="disk-write",
        culprit="victim",
        span="victim",
        object="file",
        share=0.8,
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("D", ("fsync",)),
    ),
    # Each touch of a page reads 4 KiB. Unthrottled that takes some 60 µs on a fast virtual disk,
    # half of it on the CPU on the way into and out of the fault, and the first cause would be a
    # matter of chance; so the disk answers 1,000 requests a second only, and most of the span is
    # spent uninterruptible (D) without a system call. `disk-read` would be the wrong name: nothing read.
    Scenario(
        "fault_major",
        "fault_major.c",
        cause="page-fault-major",
        culprit="victim",
        span="victim",
        object="file",
        share=0.8,
        others=("page-fault-minor",),
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("D"),
        check="major_faults",
    ),
    # All of it runs on the CPU, in the kernel: by the scheduler this span has no wait at all. The
    # cause can only come from the faults that were recorded, and how long each took is an
    # estimate unless their ends were recorded, too: `likely` will do.
    Scenario(
        "fault_minor",
        "fault_minor.c",
        cause="page-fault-minor",
        culprit="victim",
        span="victim",
        share=0.7,
        grade="likely",
        tolerance=0.2,
        second=("running",),
        victim=Seen("R", running=0.8),
        check="minor_faults",
    ),
    # The thread is runnable, or not queued at all, while no time is left in its cgroup. By
    # schedstat it looks like waiting for the CPU: `cpu-contention` is the wrong answer to avoid,
    # since the CPU is idle meanwhile.
    Scenario(
        "cpu_quota",
        "cpu_quota.c",
        cause="cpu-quota",
        culprit="victim",
        span="victim",
        object="cgroup",
        share=0.6,
        second=("running",),
        cgroups=("quota",),
        victim=Seen("R", runnable=0.6),
        check="throttled",
    ),
    # poll() and select() name what they wait for, not only that they do, and epoll_wait() what became
    # ready. Certain, unless others run before the victim could look.
    Scenario(
        "polled_dns",
        "polled.c",
        ("dns",),
        cause="timer",
        span="victim",
        object="socket",
        share=0.9,
        grade="likely",
        victim=Seen("S", ("poll",)),
    ),
    Scenario(
        "polled_epoll",
        "polled.c",
        ("epoll",),
        cause="pipe",
        culprit="writer",
        object="ready",
        share=0.8,
        grade="likely",
        victim=Seen("S", ("epoll_wait",)),
    ),
    Scenario(
        "polled_select",
        "polled.c",
        ("select",),
        cause="pipe",
        culprit="writer",
        object="pipe",
        share=0.8,
        grade="likely",
        victim=Seen("S", ("pselect6", "select")),
        other=Seen("R"),
    ),
    # Another thread of the cgroup uses up twice as much of the quota. Which thread that is follows
    # from how long each ran, so it is a rule: `likely`.
    Scenario(
        "cpu_quota_shared",
        "cpu_quota.c",
        ("shared",),
        cause="cpu-quota",
        culprit="sibling",
        object="cgroup",
        share=0.5,
        grade="likely",
        others=("sleep", "timer"),
        cgroups=("quota",),
        victim=Seen("RS", share=0.8),
        check="throttled",
        tolerance=0.2,
    ),
    # The culprit is who sent the signals, without a span; its own sleep in between is not the
    # cause: nobody asked it to go on. 20 ms of each span run.
    Scenario(
        "stopped",
        "stopped.c",
        cause="stopped",
        culprit="stopper",
        share=0.75,
        second=("running",),
        victim=Seen("T", share=0.7),
        wakers=("stopper",),
    ),
    # The victim's own sleeps, woken by the timer each time: that another thread sets what it looks
    # at is nowhere to be seen, and must not be guessed.
    Scenario(
        "retry_sleep",
        "retry_sleep.c",
        cause="sleep",
        culprit="victim",
        span="victim",
        share=0.9,
        victim=Seen("S", ("clock_nanosleep", "nanosleep")),
    ),
    # Woken in the hard interrupt of the timer that the victim set itself; the eventfd beside it
    # never fires.
    Scenario(
        "epoll_timer",
        "epoll_timer.c",
        cause="timer",
        culprit="victim",
        span="victim",
        object="timerfd",
        share=0.9,
        late=True,
        victim=Seen("S", ("epoll_wait", "epoll_pwait")),
    ),
    # waitpid(2) for a child that computes.
    Scenario(
        "child_exit",
        "child_exit.c",
        cause="process-exit",
        culprit="compiler",
        share=0.85,
        victim=Seen("S", ("wait4",)),
        other=Seen("R", running=0.8),
        wakers=("compiler",),
    ),
    # The victim waits 5 ms at a time in a futex with a timeout (take_gil()), so all but the last
    # wake-up come from a timer: `timer` is the wrong answer to avoid. That it is the GIL, only
    # the user stack or the lock's address tells: `likely` will do.
    Scenario(
        "gil",
        "gil.py",
        ("held",),
        cause="gil",
        culprit="holder",
        span="hold",
        share=0.8,
        grade="likely",
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.8),
        wakers=("holder", "timer"),
        needs=("python",),
    ),
    # Event.wait() with a timeout, in the same system call with the same clock as the GIL's. The
    # other thread computes without the GIL: nobody wants that one. Where the victim gets its CPU late,
    # a third thread may have set the event in the meantime.
    Scenario(
        "gil_event",
        "gil.py",
        ("event",),
        cause="user-work",
        culprit="holder",
        span="decode",
        share=0.85,
        grade="likely",
        others=("gil",),
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.85),
        wakers=("holder",),
        needs=("python",),
    ),
    # Wake-ups that end no wait: the victim goes on to wait for the same. The ticker's sleep is the
    # wrong answer to avoid. Who ended the wait in the end is known, and that the others did not is
    # a rule: `likely`. Of signals the records say that they were signals.
    Scenario(
        "astray_herd",
        "astray.c",
        ("herd",),
        cause="user-work",
        culprit="doer",
        span="compute",
        grade="likely",
        others=("lock",),
        victim=Seen("S", FUTEX),
        wakers=("doer",),
    ),
    Scenario(
        "astray_chatty",
        "astray.c",
        ("chatty",),
        cause="socket",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("epoll_wait", "epoll_pwait")),
        wakers=("doer",),
    ),
    Scenario(
        "astray_pipe",
        "astray.c",
        ("pipe",),
        cause="pipe",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("read",)),
        wakers=("doer",),
    ),
    Scenario(
        "astray_mutex",
        "astray.c",
        ("mutex",),
        cause="lock",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", FUTEX),
        wakers=("doer",),
    ),
    Scenario(
        "astray_child",
        "astray.c",
        ("child",),
        cause="process-exit",
        culprit="doer",
        grade="likely",
        victim=Seen("S", ("wait4",)),
        wakers=("doer",),
    ),
    Scenario(
        "astray_lines",
        "astray.c",
        ("lines",),
        cause="pipe",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("read",)),
        wakers=("doer",),
    ),
    Scenario(
        "astray_reap",
        "astray.c",
        ("reap",),
        cause="process-exit",
        culprit="doer",
        grade="likely",
        victim=Seen("S", ("wait4",)),
        wakers=("doer",),
    ),
    Scenario(
        "astray_wanted",
        "astray.c",
        ("wanted",),
        cause="user-work",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("rt_sigtimedwait",)),
        wakers=("doer",),
    ),
    Scenario(
        "astray_itimer",
        "astray.c",
        ("itimer",),
        cause="pipe",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("read",)),
        wakers=("doer",),
    ),
    # The sleep is not over, it is ended: by whom is known, that it was for that is a rule.
    Scenario(
        "astray_nap",
        "astray.c",
        ("nap",),
        cause="user-work",
        culprit="doer",
        span="compute",
        grade="likely",
        victim=Seen("S", ("clock_nanosleep", "nanosleep")),
        wakers=("doer",),
    ),
    # An event loop of Python whose timers run out while it awaits an executor, which computes
    # without the GIL. `timer` is the wrong answer to avoid.
    Scenario(
        "asyncio",
        "gil.py",
        ("asyncio",),
        cause="socket",
        culprit="holder",
        span="decode",
        share=0.7,
        grade="likely",
        others=("timer", "user-work", "gil"),
        victim=Seen("S", ("epoll_wait", "epoll_pwait")),
        needs=("python",),
    ),
    # Neither system call names a file, and no timer is there: `timer` is the wrong answer to avoid.
    Scenario(
        "aio_read",
        "io_wait.c",
        ("aio",),
        cause="disk-read",
        culprit="victim",
        span="victim",
        grade="likely",
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("S", ("io_getevents",), share=0.4),
        others=("user-work",),
    ),
    Scenario(
        "uring_read",
        "io_wait.c",
        ("uring",),
        cause="disk-read",
        culprit="victim",
        span="victim",
        grade="likely",
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("S", ("io_uring_enter",), share=0.4),
        others=("user-work",),
    ),
    # The kernel spins for the holder of a mutex with priority inheritance: the victim is on its CPU
    # all the time, and no record says that it waits.
    Scenario(
        "locks_pi",
        "locks.c",
        ("pi",),
        cause="lock",
        culprit="holder",
        span="hold",
        sure=(("lock", "holder", "hold"),),
    ),
    # Of readers in turn only the last one wakes the writer; who takes a lock that is let go for
    # another one has not held it before.
    Scenario(
        "locks_starve",
        "locks.c",
        ("starve",),
        cause="sleep",
        culprit="reader",
        span="reading",
        share=0.8,
        sure=(("sleep", "reader", "reading"),),
    ),
    Scenario(
        "locks_barge",
        "locks.c",
        ("barge",),
        cause="sleep",
        culprit="holder",
        span="hold",
        share=0.5,
        sure=(("sleep", "holder", "hold"), ("lock", "barger", "hold"), ("lock", "holder", "hold")),
    ),
    # What the records show is not what the victim waited for: nothing of it may be `certain` but what
    # is so by construction. The program says how each one does it.
    *(
        Scenario(
            f"fooled_{way}",
            "fooled.c",
            (way,),
            cause=cause,
            culprit=culprit,
            span=span,
            share=0.8,
            sure=sure,
        )
        for way, cause, culprit, span, sure in (
            ("near", "pipe", "doer", "compute", (("pipe", "doer", "compute"),)),
            (
                "late",
                "user-work",
                "doer",
                "compute",
                (("user-work", "doer", "compute"), ("lock", "helper", None)),
            ),
            ("requeue", "user-work", "doer", "compute", (("user-work", "doer", "compute"),)),
            ("own", "user-work", "doer", "compute", (("user-work", "doer", "compute"),)),
            ("robust", "lock", "owner", "compute", (("lock", "owner", "compute"),)),
            ("doze", "user-work", "doer", "compute", (("user-work", "doer", "compute"),)),
            ("handler", "pipe", "doer", "compute", ()),
            (
                "tracer",
                "stopped",
                "tracer",
                None,
                (("stopped", "tracer", "housekeeping"), ("running", "victim", "victim")),
            ),
        )
    ),
    # The stop's sender is to blame for the stop alone: the wait goes on after it.
    Scenario(
        "fooled_pause",
        "fooled.c",
        ("pause",),
        cause="pipe",
        culprit="doer",
        span="compute",
        share=0.7,
        grade="likely",
        others=("stopped",),
    ),
    # The victim's span is ended by another thread, to which it was handed over at once. That the
    # victim sleeps meanwhile is no reason: nobody waits for it. When it was handed over is a guess.
    Scenario(
        "handed_over",
        "handed_over.c",
        cause="user-work",
        culprit="finisher",
        span="finish",
        share=0.85,
        grade="likely",
        victim=Seen("S"),
        other=Seen("R", running=0.85),
    ),
    # The victim never wakes the thread that ends its span: the way of the span has to be found. What
    # the victim does meanwhile (it sleeps) is the wrong answer to avoid. Other jobs in front of the
    # span's own one are a cause of their own.
    *(
        Scenario(
            f"moved_{way}",
            "moved.c",
            (way,),
            cause="user-work",
            culprit="worker",
            span="compute",
            share=share,
            grade="likely",
            says=says,
            others=("unknown",),
        )
        for way, share, says in (
            ("queue", 0.75, "queued behind 4 other jobs"),
            ("stages", 0.85, None),
            ("inject", 0.7, None),
            ("busy", 0.7, None),
            ("spin", 0.85, None),
        )
    ),
    # The kernel is alone on its stream, and the thread blocks in the driver: that the driver's own
    # thread wakes it is no cause. The culprit is the span that has launched the kernel.
    Scenario(
        "gpu_kernel",
        "gpu.c",
        ("kernel",),
        cause="gpu",
        culprit="victim",
        span="forward",
        object="kernel",
        share=0.9,
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # The default stream waits for the one that has the kernel, since that is a blocking stream.
    Scenario(
        "gpu_default",
        "gpu.c",
        ("default",),
        cause="gpu",
        culprit="victim",
        span="forward",
        object="kernel",
        share=0.9,
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0", "sim stream 1"),
        needs=("simulation",),
    ),
    # A short kernel on another stream was launched after it, and nothing tells which of the two took
    # so long: both are named.
    Scenario(
        "gpu_streams",
        "gpu.c",
        ("streams",),
        cause="gpu",
        culprit="victim",
        object="kernel",
        share=0.9,
        grade="unknown",
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0", "sim stream 1"),
        needs=("simulation",),
    ),
    # A free waits for the kernel: that it does so for that, and not for something else in the
    # driver, is a rule.
    Scenario(
        "gpu_frees",
        "gpu.c",
        ("frees",),
        cause="gpu",
        culprit="victim",
        span="forward",
        object="kernel",
        share=0.9,
        grade="likely",
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # The driver spins: the thread runs all the time, and it is the GPU's all the same. `running`
    # is the wrong answer to avoid; that nothing was computed is a rule, so `likely` will do.
    Scenario(
        "gpu_spins",
        "gpu.c",
        ("spins",),
        cause="gpu",
        culprit="victim",
        span="forward",
        object="kernel",
        share=0.85,
        grade="likely",
        victim=Seen("R", running=0.8),
        needs=("simulation",),
    ),
    # An all-reduce of three processes: the last one's thread waits for its loader, which sleeps.
    # What is left is the transfer (`gpu`) and the way of the batch to the rank (`collective`).
    Scenario(
        "gpu_loader",
        "gpu.c",
        ("loader",),
        cause="sleep",
        culprit="loader",
        span="load",
        share=0.9,
        late=True,
        others=("gpu", "collective", "user-work"),
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # The last rank's thread computes itself before it calls.
    Scenario(
        "gpu_computes",
        "gpu.c",
        ("computes",),
        cause="collective",
        culprit="rank2",
        span="decode",
        object="collective",
        share=0.85,
        others=("gpu",),
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # The same, and the last rank is not traced: who it is, is known, and no more.
    Scenario(
        "gpu_untraced",
        "gpu.c",
        ("untraced",),
        cause="collective",
        culprit=None,
        object="collective",
        says="rank 2 in ncclAllReduce, which is not traced",
        share=0.85,
        grade="likely",
        others=("gpu",),
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # Point to point: the rank that sends computes before it does.
    Scenario(
        "gpu_sends",
        "gpu.c",
        ("sends",),
        cause="collective",
        culprit="rank2",
        span="decode",
        object="send",
        share=0.85,
        others=("gpu",),
        victim=Seen("S", FUTEX),
        wakers=("sim stream 0",),
        needs=("simulation",),
    ),
    # victim -> mutex -> index -> condition variable -> decoder, which computes. The last 2 ms are
    # index's own running under the mutex (`lock`, below 0.03).
    Scenario(
        "chain_threads",
        "chain_threads.c",
        cause="user-work",
        culprit="decoder",
        span="decode",
        share=0.85,
        late=True,
        others=("lock",),
        victim=Seen("S", FUTEX),
        other=Seen("R", running=0.85),
        wakers=("index",),
    ),
    # victim -> pipe -> relay -> pipe -> reader -> disk. The relay's own 2 ms are `pipe` or
    # `user-work` (its span is "relay"), below 0.03.
    Scenario(
        "chain_processes",
        "chain_processes.c",
        cause="disk-read",
        culprit="reader",
        span="load",
        object="file",
        share=0.85,
        others=("pipe", "user-work"),
        cgroups=("blkio",),
        needs=("disk",),
        victim=Seen("S", ("read",)),
        other=Seen("D", ("pread64",)),
        wakers=("relay",),
        grade="likely",  # certain, unless others run before the victim could look
        check="bytes_read",
    ),
    # In this order by share, whichever comes first in time: `lock` 0.6, `sleep` 0.3, `running` 0.1.
    Scenario(
        "two_causes",
        "two_causes.c",
        cause="lock",
        culprit="holder",
        span="hold",
        object="lock",
        share=0.5,
        second=("sleep",),
        victim=Seen("S", ("futex", "clock_nanosleep", "nanosleep")),
        other=Seen("R", share=0.5, running=0.45),
    ),
    # Nothing but its own running.
    Scenario(
        "quiet_computes",
        "quiet.c",
        ("computes",),
        span="victim",
        share=0.9,
        victim=Seen("R", running=0.9),
        quiet=True,
        code=("user", "compute", None, None),
    ),
    # It has its CPU, but only waits for a lock of the program: samples alone show that.
    Scenario(
        "spinlock",
        "spinlock.c",
        span="victim",
        share=0.9,
        victim=Seen("R", running=0.9),
        code=("user", "pthread_spin_lock", None, "user-lock"),
    ),
    # Reads and writes that never touch a disk: no `disk-read` from counts of system calls.
    Scenario(
        "quiet_cached",
        "quiet.c",
        ("cached",),
        span="victim",
        share=0.9,
        victim=Seen("R", running=0.9),
        quiet=True,
    ),
    # Free mutexes, and others who sleep, compute and wait for the victim, at the same time.
    Scenario(
        "quiet_neighbours",
        "quiet.c",
        ("neighbours",),
        span="victim",
        share=0.9,
        victim=Seen("R", running=0.9),
        quiet=True,
    ),
    # A thread that sleeps nine tenths of the time, between its spans.
    Scenario(
        "quiet_serves",
        "quiet.c",
        ("serves",),
        span="victim",
        share=0.9,
        victim=Seen("R", running=0.9),
        quiet=True,
    ),
    *RUNTIMES,
    # Python that has the GIL for itself while the other thread computes without it.
    Scenario(
        "quiet_gil",
        "gil.py",
        ("quiet",),
        span="victim",
        share=0.85,
        victim=Seen("R", running=0.85),
        needs=("python",),
        quiet=True,
    ),
)


def find(name):
    return next(scenario for scenario in SCENARIOS if scenario.name == name)

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest. Runs each check and prints "verdict NAME pass|fail|cannot SECONDS REASON" on
# the console, which is where run.py reads it; then powers off. A check is a function that returns 0
# (pass), 1 (fail) or 2 (this kernel cannot), with the reason in $reason.

/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin HOME=/tmp WAFFLE_LIBBPF=1
mkdir -p /proc /sys /dev /tmp/out /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
mount -t bpf bpf /sys/fs/bpf
cd /tmp || exit 1

fail() {
	reason=$1
	return 1
}

uptime_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

# The last message of waffle-bpf, for a reason.
words() { grep . "$1" | tail -n 1; }

# said FILE KEY: the value that the program printed as KEY=VALUE.
said() { tr ' ' '\n' <"$1" | sed -n "s/^$2=//p" | tail -n 1; }

# rows FILE NAME KIND: the objects of that name of an export; values KEY: their values of a key.
rows() { grep "^{\"kind\":\"$3\"" "$1" | grep -F "\"name\":\"$2\""; }
values() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
count() { wc -l | tr -d ' '; }
sum() { awk '{ s += $1 } END { printf "%d", s }'; }

equal() { [ "$2" = "$3" ] || fail "$1: $2 in the capture, $3 said by the program"; }

# near WHAT CAPTURED SCHEDSTAT SLACK: within a tenth and SLACK ns. (An emulated switch between
# threads takes 0.1 ms, in which the kernel and its tracepoint read their clocks at different moments.)
near() {
	reason="${reason:+$reason; }$1 $2 ns, by schedstat $3 ns"
	awk -v a="$2" -v b="$3" -v slack="$4" \
		'BEGIN { d = a - b; exit !(a != "" && b >= 0 && (d < 0 ? -d : d) <= b / 10 + slack) }'
}

# export_of NAME: NAME.waffle as NAME.ndjson, and that nothing was lost.
export_of() {
	waffle-bpf export "$1.waffle" --format ndjson -o "$1.ndjson" 2>err || fail "export: $(words err)" || return
	grep '^{"kind":"summary"' "$1.ndjson" | grep -q '"lost":0}' || fail "records were lost"
}

# ---- the checks ----

check_ready() {
	waffle-bpf check >ready 2>&1 || fail "$(grep -m1 ^missing ready || words ready)"
}

check_uprobe_multi() {
	grep -q '^ok *uprobe.multi' ready && return
	reason=$(sed -n 's/^limited *uprobe.multi *//p' ready)
	return 2
}

# work NAME OPTION…: `waffle-bpf run` of 20 steps of the program, and what it captured.
work() {
	local name=$1
	shift
	timeout 120 waffle-bpf run -q --no-report -o "$name.waffle" "$@" -- guest work 20 \
		>"$name.said" 2>err || fail "run: $(words err)" || return
	export_of "$name"
}

# counted NAME KEY: spans, events and counters of the steps are as many as the program says by KEY.
counted() {
	local n
	n=$(said "$1.said" "$2")
	equal spans "$(rows "$1.ndjson" "guest step" span | count)" "$n" &&
		equal events "$(rows "$1.ndjson" "guest event" event | count)" "$n" &&
		equal counters "$(rows "$1.ndjson" "guest counter" counter | count)" "$n"
}

check_run() { work run && counted run steps; }

check_single() {
	export WAFFLE_UPROBE_SINGLE=1
	work single && counted single steps
	set -- $?
	unset WAFFLE_UPROBE_SINGLE
	return "$1"
}

# Decided at the hit; what can't match is not armed.
check_filter() {
	work filter --filter 'name ~ "guest e*" && kv.n >= 100' || return
	equal events "$(rows filter.ndjson "guest event" event | count)" "$(said filter.said late)" &&
		equal spans "$(grep -c '^{"kind":"span"' filter.ndjson)" 0
}

# 64 predicates, the most there may be, of which the verifier sees each; only the last is ever true.
check_longest() {
	awk 'BEGIN {
		kinds = split("kv.n > 1000%d|kv.half > 1%02d.5|kv.text ~ \"*shard*%d*.bin\"|" \
			"kv.n in {2, 3, 1000%d}|kv.text == \"/var/lib/data/shard-%04d.bin\"|" \
			"comm ~ \"x*%d?y*\"|tid == 5000%d|parent.name == \"none %d\"|depth > 1%d", kind, "|")
		for (i = 0; i < 63; i++)
			printf kind[i % kinds + 1] " || ", i
		print "kv.n >= 100"
	}' >expression
	work longest --filter @expression || return
	equal events "$(rows longest.ndjson "guest event" event | count)" "$(said longest.said late)"
}

# Decided when the span ends, and then what was in it is kept too.
check_children() {
	work children --keep-children \
		--filter 'name == "guest step" && kv.text ~ "*wri?ten" && kv.i >= 10 && dur > 1ms' ||
		return
	counted children late &&
		equal "spans around" "$(rows children.ndjson "guest work" span | count)" 0
}

# Nops that the kernel may replace by a call when a probe there is hit: a child of fork() lives, and
# nothing is overwritten.
check_forks() {
	timeout 120 waffle-bpf run -q --no-report --machine-wide -o forks.waffle --probe 'usdt:exe:nops:*' \
		--probe 'uprobe:exe:nops_*(long n) -> long ret' -- nops >forks.said 2>err ||
		fail "run: $(words err)" || return
	export_of forks || return
	equal "what it says" "$(tr '\n' ' ' <forks.said)" "parent 0 child 0 status 0, parent 0 " &&
		equal "calls" "$(grep -c '"name":"nops_' forks.ndjson)" $((6 * 3 * 300)) &&
		equal "hits" "$(rows forks.ndjson short event | count)" $((3 * 300))
}

check_values() {
	rows run.ndjson "guest event" event >events
	rows run.ndjson "guest step" span >steps
	equal "sum of n" "$(values n <events | sum)" "$(said run.said sum)" &&
		equal "a double" "$(values half <events | tail -n 1)" "$(said run.said half)" &&
		equal "strings" "$(grep -c '"text":"as written"' steps)" "$(said run.said steps)" &&
		equal "thread" "$(values tid <steps | sort -u)" "$(said run.said tid)" &&
		equal "last counter" "$(rows run.ndjson "guest counter" counter | values value | tail -n 1)" \
			"$(said run.said last)"
}

# The report reads the same file by another path.
check_report() {
	waffle-bpf report run.waffle --json >report 2>err || fail "$(words err)" || return
	equal "steps in the report" "$(grep -A2 '"name": "guest step"' report |
		sed -n 's/.*"count": \([0-9]*\).*/\1/p')" "$(said run.said steps)"
}

# Times of each step add up; all of them blocked no longer than the program waited by its own clock,
# and most of the time that the other thread slept (a slow host may let that pass before a step has
# come to its wait).
states_agree() {
	awk -F: -v least="$(said run.said least_ns)" -v waited="$(said run.said waited_ns)" '
		/_ns"/ { v[$1] = $2 }
		/"blocked_ns"/ {
			total = v["\"end_ns\""] - v["\"start_ns\""]
			parts = v["\"running_ns\""] + v["\"runnable_ns\""] + $2
			if (total != parts) bad = "a step of " total " ns has states of " parts " ns"
			blocked += $2
			asked += least
		}
		END {
			if (!asked) bad = "no step has scheduler times"
			if (blocked < asked / 2) bad = "blocked for only " blocked " of " asked " ns"
			if (blocked > waited) bad = "blocked " blocked " ns, waited " waited " ns"
			if (bad) print bad
		}'
}

check_sched() {
	local woken bad
	bad=$(rows run.ndjson "guest step" span | tr '{},' '\n\n\n' | states_agree)
	[ -z "$bad" ] || fail "$bad" || return
	woken=$(rows run.ndjson runnable sched | grep "\"tid\":$(said run.said tid)," |
		grep -c "\"waker_tid\":$(said run.said helper),")
	[ "$woken" -ge $(($(said run.said steps) / 2)) ] ||
		fail "woken $woken times by the other thread, of $(said run.said steps)" || return
	rows run.ndjson "guest work" span >work
	near "CPU time" "$(values running_ns <work)" "$(said run.said run_ns)" 3000000 &&
		near "run queue time" "$(values runnable_ns <work)" "$(said run.said delay_ns)" 3000000
}

await() {
	local tries=0
	until words stay | grep -q "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || fail "the program does not say $1 but $(words stay)" || return
		usleep 50000
	done
}

# stay_begin, stay_end: a program that runs while tracers come and go; it ends with its input.
stay_begin() {
	rm -f in
	mkfifo in
	guest stay <in >stay &
	program=$!
	exec 3>in
	await armed=0
}

stay_end() {
	local result=$?
	exec 3>&-
	wait "$program"
	return $result
}

# trace SIGNAL NAME: attaches to the program until it says that it is armed, and some time more;
# ends the tracer by SIGNAL; then the program must say that nothing is armed.
trace() {
	local tracer
	waffle-bpf attach -q --no-report --pid "$program" -o "$2.waffle" 2>err &
	tracer=$!
	await armed=3 || fail "$reason: $(words err)" || { kill -KILL $tracer; return 1; }
	usleep 500000
	kill -"$1" $tracer
	wait $tracer
	status=$?
	await armed=0
}

check_attach() {
	local n first last evaluated
	{ stay_begin && trace INT attach; stay_end; } || return
	[ $status = 0 ] || fail "attach ended with $status: $(words err)" || return
	export_of attach || return
	rows attach.ndjson "guest beat" event | values n >beats
	n=$(count <beats) first=$(head -n 1 beats) last=$(tail -n 1 beats) evaluated=$(said stay evaluated)
	[ "$n" -ge 20 ] || fail "only $n events" || return
	[ $((last - first + 1)) = "$n" ] || fail "$n events with numbers $first to $last" || return
	[ $((n * 3)) -le "$evaluated" ] || fail "$n events, but only $evaluated arguments evaluated"
}

# A program that another one execs is held until it is armed, so its first step is there, unless run
# says that the hold was too short. Another process of the same program is never armed.
check_execs() {
	local strange steps
	stay_begin && timeout 120 waffle-bpf run --no-report -o execs.waffle -- \
		sh -c 'guest work 12; exec guest work 12' >execs.said 2>execs.err ||
		reason="${reason:-run: $(words execs.err)}"
	stay_end
	[ -z "$reason" ] || return 1
	export_of execs || return
	strange=$(grep -c 'armed=[1-9]' stay)
	[ "$strange" = 0 ] || fail "a process that was not started by run was armed $strange times" ||
		return
	steps=$(rows execs.ndjson "guest step" span | count)
	grep -q 'began before being armed' execs.err || {
		equal "steps" "$steps" 24
		return
	}
	reason="on this slow host run said that a program began before it was armed: $steps of 24 steps"
	[ "$steps" -gt 0 ] && [ "$steps" -le 24 ]
}

# A return probe must not make the program do what its seccomp filter forbids.
check_confined() {
	timeout 120 waffle-bpf run -q --no-report -o confined.waffle \
		--probe 'uprobe:exe:guest_confined(long n) -> long ret nounwind' -- \
		guest confined 50 >confined.said 2>err || fail "run: $(words err)" || return
	export_of confined || return
	rows confined.ndjson guest_confined span >calls
	equal "calls" "$(count <calls)" "$(said confined.said calls)" &&
		equal "sum" "$(values ret <calls | sum)" "$(said confined.said sum)"
}

check_killed() { stay_begin && trace KILL killed; stay_end; }

modules_load() {
	local module tries
	for tries in 1 2 3 4; do # in any order: those that need another one come later
		for module in /modules/*.ko; do insmod "$module" 2>/dev/null; done
	done
}

check_disk() {
	! grep -q ' /mnt ext4 ' /proc/mounts || return 0
	mkdir -p /mnt
	mount -t ext4 /dev/vda /mnt 2>err || fail "$(words err)"
}

# The scripts of /calls, which capture calls; the host judges that (calls.py).
check_probes() {
	local script name
	for script in /calls/*; do
		name=${script##*/}
		timeout 200 sh "$script" >"out/$name.said" 2>err </dev/null ||
			fail "$name: $(words err)" || return
		mv err "out/$name.err"
		export_of "out/$name" || { reason="$name: $reason"; return 1; }
	done
}

# A cgroup whose processes may use 10 ms of CPU time in 50.
cgroup=/sys/fs/cgroup/throttled

# capture_wait NAME COMMAND: captures the command, with all that waffle-bpf says of it.
capture_wait() {
	# shellcheck disable=SC2086
	timeout 60 waffle-bpf run --no-report -o "out/$1.waffle" -- $2 >"out/$1.said" 2>err </dev/null ||
		fail "$1: $(words err)" || return
	mv err "out/$1.err"
	waffle-bpf export "out/$1.waffle" --format ndjson -o "out/$1.ndjson" 2>err &&
		waffle-bpf info --json "out/$1.waffle" >"out/$1.info" 2>err &&
		waffle-bpf why --json --slowest 0 "out/$1.waffle" >"out/$1.why" 2>err ||
		fail "$1: $(words err)"
}

# The programs of /waits, lines of a name and a command. The host judges the captures (waits.py).
check_captured() {
	local name command failed=
	check_disk || return # programs wait for it, whatever checks are asked for
	mount -t cgroup2 none /sys/fs/cgroup && echo +cpu >/sys/fs/cgroup/cgroup.subtree_control &&
		mkdir -p $cgroup blkio && echo "10000 50000" >$cgroup/cpu.max || fail "no cgroups" || return
	touch blkio/tasks
	export ZOO_DIR=/mnt ZOO_BLKIO=/tmp/blkio # QEMU limits the disk
	while read -r name command; do
		capture_wait "$name" "$command" || failed="${failed:+$failed; }$reason"
	done </waits
	cp $cgroup/cpu.stat out
	[ -z "$failed" ] || fail "$failed"
}

# check_program TEXT COMMAND…: a line of /programs.
check_program() {
	local text=$1 skipped
	shift
	timeout 300 "$@" >program 2>&1 ||
		fail "exit status $?: $(grep -m1 -iE 'error|fail' program || words program)" || return
	grep -qF "$text" program || fail "printed '$(words program)' but not '$text'" || return
	skipped=$(grep -F '[  SKIPPED ]' program) || return 0
	reason="skipped: $(echo "$skipped" | tail -n 1 | sed 's/.*\] *//')"
	return 2
}

check_dmesg() {
	found=$(dmesg | grep -m1 -E 'BUG:|WARNING:|Oops|stall|Call Trace|general protection')
	[ -z "$found" ] || fail "$found"
}

verdict() {
	[ ! -s /checks ] || grep -qxF "$1" /checks || return 0
	name=$1 begin=$(uptime_ms) reason=
	shift
	"$@" </dev/null
	case $? in
	0) word=pass ;;
	2) word=cannot ;;
	*) word=fail ;;
	esac
	echo "verdict $name $word $(($(uptime_ms) - begin)) $reason"
	[ $word != fail ] || for file in err ready program stay; do
		[ ! -s $file ] || { echo "---- $file" && tail -n 1000 $file; }
	done
	rm -f err program
}

echo "guest $(uname -r) $(uptime_ms)"
modules_load
verdict ready check_ready
verdict uprobe.multi check_uprobe_multi
verdict run check_run
verdict values check_values
verdict report check_report
verdict sched check_sched
verdict single check_single
verdict filter check_filter
verdict longest check_longest
verdict children check_children
verdict forks check_forks
verdict attach check_attach
verdict killed check_killed
verdict execs check_execs
verdict confined check_confined
while IFS='	' read -r name text command; do
	# shellcheck disable=SC2086
	verdict "$name" check_program "$text" $command
done </programs
verdict probes check_probes
verdict disk check_disk
verdict captured check_captured
tar -cf /dev/vdb out && sync
verdict dmesg check_dmesg
grep '^limited ' ready 2>/dev/null | grep -v uprobe.multi | sed 's/^limited */note /'
echo "guest done"
poweroff -f

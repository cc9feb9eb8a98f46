#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest. Runs each check and prints "verdict NAME pass|fail|cannot SECONDS REASON" on
# the console, which is where run.py reads it; then powers off. A check is a function that returns 0
# (pass), 1 (fail) or 2 (this kernel cannot), with the reason in $reason.

/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin HOME=/tmp WAFFLE_LIBBPF=1
mkdir -p /proc /sys /dev /tmp /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing
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

# near WHAT CAPTURED SAID SLACK: within a tenth and SLACK ns.
near() {
	awk -v a="$2" -v b="$3" -v slack="$4" \
		'BEGIN { d = a - b; exit !(a != "" && b >= 0 && (d < 0 ? -d : d) <= b / 10 + slack) }' ||
		fail "$1: $2 ns in the capture, $3 ns otherwise"
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

# capture NAME: 20 steps of the program, their counts and values against what it says.
capture() {
	timeout 120 waffle-bpf run -q --no-report -o "$1.waffle" -- guest work 20 >"$1.said" 2>err ||
		fail "run: $(words err)" || return
	export_of "$1" || return
	steps=$(said "$1.said" steps)
	equal spans "$(rows "$1.ndjson" "guest step" span | count)" "$steps" &&
		equal events "$(rows "$1.ndjson" "guest event" event | count)" "$steps" &&
		equal counters "$(rows "$1.ndjson" "guest counter" counter | count)" "$steps"
}

check_run() { capture run; }

check_single() {
	WAFFLE_UPROBE_SINGLE=1
	export WAFFLE_UPROBE_SINGLE
	capture single
	set -- $?
	unset WAFFLE_UPROBE_SINGLE
	return "$1"
}

check_values() {
	n=$(said run.said steps)
	equal "sum of n" "$(rows run.ndjson "guest event" event | values n | sum)" "$(said run.said sum)" &&
		equal "last counter" "$(rows run.ndjson "guest counter" counter | values value | tail -n 1)" \
			"$(said run.said last)" &&
		equal "strings" "$(rows run.ndjson "guest step" span | grep -c '"text":"as written"')" "$n" &&
		equal "a double" "$(rows run.ndjson "guest event" event | values half | sort -n | tail -n 1)" 9.5 &&
		equal "thread" "$(rows run.ndjson "guest step" span | values tid | sort -u)" "$(said run.said tid)"
}

# The report reads the same file by another path.
check_report() {
	waffle-bpf report run.waffle --json >report 2>err || fail "$(words err)" || return
	equal "steps in the report" "$(grep -A2 '"name": "guest step"' report | sed -n 's/.*"count": \([0-9]*\).*/\1/p')" \
		"$(said run.said steps)"
}

# Times of each step add up, it blocked as long as the other thread slept, which is who woke it; and
# the whole agrees with /proc/thread-self/schedstat.
check_sched() {
	rows run.ndjson "guest step" span | tr '{},' '\n\n\n' >steps
	awk -F: -v least="$(said run.said least_ns)" '
		/_ns"/ { v[$1] = $2 }
		/"blocked_ns"/ {
			total = v["\"end_ns\""] - v["\"start_ns\""]
			parts = v["\"running_ns\""] + v["\"runnable_ns\""] + v["\"blocked_ns\""]
			if (total != parts) { printf "a step of %d ns has states of %d ns", total, parts; exit 1 }
			if (v["\"blocked_ns\""] < least * 0.9) { printf "a step blocked only %d ns", v["\"blocked_ns\""]; exit 1 }
			seen++
		}
		END { if (!seen) { print "no step has scheduler times"; exit 1 } }' steps >err || fail "$(words err)" || return
	waker=$(rows run.ndjson runnable sched | grep "\"tid\":$(said run.said tid)," | grep -c "\"waker_tid\":$(said run.said helper),")
	[ "$waker" -ge "$(said run.said steps)" ] ||
		fail "woken $waker times by the other thread, $(said run.said steps) said by the program" || return
	rows run.ndjson "guest work" span >work
	near "CPU time" "$(values running_ns <work)" "$(said run.said run_ns)" 1000000 &&
		near "run queue time" "$(values runnable_ns <work)" "$(said run.said delay_ns)" 3000000
}

await() {
	tries=0
	until words stay | grep -q "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || fail "the program does not say $1 but $(words stay)" || return
		usleep 50000
	done
}

# trace SIGNAL NAME: attaches to a running process until it says that it is armed, for some time
# more, and ends the tracer by SIGNAL; then the process must say that nothing is armed.
trace() {
	rm -f in
	mkfifo in
	guest stay <in >stay &
	program=$!
	exec 3>in
	await armed=0 && {
		waffle-bpf attach -q --no-report --pid $program -o "$2.waffle" >err 2>&1 &
		tracer=$!
		await armed=3 && usleep 500000
		set -- "$1" "$2" $?
		kill -"$1" $tracer
		wait $tracer
		status=$?
		[ "$3" = 0 ] || fail "$reason: $(words err)"
	} && await armed=0
	set -- "$1" "$2" $?
	exec 3>&-
	wait $program
	return "$3"
}

check_attach() {
	trace INT attach && export_of attach || return
	[ $status = 0 ] || fail "attach ended with $status: $(words err)" || return
	rows attach.ndjson "guest beat" event | values n >beats
	set -- "$(count <beats)" "$(head -n 1 beats)" "$(tail -n 1 beats)" "$(said stay evaluated)"
	[ "$1" -ge 20 ] || fail "only $1 events" || return
	[ $(($3 - $2 + 1)) = "$1" ] || fail "$1 events with numbers $2 to $3" || return
	[ $(($1 * 3)) -le "$4" ] || fail "$1 events, but only $4 arguments evaluated"
}

check_killed() { trace KILL killed; }

# Each line of /programs: name, what it must print, command.
check_program() {
	text=$2
	shift 2
	timeout 300 "$@" >program 2>&1 || fail "exit status $?: $(grep -m1 -iE 'error|fail' program || words program)" || return
	grep -qF "$text" program || fail "it did not print '$text' but: $(words program)" || return
	skipped=$(grep -F -e '[  SKIPPED ]' program) || return 0
	reason="skipped: $(echo "$skipped" | tail -n 1 | sed 's/.*\] *//')"
	return 2
}

check_dmesg() {
	found=$(dmesg | grep -m1 -E 'BUG:|WARNING:|Oops|stall|Call Trace|general protection')
	[ -z "$found" ] || fail "$found"
}

verdict() {
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
		[ ! -s $file ] || { echo "---- $file" && tail -n 200 $file; }
	done
	rm -f err program
}

echo "guest $(uname -r) $(uptime_ms)"
verdict ready check_ready
verdict uprobe.multi check_uprobe_multi
verdict run check_run
verdict values check_values
verdict report check_report
verdict sched check_sched
verdict single check_single
verdict attach check_attach
verdict killed check_killed
while IFS='	' read -r name text command; do
	# shellcheck disable=SC2086
	verdict "$name" check_program "$name" "$text" $command
done </programs
verdict dmesg check_dmesg
grep ^limited ready | sed 's/^limited */note /'
echo "guest done"
poweroff -f

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Exports a capture of RECORDS records (spans with two integers, one switch in six records) in each
# format; prints one line a format: records a second of the whole command and
# bytes a record. The targets are those of Perfetto: 2.5 million a second, 60 bytes. Of sqlite it also
# prints rows a second, whose target is 300,000.
#	bench/export_bench.sh [RECORDS]
set -eu
cd "$(dirname "$0")/.."
records=${1:-10000000}
build=${BUILD:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

gcc -std=gnu17 -O2 -D_GNU_SOURCE -I. -Iuserspace -Iinclude -Itests/unit \
	tests/integration/make_capture.c "$build/libwaffle-bpf.a" \
	-lbpf -lelf -ldw -lprotobuf-c -lzstd -lyajl -lseccomp -lz -lm -lpthread -o "$folder/make_capture"
"$folder/make_capture" bench "$folder/bench.waffle" "$records"

for format in perfetto chrome ndjson otlp zipkin sqlite; do
	start=$(date +%s%N)
	"$build/waffle-bpf" export "$folder/bench.waffle" --format "$format" -o "$folder/out" \
		>"$folder/log"
	end=$(date +%s%N)
	awk -v format="$format" -v n="$records" -v ns=$((end - start)) \
		-v bytes="$(stat -c %s "$folder/out")" 'BEGIN {
		printf "export %-8s  %6.2f s  %5.2f M records/s  %6.1f bytes/record\n",
			format, ns / 1e9, n / (ns / 1e3), bytes / n }'
	[ "$format" != sqlite ] || python3 - "$folder/out" $((end - start)) <<-'END'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
		rows = sum(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name, in tables)
		print(f"export sqlite    {rows} rows, {rows / int(sys.argv[2]) * 1e9:.0f} rows/s")
	END
	rm "$folder/out"
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a fuzzer of tests/fuzz for some seconds: fuzz.sh fuzz_store 600. It starts from the inputs in
# tests/fuzz/corpus/NAME, keeps new ones in build/fuzz/corpus, and leaves what crashes in build/fuzz.
# With a seed it can be repeated: fuzz.sh fuzz_store 10 1 begins with the committed inputs alone.
set -eu
cd "$(dirname "$0")/.."

fuzz=${BUILD:-build}/fuzz
name=$1
seconds=$2
seed=${3:-}
found=$fuzz/corpus/$name
options=(-print_final_stats=1)
if [ -n "$seed" ]; then
	found=$(mktemp -d)
	trap 'rm -rf "$found"' EXIT
	options=(-seed="$seed" -verbosity=0 -print_funcs=0)
fi
mkdir -p "$found"
inputs=()
for folder in "tests/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"; do
	[ ! -d "$folder" ] || inputs+=("$folder")
done
"$fuzz/bin/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 "${options[@]}" \
	-artifact_prefix="$fuzz/$name-" "$found" "${inputs[@]}"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a fuzzer of tests/fuzz for some seconds: fuzz.sh fuzz_store 10. It starts from the inputs in
# tests/fuzz/corpus/NAME, keeps new ones in build/fuzz/corpus, and leaves what crashes in build/fuzz.
set -eu
cd "$(dirname "$0")/.."

fuzz=${BUILD:-build}/fuzz
name=$1
seconds=$2
mkdir -p "$fuzz/corpus/$name"
seeds=
for folder in "tests/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"; do
	[ ! -d "$folder" ] || seeds="$seeds $folder"
done
exec "$fuzz/bin/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="$fuzz/$name-" "$fuzz/corpus/$name" $seeds

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Traces examples/training.c, says why its slowest step was slow, and writes the trace and a page.
set -eu
cd "$(dirname "$0")/.."

build=${BUILD:-build}
file=$build/demo.waffle
trace=$build/demo.pftrace
page=$build/demo.html

echo "== A training loop, traced from its start: waffle-bpf run -o $file -- $build/examples/training"
if [ "$(id -u)" = 0 ]; then root=; else root="sudo"; fi
$root "$build/waffle-bpf" run -o "$file" -- "$build/examples/training" --directory "$build"
echo
echo "== Why the slowest step was slow: waffle-bpf why $file --span step --slowest 1"
"$build/waffle-bpf" why "$file" --span step --slowest 1
"$build/waffle-bpf" report --html "$page" "$file"
"$build/waffle-bpf" export "$file" --format perfetto -o "$trace" >/dev/null
echo
echo "The trace is $(realpath "$trace")"
echo "Open it in Perfetto: https://ui.perfetto.dev, then \"Open trace file\". It stays on this machine."
echo "The same as a page for any browser: $(realpath "$page")"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Traces examples/training.c, prints the report that explains its slow steps, and exports the trace.
set -eu
cd "$(dirname "$0")/.."

build=${BUILD:-build}
file=$build/demo.waffle
trace=$build/demo.pftrace

echo "== A training loop, traced from its start: waffle-bpf run -o $file -- $build/examples/training"
if [ "$(id -u)" = 0 ]; then root=; else root="sudo"; fi
$root "$build/waffle-bpf" run -o "$file" -- "$build/examples/training" --directory "$build"
echo
echo "== One slow step: where its time went, and what the loaders did meanwhile"
"$build/waffle-bpf" export "$file" --format ndjson -o - | python3 scripts/demo.py
"$build/waffle-bpf" export "$file" --format perfetto -o "$trace" >/dev/null
echo
echo "The trace is $(realpath "$trace")"
echo "Open it in Perfetto: https://ui.perfetto.dev, then \"Open trace file\". It stays on this machine."

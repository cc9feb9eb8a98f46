#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that `make check` does. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.."

if ! scripts/setup.sh lint; then
	echo "0 passed, 1 failed"
	exit 1
fi
exec python3 scripts/check.py

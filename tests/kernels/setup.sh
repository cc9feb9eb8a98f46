#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the kernel matrix needs beside what `make setup` installs: QEMU and a static busybox.
# QEMU 10 or later: 7.2 emulates some instructions wrongly that newer kernels use.
set -eu

qemu_min=1:10
say() { echo "kernels: $*" >&2; }
root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -E "$@"; fi; }
version() { dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null | sed -n 's/^installed //p'; }
new_enough() { dpkg --compare-versions "$1" ge $qemu_min; }

apt_install() {
	say "installing $*"
	root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends "$@" </dev/null >&2
}

command -v dpkg-query >/dev/null || {
	say "this is not Debian; the kernels that are tried come from its packages"
	exit 1
}
[ "$(dpkg --print-architecture)" = amd64 ] || {
	say "only x86-64 kernels are tried, on an x86-64 machine"
	exit 1
}
if [ -z "$(version busybox-static)" ] || ! new_enough "$(version qemu-system-x86)"; then
	root apt-get update -q </dev/null >&2
fi
[ -n "$(version busybox-static)" ] || apt_install busybox-static
if ! new_enough "$(version qemu-system-x86)"; then
	offered=$(apt-cache madison qemu-system-x86 | while IFS='| ' read -r _ offer _; do
		! new_enough "$offer" || echo "$offer"
	done | sort -rV | head -n 1)
	[ -n "$offered" ] || {
		say "QEMU 10 or later is in none of the apt sources; 'make setup' adds backports"
		exit 1
	}
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")-backports
	apt-cache madison qemu-system-x86 | grep -F "$offered" | grep -qF "$suite/" || suite=
	apt_install ${suite:+-t "$suite"} "qemu-system-x86=$offered"
fi

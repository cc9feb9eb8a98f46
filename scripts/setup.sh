#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what waffle needs, and nothing that is already there.
#
#   setup.sh build     what `make` and `make demo` need: Debian packages
#   setup.sh lint      also what `make check` needs before its integration tests: Debian packages, and
#                      the Python packages of tests/requirements.txt in a virtual environment
#   setup.sh check     also what these tests and the benchmarks need: servers, NVIDIA's libraries, JAX
#                      and PyTorch
#   setup.sh missing   installs nothing; prints the programs and libraries that a build lacks
set -eu
cd "$(dirname "$0")/.."

build=${BUILD:-build}
build_packages="gcc g++ clang make pkg-config protobuf-c-compiler libprotobuf-c-dev libzstd-dev
 libyajl-dev libcapstone-dev libseccomp-dev zlib1g-dev libc6-dev"
check_packages="lld llvm git locales liblzma-dev libbz2-dev clang-format clang-tidy dwz libcmocka-dev
 protobuf-compiler python3 python3-dev python3-venv procps strace bpftrace libc6-dbg zstd
 gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user musl-tools
 redis-server redis-tools libcurl4 openssl prometheus libsqlite3-0 lttng-tools liblttng-ust-dev opentelemetry-cpp-dev
 chromium-headless-shell postgresql openmpi-bin libopenmpi-dev mpich libmpich-dev"
# From backports where the release's own are too old: bpf links with uprobe.multi came with 1.3.
newer_packages="libbpf-dev bpftool libelf-dev libdw-dev"
libbpf_min=1:1.3

say() { echo "setup: $*" >&2; }
root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -E "$@"; fi; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_of() {
	for package in "$@"; do
		installed "$package" || echo "$package"
	done
}

libbpf_is_new() {
	installed libbpf-dev &&
		dpkg --compare-versions "$(dpkg-query -W -f '${Version}' libbpf-dev)" ge $libbpf_min
}

# The sanitizers' and fuzzers' run-time library carries clang's major version in its name.
clang_runtime() { echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"; }

# Whether any configured source offers a new enough libbpf.
libbpf_offered() {
	apt-cache madison libbpf-dev | while IFS='| ' read -r _ version _; do
		dpkg --compare-versions "$version" ge $libbpf_min && echo yes
	done | grep -q yes
}

candidate_is_new() {
	dpkg --compare-versions "$(apt-cache policy libbpf-dev | sed -n 's/ *Candidate: //p')" \
		ge $libbpf_min
}

# Adds the backports of this release: the system's own source of it with another suite.
add_backports() {
	local name stanza list=/etc/apt/sources.list
	local file=$list.d/waffle-backports
	name=$(. /etc/os-release && echo "$VERSION_CODENAME")
	stanza=$(sed -s -e '/^#/d' -e '$G' $list.d/*.sources 2>/dev/null |
		awk -v RS= -v name="$name" '$0 ~ "(^|\n)Suites:([^\n]* )?" name "( |\n|$)" { print; exit }' |
		sed -e "s/^Suites:.*/Suites: $name-backports/" -e 's/^Components:.*/Components: main/')
	if [ -n "$stanza" ]; then
		file=$file.sources
	else
		file=$file.list
		stanza=$(cat $list $list.d/*.list 2>/dev/null |
			sed -nE "s/^(deb +(\[[^]]*\] +)?[^ ]+ +)$name +.*/\1$name-backports main/p" | head -n 1)
	fi
	[ -n "$stanza" ] || {
		say "no apt source of $name found to take the mirror from; add $name-backports yourself"
		exit 1
	}
	say "libbpf >= 1.3 is in none of the apt sources: adding $name-backports as $file"
	echo "$stanza" | root tee "$file" >/dev/null
	root apt-get update -q </dev/null >&2
}

# Servers among the packages (redis) are for tests only and must not be started by dpkg.
without_daemons() {
	local policy=/usr/sbin/policy-rc.d status=0
	if [ -e $policy ]; then
		"$@"
		return
	fi
	printf '#!/bin/sh\nexit 101\n' | root tee $policy >/dev/null
	root chmod 755 $policy
	"$@" || status=$?
	root rm -f $policy
	return $status
}

apt_install() {
	without_daemons root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends "$@" </dev/null >&2
}

setup_packages() {
	local missing newer
	missing=$(missing_of $packages)
	newer=$(missing_of $newer_packages)
	libbpf_is_new || newer=$newer_packages
	if [ -n "$missing$newer" ]; then
		say "installing" $missing $newer
		root apt-get update -q </dev/null >&2
	fi
	if [ -n "$newer" ]; then
		libbpf_offered || add_backports
		name=$(. /etc/os-release && echo "$VERSION_CODENAME")
		# What is installed already may be of backports, and wants more of the same.
		if candidate_is_new; then
			apt_install $newer || apt_install -t "$name-backports" $newer
		else
			apt_install -t "$name-backports" $newer
		fi
	fi
	[ -z "$missing" ] || apt_install $missing
}

setup_clang_runtime() {
	local missing
	missing=$(missing_of "$(clang_runtime)")
	[ -z "$missing" ] || apt_install $missing
}

# The programs and libraries that a build needs and that are not there, on one line.
build_lacks() {
	local lacking= library
	for program in gcc g++ clang bpftool protoc-c pkg-config; do
		command -v $program >/dev/null || lacking="$lacking $program"
	done
	if command -v pkg-config >/dev/null; then
		pkg-config --atleast-version=1.3 libbpf || lacking="$lacking libbpf>=1.3"
		for library in libelf libdw libprotobuf-c libzstd yajl capstone zlib; do
			pkg-config --exists $library || lacking="$lacking $library"
		done
	fi
	echo $lacking
}

# The same of the tests.
check_lacks() {
	local lacking=
	for program in clang-format clang-tidy python3; do
		command -v $program >/dev/null || lacking="$lacking $program"
	done
	pkg-config --exists cmocka 2>/dev/null || lacking="$lacking cmocka"
	echo $lacking
}

# Without dpkg nothing is installed, only looked for.
only_look() {
	local lacking=$1
	[ -n "$lacking" ] || return 0
	say "this is not Debian; install with your package manager, development files included: $lacking"
	say "the names of the Debian packages:" $packages $newer_packages
	exit 1
}

setup_python() {
	local venv=$build/venv want
	want=$(cat tests/requirements.txt)
	[ "$(cat "$venv/requirements.done" 2>/dev/null)" = "$want" ] && [ -x "$venv/bin/pytest" ] && return
	say "Python packages of tests/requirements.txt into $venv"
	rm -rf "$venv"
	mkdir -p "$build"
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q --disable-pip-version-check -r tests/requirements.txt >&2
	echo "$want" >"$venv/requirements.done"
}

# NVIDIA's libraries, 800 MB of them: for tests only, and of this machine's kind only.
setup_cuda() {
	local venv=$build/venv want
	want=$(cat tests/requirements-cuda.txt)
	[ "$(cat "$venv/requirements-cuda.done" 2>/dev/null)" = "$want" ] && return
	[ "$(uname -m)" = x86_64 ] || return 0
	say "libraries of tests/requirements-cuda.txt into $venv"
	"$venv/bin/pip" install -q --disable-pip-version-check --no-deps \
		-r tests/requirements-cuda.txt >&2
	echo "$want" >"$venv/requirements-cuda.done"
}

# JAX and PyTorch, 2 GB of them: for tests of the Python package.
setup_frameworks() {
	local folder=$build/frameworks want
	want=$(cat tests/requirements-frameworks.txt)
	[ "$(cat "$folder/requirements.done" 2>/dev/null)" = "$want" ] && return
	[ "$(uname -m)" = x86_64 ] || return 0
	say "JAX and PyTorch of tests/requirements-frameworks.txt into $folder"
	rm -rf "$folder"
	"$build/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile \
		--no-cache-dir --target "$folder" -r tests/requirements-frameworks.txt >&2
	"$build/venv/bin/python" tests/cuda_stubs.py "$folder/torch/lib" "$folder/cuda-stubs"
	echo "$want" >"$folder/requirements.done"
}

set -- "${1:-build}"
case $1 in
missing)
	build_lacks
	exit
	;;
build) packages=$build_packages ;;
lint | check)
	packages="$build_packages $check_packages"
	# Of tests/zoo/runtimes, and Java and Maven also of scripts/servers.sh.
	command -v javac >/dev/null || packages="$packages default-jdk-headless"
	command -v rustc >/dev/null || packages="$packages rustc"
	command -v node >/dev/null || packages="$packages nodejs"
	command -v mvn >/dev/null || packages="$packages maven"
	newer_packages="$newer_packages libdebuginfod-dev" # of the same source as libelf-dev
	;;
*)
	say "usage: setup.sh [build|lint|check|missing]"
	exit 2
	;;
esac

if command -v dpkg-query >/dev/null; then
	setup_packages
	[ "$1" = build ] || setup_clang_runtime
elif [ "$1" != build ]; then
	only_look "$(echo $(build_lacks) $(check_lacks))"
else
	only_look "$(build_lacks)"
fi
[ "$1" = build ] || setup_python
if [ "$1" = check ]; then
	setup_cuda
	setup_frameworks
	scripts/servers.sh
fi

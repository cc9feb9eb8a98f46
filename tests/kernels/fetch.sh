#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch.sh SUITE FOLDER: puts the newest kernel of a Debian suite into FOLDER, as vmlinuz, the modules
# that a disk with a file system takes into FOLDER/modules (those that are not built in), and the
# name of the package it is from into `package`. Nothing is installed: apt works in a root of its own inside
# FOLDER, with the mirror of the system's own sources and, as always, checked signatures. Does
# nothing if the kernel is there; remove FOLDER for a newer one.
set -eu

suite=$1 folder=$2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
modules="virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_blk
	crc16 crc32c_generic crc32c-cryptoapi libcrc32c mbcache jbd2 ext4"
[ ! -s "$folder/package" ] || [ ! -d "$folder/modules" ] || exit 0

mkdir -p "$folder"
folder=$(realpath "$folder") apt=$(realpath "$folder")/apt
rm -rf "$apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
trap 'rm -rf "$apt"' EXIT
: >"$apt/status"

name=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	awk -v name="$name" '$2 == name && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || {
	echo "kernels: no apt source of $name found to take the mirror from" >&2
	exit 1
}
{
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$mirror" "$suite"
	[ ! -e $keyring ] || echo "Signed-By: $keyring"
} >"$apt/kernel.sources"

private() {
	local program=$1
	shift
	"$program" -q -o APT::Sandbox::User=root -o Acquire::Languages=none \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
		-o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/kernel.sources" \
		-o Dir::Etc::sourceparts=- "$@" </dev/null
}

# The image is in linux-binary-* where there is such a package (linux-image-* is empty then).
newest() {
	private apt-cache pkgnames "$1-" | grep -E "^$1-[0-9][^-]*(-[0-9]+)?-amd64\$" | sort -V | tail -n 1
}

echo "kernels: fetching the kernel of $suite" >&2
private apt-get update >"$apt/log" 2>&1 || { cat "$apt/log" >&2; exit 1; }
package=$(newest linux-binary || true)
package=${package:-$(newest linux-image || true)}
[ -n "$package" ] || { echo "kernels: $suite has no kernel package" >&2; exit 1; }
# download NAME PACKAGE: as NAME.deb.
download() {
	(cd "$apt" && private apt-get download "$2" >"$apt/log" 2>&1) || { cat "$apt/log" >&2; exit 1; }
	mv "$apt/$2"_*.deb "$apt/$1.deb"
}
download image "$package"
dpkg-deb --fsys-tarfile "$apt/image.deb" | tar -xO --wildcards '*/vmlinuz*' >"$folder/vmlinuz"
[ -s "$folder/vmlinuz" ] || { echo "kernels: $package holds no kernel" >&2; exit 1; }

# The modules, too, are in a package of their own where there is such a one.
with_modules=image
if private apt-cache pkgnames "linux-modules-" | grep -qFx "linux-modules-${package#linux-binary-}"; then
	with_modules=modules
	download modules "linux-modules-${package#linux-binary-}"
fi
rm -rf "$folder/modules"
mkdir "$apt/modules"
dpkg-deb --fsys-tarfile "$apt/$with_modules.deb" >"$apt/modules.tar"
for module in $modules; do # those that are built in are not there
	tar -xf "$apt/modules.tar" -C "$apt/modules" --wildcards --transform 's|.*/||' \
		"*/$module.ko*" 2>/dev/null || true
done
find "$apt/modules" -name '*.xz' -exec xz -d {} +
find "$apt/modules" -name '*.zst' -exec zstd -q -d --rm {} +
echo "$package $(dpkg-deb -f "$apt/image.deb" Version)" >"$folder/package"
mv "$apt/modules" "$folder/modules"

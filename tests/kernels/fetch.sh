#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch.sh SUITE FOLDER: puts the newest kernel of a Debian suite into FOLDER, as vmlinuz, the modules
# that a disk with a file system takes into FOLDER/modules (those that are not built in), and the name of
# the package it is from into `package`. "ubuntu-VERSION" is a package of Ubuntu's that never changes,
# known by its checksum. Nothing is installed. Does nothing if the kernel is there; remove FOLDER for a
# newer one.
set -eu

suite=$1 folder=$2
modules="virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_blk failover
	net_failover virtio_net
	crc16 crc32c_generic crc32c-cryptoapi libcrc32c mbcache jbd2 ext4"
. "$(dirname "$0")/../../scripts/private_apt.sh"
[ ! -s "$folder/package" ] || [ ! -d "$folder/modules" ] || exit 0

mkdir -p "$folder"
folder=$(realpath "$folder") apt=$folder/apt
private_apt_open "$apt"
echo "kernels: fetching the kernel of $suite" >&2

unpack_kernel() {
	dpkg-deb --fsys-tarfile "$apt/image.deb" | tar -xO --wildcards '*/vmlinuz*' >"$folder/vmlinuz"
	[ -s "$folder/vmlinuz" ] || { echo "kernels: $package holds no kernel" >&2; exit 1; }
}

finish() {
	echo "$package $(dpkg-deb -f "$apt/image.deb" Version)" >"$folder/package"
	rm -rf "$folder/modules"
	mv "$apt/modules" "$folder/modules"
	exit 0
}

# ubuntu PACKAGE PATH CHECKSUM: its kernel needs no modules.
ubuntu() {
	package=$1
	curl -sfL --retry 3 -o "$apt/image.deb" "http://archive.ubuntu.com/ubuntu/pool/main/l/$2" || {
		echo "kernels: $package can't be downloaded" >&2
		exit 1
	}
	echo "$3  $apt/image.deb" | sha256sum -c --quiet
	unpack_kernel
	mkdir "$apt/modules"
	finish
}

case $suite in
ubuntu-6.8.0-31)
	ubuntu linux-image-6.8.0-31-generic \
		linux-signed/linux-image-6.8.0-31-generic_6.8.0-31.31_amd64.deb \
		fd2ed023c84163e62c73d3b7b613a9b004bd31e335641c23d42bd249e489fbe6
	;;
ubuntu-6.11.0-17)
	ubuntu linux-image-6.11.0-17-generic \
		linux-signed-hwe-6.11/linux-image-6.11.0-17-generic_6.11.0-17.17~24.04.2_amd64.deb \
		2dbbc260ef488df0e43e34e478308bfdb1e5f87cb3fc7ebf55620326974bb77f
	;;
esac
private_apt_source "$(private_apt_mirror)" "$suite" /usr/share/keyrings/debian-archive-keyring.gpg

# The image is in linux-binary-* where there is such a package (linux-image-* is empty then).
newest() {
	private_apt apt-cache pkgnames "$1-" | grep -E "^$1-[0-9][^-]*(-[0-9]+)?-amd64\$" | sort -V |
		tail -n 1
}

private_apt_quietly apt-get update
package=$(newest linux-binary || true)
package=${package:-$(newest linux-image || true)}
[ -n "$package" ] || { echo "kernels: $suite has no kernel package" >&2; exit 1; }
# download NAME PACKAGE: as NAME.deb.
download() {
	(cd "$apt" && private_apt_quietly apt-get download "$2")
	mv "$apt/$2"_*.deb "$apt/$1.deb"
}
download image "$package"
unpack_kernel

# The modules, too, are in a package of their own where there is such a one.
with_modules=image
if private_apt apt-cache pkgnames "linux-modules-" | grep -qFx "linux-modules-${package#linux-binary-}"; then
	with_modules=modules
	download modules "linux-modules-${package#linux-binary-}"
fi
mkdir "$apt/modules"
dpkg-deb --fsys-tarfile "$apt/$with_modules.deb" >"$apt/modules.tar"
for module in $modules; do # those that are built in are not there
	tar -xf "$apt/modules.tar" -C "$apt/modules" --wildcards --transform 's|.*/||' \
		"*/$module.ko*" 2>/dev/null || true
done
find "$apt/modules" -name '*.xz' -exec xz -d {} +
find "$apt/modules" -name '*.zst' -exec zstd -q -d --rm {} +
finish

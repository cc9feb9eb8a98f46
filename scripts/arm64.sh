#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# arm64.sh FOLDER: unpacks the aarch64 libraries that waffle and its unit tests link into FOLDER, the
# root for a cross-compiler and an emulator. Nothing is installed. Does nothing if all are there.
set -eu

folder=$1
packages="libbpf-dev libelf-dev libdw-dev libcapstone-dev libprotobuf-c-dev libzstd-dev libyajl-dev
 libseccomp-dev zlib1g-dev libcmocka-dev libc6-dev"
. "$(dirname "$0")/private_apt.sh"

[ "$packages" != "$(cat "$folder/complete" 2>/dev/null)" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder/usr/lib"
folder=$(realpath "$folder")
private_apt_open "$folder/apt"
name=$(. /etc/os-release && echo "$VERSION_CODENAME")
private_apt_source "$(private_apt_mirror)" "$name $name-backports" \
	/usr/share/keyrings/debian-archive-keyring.gpg
# The same libraries come from backports as on this machine (setup.sh).
printf 'Package: libbpf* libelf* libdw* linux-libc-dev\nPin: release n=%s-backports\nPin-Priority: 500\n' "$name" \
	>"$apt_root/preferences"
arm64="-o APT::Architecture=arm64 -o APT::Architectures=arm64"
echo "arm64: fetching libraries" >&2
private_apt_quietly apt-get $arm64 update
private_apt_quietly apt-get $arm64 -y --no-install-recommends --download-only install $packages

# One folder of libraries, however a package calls it; no link leads out of the root.
ln -s usr/lib "$folder/lib"
for package in "$apt_root"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink
done
find "$folder/usr" -type l -lname '/*' | while read -r link; do
	ln -sfr "$folder$(readlink "$link")" "$link"
done
echo "$packages" >"$folder/complete"

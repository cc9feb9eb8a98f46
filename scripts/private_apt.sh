# SPDX-License-Identifier: Apache-2.0
# To be sourced: apt in a root of its own, so that packages of other releases and machines can be
# fetched and unpacked while those of this system stay as they are. Signatures are checked as always.
#
#	private_apt_open FOLDER	makes the root in a folder, which is removed when the script ends
#	private_apt PROGRAM…	apt-get or apt-cache there; its sources are FOLDER/sources.sources
#	private_apt_mirror	the mirror of the system's own sources

private_apt_open() {
	apt_root=$1
	rm -rf "$apt_root"
	mkdir -p "$apt_root/lists/partial" "$apt_root/cache/archives/partial" "$apt_root/none"
	trap 'rm -rf "$apt_root"' EXIT
	: >"$apt_root/status"
	: >"$apt_root/preferences"
}

private_apt() {
	local program=$1
	shift
	"$program" -q -o APT::Sandbox::User=root -o Acquire::Languages=none \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Dir::State::lists="$apt_root/lists" -o Dir::State::status="$apt_root/status" \
		-o Dir::Cache="$apt_root/cache" -o Dir::Etc::sourcelist="$apt_root/sources.sources" \
		-o Dir::Etc::sourceparts=- -o Dir::Etc::preferences="$apt_root/preferences" \
		-o Dir::Etc::preferencesparts="$apt_root/none" "$@" </dev/null
}

# The same, but what it prints is only shown if it fails.
private_apt_quietly() {
	private_apt "$@" >"$apt_root/log" 2>&1 || {
		cat "$apt_root/log" >&2
		return 1
	}
}

private_apt_mirror() {
	local name mirror
	name=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | awk -v name="$name" '$2 == name && $3 == "main" { print $1; exit }')
	[ -n "$mirror" ] || {
		echo "no apt source of $name found to take the mirror from" >&2
		return 1
	}
	echo "$mirror"
}

# private_apt_source MIRROR SUITES KEYRING: the root's only source.
private_apt_source() {
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$1" "$2"
	[ ! -e "$3" ] || echo "Signed-By: $3"
} >"$apt_root/sources.sources"

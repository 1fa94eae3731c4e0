#!/bin/sh
# Builds the packages of a kind, outside of this tree. RPMs that are built on Debian are for tests: their dependencies are Debian's.
#
#   packaging/package.sh deb|rpm VERSION DIR    DIR is replaced by one with the packages, their source and their SBOM
set -eu
here=$(readlink -f "$(dirname "$0")")
kind=$1
version=$2
dir=$(readlink -m "$3")
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL # those of the make that called this are not meant for the one in there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$("$here/dist.sh" --time)
export SOURCE_DATE_EPOCH
cd "$work"

tool() { # PROGRAM: without it there is nothing to begin
	command -v "$1" >/dev/null || {
		echo "make $kind: $1 is missing; packaging/deps.sh --$kind installs what builds these packages" >&2
		exit 1
	}
}

logged() {
	"$@" >"$work/build.log" 2>&1 || {
		tail -n 40 "$work/build.log" | cut -c 1-200 >&2
		exit 1
	}
}

deb() { # in the export, what is packaging/deb here is debian/
	tool dpkg-buildpackage
	name=pullet_$version
	"$here/dist.sh" "$version" "$name.orig.tar.gz"
	tar -xf "$name.orig.tar.gz"
	cd "pullet-$version"
	cp -r packaging/deb debian
	# the names by which debhelper finds units
	cp packaging/systemd/pullet.* debian/
	for type in path service; do
		cp "packaging/systemd/pullet-changed@.$type" "debian/pullet@.pullet-changed.$type"
	done
	for unit in ready relay; do
		cp "packaging/systemd/pullet-$unit.service" "debian/pullet.pullet-$unit.service"
	done
	logged dpkg-buildpackage -us -uc --jobs=auto
	cd "$work"
	rm -r "pullet-$version"
}

rpm() {
	tool rpmbuild
	name=pullet-$version
	"$here/dist.sh" "$version" "$name.tar.gz"
	set --
	# what is installed is not in rpm's database; and for tests, -O1 without debug information takes half of the time (and guesses, as
	# the sanitized builds do, that something is uninitialized)
	[ ! -e /etc/debian_version ] || set -- --nodeps --define 'optflags -O1 -Wno-maybe-uninitialized'
	# no source package: what rpm expands in it names this directory, and the tar file has the same in it
	logged rpmbuild -tb "$@" --define "_topdir $work/rpm" --define "_smp_mflags -j$(nproc)" --define '_buildhost localhost' \
		--define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' "$name.tar.gz"
	mv rpm/RPMS/*/*.rpm .
	rm -r rpm
}

"$kind"
# shellcheck disable=SC2046 # names without blanks
"$here/sbom.py" "$version" "$name.spdx.json" $(find . -name "*.$kind" ! -name '*-dbgsym_*' ! -name '*-debug*')
rm -rf "$dir"
mkdir -p "$dir"
mv ./* "$dir/"

#!/bin/sh
# Builds the RPM packages, outside of this tree. On Debian they are for tests: their dependencies are Debian's.
#
#   packaging/rpm.sh VERSION DIR    DIR is replaced by one with the packages, their source and their SBOM
set -eu
here=$(readlink -f "$(dirname "$0")")
version=$1
dir=$(readlink -m "$2")
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL # those of the make that called this are not meant for the one in there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$("$here/dist.sh" --time)
export SOURCE_DATE_EPOCH
"$here/dist.sh" "$version" "$work/pullet-$version.tar.gz"
set --
[ ! -e /etc/debian_version ] || set -- --nodeps # what is installed is not in rpm's database
# no source package: what rpm expands in it names this directory, and the tar file has the same in it
rpmbuild -tb "$@" --define "_topdir $work" --define "_smp_mflags -j$(nproc)" --define '_buildhost localhost' \
	--define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
	"$work/pullet-$version.tar.gz" >"$work/build.log" 2>&1 || {
	tail -n 40 "$work/build.log" | cut -c 1-200 >&2
	exit 1
}
# shellcheck disable=SC2046 # names without blanks
"$here/sbom.py" "$version" "$work/pullet-$version.spdx.json" $(find "$work/RPMS" -name '*.rpm' ! -name '*-debug*')
rm -rf "$dir"
mkdir -p "$dir"
mv "$work"/RPMS/*/*.rpm "$work"/pullet-* "$work/build.log" "$dir/"

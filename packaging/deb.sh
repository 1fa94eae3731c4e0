#!/bin/sh
# Builds the Debian packages, outside of this tree: in the export, what is packaging/deb here is debian/.
#
#   packaging/deb.sh VERSION DIR    DIR is replaced by one with the packages, their source and their SBOM
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
"$here/dist.sh" "$version" "$work/pullet_$version.orig.tar.gz"
cd "$work"
tar -xf "pullet_$version.orig.tar.gz"
cd "pullet-$version"
cp -r packaging/deb debian
# the names by which debhelper finds units
cp packaging/systemd/pullet.* debian/
for type in path service; do
	cp "packaging/systemd/pullet-changed@.$type" "debian/pullet@.pullet-changed.$type"
done
dpkg-buildpackage -us -uc --jobs=auto >"$work/build.log" 2>&1 || {
	tail -n 40 "$work/build.log" | cut -c 1-200 >&2
	exit 1
}
# shellcheck disable=SC2046 # names without blanks
"$here/sbom.py" "$version" "$work/pullet_$version.spdx.json" $(find "$work" -maxdepth 1 -name "*.deb" ! -name "*-dbgsym_*")
rm -rf "$dir" "$work/pullet-$version"
mkdir -p "$dir"
mv "$work"/* "$dir/"

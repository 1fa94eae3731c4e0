#!/bin/sh
# Makes a fresh minimal Debian, of the release that this machine runs, to install packages into.
#
#   tests/packages/root.sh                        makes $PULLET_BUILD/packages/root.tar if it is not there: once, half a minute
#   tests/packages/root.sh DIR [PACKAGE|DEB]...   unpacks it into DIR, a new directory, and installs these in it
#
# Nothing is mounted when it ends, and nothing was started. Needs root, mmdebstrap, and the network. A chroot into DIR needs a
# /proc for most things: unshare --mount --pid --fork --kill-child --root=DIR --mount-proc COMMAND.
set -eu
packages=$(readlink -m "${PULLET_BUILD:-$(dirname "$0")/../../build}/packages")
tar=$packages/root.tar
mkdir -p "$packages"
exec 9>"$packages/root.lock"
flock 9
if [ ! -e "$tar" ]; then
	# from where this machine gets its own packages; the lists stay in it, so that nothing needs an apt-get update
	(
		# shellcheck disable=SC1091 # of the machine
		. /etc/os-release
		# shellcheck disable=SC2016 # apt-get reads these, not the shell
		apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
			sed -n "s/^$ID //Ip" | grep -E " $VERSION_CODENAME(-security|-updates)? " | sort -u >"$packages/sources.list" || true
		mmdebstrap --quiet --variant=minbase --skip=cleanup/apt/lists --dpkgopt=force-unsafe-io "$VERSION_CODENAME" "$packages/new.tar" \
			"$packages/sources.list"
		rm "$packages/sources.list"
	)
	mv "$packages/new.tar" "$tar"
fi
exec 9>&-
[ $# -gt 0 ] || exit 0
dir=$1
shift
mkdir "$dir"
tar -C "$dir" -xf "$tar"
cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
[ $# -gt 0 ] || exit 0
mkdir "$dir/root/debs"
for package; do
	shift
	case $package in
	*.deb)
		cp "$package" "$dir/root/debs/"
		package=/root/debs/${package##*/}
		;;
	esac
	set -- "$@" "$package"
done
unshare --mount --pid --fork --kill-child --root="$dir" --mount-proc env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -q --no-install-recommends "$@"
rm -r "$dir/root/debs"

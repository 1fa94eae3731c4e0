#!/bin/sh
# Torn-read torture: readers against a writer that swaps 100,000 times on tmpfs, on ext4, on overlayfs (upper layer on that ext4), on
# XFS and on Btrfs. All file systems are made in a mount namespace of their own and are gone with it. Those of a disk lie in loop-mounted
# images in memory: it is the file system that is tested, with its journal and the agent's fsync of each version, not a disk. Needs root;
# what cannot be mounted counts as failed, but Btrfs without mkfs.btrfs (the package btrfs-progs) as skipped. Ends with
# "N passed, N failed, N skipped".
#
# Usage: torture.sh PROGRAM [SWAPS]     (PROGRAM: stress_snapshot, built)
set -u
program=$(realpath "$1") || exit 1
swaps=${2:-100000}
if [ -z "${TORTURE_DIR:-}" ]; then
	TORTURE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/pullet-torture.XXXXXX") || exit 1
	export TORTURE_DIR
	trap 'rmdir "$TORTURE_DIR"' EXIT
	trap 'exit 1' HUP INT TERM
	if ! unshare -m true; then
		echo "mounting is not permitted here"
		echo "0 passed, 5 failed"
		exit 1
	fi
	unshare -m sh "$0" "$@"
	exit
fi

passed=0
failed=0
skipped=0
torture() { # TYPE DIRECTORY: of this type, as mounted there
	if [ "$(stat -f -c %T "$2" 2>&1)" != "$1" ]; then
		echo "FAIL $2: could not be mounted here"
		failed=$((failed + 1))
	elif "$program" "$swaps" "$2" >out 2>&1; then
		sed -n 's/^ok - /ok   /p' out
		passed=$((passed + 1))
	else
		echo "FAIL $2"
		cat out
		failed=$((failed + 1))
	fi
}
trap 'cd / && umount -R "$TORTURE_DIR"' EXIT
trap 'exit 1' HUP INT TERM
if ! mount -t tmpfs -o size=1g,mode=700 torture "$TORTURE_DIR" || ! cd "$TORTURE_DIR"; then
	echo "0 passed, 5 failed"
	trap - EXIT
	exit 1
fi
mkdir tmpfs ext4 lower overlay xfs btrfs
torture tmpfs tmpfs
truncate -s 256M ext4.img && mkfs.ext4 -q ext4.img && mount -o loop ext4.img ext4
torture ext2/ext3 ext4 # the name that stat has for all three
mkdir ext4/upper ext4/work && mount -t overlay -o lowerdir=lower,upperdir=ext4/upper,workdir=ext4/work torture overlay
torture overlayfs overlay
truncate -s 300M xfs.img && mkfs.xfs -q xfs.img && mount -o loop xfs.img xfs
torture xfs xfs
if command -v mkfs.btrfs >/dev/null; then
	truncate -s 256M btrfs.img && mkfs.btrfs -q btrfs.img && mount -o loop btrfs.img btrfs
	torture btrfs btrfs
else
	echo "ok - btrfs # SKIP it needs mkfs.btrfs: the package btrfs-progs"
	skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

#!/bin/sh
# Runs a test program with a mutant where it can harm nothing: no process, network or file that it changes is anybody else's, and whatever it
# starts ends with it. What it writes lies over the machine's files for as long as it runs, below the folder, which is on a disk.
# Usage: confine.sh FOLDER PROGRAM [ARGUMENT...] (as root)
mkdir -p "$1" && scratch=$(mktemp -d "$1/XXXXXX") && mkdir "$scratch/upper" "$scratch/work" "$scratch/root" || exit 125
trap 'rm -rf "$scratch"' EXIT
program=$(realpath "$2")
shift 2
# shellcheck disable=SC2016 # the inner shell expands these
unshare --mount --net --ipc --pid --fork --kill-child sh -c '
	mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" overlay "$1/root" && cd "$1/root" || exit 125
	mount -t proc proc proc && mount --rbind /dev dev && mount -t tmpfs tmpfs dev/shm && mount -t tmpfs tmpfs run && ip link set lo up || exit 125
	cp "$2" tmp/mutant || exit 125
	shift 2
	chroot . sh -c "cd \"\$1\" && shift && /tmp/mutant \"\$@\"; exit \$?" sh "$@"
	exit $?' sh "$(realpath "$scratch")" "$program" "$PWD" "$@" &
child=$!
trap 'kill -9 "$child"; wait "$child"; exit 124' TERM
wait "$child"

#!/bin/sh
# `make demo` and `make check` on a minimal Debian of the release that this machine runs, fresh, with nothing but git and make added.
#
# Usage: tests/clean_root.sh [--quick] [SHAPE]     --quick: of the tests, those that would notice first that something is missing
#
#   chroot     a chroot with /proc: no terminals, nothing in memory (this one, if none is named)
#   container  a root of its own, with the capabilities that container engines leave to root
#   user       the same with all capabilities, and an ordinary user who may use sudo
#   bare       a chroot without /dev/shm, on a kernel without IPv6
#
# What a shape lacks is skipped in it, by name and counted. Ends with "N passed, N failed, N skipped": the demo is one case, which must
# leave no process and no file behind, too. Needs root, the network, mmdebstrap (installed if it is not here), and python3 for bare.
# What it mounts is seen by nobody else, and gone when it ends; the root is removed.
set -eu
quick=
[ "${1:-}" != --quick ] || { quick=1 && shift; }
shape=${1:-chroot}
case $shape in
chroot | container | user | bare) ;;
*)
	echo "clean_root.sh: chroot, container, user or bare, not '$shape'" >&2
	exit 64
	;;
esac
tests=$(readlink -f "$(dirname "$0")")
command -v mmdebstrap >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends mmdebstrap; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/pullet-clean-root.XXXXXX")
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' HUP INT TERM

home=/root
set -- git make
[ "$shape" != user ] || set -- "$@" sudo
"$tests/packages/root.sh" "$root" "$@"
if [ "$shape" = user ]; then
	home=/home/somebody
	chroot "$root" useradd --create-home --shell /bin/bash somebody
	echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/somebody"
fi
[ "$shape" != bare ] || rmdir "$root/dev/shm"
mkdir "$root$home/pullet"
"$tests/../packaging/dist.sh" "$(sed -n 's/^VERSION *:= //p' "$tests/../Makefile")" "$work/source.tar.gz"
tar -C "$root$home/pullet" --strip-components=1 -xf "$work/source.tar.gz"
few=
# of the unit tests, those that need a program or a package of their own; the others, and the simulator, link what the agent links
[ -z "$quick" ] || few="PARTS='quickcheck check-integration' RUN_layers= STRESS= BROKEN= REPLAY= SIM= SIM_TEST= UNIT_run='$(echo crypto/test_minisign crypto/test_digest process/test_process verify/test_programs notify/test_reload schema/test_suite | sed 's|[^ ]*|build/unit/&|g')' INTEGRATION='$(echo suite doctor messages nginx kinds_local conformance | sed 's|[^ ]*|tests/integration/test_&.py|g')'"
# what is done in it
cat >"$root/$home/inside.sh" <<END
cd "\$HOME/pullet" || exit 1
${quick:+export CFLAGS='-O0 -U_FORTIFY_SOURCE' # it was built with all the rest elsewhere}
begin=\$(date +%s)
demo=1
make demo && [ -z "\$(pidof pulletd pullet)" ] && [ -z "\$(find /tmp -name 'pullet-demo*')" ] && demo=0
echo "clean root: make demo ended with \$demo after \$((\$(date +%s) - begin)) s"
begin=\$(date +%s)
make check $few
echo "clean root: make check ended with \$? after \$((\$(date +%s) - begin)) s"
END
[ "$shape" != user ] || chroot "$root" chown -R somebody: "$home"

# the ways into it; each begins with mounts and processes of its own
within() { # SCRIPT COMMAND...: of a script that makes the root ready and enters it
	script=$1
	shift
	unshare --mount --pid --fork --kill-child sh -ec "$script"' exec "$@"' "$root" env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
# shellcheck disable=SC2016 # $0 is the root, in the shell of within
{
	changed='mount -t proc proc "$0/proc"; set -- chroot "$0" "$@";'
	moved='mount --bind "$0" "$0"; cd "$0"; mount -t proc proc proc; mount -t tmpfs -o mode=1777 shm dev/shm
		mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
		mkdir old; pivot_root . old; umount -l old; rmdir old; cd /;'
}
kept=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap
enter() {
	case $shape in
	chroot) within "$changed" sh "$home/inside.sh" ;;
	bare) within "$changed set -- /usr/bin/python3 '$tests/no_ipv6.py' \"\$@\";" sh "$home/inside.sh" ;;
	container) within "$moved" setpriv --bounding-set="$kept" --inh-caps=-all sh "$home/inside.sh" ;;
	user) within "$moved" su - somebody -c "sh $home/inside.sh" ;;
	esac
}
log=$work/log
{ enter 2>&1 || echo "clean root: it ended with $?"; } | tee "$log"
awk '/^clean root: make demo ended with 0/ { demo = 1 }
	/^check: [0-9]+ passed, [0-9]+ failed/ { passed = $2; failed = $4; skipped = $6; seen = 1 }
	/^clean root: make check ended with 0/ { good = 1 }
	END {
		failed += !demo + !seen + (seen && !good && !failed)
		printf "%d passed, %d failed, %d skipped\n", passed + demo, failed, skipped
		exit failed > 0
	}' "$log"

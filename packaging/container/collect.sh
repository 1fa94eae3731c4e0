#!/bin/sh
# Makes DIR the root of an image that holds these programs, what they need at run time, and nothing else. For Debian.
#
#   packaging/container/collect.sh DIR PROGRAM...
#
# With SOURCE_DATE_EPOCH the same programs on the same system make the same bytes. For scanners, dpkg's record of each package
# that something was taken from lies in var/lib/dpkg/status.d, its licence in usr/share/doc.
set -eu
dir=$1
shift
certificates=/etc/ssl/certs/ca-certificates.crt
mkdir -p "$dir/etc/pullet" "$dir/usr/share/doc" "$dir/var/lib/dpkg/status.d" "$dir/var/lib/pullet" "$dir/run/pullet" "$dir/tmp"
for name in bin sbin lib lib64; do # as on Debian, so that paths of both kinds are right
	mkdir -p "$dir/usr/$name"
	ln -s "usr/$name" "$dir/$name"
done

put() { # FILE: at its place, a symlink as the file it leads to
	install -D -m "$(stat -L -c %a "$1")" "$1" "$dir$1"
	real=$(realpath "$1")
	package=$(dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}" 2>/dev/null) || return 0
	record "${package%%: *}"
}

record() { # PACKAGE
	package=$1
	name=${package%%:*}
	[ ! -e "$dir/var/lib/dpkg/status.d/$name" ] || return 0
	dpkg-query -s "$package" >"$dir/var/lib/dpkg/status.d/$name"
	mkdir -p "$dir/usr/share/doc/$name"
	cp -L "/usr/share/doc/$name/copyright" "$dir/usr/share/doc/$name/"
}

put "$certificates" # which is made by its package, not in it
record ca-certificates
for program; do
	put "$program"
	# "libx.so.1 => /lib/.../libx.so.1 (0x...)", and the loader's own path alone
	for library in $(ldd "$program" | sed -n 's/^.*=> \(\/[^ ]*\) .*$/\1/p; s/^\t\(\/[^ ]*\) .*$/\1/p'); do
		put "$library"
	done
done
echo 'hosts: files dns' >"$dir/etc/nsswitch.conf"
printf '%s\n' 'root:x:0:0:root:/:/nonexistent' 'pullet:x:65532:65532:pullet:/:/nonexistent' >"$dir/etc/passwd"
printf '%s\n' 'root:x:0:' 'pullet:x:65532:' >"$dir/etc/group"
chmod 1777 "$dir/tmp"
chown 65532:0 "$dir/run/pullet" "$dir/var/lib/pullet"
chmod 0770 "$dir/run/pullet" "$dir/var/lib/pullet"
find "$dir" -depth -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +

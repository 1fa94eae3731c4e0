#!/bin/sh
# Makes the Go module as an archive, VERSION (0.0.0) in DIR (build/packages/languages/go): pullet-go-VERSION.tar.gz,
# which unpacks to pullet-go-VERSION/ with what `go build` needs, a README and the license.
#
#   lib/go/package.sh [DIR] [VERSION]
set -eu
cd "$(dirname "$0")"
to=${1:-../../build/packages/languages/go} version=${2:-0.0.0}
mkdir -p "$to"
name=pullet-go-$version
tmp=$(mktemp -d "$to/.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/$name"
for f in *.go go.mod README.md; do
	case $f in
	*_test.go) ;; # they need the source tree
	*) cp "$f" "$tmp/$name/" ;;
	esac
done
cp ../../LICENSE "$tmp/$name/"
# the same bytes every time
tar -C "$tmp" --sort=name --mtime=@"${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf "$tmp/tar" "$name"
gzip -9n <"$tmp/tar" >"$tmp/gz"
mv "$tmp/gz" "$to/$name.tar.gz"
echo "$to/$name.tar.gz"

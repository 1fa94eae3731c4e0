#!/bin/sh
# Makes the source of a release, the same bytes every time: what git knows of this tree or would add to it, as it stands now; where there
# is no git, all but what building makes.
#
#   packaging/dist.sh VERSION FILE.tar.gz    writes it, below pullet-VERSION/
#   packaging/dist.sh --time                 prints the release's time, for SOURCE_DATE_EPOCH: that of the changelog
set -eu
tree=$(readlink -f "$(dirname "$0")/..")
when=$(date -d "$(sed -n 's/^ -- .*>  //p' "$tree/packaging/deb/changelog" | head -n 1)" +%s)
if [ "$1" = --time ]; then
	echo "$when"
	exit
fi
version=$1
file=$(readlink -f "$2")
work=$(mktemp -d) # not beside the file, which may be in the tree
trap 'rm -rf "$work"' EXIT
cd "$tree"
# each place that names the version: a file, and how sed finds it there; a file without that: each pullet-VERSION or pullet:VERSION in it
places='
packaging/deb/changelog 1s/.*(\(.*\)-.*/\1/p
packaging/rpm/pullet.spec s/^Version: *//p
packaging/rpm/pullet.spec /^%changelog/{n;s/.* \(.*\)-.*/\1/p}
packaging/openapi.yaml s/^  version: //p
packaging/container/Containerfile s/^ARG VERSION=//p
packaging/container/Containerfile
packaging/container/README.md
packaging/README.md
packaging/kubernetes/once.yaml
packaging/kubernetes/sidecar.yaml
packaging/kubernetes/relay.yaml
packaging/kubernetes/base/deployment.yaml
lib/python/pyproject.toml s/^version = "\(.*\)"/\1/p
lib/node/package.json s/^  "version": "\(.*\)",/\1/p
lib/java/README.md s/.*<version>\(.*\)<.version>.*/\1/p
lib/java/README.md
'
printf '%s' "$places" | while read -r place script; do
	[ -n "$place" ] || continue
	told=$(if [ -n "$script" ]; then sed -n "$script" "$place"; else grep -oE 'pullet[:-][0-9]+(\.[0-9]+)+' "$place" | sed 's/.*[:-]//'; fi | sort -u)
	if [ "$told" != "$version" ]; then
		echo "the Makefile says version $version, $place says ${told:-none}: make them the same (CONTRIBUTING.md, A release)" >&2
		exit 1
	fi
done
if [ -e .git ] && git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard --deduplicate
else
	find . \( -name .git -o -path './build*' -o -name __pycache__ -o -name '*.tar.gz' \) -prune -o ! -type d -printf '%P\0'
fi | LC_ALL=C sort -z >"$work/names"
# a file that was deleted, but not from git's index yet, is left out
tar --null --verbatim-files-from -T "$work/names" --ignore-failed-read --warning=no-failed-read --owner=0 --group=0 \
	--numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$when" --transform="s|^|pullet-$version/|S" -cf "$work/tar"
gzip -9 -n <"$work/tar" >"$file"

#!/bin/sh
# Builds the addon and runs test.js, from the repository's root. Ends with "N passed, N failed".
build=$(cd "${PULLET_BUILD:-build}" && pwd) || exit 1
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
node=$(command -v node) || {
	echo "no node here"
	echo "0 passed, 1 failed"
	exit 1
}
headers=${NODE_INCLUDE:-$(dirname "$(dirname "$(readlink -f "$node")")")/include/node}
# shellcheck disable=SC2086 # flags
if ! ${CC:-gcc} -std=c11 -Wall -Wextra -Werror -shared -fPIC -O2 $NODE_CFLAGS -I"$headers" -I"$here/.." \
	-o "$tmp/pullet.node" "$here/addon.c" -L"$build" -lpullet; then
	echo "0 passed, 1 failed"
	exit 1
fi
LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PULLET_NODE_ADDON="$tmp/pullet.node" \
	node --expose-gc "$here/test.js"

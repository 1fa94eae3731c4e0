# Sourced by the scripts beside it, each of which makes the package of a language in a directory, and installs and tries it in an empty place
# without a network. "N passed, N failed" ends each.
# shellcheck shell=sh
[ $# = 1 ] || {
	echo "usage: $0 DIR" >&2
	exit 64
}
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${PULLET_BUILD:-$root/build}
version=$(sed -n 's/^VERSION *:= *//p' "$root/Makefile")
SOURCE_DATE_EPOCH=$(sh "$root/packaging/dist.sh" --time)
export SOURCE_DATE_EPOCH
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
export HOME="$tmp/home"
mkdir -p "$out" "$HOME"
library="decode explain path_watch reader snapshot writer"
printf 'db: {host: db.example, port: 5432}\n' >"$tmp/web.yaml"
"$build/pullet" build "$tmp/web.yaml" -o "$tmp/web.snap" || exit 1
passed=0
failed=0
skipped=0
# Without a network where that is allowed: a package that fetches something fails.
alone() {
	if unshare -rn true 2>/dev/null; then unshare -rn "$@"; else env http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 "$@"; fi
}
try() { # NAME COMMAND...
	name=$1
	shift
	if said=$("$@" 2>&1); then
		passed=$((passed + 1))
		echo "  ok   $name"
	else
		failed=$((failed + 1))
		echo "  FAIL $name"
		printf '%s\n' "$said" | tail -n 40
	fi
}
skip() { # NAME REASON
	skipped=$((skipped + 1))
	echo "ok - $1 # SKIP $2"
}
end() {
	sum="$passed passed, $failed failed"
	[ "$skipped" = 0 ] || sum="$sum, $skipped skipped"
	echo "$sum"
	[ "$failed" = 0 ]
}

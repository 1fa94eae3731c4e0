#!/bin/sh
# Format, vet and tests of the Go package; BENCH=1 measures as well. Ends with "N passed, N failed".
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
export HOME="$tmp" GOCACHE="$tmp/cache" GOPATH="$tmp/path" GOTMPDIR="$tmp" GOENV=off CGO_ENABLED=0
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOWORK=off
passed=0
failed=0
try() { # NAME COMMAND...
	name=$1
	shift
	if out=$("$@" 2>&1); then
		passed=$((passed + 1))
		echo "  ok   $name"
	else
		failed=$((failed + 1))
		echo "  FAIL $name"
		printf '%s\n' "$out" | head -60
	fi
}
formatted() {
	gofmt -d . >"$tmp/diff" 2>&1 && ! [ -s "$tmp/diff" ] && return
	cat "$tmp/diff"
	return 1
}
try gofmt formatted
try vet go vet ./...
go test -v -count=1 -timeout 300s . >"$tmp/out" 2>&1
status=$?
n=$(grep -cE '^ *--- PASS' "$tmp/out")
passed=$((passed + n))
n=$(grep -cE '^ *--- (FAIL|SKIP)' "$tmp/out") # a test that did not run proves nothing
failed=$((failed + n))
[ "$status" = 0 ] || cat "$tmp/out"
[ "$status" = 0 ] || [ "$n" != 0 ] || failed=$((failed + 1))
grep -E '^ *--- SKIP' "$tmp/out"
[ -z "$BENCH" ] || go test -run '^$' -bench . .
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

#!/bin/sh
# Format, vet, staticcheck, tests and package of the Go module; BENCH=1 measures as well. The images of the
# cases are made with $PULLET_BUILD/pullet where $PULLET_CASES names none. Ends with "N passed, N failed".
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
export HOME="$tmp" GOCACHE="$tmp/cache" GOPATH="$tmp/path" GOTMPDIR="$tmp" GOENV=off CGO_ENABLED=0
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOWORK=off
passed=0
failed=0
skipped=0
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
# shellcheck disable=SC2016 # Markdown's backticks
# The archive, unpacked as its README says, gives a value in a module that knows nothing else; then vendored.
package() {
	mkdir -p "$tmp/app/third_party" && ./package.sh "$tmp/package" 1.2.3 >"$tmp/name" && cp "$(cat "$tmp/name")" "$tmp/app/" &&
		./package.sh "$tmp/again" 1.2.3 >/dev/null && cmp "$tmp/package/pullet-go-1.2.3.tar.gz" "$tmp/again/pullet-go-1.2.3.tar.gz" &&
		sed -n '/^```sh/,/^```/{/^```/d;p}' README.md >"$tmp/app/unpack.sh" &&
		image=$PWD/../../tests/golden/one.snap && cd "$tmp/app" || return
	cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"pullet"
)

func main() {
	c, err := pullet.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(c.String("only", "a fallback"))
}
END
	go mod init app && sh -e unpack.sh && go vet ./... pullet && [ "$(go run . "$image")" = value ] &&
		go mod vendor && rm -rf third_party && [ "$(go run -mod=vendor . "$image")" = value ]
}
try gofmt formatted
try vet go vet ./...
if command -v go-staticcheck >/dev/null; then
	try staticcheck go-staticcheck ./...
else
	skipped=1
	echo "ok - staticcheck # SKIP go-staticcheck is not installed"
fi
if [ -z "$PULLET_CASES" ]; then
	export PULLET_CASES="$tmp/cases" PULLET_BUILD="${PULLET_BUILD:-$PWD/../../build}"
	try cases /usr/bin/python3 ../../tests/golden/cases.py "$PULLET_CASES"
fi
go test -v -count=1 -timeout 300s . >"$tmp/out" 2>&1
status=$?
n=$(grep -cE '^ *--- PASS' "$tmp/out")
passed=$((passed + n))
n=$(grep -cE '^ *--- (FAIL|SKIP)' "$tmp/out") # a test that did not run proves nothing
failed=$((failed + n))
[ "$status" = 0 ] || cat "$tmp/out"
[ "$status" = 0 ] || [ "$n" != 0 ] || failed=$((failed + 1))
grep -E '^ *--- SKIP' "$tmp/out"
try package package
[ -z "$BENCH" ] || go test -run '^$' -bench . .
sum="$passed passed, $failed failed"
[ "$skipped" = 0 ] || sum="$sum, $skipped skipped"
echo "$sum"
[ "$failed" = 0 ]

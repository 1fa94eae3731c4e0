#!/bin/sh
# Compiles the Java library, its tests and example with all warnings as errors, and tests; BENCH=1
# measures as well. Ends with "N passed, N failed".
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
compile() { # INTO FILE...
	into=$1
	shift
	javac -J-XX:-UsePerfData --release 17 -encoding UTF-8 -Xlint:all -Xdoclint:all/protected -Werror \
		-cp "$tmp/main" -d "$into" "$@"
}
mkdir "$tmp/main" "$tmp/files"
if ! compile "$tmp/main" src/pullet/*.java || ! compile "$tmp/test" test/pullet/*.java ||
	! compile "$tmp/example" example/*.java; then
	echo "0 passed, 1 failed"
	exit 1
fi
java -ea -XX:-UsePerfData -Xlog:disable -Xlog:all=warning:stderr -Djava.io.tmpdir="$tmp/files" \
	-cp "$tmp/main:$tmp/test" pullet.ConfigTest ../../tests/golden

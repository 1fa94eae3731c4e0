#!/bin/sh
# Compiles the Java library, its tests and example with all warnings as errors, tests, and tries its package;
# BENCH=1 measures as well. The images of the cases are made with $PULLET_BUILD/pullet where $PULLET_CASES names
# none. Ends with "N passed, N failed".
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
classes=$tmp/main
compile() { # INTO FILE...
	into=$1
	shift
	javac -J-XX:-UsePerfData --release 17 -encoding UTF-8 -Xlint:all -Xdoclint:all/protected -Werror \
		-cp "$classes" -d "$into" "$@"
}
mkdir "$tmp/main" "$tmp/netty" "$tmp/files"
if ! compile "$tmp/main" src/pullet/*.java || ! compile "$tmp/test" test/pullet/*.java ||
	! compile "$tmp/example" example/*.java; then
	echo "0 passed, 1 failed"
	exit 1
fi
# The package, of the same bytes each time, gives a value: to a module that names it, on the class path, and to a
# record in a module that opens its package.
package() {
	./package.sh "$tmp/package" 1.2.3 >"$tmp/name" && ./package.sh "$tmp/again" 1.2.3 >/dev/null &&
		diff -r "$tmp/package" "$tmp/again" || return
	jar=$(cat "$tmp/name") image=$PWD/../../tests/golden/one.snap run="java -XX:-UsePerfData"
	/usr/bin/python3 - "${jar%.jar}.pom" <<-'END' || return
		import sys, xml.etree.ElementTree as tree
		found = {e.tag.split('}')[1]: e.text for e in tree.parse(sys.argv[1]).getroot()}
		sys.exit(not all(found[k] == v for k, v in {'groupId': 'pullet', 'artifactId': 'pullet', 'version': '1.2.3'}.items()))
	END
	unzip -l "${jar%.jar}-sources.jar" | grep -q ' pullet/Config.java$' && unzip -l "${jar%.jar}-javadoc.jar" | grep -q 'pullet/Config.html$' || return
	mkdir -p "$tmp/app/app" && cd "$tmp/app" || return
	cat >app/Main.java <<-'END'
		package app;
		import pullet.Config;
		public final class Main {
		    record Settings(String only) {}
		    public static void main(String[] args) throws Exception {
		        try (Config config = Config.open(args[0])) {
		            System.out.println(config.getString("only", "a fallback") + " " + config.as(Settings.class).only());
		        }
		    }
		}
	END
	echo 'module app { requires pullet; opens app to pullet; }' >module-info.java
	javac -J-XX:-UsePerfData -p "$jar" -d module module-info.java app/Main.java && [ "$($run -p "$jar:module" -m app/app.Main "$image")" = "value value" ] &&
		javac -J-XX:-UsePerfData -cp "$jar" -d classes app/Main.java && [ "$($run -cp "$jar:classes" app.Main "$image")" = "value value" ]
}
if out=$( (package) 2>&1); then
	passed=1 failed=0
else
	passed=0 failed=1
	printf '  FAIL package\n%s\n' "$out" | head -60
fi
status=0 skipped=0
count() { # adds what a run of tests, which ended with the status $1, says in its last line
	sed '$d' "$tmp/out"
	sum=$(tail -n 1 "$tmp/out")
	case $sum in
	*' passed, '*' failed') ;;
	*) echo "$sum" && sum="0 passed, 1 failed" status=1 ;;
	esac
	[ "$1" = 0 ] || status=$1
	passed=$((passed + ${sum%% *})) sum=${sum#*, }
	failed=$((failed + ${sum%% *}))
}
if [ -z "$PULLET_CASES" ]; then
	export PULLET_CASES="$tmp/cases" PULLET_BUILD="${PULLET_BUILD:-$PWD/../../build}"
	/usr/bin/python3 ../../tests/golden/cases.py "$PULLET_CASES" || {
		echo "$passed passed, $((failed + 1)) failed"
		exit 1
	}
fi
java -ea -XX:-UsePerfData -Xlog:disable -Xlog:all=warning:stderr -Djava.io.tmpdir="$tmp/files" \
	-cp "$tmp/main:$tmp/test" pullet.ConfigTest ../../tests/golden >"$tmp/out"
count $?
# the example for Netty, in Netty's event loop
jars=/usr/share/java/netty
if [ -e "$jars-transport.jar" ]; then
	classes=$tmp/main:$tmp/test:$tmp/netty:$jars-common.jar:$jars-buffer.jar:$jars-resolver.jar:$jars-transport.jar:$jars-codec.jar
	{ compile "$tmp/netty" example/netty/*.java test/netty/*.java && java -ea -XX:-UsePerfData -Djava.io.tmpdir="$tmp/files" -cp "$classes" pullet.NettyTest; } >"$tmp/out" 2>&1
	count $?
else
	skipped=1
	echo "ok - netty # SKIP libnetty-java is not installed"
fi
sum="$passed passed, $failed failed"
[ "$skipped" = 0 ] || sum="$sum, $skipped skipped"
echo "$sum"
[ "$status" = 0 ] && [ "$failed" = 0 ]

#!/bin/sh
# Format, shell scripts, static analysis, forbidden functions. Usage: tests/lint.sh FILE.c FILE.h ...
# Ends with "N passed, N failed".
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
none() { # a grep that must find nothing
	! grep -nE "$@"
}
try format clang-format --dry-run -Werror "$@"
try forbidden none '\<(strcpy|strcat|sprintf|strncpy|strtok|atoi|gets|alloca|system|popen)\(' "$@"
try shell shellcheck packaging/*.sh packaging/container/*.sh packaging/completions/pullet.bash packaging/deb/pullet.postrm packaging/deb/tests/agent packaging/deb/tests/completions packaging/deb/tests/readers tests/*.sh tests/packages/*.sh tests/stress/*.sh tests/model/*.sh tests/mutants/*.sh lib/*/test.sh .ci/run
try cppcheck cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem -D_GNU_SOURCE -DPULLET_VERSION='""' -I agent -I . lib agent
try python /usr/bin/python3 -m py_compile tests/run tests/*.py tests/layers/layers.py tests/sim/*.py tests/integration/*.py tests/integration/servers/*.py tests/attack/*.py tests/packages/*.py tests/golden/make.py tests/golden/cases.py tests/model/*.py tests/mutants/*.py tests/bench/*.py tests/bench/languages/*.py tests/soak/*.py tests/soak/readers/*.py tests/stress/*.py lib/python/*.py lib/python/pullet/*.py
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

#!/bin/sh
# The stress harness must report each of its seeded bugs. Usage: seeded.sh PROGRAM... (each built with another STRESS_BREAK)
passed=0
failed=0
for program; do
	if "$program" >/dev/null 2>&1; then
		echo "seeded bug not found: $program"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

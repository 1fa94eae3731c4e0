#!/bin/sh
# Every man page renders without a warning. Usage: tests/man.sh PAGE...
passed=0
failed=0
for page; do
	if mandoc -T lint -W warning "$page"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

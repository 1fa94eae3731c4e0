#!/bin/sh
# Coverage of lib/ by its unit tests: all lines, and 95 % of the branches of each module. Run from the root of the repository.
#
# Builds lib/*.c without optimization in a directory of its own, and each tests/unit/lib/test_X.c that has a lib/X.c; prints a table
# and each line and branch that was not taken, with its reason from tests/coverage.txt. Fails when a module (with its header) has
# too little, when its test fails or is missing, when something not taken has no reason, and when a reason is stale. Asserts count
# as branches: tests take them by expect_assert_failure().
#
# Ends with "N passed, N failed", counting modules. What no module lacks, the total can not lack.
set -eu
rounds=3 # as many as needed: a randomized test may take a rare branch in the next one only

command -v gcovr >/dev/null || apt-get install -y --no-install-recommends gcovr
root=$(pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
: >"$dir/broken" # rows: MODULE what is wrong

compile() { # SOURCE OBJECT; names relative to the build directory let gcov find what belongs together
	(cd "$dir" && ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O0 -g --coverage -fprofile-update=atomic -pthread -iquote "$root/agent" -iquote "$root" \
		-c -o "$2" "$root/$1")
}

build() {
	for source in lib/*.c; do
		module=$(basename "$source" .c)
		modules="${modules:-} $module"
		if compile "$source" "$module.o"; then
			objects="${objects:-} $dir/$module.o"
		else
			echo "$module lib/$module.c does not build" >>"$dir/broken"
		fi
		if [ -e "tests/unit/lib/test_$module.c" ]; then
			tests="${tests:-} $module"
		else
			echo "$module tests/unit/lib/test_$module.c is missing" >>"$dir/broken"
		fi
	done
	for module in ${tests:-}; do
		# shellcheck disable=SC2086 # many objects
		compile "tests/unit/lib/test_$module.c" "test_$module.o" &&
			${CC:-gcc} --coverage -pthread -o "$dir/test_$module" "$dir/test_$module.o" ${objects:-} -lcmocka ||
			echo "$module tests/unit/lib/test_$module.c does not build" >>"$dir/broken"
	done
}

run() {
	for module in ${tests:-}; do
		[ -x "$dir/test_$module" ] || continue
		timeout 300 "$dir/test_$module" >"$dir/output" 2>&1 && continue
		echo "$module tests/unit/lib/test_$module.c fails" >>"$dir/broken"
		tail -n 30 "$dir/output"
	done
}

check() { # prints the report; false when a module fails
	gcovr --root "$root" --filter "$root/lib/" --no-markers --xml "$dir/coverage.xml" --xml-pretty "$dir" || return 1
	awk -v modules="${modules:-}" -v broken="$dir/broken" '
	function module_of(file) { sub(/.*\//, "", file); sub(/\..*/, "", file); return file }
	function attribute(name, v) {
		if (!match($0, name "=\"[^\"]*\""))
			return ""
		v = substr($0, RSTART, RLENGTH - 1)
		return substr(v, length(name) + 3)
	}
	function percent(part, all) { return all ? 100 * part / all : 100 }
	function bad(module, what) {
		if (!(module in known))
			names[++count] = module
		known[module] = failed[module] = 1
		problems = problems "  " module ": " what "\n"
	}
	function row(text, file, fragment, reason, at, line, number, hits) {
		file = text
		sub(/ .*/, "", file)
		reason = text
		sub(/.* \| /, "", reason)
		fragment = substr(text, length(file) + 2, length(text) - length(file) - length(reason) - 4)
		while ((getline line < file) > 0) {
			number++
			if (length(fragment) && index(line, fragment)) {
				hits++
				at = number
			}
		}
		close(file)
		if (hits == 1)
			reasons[file ":" at] = reason
		else
			bad(module_of(file), "coverage.txt: stale or unclear, in " hits + 0 " lines: " text)
	}
	function untaken(what, place) {
		list = list sprintf("  %-22s %-14s %s\n", place, what, place in reasons ? reasons[place] : "NO REASON")
		if (!(place in reasons))
			failed[module] = 1
		used[place] = 1
	}
	BEGIN {
		count = split(modules, names, " ")
		for (i = 1; i <= count; i++)
			known[names[i]] = 1
		while ((getline text < broken) > 0) {
			module = text
			sub(/ .*/, "", module)
			bad(module, substr(text, length(module) + 2))
		}
	}
	FILENAME ~ /\.txt$/ {
		if (NF && $1 !~ /^#/)
			row($0)
		next
	}
	/<class / {
		file = attribute("filename")
		module = module_of(file)
	}
	/<line / {
		place = file ":" attribute("number")
		lines[module]++
		if (attribute("hits") > 0)
			lines_taken[module]++
		else
			untaken("line", place)
	}
	/<line .*branch="true"/ {
		split(attribute("condition-coverage"), part, /[(\/)]/)
		branches[module] += part[3]
		branches_taken[module] += part[2]
		if (part[2] < part[3] && attribute("hits") > 0)
			untaken(part[3] - part[2] " of " part[3] " ways", place)
	}
	END {
		for (place in reasons)
			if (!(place in used))
				bad(module_of(place), "coverage.txt: stale, was taken: " place)
		for (i = 1; i <= count; i++) {
			m = names[i]
			if (!lines[m])
				bad(m, "nothing was measured")
			else if (lines_taken[m] < lines[m] || percent(branches_taken[m], branches[m]) < 95)
				bad(m, "too little is covered")
			lines["total"] += lines[m]
			lines_taken["total"] += lines_taken[m]
			branches["total"] += branches[m]
			branches_taken["total"] += branches_taken[m]
			failures += m in failed
		}
		printf "%-14s %9s %8s %12s %8s\n", "module", "lines", "", "branches", ""
		names[count + 1] = "total"
		for (i = 1; i <= count + 1; i++) {
			m = names[i]
			printf "%-14s %5d/%-4d %6.1f %% %7d/%-4d %6.1f %%%s\n", m, lines_taken[m], lines[m],
				percent(lines_taken[m], lines[m]), branches_taken[m], branches[m],
				percent(branches_taken[m], branches[m]), m in failed ? "  FAIL" : ""
		}
		printf "%s%s", list ? "not taken:\n" : "", list
		printf "%s%s", problems ? "problems:\n" : "", problems
		printf "%d passed, %d failed\n", count - failures, failures
		exit failures > 0
	}' tests/coverage.txt "$dir/coverage.xml" >"$dir/report"
}

build
while run && ! check; do
	rounds=$((rounds - 1))
	if [ "$rounds" = 0 ] || [ -s "$dir/broken" ]; then
		cat "$dir/report"
		exit 1
	fi
	tests=$(awk '$NF == "FAIL" { print $1 }' "$dir/report") # what the others took stays counted
done
cat "$dir/report"

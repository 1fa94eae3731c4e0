#!/bin/sh
# Model check of the core of a config: the table of agent/config/decide.c in a world where anything may happen at any moment
# (core_*.c), and beside the same table in Python (core_same.py). Both must find each bug that is seeded in a copy of decide.c.
# Run from the root of the repository by `make model-core`, which builds the program. Prints TAP.
set -eu

build=${PULLET_BUILD:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
seeded=0

# seed <sed script> <text>: builds the model around a broken copy of the table; the walks must find a flaw.
seed() {
	seeded=$((seeded + 1))
	name=$(printf 'table%02d' "$seeded")
	sed "$1" agent/config/decide.c >"$dir/decide.c"
	if cmp -s "$dir/decide.c" agent/config/decide.c; then
		echo "not ok - core: the script of broken $name changes nothing: $2"
		return
	fi
	# shellcheck disable=SC2046 # many objects
	${CC:-gcc} -std=c11 -O2 -iquote agent -fPIE -pie -o "$dir/$name" "$dir/decide.c" \
		$(printf "$build/tests/model/core_%s.o " events facts main rules seeds walk world)
	status=0
	"$dir/$name" flaw >"$dir/out" || status=$?
	if [ "$status" = 1 ]; then
		echo "ok - core: the walks find broken $name: $2"
		sed -n '/^not ok/{n;p;}' "$dir/out"
	else
		echo "not ok - core: the walks find broken $name: $2"
		sed 's/^/# /' "$dir/out"
	fi
}

{
	"$build/core_model" || true
	seed 's/return s->request == REQUEST_ROLL_BACK;/return false;/' 'the row operator_rolls_back never holds'
	seed 's/return s->request == REQUEST_OVERRIDES;/return false;/' 'the row operator_overrides never holds'
	seed 's/return s->saved == SAVED_WANTED;/return false;/' 'the row saved_is_shown never holds'
	seed 's/return s->current == CURRENT_HARMFUL .*/return false;/' 'the row harmful_is_rolled_back never holds'
	seed 's/return s->latest == LATEST_NEW .*/return false;/' 'the row latest_is_published never holds'
	seed 's/return .*overrides == OVERRIDES_OTHER;/return false;/' 'the row other_overrides never holds'
	seed 's/return .*settings == SETTINGS_OTHER;/return false;/' 'the row other_settings never holds'
	seed 's/return .*drift == DRIFT_HEAL;/return false;/' 'the row changed_by_others never holds'
	seed 's/s->saved == SAVED_WANTED/s->saved != SAVED_NONE/' 'what is held or late is shown'
	seed 's/ && s->older == OLDER_THERE//' 'a rollback to nothing'
	seed 's/ && s->pin == PIN_NONE;/;/' 'the probe beats the pin'
	seed 's/s->latest == LATEST_NEW && //' 'what is current, or not known, is published'
	seed 's/ && decide_gate(s) == GATE_OPEN//' 'the gate is not asked'
	seed '/s->current != CURRENT_NONE && s->overrides/s/s->current.*&& //' 'without a current version, overrides compose it again'
	seed '/s->current != CURRENT_NONE && s->settings/s/s->current.*&& //' 'without a current version, settings compose it again'
	seed '/s->current != CURRENT_NONE && s->place/s/s->current.*NONE && //' 'without a current version, it is healed'
	seed 's/ && s->drift == DRIFT_HEAL//' 'what is to be reported is healed'
	seed 's/if (s->verdict != VERDICT_FREE.*/if (false)/' 'the gate does not ask for the verdict'
	seed '/if (s->verdict/s/ && s->force == FORCE_NONE//' 'force is not asked for a verdict'
	seed 's/if (s->pin == PIN_SET)/if (false)/' 'the gate does not ask for the pin'
	seed 's/if (s->rollout == .*/if (false)/' 'the gate does not ask for the rollout'
	seed '/if (s->rollout/s/ && s->current != CURRENT_NONE//' 'a host without a version waits for its rollout'
	seed 's/return decide_gate(s) == GATE_OPEN;/return true;/' 'the gate is not asked again'
	seed 's/return s->pin == PIN_NONE;/return true;/' 'the gate of the probe is not asked again'
	seed 's/s->mode == MODE_ACTIVE && //' 'a step begins while it retires'
	seed 's/ && !(s->resting & 1u << row)//' 'nothing rests'
	seed 's/row = ROW_NONE + 1; \(.*\)row < ROWS; row++/row = ROWS; \1--row;/' 'the last row that holds begins'
	seed '/^	if (s->pin == PIN_SET || /s/OUTCOME_HELD/OUTCOME_FAILING/;/s->pin == PIN_SET || /{n;s/HELD/FAILING/;}' 'what is held is told as a failure'
	/usr/bin/python3 tests/model/core_same.py "$build/core_model" "$dir"/table?? || true
} | awk '
	/^(not )?ok - / { sub(/ok - /, "ok " ++n " - ") }
	/^not ok/ { bad = 1 }
	{ print }
	END { print "1.." n; exit bad || n != 141 }
'

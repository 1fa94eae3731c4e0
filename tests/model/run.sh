#!/bin/sh
# Model checks of lib/trigger.c: spin searches trigger.pml in full, relacy the C code
# itself in all executions with up to two preemptions.
# Run from the repository root. Prints TAP; not ok if a search finds something, does not end, or
# leaves a seeded bug unseen.
#
# What surprises: the code that relacy runs is a copy in which sed has renamed the atomic types (see
# translate), and the bugs seeded for relacy are sed scripts, too. One that changes nothing is not ok.
set -eu

model=$(pwd)/tests/model
lib=$(pwd)/lib
limit_s=300 # for one search; the largest takes 25 s of a processor of its own
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# say <true or false> <text>: a result; it gets its number at the end.
say() {
	if "$1"; then echo "ok - $2"; else echo "not ok - $2"; fi
}

# Where it went wrong, as comments.
show() {
	tail -n 40 "$1" | sed 's/^/# /'
}

# pan_of <name> <option of spin...>: searches; what pan says is in $dir/<name>/out.
pan_of() {
	mkdir "$dir/$1"
	cd "$dir/$1"
	shift
	spin "$@" -a "$model/trigger.pml" >out 2>&1 &&
		gcc -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -DMEMLIM=3000 -o pan pan.c >out 2>&1 &&
		timeout "$limit_s" ./pan -m10000 >out 2>&1
}

# No error, nothing left out, and no step of the model that is never taken.
spin_is_clean() {
	text=$2
	good=true
	pan_of "$@" || good=false
	states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out)
	grep -q 'errors: 0$' out || good=false
	if grep -Eq 'too small|not completed|out of memory|truncated' out; then good=false; fi
	if grep 'state [0-9]*, "' out | grep -vq -e '"-end-"'; then good=false; fi
	say $good "spin: the full state space has no error, $text ($states states)"
	$good || show out
}

spin_finds() {
	good=false
	pan_of "bug$1" "-DBUG=$1" || true
	if grep -q 'assertion violated\|invalid end state' out; then good=true; fi
	say $good "spin finds seeded bug $1: $2"
	if $good; then sed -n 's/^pan:1: \(.*\) (at depth.*/# \1/p' out; else show out; fi
}

spins() {
	spin_is_clean one -DTRIGGERS=1 -DDUE_MAX=2 -DCALLS=3
	spin_is_clean two -DTRIGGERS=2 -DDUE_MAX=0 -DCALLS=3
	spin_finds 1 'a call does not clear the reservation'
	spin_finds 2 'the end clears the run bit, then reads the reservation, then stores'
	spin_finds 3 'the owner is woken before the trigger is on the queue'
	spin_finds 4 'a fire while queued does not store its moment'
	spin_finds 5 'a suspend during a run is ignored'
	spin_finds 6 'the end does not look whether somebody called'
	spin_finds 7 'a hint overrides'
	spin_finds 8 'a hint does not wake the owner'
	spin_finds 9 'a hint forgets a reservation'
	spin_finds 10 'the own delay of a run wins over an earlier hint'
	spin_finds 11 'a hint wakes a suspended trigger'
}

# C with atomic types to C++ with relacy's.
translate() {
	sed -e 's/_Atomic(\(struct trigger \*\))/rl::atomic<\1>/' \
		-e 's/_Atomic uint64_t/rl::atomic<uint64_t>/' \
		-e 's/struct trigger \*next;/plain<struct trigger *> next;/' "$lib/trigger.h" >trigger.h
	sed "$1" "$lib/trigger.c" >trigger.c
}

# relacy_of <name> <sed script>: searches; what relacy says is in $dir/<name>/out.
relacy_of() {
	mkdir "$dir/$1"
	cd "$dir/$1"
	translate "$2"
	g++ -std=c++11 -O2 -w -DNDEBUG -I. -I"$model" "$model/trigger_relacy.cpp" -o test >out 2>&1 &&
		timeout "$limit_s" ./test >out 2>&1
}

relacy_is_clean() {
	good=true
	relacy_of relacy '' || good=false
	count=$(sed -n 's/^iterations: //p' out)
	[ -n "$count" ] || good=false
	say $good "relacy: no execution with up to 2 preemptions has an error (${count:-?})"
	$good || show out
}

relacy_finds() {
	good=false
	relacy_of "relacy$1" "$3" || true
	if grep -q '^DATA RACE\|^DEADLOCK' out && ! cmp -s trigger.c "$lib/trigger.c"; then good=true; fi
	say $good "relacy finds seeded bug $1: $2"
	if $good; then sed -n '2s/^/# /p' out; else show out; fi
}

relacies() {
	relacy_finds 1 'the push does not release' \
		's/&head, t, memory_order_release/\&head, t, memory_order_relaxed/'
	relacy_finds 2 'QUEUED is cleared before next is read' \
		'/q->taken = t->next;/{N;s/\(.*\)\n\(.*\)/\2\n\1/;}'
	relacy_finds 3 'the swap of the word does not release' \
		's/old, new, memory_order_acq_rel/old, new, memory_order_acquire/'
	relacy_finds 4 'the owner is woken before the trigger is on the queue' \
		's/^\(\t\tt->next = \)head;/&\n\t\tif (!head) q->wake(q->arg);/;/^\tif (!head)$/{N;d;}'
	relacy_finds 5 'the owner takes the queue without acquire' \
		's/NULL, memory_order_acquire/NULL, memory_order_relaxed/'
	relacy_finds 6 'the owner clears QUEUED without release' \
		's/~QUEUED, memory_order_acq_rel/~QUEUED, memory_order_acquire/'
	relacy_finds 7 'the swap of the word does not acquire' \
		's/old, new, memory_order_acq_rel/old, new, memory_order_release/'
	relacy_finds 8 'a hint does not wake the owner' \
		's/^\tif (new & ~old & QUEUED)/\tif (false)/'
	relacy_finds 9 'a hint that changes nothing does not swap the word' \
		's/^\t\tif (new != old)$/\t\tif (new == old)\n\t\t\treturn;/;s/^\t\t\tnew |= QUEUED;/\t\tnew |= QUEUED;/'
	relacy_finds 10 'the swap of a hint takes QUEUED for its own' \
		's/new & ~old & QUEUED/new \& QUEUED/'
	relacy_is_clean
}

# Two at a time.
(spins) >"$dir/spins" &
(relacies) >"$dir/relacies"
wait
awk '
	/^(not )?ok - / { sub(/ok - /, "ok " ++n " - ") }
	/^not ok/ { bad = 1 }
	{ print }
	END { print "1.." n; exit bad || n != 24 }
' "$dir/spins" "$dir/relacies"

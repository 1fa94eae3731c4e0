/*
 * The trigger's word and its hand-over to the owner (lib/trigger.c), for spin to search in full.
 *
 * Each load, each compare-and-swap and each access to `next` is one step, in the order of the C
 * code; sequentially consistent (trigger_relacy.cpp looks at memory order). A weak swap that fails
 * for no reason is left out: it only repeats itself.
 *
 * What surprises: time ends. At DUE_MAX everything that is armed has come due, and delays end there,
 * so that the state space is finite though runs may follow one another for ever. The callers
 * share a number of calls: who makes which, and when, is open.
 *
 * The specification is `wanted`, `want`, `came`, `ordered` and `suspended` below: what the order of
 * all calls says, without a word of flags. Compared with it: when a run begins, which timer the
 * owner has set, and what is left when nobody can take a step any more.
 *
 * spin -DTRIGGERS=n: how many triggers share the queue. spin -DBUG=n: a seeded bug, 1 to 11.
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef TRIGGERS
#define TRIGGERS 1
#endif
#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef DUE_MAX
#define DUE_MAX 2
#endif

#define ARMED 1
#define RUNNING 2
#define RESERVED 4
#define ORDERED 8
#define QUEUED 16
#define DUE_SHIFT 5
#define ALL_BUT(flags) (255 - (flags))

#define NONE 0 /* no trigger: they are numbered from 1 */
#define OFF 255 /* no timer */
#define NO_NEXT 255

#define min(a, b) ((a) < (b) -> (a) : (b))
#define armed_at(at, delay) ((min((at) + (delay), DUE_MAX) << DUE_SHIFT) | ARMED)

byte now;
byte calls_left = CALLS; /* of all callers together */

/* What the C code has. Index 0 is not used. */
byte word[TRIGGERS + 1] = ORDERED;
byte next[TRIGGERS + 1];
byte head;
byte taken;
bool wake;

/* What the owner has. */
byte timer[TRIGGERS + 1] = OFF;
bool in_run[TRIGGERS + 1];
bool asleep = true; /* at the top of its loop */

/* The specification, changed in the very step that decides. */
bool wanted[TRIGGERS + 1]; /* a run is to begin, ... */
byte want[TRIGGERS + 1];   /* ... at this moment */
bool came[TRIGGERS + 1];   /* the moment came during the run: right after it */
bool ordered[TRIGGERS + 1]; /* an order came since the run began */
bool suspended[TRIGGERS + 1] = true; /* that was the last order */

/* Who has a trigger whose QUEUED is set: a caller on its way to the queue, or the queue. */
byte handing[TRIGGERS + 1];
bool member[TRIGGERS + 1];
byte waking; /* callers between the push to the empty queue and its wake */

#if BUG == 1
#define KEPT_BY_ORDER (RUNNING | RESERVED)
#else
#define KEPT_BY_ORDER RUNNING
#endif
#if BUG == 4
#define moment_of_order (old & QUEUED -> old & ALL_BUT(KEPT_BY_ORDER | ORDERED | QUEUED) : moment)
#else
#define moment_of_order moment
#endif

inline specify_order()
{
	wanted[t] = moment != 0;
	want[t] = moment >> DUE_SHIFT;
	came[t] = false;
	ordered[t] = in_run[t];
	suspended[t] = !moment
}

/* At that moment at the latest. */
inline specify_hint()
{
	if
	:: !suspended[t] && !came[t] && (!wanted[t] || want[t] > moment >> DUE_SHIFT) ->
		wanted[t] = true;
		want[t] = moment >> DUE_SHIFT
	:: else
	fi
}

inline swap_order()
{
	do
	:: atomic {
		word[t] == old ->
#if BUG == 5
		if
		:: !moment && (old & RUNNING) -> old = QUEUED
		:: else ->
#endif
		word[t] = (old & KEPT_BY_ORDER) | ORDERED | QUEUED | moment_of_order;
#if BUG == 5
		fi;
#endif
		specify_order();
		handing[t] = handing[t] + !(old & QUEUED);
		old = old & QUEUED;
		moment = 0;
		break
	}
	:: atomic { word[t] != old -> old = word[t] }
	od
}

#define word_is_suspended(word) (((word) & (ARMED | RESERVED | ORDERED)) == ORDERED)
#define is_not_later(word) (((word) & ARMED) && (word) >> DUE_SHIFT <= moment >> DUE_SHIFT)
#define armed_at_latest(word) \
	(is_not_later(word) -> (word) : ((word) & (RUNNING | ORDERED | QUEUED)) | moment)

#if BUG == 7
#define hinted(old) (((old) & RUNNING) | ORDERED | QUEUED | moment)
#else
#if BUG == 9
#define leaves(old) (word_is_suspended(old) || is_not_later(old))
#else
#if BUG == 11
#define leaves(old) (((old) & RESERVED) || is_not_later(old))
#else
#define leaves(old) (((old) & RESERVED) || word_is_suspended(old) || is_not_later(old))
#endif
#endif
#if BUG == 8
#define hinted(old) (leaves(old) -> (old) : armed_at_latest(old))
#else
#define hinted(old) (leaves(old) -> (old) : armed_at_latest(old) | QUEUED)
#endif
#endif

inline swap_hint()
{
	do
	:: atomic {
		word[t] == old ->
		word[t] = hinted(old);
		specify_hint();
		old = QUEUED & (old | ALL_BUT(word[t])); /* set: there is nobody to hand it to */
		handing[t] = handing[t] + !old;
		moment = 0;
		break
	}
	:: atomic { word[t] != old -> old = word[t] }
	od
}

inline push_trigger()
{
	seen = head;
	do
	:: next[t] = seen;
#if BUG == 3
		if
		:: !seen -> wake = true
		:: else
		fi;
#endif
		if
		:: atomic {
			head == seen ->
			assert(!member[t]); /* a trigger is on the queue once */
			head = t;
			member[t] = true;
			handing[t]--;
			waking = waking + (seen == NONE && BUG != 3);
			break
		}
		:: atomic { head != seen -> seen = head }
		fi
	od;
#if BUG != 3
	if
	:: atomic { !seen -> wake = true; waking-- }
	:: else
	fi
#endif
}

active [CALLERS] proctype caller()
{
	byte t, moment, old, seen;
	bool hints;

	do
	:: break
	:: atomic {
		calls_left ->
		calls_left--;
		t = 1;
		if
		:: true
		:: TRIGGERS == 2 -> t = 2
		fi;
		if
		:: moment = armed_at(now, 0)
		:: moment = armed_at(now, 1)
		:: moment = armed_at(now, DUE_MAX) /* later than all else */
		:: moment = 0                      /* suspend */
		fi;
		if
		:: hints = false
		:: moment -> hints = true
		fi;
		old = word[t] /* in one step with `now`: if it gets old, the swap fails */
	};
		if
		:: hints -> swap_hint()
		:: else -> swap_order()
		fi;
		if
		:: !(old & QUEUED) -> push_trigger()
		:: else
		fi;
		atomic { t = 0; old = 0; seen = 0; hints = false } /* fewer states */
	od
}

#if DUE_MAX > 0
active proctype clock()
{
	do
	:: now < DUE_MAX -> now++
	:: else -> break
	od
}
#endif

inline look_at_due()
{
	timer[t] = (word[t] & ARMED -> word[t] >> DUE_SHIFT : OFF)
}

inline refill_taken()
{
	atomic { t = head; head = NONE };
	do
	:: t ->
		after = next[t];
		next[t] = taken;
		atomic { taken = t; t = after; after = NONE }
	:: else -> break
	od
}

inline take_all()
{
	do
	:: true ->
		if
		:: !taken -> refill_taken()
		:: else
		fi;
		t = taken;
		if
		:: !t -> break
		:: else
		fi;
		taken = next[t];
		atomic {
			assert(member[t] && (word[t] & QUEUED));
			word[t] = word[t] & ALL_BUT(QUEUED);
			member[t] = false
		};
		look_at_due()
	od
}

/* The run begins, or is reserved: only if it is wanted, and not before its moment. */
inline specify_begin()
{
	assert(wanted[t]);
	assert(want[t] <= at);
	if
	:: old & RUNNING -> came[t] = true
	:: else ->
		assert(!in_run[t]); /* never beside itself */
		in_run[t] = true;
		wanted[t] = false;
		want[t] = 0;
		ordered[t] = false
	fi
}

inline begin()
{
	old = word[t];
	do
	:: !(old & ARMED) || old >> DUE_SHIFT > at -> break
	:: else ->
		if
		:: atomic {
			word[t] == old ->
			word[t] = (old & QUEUED) | (old & RUNNING -> RUNNING | RESERVED | ORDERED : RUNNING);
			specify_begin();
			break
		}
		:: atomic { word[t] != old -> old = word[t] }
		fi
	od
}

inline specify_end()
{
	in_run[t] = false;
	if
	:: wanted[t] && came[t] -> want[t] = at; came[t] = false
	:: else ->
		if
		:: !ordered[t] && delay != NO_NEXT &&
			(!wanted[t] || want[t] > min(at + delay, DUE_MAX)) ->
			wanted[t] = true;
			want[t] = min(at + delay, DUE_MAX)
		:: else
		fi
	fi;
	ordered[t] = false
}

#if BUG == 6
#define own_next(old) (delay != NO_NEXT)
#else
#define own_next(old) (!((old) & ORDERED) && delay != NO_NEXT)
#endif
#if BUG == 10
#define hint_is_sooner(old) (false)
#else
#define hint_is_sooner(old) \
	(((old) & ARMED) && !((old) & ORDERED) && (old) >> DUE_SHIFT <= min(at + delay, DUE_MAX))
#endif
#define run_is_over(old) ((old) & ALL_BUT(RUNNING | RESERVED))
#define after_end(old) \
	((old) & RESERVED -> run_is_over(old) | armed_at(at, 0) : \
	(own_next(old) && !hint_is_sooner(old) -> ((old) & (ORDERED | QUEUED)) | armed_at(at, delay) : \
	run_is_over(old)))

inline end()
{
#if BUG == 2
	word[t] = word[t] & ALL_BUT(RUNNING);
	old = word[t];
	atomic { word[t] = after_end(old); specify_end() }
#else
	do
	:: atomic {
		word[t] == old ->
		assert(old & RUNNING);
		word[t] = after_end(old);
		specify_end();
		break
	}
	:: atomic { word[t] != old -> old = word[t] }
	od
#endif
}

/* The end of all things: all is called, taken, waited for and run. */
inline nothing_left()
{
	assert(now == DUE_MAX);
	assert(!head && !taken && !wake && !waking);
	t = 1;
	do
	:: t <= TRIGGERS ->
		assert(!wanted[t]); /* a fire that came last led to a run that began after it */
		assert(!(word[t] & ALL_BUT(ORDERED)));
		t++
	:: else -> break
	od
}

#define due(n) (timer[n] <= now)
#define over(n) (in_run[n])

active proctype owner()
{
	byte t, old, at, after, delay;

	do
	:: atomic { wake -> wake = false; asleep = false };
		take_all();
		atomic { t = 0; asleep = true }
	:: atomic {
		due(1) || due(TRIGGERS) ->
		if
		:: due(1) -> t = 1
		:: due(TRIGGERS) -> t = TRIGGERS
		fi;
		timer[t] = OFF;
		at = now;
		asleep = false
	};
		begin();
		atomic { t = 0; old = 0; at = 0; asleep = true }
	:: atomic {
		over(1) || over(TRIGGERS) ->
		if
		:: over(1) -> t = 1
		:: over(TRIGGERS) -> t = TRIGGERS
		fi;
		if
		:: delay = 0
		:: delay = 1
		:: delay = NO_NEXT
		fi;
		at = now;
		old = word[t];
		asleep = false
	};
		end();
		look_at_due();
		atomic { t = 0; old = 0; at = 0; delay = 0; asleep = true }
	:: atomic { timeout -> nothing_left(); break }
	od
}

/* Who set QUEUED is on its way to the queue, or on it, and nobody else is. */
#define membership_is_wrong(n) (((word[n] & QUEUED) != 0) != (handing[n] + member[n] == 1))
/* The owner has looked at the last call, and the timer it has set is not what that call said. */
#define timer_is_wrong(n) \
	(asleep && !(word[n] & QUEUED) && \
	timer[n] != (wanted[n] && !came[n] -> want[n] : OFF))
#define wake_up_is_lost (asleep && (head || taken) && !wake && !waking)

/* For pan's report alone: the names of what it prints. */
hidden byte wrong_membership = 1;
hidden byte wrong_timer = 1;
hidden byte lost_wake_up = 1;

/* Takes a step only when an invariant is broken. */
active proctype monitor()
{
end_of_monitor:
	do
	:: atomic { membership_is_wrong(1) || membership_is_wrong(TRIGGERS) ->
		assert(!wrong_membership) }
	:: atomic { timer_is_wrong(1) || timer_is_wrong(TRIGGERS) -> assert(!wrong_timer) }
	:: atomic { wake_up_is_lost -> assert(!lost_wake_up) }
	od
}

/*
 * Supervised backoff: how long to wait until the next run, from how the last one ended.
 *
 * Exactly the rules of Eureka's and SOFARegistry's TimedSupervisorTask: a timeout doubles the delay
 * up to interval x bound, a success restores it to the interval, every other failure leaves it as
 * it is. In the seeds the time limit of a run and its interval are one number; here the caller
 * keeps the time limit and reports when it passed. A run that has ended (by its result or its time
 * limit) cannot end again: the late result is dropped.
 *
 * Pure policy: no clock, no timer; randomness is an argument. Threads: one owner.
 */
#ifndef PULLET_SUPERVISOR_H
#define PULLET_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

enum supervisor_outcome {
	SUPERVISOR_SUCCESS,  /* delay = interval */
	SUPERVISOR_TIMEOUT,  /* delay = min(interval x bound, 2 x delay) */
	SUPERVISOR_REJECTED, /* could not be started or queued; delay stays */
	SUPERVISOR_FAILED,   /* any other failure; delay stays */
	SUPERVISOR_OUTCOMES
};

struct supervisor { /* read freely, written by the functions only */
	uint64_t interval_ms, max_ms, delay_ms;
	uint64_t run;                        /* number of the latest run */
	uint32_t count[SUPERVISOR_OUTCOMES]; /* runs ended, by outcome */
	uint32_t late;                       /* results dropped */
	bool in_flight;
};

/* interval_ms >= 1, bound >= 1; the product saturates. */
void supervisor_init(struct supervisor *s, uint64_t interval_ms, unsigned bound);
/* Begins a run; returns its number, for supervisor_end(). A run still in flight is given up: its
 * result is late. */
uint64_t supervisor_begin(struct supervisor *s);
/* Ends run number `run`. False, and nothing but `late` changes, if that run is not the one in
 * flight. */
bool supervisor_end(struct supervisor *s, uint64_t run, enum supervisor_outcome outcome);
/* Milliseconds from the end of a run to the next. */
uint64_t supervisor_delay(const struct supervisor *s);
/* That delay, or another one, up to so many percent (at most 100) shorter or longer, evenly; but
 * never more than interval x bound, at which the range ends. random: 64 random bits. */
uint64_t supervisor_jitter(
	const struct supervisor *s, uint64_t delay_ms, unsigned percent, uint64_t random);

#endif

/*
 * What goes wrong with the user's programs (process.c).
 */
#ifndef SIM_PROGRAMS_H
#define SIM_PROGRAMS_H

#include <stdint.h>

extern struct sim_programs {
	/* one in so many; 0 = none */
	unsigned not_started, killed, hangs, fails;
	uint64_t started;
} sim_programs;

#endif

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
	unsigned slow_disk;    /* one in so many jobs of a worker takes long */
	unsigned short_orders; /* one in so many orders meets the end of memory */
} sim_programs;

#endif

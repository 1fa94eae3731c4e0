/* Results as text for people and as CSV for programs: one row per scenario and policy. */
#ifndef FLEET_REPORT_H
#define FLEET_REPORT_H

#include <stdio.h>

#include "simulation.h"

/* What the columns mean, and what was assumed of the server. */
void report_legend(FILE *out, uint32_t agents, uint64_t seed);
/* The results of one scenario. */
void report_text(FILE *out, const struct result *results, size_t count);
/* With the names of the columns if `header`. */
void report_csv(FILE *out, const struct result *results, size_t count, bool header);

#endif

/* The requests of each second of one scenario as a picture (SVG), a line per policy. */
#ifndef FLEET_CHART_H
#define FLEET_CHART_H

#include "simulation.h"

/* Writes the file. Results with the same digest share a line. 0 or -errno. */
int chart_write(const char *path, const struct result *results, size_t count);

#endif

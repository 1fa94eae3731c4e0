/*
 * Questions to a running agent that take longer than a call: to be called in its process.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct control;

/* The last changes of all configs. c: NULL = there is no API, nothing happens. */
void control_ask_changes(struct control *c, bool values);
/* A question about versions, on the checks' thread: 0 = the history, 1 = a difference, else a key.
 */
void control_ask_versions(struct control *c, struct config *config, unsigned which, bool values);
/* Waits for the end of a run (0), of a run or change (1), of a change (2), or goes away (3). */
void control_wait(struct control *c, struct config *config, unsigned which);

#endif

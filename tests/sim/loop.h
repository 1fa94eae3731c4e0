/*
 * The agent's loop in a simulation: base/loop.h, whose turns the host takes.
 */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "base/loop.h"

/* Does all that is due. */
void sim_loop_turn(struct loop *l);
/* When the next turn is due, if any. */
bool sim_loop_next(struct loop *l, uint64_t *ret_due_ms);

#endif

/*
 * Operators: what `pullet` asks the agent for, and what an operator may expect of it.
 */
#ifndef SIM_OPERATOR_H
#define SIM_OPERATOR_H

#include "tests/sim/subject.h"

/* One order or question about this config. */
void operator_act(struct subject *s);
/* Looks whether what was answered is still so. */
void operator_look(struct subject *s);
/* Takes back what is still in force: pins, suspensions, overrides. */
void operator_end(struct subject *s);

#endif

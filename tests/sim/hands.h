/*
 * Other people's hands on a host: they edit, remove and replace what is the agent's, damage and
 * forge its state, and put things of their own in its way.
 */
#ifndef SIM_HANDS_H
#define SIM_HANDS_H

/* In the names of temporary files that strangers leave: nobody cleans them up. */
#define HANDS_TEMPORARY ".pullet-0123456789abcdef"

#include "tests/sim/subject.h"

/* One such act on what belongs to this config. */
void hands_act(struct subject *s);
/* Writes over its file, where the agent heals that. */
void hands_spoil(struct subject *s);
/* Takes away what is in the way of this config. */
void hands_end(struct subject *s);

#endif

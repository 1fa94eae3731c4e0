/*
 * Whether the Host header of a request names this machine.
 *
 * A page of somebody else's, open in a browser here, may have its own name point to this machine
 * (DNS rebinding) and then reads what is served as if it were its own. The browser still says that
 * name. Accepted are: an address, which cannot point elsewhere; localhost and what is below
 * it, which browsers do not ask DNS for; the machine's name; the names that were configured. Not
 * the machine's name with any domain behind it: an attacker can have that one.
 *
 * Threads: any. Ownership: none.
 */
#ifndef PULLET_HOST_HEADER_H
#define PULLET_HOST_HEADER_H

#include <stdbool.h>

/* host: as the client sent it, with or without a port; NULL = it sent none, which is no name.
 * machine: its name, or "". names: ends with NULL; or NULL. Letters are the same in both cases, and
 * a dot at the end is no difference. */
bool host_header_is_ours(const char *host, const char *machine, char *const *names);
/* The same of the machine that this runs on. */
bool host_header_is_this_machines(const char *host, char *const *names);

#endif

/*
 * A name where upper and lower case are the same (exFAT, CIFS, a casefold directory): "web" and
 * "WEB" are one file there, so that one config would replace what another one published.
 *
 * Threads: any. Costs one call where the name exists in no other case, else a look through the
 * directory.
 */
#ifndef PULLET_NAME_CASE_H
#define PULLET_NAME_CASE_H

#include "files/file.h"

/* 0: nothing is there, or what is there has exactly this name. -EEXIST, with a sentence: the same
 * file is listed in another case. */
int name_case_check(const struct sys *sys, int dir, const char *name, char why[FILE_WHY]);

#endif

/*
 * What only the answer about one config has, not the status of all: its layers and its checks.
 *
 * Threads: the loop's. Ownership: none kept. Errors: the buffer's.
 */
#ifndef PULLET_DETAIL_H
#define PULLET_DETAIL_H

#include "lib/buffer.h"
#include "config/config.h"
#include "text/sentence.h"

/* Appends members of an object:
 *
 * "layers":[{"server","path","as","type","optional","version","absent"}], the later ones win:
 * server: its name, or null; as: its file in a set, or null; version: of the current version, or
 * null; absent: it is optional, and was not there.
 *
 * "checks":[{"name","configured","rejections","last":{"at_ms","sha256","why"}|null}]: those that
 * look at each version, and others that rejected one, or rolled it back; last: the newest verdict
 * that the agent remembers. The public sees no why. */
int detail_write(const struct config_status *s, enum audience audience, struct buffer *out);

#endif

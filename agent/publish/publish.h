/*
 * Publishing: the one way out. State file, text file or set, snapshot, in an order in which a crash
 * at any point leaves a complete, verified version visible.
 *
 * Threads: publish_run() blocks only on the file system; it is called in the loop's thread when
 * publish_blocks() is false (nothing needs an fsync before it is visible) and in the worker's
 * otherwise. One publication of a config at a time.
 */
#ifndef PULLET_PUBLISH_H
#define PULLET_PUBLISH_H

#include <stdbool.h>

#include "version/compose.h"
#include "publish/file_set.h"
#include "publish/image.h"
#include "settings/settings.h"
#include "version/store.h"
#include "publish/target.h"
#include "base/sys.h"

#define PUBLISH_SPARED 2

struct publication {
	const struct sys *sys;
	const struct settings_config *config;
	struct store *store;
	bool save;    /* false: the version is in the store already */
	bool give_up; /* a failure removes its state file: it was refused, so it never happens */
	uint64_t spared[PUBLISH_SPARED];    /* generations that are not pruned; 0 = none */
	uint64_t repeated;                  /* one with the same bytes; 0 = none */
	struct target *target;              /* NULL: no text file */
	struct file_set *fileset;           /* NULL: no set of files */
	const struct compose_piece *pieces; /* version->part_count of them: the files of the set */
	struct image *image;                /* NULL: no snapshot */
	void *image_data;                   /* its generation is filled in */
	size_t image_len;
	const char *shown_dir;           /* where the version is marked as shown; NULL: nowhere */
	uint64_t confirmed_ms, stale_ms; /* for the snapshot's readers; 0 = not by the server */
	const struct version *version;
	const void *body; /* as pulled, for the store */
	size_t body_len;
	const void *text; /* for the file, in its format */
	size_t text_len;
	/* result */
	int error;         /* 0, or -errno: the old version stays visible */
	bool state_synced; /* the state file is on the disk */
	bool saved;        /* the state file is there: the commit */
	bool touched;      /* the files may not be those of the old version any more */
	bool not_durable;  /* published, but a directory fsync failed */
	char why[FILE_WHY];
};

/* True when publish_run() needs an fsync and must not run in the loop's thread. */
bool publish_blocks(const struct publication *p);
/* True when the set of files is as this would publish it. */
bool publish_set_is_current(const struct publication *p);
/* Saves to the store, replaces the file, then the snapshot. Where one of these two is brought to a
 * disk (or durability is strict) the state file is on the disk before: else a power cut could leave
 * a version visible that the state directory does not know, and the next start would publish an
 * older one. The result is in the struct. */
void publish_run(struct publication *p);
/* What was published and not_durable: fsyncs the directories of its places (NULL: there is none).
 * Each content is on the disk already: it failed the publication. 0 or -errno. */
int publish_sync(struct target *t, struct file_set *f, const struct image *i);

#endif

/*
 * Files that are brought to the disk after they were written: the state file and the ledger, where
 * that could wait, and the directories of what was published, where that failed.
 *
 * Surprising: the file of a state that failed is not synced again, for the kernel would say that
 * all is well; its next generation is a new file. A directory is: its names are written with
 * whatever changes in it next, and nothing else would say when they are there.
 */
#include "config/core.h"

#include <string.h>

static int sync_ledger_file(struct config *c)
{
	int r, dir = store_dir(c->current.store);

	if (dir < 0)
		return dir;
	r = ledger_sync(c->env->sys, dir);
	c->env->sys->close(dir);
	return r;
}

static void run_sync_job(struct worker_job *job)
{
	struct config *c =
		(struct config *)((char *)job - offsetof(struct config, current.sync_job));
	int r = 0;

	c->step.on_worker_ms = c->env->sys->now_ms();
	if (c->current.syncing & SYNCING_STATE)
		r = store_sync(c->current.store, c->current.sync_generation);
	if (r == 0 && c->current.syncing & SYNCING_LEDGER)
		r = sync_ledger_file(c);
	c->current.sync_error = r;
	if (c->current.syncing & SYNCING_PLACES)
		c->current.places_error =
			publish_sync(c->current.target, c->current.fileset, c->current.image);
	c->step.on_worker_ms = 0;
}

void syncing_ask(struct config *c, unsigned files)
{
	if (files && store_in_memory(c->current.store))
		files &= SYNCING_PLACES;
	c->current.to_sync |= files;
	if (c->current.syncing || !c->current.to_sync)
		return;
	c->current.syncing = c->current.to_sync;
	c->current.to_sync = 0;
	c->current.sync_generation = c->current.version.generation;
	worker_submit(c->env->worker, &c->current.sync_job);
}

/* True: to be tried again at the end of the next run. The next publication fsyncs them as well. */
static bool end_sync_of_places(struct config *c)
{
	if (c->current.places_error == 0)
		log_info("what was published is on the disk now", "config", c->settings->name,
			"file", settings_place(c->settings));
	return c->current.places_error != 0;
}

static void sync_job_done(struct worker_job *job)
{
	struct config *c =
		(struct config *)((char *)job - offsetof(struct config, current.sync_job));
	unsigned done = c->current.syncing;
	bool again = file_error_is_ours(-c->current.sync_error);
	unsigned failed = again ? done & ~(unsigned)SYNCING_PLACES : 0;

	c->current.syncing = 0;
	/* Nothing that is visible is lost: the file stays in the page cache, and the next
	 * generation is a new file. */
	if (c->current.sync_error)
		log_warn(again ? "the state file is not on the disk yet: a power cut may lose it"
			       : "the state file is not on the disk: a power cut may lose it",
			"config", c->settings->name, "why", strerror(-c->current.sync_error));
	else if (done & SYNCING_STATE && !c->step.publishing) /* else the store is the worker's */
		store_prune(c->current.store,
			c->current.sync_generation == c->current.version.generation,
			(uint64_t[]){c->decisions.ledger->proven, latest_generation(c),
				c->current.version.generation},
			3, c->current.repeated);
	if (done & SYNCING_PLACES && end_sync_of_places(c))
		failed |= SYNCING_PLACES;
	if (!again)
		syncing_ask(c, 0);
	c->current.to_sync |= failed; /* at the end of the next run */
	config_finish_retiring(c);
}

void syncing_init(struct config *c)
{
	c->current.sync_job = (struct worker_job){.run = run_sync_job, .done = sync_job_done};
}

/*
 * Files that are brought to the disk after they were written: the state file and the ledger, where
 * that could wait, and the directories of what was published, where that failed.
 *
 * Surprising: the file of a state that failed is not synced again, for a second fsync succeeds
 * without a write; its next generation is a new file. A directory is: its names are written with
 * whatever changes in it next, and nothing else would say when they are there.
 */
#include "config/core.h"

#include <stdlib.h>
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

/* One visit of the worker; what comes meanwhile waits in to_sync. */
struct syncing {
	struct worker_job job;
	struct config *config;
	unsigned files;      /* of enum syncing_file */
	uint64_t generation; /* of the state file */
	int error, places_error;
};

static void run_sync_job(struct worker_job *job)
{
	struct syncing *j = (struct syncing *)job;
	struct config *c = j->config;
	int of_ledger = 0;

	c->step.on_worker_ms = c->env->sys->now_ms();
	if (j->files & SYNCING_STATE)
		j->error = store_sync(c->current.store, j->generation);
	if (j->files & SYNCING_LEDGER)
		of_ledger = sync_ledger_file(c);
	if (j->error == 0)
		j->error = of_ledger;
	if (j->files & SYNCING_PLACES)
		j->places_error =
			publish_sync(c->current.target, c->current.fileset, c->current.image);
	c->step.on_worker_ms = 0;
}

/* What could not be brought to the disk: to be tried again at the end of the next run. The next
 * publication fsyncs directories as well. */
static unsigned end_sync_of_places(struct config *c, const struct syncing *j)
{
	if (!(j->files & SYNCING_PLACES) || j->places_error)
		return j->files & SYNCING_PLACES;
	c->current.not_durable = false;
	log_info("what was published is on the disk now", "config", c->settings->name, "file",
		settings_place(c->settings));
	return 0;
}

static void sync_job_done(struct worker_job *job)
{
	struct syncing *j = (struct syncing *)job;
	struct config *c = j->config;
	bool again = file_error_is_ours(-j->error);
	unsigned failed = again ? j->files & ~(unsigned)SYNCING_PLACES : 0;

	c->current.syncing = NULL;
	if (j->error) /* what is visible stays in the page cache; the next one is a new file */
		log_warn(again ? "the state file is not on the disk yet: a power cut may lose it"
			       : "the state file is not on the disk: a power cut may lose it",
			"config", c->settings->name, "why", strerror(-j->error));
	else if (j->files & SYNCING_STATE &&
		 !c->step.publishing) /* else the store is the worker's */
		store_prune(c->current.store, j->generation == c->current.version.generation,
			(uint64_t[]){c->decisions.ledger->proven, latest_generation(c),
				c->current.version.generation},
			3, c->current.repeated);
	failed |= end_sync_of_places(c, j);
	if (!again)
		syncing_ask(c, 0);
	c->current.to_sync |= failed;
	free(j);
	config_finish_retiring(c);
}

void syncing_ask(struct config *c, unsigned files)
{
	struct syncing *j;

	if (files && store_in_memory(c->current.store))
		files &= SYNCING_PLACES;
	c->current.to_sync |= files;
	if (c->current.syncing || !c->current.to_sync || !(j = malloc(sizeof(*j))))
		return; /* without memory: at the end of the next run */
	*j = (struct syncing){.job = {.run = run_sync_job, .done = sync_job_done},
		.config = c,
		.files = c->current.to_sync,
		.generation = c->current.version.generation};
	c->current.to_sync = 0;
	c->current.syncing = j;
	worker_submit(c->env->worker, &j->job);
}

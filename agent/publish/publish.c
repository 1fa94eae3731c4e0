/*
 * Publishing one version: state file, text file, snapshot. Surprising: it is a list of steps that
 * may block, on purpose: the caller decides which thread runs it, and a test can end it after each
 * of its system calls.
 */
#include "publish/publish.h"

#include <stdio.h>
#include <string.h>

#include "publish/shown.h"

static bool needs_sync(const struct publication *p, bool target_on_disk)
{
	return p->config->strict || target_on_disk ||
	       (p->fileset && !file_set_in_memory(p->fileset)) ||
	       (p->image && !image_in_memory(p->image));
}

bool publish_blocks(const struct publication *p)
{
	return needs_sync(p, p->target && !target_in_memory(p->target));
}

/* ---- the set of files ---- */

static size_t list_set(
	const struct publication *p, struct file_set_entry entries[VERSION_MAX_PARTS])
{
	size_t n = 0;

	for (size_t i = 0; i < p->version->part_count; i++)
		if (!p->pieces[i].signature && !p->pieces[i].facts->absent)
			entries[n++] =
				(struct file_set_entry){p->config->layers[p->pieces[i].layer].as,
					p->pieces[i].data, p->pieces[i].facts->len};
	return n;
}

static struct file_options options_of_set(const struct publication *p)
{
	return (struct file_options){
		.mode = p->config->mode,
		.uid = p->config->uid,
		.gid = p->config->gid,
		.sync = !file_set_in_memory(p->fileset),
	};
}

bool publish_set_is_current(const struct publication *p)
{
	const struct file_options options = options_of_set(p);
	struct file_set_entry entries[VERSION_MAX_PARTS];
	size_t n = list_set(p, entries);

	return file_set_is_current(p->fileset, entries, n, &options);
}

/* ---- steps: each does nothing where the publication has no such part ---- */

/* The state file, on the disk before what it stands for is. A version that is there already may
 * not be on the disk: the agent was killed before, or the file was in memory then. */
static int save_version(struct publication *p, int dir)
{
	bool sync = needs_sync(p, dir >= 0 && !file_in_memory(dir));
	int r;

	p->state_synced = sync;
	if (p->save) {
		r = store_save(p->store, p->version, p->body, p->body_len, sync, p->why);
		p->saved = r == 0;
		return r;
	}
	if (!sync || store_in_memory(p->store))
		return 0;
	r = store_sync(p->store, p->version->generation);
	if (r)
		snprintf(p->why, FILE_WHY, "cannot bring the state file to the disk: %s",
			strerror(-r));
	return r;
}

/* Before the file, which would be new otherwise while the snapshot stays old. */
static int prepare_image(struct publication *p, int dir)
{
	(void)dir;
	return p->image ? image_prepare(p->image, p->image_data, p->image_len,
				  p->version->generation, p->why)
			: 0;
}

static int publish_text(struct publication *p, int dir)
{
	int r;

	p->touched = true;
	r = p->target ? target_replace(p->target, dir, p->text, p->text_len, p->why) : 0;

	p->not_durable |= r > 0;
	return r < 0 ? r : 0;
}

static int publish_set(struct publication *p, int dir)
{
	struct file_set_entry entries[VERSION_MAX_PARTS];
	struct file_options options;
	int r;

	(void)dir;
	if (!p->fileset)
		return 0;
	options = options_of_set(p);
	r = file_set_publish(p->fileset, entries, list_set(p, entries), p->version->generation,
		&options, p->why);
	p->not_durable |= r > 0;
	return r < 0 ? r : 0;
}

/* Confirms before readers wake; puts the old confirmation back where the image was not replaced. */
static int publish_image(struct publication *p, int dir)
{
	uint64_t confirmed_ms, stale_ms;
	int r;

	(void)dir;
	if (!p->image)
		return 0;
	confirmed_ms = image_confirmed_ms(p->image);
	stale_ms = image_stale_ms(p->image);
	if (p->confirmed_ms)
		image_confirm(p->image, p->confirmed_ms, p->stale_ms);
	r = image_publish(p->image, p->image_data, p->image_len, p->version->generation, p->why);
	if (r < 0 && p->confirmed_ms)
		image_confirm(p->image, confirmed_ms, stale_ms);
	p->not_durable |= r > 0;
	return r < 0 ? r : 0;
}

/* Last of all: a version that is marked can be seen. */
static int mark_shown(struct publication *p, int dir)
{
	(void)dir;
	if (p->shown_dir)
		shown_mark(p->sys, p->shown_dir, p->config->name, p->version->generation);
	return 0;
}

/* What is visible now is not known to be current. */
static void forget_published(const struct publication *p)
{
	if (p->image)
		image_abandon(p->image);
	if (p->target && p->touched)
		target_forget(p->target);
	if (p->fileset && p->touched)
		file_set_forget(p->fileset);
}

void publish_run(struct publication *p)
{
	static int (*const steps[])(struct publication * p, int dir) = {
		save_version, prepare_image, publish_text, publish_set, publish_image, mark_shown};
	int dir = p->target ? target_open_dir(p->target, p->why) : -1;

	p->error = p->target && dir < 0 ? dir : 0;
	p->not_durable = p->saved = p->touched = false;
	for (size_t i = 0; p->error == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		p->error = steps[i](p, dir);
	if (p->error)
		forget_published(p);
	else if (p->save)
		store_prune(p->store, p->state_synced, p->spared, PUBLISH_SPARED, p->repeated);
	if (p->error && p->save && p->give_up) { /* it may be there, though it is not on the disk */
		store_remove(p->store, p->version->generation);
		p->saved = false;
	}
	if (dir >= 0)
		p->sys->close(dir);
}

int publish_sync(struct target *t, struct file_set *f, const struct image *i)
{
	int r = t ? target_sync(t) : 0;

	if (r == 0 && f)
		r = file_set_sync(f);
	return r == 0 && i ? image_sync(i) : r;
}

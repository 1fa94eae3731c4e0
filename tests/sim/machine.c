/*
 * What surrounds an agent's process: whoever supervises it, the power, readers. Surprising: callers
 * find the machine of a host in its arg.
 */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/sim/disk.h"
#include "tests/sim/hands.h"
#include "tests/sim/libc.h"
#include "tests/sim/life.h"
#include "tests/sim/push.h"
#include "tests/sim/world.h"

#define SECOND_US 1000000ull
/* a process that is to end does so within so many calls, or changes of the disk */
#define SPAN_OF_CALLS 400
#define SPAN_OF_CHANGES 20

#define FOR_EACH_SUBJECT_OF(s, m)                                                                  \
	for (struct subject *s = (m)->subjects; s < (m)->subjects + (m)->subject_count; s++)

/* Names it in the trace from here on. */
static void enter_machine(const struct machine *m)
{
	world.who = m->host.traced;
	disk_use(m->host.disk);
}

static void leave_machine(void)
{
	world.who = NULL;
}

/* ---- the process ---- */

static void observe_all(struct machine *m)
{
	FOR_EACH_SUBJECT_OF (s, m)
		subject_observe(s);
}

static void note_turn(struct host *h)
{
	observe_all(h->arg);
}

static void start_machine_again(void *arg, uint64_t number)
{
	struct machine *m = arg;

	(void)number;
	if (m->host.state == HOST_UP)
		return;
	m->host.calls_left = m->host.changes_left = 0;
	if (m->starts)
		m->starts(m);
	if (!host_start(&m->host) || m->host.dry_run)
		return;
	enter_machine(m);
	FOR_EACH_SUBJECT_OF (s, m)
		subject_check_start(s);
	leave_machine();
}

void machine_start(struct machine *m)
{
	start_machine_again(m, 0);
}

static void cut_power(struct machine *m)
{
	world_trace("the power fails");
	life_totals.cuts++;
	observe_all(m);
	disk_cut(m->host.disk);
	disk_make_dir("/run/app"); /* as tmpfiles.d does */
	push_forget_host(m->host.number);
	FOR_EACH_SUBJECT_OF (s, m)
		subject_power_cut(s);
}

/* What a process that was killed left in the page cache is lost, if the next one trusts it. */
static void fail_power_soon(void *arg, uint64_t number)
{
	struct machine *m = arg;

	(void)number;
	if (m->cuts_after_kills)
		machine_fail_power(m);
}

/* The process ended: by a call that was its last, or by itself. Whoever supervises it starts it
 * again. */
static void process_ended(struct host *h, int code)
{
	struct machine *m = h->arg;
	bool killed = code < 0 && !m->cut_next;

	FOR_EACH_SUBJECT_OF (s, m) {
		s->dirty = true;
		s->rolling_us = 0; /* nobody was told that it is done */
	}
	push_forget_host(h->number);
	if (code >= 0)
		life_totals.exits++;
	if (m->cut_next && code < 0)
		cut_power(m);
	else
		observe_all(m);
	if (killed && m->cuts_after_kills && world_once_in(STREAM_LIFE, 3))
		world_at(world.now_us + world_random(STREAM_LIFE, 8 * SECOND_US), fail_power_soon,
			m, 0);
	m->cut_next = false;
	h->calls_left = h->changes_left = 0;
	world_at(world.now_us + 100000 + world_random(STREAM_LIFE, 5 * SECOND_US),
		start_machine_again, m, 0);
}

static void note_machine_change(void *arg, const char *dir, const char *name)
{
	struct machine *m = arg;

	(void)name;
	FOR_EACH_SUBJECT_OF (s, m)
		if (strncmp(s->path, dir, strlen(dir)) == 0 || strstr(dir, s->path) == dir ||
			strcmp(dir, subject_runtime_dir(s)) == 0)
			s->dirty = true;
}

/* A version that became visible in one place and not in the other is taken back, and a disk that
 * fails may lose the newest: the agent says so. */
static void read_log(const char *line, size_t len)
{
	struct machine *m = host_now->arg;
	bool taken_back = memmem(line, len, "restoring the files of the current", 34) ||
			  memmem(line, len, "a power cut may", 15);
	bool unsaved = memmem(line, len, "cannot be read: the pin is dropped", 34);
	bool given_up = memmem(line, len, "not rolled back: another", 24) ||
			memmem(line, len, "request failed: keeping", 23);
	char name[32];

	if (!taken_back && !unsaved && !given_up)
		return;
	FOR_EACH_SUBJECT_OF (s, m) {
		snprintf(name, sizeof(name), "config=%.16s", s->name);
		if (!memmem(line, len, name, strlen(name)))
			continue;
		s->may_go_back |= taken_back;
		s->may_be_lost |= taken_back;
		s->unsaved |= unsaved;
		if (given_up)
			s->rolling_us = s->rolled_back.there = 0;
	}
}

void machine_end_soon(struct machine *m, bool cut)
{
	struct host *h = &m->host;

	if (h->state != HOST_UP || h->calls_left || h->changes_left)
		return;
	m->cut_next = cut;
	if (m->ends_in_changes && world_random(STREAM_LIFE, 2) > 0)
		h->changes_left = 1 + world_random(STREAM_LIFE, SPAN_OF_CHANGES);
	else
		h->calls_left = 1 + world_random(STREAM_LIFE, SPAN_OF_CALLS);
}

void machine_end_now(struct machine *m, bool cut)
{
	if (m->host.state != HOST_UP)
		return;
	host_kill(&m->host);
	enter_machine(m);
	m->cut_next = cut;
	process_ended(&m->host, -1);
	leave_machine();
}

void machine_fail_power(struct machine *m)
{
	if (world_once_in(STREAM_LIFE, 3) && m->host.state == HOST_UP)
		machine_end_now(m, true);
	else
		machine_end_soon(m, true);
}

void machine_sleep(struct machine *m, uint64_t until_us)
{
	m->host.stopped_until_us = until_us;
	world_trace("the machine sleeps until %llu", (unsigned long long)until_us);
}

/* ---- begin and end ---- */

static void make_disk(struct machine *m, enum disk_model model)
{
	m->host.disk = disk_new(model);
	disk_use(m->host.disk);
	disk_make_dir("/etc");
	disk_make_dir("/var/lib");
	disk_make_dir("/srv");
	disk_make_dir("/bin");
	disk_mount_memory("/run");
	disk_make_dir("/run/app");
	for (size_t i = 0; i < 4; i++) {
		static const char *const names[] = {
			"/bin/check", "/bin/reload", "/bin/probe", "/bin/format"};

		disk_put(names[i], "#!", 2);
		disk_set_mode(names[i], 0755);
	}
}

void machine_prepare(struct machine *m, enum disk_model model)
{
	m->host.died = process_ended;
	m->host.turned = note_turn;
	m->host.changed = note_machine_change;
	m->host.arg = m;
	libc_hooks.on_log = read_log;
	make_disk(m, model);
	host_prepare(&m->host);
}

void machine_free(struct machine *m)
{
	FOR_EACH_SUBJECT_OF (s, m) {
		life_totals.observed += s->observed;
		subject_close(s);
	}
	host_kill(&m->host);
	disk_free(m->host.disk);
}

/* ---- peace ---- */

void machine_observe(struct machine *m)
{
	enter_machine(m);
	observe_all(m);
	leave_machine();
}

bool machine_shows_newest(const struct machine *m)
{
	FOR_EACH_SUBJECT_OF (s, m)
		if (!subject_is_newest(s))
			return false;
	return true;
}

void machine_check_newest(struct machine *m)
{
	enter_machine(m);
	observe_all(m);
	FOR_EACH_SUBJECT_OF (s, m)
		subject_check_end(s);
	leave_machine();
}

/* What was removed from the configuration is cleaned up when it comes back. */
static bool is_of_removed(const struct machine *m, const char *path)
{
	FOR_EACH_SUBJECT_OF (s, m)
		if (s->removed && strstr(path, s->name))
			return true;
	return false;
}

struct search {
	const struct machine *machine;
	const char *path;
};

/* A set's older generation, or an attempt that failed and could not be removed: the publications to
 * come remove it. */
static bool is_older_generation(const char *dir, const char *name)
{
	char data[256], current[256];

	snprintf(data, sizeof(data), "%s/..data", dir);
	return strncmp(name, "..", 2) == 0 && !disk_real_path(data, current, sizeof(current)) &&
	       strcmp(strrchr(current, '/') + 1, name) != 0;
}

static int report_temporary(void *arg, const char *name, mode_t mode)
{
	const struct search *q = arg;
	char path[256];
	struct search below = {q->machine, path};

	snprintf(path, sizeof(path), "%s/%s", q->path, name);
	if (is_of_removed(q->machine, path))
		return 0;
	if (strstr(name, ".pullet-") && !strstr(name, HANDS_TEMPORARY))
		subject_report_flaw("a temporary file is left: %s", path);
	else if (S_ISDIR(mode) && !is_older_generation(q->path, name))
		disk_list(path, report_temporary, &below);
	return 0;
}

void machine_check_left_over(struct machine *m)
{
	size_t allocations, descriptors;

	host_stop(&m->host);
	enter_machine(m);
	allocations = libc_allocations(OWNER_AGENT);
	descriptors = disk_open_count(m->host.disk, OWNER_AGENT);
	if (allocations) {
		libc_trace_allocations(OWNER_AGENT);
		subject_report_flaw("%zu allocations are left after the stop", allocations);
	}
	if (descriptors)
		subject_report_flaw("%zu descriptors are left after the stop", descriptors);
	leave_machine();
}

void machine_restart(struct machine *m)
{
	FOR_EACH_SUBJECT_OF (s, m)
		s->settled = s->last;
	machine_start(m);
}

void machine_check_restart(struct machine *m)
{
	static const char *const places[] = {"/var/lib/pullet", "/srv", "/run"};

	machine_check_newest(m);
	host_stop(&m->host);
	enter_machine(m);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		disk_list(places[i], report_temporary, &(struct search){m, places[i]});
	leave_machine();
}

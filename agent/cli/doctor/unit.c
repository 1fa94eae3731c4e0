/*
 * pullet.service as systemd knows it. Surprising: the unit counts only where it runs the
 * configuration that is looked at; an agent that somebody started by hand has nothing to do with
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/process.h"
#include "cli/doctor/doctor.h"

#define UNIT "pullet.service"
#define MAX_OUTPUT 65536

struct question {
	struct doctor *d;
	char *text; /* NAME=VALUE, a line each; NULL = no answer */
};

static void systemctl_done(void *arg, const struct process_result *r)
{
	struct question *q = arg;

	if (r->ok && r->dropped == 0)
		q->text = strdup(r->output);
	loop_stop(q->d->loop);
}

static void run_systemctl(struct question *q)
{
	const char *const argv[] = {"/usr/bin/systemctl", "show", UNIT, "--no-pager",
		"--property=LoadState,ActiveState,MainPID,NRestarts,NeedDaemonReload,User,Group,"
		"SupplementaryGroups,ProtectSystem,ProtectHome,PrivateTmp,NoNewPrivileges,"
		"ReadWritePaths,RuntimeDirectory,StateDirectory,MemoryMax,MemoryCurrent,"
		"WatchdogUSec",
		NULL};
	const struct process_options options = {.argv = (char *const *)argv,
		.product = true,
		.max_output = MAX_OUTPUT,
		.timeout_ms = 5000};
	struct process *p;

	if (access("/run/systemd/system", F_OK) || access(argv[0], X_OK))
		return; /* not booted by systemd */
	if (process_start(q->d->loop, &options, systemctl_done, q, &p) == 0)
		loop_run(q->d->loop);
}

/* A number; "infinity", and what is none, is UINT64_MAX. */
static uint64_t read_unit_number(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	return end == text || text[0] == '-' || n == UINT64_MAX ? UINT64_MAX : n;
}

/* "1min 30s", "60s", "0": only whether there is one matters. */
static uint64_t read_unit_span(const char *text)
{
	uint64_t n = read_unit_number(text);

	return n == UINT64_MAX ? 0 : n;
}

static void read_unit_property(struct doctor_unit *u, const char *name, const char *value)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} texts[] = {
		{"ActiveState", u->active, sizeof(u->active)},
		{"User", u->user, sizeof(u->user)},
		{"Group", u->group, sizeof(u->group)},
		{"SupplementaryGroups", u->more_groups, sizeof(u->more_groups)},
		{"ProtectSystem", u->protect_system, sizeof(u->protect_system)},
		{"ProtectHome", u->protect_home, sizeof(u->protect_home)},
		{"ReadWritePaths", u->writable, sizeof(u->writable)},
		{"RuntimeDirectory", u->runtime_dirs, sizeof(u->runtime_dirs)},
		{"StateDirectory", u->state_dirs, sizeof(u->state_dirs)},
	};
	const struct {
		const char *name;
		bool *to;
	} flags[] = {
		{"NoNewPrivileges", &u->no_new_privileges},
		{"PrivateTmp", &u->private_tmp},
		{"NeedDaemonReload", &u->needs_reload},
	};
	const struct {
		const char *name;
		uint64_t *to;
	} numbers[] = {
		{"NRestarts", &u->restarts},
		{"MemoryMax", &u->memory_max},
		{"MemoryCurrent", &u->memory_now},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].name, name) == 0)
			snprintf(texts[i].to, texts[i].size, "%s", value);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(flags[i].name, name) == 0)
			*flags[i].to = strcmp(value, "yes") == 0;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(numbers[i].name, name) == 0)
			*numbers[i].to = read_unit_number(value);
	if (strcmp(name, "LoadState") == 0)
		u->known = strcmp(value, "loaded") == 0;
	if (strcmp(name, "MainPID") == 0)
		u->main_pid = (pid_t)read_unit_number(value);
	if (strcmp(name, "WatchdogUSec") == 0)
		u->has_watchdog = read_unit_span(value) > 0;
}

void doctor_unit_read(struct doctor *d)
{
	struct question q = {.d = d};
	char *line, *rest, *equals;

	d->unit = (struct doctor_unit){.memory_max = UINT64_MAX, .memory_now = UINT64_MAX};
	run_systemctl(&q);
	rest = q.text;
	while (rest && (line = strsep(&rest, "\n"))) {
		equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		read_unit_property(&d->unit, line, equals + 1);
	}
	free(q.text);
}

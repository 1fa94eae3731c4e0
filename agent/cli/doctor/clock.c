/*
 * The clock of this host: certificates, signatures and the times people read depend on it, the
 * agent's schedule does not. Surprising: what a server says of the time is with the servers
 * (servers.c); here is only what this host knows by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define STEP_MS 5000

/* When the process began, on the clock that never jumps; -1 = not to be found out. */
static int64_t started_boottime_ms(pid_t pid)
{
	char path[64], line[2048], *p;
	unsigned long long ticks = 0;
	int64_t ms = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && (p = strrchr(line, ')'))) {
		for (int field = 2; p && field < 22; field++) /* starttime is the 22nd */
			p = strchr(p + 1, ' ');
		if (p && sscanf(p, " %llu", &ticks) == 1)
			ms = (int64_t)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
	}
	if (f)
		fclose(f);
	return ms;
}

/* The agent knows when it started by the clock on the wall; the kernel knows it by its own. */
static void check_clock_steps(const struct doctor *d, struct doctor_list *l)
{
	int64_t started_ms = node_integer(document_root(d->status.json), "started_ms", 0);
	int64_t boottime_ms = d->who.pid > 0 ? started_boottime_ms(d->who.pid) : -1;
	int64_t step_ms;

	if (started_ms == 0 || boottime_ms < 0)
		return;
	step_ms = sys_real.wall_ms() - (int64_t)sys_real.now_ms() + boottime_ms - started_ms;
	if (step_ms > STEP_MS || step_ms < -STEP_MS)
		doctor_add(l, DOCTOR_NOTE, "this host",
			"nothing is to be done if it is right now: the agent's schedule does not "
			"depend on it",
			"the clock was set by about %" PRId64 " s since the agent started",
			step_ms / 1000);
}

void doctor_clock(struct doctor *d, struct doctor_list *l)
{
	struct timex t = {.modes = 0};
	int state = adjtimex(&t);

	check_clock_steps(d, l);
	if (state == TIME_ERROR || t.status & STA_UNSYNC)
		doctor_add(l, DOCTOR_NOTE, "this host",
			"run chrony or systemd-timesyncd, unless the host of this machine keeps "
			"its clock",
			"nothing keeps the clock right: certificates and signatures are validated "
			"by "
			"it");
	else if (state < 0)
		doctor_add(l, DOCTOR_NOTE, "this host", NULL,
			"whether something keeps the clock right cannot be seen");
	else
		doctor_add(l, DOCTOR_OK, "this host", NULL, "the clock is kept right, to %ld ms",
			t.maxerror / 1000);
}

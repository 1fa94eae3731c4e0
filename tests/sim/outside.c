/*
 * What of the agent the simulation has no use for: pid files, and the messages to systemd.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/systemd.h"
#include "process/pidfile.h"

int pidfile_signal(const struct sys *sys, const char *path, int signal, char why[FILE_WHY])
{
	(void)sys;
	(void)path;
	(void)signal;
	(void)why;
	return 0;
}

struct systemd *systemd_start(const struct control_env *env)
{
	(void)env;
	return NULL;
}

void systemd_run_ended(struct systemd *s, size_t place)
{
	(void)s, (void)place;
}

void systemd_reloading(struct systemd *s)
{
	(void)s;
}

void systemd_reloaded(struct systemd *s)
{
	(void)s;
}

void systemd_stop(struct systemd *s)
{
	(void)s;
}

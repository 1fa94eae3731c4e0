/*
 * What of the agent the simulation has no use for: the control API (operators call config_*() as
 * it does), and the messages to systemd.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/api.h"
#include "control/systemd.h"
#include "process/pidfile.h"

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	(void)env;
	(void)why;
	*ret_control = NULL;
	return 0;
}

void control_stop(struct control *c)
{
	(void)c;
}

int control_listen(struct control *c, const char *address, char why[FILE_WHY])
{
	(void)c;
	(void)address;
	(void)why;
	return 0;
}

void control_operators(struct control *c, gid_t operators)
{
	(void)c;
	(void)operators;
}

void control_check(struct control *c)
{
	(void)c;
}

void control_forget(struct control *c, const struct config *config, bool gone)
{
	(void)c;
	(void)config;
	(void)gone;
}

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

void systemd_run_ended(struct systemd *s)
{
	(void)s;
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

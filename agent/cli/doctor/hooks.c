/*
 * Programs that the agent runs, and processes that it signals: are they there, and may it? A
 * program inherits everything the agent's service is kept from, which is what surprises people
 * most: systemctl and sudo, called by an agent that is nobody in particular, do not work.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/trusted.h"
#include "cli/doctor/doctor.h"

#define UNITS                                                                                      \
	"let it leave a flag (run: [/usr/bin/touch, /run/pullet-changed/NAME]), and enable "       \
	"pullet-changed@NAME.path, which does the rest as root: pulletd(8)"

/* ---- programs ---- */

static const char *find_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_service_tool(const char *path)
{
	static const char *const names[] = {
		"systemctl", "service", "rc-service", "invoke-rc.d", "supervisorctl"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(find_base_name(path), names[i]) == 0)
			return true;
	return false;
}

static void check_program_rights(const struct doctor *d, struct doctor_list *l, const char *config,
	const char *key, const char *path, const struct doctor_place *p)
{
	bool sets_user = p->st.stx_mode & (S_ISUID | S_ISGID);

	if (sets_user && d->who.no_new_privileges)
		doctor_add(l, DOCTOR_ERROR, config, UNITS,
			"%s: %s is set-user-ID, which the service forbids (NoNewPrivileges): it "
			"runs as %s",
			key, path, d->who.name);
	else if (d->who.known && d->who.uid != 0 && is_service_tool(path))
		doctor_add(l, DOCTOR_WARNING, config, UNITS,
			"%s: %s will refuse %s, who is not root, unless a rule of polkit allows it",
			key, path, d->who.name);
}

/* argv NULL = none. */
static void check_program_file(struct doctor *d, struct doctor_list *l, const char *config,
	const char *key, char *const *argv)
{
	struct doctor_place p;
	int r;

	if (!argv)
		return;
	r = doctor_stat_path(d, l, argv[0], true, &p);
	if (r == -EACCES && !d->who.can_try) {
		doctor_add(l, DOCTOR_NOTE, config, "run this as root or as the agent's user",
			"%s: you may not look at %s", key, argv[0]);
		return;
	}
	if (r) {
		doctor_add(l, DOCTOR_ERROR, config, "install it, or name its absolute path",
			"%s: there is no program %s: %s", key, argv[0], strerror(-r));
		return;
	}
	if (!S_ISREG(p.st.stx_mode) || !(p.st.stx_mode & 0111)) {
		doctor_add(l, DOCTOR_ERROR, config, "chmod +x, or name another one",
			"%s: %s is not a program", key, argv[0]);
		return;
	}
	r = doctor_try_access(d, l, argv[0], X_OK);
	if (r && r != -ENOTSUP)
		doctor_add(l, DOCTOR_ERROR, config,
			"let the agent's user execute it, and enter its directory",
			"%s: %s may not run %s: %s", key, d->who.name, argv[0], strerror(-r));
	if (p.st.stx_mode & S_IWOTH)
		doctor_add(l, DOCTOR_ERROR, config, "chmod o-w",
			"%s: everybody can change the program %s, which %s runs", key, argv[0],
			d->who.name);
	check_program_rights(d, l, config, key, argv[0], &p);
}

/* ---- signals ---- */

/* The real user of a process. 0 or -errno. */
static int find_process_user(pid_t pid, uid_t *ret)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return -errno;
	*ret = st.st_uid;
	return 0;
}

static void check_signalled_process(const struct doctor *d, struct doctor_list *l,
	const char *config, const char *pidfile, pid_t pid, uid_t holder)
{
	uid_t uid = 0;
	int r = find_process_user(pid, &uid);

	if (r == -ENOENT)
		doctor_add(l, DOCTOR_WARNING, config,
			"start the application, or remove what it left there",
			"reload: %s names process %d, which is not there", pidfile, (int)pid);
	else if (r)
		doctor_add(l, DOCTOR_NOTE, config, "run this as root",
			"reload: you may not look at process %d, which %s names", (int)pid,
			pidfile);
	else if (d->who.known && uid != d->who.uid &&
		 !(d->who.capabilities & UINT64_C(1) << CAP_KILL))
		doctor_add(l, DOCTOR_ERROR, config, UNITS,
			"reload: %s may not signal process %d, which belongs to another user "
			"(uid %u)",
			d->who.name, (int)pid, (unsigned)uid);
	else if (holder != (uid_t)-1 && uid != holder)
		doctor_add(l, DOCTOR_WARNING, config,
			"give the file and its directory to root, or to the user of the process",
			"reload: the agent will refuse %s: it is in the hands of uid %u, and "
			"process %d belongs to uid %u",
			pidfile, (unsigned)holder, (int)pid, (unsigned)uid);
}

/* Could another user choose who is signalled? *ret_holder: the one whose processes alone it may
 * name; (uid_t)-1 = any, or not known. */
static void check_pidfile_holder(const struct doctor *d, struct doctor_list *l, const char *config,
	const char *path, uid_t *ret_holder)
{
	const struct trusted_who who = {
		.root = d->who.root,
		.uid = d->who.uid,
		.strict = d->who.uid == 0 || d->who.capabilities & TRUSTED_SIGNAL_RIGHTS,
	};
	char why[FILE_WHY];
	int fd;

	*ret_holder = (uid_t)-1;
	if (!d->who.known)
		return;
	fd = trusted_open_held(&sys_real, &who, path, ret_holder, why);
	if (fd == -EPERM)
		doctor_add(l, DOCTOR_ERROR, config, "give it to root (chown) and chmod go-w",
			"reload: the agent will say: cannot read the pidfile %s: %s", path, why);
	if (fd >= 0)
		close(fd);
}

static void check_pidfile_target(
	struct doctor *d, struct doctor_list *l, const char *config, const char *path)
{
	char text[32], *end;
	int r = doctor_try_access(d, l, path, R_OK);
	uid_t holder;
	long pid;

	if (r && r != -ENOTSUP && r != -ENOENT) {
		doctor_add(l, DOCTOR_ERROR, config, "let the agent's user read it",
			"reload: %s may not read %s: %s", d->who.name, path, strerror(-r));
		return;
	}
	r = doctor_read(d, l, path, text, sizeof(text));
	if (r == -ENOENT) {
		doctor_add(l, DOCTOR_WARNING, config,
			"start the application, or name the file that it writes its number into",
			"reload: there is no %s: changes are not notified", path);
		return;
	}
	if (r) {
		doctor_add(l, DOCTOR_NOTE, config, "run this as root or as the agent's user",
			"reload: you may not read %s", path);
		return;
	}
	check_pidfile_holder(d, l, config, path, &holder);
	pid = strtol(text, &end, 10);
	if (end == text || pid < 2 || pid > INT32_MAX || (*end && *end != '\n'))
		doctor_add(l, DOCTOR_ERROR, config, "name the file that holds the number alone",
			"reload: %s does not hold the number of a process", path);
	else
		check_signalled_process(d, l, config, path, (pid_t)pid, holder);
}

/* ---- all of them ---- */

static void check_config_hooks(
	struct doctor *d, struct doctor_list *l, const struct settings_config *c)
{
	check_program_file(d, l, c->name, "format", c->format_run.argv);
	check_program_file(d, l, c->name, "check", c->check.argv);
	check_program_file(d, l, c->name, "probe", c->probe.argv);
	for (size_t i = 0; i < c->reload.rule_count; i++) {
		const struct settings_rule *rule = &c->reload.rules[i];

		if (rule->kind == SETTINGS_RUN)
			check_program_file(d, l, c->name, "reload", rule->argv);
		else if (rule->kind == SETTINGS_SIGNAL)
			check_pidfile_target(d, l, c->name, rule->pidfile);
	}
}

static bool has_hooks(const struct settings_config *c)
{
	return c->format_run.argv || c->check.argv || c->probe.argv || c->reload.rule_count;
}

void doctor_hooks(struct doctor *d, struct doctor_list *l)
{
	for (size_t i = 0; i < d->settings->config_count; i++) {
		const struct settings_config *c = d->settings->configs[i];
		size_t before = l->count;

		if (!doctor_is_selected(d, c) || !has_hooks(c))
			continue;
		check_config_hooks(d, l, c);
		if (l->count == before && d->who.can_try)
			doctor_add(l, DOCTOR_OK, c->name, NULL,
				"programs and processes are there, and the agent may use them");
	}
}

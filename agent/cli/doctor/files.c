/*
 * What the agent writes, its directories and published files: are they of a kind that can do what
 * is asked of them, and may the agent use them? Surprising: everything is looked at where the agent
 * is, in its own view of the file system, if we may go there; a service's sandbox is then simply
 * part of what is seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>

#include "httpd/reach.h"
#include "files/trusted.h"
#include "cli/doctor/doctor.h"

#define LITTLE_BYTES (1u << 20)

/* ---- directories ---- */

static void check_free_space(const char *path, const struct doctor_place *p, struct doctor_list *l)
{
	if (p->bytes && p->bytes_free < 4096)
		doctor_add(l, DOCTOR_ERROR, path, "make room: until then the old version stays",
			"the file system is full: %" PRIu64 " bytes are free", p->bytes_free);
	else if (p->bytes && p->bytes_free < LITTLE_BYTES)
		doctor_add(l, DOCTOR_WARNING, path,
			"make room: the old version stays where a new one does not fit",
			"the file system is nearly full: %" PRIu64 " KiB are free",
			p->bytes_free >> 10);
	else if (p->bytes && p->bytes_free < p->bytes / 50)
		doctor_add(l, DOCTOR_WARNING, path, "make room",
			"the file system is nearly full: %" PRIu64 " of %" PRIu64 " MiB are free",
			p->bytes_free >> 20, p->bytes >> 20);
	if (p->files && p->files_free < 16)
		doctor_add(l, p->files_free ? DOCTOR_WARNING : DOCTOR_ERROR, path,
			"remove files: each publication needs a new one",
			"the file system has %" PRIu64 " of %" PRIu64 " inodes left", p->files_free,
			p->files);
}

enum dir { DIR_MISSING, DIR_UNKNOWN, DIR_THERE };

/* What holds for each directory that the agent writes in. */
static enum dir check_written_dir(struct doctor *d, struct doctor_list *l, const char *path,
	const char *what, struct doctor_place *p)
{
	int r = doctor_stat_path(d, l, path, true, p);

	if (r == -EACCES && !d->who.can_try)
		doctor_add(
			l, DOCTOR_NOTE, path, DOCTOR_HELP_US, "%s: you may not look at it", what);
	else if (r && r != -ENOENT)
		doctor_add(l, DOCTOR_ERROR, path, "make it, or name another one", "%s: %s", what,
			strerror(-r));
	else if (r == 0 && !S_ISDIR(p->st.stx_mode))
		doctor_add(l, DOCTOR_ERROR, path, "remove it, or name another directory",
			"%s: it is not a directory", what);
	if (r || !S_ISDIR(p->st.stx_mode))
		return r == -ENOENT ? DIR_MISSING : DIR_UNKNOWN;
	check_free_space(path, p, l);
	if (p->read_only)
		doctor_add(l, DOCTOR_ERROR, path,
			d->unit.applies ? "add it to ReadWritePaths= of the service (systemctl "
					  "edit pullet), or mount it writable"
					: "mount it writable (a volume without ro), or name "
					  "another place",
			"%s: the file system is read-only%s", what,
			d->unit.applies ? " for the service" : "");
	else if ((r = doctor_try_access(d, l, path, W_OK | X_OK)) && r != -ENOTSUP)
		doctor_add(l, DOCTOR_ERROR, path,
			r == -EPERM ? "it is immutable (lsattr, chattr -i)"
				    : "give it to the agent's user (chown), or name another "
				      "directory",
			"%s: %s may not write in it: %s", what, d->who.name, strerror(-r));
	return DIR_THERE;
}

/* A directory that is not there: the agent makes the last part of its path. */
static void check_missing_dir(
	struct doctor *d, struct doctor_list *l, const char *path, const char *what)
{
	struct doctor_place p;
	char parent[4096];
	int r;

	doctor_parent(path, parent, sizeof(parent));
	r = doctor_try_access(d, l, parent, W_OK | X_OK);
	if (doctor_stat_path(d, l, parent, true, &p) == -ENOENT)
		doctor_add(l, DOCTOR_ERROR, path, "make it, with the agent's user as its owner",
			"%s: it is not there, nor is the directory it would lie in", what);
	else if (r && r != -ENOTSUP)
		doctor_add(l, DOCTOR_ERROR, path, "make it, with the agent's user as its owner",
			"%s: it is not there, and %s may not make it: %s", what, d->who.name,
			strerror(-r));
	else
		doctor_add(l, DOCTOR_NOTE, path, NULL, "%s: it is not there; the agent makes it",
			what);
}

static void check_dir_owner(const struct doctor *d, struct doctor_list *l, const char *path,
	const char *what, const struct doctor_place *p)
{
	if (d->who.known && p->st.stx_uid != d->who.uid && d->who.uid != 0)
		doctor_add(l, DOCTOR_ERROR, path,
			"chown -R it to the agent's user: an agent may have run as another one "
			"once",
			"%s: it belongs to uid %u, the agent is %s", what, p->st.stx_uid,
			d->who.name);
}

/* Could somebody else lead the agent away from it? */
static void check_dir_trust(
	struct doctor *d, struct doctor_list *l, const char *subject, const char *path)
{
	const struct trusted_who who = {
		.root = d->who.root,
		.uid = d->who.uid,
		.strict = d->who.uid == 0 || d->who.capabilities & TRUSTED_RIGHTS,
	};
	char why[FILE_WHY];

	if (!d->who.known)
		return;
	doctor_set_path(l, path);
	if (trusted_check_dir(&sys_real, &who, path, TRUSTED_OWN, why) == -EPERM)
		doctor_add(l, d->who.running || d->unit.applies ? DOCTOR_ERROR : DOCTOR_WARNING,
			subject,
			"give it to root (chown) and chmod go-w, name another one, or run the "
			"agent as a user of its own",
			"the agent will say: %s", why);
}

/* A volume that Kubernetes made for a pod: nobody in there may change its owner or mode. */
static bool is_open_volume(const struct doctor *d, const struct doctor_place *p)
{
	return getenv("KUBERNETES_SERVICE_HOST") &&
	       (p->st.stx_attributes & STATX_ATTR_MOUNT_ROOT) && p->st.stx_uid == 0 &&
	       (p->st.stx_mode & S_IWOTH) && d->who.known && d->who.uid != 0;
}

static void check_dir_is_closed(const struct doctor *d, struct doctor_list *l, const char *path,
	const char *what, const char *harm, const char *remedy, const struct doctor_place *p)
{
	if (is_open_volume(d, p))
		doctor_add(l, DOCTOR_WARNING, path,
			"mount it in no other container of the pod but read-only",
			"%s: it is a volume in which everybody can write, as an emptyDir is, and "
			"%s",
			what, harm);
	else if (p->st.stx_mode & S_IWOTH)
		doctor_add(l, DOCTOR_ERROR, path, remedy, "%s: everybody can write in it, and %s",
			what, harm);
}

/* A directory that the agent makes for itself. True, and *ret_place: it is there. */
static bool check_own_dir(struct doctor *d, struct doctor_list *l, const char *path,
	const char *what, struct doctor_place *ret_place)
{
	enum dir dir = check_written_dir(d, l, path, what, ret_place);

	if (dir == DIR_MISSING)
		check_missing_dir(d, l, path, what);
	if (dir != DIR_THERE)
		return false;
	if (!is_open_volume(d, ret_place))
		check_dir_owner(d, l, path, what, ret_place);
	if (!(ret_place->st.stx_mode & S_IWOTH)) /* else that is told */
		check_dir_trust(d, l, path, path);
	return true;
}

static void check_state_dir(struct doctor *d, struct doctor_list *l)
{
	static const char what[] = "state_dir";
	const char *path = d->state_dir;
	struct doctor_place p;
	size_t before = l->count;

	if (!check_own_dir(d, l, path, what, &p))
		return;
	check_dir_is_closed(d, l, path, what, "so choose what is published", "chmod 0700", &p);
	if ((p.st.stx_mode & (S_IWOTH | S_IROTH)) == S_IROTH)
		doctor_add(l, DOCTOR_NOTE, path, "chmod 0700",
			"%s: everybody can list it; what is in it only the agent can read", what);
	if (doctor_is_in_memory(p.type))
		doctor_add(l, DOCTOR_WARNING, path, "name a directory on a disk",
			"%s: it is in memory (%s): after a reboot there is no last known good, "
			"and without the server no configuration",
			what, doctor_file_system(p.type));
	else if (doctor_is_remote(p.type))
		doctor_add(l, DOCTOR_WARNING, path, "name a local directory",
			"%s: it is on %s: the agent hangs when that does", what,
			doctor_file_system(p.type));
	else if (p.type == OVERLAYFS_SUPER_MAGIC)
		doctor_add(l, DOCTOR_NOTE, path, "mount a volume there",
			"%s: it is in a container's own layer, and gone with the container", what);
	if (l->count == before)
		doctor_add(l, DOCTOR_OK, path, NULL, "%s is as it should be", what);
}

static void check_config_state(
	struct doctor *d, struct doctor_list *l, const struct settings_config *c)
{
	struct doctor_place p;
	char path[4096];

	snprintf(path, sizeof(path), "%.3900s/%s", d->state_dir, c->name);
	if (doctor_stat_path(d, l, path, false, &p) == 0)
		check_dir_owner(d, l, path, "state of a config", &p);
}

/* What a crash of an agent with another user left there cannot be told from one that runs. */
static void check_socket_owner(struct doctor *d, struct doctor_list *l)
{
	struct doctor_place p;

	if (d->who.running || !d->who.known || doctor_stat_path(d, l, d->socket_path, false, &p))
		return;
	if (p.st.stx_uid != d->who.uid && d->who.uid != 0)
		doctor_add(l, DOCTOR_ERROR, d->socket_path, "remove it, if no agent runs",
			"it was left by another user (uid %u): %s cannot listen there",
			p.st.stx_uid, d->who.name);
}

static void check_runtime_dir(struct doctor *d, struct doctor_list *l)
{
	static const char what[] = "runtime_dir";
	const char *path = d->runtime_dir;
	struct doctor_place p;
	size_t before = l->count;

	if (!check_own_dir(d, l, path, what, &p))
		return;
	check_dir_is_closed(d, l, path, what, "replace snapshots", "chmod 0750", &p);
	if (doctor_is_remote(p.type))
		doctor_add(l, DOCTOR_ERROR, path, "name a directory in memory, such as /run/pullet",
			"%s: it is on %s: readers of snapshots may be killed (SIGBUS) when that "
			"fails",
			what, doctor_file_system(p.type));
	else if (!doctor_is_in_memory(p.type))
		doctor_add(l, DOCTOR_NOTE, path, "name a directory on tmpfs, such as /run/pullet",
			"%s: it is on a disk: each publication is written there", what);
	if (l->count == before)
		doctor_add(l, DOCTOR_OK, path, NULL, "%s is as it should be", what);
}

/* Where the agent lives elsewhere, so do its groups. */
static void check_operators_reach(struct doctor *d, struct doctor_list *l)
{
	char why[REACH_TEXT], remedy[REACH_TEXT];
	struct doctor_place p;
	enum reach r;

	if (d->settings->operators == (gid_t)-1 || d->who.other_view ||
		(doctor_stat_path(d, l, d->settings->runtime_dir, true, &p) == 0 && p.elsewhere))
		return;
	r = reach_check(d->settings->operators, d->settings->runtime_dir,
		d->who.known ? d->who.gid : (gid_t)-1, why, remedy);
	if (r == REACH_GOOD)
		doctor_add(l, DOCTOR_OK, "operators", NULL, "they can open the control socket");
	else
		doctor_add(l, r == REACH_EMPTY ? DOCTOR_NOTE : DOCTOR_WARNING, "operators", remedy,
			"%s", why);
}

/* ---- published files ---- */

static bool in_groups(const struct doctor_who *w, gid_t gid)
{
	for (size_t i = 0; i < w->group_count; i++)
		if (w->groups[i] == gid)
			return true;
	return gid == w->gid;
}

#define CAP_CHOWN_BIT UINT64_C(1)

static void check_chown_right(
	const struct doctor *d, struct doctor_list *l, const struct settings_config *c)
{
	const struct doctor_who *w = &d->who;
	bool other_user = c->uid != (uid_t)-1 && c->uid != w->uid;
	bool other_group = c->gid != (gid_t)-1 && !in_groups(w, c->gid);

	if (!w->known || !(other_user || other_group) || w->capabilities & CAP_CHOWN_BIT)
		return;
	doctor_add(l, DOCTOR_ERROR, c->name,
		other_user ? "name only a group (owner: :GROUP) that the agent is in, or leave "
			     "owner out"
			   : "put the agent's user into that group (usermod -aG), and restart it",
		"owner: %s cannot give a file to %s", w->name,
		other_user ? "another user" : "a group that it is not in");
}

/* chattr +i, or +a: nobody renames it, or over it. */
static void check_attributes(
	struct doctor_list *l, const char *name, const char *path, const struct doctor_place *p)
{
	if (p->st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		doctor_add(l, DOCTOR_ERROR, name, "chattr -ia it",
			"%s is %s (lsattr): what is published cannot be replaced", path,
			p->st.stx_attributes & STATX_ATTR_APPEND ? "append-only" : "immutable");
}

/* The directory a file is replaced in, or a set lies in. */
static void check_publish_dir(struct doctor_list *l, const char *name, const char *path, bool set,
	const struct doctor_place *p)
{
	const char *kind = doctor_file_system(p->type);

	if (p->st.stx_attributes & STATX_ATTR_APPEND) /* an immutable one was found to deny us */
		check_attributes(l, name, path, p);
	if (p->type == NFS_SUPER_MAGIC)
		doctor_add(l, DOCTOR_ERROR, name, "publish into a local directory",
			"%s is on NFS, where a rename may fail and have happened: the agent "
			"refuses it",
			path);
	else if (doctor_is_remote(p->type))
		doctor_add(l, DOCTOR_WARNING, name, "publish into a local directory",
			"%s is on %s: whether a file is replaced in one step there is up to its "
			"server, what others change is not noticed at once, and the agent, with "
			"all its configs, hangs when that does",
			path, kind);
	if (p->st.stx_mode & (S_IWGRP | S_IWOTH) && (set || !(p->st.stx_mode & S_ISVTX)))
		doctor_add(l, DOCTOR_ERROR, name, "chmod go-w",
			"group or others can write in %s, and replace what is published: the agent "
			"refuses it",
			path);
	if (p->elsewhere)
		doctor_add(l, DOCTOR_WARNING, name,
			"publish outside of /tmp and /home, or change the service (PrivateTmp=, "
			"ProtectHome=)",
			"%s is another directory for the agent's service than for everybody else: "
			"applications do not see what is published there",
			path);
}

static void check_published_file(
	struct doctor *d, struct doctor_list *l, const struct settings_config *c)
{
	struct doctor_place p;
	int r = doctor_stat_path(d, l, c->file, false, &p);
	unsigned mode = p.st.stx_mode & 07777;

	if (r)
		return;
	check_attributes(l, c->name, c->file, &p);
	if (p.mount_point)
		doctor_add(l, DOCTOR_ERROR, c->name,
			"mount its directory instead of the file (in Kubernetes: no subPath)",
			"%s is a mount point by itself: it cannot be replaced (EBUSY), and a file "
			"is never written in place",
			c->file);
	else if (S_ISDIR(p.st.stx_mode))
		doctor_add(l, DOCTOR_ERROR, c->name, "remove it, or use dir: for a set of files",
			"%s is a directory", c->file);
	else if (S_ISLNK(p.st.stx_mode))
		doctor_add(l, DOCTOR_WARNING, c->name,
			"name the file that the link leads to, or remove the link",
			"%s is a symlink: the next version replaces the link, and what it led to "
			"stays as it is",
			c->file);
	else if (!S_ISREG(p.st.stx_mode))
		doctor_add(l, DOCTOR_WARNING, c->name, "name another file",
			"%s is no regular file, and will be replaced by one", c->file);
	else if (mode != c->mode || (c->uid != (uid_t)-1 && p.st.stx_uid != c->uid) ||
		 (c->gid != (gid_t)-1 && p.st.stx_gid != c->gid))
		doctor_add(l, DOCTOR_NOTE, c->name,
			"nothing, unless it stays so: the next version is published as configured",
			"%s has not the mode or owner that is configured (it has %04o, uid %u, "
			"gid %u)",
			c->file, mode, p.st.stx_uid, p.st.stx_gid);
}

static void check_published_config(
	struct doctor *d, struct doctor_list *l, const struct settings_config *c)
{
	size_t before = l->count;
	struct doctor_place p;
	char path[4096];
	enum dir dir;

	if (!settings_place(c))
		return;
	if (c->dir)
		snprintf(path, sizeof(path), "%s", c->dir);
	else
		doctor_parent(c->file, path, sizeof(path));
	check_chown_right(d, l, c);
	dir = check_written_dir(d, l, path, c->name, &p);
	if (dir == DIR_MISSING)
		check_missing_dir(d, l, path, c->name);
	if (dir != DIR_THERE)
		return;
	check_publish_dir(l, c->name, path, c->dir, &p);
	if (!(p.st.stx_mode & (S_IWGRP | S_IWOTH)) || p.st.stx_mode & S_ISVTX)
		check_dir_trust(d, l, c->name, path);
	if (c->file)
		check_published_file(d, l, c);
	if (l->count == before && d->who.can_try)
		doctor_add(l, DOCTOR_OK, c->name, NULL,
			"what is published can be replaced in one step");
}

/* ---- a service that does not run yet ---- */

/* Is path the same as, or below, one of the words? */
static bool is_path_below(const char *path, const char *prefix, const char *words)
{
	char list[4096], dir[4200], *rest = list, *word;

	snprintf(list, sizeof(list), "%s", words);
	while ((word = strsep(&rest, " "))) {
		size_t len;

		word += *word == '-' || *word == '+';
		if (!*word)
			continue;
		len = (size_t)snprintf(dir, sizeof(dir), "%s%s", prefix, word);
		if (strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

static bool unit_may_write(const struct doctor_unit *u, const char *path)
{
	bool home = is_path_below(path, "", "/home /root /run/user");

	if (home && u->protect_home[0] && strcmp(u->protect_home, "no") != 0)
		return is_path_below(path, "", u->writable);
	if (strcmp(u->protect_system, "strict") != 0)
		return true;
	return is_path_below(path, "", u->writable) ||
	       is_path_below(path, "/run/", u->runtime_dirs) ||
	       is_path_below(path, "/var/lib/", u->state_dirs) ||
	       is_path_below(path, "", "/dev /proc /sys") ||
	       (u->private_tmp && is_path_below(path, "", "/tmp /var/tmp"));
}

static void check_sandbox(
	struct doctor *d, struct doctor_list *l, const char *subject, const char *path)
{
	const struct doctor_unit *u = &d->unit;

	if (!path || !u->applies || d->who.root >= 0)
		return;
	if (!unit_may_write(u, path))
		doctor_add(l, DOCTOR_ERROR, subject,
			"systemctl edit pullet: [Service] ReadWritePaths= with its directory",
			"the service may not write at %s (ProtectSystem=%s, ProtectHome=%s)", path,
			u->protect_system, u->protect_home);
	else if (u->private_tmp && is_path_below(path, "", "/tmp /var/tmp"))
		doctor_add(l, DOCTOR_ERROR, subject, "publish outside of /tmp",
			"%s lies in the service's own /tmp (PrivateTmp): nobody else sees it",
			path);
}

/* ---- one file by two paths ---- */

static void ignore_error(void *arg, const char *message)
{
	(void)arg, (void)message;
}

/* "file:line:column: what is wrong", its place as the subject. */
static void add_twin(void *arg, const char *message)
{
	const char *end = strstr(message, ": ");
	char place[512];

	if (!end)
		return;
	snprintf(place, sizeof(place), "%.*s", (int)(end - message), message);
	doctor_add(arg, DOCTOR_ERROR, place, NULL, "%s", end + 2);
}

/* Asks who reads the configuration: that looks at directories, too. */
static void check_twins(const struct doctor *d, struct doctor_list *l)
{
	const struct settings_reading how = {.report = ignore_error, .twins = add_twin, .arg = l};
	struct settings *again = NULL;

	if (settings_load_with(d->path, &how, &again) == 0)
		settings_free(again);
}

/* ---- all of them ---- */

static void check_agent_files(struct doctor *d, struct doctor_list *l)
{
	check_state_dir(d, l);
	doctor_configuration_rights(d, l);
	check_runtime_dir(d, l);
	if (d->settings)
		check_operators_reach(d, l);
	check_socket_owner(d, l);
	check_sandbox(d, l, "state_dir", d->state_dir);
	check_sandbox(d, l, "runtime_dir", d->runtime_dir);
}

void doctor_files(struct doctor *d, struct doctor_list *l)
{
	const struct settings *s = d->settings;

	if (!s && !d->bad_settings) /* not to be read: nor is what it names */
		return;
	doctor_add(l, d->who.can_try ? DOCTOR_OK : DOCTOR_NOTE, d->who.name,
		d->who.can_try ? NULL : DOCTOR_HELP_US,
		d->who.can_try ? "files are looked at with the rights of this user, %s"
			       : "you cannot try what this user may, %s; only what is plain to "
				 "see was looked at",
		d->who.how);
	if (d->who.other_view)
		doctor_add(l, DOCTOR_NOTE, d->who.name, "run this as root",
			"whether the agent sees the same file system as you do cannot be seen; "
			"what "
			"follows is of yours");
	if (s)
		doctor_needed_files(d, l);
	if (!d->only)
		check_agent_files(d, l);
	for (size_t i = 0; s && i < s->config_count; i++) {
		const struct settings_config *c = s->configs[i];

		if (!doctor_is_selected(d, c))
			continue;
		check_published_config(d, l, c);
		check_config_state(d, l, c);
		check_sandbox(d, l, c->name, settings_place(c));
	}
	if (s && !d->only)
		check_twins(d, l);
}

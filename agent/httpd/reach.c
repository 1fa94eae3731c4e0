/* Members of a group, and the parts of a path that each may enter. Surprising: a user is not listed
 * in /etc/group under its primary group, so all users are read. */
#include "httpd/reach.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct place { /* where the agent listens */
	char dir[PATH_MAX], socket[PATH_MAX + 16];
	gid_t group;     /* of the socket */
	struct stat sun; /* of the socket, or what it will be */
	struct stat own; /* of the directory, the same */
};

struct search {
	const struct place *place;
	gid_t operators;
	size_t members;
	bool reached;
	char name[64], blocked[PATH_MAX + 16]; /* the first who does not, and where */
};

static void describe_group(gid_t gid, char ret_text[64])
{
	const struct group *g = getgrgid(gid);

	if (g)
		snprintf(ret_text, 64, "%.63s", g->gr_name);
	else
		snprintf(ret_text, 64, "%u", (unsigned)gid);
}

/* False: there is none yet, and its future owner is unknown. */
static bool find_socket_place(struct place *p, const char *runtime_dir, gid_t agent)
{
	bool made;

	snprintf(p->dir, sizeof(p->dir), "%s", runtime_dir);
	snprintf(p->socket, sizeof(p->socket), "%s/control.sock", p->dir);
	made = stat(p->dir, &p->own) == 0;
	if (!made)
		p->own = (struct stat){.st_mode = 0750, .st_uid = (uid_t)-1, .st_gid = agent};
	if (agent == (gid_t)-1 || p->own.st_mode & S_ISGID)
		agent = p->own.st_gid;
	if (stat(p->socket, &p->sun))
		p->sun = (struct stat){.st_mode = 0660, .st_uid = (uid_t)-1, .st_gid = agent};
	p->group = p->sun.st_gid;
	return made || agent != (gid_t)-1;
}

/* By the one class of the mode that counts for that user. */
static bool mode_allows(
	const struct stat *st, unsigned bit, uid_t uid, const gid_t *groups, int count)
{
	if (st->st_uid == uid)
		return st->st_mode & bit << 6;
	for (int i = 0; i < count; i++)
		if (groups[i] == st->st_gid)
			return st->st_mode & bit << 3;
	return st->st_mode & bit;
}

/* Returns the first part of the path that blocks this user, in ret; NULL = none. */
static const char *find_obstacle(
	const struct place *p, uid_t uid, const gid_t *groups, int count, char ret[PATH_MAX + 16])
{
	struct stat st;

	if (uid == 0)
		return NULL;
	for (size_t i = 1; p->dir[i]; i++) {
		if (p->dir[i] != '/')
			continue;
		snprintf(ret, PATH_MAX + 16, "%.*s", (int)i, p->dir);
		if (stat(ret, &st) == 0 && !mode_allows(&st, S_IXOTH, uid, groups, count))
			return ret;
	}
	snprintf(ret, PATH_MAX + 16, "%s", p->dir);
	if (!mode_allows(&p->own, S_IXOTH, uid, groups, count))
		return ret;
	snprintf(ret, PATH_MAX + 16, "%s", p->socket);
	return mode_allows(&p->sun, S_IWOTH, uid, groups, count) ? NULL : ret;
}

static void try_member(struct search *s, const char *name, uid_t uid, gid_t primary)
{
	gid_t groups[REACH_GROUPS];
	int count = REACH_GROUPS;
	char where[PATH_MAX + 16];

	if (getgrouplist(name, primary, groups, &count) < 0)
		count = REACH_GROUPS;
	s->members++;
	if (!find_obstacle(s->place, uid, groups, count, where)) {
		s->reached = true;
	} else if (!s->name[0]) {
		snprintf(s->name, sizeof(s->name), "%.63s", name);
		snprintf(s->blocked, sizeof(s->blocked), "%s", where);
	}
}

/* The group's own list, and users whose primary group it is. */
static void try_members(struct search *s)
{
	const struct group *g = getgrgid(s->operators);
	const struct passwd *p;

	for (size_t i = 0; g && !s->reached && g->gr_mem[i]; i++)
		if ((p = getpwnam(g->gr_mem[i])))
			try_member(s, p->pw_name, p->pw_uid, p->pw_gid);
	setpwent();
	while (!s->reached && (p = getpwent()))
		if (p->pw_gid == s->operators)
			try_member(s, p->pw_name, p->pw_uid, p->pw_gid);
	endpwent();
}

enum reach reach_check(gid_t operators, const char *runtime_dir, gid_t agent,
	char ret_why[REACH_TEXT], char ret_remedy[REACH_TEXT])
{
	struct place place = {.group = agent};
	struct search s = {.place = &place, .operators = operators};
	char group[64], readers[64];
	bool known = find_socket_place(&place, runtime_dir, agent);

	describe_group(operators, group);
	describe_group(place.group, readers);
	if (operators == place.group && operators != 0) {
		snprintf(ret_why, REACH_TEXT,
			"the group %s is that of the control socket too: its readers may "
			"change things and see values",
			group);
		snprintf(ret_remedy, REACH_TEXT,
			"name a group of its own, whose members are in %s as well", readers);
		return REACH_READERS;
	}
	try_members(&s);
	if (s.members == 0) {
		snprintf(ret_why, REACH_TEXT, "nobody is a member of the group %s", group);
		snprintf(ret_remedy, REACH_TEXT, "usermod -aG %s%s%s USER", group, known ? "," : "",
			known ? readers : "");
		return REACH_EMPTY;
	}
	if (s.reached || !known)
		return REACH_GOOD;
	snprintf(ret_why, REACH_TEXT,
		"no member of the group %s can open the control socket: %s is stopped at %.300s",
		group, s.name, s.blocked);
	snprintf(ret_remedy, REACH_TEXT, "usermod -aG %s %s", readers, s.name);
	return REACH_NOBODY;
}

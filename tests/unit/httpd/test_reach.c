/*
 * Who of the operators' group gets at the control socket, on a host whose users, groups and modes
 * are those below: the C library's look-ups are defined here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "httpd/reach.h"

enum { ROOT = 0, STAFF = 50, PULLET = 900, OPS = 901 };

/* ---- the host ---- */

static char *ops_members[4];
static struct group groups[] = {
	{.gr_gid = PULLET}, {.gr_gid = OPS, .gr_mem = ops_members}, {.gr_gid = STAFF}};
static struct passwd users[3];
static size_t user_count, next_user;
static gid_t second_group; /* of every user, beside the primary one; 0 = none */
static bool in_many;       /* more groups than are looked at: the last of those is the second one */

static struct {
	const char *path;
	struct stat st;
} places[4];
static size_t place_count;

static char *as_name(const char *text)
{
	static char kept[16][32];
	static size_t n;
	char *to = kept[n++ % 16];

	snprintf(to, sizeof(kept[0]), "%s", text);
	return to;
}

struct group *getgrgid(gid_t gid)
{
	static char *nobody[1];

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (groups[i].gr_gid != gid)
			continue;
		groups[i].gr_name = as_name(gid == PULLET ? "pullet"
					    : gid == OPS  ? "ops"
							  : "staff");
		groups[i].gr_mem = groups[i].gr_mem ? groups[i].gr_mem : nobody;
		return &groups[i];
	}
	return NULL;
}

struct passwd *getpwnam(const char *name)
{
	for (size_t i = 0; i < user_count; i++)
		if (strcmp(users[i].pw_name, name) == 0)
			return &users[i];
	return NULL;
}

void setpwent(void)
{
	next_user = 0;
}

struct passwd *getpwent(void)
{
	return next_user < user_count ? &users[next_user++] : NULL;
}

void endpwent(void)
{
}

int getgrouplist(const char *user, gid_t group, gid_t *ret_groups, int *count)
{
	(void)user;
	assert_true(*count >= 2);
	for (int i = 0; in_many && i < *count; i++)
		ret_groups[i] = i == *count - 1 ? second_group : STAFF;
	if (in_many) {
		*count = 1 << 24; /* which nobody has room for */
		return -1;
	}
	ret_groups[0] = group;
	ret_groups[1] = second_group;
	return *count = second_group ? 2 : 1;
}

int stat(const char *path, struct stat *ret)
{
	for (size_t i = 0; i < place_count; i++) {
		if (strcmp(places[i].path, path) != 0)
			continue;
		*ret = places[i].st;
		return 0;
	}
	errno = ENOENT;
	return -1;
}

static int set_up(void **state)
{
	(void)state;
	memset(ops_members, 0, sizeof(ops_members));
	user_count = place_count = 0;
	second_group = 0;
	in_many = false;
	return 0;
}

static void add_user(const char *name, uid_t uid, gid_t primary)
{
	users[user_count++] =
		(struct passwd){.pw_name = as_name(name), .pw_uid = uid, .pw_gid = primary};
}

static void add_place(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	places[place_count].path = path;
	places[place_count++].st = (struct stat){.st_mode = mode, .st_uid = uid, .st_gid = gid};
}

static char why[REACH_TEXT], remedy[REACH_TEXT];

static enum reach reach_of(gid_t operators, gid_t agent)
{
	why[0] = remedy[0] = '\0';
	return reach_check(operators, "/run/pullet", agent, why, remedy);
}

/* ---- cases ---- */

static void group__without_members__is_empty(void **state)
{
	(void)state;
	add_user("anna", 1001, STAFF);
	assert_int_equal(reach_of(OPS, PULLET), REACH_EMPTY);
	assert_string_equal(why, "nobody is a member of the group ops");
	assert_string_equal(remedy, "usermod -aG ops,pullet USER");
	assert_int_equal(reach_of(OPS, (gid_t)-1), REACH_EMPTY);
	assert_string_equal(remedy, "usermod -aG ops USER");
	assert_int_equal(reach_of(777, PULLET), REACH_EMPTY); /* not in the database */
	assert_string_equal(why, "nobody is a member of the group 777");
}

static void group__of_the_socket_itself__lets_readers_change(void **state)
{
	(void)state;
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, OPS);
	assert_int_equal(reach_of(OPS, PULLET), REACH_READERS);
	assert_string_equal(why, "the group ops is that of the control socket too: its readers may "
				 "change things and see values");
	assert_string_equal(remedy, "name a group of its own, whose members are in ops as well");
}

static void member__of_both_groups__reaches_it(void **state)
{
	(void)state;
	ops_members[0] = as_name("gone"); /* listed, but not a user any more */
	ops_members[1] = as_name("anna");
	add_user("anna", 1001, STAFF);
	add_place("/run", 0755, ROOT, ROOT);
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_string_equal(why, "no member of the group ops can open the control socket: anna is "
				 "stopped at /run/pullet");
	assert_string_equal(remedy, "usermod -aG pullet anna");
	second_group = PULLET;
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
}

static void member__by_its_primary_group__counts(void **state)
{
	(void)state;
	add_user("anna", 1001, STAFF);
	add_user("ben", 1002, OPS);
	second_group = PULLET;
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
	second_group = 0;
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_non_null(strstr(why, "ben is stopped at"));
}

static void each_part_of_the_path__may_stop_a_member(void **state)
{
	(void)state;
	add_user("ben", 1002, OPS);
	second_group = PULLET;
	add_place("/run", 0700, ROOT, ROOT);
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0600, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_non_null(strstr(why, "ben is stopped at /run"));
	assert_null(strstr(why, "/run/"));
	places[0].st.st_mode = 0711;
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_non_null(strstr(why, "ben is stopped at /run/pullet/control.sock"));
	places[2].st.st_mode = 0606; /* the class of the group counts, not that of others */
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	places[2].st.st_uid = 1002;
	assert_int_equal(
		reach_of(OPS, PULLET), REACH_GOOD); /* nor is the group asked for an owner */
}

/* Of owner, group and others one class counts, by its own bits; those of the others do not. */
static void rights__are_those_of_the_members_class(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		mode_t opens, dir_blocks, socket_blocks;
	} rows[] = {{1002, PULLET, 0100, 0677, 0577}, {ROOT, OPS, 0010, 0767, 0757},
		{ROOT, PULLET, 0001, 0776, 0775}};

	(void)state;
	add_user("ben", 1002, OPS);
	add_place("/run/pullet", 0, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0, ROOT, PULLET);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		places[0].st.st_uid = rows[i].uid;
		places[0].st.st_gid = rows[i].gid;
		places[0].st.st_mode = rows[i].opens;
		places[1].st.st_mode = 0666;
		assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
		places[0].st.st_mode = rows[i].dir_blocks;
		assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
		assert_string_equal(strrchr(why, ' '), " /run/pullet");
	}
	places[0].st = (struct stat){.st_mode = 0755};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].gid == OPS)
			continue; /* it is the readers' group then */
		places[1].st.st_uid = rows[i].uid;
		places[1].st.st_mode = rows[i].opens << 1;
		assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
		places[1].st.st_mode = rows[i].socket_blocks;
		assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
		assert_string_equal(strrchr(why, ' '), " /run/pullet/control.sock");
	}
}

static void directory__that_is_not_there__is_as_the_agent_would_make_it(void **state)
{
	(void)state;
	add_user("ben", 1002, OPS);
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY); /* 0750, of the agent's group */
	assert_string_equal(strrchr(why, ' '), " /run/pullet");
	assert_int_equal(reach_of(OPS, (gid_t)-1), REACH_GOOD); /* nobody knows its group yet */
	second_group = PULLET;
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
}

static void directory__that_hands_on_its_group__decides_the_sockets(void **state)
{
	(void)state;
	add_user("ben", 1002, OPS);
	second_group = STAFF;
	add_place("/run/pullet", 02750, ROOT, STAFF); /* the socket is not there yet */
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
	places[0].st.st_mode = 0755;
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_non_null(strstr(why, "stopped at /run/pullet/control.sock"));
}

static void socket__of_an_agent_that_is_not_known__has_the_group_of_its_directory(void **state)
{
	(void)state;
	add_user("ben", 1002, OPS);
	add_place("/run/pullet", 0755, ROOT, STAFF);
	assert_int_equal(reach_of(OPS, (gid_t)-1), REACH_NOBODY);
	assert_string_equal(why, "no member of the group ops can open the control socket: ben is "
				 "stopped at /run/pullet/control.sock");
	assert_string_equal(remedy, "usermod -aG staff ben");
	second_group = STAFF;
	assert_int_equal(reach_of(OPS, (gid_t)-1), REACH_GOOD);
	assert_int_equal(reach_of(STAFF, (gid_t)-1), REACH_READERS);
}

static void first_member__that_is_stopped__is_named(void **state)
{
	(void)state;
	ops_members[0] = as_name("anna");
	ops_members[1] = as_name("ben");
	add_user("ben", 1002, OPS);
	add_user("anna", 1001, STAFF);
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	assert_non_null(strstr(why, ": anna is stopped at /run/pullet"));
	/* the last one is enough */
	places[0].st.st_uid = places[1].st.st_uid = 1002;
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
	assert_string_equal(why, "");
	assert_string_equal(remedy, "");
}

static void member__of_more_groups_than_are_looked_at__has_the_first_256(void **state)
{
	(void)state;
	in_many = true;
	add_user("ben", 1002, OPS);
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_NOBODY);
	second_group = PULLET;
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
}

static void directory__of_which_another_name_begins_so__does_not_stop_a_member(void **state)
{
	(void)state;
	add_user("ben", 1002, OPS);
	second_group = PULLET;
	add_place("/ru", 0700, ROOT, ROOT);
	add_place("/run/pullet", 0750, ROOT, PULLET);
	add_place("/run/pullet/control.sock", 0660, ROOT, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
}

static void root__is_stopped_nowhere(void **state)
{
	(void)state;
	add_user("root", 0, OPS);
	add_place("/run/pullet", 0750, 1002, PULLET);
	add_place("/run/pullet/control.sock", 0660, 1002, PULLET);
	assert_int_equal(reach_of(OPS, PULLET), REACH_GOOD);
}

static void group__of_root__is_no_group_of_readers(void **state)
{
	(void)state;
	add_user("root", 0, ROOT);
	add_place("/run/pullet", 0750, ROOT, ROOT);
	add_place("/run/pullet/control.sock", 0660, ROOT, ROOT);
	assert_int_equal(reach_of(ROOT, ROOT), REACH_GOOD);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(group__without_members__is_empty),
		CASE(group__of_the_socket_itself__lets_readers_change),
		CASE(member__of_both_groups__reaches_it),
		CASE(member__by_its_primary_group__counts),
		CASE(each_part_of_the_path__may_stop_a_member),
		CASE(rights__are_those_of_the_members_class),
		CASE(directory__that_is_not_there__is_as_the_agent_would_make_it),
		CASE(socket__of_an_agent_that_is_not_known__has_the_group_of_its_directory),
		CASE(first_member__that_is_stopped__is_named),
		CASE(member__of_more_groups_than_are_looked_at__has_the_first_256),
		CASE(directory__of_which_another_name_begins_so__does_not_stop_a_member),
		CASE(root__is_stopped_nowhere),
		CASE(group__of_root__is_no_group_of_readers),
		CASE(directory__that_hands_on_its_group__decides_the_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

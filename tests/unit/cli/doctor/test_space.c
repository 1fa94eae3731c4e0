/* `pullet doctor`, the files: places that a test cannot make: without room, read-only; and whether
 * operators reach the control socket. The file is compiled in here, with places that are played. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/doctor/doctor.h"
#include "httpd/reach.h"

struct doctor_place;
static int played_stat_path(struct doctor *d, struct doctor_list *l, const char *path, bool follow,
	struct doctor_place *ret_place);
static enum reach played_reach(gid_t operators, const char *runtime_dir, gid_t agent,
	char ret_why[REACH_TEXT], char ret_remedy[REACH_TEXT]);

#define doctor_stat_path played_stat_path
#define reach_check played_reach
#include "cli/doctor/files.c"
#undef doctor_stat_path
#undef reach_check

#include "tests/unit/fixture/examined.h"

static struct doctor_place place;
static int stat_error;

static int played_stat_path(struct doctor *d, struct doctor_list *l, const char *path, bool follow,
	struct doctor_place *ret_place)
{
	(void)d, (void)l, (void)path, (void)follow;
	*ret_place = place;
	return stat_error;
}

static enum reach reached;

static enum reach played_reach(gid_t operators, const char *runtime_dir, gid_t agent,
	char ret_why[REACH_TEXT], char ret_remedy[REACH_TEXT])
{
	assert_int_equal(operators, 77);
	assert_string_equal(runtime_dir, in_dir("@/run"));
	snprintf(ret_why, REACH_TEXT, "why, agent %d", (int)agent);
	snprintf(ret_remedy, REACH_TEXT, "remedy");
	return reached;
}

static int set_up(void **state)
{
	examined_set_up(state);
	place = (struct doctor_place){.bytes = 0};
	stat_error = 0;
	return 0;
}

static void room__that_is_short__is_said_by_bytes_and_by_files(void **state)
{
	static const struct {
		uint64_t bytes, bytes_free, files, files_free;
		const char *expected;
	} rows[] = {
		{0, 0, 0, 0, ""}, /* not known */
		{1u << 30, 30u << 20, 1000, 16, ""},
		{1u << 30, 4095, 1000, 16,
			"error /p: the file system is full: 4095 bytes are free -> make room: "
			"until "
			"then the old version stays\n"},
		{1u << 30, 4096, 1000, 16,
			"warning /p: the file system is nearly full: 4 KiB are free -> make room: "
			"the old version stays where a new one does not fit\n"},
		{1u << 30, (1u << 20) - 1, 1000, 16,
			"warning /p: the file system is nearly full: 1023 KiB are free -> make "
			"room: the old version stays where a new one does not fit\n"},
		{1u << 30, 1u << 20, 1000, 16,
			"warning /p: the file system is nearly full: 1 of 1024 MiB are free -> "
			"make room\n"},
		{100u << 20, 2u << 20, 1000, 16, ""}, /* a fiftieth */
		{100u << 20, (2u << 20) - 1, 1000, 16,
			"warning /p: the file system is nearly full: 1 of 100 MiB are free -> make "
			"room\n"},
		{1u << 30, 30u << 20, 1000, 15,
			"warning /p: the file system has 15 of 1000 inodes left -> remove files: "
			"each publication needs a new one\n"},
		{1u << 30, 30u << 20, 1000, 0,
			"error /p: the file system has 0 of 1000 inodes left -> remove files: each "
			"publication needs a new one\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		place = (struct doctor_place){.bytes = rows[i].bytes,
			.bytes_free = rows[i].bytes_free,
			.files = rows[i].files,
			.files_free = rows[i].files_free};
		check_free_space("/p", &place, &list);
		assert_string_equal(findings_of(NULL), rows[i].expected);
	}
}

static void directory__that_is_read_only__has_the_remedy_of_its_manager(void **state)
{
	struct doctor_place found;

	(void)state;
	place.st.stx_mode = S_IFDIR | 0700;
	place.read_only = true;
	assert_int_equal(check_written_dir(&doctor, &list, dir, "state_dir", &found), DIR_THERE);
	assert_string_equal(findings_of(NULL),
		in_dir("error @: state_dir: the file system is read-only -> mount it writable (a "
		       "volume without ro), or name another place\n"));
	doctor.unit.applies = true;
	check_written_dir(&doctor, &list, dir, "state_dir", &found);
	assert_string_equal(findings_of(NULL),
		in_dir("error @: state_dir: the file system is read-only for the service -> add it "
		       "to ReadWritePaths= of the service (systemctl edit pullet), or mount it "
		       "writable\n"));
	place.read_only = false;
	check_written_dir(&doctor, &list, dir, "state_dir", &found);
	assert_string_equal(findings_of(NULL), "");
}

static void directory__that_cannot_be_looked_at__is_told_from_one_that_is_none(void **state)
{
	static const struct {
		int error;
		mode_t mode;
		bool can_try;
		int result;
		const char *expected;
	} rows[] = {
		{-ENOENT, 0, true, DIR_MISSING, ""},
		{-EACCES, 0, false, DIR_UNKNOWN,
			"note /p: state_dir: you may not look at it -> " DOCTOR_HELP_US "\n"},
		{-EACCES, 0, true, DIR_UNKNOWN,
			"error /p: state_dir: Permission denied -> make it, or name another one\n"},
		{-EIO, 0, false, DIR_UNKNOWN,
			"error /p: state_dir: Input/output error -> make it, or name another "
			"one\n"},
		{0, S_IFREG, true, DIR_UNKNOWN,
			"error /p: state_dir: it is not a directory -> remove it, or name another "
			"directory\n"},
	};
	struct doctor_place found;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		stat_error = rows[i].error;
		place.st.stx_mode = (uint16_t)rows[i].mode;
		doctor.who.can_try = rows[i].can_try;
		assert_int_equal(check_written_dir(&doctor, &list, "/p", "state_dir", &found),
			rows[i].result);
		assert_string_equal(findings_of(NULL), rows[i].expected);
	}
}

static void operators__that_reach_the_socket_or_not(void **state)
{
	static const struct {
		enum reach reached;
		const char *expected;
	} rows[] = {
		{REACH_GOOD, "ok operators: they can open the control socket\n"},
		{REACH_EMPTY, "note operators: why, agent 5 -> remedy\n"},
		{REACH_READERS, "warning operators: why, agent 5 -> remedy\n"},
		{REACH_NOBODY, "warning operators: why, agent 5 -> remedy\n"},
	};

	(void)state;
	doctor.settings =
		scratch_settings("agent: {state_dir: %s/state, runtime_dir: %s/run}\nconfigs: "
				 "{web: {url: 'http://h/w', file: /run/w}}\n",
			dir, dir);
	check_operators_reach(&doctor, &list);
	assert_string_equal(findings_of(NULL), ""); /* none are named */
	doctor.settings->operators = 77;
	doctor.who.gid = 5;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		reached = rows[i].reached;
		check_operators_reach(&doctor, &list);
		assert_string_equal(findings_of(NULL), rows[i].expected);
	}
	doctor.who.known = false;
	check_operators_reach(&doctor, &list);
	assert_string_equal(findings_of(NULL), "warning operators: why, agent -1 -> remedy\n");
	place.elsewhere = true; /* so are its groups */
	check_operators_reach(&doctor, &list);
	assert_string_equal(findings_of(NULL), "");
	stat_error = -ENOENT;
	check_operators_reach(&doctor, &list);
	assert_string_equal(findings_of(NULL), "warning operators: why, agent -1 -> remedy\n");
	doctor.who.other_view = true;
	check_operators_reach(&doctor, &list);
	assert_string_equal(findings_of(NULL), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(room__that_is_short__is_said_by_bytes_and_by_files),
		CASE(directory__that_is_read_only__has_the_remedy_of_its_manager),
		CASE(directory__that_cannot_be_looked_at__is_told_from_one_that_is_none),
		CASE(operators__that_reach_the_socket_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * `pullet doctor`, the files: all that it finds of a directory whose things have these modes and
 * kinds, for an agent of that user, group and service.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include <linux/fs.h>

#include <cmocka.h>

#include "tests/unit/fixture/examined.h"

static void put_settings(const char *more, const char *configs)
{
	settings_free(doctor.settings);
	doctor.settings =
		scratch_settings("agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
				 "  d: {kind: file, urls: ['file://%s']}\n%sconfigs:\n%s",
			dir, dir, dir, more, configs);
}

/* What is found, of that subject. */
static const char *examine(const char *subject)
{
	doctor_find_dirs(&doctor);
	doctor_files(&doctor, &list);
	return findings_of(subject);
}

/* ---- all of it ---- */

static void everything_in_order__is_good(void **state)
{
	scratch_need_memory();
	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: @/out/web}\n"));
	assert_string_equal(examine(NULL),
		in_dir("ok robot: files are looked at with the rights of this user, who is known\n"
		       "warning @/state: state_dir: it is in memory (tmpfs): after a reboot there "
		       "is no last known good, and without the server no configuration -> name a "
		       "directory on a disk\n"
		       "ok @/run: runtime_dir is as it should be\n"
		       "ok web: what is published can be replaced in one step\n"));
	doctor.only = "web";
	assert_string_equal(examine(NULL),
		"ok robot: files are looked at with the rights of this user, who is known\n"
		"ok web: what is published can be replaced in one step\n");
	doctor.only = "other";
	assert_string_equal(examine(NULL),
		"ok robot: files are looked at with the rights of this user, who is known\n");
}

static void file__of_two_configs_by_two_paths__is_named(void **state)
{
	static const char configs[] = "  a: {url: 'http://127.0.0.1:1/', file: @/out/x}\n"
				      "  b: {url: 'http://127.0.0.1:1/', file: @/link/x}\n";
	char written[2048];

	(void)state;
	assert_int_equal(symlink("out", in_dir("@/link")), 0);
	snprintf(written, sizeof(written), "configs:\n%s", in_dir(configs));
	scratch_write(dir, "p.yaml", written, strlen(written));
	doctor.path = in_dir("@/p.yaml");
	put_settings("", in_dir(configs));
	examine(NULL);
	assert_non_null(strstr(text, in_dir("error @/p.yaml:3:")));
	assert_non_null(strstr(text,
		in_dir("\"@/link/x\" is also written by config \"a\", by another path, at ")));
	doctor.only = "a";
	assert_null(strstr(examine(NULL), "another path"));
}

static void rights__that_cannot_be_tried__are_a_note(void **state)
{
	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: @/out/web}\n"));
	doctor.who.can_try = false;
	doctor.who.other_view = true;
	assert_string_equal(examine("robot"),
		"note robot: you cannot try what this user may, who is known; only what is plain "
		"to see was looked at -> run this as root or as the agent's user\n"
		"note robot: whether the agent sees the same file system as you do cannot be seen; "
		"what follows is of yours -> run this as root\n");
	assert_string_equal(examine("web"), "");
}

/* ---- files that are read ---- */

static void server__has_files__in_the_order_of_a_table(void **state)
{
	static const struct doctor_needed_file expected[] = {{"/bearer", "bearer_file", true},
		{"/password", "password_file", true}, {"/secret", "secret_file", true},
		{"/session", "session_token_file", true}, {"/key", "tls.key", true},
		{"/cert", "tls.cert", false}, {"/ca", "tls.ca", false}, {"/crl", "tls.crl", false},
		{"/header", "a header", true}, {"/last", "a header", true}};
	static char paths[10][16];
	struct settings_header headers[] = {
		{NULL, NULL, paths[8]}, {NULL, paths[0], NULL}, {NULL, NULL, paths[9]}};
	struct settings_server s = {.bearer_file = paths[0],
		.password_file = paths[1],
		.secret_file = paths[2],
		.session_token_file = paths[3],
		.key = paths[4],
		.cert = paths[5],
		.ca = paths[6],
		.crl = paths[7],
		.headers = headers,
		.header_count = 3};
	struct doctor_needed_file found[DOCTOR_NEEDED_FILES];

	(void)state;
	for (size_t i = 0; i < 10; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s", expected[i].path);
	assert_int_equal(doctor_server_files(&s, found), 10);
	for (size_t i = 0; i < 10; i++) {
		assert_string_equal(found[i].path, expected[i].path);
		assert_string_equal(found[i].what, expected[i].what);
		assert_int_equal(found[i].secret, expected[i].secret);
	}
	s = (struct settings_server){.cert = paths[5]};
	assert_int_equal(doctor_server_files(&s, found), 1);
	assert_true(found[0].secret); /* the key is in it */
}

static void file__that_is_read__needs_its_rights(void **state)
{
	static const struct {
		mode_t mode;
		const char *expected;
	} rows[] = {
		{0600, "ok @/token: the agent can read it\n"},
		{0644, "warning @/token: bearer_file: everybody on this host can read it -> chmod "
		       "o-rwx\n"},
		{0602, "warning @/token: bearer_file: everybody on this host can change it -> "
		       "chmod o-rwx\n"},
		{0606, "warning @/token: bearer_file: everybody on this host can change it -> "
		       "chmod o-rwx\n"},
	};

	(void)state;
	assert_int_equal(chmod(dir, 0711), 0); /* else all in it is shielded */
	put_settings(in_dir("  t: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: @/token}}\n"),
		"  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n"
		"  tok: {from: [{server: t, path: /w.yaml}], snapshot: true}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_file("token", rows[i].mode);
		assert_string_equal(examine(in_dir("@/token")), in_dir(rows[i].expected));
	}
	assert_int_equal(chmod(dir, 0700), 0);
	assert_string_equal(
		examine(in_dir("@/token")), in_dir("ok @/token: the agent can read it\n"));
	doctor.only = "web";
	assert_string_equal(examine(in_dir("@/token")), "");
	doctor.only = "tok";
	assert_string_equal(
		examine(in_dir("@/token")), in_dir("ok @/token: the agent can read it\n"));
	assert_int_equal(unlink(in_dir("@/token")), 0);
	assert_string_equal(examine(in_dir("@/token")),
		in_dir("error @/token: bearer_file: No such file or directory -> make it, or name "
		       "another one\n"));
}

static void file__that_the_agent_may_not_read__is_an_error(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_settings(in_dir("  t: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: @/token}}\n"),
		"  web: {from: [{server: t, path: /w.yaml}], snapshot: true}\n");
	put_file("token", 0640);
	assert_int_equal(chmod(dir, 0711), 0);
	doctor.who.uid = doctor.who.gid = OTHER;
	doctor.who.capabilities = 0;
	assert_string_equal(examine(in_dir("@/token")),
		in_dir("error @/token: bearer_file: robot may not read it: Permission denied -> "
		       "give it to root and a group that only the agent has, with mode 0640\n"));
	doctor.who.groups[0] = 0;
	doctor.who.group_count = 1;
	assert_string_equal(
		examine(in_dir("@/token")), in_dir("ok @/token: the agent can read it\n"));
	doctor.who.group_count = 0;
	doctor.who.capabilities = ROOT_RIGHTS;
	assert_string_equal(
		examine(in_dir("@/token")), in_dir("ok @/token: the agent can read it\n"));
	assert_int_equal(geteuid(), 0);
	assert_int_equal(access(in_dir("@/token"), R_OK), 0);
}

static void file__that_we_may_not_look_at__is_a_note(void **state)
{
	const uid_t before = geteuid();

	(void)state;
	put_settings(in_dir("  t: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: @/token}}\n"),
		in_dir("  web: {from: [{server: t, path: /w.yaml}], file: @/out/web}\n"));
	put_file("token", 0600);
	doctor.who.can_try = false;
	if (before == 0)
		assert_int_equal(seteuid(OTHER), 0);
	else
		assert_int_equal(chmod(dir, 0), 0);
	doctor_find_dirs(&doctor);
	doctor_files(&doctor, &list);
	if (before == 0)
		assert_int_equal(seteuid(before), 0);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_string_equal(findings_of(NULL),
		in_dir("note robot: you cannot try what this user may, who is known; only what is "
		       "plain to see was looked at -> run this as root or as the agent's user\n"
		       "note @/token: bearer_file: you may not look at it -> run this as root or "
		       "as the agent's user\n"
		       "note @/state: state_dir: you may not look at it -> run this as root or as "
		       "the agent's user\n"
		       "note @/run: runtime_dir: you may not look at it -> run this as root or as "
		       "the agent's user\n"
		       "note @/out: web: you may not look at it -> run this as root or as the "
		       "agent's user\n"));
}

static void schema_and_push_key__are_files_that_are_read(void **state)
{
	(void)state;
	put_settings(in_dir("push:\n- {endpoint: 'ipc://@/push', curve: "
			    "{server_key: '0000000000000000000000000000000000000000', "
			    "secret_key_file: @/push-key}}\n"),
		in_dir("  web: {from: [{server: d, path: /w.yaml}], type: yaml, snapshot: true, "
		       "schema: @/schema}\n"
		       "  set: {from: [{server: d, path: /w.yaml}], type: yaml, snapshot: true, "
		       "schema: @/schema, schema_dir: @/schemas}\n"));
	assert_string_equal(examine(in_dir("@/push-key")),
		in_dir("error @/push-key: secret_key_file: No such file or directory -> make it, "
		       "or name another one\n"));
	assert_string_equal(examine(in_dir("@/schema")),
		in_dir("error @/schema: schema: No such file or directory -> make it, or name "
		       "another one\n"));
	assert_string_equal(examine(in_dir("@/schemas")),
		in_dir("error @/schemas: schema_dir: No such file or directory -> make it, or "
		       "name another one\n"));
	doctor.only = "web";
	assert_string_equal(examine(in_dir("@/schemas")), "");
	put_file("schema", 0644);
	assert_int_equal(chmod(dir, 0711), 0);
	assert_string_equal(
		examine(in_dir("@/schema")), in_dir("ok @/schema: the agent can read it\n"));
}

/* ---- its own directories ---- */

static void directory_of_its_own__has_a_mode(void **state)
{
	static const struct {
		mode_t state_mode, run_mode;
		const char *found_of_state, *found_of_run;
	} rows[] = {
		{0700, 0755, "", "ok @/run: runtime_dir is as it should be\n"},
		{0744, 0700,
			"note @/state: state_dir: everybody can list it; what is in it only the "
			"agent can read -> chmod 0700\n",
			"ok @/run: runtime_dir is as it should be\n"},
		{0707, 0702,
			"error @/state: state_dir: everybody can write in it, and so choose what "
			"is published -> chmod 0700\n",
			"error @/run: runtime_dir: everybody can write in it, and replace "
			"snapshots -> chmod 0750\n"},
	};

	scratch_need_memory();
	(void)state;
	put_settings("", "  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char expected[1024];

		assert_int_equal(chmod(in_dir("@/state"), rows[i].state_mode), 0);
		assert_int_equal(chmod(in_dir("@/run"), rows[i].run_mode), 0);
		snprintf(expected, sizeof(expected), "%s%s", rows[i].found_of_state,
			"warning @/state: state_dir: it is in memory (tmpfs): after a reboot there "
			"is no last known good, and without the server no configuration -> name a "
			"directory on a disk\n");
		assert_string_equal(examine(in_dir("@/state")), in_dir(expected));
		assert_string_equal(examine(in_dir("@/run")), in_dir(rows[i].found_of_run));
	}
}

static void directory_of_its_own__that_others_can_change__is_refused(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_settings("", "  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n");
	assert_int_equal(chmod(in_dir("@/run"), 0770), 0);
	assert_string_not_equal(examine(in_dir("@/run")), "");
	for (unsigned i = 0; i < 3; i++) {
		doctor.who.running = i == 1;
		doctor.unit.applies = i == 2;
		doctor_find_dirs(&doctor);
		doctor_files(&doctor, &list);
		assert_int_equal(
			strncmp(findings_of(in_dir("@/run")), i ? "error " : "warning ", 6), 0);
		assert_non_null(strstr(text, "/run: the agent will say: "));
		assert_non_null(strstr(text,
			" -> give it to root (chown) and chmod go-w, name another one, or run the "
			"agent as a user of its own\n"));
	}
	doctor.who.known = false;
	assert_null(strstr(examine(in_dir("@/run")), "the agent will say"));
}

static void directory_of_its_own__that_is_none__is_an_error(void **state)
{
	(void)state;
	put_settings("", "  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n");
	assert_int_equal(rmdir(in_dir("@/state")), 0);
	assert_int_equal(rmdir(in_dir("@/run")), 0);
	assert_string_equal(examine(in_dir("@/state")),
		in_dir("note @/state: state_dir: it is not there; the agent makes it\n"));
	put_file("state", 0600);
	assert_string_equal(examine(in_dir("@/state")),
		in_dir("error @/state: state_dir: it is not a directory -> remove it, or name "
		       "another directory\n"));
	settings_free(doctor.settings);
	doctor.settings = scratch_settings(
		"agent: {state_dir: %s/state/below, runtime_dir: %s/no/where}\nconfigs:\n  web: "
		"{url: 'http://127.0.0.1:1/w.yaml', snapshot: true}\n",
		dir, dir);
	assert_string_equal(examine(in_dir("@/state/below")),
		in_dir("error @/state/below: state_dir: Not a directory -> make it, or name "
		       "another one\n"));
	assert_string_equal(examine(in_dir("@/no/where")),
		in_dir("error @/no/where: runtime_dir: it is not there, nor is the directory it "
		       "would lie in -> make it, with the agent's user as its owner\n"));
	assert_int_equal(symlink("/nowhere/at/all", in_dir("@/no")), 0);
	assert_non_null(strstr(examine(in_dir("@/no/where")), "nor is the directory it would lie"));
}

static void directory__that_the_agent_may_not_use__is_an_error(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: @/out/web}\n"));
	assert_int_equal(chmod(dir, 0711), 0);
	assert_int_equal(chmod(in_dir("@/run"), 0711), 0);
	doctor.who.uid = doctor.who.gid = OTHER;
	doctor.who.capabilities = 0;
	assert_non_null(strstr(examine(in_dir("@/run")),
		in_dir("error @/run: runtime_dir: robot may not write in it: Permission denied -> "
		       "give it to the agent's user (chown), or name another directory\n"
		       "error @/run: runtime_dir: it belongs to uid 0, the agent is robot -> "
		       "chown -R it to the agent's user: an agent may have run as another one "
		       "once\n")));
	assert_string_equal(examine(in_dir("@/out")),
		in_dir("error @/out: web: robot may not write in it: Permission denied -> give it "
		       "to the agent's user (chown), or name another directory\n"));
	assert_int_equal(rmdir(in_dir("@/run")), 0);
	assert_string_equal(examine(in_dir("@/run")),
		in_dir("error @/run: runtime_dir: it is not there, and robot may not make it: "
		       "Permission denied -> make it, with the agent's user as its owner\n"));
	doctor.who.known = false;
	assert_null(strstr(examine(in_dir("@/state")), "it belongs to uid"));
}

static void state_of_a_config__of_another_user__is_an_error(void **state)
{
	char name[SCRATCH_PATH + 64];

	(void)state;
	put_settings("", "  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n");
	put_file("state/web", 0600);
	put_file("run/control.sock", 0600);
	snprintf(name, sizeof(name), "%s/state/web", dir);
	assert_string_equal(examine(name), "");
	assert_string_equal(examine(doctor.socket_path), "");
	doctor.who.uid = OTHER;
	doctor.who.can_try = false;
	snprintf(text, sizeof(text), "state of a config: it belongs to uid %u, the agent is robot",
		geteuid());
	doctor_find_dirs(&doctor);
	doctor_files(&doctor, &list);
	assert_true(list.count > 0);
	findings_of(name);
	assert_non_null(strstr(text, "error "));
	assert_non_null(strstr(text, ": state of a config: it belongs to uid "));
	assert_non_null(strstr(text, ", the agent is robot -> chown -R it to the agent's user"));
	examine(doctor.socket_path);
	assert_non_null(strstr(text, ": it was left by another user (uid "));
	assert_non_null(
		strstr(text, "): robot cannot listen there -> remove it, if no agent runs\n"));
	doctor.who.running = true;
	assert_string_equal(examine(doctor.socket_path), "");
	doctor.who.running = false;
	doctor.who.known = false;
	assert_string_equal(examine(doctor.socket_path), "");
	doctor.who.known = true;
	if (!we_are_root())
		return;
	assert_int_equal(lchown(doctor.socket_path, OTHER, OTHER), 0);
	doctor.who.uid = 0; /* who can remove it */
	examine(doctor.socket_path);
	assert_null(strstr(text, ": it was left by another user (uid "));
	doctor.who.known = true;
	assert_int_equal(unlink(doctor.socket_path), 0);
	assert_string_equal(examine(doctor.socket_path), "");
}

/* ---- what is published ---- */

static void owner__that_the_agent_cannot_give__is_an_error(void **state)
{
	static const char other_user[] =
		"error web: owner: robot cannot give a file to another user -> name only a group "
		"(owner: :GROUP) that the agent is in, or leave owner out\n";
	static const char other_group[] =
		"error web: owner: robot cannot give a file to a group that it is not in -> put "
		"the agent's user into that group (usermod -aG), and restart it\n";
	static const struct {
		const char *owner;
		uint64_t capabilities;
		const char *expected;
	} rows[] = {
		{"'54321'", 0, ""},
		{"'54321:54322'", 0, ""},
		{"':54323'", 0, ""},
		{"':54324'", 0, ""},
		{"':54325'", 0, other_group},
		{"'54322'", 0, other_user},
		{"'54322:54325'", 0, other_user},
		{"'54322:54325'", 1, ""},
		{"'54322:54325'", 2, other_user},
	};

	(void)state;
	if (!we_are_root())
		skip();
	doctor.who.uid = 54321;
	doctor.who.gid = 54322;
	doctor.who.groups[0] = 54323;
	doctor.who.groups[1] = 54324;
	doctor.who.group_count = 2;
	doctor.who.can_try = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char configs[1024];

		snprintf(configs, sizeof(configs),
			"  web: {from: [{server: d, path: /w.yaml}], file: %s/out/w, owner: %s}\n",
			dir, rows[i].owner);
		put_settings("", configs);
		doctor.who.capabilities = rows[i].capabilities;
		assert_string_equal(examine("web"), rows[i].expected);
	}
	doctor.who.known = false;
	assert_string_equal(examine("web"), "");
}

static void place__that_others_can_write__is_refused(void **state)
{
	static const char refused[] =
		"error web: group or others can write in @/out, and replace what is published: the "
		"agent refuses it -> chmod go-w\n";
	static const char good[] = "ok web: what is published can be replaced in one step\n";
	static const struct {
		const char *key;
		mode_t mode;
		const char *expected;
	} rows[] = {
		{"file: @/out/w", 0755, good},
		{"file: @/out/w", 0775, refused},
		{"file: @/out/w", 0757, refused},
		{"file: @/out/w", 01777, good},
		{"dir: @/out", 0755, good},
		{"dir: @/out", 01777, refused},
	};

	(void)state;
	doctor.who.known = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char configs[1024];

		snprintf(configs, sizeof(configs),
			"  web: {from: [{server: d, path: /w.yaml%s}], %s}\n",
			rows[i].key[0] == 'd' ? ", as: w.yaml" : "", in_dir(rows[i].key));
		put_settings("", configs);
		assert_int_equal(chmod(in_dir("@/out"), rows[i].mode), 0);
		assert_string_equal(examine("web"), in_dir(rows[i].expected));
	}
}

static void place__that_is_none__is_an_error(void **state)
{
	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: @/made/w}\n"
				"  set: {from: [{server: d, path: /w.yaml, as: w.yaml}], dir: "
				"@/token}\n"
				"  app: {from: [{server: d, path: /w.yaml}], snapshot: true}\n"));
	put_file("token", 0600);
	assert_string_equal(examine(in_dir("@/made")),
		in_dir("note @/made: web: it is not there; the agent makes it\n"));
	assert_string_equal(examine(in_dir("@/token")),
		in_dir("error @/token: set: it is not a directory -> remove it, or name another "
		       "directory\n"));
	assert_string_equal(examine("app"), "");
}

static void published_file__of_another_kind__is_named(void **state)
{
	char expected[1024];

	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], mode: '0640', file: "
				"@/out/w}\n"));
	put_file("out/w", 0640);
	assert_string_equal(
		examine("web"), "ok web: what is published can be replaced in one step\n");
	put_file("out/w", 0644);
	snprintf(expected, sizeof(expected),
		"note web: %s/out/w has not the mode or owner that is configured (it has 0644, uid "
		"%u, gid %u) -> nothing, unless it stays so: the next version is published as "
		"configured\n",
		dir, geteuid(), getegid());
	assert_string_equal(examine("web"), expected);
	assert_int_equal(unlink(in_dir("@/out/w")), 0);
	assert_int_equal(mkfifo(in_dir("@/out/w"), 0640), 0);
	assert_string_equal(examine("web"),
		in_dir("warning web: @/out/w is no regular file, and will be replaced by one -> "
		       "name another file\n"));
	assert_int_equal(unlink(in_dir("@/out/w")), 0);
	assert_int_equal(symlink("nowhere", in_dir("@/out/w")), 0);
	assert_string_equal(examine("web"),
		in_dir("warning web: @/out/w is a symlink: the next version replaces the link, and "
		       "what it led to stays as it is -> name the file that the link leads to, or "
		       "remove the link\n"));
	assert_int_equal(unlink(in_dir("@/out/w")), 0);
	assert_int_equal(mkdir(in_dir("@/out/w"), 0755), 0);
	assert_string_equal(examine("web"),
		in_dir("error web: @/out/w is a directory -> remove it, or use dir: for a set of "
		       "files\n"));
	settings_free(doctor.settings);
	doctor.settings = scratch_settings(
		"configs:\n  web: {url: 'http://127.0.0.1:1/w.yaml', file: /proc}\n");
	examine("web");
	assert_non_null(strstr(text,
		"error web: /proc is a mount point by itself: it cannot be replaced (EBUSY), and a "
		"file is never written in place -> mount its directory instead of the file (in "
		"Kubernetes: no subPath)\n"));
}

/* False where the file system, or this user, cannot. */
static bool set_attributes(const char *path, int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static void published_file__that_nobody_can_replace__is_an_error(void **state)
{
	char file[4096], out[4096];

	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: @/out/w}\n"));
	put_file("out/w", 0640);
	snprintf(file, sizeof(file), "%s", in_dir("@/out/w"));
	snprintf(out, sizeof(out), "%s", in_dir("@/out"));
	if (!set_attributes(file, FS_IMMUTABLE_FL))
		skip();
	assert_non_null(strstr(examine("web"),
		in_dir("error web: @/out/w is immutable (lsattr): what is published cannot be "
		       "replaced -> chattr -ia it\n")));
	assert_true(set_attributes(file, FS_APPEND_FL));
	assert_non_null(
		strstr(examine("web"), in_dir("error web: @/out/w is append-only (lsattr)")));
	assert_true(set_attributes(file, 0));
	assert_true(set_attributes(out, FS_APPEND_FL));
	assert_non_null(strstr(examine("web"), in_dir("error web: @/out is append-only (lsattr)")));
	assert_true(set_attributes(out, 0));
	assert_null(strstr(examine("web"), "lsattr"));
}

static void published_file__of_another_owner__is_a_note(void **state)
{
	static const struct {
		unsigned other_uid, other_gid;
		bool noted;
	} rows[] = {{0, 0, false}, {1, 0, true}, {0, 1, true}, {1, 1, true}};

	(void)state;
	doctor.who.known = false; /* else it is told that the agent cannot give it away */
	put_file("out/w", 0640);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char owner[64], configs[1024];

		snprintf(owner, sizeof(owner), "%u:%u", geteuid() + rows[i].other_uid,
			getegid() + rows[i].other_gid);
		snprintf(configs, sizeof(configs),
			"  web: {from: [{server: d, path: /w.yaml}], mode: '0640', file: "
			"%s/out/w, owner: '%s'}\n",
			dir, owner);
		put_settings("", configs);
		assert_int_equal(
			strstr(examine("web"), "has not the mode or owner") != NULL, rows[i].noted);
	}
}

/* ---- a service ---- */

static void sandbox__hides_places(void **state)
{
	static const struct {
		const char *place, *home, *system, *writable, *run, *state;
		bool tmp, may, hidden;
	} rows[] = {
		{"/srv/w", "no", "no", "", "", "", false, true, false},
		{"/srv/w", "no", "full", "", "", "", false, true, false},
		{"/srv/w", "no", "strict", "", "", "", false, false, false},
		{"/srv/w", "no", "strict", "/opt /srv", "", "", false, true, false},
		{"/srv/w", "no", "strict", "-/srv", "", "", false, true, false},
		{"/srv/w", "no", "strict", "+/srv", "", "", false, true, false},
		{"/srv/w", "no", "strict", "/srv/w", "", "", false, true, false},
		{"/srv/w", "no", "strict", "/sr  /srv/ww", "", "", false, false, false},
		{"/run/a/w", "no", "strict", "", "b a", "", false, true, false},
		{"/run/a/w", "no", "strict", "", "b", "a", false, false, false},
		{"/var/lib/a/w", "no", "strict", "", "", "a", false, true, false},
		{"/var/lib/a/w", "no", "strict", "", "a", "b", false, false, false},
		{"/dev/w", "no", "strict", "", "", "", false, true, false},
		{"/sys/w", "no", "strict", "", "", "", false, true, false},
		{"/home/w", "no", "no", "", "", "", false, true, false},
		{"/home/w", "", "no", "", "", "", false, true, false},
		{"/home/w", "yes", "no", "", "", "", false, false, false},
		{"/root/w", "yes", "no", "", "", "", false, false, false},
		{"/run/user/w", "tmpfs", "no", "", "user", "", false, false, false},
		{"/home/w", "yes", "strict", "/home", "", "", false, true, false},
		{"/srv/w", "yes", "no", "", "", "", false, true, false},
		{"/tmp/w", "no", "strict", "", "", "", false, false, false},
		{"/tmp/w", "no", "strict", "", "", "", true, true, true},
		{"/var/tmp/w", "no", "no", "", "", "", true, true, true},
		{"/tmp/w", "no", "no", "", "", "", false, true, false},
		{"/tmpx/w", "no", "no", "", "", "", true, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct doctor_unit *u = &doctor.unit;
		char configs[512], expected[1024] = "";

		snprintf(configs, sizeof(configs),
			"  web: {from: [{server: d, path: /w.yaml}], file: %s}\n", rows[i].place);
		put_settings("", configs);
		*u = (struct doctor_unit){.applies = true, .private_tmp = rows[i].tmp};
		snprintf(u->protect_home, sizeof(u->protect_home), "%s", rows[i].home);
		snprintf(u->protect_system, sizeof(u->protect_system), "%s", rows[i].system);
		snprintf(u->writable, sizeof(u->writable), "%s", rows[i].writable);
		snprintf(u->runtime_dirs, sizeof(u->runtime_dirs), "%s", rows[i].run);
		snprintf(u->state_dirs, sizeof(u->state_dirs), "%s", rows[i].state);
		doctor.only = "web";
		if (!rows[i].may)
			snprintf(expected, sizeof(expected),
				"error web: the service may not write at %s (ProtectSystem=%s, "
				"ProtectHome=%s) -> systemctl edit pullet: [Service] "
				"ReadWritePaths= with its directory\n",
				rows[i].place, rows[i].system, rows[i].home);
		else if (rows[i].hidden)
			snprintf(expected, sizeof(expected),
				"error web: %s lies in the service's own /tmp (PrivateTmp): nobody "
				"else sees it -> publish outside of /tmp\n",
				rows[i].place);
		examine("web");
		if (expected[0] ? !strstr(text, expected) : strstr(text, "service") != NULL)
			fail_msg("%s, row %zu: %s", rows[i].place, i, text);
		doctor.who.root = 0; /* what is seen is the service's view then */
		doctor.unit.applies = false;
		doctor.who.root = -1;
		assert_null(strstr(examine("web"), "service"));
	}
	doctor.only = NULL;
	doctor.unit = (struct doctor_unit){.applies = true, .protect_system = "strict"};
	settings_free(doctor.settings);
	doctor.settings =
		scratch_settings("agent: {state_dir: /srv/state, runtime_dir: /srv/run}\nconfigs:\n"
				 "  web: {url: 'http://127.0.0.1:1/w.yaml', snapshot: true}\n");
	assert_null(strstr(examine("web"), "may not write at"));
	assert_non_null(strstr(examine("state_dir"), "the service may not write at /srv/state "));
	assert_non_null(strstr(examine("runtime_dir"), "the service may not write at /srv/run "));
}

static void configuration__that_the_service_may_not_read__names_who_stands_in_the_way(void **state)
{
	char path[SCRATCH_PATH + 64];
	char expected[1024];

	(void)state;
	if (!we_are_root())
		skip();
	put_settings("", "  web: {from: [{server: d, path: /w.yaml}], snapshot: true}\n");
	put_file("out/pullet.yaml", 0640);
	assert_int_equal(chmod(dir, 0711), 0);
	snprintf(path, sizeof(path), "%s/out/pullet.yaml", dir);
	doctor.path = path;
	doctor.who.uid = doctor.who.gid = OTHER;
	doctor.who.capabilities = 0;
	assert_string_equal(examine(path), "");
	doctor.unit.applies = true;
	snprintf(expected, sizeof(expected),
		"error %s: robot may not read the configuration: %s is of root (uid 0) and the "
		"group root (gid 0), "
		"mode 0640 -> put that user into a group that may (usermod -aG), or chgrp and "
		"chmod it\n",
		path, path);
	assert_string_equal(examine(path), expected);
	assert_int_equal(chmod(in_dir("@/out"), 0750), 0);
	snprintf(expected, sizeof(expected),
		"error %s: robot may not read the configuration: %s/out is of root (uid 0) and the "
		"group root (gid 0), mode 0750 -> put that user into a group that may (usermod "
		"-aG), or chgrp "
		"and chmod it\n",
		path, dir);
	assert_string_equal(examine(path), expected);
	doctor.who.capabilities = ROOT_RIGHTS;
	assert_string_equal(examine(path), "");
}

/* ---- paths ---- */

static void root_of_the_agent__is_where_paths_begin(void **state)
{
	struct doctor_place p;
	char read_text[8];

	(void)state;
	put_file("out/w", 0640);
	doctor.who.root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(doctor.who.root >= 0);
	assert_int_equal(doctor_stat_path(&doctor, &list, "/out/w", true, &p), 0);
	assert_true(p.elsewhere);
	assert_int_equal(p.st.stx_mode & 07777, 0640);
	assert_string_equal(list.at, "/out/w");
	assert_int_equal(doctor_read(&doctor, &list, "/out/w", read_text, sizeof(read_text)), 0);
	assert_string_equal(read_text, "x\n");
	assert_int_equal(doctor_read(&doctor, &list, "/out/w", read_text, 2), 0);
	assert_string_equal(read_text, "x");
	assert_int_equal(doctor_read(&doctor, &list, "/nope", read_text, 2), -ENOENT);
	assert_string_equal(list.at, "/nope");
	assert_int_equal(doctor_read(&doctor, &list, "/out", read_text, 2), -EISDIR);
	close(doctor.who.root);
	doctor.who.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(doctor_stat_path(&doctor, &list, in_dir("@/out/w"), true, &p), 0);
	assert_false(p.elsewhere);
	assert_int_equal(symlink("w", in_dir("@/out/link")), 0);
	assert_int_equal(doctor_stat_path(&doctor, &list, in_dir("@/out/link"), true, &p), 0);
	assert_true(S_ISREG(p.st.stx_mode));
	assert_false(p.elsewhere);
	assert_int_equal(doctor_stat_path(&doctor, &list, in_dir("@/out/link"), false, &p), 0);
	assert_true(S_ISLNK(p.st.stx_mode));
	assert_false(p.elsewhere);
	assert_true(p.bytes >= p.bytes_free && p.files >= p.files_free);
	assert_false(p.mount_point);
	assert_false(p.read_only);
	assert_int_equal(doctor_stat_path(&doctor, &list, "/proc", true, &p), 0);
	assert_true(p.mount_point);
	close(doctor.who.root);
	doctor.who.root = -1;
}

static void directory__that_is_another_one_for_the_service__is_a_warning(void **state)
{
	(void)state;
	put_settings("", in_dir("  web: {from: [{server: d, path: /w.yaml}], file: /out/w}\n"));
	doctor.who.known = false;
	doctor.who.root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_string_equal(examine("web"),
		"warning web: /out is another directory for the agent's service than for everybody "
		"else: applications do not see what is published there -> publish outside of /tmp "
		"and /home, or change the service (PrivateTmp=, ProtectHome=)\n");
	close(doctor.who.root);
	doctor.who.root = -1;
}

static void file_systems__have_names_and_kinds(void **state)
{
	static const struct {
		int64_t type;
		const char *name;
		bool memory, remote;
	} rows[] = {
		{0x01021994, "tmpfs", true, false},
		{0x858458f6, "ramfs", true, false},
		{0x6969, "NFS", false, true},
		{0xff534d42, "CIFS", false, true},
		{0xfe534d42, "SMB", false, true},
		{0x517b, "SMB", false, true},
		{0x01021997, "9p", false, true},
		{0x00c36400, "Ceph", false, true},
		{0x5346414f, "AFS", false, true},
		{0x65735546, "FUSE", false, true},
		{0x794c7630, "overlayfs", false, false},
		{0xef53, "ext4", false, false},
		{0x58465342, "XFS", false, false},
		{0x9123683e, "Btrfs", false, false},
		{0, "", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(doctor_file_system(rows[i].type), rows[i].name);
		assert_int_equal(doctor_is_in_memory(rows[i].type), rows[i].memory);
		assert_int_equal(doctor_is_remote(rows[i].type), rows[i].remote);
	}
}

static void path__is_shielded_below_a_directory_that_is_shut(void **state)
{
	(void)state;
	put_file("out/w", 0644);
	assert_int_equal(chmod(dir, 0711), 0);
	assert_false(doctor_is_shielded(in_dir("@/out/w")));
	assert_int_equal(chmod(in_dir("@/out"), 0754), 0);
	assert_true(doctor_is_shielded(in_dir("@/out/w")));
	assert_int_equal(chmod(in_dir("@/out"), 0755), 0);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_true(doctor_is_shielded(in_dir("@/out/w")));
	assert_false(doctor_is_shielded(in_dir("@/out/nope")));
}

static void rights__that_nobody_can_try__say_nothing(void **state)
{
	(void)state;
	doctor.who.can_try = false;
	assert_int_equal(doctor_try_access(&doctor, &list, dir, R_OK), -ENOTSUP);
	doctor.who.can_try = true;
	assert_int_equal(doctor_try_access(&doctor, &list, dir, R_OK), 0);
	assert_string_equal(list.at, dir);
	assert_int_equal(doctor_try_access(&doctor, &list, in_dir("@/nope"), R_OK), -ENOENT);
	assert_false(doctor_is_unreadable(&doctor, in_dir("@/nope")));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, examined_set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(everything_in_order__is_good),
		CASE(file__of_two_configs_by_two_paths__is_named),
		CASE(rights__that_cannot_be_tried__are_a_note),
		CASE(server__has_files__in_the_order_of_a_table),
		CASE(file__that_is_read__needs_its_rights),
		CASE(file__that_the_agent_may_not_read__is_an_error),
		CASE(file__that_we_may_not_look_at__is_a_note),
		CASE(schema_and_push_key__are_files_that_are_read),
		CASE(directory_of_its_own__has_a_mode),
		CASE(directory_of_its_own__that_others_can_change__is_refused),
		CASE(directory_of_its_own__that_is_none__is_an_error),
		CASE(directory__that_the_agent_may_not_use__is_an_error),
		CASE(state_of_a_config__of_another_user__is_an_error),
		CASE(owner__that_the_agent_cannot_give__is_an_error),
		CASE(place__that_others_can_write__is_refused),
		CASE(place__that_is_none__is_an_error),
		CASE(published_file__that_nobody_can_replace__is_an_error),
		CASE(published_file__of_another_kind__is_named),
		CASE(published_file__of_another_owner__is_a_note),
		CASE(sandbox__hides_places),
		CASE(configuration__that_the_service_may_not_read__names_who_stands_in_the_way),
		CASE(root_of_the_agent__is_where_paths_begin),
		CASE(directory__that_is_another_one_for_the_service__is_a_warning),
		CASE(file_systems__have_names_and_kinds),
		CASE(path__is_shielded_below_a_directory_that_is_shut),
		CASE(rights__that_nobody_can_try__say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * `pullet doctor`, the agent: all that is said of one that answers as the test says, by a service
 * that the test describes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>

#include <cmocka.h>

#include "cli/doctor/doctor.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/examined.h"

#define WEB(members) "{\"name\":\"web\"," members "}"

static struct doctor_unit unit;
static int groups_of_user; /* so many more than the doctor has room for */

int getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
	static int (*real)(const char *name, gid_t first, gid_t *to, int *n);

	if (groups_of_user == 0) {
		if (!real)
			real = (__typeof__(real))dlsym(RTLD_NEXT, "getgrouplist");
		return real(user, group, groups, count);
	}
	for (int i = 0; i < *count; i++)
		groups[i] = group + (gid_t)i;
	*count = groups_of_user;
	return -1;
}

void doctor_unit_read(struct doctor *d)
{
	d->unit = unit;
}

static int set_up(void **state)
{
	alarm(30);
	played_open();
	examined_set_up(state);
	doctor.who = (struct doctor_who){.root = -1};
	doctor.timeout_ms = 5000;
	doctor.socket = played.socket;
	doctor.settings = scratch_settings(
		"configs:\n  web: {url: 'http://127.0.0.1:1/w', snapshot: true}\n");
	put_file("p.yaml", 0600);
	doctor.path = strdup(in_dir("@/p.yaml"));
	unit = (struct doctor_unit){.memory_max = UINT64_MAX, .memory_now = UINT64_MAX};
	return 0;
}

static int tear_down(void **state)
{
	free((char *)(uintptr_t)doctor.path);
	examined_tear_down(state);
	played_close();
	return 0;
}

/* The agent answers this about its config, besides what is well. */
static const char *examine_status(const char *status)
{
	pid_t pid = played.listener >= 0 ? played_fork() : -1;

	if (status) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		played_answers("GET /v1/status", 200, status);
		pid = played_fork();
	}
	doctor.who = (struct doctor_who){.root = -1};
	doctor_agent(&doctor, &list);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	findings_of(NULL);
	client_fini(&doctor.status);
	doctor.status = (struct client_answer){0};
	if (doctor.who.root >= 0)
		close(doctor.who.root);
	return text;
}

static const char *examine(const char *head, const char *config)
{
	static char status[4096];

	snprintf(status, sizeof(status),
		"{\"version\":\"" PULLET_VERSION
		"\",\"configuration\":{\"loaded_ms\":9999999999999},%s\"configs\":[%s]}",
		head, config);
	return examine_status(status);
}

/* ---- a config ---- */

static void config__says_what_is_wrong_with_it(void **state)
{
	static const struct {
		const char *config, *expected;
	} rows[] = {
		{WEB("\"state\":\"waiting\",\"generation\":0"),
			"error web: nothing is published yet -> see servers, below\n"},
		{WEB("\"state\":\"waiting\",\"generation\":0,\"last_error\":\"404\",\"cause\":"
		     "\"not "
		     "found\""),
			"error web: nothing is published yet: 404 -> see servers, below\n"},
		{WEB("\"state\":\"waiting\",\"last_error\":\"disk\",\"cause\":\"this host\""),
			"error web: nothing is published yet: disk -> see files, below; where "
			"nothing is found, put right what this names\n"},
		{WEB("\"state\":\"waiting\",\"last_error\":\"signature\""),
			"error web: nothing is published yet: signature -> see servers, below\n"},
		{WEB("\"state\":\"waiting\",\"last_error\":\"schema\",\"rejected\":{\"by\":"
		     "\"schema\",\"why\":\"/a\"}"),
			"error web: nothing is published yet: schema -> put it right at its "
			"source; pullet explain CONFIG says what else would do\n"},
		{WEB("\"state\":\"stale\",\"generation\":1,\"age_ms\":90999,\"last_error\":\"x\","
		     "\"cause\":\"timeout\""),
			"error web: stale: no server has confirmed it for 90 s: x -> see servers, "
			"below\n"},
		{WEB("\"state\":\"stale\",\"generation\":1,\"age_ms\":1000"),
			"error web: stale: no server has confirmed it for 1 s -> see servers, "
			"below\n"},
		{WEB("\"state\":\"failing\",\"generation\":1,\"last_error\":\"x\",\"cause\":"
		     "\"timeout\""),
			"warning web: failing: x -> see servers, below\n"},
		{WEB("\"state\":\"failing\",\"generation\":1"), NULL},
		{WEB("\"state\":\"ok\",\"generation\":1,\"last_error\":\"x\""), NULL},
		{WEB("\"state\":\"failing\",\"generation\":1,\"last_error\":\"y\",\"rejected\":"
		     "{\"by\":\"schema\",\"why\":\"/a\"}"),
			"warning web: /a -> put it right at its source; pullet explain CONFIG says "
			"what else would do\n"},
		{WEB("\"state\":\"failing\",\"generation\":1,\"last_error\":\"y\",\"cause\":"
		     "\"timeout\",\"rejected\":{\"by\":\"pin\",\"why\":\"pinned\"},"
		     "\"explanation\":[\"held\",\"under way\"]"),
			"note web: held -> pullet unpin CONFIG, when it is over\n"
			"warning web: failing: y -> see servers, below\n"
			"note web: under way -> pullet explain CONFIG says what would change it\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"rejected\":{\"by\":\"operator\"}"),
			"note web: ? -> publish another version; or pullet refresh CONFIG --force "
			"takes it\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"rejected\":{\"by\":\"rollout\",\"why\":"
		     "\"later\"}"),
			"note web: later -> its turn comes; or pullet refresh CONFIG --force takes "
			"it now\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"explanation\":[\"a\",\"b\"]"),
			"note web: a -> pullet explain CONFIG says what would change it\n"
			"note web: b -> pullet explain CONFIG says what would change it\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"pin\":{\"by\":\"ann\",\"reason\":\"r\"}"),
			"note web: pinned by ann: r: what the server has is not taken -> pullet "
			"unpin CONFIG, when it is over\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"suspension\":{\"by\":\"bob\"}"),
			"note web: suspended by bob: the server is not asked -> pullet resume "
			"CONFIG, when it is over\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"overrides\":[{\"key\":\"k\"}]"),
			"note web: some values are overridden on this host -> pullet explain "
			"CONFIG KEY says whose they are\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"overrides\":[]"), NULL},
		{WEB("\"state\":\"ok\",\"generation\":1,\"drifted\":true"),
			"warning web: what is published was changed by somebody else -> find out "
			"who writes it; heal puts it right\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"drifted\":false,\"reload\":{\"state\":"
		     "\"failed\",\"error\":\"exit 1\"},\"probe\":{\"state\":\"failed\"}"),
			"warning web: the reload after the last change failed: exit 1 -> see "
			"hooks, below; the agent tries again until it works\n"
			"warning web: the last probe of a version failed: ? -> put the version "
			"right at its source\n"},
		{WEB("\"state\":\"ok\",\"generation\":1,\"reload\":{\"state\":\"idle\"},\"probe\":"
		     "{\"state\":\"passed\"}"),
			NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char well[1024];

		/* notes leave it well */
		snprintf(well, sizeof(well),
			"ok %s: it answers, and all its configs stand as they should\n",
			played.socket);
		examine("", rows[i].config);
		if (!rows[i].expected) {
			assert_string_equal(text, well);
			continue;
		}
		if (strncmp(text, rows[i].expected, strlen(rows[i].expected)) != 0)
			fail_msg("row %zu is %s, not %s", i, text, rows[i].expected);
		assert_string_equal(text + strlen(rows[i].expected),
			strstr(rows[i].expected, "warning") || strstr(rows[i].expected, "error")
				? ""
				: well);
	}
	doctor.only = "other";
	assert_null(strstr(examine("", rows[0].config), "web"));
}

/* ---- the agent and its file ---- */

static void receipts__that_another_agent_overwrites__are_a_warning(void **state)
{
	(void)state;
	examine("\"report\":{\"state\":\"ok\",\"key\":\"/pullet/agents/h1\",\"error\":null},",
		WEB("\"state\":\"ok\",\"generation\":1"));
	assert_null(strstr(text, "warning"));
	examine("\"report\":{\"state\":\"ok\",\"key\":\"/pullet/agents/h1\",\"error\":\"the key "
		"was changed by another writer: unless etcd was restored\"},",
		WEB("\"state\":\"ok\",\"generation\":1"));
	assert_non_null(strstr(text, "warning /pullet/agents/h1: this host's receipt: the key was "
				     "changed by another writer -> unless etcd was restored\n"));
}

static void push_channel__that_is_silent_between_heartbeats__is_a_warning(void **state)
{
	(void)state;
	examine("\"push\":[{\"endpoint\":\"tcp://p:1\",\"state\":\"connected\",\"rebuilds\":9,"
		"\"heartbeats\":10},{\"endpoint\":\"tcp://p:2\",\"state\":\"connected\","
		"\"rebuilds\":9,\"heartbeats\":100},{\"endpoint\":\"tcp://p:3\",\"state\":"
		"\"connected\",\"rebuilds\":2,\"heartbeats\":0}],",
		WEB("\"state\":\"ok\",\"generation\":1"));
	assert_int_equal(
		strncmp(text, "warning tcp://p:1: it was silent for three heartbeats", 53), 0);
	assert_null(strstr(text, "p:2"));
	assert_null(strstr(text, "p:3"));
}

static void push_channel__that_is_not_connected__is_a_warning(void **state)
{
	(void)state;
	examine("\"push\":[{\"endpoint\":\"tcp://p:1\",\"state\":\"silent\"},{\"endpoint\":"
		"\"tcp://p:2\",\"state\":\"connected\"},{\"endpoint\":\"tcp://p:3\",\"state\":"
		"\"refused\",\"error\":\"key\"},{}],",
		WEB("\"state\":\"ok\",\"generation\":1"));
	assert_string_equal(text,
		"warning tcp://p:1: the agent's push channel is silent: pulls go on by interval -> "
		"see push, below; where it connects now, this goes by itself\n"
		"warning tcp://p:3: the agent's push channel is refused: key -> see push, below; "
		"where it connects now, this goes by itself\n"
		"warning ?: the agent's push channel is ?: pulls go on by interval -> see push, "
		"below; where it connects now, this goes by itself\n");
}

static void version__that_is_not_the_installed_one__is_a_warning(void **state)
{
	char expected[1024];

	(void)state;
	examine_status("{\"version\":\"0.0.9\",\"configuration\":{\"loaded_ms\":9999999999999},"
		       "\"configs\":[{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}]}");
	snprintf(expected, sizeof(expected),
		"warning %s: it runs version 0.0.9, installed is " PULLET_VERSION
		" -> restart the agent\n",
		played.socket);
	assert_string_equal(text, expected);
}

static void configuration__of_another_file_or_refused__is_told(void **state)
{
	static const char first[] = "{\"version\":\"" PULLET_VERSION "\",\"configuration\":";
	static const char well[] =
		",\"configs\":[{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}]}";
	char status[2048];

	(void)state;
	snprintf(status, sizeof(status),
		"%s{\"file\":\"/other.yaml\",\"loaded_ms\":9999999999999}%s", first, well);
	assert_string_equal(examine_status(status),
		in_dir("warning @/p.yaml: the agent that runs reads /other.yaml -> name that one "
		       "with -c\n"));
	assert_int_equal(symlink(doctor.path, in_dir("@/link.yaml")), 0);
	put_file("other.yaml", 0600);
	for (int own = 0; own < 2; own++) {
		snprintf(status, sizeof(status),
			"%s{\"file\":\"%s\",\"loaded_ms\":9999999999999}%s", first,
			in_dir(own ? "@/link.yaml" : "@/other.yaml"), well);
		assert_int_equal(
			strstr(examine_status(status), "the agent that runs reads") == NULL, own);
	}
	for (int errors = 1; errors <= 2; errors++) {
		snprintf(status, sizeof(status),
			"%s{\"error\":\"bad\",\"errors\":%d,\"loaded_ms\":9999999999999}%s", first,
			errors, well);
		examine_status(status);
		assert_non_null(strstr(text, in_dir("error @/p.yaml: the agent refused it when it "
						    "was last reloaded, and runs the one before: "
						    "bad")));
		assert_int_equal(
			strstr(text, "bad (and more) -> once that is put right, reload") != NULL,
			errors > 1);
	}
}

static void touch(const char *name, time_t written)
{
	const struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};

	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* The agent read its file at that moment; both times of a file are in milliseconds. */
static const char *examine_loaded(int64_t loaded_ms)
{
	static char status[1024];

	snprintf(status, sizeof(status),
		"{\"version\":\"" PULLET_VERSION "\",\"configuration\":{\"loaded_ms\":%lld},"
		"\"configs\":[{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}]}",
		(long long)loaded_ms);
	return examine_status(status);
}

static void configuration__that_was_changed_since__is_to_be_reloaded(void **state)
{
	static const char reload[] =
		" -> reload the agent: systemctl reload pullet, or kill -HUP\n";
	struct stat st;
	int64_t changed_ms;

	(void)state;
	touch(doctor.path, 1000);
	assert_int_equal(stat(doctor.path, &st), 0);
	changed_ms = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
	assert_non_null(strstr(examine_loaded(changed_ms), "it answers, and all its configs"));
	assert_non_null(strstr(examine_loaded(changed_ms - 1),
		"it was replaced, or its rights changed, after the running agent had read it"));
	assert_non_null(strstr(text, reload));
	assert_null(strstr(text, "warning"));
	assert_non_null(strstr(examine_loaded(1000000), "it was replaced"));
	assert_non_null(
		strstr(examine_loaded(999999), "it was changed after the running agent had read"));
	assert_non_null(strstr(text, reload));
	/* files beside it count when the agent reads them */
	assert_int_equal(mkdir(in_dir("@/conf.d"), 0700), 0);
	put_file("conf.d/a.yaml", 0600);
	put_file("conf.d/b.txt", 0600);
	touch(in_dir("@/conf.d/a.yaml"), 3000);
	touch(in_dir("@/conf.d/b.txt"), 5000);
	touch(in_dir("@/conf.d"), 2000);
	assert_non_null(strstr(examine_loaded(2999999), "it was changed after"));
	assert_null(strstr(examine_loaded(3000000), "it was changed after"));
	touch(in_dir("@/conf.d"), 4000); /* one was removed */
	assert_non_null(strstr(examine_loaded(3999999), "it was changed after"));
}

static void configuration__of_other_configs__is_to_be_reloaded(void **state)
{
	(void)state;
	assert_non_null(
		strstr(examine("", WEB("\"state\":\"ok\",\"generation\":1") ","
									    "{\"name\":\"db\"}"),
			"it was changed after the running agent had read it"));
	assert_non_null(strstr(examine("", "{\"name\":\"db\"}"), "it was changed after"));
	assert_non_null(strstr(examine("", ""), "it was changed after"));
}

/* ---- the service ---- */

static void service__in_trouble__is_told_from_each_bound_on(void **state)
{
	static const char fine[] = WEB("\"state\":\"ok\",\"generation\":1");

	(void)state;
	unit.known = true;
	unit.main_pid = getpid();
	unit.has_watchdog = true;
	snprintf(unit.active, sizeof(unit.active), "active");
	unit.restarts = 2;
	unit.memory_max = 100u << 20;
	unit.memory_now = 80u << 20;
	examine("", fine);
	assert_null(strstr(text, "pullet.service"));
	assert_true(doctor.unit.applies);
	unit.memory_now++;
	assert_non_null(strstr(examine("", fine), "warning pullet.service: it uses 80 MiB of the "
						  "100 it may -> raise MemoryMax=\n"));
	unit.memory_max = UINT64_MAX;
	assert_null(strstr(examine("", fine), "pullet.service"));
	unit.memory_max = 1;
	unit.memory_now = UINT64_MAX;
	assert_null(strstr(examine("", fine), "pullet.service"));
	unit.restarts = 3;
	unit.needs_reload = true;
	unit.has_watchdog = false;
	snprintf(unit.active, sizeof(unit.active), "failed");
	examine("", fine);
	assert_string_equal(text,
		"error pullet.service: the service has failed, and systemd does not start it again "
		"-> journalctl -u pullet says why\n"
		"warning pullet.service: the unit's file was changed after systemd had read it -> "
		"systemctl daemon-reload\n"
		"note pullet.service: no watchdog: an agent that hangs is not noticed -> set "
		"WatchdogSec=\n"
		"warning pullet.service: systemd had to start it again 3 times -> journalctl -u "
		"pullet says why\n");
	unit.main_pid++;
	assert_null(strstr(examine("", fine), "pullet.service"));
	assert_false(doctor.unit.applies);
	unit.main_pid--;
	unit.known = false;
	assert_null(strstr(examine("", fine), "pullet.service"));
}

/* ---- no agent ---- */

static void socket__that_nobody_serves__says_how(void **state)
{
	char expected[2048];

	(void)state;
	played_stop();
	snprintf(expected, sizeof(expected),
		"warning %s: no agent runs here -> start pulletd, or name its socket with "
		"--socket\n",
		played.socket);
	assert_string_equal(examine_status(NULL), expected);
	played_listen();
	close(played.listener);
	played.listener = -1;
	snprintf(expected, sizeof(expected),
		"warning %s: no agent runs here: the socket is left from one that died -> start "
		"pulletd, or name its socket with --socket\n",
		played.socket);
	assert_string_equal(examine_status(NULL), expected);
	assert_false(doctor.who.running);
	assert_true(doctor.who.known);
	assert_true(doctor.who.can_try);
	assert_int_equal(doctor.who.uid, geteuid());
	assert_int_equal(doctor.who.gid, getegid());
	assert_string_equal(
		doctor.who.how, "who is you: an agent of somebody else has other rights");
	if (geteuid() == 0) {
		assert_string_equal(doctor.who.name, "root");
		assert_int_equal(doctor.who.capabilities, UINT64_MAX);
	}
}

static void socket__of_a_service_that_does_not_run__counts_its_user(void **state)
{
	char expected[1024];

	(void)state;
	played_stop();
	free((char *)(uintptr_t)doctor.path);
	doctor.path = strdup(SETTINGS_DEFAULT_PATH);
	unit.known = true;
	unit.has_watchdog = true;
	unit.no_new_privileges = true;
	snprintf(unit.user, sizeof(unit.user), "nobody");
	snprintf(unit.group, sizeof(unit.group), "bin");
	snprintf(unit.more_groups, sizeof(unit.more_groups), "sys nonsense daemon");
	snprintf(expected, sizeof(expected),
		"warning %s: no agent runs here -> systemctl start pullet\n", played.socket);
	assert_string_equal(examine_status(NULL), expected);
	assert_string_equal(doctor.who.name, "nobody");
	assert_string_equal(doctor.who.how, "whom User= of pullet.service names");
	assert_int_equal(doctor.who.uid, getpwnam("nobody")->pw_uid);
	assert_int_equal(doctor.who.gid, getgrnam("bin")->gr_gid);
	assert_true(doctor.who.group_count >= 2);
	assert_int_equal(doctor.who.groups[doctor.who.group_count - 2], getgrnam("sys")->gr_gid);
	assert_int_equal(doctor.who.groups[doctor.who.group_count - 1], getgrnam("daemon")->gr_gid);
	assert_true(doctor.who.no_new_privileges);
	assert_int_equal(doctor.who.capabilities, 0);
	assert_int_equal(doctor.who.can_try, geteuid() == 0 || geteuid() == doctor.who.uid);
	unit.user[0] = unit.group[0] = unit.more_groups[0] = '\0';
	examine_status(NULL);
	assert_string_equal(doctor.who.name, "root");
	assert_int_equal(doctor.who.gid, 0);
	assert_int_equal(doctor.who.capabilities, UINT64_MAX);
	snprintf(unit.user, sizeof(unit.user), "nobody");
	snprintf(unit.more_groups, sizeof(unit.more_groups), "sys");
	groups_of_user = DOCTOR_GROUPS + 3;
	examine_status(NULL);
	groups_of_user = 0;
	assert_int_equal(doctor.who.group_count, DOCTOR_GROUPS);
	unit.more_groups[0] = '\0';
	snprintf(unit.user, sizeof(unit.user), "?");
	examine_status(NULL);
	assert_non_null(strstr(text, "there is no user ?, which the service is to run as"));
	snprintf(unit.user, sizeof(unit.user), "no-such-user");
	examine_status(NULL);
	assert_non_null(strstr(text,
		"error pullet.service: there is no user no-such-user, which the service is to run "
		"as -> make the user (systemd-sysusers), or change User=\n"));
	assert_int_equal(doctor.who.uid, geteuid());
}

static void socket__that_we_may_not_open__leaves_the_user_unknown(void **state)
{
	char expected[1024];

	(void)state;
	if (!we_are_root())
		skip();
	assert_int_equal(seteuid(OTHER), 0);
	played_stop();
	doctor_agent(&doctor, &list);
	assert_int_equal(seteuid(0), 0);
	findings_of(NULL);
	snprintf(expected, sizeof(expected),
		"note %s: you may not ask the agent; what it says of itself was not looked at -> "
		"run this as root, as the agent's user or in its group\n",
		played.socket);
	assert_string_equal(text, expected);
	assert_false(doctor.who.known);
	assert_int_equal(doctor.who.uid, (uid_t)-1);
	assert_int_equal(doctor.who.gid, (gid_t)-1);
	assert_string_equal(doctor.who.name, "the agent's user");
	assert_string_equal(doctor.who.how, "whoever that is");
	assert_false(doctor.who.can_try);
}

static uint64_t own_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &head, data), 0);
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

static void agent__that_runs__is_known_by_its_process(void **state)
{
	(void)state;
	examine("", WEB("\"state\":\"ok\",\"generation\":1"));
	assert_true(doctor.who.running);
	assert_int_equal(doctor.who.pid, getpid());
	assert_int_equal(doctor.who.uid, geteuid());
	assert_int_equal(doctor.who.gid, getegid());
	assert_int_equal(doctor.who.root, -1);
	assert_false(doctor.who.other_view);
	assert_string_equal(doctor.who.how, "who runs the agent");
	assert_int_equal(doctor.who.capabilities, own_capabilities());
	assert_int_equal(doctor.who.no_new_privileges, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

/* Listens in a process of its own, for everybody. */
static pid_t fork_agent(void)
{
	pid_t parent = getpid(), pid;
	int ready[2];
	char byte;

	played_stop();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		played_listen();
		chmod(played.socket, 0666);
		(void)!write(ready[1], "", 1);
		played_serve(played.listener);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void agent__of_another_user__may_see_other_files(void **state)
{
	pid_t pid;

	(void)state;
	if (!we_are_root())
		skip();
	assert_int_equal(chmod(played.dir, 0755), 0);
	played_answers("GET /v1/status", 200, "{\"configs\":[],\"configuration\":{}}");
	pid = fork_agent();
	doctor_agent(&doctor, &list);
	assert_true(doctor.who.running && doctor.who.can_try);
	assert_false(doctor.who.other_view); /* root can see that it does not */
	client_fini(&doctor.status);
	doctor.who = (struct doctor_who){.root = -1};
	assert_int_equal(seteuid(OTHER), 0);
	doctor_agent(&doctor, &list);
	assert_int_equal(seteuid(0), 0);
	client_fini(&doctor.status);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(doctor.who.running && doctor.who.known && doctor.who.other_view);
	assert_int_equal(doctor.who.pid, pid);
	assert_int_equal(doctor.who.uid, 0);
	assert_int_equal(doctor.who.root, -1);
	assert_false(doctor.who.can_try);
}

static void agent__that_answers_nonsense__is_an_error(void **state)
{
	char expected[1024];

	(void)state;
	played_answers("GET /v1/status", 500, "{}");
	snprintf(expected, sizeof(expected),
		"error %s: the agent takes connections, and does not answer as it should -> look "
		"into its log; where it hangs, kill -9 is safe: it starts from the last known "
		"good, and readers notice nothing\n",
		played.socket);
	assert_int_equal(strncmp(examine_status(NULL), expected, strlen(expected)), 0);
	assert_true(doctor.who.running);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(config__says_what_is_wrong_with_it),
		CASE(push_channel__that_is_not_connected__is_a_warning),
		CASE(receipts__that_another_agent_overwrites__are_a_warning),
		CASE(push_channel__that_is_silent_between_heartbeats__is_a_warning),
		CASE(version__that_is_not_the_installed_one__is_a_warning),
		CASE(configuration__of_another_file_or_refused__is_told),
		CASE(configuration__that_was_changed_since__is_to_be_reloaded),
		CASE(configuration__of_other_configs__is_to_be_reloaded),
		CASE(service__in_trouble__is_told_from_each_bound_on),
		CASE(socket__that_nobody_serves__says_how),
		CASE(socket__of_a_service_that_does_not_run__counts_its_user),
		CASE(socket__that_we_may_not_open__leaves_the_user_unknown),
		CASE(agent__that_runs__is_known_by_its_process),
		CASE(agent__of_another_user__may_see_other_files),
		CASE(agent__that_answers_nonsense__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

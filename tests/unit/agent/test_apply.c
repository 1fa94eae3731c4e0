/*
 * From one configuration to the next: what is made, kept, told and freed, in which order. Here
 * agent/agent.c is compiled in, and all around it only writes down how it is called.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent.h"
#include "config/events.h"
#include "descriptor_budget.h"
#include "fleet/config_receipt.h"
#include "fleet/report.h"
#include "http/client.h"
#include "publish/withdraw.h"
#include "push/subscriber.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/did.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"
#include "version/left.h"

/* ---- what is around it ---- */

/* A config, or a server. */
struct thing {
	char name[16];
	size_t place;
	enum config_outcome outcome;
	struct push_topic topic;
};

static struct thing *make_thing(const char *name)
{
	struct thing *t = calloc(1, sizeof(*t));

	if (t)
		snprintf(t->name, sizeof(t->name), "%s", name);
	return t;
}

static const char *name_of(const void *thing)
{
	return ((const struct thing *)thing)->name;
}

static const struct config_env *seen_env;

static struct config *played_config_new(
	const struct config_env *env, const struct settings_config *settings)
{
	seen_env = env;
	say("new %s\n", settings->name);
	return (struct config *)make_thing(settings->name);
}

static void played_config_free(struct config *c)
{
	say("free %s\n", name_of(c));
	free(c);
}

static bool has_sweep;

static void played_config_start(struct config *c, bool now)
{
	has_sweep = seen_env->sweep != NULL;
	say("start %s%s\n", name_of(c), now ? " now" : "");
}

static void played_set_place(struct config *c, size_t place)
{
	((struct thing *)c)->place = place;
}

static size_t played_place(const struct config *c)
{
	return ((const struct thing *)c)->place;
}

static struct push_topic *played_topic(struct config *c)
{
	struct push_topic *topic = &((struct thing *)c)->topic;

	topic->topic = name_of(c);
	topic->trigger = (struct trigger *)c;
	return topic;
}

static void played_refresh(struct config *c, bool forced)
{
	say("refresh %s%s\n", name_of(c), forced ? " forced" : "");
}

static void played_resumed(struct config *c)
{
	say("resumed %s\n", name_of(c));
}

static void played_status(struct config *c, struct config_status *ret_status)
{
	*ret_status = (struct config_status){.outcome = ((struct thing *)c)->outcome};
}

static void played_suspend(struct trigger *t)
{
	say("suspend %s\n", name_of(t));
}

static void played_dry_run(struct config *c)
{
	say("dry run of %s\n", name_of(c));
}

static struct upstream *played_upstream_new(
	struct loop *l, struct backoffs *backoffs, const struct settings_server *settings)
{
	(void)l, (void)backoffs;
	say("new server %s\n", settings->name);
	return (struct upstream *)make_thing(settings->name);
}

static void played_upstream_free(struct upstream *s)
{
	say("free server %s\n", name_of(s));
	free(s);
}

static int push_error;

static int played_push_start(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_subscriber)
{
	(void)sys;
	say("push from %s%s of", endpoints[0].endpoint, count == 1 ? "" : " and more");
	for (size_t i = 0; i < topic_count; i++)
		say(" %s", topics[i]->topic);
	say("\n");
	if (push_error == 0)
		*ret_subscriber = (struct subscriber *)make_thing("push");
	return push_error;
}

static int played_push_renew(
	struct subscriber *p, struct push_topic *const *topics, size_t topic_count)
{
	say("renew %s:", name_of(p));
	for (size_t i = 0; i < topic_count; i++)
		say(" %s", topics[i]->topic);
	say("\n");
	return push_error;
}

static void played_push_stop(struct subscriber *p)
{
	if (p)
		say("stop %s\n", name_of(p));
	free(p);
}

static int listen_error;

static int played_listen(struct control *c, const char *address, char why[FILE_WHY])
{
	assert_non_null(c);
	say("listen at %s\n", address ? address : "nothing");
	snprintf(why, FILE_WHY, "%s", listen_error ? "in use" : "");
	return listen_error;
}

static void played_operators(struct control *c, gid_t operators)
{
	assert_non_null(c);
	say("operators %d\n", (int)operators);
}

static void played_forget(struct control *c, const struct config *config, bool gone)
{
	(void)c;
	say("forget %s%s\n", name_of(config), gone ? ", which is gone" : "");
}

static void played_check(struct control *c)
{
	assert_non_null(c);
	say("check control\n");
}

static const struct report_env *seen_report;
static struct report_env report_env;

static struct report *played_report_start(const struct report_env *env)
{
	report_env = *env;
	seen_report = &report_env;
	say("report as %s\n", env->host);
	return (struct report *)make_thing("report");
}

static void played_report_stop(struct report *r)
{
	if (r)
		say("stop %s\n", name_of(r));
	free(r);
}

static void played_report_changed(struct report *r, size_t config)
{
	say("%s %zu\n", name_of(r), config);
}

static void played_run_ended(struct systemd *s, size_t place)
{
	(void)s;
	say("systemd %zu\n", place);
}

static void played_http_forget(struct http_client *t)
{
	(void)t;
	say("forget connections\n");
}

static void played_watch_resume(struct watch *w)
{
	assert_non_null(w);
	say("watch again\n");
}

static int withdraw_result, left_result;

static void say_kept(const char *what, const char *dir, const char **kept, size_t count)
{
	say("%s in %s all but", what, dir);
	for (size_t i = 0; i < count; i++)
		say(" %s", kept[i]);
	say("\n");
}

static int played_withdraw(const struct sys *sys, const char *runtime_dir, const char **kept,
	size_t count, char why[FILE_WHY])
{
	(void)sys;
	say_kept("withdraw", runtime_dir, kept, count);
	snprintf(why, FILE_WHY, "no room");
	return withdraw_result;
}

static int played_left(const struct sys *sys, const char *state_dir, const char **kept,
	size_t count, char why[FILE_WHY])
{
	(void)sys;
	say_kept("leave", state_dir, kept, count);
	snprintf(why, FILE_WHY, "no right");
	return left_result;
}

static int budget_error;

static int played_budget(const struct settings *old, const struct settings *new,
	const struct settings_diff *diff, char why[DESCRIPTORS_WHY])
{
	(void)diff;
	assert_ptr_not_equal(old, new);
	snprintf(why, DESCRIPTORS_WHY, "too few descriptors");
	return budget_error;
}

static void played_loop_stop(struct loop *l)
{
	(void)l;
	say("stop the loop\n");
}

static char workers[3]; /* the last one that is stopped hangs */
static size_t hangs;

static int played_worker_stop(struct worker *w, unsigned max_ms)
{
	size_t i = (size_t)((char *)w - workers);

	dprintf(STDERR_FILENO, "stop %zu within %u\n", i, max_ms);
	return i == hangs ? -ETIMEDOUT : 0;
}

#define worker_stop played_worker_stop
#define config_new played_config_new
#define config_free played_config_free
#define config_start played_config_start
#define config_set_place played_set_place
#define config_place played_place
#define config_push_topic played_topic
#define config_refresh played_refresh
#define config_resumed played_resumed
#define config_status(c, s) played_status(c, s)
#define trigger_suspend played_suspend
#define dry_run_ended played_dry_run
#define upstream_new played_upstream_new
#define upstream_free played_upstream_free
#define subscriber_start played_push_start
#define subscriber_renew played_push_renew
#define subscriber_stop played_push_stop
#define control_listen played_listen
#define control_operators played_operators
#define control_forget played_forget
#define control_check played_check
#define report_start played_report_start
#define report_stop played_report_stop
#define report_changed played_report_changed
#define systemd_run_ended played_run_ended
#define http_client_forget played_http_forget
#define watch_resume played_watch_resume
#define withdraw_snapshots played_withdraw
#define left_mark played_left
#define descriptor_budget_check_next played_budget
#define loop_stop played_loop_stop
#include "agent.c"
#undef loop_stop
#undef worker_stop

/* ---- an agent ---- */

static struct agent a;
static struct settings held; /* at one address, as the agent's */

#define DIRS "agent: {state_dir: /state, runtime_dir: /run, operators: 901%s}\n"
#define SERVER(name) "  " name ": {kind: file, urls: ['file:///" name "']}\n"
#define CONFIG(name, more) "  " name ": {from: [{server: d, path: /" name "}], " more "}\n"
#define SNAPSHOT "type: yaml, snapshot: true"
#define FILE_ONLY "type: yaml, snapshot: false, file: /nowhere/out"

static int set_up(void **state)
{
	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&held, 0, sizeof(held));
	a.settings = &held;
	a.lock = -1;
	a.loop = loop_new(&sys_real);
	trigger_queue_init(&a.queue, wake_loop, a.loop);
	did[0] = '\0';
	push_error = listen_error = budget_error = withdraw_result = left_result = 0;
	seen_report = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < held.config_count; i++)
		free(a.configs[i]);
	for (size_t i = 0; i < held.server_count; i++)
		free(a.servers[i]);
	free(a.configs);
	free(a.servers);
	free(a.push);
	free(a.next_push);
	free(a.report);
	if (a.files)
		worker_stop(a.files, 10000);
	loop_free(a.loop);
	settings_free(held.config_count ? memcpy(malloc(sizeof(held)), &held, sizeof(held)) : NULL);
	return 0;
}

/* Goes over to these settings, as a reload does. */
static int apply(struct settings *new)
{
	struct settings_diff diff;
	char why[FILE_WHY] = "";
	int r;

	assert_int_equal(settings_diff(a.settings, new, &diff), 0);
	if (diff.push)
		assert_int_equal(start_push(&a, new, &a.next_push, why), 0);
	r = agent_apply(&a, new, &diff);
	settings_diff_fini(&diff);
	return r;
}

static void start_with_two(void)
{
	assert_int_equal(apply(scratch_settings(DIRS "servers:\n" SERVER("d") SERVER(
							"e") "configs:\n" CONFIG("web", SNAPSHOT)
							CONFIG("db", FILE_ONLY),
				 "")),
		0);
}

static void first_settings__make_and_start_all_and_forget_nothing_yet(void **state)
{
	(void)state;
	start_with_two();
	assert_did("new server d\nnew server e\nnew web\nnew db\nstart web\nstart db\n");
	assert_true(has_sweep);
	assert_null(a.env.sweep);
	assert_int_equal(((struct thing *)a.configs[1])->place, 1);
	assert_ptr_equal(a.control_env.configs, a.configs);
	assert_ptr_equal(a.control_env.servers, a.servers);
	assert_ptr_equal(a.env.pull.servers, a.servers);
	assert_string_equal(a.env.state_dir, "/state");
	assert_string_equal(a.env.runtime_dir, "/run");
	assert_true(a.host[0] != '\0');
}

static char control; /* as if there were one */

static void next_settings__end_what_is_gone_and_keep_the_rest(void **state)
{
	struct config *db;
	struct upstream *d;

	(void)state;
	start_with_two();
	db = a.configs[1];
	d = a.servers[0];
	did[0] = '\0';
	a.control = (struct control *)&control;
	/* a changed one, one as it was, a new one; and e is gone */
	assert_int_equal(apply(scratch_settings(DIRS "servers:\n" SERVER("d") "configs:\n" CONFIG(
							"new", SNAPSHOT) CONFIG("db", FILE_ONLY)
							CONFIG("web", "interval: 2h, " SNAPSHOT),
				 "")),
		0);
	assert_did("new new\nnew web\nforget web\nfree web\nfree server e\noperators 901\n"
		   "start new\nstart web now\nwithdraw in /run all but new web\n"
		   "leave in /state all but new db web\n");
	assert_ptr_equal(a.configs[1], db);
	assert_ptr_equal(a.servers[0], d);
	assert_int_equal(((struct thing *)db)->place, 1);
	assert_int_equal(apply(scratch_settings(DIRS "servers:\n" SERVER("d") "configs:\n" CONFIG(
							"web", "interval: 2h, " SNAPSHOT),
				 "")),
		0);
	assert_did("forget new, which is gone\nfree new\nforget db, which is gone\nfree db\n"
		   "operators 901\nwithdraw in /run all but web\nleave in /state all but web\n");
}

#define PUSH(n) "push:\n- {endpoint: 'ipc:///nowhere/" n "'}\n"

static void push_channel__is_replaced_or_told_of_other_configs(void **state)
{
	(void)state;
	start_with_two();
	did[0] = '\0';
	for (int i = 0; i < 2; i++) {
		assert_int_equal(apply(scratch_settings(DIRS
					 "%sservers:\n" SERVER("d") SERVER("e") "configs:\n" CONFIG(
						 "web", SNAPSHOT) CONFIG("db", FILE_ONLY),
					 "", i ? PUSH("b") : PUSH("a"))),
			0);
		/* that of the configs as they are */
		assert_did(i ? "push from ipc:///nowhere/b of web db\nstop push\n"
			     : "push from ipc:///nowhere/a of web db\n");
		assert_non_null(a.push);
		assert_null(a.next_push);
	}
	assert_int_equal(apply(scratch_settings(DIRS PUSH("b") "servers:\n" SERVER("d") SERVER(
							"e") "configs:\n" CONFIG("db", FILE_ONLY),
				 "")),
		0);
	assert_did("renew push: db\nforget web, which is gone\nfree web\n");
	assert_int_equal(apply(scratch_settings(DIRS PUSH("b") "servers:\n" SERVER("d")
							SERVER("e") "configs:\n" CONFIG(
								"db", "interval: 2h, " FILE_ONLY),
				 "")),
		0);
	assert_did("new db\nrenew push: db\nforget db\nfree db\nstart db now\n");
	assert_int_equal(
		apply(scratch_settings(
			DIRS PUSH("b") "servers:\n" SERVER("d") SERVER("e") "configs:\n" CONFIG(
				"db", "interval: 2h, " FILE_ONLY) CONFIG("web", SNAPSHOT),
			"")),
		0);
	assert_did("new web\nrenew push: db web\nstart web\n");
	/* nothing that is about push */
	assert_int_equal(
		apply(scratch_settings(
			DIRS PUSH("b") "servers:\n" SERVER("d") SERVER("e") "configs:\n" CONFIG(
				"db", "interval: 2h, " FILE_ONLY) CONFIG("web", SNAPSHOT),
			", labels: {zone: eu}")),
		0);
	assert_did("");
	assert_int_equal(a.env.label_count, 1);
	assert_ptr_equal(a.env.labels, held.labels);
}

/* The agent ends then. */
static void push_channel__that_cannot_be_told__is_an_error(void **state)
{
	struct settings_diff diff = {.configs.added = 1};
	char one[2][16];
	struct config *configs[2];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		configs[i] = (struct config *)make_thing((snprintf(one[i], 16, "c%zu", i), one[i]));
	a.push = (struct subscriber *)make_thing("push");
	push_error = -ENOMEM;
	assert_int_equal(renew_push(&a, configs, 2, &diff), -ENOMEM);
	assert_did("renew push: c0 c1\n");
	push_error = 0;
	assert_int_equal(renew_push(&a, configs, 2, &diff), 0);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	assert_int_equal(renew_push(&a, configs, 2, &diff), fault_memory_works ? -ENOMEM : 0);
	fault_memory.nth = 0;
	for (size_t i = 0; i < 2; i++)
		free(configs[i]);
}

static void receipts__go_where_the_settings_say(void **state)
{
#define REPORTED(host, more)                                                                       \
	scratch_settings(DIRS "report: {server: f, host: %s}\nservers:\n" SERVER(                  \
				 "d") "  f: {kind: etcd, urls: "                                   \
				      "['http://127.0.0.1:1']}\nconfigs:\n" CONFIG(                \
					      "web", SNAPSHOT more) CONFIG("db", FILE_ONLY),       \
		"", host)
	struct settings *without =
		scratch_settings(DIRS "servers:\n" SERVER("d") "configs:\n" CONFIG("web", SNAPSHOT)
					 CONFIG("db", FILE_ONLY),
			"");

	(void)state;
	assert_int_equal(apply(REPORTED("h1", "")), 0);
	assert_non_null(strstr(did, "report as h1\n"));
	assert_string_equal(a.host, "h1");
	assert_ptr_equal(seen_report->settings, &held);
	assert_ptr_equal(seen_report->arg, &a);
	assert_ptr_equal(seen_report->loop, a.loop);
	assert_true(seen_report->look == give_receipt);
	did[0] = '\0';
	assert_int_equal(apply(REPORTED("h1", ", interval: 2h")), 0);
	assert_did("new web\nforget web\nfree web\nstart web now\nreport 0\n");
	assert_int_equal(apply(REPORTED("h2", ", interval: 2h")), 0);
	assert_did("stop report\nreport as h2\n");
	assert_int_equal(apply(without), 0);
	assert_null(a.report);
	assert_null(strstr(did, "report as"));
	a.once = true;
	assert_int_equal(apply(REPORTED("h2", "")), 0);
	assert_null(a.report);
}

#define ROLLED SNAPSHOT ", rollout: {server: d, path: /r}"

static void labels__that_change__ask_the_rollouts_of_what_stays(void **state)
{
	(void)state;
	assert_int_equal(apply(scratch_settings(DIRS
				 "servers:\n" SERVER("d") "configs:\n" CONFIG("web", ROLLED)
					 CONFIG("db", FILE_ONLY) CONFIG("x", ROLLED),
				 "")),
		0);
	did[0] = '\0';
	assert_int_equal(apply(scratch_settings(DIRS "servers:\n" SERVER("d") "configs:\n" CONFIG(
							"web", ROLLED) CONFIG("db", FILE_ONLY)
							CONFIG("x", "interval: 2h, " ROLLED),
				 ", labels: {zone: eu}")),
		0);
	assert_did("new x\nforget x\nfree x\nstart x now\nrefresh web\n");
}

/* ---- before it ---- */

static void check_prepared(int r, const char *what, const char *expected_why)
{
	struct settings *new = scratch_settings(
		"agent: {state_dir: /state, runtime_dir: /run, listen: '127.0.0.1:1'}\n" PUSH(
			"a") "servers:\n" SERVER("d") "configs:\n" CONFIG("web", SNAPSHOT));
	struct settings_diff diff;
	char why[FILE_WHY] = "";

	assert_int_equal(settings_diff(a.settings, new, &diff), 0);
	assert_int_equal(agent_prepare(&a, new, &diff, why), r);
	if (r)
		assert_string_equal(why, expected_why);
	assert_did(what);
	assert_int_equal(a.next_push != NULL, r == 0);
	settings_diff_fini(&diff);
	settings_free(new);
}

static void settings__that_cannot_be__leave_nothing_behind(void **state)
{
	(void)state;
	a.control = (struct control *)&control;
	budget_error = -EMFILE;
	check_prepared(-EMFILE, "", "too few descriptors");
	assert_null(a.files);
	budget_error = 0;
	push_error = -EMFILE;
	check_prepared(-EMFILE, "push from ipc:///nowhere/a of\n",
		"cannot start the push channel: Too many open files: raise the limit of open files "
		"(LimitNOFILE)");
	push_error = 0;
	listen_error = -EADDRINUSE;
	check_prepared(-EADDRINUSE,
		"push from ipc:///nowhere/a of\nlisten at 127.0.0.1:1\nstop push\n", "in use");
	listen_error = 0;
	check_prepared(0, "push from ipc:///nowhere/a of\nlisten at 127.0.0.1:1\n", "");
	assert_non_null(a.files);
	assert_ptr_equal(a.env.pull.exchange.files, a.files);
}

static void settings__without_a_thread_for_files__cannot_be(void **state)
{
	(void)state;
	a.control = (struct control *)&control;
	for (int push = 0; push < 2; push++) {
		struct settings *new = scratch_settings(
			DIRS "servers:\n" SERVER("d") "configs:\n" CONFIG("web", SNAPSHOT), "");
		struct settings_diff diff;
		char why[FILE_WHY] = "";
		int r;

		assert_int_equal(settings_diff(a.settings, new, &diff), 0);
		diff.push = push;
		fault_memory.seen = 0;
		fault_memory.nth = 1;
		r = agent_prepare(&a, new, &diff, why);
		fault_memory.nth = 0;
		assert_int_equal(r, -ENOMEM);
		assert_string_equal(why, "memory or threads are short: Cannot allocate memory");
		assert_did("");
		settings_diff_fini(&diff);
		settings_free(new);
	}
}

/* ---- events ---- */

static void log_of(void (*act)(void), char *ret_text, size_t size)
{
	struct captured errors = captured_begin(STDERR_FILENO);

	act();
	captured_read(&errors, ret_text, size);
	captured_end(&errors);
}

static void forget_now(void)
{
	forget_others(&a);
}

static void forget_without_memory(void)
{
	for (int i = 0; i < 2; i++) {
		fault_memory.seen = 0;
		fault_memory.nth = 1;
		(i ? leave_others : withdraw_others)(&a);
		fault_memory.nth = 0;
	}
}

static void snapshots_of_others__that_stay__are_told(void **state)
{
	char text[1024];

	(void)state;
	start_with_two();
	did[0] = '\0';
	log_of(forget_now, text, sizeof(text));
	assert_string_equal(text, "");
	assert_did("withdraw in /run all but web\nleave in /state all but web db\n");
	withdraw_result = 3;
	left_result = 1;
	log_of(forget_now, text, sizeof(text));
	assert_non_null(
		strstr(text, "withdrew snapshots that no config has any more snapshots=3\n"));
	assert_null(strstr(text, "left"));
	withdraw_result = left_result = -EIO;
	log_of(forget_now, text, sizeof(text));
	assert_non_null(strstr(text,
		"a snapshot that no config has any more can still be read why=\"no room\"\n"));
	assert_non_null(strstr(
		text, "versions of removed configs cannot be marked as left why=\"no right\"\n"));
	if (!fault_memory_works)
		return;
	did[0] = '\0';
	log_of(forget_without_memory, text, sizeof(text));
	assert_did("");
	assert_non_null(strstr(text, "can still be read why=\"out of memory\"\n"));
	assert_non_null(strstr(text, "marked as left why=\"out of memory\"\n"));
}

static void resume_now(void)
{
	on_resume(&a, 7777);
}

static void agent__that_did_not_run__asks_again_on_new_connections(void **state)
{
	char text[512];

	(void)state;
	start_with_two();
	did[0] = '\0';
	log_of(resume_now, text, sizeof(text));
	assert_non_null(
		strstr(text, "the agent did not run for a while: pulling again late_ms=7777\n"));
	assert_did("forget connections\nresumed web\nresumed db\n");
	a.watcher = (struct watch *)&control;
	log_of(resume_now, text, sizeof(text));
	a.watcher = NULL;
	assert_did("forget connections\nwatch again\nresumed web\nresumed db\n");
}

static void stop__ends_both_channels_and_the_receipts(void **state)
{
	struct agent b = {.lock = -1,
		.push = (struct subscriber *)make_thing("push"),
		.next_push = (struct subscriber *)make_thing("next"),
		.report = (struct report *)make_thing("report")};

	(void)state;
	agent_stop(&b);
	assert_did("stop report\nstop push\nstop next\n");
}

/* What was not yet published is no loss; what was half written may be one. */
static void stop__exits_all_the_same_where_a_thread_hangs(void **state)
{
	static const struct {
		int code;
		const char *said;
	} rows[] = {{EXIT_FAILURE,
			    "stop 0 within 1000\n<4>the disk does not answer: exiting without the "
			    "last write; the last known good is safe\n"},
		{EXIT_SUCCESS,
			"stop 0 within 1000\nstop 1 within 2000\n<4>a check still runs: exiting "
			"without its version\n"},
		{EXIT_SUCCESS, "stop 0 within 1000\nstop 1 within 2000\nstop 2 within 200\n<4>a "
			       "file of a server does not answer: exiting without it\n"}};

	(void)state;
	for (hangs = 0; hangs < 3; hangs++) {
		struct captured errors = captured_begin(STDERR_FILENO);
		char text[512];
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			struct agent b = {.lock = -1,
				.worker = (struct worker *)&workers[0],
				.check = (struct worker *)&workers[1],
				.files = (struct worker *)&workers[2]};

			agent_stop(&b);
			_exit(99);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		captured_read(&errors, text, sizeof(text));
		captured_end(&errors);
		assert_int_equal(status, rows[hangs].code << 8);
		assert_string_equal(text, rows[hangs].said);
	}
}

static void run__that_ended__is_told_to_each(void **state)
{
	(void)state;
	start_with_two();
	did[0] = '\0';
	config_run_ended(&a, a.configs[1]);
	assert_did("systemd 1\n");
	a.control = (struct control *)&control;
	a.report = (struct report *)make_thing("report");
	config_run_ended(&a, a.configs[1]);
	assert_did("systemd 1\ncheck control\nreport 1\n");
}

static void run_once__ends_with_the_last_config_and_fails_with_any(void **state)
{
	(void)state;
	start_with_two();
	did[0] = '\0';
	a.once = true;
	a.once_left = 2;
	((struct thing *)a.configs[0])->outcome = CONFIG_FAILED;
	config_run_ended(&a, a.configs[0]);
	assert_did("systemd 0\nsuspend web\n");
	assert_true(a.once_failed);
	a.dry_run = true;
	((struct thing *)a.configs[1])->outcome = CONFIG_PUBLISHED;
	config_run_ended(&a, a.configs[1]);
	assert_did("systemd 1\ndry run of db\nsuspend db\nstop the loop\n");
	assert_true(a.once_failed);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(first_settings__make_and_start_all_and_forget_nothing_yet),
		CASE(next_settings__end_what_is_gone_and_keep_the_rest),
		CASE(push_channel__is_replaced_or_told_of_other_configs),
		CASE(push_channel__that_cannot_be_told__is_an_error),
		CASE(receipts__go_where_the_settings_say),
		CASE(labels__that_change__ask_the_rollouts_of_what_stays),
		CASE(settings__that_cannot_be__leave_nothing_behind),
		CASE(snapshots_of_others__that_stay__are_told),
		CASE(agent__that_did_not_run__asks_again_on_new_connections),
		CASE(stop__ends_both_channels_and_the_receipts),
		CASE(stop__exits_all_the_same_where_a_thread_hangs),
		CASE(run__that_ended__is_told_to_each),
		CASE(run_once__ends_with_the_last_config_and_fails_with_any),
		CASE(settings__without_a_thread_for_files__cannot_be),
	};

	return fault_memory_run(tests, 1);
}

/*
 * From one configuration to the next, in a whole agent: what is kept, what begins, what ends, and
 * what is rejected as a whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fixture/pulletd.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#define APPLIED "the new configuration is applied"
#define RUNS "debug the new configuration runs after_ms="
#define INVALID "the new configuration is invalid: nothing was changed"

static void hang_up(void)
{
	kill(agent_pid, SIGHUP);
}

static bool is_there(const char *name)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	return access(path, F_OK) == 0;
}

static void remove_file(const char *name)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	unlink(path);
}

static unsigned count_in_log(const char *words)
{
	unsigned n = 0;

	for (const char *p = talk->log; (p = strstr(p, words)); p++)
		n++;
	return n;
}

/* What the log says of configurations, and of files that stay: "@" is the directory, a line without
 * its level. */
static void assert_logged(const char *expected)
{
	static const char *const about[] = {"info " APPLIED, "info files and history",
		"info published to", "err invalid configuration ",
		"err the new configuration is invalid"};
	char said[16384] = "";
	size_t len = 0;

	for (const char *line = talk->log, *end; (end = strchr(line, '\n')); line = end + 1) {
		line += strcspn(line, " \n"); /* behind the time, */
		line += *line == ' ';
		for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
			if (strncmp(line, about[i], strlen(about[i])) != 0)
				continue;
			/* and the level */
			for (const char *p = strchr(line, ' ') + 1; p <= end; p++)
				if (strncmp(p, played.dir, strlen(played.dir)) == 0) {
					said[len++] = '@';
					p += strlen(played.dir) - 1;
				} else {
					said[len++] = *p;
				}
		}
	}
	assert_true(len < sizeof(said));
	assert_string_equal(said, expected);
}

#define APPLIED_LINE APPLIED " file=@/pullet.yaml "
#define KEPT_LINE "files and history of the removed configs are kept state_dir=@/state\n"
#define INVALID_LINE INVALID " file=@/pullet.yaml "

/* The disk, which takes the state file of web's second version only when the file "slow" is gone;
 * no new directory while "deaf" is there; and no file at all while "broken" is. */
int fsync(int fd)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 &&
		strstr(path, "/web/.00000000000000000002") && is_there("slow"))
		put("waits", "");
	while (is_there("waits") && is_there("slow"))
		poll(NULL, 0, 2);
	if (is_there("deaf") && strcmp(path, played.dir) == 0) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

/* A file system that does not answer while the file "held" is there, for web's document. */
ssize_t read(int fd, void *to, size_t size)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (is_there("held") && readlink(link, path, sizeof(path) - 1) > 0 &&
		strstr(path, "/web.yaml")) {
		put("reads", "");
		while (is_there("held"))
			poll(NULL, 0, 2);
	}
	return syscall(SYS_read, fd, to, size);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (is_there("broken")) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

/* ---- configs ---- */

#define CONFIG(name, more)                                                                         \
	"  " name ": {from: [{server: d, path: /" name ".yaml}], type: yaml, snapshot: true, "     \
	"interval: 1h" more "}\n"

static void put_two(void)
{
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put_settings("", CONFIG("web", "") CONFIG("db", ""));
}

static void change_one_of_two(int printed)
{
	if (!log_has(printed, "published", 2))
		return;
	put("web.yaml", "port: 2\n");
	put("db.yaml", "port: 2\n");
	put_settings("", CONFIG("web", ", timeout: 5s") CONFIG("db", ""));
	hang_up();
	log_has(printed, "published config=web generation=2", 1);
	ask("GET /v1/configs/web"); /* 0 */
	ask("GET /v1/configs/db");  /* 1 */
	ask("GET /v1/status");      /* 2 */
}

static void config__that_changed__pulls_at_once__and_the_other_does_not(void **state)
{
	(void)state;
	put_two();
	run_with(change_one_of_two);
	assert_answer(0, 200, "\"generation\":2");
	assert_answer(1, 200, "\"generation\":1");
	assert_answer(1, 200, "\"runs\":{\"success\":1,");
	assert_answer(2, 200, "\"reloads\":1,\"rejections\":0,\"error\":null");
	assert_logged(APPLIED_LINE "unchanged=1 changed=\"1: web\"\n");
	assert_shows(talk->log, RUNS);
	assert_in_range(strtoul(strstr(talk->log, RUNS) + strlen(RUNS), NULL, 10), 0, 20000);
	assert_null(strstr(talk->log, "reload pending"));
}

static void remove_one(int printed)
{
	if (!log_has(printed, "published", 2))
		return;
	ask("GET /v1/configs/db"); /* 0 */
	put_settings("", CONFIG("web", ""));
	hang_up();
	log_has(printed, "withdrew snapshots that no config has any more snapshots=1", 1);
	ask("GET /v1/configs/db"); /* 1 */
	put_settings("", CONFIG("web", "") CONFIG("db", ""));
	hang_up();
	log_has(printed, APPLIED, 2);
	ask("GET /v1/configs/db"); /* 2 */
}

static void config__that_was_removed__is_withdrawn_and_comes_back_as_it_was(void **state)
{
	(void)state;
	put_two();
	run_with(remove_one);
	assert_answer(0, 200, "\"generation\":1");
	assert_answer(1, 404, "there is no config of that name");
	assert_answer(2, 200, "\"generation\":1");
	assert_shows(talk->log, "started from the last known good config=db generation=1");
	assert_logged(APPLIED_LINE "unchanged=1 removed=\"1: db\"\n" KEPT_LINE APPLIED_LINE
				   "unchanged=1 added=\"1: db\"\n");
	assert_true(is_there("run/db.snap"));
	assert_true(is_there("run/web.snap"));
}

static void rename_decided(int printed)
{
	if (!log_has(printed, "published", 2))
		return;
	ask("POST /v1/configs/web/pin");                                   /* 0 */
	ask("POST /v1/configs/db/override?key=port&value=9&for_ms=60000"); /* 1 */
	put_settings("", CONFIG("new", ""));
	hang_up();
	log_has(printed, "published config=new", 1);
}

static void config__removed_with_an_operators_decisions__is_told_with_them(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put("new.yaml", "port: 1\n");
	put_settings("", CONFIG("web", "") CONFIG("db", ""));
	run_with(rename_decided);
	assert_answer(0, 200, "");
	assert_answer(1, 200, "");
	assert_shows(talk->log, "for no other name config=web pinned=yes\n");
	assert_shows(talk->log, "for no other name config=db overrides=1\n");
	assert_int_equal(count_in_log("a config with decisions of operators is removed"), 2);
}

static void move_file(int printed)
{
	char config[512];

	if (!log_has(printed, "published", 1))
		return;
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/other, "
		"interval: 1h}\n",
		played.dir);
	put_settings("", config);
	hang_up();
	if (log_has(printed, APPLIED, 1))
		ask_until("GET /v1/configs/web", "\"success\":1");
}

static void file__elsewhere__is_written_there_and_the_old_one_kept(void **state)
{
	char config[512], text[64];

	(void)state;
	put("web.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, "
		"interval: 1h}\n",
		played.dir);
	put_settings("", config);
	run_with(move_file);
	assert_logged(APPLIED_LINE "unchanged=0 changed=\"1: web\"\npublished to another file: the "
				   "old one is kept config=web file=@/out\n");
	assert_true(scratch_read(played.dir, "out", text, sizeof(text), NULL));
	assert_string_equal(text, "port: 1\n");
	assert_true(scratch_read(played.dir, "other", text, sizeof(text), NULL));
	assert_string_equal(text, "port: 1\n");
}

static void add_many(int printed)
{
	char text[8192] = "";
	size_t len = 0;

	if (!log_has(printed, "started version", 1))
		return;
	for (int i = 0; i < 40; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"  config-number-%02d: {from: [{server: d, path: /web.yaml}], snapshot: "
			"true}\n",
			i);
	put_settings("", text);
	hang_up();
	log_has(printed, APPLIED, 1);
}

static void names_in_the_log__are_cut_off_at_a_bound(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", CONFIG("web", ""));
	run_with(add_many);
	assert_logged(APPLIED_LINE
		"unchanged=0 added=\"40: config-number-00 config-number-01 config-number-02 "
		"config-number-03 config-number-04 config-number-05 config-number-06 "
		"config-number-07 config-number-08 config-number-09 config-number-10 ...\" "
		"removed=\"1: web\"\n" KEPT_LINE);
}

/* ---- what is under way ---- */

static void change_during_a_check(int printed)
{
	char config[512];
	int wait;

	if (!log_has(printed, "started version", 1))
		return;
	while (!is_there("begun"))
		poll(NULL, 0, 2);
	wait = ask_begin("POST /v1/configs/web/refresh?wait=1");
	ask("GET /livez"); /* 0: the agent has the other one by then */
	snprintf(config, sizeof(config), CONFIG("web", ", check: {run: [/bin/true, '{path}']}"));
	put_settings("", config);
	hang_up();
	log_has(printed, "published", 1);
	ask_end(wait);              /* 1 */
	ask("GET /v1/configs/web"); /* 2 */
}

static void check__under_way__ends_with_its_config(void **state)
{
	char config[512];

	(void)state;
	put("web.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, snapshot: true, "
		"interval: "
		"1h, check: {run: [/bin/sh, -c, 'touch %s/begun; sleep 30', '{path}'], timeout: "
		"60s}}\n",
		played.dir);
	put_settings("", config);
	run_with(change_during_a_check);
	assert_answer(1, 409, "the config was recreated by a new configuration");
	assert_answer(2, 200, "\"generation\":1");
	assert_int_equal(count_in_log("published config="), 1);
}

static void hang_up_often(int printed)
{
	char config[512];

	if (!log_has(printed, "published", 1))
		return;
	for (int i = 0; i < 20; i++) {
		snprintf(config, sizeof(config), CONFIG("web", ", timeout: %ds"), i + 1);
		put_settings("", config);
		hang_up();
	}
	put_settings("", CONFIG("web", "") CONFIG("db", ""));
	hang_up();
	log_has(printed, "added=\"1: db\"", 1);
	ask_until("GET /v1/configs/db", "\"generation\":1"); /* 1 */
	ask("GET /v1/configs/web");                          /* 1 */
}

static void last_signal_of_many__counts(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put_settings("", CONFIG("web", ""));
	run_with(hang_up_often);
	assert_answer(1, 200, "\"generation\":1");
}

static char disk[SCRATCH_PATH];

static void put_disk_settings(const char *configs)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\nconfigs:\n%s",
		disk, played.dir, played.dir, configs);
	put("pullet.yaml", text);
}

static void change_during_a_write(int printed)
{
	char config[512];

	if (!log_has(printed, "published", 2))
		return;
	put("slow", "");
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh"); /* 0 */
	while (!is_there("waits"))
		poll(NULL, 0, 2);
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, interval: "
		"2h}\n" CONFIG("db", ""),
		disk);
	put_disk_settings(config);
	hang_up();
	if (!log_has(printed, "reload pending: waiting for writes to finish configs=1", 1))
		return;
	ask("GET /v1/status");                     /* 1 */
	ask("POST /v1/configs/db/refresh?wait=1"); /* 2: the other one goes on */
	put_disk_settings(CONFIG("db", ""));
	hang_up(); /* meanwhile */
	ask("GET /livez");
	talk->count--;
	remove_file("slow");
	log_has(printed, APPLIED, 2);
	ask("GET /v1/status"); /* 3 */
}

static void write__under_way__is_finished_first__then_the_last_signal_counts(void **state)
{
	char config[512], text[64];

	(void)state;
	scratch_open(disk, scratch_disk());
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, interval: "
		"1h}\n" CONFIG("db", ""),
		disk);
	put_disk_settings(config);
	run_with(change_during_a_write);
	assert_answer(1, 200, "\"applying\":true");
	assert_answer(2, 200, "\"outcome\":\"unchanged\"");
	assert_true(scratch_read(disk, "out", text, sizeof(text), NULL));
	assert_string_equal(text, "port: 2\n");
	assert_answer(3, 200, "\"reloads\":2,");
	assert_answer(3, 200, "\"applying\":false");
	assert_null(strstr(talk->answers[3], "\"name\":\"web\""));
	scratch_close(disk);
}

static void change_during_two_writes(int printed)
{
	char config[1024];
	int wait;

	if (!log_has(printed, "published", 2))
		return;
	put("slow", "");
	put("web.yaml", "port: 2\n");
	put("db.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh"); /* 0 */
	while (!is_there("waits"))
		poll(NULL, 0, 2);
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, interval: "
		"2h}\n"
		"  db: {from: [{server: d, path: /db.yaml}], type: yaml, file: %s/db, interval: "
		"2h}\n",
		disk, disk);
	put_disk_settings(config);
	hang_up();
	if (!log_has(printed, "reload pending: waiting for writes to finish configs=1", 1))
		return;
	/* by the old configuration, and behind the other write */
	wait = ask_begin("POST /v1/configs/db/refresh?wait=1");
	ask_until("GET /v1/configs/db/explain", "being written"); /* 1 */
	remove_file("slow");
	log_has(printed, APPLIED, 1);
	ask_end(wait);                                               /* 2 */
	ask_until("GET /v1/configs/db", "\"runs\":{\"success\":1,"); /* 3: by the new one */
}

/* Whatever else has begun while the first was waited for. */
static void writes__under_way__are_all_finished_first(void **state)
{
	char config[1024], text[64];
	const char *written;

	(void)state;
	scratch_open(disk, scratch_disk());
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, interval: "
		"1h}\n"
		"  db: {from: [{server: d, path: /db.yaml}], type: yaml, file: %s/db, interval: "
		"1h}\n",
		disk, disk);
	put_disk_settings(config);
	run_with(change_during_two_writes);
	written = strstr(talk->log, "published config=db generation=2");
	assert_non_null(written);
	assert_non_null(strstr(written, APPLIED)); /* behind it */
	assert_true(scratch_read(disk, "db", text, sizeof(text), NULL));
	assert_string_equal(text, "port: 2\n");
	assert_answer(3, 200, "\"generation\":2");
	scratch_close(disk);
}

static void stop_during_a_pull(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put("held", "");
	put("web.yaml", "port: 2\n");
	ask("POST /v1/configs/web/refresh"); /* 0 */
	while (!is_there("reads"))
		poll(NULL, 0, 2);
	kill(agent_pid, SIGTERM);
	log_has(printed, "stopping signal=Terminated", 1);
	remove_file("held");
}

static void pull__under_way__ends_with_the_agent(void **state)
{
	char config[512], text[64];

	(void)state;
	put("web.yaml", "port: 1\n");
	snprintf(config, sizeof(config),
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out, "
		"interval: 1h}\n",
		played.dir);
	put_settings("", config);
	run_with(stop_during_a_pull);
	assert_true(scratch_read(played.dir, "out", text, sizeof(text), NULL));
	assert_string_equal(text, "port: 1\n");
	assert_int_equal(count_in_log("published"), 1);
}

static void change_a_watched_one(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put_settings(", watch_config: true", CONFIG("web", ", timeout: 5s"));
	hang_up();
	if (!log_has(printed, APPLIED, 1))
		return;
	put_settings(", watch_config: true", CONFIG("web", ", timeout: 6s"));
	log_has(printed, APPLIED, 2); /* without a signal */
}

static void change_one_that_is_watched_from_the_start(int printed)
{
	if (!log_has(printed, "started version", 1))
		return;
	put_settings(", watch_config: true", CONFIG("db", ""));
	log_has(printed, APPLIED, 1);
}

static void configuration__that_is_watched__is_applied_by_itself(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", CONFIG("web", ""));
	run_with(change_a_watched_one);
	memset(talk, 0, sizeof(*talk));
	run_with(change_one_that_is_watched_from_the_start);
	assert_shows(talk->log, "added=\"1: db\" removed=\"1: web\"");
}

static void see_it_start(int printed)
{
	log_has(printed, "started version", 1);
}

static void directory__that_the_disk_may_lose__is_warned_of(void **state)
{
	(void)state;
	put_settings("", CONFIG("web", ""));
	put("deaf", "");
	run_with(see_it_start);
	/* for the state, and for what runs */
	assert_int_equal(count_in_log("a power cut may lose a new directory why=\"cannot bring to "
				      "the disk the directory "),
		2);
	memset(talk, 0, sizeof(*talk));
	run_with(see_it_start); /* they are not new any more */
	assert_int_equal(count_in_log("a power cut"), 0);
}

static void change_after_a_pin(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put("broken", "");
	ask("POST /v1/configs/web/pin?reason=hold"); /* 0 */
	remove_file("broken");
	put_settings("", CONFIG("web", ", timeout: 5s"));
	hang_up();
	log_has(printed, APPLIED, 1);
	ask("GET /v1/configs/web"); /* 1 */
}

static void pin__that_the_disk_did_not_take__outlives_its_config(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", CONFIG("web", ""));
	run_with(change_after_a_pin);
	assert_shows(talk->answers[0], "done, but not saved: it will be lost on restart");
	assert_answer(1, 200, "\"reason\":\"hold\"");
}

/* ---- what is rejected ---- */

static void reject_and_apply(int printed)
{
	char part[64];
	int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	if (!log_has(printed, "published", 1) ||
		bind(taken, (const struct sockaddr *)&a, sizeof(a)) || listen(taken, 1) ||
		getsockname(taken, (struct sockaddr *)&a, &len))
		return;
	snprintf(part, sizeof(part), ", listen: '127.0.0.1:%d'", ntohs(a.sin_port));
	put_settings(part, CONFIG("db", ""));
	hang_up();
	log_has(printed, INVALID, 1);
	ask("GET /v1/status"); /* 0 */
	close(taken);
	hang_up();
	log_has(printed, APPLIED, 1);
	ask("GET /v1/status"); /* 1 */
	put_settings(part, "  db: {interval: x}\n  web: {}\n");
	hang_up();
	log_has(printed, INVALID, 2);
	ask("GET /v1/status"); /* 2 */
	put("pullet.yaml", "{");
	hang_up();
	log_has(printed, INVALID, 3);
	ask("GET /v1/status"); /* 3 */
}

static void configuration__that_cannot_be__changes_nothing(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", CONFIG("web", ""));
	run_with(reject_and_apply);
	assert_answer(
		0, 200, "\"reloads\":0,\"rejections\":1,\"error\":\"cannot listen on 127.0.0.1:");
	assert_answer(0, 200, "\"configs\":[{\"name\":\"web\"");
	assert_answer(1, 200, "\"reloads\":1,\"rejections\":1,\"error\":null,\"errors\":0");
	assert_answer(1, 200, "\"configs\":[{\"name\":\"db\"");
	assert_answer(2, 200, "\"rejections\":2,");
	assert_answer(2, 200, "\"configs\":[{\"name\":\"db\"");
	assert_answer(3, 200, "\"rejections\":3,");
	assert_answer(2, 200, "/pullet.yaml:5:18: interval: ");
	assert_answer(2, 200, "\"errors\":3");
	assert_answer(3, 200,
		"/pullet.yaml:1:1: the bracket { that opens here is never closed: close it at the "
		"end of the value\",\"errors\":1");
	*strstr(talk->log, " err invalid") = '#'; /* it names the port */
	assert_logged(INVALID_LINE
		"errors=1\n" APPLIED_LINE
		"unchanged=0 added=\"1: db\" removed=\"1: web\" other=listen\n" KEPT_LINE
		"invalid configuration error=\"@/pullet.yaml:5:18: interval: \\\"x\\\" is not a "
		"duration: write a whole number and a unit, such as 500ms, 10s, 5m, 1h or 2d, or "
		"several, the greatest first: 1h30m\"\n"
		"invalid configuration error=\"@/pullet.yaml:5:3: config \\\"db\\\" needs either "
		"url or from, and has neither\"\n"
		"invalid configuration error=\"@/pullet.yaml:6:3: config \\\"web\\\" needs either "
		"url or from, and has neither\"\n" INVALID_LINE "errors=3\n"
		"invalid configuration error=\"@/pullet.yaml:1:1: the bracket { that opens here is "
		"never closed: close it at the end of the value\"\n" INVALID_LINE "errors=1\n");
}

static void want_too_many_descriptors(int printed)
{
	const struct rlimit few = {.rlim_cur = 24, .rlim_max = 24};
	char part[512];

	if (!log_has(printed, "started version", 1))
		return;
	snprintf(part, sizeof(part), "}\npush:\n- {endpoint: 'ipc://%s/push'", played.dir);
	put_settings(part, CONFIG("web", ""));
	talk->failed |= prlimit(agent_pid, RLIMIT_NOFILE, &few, NULL) != 0;
	hang_up();
	log_has(printed, INVALID, 1);
	ask("GET /v1/status");              /* 0 */
	put_settings("", CONFIG("db", "")); /* for which there are enough */
	hang_up();
	log_has(printed, APPLIED, 1);
	ask("GET /v1/status"); /* 1 */
}

static void configuration__that_needs_more_descriptors_than_there_are__is_rejected(void **state)
{
	(void)state;
	put_settings("", CONFIG("web", ""));
	run_with(want_too_many_descriptors);
	assert_answer(0, 200, "\"rejections\":1,\"error\":\"");
	assert_answer(0, 200, " file descriptors are needed (");
	assert_answer(0, 200, "\"push\":[]");
	assert_answer(1, 200, "\"configs\":[{\"name\":\"db\"");
}

/* ---- beside the configs ---- */

static void change_servers(int printed)
{
	char text[2048];

	if (!log_has(printed, "published", 1))
		return;
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s/more']}\n"
		"  e: {kind: etcd, urls: ['http://127.0.0.1:1']}\n"
		"report: {server: e, host: h1}\nconfigs:\n" CONFIG("web", ""),
		played.dir, played.dir, played.dir);
	put("pullet.yaml", text);
	hang_up();
	log_has(printed, "published", 2);
	ask("GET /v1/status"); /* 0 */
	*strstr(text, "h1") = 'g';
	put("pullet.yaml", text);
	hang_up();
	log_has(printed, APPLIED, 2);
	ask("GET /v1/status"); /* 1 */
	put_settings("", CONFIG("web", ""));
	hang_up();
	log_has(printed, "published", 3);
	ask("GET /v1/status"); /* 2 */
}

static void servers_and_receipts__come_change_and_go(void **state)
{
	char more[SCRATCH_PATH + 16];

	(void)state;
	snprintf(more, sizeof(more), "%s/more", played.dir);
	assert_int_equal(mkdir(more, 0755), 0);
	put("web.yaml", "port: 1\n");
	put("more/web.yaml", "port: 2\n");
	put_settings("", CONFIG("web", ""));
	run_with(change_servers);
	assert_answer(0, 200, "\"generation\":2");
	assert_answer(0, 200, "\"report\":{\"server\":\"e\",\"key\":\"/pullet/agents/h1\"");
	assert_answer(1, 200, "\"key\":\"/pullet/agents/g1\"");
	assert_answer(2, 200, "\"generation\":3");
	assert_null(strstr(talk->answers[2], "\"key\":\"/pullet/agents"));
	assert_logged(APPLIED_LINE
		"unchanged=0 changed=\"1: web\" servers_added=\"1: e\" servers_changed=\"1: d\" "
		"other=\"labels report\"\n" APPLIED_LINE
		"unchanged=1 other=\"labels report\"\n" APPLIED_LINE
		"unchanged=0 changed=\"1: web\" servers_changed=\"1: d\" "
		"servers_removed=\"1: e\" other=labels\n");
}

#define ROLLED ", rollout: {server: d, path: /rollout.yaml}"

static void change_labels(int printed)
{
	if (!log_has(printed, "published", 2))
		return;
	put_settings(", labels: {zone: eu}", CONFIG("web", ROLLED) CONFIG("db", ROLLED));
	put("web.yaml", "port: 2\n");
	put("db.yaml", "port: 2\n");
	hang_up();
	log_has(printed, APPLIED, 1);
	ask_until("GET /v1/configs/web", "\"rejected\":{\"by\":\"rollout\""); /* 0 */
	ask_until("GET /v1/configs/db", "\"rejected\":{\"by\":\"rollout\"");  /* 1 */
	put_settings(", labels: {zone: us}", CONFIG("web", ROLLED) CONFIG("db", ROLLED));
	hang_up();
	/* without a pull by the clock */
	log_has(printed, "published config=web generation=2", 1);
	log_has(printed, "published config=db generation=2", 1);
}

static void labels__that_change__ask_each_rollout_again(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put("rollout.yaml", "labels: {zone: us}\n");
	put_settings(", labels: {zone: eu}", CONFIG("web", "") CONFIG("db", ""));
	run_with(change_labels);
	assert_answer(0, 200, "\"generation\":1");
	assert_answer(1, 200, "\"generation\":1");
	assert_logged(APPLIED_LINE "unchanged=0 changed=\"2: web db\"\n" APPLIED_LINE
				   "unchanged=2 other=labels\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(config__that_changed__pulls_at_once__and_the_other_does_not),
		CASE(config__that_was_removed__is_withdrawn_and_comes_back_as_it_was),
		CASE(config__removed_with_an_operators_decisions__is_told_with_them),
		CASE(file__elsewhere__is_written_there_and_the_old_one_kept),
		CASE(names_in_the_log__are_cut_off_at_a_bound),
		CASE(check__under_way__ends_with_its_config),
		CASE(last_signal_of_many__counts),
		CASE(write__under_way__is_finished_first__then_the_last_signal_counts),
		CASE(writes__under_way__are_all_finished_first),
		CASE(pull__under_way__ends_with_the_agent),
		CASE(configuration__that_is_watched__is_applied_by_itself),
		CASE(directory__that_the_disk_may_lose__is_warned_of),
		CASE(pin__that_the_disk_did_not_take__outlives_its_config),
		CASE(configuration__that_cannot_be__changes_nothing),
		CASE(configuration__that_needs_more_descriptors_than_there_are__is_rejected),
		CASE(servers_and_receipts__come_change_and_go),
		CASE(labels__that_change__ask_each_rollout_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The agent's configuration: every key, every refusal with its place, several files together.
 *
 * What would surprise: the list of keys is taken from the agent's own message about an unknown key,
 * so that a key which the full example leaves out fails here; of the man page, test_page.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crypto/minisign.h"
#include "settings/settings.h"
#include "tests/unit/fixture/source.h"
#include "settings/form.h"
#include "settings/value.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Sorts as C allows it: what is equal has no order, so here it has the reverse of that before. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	void (*real)(void *, size_t, size_t, int (*)(const void *, const void *)) =
		(void (*)(void *, size_t, size_t, int (*)(const void *, const void *)))dlsym(
			RTLD_NEXT, "qsort");
	char *low = base, *high = low + count * size, byte;

	for (; low + size < high; low += size) {
		high -= size;
		for (size_t i = 0; i < size; i++)
			byte = low[i], low[i] = high[i], high[i] = byte;
	}
	real(base, count, size, compare);
}

/* ---- what was told ---- */

struct told {
	char text[1100][512];
	size_t count;
};

static struct told told;

static void tell(void *arg, const char *message)
{
	struct told *t = arg;

	assert_true(t->count < COUNT(t->text));
	assert_null(strchr(message, '\n'));
	snprintf(t->text[t->count++], sizeof(t->text[0]), "%s", message);
}

static int parse(const char *text, struct settings **ret)
{
	told.count = 0;
	*ret = NULL;
	return settings_parse("t.yaml", text, strlen(text), tell, &told, ret);
}

/* The settings of a text that must be good. */
static struct settings *good(const char *text)
{
	struct settings *s;
	int errors = parse(text, &s);

	for (size_t i = 0; i < told.count; i++)
		print_error("%s\n", told.text[i]);
	assert_int_equal(errors, 0);
	assert_non_null(s);
	return s;
}

/* The text must be refused with exactly these messages; NULL ends them. */
static void bad(const char *text, const char *const *messages)
{
	struct settings *s;
	int errors = parse(text, &s);
	size_t n = 0;

	assert_null(s);
	for (; messages[n]; n++) {
		assert_true(n < told.count);
		assert_string_equal(told.text[n], messages[n]);
	}
	assert_int_equal(told.count, n);
	assert_int_equal(errors, n);
}

#define BAD(text, ...) bad(text, (const char *const[]){__VA_ARGS__, NULL})

/* One more line in an otherwise good config, at line 5; its message behind "t.yaml:5:". */
static void bad_line(const char *line, const char *message)
{
	char text[8192], want[512];

	snprintf(text, sizeof(text),
		"configs:\n  web:\n    url: http://h/web.yaml\n    file: /run/web.yaml\n    %s\n",
		line);
	snprintf(want, sizeof(want), "t.yaml:5:%s", message);
	BAD(text, want);
}

#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
#define KEY2 "RWSI3+08JQA94IqbHgFCM06WjEUwyzzR9u5cubDO96FEpDpazjriwjGv"
#define WEB "configs: {web: {url: 'http://h/web.yaml', file: /run/web.yaml}}\n"

/* ---- one file ---- */

static void parse__smallest__gives_the_defaults(void **state)
{
	struct settings *s = good(WEB);
	const struct settings_config *c = s->configs[0];

	(void)state;
	assert_string_equal(s->state_dir, "/var/lib/pullet");
	assert_string_equal(s->runtime_dir, "/run/pullet");
	assert_null(s->listen);
	assert_int_equal(s->log_level, LOG_LEVEL_INFO);
	assert_int_equal(s->log_format, LOG_FORMAT_TEXT);
	assert_int_equal(s->label_count + s->push_count, 0);
	assert_int_equal(s->config_count, 1);
	assert_string_equal(c->name, "web");
	assert_string_equal(c->url, "http://h/web.yaml");
	assert_string_equal(c->file, "/run/web.yaml");
	assert_string_equal(c->topic, "web");
	assert_int_equal(c->type, SETTINGS_TYPE_AUTO);
	assert_int_equal(c->interval_ms, 30000);
	assert_int_equal(c->jitter, 10);
	assert_int_equal(c->timeout_ms, 10000);
	assert_int_equal(c->backoff_bound, 10);
	assert_int_equal(c->push_spread_ms, 0);
	assert_int_equal(c->push_min_ms, 100);
	assert_int_equal(c->format, SETTINGS_VERBATIM);
	assert_int_equal(c->mode, 0640);
	assert_true(c->uid == (uid_t)-1 && c->gid == (gid_t)-1);
	assert_false(c->strict);
	assert_null(c->dir);
	assert_null(c->format_run.argv);
	assert_null(c->verify.public_keys);
	assert_int_equal(c->guard.max_shrink, 100);
	assert_int_equal(c->guard.max_changes, 0);
	assert_null(c->guard.require);
	assert_false(c->guard.allow_empty);
	assert_null(c->schema);
	assert_null(c->check.argv);
	assert_int_equal(c->reload.rule_count, 0);
	assert_true(!c->probe.argv && !c->probe.url);
	assert_int_equal(c->history, 10);
	assert_null(c->mask);
	assert_int_equal(c->drift, SETTINGS_HEAL);
	settings_free(s);
}

static void parse__every_key__is_taken_over(void **state)
{
	struct settings *s = good("agent:\n"
				  "  state_dir: /s\n"
				  "  runtime_dir: /r\n"
				  "  log: {level: debug, format: json}\n"
				  "  listen: '[::1]:9377'\n"
				  "  listen_names: [web-1.example, web-1]\n"
				  "  operators: 4711\n"
				  "  labels: {zone: eu-1, rack: '12'}\n"
				  "  watch_config: true\n"
				  "push:\n"
				  "  - endpoint: tcp://h:7377\n"
				  "    insecure: true\n"
				  "    heartbeat: 7s\n"
				  "  - endpoint: ipc:///run/p.sock\n"
				  "configs:\n"
				  "  db:\n"
				  "    url: https://h:8443/a?b=c@d\n"
				  "    type: json\n"
				  "    interval: 2m\n"
				  "    jitter: 0%\n"
				  "    timeout: 500ms\n"
				  "    backoff_bound: 3\n"
				  "    topic: team/db\n"
				  "    push_spread: 4s\n"
				  "    push_min_interval: 0ms\n"
				  "    file: /run/db.json\n"
				  "    format: yaml\n"
				  "    mode: 0600\n"
				  "    owner: 12:34\n"
				  "    durability: strict\n");
	const struct settings_config *c = s->configs[0];

	(void)state;
	assert_string_equal(s->state_dir, "/s");
	assert_string_equal(s->runtime_dir, "/r");
	assert_string_equal(s->listen, "[::1]:9377");
	assert_int_equal(s->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(s->log_format, LOG_FORMAT_JSON);
	assert_int_equal(s->operators, 4711);
	assert_true(s->watch_config);
	assert_int_equal(s->label_count, 2);
	assert_string_equal(s->listen_names[0], "web-1.example");
	assert_string_equal(s->listen_names[1], "web-1");
	assert_null(s->listen_names[2]);
	assert_string_equal(s->labels[1].name, "rack");
	assert_string_equal(s->labels[1].value, "12");
	assert_int_equal(s->push_count, 2);
	assert_string_equal(s->push[0].endpoint, "tcp://h:7377");
	assert_int_equal(s->push[0].heartbeat_ms, 7000);
	assert_int_equal(s->push[1].heartbeat_ms, 5000);
	assert_string_equal(c->url, "https://h:8443/a?b=c@d");
	assert_int_equal(c->type, SETTINGS_TYPE_JSON);
	assert_int_equal(c->interval_ms, 120000);
	assert_int_equal(c->jitter, 0);
	assert_int_equal(c->timeout_ms, 500);
	assert_int_equal(c->backoff_bound, 3);
	assert_string_equal(c->topic, "team/db");
	assert_int_equal(c->push_spread_ms, 4000);
	assert_int_equal(c->push_min_ms, 0);
	assert_string_equal(c->file, "/run/db.json");
	assert_int_equal(c->format, SETTINGS_FORMAT_YAML);
	assert_int_equal(c->mode, 0600);
	assert_int_equal(c->uid, 12);
	assert_int_equal(c->gid, 34);
	assert_true(c->strict);
	settings_free(s);
}

static void parse__bad_value__names_place_and_remedy(void **state)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"interval: 30", "15: interval: \"30\" has no unit: write it with ms, s, m, h or d "
				 "behind the number"},
		{"interval: '30'",
			"15: interval: \"30\" has no unit: write it with ms, s, m, h or d "
			"behind the number"},
		{"interval: soon", "15: interval: \"soon\" is not a duration: write a whole number "
				   "and a unit, such as 500ms, 10s, 5m, 1h or 2d, or several, the "
				   "greatest first: 1h30m"},
		{"interval: 1.5", "15: interval must be a duration such as 30s, but it is a number "
				  "with a fraction"},
		{"interval: [30s]",
			"15: interval must be a duration such as 30s, but it is a list"},
		{"interval: 99ms", "15: interval must be between 100ms and 30d"},
		{"interval: 31d", "15: interval must be between 100ms and 30d"},
		{"timeout: 61m", "14: timeout must be between 100ms and 1h"},
		{"push_spread: 2h", "18: push_spread must be between 0ms and 1h"},
		{"push_min_interval: 61m", "24: push_min_interval must be between 0ms and 1h"},
		{"jitter: 10", "13: jitter: \"10\" is not a percentage: write a whole number and "
			       "%, such as 10%"},
		{"jitter: [10%]", "13: jitter must be a percentage such as 10%, but it is a list"},
		{"jitter: 51%", "13: jitter must be between 0% and 50%"},
		{"backoff_bound: 0", "20: backoff_bound must be between 1 and 1000"},
		{"backoff_bound: -1", "20: backoff_bound must be between 1 and 1000"},
		{"backoff_bound: 1001", "20: backoff_bound must be between 1 and 1000"},
		{"backoff_bound: '10'",
			"20: backoff_bound must be a whole number, but it is a text"},
		{"topic: 5", "12: topic must be a text, but it is a number: put it in quotes"},
		{"topic: ''", "12: topic: \"\" must have 1 to 255 bytes"},
		{"topic: pullet.heartbeat", "12: topic: \"pullet.heartbeat\" is the topic of the "
					    "heartbeats: choose another"},
		{"type: auto", "11: type must be one of yaml, json, bytes"},
		{"format: 1", "13: format must be one of verbatim, yaml, json, env, properties"},
		{"durability:", "16: durability must be one of normal, strict"},
		{"mode: 0666", "11: mode: \"0666\" lets others write the file: only its owner "
			       "may, as in \"0640\""},
		{"mode: 0041",
			"11: mode: \"0041\" keeps the owner from reading the file: add 0400"},
		{"mode: 0o640", "11: mode: \"0o640\" is not a file mode: write three or four octal "
				"digits, such as \"0640\""},
		{"owner: no-such-user-here", "12: owner: \"no-such-user-here\" names a user that "
					     "does not exist here"},
		{"owner: root:no-such-group-here",
			"12: owner: \"root:no-such-group-here\" names a group that does not exist "
			"here"},
		{"intervall: 30s", "5: unknown key \"intervall\" in config \"web\": did you mean "
				   "\"interval\"?"},
		{"file: /run/x", "5: file is set twice: first at t.yaml:4:5"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		bad_line(cases[i].line, cases[i].message);
}

static void parse__url_with_password__does_not_repeat_it(void **state)
{
	(void)state;
	BAD("configs: {web: {url: 'http://me:secret@h/', file: /run/a}}",
		"t.yaml:1:22: url holds credentials, which do not belong in the URL: remove "
		"USER:PASSWORD@");
}

static void parse__many_errors__tells_all_of_them(void **state)
{
	(void)state;
	BAD("agnet: {}\n"
	    "agent:\n"
	    "  state_dir: var\n"
	    "  log: {level: loud}\n"
	    "  listen: 9377\n"
	    "  labels: {-x: a, y: 1}\n"
	    "push:\n"
	    "  - heartbeat: 5s\n"
	    "  - tcp://h:1\n"
	    "configs:\n"
	    "  a b: {url: 'http://h/', file: /run/a}\n"
	    "  web:\n"
	    "    url: ftp://h/\n"
	    "    mode: 0444\n"
	    "  none:\n",
		"t.yaml:1:1: unknown key \"agnet\" in the file: did you mean \"agent\"?",
		"t.yaml:3:14: state_dir: \"var\" must be an absolute path, beginning with /",
		"t.yaml:4:16: level must be one of err, warn, info, debug",
		"t.yaml:5:11: listen must be a text, but it is a number: put it in quotes",
		"t.yaml:6:12: label \"-x\" is not a name: 1 to 64 letters, digits, '.', '_' and "
		"'-', a letter or digit first",
		"t.yaml:6:22: label \"y\" must be a text, but it is a number: put it in quotes",
		"t.yaml:8:5: a push item has no endpoint, which it needs",
		"t.yaml:9:5: a push item must be a mapping with an endpoint, but it is a text",
		"t.yaml:11:3: config \"a b\" is not a name: 1 to 64 letters, digits, '.', '_' and "
		"'-', a letter or digit first",
		"t.yaml:13:10: url must begin with http:// or https://",
		"t.yaml:15:8: config \"none\" must be a mapping with at least url (or from), "
		"but it is empty");
}

static void parse__without_file__needs_a_snapshot(void **state)
{
	struct settings *s = good("configs: {a: {url: 'http://h/'}}");

	(void)state;
	assert_null(s->configs[0]->file);
	assert_true(s->configs[0]->snapshot);
	settings_free(s);
	s = good("configs: {a: {url: 'http://h/', file: /run/a, snapshot: false}}");
	assert_false(s->configs[0]->snapshot);
	settings_free(s);
	s = good("configs: {a: {url: 'http://h/', file: /run/a, type: bytes}}");
	assert_false(s->configs[0]->snapshot);
	settings_free(s);
	BAD("configs: {a: {url: 'http://h/', snapshot: false}}",
		"t.yaml:1:11: config \"a\" needs a file: without one, and without a snapshot, "
		"nothing "
		"would be written");
	BAD("configs: {a: {url: 'http://h/', type: bytes}}",
		"t.yaml:1:11: config \"a\" needs a file: without one, and without a snapshot, "
		"nothing "
		"would be written");
	BAD("configs: {a: {url: 'http://h/', file: /run/a, snapshot: maybe}}",
		"t.yaml:1:57: snapshot must be true or false");
}

static void parse__no_config__is_refused_in_the_main_file(void **state)
{
	(void)state;
	BAD("", "t.yaml: nothing is configured in this folder: add a config under \"configs\" "
		"(pullet.yaml(5) has examples)");
	BAD("# nothing\n",
		"t.yaml: nothing is configured in this folder: add a config under \"configs\" "
		"(pullet.yaml(5) has examples)");
	BAD("configs:\npush:\nagent: {log: , labels: }\n",
		"t.yaml: no config is set: add one under \"configs\"");
	BAD("configs: [web]\n", "t.yaml:1:10: configs must be a mapping, but it is a list");
}

static void parse__syntax_error__is_one_error_with_its_place(void **state)
{
	struct settings *s;

	(void)state;
	assert_int_equal(parse("configs:\n  web: {url: \"x\n", &s), 1);
	assert_int_equal(told.count, 1);
	assert_int_equal(strncmp(told.text[0], "t.yaml:", 7), 0);
	assert_int_equal(parse("- a\n", &s), 1);
	assert_null(s);
}

static void parse__twice__names_both_places(void **state)
{
	(void)state;
	BAD("configs:\n"
	    "  web: {url: 'http://h/', file: /run/a}\n"
	    "  web: {url: 'http://h/', file: /run/a}\n",
		"t.yaml:3:3: config \"web\" is set twice: first at t.yaml:2:3");
	BAD("configs:\n"
	    "  a: {url: 'http://h/', file: /run/a}\n"
	    "  b: {url: 'http://h/', file: /run/a}\n",
		"t.yaml:3:31: file \"/run/a\" is already written by config \"a\", at t.yaml:2:31");
	BAD("push: [{endpoint: ipc:///h1}, {endpoint: ipc:///h1}]\n" WEB,
		"t.yaml:1:42: endpoint \"ipc:///h1\" is set twice: first at t.yaml:1:19");
	BAD("agent: {labels: {a: [b]}}\n" WEB,
		"t.yaml:1:21: label \"a\" must be a text, but it is a list");
	BAD("agent: {labels: {a: b, a: c}}\n" WEB,
		"t.yaml:1:24: label \"a\" is set twice: first at t.yaml:1:18");
	BAD("agent: {log: {level: info, level: info}}\n" WEB,
		"t.yaml:1:28: level is set twice: first at t.yaml:1:15");
	BAD("agent: {}\nagent: {listen: x}\n" WEB,
		"t.yaml:2:1: agent is set twice: first at t.yaml:1:1",
		"t.yaml:2:17: listen: \"x\" names no port: write HOST:PORT");
}

#define OWN "agent: {state_dir: /s, runtime_dir: /r}\n"

static void parse__place_of_the_agents_own__is_refused(void **state)
{
	static const char *const good_places[] = {
		"file: /s/b", "file: /s/lock", "file: /r/a.yaml", "file: /r/x/a.snap", "file: /st"};
	char text[256];

	(void)state;
	BAD(OWN "configs: {a: {url: 'http://h/', file: /s/a/1}}\n",
		"t.yaml:2:39: \"/s/a/1\" is where the agent keeps its state: name another place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /s/.lock}}\n",
		"t.yaml:2:39: \"/s/.lock\" is where the agent keeps its state: name another place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /s}}\n",
		"t.yaml:2:39: \"/s\" is where the agent keeps its state: name another place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /r/b.snap}}\n",
		"t.yaml:2:39: \"/r/b.snap\" is what the agent makes in runtime_dir: name another "
		"place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /r/b.shown}}\n",
		"t.yaml:2:39: \"/r/b.shown\" is what the agent makes in runtime_dir: name another "
		"place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /o}, b: {url: 'http://h/', file: /s/a}}\n",
		"t.yaml:2:72: \"/s/a\" is where the agent keeps its state: name another place");
	BAD(OWN "configs: {a: {url: 'http://h/', file: /r/control.sock}}\n",
		"t.yaml:2:39: \"/r/control.sock\" is what the agent makes in runtime_dir: name "
		"another place");
	for (size_t i = 0; i < COUNT(good_places); i++) {
		snprintf(text, sizeof(text), OWN "configs: {a: {url: 'http://h/', %s}}\n",
			good_places[i]);
		settings_free(good(text));
	}
}

static void parse__topics__may_be_shared_but_not_with_the_heartbeat(void **state)
{
	struct settings *s =
		good("configs:\n"
		     "  a: {url: 'http://h/', file: /run/a, topic: t}\n"
		     "  b: {url: 'http://h/', file: /run/b, topic: t}\n"
		     "  pullet.heartbeat: {url: 'http://h/', file: /run/c, topic: t}\n");

	(void)state;
	assert_string_equal(s->configs[2]->topic, "t");
	settings_free(s);
	BAD("configs: {pullet.heartbeat: {url: 'http://h/', file: /run/c}}",
		"t.yaml:1:11: the name, which is the topic when none is set, is the topic of the "
		"heartbeats: choose another");
}

static void parse__bytes__only_verbatim(void **state)
{
	(void)state;
	settings_free(good("configs: {a: {url: 'http://h/', file: /a, type: bytes, "
			   "format: verbatim}}"));
	BAD("configs: {a: {url: 'http://h/', file: /a, type: bytes, format: json}}",
		"t.yaml:1:64: format: a config of type bytes is not looked into: only verbatim is "
		"possible");
}

static void parse__merge_keys__share_what_is_common(void **state)
{
	struct settings *s = good("configs:\n"
				  "  a: &a {url: 'http://h/', file: /run/a, interval: 1m}\n"
				  "  b: {<<: *a, file: /run/b}\n");

	(void)state;
	assert_int_equal(s->config_count, 2);
	assert_string_equal(s->configs[1]->url, "http://h/");
	assert_string_equal(s->configs[1]->file, "/run/b");
	assert_int_equal(s->configs[1]->interval_ms, 60000);
	settings_free(s);
}

/* ---- bounds ---- */

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the items of the tables below */

static char *many(const char *head, const char *format, int count)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fputs(head, f);
	for (int i = 0; i < count; i++)
		fprintf(f, format, i, i);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void parse__at_the_bounds__is_good_and_over_them_refused(void **state)
{
#define ONE "servers: {s: {urls: ['http://h']}}\nconfigs:\n  a:\n"
#define PLAIN "configs:\n  a:\n    url: http://h/a\n    file: /run/a\n"
	static const struct {
		const char *head, *item, *message;
		int max;
	} cases[] = {
		{"configs:\n", "  c%d: {url: 'http://h/', file: /r/%d}\n",
			"t.yaml:10002:3: too many configs: at most 10000", SETTINGS_MAX_CONFIGS},
		{WEB "push:\n", "  - {endpoint: 'tcp://h%d:%d7', insecure: true}\n",
			"t.yaml:67:5: too many push endpoints: at most 64", SETTINGS_MAX_PUSH},
		{WEB "agent:\n  labels:\n", "    l%d: 'x%d'\n",
			"t.yaml:68:5: too many labels: at most 64", SETTINGS_MAX_LABELS},
		{ONE "    from:\n", "      - {server: s, path: '/%d/%d'}\n",
			"t.yaml:21:9: too many items of from: at most 16", SETTINGS_MAX_LAYERS},
		{PLAIN "    check:\n      - /c\n", "      - '{path}%d%d'\n",
			"t.yaml:6:7: check must have 1 to 64 items, but it has 65",
			SETTINGS_MAX_ARGV - 1},
		{PLAIN "    mask:\n", "      - 'a%d%d'\n",
			"t.yaml:6:7: mask must have 1 to 64 items, but it has 65",
			SETTINGS_MAX_PATTERNS},
		{PLAIN "    reload:\n      run: [/r]\n      on:\n",
			"        - {keys: [a%d], run: [/r, '%d']}\n",
			"t.yaml:71:11: too many items of on: at most 63", SETTINGS_MAX_RULES - 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = many(cases[i].head, cases[i].item, cases[i].max);

		settings_free(good(text));
		free(text);
		for (int over = 1; over <= 2; over++) { /* however many it is said once */
			char *first, message[128];

			text = many(cases[i].head, cases[i].item, cases[i].max + over);
			snprintf(message, sizeof(message), "%s", cases[i].message);
			first = strstr(message, "but it has 65");
			if (first)
				first[strlen("but it has 6")] += (char)(over - 1);
			BAD(text, message);
			free(text);
		}
	}
}

static void parse__more_errors_than_told__are_counted(void **state)
{
	char *text = many(WEB, "x%d: %d\n", 1234);
	struct settings *s;

	(void)state;
	assert_int_equal(parse(text, &s), 1234);
	assert_int_equal(told.count, 1001);
	assert_string_equal(told.text[1000], "t.yaml: 234 more errors are not shown");
	free(text);
}

/* ---- values ---- */

static void duration__table(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"0s", 0},
		{"500ms", 500},
		{"10s", 10000},
		{"5m", 300000},
		{"1h", 3600000},
		{"2d", 172800000},
		{"99999999999d", INT64_C(99999999999) * 86400000},
		{"", -1},
		{"s", -1},
		{"10", -1},
		{"10 s", -1},
		{" 10s", -1},
		{"-1s", -1},
		{"+1s", -1},
		{"1.5s", -1},
		{"1h30m", 5400000},
		{"1m30s", 90000},
		{"1d2h3m4s5ms", 93784005},
		{"99999999999d99999999999h", INT64_C(99999999999) * (86400000 + 3600000)},
		{"30m1h", -1},
		{"1m1m", -1},
		{"1h30", -1},
		{"1h 30m", -1},
		{"1h-30m", -1},
		{"1ms1s", -1},
		{"1S", -1},
		{"10sec", -1},
		{"100000000000s", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t ms = 77;
		int r = settings_parse_duration(cases[i].text, &ms);

		assert_int_equal(r, cases[i].ms < 0 ? -EINVAL : 0);
		assert_int_equal(ms, cases[i].ms < 0 ? 77 : (uint64_t)cases[i].ms);
	}
}

/* Good and bad texts of one check; the texts end with NULL. */
static void size__table(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {
		{"0B", 0},
		{"7B", 7},
		{"2KiB", 2048},
		{"3MiB", 3145728},
		{"1GiB", 1073741824},
		{"9999999B", 9999999},
		{"10000000B", -1},
		{"", -1},
		{"7", -1},
		{"B", -1},
		{"7KB", -1},
		{"7 B", -1},
		{"1MiB1KiB", -1},
		{"1KiBx", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t bytes = 77;
		int r = settings_parse_size(cases[i].text, &bytes);

		assert_int_equal(r, cases[i].bytes < 0 ? -EINVAL : 0);
		assert_int_equal(bytes, cases[i].bytes < 0 ? 77 : (uint64_t)cases[i].bytes);
	}
}

static void check_all(const char *(*check)(const char *), const char *const *texts, bool want_good)
{
	for (; *texts; texts++) {
		const char *why = check(*texts);

		if (want_good != !why)
			print_error("%s: %s\n", *texts, why ? why : "was accepted");
		assert_true(want_good == !why);
	}
}

#define GOOD_TEXTS(check, ...) check_all(check, (const char *const[]){__VA_ARGS__, NULL}, true)
#define BAD_TEXTS(check, ...) check_all(check, (const char *const[]){__VA_ARGS__, NULL}, false)

static void url__table(void **state)
{
	char longest[SETTINGS_MAX_URL + 2];

	(void)state;
	GOOD_TEXTS(settings_check_url, "http://h", "HTTPS://h/", "http://h:80/a@b", "http://h?x=@",
		"http://10.0.0.1:8080/x", "http://[::1]:8080/x", "http://[fe80::1%eth0]/",
		"http://a-b_c.example/%20", "http://m\xc3\xbcller.example/");
	GOOD_TEXTS(settings_check_url, "http://h:1/", "http://h:65535/");
	BAD_TEXTS(settings_check_url, "", "h", "ftp://h/", "file:///etc/passwd", "http:/h",
		"http://", "http:///x", "http://:80/", "http://h:/", "http://h:0/",
		"http://h:65536/", "http://h:123456/", "http://h:8x/", "http://u@h/",
		"http://u:p@h/", "http://h\\@g/", "http://h/#f", "http://h/a b", "http://h/a\tb",
		"http://h/\x7f", "http://[::1/", "http://[]/", "http://[::g]/", "http://[::1]x/",
		"http://[::1%]/", "http://h%41/", "http://h h/", "http://h;g/");
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "http://h/", 9);
	longest[SETTINGS_MAX_URL] = '\0';
	GOOD_TEXTS(settings_check_url, longest);
	longest[SETTINGS_MAX_URL] = 'a';
	longest[SETTINGS_MAX_URL + 1] = '\0';
	BAD_TEXTS(settings_check_url, longest);
}

static void text_of_a_request__table(void **state)
{
	(void)state;
	GOOD_TEXTS(settings_check_url_path, "/", "/a%20b?c=d");
	BAD_TEXTS(settings_check_url_path, "", "a", "/a b", "/a\tb", "/a\x7f", "/a#b");
	GOOD_TEXTS(settings_check_user, "a", "a b", "m\xc3\xbcller");
	BAD_TEXTS(settings_check_user, "", "a:b", "a\nb", "\x7f");
	GOOD_TEXTS(settings_check_header_value, "a b:c");
	BAD_TEXTS(settings_check_header_value, "", "a\r\nB: c");
}

static void path__table(void **state)
{
	char name[SETTINGS_MAX_FILENAME + 3];

	(void)state;
	GOOD_TEXTS(settings_check_path, "/a", "/a/b.c", "/a/..b", "/a/...", "/.a", "/a b");
	BAD_TEXTS(settings_check_path, "", "a", "./a", "/", "/a/", "/..", "/../a", "/a/..",
		"/a/../b", "/a/./b", "/.", "//a", "/a//b", "/a\nb");
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	name[SETTINGS_MAX_FILENAME + 1] = '\0';
	GOOD_TEXTS(settings_check_path, name);
	name[SETTINGS_MAX_FILENAME + 1] = 'a';
	name[SETTINGS_MAX_FILENAME + 2] = '\0';
	BAD_TEXTS(settings_check_path, name);
	name[95] = '\0';
	BAD_TEXTS(settings_check_runtime_dir, name);
	name[94] = '\0';
	GOOD_TEXTS(settings_check_runtime_dir, name);
}

static void endpoint_and_address__table(void **state)
{
	(void)state;
	GOOD_TEXTS(settings_check_endpoint, "tcp://h:7377", "tcp://[::1]:7377", "ipc:///run/x");
	BAD_TEXTS(settings_check_endpoint, "", "h:7377", "tcp://h", "tcp://h:", "tcp://h:0",
		"tcp://*:1", "tcp://h:1/x", "tcp://a;b:1", "tcp://h:1 ", "udp://h:1", "ipc://",
		"ipc://x", "ipc:///a/../b", "inproc://x");
	assert_string_equal(settings_check_endpoint("tcp://h:0"),
		"has the port 0, which nobody can reach: write 1 to 65535");
	GOOD_TEXTS(settings_check_binding, "tcp://127.0.0.1:0", "127.0.0.1:7377", "tcp://*:*",
		"tcp://[::]:65535", "tcp://eth0:1", "ipc:///run/x");
	BAD_TEXTS(settings_check_binding, "", "h", "tcp://h", "tcp://h:", "tcp://h:x",
		"tcp://h:65536", "inproc://x", "http://h:1");
	GOOD_TEXTS(settings_check_address, "127.0.0.1:9377", "[::]:9377", "localhost:0");
	BAD_TEXTS(settings_check_address, "", ":1", "9377", "h", "h:", "h:x", "h:65536", "*:1",
		"h:1 ", "http://h:1");
}

static void name__table(void **state)
{
	(void)state;
	GOOD_TEXTS(settings_check_name, "a", "9", "A.b_c-d",
		"0123456789012345678901234567890123456789012345678901234567890123");
	BAD_TEXTS(settings_check_name, "", ".a", "_a", "-a", "..", "a/b", "a b", "\xc3\xa4",
		"01234567890123456789012345678901234567890123456789012345678901234");
}

static void mode__table(void **state)
{
	static const struct {
		const char *text;
		int mode;
	} cases[] = {
		{"0640", 0640},
		{"640", 0640},
		{"0400", 0400},
		{"0755", 0755},
		{"0660", -1},
		{"0602", -1},
		{"0240", -1},
		{"4755", -1},
		{"0680", -1},
		{"40", -1},
		{"00640", -1},
		{"", -1},
		{"rw-r-----", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		mode_t mode = 1;
		const char *why = settings_parse_mode(cases[i].text, &mode);

		assert_true(!why == (cases[i].mode >= 0));
		assert_int_equal(mode, why ? 1 : cases[i].mode);
	}
}

static void signature_demand__is_what_the_config_binds(void **state)
{
	static const struct {
		enum settings_bind bind;
		bool rev, config, path;
	} rows[] = {{SETTINGS_BIND_NONE, false, false, false},
		{SETTINGS_BIND_CONFIG, true, true, false},
		{SETTINGS_BIND_PATH, false, false, true}};
	struct settings_layer layers[] = {{.path = (char *)"/first"}, {.path = (char *)"/second"}},
			      bootstrap = {.path = (char *)"/boot"};
	struct settings_config c = {.name = (char *)"web", .layers = layers, .layer_count = 2};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct minisign_demand d;

		c.verify.bind = rows[i].bind;
		c.verify.rev_required = rows[i].rev;
		d = settings_signature_demand(&c, 0);
		assert_string_equal(d.config, "web");
		assert_string_equal(d.path, "/first");
		assert_null(d.or_path);
		assert_int_equal(d.names_config, rows[i].config);
		assert_int_equal(d.names_path, rows[i].path);
		assert_int_equal(d.has_rev, rows[i].rev);
	}
	c.bootstrap = &bootstrap; /* it is the first layer, elsewhere */
	assert_string_equal(settings_signature_demand(&c, 0).or_path, "/boot");
	assert_string_equal(settings_signature_demand(&c, 1).path, "/second");
	assert_null(settings_signature_demand(&c, 1).or_path);
}

static void owner__table(void **state)
{
	static const struct {
		const char *text;
		int64_t uid, gid; /* -1 = left, -2 = refused */
	} cases[] = {
		{"root", 0, -1},
		{"root:root", 0, 0},
		{":root", -1, 0},
		{"12:root", 12, 0},
		{"1000", 1000, -1},
		{"0010:010", 10, 10},
		{"4294967294:0", 4294967294, 0},
		{"4294967295", -2, 0},
		{"99999999999", -2, 0},
		{"0000000001", 1, -1},
		{"00000000001", -2, 0},
		{"12x", -2, 0},
		{"", -2, 0},
		{":", -2, 0},
		{"root:", -2, 0},
		{"root:root:root", -2, 0},
		{"no-such-user-here", -2, 0},
		{":no-such-group-here", -2, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uid_t uid = 7;
		gid_t gid = 7;
		const char *why = settings_parse_owner(cases[i].text, &uid, &gid);

		assert_true(!why == (cases[i].uid != -2));
		assert_int_equal(uid, why ? 7 : (uid_t)cases[i].uid);
		assert_int_equal(gid, why ? 7 : (gid_t)cases[i].gid);
	}
}

static void signal__table(void **state)
{
	static const struct {
		const char *text;
		int number; /* 0 = refused */
	} cases[] = {
		{"HUP", SIGHUP},
		{"SIGHUP", SIGHUP},
		{"USR1", SIGUSR1},
		{"USR2", SIGUSR2},
		{"TERM", SIGTERM},
		{"INT", SIGINT},
		{"QUIT", SIGQUIT},
		{"WINCH", SIGWINCH},
		{"SIGCONT", SIGCONT},
		{"1", 1},
		{"31", 31},
		{"0", 0},
		{"32", 0},
		{"001", 0},
		{"1x", 0},
		{"-1", 0},
		{"", 0},
		{"SIG", 0},
		{"SIGSIGHUP", 0},
		{"KILL", 0},
		{"hup", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int number = 77;
		const char *why = settings_parse_signal(cases[i].text, &number);

		assert_true(!why == (cases[i].number != 0));
		assert_int_equal(number, why ? 77 : cases[i].number);
	}
}

static void key_and_pattern__table(void **state)
{
	char longest[SETTINGS_MAX_KEY + 2];

	(void)state;
	GOOD_TEXTS(settings_check_key, "a", "a.b.0", "a\\.b", "a\\\\", "\\\\\\.", "a b*");
	BAD_TEXTS(settings_check_key, "", "a\\", "a\\b", "\\\\\\", "a\n", "a\x7f");
	GOOD_TEXTS(settings_check_pattern, "*", "a\\b", "a\\", "[a-z]*", "m\xc3\xbcller");
	BAD_TEXTS(settings_check_pattern, "", "a\tb");
	memset(longest, 'a', sizeof(longest));
	longest[SETTINGS_MAX_KEY] = '\0';
	GOOD_TEXTS(settings_check_pattern, longest);
	GOOD_TEXTS(settings_check_key, longest);
	longest[SETTINGS_MAX_KEY] = 'a';
	longest[SETTINGS_MAX_KEY + 1] = '\0';
	BAD_TEXTS(settings_check_pattern, longest);
	BAD_TEXTS(settings_check_key, longest);
}

static void text__of_each_kind__is_as_long_as_its_bound_at_most(void **state)
{
	static const struct {
		const char *(*check)(const char *text);
		const char *head; /* 'a's are behind it, */
		size_t part;      /* with a '/' behind so many; 0 = none */
		size_t least, most;
	} cases[] = {
		{settings_check_argument, "", 0, 0, 8191},
		{settings_check_label, "", 0, 0, 255},
		{settings_check_topic, "", 0, 1, 255},
		{settings_check_user, "", 0, 1, 255},
		{settings_check_word, "", 0, 1, 128},
		{settings_check_header_name, "", 0, 1, 64},
		{settings_check_header_value, "", 0, 1, 8192},
		{settings_check_name, "", 0, 1, 64},
		{settings_check_file_name, "", 0, 1, 200},
		{settings_check_pattern, "", 0, 1, 1023},
		{settings_check_key, "", 0, 1, 1023},
		{settings_check_url, "http://", 0, 8, 1023},
		{settings_check_base_url, "https://", 0, 9, 1023},
		{settings_check_url_path, "/", 0, 1, 1023},
		{settings_check_path, "/", 0, 2, 231},
		{settings_check_path, "/", 200, 2, 4000},
		{settings_check_file_url, "file:///", 200, 9, 4007},
		{settings_check_runtime_dir, "/", 0, 2, 94},
		{settings_check_endpoint, "ipc:///", 0, 8, 113},
	};
	char text[8300];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const size_t least = cases[i].least, most = cases[i].most, part = cases[i].part;
		const size_t lens[] = {least - 1, least, most, most + 1};

		for (size_t n = least == 0; n < COUNT(lens); n++) {
			for (size_t k = 0; k < lens[n]; k++) /* from the end on */
				text[lens[n] - 1 - k] = part && k % part == part - 1 ? '/' : 'a';
			memcpy(text, cases[i].head, strnlen(cases[i].head, lens[n]));
			text[lens[n]] = '\0';
			if (!cases[i].check(text) != (n == 1 || n == 2))
				fail_msg("row %zu: %zu bytes", i, lens[n]);
		}
	}
}

static void public_key__table(void **state)
{
	(void)state;
	GOOD_TEXTS(settings_check_public_key, KEY, KEY2,
		"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3");
	BAD_TEXTS(settings_check_public_key, "", "RW", KEY "A", KEY "=", KEY "\n", " " KEY,
		"SWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN",
		"RXSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN",
		"RWUYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN",
		"RWPYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN",
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB_KwlR4ZfoNZlN",
		"untrusted comment: minisign public key 94E900F0E72E3098\n" KEY);
}

static void file_name__table(void **state)
{
	char longest[SETTINGS_MAX_SET_NAME + 2];

	(void)state;
	GOOD_TEXTS(settings_check_file_name, "a", "9", "A.b_c-d", "a..b");
	BAD_TEXTS(settings_check_file_name, "", ".", "..", ".a", "-a", "_a", "a/b", "/a", "a b",
		"a\n", "\xc3\xa4");
	memset(longest, 'a', sizeof(longest));
	longest[SETTINGS_MAX_SET_NAME] = '\0';
	GOOD_TEXTS(settings_check_file_name, longest);
	longest[SETTINGS_MAX_SET_NAME] = 'a';
	longest[SETTINGS_MAX_SET_NAME + 1] = '\0';
	BAD_TEXTS(settings_check_file_name, longest);
}

static void distance__table(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned distance;
	} cases[] = {
		{"", "", 0},
		{"url", "url", 0},
		{"URL", "url", 0},
		{"", "url", 3},
		{"ulr", "url", 1},
		{"interval", "intervall", 1},
		{"kitten", "sitting", 3},
		{"backoff-bound", "backoff_bound", 1},
		{"01234567890123456789012345678901", "01234567890123456789012345678901", 0},
		{"012345678901234567890123456789012", "x", UINT_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(settings_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(settings_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

static void shown__long_text__is_cut_between_characters(void **state)
{
	char text[200] = "", out[SETTINGS_SHOWN], tail[8];

	(void)state;
	for (size_t offset = 0; offset < 2; offset++) {
		memset(text, 'a', offset);
		for (size_t i = offset; i + 2 < sizeof(text); i += 2)
			memcpy(text + i, "\xc3\xa4", 3);
		settings_shown(text, out);
		assert_true(strlen(out) < SETTINGS_SHOWN);
		snprintf(tail, sizeof(tail), "%s", out + strlen(out) - 6);
		assert_string_equal(tail, "\xc3\xa4...\"");
	}
	assert_string_equal(settings_shown("a\x1b[0m", out), "\"a?[0m\"");
}

/* ---- files ---- */

struct folder {
	char path[PATH_MAX];
};

static void write_file(const struct folder *d, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_folder(const struct folder *d, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void remove_tree(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	char child[PATH_MAX + 300];

	while (dir && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
		if (unlink(child))
			remove_tree(child);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int make_temporary(void **state)
{
	struct folder *d = calloc(1, sizeof(*d));
	const char *base = getenv("TMPDIR");

	if (!d)
		return -1;
	snprintf(d->path, sizeof(d->path), "%s/pullet-settings-XXXXXX", base ? base : "/tmp");
	*state = d;
	return mkdtemp(d->path) ? 0 : -1;
}

static int remove_temporary(void **state)
{
	struct folder *d = *state;

	remove_tree(d->path);
	free(d);
	return 0;
}

static int load(const struct folder *d, struct settings **ret)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/pullet.yaml", d->path);
	told.count = 0;
	*ret = NULL;
	return settings_load(path, tell, &told, ret);
}

/* A message that was told, with the folder in front of it and, where %s is, again. */
static void assert_told(const struct folder *d, size_t i, const char *rest)
{
	char want[2 * PATH_MAX + 512];
	const char *again = strstr(rest, "%s");

	assert_true(i < told.count);
	if (again)
		snprintf(want, sizeof(want), "%s/%.*s%s%s", d->path, (int)(again - rest), rest,
			d->path, again + 2);
	else
		snprintf(want, sizeof(want), "%s/%s", d->path, rest);
	assert_string_equal(told.text[i], want);
}

static void load__missing__is_one_error(void **state)
{
	struct settings *s;

	assert_int_equal(load(*state, &s), 1);
	assert_told(*state, 0,
		"pullet.yaml: cannot be read: No such file or directory: make it, or name another "
		"one");
	make_folder(*state, "pullet.yaml");
	assert_int_equal(load(*state, &s), 1);
	assert_told(*state, 0, "pullet.yaml: cannot be read: Is a directory");
}

static void load__too_large__is_refused(void **state)
{
	char *text = many(WEB, "#%031d%031d\n", 16384 + 1);
	struct settings *s;

	write_file(*state, "pullet.yaml", text);
	free(text);
	assert_int_equal(load(*state, &s), 1);
	assert_told(*state, 0, "pullet.yaml: cannot be read: larger than 1 MiB");
}

static void load__conf_d__adds_in_the_order_of_names(void **state)
{
	const struct folder *d = *state;
	char link[PATH_MAX + 64];
	struct settings *s;

	write_file(d, "pullet.yaml", "agent: {listen: 'h:1', labels: {a: x}}\n" WEB);
	make_folder(d, "conf.d");
	write_file(d, "conf.d/20-b.yaml", "configs: {b: {url: 'http://h/', file: /run/b}}\n");
	write_file(d, "conf.d/10-a.yaml",
		"agent: {state_dir: /s, log: {level: warn}, labels: {b: y}}\n"
		"push: [{endpoint: 'tcp://h:1', insecure: true}]\n"
		"configs: {a: {url: 'http://h/', file: /run/a}}\n");
	write_file(d, "conf.d/.hidden.yaml", "x: [");
	write_file(d, "conf.d/not.yml", "x: [");
	write_file(d, "conf.d/old.yaml.bak", "x: [");
	write_file(d, "conf.d/30-empty.yaml", "# nothing\n");
	write_file(d, "elsewhere", "configs: {c: {url: 'http://h/', file: /run/c}}\n");
	snprintf(link, sizeof(link), "%s/conf.d/05-c.yaml", d->path);
	assert_int_equal(symlink("../elsewhere", link), 0);
	assert_int_equal(load(d, &s), 0);
	assert_int_equal(s->config_count, 4);
	assert_string_equal(s->configs[0]->name, "web");
	assert_string_equal(s->configs[1]->name, "c");
	assert_string_equal(s->configs[2]->name, "a");
	assert_string_equal(s->configs[3]->name, "b");
	assert_int_equal(s->push_count, 1);
	assert_int_equal(s->label_count, 2);
	assert_string_equal(s->state_dir, "/s");
	assert_string_equal(s->listen, "h:1");
	assert_int_equal(s->log_level, LOG_LEVEL_WARN);
	settings_free(s);
}

static void load__set_in_two_files__names_both_places(void **state)
{
	const struct folder *d = *state;
	struct settings *s;

	write_file(d, "pullet.yaml",
		"agent: {listen: 'h:1', log: {level: info}, labels: {a: x}}\n"
		"push: [{endpoint: 'tcp://h:1', insecure: true}]\n" WEB);
	make_folder(d, "conf.d");
	write_file(d, "conf.d/a.yaml",
		"agent: {listen: 'h:1', log: {level: info}, labels: {a: x}}\n"
		"push: [{endpoint: 'tcp://h:1', insecure: true}]\n"
		"configs:\n"
		"  web: {url: 'http://h/', file: /run/a}\n"
		"  b: {url: 'http://h/', file: /run/web.yaml}\n");
	assert_int_equal(load(d, &s), 6);
	assert_told(d, 0, "conf.d/a.yaml:1:9: listen is set twice: first at %s/pullet.yaml:1:9");
	assert_told(d, 1, "conf.d/a.yaml:1:30: level is set twice: first at %s/pullet.yaml:1:30");
	assert_told(d, 2,
		"conf.d/a.yaml:4:3: config \"web\" is set twice: first at %s/pullet.yaml:3:11");
	assert_told(d, 3,
		"conf.d/a.yaml:5:31: file \"/run/web.yaml\" is already written by config \"web\", "
		"at %s/pullet.yaml:3:49");
	assert_told(d, 4,
		"conf.d/a.yaml:2:19: endpoint \"tcp://h:1\" is set twice: first at "
		"%s/pullet.yaml:2:19");
	assert_told(
		d, 5, "conf.d/a.yaml:1:53: label \"a\" is set twice: first at %s/pullet.yaml:1:53");
}

static void load__file_of_the_configuration__is_no_place_to_publish(void **state)
{
	const struct folder *d = *state;
	char text[PATH_MAX + 128];
	struct settings *s;

	make_folder(d, "conf.d");
	write_file(d, "conf.d/a.yaml", "configs: {}\n");
	snprintf(text, sizeof(text), "configs: {a: {url: 'http://h/', file: %s/pullet.yaml}}\n",
		d->path);
	write_file(d, "pullet.yaml", text);
	assert_int_equal(load(d, &s), 1);
	assert_non_null(strstr(told.text[0], "/pullet.yaml\" is the agent's own configuration"));
	snprintf(text, sizeof(text), "configs: {a: {url: 'http://h/', file: %s/conf.d/b.yaml}}\n",
		d->path);
	write_file(d, "pullet.yaml", text);
	assert_int_equal(load(d, &s), 1);
	assert_non_null(strstr(told.text[0], "/b.yaml\" is the agent's own configuration"));
}

static void load__bad_file__does_not_hide_the_others(void **state)
{
	const struct folder *d = *state;
	char path[PATH_MAX + 64];
	struct settings *s;

	write_file(d, "pullet.yaml", "configs: {web: {url: \"http://h/\n");
	make_folder(d, "conf.d");
	make_folder(d, "conf.d/a-folder.yaml");
	write_file(d, "conf.d/b.yaml", "confgs: {}\n");
	snprintf(path, sizeof(path), "%s/conf.d/c-fifo.yaml", d->path);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/conf.d/d-dangling.yaml", d->path);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(load(d, &s), 5);
	assert_non_null(strstr(told.text[0], "/pullet.yaml:"));
	assert_told(d, 1, "conf.d/a-folder.yaml: cannot be read: Is a directory");
	assert_told(d, 2,
		"conf.d/b.yaml:1:1: unknown key \"confgs\" in the file: did you mean \"configs\"?");
	assert_told(d, 3, "conf.d/c-fifo.yaml: cannot be read: not a regular file");
	assert_told(d, 4,
		"conf.d/d-dangling.yaml: cannot be read: No such file or directory: make it, or "
		"name another one");
}

static void load__conf_d_is_a_file__is_an_error(void **state)
{
	struct settings *s;

	write_file(*state, "pullet.yaml", WEB);
	write_file(*state, "conf.d", "");
	assert_int_equal(load(*state, &s), 1);
	assert_told(*state, 0,
		"conf.d: cannot be read: Not a directory: a part of the path is not a directory");
}

static void load__more_parts_than_allowed__is_an_error(void **state)
{
	char name[64];
	struct settings *s;

	write_file(*state, "pullet.yaml", WEB);
	make_folder(*state, "conf.d");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "conf.d/%04d.yaml", i);
		write_file(*state, name, "");
	}
	assert_int_equal(load(*state, &s), 0);
	settings_free(s);
	write_file(*state, "conf.d/x.yaml", "");
	assert_int_equal(load(*state, &s), 1);
	assert_told(*state, 0,
		"conf.d: holds more than 1000 files: remove some, or put several into one");
}

/* ---- servers ---- */

#define FROM "configs: {web: {from: [{server: main, path: /web.yaml}], file: /run/web.yaml}}\n"

static void servers__named__are_taken_over_and_found(void **state)
{
	struct settings *s =
		good(FROM "servers:\n"
			  "  other: {urls: ['http://o']}\n"
			  "  main:\n"
			  "    kind: http\n"
			  "    urls: ['https://a:8443/base/', 'http://b']\n"
			  "    tls: {ca: /ca, cert: /c, key: /k, crl: /r, min_version: 1.3}\n"
			  "    auth:\n"
			  "      basic: {user: me, password_file: /p}\n"
			  "      headers: {X-Zone: eu, X-Key: {file: /x}}\n"
			  "    insecure: true\n"
			  "    connect_timeout: 1s\n"
			  "    max_in_flight: 3\n"
			  "    max_size: 64KiB\n");
	const struct settings_server *m = s->servers[1];

	(void)state;
	assert_int_equal(s->server_count, 2);
	assert_int_equal(s->configs[0]->layers[0].server, 1);
	assert_string_equal(s->configs[0]->layers[0].path, "/web.yaml");
	assert_string_equal(m->name, "main");
	assert_int_equal(m->url_count, 2);
	assert_string_equal(m->urls[0], "https://a:8443/base");
	assert_string_equal(m->urls[1], "http://b");
	assert_string_equal(m->ca, "/ca");
	assert_string_equal(m->cert, "/c");
	assert_string_equal(m->key, "/k");
	assert_string_equal(m->crl, "/r");
	assert_int_equal(m->tls_min, SETTINGS_TLS_1_3);
	assert_string_equal(m->user, "me");
	assert_string_equal(m->password_file, "/p");
	assert_int_equal(m->header_count, 2);
	assert_string_equal(m->headers[0].value, "eu");
	assert_string_equal(m->headers[1].file, "/x");
	assert_true(m->insecure);
	assert_int_equal(m->connect_timeout_ms, 1000);
	assert_int_equal(m->max_in_flight, 3);
	assert_int_equal(m->max_bytes, 65536);
	assert_null(s->servers[0]->bearer_file);
	assert_false(s->servers[0]->insecure);
	assert_int_equal(s->servers[0]->connect_timeout_ms, 3000);
	assert_int_equal(s->servers[0]->max_in_flight, 8);
	assert_int_equal(s->servers[0]->max_bytes, SETTINGS_MAX_BYTES_DEFAULT);
	settings_free(s);
}

static void servers__plain_urls__share_one_per_origin(void **state)
{
	struct settings *s = good("configs:\n"
				  "  a: {url: 'http://h/a', file: /run/a}\n"
				  "  b: {url: 'http://h:80/b', file: /run/b}\n"
				  "  c: {url: 'HTTP://H/c?x=/', file: /run/c}\n"
				  "  d: {url: 'http://hh', file: /run/d}\n"
				  "  e: {url: 'http://h?q', file: /run/e}\n");
	struct settings_config *const *c = s->configs;

	(void)state;
	assert_int_equal(s->server_count, 3);
	assert_int_equal(c[0]->layers->server, c[2]->layers->server);
	assert_int_equal(c[0]->layers->server, c[4]->layers->server);
	assert_int_not_equal(c[0]->layers->server, c[1]->layers->server);
	assert_int_not_equal(c[0]->layers->server, c[3]->layers->server);
	assert_string_equal(c[0]->layers->path, "/a");
	assert_string_equal(c[2]->layers->path, "/c?x=/");
	assert_string_equal(c[3]->layers->path, "");
	assert_string_equal(c[4]->layers->path, "?q");
	assert_null(s->servers[0]->name);
	assert_string_equal(s->servers[c[1]->layers->server]->urls[0], "http://h:80");
	settings_free(s);
}

static void servers__bad__names_place_and_remedy(void **state)
{
	static const struct {
		const char *keys, *message; /* at line 4, of server main */
	} table[] = {
		{"urls: ['http://me:pw@h']",
			"13: the url holds credentials, which do not belong in the URL: remove "
			"USER:PASSWORD@"},
		{"urls: ['http://h/?a']",
			"13: the url has a query (?...): that belongs into the paths"},
		{"urls: ['http://h', 'http://h/']", "25: the url is named twice in this list"},
		{"urls: []", "12: urls is empty: name at least one"},
		{"kind: zookeeper, urls: ['http://h']", "12: kind must be one of http, etcd, "
							"consul, nacos, apollo, spring, s3, file"},
		{"urls: ['http://h'], max_in_flight: 0",
			"41: max_in_flight must be between 1 and 64"},
		{"urls: ['http://h'], max_size: 8MB", "36: max_size: \"8MB\" is not a size: write "
						      "a whole number and a unit, such as "
						      "64KiB, 8MiB or 1GiB"},
		{"urls: ['http://h'], max_size: 1GiB",
			"36: max_size must be between 1B and 256MiB"},
		{"urls: ['http://h'], tls: {ca: /a}",
			"26: tls is set, but none of the urls is https"},
		{"urls: ['https://h'], tls: {key: /a}",
			"33: key is set without cert, the certificate that it belongs to"},
		{"urls: ['https://h'], tls: {min_version: 1.1}",
			"46: min_version must be one of 1.2, 1.3"},
		{"urls: ['http://h'], auth: {bearer_file: /t, basic: {user: a, password_file: "
		 "/p}}, insecure: true",
			"50: bearer_file and basic exclude each other: remove one"},
		{"urls: ['http://h'], auth: {basic: {user: a}}",
			"33: basic has no password_file, which it needs"},
		{"urls: ['http://h'], auth: {basic: {user: 'a:b', password_file: /p}}, insecure: "
		 "true",
			"47: user: \"a:b\" holds a ':', which ends a user's name in HTTP"},
		{"urls: ['http://h'], auth: {headers: {If-None-Match: x}}",
			"43: header \"If-None-Match\" is a header that the agent sets itself"},
		{"urls: ['http://h'], auth: {headers: [{A: b}]}",
			"42: headers must be a mapping, but it is a list: remove the dash, or the "
			"brackets"},
		{"urls: ['http://h'], auth: {headers: {'a b': x}}",
			"43: header \"a b\" is not a header name: letters, digits and '-', at most "
			"64"},
		{"urls: ['http://h'], auth: {headers: {A: \"secret\\r\\nB: c\"}}",
			"46: the value of header \"A\" holds a control character"},
		{"urls: ['http://h'], auth: {bearer_file: /t, headers: {authorization: x}}, "
		 "insecure: true",
			"33: bearer_file and the header \"Authorization\" exclude each other: "
			"remove "
			"one"},
	};
	char text[1024], want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text, sizeof(text), FROM "servers:\n  main:\n    {%s}\n", table[i].keys);
		snprintf(want, sizeof(want), "t.yaml:4:%s", table[i].message);
		if (parse(text, &(struct settings *){0}) != 1 || strcmp(told.text[0], want))
			fail_msg("%s\nsays: %s\nnot:  %s", table[i].keys, told.text[0], want);
	}
	BAD(FROM, "t.yaml:1:33: there is no server \"main\": add it under \"servers\"");
	BAD(FROM "servers: {mian: {urls: ['http://h']}}\n",
		"t.yaml:1:33: there is no server \"main\": did you mean \"mian\"?");
	BAD("configs: {a: {url: 'http://h', from: [{server: b, path: /x}], file: /run/a}}\n"
	    "servers: {b: {urls: ['http://h']}}",
		"t.yaml:1:11: config \"a\" needs either url or from, and has both");
	BAD("configs: {a: {file: /run/a}}",
		"t.yaml:1:11: config \"a\" needs either url or from, and has neither");
	BAD("configs: {a: {from: [{server: b, path: x}], file: /run/a}}\n"
	    "servers: {b: {urls: ['http://h']}}",
		"t.yaml:1:40: path: \"x\" must begin with /: it is put behind each URL of the "
		"server");
}

/* A secret that whoever is between could read. */
static void servers__secrets_over_plain_http__only_when_told(void **state)
{
	static const struct {
		const char *keys, *message; /* NULL = good */
	} table[] = {
#define PLAIN_HTTP(secret)                                                                         \
	"the url is not on this host, and " secret " could be read on the way over plain http: "   \
	"use https, or add insecure: true"
		{"urls: ['http://h'], auth: {bearer_file: /t}",
			"13: " PLAIN_HTTP("the token of bearer_file")},
		{"urls: ['https://h', 'HTTP://127.0.0.1', 'HTTP://i:80/x'], auth: {bearer_file: "
		 "/t}",
			"46: " PLAIN_HTTP("the token of bearer_file")},
		{"urls: ['http://10.0.0.1'], auth: {basic: {user: a, password_file: /p}}",
			"13: " PLAIN_HTTP("the password of basic")},
		{"urls: ['http://h'], auth: {headers: {A: b, X-Key: {file: /x}}}",
			"13: " PLAIN_HTTP("the secret of headers")},
		{"urls: ['http://h'], auth: {headers: {authorization: Bearer x}}",
			"13: " PLAIN_HTTP("the secret of headers")},
		{"urls: ['http://localhost.evil.example'], auth: {bearer_file: /t}",
			"13: " PLAIN_HTTP("the token of bearer_file")},
		{"urls: ['http://127.0.0.1.evil'], auth: {bearer_file: /t}",
			"13: " PLAIN_HTTP("the token of bearer_file")},
		{"kind: etcd, urls: ['http://h'], auth: {basic: {user: a, password_file: /p}}",
			"25: " PLAIN_HTTP("the password of basic")},
		{"kind: consul, urls: ['http://h'], auth: {bearer_file: /t}, insecure: false",
			"27: " PLAIN_HTTP("the token of bearer_file")},
		{"kind: s3, urls: ['http://h'], auth: {access_key: {id: a, secret_file: /s, "
		 "session_token_file: /t}}",
			NULL},
		{"kind: apollo, urls: ['http://h'], auth: {access_key: {secret_file: /s}}", NULL},
		{"kind: s3, urls: ['http://h'], auth: {access_key: {id: a, secret_file: /s}}",
			NULL},
		{"urls: ['http://h'], auth: {headers: {A: b}}", NULL},
		{"urls: ['http://h'], auth: {bearer_file: /t}, insecure: true", NULL},
		{"urls: ['https://h'], insecure: true", NULL},
		{"urls: ['https://h'], auth: {bearer_file: /t}", NULL},
		{"urls: ['http://localhost/x', 'http://LOCALHOST:80', 'http://127.9.0.1:1/y', "
		 "'http://[::1]', 'http://[::1]:8/'], auth: {bearer_file: /t}",
			NULL},
	};
	char text[1024], want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct settings *s = NULL;

		snprintf(text, sizeof(text),
			"configs: {web: {from: [{server: main, path: /web/a/b}], file: "
			"/run/web.yaml}}\nservers:\n  main:\n    {%s}\n",
			table[i].keys);
		if (!table[i].message) {
			settings_free(good(text));
			continue;
		}
		snprintf(want, sizeof(want), "t.yaml:4:%s", table[i].message);
		if (parse(text, &s) != 1 || strcmp(told.text[0], want))
			fail_msg("%s\nsays: %s\nnot:  %s", table[i].keys, told.text[0], want);
	}
}

/* ---- what keeps a change from hurting ---- */

/* The words of a list that ends with NULL. */
static void words(char *const *list, const char *const *want)
{
	assert_non_null(list);
	for (; *want; want++, list++) {
		assert_non_null(*list);
		assert_string_equal(*list, *want);
	}
	assert_null(*list);
}

#define WORDS(list, ...) words(list, (const char *const[]){__VA_ARGS__, NULL})

static void change__every_key__is_taken_over(void **state)
{
	struct settings *s = good("configs:\n"
				  "  a:\n"
				  "    url: http://h/a\n"
				  "    file: /run/a\n"
				  "    format: {run: [/f, '', \"a\\nb\"], timeout: 1s}\n"
				  "    verify: {public_keys: [" KEY ", " KEY2 "]}\n"
				  "    guard: {max_shrink: 0%, max_changes: 7, require: [a.b, "
				  "'c\\.d'], allow_empty: true}\n"
				  "    schema: /s.json\n"
				  "    schema_dir: /s.d\n"
				  "    check: {run: [/c, '--in={path}', '5'], timeout: 2s}\n"
				  "    reload:\n"
				  "      on:\n"
				  "        - {keys: ['log.*'], none: true}\n"
				  "        - {keys: [db, c], run: [/restart, it]}\n"
				  "        - {keys: [d], signal: 12, pidfile: /d.pid}\n"
				  "      debounce: 3s\n"
				  "      debounce_max: 4s\n"
				  "      splay: 5s\n"
				  "      timeout: 6s\n"
				  "      signal: SIGHUP\n"
				  "      pidfile: /a.pid\n"
				  "    probe: {run: [/p, q], for: 7s, every: 700ms, timeout: 8s, "
				  "failures: 9}\n"
				  "    history: 2\n"
				  "    mask: ['*.password', 'x\\y']\n"
				  "    drift: report\n");
	const struct settings_config *c = s->configs[0];
	const struct settings_rule *r = c->reload.rules;

	(void)state;
	assert_int_equal(c->format, SETTINGS_FORMAT_RUN);
	WORDS(c->format_run.argv, "/f", "", "a\nb");
	assert_int_equal(c->format_run.timeout_ms, 1000);
	WORDS(c->verify.public_keys, KEY, KEY2);
	assert_int_equal(c->guard.max_shrink, 0);
	assert_int_equal(c->guard.max_changes, 7);
	WORDS(c->guard.require, "a.b", "c\\.d");
	assert_true(c->guard.allow_empty);
	assert_string_equal(c->schema, "/s.json");
	assert_string_equal(c->schema_dir, "/s.d");
	WORDS(c->check.argv, "/c", "--in={path}", "5");
	assert_int_equal(c->check.timeout_ms, 2000);
	assert_int_equal(c->reload.rule_count, 4);
	WORDS(r[0].keys, "log.*");
	assert_int_equal(r[0].kind, SETTINGS_NOTHING);
	WORDS(r[1].keys, "db", "c");
	assert_int_equal(r[1].kind, SETTINGS_RUN);
	WORDS(r[1].argv, "/restart", "it");
	WORDS(r[2].keys, "d");
	assert_int_equal(r[2].kind, SETTINGS_SIGNAL);
	assert_int_equal(r[2].signal, 12);
	assert_string_equal(r[2].pidfile, "/d.pid");
	assert_null(r[3].keys);
	assert_int_equal(r[3].kind, SETTINGS_SIGNAL);
	assert_int_equal(r[3].signal, SIGHUP);
	assert_string_equal(r[3].pidfile, "/a.pid");
	assert_int_equal(c->reload.debounce_ms, 3000);
	assert_int_equal(c->reload.debounce_max_ms, 4000);
	assert_int_equal(c->reload.splay_ms, 5000);
	assert_int_equal(c->reload.timeout_ms, 6000);
	WORDS(c->probe.argv, "/p", "q");
	assert_null(c->probe.url);
	assert_int_equal(c->probe.for_ms, 7000);
	assert_int_equal(c->probe.every_ms, 700);
	assert_int_equal(c->probe.timeout_ms, 8000);
	assert_int_equal(c->probe.failures, 9);
	assert_int_equal(c->history, 2);
	WORDS(c->mask, "*.password", "x\\y");
	assert_int_equal(c->drift, SETTINGS_REPORT);
	settings_free(s);
}

static void change__short_forms__have_the_defaults(void **state)
{
	struct settings *s = good("configs:\n"
				  "  a:\n"
				  "    url: http://h/a\n"
				  "    file: /run/a\n"
				  "    format: {run: [/f]}\n"
				  "    verify: {public_key: " KEY "}\n"
				  "    guard:\n"
				  "    check: [/c, '{path}']\n"
				  "    reload: {run: [/r]}\n"
				  "    probe: {url: 'http://h/well'}\n"
				  "    drift: leave\n"
				  "  b:\n"
				  "    url: http://h/b\n"
				  "    format: properties\n"
				  "    reload: {on: [{keys: [a], run: [/r]}]}\n");
	const struct settings_config *c = s->configs[0];

	(void)state;
	assert_int_equal(c->format_run.timeout_ms, 30000);
	WORDS(c->verify.public_keys, KEY);
	assert_int_equal(c->guard.max_shrink, 100);
	WORDS(c->check.argv, "/c", "{path}");
	assert_int_equal(c->check.timeout_ms, 30000);
	assert_int_equal(c->reload.rule_count, 1);
	assert_null(c->reload.rules[0].keys);
	assert_int_equal(c->reload.rules[0].kind, SETTINGS_RUN);
	WORDS(c->reload.rules[0].argv, "/r");
	assert_int_equal(c->reload.debounce_ms, 0);
	assert_int_equal(c->reload.debounce_max_ms, 5000);
	assert_int_equal(c->reload.splay_ms, 0);
	assert_int_equal(c->reload.timeout_ms, 30000);
	assert_null(c->probe.argv);
	assert_string_equal(c->probe.url, "http://h/well");
	assert_int_equal(c->probe.for_ms, 10000);
	assert_int_equal(c->probe.every_ms, 1000);
	assert_int_equal(c->probe.timeout_ms, 5000);
	assert_int_equal(c->probe.failures, 3);
	assert_int_equal(c->drift, SETTINGS_LEAVE);
	c = s->configs[1];
	assert_int_equal(c->format, SETTINGS_FORMAT_PROPERTIES);
	assert_int_equal(c->reload.rule_count, 1); /* nothing for the other keys */
	WORDS(c->reload.rules[0].keys, "a");
	settings_free(s);
}

static void change__bad_value__names_place_and_remedy(void **state)
{
#define NO_KEY                                                                                     \
	" is not a public key of minisign: 56 characters beginning with RW, the last line of the " \
	".pub file that minisign -G makes"
#define NO_SIGNAL                                                                                  \
	" is not a signal: one of HUP, USR1, USR2, TERM, INT, QUIT, WINCH and CONT, or a number "  \
	"from 1 to 31"
#define NO_PATH                                                                                    \
	"check: no word holds \"{path}\", which stands for the new file: a check that does not "   \
	"look at it checks nothing"
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"verify:", "12: verify must be a mapping with public_key or public_keys, but it "
			    "is empty"},
		{"verify: " KEY, "13: verify must be a mapping with public_key or public_keys, but "
				 "it is a text"},
		{"verify: {}", "5: verify needs either public_key or public_keys, and has neither"},
		{"verify: {public_key: " KEY ", public_keys: [" KEY "]}",
			"5: verify needs either public_key or public_keys, and has both"},
		{"verify: {public_key: [" KEY "]}",
			"26: public_key must be a text, but it is a list"},
		{"verify: {public_key: /etc/minisign.pub}", "26: public_key" NO_KEY},
		{"verify: {public_key: ed" KEY "}", "26: public_key" NO_KEY},
		{"verify: {public_keys: [" KEY ", untrusted]}", "86: public_keys" NO_KEY},
		{"verify: {public_keys: " KEY "}",
			"27: public_keys must be a list of texts, but it is a text: put a dash (-) "
			"before it, or brackets around it"},
		{"verify: {bind: path}",
			"5: verify needs either public_key or public_keys, and has neither"},
		{"verify: {public_key: " KEY ", bind: server}",
			"90: bind must be one of config, path, none"},
		{"verify: {public_key: " KEY ", rev: 3}",
			"89: rev must be one of required, optional"},
		{"verify: {public_key: " KEY ", sign: none}",
			"84: unknown key \"sign\" in verify: the keys there are public_key, "
			"public_keys, "
			"bind, rev"},
		{"verify: {public_keys: []}",
			"27: public_keys must have 1 to 64 items, but it has 0"},
		{"guard: 50%", "12: guard must be a mapping, but it is a text"},
		{"guard: {max_shrnk: 1%}",
			"13: unknown key \"max_shrnk\" in guard: did you mean \"max_shrink\"?"},
		{"guard: {max_shrink: 50}", "25: max_shrink: \"50\" is not a percentage: write a "
					    "whole number and %, such as 10%"},
		{"guard: {max_shrink: 101%}", "25: max_shrink must be between 0% and 100%"},
		{"guard: {max_changes: 0}", "26: max_changes must be between 1 and 100000"},
		{"guard: {max_changes: 100001}", "26: max_changes must be between 1 and 100000"},
		{"guard: {require: db.host}",
			"22: require must be a list of texts, but it is a text: put a dash (-) "
			"before it, or brackets around it"},
		{"guard: {require: [1]}",
			"23: each of require must be a text, but it is a number: put it in quotes"},
		{"guard: {require: ['a\\b']}",
			"23: require: \"a\\b\" has a backslash that is not before a dot or a "
			"backslash: write it twice"},
		{"guard: {allow_empty: maybe}", "26: allow_empty must be true or false"},
		{"schema_dir: /s",
			"5: schema_dir has the schemas that another one refers to: name that one "
			"by schema, or remove it"},
		{"schema: web.json",
			"13: schema: \"web.json\" must be an absolute path, beginning with /"},
		{"check:", "11: check must be a list of texts, or a mapping with run, but it is "
			   "empty"},
		{"check: /c {path}",
			"12: check must be a list of texts, or a mapping with run, but it is a "
			"text"},
		{"check: []", "12: check must have 1 to 64 items, but it has 0"},
		{"check: {timeout: 5s}", "5: check has no run, which it needs"},
		{"check: [nginx, -t, '{path}']",
			"13: check: \"nginx\" must be an absolute path, beginning with /"},
		{"check: [/c, -t]", "12: " NO_PATH},
		{"check: {run: [/c, path]}", "12: " NO_PATH},
		{"check: [/c, {path}]",
			"17: each of check must be a text, but it is a mapping: put it in quotes"},
		{"check: [/c, '{path}', 5]",
			"27: each of check must be a text, but it is a number: put it in quotes"},
		{"check: {run: [/c, '{path}'], timeout: 10}",
			"43: timeout: \"10\" has no unit: write it with ms, s, m, h or d behind "
			"the number"},
		{"format: [/f]", "13: format must be a name such as yaml, or a mapping with run "
				 "or template, but it is a list"},
		{"format: {timeout: 1s}",
			"5: format needs either run or template, and has neither"},
		{"format: {run: [/f], template: /none/t}",
			"5: format needs either run or template, and has both"},
		{"format: {run: [/f], strict: true}", "25: strict goes with template: remove it"},
		{"format: {template: /none/t}",
			"24: cannot read /none/t: No such file or directory: make it, or name "
			"another one"},
		{"format: {template: t}",
			"24: template: \"t\" must be an absolute path, beginning with /"},
		{"format: {template: /etc/passwd, escape: xml}",
			"45: escape must be one of line, html"},
		{"format: {run: /f}",
			"19: run must be a list of texts, but it is a text: put a dash (-) before "
			"it, or brackets around it"},
		{"format: {run: [f]}", "20: run: \"f\" must be an absolute path, beginning with /"},
		{"format: {run: [/f], timeout: 2h}", "34: timeout must be between 100ms and 1h"},
		{"reload:", "12: reload must be a mapping with run, or signal and pidfile, or on, "
			    "but it is empty"},
		{"reload: {debounce: 1s}",
			"5: reload has no action: add run, or signal and pidfile, or on"},
		{"reload: {run: [/r], signal: HUP}",
			"25: run and signal exclude each other: remove one"},
		{"reload: {signal: HUP}",
			"14: signal needs pidfile, the file with the number of the process"},
		{"reload: {pidfile: /p}",
			"14: pidfile is set without signal: name the signal, such as HUP"},
		{"reload: {signal: hup, pidfile: /p}", "22: signal: \"hup\"" NO_SIGNAL},
		{"reload: {signal: SIG1, pidfile: /p}", "22: signal: \"SIG1\"" NO_SIGNAL},
		{"reload: {signal: 0, pidfile: /p}", "22: signal: \"0\"" NO_SIGNAL},
		{"reload: {signal: 32, pidfile: /p}", "22: signal: \"32\"" NO_SIGNAL},
		{"reload: {signal: [HUP], pidfile: /p}",
			"22: signal must be a signal such as HUP, but it is a list"},
		{"reload: {signal: HUP, pidfile: p}",
			"36: pidfile: \"p\" must be an absolute path, beginning with /"},
		{"reload: {run: [/r], none: true}",
			"25: unknown key \"none\" in reload: the keys there are run, signal, "
			"pidfile, on, debounce, debounce_max, splay, timeout"},
		{"reload: {on: []}", "18: on is empty: add an item, or remove it"},
		{"reload: {on: {keys: [a]}}",
			"18: on must be a list of mappings with keys and an action, but it is a "
			"mapping: put a dash (-) before it, or brackets around it"},
		{"reload: {on: [a]}", "19: each of on must be a mapping with keys and an action, "
				      "but it is a text"},
		{"reload: {on: [{run: [/r]}]}", "19: an item of on has no keys, which it needs"},
		{"reload: {on: [{keys: [a]}]}", "19: an item of on has no action: add run, or "
						"signal and pidfile, or none: true"},
		{"reload: {on: [{keys: [a], none: false}]}",
			"19: an item of on has no action: add run, or signal and pidfile, or none: "
			"true"},
		{"reload: {on: [{keys: [a], none: true, run: [/r]}]}",
			"31: none is set beside run: remove one"},
		{"reload: {on: [{keys: [a], pidfile: /p}]}",
			"31: pidfile is set without signal: name the signal, such as HUP"},
		{"reload: {on: [{keys: [''], none: true}]}",
			"27: keys: \"\" must have 1 to 1023 bytes"},
		{"reload: {run: [/r], debounce: 10s}",
			"25: debounce is longer than debounce_max, which is 5s: raise that to at "
			"least 10s"},
		{"reload: {run: [/r], splay: 2h}", "32: splay must be between 0ms and 1h"},
		{"probe:", "11: probe must be a mapping with run or url, but it is empty"},
		{"probe: {for: 5s}", "5: probe needs either run or url, and has neither"},
		{"probe: {run: [/p], url: 'http://h'}",
			"5: probe needs either run or url, and has both"},
		{"probe: {url: 'http://me:secret@h/'}",
			"18: url holds credentials, which do not belong in the URL: remove "
			"USER:PASSWORD@"},
		{"probe: {url: 'http://h', for: 1s}",
			"5: probe ends before it can fail 3 times in a row: raise for to at least "
			"2s, or lower failures or every"},
		{"probe: {url: 'http://h', failures: 0}",
			"40: failures must be between 1 and 1000"},
		{"history: 0", "14: history must be between 1 and 1000"},
		{"history: 1001", "14: history must be between 1 and 1000"},
		{"mask: password", "11: mask must be a list of texts, but it is a text: put a dash "
				   "(-) before it, or brackets around it"},
		{"mask: [\"a\\x01\"]", "12: mask: \"a?\" holds a control character"},
		{"drift: fix", "12: drift must be one of heal, report, leave"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		bad_line(cases[i].line, cases[i].message);
}

static void change__history_of_one__leaves_a_probe_nothing_to_bring_back(void **state)
{
	(void)state;
	BAD("configs: {a: {url: 'http://h', file: /a, history: 1, probe: {run: [/p]}}}",
		"t.yaml:1:51: history must be at least 2 beside probe, which brings back the "
		"version before");
	settings_free(good("configs: {a: {url: 'http://h', file: /a, history: 1}}"));
}

/* What a config is, and which keys have no effect on it. */
static void change__key_without_effect__is_refused(void **state)
{
#define MERGED "from: [{server: s, path: /a}, {server: s, path: /b}], file: /a"
#define FILES "from: [{server: s, path: /a, as: x}], dir: /a"
#define OF_BYTES ": a config of type bytes is not looked into: "
#define OF_SET ": a set of files (dir) is not merged into one document: "
#define OF_MERGED ": several documents are merged and written again: "
	static const struct {
		const char *config, *key, *message; /* NULL = good */
	} cases[] = {
		{"url: 'http://h', file: /a, type: bytes", "guard: {max_shrink: 5%}", NULL},
		{"url: 'http://h', file: /a, type: bytes", "format: verbatim", NULL},
		{"url: 'http://h', file: /a, type: bytes", "reload: {run: [/r]}", NULL},
		{"url: 'http://h', file: /a, type: bytes", "verify: {public_key: " KEY "}", NULL},
		{"url: 'http://h', file: /a, type: bytes", "format: env",
			"format" OF_BYTES "only verbatim is possible"},
		{"url: 'http://h', file: /a, type: bytes", "format: {run: [/f]}",
			"format" OF_BYTES "only verbatim is possible"},
		{"url: 'http://h', file: /a, type: bytes", "schema: /s",
			"schema" OF_BYTES "remove it"},
		{"url: 'http://h', file: /a, type: bytes", "mask: [a]",
			"mask" OF_BYTES "remove it"},
		{"url: 'http://h', file: /a, type: bytes", "guard: {max_changes: 1}",
			"max_changes" OF_BYTES "remove it"},
		{"url: 'http://h', file: /a, type: bytes", "guard: {require: [a]}",
			"require" OF_BYTES "remove it"},
		{"url: 'http://h', file: /a, type: bytes", "guard: {allow_empty: true}",
			"allow_empty" OF_BYTES "remove it"},
		{"url: 'http://h', file: /a, type: bytes",
			"reload: {on: [{keys: [a], none: true}]}", "on" OF_BYTES "remove it"},
		{MERGED, "format: json", NULL},
		{MERGED, "type: json", NULL},
		{MERGED, "format: {run: [/f]}", NULL},
		{MERGED, "format: verbatim", "format" OF_MERGED "verbatim is not possible"},
		{MERGED, "type: bytes", "type" OF_MERGED "bytes is not possible"},
		{FILES, "format: verbatim", NULL},
		{FILES, "snapshot: false", NULL},
		{FILES, "type: bytes", NULL},
		{FILES, "guard: {max_shrink: 5%, allow_empty: true}", NULL},
		{FILES, "check: [/c, '{path}']", NULL},
		{FILES, "reload: {on: [{keys: [x], none: true}]}", NULL},
		{FILES, "format: yaml", "format" OF_SET "only verbatim is possible"},
		{FILES, "snapshot: true", "snapshot" OF_SET "only false is possible"},
		{FILES, "schema: /s", "schema" OF_SET "remove it"},
		{FILES, "mask: [a]", "mask" OF_SET "remove it"},
		{FILES, "guard: {max_changes: 1}", "max_changes" OF_SET "remove it"},
		{FILES, "guard: {require: [a]}", "require" OF_SET "remove it"},
	};
	char text[1024];
	const char *said;
	struct settings *s;
	int errors;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof(text),
			"servers: {s: {urls: ['http://h']}}\nconfigs: {a: {%s, %s}}\n",
			cases[i].config, cases[i].key);
		errors = parse(text, &s);
		settings_free(s);
		said = errors ? strstr(told.text[0], ": ") + 2 : "";
		if (errors != (cases[i].message ? 1 : 0) ||
			(errors && strcmp(said, cases[i].message)))
			fail_msg("%s\n%d errors: %s", text, errors, errors ? told.text[0] : "");
	}
}

/* ---- layers, sets of files ---- */

#define SERVERS "servers: {s: {urls: ['http://s']}, t: {urls: ['http://t']}}\n"

/* F15: a key that is trusted for another document too must say which one it signed. */
static void verify__bind__is_the_path_where_a_key_is_shared(void **state)
{
#define OF_ONE(name, verify) name ": {url: 'http://h/" name "', file: /run/" name ", " verify "}"
#define OF_TWO(name, verify)                                                                       \
	name ": {from: [{server: s, path: /1}, {server: s, path: /2}], file: /run/" name           \
	     ", verify: {" verify "}}"
	static const struct {
		const char *configs;
		enum settings_bind bind;
		bool shared, rev_required;
	} table[] = {
		{OF_ONE("a", "verify: {public_key: " KEY "}"), SETTINGS_BIND_NONE, false, false},
		{OF_ONE("a", "verify: {public_key: " KEY ", rev: required}"), SETTINGS_BIND_NONE,
			false, true},
		{OF_ONE("a", "verify: {public_key: " KEY ", bind: config}"), SETTINGS_BIND_CONFIG,
			false, false},
		{OF_ONE("a", "verify: {public_keys: [" KEY ", " KEY "]}"), SETTINGS_BIND_NONE,
			false, false},
		{OF_ONE("a", "verify: {public_key: " KEY "}") ", " OF_ONE(
			 "b", "verify: {public_key: " KEY "}"),
			SETTINGS_BIND_PATH, true, false},
		{OF_ONE("a", "verify: {public_key: " KEY "}") ", " OF_ONE(
			 "b", "verify: {public_keys: [" KEY2 ", " KEY "]}"),
			SETTINGS_BIND_PATH, true, false},
		{OF_ONE("a", "verify: {public_key: " KEY "}") ", " OF_ONE(
			 "b", "verify: {public_key: " KEY2 "}"),
			SETTINGS_BIND_NONE, false, false},
		{OF_ONE("a", "verify: {public_key: " KEY ", bind: none}") ", " OF_ONE(
			 "b", "verify: {public_key: " KEY "}"),
			SETTINGS_BIND_NONE, true, false},
		{OF_ONE("a", "verify: {public_key: " KEY
			     ", rev: optional, bind: config}") ", " OF_ONE("b",
			 "verify: {public_key: " KEY "}"),
			SETTINGS_BIND_CONFIG, true, false},
		{OF_TWO("a", "public_key: " KEY), SETTINGS_BIND_PATH, true, false},
		{OF_TWO("a", "bind: none, public_key: " KEY), SETTINGS_BIND_NONE, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[2048];
		struct settings *s;
		const struct settings_verify *v;

		snprintf(text, sizeof(text), "servers: {s: {urls: ['http://s']}}\nconfigs: {%s}\n",
			table[i].configs);
		s = good(text);
		v = &s->configs[0]->verify;
		if (v->bind != table[i].bind || v->key_shared != table[i].shared ||
			v->rev_required != table[i].rev_required)
			fail_msg("%s: bind %d, shared %d, rev %d", table[i].configs, (int)v->bind,
				v->key_shared, v->rev_required);
		settings_free(s);
	}
}

static void layers__several__are_merged_into_yaml(void **state)
{
	struct settings *s = good(SERVERS "configs:\n"
					  "  p: {url: 'http://p/p', file: /p}\n"
					  "  a:\n"
					  "    from:\n"
					  "      - {server: t, path: /1}\n"
					  "      - {server: s, path: /2?x, optional: true}\n"
					  "      - {server: t, path: /3, optional: false}\n"
					  "    file: /a\n"
					  "  b: {from: [{server: s, path: /b}], file: /b, "
					  "type: json}\n");
	struct settings_config *const *c = s->configs;
	static const struct {
		const char *from, *path;
		size_t server;
		bool optional;
	} want[] = {{"t", "/1", 1, false}, {"s", "/2?x", 0, true}, {"t", "/3", 1, false}};

	(void)state;
	assert_int_equal(c[1]->layer_count, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_string_equal(c[1]->layers[i].from, want[i].from);
		assert_string_equal(c[1]->layers[i].path, want[i].path);
		assert_int_equal(c[1]->layers[i].server, want[i].server);
		assert_int_equal(c[1]->layers[i].optional, want[i].optional);
		assert_int_equal(c[1]->layers[i].type, SETTINGS_TYPE_AUTO);
		assert_null(c[1]->layers[i].as);
	}
	assert_int_equal(c[1]->format, SETTINGS_FORMAT_YAML);
	assert_int_equal(c[0]->layer_count, 1);
	assert_null(c[0]->layers->from);
	assert_int_equal(c[0]->format, SETTINGS_VERBATIM);
	assert_int_equal(c[2]->layer_count, 1);
	assert_int_equal(c[2]->layers->type, SETTINGS_TYPE_JSON);
	assert_int_equal(c[2]->format, SETTINGS_VERBATIM);
	settings_free(s);
}

static void layers__of_a_set__are_files_of_their_own_type(void **state)
{
	static const struct {
		const char *as;
		enum settings_type type;
	} want[] = {
		{"a.yaml", SETTINGS_TYPE_YAML},
		{"b.YML", SETTINGS_TYPE_YAML},
		{"c.json", SETTINGS_TYPE_JSON},
		{"d.png", SETTINGS_TYPE_BYTES},
		{"yaml", SETTINGS_TYPE_BYTES},
		{"e.yaml.j2", SETTINGS_TYPE_BYTES},
	};
	struct settings *s = good(SERVERS "configs:\n"
					  "  a:\n"
					  "    dir: /run/a\n"
					  "    from:\n"
					  "      - {server: s, path: /x, as: a.yaml}\n"
					  "      - {server: s, path: /x, as: b.YML}\n"
					  "      - {server: t, path: /x.yaml, as: c.json}\n"
					  "      - {server: t, path: /x.yaml, as: d.png, "
					  "optional: true}\n"
					  "      - {server: t, path: /x.yaml, as: yaml}\n"
					  "      - {server: t, path: /x.yaml, as: e.yaml.j2}\n"
					  "  b: {dir: /run/b, type: bytes, from: [{server: s, "
					  "path: /x, as: a.yaml}]}\n");
	struct settings_config *const *c = s->configs;

	(void)state;
	assert_string_equal(c[0]->dir, "/run/a");
	assert_null(c[0]->file);
	assert_false(c[0]->snapshot);
	assert_int_equal(c[0]->format, SETTINGS_VERBATIM);
	assert_int_equal(c[0]->layer_count, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_string_equal(c[0]->layers[i].as, want[i].as);
		assert_int_equal(c[0]->layers[i].type, want[i].type);
	}
	assert_true(c[0]->layers[3].optional);
	assert_int_equal(c[1]->layers->type, SETTINGS_TYPE_BYTES);
	settings_free(s);
}

static void layers__bad__names_place_and_remedy(void **state)
{
	static const struct {
		const char *keys, *message; /* at line 4, of config a */
	} table[] = {
		{"from: [], file: /a", "12: from is empty: name at least one document"},
		{"from: {server: s, path: /a}, file: /a",
			"12: from must be a list of {server: NAME, path: /PATH}, but it is a "
			"mapping: put a dash (-) before it, or brackets around it"},
		{"from: [s], file: /a", "13: each of from must be a mapping with server and path, "
					"but it is a text"},
		{"from: [{server: s}], file: /a", "13: from has no path, which it needs"},
		{"from: [{server: s, path: /a, optional: 1}], file: /a",
			"45: optional must be true or false: write true"},
		{"from: [{server: s, path: /a}, {server: u, path: /b}], file: /a",
			"45: there is no server \"u\": did you mean \"s\"?"},
		{"from: [{server: s, path: /a, optional: true}], file: /a",
			"35: optional: the only document cannot be missing: remove it, or add "
			"another item"},
		{"from: [{server: s, path: /a, optional: 'true'}], file: /a",
			"35: optional: the only document cannot be missing: remove it, or add "
			"another item"},
		{"from: [{server: s, path: /a, as: x}], file: /a",
			"35: as names a file of a set: set dir instead of file, or remove it"},
		{"from: [{server: s, path: /a}], dir: /a",
			"13: an item of from has no as, the name of its file in the set (dir)"},
		{"from: [{server: s, path: /a, as: x}, {server: s, path: /b, as: x}], dir: /a",
			"69: as: \"x\" is named twice in this list"},
		{"from: [{server: s, path: /a, as: ../x}], dir: /a",
			"39: as: \"../x\" is not the name of a file in the directory: 1 to 200 "
			"letters, digits, '.', '_' and '-', a letter or digit first"},
		{"from: [{server: s, path: /a, as: x}], dir: /a, file: /b",
			"44: dir and file exclude each other: remove one"},
		{"from: [{server: s, path: /a, as: x}], dir: a",
			"49: dir: \"a\" must be an absolute path, beginning with /"},
		{"url: 'http://h/a', dir: /a",
			"25: dir needs from, a list of {server: NAME, path: /PATH, as: FILE}"},
	};
	char text[1024], want[512];
	struct settings *s;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text, sizeof(text), SERVERS "configs:\n  a:\n    {%s}\n", table[i].keys);
		snprintf(want, sizeof(want), "t.yaml:4:%s", table[i].message);
		if (parse(text, &s) != 1 || strcmp(told.text[0], want))
			fail_msg("%s\nsays: %s\nnot:  %s", table[i].keys, told.text[0], want);
	}
}

static void layers__path_inside_a_set__is_refused(void **state)
{
	(void)state;
	BAD(SERVERS "configs:\n"
		    "  b: {url: 'http://h', file: /run/a/b}\n"
		    "  c: {url: 'http://h', file: /run/a-b}\n"
		    "  d: {url: 'http://h', file: /run/a.b}\n"
		    "  e: {url: 'http://h', file: /run/ab}\n"
		    "  a: {from: [{server: s, path: /a, as: x}], dir: /run/a}\n"
		    "  f: {from: [{server: s, path: /a, as: x}], dir: /run/a/f/g}\n",
		"t.yaml:3:30: \"/run/a/b\" lies inside \"/run/a\", which is written by config "
		"\"a\", at t.yaml:7:50",
		"t.yaml:8:50: \"/run/a/f/g\" lies inside \"/run/a\", which is written by config "
		"\"a\", at t.yaml:7:50");
}

/* ---- kinds of servers ---- */

/* A server of a kind, a config that pulls `path` from it; more: keys of that config. */
static char *of_kind(const char *kind, const char *keys, const char *path, const char *more)
{
	static char text[8192];

	snprintf(text, sizeof(text),
		"servers: {s: {kind: %s%s}}\n"
		"configs: {a: {from: [{server: s, path: '%s'}], file: /a%s}}\n",
		kind, keys, path, more);
	return text;
}

/* It is refused with that sentence alone, or good (NULL). */
static void assert_judged(const char *text, const char *sentence)
{
	struct settings *s;
	int errors = parse(text, &s);

	settings_free(s);
	if (errors != (sentence ? 1 : 0) || (sentence && !strstr(told.text[0], sentence)))
		fail_msg("%s\n%d errors: %s\nnot: %s", text, errors, errors ? told.text[0] : "",
			sentence ? sentence : "good");
}

#define KINDS 8
#define URLS ", urls: ['https://h']"

static const struct {
	const char *name, *urls, *path; /* good ones */
	enum settings_kind kind;
} each_kind[KINDS] = {
	{"http", URLS, "/x", SETTINGS_HTTP},
	{"etcd", URLS, "/x", SETTINGS_ETCD},
	{"consul", URLS, "/x", SETTINGS_CONSUL},
	{"nacos", URLS, "/g/x", SETTINGS_NACOS},
	{"apollo", URLS, "/a/c/n", SETTINGS_APOLLO},
	{"spring", URLS, "/a/p", SETTINGS_SPRING},
	{"s3", URLS, "/b/k", SETTINGS_S3},
	{"file", "", "/x", SETTINGS_FILE},
};

static void kinds__all__are_known_by_their_names(void **state)
{
	(void)state;
	assert_int_equal(KINDS, SETTINGS_KINDS);
	for (size_t i = 0; i < KINDS; i++) {
		struct settings *s =
			good(of_kind(each_kind[i].name, each_kind[i].urls, each_kind[i].path, ""));

		assert_int_equal(s->servers[0]->kind, each_kind[i].kind);
		assert_int_equal(s->servers[0]->url_count, 1);
		assert_string_equal(s->configs[0]->layers[0].path, each_kind[i].path);
		assert_false(s->servers[0]->watch);
		assert_int_equal(s->servers[0]->api, 1);
		assert_true(!s->servers[0]->region && !s->servers[0]->datacenter &&
			    !s->servers[0]->namespace && !s->servers[0]->access_key &&
			    !s->servers[0]->secret_file && !s->servers[0]->session_token_file);
		settings_free(s);
	}
}

static void kinds__their_keys__are_taken_over(void **state)
{
	struct settings *s = good(
		FROM "servers:\n"
		     "  main: {urls: ['http://m']}\n"
		     "  e: {urls: ['http://e'], watch: true, kind: etcd}\n"
		     "  c: {kind: consul, urls: ['http://c'], datacenter: dc-1, watch: false}\n"
		     "  n: {kind: nacos, urls: ['http://n'], namespace: 'a-1:b', api: 3}\n"
		     "  a: {kind: apollo, urls: ['http://a'], datacenter: x,\n"
		     "    auth: {access_key: {secret_file: /s}}}\n"
		     "  s: {kind: s3, urls: ['http://s'], region: eu-1,\n"
		     "    auth: {access_key: {id: 'A/B+C=', secret_file: /s2,\n"
		     "      session_token_file: /t}}}\n"
		     "  f: {kind: file, urls: ['file:///mnt/x', 'file:///mnt/y']}\n"
		     "  w: {kind: file}\n");
	struct settings_server *const *v = s->servers;

	(void)state;
	assert_int_equal(s->server_count, 8);
	assert_true(v[1]->watch && !v[2]->watch);
	assert_string_equal(v[2]->datacenter, "dc-1");
	assert_string_equal(v[3]->namespace, "a-1:b");
	assert_int_equal(v[3]->api, 3);
	assert_string_equal(v[4]->datacenter, "x");
	assert_string_equal(v[4]->secret_file, "/s");
	assert_null(v[4]->access_key);
	assert_string_equal(v[5]->region, "eu-1");
	assert_string_equal(v[5]->access_key, "A/B+C=");
	assert_string_equal(v[5]->secret_file, "/s2");
	assert_string_equal(v[5]->session_token_file, "/t");
	assert_int_equal(v[6]->url_count, 2);
	assert_string_equal(v[6]->urls[1], "file:///mnt/y");
	assert_int_equal(v[7]->url_count, 1);
	assert_string_equal(v[7]->urls[0], "file://");
	settings_free(s);
}

/* Each key of a server on each kind: good, or refused where it stands. */
static void kinds__a_key_that_means_nothing__is_refused(void **state)
{
	static const struct {
		const char *name, *value;
		const char *kinds; /* that know it; a blank behind each */
	} table[] = {
		{"tls", ", tls: {ca: /c}", "http etcd consul nacos apollo spring s3 "},
		{"insecure", ", insecure: true", "http etcd consul nacos apollo spring s3 "},
		{"auth", ", auth: {headers: {X: y}}", "http etcd consul nacos apollo spring s3 "},
		{"connect_timeout", ", connect_timeout: 1s",
			"http etcd consul nacos apollo spring s3 "},
		{"max_in_flight", ", max_in_flight: 1",
			"http etcd consul nacos apollo spring s3 file "},
		{"max_size", ", max_size: 1KiB", "http etcd consul nacos apollo spring s3 file "},
		{"watch", ", watch: true", "etcd consul nacos apollo file "},
		{"watch", ", watch: false", "etcd consul nacos apollo file "},
		{"region", ", region: r", "s3 "},
		{"datacenter", ", datacenter: d", "consul apollo "},
		{"namespace", ", namespace: n", "nacos "},
		{"api", ", api: 1", "nacos "},
		{"api", ", api: 3", "nacos "},
		{"basic", ", insecure: true, auth: {basic: {user: a, password_file: /p}}",
			"http etcd nacos spring "},
		{"bearer_file", ", insecure: true, auth: {bearer_file: /t}", "http consul spring "},
		{"access_key", ", auth: {access_key: {secret_file: /s}}", "apollo "},
		{"access_key", ", auth: {access_key: {id: i, secret_file: /s}}", "s3 "},
	};
	char keys[512], word[32], sentence[128];

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		snprintf(word, sizeof(word), "%s ", each_kind[k].name);
		for (size_t i = 0; i < COUNT(table); i++) {
			const char *name = table[i].name;
			bool access = strstr(table[i].value, "access_key");

			if (access && each_kind[k].kind != SETTINGS_S3 &&
				each_kind[k].kind != SETTINGS_APOLLO &&
				strstr(table[i].value, "id:"))
				continue; /* the row before */
			if (strstr(table[i].value, "auth:") && each_kind[k].kind == SETTINGS_FILE)
				continue; /* below */
			snprintf(keys, sizeof(keys), "%s%s", each_kind[k].urls, table[i].value);
			snprintf(sentence, sizeof(sentence),
				"%s means nothing to a server of the kind %s: remove it", name,
				each_kind[k].name);
			if (access && each_kind[k].kind == SETTINGS_S3)
				snprintf(sentence, sizeof(sentence), "access_key has no id");
			if (access && each_kind[k].kind == SETTINGS_APOLLO)
				snprintf(sentence, sizeof(sentence),
					"id: Apollo knows only the secret of an access key");
			assert_judged(of_kind(each_kind[k].name, keys, each_kind[k].path, ""),
				strstr(table[i].kinds, word) ? NULL : sentence);
		}
	}
	assert_judged(of_kind("file", ", auth: {headers: {X: y}}", "/x", ""),
		"t.yaml:1:27: auth means nothing to a server of the kind file: remove it");
}

static void kinds__bad_values__name_place_and_remedy(void **state)
{
	static const struct {
		const char *kind, *keys, *path, *sentence;
	} table[] = {
		{"etcd", "", "/x", "t.yaml:1:11: server \"s\" has no urls, which it needs"},
		{"file", ", urls: []", "/x", "urls is empty: name at least one"},
		{"file", ", urls: ['http://h']", "/x",
			"the url must begin with file:///, followed by an absolute path"},
		{"file", ", urls: ['file://h/x']", "/x",
			"the url must begin with file:///, followed by an absolute path"},
		{"file", ", urls: ['file:///a/../b']", "/x", "the url "},
		{"file", ", urls: ['file:///a/']", "/x", "the url "},
		{"file", ", urls: ['file:///a', 'file:///a']", "/x",
			"the url is named twice in this list"},
		{"http", ", urls: ['file:///a']", "/x", "must begin with http:// or https://"},
		{"etcd", ", urls: ['file:///a']", "/x", "must begin with http:// or https://"},
		{"etcd", URLS ", watch: often", "/x", "watch must be true or false"},
		{"nacos", URLS ", api: 2", "/g/x", "api is 1 (Nacos 1.x and 2.x) or 3"},
		{"nacos", URLS ", api: 4", "/g/x", "api must be between 1 and 3"},
		{"nacos", URLS ", api: 3, watch: true", "/g/x",
			"Nacos 3 cannot be watched over HTTP: remove it, the interval counts"},
		{"nacos", URLS ", api: 3, watch: false", "/g/x", NULL},
		{"nacos", URLS ", namespace: ''", "/g/x", "namespace: \"\" is not a name"},
		{"nacos", URLS ", namespace: 'a b'", "/g/x", "namespace: \"a b\" is not a name"},
		{"s3", URLS ", region: 'a&b'", "/b/k", "region: \"a&b\" is not a name"},
		{"s3", URLS ", auth: {access_key: {id: i}}", "/b/k",
			"access_key has no secret_file, which it needs"},
		{"s3", URLS ", auth: {access_key: abc}", "/b/k",
			"access_key must be a mapping with secret_file, but it is a text"},
		{"s3", URLS ", auth: {access_key: {id: i, secret: abc, secret_file: /s}}", "/b/k",
			"unknown key \"secret\""},
		{"apollo", URLS ", auth: {access_key: {secret_file: /s, session_token_file: /t}}",
			"/a/c/n", "session_token_file: Apollo knows only the secret"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_judged(of_kind(table[i].kind, table[i].keys, table[i].path, ""),
			table[i].sentence);
	/* of an unknown kind nothing more is said */
	assert_judged(of_kind("zookeeper", URLS ", namespace: x, watch: true", "/x", ""),
		"kind must be one of ");
	assert_judged(of_kind("4", URLS ", region: x", "/x", ""), "kind must be one of ");
}

static void kinds__their_paths__have_a_shape(void **state)
{
	static const struct {
		enum settings_kind kind;
		const char *path;
		bool good;
	} table[] = {
		{SETTINGS_HTTP, "/", true},
		{SETTINGS_HTTP, "/a//b/?x=/", true},
		{SETTINGS_ETCD, "/a", true},
		{SETTINGS_ETCD, "/a/b/c.yaml", true},
		{SETTINGS_ETCD, "/a/", true},
		{SETTINGS_ETCD, "/", false},
		{SETTINGS_ETCD, "//", false},
		{SETTINGS_ETCD, "/a//b", false},
		{SETTINGS_ETCD, "/a//", false},
		{SETTINGS_CONSUL, "/a/b", true},
		{SETTINGS_CONSUL, "/a/b/", true},
		{SETTINGS_CONSUL, "//a", false},
		{SETTINGS_NACOS, "/g/d", true},
		{SETTINGS_NACOS, "/g", false},
		{SETTINGS_NACOS, "/g/", false},
		{SETTINGS_NACOS, "/g/d/", false},
		{SETTINGS_NACOS, "/g/d/e", false},
		{SETTINGS_NACOS, "//d", false},
		{SETTINGS_APOLLO, "/a/c/n", true},
		{SETTINGS_APOLLO, "/a/c/n.yaml", true},
		{SETTINGS_APOLLO, "/a/c", false},
		{SETTINGS_APOLLO, "/a/c/n/x", false},
		{SETTINGS_APOLLO, "/a//n", false},
		{SETTINGS_SPRING, "/a/p", true},
		{SETTINGS_SPRING, "/a/p,q/main", true},
		{SETTINGS_SPRING, "/a", false},
		{SETTINGS_SPRING, "/a/p/", false},
		{SETTINGS_SPRING, "/a/p/l/x", false},
		{SETTINGS_S3, "/b/k", true},
		{SETTINGS_S3, "/b/k/l/m.yaml", true},
		{SETTINGS_S3, "/b/", false},
		{SETTINGS_FILE, "/a", true},
		{SETTINGS_FILE, "/a/b.yaml", true},
		{SETTINGS_FILE, "/", false},
		{SETTINGS_FILE, "/a/", false},
		{SETTINGS_FILE, "/a//b", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t k = 0;

		while (each_kind[k].kind != table[i].kind)
			k++;
		assert_judged(of_kind(each_kind[k].name, each_kind[k].urls, table[i].path, ""),
			table[i].good ? NULL : "the path must be /");
	}
	BAD(of_kind("nacos", URLS, "/g", ""),
		"t.yaml:2:31: the path must be /GROUP/DATAID on a server of this kind");
	/* as long as it may be, behind the longest address of its server */
	for (int over = 0; over < 2; over++) {
		char path[SETTINGS_MAX_URL];

		memset(path, 'a', sizeof(path));
		path[0] = '/';
		path[SETTINGS_MAX_URL - strlen("https://longer") + (size_t)over] = '\0';
		assert_judged(of_kind("etcd", ", urls: ['https://h', 'https://longer']", path, ""),
			over ? "the server's url and the path together are too long: at most 1023 "
			       "bytes"
			     : NULL);
	}
}

/* A signature is of bytes as they are on the server. */
static void kinds__that_make_their_documents__cannot_be_verified(void **state)
{
	static const struct {
		enum settings_kind kind;
		const char *path;
		bool good;
	} table[] = {
		{SETTINGS_HTTP, "/x/", true},
		{SETTINGS_ETCD, "/x", true},
		{SETTINGS_ETCD, "/x/", false},
		{SETTINGS_CONSUL, "/x", true},
		{SETTINGS_CONSUL, "/x/", false},
		{SETTINGS_NACOS, "/g/x", true},
		{SETTINGS_APOLLO, "/a/c/n", false},
		{SETTINGS_SPRING, "/a/p", false},
		{SETTINGS_S3, "/b/k", true},
		{SETTINGS_FILE, "/x", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t k = 0;

		while (each_kind[k].kind != table[i].kind)
			k++;
		assert_judged(of_kind(each_kind[k].name, each_kind[k].urls, table[i].path,
				      ", verify: {public_key: " KEY "}"),
			table[i].good ? NULL
				      : "verify needs a document as it was signed: what the agent "
					"makes of several values has no signature");
	}
}

/* ---- documents beside from ---- */

static void asides__of_a_config__are_taken_over_and_found(void **state)
{
	struct settings *s =
		good("configs:\n"
		     "  a:\n"
		     "    from: [{server: s, path: /1}, {server: t, path: /2}]\n"
		     "    bootstrap: {server: f, path: /boot.yaml}\n"
		     "    rollout: {server: t, path: /a.rollout}\n"
		     "    type: json\n"
		     "    file: /a\n"
		     "  b: {url: 'http://h/b', file: /b, bootstrap: {server: s, path: /b}}\n"
		     "  c: {url: 'http://h/c', file: /c}\n"
		     "servers:\n"
		     "  s: {urls: ['http://s']}\n"
		     "  t: {urls: ['http://t']}\n"
		     "  f: {kind: file}\n");
	struct settings_config *const *c = s->configs;

	(void)state;
	assert_int_equal(c[0]->bootstrap->server, 2);
	assert_string_equal(c[0]->bootstrap->from, "f");
	assert_string_equal(c[0]->bootstrap->path, "/boot.yaml");
	assert_int_equal(c[0]->bootstrap->type, SETTINGS_TYPE_JSON);
	assert_false(c[0]->bootstrap->optional);
	assert_null(c[0]->bootstrap->as);
	assert_int_equal(c[0]->rollout->server, 1);
	assert_string_equal(c[0]->rollout->path, "/a.rollout");
	assert_int_equal(c[0]->layers[0].server, 0); /* theirs do not count there */
	assert_int_equal(c[0]->layers[1].server, 1);
	assert_int_equal(c[1]->bootstrap->server, 0);
	assert_null(c[1]->rollout);
	assert_true(!c[2]->bootstrap && !c[2]->rollout);
	settings_free(s);
}

static void asides__bad__name_place_and_remedy(void **state)
{
	static const struct {
		const char *line, *message; /* at line 6 */
	} table[] = {
		{"bootstrap: {server: u, path: /a}",
			"25: there is no server \"u\": did you mean \"s\"?"},
		{"rollout: {server: nowhere, path: /a}",
			"23: there is no server \"nowhere\": add it under \"servers\""},
		{"bootstrap: {server: s}", "5: bootstrap has no path, which it needs"},
		{"rollout: {path: /a}", "5: rollout has no server, which it needs"},
		{"bootstrap: {server: s, path: a}",
			"34: path: \"a\" must begin with /: it is put behind each URL of the "
			"server"},
		{"bootstrap: {server: s, path: /a, optional: true}",
			"38: unknown key \"optional\" in bootstrap: it is a key of from: move it "
			"below configs: NAME: from:, into an item"},
		{"bootstrap: [{server: s, path: /a}]",
			"16: bootstrap must be a mapping with server and path, but it is a list: "
			"remove the dash, or the brackets"},
		{"rollout: {server: a p, path: /a}",
			"23: server: \"a p\" is not a name: 1 to 64 letters, digits, '.', '_' and "
			"'-', a letter or digit first"},
		{"bootstrap: {server: n, path: /a}",
			"25: the path must be /GROUP/DATAID on a server of this kind"},
		{"rollout: {server: n, path: /a}",
			"23: the path must be /GROUP/DATAID on a server of this kind"},
		{"bootstrap: {server: e, path: /a/}",
			"25: verify needs a document as it was signed: what the agent makes of "
			"several values has no signature"},
		{"rollout: {server: e, path: /a/}", NULL}, /* is not what is signed */
	};
	char text[1024], want[512];
	struct settings *s;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		int errors;

		snprintf(text, sizeof(text),
			"servers: {s: {urls: ['http://s']}, n: {kind: nacos, urls: ['http://n']}, "
			"e: {kind: etcd, urls: ['http://e']}}\n"
			"configs:\n  a:\n    from: [{server: s, path: /1}]\n"
			"    verify: {public_key: " KEY "}\n    %s\n    file: /a\n",
			table[i].line);
		snprintf(want, sizeof(want), "t.yaml:6:%s",
			table[i].message ? table[i].message : "");
		errors = parse(text, &s);
		settings_free(s);
		if (errors != !!table[i].message || (errors && strcmp(told.text[0], want)))
			fail_msg("%s\nsays: %s\nnot:  %s", table[i].line,
				errors ? told.text[0] : "nothing", want);
	}
	BAD("servers: {s: {urls: ['http://s']}}\n"
	    "configs: {a: {from: [{server: s, path: /a, as: x}], dir: /a, bootstrap: {server: s, "
	    "path: /b}}}\n",
		"t.yaml:2:62: bootstrap brings one document, dir is a set of several: remove one");
	BAD("servers: {s: {urls: ['http://s']}}\n"
	    "configs: {a: {url: 'http://h/a', file: /a, rollout: {server: s, path: /a}, rollout: "
	    "{server: s, path: /b}}}\n",
		"t.yaml:2:76: rollout is set twice: first at t.yaml:2:44");
}

static void report__is_taken_over_and_has_defaults(void **state)
{
	static const char servers[] = "servers: {h: {urls: ['http://h']}, e: {kind: etcd, urls: "
				      "['http://e']}}\n" WEB;
	char text[1024];
	struct settings *s;

	(void)state;
	snprintf(text, sizeof(text), "%s", servers);
	s = good(text);
	assert_null(s->report.from);
	settings_free(s);
	snprintf(text, sizeof(text), "report: {server: e}\n%s", servers);
	s = good(text);
	assert_string_equal(s->report.from, "e");
	assert_int_equal(s->report.server, 1);
	assert_string_equal(s->report.prefix, "/pullet/agents/");
	assert_null(s->report.host);
	assert_int_equal(s->report.ttl_ms, 60000);
	settings_free(s);
	snprintf(text, sizeof(text),
		"report: {server: e, prefix: /x/, host: web-1.eu, ttl: 5s}\n%s", servers);
	s = good(text);
	assert_string_equal(s->report.prefix, "/x/");
	assert_string_equal(s->report.host, "web-1.eu");
	assert_int_equal(s->report.ttl_ms, 5000);
	settings_free(s);
	snprintf(text, sizeof(text), "report: {server: e, prefix: //, ttl: 1h}\n%s", servers);
	s = good(text);
	assert_string_equal(s->report.prefix, "//");
	assert_int_equal(s->report.ttl_ms, 3600000);
	settings_free(s);
}

static void report__bad__names_place_and_remedy(void **state)
{
	static const struct {
		const char *keys, *message;
	} table[] = {
		{"{}", "1: report has no server, which it needs"},
		{"", "8: report must be a mapping with server, but it is empty: indent its keys "
		     "deeper than its name"},
		{"e", "9: report must be a mapping with server, but it is a text"},
		{"{server: h}", "18: report needs a server of the kind etcd"},
		{"{server: c}", "18: report needs a server of the kind etcd"},
		{"{server: main}", "18: there is no server \"main\": add it under \"servers\""},
		{"{server: f}", "18: there is no server \"f\": did you mean \"h\"?"},
		{"{server: e, ttl: 4s}", "26: ttl must be between 5s and 1h"},
		{"{server: e, ttl: 2h}", "26: ttl must be between 5s and 1h"},
		{"{server: e, prefix: /a}", "29: prefix: \"/a\" must end with /, and be more than "
					    "that: the agents' keys are put behind it"},
		{"{server: e, prefix: /}", "29: prefix: \"/\" must end with /, and be more than "
					   "that: the agents' keys are put behind it"},
		{"{server: e, prefix: a/}", "29: prefix: \"a/\" must begin with /: it is put "
					    "behind each URL of the server"},
		{"{server: e, host: a/b}", "27: host: \"a/b\" is not a name: 1 to 64 letters, "
					   "digits, '.', '_' and '-', a letter or digit first"},
		{"{server: e, hosts: a}", "21: unknown key \"hosts\" in report: did you mean "
					  "\"host\"?"},
	};
	char text[1024], want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text, sizeof(text),
			"report: %s\nservers: {h: {urls: ['http://h']}, e: {kind: etcd, urls: "
			"['http://e']}, c: {kind: consul, urls: ['http://c']}}\n" WEB,
			table[i].keys);
		snprintf(want, sizeof(want), "t.yaml:1:%s", table[i].message);
		if (parse(text, &(struct settings *){0}) != 1 || strcmp(told.text[0], want))
			fail_msg("%s\nsays: %s\nnot:  %s", table[i].keys, told.text[0], want);
	}
}

/* Whatever is named may stand in a file that is read later. */
static void load__names_of_later_files__are_found(void **state)
{
	const struct folder *d = *state;
	struct settings *s;

	write_file(d, "pullet.yaml",
		"report: {server: store}\n"
		"configs:\n"
		"  web:\n"
		"    from: [{server: main, path: /web.yaml}]\n"
		"    bootstrap: {server: local, path: /web.yaml}\n"
		"    rollout: {server: store, path: /web.rollout}\n"
		"    file: /run/web.yaml\n");
	make_folder(d, "conf.d");
	write_file(d, "conf.d/10.yaml", "servers: {main: {urls: ['http://m']}}\n");
	write_file(d, "conf.d/20.yaml",
		"servers: {store: {kind: etcd, urls: ['http://e']}, local: {kind: file}}\n"
		"configs: {b: {from: [{server: store, path: /b}], file: /run/b, "
		"bootstrap: {server: main, path: /b}}}\n");
	assert_int_equal(load(d, &s), 0);
	assert_int_equal(s->report.server, 1);
	assert_int_equal(s->configs[0]->layers[0].server, 0);
	assert_int_equal(s->configs[0]->bootstrap->server, 2);
	assert_int_equal(s->configs[0]->rollout->server, 1);
	assert_int_equal(s->configs[1]->layers[0].server, 1);
	assert_int_equal(s->configs[1]->bootstrap->server, 0);
	settings_free(s);
	/* and what is wrong with it is told where it is named */
	write_file(d, "conf.d/20.yaml",
		"report: {server: store}\n"
		"servers: {store: {urls: ['http://e']}}\n");
	assert_int_equal(load(d, &s), 3);
	assert_told(d, 0, "conf.d/20.yaml:1:1: report is set twice: first at %s/pullet.yaml:1:1");
	assert_non_null(strstr(told.text[1],
		"/pullet.yaml:5:25: there is no server \"local\": add it under \"servers\""));
	assert_non_null(
		strstr(told.text[2], "/pullet.yaml:1:18: report needs a server of the kind etcd"));
}

/* ---- examples ---- */

static void examples__all__are_good(void **state)
{
	static const char *const names[] = {
		"etc/pullet.minimal.yaml", "etc/pullet.typical.yaml", "etc/pullet.everything.yaml"};
	struct settings *s;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		char *text = source_read(names[i]);

		s = good(text);
		assert_true(s->config_count > 0);
		settings_free(s);
		free(text);
	}
}

/* ---- the push channel's keys ---- */

#define PUSH_KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static void push__with_keys__takes_them_over(void **state)
{
	struct settings *s =
		good("push:\n"
		     "  - endpoint: tcp://h:7377\n"
		     "    curve: {server_key: '" PUSH_KEY "', secret_key_file: /etc/k}\n"
		     "  - endpoint: tcp://h:7378\n"
		     "    curve:\n"
		     "      server_key: '" PUSH_KEY "'\n"
		     "  - {endpoint: 'tcp://h:7379', insecure: true}\n"
		     "  - {endpoint: 'tcp://127.0.0.1:7379'}\n"
		     "  - {endpoint: 'ipc:///run/x', curve: {server_key: '" PUSH_KEY
		     "'}, insecure: false}\n" WEB);

	(void)state;
	assert_int_equal(s->push_count, 5);
	assert_string_equal(s->push[0].server_key, PUSH_KEY);
	assert_string_equal(s->push[0].secret_key_file, "/etc/k");
	assert_false(s->push[0].insecure);
	assert_string_equal(s->push[1].server_key, PUSH_KEY);
	assert_null(s->push[1].secret_key_file);
	assert_true(s->push[2].insecure);
	assert_null(s->push[2].server_key);
	assert_false(s->push[3].insecure);
	assert_string_equal(s->push[4].server_key, PUSH_KEY);
	settings_free(s);
}

static void push__in_plain_text__leaves_this_host_only_when_told_to(void **state)
{
	static const char *const here[] = {"ipc:///run/x", "tcp://127.0.0.1:1", "tcp://127.9.9.9:1",
		"tcp://[::1]:1", "tcp://localhost:1"};
	static const char *const away[] = {"tcp://h:1", "tcp://10.0.0.1:1", "tcp://[fe80::1]:1",
		"tcp://127.evil.example:1", "tcp://localhost.evil.example:1"};
	char text[512], want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(here); i++) {
		snprintf(text, sizeof(text), "push: [{endpoint: '%s'}]\n" WEB, here[i]);
		settings_free(good(text));
	}
	for (size_t i = 0; i < COUNT(away); i++) {
		snprintf(text, sizeof(text), "push: [{endpoint: '%s'}]\n" WEB, away[i]);
		snprintf(want, sizeof(want),
			"t.yaml:1:19: endpoint: \"%s\" is not on this host, and plain text could "
			"be read and forged on the way: add curve: {server_key: ...} (pullet "
			"keygen makes the keys), or insecure: true",
			away[i]);
		BAD(text, want);
		snprintf(text, sizeof(text), "push: [{endpoint: '%s', insecure: true}]\n" WEB,
			away[i]);
		settings_free(good(text));
	}
}

static void push__bad_keys__names_place_and_remedy(void **state)
{
	(void)state;
	BAD("push: [{endpoint: 'tcp://h:1', curve: {server_key: abc}}]\n" WEB,
		"t.yaml:1:52: server_key is not a public key: 40 characters of Z85, as pullet "
		"keygen prints them, in single quotes");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {server_key: 12}}]\n" WEB,
		"t.yaml:1:52: server_key must be a text, but it is a number: put it in quotes");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {secret_key_file: /k}}]\n" WEB,
		"t.yaml:1:32: curve has no server_key, which it needs");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {server_key: '" PUSH_KEY
	    "', secret_key_file: k}}]\n" WEB,
		"t.yaml:1:113: secret_key_file must be an absolute path, beginning with /");
	BAD("push: [{endpoint: 'tcp://h:1', curve: true}]\n" WEB,
		"t.yaml:1:39: curve must be a mapping with the server_key, but it is true or "
		"false");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {}}]\n" WEB,
		"t.yaml:1:32: curve has no server_key, which it needs");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {server_key: '" PUSH_KEY
	    "'}, insecure: true}]\n" WEB,
		"t.yaml:1:97: insecure and curve exclude each other: remove one");
	BAD("push: [{endpoint: 'tcp://h:1', curve: {server-key: '" PUSH_KEY "'}}]\n" WEB,
		"t.yaml:1:40: unknown key \"server-key\" in curve: did you mean \"server_key\"?",
		"t.yaml:1:32: curve has no server_key, which it needs");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_temporary, remove_temporary)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__smallest__gives_the_defaults),
		cmocka_unit_test(parse__every_key__is_taken_over),
		cmocka_unit_test(parse__bad_value__names_place_and_remedy),
		cmocka_unit_test(parse__url_with_password__does_not_repeat_it),
		cmocka_unit_test(parse__many_errors__tells_all_of_them),
		cmocka_unit_test(parse__without_file__needs_a_snapshot),
		cmocka_unit_test(parse__no_config__is_refused_in_the_main_file),
		cmocka_unit_test(parse__syntax_error__is_one_error_with_its_place),
		cmocka_unit_test(parse__twice__names_both_places),
		cmocka_unit_test(parse__place_of_the_agents_own__is_refused),
		cmocka_unit_test(parse__topics__may_be_shared_but_not_with_the_heartbeat),
		cmocka_unit_test(parse__bytes__only_verbatim),
		cmocka_unit_test(parse__merge_keys__share_what_is_common),
		cmocka_unit_test(parse__at_the_bounds__is_good_and_over_them_refused),
		cmocka_unit_test(parse__more_errors_than_told__are_counted),
		cmocka_unit_test(duration__table),
		cmocka_unit_test(url__table),
		cmocka_unit_test(size__table),
		cmocka_unit_test(text_of_a_request__table),
		cmocka_unit_test(path__table),
		cmocka_unit_test(endpoint_and_address__table),
		cmocka_unit_test(name__table),
		cmocka_unit_test(mode__table),
		cmocka_unit_test(signature_demand__is_what_the_config_binds),
		cmocka_unit_test(owner__table),
		cmocka_unit_test(signal__table),
		cmocka_unit_test(key_and_pattern__table),
		cmocka_unit_test(text__of_each_kind__is_as_long_as_its_bound_at_most),
		cmocka_unit_test(public_key__table),
		cmocka_unit_test(file_name__table),
		cmocka_unit_test(distance__table),
		cmocka_unit_test(shown__long_text__is_cut_between_characters),
		WITH_FOLDER(load__missing__is_one_error),
		WITH_FOLDER(load__too_large__is_refused),
		WITH_FOLDER(load__conf_d__adds_in_the_order_of_names),
		WITH_FOLDER(load__set_in_two_files__names_both_places),
		WITH_FOLDER(load__file_of_the_configuration__is_no_place_to_publish),
		WITH_FOLDER(load__bad_file__does_not_hide_the_others),
		WITH_FOLDER(load__conf_d_is_a_file__is_an_error),
		WITH_FOLDER(load__more_parts_than_allowed__is_an_error),
		cmocka_unit_test(servers__named__are_taken_over_and_found),
		cmocka_unit_test(servers__plain_urls__share_one_per_origin),
		cmocka_unit_test(servers__bad__names_place_and_remedy),
		cmocka_unit_test(servers__secrets_over_plain_http__only_when_told),
		cmocka_unit_test(change__every_key__is_taken_over),
		cmocka_unit_test(change__short_forms__have_the_defaults),
		cmocka_unit_test(change__bad_value__names_place_and_remedy),
		cmocka_unit_test(change__history_of_one__leaves_a_probe_nothing_to_bring_back),
		cmocka_unit_test(change__key_without_effect__is_refused),
		cmocka_unit_test(verify__bind__is_the_path_where_a_key_is_shared),
		cmocka_unit_test(layers__several__are_merged_into_yaml),
		cmocka_unit_test(layers__of_a_set__are_files_of_their_own_type),
		cmocka_unit_test(layers__bad__names_place_and_remedy),
		cmocka_unit_test(layers__path_inside_a_set__is_refused),
		cmocka_unit_test(kinds__all__are_known_by_their_names),
		cmocka_unit_test(kinds__their_keys__are_taken_over),
		cmocka_unit_test(kinds__a_key_that_means_nothing__is_refused),
		cmocka_unit_test(kinds__bad_values__name_place_and_remedy),
		cmocka_unit_test(kinds__their_paths__have_a_shape),
		cmocka_unit_test(kinds__that_make_their_documents__cannot_be_verified),
		cmocka_unit_test(asides__of_a_config__are_taken_over_and_found),
		cmocka_unit_test(asides__bad__name_place_and_remedy),
		cmocka_unit_test(report__is_taken_over_and_has_defaults),
		cmocka_unit_test(report__bad__names_place_and_remedy),
		WITH_FOLDER(load__names_of_later_files__are_found),
		cmocka_unit_test(examples__all__are_good),
		cmocka_unit_test(push__with_keys__takes_them_over),
		cmocka_unit_test(push__in_plain_text__leaves_this_host_only_when_told_to),
		cmocka_unit_test(push__bad_keys__names_place_and_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

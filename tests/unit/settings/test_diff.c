/* What counts as a change of the agent's configuration, and what keeps its place in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "settings/diff.h"
#include "tests/unit/fixture/source.h"

#define ABC "abcdefghijklmnopqrstuvwxyz_"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
#define KEY2 "RWSI3+08JQA94IqbHgFCM06WjEUwyzzR9u5cubDO96FEpDpazjriwjGv"
#define CURVE "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define CURVE2 "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"

static char told[4096];

static void tell(void *arg, const char *message)
{
	(void)arg;
	snprintf(told, sizeof(told), "%s", message);
}

static struct settings *good(const char *text)
{
	struct settings *s = NULL;

	if (settings_parse("t.yaml", text, strlen(text), tell, NULL, &s))
		print_error("%s\n%s\n", text, told);
	assert_non_null(s);
	return s;
}

/* The diff of two texts. */
static struct settings_diff diff_of(const char *old, const char *new)
{
	struct settings *a = good(old), *b = good(new);
	struct settings_diff d;

	assert_int_equal(settings_diff(a, b, &d), 0);
	settings_free(a);
	settings_free(b);
	return d;
}

/* "+added ~changed -removed =unchanged" of the configs, then of the servers, then what else. */
static void assert_diff(const char *old, const char *new, const char *expected)
{
	struct settings_diff d = diff_of(old, new);
	const struct settings_match *c = &d.configs, *v = &d.servers;
	char text[256];

	snprintf(text, sizeof(text), "+%zu ~%zu -%zu =%zu, +%zu ~%zu -%zu =%zu%s%s%s%s%s%s",
		c->added, c->changed, c->removed, c->unchanged, v->added, v->changed, v->removed,
		v->unchanged, d.push ? " push" : "", d.labels ? " labels" : "",
		d.report ? " report" : "", d.listen ? " listen" : "", d.fixed ? " " : "",
		d.fixed ? d.fixed : "");
	assert_string_equal(text, expected);
	settings_diff_fini(&d);
}

#define NOTHING "+0 ~0 -0 =1, +0 ~0 -0 =1"

/* ---- what does not count ---- */

static void diff__of_other_forms__is_none(void **state)
{
	static const char *const forms[] = {
		"servers: {s: {urls: ['http://a', 'http://b'], max_in_flight: 3}}\n"
		"configs: {web: {from: [{server: s, path: /w}], file: /run/w, interval: 1m}}\n",
		"configs:\n"
		"  web: # a comment\n"
		"    interval: \"1m\"\n"
		"    file: '/run/w'\n"
		"    from:\n"
		"      - path: /w\n"
		"        server: s\n"
		"servers:\n"
		"  s:\n"
		"    max_in_flight: 3\n"
		"    urls: [http://a,\n"
		"      http://b]\n",
		"{\"configs\": {\"web\": {\"file\": \"/run/w\", \"interval\": \"1m\", \"from\": "
		"[{\"server\": \"s\", \"path\": \"/w\"}]}}, \"servers\": {\"s\": {\"urls\": "
		"[\"http://a\", \"http://b\"], \"max_in_flight\": 3}}, \"agent\": {\"log\": "
		"{\"level\": \"debug\"}}}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(forms); i++)
		for (size_t k = 0; k < COUNT(forms); k++)
			assert_diff(forms[i], forms[k], NOTHING);
}

static void diff__of_another_order__keeps_all(void **state)
{
	const char *old = "servers: {s: {urls: ['http://s']}, t: {urls: ['http://t']}}\n"
			  "agent: {labels: {a: x, b: y}}\n"
			  "push: [{endpoint: 'ipc:///a'}, {endpoint: 'ipc:///b'}]\n"
			  "configs:\n"
			  "  a: {from: [{server: s, path: /a}], file: /run/a}\n"
			  "  b: {from: [{server: t, path: /b}], file: /run/b}\n"
			  "  c: {url: 'http://u/c', file: /run/c}\n"
			  "  d: {url: 'http://v/d', file: /run/d}\n",
		   *new = "push: [{endpoint: 'ipc:///b'}, {endpoint: 'ipc:///a'}]\n"
			  "agent: {labels: {b: y, a: x}}\n"
			  "configs:\n"
			  "  d: {url: 'http://v/d', file: /run/d}\n"
			  "  b: {from: [{server: t, path: /b}], file: /run/b}\n"
			  "  c: {url: 'http://u/c', file: /run/c}\n"
			  "  a: {from: [{server: s, path: /a}], file: /run/a}\n"
			  "servers: {t: {urls: ['http://t']}, s: {urls: ['http://s']}}\n";
	struct settings_diff d = diff_of(old, new);

	(void)state;
	assert_diff(old, new, "+0 ~0 -0 =4, +0 ~0 -0 =4 report");
	assert_int_equal(d.configs.before[0], 3);
	assert_int_equal(d.configs.before[3], 0);
	assert_int_equal(d.servers.before[0], 1);
	settings_diff_fini(&d);
}

/* ---- what counts ---- */

struct row {
	const char *key, *one, *other; /* of the mapping */
	const char *beside;            /* what else stands there; NULL = the usual */
};

/* Each of: without it, with it, and with another value, is another one. */
static void try_rows(const char *head, const char *tail, const char *usual, const struct row *rows,
	size_t count, const char *same, const char *changed)
{
	for (size_t i = 0; i < count; i++) {
		const char *beside = rows[i].beside ? rows[i].beside : usual;
		char one[1024], other[1024], none[1024];

		snprintf(one, sizeof(one), "%s%s%s%s%s", head, rows[i].one, *beside ? ", " : "",
			beside, tail);
		snprintf(other, sizeof(other), "%s%s%s%s%s", head, rows[i].other,
			*beside ? ", " : "", beside, tail);
		snprintf(none, sizeof(none), "%s%s%s", head, beside, tail);
		assert_diff(one, one, same);
		assert_diff(one, other, changed);
		assert_diff(other, one, changed);
		if (!rows[i].beside)
			assert_diff(none, one, changed);
	}
}

static const struct row config_rows[] = {
	{"url", "url: http://h/a", "url: http://h/b", "file: /run/a"},
	{"from", "from: [{server: s, path: /a}]", "from: [{server: s, path: /b}]", "file: /run/a"},
	{"from", "from: [{server: s, path: /a}]", "from: [{server: s, path: /a, optional: false}]",
		"file: /run/a"},
	{"bootstrap", "bootstrap: {server: s, path: /a}", "bootstrap: {server: s, path: /b}", NULL},
	{"rollout", "rollout: {server: s, path: /a}", "rollout: {server: s, path: /b}", NULL},
	{"type", "type: yaml", "type: json", NULL},
	{"interval", "interval: 1s", "interval: 2s", NULL},
	{"jitter", "jitter: 1%", "jitter: 2%", NULL},
	{"timeout", "timeout: 1s", "timeout: 2s", NULL},
	{"backoff_bound", "backoff_bound: 2", "backoff_bound: 3", NULL},
	{"topic", "topic: a", "topic: b", NULL},
	{"push_spread", "push_spread: 1s", "push_spread: 2s", NULL},
	{"push_min_interval", "push_min_interval: 1s", "push_min_interval: 2s", NULL},
	{"verify", "verify: {public_key: " KEY "}", "verify: {public_key: " KEY2 "}", NULL},
	{"guard", "guard: {max_shrink: 10%}", "guard: {max_shrink: 20%}", NULL},
	{"schema", "schema: /none/a", "schema: /none/b", NULL},
	{"schema_dir", "schema_dir: /none/a", "schema_dir: /none/b",
		"schema: /none/s, url: http://h/w, file: /run/w"},
	{"file", "file: /run/a", "file: /run/b", "url: http://h/w"},
	{"dir", "dir: /run/a", "dir: /run/b", "from: [{server: s, path: /a, as: a}]"},
	{"snapshot", "snapshot: true", "snapshot: false", NULL},
	{"format", "format: json", "format: {run: [/f]}", NULL},
	{"mode", "mode: 0600", "mode: 0640", NULL},
	{"owner", "owner: '1'", "owner: '2:3'", NULL},
	{"durability", "durability: strict", "durability: normal", NULL},
	{"check", "check: [/c, '{path}']", "check: [/d, '{path}']", NULL},
	{"reload", "reload: {run: [/r]}", "reload: {run: [/r], splay: 1s}", NULL},
	{"probe", "probe: {run: [/p]}", "probe: {url: 'http://p'}", NULL},
	{"history", "history: 4", "history: 5", NULL},
	{"mask", "mask: [a]", "mask: [b]", NULL},
	{"drift", "drift: heal", "drift: report", NULL},
};

static void diff__of_each_key_of_a_config__is_a_change(void **state)
{
	(void)state;
	try_rows("servers: {s: {urls: ['http://s']}}\nconfigs: {web: {",
		"}, "
		"x: {url: 'http://h/x', file: /run/x}}\n",
		"url: http://h/w, file: /run/w", config_rows, COUNT(config_rows),
		"+0 ~0 -0 =2, +0 ~0 -0 =2", "+0 ~1 -0 =1, +0 ~0 -0 =2");
}

/* The example without the line at `at` and what is indented below it; NULL = it is invalid then. */
static struct settings *parse_without(const char *example, size_t at)
{
	char *text = strdup(example), *line = text + at, *end;
	size_t indent = strspn(line, " ");
	struct settings *s = NULL;

	assert_non_null(text);
	do {
		end = line + strcspn(line, "\n");
		memset(line, ' ', (size_t)(end - line));
		line = end + (*end == '\n');
	} while (*line && strspn(line, " ") > indent);
	settings_parse("t.yaml", text, strlen(text), tell, NULL, &s);
	free(text);
	return s;
}

/* The full example has every key (test_settings.c): whatever a key is, taking it away shows. */
static void diff__without_any_key_of_the_full_example__is_a_change(void **state)
{
	char *example = source_read("etc/pullet.everything.yaml");
	size_t tried = 0, after_agent = (size_t)(strstr(example, "\npush:") - example);
	struct settings_diff d;

	(void)state;
	for (char *line = example + after_agent + 1; *line; line += strcspn(line, "\n") + 1) {
		const char *key = line + strspn(line, " -");
		struct settings *old, *new;

		if (key == line || *key == '#' || key[strspn(key, ABC)] != ':')
			continue;
		new = parse_without(example, (size_t)(line - example));
		if (!new)
			continue;
		old = good(example);
		assert_int_equal(settings_diff(old, new, &d), 0);
		if (!(d.push || d.report || d.configs.changed || d.configs.removed ||
			    d.servers.changed || d.servers.removed))
			fail_msg("no change: %.40s", line);
		settings_diff_fini(&d);
		settings_free(old);
		settings_free(new);
		tried++;
	}
	assert_true(tried > 40);
	free(example);
}

/* What a signature must say follows from the others that trust its key. */
static void diff__of_a_key_that_comes_to_be_shared__is_a_change_of_those_that_share_it(void **state)
{
#define SIGNED(name, more)                                                                         \
	name ": {url: 'http://h/" name "', file: /run/" name ", verify: {public_key: " KEY more "}}"
	(void)state;
	assert_diff("configs: {" SIGNED("a", "") "}\n",
		"configs: {" SIGNED("a", "") ", " SIGNED("b", "") "}\n",
		"+1 ~1 -0 =0, +0 ~0 -0 =1 report");
	assert_diff("configs: {" SIGNED("a", ", bind: path") "}\n",
		"configs: {" SIGNED("a", ", bind: path") ", " SIGNED("b", "") "}\n",
		"+1 ~0 -0 =1, +0 ~0 -0 =1 report");
}

static const struct row server_rows[] = {
	{"kind", "kind: etcd", "kind: consul", NULL},
	{"urls", "urls: ['http://a']", "urls: ['http://b']", ""},
	{"urls", "urls: ['http://a', 'http://b']", "urls: ['http://b', 'http://a']", ""},
	{"tls", "tls: {ca: /a}", "tls: {ca: /a, min_version: '1.3'}", "urls: ['https://s']"},
	{"auth", "auth: {headers: {A: b, C: d}}", "auth: {headers: {A: b}}", NULL},
	{"auth", "auth: {headers: {A: b}}", "auth: {headers: {A: c}}", NULL},
	{"auth", "auth: {headers: {A: b}}", "auth: {headers: {B: b}}", NULL},
	{"insecure", "insecure: true", "insecure: false", NULL},
	{"watch", "watch: true", "watch: false", "kind: consul, urls: ['http://s']"},
	{"region", "region: a", "region: b", "kind: s3, urls: ['http://s']"},
	{"datacenter", "datacenter: a", "datacenter: b", "kind: consul, urls: ['http://s']"},
	{"namespace", "namespace: a", "namespace: b", "kind: nacos, urls: ['http://s']"},
	{"api", "api: 1", "api: 3", "kind: nacos, urls: ['http://s']"},
	{"connect_timeout", "connect_timeout: 1s", "connect_timeout: 2s", NULL},
	{"max_in_flight", "max_in_flight: 1", "max_in_flight: 2", NULL},
	{"max_size", "max_size: 1MiB", "max_size: 2MiB", NULL},
};

/* What uses it is changed with it; what does not is not. */
static void diff__of_each_key_of_a_server__changes_what_uses_it(void **state)
{
	(void)state;
	try_rows("servers: {s: {",
		"}, t: {urls: ['http://t']}}\n"
		"configs:\n"
		"  a: {from: [{server: t, path: /g/a}], file: /run/a}\n"
		"  b: {from: [{server: t, path: /g/a}, {server: s, path: /g/a}], file: /run/b}\n"
		"  c: {from: [{server: t, path: /g/a}], file: /run/c, "
		"bootstrap: {server: s, path: /g/a}}\n"
		"  d: {from: [{server: t, path: /g/a}], file: /run/d, "
		"rollout: {server: s, path: /g/a}}\n",
		"urls: ['http://s']", server_rows, COUNT(server_rows), "+0 ~0 -0 =4, +0 ~0 -0 =2",
		"+0 ~3 -0 =1, +0 ~1 -0 =1");
}

static void diff__of_what_comes_and_goes__is_told_apart(void **state)
{
	(void)state;
	assert_diff("configs: {a: {url: 'http://h/a', file: /run/a}, b: {url: 'http://h/b', file: "
		    "/run/b}}\n",
		"configs: {c: {url: 'http://h/a', file: /run/a}, b: {url: 'http://i/b', file: "
		"/run/b}}\n",
		"+1 ~1 -1 =0, +1 ~0 -0 =1 report");
}

#define AGENT(keys) "agent: {" keys "}\nconfigs: {a: {url: 'http://h/a', file: /run/a}}\n"
#define ROOT(line) line "\nconfigs: {a: {url: 'http://h/a', file: /run/a}}\n"
#define PUSH(keys) ROOT("push: [{endpoint: 'tcp://127.0.0.1:1'" keys "}]")
#define REPORT(keys)                                                                               \
	ROOT("servers: {e: {kind: etcd, urls: ['http://e'], max_in_flight: 2}}\nreport: {server: " \
	     "e" keys "}")

static void diff__of_the_agents_own__is_told(void **state)
{
	(void)state;
	assert_diff(AGENT(""), AGENT("listen: '127.0.0.1:1'"), NOTHING " listen");
	assert_diff(
		AGENT("listen: '127.0.0.1:1'"), AGENT("listen: '127.0.0.1:2'"), NOTHING " listen");
	assert_diff(AGENT("labels: {a: x}"), AGENT("labels: {a: y}"), NOTHING " labels report");
	assert_diff(AGENT("labels: {a: x}"), AGENT(""), NOTHING " labels report");
	assert_diff(AGENT("labels: {a: x}"), AGENT("labels: {b: x}"), NOTHING " labels report");
	assert_diff(AGENT("state_dir: /a"), AGENT("state_dir: /b"), NOTHING " state_dir");
	assert_diff(AGENT("runtime_dir: /a"), AGENT("runtime_dir: /b"), NOTHING " runtime_dir");
	assert_diff(AGENT("log: {level: err}"), AGENT("log: {format: json}"), NOTHING);
	assert_diff(PUSH(""), AGENT(""), NOTHING " push");
	assert_diff(PUSH(""), PUSH(", heartbeat: 1s"), NOTHING " push");
	assert_diff(PUSH(", curve: {server_key: '" CURVE "'}"),
		PUSH(", curve: {server_key: '" CURVE2 "'}"), NOTHING " push");
	assert_diff(REPORT(""), REPORT(""), "+0 ~0 -0 =1, +0 ~0 -0 =2");
	assert_diff(REPORT(""), REPORT(", ttl: 9s"), "+0 ~0 -0 =1, +0 ~0 -0 =2 report");
	assert_diff(REPORT(", prefix: /a/"), REPORT(", prefix: /b/"),
		"+0 ~0 -0 =1, +0 ~0 -0 =2 report");
	assert_diff(
		REPORT(", host: a"), REPORT(", host: b"), "+0 ~0 -0 =1, +0 ~0 -0 =2 labels report");
	assert_diff(REPORT(""),
		ROOT("servers: {e: {kind: etcd, urls: ['http://e']}}\nreport: {server: e}"),
		"+0 ~0 -0 =1, +0 ~1 -0 =1 report");
}

/* ---- what is read beside the configuration ---- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* The file is named between the two. */
static void assert_content_counts(const char *head, const char *tail, bool push)
{
	char path[] = "/tmp/pullet-diff-XXXXXX", text[1024];
	struct settings *s[4];
	struct settings_diff d;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(text, sizeof(text), "%s%s%s", head, path, tail);
	write_file(path, "one");
	s[0] = good(text);
	s[1] = good(text);
	write_file(path, "other");
	s[2] = good(text);
	unlink(path);
	s[3] = good(text);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(settings_diff(s[i], s[i + 1], &d), 0);
		assert_int_equal(i ? 1 : 0, push ? d.push : d.configs.changed);
		settings_diff_fini(&d);
	}
	for (size_t i = 0; i < 4; i++)
		settings_free(s[i]);
}

static void diff__of_a_schemas_text__is_a_change(void **state)
{
	(void)state;
	assert_content_counts(
		"configs: {a: {url: 'http://h/a', file: /run/a, schema: ", "}}\n", false);
}

static void diff__of_a_templates_text__is_a_change(void **state)
{
	char path[] = "/tmp/pullet-diff-XXXXXX", text[1024];
	static const char *const contents[] = {"a {{n}}", "a {{n}}", "b {{n}}"};
	struct settings *s[3];
	struct settings_diff d;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(text, sizeof(text),
		"configs: {a: {url: 'http://h/a.yaml', file: /run/a, format: {template: "
		"%s}}}\n",
		path);
	for (size_t i = 0; i < 3; i++) {
		write_file(path, contents[i]);
		s[i] = good(text);
	}
	unlink(path);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(settings_diff(s[i], s[i + 1], &d), 0);
		assert_int_equal(d.configs.changed, i);
		settings_diff_fini(&d);
	}
	for (size_t i = 0; i < 3; i++)
		settings_free(s[i]);
}

static void diff__of_a_schema_directorys_texts__is_a_change(void **state)
{
	char dir[] = "/tmp/pullet-diff-XXXXXX", text[1024], path[3][100];
	struct settings *s[7];
	struct settings_diff d;
	static const bool changed[] = {false, true, true, false, true, true};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path[0], 100, "%s/a.json", dir);
	snprintf(path[1], 100, "%s/b.yaml", dir);
	snprintf(path[2], 100, "%s/README", dir);
	snprintf(text, sizeof(text),
		"configs: {a: {url: 'http://h/a', file: /run/a, schema: /none/s, schema_dir: "
		"%s}}\n",
		dir);
	s[0] = good(text);
	s[1] = good(text);
	write_file(path[0], "one");
	s[2] = good(text);
	write_file(path[0], "other");
	s[3] = good(text);
	write_file(path[2], "no schema");
	s[4] = good(text);
	assert_int_equal(rename(path[0], path[1]), 0);
	s[5] = good(text);
	unlink(path[1]);
	unlink(path[2]);
	rmdir(dir);
	s[6] = good(text);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(settings_diff(s[i], s[i + 1], &d), 0);
		assert_int_equal(d.configs.changed, changed[i]);
		settings_diff_fini(&d);
	}
	for (size_t i = 0; i < 7; i++)
		settings_free(s[i]);
}

static void diff__of_the_push_keys_text__is_a_change(void **state)
{
	(void)state;
	assert_content_counts("push: [{endpoint: 'tcp://h:1', curve: {server_key: '" CURVE
			      "', secret_key_file: ",
		"}}]\n"
		"configs: {a: {url: 'http://h/a', file: /run/a}}\n",
		true);
	assert_content_counts(
		"push: [{endpoint: 'tcp://127.0.0.1:1'}, {endpoint: 'tcp://h:2', curve: "
		"{server_key: '" CURVE "', secret_key_file: ",
		"}}]\n"
		"configs: {a: {url: 'http://h/a', file: /run/a}}\n",
		true);
}

/* ---- what keeps its place ---- */

static void adopt__of_what_is_the_same__keeps_its_address(void **state)
{
	struct settings *old = good("agent: {state_dir: /s}\n"
				    "servers: {s: {urls: ['http://s']}, t: {urls: ['http://t']}}\n"
				    "configs:\n"
				    "  a: {from: [{server: s, path: /a}, {server: t, path: /a}], "
				    "file: /run/a, bootstrap: {server: t, path: /b}, "
				    "rollout: {server: s, path: /r}}\n"
				    "  b: {from: [{server: s, path: /b}], file: /run/b}\n"),
			*new = good("agent: {state_dir: /s}\n"
				    "servers: {r: {urls: ['http://r']}, t: {urls: ['http://t']}, "
				    "s: {urls: ['http://s']}}\n"
				    "configs:\n"
				    "  b: {from: [{server: r, path: /b}], file: /run/b}\n"
				    "  a: {from: [{server: s, path: /a}, {server: t, path: /a}], "
				    "file: /run/a, bootstrap: {server: t, path: /b}, "
				    "rollout: {server: s, path: /r}}\n");
	const struct settings_config *a = old->configs[0], *b = old->configs[1];
	const struct settings_server *s = old->servers[0], *t = old->servers[1];
	const char *state_dir = old->state_dir;
	struct settings_diff d;

	(void)state;
	assert_int_equal(settings_diff(old, new, &d), 0);
	settings_adopt(old, new, &d);
	assert_ptr_equal(new->configs[1], a);
	assert_ptr_equal(old->configs[1], b);
	assert_string_equal(new->configs[0]->name, "b");
	assert_ptr_equal(new->servers[2], s);
	assert_ptr_equal(new->servers[1], t);
	assert_ptr_equal(new->state_dir, state_dir);
	assert_int_equal(a->layers[0].server, 2);
	assert_int_equal(a->layers[1].server, 1);
	assert_int_equal(a->bootstrap->server, 1);
	assert_int_equal(a->rollout->server, 2);
	assert_int_equal(new->configs[0]->layers[0].server, 0);
	assert_true(d.configs.kept[0] && !d.configs.kept[1]);
	assert_true(d.configs.stays[0] && d.configs.stays[1]);
	settings_free(old);
	assert_string_equal(a->layers[1].path, "/a");
	settings_free(new);
	settings_diff_fini(&d);
}

/* The first settings of an agent come after none. */
static void diff__of_nothing__adds_everything(void **state)
{
	struct settings none = {.state_dir = NULL}, *new = good(PUSH(""));
	struct settings_diff d;

	(void)state;
	assert_int_equal(settings_diff(&none, new, &d), 0);
	assert_int_equal(d.configs.added, 1);
	assert_int_equal(d.servers.added, 1);
	settings_adopt(&none, new, &d);
	assert_string_equal(new->configs[0]->name, "a");
	settings_free(new);
	settings_diff_fini(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(diff__of_other_forms__is_none),
		cmocka_unit_test(diff__of_another_order__keeps_all),
		cmocka_unit_test(diff__of_each_key_of_a_config__is_a_change),
		cmocka_unit_test(diff__without_any_key_of_the_full_example__is_a_change),
		cmocka_unit_test(diff__of_each_key_of_a_server__changes_what_uses_it),
		cmocka_unit_test(diff__of_what_comes_and_goes__is_told_apart),
		cmocka_unit_test(diff__of_the_agents_own__is_told),
		cmocka_unit_test(diff__of_a_schemas_text__is_a_change),
		cmocka_unit_test(diff__of_a_templates_text__is_a_change),
		cmocka_unit_test(diff__of_a_schema_directorys_texts__is_a_change),
		cmocka_unit_test(diff__of_the_push_keys_text__is_a_change),
		cmocka_unit_test(adopt__of_what_is_the_same__keeps_its_address),
		cmocka_unit_test(
			diff__of_a_key_that_comes_to_be_shared__is_a_change_of_those_that_share_it),
		cmocka_unit_test(diff__of_nothing__adds_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * pullet.yaml(5) against what is read: each key stands at its own place, and has the bounds and the
 * default that it has there.
 *
 * What would surprise: the list of keys is taken from the agent's own message about an unknown key,
 * and the bounds from its message about a value out of them, so that a key or a bound which the
 * page has not fails here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"
#include "settings/value.h"
#include "tests/unit/fixture/source.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_DEPTH 6

static char said[4096]; /* the first message */
static char *page;

static void tell(void *arg, const char *message)
{
	(void)arg;
	if (!*said)
		snprintf(said, sizeof(said), "%s", message);
}

static struct settings *parse(const char *text)
{
	struct settings *s;

	*said = '\0';
	if (settings_parse("t.yaml", text, strlen(text), tell, NULL, &s))
		return NULL;
	return s;
}

static int read_page(void **state)
{
	(void)state;
	page = source_read("agent/pullet.yaml.5");
	return 0;
}

static int free_page(void **state)
{
	(void)state;
	free(page);
	return 0;
}

/* ---- the page ---- */

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : "";
}

static bool begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* A place in a section: what items of nested lists a line is below. */
struct walk {
	const char *line;
	char names[MAX_DEPTH][64];
	size_t depth;
};

/* To the next line of the section; false at its end. */
static bool step(struct walk *w)
{
	w->line = next_line(w->line);
	if (!*w->line || begins(w->line, ".Sh"))
		return false;
	if (begins(w->line, ".Bl")) {
		assert_true(++w->depth < MAX_DEPTH);
		*w->names[w->depth] = '\0';
	} else if (begins(w->line, ".El")) {
		w->depth--;
	} else if (begins(w->line, ".It Cm ")) {
		sscanf(w->line + strlen(".It Cm "), "%63[^ \n]", w->names[w->depth]);
	}
	return true;
}

static struct walk walk_section(const char *section)
{
	struct walk w = {.depth = 0};
	char heading[80];

	snprintf(heading, sizeof(heading), ".Sh %s\n", section);
	w.line = strstr(page, heading);
	if (!w.line)
		fail_msg("the page has no section %s", section);
	return w;
}

/* The items that the walk is below, as "a.b"; before the first of a list, those of the list around
 * it. */
static bool is_below(const struct walk *w, const char *path)
{
	char place[MAX_DEPTH * 65] = "";
	size_t len = 0;

	for (size_t i = 1; i <= w->depth; i++)
		if (*w->names[i])
			len += (size_t)snprintf(place + len, sizeof(place) - len, "%s%s",
				len ? "." : "", w->names[i]);
	return strcmp(place, path) == 0;
}

/* A key is an item of the list below a mapping, or named in the text of the mapping that has no
 * list. */
static bool has_key(const char *section, const char *mapping, const char *key)
{
	struct walk w = walk_section(section);
	char item[160], mark[80];

	snprintf(item, sizeof(item), "%s%s%s", mapping, *mapping ? "." : "", key);
	snprintf(mark, sizeof(mark), ".Cm %s\n", key);
	while (step(&w))
		if (begins(w.line, ".It Cm ")
				? is_below(&w, item)
				: *mapping && is_below(&w, mapping) && begins(w.line, mark))
			return true;
	return false;
}

/* ---- each key at its place ---- */

static const struct {
	const char *text, *section, *mapping;
} mappings[] = {
	{"zzzzzz: 1\n", "TOP LEVEL", ""},
	{"agent: {zzzzzz: 1}\n", "AGENT", ""},
	{"agent: {log: {zzzzzz: 1}}\n", "AGENT", "log"},
	{"push: [{zzzzzz: 1}]\n", "PUSH", ""},
	{"push: [{curve: {zzzzzz: 1}}]\n", "PUSH", "curve"},
	{"servers: {a: {zzzzzz: 1}}\n", "SERVERS", ""},
	{"servers: {a: {tls: {zzzzzz: 1}}}\n", "SERVERS", "tls"},
	{"servers: {a: {auth: {zzzzzz: 1}}}\n", "SERVERS", "auth"},
	{"servers: {a: {auth: {basic: {zzzzzz: 1}}}}\n", "SERVERS", "auth.basic"},
	{"servers: {a: {kind: s3, auth: {access_key: {zzzzzz: 1}}}}\n", "SERVERS",
		"auth.access_key"},
	{"configs: {web: {zzzzzz: 1}}\n", "CONFIGS", ""},
	{"configs: {web: {from: [{zzzzzz: 1}]}}\n", "CONFIGS", "from"},
	{"configs: {web: {bootstrap: {zzzzzz: 1}}}\n", "CONFIGS", "bootstrap"},
	{"configs: {web: {rollout: {zzzzzz: 1}}}\n", "CONFIGS", "rollout"},
	{"configs: {web: {verify: {zzzzzz: 1}}}\n", "CONFIGS", "verify"},
	{"configs: {web: {guard: {zzzzzz: 1}}}\n", "CONFIGS", "guard"},
	{"configs: {web: {format: {zzzzzz: 1}}}\n", "CONFIGS", "format"},
	{"configs: {web: {check: {zzzzzz: 1}}}\n", "CONFIGS", "check"},
	{"configs: {web: {reload: {zzzzzz: 1}}}\n", "CONFIGS", "reload"},
	{"configs: {web: {reload: {on: [{zzzzzz: 1}]}}}\n", "CONFIGS", "reload.on"},
	{"configs: {web: {probe: {zzzzzz: 1}}}\n", "CONFIGS", "probe"},
	{"report: {zzzzzz: 1}\n", "REPORT", ""},
};

static void page__each_mapping__has_its_keys_where_they_belong(void **state)
{
	char key[64];

	(void)state;
	for (size_t i = 0; i < COUNT(mappings); i++) {
		const char *p;
		size_t n = 0;

		assert_null(parse(mappings[i].text));
		p = strstr(said, "the keys there are ");
		assert_non_null(p);
		for (p += strlen("the keys there are "); *p; p += strspn(p, ", "), n++) {
			size_t len = strcspn(p, ",");

			snprintf(key, sizeof(key), "%.*s", (int)len, p);
			p += len;
			if (!has_key(mappings[i].section, mappings[i].mapping, key))
				fail_msg("the page lacks %s at %s %s", key, mappings[i].section,
					mappings[i].mapping);
		}
		assert_true(n >= 2);
	}
}

/* ---- bounds and defaults ---- */

#define OF_CONFIG "configs: {web: {url: 'http://h/w', file: /run/w, %s}}\n"
#define OF_REPORT                                                                                  \
	"report: {server: e, %s}\nservers: {e: {kind: etcd, urls: ['http://e']}}\nconfigs: {web: " \
	"{url: 'http://h/w', file: /run/w}}\n"
#define OF_PUSH                                                                                    \
	"push: [{endpoint: 'ipc:///run/p', %s}]\nconfigs: {web: {url: 'http://h/w', file: "        \
	"/run/w}}\n"
#define OF_SERVER                                                                                  \
	"servers: {s: {urls: ['http://e'], %s}}\nconfigs: {web: {from: [{server: s, path: /w}], "  \
	"file: /run/w}}\n"

static uint64_t of_interval(const struct settings *s)
{
	return s->configs[0]->interval_ms;
}
static uint64_t of_jitter(const struct settings *s)
{
	return s->configs[0]->jitter;
}
static uint64_t of_timeout(const struct settings *s)
{
	return s->configs[0]->timeout_ms;
}
static uint64_t of_backoff(const struct settings *s)
{
	return s->configs[0]->backoff_bound;
}
static uint64_t of_spread(const struct settings *s)
{
	return s->configs[0]->push_spread_ms;
}
static uint64_t of_push_min(const struct settings *s)
{
	return s->configs[0]->push_min_ms;
}
static uint64_t of_shrink(const struct settings *s)
{
	return s->configs[0]->guard.max_shrink;
}
static uint64_t of_format(const struct settings *s)
{
	return s->configs[0]->format_run.timeout_ms;
}
static uint64_t of_check(const struct settings *s)
{
	return s->configs[0]->check.timeout_ms;
}
static uint64_t of_debounce(const struct settings *s)
{
	return s->configs[0]->reload.debounce_ms;
}
static uint64_t of_splay(const struct settings *s)
{
	return s->configs[0]->reload.splay_ms;
}
static uint64_t of_reload(const struct settings *s)
{
	return s->configs[0]->reload.timeout_ms;
}
static uint64_t of_for(const struct settings *s)
{
	return s->configs[0]->probe.for_ms;
}
static uint64_t of_every(const struct settings *s)
{
	return s->configs[0]->probe.every_ms;
}
static uint64_t of_probe(const struct settings *s)
{
	return s->configs[0]->probe.timeout_ms;
}
static uint64_t of_failures(const struct settings *s)
{
	return s->configs[0]->probe.failures;
}
static uint64_t of_heartbeat(const struct settings *s)
{
	return s->push[0].heartbeat_ms;
}
static uint64_t of_connect(const struct settings *s)
{
	return s->servers[0]->connect_timeout_ms;
}
static uint64_t of_in_flight(const struct settings *s)
{
	return s->servers[0]->max_in_flight;
}
static uint64_t of_ttl(const struct settings *s)
{
	return s->report.ttl_ms;
}

/* Each "A to B, default C" of the page, in its order. */
static const struct {
	const char *section, *path; /* the last name of it is the key */
	const char *text;           /* with a %s for what follows */
	const char *around; /* the mapping that has the key, but its end; NULL = the text itself */
	const char *beyond; /* a value that is too large */
	uint64_t (*get)(const struct settings *s);
} ranges[] = {
	{"PUSH", "heartbeat", OF_PUSH, NULL, "1000h", of_heartbeat},
	{"SERVERS", "connect_timeout", OF_SERVER, NULL, "1000h", of_connect},
	{"SERVERS", "max_in_flight", OF_SERVER, NULL, "1000001", of_in_flight},
	{"CONFIGS", "interval", OF_CONFIG, NULL, "1000h", of_interval},
	{"CONFIGS", "jitter", OF_CONFIG, NULL, "101%", of_jitter},
	{"CONFIGS", "timeout", OF_CONFIG, NULL, "1000h", of_timeout},
	{"CONFIGS", "backoff_bound", OF_CONFIG, NULL, "1000001", of_backoff},
	{"CONFIGS", "push_spread", OF_CONFIG, NULL, "1000h", of_spread},
	{"CONFIGS", "push_min_interval", OF_CONFIG, NULL, "1000h", of_push_min},
	{"CONFIGS", "guard.max_shrink", OF_CONFIG, "guard: {allow_empty: true", "101%", of_shrink},
	{"CONFIGS", "format.timeout", OF_CONFIG, "format: {run: [/bin/true, '{path}']", "1000h",
		of_format},
	{"CONFIGS", "check.timeout", OF_CONFIG, "check: {run: [/bin/true, '{path}']", "1000h",
		of_check},
	{"CONFIGS", "reload.debounce", OF_CONFIG, "reload: {run: [/bin/true], debounce_max: 1h",
		"1000h", of_debounce},
	{"CONFIGS", "reload.splay", OF_CONFIG, "reload: {run: [/bin/true]", "1000h", of_splay},
	{"CONFIGS", "reload.timeout", OF_CONFIG, "reload: {run: [/bin/true]", "1000h", of_reload},
	{"CONFIGS", "probe.for", OF_CONFIG, "probe: {run: [/bin/true], every: 100ms, failures: 1",
		"1000h", of_for},
	{"CONFIGS", "probe.every", OF_CONFIG, "probe: {run: [/bin/true], for: 1h, failures: 1",
		"1000h", of_every},
	{"CONFIGS", "probe.timeout", OF_CONFIG, "probe: {run: [/bin/true]", "1000h", of_probe},
	{"CONFIGS", "probe.failures", OF_CONFIG, "probe: {run: [/bin/true], for: 1h, every: 100ms",
		"1000001", of_failures},
	{"REPORT", "ttl", OF_REPORT, NULL, "1000h", of_ttl},
};

/* The settings with a value for the key; NULL = without the key. */
static struct settings *parse_with(size_t range, const char *value)
{
	const char *dot = strrchr(ranges[range].path, '.'), *around = ranges[range].around;
	const char *hole = strstr(ranges[range].text, "%s");
	char text[1024];
	int len;

	len = snprintf(text, sizeof(text), "%.*s%s", (int)(hole - ranges[range].text),
		ranges[range].text, around ? around : "");
	if (value)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s: %s",
			around ? ", " : "", dot ? dot + 1 : ranges[range].path, value);
	snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", around ? "}" : "",
		hole + strlen("%s"));
	return parse(text);
}

/* The number that is read for a value, or without one, as the page would write it. */
static const char *read_back(size_t range, const char *value, char room[32])
{
	struct settings *s = parse_with(range, value);
	const char *beyond = ranges[range].beyond;
	uint64_t n;

	if (!s)
		fail_msg("%s %s: %s: %s", ranges[range].section, ranges[range].path,
			value ? value : "-", said);
	n = ranges[range].get(s);
	settings_free(s);
	if (strchr(beyond, 'h'))
		return n ? settings_duration_text(n, room) : "0s";
	snprintf(room, 32, "%u%s", (unsigned)n, strchr(beyond, '%') ? "%" : "");
	return room;
}

/* "A to B, default C" of the line; false if it is none. */
static bool scan_range(const char *line, char bounds[64], char normal[32])
{
	char min[24], max[24];

	if (sscanf(line, "%23s to %23[^, \n], default %31[^.:\n ]", min, max, normal) != 3)
		return false;
	snprintf(bounds, 64, "%s to %s", min, max);
	return true;
}

static void assert_range(size_t range, const char *bounds, const char *normal)
{
	char room[32], min[24], max[24], told[64];

	assert_int_equal(sscanf(bounds, "%23s to %23s", min, max), 2);
	assert_string_equal(read_back(range, NULL, room), normal);
	assert_string_equal(read_back(range, min, room), min);
	assert_string_equal(read_back(range, max, room), max);
	assert_null(parse_with(range, ranges[range].beyond));
	snprintf(told, sizeof(told), "between %s and %s", strcmp(min, "0s") ? min : "0ms", max);
	if (!strstr(said, told))
		fail_msg("%s %s: the page says %s, the program: %s", ranges[range].section,
			ranges[range].path, bounds, said);
}

static void page__each_range__is_what_is_read(void **state)
{
	static const char *const sections[] = {
		"TOP LEVEL", "AGENT", "PUSH", "SERVERS", "CONFIGS", "REPORT"};
	char bounds[64], normal[32];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(sections); i++)
		for (struct walk w = walk_section(sections[i]); step(&w);) {
			if (!scan_range(w.line, bounds, normal))
				continue;
			assert_true(n < COUNT(ranges));
			if (strcmp(ranges[n].section, sections[i]) || !is_below(&w, ranges[n].path))
				fail_msg("a range of the page is not tested: %s before %s: %.40s",
					sections[i], ranges[n].path, w.line);
			assert_range(n++, bounds, normal);
		}
	assert_int_equal(n, COUNT(ranges));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page__each_mapping__has_its_keys_where_they_belong),
		cmocka_unit_test(page__each_range__is_what_is_read),
	};

	return cmocka_run_group_tests(tests, read_page, free_page);
}

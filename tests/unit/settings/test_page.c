/*
 * pullet.yaml(5) and etc/pullet.everything.yaml against what is read: each key stands at its own
 * place, and has the bounds and the default that it has there.
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

#define PAGE "agent/pullet.yaml.5"
#define EXAMPLE "etc/pullet.everything.yaml"

static char said[16384]; /* all messages, a line each */
static char *page, *example;

static void tell(void *arg, const char *message)
{
	size_t len = strlen(said);

	(void)arg;
	snprintf(said + len, sizeof(said) - len, "%s\n", message);
}

static struct settings *parse(const char *text)
{
	struct settings *s;

	*said = '\0';
	if (settings_parse("t.yaml", text, strlen(text), tell, NULL, &s))
		return NULL;
	return s;
}

static int read_both(void **state)
{
	(void)state;
	page = source_read(PAGE);
	example = source_read(EXAMPLE);
	return 0;
}

static int free_both(void **state)
{
	(void)state;
	free(page);
	free(example);
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

/* Calls f for each key of the mapping, as the message about an unknown one lists them. */
static void each_key(size_t mapping, void (*f)(size_t mapping, const char *key))
{
	char names[4096], *rest = names, *key;
	const char *p;
	size_t n = 0;

	assert_null(parse(mappings[mapping].text));
	p = strstr(said, "the keys there are ");
	assert_non_null(p);
	p += strlen("the keys there are ");
	snprintf(names, sizeof(names), "%.*s", (int)strcspn(p, "\n"), p);
	for (; (key = strtok_r(rest, ", ", &rest)); n++)
		f(mapping, key);
	assert_true(n >= 2);
}

static void expect_in_page(size_t mapping, const char *key)
{
	const char *section = mappings[mapping].section, *within = mappings[mapping].mapping;

	if (!has_key(section, within, key))
		fail_msg(PAGE " lacks \".It Cm %s\" in its section %s%s%s: write the key's "
			      "paragraph there",
			key, section, *within ? ", in the list of " : "", within);
}

static void page__each_mapping__has_its_keys_where_they_belong(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mappings); i++)
		each_key(i, expect_in_page);
}

/* ---- the full example ---- */

/* The names that a line of the example is below, each with its column. */
struct outline {
	char names[MAX_DEPTH + 1][64];
	int columns[MAX_DEPTH + 1];
	size_t depth;
};

/* "a.b" of the place; of the names of servers and configs "*". */
static void name_place(const struct outline *o, char place[256])
{
	size_t len = 0;

	*place = '\0';
	for (size_t i = 0; i < o->depth; i++) {
		bool any = i == 1 && (!strcmp(place, "servers") || !strcmp(place, "configs"));

		len += (size_t)snprintf(
			place + len, 256 - len, "%s%s", len ? "." : "", any ? "*" : o->names[i]);
	}
}

/* True if the line has the key at the place; also in { }, or commented out. Leaves the line's first
 * key in the outline. */
static bool scan_line(struct outline *o, const char *line, const char *place, const char *key)
{
	int column = (int)strspn(line, " -");
	bool comment = strchr("#\n", line[column]), found = false;
	char here[256], last[64] = "", first[64] = "";
	struct outline in;

	while (!comment && o->depth && o->columns[o->depth - 1] >= column)
		o->depth--;
	in = *o;
	while (in.depth && in.columns[in.depth - 1] >= column)
		in.depth--;
	for (const char *p = line + column; *p && *p != '\n'; p++) {
		size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyz_");

		if (*p == '{' && in.depth < MAX_DEPTH) {
			if (*last)
				memcpy(in.names[in.depth++], last, sizeof(last));
			*last = '\0';
		} else if (*p == '}' && in.depth > o->depth) {
			in.depth--;
		} else if (len && len < sizeof(last) && p[len] == ':' &&
			   strchr(" \n", p[len + 1])) {
			snprintf(last, sizeof(last), "%.*s", (int)len, p);
			if (!*first)
				memcpy(first, last, sizeof(first));
			name_place(&in, here);
			found = found || (!strcmp(here, place) && !strcmp(last, key));
		}
		p += len ? len - 1 : 0;
	}
	if (!comment && *first && o->depth < MAX_DEPTH) {
		memcpy(o->names[o->depth], first, sizeof(first));
		o->columns[o->depth++] = column;
	}
	return found;
}

static void expect_in_example(size_t mapping, const char *key)
{
	static const struct {
		const char *section, *place;
	} places[] = {{"TOP LEVEL", ""}, {"AGENT", "agent"}, {"PUSH", "push"},
		{"SERVERS", "servers.*"}, {"CONFIGS", "configs.*"}, {"REPORT", "report"}};
	const char *within = mappings[mapping].mapping;
	struct outline o = {.depth = 0};
	char place[256] = "";

	for (size_t i = 0; i < COUNT(places); i++)
		if (!strcmp(places[i].section, mappings[mapping].section))
			snprintf(place, sizeof(place), "%s%s%s", places[i].place,
				*within ? "." : "", within);
	for (const char *line = example; *line; line = next_line(line))
		if (scan_line(&o, line, place, key))
			return;
	fail_msg(EXAMPLE " lacks \"%s:\" in the mapping %s: show it there, with its default", key,
		*place ? place : "at the top");
}

static void example__each_mapping__has_its_keys_where_they_belong(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mappings); i++)
		each_key(i, expect_in_example);
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
static uint64_t of_api(const struct settings *s)
{
	size_t i = 0;

	while (s->servers[i]->kind != SETTINGS_NACOS)
		i++;
	return s->servers[i]->api;
}
static uint64_t of_size(const struct settings *s)
{
	return s->servers[0]->max_bytes;
}
static uint64_t of_changes(const struct settings *s)
{
	return s->configs[0]->guard.max_changes;
}
static uint64_t of_debounce_max(const struct settings *s)
{
	return s->configs[0]->reload.debounce_max_ms;
}
static uint64_t of_history(const struct settings *s)
{
	return s->configs[0]->history;
}

/* A key with bounds. */
struct range {
	const char *section, *path; /* the last name of it is the key */
	const char *text;           /* with a %s for what follows */
	const char *around; /* the mapping that has the key, but its end; NULL = the text itself */
	const char *beyond; /* a value that is too large */
	uint64_t (*get)(const struct settings *s);
};

/* Each "A to B, default C" of the page, in its order. */
static const struct range ranges[] = {
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

/* Those that the page says otherwise. */
static const struct {
	struct range range;
	const char *sentence, *bounds;
	const char *normal; /* NULL = there is none */
} worded[] = {
	{{"SERVERS", "api",
		 "servers: {s: {kind: nacos, urls: ['http://e'], %s}}\nconfigs: {web: {from: "
		 "[{server: s, path: /g/w}], file: /run/w}}\n",
		 NULL, "1000001", of_api},
		".Cm 1\nfor Nacos 1.x and 2.x, or\n.Cm 3 .\nDefault:\n.Cm 1 .\n", "1 to 3", "1"},
	{{"SERVERS", "max_size", OF_SERVER, NULL, "1000GiB", of_size},
		"At most 256MiB, default 8MiB.\n", "1B to 256MiB", "8MiB"},
	{{"CONFIGS", "guard.max_changes", OF_CONFIG, "guard: {allow_empty: true", "1000001",
		 of_changes},
		"1 to 100000.\nDefault: any number.\n", "1 to 100000", NULL},
	{{"CONFIGS", "reload.debounce_max", OF_CONFIG, "reload: {run: [/bin/true]", "1000h",
		 of_debounce_max},
		"At least\n.Cm debounce ,\nat most 1h, default 5s.\n", "0s to 1h", "5s"},
	{{"CONFIGS", "history", OF_CONFIG, NULL, "1000001", of_history},
		"1 to 1000, with a\n.Cm probe\nat least 2; default 10.\n", "1 to 1000", "10"},
};

/* The settings with a value for the key; NULL = without the key. */
static struct settings *parse_with(const struct range *r, const char *value)
{
	const char *dot = strrchr(r->path, '.'), *around = r->around;
	const char *hole = strstr(r->text, "%s");
	char text[1024];
	int len;

	len = snprintf(
		text, sizeof(text), "%.*s%s", (int)(hole - r->text), r->text, around ? around : "");
	if (value)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s: %s",
			around ? ", " : "", dot ? dot + 1 : r->path, value);
	snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", around ? "}" : "",
		hole + strlen("%s"));
	return parse(text);
}

/* The number, as the page would write it. */
static const char *write_number(const struct range *r, uint64_t n, char room[32])
{
	if (strchr(r->beyond, 'h'))
		return n ? settings_duration_text(n, room) : "0s";
	if (strchr(r->beyond, 'B'))
		return settings_size_text(n, room);
	snprintf(room, 32, "%u%s", (unsigned)n, strchr(r->beyond, '%') ? "%" : "");
	return room;
}

/* The number that is read for a value, or without one, as the page would write it. */
static const char *read_back(const struct range *r, const char *value, char room[32])
{
	struct settings *s = parse_with(r, value);
	uint64_t n;

	if (!s)
		fail_msg("%s %s: %s: %s", r->section, r->path, value ? value : "-", said);
	n = r->get(s);
	settings_free(s);
	return write_number(r, n, room);
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

static void assert_written(const struct range *r, const char *value, const char *written)
{
	char room[32];
	const char *read = read_back(r, value, room);

	if (strcmp(read, written))
		fail_msg(PAGE ", %s %s, says %s%s, the program has %s", r->section, r->path,
			value ? "" : "default ", written, read);
}

static void assert_range(const struct range *r, const char *bounds, const char *normal)
{
	char min[24], max[24], told[64];

	assert_int_equal(sscanf(bounds, "%23s to %23s", min, max), 2);
	if (normal)
		assert_written(r, NULL, normal);
	assert_written(r, min, min);
	assert_written(r, max, max);
	assert_null(parse_with(r, r->beyond));
	snprintf(told, sizeof(told), "between %s and %s", strcmp(min, "0s") ? min : "0ms", max);
	if (!strstr(said, told))
		fail_msg(PAGE ", %s %s, says %s, the program: %s", r->section, r->path, bounds,
			said);
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
				fail_msg("ranges[] of this test lacks the key before %s, of "
					 "which " PAGE ", %s, says %.40s",
					ranges[n].path, sections[i], w.line);
			assert_range(&ranges[n++], bounds, normal);
		}
	if (n < COUNT(ranges))
		fail_msg(PAGE " does not say of %s %s \"A to B, default C\"", ranges[n].section,
			ranges[n].path);
}

static void page__each_other_bound__is_what_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(worded); i++) {
		const struct range *r = &worded[i].range;
		struct walk w = walk_section(r->section);
		bool found = false;

		while (step(&w))
			found = found ||
				(is_below(&w, r->path) && begins(w.line, worded[i].sentence));
		if (!found)
			fail_msg(PAGE " does not say of %s %s: %s", r->section, r->path,
				worded[i].sentence);
		assert_range(r, worded[i].bounds, worded[i].normal);
	}
}

static bool is_range(const struct range *r, const char *section, const char *path)
{
	return !strcmp(r->section, section) && !strcmp(r->path, path);
}

static bool is_tested(const char *section, const char *path)
{
	for (size_t i = 0; i < COUNT(ranges); i++)
		if (is_range(&ranges[i], section, path))
			return true;
	for (size_t i = 0; i < COUNT(worded); i++)
		if (is_range(&worded[i].range, section, path))
			return true;
	return false;
}

/* True if a value of one of the kinds is out of the key's bounds. */
static bool has_bounds(size_t mapping, const char *key)
{
	static const char *const huge[] = {"1000000h", "1000000001", "1000000%", "1000000GiB"};
	const char *text = mappings[mapping].text, *hole = strstr(text, "zzzzzz: 1");
	char with[256], told[128];

	snprintf(told, sizeof(told), " %s must be between ", key);
	for (size_t i = 0; i < COUNT(huge); i++) {
		snprintf(with, sizeof(with), "%.*s%s: %s%s", (int)(hole - text), text, key, huge[i],
			hole + strlen("zzzzzz: 1"));
		settings_free(parse(with));
		if (strstr(said, told))
			return true;
	}
	return false;
}

static void expect_tested(size_t mapping, const char *key)
{
	const char *section = mappings[mapping].section, *within = mappings[mapping].mapping;
	char path[160];

	snprintf(path, sizeof(path), "%s%s%s", within, *within ? "." : "", key);
	if (has_bounds(mapping, key) && !is_tested(section, path))
		fail_msg("nothing compares the bounds of %s %s with " PAGE ": say \"A to B, "
			 "default C\" there, and add a row to ranges[] of this test",
			section, path);
}

static void page__each_key_with_bounds__is_compared(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mappings); i++)
		each_key(i, expect_tested);
}

static void expect_default(const struct settings *shown, const struct range *r)
{
	char here[32], room[32];
	const char *normal = read_back(r, NULL, room),
		   *value = write_number(r, r->get(shown), here);

	if (strcmp(value, normal))
		fail_msg(EXAMPLE " shows %s %s: %s, but its default is %s", r->section, r->path,
			value, normal);
}

static void example__each_number__is_its_default(void **state)
{
	struct settings *s = parse(example);

	(void)state;
	if (!s)
		fail_msg(EXAMPLE ": %s", said);
	for (size_t i = 0; i < COUNT(ranges); i++)
		expect_default(s, &ranges[i]);
	for (size_t i = 0; i < COUNT(worded); i++)
		if (worded[i].normal)
			expect_default(s, &worded[i].range);
	settings_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page__each_mapping__has_its_keys_where_they_belong),
		cmocka_unit_test(page__each_range__is_what_is_read),
		cmocka_unit_test(page__each_other_bound__is_what_is_read),
		cmocka_unit_test(page__each_key_with_bounds__is_compared),
		cmocka_unit_test(example__each_mapping__has_its_keys_where_they_belong),
		cmocka_unit_test(example__each_number__is_its_default),
	};

	return cmocka_run_group_tests(tests, read_both, free_both);
}

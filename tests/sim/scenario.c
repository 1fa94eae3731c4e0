/* Draws a life, and writes the configuration that goes with it. */
#include "tests/sim/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/world.h"

static unsigned draw(unsigned bound)
{
	return (unsigned)world_random(STREAM_LIFE, bound);
}

/* n, or 0 where this kind of trouble is not part of the life. */
static unsigned maybe(unsigned n)
{
	return draw(1) ? n : 0;
}

/* ---- configs ---- */

static void draw_layers(struct subject *s, unsigned number)
{
	s->layer_count = draw(2) ? 1 : 2 + draw(1);
	for (size_t i = 0; i < s->layer_count; i++) {
		char path[48];

		snprintf(path, sizeof(path), "/c%u/f%zu.yaml", number, i);
		s->layers[i] = site_add_document(path, 3 + draw(9));
		s->layers[i]->large = draw(20) == 0;
		s->layers[i]->may_be_absent = i > 0 && draw(1);
	}
}

static void draw_subject(struct scenario *sc, struct subject *s, struct host *h, unsigned number)
{
	static const char *const formats[] = {"yaml", "json", "properties", "env"};

	*s = (struct subject){.host = h, .place_number = number};
	snprintf(s->name, sizeof(s->name), "c%u", number);
	draw_layers(s, number);
	s->place = draw(7) == 0 ? PLACE_NONE : draw(4) == 0 ? PLACE_SET : PLACE_FILE;
	s->on_disk = draw(1);
	snprintf(s->path, sizeof(s->path), "%s/%s%s", s->on_disk ? "/srv" : "/run/app", s->name,
		s->place == PLACE_SET ? "" : ".conf");
	s->snapshot = s->place == PLACE_NONE || (s->place == PLACE_FILE && draw(1));
	s->strict = draw(2) == 0;
	s->guarded = draw(1);
	s->checked = draw(2) == 0;
	s->formatted = s->place == PLACE_FILE && draw(7) == 0;
	s->reloaded = draw(1);
	s->probed = s->reloaded && draw(2) == 0;
	s->history = draw(1) ? 10 : 2 + draw(1);
	s->interval_ms = 1000 * (2 + draw(18));
	s->timeout_ms = 500 + 500 * draw(5);
	s->format = s->layer_count > 1 || draw(3) == 0 ? formats[draw(3)] : "verbatim";
	s->clock_steps = sc->clock_s;
	s->may_go_back = s->probed || sc->restores || sc->lag || sc->operators_s;
}

/* ---- the configuration ---- */

struct text {
	char data[16384];
	size_t len;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->len += (size_t)vsnprintf(t->data + t->len, sizeof(t->data) - t->len, format, args);
	va_end(args);
	if (t->len >= sizeof(t->data))
		abort();
}

static void add_programs(struct text *t, const struct subject *s)
{
	if (s->checked)
		add(t, "    check: {run: [/bin/check, \"{path}\"], timeout: 5s}\n");
	if (s->reloaded)
		add(t, "    reload: {run: [/bin/reload], timeout: 5s}\n");
	if (s->probed)
		add(t, "    probe: {run: [/bin/probe, %s], for: 5s, every: 1s, failures: 2}\n",
			s->path);
}

static void add_place(struct text *t, const struct subject *s)
{
	if (s->place == PLACE_FILE)
		add(t, "    file: %s\n", s->path);
	if (s->place == PLACE_SET)
		add(t, "    dir: %s\n", s->path);
	if (s->snapshot && s->place != PLACE_SET)
		add(t, "    snapshot: true\n");
	if (s->place == PLACE_FILE && s->formatted)
		add(t, "    format: {run: [/bin/format], timeout: 5s}\n");
	else if (s->place == PLACE_FILE)
		add(t, "    format: %s\n", s->format);
}

static void add_config(struct text *t, const struct scenario *sc, const struct subject *s)
{
	add(t, "  %s:\n    from:\n", s->name);
	for (size_t i = 0; i < s->layer_count; i++) {
		add(t, "      - {server: main, path: %s", s->layers[i]->path);
		if (s->layers[i]->may_be_absent)
			add(t, ", optional: true");
		if (s->place == PLACE_SET)
			add(t, ", as: f%zu.yaml", i);
		add(t, "}\n");
	}
	add_place(t, s);
	add(t, "    interval: %llums\n    timeout: %llums\n",
		(unsigned long long)(s->interval_ms + 100 * (sc->rule % 3)),
		(unsigned long long)s->timeout_ms);
	add(t, "    durability: %s\n    history: %u\n", s->strict ? "strict" : "normal",
		s->history);
	if (s->guarded)
		add(t, "    guard: {max_shrink: 50%%}\n");
	add_programs(t, s);
}

void scenario_write(struct scenario *sc, bool broken)
{
	struct text t = {.len = 0};

	add(&t, "agent:\n  state_dir: /var/lib/pullet\n  runtime_dir: /run/pullet\n");
	add(&t, "  log: {level: info}\n");
	if (sc->push)
		add(&t, "push:\n  - {endpoint: \"tcp://127.0.0.1:7377\", heartbeat: 5s}\n");
	add(&t, "servers:\n  main: {kind: http, urls: [http://a.example%s]}\n",
		sc->two_servers ? ", http://b.example" : "");
	if (broken)
		add(&t, "  other: {kind: nothing}\n");
	add(&t, "configs:\n");
	for (size_t i = 0; i < sc->subject_count; i++)
		if (!sc->subjects[i].removed)
			add_config(&t, sc, &sc->subjects[i]);
	disk_replace("/etc/pullet.yaml", t.data, t.len);
	disk_set_mode("/etc/pullet.yaml", 0600);
}

/* ---- trouble ---- */

static void draw_trouble(struct scenario *sc)
{
	sc->changes_s = 2 + draw(20);
	sc->bad_versions = maybe(3 + draw(5));
	sc->deletes = maybe(10);
	sc->calm = draw(5) == 0;
	if (sc->calm)
		return;
	sc->restores = draw(4) == 0 ? 15 : 0;
	sc->servers_s = maybe(10 + draw(40));
	sc->lag = sc->two_servers && draw(2) == 0;
	sc->kills_s = maybe(15 + draw(60));
	sc->cuts_s = maybe(20 + draw(60));
	sc->operators_s = draw(2) == 0 ? 5 + draw(20) : 0;
	sc->reloads_s = draw(2) == 0 ? 10 + draw(30) : 0;
	sc->edits_s = draw(3) == 0 ? 20 + draw(30) : 0;
	sc->sleeps_s = draw(4) == 0 ? 60 : 0;
	sc->clock_s = draw(4) == 0 ? 60 : 0;
	sc->disk_faults = draw(3) == 0 ? 20 + draw(300) : 0;
	sc->memory_faults = draw(7) == 0 ? 200 + draw(3000) : 0;
	sc->programs = draw(3) == 0 ? 3 + draw(10) : 0;
	sc->push_faults = sc->push && draw(1);
}

void scenario_draw(struct scenario *sc, struct host *h, uint64_t trouble_us)
{
	memset(sc, 0, sizeof(*sc));
	sc->trouble_us = trouble_us;
	sc->model = draw(1) ? DISK_JOURNAL : DISK_POSIX;
	sc->push = draw(2) > 0;
	sc->two_servers = draw(2) == 0;
	draw_trouble(sc);
	site_add_server("a.example");
	site_add_server("b.example");
	sc->subject_count = 1 + draw(SCENARIO_MAX_SUBJECTS - 1);
	for (unsigned i = 0; i < sc->subject_count; i++)
		draw_subject(sc, &sc->subjects[i], h, i);
}

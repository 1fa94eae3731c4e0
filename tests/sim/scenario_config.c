/* Writes the configuration that goes with a life. */
#include "tests/sim/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk.h"

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

static void add_reload(struct text *t, const struct features *f)
{
	add(t, "    reload:\n      run: [/bin/reload]\n      timeout: 5s\n");
	if (f->debounce_ms)
		add(t, "      debounce: %ums\n      debounce_max: 2s\n", f->debounce_ms);
	if (f->splay_ms)
		add(t, "      splay: %ums\n", f->splay_ms);
	if (f->rules)
		add(t, "      on:\n        - {keys: [\"over\", \"*_1\"], none: true}\n"
		       "        - {keys: [\"*_2\"], signal: HUP, pidfile: /run/app/pid}\n");
}

static void add_programs(struct text *t, const struct subject *s)
{
	if (s->checked)
		add(t, "    check: {run: [/bin/check, \"{path}\"], timeout: 5s}\n");
	if (s->reloaded)
		add_reload(t, &s->features);
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
	if (s->place != PLACE_SET)
		add(t, "    snapshot: %s\n", s->snapshot ? "true" : "false");
	if (s->place == PLACE_FILE && s->formatted)
		add(t, "    format: {run: [/bin/format], timeout: 5s}\n");
	else if (s->place == PLACE_FILE && s->features.type != TYPE_BYTES)
		add(t, "    format: %s\n", s->format);
}

static void add_guard(struct text *t, const struct subject *s)
{
	const struct features *f = &s->features;
	bool keys = f->type != TYPE_BYTES && s->place != PLACE_SET;

	add(t, "    guard:\n      max_shrink: 50%%\n");
	if (f->max_changes && keys)
		add(t, "      max_changes: %u\n", f->max_changes);
	if (f->required && keys)
		add(t, "      require: [d%u_0]\n      allow_empty: true\n", s->layers[0]->id);
}

static void add_verify(struct text *t, const struct features *f)
{
	add(t, "    verify: {public_key: \"%s\"%s}\n", site_public_key(),
		f->has_rev ? ", rev: required" : "");
}

static void add_features(struct text *t, const struct subject *s)
{
	static const char *const types[] = {NULL, "json", "bytes"}, *const drifts[] = {"heal",
									    "report", "leave"};
	const struct features *f = &s->features;

	if (types[f->type])
		add(t, "    type: %s\n", types[f->type]);
	if (f->drift)
		add(t, "    drift: %s\n", drifts[f->drift]);
	if (f->masked)
		add(t, "    mask: [\"*_1\", over.k1]\n");
	if (f->schema)
		add(t, "    schema: /etc/schema.json\n");
	if (f->owned)
		add(t, "    owner: app:app\n");
	if (f->mode)
		add(t, "    mode: \"%o\"\n", f->mode);
	if (f->shared_topic)
		add(t, "    topic: shared\n");
	if (f->min_interval_ms)
		add(t, "    push_min_interval: %ums\n", f->min_interval_ms);
	if (f->spread_ms)
		add(t, "    push_spread: %ums\n", f->spread_ms);
	if (f->is_signed)
		add_verify(t, f);
	if (f->bootstrap)
		add(t, "    bootstrap: {server: boot, path: %s}\n", s->layers[0]->path);
	if (f->rollout)
		add(t, "    rollout: {server: main, path: /rollout/%s}\n", s->name);
}

static void add_config(struct text *t, const struct scenario *sc, const struct subject *s)
{
	add(t, "  %s:\n    from:\n", s->name);
	for (size_t i = 0; i < s->layer_count; i++) {
		add(t, "      - {server: %s, path: %s", s->features.consul ? "kv" : "main",
			s->layers[i]->path);
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
		add_guard(t, s);
	add_programs(t, s);
	add_features(t, s);
}

void scenario_write(struct scenario *sc, bool broken)
{
	static const char schema[] = "{\"type\": \"object\", \"properties\": {\"harmful\": false}, "
				     "\"something\": 1}\n";
	struct text t = {.len = 0};

	disk_put("/etc/schema.json", schema, sizeof(schema) - 1);
	add(&t, "agent:\n  state_dir: /var/lib/pullet\n  runtime_dir: %s\n", sc->runtime_dir);
	add(&t, "  labels: {zone: eu-%u}\n", sc->rule / 2 % 2);
	add(&t, "  log: {level: info}\n");
	if (sc->push)
		add(&t, "push:\n  - {endpoint: \"tcp://127.0.0.1:7377\", heartbeat: 5s}\n");
	add(&t, "servers:\n  main: {kind: http, urls: [http://a.example%s]}\n",
		sc->two_servers ? ", http://b.example" : "");
	add(&t, "  kv: {kind: consul, urls: [http://k.example], watch: %s}\n",
		sc->watch ? "true" : "false");
	add(&t, "  boot: {kind: http, urls: [http://c.example]}\n");
	if (broken)
		add(&t, "  other: {kind: nothing}\n");
	add(&t, "configs:\n");
	for (size_t i = 0; i < sc->subject_count; i++)
		if (!sc->subjects[i].removed)
			add_config(&t, sc, &sc->subjects[i]);
	disk_replace("/etc/pullet.yaml", t.data, t.len);
	disk_set_mode("/etc/pullet.yaml", 0600);
}

/* Writes the configuration that goes with a life. */
#include "tests/sim/scenario.h"

#include <stdlib.h>

#include "lib/buffer.h"
#include "tests/sim/disk.h"

#define TEXT_MAX ((size_t)16384)

static void add_reload(struct buffer *t, const struct features *f)
{
	buffer_printf(t, "    reload:\n      run: [/bin/reload]\n      timeout: 5s\n");
	if (f->debounce_ms)
		buffer_printf(t, "      debounce: %ums\n      debounce_max: 2s\n", f->debounce_ms);
	if (f->splay_ms)
		buffer_printf(t, "      splay: %ums\n", f->splay_ms);
	if (f->rules)
		buffer_printf(t,
			"      on:\n        - {keys: [\"over\", \"*_1\"], none: true}\n"
			"        - {keys: [\"*_2\"], signal: HUP, pidfile: /run/app/pid}\n");
}

static void add_programs(struct buffer *t, const struct subject *s)
{
	if (s->checked)
		buffer_printf(t, "    check: {run: [/bin/check, \"{path}\"], timeout: 5s}\n");
	if (s->reloaded)
		add_reload(t, &s->features);
	if (s->probed)
		buffer_printf(t,
			"    probe: {run: [/bin/probe, %s], for: 5s, every: 1s, failures: 2}\n",
			s->path);
}

static void add_place(struct buffer *t, const struct subject *s)
{
	if (s->place == PLACE_FILE)
		buffer_printf(t, "    file: %s\n", s->path);
	if (s->place == PLACE_SET)
		buffer_printf(t, "    dir: %s\n", s->path);
	if (s->place != PLACE_SET)
		buffer_printf(t, "    snapshot: %s\n", s->snapshot ? "true" : "false");
	if (s->place == PLACE_FILE && s->formatted)
		buffer_printf(t, "    format: {run: [/bin/format], timeout: 5s}\n");
	else if (s->place == PLACE_FILE && s->features.type != TYPE_BYTES)
		buffer_printf(t, "    format: %s\n", s->format);
}

static void add_guard(struct buffer *t, const struct subject *s)
{
	const struct features *f = &s->features;
	bool keys = f->type != TYPE_BYTES && s->place != PLACE_SET;

	buffer_printf(t, "    guard:\n      max_shrink: 50%%\n");
	if (f->max_changes && keys)
		buffer_printf(t, "      max_changes: %u\n", f->max_changes);
	if (f->required && keys)
		buffer_printf(
			t, "      require: [d%u_0]\n      allow_empty: true\n", s->layers[0]->id);
}

static void add_verify(struct buffer *t, const struct features *f)
{
	buffer_printf(t, "    verify: {public_key: \"%s\"%s}\n", site_public_key(),
		f->has_rev ? ", rev: required" : "");
}

static void add_features(struct buffer *t, const struct subject *s)
{
	static const char *const types[] = {NULL, "json", "bytes"}, *const drifts[] = {"heal",
									    "report", "leave"};
	const struct features *f = &s->features;

	if (types[f->type])
		buffer_printf(t, "    type: %s\n", types[f->type]);
	if (f->drift)
		buffer_printf(t, "    drift: %s\n", drifts[f->drift]);
	if (f->masked)
		buffer_printf(t, "    mask: [\"*_1\", over.k1]\n");
	if (f->schema)
		buffer_printf(t, "    schema: /etc/schema.json\n");
	if (f->owned)
		buffer_printf(t, "    owner: app:app\n");
	if (f->mode)
		buffer_printf(t, "    mode: \"%o\"\n", f->mode);
	if (f->shared_topic)
		buffer_printf(t, "    topic: shared\n");
	if (f->min_interval_ms)
		buffer_printf(t, "    push_min_interval: %ums\n", f->min_interval_ms);
	if (f->spread_ms)
		buffer_printf(t, "    push_spread: %ums\n", f->spread_ms);
	if (f->is_signed)
		add_verify(t, f);
	if (f->bootstrap)
		buffer_printf(t, "    bootstrap: {server: boot, path: %s}\n", s->layers[0]->path);
	if (f->rollout)
		buffer_printf(t, "    rollout: {server: main, path: /rollout/%s}\n", s->name);
}

static void add_config(struct buffer *t, const struct scenario *sc, const struct subject *s)
{
	buffer_printf(t, "  %s:\n    from:\n", s->name);
	for (size_t i = 0; i < s->layer_count; i++) {
		buffer_printf(t, "      - {server: %s, path: %s",
			s->features.consul ? "kv"
			: s->features.etcd ? "etcd"
					   : "main",
			s->layers[i]->path);
		if (s->layers[i]->may_be_absent)
			buffer_printf(t, ", optional: true");
		if (s->place == PLACE_SET)
			buffer_printf(t, ", as: f%zu.yaml", i);
		buffer_printf(t, "}\n");
	}
	add_place(t, s);
	buffer_printf(t, "    interval: %llums\n    timeout: %llums\n",
		(unsigned long long)(s->interval_ms + 100 * (sc->rule % 3)),
		(unsigned long long)s->timeout_ms);
	buffer_printf(t, "    durability: %s\n    history: %u\n", s->strict ? "strict" : "normal",
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
	struct buffer t;

	buffer_init(&t, TEXT_MAX);
	disk_put("/etc/schema.json", schema, sizeof(schema) - 1);
	buffer_printf(
		&t, "agent:\n  state_dir: /var/lib/pullet\n  runtime_dir: %s\n", sc->runtime_dir);
	buffer_printf(&t, "  labels: {zone: eu-%u}\n", sc->rule / 2 % 2);
	buffer_printf(&t, "  log: {level: info}\n");
	if (sc->push)
		buffer_printf(
			&t, "push:\n  - {endpoint: \"tcp://127.0.0.1:7377\", heartbeat: 5s}\n");
	buffer_printf(&t, "servers:\n  main: {kind: http, urls: [http://a.example%s]}\n",
		sc->two_servers ? ", http://b.example" : "");
	buffer_printf(&t, "  kv: {kind: consul, urls: [http://k.example], watch: %s}\n",
		sc->watch ? "true" : "false");
	buffer_printf(&t,
		"  etcd: {kind: etcd, urls: [http://e.example, http://f.example], watch: %s}\n",
		sc->watch ? "true" : "false");
	buffer_printf(&t, "  boot: {kind: http, urls: [http://c.example]}\n");
	if (broken)
		buffer_printf(&t, "  other: {kind: nothing}\n");
	buffer_printf(&t, "configs:\n");
	for (size_t i = 0; i < sc->subject_count; i++)
		if (!sc->subjects[i].removed)
			add_config(&t, sc, &sc->subjects[i]);
	if (t.error)
		abort();
	disk_replace("/etc/pullet.yaml", t.data, t.len);
	disk_set_mode("/etc/pullet.yaml", 0600);
	buffer_fini(&t);
}

/* Draws a life: its configs, and what goes wrong. */
#include "tests/sim/scenario.h"

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

/* A config whose bytes nobody looks into. */
static void make_bytes(struct subject *s)
{
	s->features.type = TYPE_BYTES;
	s->format = "verbatim";
	s->snapshot = false;
}

static void make_json(struct subject *s)
{
	s->features.type = TYPE_JSON;
	for (size_t i = 0; i < s->layer_count; i++)
		s->layers[i]->json = true;
}

static void sign_layers(struct subject *s)
{
	s->features.is_signed = true;
	s->features.has_rev = draw(3) > 0;
	for (size_t i = 0; i < s->layer_count; i++)
		s->layers[i]->has_rev = s->features.has_rev;
}

/* What concerns pushes, reloads and the file itself. */
static void draw_manners(struct features *f)
{
	f->drift = draw(2) ? DRIFT_IS_HEALED : draw(1) ? DRIFT_IS_REPORTED : DRIFT_IS_LEFT;
	f->owned = draw(7) == 0;
	f->mode = draw(4) ? 0 : draw(1) ? 0600 : 0644;
	f->shared_topic = draw(5) == 0;
	f->min_interval_ms = maybe(100 + draw(3000));
	f->spread_ms = maybe(draw(3000));
	f->debounce_ms = maybe(draw(1500));
	f->splay_ms = maybe(draw(1500));
	f->rules = draw(3) == 0;
}

/* Its keys are known. */
static bool is_document(const struct subject *s)
{
	return s->features.type != TYPE_BYTES && s->place != PLACE_SET;
}

static void draw_features(const struct scenario *sc, struct subject *s)
{
	struct features *f = &s->features;
	bool single = s->place == PLACE_FILE && s->layer_count == 1;

	f->etcd = sc->orderly && draw(3) > 0;
	if (draw(2) == 0)
		return;
	draw_manners(f);
	if (single && !s->formatted && draw(7) == 0)
		make_bytes(s);
	else if (s->place != PLACE_SET && draw(7) == 0)
		make_json(s);
	f->masked = draw(3) == 0 && is_document(s);
	f->rules &= f->type != TYPE_BYTES;
	f->schema = draw(4) == 0 && is_document(s);
	f->max_changes = maybe(60);
	f->required = draw(3) == 0;
	f->bootstrap = single && draw(3) == 0;
	f->rollout = draw(4) == 0;
	f->consul = !f->etcd && draw(3) == 0;
	f->etcd |= !f->consul && draw(1);
	if (draw(4) == 0)
		sign_layers(s);
	if (draw(7) == 0)
		s->history = s->probed ? 2 : 1;
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
	s->strict = draw(1);
	s->guarded = draw(1);
	s->checked = draw(2) == 0;
	s->formatted = s->place == PLACE_FILE && draw(3) == 0;
	s->reloaded = draw(1);
	s->probed = s->reloaded && draw(1) && !sc->orderly;
	s->history = draw(1) ? 10 : 2 + draw(1);
	s->interval_ms = 1000 * (2 + draw(18));
	s->timeout_ms = 500 + 500 * draw(5);
	s->format = s->layer_count > 1 || draw(3) == 0 ? formats[draw(3)] : "verbatim";
	s->clock_steps = sc->clock_s;
	s->runtime_dir = sc->runtime_dir;
	draw_features(sc, s);
	s->may_go_back = s->probed || sc->operators_s ||
			 ((sc->restores || (sc->lag && !s->features.etcd)) &&
				 !(s->features.is_signed && s->features.has_rev));
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
	sc->disk_faults = draw(3) == 0 ? 5 + draw(100) : 0;
	sc->memory_faults = draw(4) == 0 ? 20 + draw(1000) : 0;
	sc->programs = draw(3) == 0 ? 3 + draw(10) : 0;
	sc->push_faults = sc->push && draw(1);
	if (sc->orderly)
		sc->restores = sc->operators_s = 0;
	sc->hands_s = draw(3) == 0 ? 5 + draw(30) : 0;
	sc->once = draw(4) == 0;
}

void scenario_draw(struct scenario *sc, struct host *h, uint64_t trouble_us)
{
	static const char *const servers[] = {
		"a.example", "b.example", "c.example", "k.example", "e.example", "f.example"};
	bool members_lag; /* of etcd: the last two */

	memset(sc, 0, sizeof(*sc));
	sc->trouble_us = trouble_us;
	sc->model = draw(1) ? DISK_JOURNAL : DISK_POSIX;
	sc->push = draw(2) > 0;
	sc->orderly = draw(2) == 0;
	sc->two_servers = !sc->orderly && draw(2) == 0;
	sc->runtime_dir = draw(5) ? "/run/pullet" : "/var/lib/run";
	draw_trouble(sc);
	members_lag = sc->orderly || draw(1);
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		site_add_server(servers[i])->may_lag = i < 4 ? sc->lag : members_lag;
	sc->watch = sc->orderly || draw(1);
	sc->subject_count = 1 + draw(SCENARIO_MAX_SUBJECTS - 1);
	for (unsigned i = 0; i < sc->subject_count; i++)
		draw_subject(sc, &sc->subjects[i], h, i);
}

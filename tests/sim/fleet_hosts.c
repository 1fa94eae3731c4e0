/*
 * The fleet: its site, its tree of relays, its hosts. Surprising: a document is published under the
 * name of each config that is made of it, once for all hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buffer.h"
#include "tests/sim/fleet_parts.h"
#include "tests/sim/world.h"

struct fleet fleet;

static unsigned draw_unsigned(unsigned bound)
{
	return (unsigned)world_random(STREAM_LIFE, bound);
}

/* ---- the site ---- */

/* "base" has one layer, "zone0" and so on have the base below their own. */
static void publish_fleet_change(void *arg, struct site_document *d, struct site_version *v)
{
	uint64_t spread_ms = fleet.spread == SPREAD_MESSAGES ? FLEET_SPREAD_MS : 0;

	(void)arg;
	if (d == fleet.base)
		push_publish(fleet.publisher, "base", v->etag, spread_ms);
	for (unsigned i = 0; i < NETWORK_ZONES; i++) {
		char topic[16];

		snprintf(topic, sizeof(topic), "zone%u", i);
		if (d == fleet.base || d == fleet.of_zone[i])
			push_publish(fleet.publisher, topic, v->etag, spread_ms);
	}
}

void fleet_change(struct site_document *d, enum site_quality quality)
{
	site_change(d, quality);
	life_totals.changes++;
}

void fleet_change_all(void)
{
	fleet_change(fleet.base, SITE_GOOD);
	for (unsigned i = 0; i < NETWORK_ZONES; i++)
		fleet_change(fleet.of_zone[i], SITE_GOOD);
}

static void build_site(void)
{
	fleet.base = site_add_document("/base.yaml", 4 + draw_unsigned(8));
	for (unsigned i = 0; i < NETWORK_ZONES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/zone%u.yaml", i);
		fleet.of_zone[i] = site_add_document(path, 3 + draw_unsigned(5));
	}
	for (unsigned i = 0; i < FLEET_SERVERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%c.example", 'a' + i);
		site_add_server(name)->node = fleet_server_node(i);
		network_place(fleet_server_node(i), i);
	}
	site.reaches = network_reaches;
	site.changed = publish_fleet_change;
}

/* ---- the relays ---- */

static void name_relay(char ret[48], size_t i)
{
	snprintf(ret, 48, "tcp://relay%zu.example:7377", i);
}

static void build_relays(void)
{
	char endpoint[48], above[2][48] = {"tcp://config.example:7377"};
	const char *upstreams[2] = {above[0], above[1]};

	push_set_spread(fleet.spread == SPREAD_RELAYS ? FLEET_SPREAD_MS : 0);
	network_place(fleet_publisher_node(), NETWORK_ZONES - 1);
	fleet.publisher = push_publisher_new(above[0], fleet_publisher_node());
	for (size_t i = 0; i < FLEET_RELAYS; i++) {
		unsigned zone = (unsigned)i % NETWORK_ZONES;

		network_place(fleet_relay_node(i), zone);
		name_relay(endpoint, i);
		if (i >= FLEET_BRANCHES) {
			name_relay(above[0], zone);
			name_relay(above[1], (zone + 1) % FLEET_BRANCHES);
		}
		fleet.relays[i] = push_relay_new(endpoint, fleet_relay_node(i), upstreams,
			i >= FLEET_BRANCHES && draw_unsigned(4) == 0 ? 2 : 1);
	}
}

/* ---- the hosts ---- */

#define TEXT_MAX ((size_t)2048)

static void add_fleet_config(struct buffer *t, const struct subject *s)
{
	buffer_printf(t, "  %s:\n    from:\n", s->name);
	for (size_t i = 0; i < s->layer_count; i++)
		buffer_printf(t, "      - {server: main, path: %s}\n", s->layers[i]->path);
	buffer_printf(t, "    file: %s\n    format: %s\n", s->path, s->format);
	buffer_printf(t, "    interval: %llums\n    timeout: %llums\n    backoff_bound: %d\n",
		(unsigned long long)s->interval_ms, (unsigned long long)s->timeout_ms,
		FLEET_BACKOFF_BOUND);
	buffer_printf(
		t, "    push_spread: %ums\n", fleet.spread == SPREAD_AGENTS ? FLEET_SPREAD_MS : 0);
	buffer_printf(t, "    durability: %s\n", s->strict ? "strict" : "normal");
	if (s->snapshot)
		buffer_printf(t, "    snapshot: true\n");
	if (s->guarded)
		buffer_printf(t, "    guard: {max_shrink: 50%%}\n");
	if (s->checked)
		buffer_printf(t, "    check: {run: [/bin/check, \"{path}\"], timeout: 5s}\n");
	if (s->reloaded)
		buffer_printf(t, "    reload: {run: [/bin/reload], timeout: 5s}\n");
}

static void write_configuration(const struct fleet_host *h)
{
	struct buffer t;
	char endpoint[48];

	buffer_init(&t, TEXT_MAX);
	buffer_printf(&t, "agent:\n  state_dir: /var/lib/pullet\n  runtime_dir: /run/pullet\n");
	buffer_printf(&t, "  log: {level: info}\npush:\n");
	for (size_t i = 0; i < h->leaf_count; i++) {
		name_relay(endpoint, h->leaves[i]);
		buffer_printf(
			&t, "  - {endpoint: \"%s\", heartbeat: 5s, insecure: true}\n", endpoint);
	}
	buffer_printf(&t,
		"servers:\n  main: {kind: http, connect_timeout: 2s, urls: [http://a.example, "
		"http://b.example, http://c.example]}\nconfigs:\n");
	for (size_t i = 0; i < h->machine.subject_count; i++)
		add_fleet_config(&t, &h->subjects[i]);
	if (t.error)
		abort();
	disk_replace("/etc/pullet.yaml", t.data, t.len);
	disk_set_mode("/etc/pullet.yaml", 0600);
	buffer_fini(&t);
}

static void draw_fleet_subject(struct fleet_host *h, unsigned zone, bool of_zone)
{
	struct machine *m = &h->machine;
	struct subject *s = &h->subjects[m->subject_count];
	char name[sizeof(s->name)] = "base";

	if (of_zone)
		snprintf(name, sizeof(name), "zone%u", zone);
	*s = (struct subject){.host = &m->host,
		.place_number = (unsigned)m->subject_count,
		.layers = {of_zone ? fleet.of_zone[zone] : fleet.base, fleet.base},
		.layer_count = of_zone ? 2 : 1,
		.place = PLACE_FILE,
		.snapshot = draw_unsigned(1),
		.on_disk = draw_unsigned(3) == 0,
		.strict = draw_unsigned(3) == 0,
		.guarded = draw_unsigned(1),
		.checked = draw_unsigned(3) == 0,
		.reloaded = draw_unsigned(1),
		.history = 10,
		.interval_ms = fleet.interval_ms,
		.timeout_ms = FLEET_TIMEOUT_MS,
		.format = of_zone ? "yaml" : "verbatim",
		.may_go_back = fleet.lags || fleet.operators};
	memcpy(s->name, name, sizeof(name));
	snprintf(s->path, sizeof(s->path), "%s/%s.conf", s->on_disk ? "/srv" : "/run/app", name);
	m->subject_count++;
	fleet.subject_count++;
	fleet.part_count += s->layer_count;
}

/* It listens to one relay of its zone, or to two. */
static void build_host(struct fleet_host *h, unsigned number)
{
	unsigned zone = number % NETWORK_ZONES, spokes = FLEET_LEAVES / NETWORK_ZONES;
	unsigned spoke = draw_unsigned(spokes - 1), kinds = draw_unsigned(3);

	snprintf(h->machine.host.name, sizeof(h->machine.host.name), "host%u", number);
	h->machine.host.number = number;
	h->machine.host.traced = h->machine.host.name;
	h->machine.subjects = h->subjects;
	network_place(number, zone);
	h->leaf_count = draw_unsigned(4) == 0 ? 2 : 1;
	for (unsigned i = 0; i < h->leaf_count; i++)
		h->leaves[i] = FLEET_BRANCHES + zone + NETWORK_ZONES * ((spoke + i) % spokes);
	if (kinds != 0)
		draw_fleet_subject(h, zone, false);
	if (kinds != 1)
		draw_fleet_subject(h, zone, true);
	machine_prepare(&h->machine, draw_unsigned(1) ? DISK_JOURNAL : DISK_POSIX);
	write_configuration(h);
}

void fleet_build(size_t host_count)
{
	static const unsigned intervals_s[] = {30, 60, 120};

	fleet.host_count = host_count;
	fleet.interval_ms = 1000ull * intervals_s[draw_unsigned(2)];
	fleet.spread = (enum fleet_spread)draw_unsigned(SPREADS - 1);
	fleet.lags = draw_unsigned(2) == 0;
	fleet.operators = draw_unsigned(2) == 0;
	build_site();
	build_relays();
	for (unsigned i = 0; i < host_count; i++)
		build_host(&fleet.hosts[i], i);
}

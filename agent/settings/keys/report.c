/* The key "report". Surprising: its server may be in a file that is read later. */
#include "settings/keys/report.h"

#include <string.h>

#include "settings/keys/layers.h"
#include "settings/fingerprint.h"
#include "settings/form.h"

#define REPORT(member) MEMBER(settings_report, member)

static const char *check_prefix(const char *text)
{
	const char *why = settings_check_url_path(text);

	return why ? why
	       : text[strlen(text) - 1] == '/' && strlen(text) > 1
		       ? NULL
		       : "must end with /, and be more than that: the agents' keys are put behind "
			 "it";
}

static const struct key report_keys[] = {
	{"server", walk_set_text, REPORT(from), .check = settings_check_name, .required = true},
	{"prefix", walk_set_text, REPORT(prefix), .check = check_prefix},
	{"host", walk_set_text, REPORT(host), .check = settings_check_name},
	{"ttl", walk_set_duration, REPORT(ttl_ms), .min = 5 * SECOND, .max = HOUR},
};

const struct mapping settings_report_keys = {report_keys, COUNT(report_keys)};

void settings_set_report(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_report *r = &l->s->report;

	(void)object;
	if (!walk_expect(l, n, k->name, 1u << NODE_MAP, "a mapping with server"))
		return;
	r->ttl_ms = 60 * SECOND;
	walk_mapping(l, n, KEYS(report_keys), "report", NULL, r);
	settings_print_node(l, n, &r->print);
	if (!r->prefix && !node_find(n, "prefix"))
		r->prefix = loader_copy(l, "/pullet/agents/");
	if (r->from)
		loader_note(l, &l->asides, r->from, NULL, walk_place(l, node_find(n, "server")));
}

void settings_report_resolve(struct loader *l)
{
	struct settings_report *r = &l->s->report;

	for (size_t i = 0; r->from && i < l->asides.count; i++) {
		const struct mark *m = &l->asides.items[i];

		if (m->text == r->from && settings_find_server(l, r->from, m->place, &r->server) &&
			l->s->servers[r->server]->kind != SETTINGS_ETCD)
			loader_complain(l, m->place, "report needs a server of the kind etcd");
	}
}

void settings_report_fini(struct settings_report *r)
{
	walk_free(KEYS(report_keys), r);
}

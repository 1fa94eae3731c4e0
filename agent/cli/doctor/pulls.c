/*
 * The asking. Surprising: an address that cannot be talked to is not asked for its other documents,
 * so that one that hangs costs one timeout; its share of max_in_flight may be under way already.
 */
#include "cli/doctor/pulls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pull/kinds/answer.h"
#include "text/sentence.h"

static void start_waiting_pulls(struct pulls *p, struct doctor_pull_upstream *u);

/* ---- one answer ---- */

/* What the answer says of the address, whatever it says of the document. */
static void note_address(struct doctor_pull *p, const struct http_client_response *r)
{
	struct doctor_pull_address *a = p->address;
	struct tm tm = {0};
	const char *end;

	p->tls = r->result == HTTP_CLIENT_TLS;
	p->too_large = r->result == HTTP_CLIENT_TOO_LARGE;
	p->took_ms = r->duration_ms;
	p->lookup_ms = r->lookup_ms;
	if (r->result == HTTP_CLIENT_OK && r->duration_ms > a->slowest_ms)
		a->slowest_ms = r->duration_ms;
	if (r->certificates_end_ms)
		a->certificates_end_ms = r->certificates_end_ms;
	end = strptime(r->server_date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!end || *end)
		return;
	a->has_clock = true;
	a->clock_ms = (int64_t)timegm(&tm) * 1000 - p->pulls->env.sys->wall_ms();
}

/* No connection, or one that said nothing. */
static bool is_dead(const struct doctor_pull *p, const struct http_client_response *r)
{
	return r->result == HTTP_CLIENT_REFUSED || r->result == HTTP_CLIENT_NETWORK ||
	       r->result == HTTP_CLIENT_TLS ||
	       (r->result == HTTP_CLIENT_TIMEOUT && p->address->good == 0);
}

/* Would the agent be able to read it? */
static void check_document_form(struct doctor_pull *p, const struct kind_answer *answer)
{
	struct document_error e;
	struct document *document = NULL;
	char shown[sizeof(e.message)];

	if (answer->type == SETTINGS_TYPE_BYTES)
		return;
	if (document_parse(answer->type == SETTINGS_TYPE_JSON ? DOCUMENT_JSON : DOCUMENT_YAML,
		    answer->body.data ? answer->body.data : "", answer->body.len, 0, &document,
		    &e) == -EINVAL) {
		p->cause = KIND_CAUSE_ANSWER;
		sentence_show(shown, sizeof(shown), e.message, AUDIENCE_READER);
		if (e.line)
			snprintf(p->why, sizeof(p->why), "line %u, column %u: %s", e.line, e.column,
				shown);
		else
			snprintf(p->why, sizeof(p->why), "%s", shown);
	}
	document_free(document);
}

static void take_source_document(struct doctor_pull *p, const struct http_client_response *response,
	struct kind_answer *answer)
{
	const struct doctor_pull_document *d = p->document;

	p->address->good++;
	p->len = answer->body.len;
	p->nameless = !answer->version[0] && !response->last_modified[0];
	digest_sha256(answer->body.data, answer->body.len, NULL, 0, p->sha256);
	check_document_form(p, answer);
	if (answer->mismatch[0]) {
		p->cause = KIND_CAUSE_ANSWER;
		snprintf(p->why, sizeof(p->why), "it is not what its server says: %s",
			answer->mismatch);
	}
	if (d->public_keys || d->is_signature) {
		p->body = answer->body;
		buffer_init(&answer->body, 0);
	}
}

static void finish_pull(struct doctor_pull *p)
{
	struct pulls *pulls = p->pulls;

	p->exchange = NULL;
	p->state = DOCTOR_PULL_ANSWERED;
	p->document->upstream->in_flight--;
	pulls->left--;
	start_waiting_pulls(pulls, p->document->upstream);
	if (pulls->left == 0)
		loop_stop(pulls->d->loop);
}

static void pull_answered(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct doctor_pull *p = arg;
	struct kind_answer answer;
	enum kind_verdict verdict;

	kind_answer_init(&answer, place->max_bytes);
	verdict = answer_check(place, response, exchange_conditional(p->exchange), &answer);
	if ((verdict == KIND_UNAUTHORIZED && exchange_again(p->exchange, true)) ||
		(verdict == KIND_WHOLE && exchange_again(p->exchange, false))) {
		kind_answer_fini(&answer);
		return;
	}
	memcpy(p->why, answer.why, sizeof(p->why));
	note_address(p, response);
	p->absent = verdict == KIND_ABSENT;
	if (verdict == KIND_NEW)
		take_source_document(p, response, &answer);
	else if (p->absent && p->document->optional)
		p->address->good++;
	else
		p->cause = verdict == KIND_UNAUTHORIZED ? KIND_CAUSE_FORBIDDEN
			   : answer.cause               ? answer.cause
							: KIND_CAUSE_ANSWER;
	if (is_dead(p, response) && !p->address->dead)
		p->address->dead = p;
	kind_answer_fini(&answer);
	finish_pull(p);
}

static void pull_not_sent(void *arg, enum kind_cause cause, const char *why)
{
	struct doctor_pull *p = arg;

	p->cause = cause;
	snprintf(p->why, sizeof(p->why), "%s", why);
	finish_pull(p);
}

/* ---- asking ---- */

static int build_source_request(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)arg;
	return kind_of(place->server)->build(place, r, why);
}

static void start_pull(struct doctor_pull *p)
{
	static const struct exchange_calls calls = {
		.build = build_source_request, .ended = pull_answered, .failed = pull_not_sent};
	struct doctor_pull_document *d = p->document;
	const struct exchange_request request = {
		.server = d->upstream->server,
		.session = &d->upstream->session,
		.place = {.base = p->address->url,
			.path = d->path,
			.type = d->type,
			.max_bytes = d->upstream->server->max_bytes},
		.timeout_ms = d->timeout_ms,
		.calls = &calls,
		.arg = p,
	};

	p->state = DOCTOR_PULL_RUNNING;
	d->upstream->in_flight++;
	if (exchange_start(&p->pulls->env, &request, &p->exchange, p->why) == 0)
		return;
	p->cause = KIND_CAUSE_HOST;
	p->state = DOCTOR_PULL_ANSWERED;
	d->upstream->in_flight--;
	p->pulls->left--;
}

static void skip_pull(struct doctor_pull *p)
{
	p->state = DOCTOR_PULL_SKIPPED;
	p->address->skipped++;
	p->pulls->left--;
}

/* The n-th pull of all, if it is of this server; by document, then by address. */
static struct doctor_pull *pull_at(struct pulls *p, const struct doctor_pull_upstream *u, size_t n)
{
	struct doctor_pull_document *d = &p->documents[n / SETTINGS_MAX_URLS];

	n %= SETTINGS_MAX_URLS;
	return d->upstream == u && n < u->server->url_count ? &d->pulls[n] : NULL;
}

/* Starts as many as the server takes at a time. */
static void start_waiting_pulls(struct pulls *p, struct doctor_pull_upstream *u)
{
	for (; u->next < p->count * SETTINGS_MAX_URLS && u->in_flight < u->server->max_in_flight;
		u->next++) {
		struct doctor_pull *pull = pull_at(p, u, u->next);

		if (!pull)
			continue;
		if (p->late || u->closed || pull->address->dead)
			skip_pull(pull);
		else
			start_pull(pull);
	}
}

static void pulls_timed_out(void *arg)
{
	struct pulls *p = arg;

	p->late = true;
	loop_stop(p->d->loop);
}

/* What runs when the time is up has not answered. */
static void end_running_pulls(struct pulls *p)
{
	for (size_t i = 0; i < p->count * SETTINGS_MAX_URLS; i++) {
		struct doctor_pull_document *d = &p->documents[i / SETTINGS_MAX_URLS];
		struct doctor_pull *pull = pull_at(p, d->upstream, i);
		struct exchange *x = pull ? pull->exchange : NULL;

		if (!pull || pull->state == DOCTOR_PULL_ANSWERED ||
			pull->state == DOCTOR_PULL_SKIPPED)
			continue;
		if (pull->state == DOCTOR_PULL_WAITING) {
			skip_pull(pull);
			continue;
		}
		pull->exchange = NULL;
		pull->state = DOCTOR_PULL_ANSWERED;
		pull->cause = KIND_CAUSE_TIMEOUT;
		snprintf(pull->why, sizeof(pull->why),
			"no answer in the %llu ms that this check has (--timeout)",
			(unsigned long long)p->d->timeout_ms);
		if (pull->address->good == 0 && !pull->address->dead)
			pull->address->dead = pull;
		exchange_cancel(x);
	}
}

/* ---- what is to be asked for ---- */

static struct doctor_pull_document *find_source_document(
	struct pulls *p, const struct doctor_pull_upstream *u, const char *path)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->documents[i].upstream == u && strcmp(p->documents[i].path, path) == 0)
			return &p->documents[i];
	return NULL;
}

static int add_document(struct pulls *p, const struct doctor_pull_document *d)
{
	struct doctor_pull_document *to = &p->documents[p->count];
	size_t n = d->upstream->server->url_count;

	*to = *d;
	to->pulls = calloc(n, sizeof(*to->pulls));
	if (!to->pulls)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		to->pulls[i] = (struct doctor_pull){
			.pulls = p, .document = to, .address = &d->upstream->addresses[i]};
		buffer_init(&to->pulls[i].body, 0);
	}
	d->upstream->used = true;
	p->left += n;
	p->count++;
	return 0;
}

static int add_layer_document(struct pulls *p, const struct settings_config *c,
	const struct settings_layer *layer, bool is_signed)
{
	struct doctor_pull_document d = {.config = c->name,
		.upstream = &p->upstreams[layer->server],
		.path = layer->path,
		.type = layer->type,
		.timeout_ms = c->timeout_ms,
		.optional = layer->optional,
		.public_keys = is_signed ? c->verify.public_keys : NULL,
		.of = c};
	size_t stem = strcspn(layer->path, "?");
	int r;

	if (layer != c->bootstrap && layer != c->rollout)
		d.layer = (size_t)(layer - c->layers);
	r = find_source_document(p, d.upstream, d.path) ? 0 : add_document(p, &d);
	if (r || !is_signed ||
		find_source_document(p, d.upstream, d.path) != &p->documents[p->count - 1])
		return r;
	if (asprintf(&d.made_path, "%.*s.minisig%s", (int)stem, layer->path, layer->path + stem) <
		0)
		return -ENOMEM;
	d.path = d.made_path;
	d.type = SETTINGS_TYPE_BYTES;
	d.public_keys = NULL;
	d.is_signature = true;
	r = add_document(p, &d);
	if (r)
		free(d.made_path);
	return r;
}

static int add_config_documents(struct pulls *p, const struct settings_config *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->layer_count; i++)
		r = add_layer_document(p, c, &c->layers[i], c->verify.public_keys);
	if (r == 0 && c->bootstrap)
		r = add_layer_document(p, c, c->bootstrap, c->verify.public_keys);
	if (r == 0 && c->rollout)
		r = add_layer_document(p, c, c->rollout, false);
	return r;
}

/* The etcd that is told what runs here: this host's receipt, which need not be there. */
static int add_receipt_document(struct pulls *p)
{
	const struct settings_report *report = &p->d->settings->report;
	struct doctor_pull_document d = {.config = "report",
		.type = SETTINGS_TYPE_BYTES,
		.timeout_ms = 10000,
		.optional = true};
	char host[HOST_NAME_MAX + 1] = "localhost";
	int r;

	if (!report->from)
		return 0;
	gethostname(host, sizeof(host));
	d.upstream = &p->upstreams[report->server];
	if (asprintf(&d.made_path, "%s%s", report->prefix, report->host ? report->host : host) < 0)
		return -ENOMEM;
	d.path = d.made_path;
	r = add_document(p, &d);
	if (r)
		free(d.made_path);
	return r;
}

static size_t count_documents(const struct settings *s)
{
	size_t n = 1;

	for (size_t i = 0; i < s->config_count; i++)
		n += 2 * (s->configs[i]->layer_count + 2);
	return n;
}

static bool needs_unreadable_file(const struct doctor *d, const struct settings_server *s)
{
	struct doctor_needed_file files[DOCTOR_NEEDED_FILES];
	size_t n = doctor_server_files(s, files);

	for (size_t i = 0; i < n; i++)
		if (doctor_is_unreadable(d, files[i].path))
			return true;
	return false;
}

static int prepare_pulls(struct pulls *p)
{
	const struct settings *s = p->d->settings;
	int r = 0;

	p->documents = calloc(count_documents(s), sizeof(*p->documents));
	p->upstreams = calloc(s->server_count, sizeof(*p->upstreams));
	if (!p->documents || !p->upstreams)
		return -ENOMEM;
	for (size_t i = 0; i < s->server_count; i++) {
		struct doctor_pull_upstream *u = &p->upstreams[i];

		u->server = s->servers[i];
		u->closed = needs_unreadable_file(p->d, u->server);
		for (size_t k = 0; k < u->server->url_count; k++)
			u->addresses[k].url = u->server->urls[k];
		if (u->server->kind == SETTINGS_FILE && !p->env.files &&
			!(p->env.files = worker_start(p->d->loop, "doctor-pulls")))
			return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < s->config_count; i++)
		if (doctor_is_selected(p->d, s->configs[i]))
			r = add_config_documents(p, s->configs[i]);
	return r || p->d->only ? r : add_receipt_document(p);
}

/* ---- all of it ---- */

int doctor_pulls_run(struct doctor *d, struct pulls *ret)
{
	struct pulls *p = ret;
	int r;

	*p = (struct pulls){.d = d, .env = {.sys = &sys_real, .ca_file = getenv("SSL_CERT_FILE")}};
	p->transport = p->env.transport = http_client_new(d->loop);
	r = p->transport ? prepare_pulls(p) : -ENOMEM;
	if (r)
		return r;
	http_client_examine(p->transport);
	loop_timer_init(&p->timer, pulls_timed_out, p);
	loop_timer_set(d->loop, &p->timer, loop_now_ms(d->loop) + d->timeout_ms);
	for (size_t i = 0; i < d->settings->server_count; i++)
		start_waiting_pulls(p, &p->upstreams[i]);
	if (p->left)
		loop_run(d->loop);
	loop_timer_cancel(d->loop, &p->timer);
	end_running_pulls(p);
	return 0;
}

void doctor_pulls_fini(struct pulls *p)
{
	http_client_free(p->transport);
	if (p->env.files)
		worker_stop(p->env.files, 400);
	for (size_t i = 0; i < p->count; i++) {
		for (size_t k = 0; k < p->documents[i].upstream->server->url_count; k++)
			buffer_fini(&p->documents[i].pulls[k].body);
		free(p->documents[i].pulls);
		free(p->documents[i].made_path);
	}
	for (size_t i = 0; p->upstreams && i < p->d->settings->server_count; i++)
		exchange_session_fini(&p->upstreams[i].session);
	free(p->documents);
	free(p->upstreams);
}

/*
 * A probe. Surprising: an attempt that runs when the time is over is waited for, and a failed one
 * is followed by another, so that no probe passes by the clock alone.
 */
#include "notify/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "process/process.h"
#include "text/sentence.h"
#include "verify/programs.h"

#define PROBE_MAX_OUTPUT 4096u

struct probe {
	struct probe_options o;
	struct loop_timer next;
	struct process *process;
	struct transfer *transfer;
	char **env;
	uint64_t until_ms;
	unsigned failures; /* in a row */
	char why[PROBE_WHY];
};

static void end_probe(struct probe *p, bool good)
{
	struct probe_options o = p->o;
	char why[PROBE_WHY];

	memcpy(why, p->why, sizeof(why));
	probe_free(p);
	o.ended(o.arg, good, why);
}

/* One attempt is over; why: NULL = good. */
static void attempt_ended(struct probe *p, const char *why)
{
	uint64_t now_ms = loop_now_ms(p->o.loop);

	p->failures = why ? p->failures + 1 : 0;
	if (why)
		snprintf(p->why, sizeof(p->why), "%s", why);
	if (p->failures >= p->o.settings->failures)
		end_probe(p, false);
	else if (now_ms >= p->until_ms && p->failures == 0)
		end_probe(p, true);
	else
		loop_timer_set(p->o.loop, &p->next, now_ms + p->o.settings->every_ms);
}

static void program_ended(void *arg, const struct process_result *result)
{
	struct probe *p = arg;
	char why[PROBE_WHY], shown[300 + SENTENCE_WORDS];
	struct buffer said;

	p->process = NULL;
	buffer_init(&said, 4u * PROBE_MAX_OUTPUT);
	programs_scrub(p->o.scrub, p->o.scrub_arg, &said, result->output, result->output_len);
	snprintf(why, sizeof(why), "%.150s %s%s", p->o.settings->argv[0], result->why,
		sentence_quote_output(shown, sizeof(shown), said.len ? said.data : "", said.len));
	buffer_fini(&said);
	attempt_ended(p, result->ok ? NULL : why);
}

static void url_answered(void *arg, struct http_client_response *r)
{
	struct probe *p = arg;
	bool came = r->result == HTTP_CLIENT_OK || r->result == HTTP_CLIENT_TOO_LARGE;
	char why[PROBE_WHY];

	p->transfer = NULL;
	if (came)
		snprintf(why, sizeof(why), "%.150s answered %ld", LOG_URL(p->o.settings->url),
			r->status);
	else
		snprintf(why, sizeof(why), "%.150s: %s", LOG_URL(p->o.settings->url), r->message);
	attempt_ended(p, came && r->status >= 200 && r->status <= 299 ? NULL : why);
}

static int start_attempt(struct probe *p)
{
	const struct settings_probe *s = p->o.settings;
	const struct http_client_request request = {
		.url = s->url,
		.tls = {.ca = p->o.ca_file},
		.max_bytes = PROBE_MAX_BYTES,
		.timeout_ms = s->timeout_ms,
		.connect_timeout_ms = s->timeout_ms,
		.alone = true, /* a kept connection may lead to the process before the reload */
	};
	const struct process_options options = {
		.argv = s->argv,
		.env = p->env,
		.max_output = PROBE_MAX_OUTPUT,
		.timeout_ms = s->timeout_ms,
	};

	if (s->url)
		return http_client_start(p->o.transport, &request, url_answered, p, &p->transfer);
	return process_start(p->o.loop, &options, program_ended, p, &p->process);
}

static void attempt_due(void *arg)
{
	struct probe *p = arg;
	char why[PROBE_WHY];
	int r = start_attempt(p);

	if (r == 0)
		return;
	snprintf(why, sizeof(why), "the probe cannot be started: %s%s", strerror(-r),
		sys_advice(-r));
	attempt_ended(p, why);
}

struct probe *probe_start(const struct probe_options *options)
{
	struct probe *p = calloc(1, sizeof(*p));
	uint64_t now_ms = loop_now_ms(options->loop);

	if (!p)
		return NULL;
	p->o = *options;
	p->until_ms = now_ms + options->settings->for_ms;
	loop_timer_init(&p->next, attempt_due, p);
	p->env = programs_environment(options->name, options->file, options->generation, NULL, 0);
	if (!p->env) {
		probe_free(p);
		return NULL;
	}
	loop_timer_set(p->o.loop, &p->next, now_ms + options->settings->every_ms);
	return p;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	loop_timer_cancel(p->o.loop, &p->next);
	process_free(p->process);
	if (p->transfer)
		http_client_cancel(p->transfer);
	programs_environment_free(p->env);
	free(p);
}

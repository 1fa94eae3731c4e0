/*
 * pullet doctor: a table of checks, each of which adds findings to its list; the lists are printed.
 *
 * Surprising: checks that touch the file system run in a thread, because a mount that hangs can be
 * left only by ending the process, which is what happens after everything else was printed.
 */
#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text/json_writer.h"
#include "base/log.h"
#include "text/sentence.h"
#include "base/worker.h"
#include "settings/places.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/common/options.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

#define MAX_OUTPUT (64u << 20)
#define SHOWN_SUBJECTS 3

static const struct check {
	const char *name;
	void (*run)(struct doctor *d, struct doctor_list *l);
	bool always; /* also without settings */
	bool files;  /* touches the file system only, which may hang */
} checks[] = {
	{"configuration", .run = doctor_configuration, .always = true},
	{"agent", .run = doctor_agent, .always = true},
	{"clock", .run = doctor_clock, .always = true},
	{"servers", .run = doctor_servers},
	{"push", .run = doctor_push},
	{"hooks", .run = doctor_hooks, .files = true},
	{"files", .run = doctor_files, .files = true, .always = true},
};

enum { CHECKS = sizeof(checks) / sizeof(checks[0]) };

static const struct {
	const char *name, *colour, *sum;
} severities[] = {
	[DOCTOR_OK] = {"ok", "\033[32m", "good"},
	[DOCTOR_NOTE] = {"note", "\033[36m", "note"},
	[DOCTOR_WARNING] = {"warning", "\033[33m", "warning"},
	[DOCTOR_ERROR] = {"error", "\033[31m", "error"},
};

struct run {
	struct doctor d;
	struct doctor_list lists[CHECKS];
	bool json, hangs;
};

static const struct option_row doctor_rows[] = {
	{"config", "FILE",
		"the agent's configuration (default $PULLET_CONFIG, then\n" SETTINGS_DEFAULT_PATH
		")",
		OPTION_TEXT, .at = offsetof(struct run, d.path), .letter = 'c'},
	{"json", NULL, "a list of findings for programs", OPTION_FLAG,
		.at = offsetof(struct run, json)},
	{"socket", "PATH",
		"the agent's control socket (default: in the configuration's runtime_dir)",
		OPTION_TEXT, .at = offsetof(struct run, d.socket)},
	{"timeout", "DURATION", "of each check that waits for others (default 30s)",
		OPTION_DURATION, .at = offsetof(struct run, d.timeout_ms)},
	{0},
};

static const struct command_line doctor_line = {
	.usage = "Usage: pullet doctor [-c FILE] [--json] [--socket PATH] [--timeout DURATION] "
		 "[CONFIG]\n"
		 "Finds problems, present and coming, of the agent, its configuration and what it "
		 "depends on,\n"
		 "and says what to do. Changes nothing.\n",
	.rows = doctor_rows,
	.tail = "Exit codes: 0 no error, 1 at least one, 2 there is no such CONFIG, 64 usage, 78 "
		"invalid configuration.\n",
	.max = 1,
};

/* ---- findings ---- */

static void *require_memory(void *p)
{
	if (!p)
		exit(cli_error(CLI_FAILED, "pullet doctor", "out of memory"));
	return p;
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static bool same_finding(const struct doctor_finding *a, const struct doctor_finding *b)
{
	return a->severity == b->severity && compare_text(a->finding, b->finding) == 0 &&
	       compare_text(a->cause, b->cause) == 0 && compare_text(a->remedy, b->remedy) == 0;
}

static void finding_fini(struct doctor_finding *f)
{
	free(f->subject);
	free(f->finding);
	free(f->cause);
	free(f->remedy);
}

static char *copy_shown(const char *text)
{
	char *copy = require_memory(strdup(text));

	sentence_show(copy, strlen(copy) + 1, copy, AUDIENCE_OPERATOR);
	return copy;
}

static void add_finding(
	struct doctor_list *l, const struct doctor_finding *given, const char *format, va_list args)
{
	struct doctor_finding *f;

	l->items = require_memory(reallocarray(l->items, l->count + 1, sizeof(*l->items)));
	f = &l->items[l->count++];
	*f = (struct doctor_finding){.severity = given->severity,
		.subject = require_memory(strdup(given->subject)),
		.cause = given->cause && given->cause[0] ? copy_shown(given->cause) : NULL,
		.remedy = given->remedy ? require_memory(strdup(given->remedy)) : NULL};
	if (vasprintf(&f->finding, format, args) >= 0)
		sentence_show(f->finding, strlen(f->finding) + 1, f->finding, AUDIENCE_OPERATOR);
	else
		require_memory(NULL);
	for (size_t i = 0; i + 1 < l->count; i++)
		if (strcmp(l->items[i].subject, f->subject) == 0 && same_finding(&l->items[i], f)) {
			finding_fini(f);
			l->count--;
			return;
		}
}

void doctor_add(struct doctor_list *l, enum doctor_severity severity, const char *subject,
	const char *remedy, const char *format, ...)
{
	const struct doctor_finding f = {
		.severity = severity, .subject = (char *)subject, .remedy = (char *)remedy};
	va_list args;

	va_start(args, format);
	add_finding(l, &f, format, args);
	va_end(args);
}

void doctor_add_caused(struct doctor_list *l, enum doctor_severity severity, const char *subject,
	const char *remedy, const char *cause, const char *format, ...)
{
	const struct doctor_finding f = {.severity = severity,
		.subject = (char *)subject,
		.cause = (char *)cause,
		.remedy = (char *)remedy};
	va_list args;

	va_start(args, format);
	add_finding(l, &f, format, args);
	va_end(args);
}

void doctor_set_path(struct doctor_list *l, const char *path)
{
	pthread_mutex_lock(&l->lock);
	snprintf(l->at, sizeof(l->at), "%s", path);
	pthread_mutex_unlock(&l->lock);
}

void doctor_date(int64_t ms, char ret[DOCTOR_DATE])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(ret, DOCTOR_DATE, "%Y-%m-%d", &tm))
		snprintf(ret, DOCTOR_DATE, "?");
}

static void list_fini(struct doctor_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		finding_fini(&l->items[i]);
	free(l->items);
	l->items = NULL;
	l->count = 0;
}

bool doctor_is_selected(const struct doctor *d, const struct settings_config *c)
{
	return !d->only || strcmp(d->only, c->name) == 0;
}

/* ---- running the checks ---- */

struct files_job {
	struct worker_job job; /* first */
	struct run *run;
	size_t check;
	struct doctor_list list; /* the thread's until done */
	bool done;
	struct loop_timer timer;
};

static void run_files_check(struct worker_job *job)
{
	struct files_job *f = (struct files_job *)job;

	checks[f->check].run(&f->run->d, &f->list);
}

static void files_done(struct worker_job *job)
{
	struct files_job *f = (struct files_job *)job;

	f->done = true;
	loop_stop(f->run->d.loop);
}

static void files_late(void *arg)
{
	struct files_job *f = arg;

	loop_stop(f->run->d.loop);
}

/* What it has found so far is the thread's for ever: only the path is told. */
static void report_hang(struct files_job *f)
{
	char at[sizeof(f->list.at)];

	pthread_mutex_lock(&f->list.lock);
	memcpy(at, f->list.at, sizeof(at));
	pthread_mutex_unlock(&f->list.lock);
	doctor_add(&f->run->lists[f->check], DOCTOR_ERROR, at,
		"bring back what is mounted there, or name another place; what is behind it in "
		"this list was not looked at",
		"the file system does not answer: a mount whose server hangs, or a disk that "
		"fails");
	f->run->hangs = true;
}

/* In a thread, for at most the time limit. */
static void run_files(struct run *run, size_t check)
{
	static struct files_job f; /* outlives the run if the thread hangs */
	struct worker *w = require_memory(worker_start(run->d.loop, "doctor-files"));

	f = (struct files_job){.job = {.run = run_files_check, .done = files_done},
		.run = run,
		.check = check,
		.list.lock = PTHREAD_MUTEX_INITIALIZER};
	loop_timer_init(&f.timer, files_late, &f);
	loop_timer_set(run->d.loop, &f.timer, loop_now_ms(run->d.loop) + run->d.timeout_ms);
	worker_submit(w, &f.job);
	loop_run(run->d.loop);
	loop_timer_cancel(run->d.loop, &f.timer);
	if (!f.done) {
		report_hang(&f);
		return;
	}
	worker_stop(w, 1000);
	run->lists[check] = f.list;
}

static void show_running_check(const char *doing)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s", doing, doing[0] ? " ..." : "");
}

static void run_doctor_checks(struct run *run)
{
	for (size_t i = 0; i < CHECKS && !run->hangs; i++) {
		if (!run->d.settings && i > 0 && !checks[i].always)
			continue;
		show_running_check(checks[i].name);
		if (checks[i].files)
			run_files(run, i);
		else
			checks[i].run(&run->d, &run->lists[i]);
	}
	show_running_check("");
}

/* ---- printing ---- */

static int compare_findings(const void *a, const void *b)
{
	const struct doctor_finding *x = a, *y = b;
	int r = (int)y->severity - (int)x->severity;

	if (r == 0)
		r = compare_text(x->finding, y->finding);
	if (r == 0)
		r = compare_text(x->remedy, y->remedy);
	return r ? r : (x->order > y->order) - (x->order < y->order);
}

static int compare_finding_groups(const void *a, const void *b)
{
	const struct doctor_finding *x = a, *y = b;
	int r = (int)y->severity - (int)x->severity;

	if (r == 0)
		r = (x->group > y->group) - (x->group < y->group);
	return r ? r : (x->order > y->order) - (x->order < y->order);
}

/* The worst first; what is the same of several subjects, one after the other. */
static void sort_findings(struct doctor_list *l)
{
	if (l->count == 0)
		return;
	for (size_t i = 0; i < l->count; i++)
		l->items[i].order = i;
	qsort(l->items, l->count, sizeof(*l->items), compare_findings);
	for (size_t i = 0; i < l->count; i++)
		l->items[i].group = i && same_finding(&l->items[i], &l->items[i - 1])
					    ? l->items[i - 1].group
					    : l->items[i].order;
	qsort(l->items, l->count, sizeof(*l->items), compare_finding_groups);
}

/* CONFIG in a remedy is the subject, where there is one. */
static void add_remedy_text(const struct doctor_finding *f, bool is_alone, struct buffer *out)
{
	static const char word[] = "CONFIG";
	const char *at = is_alone ? strstr(f->remedy, word) : NULL;
	char text[512];

	if (at && snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - f->remedy), f->remedy,
			  f->subject, at + strlen(word)) < (int)sizeof(text))
		words_text(out, text);
	else
		words_text(out, f->remedy);
}

/* One line for `n` findings that say the same. */
static void add_finding_line(
	const struct doctor_finding *f, size_t n, bool colour, struct buffer *out)
{
	const char *name = severities[f->severity].name;

	buffer_printf(out, "  %s%s%s%*s ", colour ? severities[f->severity].colour : "", name,
		colour ? "\033[0m" : "", (int)(strlen("warning") - strlen(name)), "");
	for (size_t i = 0; i < n && i < SHOWN_SUBJECTS; i++) {
		buffer_append_string(out, i ? ", " : "");
		words_text(out, f[i].subject);
	}
	if (n > SHOWN_SUBJECTS)
		buffer_printf(out, " and %zu more", n - SHOWN_SUBJECTS);
	buffer_append_string(out, ": ");
	words_text(out, f->finding);
	if (f->remedy) {
		buffer_append_string(out, " -> ");
		add_remedy_text(f, n == 1, out);
	}
	buffer_append(out, "\n", 1);
}

static void add_findings_table(
	const char *name, const struct doctor_list *l, bool colour, struct buffer *out)
{
	size_t n;

	if (l->count == 0)
		return;
	buffer_printf(out, "%s\n", name);
	for (size_t i = 0; i < l->count; i += n) {
		n = 1;
		while (i + n < l->count && l->items[i + n].group == l->items[i].group)
			n++;
		add_finding_line(&l->items[i], n, colour, out);
	}
}

static void add_findings_json(const char *name, const struct doctor_list *l, struct buffer *out)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct doctor_finding *f = &l->items[i];

		buffer_append_string(out, out->len > 1 ? ",\n" : "");
		json_writer_begin_object(out, NULL);
		json_writer_text(out, "check", name);
		json_writer_text(out, "subject", f->subject);
		json_writer_text(out, "severity", severities[f->severity].name);
		json_writer_text(out, "finding", f->finding);
		json_writer_text(out, "remedy", f->remedy);
		json_writer_end_object(out);
	}
}

/* Lines of the table, counts[severity]; the findings are sorted. */
static void count_findings(const struct run *run, size_t counts[DOCTOR_ERROR + 1])
{
	memset(counts, 0, (DOCTOR_ERROR + 1) * sizeof(*counts));
	for (size_t i = 0; i < CHECKS; i++)
		for (size_t k = 0; k < run->lists[i].count; k++)
			if (k == 0 ||
				run->lists[i].items[k].group != run->lists[i].items[k - 1].group)
				counts[run->lists[i].items[k].severity]++;
}

/* "1 error, 2 warnings, 0 notes, 12 good" */
static void add_sum(const size_t counts[DOCTOR_ERROR + 1], struct buffer *out)
{
	for (int s = DOCTOR_ERROR; s >= DOCTOR_OK; s--)
		buffer_printf(out, "%zu %s%s%s", counts[s], severities[s].sum,
			s != DOCTOR_OK && counts[s] != 1 ? "s" : "", s == DOCTOR_OK ? "\n" : ", ");
}

static int print_findings(struct run *run)
{
	size_t counts[DOCTOR_ERROR + 1];
	struct buffer out;
	int r;

	doctor_say_causes_once(run->lists, CHECKS);
	buffer_init(&out, MAX_OUTPUT);
	if (run->json)
		json_writer_begin_array(&out, NULL);
	for (size_t i = 0; i < CHECKS; i++)
		sort_findings(&run->lists[i]);
	count_findings(run, counts);
	for (size_t i = 0; i < CHECKS; i++) {
		if (run->json)
			add_findings_json(checks[i].name, &run->lists[i], &out);
		else
			add_findings_table(checks[i].name, &run->lists[i], show_colours(), &out);
	}
	if (run->json) {
		json_writer_end_array(&out);
		buffer_append(&out, "\n", 1);
	} else {
		add_sum(counts, &out);
	}
	r = cli_output("pullet doctor", &out);
	buffer_fini(&out);
	if (r)
		return r;
	return run->d.bad_settings ? CLI_CONFIG : counts[DOCTOR_ERROR] ? CLI_FAILED : CLI_OK;
}

/* ---- the command ---- */

static bool has_selected_config(const struct doctor *d)
{
	for (size_t i = 0; d->settings && i < d->settings->config_count; i++)
		if (doctor_is_selected(d, d->settings->configs[i]))
			return true;
	return !d->settings;
}

static void doctor_run_fini(struct run *run)
{
	for (size_t i = 0; i < CHECKS; i++)
		list_fini(&run->lists[i]);
	client_fini(&run->d.status);
	if (run->d.who.root >= 0)
		close(run->d.who.root);
	loop_free(run->d.loop);
	settings_free(run->d.settings);
}

int cli_doctor(int argc, char **argv)
{
	char path[PLACES_PATH];
	struct run run = {
		.d = {.path = places_configuration(path), .timeout_ms = 30000, .who.root = -1}};
	int r = options_read(&doctor_line, argc, argv, &run);

	if (r >= 0)
		return r;
	run.d.only = argv[optind];
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT); /* the push channel's lines are findings here */
	run.d.loop = require_memory(loop_new(&sys_real));
	run_doctor_checks(&run);
	r = has_selected_config(&run.d) ? print_findings(&run)
					: cli_error(CLI_NOT_FOUND, argv[0], "%s has no config '%s'",
						  run.d.path, run.d.only);
	if (run.hangs) /* a thread may never come back */
		_exit(r);
	doctor_run_fini(&run);
	return r;
}

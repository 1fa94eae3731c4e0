/*
 * pullet rollout: start, pause, resume, abort, status. Surprising: nobody but the command that runs
 * in the foreground makes a wave begin; when it ends, the rollout stays as far as it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "files/user.h"
#include "settings/form.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/rollout/drive.h"
#include "cli/rollout/place.h"
#include "cli/rollout/status.h"

#define MAX_OUTPUT (512u << 20)
#define MAX_SALT 255
#define TRIES 5 /* to pause or abort what is being changed meanwhile */

enum verb { START = 1, PAUSE = 2, RESUME = 4, ABORT = 8, STATUS = 16 };

struct rollout {
	enum verb verb;
	const char *command, *config;
	struct etcd_options where;
	const char *path;    /* the document's key, with --etcd */
	const char *version; /* NULL = the one that hosts hold */
	struct plan plan;    /* of the options */
	bool own_waves;      /* they are among the options */
	bool json;

	const char *key;
	struct etcd *document, *receipts;
};

/* ---- the document ---- */

static int document_failed(const struct rollout *r, int e, const char *why)
{
	if (e == -EINVAL)
		return cli_error(CLI_FAILED, r->command,
			"%s is no rollout document: %s: hosts hold back every new version until it "
			"is mended or deleted",
			r->key, why);
	if (e == -EPROTO)
		return cli_error(CLI_FAILED, r->command,
			"%s: %s: hosts go by the document, which this command cannot: mend or "
			"delete it",
			r->key, why);
	return cli_error(CLI_FAILED, r->command, "%s: %s", etcd_name(r->document), why);
}

static void sign_plan(const struct rollout *r, struct plan *p)
{
	const struct sys *sys = loop_sys(etcd_loop(r->document));
	char user[USER_TEXT], host[HOST_NAME_MAX + 1] = "";

	user_describe(sys, getuid(), user);
	if (gethostname(host, sizeof(host)))
		host[0] = '\0';
	snprintf(p->by, sizeof(p->by), "%s%s%s", user, host[0] ? " at " : "", host);
	p->since_ms = sys->wall_ms();
	p->why[0] = '\0';
	snprintf(p->driver, sizeof(p->driver), "%016" PRIx64, sys->random());
}

static int write_failed(const struct rollout *r, int e, const char *why)
{
	return cli_error(CLI_FAILED, r->command,
		"%s: %s%s: `pullet rollout status %s` shows how it is now", etcd_name(r->document),
		why, e == -EEXIST ? "" : ": it may be written, or not", r->config);
}

static int drive(const struct rollout *r, const struct plan *p)
{
	const struct drive_rollout o = {
		.command = r->command,
		.config = r->config,
		.key = r->key,
		.document = r->document,
		.receipts = r->receipts,
		.driver = p->driver,
	};

	return drive_run(&o);
}

/* ---- start, resume ---- */

static int refuse_running(const struct rollout *r, const struct plan *p)
{
	char text[16];

	return cli_error(CLI_FAILED, r->command,
		"a rollout of %s is %s, at %s%%, by %s: `pullet rollout resume %s` goes on with "
		"it, `pullet rollout abort %s` ends it",
		p->version[0] ? p->version : "a version to come", plan_state_name(p->state),
		plan_percent_text(plan_percent(p), text), p->by, r->config, r->config);
}

static bool is_open(const struct plan *p)
{
	return p->state == PLAN_RUNNING || p->state == PLAN_PAUSED;
}

/* A first wave without a host would prove nothing: the default one grows until it reaches one, and
 * another is refused. Agents without receipts are not known. */
static int fit_first_wave(
	const struct rollout *r, struct plan *p, const struct roster_row *rows, size_t count)
{
	char least[16], first[16];
	uint32_t percent;

	if (tally_least(p, r->config, rows, count, &percent))
		return cli_error(CLI_FAILED, r->command, "out of memory");
	if (!percent && p->label_count && count)
		return cli_error(CLI_FAILED, r->command,
			"no host with a receipt has all of these labels: `pullet fleet %s --json` "
			"lists the hosts with theirs",
			r->config);
	if (percent <= p->waves[0])
		return CLI_OK;
	plan_percent_text(percent, least);
	plan_percent_text(p->waves[0], first);
	if (r->own_waves)
		return cli_error(CLI_FAILED, r->command,
			"the first wave, %s%%, reaches no host: the first one is reached at %s%%, "
			"so give --waves from there on, or another --salt",
			first, least);
	while (p->wave_count > 1 && p->waves[1] <= percent)
		memmove(p->waves, p->waves + 1, --p->wave_count * sizeof(p->waves[0]));
	p->waves[0] = percent;
	cli_note(r->command, "the first wave is %s%% of the hosts: %s%% reaches none of them",
		least, first);
	return CLI_OK;
}

/* A version may come later; it may also be misspelt. */
static void warn_unknown(const struct rollout *r, const struct roster_row *rows, size_t count)
{
	const char *version = r->plan.version, *held;

	if (!version[0] || tally_knows(rows, count, version))
		return;
	if (tally_held_version(&r->plan, rows, count, &held) == 1)
		cli_note(r->command,
			"no host has seen %s yet, and %s is what they hold back: if you mean that "
			"one, `pullet rollout abort %s`, and start again",
			version, held, r->config);
	else
		cli_note(r->command,
			"no host has seen %s yet: publish it now; if it is misspelt, `pullet "
			"rollout abort %s`",
			version, r->config);
}

/* Looks at the fleet before anything is written. An etcd that does not answer is the driver's
 * matter. */
static int look_at_fleet(struct rollout *r)
{
	struct roster_row *rows;
	struct roster *roster;
	char why[FILE_WHY];
	size_t count;
	int code;

	if (drive_read_rows(r->receipts, r->config, &roster, &rows, &count, why))
		return CLI_OK;
	code = fit_first_wave(r, &r->plan, rows, count);
	if (code == CLI_OK)
		warn_unknown(r, rows, count);
	free(rows);
	roster_free(roster);
	return code;
}

static int start_rollout(struct rollout *r)
{
	char why[FILE_WHY];
	struct plan old;
	uint64_t revision;
	bool open;
	int code, e = place_read(r->document, r->key, &old, &revision, why);

	if (e)
		return document_failed(r, e, why);
	plan_keep_aborted(&r->plan, &old);
	open = is_open(&old);
	code = open ? refuse_running(r, &old) : CLI_OK;
	plan_fini(&old);
	if (!open)
		code = look_at_fleet(r);
	if (code != CLI_OK)
		return code;
	r->plan.state = PLAN_RUNNING;
	r->plan.wave = r->plan.version[0] ? 1 : 0;
	sign_plan(r, &r->plan);
	e = place_write(r->document, r->key, &r->plan, revision, why);
	return e ? write_failed(r, e, why) : drive(r, &r->plan);
}

static int refuse_other(const struct rollout *r, const struct plan *p, const char *verb)
{
	if (p->state == PLAN_NONE)
		return cli_error(CLI_FAILED, r->command,
			"there is no rollout of %s that `pullet rollout start` began", r->config);
	return cli_error(CLI_FAILED, r->command, "the rollout of %s is %s: it cannot be %s",
		p->version[0] ? p->version : r->config, plan_state_name(p->state), verb);
}

static int resume_rollout(struct rollout *r)
{
	char why[FILE_WHY];
	struct plan p;
	uint64_t revision;
	int code, e = place_read(r->document, r->key, &p, &revision, why);

	if (e)
		return document_failed(r, e, why);
	if (is_open(&p)) {
		p.state = PLAN_RUNNING;
		sign_plan(r, &p);
		e = place_write(r->document, r->key, &p, revision, why);
		code = e ? write_failed(r, e, why) : drive(r, &p);
	} else {
		code = refuse_other(r, &p, "resumed");
	}
	plan_fini(&p);
	return code;
}

/* ---- pause, abort ---- */

/* Does this rollout get the state? A finished one may be aborted, for hosts that have not got it.
 */
static bool may_become(const struct plan *p, enum plan_state state)
{
	return is_open(p) || (state == PLAN_ABORTED && p->state == PLAN_FINISHED);
}

static void say_paused(const struct rollout *r, const struct plan *p)
{
	char text[16];

	printf("%s: paused at %s%%: `pullet rollout resume %s` goes on\n", r->config,
		plan_percent_text(plan_percent(p), text), r->config);
}

/* Notes the digest in the document of an abort, where its driver could not. */
static int write_digest(
	const struct rollout *r, const struct plan *aborted, const char *digest, char why[FILE_WHY])
{
	uint64_t revision;
	struct plan p;
	int e = place_read(r->document, r->key, &p, &revision, why);

	if (e)
		return e;
	if (p.state == PLAN_ABORTED && strcmp(p.version, aborted->version) == 0) {
		snprintf(p.digest, sizeof(p.digest), "%s", digest);
		e = place_write(r->document, r->key, &p, revision, why);
	}
	plan_fini(&p);
	return e;
}

/* Where its driver could not. The version is held already, by its name. */
static void note_digest(const struct rollout *r, const struct plan *aborted,
	const struct roster_row *rows, size_t count)
{
	const char *digest = tally_digest(rows, count, aborted->version);
	char why[FILE_WHY];

	if (aborted->digest[0] || !digest || !digest[0])
		return;
	if (write_digest(r, aborted, digest, why))
		cli_note(r->command, "%s is held by its name only, not by its bytes: %s",
			aborted->version, why);
}

static void finish_abort(const struct rollout *r, const struct plan *p)
{
	struct roster_row *rows;
	struct roster *roster;
	struct tally t;
	char why[FILE_WHY];
	size_t count;

	printf("%s: aborted: no other host takes it\n", r->config);
	fflush(stdout);
	if (drive_read_rows(r->receipts, r->config, &roster, &rows, &count, why)) {
		cli_note(r->command, "%s: %s: which hosts run it is unknown",
			etcd_name(r->receipts), why);
		return;
	}
	if (tally_count(p, r->config, rows, count, 0, &t) == 0)
		drive_say_way_back(r->command, p, &t);
	note_digest(r, p, rows, count);
	free(rows);
	roster_free(roster);
}

/* One try. -EEXIST: again. */
static int change_state(struct rollout *r, enum plan_state state, int *ret_code)
{
	const char *done = state == PLAN_PAUSED ? "paused" : "aborted";
	char why[FILE_WHY];
	struct plan p;
	uint64_t revision;
	int e = place_read(r->document, r->key, &p, &revision, why);

	if (e) {
		*ret_code = document_failed(r, e, why);
		return 0;
	}
	if (p.state != state && !may_become(&p, state)) {
		*ret_code = refuse_other(r, &p, done);
	} else {
		if (p.state != state) {
			p.state = state;
			sign_plan(r, &p);
			e = place_write(r->document, r->key, &p, revision, why);
		}
		*ret_code = e ? CLI_FAILED : CLI_OK;
		if (e && e != -EEXIST)
			write_failed(r, e, why);
		else if (e == 0 && state == PLAN_PAUSED)
			say_paused(r, &p);
		else if (e == 0)
			finish_abort(r, &p);
	}
	plan_fini(&p);
	return e == -EEXIST ? e : 0;
}

static int end_rollout(struct rollout *r, enum plan_state state)
{
	int code = CLI_OK;

	for (int i = 0; i < TRIES; i++)
		if (change_state(r, state, &code) != -EEXIST)
			return code;
	return write_failed(r, -EEXIST, "somebody else keeps changing the rollout");
}

/* ---- status ---- */

static int print_rollout_status(const struct rollout *r, const struct status_rollout *s)
{
	struct buffer out;
	int code;

	buffer_init(&out, MAX_OUTPUT);
	if (r->json ? status_json(s, &out) : status_show(s, &out))
		code = cli_error(CLI_FAILED, r->command, "out of memory");
	else
		code = cli_output(r->command, &out);
	if (code == CLI_OK && s->count == 0)
		code = r->json ? CLI_NOT_FOUND
			       : cli_error(CLI_NOT_FOUND, r->command,
					 "no host that has %s has a receipt below %s at %s",
					 r->config, etcd_prefix(r->receipts),
					 etcd_name(r->receipts));
	buffer_fini(&out);
	return code;
}

/* When the driver spoke last: by its note, or, before it wrote one, by the document. */
static void read_driver(const struct rollout *r, const struct plan *p, struct status_rollout *s)
{
	struct place_note note;
	char why[FILE_WHY];

	s->driven_ms = p->since_ms;
	s->driver_known = true;
	if (p->state != PLAN_RUNNING)
		return;
	if (place_read_note(r->document, r->key, &note, why) == 0 &&
		strcmp(note.driver, p->driver) == 0)
		s->driven_ms = note.at_ms;
	else
		s->driver_known = s->wall_ms - p->since_ms < DRIVE_SILENT_MS;
}

static int show_status(struct rollout *r)
{
	struct status_rollout s = {
		.config = r->config, .key = r->key, .wall_ms = sys_real.wall_ms()};
	struct roster_row *rows;
	struct roster *roster;
	struct plan p;
	struct tally t;
	char why[FILE_WHY];
	int code, e = place_read(r->document, r->key, &p, &s.revision, why);

	if (e)
		return document_failed(r, e, why);
	if (drive_read_rows(r->receipts, r->config, &roster, &rows, &s.count, why)) {
		plan_fini(&p);
		return cli_error(CLI_FAILED, r->command, "%s: %s", etcd_name(r->receipts), why);
	}
	read_driver(r, &p, &s);
	s.plan = &p;
	s.tally = &t;
	s.rows = rows;
	if (tally_count(&p, r->config, rows, s.count, s.wall_ms, &t))
		code = cli_error(CLI_FAILED, r->command, "out of memory");
	else
		code = print_rollout_status(r, &s);
	free(rows);
	roster_free(roster);
	plan_fini(&p);
	return code;
}

/* ---- options ---- */

static int read_wave_list(void *target, const char *command, char *text)
{
	struct rollout *r = target;
	struct plan *p = &r->plan;
	const char *at = text;
	bool good = true;

	r->own_waves = true;
	p->wave_count = 0;
	do {
		uint32_t *to = &p->waves[p->wave_count];

		good = p->wave_count < ROLLOUT_MAX_WAVES && plan_read_percent(at, &at, to) &&
		       *to > 0 && (p->wave_count == 0 || *to > to[-1]) &&
		       (*at == ',' || *at == '\0');
		p->wave_count++;
	} while (good && *at++ == ',');
	return good ? CLI_OK
		    : cli_error(CLI_USAGE, command,
			      "--waves takes rising percentages above 0 and up to 100, as in "
			      "1%%,10%%,100%%, at most %d, not '%s'",
			      ROLLOUT_MAX_WAVES, text);
}

static int read_abort_limit(void *target, const char *command, char *text)
{
	struct plan *p = &((struct rollout *)target)->plan;
	const char *end = text;

	if (plan_read_percent(text, &end, &p->abort_at) && *end == '\0' && p->abort_at > 0)
		return CLI_OK;
	return cli_error(CLI_USAGE, command,
		"--abort-at takes a percentage above 0 and up to 100, as in 2%%, not '%s'", text);
}

static int read_host_label(void *target, const char *command, char *text)
{
	struct plan *p = &((struct rollout *)target)->plan;
	char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return cli_error(CLI_USAGE, command, "--label takes NAME=VALUE, not '%s'", text);
	if (p->label_count == PLAN_LABELS)
		return cli_error(CLI_USAGE, command, "at most %d labels", PLAN_LABELS);
	*equals = '\0';
	for (size_t i = 0; i < p->label_count; i++)
		if (strcmp(p->labels[i].name, text) == 0)
			return cli_error(CLI_USAGE, command, "the label %s is given twice", text);
	p->labels[p->label_count++] = (struct roster_label){text, equals + 1};
	return CLI_OK;
}

static const struct option_row rollout_rows[] = {
	{"waves", "LIST",
		"percentages of the hosts (default 1%,10%,50%,100%, the first\nof which is as "
		"large "
		"as it takes to reach a host)",
		OPTION_READ, .read = read_wave_list, .forms = START},
	{"every", "DURATION",
		"watch a wave that long, once its hosts have decided, before\nthe next one begins "
		"(default 10m)",
		OPTION_DURATION, .at = offsetof(struct rollout, plan.every_ms), .forms = START},
	{"abort-at", "P",
		"abort when P percent of the hosts that the waves have reached\nrejected the "
		"version or "
		"rolled it back (default 2%)",
		OPTION_READ, .read = read_abort_limit, .forms = START},
	{"timeout", "DURATION",
		"pause, with exit code 4, when no host runs the version for\nthat long (default "
		"1h)",
		OPTION_DURATION, .at = offsetof(struct rollout, plan.timeout_ms), .forms = START},
	{"version", "V",
		"the version that is rolled out (default: the one that hosts\nhold back, waited "
		"for)",
		OPTION_TEXT, .at = offsetof(struct rollout, version), .forms = START},
	{"label", "K=V", "only hosts with this label; repeat it for several", OPTION_READ,
		.read = read_host_label, .forms = START},
	{"salt", "TEXT", "another salt, another order of hosts (default: the config's name)",
		OPTION_TEXT, .at = offsetof(struct rollout, plan.salt), .forms = START},
	{"json", NULL, "print JSON", OPTION_FLAG, .at = offsetof(struct rollout, json),
		.forms = STATUS},
	ETCD_OPTION_ROWS(struct rollout, where),
	{"path", "KEY", "the key of the rollout document, with --etcd", OPTION_TEXT,
		.at = offsetof(struct rollout, path)},
	{0},
};

#define ROLLOUT_LINE(bit, least, sentence)                                                         \
	{                                                                                          \
		.usage = rollout_usage, .rows = rollout_rows, .min = least, .max = 1,              \
		.wants = sentence, .form = bit                                                     \
	}

static const char rollout_usage[] =
	"Usage: pullet rollout start CONFIG [--version V] [--waves LIST] [--every D]\n"
	"                      [--abort-at P] [--timeout D] [--label K=V]... [--salt TEXT]\n"
	"       pullet rollout pause CONFIG\n"
	"       pullet rollout resume CONFIG\n"
	"       pullet rollout abort CONFIG\n"
	"       pullet rollout status CONFIG [--json]\n"
	"Brings a version to a fleet in waves, by the rollout document in etcd that its agents "
	"read,\n"
	"and aborts it by their receipts. start and resume stay in the foreground, and drive the\n"
	"waves; when they end the rollout stays as far as it is.\n";

static const struct verb_row {
	const char *name;
	enum verb verb;
	struct command_line line;
} verb_rows[] = {
	{"start", START, ROLLOUT_LINE(START, 1, "name one config")},
	{"pause", PAUSE, ROLLOUT_LINE(PAUSE, 1, "name one config")},
	{"resume", RESUME, ROLLOUT_LINE(RESUME, 1, "name one config")},
	{"abort", ABORT, ROLLOUT_LINE(ABORT, 1, "name one config")},
	{"status", STATUS, ROLLOUT_LINE(STATUS, 1, "name one config")},
};
static const char wants_verb[] = "say start, pause, resume, abort or status";
static const struct command_line no_verb = ROLLOUT_LINE(0, 0, wants_verb);
enum { VERBS = sizeof(verb_rows) / sizeof(verb_rows[0]) };

/* Of the word behind "rollout"; NULL = none of them. */
static const struct verb_row *find_verb(const char *word)
{
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(verb_rows[i].name, word) == 0)
			return &verb_rows[i];
	return NULL;
}

static int check_rollout_options(struct rollout *r)
{
	const char *why = settings_check_name(r->config);

	if (why)
		return cli_error(CLI_USAGE, r->command, "the config's name %s", why);
	if (r->version && !r->version[0])
		return cli_error(CLI_USAGE, r->command, "--version takes a version, not nothing");
	if (r->where.url && !r->path)
		return cli_error(CLI_USAGE, r->command,
			"--etcd needs --path, the key of the rollout document");
	if (r->where.url && r->path[0] != '/')
		return cli_error(CLI_USAGE, r->command,
			"--path is a key as the agents' rollout has it, with a slash in front: "
			"they would not read '%s'",
			r->path);
	if (!r->where.url && r->path)
		return cli_error(CLI_USAGE, r->command,
			"--path belongs to --etcd: the agent's configuration names the document "
			"itself");
	if (r->plan.salt && strlen(r->plan.salt) > MAX_SALT)
		return cli_error(CLI_USAGE, r->command, "--salt takes at most %d bytes", MAX_SALT);
	if (r->version)
		receipt_version(r->version, r->plan.version);
	return etcd_check_options(&r->where);
}

static int run_rollout_verb(struct rollout *r)
{
	switch (r->verb) {
	case START:
		return start_rollout(r);
	case PAUSE:
		return end_rollout(r, PLAN_PAUSED);
	case RESUME:
		return resume_rollout(r);
	case ABORT:
		return end_rollout(r, PLAN_ABORTED);
	case STATUS:
		return show_status(r);
	}
	return CLI_USAGE;
}

static int open_and_run(struct rollout *r)
{
	struct etcd_options document = r->where;
	int code;

	if (!document.url) {
		document.rollout_of = r->config;
		document.server = NULL;
	}
	code = etcd_open(&document, &r->document);
	if (code == CLI_OK)
		code = etcd_open(&r->where, &r->receipts);
	if (code == CLI_OK) {
		r->key = r->path ? r->path : etcd_rollout_key(r->document);
		code = run_rollout_verb(r);
	}
	etcd_close(r->receipts);
	etcd_close(r->document);
	return code;
}

int cli_rollout(int argc, char **argv)
{
	static const struct descriptors_need needs[] = {
		{"event loops", 2 * LOOP_DESCRIPTORS}, {"requests", 16}, {"files", CLI_FILES}};
	static const struct plan defaults = {
		.waves = {1000, 10000, 50000, 100000},
		.wave_count = 4,
		.every_ms = 600000,
		.abort_at = 2000,
		.timeout_ms = PLAN_TIMEOUT_MS,
	};
	const struct verb_row *v = argc > 1 ? find_verb(argv[1]) : NULL;
	struct rollout r = {.plan = defaults};
	char name[64];
	int code;

	if (!v) {
		code = options_read(&no_verb, argc, argv, &r); /* --help */
		return code >= 0 ? code : options_misused(&no_verb, argv[0], wants_verb);
	}
	snprintf(name, sizeof(name), "%s %s", argv[0], v->name);
	argv[1] = name;
	r.verb = v->verb;
	r.command = r.where.command = name;
	code = options_read(&v->line, argc - 1, argv + 1, &r);
	if (code >= 0)
		return code;
	r.config = argv[1 + optind];
	if (check_rollout_options(&r))
		return CLI_USAGE;
	sys_forbid_dumps();
	code = cli_room(r.command, needs, sizeof(needs) / sizeof(needs[0]));
	return code == CLI_OK ? open_and_run(&r) : code;
}

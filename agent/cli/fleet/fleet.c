/*
 * pullet fleet: which hosts run a version? Surprising: the expected hosts are those whose agents
 * wrote a "known" key at their first start; nothing deletes it, so a dead host counts as behind
 * until `pullet fleet forget`.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "text/json_writer.h"
#include "base/loop.h"
#include "settings/form.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/fleet/show.h"
#include "cli/fleet/follow.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

#define MAX_LABELS 16
#define MAX_NOTES 10
#define MAX_OUTPUT (512u << 20)
#define WHOLE 100000u /* 100 % */

enum verb { LIST = 1, WAIT = 2, FORGET = 4 };

struct fleet {
	enum verb verb;
	const char *command;
	struct etcd_options where;
	const char *name;    /* a config, or a host; NULL = all */
	const char *version; /* NULL = the newest */
	struct roster_label labels[MAX_LABELS];
	size_t label_count;
	bool json, watch, all, ghosts, force;
	uint64_t percent; /* of WHOLE */
	uint64_t timeout_ms, hosts;

	struct etcd *etcd;
	struct buffer shown; /* last */
	struct buffer apart; /* invalid receipts, last */
	unsigned notes;
	bool seen;    /* receipts were read */
	bool missing; /* no host has the config */
	int error;    /* while showing */
};

/* ---- output ---- */

static void print_note(void *arg, const char *text)
{
	struct fleet *f = arg;
	struct buffer clean;

	if (f->notes++ >= MAX_NOTES)
		return;
	buffer_init(&clean, 4096);
	words_text(&clean, text);
	cli_note(f->command, "%s%s", clean.data ? clean.data : "",
		f->notes == MAX_NOTES ? " (further notes are not shown)" : "");
	buffer_fini(&clean);
}

/* Adds each config, a section or an object. */
static int add_sums(const struct fleet *f, const struct roster_row *rows, size_t count, int fd,
	struct buffer *out)
{
	const struct fleet_style style = {.all = f->all, .colour = show_colours_on(fd)};
	struct roster_sum s;

	for (size_t i = 0; i < count; i += s.count) {
		if (roster_sum(rows + i, count - i, f->version, &s))
			return -ENOMEM;
		if (i && !f->json)
			buffer_append_string(out, "\n");
		if (f->json)
			fleet_json(&s, out);
		else
			fleet_table(&s, &style, out);
		roster_sum_fini(&s);
	}
	return out->error;
}

static int select_rows(const struct fleet *f, const struct roster *roster,
	struct roster_row **ret_rows, size_t *ret_count)
{
	const struct roster_filter filter = {
		.config = f->name, .labels = f->labels, .label_count = f->label_count};

	return roster_rows(roster, &filter, ret_rows, ret_count);
}

/* Keeps the list of invalid receipts. */
static void keep_ghosts(struct fleet *f, const struct roster *roster)
{
	buffer_clear(&f->apart);
	fleet_ghosts(roster, f->ghosts, &f->apart);
}

/* Prints it on standard error. */
static void print_ghosts(const struct fleet *f)
{
	if (f->apart.data && f->apart.len)
		fputs(f->apart.data, stderr);
}

/* Without the end, which has the revision: that grows with every write to etcd. */
static int write_list_start(struct fleet *f, const struct roster *roster, struct buffer *out)
{
	struct roster_row *rows;
	size_t count;
	int e = select_rows(f, roster, &rows, &count);

	if (e)
		return e;
	f->missing = count == 0;
	if (f->json) {
		json_writer_begin_object(out, NULL);
		json_writer_text(out, "prefix", etcd_prefix(f->etcd));
		json_writer_begin_array(out, "configs");
	}
	e = add_sums(f, rows, count, STDOUT_FILENO, out);
	free(rows);
	keep_ghosts(f, roster);
	if (f->json) {
		json_writer_end_array(out);
		json_writer_member(out, "ghosts");
		fleet_json_ghosts(roster, out);
	} else if (f->apart.len) {
		buffer_append_string(out, count ? "\n" : "");
		buffer_append(out, f->apart.data, f->apart.len);
	}
	return e ? e : out->error ? out->error : f->apart.error;
}

static int write_list_end(const struct fleet *f, uint64_t revision, struct buffer *out)
{
	if (!f->json)
		return out->error;
	json_writer_number(out, "revision", revision);
	json_writer_end_object(out);
	return buffer_append(out, "\n", 1);
}

static int print_missing(const struct fleet *f)
{
	print_ghosts(f);
	return cli_error(CLI_NOT_FOUND, f->command, "no host%s%s%s has a receipt below %s at %s",
		f->label_count ? " with these labels" : "", f->name ? " that has " : "",
		f->name ? f->name : "", etcd_prefix(f->etcd), etcd_name(f->etcd));
}

static int list_fleet(struct fleet *f)
{
	const struct follow_calls calls = {.note = print_note, .arg = f};
	struct roster *roster;
	struct buffer out;
	char why[FILE_WHY];
	uint64_t revision;
	int r;

	if (follow_read(f->etcd, &calls, &roster, &revision, why))
		return cli_error(CLI_FAILED, f->command, "%s: %s", etcd_name(f->etcd), why);
	buffer_init(&out, MAX_OUTPUT);
	if (write_list_start(f, roster, &out) || write_list_end(f, revision, &out))
		r = cli_error(CLI_FAILED, f->command, "out of memory");
	else if (f->missing && !f->json)
		r = print_missing(f);
	else
		r = cli_output(f->command, &out);
	if (r == CLI_OK && f->missing)
		r = CLI_NOT_FOUND;
	buffer_fini(&out);
	roster_free(roster);
	return r;
}

/* ---- --watch ---- */

/* On a terminal in place of the last output; else below it, with the time. */
static int print_change(const struct fleet *f, uint64_t revision)
{
	const struct sys *sys = loop_sys(etcd_loop(f->etcd));
	struct buffer out;
	int r;

	buffer_init(&out, MAX_OUTPUT);
	if (!f->json && isatty(STDOUT_FILENO))
		buffer_append_string(&out, "\033[H\033[J");
	if (!f->json) {
		words_time(&out, sys->wall_ms());
		buffer_append_string(&out, f->missing ? " no host has a receipt\n" : "\n");
	}
	buffer_append(&out, f->shown.data ? f->shown.data : "", f->shown.len);
	r = write_list_end(f, revision, &out) ? CLI_FAILED : cli_output(f->command, &out);
	buffer_fini(&out);
	return r;
}

static bool show_change(void *arg, const struct roster *roster, uint64_t revision)
{
	struct fleet *f = arg;
	struct buffer list;
	bool same;

	buffer_init(&list, MAX_OUTPUT);
	if (write_list_start(f, roster, &list)) {
		buffer_fini(&list);
		f->error = cli_error(CLI_FAILED, f->command, "out of memory");
		return true;
	}
	same = f->seen && list.len == f->shown.len &&
	       (list.len == 0 || memcmp(list.data, f->shown.data, list.len) == 0);
	buffer_fini(&f->shown);
	f->shown = list;
	f->seen = true;
	if (!same)
		f->error = print_change(f, revision);
	return f->error;
}

static int watch_fleet(struct fleet *f)
{
	const struct follow_calls calls = {.show = show_change, .note = print_note, .arg = f};
	char why[FILE_WHY];

	if (follow_run(f->etcd, &calls, 0, why))
		return cli_error(CLI_FAILED, f->command, "%s: %s", etcd_name(f->etcd), why);
	return f->error;
}

/* ---- wait ---- */

static bool is_enough(const struct fleet *f, const struct roster_sum *s)
{
	uint64_t of = s->count > f->hosts ? s->count : f->hosts;

	return s->count > 0 && (uint64_t)s->on_it * WHOLE >= f->percent * of;
}

static void show_progress(const struct roster_sum *s)
{
	struct buffer line;

	if (!isatty(STDERR_FILENO))
		return;
	buffer_init(&line, 4096);
	fleet_headline(s, &line);
	if (line.len)
		fprintf(stderr, "\r\033[K%.*s", (int)line.len - 1, line.data);
	buffer_fini(&line);
}

/* The output if this is the last state; short when done. */
static void make_last(
	const struct fleet *f, const struct roster_sum *s, bool done, struct buffer *out)
{
	const struct fleet_style style = {.all = f->all, .colour = show_colours_on(STDERR_FILENO)};

	buffer_clear(out);
	if (f->json) {
		fleet_json(s, out);
		buffer_append_string(out, "\n");
		return;
	}
	fleet_headline(s, out);
	if (!done)
		fleet_hosts(s, &style, out);
}

static bool show_wait(void *arg, const struct roster *roster, uint64_t revision)
{
	struct fleet *f = arg;
	struct roster_row *rows = NULL;
	struct roster_sum s;
	size_t count;
	bool done = false;
	int e = select_rows(f, roster, &rows, &count);

	(void)revision;
	f->seen = true;
	keep_ghosts(f, roster);
	f->missing = e == 0 && count == 0;
	if (e == 0 && count)
		e = roster_sum(rows, count, f->version, &s);
	if (e == 0 && count) {
		done = is_enough(f, &s);
		make_last(f, &s, done, &f->shown);
		show_progress(&s);
		roster_sum_fini(&s);
	}
	free(rows);
	if (e)
		f->error = cli_error(CLI_FAILED, f->command, "out of memory");
	return done || e;
}

static int wait_timed_out_at(const struct fleet *f, const char *why)
{
	if (!f->seen)
		return cli_error(
			CLI_TIMED_OUT, f->command, "timed out: %s: %s", etcd_name(f->etcd), why);
	if (f->missing)
		return cli_error(CLI_TIMED_OUT, f->command,
			"timed out: no host%s has %s in its receipt below %s",
			f->label_count ? " with these labels" : "", f->name, etcd_prefix(f->etcd));
	if (f->json)
		cli_output(f->command, &f->shown);
	else if (f->shown.data)
		fputs(f->shown.data, stderr);
	return cli_error(CLI_TIMED_OUT, f->command,
		"timed out: %" PRIu64 ".%03" PRIu64 "%% of the hosts%s were required",
		f->percent / 1000, f->percent % 1000, f->hosts ? " (of --hosts at least)" : "");
}

static int wait_for_version(struct fleet *f)
{
	const struct follow_calls calls = {.show = show_wait, .note = print_note, .arg = f};
	uint64_t deadline_ms = loop_now_ms(etcd_loop(f->etcd)) + f->timeout_ms;
	char why[FILE_WHY];
	int r = follow_run(f->etcd, &calls, deadline_ms, why);

	if (isatty(STDERR_FILENO) && f->seen)
		fputs("\r\033[K", stderr);
	print_ghosts(f);
	if (r == -ETIMEDOUT)
		return wait_timed_out_at(f, why);
	if (r)
		return cli_error(CLI_FAILED, f->command, "%s: %s", etcd_name(f->etcd), why);
	return f->error ? f->error : cli_output(f->command, &f->shown);
}

/* ---- forget ---- */

static int build_forget(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct fleet *f = arg;
	const char *prefix = etcd_prefix(f->etcd);
	char key[1024];
	int e = etcd_request_begin(place, ETCD_STORE_TXN, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	if (!f->force) {
		snprintf(key, sizeof(key), "%.900s%s", prefix, f->name);
		json_writer_begin_array(&r->body, "compare");
		etcd_store_compare(&r->body, key, &etcd_store_absent, 0);
		json_writer_end_array(&r->body);
	}
	snprintf(key, sizeof(key), "%.900s" RECEIPT_KNOWN "%s", prefix, f->name);
	json_writer_begin_array(&r->body, "success");
	json_writer_begin_object(&r->body, NULL);
	json_writer_begin_object(&r->body, "request_delete_range");
	etcd_request_bytes(&r->body, "key", key, strlen(key));
	json_writer_end_object(&r->body);
	json_writer_end_object(&r->body);
	json_writer_end_array(&r->body);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

static uint64_t count_deleted(const struct node *root)
{
	const struct node *n = node_member(root, "responses", NODE_LIST);

	return etcd_store_number(
		node_find(n ? n->first : NULL, "response_delete_range"), "deleted");
}

static int forget_host(struct fleet *f)
{
	struct etcd_store_answer a;
	char why[FILE_WHY];
	int r = CLI_OK;

	if (etcd_ask(f->etcd, build_forget, f, &a, why))
		return cli_error(CLI_FAILED, f->command, "%s: %s", etcd_name(f->etcd), why);
	if (!node_is_true(a.root, "succeeded"))
		r = cli_error(CLI_FAILED, f->command,
			"%s is alive: stop its agent, and wait until its receipt is gone (the ttl "
			"of its report)",
			f->name);
	else if (count_deleted(a.root) == 0)
		r = cli_error(CLI_NOT_FOUND, f->command, "no host %s is known below %s", f->name,
			etcd_prefix(f->etcd));
	else
		printf("%s is forgotten\n", f->name);
	etcd_store_answer_fini(&a);
	return r;
}

/* ---- options ---- */

/* "99", "99.9%". */
static int read_percentage(void *target, const char *command, char *text)
{
	struct fleet *f = target;
	uint64_t n = 0, unit = 1000;
	const char *p = text;

	while (*p >= '0' && *p <= '9' && n <= 100)
		n = n * 10 + (uint64_t)(*p++ - '0');
	n *= 1000;
	if (p > text && *p == '.' && p[1] >= '0' && p[1] <= '9')
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++)
			n += (unit /= 10) * (uint64_t)(*p - '0');
	if (*p == '%')
		p++;
	if (p == text || *p || n == 0 || n > WHOLE)
		return cli_error(CLI_USAGE, command,
			"--percent takes a number above 0 and up to 100, with at most three "
			"decimals, not '%s'",
			text);
	f->percent = n;
	return CLI_OK;
}

static int read_label(void *target, const char *command, char *text)
{
	struct fleet *f = target;
	char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return cli_error(CLI_USAGE, command, "--label takes NAME=VALUE, not '%s'", text);
	if (f->label_count == MAX_LABELS)
		return cli_error(CLI_USAGE, command, "at most %d labels", MAX_LABELS);
	*equals = '\0';
	f->labels[f->label_count++] = (struct roster_label){text, equals + 1};
	return CLI_OK;
}

static const struct option_row fleet_rows[] = {
	{"version", "V", "the wanted version, or its digest (default: the newest)", OPTION_TEXT,
		.at = offsetof(struct fleet, version), .forms = LIST | WAIT},
	{"label", "K=V", "only hosts with this label; repeat it for several", OPTION_READ,
		.read = read_label, .forms = LIST | WAIT},
	{"all", NULL, "list all hosts, not only the first that are behind", OPTION_FLAG,
		.at = offsetof(struct fleet, all), .forms = LIST | WAIT},
	{"ghosts", NULL, "list invalid receipts, which do not count", OPTION_FLAG,
		.at = offsetof(struct fleet, ghosts), .forms = LIST | WAIT},
	{"json", NULL, "print JSON, always with all hosts", OPTION_FLAG,
		.at = offsetof(struct fleet, json), .forms = LIST | WAIT},
	{"watch", NULL, "keep running, and print each change", OPTION_FLAG,
		.at = offsetof(struct fleet, watch), .forms = LIST},
	{"percent", "P", "of the hosts, up to three decimals (default 100)", OPTION_READ,
		.read = read_percentage, .forms = WAIT},
	{"hosts", "N", "count at least N hosts", OPTION_NUMBER, .at = offsetof(struct fleet, hosts),
		.forms = WAIT, .min = 1, .max = 100000000, .takes = "a number of hosts"},
	{"timeout", "DURATION", "give up after that long (default 10m), exit 4", OPTION_DURATION,
		.at = offsetof(struct fleet, timeout_ms), .forms = WAIT},
	{"force", NULL, "forget a host that is alive", OPTION_FLAG,
		.at = offsetof(struct fleet, force), .forms = FORGET},
	ETCD_OPTION_ROWS(struct fleet, where),
	{0},
};

#define FLEET_LINE(bit, least, sentence)                                                           \
	{                                                                                          \
		.usage = fleet_usage, .rows = fleet_rows, .min = least, .max = 1,                  \
		.wants = sentence, .form = bit                                                     \
	}

static const char fleet_usage[] =
	"Usage: pullet fleet [CONFIG] [--version V] [--label K=V]... [--all] [--ghosts]\n"
	"                    [--json] [--watch]\n"
	"       pullet fleet wait CONFIG --version V [--percent P] [--hosts N] [--timeout D]\n"
	"                    [--label K=V]... [--all] [--ghosts] [--json]\n"
	"       pullet fleet forget HOST [--force]\n"
	"Shows which hosts run which version, from the receipts that agents with report: write to "
	"etcd;\n"
	"waits until hosts run a version; forgets a host that is gone.\n";

/* By verb. */
static const struct command_line fleet_lines[] = {
	[LIST] = FLEET_LINE(LIST, 0, "one config at most; without one all are shown"),
	[WAIT] = FLEET_LINE(WAIT, 1, "name one config, and the --version to wait for"),
	[FORGET] = FLEET_LINE(FORGET, 1, "name one host"),
};

static int check_fleet_options(struct fleet *f)
{
	const char *why;

	if (f->verb == WAIT && !f->version)
		return options_misused(&fleet_lines[WAIT], f->command, fleet_lines[WAIT].wants);
	if (f->version && !f->name)
		return cli_error(CLI_USAGE, f->command, "--version is that of one config: name it");
	if (f->version && !f->version[0])
		return cli_error(CLI_USAGE, f->command, "--version takes a version, not nothing");
	why = f->verb == FORGET ? settings_check_name(f->name) : NULL;
	if (why)
		return cli_error(CLI_USAGE, f->command, "the host's name %s", why);
	return etcd_check_options(&f->where);
}

static int run_verb(struct fleet *f)
{
	switch (f->verb) {
	case LIST:
		return f->watch ? watch_fleet(f) : list_fleet(f);
	case WAIT:
		return wait_for_version(f);
	case FORGET:
		return forget_host(f);
	}
	return CLI_USAGE;
}

int cli_fleet(int argc, char **argv)
{
	static const struct descriptors_need needs[] = {
		{"event loop", LOOP_DESCRIPTORS}, {"requests", 8}, {"files", CLI_FILES}};
	char wait_name[] = "pullet fleet wait", forget_name[] = "pullet fleet forget";
	char version[RECEIPT_VERSION];
	struct fleet f = {.verb = LIST, .percent = WHOLE, .timeout_ms = 600000};
	int r;

	if (argc > 1 && strcmp(argv[1], "wait") == 0) {
		f.verb = WAIT;
		argv[1] = wait_name;
	} else if (argc > 1 && strcmp(argv[1], "forget") == 0) {
		f.verb = FORGET;
		argv[1] = forget_name;
	}
	if (f.verb != LIST) {
		argc--;
		argv++;
	}
	f.command = f.where.command = argv[0];
	r = options_read(&fleet_lines[f.verb], argc, argv, &f);
	if (r >= 0)
		return r;
	f.name = argv[optind];
	if (check_fleet_options(&f))
		return CLI_USAGE;
	if (f.version) {
		receipt_version(f.version, version);
		f.version = version;
	}
	sys_forbid_dumps();
	r = cli_room(f.command, needs, sizeof(needs) / sizeof(needs[0]));
	if (r)
		return r;
	buffer_init(&f.shown, MAX_OUTPUT);
	buffer_init(&f.apart, MAX_OUTPUT);
	r = etcd_open(&f.where, &f.etcd);
	if (r == CLI_OK) {
		r = run_verb(&f);
		etcd_close(f.etcd);
	}
	buffer_fini(&f.shown);
	buffer_fini(&f.apart);
	return r;
}

/* The agent's answer for an operator. Surprising: a config with nothing published is worse than a
 * stale one, however young: its application has nothing at all. */
#include "cli/model/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/common/operate.h"
#include "cli/text/words.h"

/* ---- colours ---- */

bool show_colours_on(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

bool show_colours(void)
{
	return show_colours_on(STDOUT_FILENO);
}

const char *show_colour(const char *state)
{
	static const struct {
		const char *state, *colour;
	} table[] = {
		{"ok", WRAP_GOOD},
		{"connected", WRAP_GOOD},
		{"failing", WRAP_WARNING},
		{"connecting", WRAP_WARNING},
		{"waiting", WRAP_BAD},
		{"stale", WRAP_BAD},
		{"silent", WRAP_BAD},
		{"refused", WRAP_BAD},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].state, state) == 0)
			return table[i].colour;
	return "";
}

/* ---- words ---- */

void show_version(const char *version, struct buffer *out)
{
	size_t len = version ? strlen(version) : 0;
	struct buffer text;

	if (len < 2 || version[0] != '"' || version[len - 1] != '"') {
		words_text(out, version ? version : "-");
		return;
	}
	buffer_init(&text, len);
	if (buffer_append(&text, version + 1, len - 2) == 0)
		words_text(out, len > 2 ? text.data : "-");
	else
		buffer_take_error(out, &text);
	buffer_fini(&text);
}

/* ---- marks of a config ---- */

static bool in_state(const struct node *c, const char *member, const char *state)
{
	return strcmp(node_text(node_find(c, member), "state", ""), state) == 0;
}

/* A version of the server's is not published: one by that, or by what rejects. */
static bool is_kept_back(const struct node *c, const char *holder)
{
	const struct node *away = node_member(c, "rejected", NODE_MAP);
	const char *by = node_text(away, "by", "");

	if (holder)
		return away && strcmp(by, holder) == 0;
	return away && strcmp(by, "pin") != 0 && strcmp(by, "rollout") != 0 &&
	       strcmp(by, "operator") != 0;
}

static bool is_rejected(const struct node *c)
{
	return is_kept_back(c, NULL);
}

static bool is_rolled_back(const struct node *c)
{
	return is_kept_back(c, "operator");
}

static bool is_version_held(const struct node *c)
{
	return is_kept_back(c, "rollout");
}

static bool has_pending_reload(const struct node *c)
{
	return node_member(c, "reload", NODE_MAP) && !in_state(c, "reload", "idle");
}

bool show_is_probed(const struct node *c)
{
	return in_state(c, "probe", "waiting") || in_state(c, "probe", "running");
}

static bool is_drifted(const struct node *c)
{
	return node_is_true(c, "drifted");
}

bool show_has_expired(const struct node *c)
{
	int64_t at_ms = node_integer(c, "expires_ms", 0);

	return at_ms > 0 && at_ms <= sys_real.wall_ms();
}

static bool expires_soon(const struct node *c)
{
	int64_t at_ms = node_integer(c, "expires_ms", 0);

	return at_ms > 0 && !show_has_expired(c) && at_ms - sys_real.wall_ms() < SHOW_SOON_MS;
}

/* By a predicate, or by a member that is there, and in that state. */
static const struct mark {
	const char *words; /* after a number, in the headline */
	bool (*is)(const struct node *c);
	const char *member, *state;
} marks[] = {
	{"with a rejected version", .is = is_rejected},
	{"rolled back by an operator", .is = is_rolled_back},
	{"held by the rollout", .is = is_version_held},
	{"suspended", .member = "suspension"},
	{"pinned", .member = "pin"},
	{"overridden", .member = "overrides"},
	{"with a reload pending", .is = has_pending_reload},
	{"being probed", .is = show_is_probed},
	{"that failed a probe", .member = "probe", .state = "failed"},
	{"whose file somebody changed", .is = is_drifted},
	{"whose watch fails", .member = "watch", .state = "failing"},
	{"whose signature has expired", .is = show_has_expired},
	{"whose signature expires soon", .is = expires_soon},
};

enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

static bool has_mark(const struct node *c, const struct mark *m)
{
	if (m->is)
		return m->is(c);
	return m->state ? in_state(c, m->member, m->state) : node_first(c, m->member) != NULL;
}

/* ---- reading ---- */

/* A server without a name is called by its first address, as in the log. */
static const char *server_shown_name(const struct node *server)
{
	const struct node *address = node_first(server, "addresses");

	return node_text(server, "name", address ? node_text(address, "url", "?") : "?");
}

static bool is_of_server(const struct node *config, const struct node *server)
{
	const char *name = node_text(server, "name", NULL), *url = server_shown_name(server);

	if (name)
		return strcmp(node_text(config, "server", ""), name) == 0;
	return !node_text(config, "server", NULL) &&
	       strncmp(node_text(config, "url", ""), url, strlen(url)) == 0;
}

/* A due pull waits for the backoff of its server. */
static void add_backoff(struct show_config *c, const struct node *servers)
{
	for (const struct node *s = servers; s && c->next_ms >= 0; s = s->next) {
		int64_t backoff_ms = node_integer(s, "backoff_ms", 0);

		if (backoff_ms > c->next_ms && is_of_server(c->node, s))
			c->next_ms = backoff_ms;
	}
}

static const char *const ranks[SHOW_RANKS] = {[SHOW_QUIET] = "ok",
	[SHOW_NOTED] = "ok",
	[SHOW_FAILING] = "failing",
	[SHOW_STALE] = "stale",
	[SHOW_WAITING] = "waiting"};

static enum show_rank find_rank(const struct node *c, const char *state)
{
	for (int i = SHOW_FAILING; i < SHOW_RANKS; i++)
		if (strcmp(state, ranks[i]) == 0)
			return (enum show_rank)i;
	for (size_t i = 0; i < MARKS; i++)
		if (has_mark(c, &marks[i]))
			return SHOW_NOTED;
	return SHOW_QUIET;
}

static void read_show_config(struct show *s, const struct node *node)
{
	const struct node *runs = node_member(node, "runs", NODE_MAP);
	struct show_config *c = &s->configs[s->count];

	*c = (struct show_config){.node = node,
		.name = node_text(node, "name", "?"),
		.state = node_text(node, "state", "?"),
		.age_ms = node_integer(node, "age_ms", -1),
		.next_ms = node_integer(node, "next_pull_in_ms", -1),
		.rejected = node_integer(node, "rejections", 0),
		.index = s->count};
	add_backoff(c, node_first(s->root, "servers"));
	c->rank = find_rank(node, c->state);
	if (runs) {
		c->timeouts = node_integer(runs, "timeouts", 0);
		s->failed += node_integer(runs, "failed", 0);
		c->runs = node_integer(runs, "success", 0) + node_integer(runs, "failed", 0) +
			  node_integer(runs, "not_started", 0) + c->timeouts;
		s->unpulled += c->runs == 0 && c->rank < SHOW_FAILING &&
			       node_find(node, "suspension") == NULL;
	}
	s->runs += c->runs;
	s->timeouts += c->timeouts;
	s->rejected += c->rejected;
	s->ranks[c->rank]++;
	s->count++;
}

int show_read(const struct node *root, struct show *ret)
{
	const struct node *configs = node_member(root, "configs", NODE_LIST);
	struct show s = {.root = root};
	size_t count = configs ? configs->count : 1;

	s.configs = calloc(count + 1, sizeof(*s.configs));
	if (!s.configs)
		return -ENOMEM;
	if (!configs)
		read_show_config(&s, root);
	for (const struct node *c = configs ? configs->first : NULL; c; c = c->next)
		if (c->type == NODE_MAP)
			read_show_config(&s, c);
	*ret = s;
	return 0;
}

void show_fini(struct show *s)
{
	free(s->configs);
	*s = (struct show){0};
}

/* ---- order ---- */

static int compare_stably(const void *a, const void *b, void *arg)
{
	int (*const *compare)(const struct show_config *, const struct show_config *) = arg;
	const struct show_config *x = a, *y = b;
	int r = (*compare)(x, y);

	return r ? r : x->index < y->index ? -1 : 1;
}

void show_sort(
	struct show *s, int (*compare)(const struct show_config *a, const struct show_config *b))
{
	if (s->count)
		qsort_r(s->configs, s->count, sizeof(*s->configs), compare_stably, &compare);
}

int show_by_rank(const struct show_config *a, const struct show_config *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	if (a->rank < SHOW_FAILING || a->age_ms == b->age_ms)
		return 0;
	return a->age_ms > b->age_ms ? -1 : 1;
}

/* ---- the agent ---- */

static const struct show_config *find_worst(const struct show *s)
{
	const struct show_config *found = NULL;

	for (size_t i = 0; i < s->count; i++)
		if (!found || show_by_rank(&s->configs[i], found) < 0)
			found = &s->configs[i];
	return found && found->rank >= SHOW_FAILING ? found : NULL;
}

void show_headline(const struct show *s, struct buffer *out)
{
	const struct show_config *w = find_worst(s);
	size_t ok = s->ranks[SHOW_QUIET] + s->ranks[SHOW_NOTED];

	buffer_printf(out, "%zu config%s: ", s->count, s->count == 1 ? "" : "s");
	if (!w)
		buffer_append_string(out, s->count == 1 ? "ok" : "all ok");
	else
		buffer_printf(out, "%zu ok", ok);
	for (int i = SHOW_RANKS - 1; i >= SHOW_FAILING; i--)
		if (s->ranks[i])
			buffer_printf(out, ", %zu %s", s->ranks[i], ranks[i]);
	if (w && s->count > 1) {
		buffer_append_string(out, "; the worst is ");
		words_text(out, w->name);
		buffer_printf(out, " (%s)", ranks[w->rank]);
	}
	if (s->unpulled)
		buffer_printf(out, "; %zu not pulled yet since the start", s->unpulled);
	for (size_t m = 0; m < MARKS; m++) {
		size_t n = 0;

		for (size_t i = 0; i < s->count; i++)
			n += has_mark(s->configs[i].node, &marks[m]);
		if (n)
			buffer_printf(out, "; %zu %s", n, marks[m].words);
	}
}

static size_t count_push(const struct show *s, size_t *ret_connected)
{
	size_t count = 0;

	*ret_connected = 0;
	for (const struct node *p = node_first(s->root, "push"); p; p = p->next, count++)
		*ret_connected += strcmp(node_text(p, "state", ""), "connected") == 0;
	return count;
}

bool show_push_is_good(const struct show *s)
{
	size_t connected, count = count_push(s, &connected);

	return count && connected == count;
}

void show_push(const struct show *s, struct buffer *out)
{
	size_t connected, count = count_push(s, &connected);

	if (count)
		buffer_printf(out, "%zu of %zu connected", connected, count);
	else
		buffer_append_string(out, "not configured");
}

static void note_server(const struct node *s, struct buffer *out)
{
	int64_t backoff_ms = node_integer(s, "backoff_ms", 0),
		pending = node_integer(s, "pending", 0);
	struct buffer line;
	char text[24];

	buffer_init(&line, 1u << 20);
	if (backoff_ms > 0)
		buffer_printf(&line, " in backoff for %s, %" PRId64 " pull%s queued;",
			wrap_span(backoff_ms, text), pending, pending == 1 ? "" : "s");
	for (const struct node *a = node_first(s, "addresses"); a; a = a->next) {
		int64_t address_ms = node_integer(a, "backoff_ms", 0),
			failures = node_integer(a, "failures_in_a_row", 0);

		if (address_ms <= 0)
			continue;
		buffer_append_string(&line, " ");
		words_text(&line, node_text(a, "url", "?"));
		buffer_printf(&line, " is in backoff for %s after %" PRId64 " failure%s in a row: ",
			wrap_span(address_ms, text), failures, failures == 1 ? "" : "s");
		words_text(&line, node_text(a, "error", "?"));
		buffer_append_string(&line, ";");
	}
	if (line.len) {
		buffer_append_string(out, "server ");
		words_text(out, server_shown_name(s));
		buffer_append_string(out, ":");
		buffer_append(out, line.data, line.len - 1);
		buffer_append_string(out, "\n");
	}
	buffer_fini(&line);
}

static void note_push(const struct node *p, struct buffer *out)
{
	const char *state = node_text(p, "state", "?"), *error = node_text(p, "error", "");
	int64_t ago_ms = node_integer(p, "last_message_ago_ms", -1);
	char text[24];

	if (strcmp(state, "connected") == 0 && !error[0])
		return;
	buffer_append_string(out, "push ");
	words_text(out, node_text(p, "endpoint", "?"));
	buffer_append_string(out, ": ");
	words_text(out, state);
	if (ago_ms < 0)
		buffer_append_string(out, ", no message yet");
	else
		buffer_printf(out, ", last message %s ago", wrap_span(ago_ms, text));
	buffer_append_string(out, error[0] ? ": " : "; changes come with the interval");
	words_lines(out, error);
	buffer_append_string(out, "\n");
}

static void note_receipts(const struct node *r, struct buffer *out)
{
	const char *error = node_text(r, "error", NULL);
	bool fails = strcmp(node_text(r, "state", ""), "failing") == 0;

	if (!fails && !error)
		return;
	buffer_append_string(out, "receipts to the server ");
	words_text(out, node_text(r, "server", "?"));
	buffer_append_string(out, fails ? " fail: " : ": ");
	words_lines(out, error ? error : "?");
	buffer_append_string(out, "\n");
}

bool show_configuration_is_rejected(const struct show *s)
{
	const struct node *c = node_member(s->root, "configuration", NODE_MAP);

	return c && node_text(c, "error", NULL);
}

static void note_configuration(const struct show *s, struct buffer *out)
{
	const struct node *c = node_member(s->root, "configuration", NODE_MAP);
	int64_t errors = c ? node_integer(c, "errors", 0) : 0;

	if (c && node_is_true(c, "applying"))
		buffer_append_string(out, "reload pending: waiting for writes to finish\n");
	if (!show_configuration_is_rejected(s))
		return;
	buffer_append_string(out, "the new configuration is rejected, keeping the old one: ");
	words_lines(out, node_text(c, "error", "?"));
	if (errors > 1)
		buffer_printf(out, " (%" PRId64 " errors; pulletd -t prints them)", errors);
	buffer_append_string(out, "\n");
}

void show_agent(const struct show *s, struct buffer *out)
{
	note_configuration(s, out);
	for (const struct node *n = node_first(s->root, "servers"); n; n = n->next)
		note_server(n, out);
	for (const struct node *n = node_first(s->root, "push"); n; n = n->next)
		note_push(n, out);
	note_receipts(node_member(s->root, "report", NODE_MAP), out);
}

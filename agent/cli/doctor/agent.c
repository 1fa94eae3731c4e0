/*
 * The agent itself: is there one, who is it, what does it say. Surprising: whose rights count is
 * asked of the kernel (the peer of the control socket, /proc), which is right also where the agent
 * does not run under systemd.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/text/words.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"

/* ---- who it is ---- */

/* Connects, for the peer's credentials. 0 or -errno. */
static int find_peer(const char *path, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);
	int fd = client_connect(path, NULL), r = 0;

	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len))
		r = -errno;
	close(fd);
	return r;
}

static void read_groups(struct doctor_who *w, const char *text)
{
	char *end;

	w->group_count = 0;
	for (unsigned long id; w->group_count < DOCTOR_GROUPS; text = end) {
		id = strtoul(text, &end, 10);
		if (end == text)
			break;
		w->groups[w->group_count++] = (gid_t)id;
	}
}

/* What the kernel says of the process: its user now, groups, capabilities. */
static void read_process(struct doctor_who *w)
{
	char path[64], line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)w->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "Groups") == 0)
			read_groups(w, value);
		else if (strcmp(line, "CapEff") == 0)
			w->capabilities = strtoull(value, NULL, 16);
		else if (strcmp(line, "NoNewPrivs") == 0)
			w->no_new_privileges = strtoul(value, NULL, 10);
	}
	if (f)
		fclose(f);
}

/* Does it see the same file system? If not, where it can be seen. */
static void find_root(struct doctor_who *w)
{
	char path[64], its[64] = "", ours[64] = "?";
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)w->pid);
	w->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->root < 0) {
		w->other_view = true;
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)w->pid);
	if (readlink(path, its, sizeof(its) - 1) > 0 &&
		readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
		strcmp(its, ours) == 0 && fstat(w->root, &a) == 0 && stat("/", &b) == 0 &&
		a.st_ino == b.st_ino && a.st_dev == b.st_dev) {
		close(w->root);
		w->root = -1;
	}
}

static void fill_from_peer(struct doctor_who *w, const struct ucred *peer)
{
	w->running = true;
	w->pid = peer->pid;
	w->uid = peer->uid;
	w->gid = peer->gid;
	w->how = "who runs the agent";
	if (w->pid > 0) {
		read_process(w);
		find_root(w);
	}
}

/* Who User=, Group= and SupplementaryGroups= of the unit are. False: no such user. */
static bool fill_from_unit(struct doctor_who *w, const struct doctor_unit *u)
{
	const struct passwd *p = getpwnam(u->user[0] ? u->user : "root");
	const struct group *g = u->group[0] ? getgrnam(u->group) : NULL;
	int n = DOCTOR_GROUPS;
	char more[sizeof(u->more_groups)], *rest = more, *word;

	if (!p)
		return false;
	w->uid = p->pw_uid;
	w->gid = g ? g->gr_gid : p->pw_gid;
	if (getgrouplist(p->pw_name, w->gid, w->groups, &n) < 0)
		n = DOCTOR_GROUPS;
	w->group_count = (size_t)n;
	memcpy(more, u->more_groups, sizeof(more));
	while ((word = strsep(&rest, " ")) && w->group_count < DOCTOR_GROUPS)
		if ((g = getgrnam(word)))
			w->groups[w->group_count++] = g->gr_gid;
	w->no_new_privileges = u->no_new_privileges;
	w->how = "whom User= of pullet.service names";
	return true;
}

static void fill_from_caller(struct doctor_who *w)
{
	int n = getgroups(DOCTOR_GROUPS, w->groups);

	w->uid = geteuid();
	w->gid = getegid();
	w->group_count = n < 0 ? 0 : (size_t)n;
	w->how = "who is you: an agent of somebody else has other rights";
}

/* There is an agent, and we may not come near it. */
static void fill_unknown(struct doctor_who *w)
{
	w->uid = (uid_t)-1;
	w->gid = (gid_t)-1;
	w->known = false;
	w->how = "whoever that is";
	snprintf(w->name, sizeof(w->name), "the agent's user");
}

/* What systemd says of the unit counts if it runs this agent, or would. */
static void match_unit(struct doctor *d)
{
	d->unit.applies =
		d->unit.known && (d->who.running ? d->who.pid && d->unit.main_pid == d->who.pid
						 : strcmp(d->path, SETTINGS_DEFAULT_PATH) == 0);
}

static void name_user(struct doctor_who *w)
{
	const struct passwd *p = getpwuid(w->uid);

	if (p)
		snprintf(w->name, sizeof(w->name), "%.50s", p->pw_name);
	else
		snprintf(w->name, sizeof(w->name), "%u", (unsigned)w->uid);
}

static void find_identity(
	struct doctor *d, struct doctor_list *l, int error, const struct ucred *peer)
{
	struct doctor_who *w = &d->who;

	w->known = true;
	if (error == 0)
		fill_from_peer(w, peer);
	doctor_unit_read(d);
	match_unit(d);
	if (error && d->unit.applies && !fill_from_unit(w, &d->unit)) {
		doctor_add(l, DOCTOR_ERROR, "pullet.service",
			"make the user (systemd-sysusers), or change User=",
			"there is no user %s, which the service is to run as", d->unit.user);
		fill_from_caller(w);
	} else if (error == -EACCES && !d->unit.applies) {
		fill_unknown(w);
		return;
	} else if (error && !d->unit.applies) {
		fill_from_caller(w);
	}
	if (!w->running && w->uid == 0)
		w->capabilities = UINT64_MAX;
	w->can_try = geteuid() == 0 || geteuid() == w->uid;
	name_user(w);
}

/* ---- the socket ---- */

static void report_not_running(struct doctor *d, struct doctor_list *l, int error)
{
	const char *path = d->socket_path;

	if (error == -EACCES)
		doctor_add(l, DOCTOR_NOTE, path,
			"run this as root, as the agent's user or in its group",
			"you may not ask the agent; what it says of itself was not looked at");
	else if (error == -ENOENT || error == -ECONNREFUSED)
		doctor_add(l, DOCTOR_WARNING, path,
			d->unit.applies ? "systemctl start pullet"
					: "start pulletd, or name its "
					  "socket with --socket",
			"no agent runs here%s",
			error == -ECONNREFUSED ? ": the socket is left from one that died" : "");
	else
		doctor_add(l, DOCTOR_ERROR, path,
			"see whether pulletd runs and what its log says; --socket names another",
			"the agent cannot be asked: %s", strerror(-error));
}

static void request_status(struct doctor *d, struct doctor_list *l)
{
	int r = client_ask(
		"pullet doctor", d->socket_path, "GET", "/v1/status", d->timeout_ms, &d->status);

	if (r == CLI_OK && d->status.status == 200 && d->status.fits)
		return;
	doctor_add(l, DOCTOR_ERROR, d->socket_path,
		"look into its log; where it hangs, kill -9 is safe: it starts from the last known "
		"good, and readers notice nothing",
		"the agent takes connections, and does not answer as it should");
}

void doctor_find_agent(struct doctor *d, struct doctor_list *l)
{
	struct ucred peer = {0};
	int r;

	if (d->socket)
		snprintf(d->socket_path, sizeof(d->socket_path), "%s", d->socket);
	else
		snprintf(d->socket_path, sizeof(d->socket_path), "%.480s/control.sock",
			d->runtime_dir);
	r = find_peer(d->socket_path, &peer);
	find_identity(d, l, r, &peer);
	if (r)
		report_not_running(d, l, r);
	else
		request_status(d, l);
}

/* ---- what it says ---- */

const struct node *doctor_config_status(const struct doctor *d, const char *name)
{
	for (const struct node *n = node_first(document_root(d->status.json), "configs"); n;
		n = n->next)
		if (strcmp(node_text(n, "name", ""), name) == 0)
			return n;
	return NULL;
}

/* In place of the area of findings that would explain it. */
static const char unexplained[] =
	"put the configuration right, and run this again: what explains it "
	"was not looked at";

static const char at_its_source[] =
	"put it right at its source; pullet explain CONFIG says what else would do";

/* Where the findings are that explain it. */
static const char *find_explaining_check(const struct doctor *d, const struct node *c)
{
	const char *cause = node_text(c, "cause", "");

	if (!d->settings)
		return unexplained;
	if (strcmp(cause, "this host") == 0)
		return "see files, below; where nothing is found, put right what this names";
	return !cause[0] && node_find(c, "rejected") ? at_its_source : "see servers, below";
}

/* Adds why the server's version is not current, as `pullet explain` says it. True: by a decision,
 * and a failure besides is to be added too. */
static bool note_rejected_version(const struct node *c, const char *name, struct doctor_list *l)
{
	static const struct {
		const char *by, *remedy;
	} decided[] = {
		{"pin", "pullet unpin CONFIG, when it is over"},
		{"operator", "publish another version; or pullet refresh CONFIG --force takes it"},
		{"rollout", "its turn comes; or pullet refresh CONFIG --force takes it now"},
	};
	const struct node *rejected = node_find(c, "rejected"), *why = node_first(c, "explanation");
	const char *by = node_text(rejected, "by", "?");
	const char *text =
		why && why->type == NODE_STRING ? why->text : node_text(rejected, "why", "?");

	for (size_t i = 0; i < sizeof(decided) / sizeof(decided[0]); i++)
		if (strcmp(by, decided[i].by) == 0) {
			doctor_add(l, DOCTOR_NOTE, name, decided[i].remedy, "%s", text);
			return true;
		}
	doctor_add(l, DOCTOR_WARNING, name, at_its_source, "%s", text);
	return false;
}

/* What holds besides: a step under way or not done yet, a pin that keeps what failed its probe. */
static void note_explanation(const struct node *c, const char *name, struct doctor_list *l)
{
	bool is_said = node_find(c, "rejected"); /* the first one, in note_rejected_version() */

	for (const struct node *n = node_first(c, "explanation"); n; n = n->next) {
		if (!is_said && n->type == NODE_STRING)
			doctor_add(l, DOCTOR_NOTE, name,
				"pullet explain CONFIG says what would change it", "%s", n->text);
		is_said = false;
	}
}

static void note_config_failure(
	const struct doctor *d, const struct node *c, const char *name, struct doctor_list *l)
{
	const char *state = node_text(c, "state", ""), *error = node_text(c, "last_error", "");
	bool rejected = node_find(c, "rejected");
	int64_t age_ms = node_integer(c, "age_ms", -1);
	const char *remedy = find_explaining_check(d, c);

	if (node_integer(c, "generation", 0) == 0)
		doctor_add_caused(l, DOCTOR_ERROR, name, remedy, error, "nothing is published yet");
	else if (strcmp(state, "stale") == 0 && show_has_expired(c))
		doctor_add(l, DOCTOR_ERROR, name,
			"sign it again where it is published (pullet sign)",
			"stale: its signature has expired");
	else if (strcmp(state, "stale") == 0)
		doctor_add_caused(l, DOCTOR_ERROR, name, remedy, error,
			"stale: no server has confirmed it for %" PRId64 " s", age_ms / 1000);
	else if ((!rejected || note_rejected_version(c, name, l)) && error[0] &&
		 strcmp(state, "ok") != 0)
		doctor_add_caused(l, DOCTOR_WARNING, name, remedy, error, "%s", state);
}

static void note_config_decisions(const struct node *c, const char *name, struct doctor_list *l)
{
	const struct node *pin = node_find(c, "pin"), *suspension = node_find(c, "suspension");
	struct buffer text;

	buffer_init(&text, 4096);
	if (pin) {
		operate_decision(&text, pin);
		doctor_add(l, DOCTOR_NOTE, name, "pullet unpin CONFIG, when it is over",
			"pinned%s: what the server has is not taken", text.data ? text.data : "");
	}
	buffer_clear(&text);
	if (suspension) {
		operate_decision(&text, suspension);
		doctor_add(l, DOCTOR_NOTE, name, "pullet resume CONFIG, when it is over",
			"suspended%s: the server is not asked", text.data ? text.data : "");
	}
	buffer_fini(&text);
	if (node_first(c, "overrides"))
		doctor_add(l, DOCTOR_NOTE, name, "pullet explain CONFIG KEY says whose they are",
			"some values are overridden on this host");
}

static void note_config_notify(
	const struct doctor *d, const struct node *c, const char *name, struct doctor_list *l)
{
	const struct node *reload = node_find(c, "reload"), *probe = node_find(c, "probe");

	if (node_is_true(c, "drifted"))
		doctor_add(l, DOCTOR_WARNING, name, "find out who writes it; heal puts it right",
			"what is published was changed by somebody else");
	if (strcmp(node_text(reload, "state", ""), "failed") == 0)
		doctor_add_caused(l, DOCTOR_WARNING, name,
			d->settings ? "see hooks, below; the agent tries again until it works"
				    : "the agent tries again until it works",
			node_text(reload, "error", "?"), "the reload after the last change failed");
	if (strcmp(node_text(probe, "state", ""), "failed") == 0)
		doctor_add(l, DOCTOR_WARNING, name, "put the version right at its source",
			"the last probe of a version failed: %s", node_text(probe, "error", "?"));
}

/* It is taken for silent between any two heartbeats, and all configs pull each time. */
static bool is_impatient(const struct node *n)
{
	int64_t silences = node_integer(n, "rebuilds", 0);

	return silences >= 3 && silences * 3 >= node_integer(n, "heartbeats", 0);
}

/* A list of the status of what is not in order: endpoints of the push channel. */
static void note_push_state(const struct doctor *d, struct doctor_list *l)
{
	for (const struct node *n = node_first(document_root(d->status.json), "push"); n;
		n = n->next) {
		const char *state = node_text(n, "state", "?");

		if (strcmp(state, "connected") != 0)
			doctor_add(l, DOCTOR_WARNING, node_text(n, "endpoint", "?"),
				d->settings
					? "see push, below; where it connects now, this goes by "
					  "itself"
					: unexplained,
				"the agent's push channel is %s: %s", state,
				node_text(n, "error", "pulls go on by interval"));
		else if (is_impatient(n))
			doctor_add(l, DOCTOR_WARNING, node_text(n, "endpoint", "?"),
				"set heartbeat of push to what the publisher has",
				"it was silent for three heartbeats again and again, and each "
				"time all configs pulled: heartbeats are rarer than heartbeat "
				"says, "
				"or the publisher hangs now and then");
	}
}

/* They are written, and somebody else writes them too. */
static void note_receipts_shared(const struct doctor *d, struct doctor_list *l)
{
	const struct node *report = node_find(document_root(d->status.json), "report");
	const char *error = node_text(report, "error", ""), *remedy = strstr(error, ": ");

	if (error[0] && strcmp(node_text(report, "state", ""), "ok") == 0)
		doctor_add(l, DOCTOR_WARNING, node_text(report, "key", "?"),
			remedy ? remedy + 2 : NULL, "this host's receipt: %.*s",
			(int)(remedy ? remedy - error : (ptrdiff_t)strlen(error)), error);
}

/* ---- is it the agent of this file? ---- */

static void note_agent_version(const struct doctor *d, struct doctor_list *l)
{
	const char *version = node_text(document_root(d->status.json), "version", "?");

	if (strcmp(version, PULLET_VERSION) != 0)
		doctor_add(l, DOCTOR_WARNING, d->socket_path, "restart the agent",
			"it runs version %s, installed is " PULLET_VERSION, version);
}

/* Of a file: when its content was written, or (touched) when anything of it changed: a copy may
 * bring an old time along. */
static void update_newest(const char *path, int64_t *written_ms, int64_t *touched_ms)
{
	struct stat st;
	int64_t ms;

	if (stat(path, &st))
		return;
	ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	*written_ms = ms > *written_ms ? ms : *written_ms;
	ms = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
	*touched_ms = ms > *touched_ms ? ms : *touched_ms;
}

/* The file, and those of conf.d beside it. */
static void find_newest_times(const char *path, int64_t *written_ms, int64_t *touched_ms)
{
	char parent[4000], dir[4100], file[4400];
	struct dirent *e;
	DIR *d;

	update_newest(path, written_ms, touched_ms);
	doctor_parent(path, parent, sizeof(parent));
	snprintf(dir, sizeof(dir), "%s/conf.d", strchr(path, '/') ? parent : ".");
	d = opendir(dir);
	if (!d)
		return;
	update_newest(dir, written_ms, touched_ms); /* one that was removed */
	while ((e = readdir(d))) {
		const char *ending = strrchr(e->d_name, '.');

		snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
		if (ending && strcmp(ending, ".yaml") == 0)
			update_newest(file, written_ms, touched_ms);
	}
	closedir(d);
}

static bool same_configs(const struct doctor *d)
{
	const struct node *list = node_find(document_root(d->status.json), "configs");

	for (size_t i = 0; i < d->settings->config_count; i++)
		if (!doctor_config_status(d, d->settings->configs[i]->name))
			return false;
	return list && list->count == d->settings->config_count;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
					    x.st_ino == y.st_ino);
}

/* The file is invalid now: what goes on, and what would not. */
static void note_running_settings(int64_t loaded_ms, const char *path, struct doctor_list *l)
{
	struct buffer when;

	buffer_init(&when, 64);
	words_time(&when, loaded_ms);
	doctor_add(l, DOCTOR_NOTE, path,
		"put it right before anything restarts the agent: it would not start",
		"the agent goes on with what it read at %s, and refuses to reload this "
		"(SIGHUP)",
		when.data ? when.data : "?");
	buffer_fini(&when);
}

/* Has the agent read what stands in the file, and taken it? */
static void note_stale_settings(const struct doctor *d, struct doctor_list *l)
{
	static const char remedy[] = "reload the agent: systemctl reload pullet, or kill -HUP";
	const struct node *root = document_root(d->status.json),
			  *c = node_find(root, "configuration");
	const char *file = node_text(c, "file", d->path);
	int64_t loaded_ms =
		c ? node_integer(c, "loaded_ms", 0) : node_integer(root, "started_ms", 0);
	int64_t written_ms = 0, touched_ms = 0;
	bool has_error = node_text(c, "error", NULL), same = is_same_file(file, d->path);

	if (has_error && !(same && d->bad_settings)) /* else its errors are said above */
		doctor_add(l, DOCTOR_ERROR, file,
			"once that is put right, reload the agent: systemctl reload pullet, or "
			"kill -HUP",
			"the agent refused it when it was last reloaded, and runs the one before: "
			"%s%s",
			node_text(c, "error", ""),
			node_integer(c, "errors", 0) > 1 ? " (and more)" : "");
	if (!same)
		doctor_add(l, DOCTOR_WARNING, d->path, "name that one with -c",
			"the agent that runs reads %s", file);
	else if (d->bad_settings)
		note_running_settings(loaded_ms, d->path, l);
	if (has_error || !same || d->bad_settings)
		return;
	find_newest_times(d->path, &written_ms, &touched_ms);
	if (written_ms > loaded_ms || (d->settings && !same_configs(d)))
		doctor_add(l, DOCTOR_WARNING, d->path, remedy,
			"it was changed after the running agent had read it");
	else if (touched_ms > loaded_ms)
		doctor_add(l, DOCTOR_NOTE, d->path, remedy,
			"it was replaced, or its rights changed, after the running agent had read "
			"it");
}

/* ---- its service ---- */

static void note_service_state(const struct doctor *d, struct doctor_list *l)
{
	const struct doctor_unit *u = &d->unit;

	if (!u->applies)
		return;
	if (strcmp(u->active, "failed") == 0)
		doctor_add(l, DOCTOR_ERROR, "pullet.service", "journalctl -u pullet says why",
			"the service has failed, and systemd does not start it again");
	if (u->needs_reload)
		doctor_add(l, DOCTOR_WARNING, "pullet.service", "systemctl daemon-reload",
			"the unit's file was changed after systemd had read it");
	if (!u->has_watchdog)
		doctor_add(l, DOCTOR_NOTE, "pullet.service",
			"set WatchdogSec=", "no watchdog: an agent that hangs is not noticed");
	if (u->restarts >= 3)
		doctor_add(l, DOCTOR_WARNING, "pullet.service", "journalctl -u pullet says why",
			"systemd had to start it again %" PRIu64 " times", u->restarts);
	if (u->memory_max != UINT64_MAX && u->memory_now != UINT64_MAX &&
		u->memory_now > u->memory_max / 5 * 4)
		doctor_add(l, DOCTOR_WARNING, "pullet.service",
			"raise MemoryMax=", "it uses %" PRIu64 " MiB of the %" PRIu64 " it may",
			u->memory_now >> 20, u->memory_max >> 20);
}

static bool has_no_warning(const struct doctor_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].severity >= DOCTOR_WARNING)
			return false;
	return true;
}

void doctor_agent(struct doctor *d, struct doctor_list *l)
{
	doctor_find_agent(d, l);
	note_service_state(d, l);
	if (!d->status.json)
		return;
	note_agent_version(d, l);
	note_stale_settings(d, l);
	note_push_state(d, l);
	note_receipts_shared(d, l);
	for (const struct node *c = node_first(document_root(d->status.json), "configs"); c;
		c = c->next) {
		const char *name = node_text(c, "name", "?");

		if (d->only && strcmp(d->only, name) != 0)
			continue;
		note_config_failure(d, c, name, l);
		note_explanation(c, name, l);
		note_config_decisions(c, name, l);
		note_config_notify(d, c, name, l);
	}
	if (has_no_warning(l))
		doctor_add(l, DOCTOR_OK, d->socket_path, NULL,
			"it answers, and all its configs stand as they should");
}

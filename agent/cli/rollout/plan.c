/* The document of a rollout. Surprising: it is JSON, which is YAML as well: agents decide by the
 * ending of its path which of both they read. */
#include "cli/rollout/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/json_writer.h"

static const char *const state_names[PLAN_STATES] = {
	[PLAN_NONE] = "none",
	[PLAN_RUNNING] = "running",
	[PLAN_PAUSED] = "paused",
	[PLAN_ABORTED] = "aborted",
	[PLAN_FINISHED] = "finished",
};

const char *plan_state_name(enum plan_state state)
{
	return state_names[state];
}

uint32_t plan_percent(const struct plan *p)
{
	return p->state == PLAN_ABORTED || p->wave == 0 ? 0 : p->waves[p->wave - 1];
}

/* ---- percentages ---- */

const char *plan_percent_text(uint32_t percent, char text[16])
{
	size_t len = (size_t)snprintf(text, 16, "%u.%03u", percent / 1000, percent % 1000);

	while (text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[--len] = '\0';
	return text;
}

bool plan_read_percent(const char *text, const char **end, uint32_t *ret)
{
	uint32_t n = 0, unit = 1000;
	const char *p = text;

	while (*p >= '0' && *p <= '9' && n <= 100)
		n = n * 10 + (uint32_t)(*p++ - '0');
	n *= 1000;
	if (p > text && *p == '.' && p[1] >= '0' && p[1] <= '9')
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++)
			n += (unit /= 10) * (uint32_t)(*p - '0');
	if (p == text || n > PLAN_WHOLE)
		return false;
	*end = *p == '%' ? p + 1 : p;
	*ret = n;
	return true;
}

/* ---- what was aborted ---- */

static void add_aborted(struct plan *p, const char *version)
{
	if (!version[0])
		return;
	for (size_t i = 0; i < p->aborted_count; i++)
		if (strcmp(p->aborted[i], version) == 0)
			return;
	if (p->aborted_count == PLAN_ABORTED_MAX)
		memmove(p->aborted[0], p->aborted[1], --p->aborted_count * sizeof(p->aborted[0]));
	snprintf(p->aborted[p->aborted_count++], sizeof(p->aborted[0]), "%s", version);
}

/* A plan of an older pullet has none. */
static int read_aborted(const struct node *list, struct plan *ret)
{
	for (const struct node *n = list ? list->first : NULL; n; n = n->next) {
		if (n->type != NODE_STRING || n->text_len >= RECEIPT_VERSION)
			return -EINVAL;
		add_aborted(ret, n->text);
	}
	return 0;
}

void plan_keep_aborted(struct plan *p, const struct plan *before)
{
	for (size_t i = 0; i < before->aborted_count; i++)
		add_aborted(p, before->aborted[i]);
	if (before->state != PLAN_ABORTED)
		return;
	add_aborted(p, before->version);
	add_aborted(p, before->digest);
}

void plan_forget_aborted(struct plan *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->aborted_count; i++)
		if (strcmp(p->aborted[i], p->version) != 0 &&
			(!p->digest[0] || strcmp(p->aborted[i], p->digest) != 0))
			memmove(p->aborted[kept++], p->aborted[i], sizeof(p->aborted[i]));
	p->aborted_count = kept;
}

static void write_aborted(struct buffer *out, const char *name, const struct plan *p)
{
	json_writer_begin_array(out, name);
	for (size_t i = 0; i < p->aborted_count; i++)
		json_writer_text(out, NULL, p->aborted[i]);
	json_writer_end_array(out);
}

/* ---- reading ---- */

static int damaged(char why[FILE_WHY], const char *member)
{
	snprintf(why, FILE_WHY, "%s of its plan is not as `pullet rollout` writes it", member);
	return -EPROTO;
}

static bool read_percent(const struct node *n, uint32_t *ret)
{
	double x = n && n->type == NODE_INT      ? (double)n->integer
		   : n && n->type == NODE_DOUBLE ? n->number
						 : -1;

	if (!(x >= 0 && x <= 100))
		return false;
	*ret = (uint32_t)(x * 1000 + 0.5);
	return true;
}

static int read_planned_waves(const struct node *list, struct plan *ret)
{
	if (!list || list->count == 0 || list->count > ROLLOUT_MAX_WAVES)
		return -EINVAL;
	for (const struct node *n = list->first; n; n = n->next) {
		uint32_t *to = &ret->waves[ret->wave_count++];

		if (!read_percent(n, to) || (to > ret->waves && *to <= to[-1]))
			return -EINVAL;
	}
	return 0;
}

static bool read_member_text(const struct node *map, const char *name, char *text, size_t size)
{
	const struct node *n = node_member(map, name, NODE_STRING);

	if (!n || n->text_len >= size)
		return false;
	memcpy(text, n->text, n->text_len + 1);
	return true;
}

static int read_state(const struct node *map, struct plan *ret)
{
	const char *name = node_text(map, "state", "");

	for (int i = PLAN_RUNNING; i < PLAN_STATES; i++)
		if (strcmp(name, state_names[i]) == 0)
			ret->state = (enum plan_state)i;
	return ret->state == PLAN_NONE ? -EINVAL : 0;
}

static int read_notes(const struct node *map, struct plan *ret, char why[FILE_WHY])
{
	int64_t wave = node_integer(map, "wave", -1), every = node_integer(map, "every_ms", -1);
	int64_t timeout = node_integer(map, "timeout_ms", PLAN_TIMEOUT_MS);

	if (node_integer(map, "v", 0) != 1) {
		snprintf(why, FILE_WHY, "its plan is of another version of pullet");
		return -EPROTO;
	}
	if (read_state(map, ret))
		return damaged(why, "state");
	if (read_planned_waves(node_member(map, "waves", NODE_LIST), ret))
		return damaged(why, "waves");
	if (wave < 0 || (uint64_t)wave > ret->wave_count)
		return damaged(why, "wave");
	if (every < 0 || !read_percent(node_find(map, "abort_at"), &ret->abort_at))
		return damaged(why, "every_ms or abort_at");
	if (timeout < 0)
		return damaged(why, "timeout_ms");
	if (!read_member_text(map, "version", ret->version, sizeof(ret->version)) ||
		!read_member_text(map, "driver", ret->driver, sizeof(ret->driver)) ||
		!read_member_text(map, "by", ret->by, sizeof(ret->by)) ||
		!read_member_text(map, "why", ret->why, sizeof(ret->why)))
		return damaged(why, "version, driver, by or why");
	if (node_find(map, "digest") &&
		!read_member_text(map, "digest", ret->digest, sizeof(ret->digest)))
		return damaged(why, "digest");
	if (read_aborted(node_find(map, "aborted"), ret))
		return damaged(why, "aborted");
	ret->wave = (size_t)wave;
	ret->every_ms = (uint64_t)every;
	ret->timeout_ms = (uint64_t)timeout;
	ret->since_ms = node_integer(map, "since_ms", 0);
	return 0;
}

static int read_labels(const struct node *map, struct plan *ret, char why[FILE_WHY])
{
	for (const struct node *n = map ? map->first : NULL; n; n = n->next) {
		if (ret->label_count == PLAN_LABELS) {
			snprintf(why, FILE_WHY, "it has more than %d labels", PLAN_LABELS);
			return -EPROTO;
		}
		ret->labels[ret->label_count++] = (struct roster_label){n->key, n->text};
	}
	return 0;
}

/* As an agent reads it: every error of the document itself. */
static int check_plan_document(const struct node *root, char why[FILE_WHY])
{
	const struct rollout_host host = {.name = ""};
	bool takes;

	return rollout_decide(root, &host, "", "", "", &takes, why);
}

static int read_plan_document(const char *data, size_t len, struct plan *ret, char why[FILE_WHY])
{
	const struct node *root, *plan;
	struct document_error error;
	int r = document_parse(DOCUMENT_YAML, data, len, 0, &ret->document, &error);

	if (r) {
		snprintf(why, FILE_WHY, "%u:%u: %s", error.line, error.column,
			r == -ENOMEM ? "out of memory" : error.message);
		return r;
	}
	root = document_root(ret->document);
	plan = node_find(root, "plan");
	ret->salt = node_find(root, "salt") ? node_find(root, "salt")->text : NULL;
	r = check_plan_document(root, why);
	if (r == 0)
		r = read_labels(node_find(root, "labels"), ret, why);
	return r == 0 && plan ? read_notes(plan, ret, why) : r;
}

int plan_read(const char *data, size_t len, struct plan *ret, char why[FILE_WHY])
{
	int r = 0;

	*ret = (struct plan){.state = PLAN_NONE};
	if (len > ROLLOUT_MAX_BYTES) {
		snprintf(why, FILE_WHY, "it has %zu bytes, and a rollout has at most %u", len,
			ROLLOUT_MAX_BYTES);
		return -EINVAL;
	}
	if (len)
		r = read_plan_document(data, len, ret, why);
	if (r)
		plan_fini(ret);
	return r;
}

/* ---- writing ---- */

static void write_share(struct buffer *out, const char *name, uint32_t percent)
{
	char text[16];

	json_writer_member(out, name);
	buffer_append_string(out, plan_percent_text(percent, text));
}

static void write_waves(struct buffer *out, const struct plan *p)
{
	char text[16];

	json_writer_begin_array(out, "waves");
	for (size_t i = 0; i < p->wave_count; i++)
		buffer_printf(out, "%s%s", i ? "," : "", plan_percent_text(p->waves[i], text));
	json_writer_end_array(out);
}

int plan_write(const struct plan *p, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	write_share(out, "percent", plan_percent(p));
	if (p->salt)
		json_writer_text(out, "salt", p->salt);
	if (p->label_count) {
		json_writer_begin_object(out, "labels");
		for (size_t i = 0; i < p->label_count; i++)
			json_writer_text(out, p->labels[i].name, p->labels[i].value);
		json_writer_end_object(out);
	}
	if ((p->state == PLAN_RUNNING || p->state == PLAN_PAUSED) && p->version[0])
		json_writer_text(out, "only", p->version);
	if (p->state == PLAN_ABORTED && p->version[0]) {
		struct plan all = {.state = PLAN_ABORTED};

		plan_keep_aborted(&all, p);
		if (all.aborted_count == 1)
			json_writer_text(out, "version", p->version);
		else
			write_aborted(out, "version", &all);
	}
	json_writer_begin_object(out, "plan");
	json_writer_number(out, "v", 1);
	json_writer_text(out, "state", plan_state_name(p->state));
	json_writer_text(out, "version", p->version);
	write_waves(out, p);
	json_writer_number(out, "wave", p->wave);
	json_writer_number(out, "every_ms", p->every_ms);
	write_share(out, "abort_at", p->abort_at);
	json_writer_text(out, "driver", p->driver);
	json_writer_text(out, "by", p->by);
	json_writer_integer(out, "since_ms", p->since_ms);
	json_writer_text(out, "why", p->why);
	json_writer_text(out, "digest", p->digest);
	json_writer_number(out, "timeout_ms", p->timeout_ms);
	write_aborted(out, "aborted", p);
	json_writer_end_object(out);
	json_writer_end_object(out);
	return buffer_append_string(out, "\n");
}

void plan_fini(struct plan *p)
{
	document_free(p->document);
	*p = (struct plan){.state = PLAN_NONE};
}

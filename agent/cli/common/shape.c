/* The agent's answers as a table: only what commands rely on, so that newer agents fit too.
 * Surprising: an answer to refresh differs by its status, since one of them is not waited for. */
#include "cli/common/shape.h"

#include <string.h>

#define CONFIGS "/v1/configs/"
#define SMALL (1u << 20)
#define MEMBERS 4

/* A list is one of maps. */
struct member {
	const char *name;
	enum node_type type;
};

static const struct shape {
	/* or, below CONFIGS NAME, what follows; with a '?': how the path and its query begin */
	const char *method, *path;
	bool config;
	long status; /* 0 = 200 and 202 */
	size_t max_bytes;
	struct member members[MEMBERS];
} shapes[] = {
	{"GET", "/v1/status", false, 200, SHAPE_MAX_BYTES,
		{{"configs", NODE_LIST}, {"configuration", NODE_MAP}}},
	{"GET", "", true, 200, SHAPE_MAX_BYTES, {{"name", NODE_STRING}, {"state", NODE_STRING}}},
	{"GET", "/history", true, 200, SHAPE_MAX_BYTES,
		{{"name", NODE_STRING}, {"versions", NODE_LIST}}},
	{"GET", "/diff", true, 200, SHAPE_MAX_BYTES,
		{{"name", NODE_STRING}, {"from", NODE_MAP}, {"to", NODE_MAP},
			{"equal", NODE_BOOL}}},
	{"GET", "/explain?key=", true, 200, SHAPE_MAX_BYTES,
		{{"name", NODE_STRING}, {"found", NODE_BOOL}, {"layers", NODE_LIST}}},
	{"GET", "/explain", true, 200, SMALL,
		{{"name", NODE_STRING}, {"generation", NODE_INT}, {"facts", NODE_MAP}}},
	{"GET", "/wait", true, 200, SMALL,
		{{"ok", NODE_BOOL}, {"name", NODE_STRING}, {"generation", NODE_INT}}},
	{"POST", "/refresh", true, 200, SMALL,
		{{"name", NODE_STRING}, {"outcome", NODE_STRING}, {"generation", NODE_INT}}},
	{"POST", "/refresh", true, 202, SMALL, {{"fired", NODE_BOOL}}},
	{"POST", NULL, true, 0, SMALL,
		{{"ok", NODE_BOOL}, {"name", NODE_STRING}, {"generation", NODE_INT}}},
};

/* What follows the name of a config, without the query; NULL: it is another path. */
static const char *after_config(const char *path, size_t *ret_len)
{
	size_t len = strlen(CONFIGS);

	if (strncmp(path, CONFIGS, len) != 0)
		return NULL;
	path += len + strcspn(path + len, "/?");
	*ret_len = strcspn(path, "?");
	return path;
}

static bool shape_matches(const struct shape *s, const char *method, const char *path)
{
	size_t len = strcspn(path, "?");
	const char *rest = s->config ? after_config(path, &len) : path;

	if (strcmp(s->method, method) != 0 || !rest)
		return false;
	if (s->path && strchr(s->path, '?'))
		len = strlen(s->path);
	return !s->path || (strlen(s->path) == len && strncmp(rest, s->path, len) == 0);
}

static const struct shape *find_shape(const char *method, const char *path, long status)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (shape_matches(&shapes[i], method, path) &&
			(!status || !shapes[i].status || shapes[i].status == status))
			return &shapes[i];
	return NULL;
}

size_t shape_max_bytes(const char *method, const char *path)
{
	const struct shape *s = find_shape(method, path, 0);

	return s ? s->max_bytes : SHAPE_MAX_BYTES;
}

static bool has_member(const struct node *map, const struct member *m)
{
	const struct node *n = node_member(map, m->name, m->type);
	bool fits = n;

	if (fits && m->type == NODE_LIST)
		for (const struct node *c = n->first; c && fits; c = c->next)
			fits = c->type == NODE_MAP;
	return fits;
}

/* Each config of the status is shown by its name and its state. */
static bool has_configs(const struct node *root)
{
	static const struct member name = {"name", NODE_STRING}, state = {"state", NODE_STRING};

	for (const struct node *c = node_find(root, "configs")->first; c; c = c->next)
		if (!has_member(c, &name) || !has_member(c, &state))
			return false;
	return true;
}

bool shape_fits(const char *method, const char *path, long status, const struct node *root)
{
	const struct shape *s = find_shape(method, path, status);
	bool fits = root != NULL;

	if (!s) /* 200 where only a 202 can be, or a path of another form */
		return !find_shape(method, path, 0);
	for (size_t i = 0; i < MEMBERS && s->members[i].name && fits; i++)
		fits = has_member(root, &s->members[i]);
	return fits && (s->config || has_configs(root));
}

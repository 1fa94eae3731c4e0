/* A config's values as an environment. Surprising: whether it is too large for execve() is counted
 * here, before a running program is stopped for it. */
#include "cli/values/exec_env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_VARIABLE (128u << 10) /* Linux: MAX_ARG_STRLEN, the NUL included */
#define RESERVE 4096u             /* of _SC_ARG_MAX: the program's path, its auxiliary vector */

static size_t count_texts(const struct buffer *texts)
{
	size_t count = 0;

	for (size_t at = 0; at < texts->len; at += strlen(texts->data + at) + 1)
		count++;
	return count;
}

static bool is_replaced(char *const *list, size_t count, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < count; i++)
		if (strncmp(list[i], variable, len) == 0)
			return true;
	return false;
}

/* The texts, then what they leave of the caller's variables. */
static int make_list(struct exec_env *e)
{
	size_t own = count_texts(&e->texts), inherited = 0, count = 0;

	while (environ[inherited])
		inherited++;
	e->list = calloc(own + inherited + 1, sizeof(*e->list));
	if (!e->list)
		return -ENOMEM;
	for (size_t at = 0; at < e->texts.len; at += strlen(e->texts.data + at) + 1)
		e->list[count++] = e->texts.data + at;
	for (size_t i = 0; i < inherited; i++)
		if (!is_replaced(e->list, own, environ[i]))
			e->list[count++] = environ[i];
	return 0;
}

static size_t count_bytes(char *const *list)
{
	size_t bytes = sizeof(*list);

	for (; *list; list++)
		bytes += strlen(*list) + 1 + sizeof(*list);
	return bytes;
}

static int check_size(const struct exec_env *e, char *const *argv, struct export_error *error)
{
	size_t bytes = count_bytes(e->list) + count_bytes(argv) + RESERVE;
	long most = sysconf(_SC_ARG_MAX);

	for (char **v = e->list; *v; v++) {
		if (strlen(*v) < MAX_VARIABLE)
			continue;
		snprintf(error->message, sizeof(error->message),
			"the variable %.*s takes %zu bytes, and the system takes at most %u: leave "
			"the key out, or read it from the file or by libpullet",
			(int)(strcspn(*v, "=") < 100 ? strcspn(*v, "=") : 100), *v, strlen(*v) + 1,
			MAX_VARIABLE);
		return -E2BIG;
	}
	if (most < 0 || bytes <= (size_t)most)
		return 0;
	snprintf(error->message, sizeof(error->message),
		"the environment takes %zu bytes, and the system starts a program with at most "
		"%ld: "
		"read this config from its file or by libpullet",
		bytes, most);
	return -E2BIG;
}

int exec_env_read(struct pullet *p, const char *config, const char *prefix, char *const *argv,
	struct exec_env *ret, struct export_error *ret_error)
{
	static const struct export_selection all;
	struct exec_env e = {.list = NULL};
	int r;

	buffer_init(&e.texts, EXPORT_MAX_BYTES);
	r = export_flat(p, &all, FLATTEN_ENVIRON, prefix, &e.texts, ret_error);
	e.values = e.texts.len;
	if (r == 0)
		r = buffer_printf(&e.texts,
			"PULLET_CONFIG_NAME=%s%cPULLET_GENERATION=%" PRIu64 "%cPULLET_VERSION=%s%c",
			config, 0, pullet_generation(p), 0, pullet_version(p), 0);
	if (r == 0)
		r = make_list(&e);
	if (r == 0)
		r = check_size(&e, argv, ret_error);
	if (r)
		exec_env_fini(&e);
	else
		*ret = e;
	return r;
}

bool exec_env_same(const struct exec_env *a, const struct exec_env *b)
{
	return a->values == b->values &&
	       (!a->values || memcmp(a->texts.data, b->texts.data, a->values) == 0);
}

void exec_env_fini(struct exec_env *e)
{
	free(e->list);
	buffer_fini(&e->texts);
	*e = (struct exec_env){.list = NULL};
}

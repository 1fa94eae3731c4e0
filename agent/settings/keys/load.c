/*
 * The agent's configuration, from its files (pullet.yaml, then conf.d) to one struct.
 *
 * Surprising: all files are read and all errors reported; a file that cannot be parsed does not
 * hide the errors of the others. The keys are in keys.c and the files it includes.
 */
#include "settings/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "document/document.h"
#include "document/slip.h"
#include "files/file.h"
#include "base/log.h"
#include "text/sentence.h"
#include "settings/keys/keys.h"
#include "settings/keys/layers.h"
#include "settings/keys/own_places.h"
#include "settings/environment.h"
#include "settings/fingerprint.h"
#include "settings/keys/report.h"
#include "settings/loader.h"
#include "settings/keys/verify.h"
#include "settings/form.h"
#include "settings/walk.h"
#include "files/trusted.h"

#define MAX_FILE (1u << 20)
#define READ_CHUNK (64u << 10)
#define MAX_CONF_D 1000

/* No key in any file: an installation that nobody has touched yet. */
static bool is_loader_empty(const struct loader *l)
{
	for (size_t i = 0; i < LOADER_MAX_KEYS; i++)
		if (l->root_seen[i].file)
			return false;
	return l->errors == 0 && !l->no_memory;
}

static void complain_no_config(struct loader *l, struct place whole)
{
	static const char here[] = "this folder";
	const char *slash = strrchr(whole.file, '/');

	if (is_loader_empty(l))
		loader_complain(l, whole,
			"nothing is configured in %.*s: add a config under \"configs\" "
			"(pullet.yaml(5) has examples)",
			slash ? (int)(slash - whole.file) : (int)strlen(here),
			slash ? whole.file : here);
	else
		loader_complain(l, whole, "no config is set: add one under \"configs\"");
}

/* Checks the whole, hands the settings over or frees them. */
static int finish_loading(struct loader *l, const char *main_file, struct settings **ret_settings)
{
	struct place whole = {main_file, 0, 0};

	loader_complain_twice(l, &l->names, "config");
	loader_complain_twice(l, &l->paths, "file");
	loader_complain_inside(l, &l->paths);
	loader_complain_twice(l, &l->endpoints, "endpoint");
	loader_complain_twice(l, &l->labels, "label");
	loader_complain_twice(l, &l->servers, "server");
	if (l->s) {
		settings_keys_complete(l);
		settings_own_places_resolve(l);
		settings_layers_resolve(l);
		settings_verify_resolve(l);
		settings_report_resolve(l);
		if (l->s->config_count == 0 && !l->config_missed)
			complain_no_config(l, whole);
	}
	if (l->s && l->errors == 0 && !l->no_memory)
		settings_print_resolve(l);
	if (l->no_memory || !l->s) {
		l->no_memory = false;
		loader_complain(l, whole, "out of memory");
	}
	loader_complain_rest(l, main_file);
	if (l->errors == 0)
		*ret_settings = l->s;
	else
		settings_free(l->s);
	loader_fini(l);
	return l->errors > INT_MAX ? INT_MAX : (int)l->errors;
}

/* ---- files ---- */

/* The whole of a regular file, through symlinks: volumes of Kubernetes are made of them. 0, or
 * -errno: -EMSGSIZE when it is too large, -EINVAL when it is not a regular file. */
static int read_config_file(const char *path, struct buffer *out, char why[FILE_WHY])
{
	int fd = trusted_open(&sys_real, path, why), r = fd < 0 ? fd : 0;
	struct stat st;
	ssize_t n = 1;

	if (r == 0 && fstat(fd, &st))
		r = -errno;
	else if (r)
		;
	else if (!S_ISREG(st.st_mode))
		r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (st.st_mode & S_IWOTH)
		log_warn("anybody on this host can write the configuration, and with it make the "
			 "agent run programs: chmod o-w it",
			"file", path);
	while (r == 0 && n != 0) {
		r = buffer_reserve(out, READ_CHUNK);
		if (r)
			break;
		n = read(fd, out->data + out->len, READ_CHUNK);
		if (n < 0 && errno != EINTR)
			r = -errno;
		out->len += n > 0 ? (size_t)n : 0;
		if (out->len > MAX_FILE)
			r = -EMSGSIZE;
	}
	if (fd >= 0) {
		close(fd);
		if (r)
			file_remedy(why, -r, true);
	}
	return r;
}

static void complain_unread(struct loader *l, const char *file, int error, const char *why)
{
	l->config_missed = l->file_missed = true;
	loader_complain(l, (struct place){file, 0, 0}, "cannot be read: %.300s",
		error == EMSGSIZE ? "larger than 1 MiB"
		: error == EINVAL ? "not a regular file"
				  : why);
}

/* Hands what is in the file to `use`, or reports why it cannot be read. */
static void use_file(struct loader *l, char *name,
	void (*use)(struct loader *l, const char *file, const struct buffer *text))
{
	const char *file = loader_add_file(l, name);
	char why[FILE_WHY];
	struct buffer text;
	int r;

	if (!file)
		return;
	buffer_init(&text, MAX_FILE + READ_CHUNK);
	r = read_config_file(file, &text, why);
	if (r)
		complain_unread(l, file, -r, why);
	else
		use(l, file, &text);
	buffer_fini(&text);
}

static void load_environment(struct loader *l, const struct document *d)
{
	const struct node *n = node_find(document_root(d), "env_file");
	const char *why;

	if (!n || !walk_expect(l, n, "env_file", 1u << NODE_STRING, "a text"))
		return;
	why = settings_check_path(n->text);
	if (why) {
		loader_complain(l, walk_place(l, n), "env_file %s", why);
		return;
	}
	loader_opens(l, n->text);
	use_file(l, loader_copy(l, n->text), environment_read);
}

/* With what the environment has to say. */
static void read_settings_document(struct loader *l, const struct document *d)
{
	struct document *filled = NULL;
	int r;

	if (l->file == l->files[0])
		load_environment(l, d);
	r = environment_fill(l, d, &filled);
	if (r) {
		l->no_memory |= r == -ENOMEM;
		l->config_missed = l->file_missed = true;
		return;
	}
	settings_keys_read(l, document_root(filled ? filled : d));
	document_free(filled);
}

/* For guesses at what was meant. */
static void remember_text(struct loader *l, const char *file, const char *data, size_t len)
{
	size_t mark = len >= 3 && !memcmp(data, "\xef\xbb\xbf", 3) ? 3 : 0;

	l->file = file;
	l->text = data + mark;
	l->text_len = len - mark;
}

/* YAML takes what only looks like a blank for the beginning of a key. */
static bool complain_odd_blank(struct loader *l)
{
	struct document_error error;
	const char *message;
	size_t at;

	if (!slip_find_odd_blank(l->text, l->text_len, &at, &message))
		return false;
	document_place(l->text, l->text_len, at, &error);
	loader_complain(l, (struct place){l->file, error.line, error.column}, "%s", message);
	return true;
}

static void parse_config_file(struct loader *l, const char *file, const char *data, size_t len)
{
	char shown[sizeof(((struct document_error *)NULL)->message)];
	struct document_error error = {0};
	struct document *d = NULL;
	int r = document_parse(DOCUMENT_YAML, data, len,
		DOCUMENT_KEEP_DUPLICATES | DOCUMENT_ALLOW_EMPTY, &d, &error);

	remember_text(l, file, data, len);
	if (r == 0 && complain_odd_blank(l)) {
		l->config_missed = l->file_missed = true;
	} else if (r == 0) {
		read_settings_document(l, d);
	} else if (r == -ENOMEM) {
		l->no_memory = true;
	} else {
		l->config_missed = l->file_missed = true; /* the text there may be a secret */
		loader_complain(l, (struct place){file, error.line, error.column}, "%s",
			sentence_show(shown, sizeof(shown), error.message, AUDIENCE_READER));
	}
	document_free(d);
	l->text = NULL;
}

static void use_configuration(struct loader *l, const char *file, const struct buffer *text)
{
	parse_config_file(l, file, text->data ? text->data : "", text->len);
}

static void load_file(struct loader *l, char *name)
{
	use_file(l, name, use_configuration);
}

/* conf.d beside the main file; none is no error. */
static void load_parts(struct loader *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name, why[FILE_WHY], *names[MAX_CONF_D];
	const char *folder;
	int n;

	if (asprintf(&name, "%.*sconf.d", slash ? (int)(slash + 1 - path) : 0, path) < 0)
		name = NULL;
	folder = loader_add_file(l, name);
	if (!folder)
		return;
	n = trusted_list(
		&sys_real, folder, (const char *const[]){".yaml", NULL}, names, MAX_CONF_D, why);
	if (n == -ENOMEM)
		l->no_memory = true;
	else if (n == -E2BIG)
		loader_complain(l, (struct place){folder, 0, 0},
			"holds more than %d files: remove some, or put several into one",
			MAX_CONF_D);
	else if (n < 0 && n != -ENOENT)
		complain_unread(l, folder, -n, why);
	for (int i = 0; i < n; i++) {
		if (asprintf(&name, "%s/%s", folder, names[i]) < 0)
			l->no_memory = true;
		else
			load_file(l, name);
		free(names[i]);
	}
}

static int load_all(struct loader *l, const char *path, struct settings **ret_settings)
{
	if (l->s) {
		load_file(l, loader_copy(l, path));
		load_parts(l, path);
	}
	return finish_loading(l, path, ret_settings);
}

int settings_load(
	const char *path, settings_report report, void *arg, struct settings **ret_settings)
{
	struct loader l = {.s = settings_keys_new(), .report = report, .arg = arg};

	return load_all(&l, path, ret_settings);
}

int settings_load_with(
	const char *path, const struct settings_reading *how, struct settings **ret_settings)
{
	struct loader l = {.s = settings_keys_new(),
		.report = how->report,
		.look = how->look,
		.look_all = how->look_all,
		.twins = how->twins,
		.arg = how->arg,
		.opens = how->opens,
		.opens_arg = how->opens_arg};

	return load_all(&l, path, ret_settings);
}

static void report_nothing(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

bool settings_is_untouched(const char *path)
{
	struct loader l = {
		.s = settings_keys_new(), .report = report_nothing, .config_missed = true};
	struct settings *s = NULL;
	bool untouched = false;

	if (l.s) {
		load_file(&l, loader_copy(&l, path));
		load_parts(&l, path);
		untouched = is_loader_empty(&l);
	}
	if (finish_loading(&l, path, &s) == 0)
		settings_free(s);
	return untouched;
}

int settings_load_servers(
	const char *path, settings_report report, void *arg, struct settings **ret_settings)
{
	struct loader l = {
		.s = settings_keys_new(), .report = report, .arg = arg, .config_missed = true};

	return load_all(&l, path, ret_settings);
}

int settings_parse(const char *name, const char *data, size_t len, settings_report report,
	void *arg, struct settings **ret_settings)
{
	struct loader l = {.s = settings_keys_new(), .report = report, .arg = arg};
	const char *file = l.s ? loader_add_file(&l, loader_copy(&l, name)) : NULL;

	if (file)
		parse_config_file(&l, file, data, len);
	return finish_loading(&l, name, ret_settings);
}

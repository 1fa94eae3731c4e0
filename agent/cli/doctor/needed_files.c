/*
 * What the agent reads: secrets, certificates, schemas, its configuration. May it, and may others?
 * Surprising: what is in the way of a file may be any of the directories above it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "files/user.h"

size_t doctor_server_files(
	const struct settings_server *s, struct doctor_needed_file ret[DOCTOR_NEEDED_FILES])
{
	const struct doctor_needed_file all[] = {
		{s->bearer_file, "bearer_file", true},
		{s->password_file, "password_file", true},
		{s->secret_file, "secret_file", true},
		{s->session_token_file, "session_token_file", true},
		{s->key, "tls.key", true},
		{s->cert, "tls.cert", !s->key}, /* else the key is in it */
		{s->ca, "tls.ca", false},
		{s->crl, "tls.crl", false},
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].path)
			ret[n++] = all[i];
	for (size_t i = 0; i < s->header_count; i++)
		if (s->headers[i].file)
			ret[n++] =
				(struct doctor_needed_file){s->headers[i].file, "a header", true};
	return n;
}

/* The first part of the path that the agent may not pass, or read. */
static void find_denial(struct doctor *d, struct doctor_list *l, const char *path, char ret[512])
{
	size_t len = 0;

	do {
		len += strspn(path + len, "/");
		len += strcspn(path + len, "/");
		snprintf(ret, 512, "%.*s", (int)len, path);
	} while (path[len] && doctor_try_access(d, l, ret, X_OK) == 0);
}

void doctor_configuration_rights(struct doctor *d, struct doctor_list *l)
{
	char part[512], user[USER_TEXT], group[USER_TEXT];
	struct doctor_place p;

	if (!d->unit.applies || doctor_try_access(d, l, d->path, R_OK) != -EACCES)
		return;
	find_denial(d, l, d->path, part);
	if (doctor_stat_path(d, l, part, true, &p))
		return;
	user_describe(&sys_real, p.st.stx_uid, user);
	user_describe_group(&sys_real, p.st.stx_gid, group);
	doctor_add(l, DOCTOR_ERROR, d->path,
		"put that user into a group that may (usermod -aG), or chgrp and chmod it",
		"%s may not read the configuration: %s is of %s and the group %s, mode %04o",
		d->who.name, part, user, group, p.st.stx_mode & 07777);
}

static void check_needed_file(
	struct doctor *d, struct doctor_list *l, const struct doctor_needed_file *f)
{
	struct doctor_place p;
	int r = doctor_stat_path(d, l, f->path, true, &p);

	if (r == -EACCES && !d->who.can_try) {
		doctor_add(l, DOCTOR_NOTE, f->path, DOCTOR_HELP_US, "%s: you may not look at it",
			f->what);
		return;
	}
	if (r) {
		doctor_add(l, DOCTOR_ERROR, f->path, "make it, or name another one", "%s: %s",
			f->what, strerror(-r));
		return;
	}
	r = doctor_try_access(d, l, f->path, R_OK);
	if (r && r != -ENOTSUP)
		doctor_add(l, DOCTOR_ERROR, f->path,
			"give it to root and a group that only the agent has, with mode 0640",
			"%s: %s may not read it: %s", f->what, d->who.name, strerror(-r));
	if (f->secret && p.st.stx_mode & (S_IROTH | S_IWOTH) && !doctor_is_shielded(f->path))
		doctor_add(l, DOCTOR_WARNING, f->path, "chmod o-rwx",
			"%s: everybody on this host can %s it", f->what,
			p.st.stx_mode & S_IWOTH ? "change" : "read");
	else if (r == 0)
		doctor_add(l, DOCTOR_OK, f->path, NULL, "the agent can read it");
}

static bool server_is_wanted(const struct doctor *d, size_t server)
{
	if (!d->only)
		return true;
	for (size_t i = 0; i < d->settings->config_count; i++) {
		const struct settings_config *c = d->settings->configs[i];

		for (size_t k = 0; doctor_is_selected(d, c) && k < c->layer_count; k++)
			if (c->layers[k].server == server)
				return true;
	}
	return false;
}

void doctor_needed_files(struct doctor *d, struct doctor_list *l)
{
	const struct settings *s = d->settings;
	struct doctor_needed_file files[DOCTOR_NEEDED_FILES];

	for (size_t i = 0; i < s->server_count; i++) {
		size_t n = server_is_wanted(d, i) ? doctor_server_files(s->servers[i], files) : 0;

		for (size_t k = 0; k < n; k++)
			check_needed_file(d, l, &files[k]);
		if (n)
			doctor_certificates(d, l, s->servers[i]);
	}
	for (size_t i = 0; i < s->push_count; i++)
		if (s->push[i].secret_key_file)
			check_needed_file(d, l,
				&(struct doctor_needed_file){
					s->push[i].secret_key_file, "secret_key_file", true});
	for (size_t i = 0; i < s->config_count; i++) {
		const struct settings_config *c = s->configs[i];

		if (c->schema && doctor_is_selected(d, c))
			check_needed_file(
				d, l, &(struct doctor_needed_file){c->schema, "schema", false});
		if (c->template_file && doctor_is_selected(d, c))
			check_needed_file(d, l,
				&(struct doctor_needed_file){c->template_file, "template", false});
		if (c->schema_dir && doctor_is_selected(d, c))
			check_needed_file(d, l,
				&(struct doctor_needed_file){c->schema_dir, "schema_dir", false});
	}
}

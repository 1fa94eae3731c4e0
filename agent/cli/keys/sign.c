/*
 * pullet sign: signatures that the agent and minisign accept, each with a growing number and the
 * name of its config or path.
 *
 * Surprising: a signature is validated as an agent would check it before it is written, so that no
 * comment of the caller's can say something else than the options do.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "crypto/key_file.h"
#include "crypto/minisign_secret.h"
#include "files/trusted.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/keys/secrets.h"

#define MAX_DOCUMENT (64u << 20)
#define MAX_REV ((uint64_t)INT64_MAX) /* nanoseconds since 1970 are less; as many follow it */

struct options {
	const char *key_file, *password_file, *config, *path, *comment, *output;
	bool unbound, has_rev;
	uint64_t rev;
};

struct signer {
	const char *command;
	const struct options *o;
	struct minisign_secret key;
	char public_key[MINISIGN_SECRET_TEXT];
};

static int read_rev(void *target, const char *command, char *text)
{
	struct options *o = target;
	char *end;

	errno = 0;
	o->rev = strtoull(text, &end, 10);
	o->has_rev = true;
	if (errno || *end || *text < '0' || *text > '9' || o->rev > MAX_REV)
		return cli_error(CLI_USAGE, command,
			"--rev takes a number from 0 to %" PRIu64
			", behind which newer versions have room, not '%s'",
			MAX_REV, text);
	return CLI_OK;
}

static const struct option_row sign_rows[] = {
	{"secret-key", "FILE", "a key of pullet keygen --sign, or of minisign", OPTION_TEXT,
		.at = offsetof(struct options, key_file), .letter = 's'},
	{"rev", "N",
		"agents reject one that is lower than the last they accepted (default: one\n"
		"more than in FILE.minisig, if this key signed that; else seconds since 1970)",
		OPTION_READ, .read = read_rev},
	{"path", "PATH",
		"where the document is at the server (default /NAME of FILE, without --config)",
		OPTION_TEXT, .at = offsetof(struct options, path)},
	{"config", "NAME", "the only config that it is for", OPTION_TEXT,
		.at = offsetof(struct options, config)},
	{"unbound", NULL, "it is for any config and any path", OPTION_FLAG,
		.at = offsetof(struct options, unbound)},
	{"comment", "COMMENT",
		"further words that are signed, such as expires=2026-12-31T00:00:00Z", OPTION_TEXT,
		.at = offsetof(struct options, comment)},
	{"output", "FILE", "the signature's file, where one document is signed", OPTION_TEXT,
		.at = offsetof(struct options, output), .letter = 'o'},
	{"password-file", "FILE", "the secret key's password", OPTION_TEXT,
		.at = offsetof(struct options, password_file)},
	{0},
};

static const struct command_line sign_line = {
	.usage = "Usage: pullet sign FILE... -s FILE [--rev N] [--config NAME] [--path PATH | "
		 "--unbound]\n"
		 "                   [--comment COMMENT] [-o FILE] [--password-file FILE]\n"
		 "Signs documents for agents that verify them: writes FILE.minisig, and prints "
		 "its comment.\n",
	.rows = sign_rows,
	.max = -1,
};

/* ---- the key ---- */

static int read_signing_key(struct signer *s, const char *password)
{
	char text[MINISIGN_SECRET_MAX_FILE + 1];
	const char *why;
	size_t len;
	int r = key_file_read_secret(&sys_real, s->o->key_file, text, sizeof(text), &len, &why);

	if (r == -ENOENT)
		why = "there is no such file: pullet keygen --sign makes one";
	if (r == 0)
		r = minisign_secret_read(text, len, password, &s->key, &why);
	explicit_bzero(text, sizeof(text));
	if (r == 0 && minisign_secret_write_public(&s->key, s->public_key)) {
		r = -ENOMEM;
		why = "no memory";
	}
	return r ? cli_error(CLI_FAILED, s->command, "%s: %s", s->o->key_file, why) : CLI_OK;
}

static int open_signing_key(struct signer *s)
{
	char password[SECRETS_PASSWORD] = "";
	const char *file = s->o->password_file;
	int r = file ? secrets_password(s->command, file, password) : CLI_OK;

	if (r == CLI_OK)
		r = read_signing_key(s, file ? password : NULL);
	explicit_bzero(password, sizeof(password));
	return r;
}

/* ---- one document ---- */

/* A lower number than the present signature's makes a document that agents reject as played back.
 */
static int check_given_rev(
	const struct signer *s, const char *output, const struct minisign_facts *old)
{
	if (!old->has_rev || s->o->rev >= old->rev)
		return CLI_OK;
	return cli_error(CLI_FAILED, s->command,
		"%s has rev=%" PRIu64 ": agents that accepted that reject rev=%" PRIu64
		" as an old version; give a higher one, or leave --rev out. If no agent ever had "
		"it, remove that file first",
		output, old->rev, s->o->rev);
}

/* What -o names is replaced: nothing, an empty file or a signature may lie there, but no document
 * and no key. */
static int check_output(const struct signer *s, const char *output)
{
	struct buffer old;
	char why[FILE_WHY];
	bool is_good;
	int r;

	buffer_init(&old, MINISIGN_MAX_FILE);
	r = trusted_read(&sys_real, output, &old, why);
	is_good = r == -ENOENT ||
		  (r == 0 && (old.len == 0 || strstr(old.data, "\ntrusted comment: ")));
	buffer_fini(&old);
	if (is_good)
		return CLI_OK;
	return cli_error(CLI_FAILED, s->command,
		"%s is not replaced: %s: remove it, or name another file with --output", output,
		r && r != -EMSGSIZE ? why : "it is there, and is no signature");
}

/* The number of a document: given, or one more than in its present signature. */
static int choose_rev(const struct signer *s, const char *output, uint64_t *ret_rev)
{
	struct minisign_facts facts = {0};
	struct buffer old;
	char why[FILE_WHY];
	int r;

	*ret_rev = s->o->has_rev ? s->o->rev : (uint64_t)sys_real.wall_ms() / 1000;
	buffer_init(&old, MINISIGN_MAX_FILE);
	r = trusted_read(&sys_real, output, &old, why);
	if (r == 0)
		r = minisign_read_comment(s->public_key, old.data ? old.data : "", old.len, &facts);
	else if (r != -ENOENT && r != -EMSGSIZE && !s->o->has_rev)
		r = cli_error(CLI_FAILED, s->command,
			"%s cannot be read: %s; set the number with --rev", output, why);
	buffer_fini(&old);
	if (r > 0)
		return r;
	if (r || !facts.has_rev)
		return CLI_OK;
	if (s->o->has_rev)
		return check_given_rev(s, output, &facts);
	if (facts.rev == UINT64_MAX)
		return cli_error(CLI_FAILED, s->command,
			"%s: its rev is the last there is: use another key", output);
	*ret_rev = facts.rev + 1;
	return CLI_OK;
}

/* The path for a document's signature, or "". False when it is too long. */
static bool choose_path(const struct options *o, const char *file, char ret_path[PATH_MAX])
{
	const char *slash = strrchr(file, '/');
	bool by_name = !o->path && !o->config && !o->unbound;
	int n = snprintf(ret_path, PATH_MAX, "%s%s", by_name ? "/" : "",
		by_name   ? slash ? slash + 1 : file
		: o->path ? o->path
			  : "");

	return n < PATH_MAX;
}

/* The trusted comment. False when it is too long. */
static bool compose_comment(
	const struct options *o, const char *path, uint64_t rev, char *ret, size_t size)
{
	int n = snprintf(ret, size, "rev=%" PRIu64 "%s%s%s%s%s%s", rev, path[0] ? " path=" : "",
		path, o->config ? " config=" : "", o->config ? o->config : "",
		o->comment ? " " : "", o->comment ? o->comment : "");

	return n >= 0 && (size_t)n < size;
}

/* Verifies the signature as an agent would, with the names of the options. */
static int validate_signature(const struct signer *s, const char *file, const char *path,
	const struct buffer *document, const char *text)
{
	const struct options *o = s->o;
	char *keys[] = {(char *)s->public_key, NULL};
	struct minisign_facts f;
	char why[FILE_WHY];
	int r = minisign_verify(keys, document->data ? document->data : "", document->len, text,
		strlen(text), &f, why);

	if (r == 0 && (strcmp(f.config, o->config ? o->config : "") || strcmp(f.path, path))) {
		snprintf(why, sizeof(why),
			"a name with a blank, or --comment, makes it name another config or path "
			"than it should: use --path");
		r = -EINVAL;
	}
	return r ? cli_error(CLI_FAILED, s->command, "%s is not signed: %s", file, why) : CLI_OK;
}

static int write_signature(const struct signer *s, const char *path, const char *text)
{
	struct file_options options = {
		.mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = true};
	char why[FILE_WHY];
	const char *name;
	int r, dir = trusted_open_parent(&sys_real, path, TRUSTED_ANY, &name, why);

	if (dir < 0)
		return cli_error(CLI_FAILED, s->command, "cannot write %s: %s", path, why);
	r = file_replace(&sys_real, dir, name, text, strlen(text), &options, why);
	sys_real.close(dir);
	return r ? cli_error(CLI_FAILED, s->command, "cannot write %s: %s", path, why) : CLI_OK;
}

static int sign_text(
	const struct signer *s, const char *file, const char *output, const struct buffer *document)
{
	char path[PATH_MAX], comment[MINISIGN_MAX_FILE], text[MINISIGN_MAX_FILE + 1];
	uint64_t rev;
	int r = s->o->output ? check_output(s, output) : CLI_OK;

	if (r == CLI_OK)
		r = choose_rev(s, output, &rev);
	if (r)
		return r;
	r = choose_path(s->o, file, path) &&
			    compose_comment(s->o, path, rev, comment, sizeof(comment))
		    ? 0
		    : -EMSGSIZE;
	if (r == 0)
		r = minisign_secret_sign(&s->key, document->data ? document->data : "",
			document->len, comment, text);
	if (r)
		return cli_error(CLI_FAILED, s->command, "%s is not signed: %s", file,
			r == -EMSGSIZE ? "the signature would be larger than 4 KiB: shorten the "
					 "comment"
				       : "no memory, or libcrypto is set up without BLAKE2b or "
					 "Ed25519");
	r = validate_signature(s, file, path, document, text);
	if (r == CLI_OK)
		r = write_signature(s, output, text);
	if (r == CLI_OK)
		printf("%s: %s\n", output, comment);
	return r;
}

static int sign_file(const struct signer *s, const char *file)
{
	char output[PATH_MAX], why[FILE_WHY];
	struct buffer document;
	int r;

	if (snprintf(output, sizeof(output), "%s%s", s->o->output ? s->o->output : file,
		    s->o->output ? "" : ".minisig") >= (int)sizeof(output))
		return cli_error(CLI_FAILED, s->command, "%.80s...: the path is too long", file);
	buffer_init(&document, MAX_DOCUMENT);
	r = trusted_read(&sys_real, file, &document, why);
	if (r)
		cli_error(CLI_FAILED, s->command, "%s cannot be read: %s", file,
			r == -EMSGSIZE ? "it is larger than 64 MiB" : why);
	else
		r = sign_text(s, file, output, &document);
	buffer_fini(&document);
	return r ? CLI_FAILED : CLI_OK;
}

/* ---- the command ---- */

static bool has_no_controls(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static int check_sign_options(const char *command, const struct options *o, int files)
{
	if (files < 1 || !o->key_file)
		return options_misused(
			&sign_line, command, "name a file to sign, and a key with -s");
	if (o->unbound && (o->path || o->config))
		return options_misused(&sign_line, command,
			"--unbound is for no path and no config: name neither");
	if (files > 1 && (o->path || o->output))
		return options_misused(&sign_line, command,
			"--path and --output are of one document: name one file");
	if (o->comment && !has_no_controls(o->comment))
		return cli_error(
			CLI_USAGE, command, "a comment is one line without control characters");
	return CLI_OK;
}

static int sign_files(const char *command, const struct options *o, char **files, int count)
{
	struct signer s = {.command = command, .o = o};
	int r = open_signing_key(&s), worst = r;

	for (int i = 0; r == CLI_OK && i < count; i++)
		if (sign_file(&s, files[i]))
			worst = CLI_FAILED;
	explicit_bzero(&s.key, sizeof(s.key));
	return worst;
}

int cli_sign(int argc, char **argv)
{
	struct options o = {0};
	int r;

	sys_forbid_dumps();
	r = options_read(&sign_line, argc, argv, &o);
	if (r >= 0)
		return r;
	r = check_sign_options(argv[0], &o, argc - optind);
	return r ? r : sign_files(argv[0], &o, argv + optind, argc - optind);
}

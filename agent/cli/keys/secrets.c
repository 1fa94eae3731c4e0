/*
 * Keys of signatures, made and opened. Surprising: a password comes from a file, never from a
 * terminal: what signs runs unattended.
 */
#include "cli/keys/secrets.h"

#include <stdio.h>
#include <string.h>

#include "crypto/key_file.h"
#include "cli/common/cli.h"

int secrets_password(const char *command, const char *path, char ret_password[SECRETS_PASSWORD])
{
	const char *why;
	size_t len;
	int r = key_file_read_secret(
		&sys_real, path, ret_password, SECRETS_PASSWORD - 1, &len, &why);

	if (r)
		return cli_error(CLI_FAILED, command,
			"%s: cannot read the password: it must be in a regular file of less than "
			"%d "
			"bytes that others cannot read (chmod 600)",
			path, SECRETS_PASSWORD - 1);
	ret_password[len] = '\0';
	ret_password[strcspn(ret_password, "\r\n")] = '\0';
	return ret_password[0] ? CLI_OK
			       : cli_error(CLI_FAILED, command,
					 "%s: its first line, the password, is empty", path);
}

static void fill_random(unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t n = sys_real.random();

		memcpy(data + i, &n, sizeof(n));
	}
}

/* The texts of a new pair. 0 or -ENOMEM. */
static int make_pair_texts(const char *password, char ret_secret[MINISIGN_SECRET_TEXT],
	char ret_public[MINISIGN_SECRET_TEXT])
{
	unsigned char salt[MINISIGN_SECRET_SALT];
	struct minisign_secret k;
	int r;

	fill_random(k.id, sizeof(k.id));
	fill_random(k.seed, sizeof(k.seed));
	fill_random(salt, sizeof(salt));
	r = minisign_secret_make(&k);
	if (r == 0)
		r = minisign_secret_write(&k, password, salt, ret_secret);
	if (r == 0)
		r = minisign_secret_write_public(&k, ret_public);
	explicit_bzero(&k, sizeof(k));
	return r;
}

/* Wipes what no variable holds: the C library copies texts by vector registers, and the dynamic
 * linker saves all of them on the stack when a library calls another one for the first time. */
static void wipe_copies(size_t len)
{
	void *(*volatile copy)(void *to, const void *from, size_t n) = memcpy;
	static const char zeros[MINISIGN_SECRET_TEXT];
	char stack[32u << 10];

	copy(stack, zeros, len < sizeof(zeros) ? len : sizeof(zeros)); /* the same registers */
	explicit_bzero(stack, sizeof(stack));
}

int secrets_make(const char *command, const char *path, const char *password_file)
{
	char password[SECRETS_PASSWORD] = "", secret[MINISIGN_SECRET_TEXT],
	     public[MINISIGN_SECRET_TEXT];
	char why[FILE_WHY];
	size_t len;
	int r = password_file ? secrets_password(command, password_file, password) : CLI_OK;

	if (r)
		return r;
	r = make_pair_texts(password_file ? password : NULL, secret, public);
	explicit_bzero(password, sizeof(password));
	if (r)
		return cli_error(CLI_FAILED, command,
			"no memory (sealing takes 128 MiB), or libcrypto is set up without "
			"Ed25519 or scrypt");
	r = key_file_write_pair(&sys_real, path, secret, public, why);
	len = strlen(secret);
	explicit_bzero(secret, sizeof(secret));
	wipe_copies(len);
	if (r)
		return cli_error(CLI_FAILED, command, "%s", why);
	printf("%s", strchr(public, '\n') + 1);
	return cli_error(CLI_OK, command,
		"the secret key is in %s, the public key, shown here for `verify: {public_key: "
		"...}`, in %s.pub",
		path, path);
}

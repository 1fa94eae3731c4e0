/*
 * pullet keygen: a pair of keys for the push channel, for an agent or for a publisher, or for
 * signatures.
 *
 * Surprising: it needs a file. A secret key on a terminal or in a pipe, as of wg genkey, ends in a
 * file that the shell makes readable for all; then the agent rejects it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "crypto/curve_keys.h"
#include "push/subscriber.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/keys/secrets.h"

struct options {
	const char *password_file;
	bool sign;
};

static const struct option_row keygen_rows[] = {
	{"sign", NULL,
		"make a key for pullet sign and minisign instead, whose public key is\n"
		"the agents' verify: public_key",
		OPTION_FLAG, .at = offsetof(struct options, sign)},
	{"password-file", "FILE", "seal that secret key with the password on FILE's first line",
		OPTION_TEXT, .at = offsetof(struct options, password_file)},
	{0},
};

static const struct command_line keygen_line = {
	.usage = "Usage: pullet keygen FILE\n"
		 "       pullet keygen --sign FILE [--password-file FILE]\n"
		 "Makes a pair of keys for the push channel: writes the secret key to FILE, which "
		 "only its owner can read,\n"
		 "and the public key to FILE.pub, and prints the public key. Never overwrites a "
		 "file.\n\n"
		 "A publisher names its FILE with --curve-secret-key, an agent as "
		 "secret_key_file; the publisher's public\n"
		 "key is the agents' server_key, and an agent's public key goes onto the "
		 "publisher's --curve-allow list.\n",
	.rows = keygen_rows,
	.min = 1,
	.max = 1,
	.wants = "name one file for the secret key",
};

static int make_curve_pair(const char *command, const char *path)
{
	char public_key[CURVE_TEXT], secret_key[CURVE_TEXT], why[CURVE_WHY];
	int r = subscriber_make_keys(public_key, secret_key);

	if (r)
		return cli_error(CLI_FAILED, command,
			"libzmq was built without CURVE: install one that has it");
	r = curve_write_pair(&sys_real, path, public_key, secret_key, why);
	explicit_bzero(secret_key, sizeof(secret_key));
	if (r)
		return cli_error(CLI_FAILED, command, "%s", why);
	printf("%s\n", public_key);
	return cli_error(CLI_OK, command,
		"the secret key is in %s, the public key, shown here, in %s.pub", path, path);
}

int cli_keygen(int argc, char **argv)
{
	struct options o = {.sign = false};
	int r;

	sys_forbid_dumps();
	r = options_read(&keygen_line, argc, argv, &o);
	if (r >= 0)
		return r;
	if (o.password_file && !o.sign)
		return options_misused(&keygen_line, argv[0],
			"--password-file goes with --sign: only such a key is sealed");
	return o.sign ? secrets_make(argv[0], argv[optind], o.password_file)
		      : make_curve_pair(argv[0], argv[optind]);
}

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
#include "cli/keys/secrets.h"

static void keygen_usage(FILE *out)
{
	fputs("Usage: pullet keygen FILE\n"
	      "       pullet keygen --sign FILE [--password-file FILE]\n"
	      "Makes a pair of keys for the push channel: writes the secret key to FILE, which "
	      "only its owner can read,\n"
	      "and the public key to FILE.pub, and prints the public key. Never overwrites a "
	      "file.\n\n"
	      "A publisher names its FILE with --curve-secret-key, an agent as secret_key_file; "
	      "the publisher's public\n"
	      "key is the agents' server_key, and an agent's public key goes onto the publisher's "
	      "--curve-allow list.\n\n"
	      "      --sign                make a key for pullet sign and minisign instead, whose "
	      "public key is\n"
	      "                            the agents' verify: public_key\n"
	      "      --password-file FILE  seal that secret key with the password on FILE's first "
	      "line\n",
		out);
}

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
	enum { SIGN = 256, PASSWORD };
	static const struct option longs[] = {
		{"sign", no_argument, NULL, SIGN},
		{"password-file", required_argument, NULL, PASSWORD},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *password_file = NULL;
	bool sign = false;
	int opt;

	sys_forbid_dumps();
	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == SIGN)
			sign = true;
		else if (opt == PASSWORD)
			password_file = optarg;
		else if (opt == 'h')
			return keygen_usage(stdout), CLI_OK;
		else
			return cli_bad_option(argv[0]);
	}
	if (argc - optind != 1)
		return cli_misused(argv[0], keygen_usage, "name one file for the secret key");
	if (password_file && !sign)
		return cli_misused(argv[0], keygen_usage,
			"--password-file goes with --sign: only such a key is sealed");
	return sign ? secrets_make(argv[0], argv[optind], password_file)
		    : make_curve_pair(argv[0], argv[optind]);
}

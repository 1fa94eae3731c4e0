/*
 * An etcd from the command line: which one, one request waited for, a watch.
 *
 * Threads: one, which waits. Ownership: options are borrowed until etcd_close(). Errors: those of
 * etcd_open() are exit codes, printed; the others -errno with a sentence.
 */
#ifndef PULLET_CLI_ETCD_H
#define PULLET_CLI_ETCD_H

#include "fleet/etcd_store.h"
#include "fleet/receipt.h"
#include "base/loop.h"
#include "settings/settings.h"

#define ETCD_TIMEOUT_MS 10000u /* of a request */
#define ETCD_IDLE_MS 60000u    /* a watch that is silent for so long is restarted */
#define ETCD_MAX_ANSWER (16u << 20)

struct etcd;

struct etcd_options {
	const char *command;
	const char *file;   /* the agent's configuration; NULL = $PULLET_CONFIG, then the default */
	const char *server; /* of that file; NULL = that of its report */
	const char *prefix; /* NULL = the file's, or the default */
	const char *url;    /* instead of a file's server; with: */
	const char *user, *password_file, *ca, *cert, *key; /* NULL = none */
	/* A config of the file: the server of its rollout document, in place of `server`; NULL. */
	const char *rollout_of;
};

/* The rows of what `type` has as a struct etcd_options named `member`. */
#define ETCD_OPTION_ROWS(type, member)                                                             \
	{"config", "FILE",                                                                         \
		"the agent's configuration, which names the etcd\n(default "                       \
		"$PULLET_CONFIG, then " SETTINGS_DEFAULT_PATH ")",                                 \
		OPTION_TEXT, .at = offsetof(type, member.file), .letter = 'c'},                    \
		{"server", "NAME", "another etcd of that file than its report's", OPTION_TEXT,     \
			.at = offsetof(type, member.server)},                                      \
		{"etcd", "URL", "an etcd without such a file; with these options:", OPTION_TEXT,   \
			.at = offsetof(type, member.url)},                                         \
		{"user", "NAME", "log in as this user,", OPTION_TEXT,                              \
			.at = offsetof(type, member.user)},                                        \
		{"password-file", "FILE", "with the password in this file", OPTION_TEXT,           \
			.at = offsetof(type, member.password_file)},                               \
		{"ca", "FILE", "the authority of its certificate", OPTION_TEXT,                    \
			.at = offsetof(type, member.ca)},                                          \
		{"cert", "FILE", "a client certificate,", OPTION_TEXT,                             \
			.at = offsetof(type, member.cert)},                                        \
		{"key", "FILE", "and its key", OPTION_TEXT, .at = offsetof(type, member.key)},     \
	{                                                                                          \
		"prefix", "P", "of the keys (default that of the file, or " RECEIPT_PREFIX ")",    \
			OPTION_TEXT, .at = offsetof(type, member.prefix)                           \
	}

/* Options of the other way of naming an etcd would be ignored. CLI_OK, or CLI_USAGE, printed. */
int etcd_check_options(const struct etcd_options *o);

/* CLI_OK and *ret, or the exit code. */
int etcd_open(const struct etcd_options *o, struct etcd **ret_etcd);
void etcd_close(struct etcd *e);
const char *etcd_prefix(const struct etcd *e);
const char *etcd_name(const struct etcd *e); /* for messages: its first address */
/* The key of the rollout document of rollout_of; NULL without a file. */
const char *etcd_rollout_key(const struct etcd *e);
struct loop *etcd_loop(struct etcd *e);
/* No request waits beyond that time of the loop; 0 = only ETCD_TIMEOUT_MS. */
void etcd_set_deadline(struct etcd *e, uint64_t deadline_ms);

/* As exchange_calls.build. */
typedef int (*etcd_build)(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY]);

/* Asks each address until one answers. 0 and *ret, or as etcd_store_read(). */
int etcd_ask(struct etcd *e, etcd_build build, void *arg, struct etcd_store_answer *ret,
	char why[FILE_WHY]);
/* Begins a watch at the next address, without waiting: calls line() for each line, and ended() at
 * the end with an error as of etcd_store_read(); 0 = it ended or was silent for ETCD_IDLE_MS. One
 * at a time. */
int etcd_watch(struct etcd *e, etcd_build build,
	void (*line)(void *arg, const struct etcd_store_answer *a),
	void (*ended)(void *arg, int error, const char *why), void *arg, char why[FILE_WHY]);
/* Ends a watch; may be called from line(). */
void etcd_unwatch(struct etcd *e);

#endif

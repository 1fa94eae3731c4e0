/*
 * An etcd from the command line: which one, one request waited for, a watch.
 *
 * Threads: one, which waits. Ownership: options are borrowed until etcd_close(). Errors: those of
 * etcd_open() are exit codes, printed; the others -errno with a sentence.
 */
#ifndef PULLET_CLI_ETCD_H
#define PULLET_CLI_ETCD_H

#include "fleet/etcd_store.h"
#include "base/loop.h"

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
};

/* CLI_OK and *ret, or the exit code. */
int etcd_open(const struct etcd_options *o, struct etcd **ret_etcd);
void etcd_close(struct etcd *e);
const char *etcd_prefix(const struct etcd *e);
const char *etcd_name(const struct etcd *e); /* for messages: its first address */
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

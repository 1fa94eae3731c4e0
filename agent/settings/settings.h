/*
 * The agent's own configuration: pullet.yaml and conf.d to one immutable struct.
 *
 * Strict: an unknown key, a duplicate key, a wrong type or an invalid value is an error with
 * file:line:column and the nearest known key; all errors are reported, not only the first. conf.d
 * files (in the order of their names) add configs, servers, push endpoints and labels and may set
 * agent and log keys, and report, that are not set yet; one that is set twice is an error that
 * names both places.
 * Durations are at most 30 days: milliseconds fit 32 bits.
 *
 * Threads: loaded by one thread at a time, immutable then. Ownership: settings_free() frees
 * everything. Errors: their number, each reported. Bounds: SETTINGS_MAX_*; a file has at most 1
 * MiB.
 */
#ifndef PULLET_SETTINGS_H
#define PULLET_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

/* where make's SYSCONFDIR, LOCALSTATEDIR and RUNSTATEDIR say, else the usual places */
#ifndef PULLET_SYSCONFDIR
#define PULLET_SYSCONFDIR "/etc"
#endif
#ifndef PULLET_LOCALSTATEDIR
#define PULLET_LOCALSTATEDIR "/var"
#endif
#ifndef PULLET_RUNSTATEDIR
#define PULLET_RUNSTATEDIR "/run"
#endif
#define SETTINGS_DEFAULT_PATH PULLET_SYSCONFDIR "/pullet/pullet.yaml"
#define SETTINGS_DEFAULT_STATE_DIR PULLET_LOCALSTATEDIR "/lib/pullet"
#define SETTINGS_DEFAULT_RUNTIME_DIR PULLET_RUNSTATEDIR "/pullet"
#define SETTINGS_MAX_CONFIGS 10000
#define SETTINGS_MAX_PUSH 64
#define SETTINGS_MAX_SERVERS 1000
#define SETTINGS_MAX_URLS 16
#define SETTINGS_MAX_HEADERS 32
#define SETTINGS_MAX_IN_FLIGHT 64
#define SETTINGS_MAX_SECRET 8192 /* bytes of a token, a password, a header's value */
#define SETTINGS_MAX_LABELS 64
#define SETTINGS_MAX_BYTES_DEFAULT (8u << 20) /* of a pulled document */
#define SETTINGS_GROWTH 4                     /* each form that a document takes, by max_size */
#define SETTINGS_MAX_LAYERS 16
#define SETTINGS_MAX_ARGV 64 /* words of a command */
#define SETTINGS_MAX_RULES 64
#define SETTINGS_MAX_PATTERNS 64 /* key patterns, required keys, public keys */
#define SETTINGS_MAX_HISTORY 1000
#define SETTINGS_PATH_WORD "{path}" /* in the words of a check: the candidate's path */

enum settings_type {
	SETTINGS_TYPE_AUTO,
	SETTINGS_TYPE_YAML,
	SETTINGS_TYPE_JSON,
	SETTINGS_TYPE_BYTES
};
enum settings_format {
	SETTINGS_VERBATIM,
	SETTINGS_FORMAT_YAML,
	SETTINGS_FORMAT_JSON,
	SETTINGS_FORMAT_ENV,
	SETTINGS_FORMAT_PROPERTIES,
	SETTINGS_FORMAT_TEMPLATE, /* what a mustache template makes of it */
	SETTINGS_FORMAT_RUN       /* what a program makes of it */
};

/* What such a format makes is kept in the state file. */
static inline bool settings_makes_product(enum settings_format format)
{
	return format == SETTINGS_FORMAT_TEMPLATE || format == SETTINGS_FORMAT_RUN;
}

/* Fingerprint of what was written, for diff.h. */
struct settings_print {
	unsigned char bytes[16];
};

struct mustache;

struct settings_push {
	char *endpoint;        /* tcp://host:port or ipc://path */
	uint32_t heartbeat_ms; /* 5 s; expected every so often */
	char *server_key;      /* the publisher's public key, see curve_keys.h; NULL = plain text */
	char *secret_key_file; /* the agent's; NULL = a new key for each connection */
	bool insecure;         /* false; plain text may leave this host */
	struct settings_print print;
};

enum settings_tls_version { SETTINGS_TLS_1_2, SETTINGS_TLS_1_3 };

enum settings_kind {
	SETTINGS_HTTP,
	SETTINGS_ETCD,
	SETTINGS_CONSUL,
	SETTINGS_NACOS,
	SETTINGS_APOLLO,
	SETTINGS_SPRING,
	SETTINGS_S3,
	SETTINGS_FILE,
	SETTINGS_KINDS
};

struct settings_header {
	char *name;
	char *value, *file; /* one of them: the value, or the file that holds it */
};

/* Where documents come from: one content, at one or several addresses. */
struct settings_server {
	char *name;                  /* NULL: made for the configs whose url has this origin */
	enum settings_kind kind;     /* http */
	char **urls;                 /* http(s)://HOST[:PORT][/PATH], no '/' at the end; of files
					"file://" or "file:///PATH" */
	size_t url_count;            /* 1 to SETTINGS_MAX_URLS */
	uint32_t connect_timeout_ms; /* 3 s */
	unsigned max_in_flight;      /* transfers at a time: 8 */
	uint64_t max_bytes;          /* of a document: 8 MiB */
	char *bearer_file;           /* NULL = none, as below */
	char *user, *password_file;
	struct settings_header *headers;
	size_t header_count;
	char *ca, *crl, *cert, *key;       /* PEM files; ca NULL = the system's */
	enum settings_tls_version tls_min; /* 1.2 */
	bool watch;                        /* false; the server reports changes at once */
	char *region;                      /* s3: us-east-1 */
	char *datacenter;                  /* consul, apollo; NULL = the server's own */
	char *namespace;                   /* nacos; NULL = public */
	unsigned api;                      /* nacos: 1 (also of 2.x), or 3 */
	char *access_key;  /* s3: its id; NULL = no access key, or (apollo) one without an id */
	char *secret_file; /* of the access key; NULL = nothing is signed */
	char *session_token_file; /* s3; NULL = none */
	/* Secrets may go over plain http to another host: false. */
	bool insecure;
	struct settings_print print;
};

/* One document of those that a config is made of. */
struct settings_layer {
	char *from;      /* the name of the server; NULL = made from a url */
	char *path;      /* behind the server's url; begins with '/', unless the url had no path; in
			    the config's url, where there is one */
	char *as;        /* the name of the file in a set of files; else NULL */
	unsigned server; /* index */
	enum settings_type type; /* the config's; in a set of files never AUTO: by as's ending */
	bool optional; /* its absence (404) is an empty mapping; in a set of files, no file */
};

struct settings_command {    /* never by a shell */
	char **argv;         /* ends with NULL; argv[0] is an absolute path; NULL = no command */
	uint32_t timeout_ms; /* then TERM, then KILL */
};

/* What a change leads to. */
enum settings_action_kind { SETTINGS_NOTHING, SETTINGS_RUN, SETTINGS_SIGNAL };

struct settings_rule {
	char **keys; /* patterns (fnmatch), ends with NULL; NULL = all other keys */
	enum settings_action_kind kind;
	char **argv; /* RUN */
	int signal;  /* SIGNAL: its number */
	char *pidfile;
};

struct settings_reload {
	struct settings_rule *rules; /* the first that fits a changed key counts */
	unsigned rule_count;         /* 0 = no reload */
	uint32_t debounce_ms;        /* 0: from the last change to the action */
	uint32_t debounce_max_ms;    /* 5 s: from the first one */
	uint32_t splay_ms;           /* 0: and a random time up to this */
	uint32_t timeout_ms;         /* 30 s, of a command */
};

struct settings_probe {
	char **argv;         /* or */
	char *url;           /* 2xx is good; both NULL = no probe */
	uint32_t for_ms;     /* 10 s: watched for so long after the reload */
	uint32_t every_ms;   /* 1 s */
	uint32_t timeout_ms; /* 5 s, of one attempt */
	unsigned failures;   /* 3 in a row: bad */
};

struct settings_guard {
	unsigned max_shrink;  /* percent of the bytes: 100 = off */
	unsigned max_changes; /* changed, added or removed keys: 0 = off */
	char **require;       /* keys; ends with NULL; or NULL */
	bool allow_empty;     /* false */
};

/* The purpose that a signature must name, so that it is valid for nothing else. */
enum settings_bind {
	SETTINGS_BIND_AUTO, /* only while loading: PATH where a key is trusted for another document
			       too, else NONE */
	SETTINGS_BIND_NONE,
	SETTINGS_BIND_CONFIG,
	SETTINGS_BIND_PATH
};

struct settings_verify {
	char **public_keys; /* minisign's, 56 bytes of base64; ends with NULL; NULL = signatures are
			       not verified */
	enum settings_bind bind;
	bool rev_required; /* false */
	bool key_shared;   /* a key is trusted for another document too */
};

enum settings_drift { SETTINGS_HEAL, SETTINGS_REPORT, SETTINGS_LEAVE };

struct settings_config {
	char *name; /* [A-Za-z0-9][A-Za-z0-9._-]{0,63} */
	char *url;  /* as written, http:// or https://, without userinfo; NULL = from: */
	struct settings_layer *layers; /* 1 to SETTINGS_MAX_LAYERS; later ones win, unless dir */
	size_t layer_count;
	struct settings_layer *bootstrap; /* pulled when nothing is published and `layers` are
					     unavailable; NULL = none */
	struct settings_layer *rollout;   /* names the hosts that take a new version; NULL = all */
	enum settings_type type;
	enum settings_format format; /* verbatim; of several layers YAML */
	unsigned jitter;             /* percent of the delay, either way: 10 */
	unsigned backoff_bound;      /* 10 */
	uint32_t interval_ms;        /* 30 s */
	uint32_t timeout_ms;         /* 10 s */
	char *topic;                 /* the name, and the same text */
	uint32_t push_spread_ms;     /* 0; a message may name a longer one */
	uint32_t push_min_ms;        /* 100 ms between pulls that messages cause */
	char *file;                  /* absolute path; NULL = none, only a snapshot, or dir */
	char *dir; /* absolute path of a set of files, one per layer; NULL = none */
	struct settings_command format_run;
	char *template_file;       /* absolute path; NULL = none */
	struct mustache *template; /* what was in it when the settings were read */
	struct settings_verify verify;
	struct settings_guard guard;
	char *schema;     /* absolute path of a JSON Schema; NULL = none */
	char *schema_dir; /* of others that it may refer to; NULL = none */
	struct settings_command check;
	struct settings_reload reload;
	struct settings_probe probe;
	char **mask;      /* key patterns whose values are never shown; ends with NULL; or NULL */
	unsigned history; /* generations kept: 10 */
	enum settings_drift drift;
	mode_t mode;       /* 0640 */
	uid_t uid;         /* (uid_t)-1 = the agent's */
	gid_t gid;         /* (gid_t)-1 = the agent's */
	bool snapshot;     /* true; not for bytes, nor for a set of files */
	bool strict;       /* durability: on disk before it is visible */
	uint64_t max_made; /* bytes of each form that its document takes: SETTINGS_GROWTH times the
			      largest max_size of its servers */
	struct settings_print print;
};

/* Said where a template has an error: who mends it must know. */
#define SETTINGS_TEMPLATE_READ "a changed template is read at SIGHUP, or with watch_config"

struct settings_label {
	char *name, *value;
};

/* Where the agent writes its receipts. */
struct settings_report {
	char *from;      /* the name of an etcd server; NULL = nowhere */
	unsigned server; /* index */
	char *prefix;    /* of the keys: /pullet/agents/ */
	char *host;      /* the name of this host there; NULL = gethostname() */
	uint32_t ttl_ms; /* 60 s: after that a silent agent is forgotten */
	struct settings_print print;
};

struct settings {
	char *state_dir; /* by default what places.h says */
	char *runtime_dir;
	char *listen;        /* HOST:PORT or NULL */
	char **listen_names; /* names that clients may call this host by; ends with NULL; or NULL */
	gid_t operators;     /* who may change and see values; (gid_t)-1 = nobody but root and the
				agent's user */
	bool watch_config;   /* a changed file of this configuration is as a SIGHUP */
	enum log_level log_level;
	enum log_format log_format;
	struct settings_label *labels;
	size_t label_count;
	struct settings_push *push;
	size_t push_count;
	struct settings_report report;
	struct settings_server **servers; /* those that are named, then one for each other origin */
	size_t server_count;
	struct settings_config **configs;
	size_t config_count;
};

/* What the signature of a layer's document must say; that of the first layer may name the path of
 * `bootstrap` instead. Borrows from c. */
struct minisign_demand;
struct minisign_demand settings_signature_demand(const struct settings_config *c, size_t layer);

/* Called once per error, with a full sentence "file:line:column: what is wrong and what to do". */
typedef void (*settings_report)(void *arg, const char *message);

/* Loads path and, if path's folder has a conf.d, the .yaml files there. Returns 0 and
 * *ret_settings, or the number of errors (> 0), all reported. */
int settings_load(
	const char *path, settings_report report, void *arg, struct settings **ret_settings);
struct settings_reading {
	settings_report report;
	/* Called for each local file, directory or program that is named and cannot be used by this
	 * user, also when there are errors. NULL = nobody looks. */
	settings_report look;
	bool look_all; /* also what a mount that hangs could hold up, and what is in schemas */
	/* Called for each file that two configs publish by different paths, when there are no
	 * errors. NULL = nobody asks. */
	settings_report twins;
	void *arg; /* of these three */
	/* Called just before a file is read that the configuration names and consists of: env_file,
	 * templates and their partials. NULL = nobody asks. */
	void (*opens)(void *arg, const char *path);
	void *opens_arg;
};
int settings_load_with(
	const char *path, const struct settings_reading *how, struct settings **ret_settings);
/* True when the file can be read, and neither it nor conf.d say anything but comments. */
bool settings_is_untouched(const char *path);
/* The same as settings_load(), but no config is needed: for commands that use only the servers. */
int settings_load_servers(
	const char *path, settings_report report, void *arg, struct settings **ret_settings);
/* The same from memory, one file, for tests and the fuzzer. */
int settings_parse(const char *name, const char *data, size_t len, settings_report report,
	void *arg, struct settings **ret_settings);
void settings_free(struct settings *s);

/* "500ms" "10s" "5m" "1h" "2d" to milliseconds. 0 or -EINVAL. Shared with the command line. */
int settings_parse_duration(const char *text, uint64_t *ret_ms);

/* The path of the published file, or of the directory of a set; NULL = only a snapshot. */
static inline const char *settings_place(const struct settings_config *c)
{
	return c->file ? c->file : c->dir;
}

#endif

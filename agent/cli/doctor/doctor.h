/*
 * What the parts of `pullet doctor` share: the list of findings, who the agent is, and paths as the
 * agent sees them.
 *
 * Nothing here changes anything on the system: no file is made, no signal sent, and a server is
 * asked for what the agent would ask it for. What cannot be looked at is said, not guessed.
 *
 * Threads: one, but for checks that only touch the file system: these run in a thread of their own
 * with a list of their own, so that a mount that hangs is a finding too. Ownership: findings own
 * their texts; everything else is the command's, borrowed by the checks. Errors: findings. Bounds:
 * doctor.timeout_ms for each check.
 */
#ifndef PULLET_CLI_DOCTOR_H
#define PULLET_CLI_DOCTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/loop.h"
#include "settings/settings.h"
#include "cli/common/client.h"

#define DOCTOR_GROUPS 64 /* of the agent; more do not count */

enum doctor_severity {
	DOCTOR_OK,
	DOCTOR_NOTE,    /* to be known; or it could not be looked at */
	DOCTOR_WARNING, /* it works, and will not for ever, or not always */
	DOCTOR_ERROR
};

struct doctor_finding {
	enum doctor_severity severity;
	char *subject, *finding; /* texts may have come from the network: escape them */
	char *cause;         /* why; said behind the finding, unless one below says it; or NULL */
	char *remedy;        /* NULL = nothing to do */
	size_t order, group; /* for printing */
};

struct doctor_list {
	struct doctor_finding *items;
	size_t count;
	pthread_mutex_t lock; /* of `at` */
	char at[512];         /* the path that is being looked at, for when it hangs */
};

/* Adds a finding, unless it is in the list already; remedy may be NULL. Where memory is short the
 * program ends. */
void doctor_add(struct doctor_list *l, enum doctor_severity severity, const char *subject,
	const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same with a cause, which may be "". */
void doctor_add_caused(struct doctor_list *l, enum doctor_severity severity, const char *subject,
	const char *remedy, const char *cause, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* Puts causes behind their findings, but for those that a warning or error of a later list says. */
void doctor_say_causes_once(struct doctor_list *lists, size_t count);

/* The path that is looked at next. */
void doctor_set_path(struct doctor_list *l, const char *path);

#define DOCTOR_DATE 16
/* "2026-11-21", in UTC, of a time on the wall. */
void doctor_date(int64_t ms, char ret[DOCTOR_DATE]);

/* What the service manager says of pullet.service; texts are "" where it says nothing. */
struct doctor_unit {
	bool known;   /* there is such a unit, and systemd answered */
	bool applies; /* it is what runs, or would run, the configuration that is looked at */
	pid_t main_pid;
	uint64_t memory_max, memory_now; /* UINT64_MAX = none, or not known */
	uint64_t restarts;
	bool has_watchdog, no_new_privileges, private_tmp, needs_reload;
	char active[16], user[64], group[64], more_groups[256], protect_system[16],
		protect_home[16];
	/* lists of paths, with blanks between; what is made by systemd is below /run, /var/lib */
	char writable[4096], runtime_dirs[512], state_dirs[512];
};

/* Who the agent is, or would be: whose rights count. */
struct doctor_who {
	bool running; /* it answers at the socket */
	bool known;   /* else there is one, and who it is cannot be seen: uid and gid are -1 */
	pid_t pid;    /* 0 = not running, or in another world (PID namespace) */
	uid_t uid;
	gid_t gid;
	gid_t groups[DOCTOR_GROUPS];
	size_t group_count;
	uint64_t capabilities; /* effective ones */
	bool no_new_privileges;
	int root;        /* O_PATH descriptor of its root directory; -1 = ours is as good as any */
	bool other_view; /* it sees another file system than we do, which we cannot see */
	bool can_try;    /* we can find out what it may: as root, or as the same user */
	const char *how; /* how this is known; constant */
	char name[64];   /* of the user */
};

struct doctor {
	const char *path, *only,
		*socket; /* configuration; name of a config or NULL; NULL = by it */
	uint64_t timeout_ms;
	struct settings *settings; /* NULL: bad, or not to be read */
	bool bad_settings;
	char state_dir[4096], runtime_dir[4096]; /* by doctor_find_dirs() */
	struct loop *loop;
	struct doctor_unit unit;
	struct doctor_who who;
	struct client_answer status; /* of the agent; json NULL: none */
	char socket_path[512];
};

/* Fills d->state_dir and d->runtime_dir: of d->settings; without them as the text of the file has
 * them, or the places where they are when nobody says so. */
void doctor_find_dirs(struct doctor *d);

/* The checks, each an area; d->settings may be NULL only where it says so. */
void doctor_configuration(struct doctor *d, struct doctor_list *l); /* reads d->settings */
void doctor_agent(struct doctor *d, struct doctor_list *l);         /* d->settings may be NULL */
void doctor_clock(struct doctor *d, struct doctor_list *l);         /* the same */
void doctor_servers(struct doctor *d, struct doctor_list *l);
void doctor_push(struct doctor *d, struct doctor_list *l);
void doctor_hooks(struct doctor *d, struct doctor_list *l); /* file system only */
void doctor_files(struct doctor *d, struct doctor_list *l); /* the same; settings may be NULL */

/* Fills d->unit, d->who and d->status: asks systemd and the agent. */
void doctor_find_agent(struct doctor *d, struct doctor_list *l);
void doctor_unit_read(struct doctor *d);
/* Is this config to be looked at? */
bool doctor_is_selected(const struct doctor *d, const struct settings_config *c);
/* The member of the agent's status that is of this config; NULL = none. */
const struct node *doctor_config_status(const struct doctor *d, const char *name);

/* ---- paths as the agent sees them (path.c) ---- */

struct doctor_place {
	struct statx st;
	int64_t type; /* of the file system, as in statfs */
	bool read_only;
	bool mount_point; /* the path itself is one */
	bool elsewhere;   /* we see something else at this path than the agent */
	uint64_t bytes, bytes_free, files, files_free;
};

/* Looks at a path; the last part is followed if it is a symlink and `follow`. 0 or -errno. */
int doctor_stat_path(struct doctor *d, struct doctor_list *l, const char *path, bool follow,
	struct doctor_place *ret_place);
/* May the agent do that (R_OK, W_OK, X_OK)? 0 it may, or -errno; -ENOTSUP: that cannot be found out
 * by us. */
int doctor_try_access(struct doctor *d, struct doctor_list *l, const char *path, int mode);
/* Reads the beginning of a file, as ourselves, with a NUL behind. 0 or -errno. */
int doctor_read(struct doctor *d, struct doctor_list *l, const char *path, char *ret, size_t size);
/* "NFS", "tmpfs", ...; "" for one that is not known. */
const char *doctor_file_system(int64_t type);
bool doctor_is_in_memory(int64_t type);
bool doctor_is_remote(int64_t type);
/* We may not read it, and that says nothing about the agent. */
bool doctor_is_unreadable(const struct doctor *d, const char *path);
/* A file that a server's requests need. */
struct doctor_needed_file {
	const char *path, *what;
	bool secret;
};
#define DOCTOR_NEEDED_FILES (8 + SETTINGS_MAX_HEADERS)
#define DOCTOR_HELP_US "run this as root or as the agent's user"
/* Looks at all files that the configuration names to be read. Needs d->settings. */
void doctor_needed_files(struct doctor *d, struct doctor_list *l);
/* May the service's user read the configuration, who may be another than whoever wrote it? */
void doctor_configuration_rights(struct doctor *d, struct doctor_list *l);
/* Returns how many. */
size_t doctor_server_files(
	const struct settings_server *s, struct doctor_needed_file ret[DOCTOR_NEEDED_FILES]);
/* Are the certificates good that tls: names, and the key? What cannot be read says nothing here. */
void doctor_certificates(struct doctor *d, struct doctor_list *l, const struct settings_server *s);

/* Is it below a directory that not everybody may pass, as /etc/pullet is? By modes. */
bool doctor_is_shielded(const char *path);

/* The path's directory: everything before the last '/'; "/" for what lies there. */
void doctor_parent(const char *path, char *ret_dir, size_t size);

#endif

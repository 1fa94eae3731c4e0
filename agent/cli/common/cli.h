/*
 * What the subcommands of `pullet` share: exit codes, the functions of the table, sentences.
 */
#ifndef PULLET_CLI_H
#define PULLET_CLI_H

#include <stddef.h>

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_NOT_FOUND = 2,   /* key or config */
	CLI_UNREACHABLE = 3, /* the agent */
	CLI_TIMED_OUT = 4,
	CLI_BUSY = 4, /* the agent, now */
	CLI_USAGE = 64,
	CLI_CONFIG = 78
};

struct buffer;
struct descriptors_need;
struct pullet;
struct publisher;
struct publisher_options;

/* Each gets its whole name ("pullet diff") as argv[0] and returns the exit code. */
int cli_build(int argc, char **argv);
int cli_dev(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_fleet(int argc, char **argv);
int cli_get(int argc, char **argv);
int cli_history(int argc, char **argv);
int cli_keygen(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_override(int argc, char **argv);
int cli_pin(int argc, char **argv);
int cli_resume(int argc, char **argv);
int cli_suspend(int argc, char **argv);
int cli_publish(int argc, char **argv);
int cli_refresh(int argc, char **argv);
int cli_relay(int argc, char **argv);
int cli_rollback(int argc, char **argv);
int cli_rollout(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_sign(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_unpin(int argc, char **argv);
int cli_wait(int argc, char **argv);
int cli_watch(int argc, char **argv);

/* Prints a sentence on standard error, after "COMMAND: ". Returns `code`. */
int cli_error(int code, const char *command, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints it where the command goes on. */
void cli_note(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Checks that the limit of file descriptors covers these needs. CLI_OK, or CLI_CONFIG with its
 * sentence printed. */
int cli_room(const char *command, const struct descriptors_need *needs, size_t count);
#define CLI_FILES 6 /* to walk a path, read a file and write its replacement */
/* Opens a config's snapshot as pullet_open(). CLI_OK and *ret_p, or the exit code with its sentence
 * printed. */
int cli_open(const char *command, const char *config, unsigned flags, struct pullet **ret_p);
/* Says that a first version is waited for, and which name was meant where the agent has no such. */
void cli_note_waiting(const char *command, const char *config);
/* Opens a publisher as publisher_open(). `option` is the one that names the endpoint. CLI_OK and
 * *ret_publisher, or the exit code with its sentence printed. */
int cli_publisher(const char *command, const char *option, const char *endpoint,
	const struct publisher_options *options, struct publisher **ret_publisher);
/* Says why HTTP cannot be served at the address that `option` names. CLI_FAILED. */
int cli_cannot_listen(const char *command, const char *option, const char *address, int error);
/* Writes all of b on standard output, nothing if something is missing in it. CLI_OK, or CLI_FAILED
 * with its sentence printed. */
int cli_output(const char *command, const struct buffer *b);

#endif

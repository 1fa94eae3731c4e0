/*
 * The line of a command: its options declared once, as rows, from which reading them and --help
 * derive. The completions of shells read --help.
 *
 * Threads: one (getopt_long). Ownership: texts are borrowed from argv. Errors: exit codes, with the
 * sentence printed. Bounds: OPTIONS_MAX rows, OPTIONS_NAMES of one option.
 */
#ifndef PULLET_CLI_OPTIONS_H
#define PULLET_CLI_OPTIONS_H

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX 31
#define OPTIONS_NAMES 16

enum option_kind {
	OPTION_FLAG,     /* no argument; sets a bool */
	OPTION_TEXT,     /* a const char * */
	OPTION_DURATION, /* a uint64_t, in milliseconds */
	OPTION_NUMBER,   /* a uint64_t */
	OPTION_READ      /* calls read */
};

struct option_row {
	const char *name, *argument; /* argument NULL = takes none */
	const char *help;            /* each \n begins another line */
	enum option_kind kind;
	size_t at;         /* the offset of what it sets in the target */
	char letter;       /* 0 = none */
	unsigned forms;    /* bits of the forms that take it; 0 = all */
	uint64_t min, max; /* of a duration or number; max 0 = no bound */
	const char *takes; /* the bounds in words: "at least 100ms" */
	/* text is NULL for an option without argument. CLI_OK, or the exit code. */
	int (*read)(void *target, const char *command, char *text);
};

struct command_line {
	const char *usage; /* the forms, "Usage: ...", then sentences from column 0; whole lines */
	const struct option_row *rows; /* ended by one without a name */
	const char *tail;              /* what --help says below the options; NULL = nothing */
	int min, max;                  /* arguments behind the options; max -1 = no bound */
	const char *wants;             /* the sentence for another number; NULL = a general one */
	unsigned form;                 /* this form's bit; 0 = all rows are taken */
};

/* Rows of several commands; the members of `type` have the names of the options. */
#define OPTION_ROW_JSON(type)                                                                      \
	{                                                                                          \
		"json", NULL, "print the control API's answer", OPTION_FLAG,                       \
			.at = offsetof(type, json)                                                 \
	}
#define OPTION_ROW_SOCKET(type)                                                                    \
	{                                                                                          \
		"socket", "PATH",                                                                  \
			"the agent's control socket (default $PULLET_RUNTIME_DIR/control.sock)",   \
			OPTION_TEXT, .at = offsetof(type, socket)                                  \
	}
/* What `type` has as a struct publisher_options named `member`. */
#define OPTION_ROWS_PUBLISHER(type, member)                                                        \
	{"curve-secret-key", "FILE", "encrypt messages with this key of pullet keygen",            \
		OPTION_TEXT, .at = offsetof(type, member.secret_key_file)},                        \
		{"curve-allow", "FILE",                                                            \
			"let only clients with these public keys connect, one on a line",          \
			OPTION_TEXT, .at = offsetof(type, member.allow_file)},                     \
	{                                                                                          \
		"insecure", NULL, "publish plain text also where other hosts can reach it",        \
			OPTION_FLAG, .at = offsetof(type, member.insecure)                         \
	}

/* Reads the options into the target, and counts the arguments, which begin at argv[optind]. -1, or
 * the exit code when there is nothing left to do: --help was printed, or a sentence. */
int options_read(const struct command_line *line, int argc, char **argv, void *target);
/* For options or arguments that do not fit together: prints the sentence, the forms, and where
 * there is more. CLI_USAGE. */
int options_misused(const struct command_line *line, const char *command, const char *sentence);
/* Reads a duration, as OPTION_DURATION does. CLI_OK, or CLI_USAGE with its sentence printed. */
int options_duration(
	const char *command, const struct option_row *bounds, const char *text, uint64_t *ret_ms);
/* Adds what clients may call this host to a list that ends with NULL, for an option that may be
 * given again. CLI_OK, or CLI_USAGE with its sentence printed. */
int options_add_name(
	const char *command, const char *option, char *text, char *names[OPTIONS_NAMES + 1]);

#endif

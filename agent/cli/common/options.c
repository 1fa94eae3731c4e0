/* The options of a command as rows. Surprising: the rows of all forms of a command are in its help,
 * but each form takes its own only. */
#include "cli/common/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "settings/settings.h"
#include "settings/form.h"

#define MAX_LEFT 64
#define FIRST 256 /* row 0 for getopt_long() */

/* ---- help ---- */

static void write_left(const struct option_row *row, char left[MAX_LEFT])
{
	char letter[8] = "    ";

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	snprintf(left, MAX_LEFT, "  %s--%s%s%s", letter, row->name, row->argument ? " " : "",
		row->argument ? row->argument : "");
}

static void print_row(const struct option_row *row, int width)
{
	const char *help = row->help;
	char left[MAX_LEFT];

	write_left(row, left);
	for (int n; *help; help += n + (help[n] == '\n')) {
		n = (int)strcspn(help, "\n");
		printf("%-*s  %.*s\n", width, left, n, help);
		left[0] = '\0';
	}
}

static void print_help(const struct command_line *line)
{
	char left[MAX_LEFT];
	int width = 0;

	printf("%s\n", line->usage);
	for (const struct option_row *row = line->rows; row->name; row++) {
		write_left(row, left);
		width = (int)strlen(left) > width ? (int)strlen(left) : width;
	}
	for (const struct option_row *row = line->rows; row->name; row++)
		print_row(row, width);
	if (line->tail)
		printf("\n%s", line->tail);
}

/* ---- usage errors ---- */

static int point_to_help(const char *command)
{
	fprintf(stderr, "Try '%s --help'.\n", command);
	return CLI_USAGE;
}

int options_misused(const struct command_line *line, const char *command, const char *sentence)
{
	const char *end = line->usage;

	cli_error(CLI_USAGE, command, "%s", sentence);
	do
		end += strcspn(end, "\n") + 1;
	while (*end == ' ');
	fprintf(stderr, "%.*s", (int)(end - line->usage), line->usage);
	return point_to_help(command);
}

static int check_argument_count(const struct command_line *line, int argc, char **argv)
{
	int count = argc - optind;
	char sentence[128];

	if (count >= line->min && (count <= line->max || line->max < 0))
		return -1;
	if (line->wants)
		return options_misused(line, argv[0], line->wants);
	if (count < line->min)
		return options_misused(line, argv[0], "an argument is missing");
	snprintf(sentence, sizeof(sentence), "'%.80s' is one argument too many",
		argv[optind + line->max]);
	return options_misused(line, argv[0], sentence);
}

/* ---- values ---- */

static bool is_within(const struct option_row *row, uint64_t value)
{
	return value >= row->min && (!row->max || value <= row->max);
}

static int reject_value(const char *command, const struct option_row *row, const char *text)
{
	return cli_error(
		CLI_USAGE, command, "--%s takes %s, not '%s'", row->name, row->takes, text);
}

int options_duration(
	const char *command, const struct option_row *bounds, const char *text, uint64_t *ret_ms)
{
	uint64_t ms;

	if (settings_parse_duration(text, &ms))
		return cli_error(CLI_USAGE, command,
			"--%s takes a duration like 500ms, 10s, 5m or 1h, not '%s'", bounds->name,
			text);
	if (!is_within(bounds, ms))
		return reject_value(command, bounds, text);
	*ret_ms = ms;
	return CLI_OK;
}

static int read_number_option(
	const char *command, const struct option_row *row, const char *text, uint64_t *ret)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || !is_within(row, n))
		return reject_value(command, row, text);
	*ret = n;
	return CLI_OK;
}

static int set_option(void *target, const char *command, const struct option_row *row, char *text)
{
	void *at = (char *)target + row->at;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return CLI_OK;
	case OPTION_TEXT:
		*(const char **)at = text;
		return CLI_OK;
	case OPTION_DURATION:
		return options_duration(command, row, text, at);
	case OPTION_NUMBER:
		return read_number_option(command, row, text, at);
	case OPTION_READ:
		break;
	}
	return row->read(target, command, text);
}

/* ---- the line ---- */

static bool is_taken(const struct command_line *line, const struct option_row *row)
{
	return !row->forms || !line->form || (row->forms & line->form);
}

/* Fills in the tables of getopt_long(). */
static void fill_tables(const struct command_line *line, struct option longs[OPTIONS_MAX + 2],
	char shorts[2 * OPTIONS_MAX + 2])
{
	int n = 0;

	*shorts++ = 'h';
	for (int i = 0; i < OPTIONS_MAX && line->rows[i].name; i++) {
		const struct option_row *row = &line->rows[i];

		if (!is_taken(line, row))
			continue;
		longs[n++] = (struct option){row->name,
			row->argument ? required_argument : no_argument, NULL, FIRST + i};
		if (row->letter)
			*shorts++ = row->letter;
		if (row->letter && row->argument)
			*shorts++ = ':';
	}
	longs[n] = (struct option){"help", no_argument, NULL, 'h'};
}

static const struct option_row *find_row(const struct command_line *line, int option)
{
	const struct option_row *row = line->rows;

	if (option >= FIRST)
		return &row[option - FIRST];
	while (row->name && row->letter != option)
		row++;
	return row->name ? row : NULL;
}

int options_read(const struct command_line *line, int argc, char **argv, void *target)
{
	struct option longs[OPTIONS_MAX + 2] = {{0}};
	char shorts[2 * OPTIONS_MAX + 2] = "";
	const struct option_row *row;
	int option, r;

	fill_tables(line, longs, shorts);
	while ((option = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (option == 'h') {
			print_help(line);
			return CLI_OK;
		}
		row = find_row(line, option);
		r = row ? set_option(target, argv[0], row, optarg) : point_to_help(argv[0]);
		if (r)
			return r;
	}
	return check_argument_count(line, argc, argv);
}

int options_add_name(
	const char *command, const char *option, char *text, char *names[OPTIONS_NAMES + 1])
{
	const char *why = settings_check_name(text);
	size_t n = 0;

	if (why)
		return cli_error(CLI_USAGE, command, "%s '%s' %s", option, text, why);
	while (names[n])
		n++;
	if (n == OPTIONS_NAMES)
		return cli_error(CLI_USAGE, command, "at most %d names can be named with %s",
			OPTIONS_NAMES, option);
	names[n] = text;
	return CLI_OK;
}

/*
 * What the commands share: what they say, and how they end. Surprising: a sentence may be in a
 * server's or an agent's words, so it is escaped whoever prints it.
 */
#include "cli/common/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptors.h"
#include "settings/settings.h"
#include "text/escape.h"
#include "text/sentence.h"

int cli_error(int code, const char *command, const char *format, ...)
{
	char text[4096], shown[4096];
	struct buffer out;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buffer_init(&out, 1u << 20);
	sentence_show(
		shown, sizeof(shown), text, AUDIENCE_OPERATOR); /* what it could read itself */
	escape_append_lines(&out, shown, "\n"); /* it may be in a server's or an agent's words */
	fprintf(stderr, "%s: %s\n", command, out.data ? out.data : "");
	buffer_fini(&out);
	return code;
}

int cli_room(const char *command, const struct descriptors_need *needs, size_t count)
{
	char why[DESCRIPTORS_WHY];

	return descriptors_check(needs, count, why)
		       ? cli_error(
				 CLI_CONFIG, command, "the limit of open files is too low: %s", why)
		       : CLI_OK;
}

int cli_bad_option(const char *command)
{
	fprintf(stderr, "Try '%s --help'.\n", command);
	return CLI_USAGE;
}

/* The forms of a command: what its help says before the first sentence. */
static void print_forms(void (*usage)(FILE *out))
{
	char *text = NULL, *line;
	size_t len, n;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	usage(f);
	if (fclose(f) == 0 && text) {
		line = text;
		do {
			n = strcspn(line, "\n");
			fprintf(stderr, "%.*s\n", (int)n, line);
			line += n + (line[n] != '\0');
		} while (*line == ' ');
	}
	free(text);
}

int cli_misused(const char *command, void (*usage)(FILE *out), const char *sentence)
{
	cli_error(CLI_USAGE, command, "%s", sentence);
	print_forms(usage);
	return cli_bad_option(command);
}

int cli_miscounted(const char *command, void (*usage)(FILE *out), int argc, char **argv, int max)
{
	char sentence[128];

	if (argc - optind <= max)
		return cli_misused(command, usage, "an argument is missing");
	snprintf(
		sentence, sizeof(sentence), "'%.80s' is one argument too many", argv[optind + max]);
	return cli_misused(command, usage, sentence);
}

int cli_duration(const char *command, const char *option, const char *text, uint64_t *ret_ms)
{
	if (settings_parse_duration(text, ret_ms) == 0)
		return CLI_OK;
	return cli_error(CLI_USAGE, command,
		"%s takes a duration like 500ms, 10s, 5m or 1h, not '%s'", option, text);
}

int cli_output(const char *command, const struct buffer *b)
{
	if ((b->len && fwrite(b->data, 1, b->len, stdout) != b->len) || fflush(stdout))
		return cli_error(CLI_FAILED, command, "cannot write: %s", strerror(errno));
	return CLI_OK;
}

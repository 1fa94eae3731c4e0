/*
 * What the commands share: what they say, and how they end. Surprising: a sentence may be in a
 * server's or an agent's words, so it is escaped whoever prints it.
 */
#include "cli/common/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/descriptors.h"
#include "text/escape.h"
#include "text/sentence.h"

__attribute__((format(printf, 2, 0))) static void print_sentence(
	const char *command, const char *format, va_list args)
{
	char text[4096], shown[4096];
	struct buffer out;

	vsnprintf(text, sizeof(text), format, args);
	buffer_init(&out, 1u << 20);
	sentence_show(
		shown, sizeof(shown), text, AUDIENCE_OPERATOR); /* what it could read itself */
	escape_append_lines(&out, shown, "\n"); /* it may be in a server's or an agent's words */
	fprintf(stderr, "%s: %s\n", command, out.data ? out.data : "");
	buffer_fini(&out);
}

int cli_error(int code, const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_sentence(command, format, args);
	va_end(args);
	return code;
}

void cli_note(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_sentence(command, format, args);
	va_end(args);
}

int cli_room(const char *command, const struct descriptors_need *needs, size_t count)
{
	char why[DESCRIPTORS_WHY];

	return descriptors_check(needs, count, why)
		       ? cli_error(
				 CLI_CONFIG, command, "the limit of open files is too low: %s", why)
		       : CLI_OK;
}

int cli_output(const char *command, const struct buffer *b)
{
	if ((b->len && fwrite(b->data, 1, b->len, stdout) != b->len) || fflush(stdout))
		return cli_error(CLI_FAILED, command, "cannot write: %s", strerror(errno));
	return CLI_OK;
}

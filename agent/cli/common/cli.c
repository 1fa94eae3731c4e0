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

int cli_cannot_listen(const char *command, const char *option, const char *address, int error)
{
	static const struct {
		int error;
		bool option; /* the sentence ends with it */
		const char *why;
	} table[] = {
		{EADDRINUSE, true, "another program has it: stop that, or name another with "},
		{EACCES, true, "ports below 1024 are for root: name a higher one with "},
		{EADDRNOTAVAIL, false, "this host does not have that address (ip address)"},
		{EINVAL, false, "the host's name is not known here: write an address"},
	};
	const char *why = strerror(error), *end = "";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error) {
			why = table[i].why;
			end = table[i].option ? option : "";
		}
	return cli_error(CLI_FAILED, command, "cannot listen on %s: %s%s", address, why, end);
}

int cli_output(const char *command, const struct buffer *b)
{
	if (b->error)
		return cli_error(CLI_FAILED, command,
			b->error == -ENOMEM ? "out of memory" : "the output is too large");
	if ((b->len && fwrite(b->data, 1, b->len, stdout) != b->len) || fflush(stdout))
		return cli_error(CLI_FAILED, command, "cannot write: %s", strerror(errno));
	return CLI_OK;
}

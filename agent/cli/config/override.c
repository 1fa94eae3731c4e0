/* pullet override: one value in place of the server's, for a while. Surprising: the value is YAML,
 * so that 1 is a number and "1" a text; null removes the key. "-" reads standard input, since every
 * user can read the arguments of a command that waits. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/operate.h"

#define MAX_VALUE 8192 /* a longer one does not fit into a request */

static const struct option_row override_rows[] = {OPERATE_ROW_FOR("the override ends by itself"),
	{"remove", NULL, "end an override now", OPTION_FLAG,
		.at = offsetof(struct operate, remove)},
	OPERATE_ROW_REASON, OPERATE_ROW_TIMEOUT, OPERATE_ROWS, {0}};

static const struct command_line override_line = {
	.usage = "Usage: pullet override CONFIG KEY=VALUE --for DURATION [--reason TEXT] "
		 "[--timeout DURATION] [--json] [--socket PATH]\n"
		 "       pullet override CONFIG KEY --remove [--timeout DURATION] [--json] "
		 "[--socket PATH]\n"
		 "Sets a value in place of the server's, for a while. VALUE is YAML: a mapping is "
		 "merged into\n"
		 "the present one, null removes the key, - reads standard input, where other "
		 "users do not see it.\n",
	.rows = override_rows,
	.min = 2,
	.max = 2,
};

/* Reads standard input, without one newline at its end. */
static int read_stdin(const char *command, struct buffer *value)
{
	char piece[4096];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno != EINTR)
			return cli_error(CLI_FAILED, command, "cannot read standard input: %s",
				strerror(errno));
		if (n > 0)
			r = buffer_append(value, piece, (size_t)n);
	}
	explicit_bzero(piece, sizeof(piece));
	if (r)
		return cli_error(CLI_USAGE, command,
			"the value on standard input has more than %d bytes", MAX_VALUE);
	if (value->len && value->data[value->len - 1] == '\n')
		value->data[--value->len] = '\0';
	if (value->len && memchr(value->data, '\0', value->len))
		return cli_error(CLI_USAGE, command, "the value on standard input has a NUL in it");
	return CLI_OK;
}

static int add_override_value(const struct operate *o, struct buffer *path, const char *text)
{
	struct buffer value;
	int r = CLI_OK;

	if (strcmp(text, "-") != 0) {
		client_query(path, "value", text);
		return CLI_OK;
	}
	buffer_init(&value, MAX_VALUE + 1);
	r = read_stdin(o->command, &value);
	if (r == CLI_OK)
		client_query(path, "value", value.len ? value.data : "");
	if (value.len)
		explicit_bzero(value.data, value.len);
	buffer_fini(&value);
	return r;
}

/* KEY=VALUE, or KEY with --remove. */
static int add_override(const struct operate *o, struct buffer *path)
{
	char *key = o->arguments[1], *equals = strchr(key, '=');

	if (o->remove) {
		if (o->for_ms || o->reason)
			return cli_error(CLI_USAGE, o->command,
				"--remove is now, and needs no --for and no --reason");
		client_query(path, "key", key);
		client_query(path, "remove", "1");
		return CLI_OK;
	}
	if (!equals || equals == key)
		return cli_error(CLI_USAGE, o->command, "KEY=VALUE is needed, not '%s'", key);
	if (!o->for_ms)
		return options_misused(
			&override_line, o->command, "--for is needed: an override ends by itself");
	*equals = '\0';
	client_query(path, "key", key);
	client_query_number(path, "for_ms", o->for_ms);
	client_query(path, "reason", o->reason);
	return add_override_value(o, path, equals + 1);
}

int cli_override(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&override_line, argc, argv, &o);

	if (r >= 0)
		return r;
	sys_forbid_dumps();
	client_path(&path, o.config, "/override");
	r = add_override(&o, &path);
	if (r) {
		buffer_fini(&path);
		return r;
	}
	client_query_number(&path, "timeout_ms", o.timeout_ms);
	return operate_ask(&o, "POST", &path, operate_show_current);
}

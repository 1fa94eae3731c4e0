/* pullet run: a program with the values of a config as its environment. Surprising: nothing; what
 * is asked for is read here, and the runner does it. */
#include <signal.h>
#include <string.h>

#include "base/descriptors.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/values/runner.h"
#include "document/flatten.h"
#include "settings/value.h"

#define GRACE_MS 10000
#define DEBOUNCE_MS 1000

static int read_change(void *target, const char *command, char *text)
{
	static const char *const names[] = {"restart", "signal", "nothing"};
	struct runner *r = target;

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			r->on_change = (enum change)i;
			return CLI_OK;
		}
	return cli_error(
		CLI_USAGE, command, "--on-change takes restart, signal or nothing, not '%s'", text);
}

static int read_stop_signal(void *target, const char *command, char *text)
{
	const char *why = settings_parse_signal(text, &((struct runner *)target)->signal);

	return why ? cli_error(CLI_USAGE, command, "--signal: '%s' %s", text, why) : CLI_OK;
}

static const struct option_row run_rows[] = {
	{"prefix", "P", "before each name: with APP_ a key 'path' is APP_PATH", OPTION_TEXT,
		.at = offsetof(struct runner, prefix)},
	{"on-change", "W",
		"restart: when a variable has changed, end CMD and start it again (default)\n"
		"signal: send it HUP, or --signal, at each version; its environment stays\n"
		"nothing: leave it alone",
		OPTION_READ, .read = read_change},
	{"signal", "SIG", "with --on-change signal: HUP, USR1, USR2, TERM, INT, QUIT or WINCH",
		OPTION_READ, .read = read_stop_signal},
	{"debounce", "D", "changes within that time are one (default 1s; five times that at most)",
		OPTION_DURATION, .at = offsetof(struct runner, debounce_ms), .max = 3600000,
		.takes = "at most 1h"},
	{"grace", "D", "how long after TERM CMD gets KILL, in a restart (default 10s)",
		OPTION_DURATION, .at = offsetof(struct runner, grace_ms), .max = 3600000,
		.takes = "at most 1h"},
	{"timeout", "D", "exit 4 when no first version has come for that long", OPTION_DURATION,
		.at = offsetof(struct runner, timeout_ms)},
	{"fresh", NULL, "exit 1 rather than start with a version that is stale", OPTION_FLAG,
		.at = offsetof(struct runner, fresh)},
	{0},
};

static const struct command_line run_line = {
	.usage = "Usage: pullet run CONFIG [--prefix P] [--on-change restart|signal|nothing] -- "
		 "CMD [ARG...]\n"
		 "Runs CMD with the values of a config in its environment, named as by 'pullet "
		 "export --format\n"
		 "sh', and PULLET_CONFIG_NAME, PULLET_GENERATION and PULLET_VERSION. Waits for a "
		 "first version.\n"
		 "Passes signals on, exits as CMD does (128 + N after signal N), and reaps orphans "
		 "as process 1\n"
		 "must. Needs no running agent.\n"
		 "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n",
	.rows = run_rows,
	.max = -1,
};

static int check_run_options(const struct runner *r)
{
	if (!r->config)
		return options_misused(&run_line, r->command, "name a config");
	if (!r->child.argv)
		return options_misused(
			&run_line, r->command, "name a program, behind '--': -- CMD ARG...");
	if (r->signal && r->on_change != CHANGE_SIGNAL)
		return options_misused(
			&run_line, r->command, "--signal goes with --on-change signal");
	if (!flatten_is_prefix(r->prefix))
		return cli_error(CLI_USAGE, r->command,
			"--prefix takes letters, digits and '_', no digit first, not '%s'",
			r->prefix);
	return CLI_OK;
}

int cli_run(int argc, char **argv)
{
	static const struct descriptors_need needs = {"snapshot and files", CLI_FILES + 4};
	struct runner r = {.command = argv[0],
		.prefix = "",
		.timeout_ms = UINT64_MAX,
		.grace_ms = GRACE_MS,
		.debounce_ms = DEBOUNCE_MS};
	int code = options_read(&run_line, argc, argv, &r);

	if (code >= 0)
		return code;
	r.config = argv[optind];
	r.child.argv = r.config && optind + 1 < argc ? argv + optind + 1 : NULL;
	if (check_run_options(&r))
		return CLI_USAGE;
	if (!r.signal)
		r.signal = SIGHUP;
	code = cli_room(r.command, &needs, 1);
	return code ? code : runner_run(&r);
}

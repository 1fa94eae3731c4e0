/* What the commands about versions share. */
#include "cli/common/operate.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/text/words.h"

#define MAX_OUTPUT (256u << 20)

/* ---- options ---- */

enum { JSON = 256, SOCKET, REASON, FOR, TIMEOUT, REMOVE, ALL };

static const struct known {
	struct option option;
	unsigned needs; /* to be allowed; 0 = always */
} known[] = {
	{{"json", no_argument, NULL, JSON}, 0},
	{{"socket", required_argument, NULL, SOCKET}, 0},
	{{"help", no_argument, NULL, 'h'}, 0},
	{{"reason", required_argument, NULL, REASON}, OPERATE_REASON},
	{{"for", required_argument, NULL, FOR}, OPERATE_FOR},
	{{"timeout", required_argument, NULL, TIMEOUT}, OPERATE_TIMEOUT},
	{{"remove", no_argument, NULL, REMOVE}, OPERATE_REMOVE},
	{{"all", no_argument, NULL, ALL}, OPERATE_ALL},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

static int read_for(struct operate *o)
{
	int r = cli_duration(o->command, "--for", optarg, &o->for_ms);

	if (r == CLI_OK && o->for_ms == 0)
		return cli_error(CLI_USAGE, o->command, "--for takes more than nothing");
	return r;
}

static int read_option(struct operate *o, int option)
{
	switch (option) {
	case JSON:
		o->json = true;
		return CLI_OK;
	case SOCKET:
		o->socket = optarg;
		return CLI_OK;
	case REASON:
		o->reason = optarg;
		return CLI_OK;
	case REMOVE:
		o->remove = true;
		return CLI_OK;
	case ALL:
		o->all = true;
		return CLI_OK;
	case FOR:
		return read_for(o);
	case TIMEOUT:
		return cli_duration(o->command, "--timeout", optarg, &o->timeout_ms);
	default:
		return cli_bad_option(o->command);
	}
}

int operate_options(int argc, char **argv, unsigned allowed, int min, int max,
	void (*usage)(FILE *out), struct operate *ret)
{
	struct option longs[KNOWN + 1] = {{0}};
	struct operate o = {
		.command = argv[0], .socket = client_default_socket(), .timeout_ms = 60000};
	int option, n = 0, r;

	for (size_t i = 0; i < KNOWN; i++)
		if ((known[i].needs & allowed) == known[i].needs)
			longs[n++] = known[i].option;
	while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			return CLI_OK;
		}
		r = read_option(&o, option);
		if (r)
			return r;
	}
	o.arguments = argv + optind;
	o.count = argc - optind;
	if (o.count < min || o.count > max)
		return cli_miscounted(o.command, usage, argc, argv, max);
	*ret = o;
	return -1;
}

/* ---- the question ---- */

/* The agent shows who asks no values: says who would see them. */
static void tell_hidden(const struct operate *o, const struct node *root)
{
	const struct node *values = root ? node_find(root, "values") : NULL;

	if (values && values->type == NODE_BOOL && !values->boolean)
		fprintf(stderr,
			"pullet %s: values are hidden: root, the agent's user and members of the "
			"group that agent: {operators: GROUP} names see them\n",
			o->command);
}

int operate_ask(const struct operate *o, const char *method, struct buffer *path,
	int (*show)(const struct operate *o, const struct node *root, struct buffer *out))
{
	struct client_answer a = {0};
	struct buffer out;
	int r, shown = CLI_OK;

	if (path->error) {
		buffer_fini(path);
		return cli_error(CLI_USAGE, o->command, "that is too long to be asked");
	}
	/* the agent itself ends the waiting; some time on top for its answer */
	r = client_ask(o->command, o->socket, method, path->data, o->timeout_ms + 10000, &a);
	buffer_fini(path);
	if (r == CLI_OK)
		r = client_config_code(o->command, o->socket, o->arguments[0], &a);
	buffer_init(&out, MAX_OUTPUT);
	if (r == CLI_OK && a.json)
		shown = show(o, document_root(a.json), &out);
	if (r == CLI_OK && !o->json)
		tell_hidden(o, a.json ? document_root(a.json) : NULL);
	if (r == CLI_OK && !o->json && out.error)
		r = cli_error(CLI_FAILED, o->command, "out of memory");
	else if (r == CLI_OK)
		r = cli_output(o->command, o->json ? &a.body : &out);
	buffer_fini(&out);
	client_fini(&a);
	return r ? r : shown;
}

int operate_show_standing(const struct operate *o, const struct node *root, struct buffer *out)
{
	words_text(out, o->arguments[0]);
	buffer_printf(
		out, ": generation %" PRId64 " stands: ", client_number(root, "generation", 0));
	words_text(out, client_text(root, "origin", "?"));
	buffer_append(out, "\n", 1);
	return CLI_OK;
}

/* ---- shown ---- */

void operate_decision(struct buffer *out, const struct node *entry)
{
	const char *by = client_text(entry, "by", NULL), *reason = client_text(entry, "reason", "");
	int64_t until_ms = client_number(entry, "until_ms", 0);

	if (by) {
		buffer_append_string(out, " by ");
		words_text(out, by);
	}
	if (until_ms > 0) {
		buffer_append_string(out, " until ");
		words_time(out, until_ms);
	}
	if (reason[0]) {
		buffer_append_string(out, ": ");
		words_text(out, reason);
	}
}

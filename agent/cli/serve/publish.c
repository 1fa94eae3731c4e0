/*
 * pullet publish: one update message to all subscribers.
 *
 * Surprising: it binds the endpoint, as agents connect to publishers, and so waits for them: it
 * ends when at least one subscriber has the message and no new one has come for half a second.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/descriptors.h"
#include "push/publisher.h"
#include "push/subscriber.h"
#include "push/message.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "settings/form.h"

#define QUIET_MS 500

struct options {
	const char *topic, *endpoint, *version;
	struct publisher_options publisher;
	uint64_t spread_ms, timeout_ms;
};

static const struct option_row publish_rows[] = {
	{"endpoint", "E", "where the agents connect to (default tcp://127.0.0.1:7377)", OPTION_TEXT,
		.at = offsetof(struct options, endpoint)},
	{"version", "V", "the ETag that the server has now; agents pull until they see it",
		OPTION_TEXT, .at = offsetof(struct options, version)},
	{"spread", "DURATION", "each agent waits a random time up to this", OPTION_DURATION,
		.at = offsetof(struct options, spread_ms), .max = PUSH_MAX_SPREAD_MS,
		.takes = "at most 1h"},
	{"timeout", "DURATION",
		"how long to wait for a first subscriber (default 15s), then exit 4",
		OPTION_DURATION, .at = offsetof(struct options, timeout_ms), .max = 86400000,
		.takes = "at most 1d"},
	OPTION_ROWS_PUBLISHER(struct options, publisher),
	{0},
};

static const struct command_line publish_line = {
	.usage = "Usage: pullet publish TOPIC [--endpoint E] [--version V] [--spread DURATION] "
		 "[--timeout DURATION]\n"
		 "                      [--curve-secret-key FILE [--curve-allow FILE] | "
		 "--insecure]\n"
		 "Notifies the agents that subscribe at an endpoint, so that they pull now.\n",
	.rows = publish_rows,
	.min = 1,
	.max = 1,
	.wants = "name one topic: it is the config's name, if the agent's `topic` says nothing "
		 "else",
};

/* Takes new subscriptions, and counts those that match. */
static int count_matching(struct publisher *p, const char *topic)
{
	char prefix[512];
	int subscribed, n = 0;

	while (publisher_poll(p, prefix, sizeof(prefix), &subscribed) > 0)
		if (subscribed && strncmp(topic, prefix, strlen(prefix)) == 0)
			n++;
	return n;
}

/* Sends to each new subscriber. Returns the number of subscriptions, or -errno. */
static int send_to_all(struct publisher *p, const struct options *o)
{
	uint64_t deadline_ms = sys_real.now_ms() + o->timeout_ms, now_ms;
	struct pollfd fd = {.fd = publisher_fd(p), .events = POLLIN};
	int sent = 0, n, r;

	for (;;) {
		n = count_matching(
			p, o->topic); /* before each poll(): the descriptor is edge-triggered */
		if (n > 0) {
			r = publisher_send(p, o->topic, o->version, o->spread_ms);
			if (r)
				return r;
			sent += n;
			deadline_ms = sys_real.now_ms() + QUIET_MS;
			continue; /* sending may have consumed an event of the descriptor */
		}
		now_ms = sys_real.now_ms();
		if (now_ms >= deadline_ms)
			return sent;
		if (poll(&fd, 1, (int)(deadline_ms - now_ms)) < 0 && errno != EINTR)
			return -errno;
	}
}

int cli_publisher(const char *command, const char *option, const char *endpoint,
	const struct publisher_options *options, struct publisher **ret_publisher)
{
	const char *bad = settings_check_binding(endpoint);
	char why[CURVE_WHY];
	bool usage_error;
	int r;

	if (bad)
		return cli_error(CLI_USAGE, command, "%s '%s' %s", option, endpoint, bad);
	r = publisher_open(&sys_real, endpoint, options, ret_publisher, why);
	if (r == 0)
		return CLI_OK;
	/* with a key it may be the key's file that is wrong */
	usage_error = r == -EINVAL && (!options->secret_key_file || options->insecure);
	if (r == -EADDRINUSE)
		return cli_error(CLI_FAILED, command,
			"%s is in use: something publishes there already (pullet serve does, for "
			"each changed file); stop that, or name another endpoint with %s",
			endpoint, option);
	return cli_error(
		usage_error || r == -EPROTONOSUPPORT ? CLI_USAGE : CLI_FAILED, command, "%s", why);
}

static int publish_message(const char *command, const struct options *o)
{
	static const struct descriptors_need needs[] = {
		{"push channel", PUBLISHER_DESCRIPTORS}, {"files", CLI_FILES}};
	struct publisher *p;
	int r, sent;

	sys_forbid_dumps();
	r = cli_room(command, needs, sizeof(needs) / sizeof(needs[0]));
	if (r == CLI_OK)
		r = cli_publisher(command, "--endpoint", o->endpoint, &o->publisher, &p);
	if (r)
		return r;
	sent = send_to_all(p, o);
	publisher_close(p);
	if (sent < 0)
		return cli_error(CLI_FAILED, command, "cannot send: %s", strerror(-sent));
	if (sent == 0)
		return cli_error(CLI_TIMED_OUT, command, "nobody subscribed to '%s' at %s in time",
			o->topic, o->endpoint);
	printf("%s: sent to %d subscription%s\n", o->topic, sent, sent == 1 ? "" : "s");
	return CLI_OK;
}

int cli_publish(int argc, char **argv)
{
	struct options o = {.endpoint = "tcp://127.0.0.1:7377", .timeout_ms = 15000};
	int r = options_read(&publish_line, argc, argv, &o);

	if (r >= 0)
		return r;
	o.topic = argv[optind];
	if (!o.topic[0] || strlen(o.topic) > PUSH_MAX_TOPIC)
		return cli_error(CLI_USAGE, argv[0], "a topic has 1 to %d bytes", PUSH_MAX_TOPIC);
	if (strcmp(o.topic, PUSH_HEARTBEAT_TOPIC) == 0)
		return cli_error(
			CLI_USAGE, argv[0], "the topic '%s' is that of the heartbeats", o.topic);
	return publish_message(argv[0], &o);
}

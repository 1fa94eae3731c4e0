/*
 * systemd's notifications: "NAME=VALUE" lines in a datagram to the socket NOTIFY_SOCKET, as
 * sd_notify(3) documents for those who do not link libsystemd (which brings four compressors and
 * libgcrypt with it).
 *
 * Surprising: READY=1 is sent in the first turn of the loop: the last known good was published and
 * the socket opened before that, and no server is waited for. Only changes are sent, and the only
 * timer is that of keepalives.
 */
#include "control/systemd.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "text/escape.h"
#include "base/log.h"
#include "text/sentence.h"

#define AGAIN_MS 1000u /* between two status texts; from a doubt or failure to the next try */
#define LOOKS 64u      /* at configs, before a status text */
#define MAX_MESSAGE (SYSTEMD_MAX_STATUS + 128u)

/* States in the status text, in its order. */
enum { IS_OK, IS_WAITING, IS_FAILING, IS_STALE, STATES };

struct systemd {
	const struct control_env *env;
	unsigned char
		*states; /* of each config, as seen last; NULL = to be counted, or no memory */
	size_t count;    /* of configs that they are of */
	size_t counts[STATES]; /* in each */
	size_t next;           /* the config that is looked at next */
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;
	uint64_t watchdog_ms;   /* between keepalives; 0 = no watchdog */
	bool owes_ready;        /* READY=1 is due: at the start, after a reload */
	bool doubted, withheld; /* a config was stuck at the last check; at two, which is logged */
	struct loop_timer status;    /* the next status text */
	struct loop_timer keepalive; /* the next keepalive, or extension of the start */
	uint64_t checked_ms;
	char sent[SYSTEMD_MAX_STATUS + 1];
};

static uint64_t now_ms(const struct systemd *s)
{
	return loop_now_ms(s->env->loop);
}

/* Never waits for PID 1: while it re-executes itself nobody reads the socket. */
static bool send_notification(const struct systemd *s, const char *message)
{
	return sendto(s->fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)&s->to, s->to_len) >= 0;
}

/* ---- the status text ---- */

static unsigned char find_state(const char *name)
{
	static const char *const names[STATES] = {"ok", "waiting", "failing", "stale"};
	unsigned char k = 0;

	while (k < STATES - 1 && strcmp(names[k], name) != 0)
		k++;
	return k;
}

static void look_at_config(struct systemd *s, size_t i)
{
	struct config_status status;

	config_status(s->env->configs[i], &status);
	s->counts[s->states[i]]--;
	s->states[i] = find_state(status.state);
	s->counts[s->states[i]]++;
}

/* Looks at all configs the first time, then at some in turn: what one does is seen when its run
 * ends, and what time alone does to one is no hurry. False: no memory. */
static bool look_around(struct systemd *s)
{
	size_t count = s->env->settings->config_count, looks = count < LOOKS ? count : LOOKS;

	if (!s->states || s->count != count) {
		free(s->states);
		s->states = calloc(count + 1, 1);
		if (!s->states)
			return false;
		s->count = count;
		memset(s->counts, 0, sizeof(s->counts));
		s->counts[0] = looks = count;
		s->next = 0;
	}
	for (; looks; looks--, s->next++) {
		s->next %= count;
		look_at_config(s, s->next);
	}
	return true;
}

/* "NAME: why", of the first config in this state. */
static void append_first(const struct systemd *s, unsigned char state, struct buffer *out)
{
	const unsigned char *first = memchr(s->states, state, s->count);
	char why[160], text[160];
	struct config_status status;

	config_status(s->env->configs[first - s->states], &status);
	snprintf(text, sizeof(text), "%s%s%s", status.settings->name,
		status.last_error[0] ? ": " : "",
		sentence_show(why, sizeof(why), status.last_error, AUDIENCE_READER));
	/* nothing ends the line, which would begin another message to systemd */
	escape_append(out, text, strlen(text));
}

/* "3 configs ok; 1 failing: web: the server timed out" */
static void format_status(const struct systemd *s, char ret[SYSTEMD_MAX_STATUS + 1])
{
	static const struct {
		const char *before, *after;
	} texts[STATES] = {
		[IS_WAITING] = {"waiting for the first version of ", ""},
		[IS_FAILING] = {"", " failing"},
		[IS_STALE] = {"", " stale"},
	};
	const size_t *counts = s->counts;
	struct buffer b;

	buffer_init(&b,
		SYSTEMD_MAX_STATUS); /* a piece that has no room is left out, and what follows */
	buffer_printf(&b, "%zu config%s ok", counts[IS_OK], counts[IS_OK] == 1 ? "" : "s");
	for (unsigned char k = IS_OK + 1; k < STATES; k++) {
		if (!counts[k])
			continue;
		buffer_printf(&b, "; %s%zu%s: ", texts[k].before, counts[k], texts[k].after);
		append_first(s, k, &b);
	}
	snprintf(ret, SYSTEMD_MAX_STATUS + 1, "%s", b.data ? b.data : "");
	buffer_fini(&b);
}

/* ---- notifications ---- */

/* Sends what has changed. */
static void send_status(void *arg)
{
	struct systemd *s = arg;
	char text[SYSTEMD_MAX_STATUS + 1], message[MAX_MESSAGE];
	bool changed;

	s->checked_ms = now_ms(s);
	loop_timer_cancel(s->env->loop, &s->status);
	if (look_around(s))
		format_status(s, text);
	else
		memcpy(text, s->sent, sizeof(text));
	changed = strcmp(text, s->sent) != 0;
	if (!changed && !s->owes_ready)
		return;
	snprintf(message, sizeof(message), "%sSTATUS=%s", s->owes_ready ? "READY=1\n" : "", text);
	if (send_notification(s, message)) {
		s->owes_ready = false;
		memcpy(s->sent, text, sizeof(text));
	} else {
		loop_timer_set(s->env->loop, &s->status, s->checked_ms + AGAIN_MS);
	}
}

void systemd_run_ended(struct systemd *s, size_t place)
{
	if (!s)
		return;
	if (s->states && place < s->count)
		look_at_config(s, place);
	if (now_ms(s) >= s->checked_ms + AGAIN_MS)
		send_status(s);
	else
		loop_timer_set(s->env->loop, &s->status, s->checked_ms + AGAIN_MS);
}

void systemd_reloading(struct systemd *s)
{
	char message[MAX_MESSAGE];

	if (!s)
		return;
	snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)loop_sys(s->env->loop)->monotonic_us());
	send_notification(s, message);
}

void systemd_reloaded(struct systemd *s)
{
	if (!s)
		return;
	s->owes_ready = true;
	free(s->states); /* other configs may be in these places */
	s->states = NULL;
	send_status(s);
}

/* ---- the watchdog ---- */

/* The first config that is stuck, and why; NULL = none is. */
static const char *find_stuck(const struct systemd *s, const char **ret_name)
{
	const struct control_env *env = s->env;
	uint64_t now = now_ms(s);
	const char *why = NULL;

	for (size_t i = 0; !why && i < env->settings->config_count; i++) {
		why = config_stuck(env->configs[i], now);
		*ret_name = config_name(env->configs[i]);
	}
	return why;
}

/* True: all configs make progress. A stuck one is logged at the second check, soon after. */
static bool check_progress(struct systemd *s)
{
	const char *name, *why = find_stuck(s, &name);

	if (why && s->doubted && !s->withheld) {
		s->withheld = true;
		log_err("withholding watchdog keepalive", "config", name, "why", why);
	}
	s->doubted = why;
	if (!why && s->withheld) {
		s->withheld = false;
		log_info("the agent makes progress again");
	}
	return !why;
}

static void send_keepalive(void *arg)
{
	struct systemd *s = arg;
	uint64_t period_ms = s->watchdog_ms;

	if (!check_progress(s) || !send_notification(s, "WATCHDOG=1"))
		period_ms = period_ms / 4 < AGAIN_MS ? period_ms / 4 + 1 : AGAIN_MS;
	loop_timer_set(s->env->loop, &s->keepalive, now_ms(s) + period_ms);
}

/* Milliseconds between keepalives: half of what systemd waits for; 0 = no watchdog. */
static uint64_t read_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long us = usec ? strtoull(usec, NULL, 10) : 0;

	if (us == 0 || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return us < 2000 ? 1 : us / 2000;
}

/* ---- start and stop ---- */

/* 0, or -EINVAL. */
static int parse_address(const char *text, struct sockaddr_un *ret_to, socklen_t *ret_len)
{
	size_t len = strlen(text);

	*ret_to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(ret_to->sun_path))
		return -EINVAL;
	memcpy(ret_to->sun_path, text, len);
	if (text[0] == '@')
		ret_to->sun_path[0] = '\0';
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (text[0] == '/'));
	return 0;
}

struct systemd *systemd_start(const struct control_env *env)
{
	const char *address = getenv("NOTIFY_SOCKET");
	struct systemd *s = address ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->env = env;
	s->fd = parse_address(address, &s->to, &s->to_len)
			? -1
			: socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		log_warn("systemd is not notified: invalid NOTIFY_SOCKET", "socket", address);
		free(s);
		return NULL;
	}
	s->watchdog_ms = read_watchdog_ms();
	loop_timer_init(&s->status, send_status, s);
	loop_timer_init(&s->keepalive, send_keepalive, s);
	s->owes_ready = true;
	loop_timer_set(env->loop, &s->status, now_ms(s));
	if (s->watchdog_ms)
		loop_timer_set(env->loop, &s->keepalive, now_ms(s));
	return s;
}

void systemd_stop(struct systemd *s)
{
	if (!s)
		return;
	send_notification(s, "STOPPING=1\nSTATUS=stopping");
	loop_timer_cancel(s->env->loop, &s->status);
	loop_timer_cancel(s->env->loop, &s->keepalive);
	close(s->fd);
	free(s->states);
	free(s);
}

/*
 * The control socket, created and recreated.
 *
 * Surprising: a removed socket is recreated after a second: else a directory that is being removed
 * would be in use, and clients that have just connected to the old socket would be lost.
 */
#include "control/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "files/trusted.h"

#define NAME "control.sock"
#define RESTORE_MS 1000u

struct control_socket {
	struct loop *loop;
	struct file_watch *drift;
	struct file_watch_entry entry;
	struct loop_timer restore;
	uint64_t due_ms; /* of restore; 0 = not set */
	uint64_t delay_ms;
	int logged; /* the error that was logged last; 0 = none */
	httpd_handler handle;
	void *arg;
	struct httpd *local, *tcp;
	char *address; /* of tcp; NULL = none */
	char *dir, *path;
};

/* A sentence about an unavailable address, with a remedy. */
static void explain_listen_error(char why[FILE_WHY], const char *place, int error)
{
	static const struct {
		int error;
		const char *advice; /* of a port; of a path only the first */
	} table[] = {
		{EADDRINUSE, ": another program has it: stop that, or listen elsewhere"},
		{EADDRNOTAVAIL, ": this host does not have that address (ip address)"},
		{EACCES, ": ports below 1024 are for root: name a higher one"},
		{EINVAL, ": the name is not known here: write an address"},
	};
	char remedy[FILE_REMEDY];
	const char *advice = NULL;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error && (i == 0 || place[0] != '/'))
			advice = table[i].advice;
	if (advice)
		snprintf(remedy, sizeof(remedy), "%s%s", strerror(error), advice);
	else
		file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "cannot listen on %.180s: %s", place, remedy);
}

/* ---- the socket ---- */

static void schedule_restore(struct control_socket *p, uint64_t delay_ms)
{
	uint64_t due_ms = loop_now_ms(p->loop) + delay_ms;

	if (p->due_ms && p->due_ms <= due_ms)
		return;
	p->due_ms = due_ms;
	loop_timer_set(p->loop, &p->restore, due_ms);
}

static void socket_noticed(void *arg, const char *cause)
{
	(void)cause;
	control_socket_check(arg);
}

/* Watches the directory, which may have been recreated. */
static void watch_socket(struct control_socket *p)
{
	if (!p->drift)
		return;
	file_watch_remove(p->drift, &p->entry);
	p->entry = (struct file_watch_entry){.noticed = socket_noticed, .arg = p};
	file_watch_add(p->drift, &p->entry, p->dir, NAME);
}

static void log_socket_gone(struct control_socket *p, int error)
{
	char why[FILE_WHY];

	if (error == p->logged)
		return;
	p->logged = error;
	explain_listen_error(why, p->path, error);
	log_err("the control socket is gone: the command line cannot connect", "why", why);
}

static void restore_socket(void *arg)
{
	struct control_socket *p = arg;
	char why[FILE_WHY];
	int r = httpd_restore(p->local);

	p->due_ms = 0;
	if (r == -ENOENT && trusted_make_dir(&sys_real, p->dir, 0750, TRUSTED_OWN, why) == 1)
		r = httpd_restore(p->local);
	if (r == 1) {
		watch_socket(p);
		log_warn("the control socket was removed: recreated", "path", p->path);
	}
	if (r >= 0) {
		p->logged = 0;
		p->delay_ms = RESTORE_MS;
		return;
	}
	log_socket_gone(p, -r);
	schedule_restore(p, p->delay_ms);
	p->delay_ms = 2 * p->delay_ms < CONTROL_SOCKET_MAX_DELAY_MS ? 2 * p->delay_ms
								    : CONTROL_SOCKET_MAX_DELAY_MS;
}

void control_socket_check(struct control_socket *p)
{
	if (!httpd_is_there(p->local))
		schedule_restore(p, RESTORE_MS);
}

int control_socket_open(struct loop *l, struct file_watch *d, const char *dir, httpd_handler handle,
	void *arg, struct control_socket **ret_socket, char why[FILE_WHY])
{
	struct control_socket *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	snprintf(why, FILE_WHY, "out of memory");
	if (!p)
		return r;
	*p = (struct control_socket){
		.loop = l, .drift = d, .delay_ms = RESTORE_MS, .handle = handle, .arg = arg};
	loop_timer_init(&p->restore, restore_socket, p);
	p->dir = strdup(dir);
	if (!p->dir || asprintf(&p->path, "%s/" NAME, dir) < 0) {
		p->path = NULL;
		goto fail;
	}
	p->local = httpd_open_unix(l, p->path, handle, arg);
	if (!p->local) {
		r = -errno;
		explain_listen_error(why, p->path, -r);
		goto fail;
	}
	watch_socket(p);
	*ret_socket = p;
	return 0;
fail:
	control_socket_close(p);
	return r;
}

void control_socket_limit(struct control_socket *p, size_t clients, size_t queued)
{
	httpd_limit(p->local, clients, queued);
}

void control_socket_share(
	struct control_socket *p, void (*refused)(void *arg, const struct peer *peer), void *arg)
{
	httpd_share(p->local, refused, arg);
}

void control_socket_operators(struct control_socket *p, gid_t operators)
{
	httpd_operators(p->local, operators);
}

/* ---- the address ---- */

static bool same_port(const char *a, const char *b)
{
	return strcmp(strrchr(a, ':'), strrchr(b, ':')) == 0;
}

/* Two addresses of one port may conflict: then the old listener is closed first, and opened again
 * when that did not help. NULL: errno. */
static struct httpd *open_instead(struct control_socket *p, const char *address)
{
	struct httpd *h = httpd_open_tcp(p->loop, address, p->handle, p->arg);
	int error = errno;

	if (h || error != EADDRINUSE || !p->tcp || !same_port(p->address, address))
		return h;
	httpd_close(p->tcp);
	h = httpd_open_tcp(p->loop, address, p->handle, p->arg);
	error = errno;
	p->tcp = h ? NULL : httpd_open_tcp(p->loop, p->address, p->handle, p->arg);
	if (!h && !p->tcp) {
		log_err("not listening any more", "address", p->address, "why", strerror(errno));
		free(p->address);
		p->address = NULL;
	}
	errno = error;
	return h;
}

int control_socket_listen(struct control_socket *p, const char *address, char why[FILE_WHY])
{
	struct httpd *h = NULL;
	char *text = NULL;

	if (p->address && address && strcmp(p->address, address) == 0)
		return 0;
	if (address) {
		text = strdup(address);
		errno = ENOMEM;
		h = text ? open_instead(p, address) : NULL;
		if (!h) {
			int r = -errno;

			explain_listen_error(why, address, -r);
			free(text);
			return r;
		}
	}
	if (p->tcp)
		httpd_close(p->tcp);
	free(p->address);
	p->tcp = h;
	p->address = text;
	return 0;
}

void control_socket_close(struct control_socket *p)
{
	if (!p)
		return;
	loop_timer_cancel(p->loop, &p->restore);
	if (p->drift)
		file_watch_remove(p->drift, &p->entry);
	if (p->tcp)
		httpd_close(p->tcp);
	if (p->local)
		httpd_close(p->local);
	free(p->address);
	free(p->dir);
	free(p->path);
	free(p);
}

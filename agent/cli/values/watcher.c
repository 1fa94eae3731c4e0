/* Sleeps for versions in a thread. Surprising: it is never joined: a futex cannot be waited for
 * together with a signal, and the process is about to end. */
#include "cli/values/watcher.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/pullet.h"
#include "cli/common/cli.h"

#define PAUSE_MS 1000

struct watcher {
	struct pullet *p;
	int fd;
};

static void *watch_versions(void *arg)
{
	struct watcher *w = arg;
	uint64_t one = 1;
	int error;

	for (;;) {
		error = pullet_wait(w->p, -1);
		if (write(w->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			return NULL;
		if (error < 0 && error != -EIDRM)
			poll(NULL, 0, PAUSE_MS); /* the error may be gone then */
	}
}

/* 0 or errno. */
static int start_thread(struct watcher *w)
{
	pthread_t thread;
	int error;

	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return errno;
	error = pthread_create(&thread, NULL, watch_versions, w);
	if (error)
		return error;
	pthread_setname_np(thread, "pullet-watch");
	return pthread_detach(thread);
}

/* CLI_OK, or the exit code; w is the caller's then. */
static int begin_watching(const char *command, const char *config, struct watcher *w)
{
	int code = cli_open(command, config, PULLET_WAIT_FIRST, &w->p);
	int error = code ? 0 : start_thread(w);

	return error ? cli_error(
			       CLI_FAILED, command, "cannot watch %s: %s", config, strerror(error))
		     : code;
}

int watcher_start(const char *command, const char *config, int *ret_fd)
{
	struct watcher *w = calloc(1, sizeof(*w));
	int code;

	if (!w)
		return cli_error(CLI_FAILED, command, "out of memory");
	code = begin_watching(command, config, w);
	if (code) {
		pullet_close(w->p);
		free(w);
	} else {
		*ret_fd = w->fd;
	}
	return code;
}

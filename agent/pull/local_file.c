/*
 * One reading of one file. Surprising: a cancelled reading may still hang in the kernel; it frees
 * itself when the kernel returns.
 */
#include "pull/local_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin/origin.h"

#define SCHEME "file://"

struct local_file {
	struct worker_job job;
	char *path;
	char etag[256];
	size_t max_bytes;
	http_client_done done; /* NULL: cancelled */
	void *arg;
	int error;
	char why[FILE_WHY]; /* of -EPERM */
	struct origin_file file;
};

static void read_local_file(struct worker_job *job)
{
	struct local_file *f = (struct local_file *)job;

	f->error = origin_read_path(f->path, &f->file, f->why);
}

/* Errors of the file itself, which say nothing about others below the same url. */
static const struct fault {
	int error;
	long status;
	const char *why; /* NULL: the status suffices */
} faults[] = {
	{-ENOENT, 404, NULL},
	{-ENOTDIR, 404, NULL},
	{-EACCES, 403, NULL},
	{-EPERM, 403, NULL},
	{-EISDIR, 400, "it is a directory"},
	{-EINVAL, 400, "it is no regular file"},
	{-ENXIO, 400, "it is no regular file"},
	{-ELOOP, 400, "its links lead to no end"},
	{-EAGAIN, 409, "it is being written"},
};

static const struct fault *file_fault(int error)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].error == error)
			return &faults[i];
	return NULL;
}

static void answer_error(const struct local_file *f, struct http_client_response *r)
{
	const struct fault *fault = file_fault(f->error);
	const char *why = f->error == -EPERM ? f->why : fault ? fault->why : strerror(-f->error);

	r->status = fault ? fault->status : 0;
	r->result = fault ? HTTP_CLIENT_OK : HTTP_CLIENT_PROTOCOL;
	if (why)
		snprintf(r->message, sizeof(r->message), "the file cannot be read: %.330s", why);
}

static void fill_file_response(struct local_file *f, struct http_client_response *r)
{
	size_t most = f->max_bytes < ORIGIN_MAX_FILE ? f->max_bytes : ORIGIN_MAX_FILE;

	r->retry_after_ms = HTTP_CLIENT_NO_ADVICE;
	r->framed = true;
	r->sent = true;
	if (f->error == -EFBIG || (f->error == 0 && f->file.body.len > most)) {
		r->result = HTTP_CLIENT_TOO_LARGE;
		snprintf(r->message, sizeof(r->message),
			"the file is larger than the limit of %zu bytes", most);
	} else if (f->error) {
		answer_error(f, r);
	} else {
		r->status = strcmp(f->etag, f->file.etag) == 0 ? 304 : 200;
		snprintf(r->etag, sizeof(r->etag), "%s", f->file.etag);
		r->body = f->file.body;
		buffer_init(&f->file.body, 0);
	}
}

static void file_read_ended(struct worker_job *job)
{
	struct local_file *f = (struct local_file *)job;
	struct http_client_response r = {.result = HTTP_CLIENT_OK};

	fill_file_response(f, &r);
	if (f->done)
		f->done(f->arg, &r);
	if (f->error == 0)
		buffer_fini(&f->file.body);
	buffer_fini(&r.body);
	free(f->path);
	free(f);
}

int local_file_start(struct worker *w, const char *url, const char *etag, size_t max_bytes,
	http_client_done done, void *arg, struct local_file **ret_file)
{
	struct local_file *f = calloc(1, sizeof(*f));

	if (f)
		f->path = strdup(
			strncmp(url, SCHEME, strlen(SCHEME)) == 0 ? url + strlen(SCHEME) : url);
	if (!f || !f->path) {
		free(f);
		return -ENOMEM;
	}
	f->job = (struct worker_job){.run = read_local_file, .done = file_read_ended};
	snprintf(f->etag, sizeof(f->etag), "%s", etag);
	f->max_bytes = max_bytes;
	f->done = done;
	f->arg = arg;
	worker_submit(w, &f->job);
	*ret_file = f;
	return 0;
}

void local_file_cancel(struct local_file *f)
{
	f->done = NULL;
}

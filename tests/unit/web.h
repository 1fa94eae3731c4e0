/*
 * A small web server in the test's own loop: pages with an ETag, answered as an origin does, or not
 * at all. One test program, one thread; an alarm of the test is the deadline.
 */
#ifndef PULLET_WEB_H
#define PULLET_WEB_H

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../agent/httpd.h"
#include "../../agent/loop.h"

#define WEB_PAGES 40

struct web_page {
	char path[128]; /* with the query, if there is one */
	int status;     /* 0: the request hangs */
	const char *body, *etag, *type, *encoding;
	const char *name, *value;  /* one header more */
	unsigned asked, unchanged; /* requests; answers 304 */
	char condition[64];        /* If-None-Match of the last one */
};

struct web {
	struct loop *loop;
	struct httpd *httpd;
	char url[64];
	struct web_page pages[WEB_PAGES];
	size_t count;
	struct httpd_request *hanging[WEB_PAGES];
	/* a request hangs from now on; may stop the loop */
	void (*hangs)(void *arg);
	void *arg;
};

static inline struct web_page *web_find(struct web *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->pages[i].path, path) == 0)
			return &w->pages[i];
	return NULL;
}

/* Answers that path from now on. etag may be NULL; status 0: never. */
static inline struct web_page *web_put(
	struct web *w, const char *path, int status, const char *etag, const char *body)
{
	struct web_page *p = web_find(w, path);

	if (!p) {
		assert_true(w->count < WEB_PAGES);
		p = &w->pages[w->count++];
		snprintf(p->path, sizeof(p->path), "%s", path);
	}
	p->status = status;
	p->etag = etag;
	p->body = body;
	return p;
}

static inline unsigned web_hanging(const struct web *w)
{
	unsigned n = 0;

	for (size_t i = 0; i < WEB_PAGES; i++)
		n += w->hanging[i] != NULL;
	return n;
}

static inline void web_gone(void *arg)
{
	struct httpd_request **place = arg;

	*place = NULL;
}

static inline void web_hang(struct web *w, struct httpd_request *r)
{
	size_t i = 0;

	while (w->hanging[i])
		i++;
	assert_true(i < WEB_PAGES);
	w->hanging[i] = r;
	httpd_on_gone(r, web_gone, &w->hanging[i]);
	if (w->hangs)
		w->hangs(w->arg);
}

static inline void web_handle(void *arg, struct httpd_request *r)
{
	const char *x = httpd_query(r, "x"), *condition = httpd_header(r, "If-None-Match");
	struct web *w = arg;
	struct web_page *p;
	char path[128];

	snprintf(path, sizeof(path), "%s%s%s", httpd_path(r), x ? "?x=" : "", x ? x : "");
	p = web_find(w, path);
	if (!p) {
		httpd_reply(r, 404, "text/plain", "none\n", 5);
		return;
	}
	p->asked++;
	snprintf(p->condition, sizeof(p->condition), "%s", condition ? condition : "");
	if (p->status == 0) {
		web_hang(w, r);
		return;
	}
	if (p->etag)
		httpd_add_header(r, "ETag", p->etag);
	if (p->encoding)
		httpd_add_header(r, "Content-Encoding", p->encoding);
	if (p->name)
		httpd_add_header(r, p->name, p->value);
	if (p->status == 200 && p->etag && condition && strcmp(condition, p->etag) == 0) {
		p->unchanged++;
		httpd_reply(r, 304, NULL, NULL, 0);
		return;
	}
	httpd_reply(r, p->status, p->type ? p->type : "text/plain", p->body ? p->body : "",
		p->body ? strlen(p->body) : 0);
}

static inline void web_open(struct web *w, struct loop *l)
{
	memset(w, 0, sizeof(*w));
	w->loop = l;
	w->httpd = httpd_open_tcp(l, "127.0.0.1:0", web_handle, w);
	assert_non_null(w->httpd);
	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d", httpd_port(w->httpd));
}

static inline void web_close(struct web *w)
{
	if (w->httpd)
		httpd_close(w->httpd);
	w->httpd = NULL;
}

#endif

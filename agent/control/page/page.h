/*
 * The status page, which is part of the program: GET / and what it loads.
 *
 * It asks for /v1/status and /v1/changes, and where it shows one config for what is below
 * /v1/configs/NAME; for nothing else anywhere. Threads: any; constant.
 */
#ifndef PULLET_PAGE_H
#define PULLET_PAGE_H

/* Content-Security-Policy: what the page needs, and nothing else; scripts cannot even try to make
 * markup of a text. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "             \
	"require-trusted-types-for 'script'; trusted-types 'none'"

struct page {
	const char *path, *type; /* Content-Type */
	const char *data, *end;
};

/* NULL: there is nothing of that path. */
const struct page *page_find(const char *path);

#endif

/*
 * URI references. Surprising: nothing is rejected or normalized but dots in paths; two texts that
 * are not the same name two schemas, as the specification has it.
 */
#include "schema/uri.h"

#include <stdlib.h>
#include <string.h>

#define ALPHA "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Bytes of "scheme:"; 0 = there is none. */
static size_t scheme_len(const char *uri)
{
	size_t len = strspn(uri, ALPHA "0123456789+-.");

	return len && strchr(ALPHA, uri[0]) && uri[len] == ':' ? len + 1 : 0;
}

/* Where the path begins. */
static size_t path_at(const char *uri)
{
	size_t at = scheme_len(uri);

	return strncmp(uri + at, "//", 2) == 0 ? at + 2 + strcspn(uri + at + 2, "/?") : at;
}

/* "/a/./b/../c" to "/a/c", in place, up to the query. */
static void remove_dots(char *path)
{
	size_t end = strcspn(path, "?");
	char *to = path, *from = path, *first = path + (path[0] == '/');

	while (from < path + end) {
		size_t len = strcspn(from, "/?");
		bool one = len == 1 && from[0] == '.',
		     two = len == 2 && strncmp(from, "..", 2) == 0;
		size_t whole = len + (from[len] == '/');

		if (two && to > first)
			for (to--; to > first && to[-1] != '/'; to--)
				;
		if (!one && !two) {
			memmove(to, from, whole);
			to += whole;
		}
		from += whole;
	}
	memmove(to, path + end, strlen(path + end) + 1);
}

char *schema_uri_resolve(const char *base, const char *reference, size_t len)
{
	size_t at = path_at(base), path_len = strcspn(base + at, "?"), keep = at;
	char *ref = strndup(reference, len), *made = NULL;
	size_t rooted = 0; /* a "/" that goes between */

	if (!ref || scheme_len(ref))
		return ref;
	if (strncmp(ref, "//", 2) == 0)
		keep = scheme_len(base);
	else if (len == 0)
		keep = strlen(base);
	else if (ref[0] == '?')
		keep = at + path_len;
	else if (ref[0] != '/') {
		while (path_len && base[at + path_len - 1] != '/')
			path_len--;
		keep = at + path_len;
		rooted = path_len == 0 && at > scheme_len(base);
	}
	made = malloc(keep + rooted + len + 1);
	if (made) {
		memcpy(made, base, keep);
		memcpy(made + keep, "/", rooted);
		memcpy(made + keep + rooted, ref, len + 1);
		if (len && ref[0] != '?' && strncmp(ref, "//", 2) != 0)
			remove_dots(made + at);
	}
	free(ref);
	return made;
}

bool schema_uri_is_file(const char *uri, const char *name)
{
	size_t end = strcspn(uri, "?"), len = strlen(name);

	return end >= len && strncmp(uri + end - len, name, len) == 0 &&
	       (end == len || uri[end - len - 1] == '/');
}

/*
 * What a text of the agent's configuration must look like: URLs, endpoints, paths, names, keys.
 *
 * A check returns NULL when the text is valid, else a constant sentence without the value, to be
 * put behind the key's name; the caller decides whether to show the value (never a URL's, which may
 * hold a password). Nothing here knows files, lines or documents.
 *
 * Threads: any. Bounds: below.
 */
#ifndef PULLET_SETTINGS_FORM_H
#define PULLET_SETTINGS_FORM_H

#define SETTINGS_MAX_NAME 64       /* bytes of a config's or label's name */
#define SETTINGS_MAX_URL 1023      /* bytes */
#define SETTINGS_MAX_PATH 4000     /* bytes; leaves room in PATH_MAX for a temporary name */
#define SETTINGS_MAX_FILENAME 230  /* bytes of the last segment, for the same reason */
#define SETTINGS_MAX_SET_NAME 200  /* bytes of the name of a file in a set */
#define SETTINGS_MAX_KEY 1023      /* bytes of a key, or of a pattern of keys */
#define SETTINGS_MAX_ARGUMENT 8191 /* bytes of one word of a command */

/* http:// or https://, a host, no credentials, no fragment, nothing that needs escaping. */
const char *settings_check_url(const char *text);
/* A URL without a query, for paths to be put behind it. */
const char *settings_check_base_url(const char *text);
/* /..., what is put behind a base URL; a query may be in it. */
const char *settings_check_url_path(const char *text);
/* file:///PATH, an absolute path of this host. */
const char *settings_check_file_url(const char *text);
/* A name that a server gives: a region, a namespace, an access key. */
const char *settings_check_word(const char *text);
/* A header's name, none of those that the agent sets itself; its value. */
const char *settings_check_header_name(const char *text);
const char *settings_check_header_value(const char *text);
/* The user of basic authentication: no ':'. */
const char *settings_check_user(const char *text);
/* tcp://HOST:PORT or ipc:///PATH. */
const char *settings_check_endpoint(const char *text);
/* [tcp://]HOST:PORT, where port 0 and '*' mean any, or ipc://PATH. The host may be an interface or
 * '*', and is libzmq's to judge, and so is the path; of a port it would take the lower 16 bits. */
const char *settings_check_binding(const char *text);
/* HOST:PORT or [v6]:PORT; port 0 means any. */
const char *settings_check_address(const char *text);
/* Absolute, without empty, "." or ".." segments, so that equal files have equal texts. */
const char *settings_check_path(const char *text);
/* As a path, and short enough to hold the control socket. */
const char *settings_check_runtime_dir(const char *text);
const char *settings_check_topic(const char *text);
/* [A-Za-z0-9][A-Za-z0-9._-]{0,63}: a config's or a label's name. */
const char *settings_check_name(const char *text);
/* A label's value: at most 255 bytes, no control characters. */
const char *settings_check_label(const char *text);

/* [A-Za-z0-9][A-Za-z0-9._-]{0,199}: the name of a file in a set. */
const char *settings_check_file_name(const char *text);
/* A pattern of keys: 1 to SETTINGS_MAX_KEY bytes, no control characters. */
const char *settings_check_pattern(const char *text);
/* The path of a key, as a pattern; a backslash only before a dot or a backslash. */
const char *settings_check_key(const char *text);
/* One word of a command. */
const char *settings_check_argument(const char *text);
/* The form of a public key of minisign: base64 of 42 bytes, "Ed" first. */
const char *settings_check_public_key(const char *text);

#endif

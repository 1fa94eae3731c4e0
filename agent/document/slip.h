/*
 * What was probably meant where YAML cannot be read: the place where the slip began, a sentence
 * that says what it is, and what to write instead.
 *
 * libyaml says where it gave up, which is often lines behind the slip, in words for who knows its
 * grammar. Only numbers and words of our own stand in the sentences, never text of the document.
 *
 * Threads: any. Ownership: none kept. Bounds: linear, and only for text that is rejected.
 */
#ifndef PULLET_SLIP_H
#define PULLET_SLIP_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"

struct yaml_parser_s;

/* Explains the error that the parser ended with. False: libyaml's own words must do. */
bool slip_explain(const char *data, size_t len, const struct yaml_parser_s *failed,
	struct document_error *ret_error);
/* What is wrong with a line that should say KEY: VALUE, from its first character on; *ret_at is
 * moved to the character. NULL: nothing that is known. */
const char *slip_in_line(const char *data, size_t len, size_t *ret_at);
/* The line that goes on with the plain text at `at`, whose value has text_len bytes: the offset of
 * its first character; 0: it ends in its own line. */
size_t slip_next_line(const char *data, size_t len, size_t at, size_t text_len);
/* Where something stands that looks like a blank in an indentation, and is none. */
bool slip_find_odd_blank(const char *data, size_t len, size_t *ret_at, const char **ret_message);
/* True for a text that begins with a quote of typography. */
bool slip_is_typographic(const char *text);
#define SLIP_TYPOGRAPHIC "a typographic quote is text to YAML: write \" or '"
/* The offset of a place, both 1-based. */
size_t slip_offset(const char *data, size_t len, unsigned line, unsigned column);

#endif

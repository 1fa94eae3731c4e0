/*
 * One line per event on standard error, with a key=value tail.
 *
 * text: "message key=value ...", behind what the reader of standard error needs: for the journal
 * its "<N>", the priority; on a terminal nothing; else "2026-11-27T04:48:01.123Z warn "; json: one
 * object per line with "time", "level", "message" and the keys. err = the operator must act; warn =
 * we degraded and carry on; info = a state changed; debug = the rest. Never a secret, a token, or
 * document content, but for values in sentences about why a version was rejected (text/sentence.h),
 * as operators see them. Unprintable characters are escaped (text/escape.h).
 *
 * Threads: any. Bounds: a line is cut at 2 KiB. Where standard error is a pipe that stays full for
 * a second, lines are left out until it is read; the next one that is written says how many. lib/
 * never logs.
 */
#ifndef PULLET_LOG_H
#define PULLET_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum log_reader { LOG_READER_JOURNAL, LOG_READER_TERMINAL, LOG_READER_FILE };

/* Finds out who reads standard error, by JOURNAL_STREAM; once, at the start of a program: until
 * then it is the journal. */
void log_find_reader(void);
/* Sets level and format; may be called again at any time. */
void log_setup(enum log_level level, enum log_format format);
/* Makes the format one with that of children that are forked from now on; once, before there are
 * threads. Without memory each keeps its own. */
void log_share_format(void);
bool log_level_parse(const char *name, enum log_level *ret_level); /* err | warn | info | debug */

/* Writes one line: the message, then pairs of key and value, all strings; NULL ends the list, a
 * NULL value leaves its pair out. log_line(LOG_LEVEL_INFO, "published", "config", name,
 * "generation", "12", NULL) */
void log_line(enum log_level level, const char *message, ...) __attribute__((sentinel));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__, (char *)NULL)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__, (char *)NULL)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__, (char *)NULL)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__, (char *)NULL)

/* A number as a string, valid until the end of the full expression's block: log_info("x", "n",
 * LOG_U64(n)) */
#define LOG_U64(n) (log_u64_text((char[24]){0}, (uint64_t)(n)))
char *log_u64_text(char text[24], uint64_t n);
/* The same for an address or a path: without its query, which may hold a secret. */
#define LOG_URL_SIZE 1024
#define LOG_URL(url) (log_url_text((char[LOG_URL_SIZE]){0}, (url)))
char *log_url_text(char text[LOG_URL_SIZE], const char *url);

/* Limits the lines about one thing: per minute one of the same cause, two of the same kind, whose
 * causes may be other texts each time, and four in all. So a new cause is logged at once, and
 * alternating causes are not logged each time. Zeroed at first. */
#define LOG_LIMIT_MS 60000u
#define LOG_LIMIT_LINES 4
#define LOG_LIMIT_OF_A_KIND 2

struct log_limit {
	struct {
		uint32_t kind, cause; /* hashes */
		uint64_t last_ms;
	} lines[LOG_LIMIT_LINES]; /* the newest of each cause; in no order */
	unsigned used, suppressed;
};
/* True when the line may be written now; *ret_suppressed is then the number of lines suppressed
 * since the last one. */
bool log_limit_pass(
	struct log_limit *l, uint64_t now_ms, const char *cause, unsigned *ret_suppressed);
/* The same for a kind whose causes are texts, such as a message and why. */
bool log_limit_pass_kind(struct log_limit *l, uint64_t now_ms, const char *kind, const char *cause,
	unsigned *ret_suppressed);
/* True when that cause was logged recently: its line is a repetition. */
bool log_limit_told(const struct log_limit *l, const char *kind, const char *cause);

#endif

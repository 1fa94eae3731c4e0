/*
 * Lines on standard error. Surprising: each line is built whole and written by one write(2), so
 * that lines of different threads never mix; it is cut at 2 KiB. And a pipe that nobody reads holds
 * up nobody: a line for which there is no room is left out and counted.
 */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "text/escape.h"
#include "base/hash.h"
#include "text/json_text.h"
#include "text/json_writer.h"
#include "text/sentence.h"

#define LINE 2048
#define READER_MS 1000 /* that a reader has to make room, once */

static const struct {
	const char *name;
	char priority; /* journald's, from syslog.h */
} levels[] = {
	[LOG_LEVEL_ERR] = {"err", '3'},
	[LOG_LEVEL_WARN] = {"warn", '4'},
	[LOG_LEVEL_INFO] = {"info", '6'},
	[LOG_LEVEL_DEBUG] = {"debug", '7'},
};

static _Atomic enum log_level threshold = LOG_LEVEL_INFO;
static _Atomic enum log_format own_style = LOG_FORMAT_TEXT, *style = &own_style;
static _Atomic enum log_reader reader = LOG_READER_JOURNAL;

void log_setup(enum log_level level, enum log_format format)
{
	threshold = level;
	*style = format;
}

void log_share_format(void)
{
	void *page = mmap(
		NULL, sizeof(own_style), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	style = page;
	*style = own_style;
}

/* systemd says which device and inode its journal reads. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_find_reader(void)
{
	reader = isatty(STDERR_FILENO) ? LOG_READER_TERMINAL
		 : is_journal()        ? LOG_READER_JOURNAL
				       : LOG_READER_FILE;
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(levels[i].name, name) != 0)
			continue;
		*ret_level = (enum log_level)i;
		return true;
	}
	return false;
}

static bool needs_no_quotes(const char *s)
{
	if (!s[0])
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || strchr("\"'\\=", *s))
			return false;
	return true;
}

/* A value may be a sentence with values of a document in it; readers of the log may see those. */
static void append_text_value(struct buffer *b, const char *value)
{
	struct buffer shown;

	buffer_init(&shown, 16 * LINE);
	sentence_append(&shown, value, AUDIENCE_OPERATOR);
	if (shown.len && needs_no_quotes(shown.data))
		buffer_append(b, shown.data, shown.len);
	else
		json_text_append(b, shown.data ? shown.data : "", shown.len);
	buffer_take_error(b, &shown);
	buffer_fini(&shown);
}

/* "2026-11-27T04:48:01.123Z" */
static void write_line_time(char text[64])
{
	struct timespec now;
	struct tm tm;
	char time[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, 64, "%s.%03ldZ", time, now.tv_nsec / 1000000);
}

/* What stands before the message in a line of text. */
static void write_prefix(char prefix[80], enum log_level level)
{
	char time[64];

	prefix[0] = '\0';
	if (reader == LOG_READER_JOURNAL) {
		snprintf(prefix, 80, "<%c>", levels[level].priority);
	} else if (reader == LOG_READER_FILE) {
		write_line_time(time);
		snprintf(prefix, 80, "%s %s ", time, levels[level].name);
	}
}

static void begin_text_line(struct buffer *b, enum log_level level, const char *message)
{
	char prefix[80];

	write_prefix(prefix, level);
	buffer_append_string(b, prefix);
	escape_append(b, message, strlen(message));
}

static void append_text_line(
	struct buffer *b, enum log_level level, const char *message, va_list pairs)
{
	const char *key, *value;

	begin_text_line(b, level, message);
	while ((key = va_arg(pairs, const char *))) {
		value = va_arg(pairs, const char *);
		if (!value)
			continue;
		buffer_printf(b, " %s=", key);
		append_text_value(b, value);
	}
}

static void begin_json_line(struct buffer *b, enum log_level level, const char *message)
{
	char time[64];

	write_line_time(time);
	json_writer_begin_object(b, NULL);
	json_writer_text(b, "time", time);
	json_writer_text(b, "level", levels[level].name);
	json_writer_text(b, "message", message);
}

static void append_json_line(
	struct buffer *b, enum log_level level, const char *message, va_list pairs)
{
	const char *key, *value;

	begin_json_line(b, level, message);
	while ((key = va_arg(pairs, const char *))) {
		value = va_arg(pairs, const char *);
		if (value)
			sentence_member(b, key, value, AUDIENCE_OPERATOR);
	}
	json_writer_end_object(b);
}

/* Writes a line where there is room for it. */
static void put_line(const char *line, size_t len)
{
	static _Atomic unsigned left_out;
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	unsigned lines;

	if (poll(&out, 1, left_out ? 0 : READER_MS) == 0) {
		left_out++;
		return;
	}
	lines = atomic_exchange(&left_out, 0);
	if (lines)
		log_warn("nobody read the log: lines were left out", "lines", LOG_U64(lines));
	if (write(STDERR_FILENO, line, len) < 0)
		(void)0; /* nowhere to say it */
}

/* Without memory: the message alone, which is a constant of ours, without what JSON would escape.
 */
static void write_bare_line(enum log_level level, const char *message)
{
	char line[LINE], prefix[80];
	int len;

	write_prefix(prefix, level);
	if (*style == LOG_FORMAT_JSON)
		len = snprintf(line, sizeof(line), "{\"level\":\"%s\",\"message\":\"%.*s\"}\n",
			levels[level].name, (int)strcspn(message, "\"\\"), message);
	else
		len = snprintf(line, sizeof(line), "%s%.1000s\n", prefix, message);
	if (len > 0)
		put_line(line, (size_t)len);
}

void log_line(enum log_level level, const char *message, ...)
{
	struct buffer b;
	va_list pairs;

	if (level > threshold)
		return;
	buffer_init(&b, 16 * LINE);
	va_start(pairs, message);
	if (*style == LOG_FORMAT_JSON)
		append_json_line(&b, level, message, pairs);
	else
		append_text_line(&b, level, message, pairs);
	va_end(pairs);
	if (b.error == -ENOMEM) {
		write_bare_line(level, message);
		buffer_fini(&b);
		return;
	}
	if (b.error) { /* far too long: the message alone */
		buffer_clear(&b);
		if (*style == LOG_FORMAT_JSON) {
			begin_json_line(&b, level, message);
			json_writer_end_object(&b);
		} else {
			begin_text_line(&b, level, message);
		}
	}
	if (*style == LOG_FORMAT_TEXT && b.len >= LINE)
		b.len = LINE - 1;
	if (b.data) {
		b.data[b.len] = '\n'; /* in place of the NUL */
		put_line(b.data, b.len + 1);
	}
	buffer_fini(&b);
}

char *log_u64_text(char text[24], uint64_t n)
{
	snprintf(text, 24, "%llu", (unsigned long long)n);
	return text;
}

char *log_url_text(char text[LOG_URL_SIZE], const char *url)
{
	size_t len = strcspn(url, "?");

	snprintf(text, LOG_URL_SIZE, "%.*s%s", (int)(len < 1000 ? len : 1000), url,
		len > 1000 ? "..."
		: url[len] ? "?..."
			   : "");
	return text;
}

static uint32_t hash_cause(const char *s)
{
	return (uint32_t)hash_bytes(HASH_START, s, strlen(s));
}

bool log_limit_told(const struct log_limit *l, const char *kind, const char *cause)
{
	uint32_t k = hash_cause(kind), c = hash_cause(cause);

	for (unsigned i = 0; i < l->used; i++)
		if (l->lines[i].kind == k && l->lines[i].cause == c)
			return true;
	return false;
}

/* Finds the place of a line: that of the same cause, a free one, or an old one. -1: too many are
 * new.
 */
static int find_limit_line(
	const struct log_limit *l, uint64_t now_ms, uint32_t kind, uint32_t cause)
{
	int found = l->used < LOG_LIMIT_LINES ? (int)l->used : -1;
	unsigned of_a_kind = 0;

	for (unsigned i = 0; i < l->used; i++) {
		bool is_new = now_ms - l->lines[i].last_ms < LOG_LIMIT_MS;

		if (l->lines[i].kind == kind && l->lines[i].cause == cause)
			return is_new ? -1 : (int)i;
		of_a_kind += is_new && l->lines[i].kind == kind;
		if (!is_new && found < 0)
			found = (int)i;
	}
	return of_a_kind < LOG_LIMIT_OF_A_KIND ? found : -1;
}

bool log_limit_pass_kind(struct log_limit *l, uint64_t now_ms, const char *kind, const char *cause,
	unsigned *ret_suppressed)
{
	uint32_t k = hash_cause(kind), c = hash_cause(cause);
	int i = find_limit_line(l, now_ms, k, c);

	if (i < 0) {
		l->suppressed++;
		return false;
	}
	l->lines[i].kind = k;
	l->lines[i].cause = c;
	l->lines[i].last_ms = now_ms;
	if ((unsigned)i == l->used)
		l->used++;
	*ret_suppressed = l->suppressed;
	l->suppressed = 0;
	return true;
}

bool log_limit_pass(
	struct log_limit *l, uint64_t now_ms, const char *cause, unsigned *ret_suppressed)
{
	return log_limit_pass_kind(l, now_ms, cause, "", ret_suppressed);
}

/* Words of others for people. Surprising: nothing an agent, a server or another operator wrote goes
 * to the terminal as it is. */
#include "words.h"

#include <stdbool.h>
#include <time.h>

static void add_clean(struct buffer *out, const char *text, const char *newline)
{
	const unsigned char *p = (const unsigned char *)text;

	for (; *p; p++) {
		bool wide = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;

		if (*p == '\n')
			buffer_append_string(out, newline);
		else if (wide || *p < ' ' || *p == 0x7f)
			buffer_append(out, "?", 1);
		else
			buffer_append(out, p, 1);
		p += wide;
	}
}

void words_text(struct buffer *out, const char *text)
{
	add_clean(out, text, "?");
}

void words_lines(struct buffer *out, const char *text)
{
	add_clean(out, text, "\n    ");
}

void words_time(struct buffer *out, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[40] = "?";

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buffer_append_string(out, text);
}

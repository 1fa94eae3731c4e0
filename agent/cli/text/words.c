/* Words of others for people. Surprising: nothing an agent, a server or another operator wrote goes
 * to the terminal as it is. */
#include "cli/text/words.h"

#include <string.h>
#include <time.h>

#include "text/escape.h"

void words_text(struct buffer *out, const char *text)
{
	escape_append(out, text, strlen(text));
}

void words_lines(struct buffer *out, const char *text)
{
	escape_append_lines(out, text, "\n    ");
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

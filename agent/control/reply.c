/* How a request of the API is answered. */
#include "control/reply.h"

#include <errno.h>

#include "text/json_writer.h"
#include "text/sentence.h"

void reply_json(struct httpd_request *r, int status, struct buffer *b)
{
	static const char cut[] = "{\"error\":\"the answer is too large, or memory is short\"}\n";

	if (buffer_append(b, "\n", 1)) /* or an earlier append failed */
		httpd_reply(r, 500, "application/json", cut, sizeof(cut) - 1);
	else
		httpd_reply(r, status, "application/json", b->data, b->len);
	buffer_fini(b);
}

enum audience reply_audience(const struct httpd_request *r)
{
	return httpd_is_tcp(r)           ? AUDIENCE_PUBLIC
	       : httpd_may_see_values(r) ? AUDIENCE_OPERATOR
					 : AUDIENCE_READER;
}

void reply_error(struct httpd_request *r, int status, const char *sentence)
{
	struct buffer b;

	buffer_init(&b, 16384);
	json_writer_begin_object(&b, NULL);
	sentence_member(&b, "error", sentence, reply_audience(r));
	json_writer_end_object(&b);
	reply_json(r, status, &b);
}

void reply_errno(struct httpd_request *r, int error, const char *sentence)
{
	static const struct {
		int error, status;
	} table[] = {{-EINVAL, 400}, {-ENOENT, 404}, {-ENOMEM, 500}, {-EMSGSIZE, 500}};
	int status = 409;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error)
			status = table[i].status;
	reply_error(r, status, sentence);
}

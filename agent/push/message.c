/* The envelope of an update message, through the document parser. Surprising: one invalid member
 * makes the whole envelope invalid; the caller still takes the message as a bare hint. */
#include "push/message.h"

#include <errno.h>
#include <string.h>

#include "document/document.h"
#include "text/json_writer.h"

static bool read_text_member(const struct node *root, const char *name, char *to, size_t size)
{
	const struct node *n = node_find(root, name);

	if (!n)
		return true;
	if (n->type != NODE_STRING || n->text_len >= size)
		return false;
	memcpy(to, n->text, n->text_len + 1);
	return true;
}

static bool read_number_member(
	const struct node *root, const char *name, uint64_t *to, bool *ret_has)
{
	const struct node *n = node_find(root, name);

	if (!n)
		return true;
	if (n->type != NODE_INT || n->integer < 0)
		return false;
	*to = (uint64_t)n->integer;
	*ret_has = true;
	return true;
}

static const char *read_envelope(const struct node *root, struct push_message *m)
{
	uint64_t v = 0;
	bool has_v = false, has_hops = false;

	if (!read_number_member(root, "v", &v, &has_v) || !has_v || v != 1)
		return "\"v\" is not 1";
	if (!read_text_member(root, "epoch", m->epoch, sizeof(m->epoch)))
		return "\"epoch\" is not a text of at most 64 bytes";
	if (!read_text_member(root, "version", m->version, sizeof(m->version)))
		return "\"version\" is not a text of at most 256 bytes";
	if (!read_number_member(root, "seq", &m->seq, &m->has_seq))
		return "\"seq\" is not a number";
	if (!read_number_member(root, "spread_ms", &m->spread_ms, &m->has_spread))
		return "\"spread_ms\" is not a number";
	if (!read_number_member(root, "hops", &m->hops, &has_hops))
		return "\"hops\" is not a number";
	if (m->spread_ms > PUSH_MAX_SPREAD_MS)
		m->spread_ms = PUSH_MAX_SPREAD_MS;
	if (m->hops > PUSH_MAX_HOPS)
		m->hops = PUSH_MAX_HOPS;
	return NULL;
}

int push_message_parse(
	const char *data, size_t len, struct push_message *ret_message, const char **ret_why)
{
	struct document *d = NULL;
	struct document_error e;
	struct push_message m = {0};

	if (len > PUSH_MAX_ENVELOPE) {
		*ret_why = "the envelope is larger than 4 KiB";
		return -EINVAL;
	}
	if (document_parse(DOCUMENT_JSON, data, len, 0, &d, &e)) {
		*ret_why = "the envelope is not a JSON object";
		return -EINVAL;
	}
	*ret_why = read_envelope(document_root(d), &m);
	document_free(d);
	if (*ret_why)
		return -EINVAL;
	*ret_message = m;
	return 0;
}

int push_message_write(const struct push_message *m, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_number(out, "v", 1);
	if (m->epoch[0])
		json_writer_text(out, "epoch", m->epoch);
	if (m->has_seq)
		json_writer_number(out, "seq", m->seq);
	if (m->version[0])
		json_writer_text(out, "version", m->version);
	if (m->has_spread)
		json_writer_number(out, "spread_ms", m->spread_ms);
	if (m->hops)
		json_writer_number(out, "hops", m->hops);
	return json_writer_end_object(out);
}

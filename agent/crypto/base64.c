/* Six bits a letter. Surprising: it is read here and not by libcrypto, whose decoder passes over
 * blanks and over bits that belong to no byte: many texts for one signature. */
#include "crypto/base64.h"

#include <errno.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_append(struct buffer *out, const void *data, size_t len)
{
	const unsigned char *from = data;
	size_t size = len / 3 * 4 + (len % 3 ? 4 : 0);
	int r = buffer_reserve(out, size);
	char *to;

	if (r || len == 0)
		return r;
	to = out->data + out->len;
	for (size_t i = 0; i < len; i += 3) {
		unsigned long bits = (unsigned long)from[i] << 16;

		if (i + 1 < len)
			bits |= (unsigned long)from[i + 1] << 8;
		if (i + 2 < len)
			bits |= from[i + 2];
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = i + 1 < len ? letters[bits >> 6 & 63] : '=';
		*to++ = i + 2 < len ? letters[bits & 63] : '=';
	}
	*to = '\0';
	out->len += size;
	return 0;
}

int base64_decode(const char *text, size_t len, void *ret, size_t max, size_t *ret_len)
{
	unsigned char values[256], *to = ret;
	unsigned bits = 0, count = 0;
	size_t padding = 0, size;

	if (len % 4)
		return -EINVAL;
	while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
		padding++;
	size = len / 4 * 3 - padding;
	if (size > max)
		return -EMSGSIZE;
	memset(values, 64, sizeof(values));
	for (unsigned char i = 0; i < 64; i++)
		values[(unsigned char)letters[i]] = i;
	for (size_t i = 0; i < len - padding; i++) {
		unsigned value = values[(unsigned char)text[i]];

		if (value == 64)
			return -EINVAL;
		bits = bits << 6 | value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			*to++ = (unsigned char)(bits >> count);
		}
	}
	if (bits & ((1u << count) - 1))
		return -EINVAL;
	*ret_len = size;
	return 0;
}

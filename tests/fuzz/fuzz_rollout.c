/* Rollout documents: decided, or refused with a sentence; and a host that takes 0 % takes all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verify/rollout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char zone[] = "zone", eu[] = "eu-1", why[FILE_WHY] = "";
	const struct settings_label label = {zone, eu};
	const struct rollout_host host = {"h7", &label, 1, INT64_C(1795262400000)};
	struct document *d = NULL;
	struct document_error error;
	bool takes;
	int r;

	if (document_parse(DOCUMENT_YAML, (const char *)data, size, 0, &d, &error))
		return 0;
	r = rollout_decide(document_root(d), &host, "web", "42", "0123456789abcdef", &takes, why);
	if (r != 0 && r != -EINVAL)
		abort();
	if ((r || !takes) && (!why[0] || strlen(why) >= FILE_WHY))
		abort();
	document_free(d);
	return 0;
}

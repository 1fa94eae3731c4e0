/* Rollout documents with a plan: read, or refused with a sentence; and what was read is written so
 * that it reads back as the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rollout/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct plan *p)
{
	struct plan back;
	struct buffer text;
	char why[FILE_WHY];

	buffer_init(&text, 8u * ROLLOUT_MAX_BYTES);
	if (plan_write(p, &text))
		abort();
	if (text.len <= ROLLOUT_MAX_BYTES) {
		if (plan_read(text.data, text.len, &back, why))
			abort();
		if (back.state != p->state || back.wave != p->wave ||
			back.wave_count != p->wave_count || back.every_ms != p->every_ms ||
			memcmp(back.waves, p->waves, sizeof(p->waves)) != 0 ||
			back.label_count != p->label_count || back.abort_at != p->abort_at)
			abort();
		plan_fini(&back);
	}
	buffer_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan p;
	char why[FILE_WHY] = "";
	int r = plan_read((const char *)data, size, &p, why);

	if (r && ((r != -EINVAL && r != -EPROTO) || !why[0] || p.document))
		abort();
	if (r == 0 && p.state != PLAN_NONE)
		check_written(&p);
	plan_fini(&p);
	return 0;
}

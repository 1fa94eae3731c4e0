/*
 * The agent's metrics: its scopes, one after the other.
 */
#include "control/metrics.h"

#include "control/metrics_table.h"

int metrics_write(const struct control_env *env, bool openmetrics, struct buffer *out)
{
	int e = 0;

	for (size_t i = 0; e == 0 && i < METRIC_SCOPES; i++) {
		struct metric_subject s = {.env = env};

		e = exposition_write(&metric_scopes[i], &s, s.labels, openmetrics, out);
	}
	if (e == 0 && openmetrics)
		e = buffer_append_string(out, "# EOF\n");
	return e;
}

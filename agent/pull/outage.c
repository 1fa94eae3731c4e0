/* Lines for many configs of one server. Surprising: nothing here has a timer. The configs' own
 * pulls, which go on failing, are what writes the next line. */
#include "pull/outage.h"

#include <string.h>

void outage_join(struct outage *o, uint64_t now_ms)
{
	if (o->failing++ == 0) {
		o->most = 0;
		o->counted = false;
		o->since_ms = now_ms;
	}
	if (o->failing > o->most)
		o->most = o->failing;
}

bool outage_may_log(struct outage *o, uint64_t now_ms, unsigned *ret_suppressed)
{
	if (log_limit_pass(&o->limit, now_ms, "outage", ret_suppressed)) {
		o->counted |= o->failing > 1;
		return true;
	}
	if (o->counted || o->failing < 2 ||
		(o->failing < o->configs && now_ms - o->since_ms < OUTAGE_COUNT_MS))
		return false;
	o->counted = true;
	*ret_suppressed = o->limit.suppressed;
	o->limit.suppressed = 0;
	return true;
}

size_t outage_configs(const struct outage *o)
{
	return !o ? 0 : o->failing > o->configs ? o->failing : o->configs;
}

void outage_forget(struct outage *o)
{
	if (--o->failing == 0)
		memset(&o->limit, 0, sizeof(o->limit));
}

bool outage_leave(struct outage *o, uint64_t now_ms)
{
	bool several = o->most > 1;

	outage_forget(o);
	if (several && !o->failing)
		log_info("recovered", "server", o->server, "failing_configs", LOG_U64(o->most),
			"after_ms", LOG_U64(now_ms - o->since_ms));
	return several;
}

/* What more than one handler of the API does. */
#include "control/handler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "control/reply.h"
#include "files/user.h"

void handler_share_refused(void *arg, const struct peer *peer)
{
	struct control *c = arg;
	char user[USER_TEXT], cause[24];
	unsigned before;

	c->env->counts->busy++;
	snprintf(cause, sizeof(cause), "%u", (unsigned)peer->uid);
	if (!log_limit_pass(&c->busy, loop_now_ms(c->env->loop), cause, &before))
		return;
	user_describe(&sys_real, peer->uid, user);
	log_warn("the control socket is busy: a request was denied", "by", user, "before",
		before ? LOG_U64(before) : NULL);
}

void handler_begin_answer(
	struct control *c, struct httpd_request *r, struct config *config, struct answer *a)
{
	char why[FILE_WHY];
	struct peer peer;
	int e;

	a->audience = reply_audience(r);
	e = answers_begin(&c->answers, a, r, config, why);
	if (e == 0)
		return;
	free(a->key);
	if (e != -EBUSY) {
		reply_errno(r, e, why);
		return;
	}
	httpd_peer(r, &peer);
	handler_share_refused(c, &peer);
	reply_error(r, 503, why);
}

/*
 * Answers that take long. Surprising: when the server ends before the work does, the answer is left
 * to the config, which ends it with its tasks.
 */
#include "control/answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "httpd/share.h"

#define ANSWER_OF(t) ((struct answer *)((char *)(t)-offsetof(struct answer, task)))

static void unlink_answer(struct answer *a)
{
	struct answer **link = a->answers ? &a->answers->first : NULL;

	if (!link)
		return;
	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	a->answers->count--;
	a->answers = NULL;
}

static void answer_free(struct answer *a)
{
	unlink_answer(a);
	if (a->made && a->unmake)
		a->unmake(a->made);
	inspect_end(&a->seen);
	buffer_fini(&a->out);
	free(a->key);
	free(a);
}

static void run_answer(struct config_task *t)
{
	struct answer *a = ANSWER_OF(t);

	a->compute(a);
}

static void answer_ended(struct config_task *t)
{
	struct answer *a = ANSWER_OF(t);

	if (t->dropped) {
		a->error = -ECANCELED;
		snprintf(a->why, sizeof(a->why),
			"a new configuration changes this config, or removes it: ask again");
	}
	unlink_answer(a); /* the answer may begin another one */
	if (a->request) {
		httpd_on_gone(a->request, NULL, NULL);
		a->reply(a);
	}
	answer_free(a);
}

static void answer_client_gone(void *arg)
{
	struct answer *a = arg;

	a->request = NULL;
}

static bool answers_have_room(const struct answers *answers, const struct peer *asks)
{
	struct share_held held = {0};

	for (const struct answer *a = answers->first; a; a = a->next)
		share_add(&held, asks, &a->peer, 1);
	return answers->count < ANSWERS_MAX &&
	       share_check(ANSWERS_MAX, asks, &held, 1) == SHARE_ROOM;
}

int answers_begin(struct answers *answers, const struct answer *what, struct httpd_request *r,
	struct config *c, char why[FILE_WHY])
{
	struct answer *a;
	struct peer peer;
	int e;

	httpd_peer(r, &peer);
	if (!answers_have_room(answers, &peer)) {
		snprintf(why, FILE_WHY, "too many such requests are under way: try again");
		return -EBUSY;
	}
	a = malloc(sizeof(*a));
	if (!a) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	*a = *what;
	e = inspect_begin(c, &a->seen, why);
	if (e == 0 && a->held) {
		e = inspect_hold(&a->seen, why);
		if (e)
			inspect_end(&a->seen);
	}
	if (e) {
		free(a);
		return e;
	}
	buffer_init(&a->out, ANSWERS_MAX_ANSWER);
	a->error = 0;
	a->why[0] = '\0';
	a->request = r;
	a->peer = peer;
	a->task = (struct config_task){.run = run_answer, .ended = answer_ended};
	a->answers = answers;
	a->next = answers->first;
	answers->first = a;
	answers->count++;
	httpd_on_gone(r, answer_client_gone, a);
	config_task_begin(c, &a->task);
	return 0;
}

void answers_forget(struct answers *answers)
{
	for (struct answer *a = answers->first; a; a = a->next) {
		a->request = NULL;
		a->answers = NULL;
	}
	*answers = (struct answers){.count = 0};
}

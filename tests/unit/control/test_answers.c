/* Answers that take long: who gets one, how many at a time, and what becomes of one that nobody
 * waits for any more. The server, the config and its thread are played. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/answers.h"

/* ---- played ---- */

static struct client { /* that a request is of */
	struct peer peer;
	void (*gone)(void *arg);
	void *arg;
} clients[ANSWERS_MAX + 2];

static struct config_task *tasks[ANSWERS_MAX + 2];
static size_t task_count, inspections;
static int inspect_error, hold_error;
static bool holds; /* the question is about what is held back */

void httpd_peer(const struct httpd_request *r, struct peer *ret_peer)
{
	*ret_peer = ((const struct client *)(const void *)r)->peer;
}

void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg)
{
	struct client *c = (struct client *)(void *)r;

	c->gone = gone;
	c->arg = arg;
}

int inspect_begin(struct config *c, struct inspection *ret, char why[FILE_WHY])
{
	*ret = (struct inspection){.config = c};
	inspections += inspect_error == 0;
	snprintf(why, FILE_WHY, "%s", inspect_error ? "no memory" : "");
	return inspect_error;
}

int inspect_hold(struct inspection *i, char why[FILE_WHY])
{
	assert_non_null(i->config);
	snprintf(why, FILE_WHY, "%s", hold_error ? "nothing is held back" : "");
	return hold_error;
}

void inspect_end(struct inspection *i)
{
	assert_non_null(i->config);
	inspections--;
}

void config_task_begin(struct config *c, struct config_task *t)
{
	assert_non_null(c);
	tasks[task_count++] = t;
}

/* ---- an answer ---- */

static struct answers answers;
static char sent[1024], why[FILE_WHY];
static unsigned unmade;

static int set_up(void **state)
{
	(void)state;
	memset(clients, 0, sizeof(clients));
	for (size_t i = 0; i < ANSWERS_MAX + 2; i++)
		clients[i].peer = (struct peer){.local = true, .right = RIGHT_OWN};
	answers = (struct answers){.count = 0};
	task_count = inspections = unmade = 0;
	inspect_error = hold_error = 0;
	holds = false;
	sent[0] = '\0';
	return 0;
}

static void compute(struct answer *a)
{
	assert_int_equal(a->error, 0);
	assert_string_equal(a->why, "");
	buffer_printf(&a->out, "%s %llu", a->key, (unsigned long long)a->number);
	a->made = &unmade;
}

/* Appends the client's number, and what it gets. */
static void reply(struct answer *a)
{
	size_t len = strlen(sent);

	snprintf(sent + len, sizeof(sent) - len, "%d: %.100s\n",
		(int)((struct client *)(void *)a->request - clients),
		a->error      ? a->why
		: a->out.data ? a->out.data
			      : "");
	assert_int_equal(a->error, a->why[0] ? -ECANCELED : 0);
}

static void unmake(void *made)
{
	assert_ptr_equal(made, &unmade);
	unmade++;
}

static int ask(size_t client)
{
	const struct answer a = {.compute = compute,
		.reply = reply,
		.unmake = unmake,
		.number = client,
		.key = strdup("key"),
		.held = holds,
		.error = 7,
		.why = "left over"};
	int r = answers_begin(&answers, &a, (struct httpd_request *)(void *)&clients[client],
		(struct config *)(void *)clients, why);

	if (r)
		free(a.key);
	return r;
}

/* The config's thread takes this task, and the loop its end. */
static void run(size_t task)
{
	tasks[task]->run(tasks[task]);
	tasks[task]->ended(tasks[task]);
}

static void assert_nothing_left(void)
{
	assert_int_equal(answers.count, 0);
	assert_null(answers.first);
	assert_int_equal(inspections, 0);
}

static void answer__is_sent_when_it_was_computed(void **state)
{
	(void)state;
	assert_int_equal(ask(0), 0);
	assert_int_equal(ask(1), 0);
	assert_int_equal(ask(2), 0);
	assert_int_equal(answers.count, 3);
	assert_string_equal(sent, "");
	run(1);
	assert_string_equal(sent, "1: key 1\n");
	assert_int_equal(answers.count, 2);
	assert_null(clients[1].gone);
	run(2);
	run(0);
	assert_string_equal(sent, "1: key 1\n2: key 2\n0: key 0\n");
	assert_int_equal(unmade, 3);
	assert_nothing_left();
}

static void client__that_leaves__gets_none(void **state)
{
	(void)state;
	assert_int_equal(ask(0), 0);
	assert_int_equal(ask(1), 0);
	clients[0].gone(clients[0].arg);
	assert_int_equal(answers.count, 2); /* the work goes on */
	run(0);
	run(1);
	assert_string_equal(sent, "1: key 1\n");
	assert_int_equal(unmade, 2);
	assert_nothing_left();
}

static void config__that_goes__is_told_to_its_clients(void **state)
{
	(void)state;
	assert_int_equal(ask(0), 0);
	tasks[0]->dropped = true;
	tasks[0]->ended(tasks[0]);
	assert_string_equal(
		sent, "0: a new configuration changes this config, or removes it: ask again\n");
	assert_int_equal(unmade, 0); /* nothing was made */
	assert_nothing_left();
}

static void config__that_cannot_be_inspected__says_why(void **state)
{
	(void)state;
	inspect_error = -ENOMEM;
	assert_int_equal(ask(0), -ENOMEM);
	assert_string_equal(why, "no memory");
	assert_int_equal(task_count, 0);
	assert_null(clients[0].gone);
	assert_nothing_left();
}

static void config__that_holds_nothing_back__says_so(void **state)
{
	(void)state;
	holds = true;
	hold_error = -ENOENT;
	assert_int_equal(ask(0), -ENOENT);
	assert_string_equal(why, "nothing is held back");
	assert_int_equal(task_count, 0);
	assert_nothing_left();
}

static void server__that_ends__sends_none(void **state)
{
	(void)state;
	assert_int_equal(ask(0), 0);
	assert_int_equal(ask(1), 0);
	answers_forget(&answers);
	assert_int_equal(answers.count, 0);
	assert_null(answers.first);
	run(0);
	run(1);
	assert_string_equal(sent, "");
	assert_nothing_left();
}

/* ---- bounds ---- */

static void answers__are_bounded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWERS_MAX; i++)
		assert_int_equal(ask(i), 0);
	clients[ANSWERS_MAX + 1].peer.uid = 1; /* nor is there room for another user */
	for (size_t i = ANSWERS_MAX; i < ANSWERS_MAX + 2; i++) {
		assert_int_equal(ask(i), -EBUSY);
		assert_string_equal(why, "too many such requests are under way: try again");
	}
	run(3);
	assert_int_equal(ask(ANSWERS_MAX), 0);
	assert_int_equal(ask(ANSWERS_MAX + 1), -EBUSY);
	for (size_t i = 0; i < task_count; i++)
		if (i != 3)
			run(i);
	assert_nothing_left();
}

static void user__that_only_reads__has_a_quarter_of_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWERS_MAX + 2; i++)
		clients[i].peer = (struct peer){.local = true, .uid = 1000, .right = RIGHT_READ};
	assert_int_equal(ask(0), 0);
	assert_int_equal(ask(1), 0);
	assert_int_equal(ask(2), -EBUSY);
	clients[2].peer.uid = 1001; /* others have their own */
	assert_int_equal(ask(2), 0);
	clients[3].peer = (struct peer){.local = true, .right = RIGHT_OWN};
	assert_int_equal(ask(3), 0);
	run(0);
	assert_int_equal(ask(4), 0);
	assert_int_equal(ask(5), -EBUSY);
	for (size_t i = 1; i < task_count; i++)
		run(i);
	assert_nothing_left();
}

/* What others have who do not only read takes nothing from those who do. */
static void user__that_only_reads__has_its_share_beside_root(void **state)
{
	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(ask(i), 0);
	clients[6].peer = (struct peer){.local = true, .uid = 1000, .right = RIGHT_READ};
	assert_int_equal(ask(6), 0);
	for (size_t i = 0; i < task_count; i++)
		run(i);
	assert_nothing_left();
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answer__is_sent_when_it_was_computed),
		CASE(client__that_leaves__gets_none),
		CASE(config__that_goes__is_told_to_its_clients),
		CASE(config__that_cannot_be_inspected__says_why),
		CASE(config__that_holds_nothing_back__says_so),
		CASE(server__that_ends__sends_none),
		CASE(answers__are_bounded),
		CASE(user__that_only_reads__has_a_quarter_of_them),
		CASE(user__that_only_reads__has_its_share_beside_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

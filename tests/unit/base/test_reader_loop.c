/*
 * pullet_fd() in libevent's loop, as an application has it: an event, and a refresh in its
 * callback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <event2/event.h>

#include "tests/unit/fixture/reader_agent.h"

struct application {
	struct event_base *base;
	struct pullet *p;
	struct page *page;
	uint64_t last;
};

/* The agent publishes the next version once this one was seen. */
static void refresh(evutil_socket_t fd, short what, void *arg)
{
	struct application *a = arg;

	(void)fd;
	(void)what;
	if (pullet_refresh(a->p) != 1)
		return;
	if (pullet_generation(a->p) == a->last)
		event_base_loopbreak(a->base);
	else
		agent_publish("web", a->page, pullet_generation(a->p) + 1);
}

static void libevent__an_event_on_the_descriptor__sees_each_version(void **state)
{
	const struct timeval deadline = {20, 0};
	struct application a = {.base = event_base_new(), .last = 100};
	struct event *event;

	(void)state;
	agent_put_page("web");
	a.page = agent_map_page("web");
	assert_int_equal(pullet_open(agent_path("web", ".snap"), PULLET_WAIT_FIRST, &a.p), 0);
	event = event_new(a.base, pullet_fd(a.p), EV_READ | EV_PERSIST, refresh, &a);
	assert_int_equal(event_add(event, NULL), 0);
	assert_int_equal(event_base_loopexit(a.base, &deadline), 0);
	assert_int_equal(event_base_loop(a.base, EVLOOP_NONBLOCK), 0); /* nothing is there yet */
	agent_publish("web", a.page, 1);
	assert_int_equal(event_base_dispatch(a.base), 0);
	assert_int_equal(pullet_generation(a.p), a.last);
	event_free(event);
	pullet_close(a.p);
	munmap(a.page, PAGE_SIZE);
	event_base_free(a.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libevent__an_event_on_the_descriptor__sees_each_version),
	};

	return cmocka_run_group_tests(tests, agent_make_dir, agent_remove_dir);
}

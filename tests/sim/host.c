/*
 * The process of an agent on its host. Surprising: a process ends by longjmp() out of the system
 * call that was its last, whatever its thread; its memory and descriptors are then taken away.
 */
#include "tests/sim/host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "settings/loader.h"
#include "tests/sim/libc.h"
#include "tests/sim/loop.h"
#include "tests/sim/push.h"
#include "tests/sim/world.h"

#define FIRST_PID 1000

struct host *host_now;
static jmp_buf process_end;

struct host_event {
	struct host *host;
	uint64_t process;
	void (*call)(void *arg);
	void *arg;
	bool cancelled;
	struct host_event *next; /* in the list of free ones */
};

/* ---- calls ---- */

static void end_process(void)
{
	host_now->exit_code = -1;
	longjmp(process_end, 1);
}

void host_exit(int code)
{
	host_now->exit_code = code;
	longjmp(process_end, 1);
}

static void clear_process(struct host *h)
{
	h->state = HOST_DOWN;
	h->process++;
	h->calls_left = h->changes_left = 0;
	h->armed_number++;
	h->armed_us = 0;
	h->reconfigure = NULL;
	memset(h->workers, 0, sizeof(h->workers));
	disk_use(h->disk);
	disk_kill(h->disk, OWNER_AGENT);
	libc_forget(OWNER_AGENT);
	memset(&h->agent, 0, sizeof(h->agent));
	h->watch = NULL;
}

static void note_change(void *arg, const char *dir, const char *name, const char *cause)
{
	struct host *h = arg;

	if (h->watch)
		sim_watch_note(h->watch, dir, name, cause);
	if (h->changed)
		h->changed(h->arg, dir, name);
}

void host_prepare(struct host *h)
{
	disk_on_change(h->disk, note_change, h);
	libc_hooks.on_exit = host_exit;
}

static void take_turn(void *arg);

/* Has the loop's next turn come when its next timer is due. */
static void arm_turn(struct host *h)
{
	uint64_t due_ms, due_us;

	if (h->state != HOST_UP || !h->agent.loop)
		return;
	if (!sim_loop_next(h->agent.loop, &due_ms))
		return;
	due_us = due_ms * 1000 > world.now_us ? due_ms * 1000 : world.now_us;
	if (h->armed_us == due_us)
		return;
	h->armed_us = due_us;
	host_at(h, due_us, take_turn, h);
}

static void run_loop(struct host *h)
{
	if (h->agent.loop)
		sim_loop_turn(h->agent.loop);
}

/* Makes its process the one that runs: the disk, who it is, and which of its calls is the last. */
static void enter_host(struct host *h)
{
	host_now = h;
	world.who = h->traced;
	disk_use(h->disk);
	disk_owner = OWNER_AGENT;
	libc_process.pid = FIRST_PID + (pid_t)h->number;
	libc_process.host = h->name;
	push_set_host(h->number);
	world_faults.died = end_process;
	world_faults.last_call = h->calls_left ? world.calls + h->calls_left : 0;
	world_faults.last_change = h->changes_left ? world.changes + h->changes_left : 0;
}

static void leave_host(struct host *h)
{
	disk_owner = OWNER_WORLD;
	host_now = NULL;
	if (world_faults.last_call)
		h->calls_left = world_faults.last_call - world.calls;
	if (world_faults.last_change)
		h->changes_left = world_faults.last_change - world.changes;
	world_faults.last_call = world_faults.last_change = 0;
}

bool host_call(struct host *h, void (*call)(void *arg), void *arg)
{
	volatile bool alive = true;

	if (host_now == h) { /* from the agent's own call */
		call(arg);
		return true;
	}
	if (h->state != HOST_UP)
		return false;
	enter_host(h);
	if (setjmp(process_end) == 0) {
		call(arg);
		run_loop(h);
	} else {
		alive = false;
	}
	leave_host(h);
	if (alive) {
		arm_turn(h);
		if (h->turned)
			h->turned(h);
	} else {
		world_trace("%s: the process ends with %d, call %llu", h->name, h->exit_code,
			(unsigned long long)world.calls);
		clear_process(h);
		if (h->died)
			h->died(h, h->exit_code);
	}
	world.who = NULL;
	return alive;
}

/* ---- events ---- */

static struct host_event *free_events;

static void deliver_event(void *arg, uint64_t number)
{
	struct host_event *e = arg;
	struct host *h = e->host;

	(void)number;
	if (h->state == HOST_UP && e->process == h->process && !e->cancelled &&
		h->stopped_until_us > world.now_us) {
		world_at(h->stopped_until_us, deliver_event, e, 0);
		return;
	}
	if (h->state == HOST_UP && e->process == h->process && !e->cancelled)
		host_call(h, e->call, e->arg);
	e->next = free_events;
	free_events = e;
}

struct host_event *host_at(struct host *h, uint64_t due_us, void (*call)(void *arg), void *arg)
{
	enum disk_owner owner = disk_owner;
	struct host_event *e = free_events;

	disk_owner = OWNER_WORLD;
	if (e)
		free_events = e->next;
	else
		e = malloc(sizeof(*e));
	*e = (struct host_event){.host = h, .process = h->process, .call = call, .arg = arg};
	disk_owner = owner;
	world_at(due_us, deliver_event, e, 0);
	return e;
}

void host_cancel(struct host_event *e)
{
	e->cancelled = true;
}

static void take_turn(void *arg)
{
	struct host *h = arg;

	h->armed_us = 0; /* host_call() has the loop run after this */
}

/* ---- start and stop ---- */

static void report_error(void *arg, const char *message)
{
	(void)arg;
	world_trace("configuration: %s", message);
}

/* As main() of agent/main.c. */
static void start_agent(void *arg)
{
	struct host *h = arg;
	struct agent *a = &h->agent;
	struct settings *settings = NULL;
	int r;

	*a = (struct agent){
		.lock = -1, .path = "/etc/pullet.yaml", .once = h->once, .dry_run = h->dry_run};
	if (settings_load(a->path, report_error, NULL, &settings)) {
		host_exit(2);
		return;
	}
	agent_set_log(a, settings);
	r = agent_open(a, settings);
	if (r == 0) {
		h->reconfigure = reconfigure_new(a);
		r = h->reconfigure ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = agent_start(a, settings);
	else
		settings_free(settings);
	if (r == 0)
		return;
	reconfigure_free(h->reconfigure);
	h->reconfigure = NULL;
	agent_stop(a);
	host_exit(1);
}

void host_loop_ended(void)
{
	struct host *h = host_now;

	reconfigure_free(h->reconfigure);
	h->reconfigure = NULL;
	agent_stop(&h->agent);
	host_exit(0);
}

bool host_start(struct host *h)
{
	h->state = HOST_UP;
	world_trace("%s: the agent starts", h->name);
	return host_call(h, start_agent, h);
}

void host_kill(struct host *h)
{
	if (h->state == HOST_UP) {
		world_trace("%s: killed", h->name);
		clear_process(h);
	}
}

static void stop_agent(void *arg)
{
	struct host *h = arg;

	reconfigure_free(h->reconfigure);
	h->reconfigure = NULL;
	agent_stop(&h->agent);
	h->agent.loop = NULL;
}

void host_stop(struct host *h)
{
	if (h->state == HOST_UP && host_call(h, stop_agent, h)) {
		world_trace("%s: stopped", h->name);
		h->state = HOST_DOWN;
		h->process++;
	}
}

static void reload_agent(void *arg)
{
	struct host *h = arg;

	reconfigure_begin(h->reconfigure);
}

void host_reload(struct host *h)
{
	host_call(h, reload_agent, h);
}

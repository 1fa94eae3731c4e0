/*
 * A program and the versions of its config. Surprising: it is started by the main thread alone: the
 * end of that is what the kernel kills the program for.
 */
#include "cli/values/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/pullet.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/values/kept.h"
#include "cli/values/watcher.h"

#define DEBOUNCES 5 /* changes that go on wait for that many at most */

static uint64_t clock_now_ms(void)
{
	return sys_real.now_ms();
}

/* ---- versions ---- */

/* Moves to the newest version. */
static void take_newest_version(struct runner *r)
{
	int error = pullet_refresh(r->p);

	if (error == -EIDRM)
		cli_note(r->command, "%s was withdrawn: %s", r->config,
			r->child.pid ? "the program goes on with its last values"
				     : "waiting for it to come back");
	else if (error < 0)
		cli_note(r->command, "%s: %s", r->config, pullet_strerror(error));
}

/* Reads the environment for the next start. False, with its sentence printed. */
static bool read_next_version(struct runner *r)
{
	struct exec_env found;
	struct export_error e = {"out of memory"};

	if (exec_env_read(r->p, r->config, r->prefix, r->child.argv, &found, &e)) {
		cli_note(r->command, "%s, generation %" PRIu64 ": %s", r->config,
			pullet_generation(r->p), e.message);
		return false;
	}
	exec_env_fini(&r->next);
	r->next = found;
	return true;
}

/* ---- the program ---- */

/* -1, or the exit code. */
static int start_runner_program(struct runner *r)
{
	int error;

	exec_env_fini(&r->environment);
	r->environment = r->next;
	r->next = (struct exec_env){.list = NULL};
	r->stopping = false;
	r->kill_at_ms = 0;
	error = child_start(&r->child, r->environment.list);
	return error ? cli_error(CLI_FAILED, r->command, "cannot start %s: %s", r->child.argv[0],
			       strerror(-error))
		     : -1;
}

static void ask_to_end(struct runner *r)
{
	r->stopping = true;
	r->kill_at_ms = clock_now_ms() + r->grace_ms;
	kill(r->child.pid, SIGTERM);
}

static void handle_restart(struct runner *r)
{
	if (!read_next_version(r)) {
		cli_note(r->command, "the program goes on with the values of before");
	} else if (!exec_env_same(&r->environment, &r->next)) {
		cli_note(r->command, "%s is at generation %" PRIu64 ": restarting %s", r->config,
			pullet_generation(r->p), r->child.argv[0]);
		ask_to_end(r);
	}
}

/* What waits is due. */
static void handle_change(struct runner *r)
{
	r->first_change_ms = r->change_at_ms = 0;
	take_newest_version(r);
	if (pullet_generation(r->p) == r->generation)
		return;
	r->generation = pullet_generation(r->p);
	if (r->on_change == CHANGE_SIGNAL)
		kill(r->child.pid, r->signal);
	else if (r->on_change == CHANGE_RESTART && !r->stopping && !r->ending)
		handle_restart(r);
}

static void put_change_off(struct runner *r)
{
	uint64_t now = clock_now_ms(), last;

	if (!r->first_change_ms)
		r->first_change_ms = now;
	last = r->first_change_ms + DEBOUNCES * r->debounce_ms;
	r->change_at_ms = now + r->debounce_ms < last ? now + r->debounce_ms : last;
}

/* ---- signals ---- */

static bool ends_programs(uint32_t signo)
{
	return signo == SIGTERM || signo == SIGINT || signo == SIGQUIT;
}

static void pass_signal(struct runner *r, const struct signalfd_siginfo *info)
{
	/* the terminal's keys reach the whole group: the program has it already */
	bool by_terminal = info->ssi_code == SI_KERNEL;

	if (ends_programs(info->ssi_signo) && (!by_terminal || r->stopping))
		r->ending = true;
	if (by_terminal || (r->stopping && info->ssi_signo == SIGTERM))
		return;
	kill(r->child.pid, (int)info->ssi_signo);
}

/* True for a file that no agent keeps, as `pullet build` made it or somebody copied it. */
static bool is_unkept(const struct runner *r)
{
	return strchr(r->config, '/') && !kept_by_agent(r->p);
}

/* Notes that a version is not confirmed. CLI_OK, or CLI_FAILED where it must be. */
static int check_freshness(struct runner *r)
{
	if (!pullet_stale(r->p) || (!r->fresh && kept_note_copy(r->command, r->p)) ||
		(!r->fresh && is_unkept(r)))
		return CLI_OK;
	if (is_unkept(r))
		return cli_error(CLI_FAILED, r->command,
			"no agent keeps %s up to date (there is no control page beside it), so it "
			"has no age: leave out --fresh",
			r->config);
	if (r->fresh)
		return cli_error(CLI_FAILED, r->command,
			"%s is stale: no server has confirmed generation %" PRIu64
			" lately; 'pullet status %s' says why",
			r->config, pullet_generation(r->p), r->config);
	cli_note(r->command,
		"%s is stale: no server has confirmed generation %" PRIu64
		" lately; starting with it",
		r->config, pullet_generation(r->p));
	return CLI_OK;
}

/* Before the first start. -1, or the exit code. */
static int heed_signal(uint32_t signo)
{
	return ends_programs(signo) || signo == SIGHUP ? 128 + (int)signo : -1;
}

/* -1, or the exit code. */
static int take_signals(struct runner *r)
{
	struct signalfd_siginfo info;
	int code = -1;

	while (code < 0 && read(r->child.signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (r->child.pid)
			pass_signal(r, &info);
		else if (!r->environment.list)
			code = heed_signal(info.ssi_signo);
		else if (ends_programs(info.ssi_signo))
			r->ending = true;
	}
	return code;
}

/* ---- turns ---- */

/* Before the first start. -1, or the exit code. */
static int take_first(struct runner *r)
{
	take_newest_version(r);
	if (pullet_generation(r->p) == 0)
		return clock_now_ms() - r->since_ms < r->timeout_ms
			       ? -1
			       : cli_error(CLI_TIMED_OUT, r->command,
					 "nothing was published as %s in that time", r->config);
	if (check_freshness(r) != CLI_OK)
		return CLI_FAILED;
	r->generation = pullet_generation(r->p);
	return read_next_version(r) ? start_runner_program(r) : CLI_FAILED;
}

/* The program and all that it left have ended. -1: it was started again; or the exit code. */
static int finish_program(struct runner *r)
{
	if (!r->stopping || r->ending)
		return r->code;
	r->code = -1;
	take_newest_version(r);
	r->generation = pullet_generation(r->p);
	read_next_version(r); /* if it fits none, that of the change is there */
	return start_runner_program(r);
}

static void report_orphans(struct runner *r)
{
	unsigned count = child_end_orphans();

	cli_note(r->command,
		"%s has ended, and %u %s that it started %s TERM: a program must stay in the "
		"foreground, and a script exec it",
		r->child.argv[0], count, count == 1 ? "process" : "processes",
		count == 1 ? "gets" : "get");
	if (!r->kill_at_ms)
		r->kill_at_ms = clock_now_ms() + r->grace_ms;
}

/* -1, or the exit code. */
static int wait_for_turn(struct runner *r)
{
	uint64_t now = clock_now_ms();
	int code;

	if (!r->environment.list)
		return take_first(r);
	code = child_reap(&r->child);
	if (code >= 0) {
		r->code = code;
		if (child_has_orphans())
			report_orphans(r);
	}
	if (r->kill_at_ms && now >= r->kill_at_ms) {
		if (r->child.pid)
			kill(r->child.pid, SIGKILL);
		else
			child_kill_orphans();
	}
	if (!r->child.pid)
		return child_has_orphans() && (!r->kill_at_ms || now < r->kill_at_ms)
			       ? -1
			       : finish_program(r);
	if (r->change_at_ms && now >= r->change_at_ms)
		handle_change(r);
	return -1;
}

static void bring_forward(uint64_t *at_ms, uint64_t by_ms)
{
	if (by_ms && by_ms < *at_ms)
		*at_ms = by_ms;
}

static void wait_for_event(struct runner *r)
{
	struct pollfd fds[] = {
		{.fd = r->child.signals, .events = POLLIN}, {.fd = r->news, .events = POLLIN}};
	uint64_t until = UINT64_MAX, now = clock_now_ms(), count;

	if (!r->environment.list && r->timeout_ms < UINT64_MAX)
		until = r->since_ms + r->timeout_ms;
	if (r->child.pid)
		bring_forward(&until, r->change_at_ms);
	if (r->kill_at_ms > now || !r->child.pid)
		bring_forward(&until, r->kill_at_ms); /* KILL is sent once */
	if (until == UINT64_MAX)
		poll(fds, 2, -1);
	else
		poll(fds, 2,
			until <= now              ? 0
			: until - now < INT32_MAX ? (int)(until - now)
						  : INT32_MAX);
	if (fds[1].revents && read(r->news, &count, sizeof(count)) > 0 && r->environment.list)
		put_change_off(r);
}

static int run_program(struct runner *r)
{
	int code = CLI_OK;

	if (pullet_generation(r->p) == 0 && pullet_withdrawn(r->p))
		return cli_error(CLI_NOT_FOUND, r->command,
			"%s was withdrawn: the agent does not publish it any more; configure it "
			"again, with a snapshot",
			r->config);
	if (pullet_generation(r->p) == 0)
		cli_note_waiting(r->command, r->config);
	r->since_ms = clock_now_ms();
	code = wait_for_turn(r);
	while (code < 0) {
		wait_for_event(r);
		code = take_signals(r);
		if (code < 0)
			code = wait_for_turn(r);
	}
	return code;
}

static int open_all(struct runner *r)
{
	int error = child_init(&r->child, r->command, r->child.argv);

	if (error)
		return cli_error(
			CLI_FAILED, r->command, "cannot watch signals: %s", strerror(-error));
	error = cli_open(r->command, r->config, PULLET_WAIT_FIRST, &r->p);
	return error ? error : watcher_start(r->command, r->config, &r->news);
}

int runner_run(struct runner *r)
{
	int code;

	r->news = r->code = -1;
	code = open_all(r);
	if (code == CLI_OK)
		code = run_program(r);
	exec_env_fini(&r->environment);
	exec_env_fini(&r->next);
	pullet_close(r->p);
	return code;
}

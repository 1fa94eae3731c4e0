/*
 * `pullet doctor` on a host where systemd runs pullet.service: systemctl is played, by an execve()
 * of this program that prints what the test says. The agent is played by a thread: all children
 * are killed when the program that asks systemd has ended (keeper_sweep()).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"

#define SYSTEMCTL "/usr/bin/systemctl"
#define WELL                                                                                       \
	"LoadState=loaded\nActiveState=active\nUser=root\nWatchdogUSec=1min\nNRestarts=0\n"        \
	"MemoryMax=infinity\nMemoryCurrent=1048576\nProtectSystem=no\nProtectHome=no\n"

static const char *unit; /* what systemctl prints; NULL = this host was not booted by systemd */
static char path[SCRATCH_PATH + 64];

int access(const char *name, int mode)
{
	if (strcmp(name, "/run/systemd/system") == 0 || strcmp(name, SYSTEMCTL) == 0) {
		errno = ENOENT;
		return unit ? 0 : -1;
	}
	return (int)syscall(SYS_faccessat, AT_FDCWD, name, mode);
}

int execve(const char *name, char *const argv[], char *const environment[])
{
	if (strcmp(name, SYSTEMCTL) != 0)
		return (int)syscall(SYS_execve, name, argv, environment);
	if (strcmp(argv[1], "show") != 0 || strcmp(argv[2], "pullet.service") != 0)
		_exit(1);
	_exit(write(1, unit, strlen(unit)) != (ssize_t)strlen(unit));
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	unit = NULL;
	played_open();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* Answers each request at the socket, until that is shut down. */
static void *serve(void *arg)
{
	int listener = *(int *)arg, fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		char text[4096] = "";
		size_t len = 0;
		ssize_t n = 1;

		while (n > 0 && len + 1 < sizeof(text) && !played_has_request(text, len)) {
			n = read(fd, text + len, sizeof(text) - 1 - len);
			len += n > 0 ? (size_t)n : 0;
			text[len] = '\0';
		}
		if (strstr(text, " HTTP/"))
			*strstr(text, " HTTP/") = '\0';
		if (len)
			played_reply(fd, text);
		close(fd);
	}
	return NULL;
}

static void run_doctor(void)
{
	int listener = played.listener;
	pthread_t thread;

	played.listener = -1; /* else a child would be made for it */
	assert_int_equal(pthread_create(&thread, NULL, serve, &listener), 0);
	RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "5s");
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	unlink(played.socket);
	played_listen();
}

/* Examines a host whose agent runs, as this process, by a unit that says this. */
static void examine(const char *file, const char *says)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\nconfigs:\n"
		"  web: {from: [{server: d, path: /web.yaml}], %s, interval: 1h}\n",
		played.dir, played.dir, played.dir, file);
	scratch_write(played.dir, "pullet.yaml", text, strlen(text));
	played_answers("GET /v1/status", 200,
		"{\"version\":\"" PULLET_VERSION
		"\",\"configuration\":{\"loaded_ms\":9999999999999},\"configs\":"
		"[{\"name\":\"web\",\"state\":\"ok\",\"generation\":1}]}");
	/* the socket is this process's: so is the agent, for SO_PEERCRED */
	snprintf(text, sizeof(text), "%sMainPID=%d\n", says, (int)getpid());
	unit = strdup(text);
	assert_non_null(unit);
	run_doctor();
	assert_null(strstr(command.out, "did not answer"));
	free((char *)(uintptr_t)unit);
	unit = NULL;
}

static void service__that_is_well__is_not_mentioned(void **state)
{
	(void)state;
	examine("snapshot: true", WELL);
	assert_null(strstr(command.out, "pullet.service"));
}

static void service__in_trouble__is_explained(void **state)
{
	(void)state;
	examine("snapshot: true",
		"LoadState=loaded\nActiveState=failed\nNeedDaemonReload=yes\nWatchdogUSec=0\n"
		"NRestarts=7\nMemoryMax=104857600\nMemoryCurrent=94371840\nno equals sign\n");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out, "the service has failed, and systemd does not start it again");
	assert_shows(command.out, "the unit's file was changed after systemd had read it");
	assert_shows(command.out, "systemctl daemon-reload");
	assert_shows(command.out, "no watchdog: an agent that hangs is not noticed");
	assert_shows(command.out, "systemd had to start it again 7 times");
	assert_shows(command.out, "it uses 90 MiB of the 100 it may");
}

static void service__of_another_process__does_not_count(void **state)
{
	(void)state;
	examine("snapshot: true", "LoadState=not-found\nActiveState=failed\n");
	assert_null(strstr(command.out, "pullet.service"));
}

static void place__that_the_unit_hides__is_an_error(void **state)
{
	(void)state;
	examine("file: /srv/out/web.yaml", WELL "ProtectSystem=strict\n");
	assert_shows(command.out,
		"the service may not write at /srv/out/web.yaml (ProtectSystem=strict");
	examine("file: /srv/out/web.yaml",
		WELL "ProtectSystem=strict\nReadWritePaths=/etc -/srv/out\n");
	assert_null(strstr(command.out, "may not write at"));
	examine("file: /home/x/web.yaml", WELL "ProtectHome=yes\n");
	assert_shows(command.out, "the service may not write at /home/x/web.yaml");
	examine("file: /home/x/web.yaml", WELL "ProtectHome=yes\nReadWritePaths=/home/x\n");
	assert_null(strstr(command.out, "may not write at"));
	examine("file: /run/web/web.yaml", WELL "ProtectSystem=strict\nRuntimeDirectory=web\n");
	assert_null(strstr(command.out, "may not write at"));
	examine("file: /run/other/web.yaml", WELL "ProtectSystem=strict\nRuntimeDirectory=web\n");
	assert_shows(command.out, "the service may not write at /run/other/web.yaml");
	examine("file: /tmp/web.yaml", WELL "PrivateTmp=yes\n");
	assert_shows(command.out, "publish outside of /tmp");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(service__that_is_well__is_not_mentioned),
		CASE(service__in_trouble__is_explained),
		CASE(service__of_another_process__does_not_count),
		CASE(place__that_the_unit_hides__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

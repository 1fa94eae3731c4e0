/* A hook's program that wants to live on: `escape HOW READY end|stay`. What it starts makes the
 * file READY once it is where it wants to be. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *ready_path;
static pid_t keeper;

static void ready(void)
{
	int fd = open(ready_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

	if (fd >= 0)
		close(fd);
}

static void nap(void)
{
	ready();
	for (int i = 0; i < 60; i++)
		sleep(10);
	_exit(0);
}

static void deafen(void)
{
	sigset_t all;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void limit_processes(void) /* of the agent's user */
{
	const struct rlimit few = {150, 150};

	setrlimit(RLIMIT_NPROC, &few);
}

static void in_session(void)
{
	setsid();
	nap();
}

static void in_group(void)
{
	setpgid(0, 0);
	deafen();
	nap();
}

static void daemonise(void)
{
	if (fork() != 0)
		_exit(0);
	setsid();
	if (fork() != 0)
		_exit(0);
	deafen();
	prctl(PR_SET_PDEATHSIG, 0);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	nap();
}

static void hide(void) /* also from /proc, where that is mounted with hidepid=2 */
{
	setsid();
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NAME, "hook-keeper");
	deafen();
	nap();
}

static void keep_orphans(void)
{
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	deafen();
	if (fork() == 0)
		daemonise();
	for (;;)
		pause();
}

static void *fork_in_thread(void *arg)
{
	if (fork() == 0)
		in_session();
	for (;;)
		pause();
	return arg;
}

static void in_thread(void)
{
	pthread_t t;

	setsid();
	pthread_create(&t, NULL, fork_in_thread, NULL);
	for (;;)
		pause();
}

static void as_sibling(void) /* of its parent */
{
	if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0UL, 0UL, 0UL, 0UL) == 0)
		daemonise();
	for (;;)
		pause();
}

static void in_namespaces(void)
{
	unshare(CLONE_NEWUSER | CLONE_NEWPID);
	setsid();
	deafen();
	if (fork() == 0)
		nap();
	for (;;)
		pause();
}

static void go_deep(void)
{
	for (int i = 0; i < 60; i++) {
		if (fork() != 0)
			for (;;)
				pause();
		setsid();
	}
	nap();
}

static void stop(void)
{
	setsid();
	deafen();
	ready();
	raise(SIGSTOP);
	nap();
}

static void hog(void)
{
	setsid();
	deafen();
	ready();
	for (;;)
		;
}

static void fork_for_ever(void)
{
	limit_processes();
	for (;;) {
		if (fork() == 0)
			ready();
		sched_yield();
	}
}

static void fork_sessions_for_ever(void)
{
	limit_processes();
	deafen();
	for (;;)
		if (fork() == 0) {
			setsid();
			ready();
		}
}

static void run_on(void) /* in another process each moment, the one before being gone */
{
	limit_processes();
	deafen();
	for (int i = 0; i < 20; i++)
		if (fork() == 0)
			for (;;)
				if (fork() > 0)
					_exit(0);
				else
					setsid();
	nap();
}

static void kill_keeper(void)
{
	setsid();
	ready();
	kill(keeper, SIGKILL);
	nap();
}

static void stop_keeper(void)
{
	setsid();
	kill(keeper, SIGSTOP);
	nap();
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {{"session", in_session}, {"group", in_group}, {"daemon", daemonise}, {"hidden", hide},
	{"subreaper", keep_orphans}, {"thread", in_thread}, {"sibling", as_sibling},
	{"namespaces", in_namespaces}, {"deep", go_deep}, {"stopped", stop}, {"hog", hog},
	{"bomb", fork_for_ever}, {"sessions", fork_sessions_for_ever}, {"runners", run_on},
	{"keeper-killed", kill_keeper}, {"keeper-stopped", stop_keeper}};

int main(int argc, char **argv)
{
	struct stat st;

	if (argc != 4)
		return 64;
	ready_path = argv[2];
	keeper = getppid();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i].name, argv[1]) == 0 && fork() == 0)
			ways[i].run();
	while (stat(ready_path, &st))
		usleep(1000);
	if (strcmp(argv[3], "end") == 0)
		return 0;
	signal(SIGTERM, SIG_IGN);
	for (;;)
		pause();
}

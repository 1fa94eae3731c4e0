/*
 * The handler of SIGBUS. Surprising: it is installed at each use, for others may have replaced it,
 * and stays; a fault that is not of the guarded page ends the process as it would without it.
 */
#include "publish/page_guard.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/page.h"

static _Thread_local struct {
	char *volatile page; /* NULL = none is guarded */
	volatile sig_atomic_t lost;
} guarded;

static void replace_lost_page(int number, siginfo_t *info, void *context)
{
	char *page = guarded.page, *at = info->si_addr;

	(void)context;
	if (page && at >= page && at < page + PAGE_SIZE &&
		mmap(page, PAGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
		guarded.lost = 1;
		return; /* the access happens again, in the new memory */
	}
	signal(number, SIG_DFL);
}

static void install_handler(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = replace_lost_page;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGBUS, &action, NULL);
}

void page_guard_begin(void *page)
{
	install_handler();
	guarded.lost = 0;
	guarded.page = page;
}

bool page_guard_end(void)
{
	guarded.page = NULL;
	return !guarded.lost;
}

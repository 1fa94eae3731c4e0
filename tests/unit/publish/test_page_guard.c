/*
 * A page whose file is cut short under a thread that uses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/page.h"
#include "publish/page_guard.h"

/* A page that is shared with a file of no name, and the file. */
static struct page *map_file(int *ret_fd)
{
	struct page *page;

	*ret_fd = memfd_create("page", MFD_CLOEXEC);
	assert_true(*ret_fd >= 0);
	assert_int_equal(ftruncate(*ret_fd, PAGE_SIZE), 0);
	page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	assert_true(page != MAP_FAILED);
	return page;
}

static void page__that_is_whole__is_not_lost(void **state)
{
	int fd;
	struct page *page = map_file(&fd);

	(void)state;
	page_guard_begin(page);
	atomic_store(&page->generation, 7);
	assert_true(page_guard_end());
	munmap(page, PAGE_SIZE);
	close(fd);
}

static void page__that_is_cut_short__is_lost_and_can_be_used(void **state)
{
	int fd;
	struct page *page = map_file(&fd);

	(void)state;
	page_guard_begin(page);
	atomic_store(&page->generation, 7);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(atomic_load(&page->generation), 0);
	atomic_store(&page->generation, 8);
	assert_int_equal(atomic_load(&page->generation), 8);
	assert_false(page_guard_end());
	munmap(page, PAGE_SIZE);
	close(fd);
}

/* Not under a sanitizer, which reports it in its own way. */
static void another_page__that_is_cut_short__ends_the_process(void **state)
{
	int fd, other_fd, status;
	struct page *page = map_file(&fd), *other = map_file(&other_fd);
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		page_guard_begin(page);
		if (ftruncate(other_fd, 0) == 0)
			atomic_store(&other->generation, 7);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	munmap(page, PAGE_SIZE);
	munmap(other, PAGE_SIZE);
	close(fd);
	close(other_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page__that_is_whole__is_not_lost),
		cmocka_unit_test(page__that_is_cut_short__is_lost_and_can_be_used),
		cmocka_unit_test(another_page__that_is_cut_short__ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* pullet_write(): what it writes is read back, and is the next version. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/fixture/reader_agent.h"

/* Sanitizers end the program on a request that malloc would only refuse. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static struct pullet_entry text(const char *key, const char *value)
{
	return (struct pullet_entry){
		key, strlen(key), {.type = PULLET_STRING, .len = strlen(value), .text = value}};
}

static void write__twice__is_the_next_version(void **state)
{
	const struct pullet_entry entries[] = {text("z", "last"), text("a", "first")};
	const char *path = agent_path("written", ".snap");
	struct pullet *p;
	struct stat st;

	(void)state;
	assert_int_equal(pullet_write(path, entries, 2, "v1"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(pullet_open(path, 0, &p), 0);
	assert_int_equal(pullet_generation(p), 1);
	assert_string_equal(pullet_version(p), "v1");
	assert_string_equal(pullet_path(p), path);
	assert_string_equal(pullet_get_string(p, "a", ""), "first");
	assert_int_equal(pullet_write(path, entries, 1, NULL), 0);
	assert_int_equal(pullet_refresh(p), 1);
	assert_int_equal(pullet_generation(p), 2);
	assert_int_equal(pullet_count(p), 1);
	assert_int_equal(pullet_write(path, NULL, 0, ""), 0);
	assert_int_equal(pullet_refresh(p), 1);
	assert_int_equal(pullet_count(p), 0);
	pullet_close(p);
}

static void write__what_cannot_be_written__changes_nothing(void **state)
{
	const struct pullet_entry twice[] = {text("a", "x"), text("a", "y")};
	char version[300], path[PATH_MAX + 10] = "";
	struct rlimit limit, small;

	(void)state;
	memset(version, 'v', sizeof(version));
	version[sizeof(version) - 1] = '\0';
	assert_int_equal(pullet_write(NULL, twice, 1, NULL), -EINVAL);
	assert_int_equal(pullet_write("name", twice, 1, NULL), -EINVAL);
	assert_int_equal(pullet_write(agent_path("no", ".snap"), twice, 2, NULL), -EINVAL);
	assert_int_equal(pullet_write(agent_path("no", ".snap"), twice, 1, version), -EMSGSIZE);
	assert_int_equal(pullet_write(agent_path("none/no", ".snap"), twice, 1, NULL), -ENOENT);
	assert_int_equal(
		pullet_write(agent_path("no", ".snap"), twice, SIZE_MAX / 8, NULL), -ENOMEM);
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	assert_int_equal(pullet_write(path, twice, 1, NULL), -ENAMETOOLONG);
	assert_int_equal(mkdir(agent_path("dir", ""), 0755), 0);
	assert_int_equal(pullet_write(agent_path("dir", ""), twice, 1, NULL), -EISDIR);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	small = (struct rlimit){.rlim_cur = 10, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(pullet_write(agent_path("no", ".snap"), twice, 1, NULL), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(access(agent_path("no", ".snap"), F_OK), -1);
}

/* What begins so in the agent's directory. */
static unsigned count_names(const char *begin)
{
	DIR *d = opendir(agent_dir);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strncmp(e->d_name, begin, strlen(begin)) == 0;
	closedir(d);
	return n;
}

/* Services close them. */
static void write__without_standard_descriptors__leaves_nothing_beside_a_failure(void **state)
{
	const struct pullet_entry entry = text("a", "x");
	int in = dup(STDIN_FILENO), r, good, lowest;

	(void)state;
	assert_int_equal(mkdir(agent_path("taken", ".snap"), 0755), 0);
	assert_int_equal(pullet_write(agent_path("taken", ".snap"), &entry, 1, NULL), -EISDIR);
	assert_int_equal(count_names("taken"), 1);
	close(STDIN_FILENO);
	r = pullet_write(agent_path("taken", ".snap"), &entry, 1, NULL);
	good = pullet_write(agent_path("zero", ".snap"), &entry, 1, NULL);
	lowest = fcntl(STDIN_FILENO, F_GETFD);
	if (in >= 0) {
		dup2(in, STDIN_FILENO);
		close(in);
	}
	assert_int_equal(r, -EISDIR);
	assert_int_equal(good, 0);
	assert_int_equal(lowest, -1);
	assert_int_equal(count_names("taken"), 1);
	assert_int_equal(count_names("zero"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__twice__is_the_next_version),
		cmocka_unit_test(write__what_cannot_be_written__changes_nothing),
		cmocka_unit_test(
			write__without_standard_descriptors__leaves_nothing_beside_a_failure),
	};

	return cmocka_run_group_tests(tests, agent_make_dir, agent_remove_dir);
}

/* What a power cut and a kill leave, in both models. Surprising: each case runs through many seeds,
 * and fails as well when an outcome that the model allows is never seen. */
#include "disk.h"
#include "libc.h"
#include "test_world.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SEEDS 400
#define PAGE 4096
#define PAGES 5
#define LENGTH (PAGES * PAGE - 96) /* the last page is not whole */

static struct disk *begin_disk(uint64_t seed, enum disk_model model)
{
	struct disk *d;

	world_begin(seed);
	d = disk_new(model);
	disk_use(d);
	disk_owner = OWNER_AGENT;
	assert_int_equal(disk_make_dir("/d"), 0);
	return d;
}

static void end_disk(struct disk *d)
{
	disk_owner = OWNER_WORLD;
	disk_free(d);
}

static void write_all(int fd, char c, size_t len)
{
	char data[LENGTH];

	memset(data, c, len);
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, data + at, len - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
}

static int create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void touch_file(const char *path)
{
	close(create(path));
}

static void sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static bool is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* ---- names ---- */

/* Which of /d/0 to /d/3 are there, a bit each. */
static unsigned make_four(uint64_t seed, enum disk_model model, const char *synced)
{
	static const char *const paths[] = {"/d/0", "/d/1", "/d/2", "/d/3"};
	struct disk *d = begin_disk(seed, model);
	unsigned there = 0;

	for (int i = 0; i < 4; i++)
		touch_file(paths[i]);
	if (synced)
		sync_path(synced);
	disk_cut(d);
	for (int i = 0; i < 4; i++)
		there |= (unsigned)is_there(paths[i]) << i;
	end_disk(d);
	return there;
}

static void journal__keeps_a_prefix_of_names(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		unsigned there = make_four(seed, DISK_JOURNAL, NULL);

		assert_int_equal(there & (there + 1), 0);
		seen |= 1U << there;
		/* any fsync commits all names */
		assert_int_equal(make_four(seed, DISK_JOURNAL, "/d/1"), 15);
	}
	assert_int_equal(seen, 1U << 0 | 1U << 1 | 1U << 3 | 1U << 7 | 1U << 15);
}

static void posix__keeps_each_name_for_itself(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		seen |= 1U << make_four(seed, DISK_POSIX, "/d/1");
		assert_int_equal(make_four(seed, DISK_POSIX, "/d"), 15);
	}
	assert_int_equal(seen, 0xffff); /* each of the 16 sets */
}

static void posix__loses_a_directory_whose_parent_was_not_synced(void **state)
{
	int lost = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct disk *d = begin_disk(seed, DISK_POSIX);

		assert_int_equal(mkdirat(AT_FDCWD, "/d/new", 0755), 0);
		touch_file("/d/new/file");
		sync_path("/d/new/file");
		sync_path("/d/new");
		if (seed & 1)
			sync_path("/d");
		disk_cut(d);
		lost += !is_there("/d/new/file");
		assert_true(is_there("/d/new/file") || !(seed & 1));
		assert_int_equal(is_there("/d/new/file"), is_there("/d/new"));
		end_disk(d);
	}
	assert_in_range(lost, 1, SEEDS / 2 - 1);
}

static void rename__shows_the_old_or_the_new_file(void **state)
{
	(void)state;
	for (int model = DISK_JOURNAL; model <= DISK_POSIX; model++) {
		unsigned seen = 0;

		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct disk *d = begin_disk(seed, (enum disk_model)model);
			const char *data;
			size_t len;
			int fd;

			assert_int_equal(disk_put("/d/file", "o", 1), 0);
			fd = create("/d/.new");
			write_all(fd, 'n', 1);
			assert_int_equal(fsync(fd), 0);
			close(fd);
			assert_int_equal(renameat(AT_FDCWD, "/d/.new", AT_FDCWD, "/d/file"), 0);
			if (seed & 1)
				sync_path("/d");
			disk_cut(d);
			data = disk_get("/d/file", &len);
			assert_non_null(data);
			assert_int_equal(len, 1);
			assert_true(*data == 'n' || (*data == 'o' && !(seed & 1)));
			seen |= *data == 'n' ? 1 : 2;
			end_disk(d);
		}
		assert_int_equal(seen, 3);
	}
}

/* A bit for each name that the file has. */
static unsigned move_file(uint64_t seed, enum disk_model model, const char *synced)
{
	struct disk *d = begin_disk(seed, model);
	unsigned there;

	disk_make_dir("/e");
	disk_put("/d/file", "o", 1);
	assert_int_equal(renameat(AT_FDCWD, "/d/file", AT_FDCWD, "/e/file"), 0);
	if (synced)
		sync_path(synced);
	disk_cut(d);
	there = (unsigned)is_there("/d/file") | (unsigned)is_there("/e/file") << 1;
	end_disk(d);
	return there;
}

static void rename__to_another_directory__never_loses_the_file(void **state)
{
	unsigned journal = 0, posix = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		journal |= 1U << move_file(seed, DISK_JOURNAL, NULL);
		posix |= 1U << move_file(seed, DISK_POSIX, NULL);
		assert_int_equal(move_file(seed, DISK_JOURNAL, "/d"), 2);
		assert_int_equal(move_file(seed, DISK_POSIX, "/d"), 2);
		assert_true(move_file(seed, DISK_POSIX, "/e") & 2);
	}
	assert_int_equal(journal, 1U << 1 | 1U << 2);
	assert_int_equal(posix, 1U << 1 | 1U << 2 | 1U << 3);
}

/* ---- data ---- */

enum { ALL = 1, NONE = 2, PREFIX = 4, ZEROS = 8, SCATTERED = 16, OTHER = 32 };

/* What became of LENGTH bytes of 'n'; pages that did not get there are `missing`. */
static unsigned classify_data(const char *data, size_t len, char missing)
{
	unsigned pages = 0, count = 0;

	for (size_t at = 0; at < len; at += PAGE) {
		size_t end = at + PAGE < len ? at + PAGE : len;

		for (size_t i = at; i < end; i++)
			if (data[i] != data[at] || (data[i] != 'n' && data[i] != missing))
				return OTHER;
		pages |= (unsigned)(data[at] == 'n') << count++;
	}
	if (len < LENGTH)
		return len == 0 ? NONE : pages == (1U << count) - 1 ? PREFIX : OTHER;
	if (pages == (1U << PAGES) - 1)
		return ALL;
	if (pages == 0)
		return missing ? NONE : ZEROS;
	return (pages & (pages + 1)) == 0 ? PREFIX : SCATTERED;
}

/* A file whose name is durable and whose data is not, new or written over in place. */
static unsigned cut_data(uint64_t seed, enum disk_model model, bool old, bool synced)
{
	struct disk *d = begin_disk(seed, model);
	const char *data;
	unsigned outcome;
	size_t len;
	int fd = create("/d/file");

	if (old) {
		write_all(fd, 'o', LENGTH);
		assert_int_equal(fsync(fd), 0);
		close(fd);
		fd = open("/d/file", O_WRONLY | O_CLOEXEC);
	}
	sync_path("/d");
	write_all(fd, 'n', LENGTH);
	if (synced)
		assert_int_equal(fsync(fd), 0);
	disk_cut(d);
	data = disk_get("/d/file", &len);
	assert_non_null(data);
	outcome = classify_data(data, len, old ? 'o' : '\0');
	end_disk(d);
	return outcome;
}

static void cut__leaves_each_state_of_data_that_was_not_synced(void **state)
{
	(void)state;
	for (int model = DISK_JOURNAL; model <= DISK_POSIX; model++) {
		unsigned fresh = 0, over = 0;

		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			fresh |= cut_data(seed, (enum disk_model)model, false, false);
			over |= cut_data(seed, (enum disk_model)model, true, false);
			assert_int_equal(cut_data(seed, (enum disk_model)model, false, true), ALL);
			assert_int_equal(cut_data(seed, (enum disk_model)model, true, true), ALL);
		}
		assert_int_equal(fresh, ALL | NONE | PREFIX | ZEROS | SCATTERED);
		assert_int_equal(over, ALL | NONE | PREFIX | SCATTERED);
	}
}

static void fsync__after_one_that_failed__lies(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct disk *d = begin_disk(seed, DISK_JOURNAL);
		int fd = create("/d/file");
		const char *data;
		size_t len;

		sync_path("/d");
		write_all(fd, 'n', LENGTH);
		test_world.call = CALL_FSYNC;
		test_world.error = EIO;
		assert_int_equal(fsync(fd), -1);
		assert_int_equal(errno, EIO);
		assert_int_equal(fsync(fd), 0);
		disk_cut(d);
		data = disk_get("/d/file", &len);
		assert_non_null(data);
		assert_true(classify_data(data, len, '\0') & (NONE | ZEROS));
		end_disk(d);
	}
}

/* ---- memory file systems, kills, mappings ---- */

static void memory__is_empty_after_a_cut(void **state)
{
	struct disk *d = begin_disk(1, DISK_POSIX);
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(disk_mount_memory("/run/app"), 0);
	fd = create("/run/app/file");
	write_all(fd, 'n', LENGTH);
	assert_int_equal(fsync(fd), 0);
	sync_path("/run/app");
	assert_int_equal(renameat(AT_FDCWD, "/run/app/file", AT_FDCWD, "/d/file"), -1);
	assert_int_equal(errno, EXDEV);
	disk_cut(d);
	assert_int_equal(disk_count("/run/app", ""), 0);
	assert_int_equal(stat("/run/app", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_nlink, 2);
	end_disk(d);
}

static void kill__loses_nothing_and_frees_what_was_held(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct disk *d = begin_disk(1, DISK_JOURNAL);
	int fd = create("/d/file");
	size_t len;

	(void)state;
	write_all(fd, 'n', LENGTH);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	disk_owner = OWNER_SECOND;
	fd = create("/d/file");
	assert_int_equal(fcntl(fd, F_SETLK, &lock), -1);
	assert_int_equal(fcntl(fd, F_GETLK, &lock), 0);
	assert_int_equal(lock.l_pid, libc_process.pid);
	disk_kill(d, OWNER_AGENT);
	assert_int_equal(disk_open_count(d, OWNER_AGENT), 0);
	assert_int_equal(disk_open_count(d, OWNER_SECOND), 1);
	lock.l_type = F_WRLCK;
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	assert_non_null(disk_get("/d/file", &len));
	assert_int_equal(len, LENGTH);
	end_disk(d);
}

static void mapping__is_what_others_see_and_outlives_a_cut(void **state)
{
	struct disk *d = begin_disk(1, DISK_JOURNAL);
	const char *reader;
	char *page, byte;
	int fd = create("/d/page");

	(void)state;
	write_all(fd, 'n', PAGE);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	disk_owner = OWNER_READER;
	fd = open("/d/page", O_RDONLY | O_CLOEXEC);
	reader = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(reader, MAP_FAILED);
	page[100] = 'x';
	assert_int_equal(reader[100], 'x');
	assert_int_equal(pread(fd, &byte, 1, 100), 1);
	assert_int_equal(byte, 'x');
	disk_cut(d);
	assert_int_equal(disk_map_count(d, OWNER_AGENT), 0);
	end_disk(d);
	assert_int_equal(reader[100], 'x');
	assert_int_equal(munmap((void *)(uintptr_t)reader, PAGE), 0);
}

/* ---- the end at each call ---- */

static void publish_once(void)
{
	char text[32];
	int fd, dir = open("/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	fd = openat(dir, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	write_all(fd, 'n', LENGTH);
	fchmod(fd, 0640);
	fsync(fd);
	close(fd);
	renameat(dir, ".new", dir, "file");
	fsync(dir);
	assert_int_equal(readlinkat(AT_FDCWD, "/none", text, sizeof(text)), -1);
	close(dir);
}

/* Returns false when the publication got to its end. */
static bool publish_until(struct disk *d, uint64_t last_call)
{
	jmp_buf end;

	test_world.end = &end;
	test_world.last_call = last_call;
	world.calls = 0;
	if (setjmp(end) == 0) {
		publish_once();
		return false;
	}
	test_world.end = NULL;
	if (last_call & 1)
		disk_kill(d, OWNER_AGENT);
	else
		disk_cut(d);
	return true;
}

static void end__in_any_call__leaves_the_old_or_the_new_file(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS / 8; seed++)
		for (uint64_t call = 1;; call++) {
			struct disk *d = begin_disk(seed, seed & 1 ? DISK_JOURNAL : DISK_POSIX);
			const char *data;
			size_t len;
			bool more;

			disk_put("/d/file", "old", 3);
			more = publish_until(d, call);
			assert_int_equal(disk_open_count(d, OWNER_AGENT), 0);
			data = disk_get("/d/file", &len);
			assert_non_null(data);
			assert_true((len == 3 && memcmp(data, "old", 3) == 0) ||
				    (len == LENGTH && data[0] == 'n'));
			end_disk(d);
			if (!more)
				break;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(journal__keeps_a_prefix_of_names),
		cmocka_unit_test(posix__keeps_each_name_for_itself),
		cmocka_unit_test(posix__loses_a_directory_whose_parent_was_not_synced),
		cmocka_unit_test(rename__shows_the_old_or_the_new_file),
		cmocka_unit_test(rename__to_another_directory__never_loses_the_file),
		cmocka_unit_test(cut__leaves_each_state_of_data_that_was_not_synced),
		cmocka_unit_test(fsync__after_one_that_failed__lies),
		cmocka_unit_test(memory__is_empty_after_a_cut),
		cmocka_unit_test(kill__loses_nothing_and_frees_what_was_held),
		cmocka_unit_test(mapping__is_what_others_see_and_outlives_a_cut),
		cmocka_unit_test(end__in_any_call__leaves_the_old_or_the_new_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

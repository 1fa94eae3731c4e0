/*
 * Publishing under faults: every system call failing in every way, once and for ever, and the
 * process ending at each of them. The visible file is the old version or the new one, whole; the
 * store gives one that verifies; no descriptor and no temporary file is left. A seeded bug, a
 * publisher that writes in place, must be caught by the same harness.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "document/document.h"
#include "lib/page.h"
#include "publish/publish.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define OLD "a: old version, long enough to be torn\n"
#define NEW "a: new version, also long enough to be torn, and of another length\n"

static struct sys sys;

struct place { /* one config in a directory of its own */
	char dir[SCRATCH_PATH], file[SCRATCH_PATH + 16], state[SCRATCH_PATH + 16];
	struct settings_config config;
	struct store *store;
	struct target *target;
};

static struct publication publication_of(struct place *p, const struct version *v, const char *text)
{
	return (struct publication){.sys = &sys,
		.config = &p->config,
		.store = p->store,
		.save = true,
		.target = p->target,
		.version = v,
		.body = text,
		.body_len = strlen(text),
		.text = text,
		.text_len = strlen(text)};
}

static void place_open(struct place *p)
{
	char why[FILE_WHY];

	assert_int_equal(store_open(&sys, p->state, "web", STORE_KEEP, &p->store, why), 0);
	assert_int_equal(target_open(&sys, &p->config, NULL, &p->target, why), 0);
}

static void place_close(struct place *p)
{
	target_close(p->target);
	store_close(p->store);
	p->target = NULL;
	p->store = NULL;
}

/* A place where the old version is published, on a disk or in memory. */
static void place_init(struct place *p, const char *base, bool strict)
{
	struct version v = version_of(1, OLD);
	struct publication first;

	memset(&fault, 0, sizeof(fault));
	memset(p, 0, sizeof(*p));
	scratch_open(p->dir, base);
	snprintf(p->file, sizeof(p->file), "%s/web.yaml", p->dir);
	snprintf(p->state, sizeof(p->state), "%s/state", p->dir);
	assert_int_equal(mkdir(p->state, 0700), 0);
	p->config = (struct settings_config){.file = p->file,
		.mode = 0640,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
		.strict = strict};
	p->config.name = strdup("web");
	place_open(p);
	first = publication_of(p, &v, OLD);
	publish_run(&first);
	assert_int_equal(first.error, 0);
	version_fini(&v);
}

static void place_fini(struct place *p)
{
	memset(&fault, 0, sizeof(fault));
	place_close(p);
	free(p->config.name);
	scratch_close(p->dir);
}

/* What a reader sees: 0 old, 1 new, -1 anything else. */
static int visible(const struct place *p)
{
	char text[1024];
	int fd = open(p->file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -1;
	text[n] = '\0';
	return strcmp(text, OLD) == 0 ? 0 : strcmp(text, NEW) == 0 ? 1 : -1;
}

static unsigned all_temporaries(const struct place *p)
{
	char state[PATH_MAX + 8];

	snprintf(state, sizeof(state), "%s/web", p->state);
	return scratch_count(p->dir, ".pullet-") + scratch_count(state, ".pullet-");
}

/* The store's newest: 0 old, 1 new, -1 none. */
static int stored(struct place *p, unsigned *ret_damaged)
{
	struct version v = {.generation = 0};
	struct buffer body;
	int r;

	buffer_init(&body, 1u << 20);
	r = store_load(p->store, &v, &body, ret_damaged);
	version_fini(&v);
	r = r ? -1 : strcmp(body.data, OLD) == 0 ? 0 : strcmp(body.data, NEW) == 0 ? 1 : -1;
	buffer_fini(&body);
	return r;
}

/* ---- faults ---- */

static const int errors[] = {
	ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE, ENFILE, EINTR, ENOMEM, EXDEV};

/* One publication with the fault; what must hold after it. Returns false when the fault was never
 * met. */
static bool try_fault(
	const char *base, bool strict, int call, unsigned nth, bool for_ever, int error)
{
	struct version v;
	struct publication p;
	struct place place;
	unsigned before, damaged;
	bool met;

	/* a descriptor that answers EINTR for ever is not a kernel's behaviour */
	if (error == EINTR && for_ever &&
		(call == CALL_WRITE || call == CALL_OPEN || call == CALL_READ))
		return false;
	v = version_of(2, NEW);
	place_init(&place, base, strict);
	before = scratch_descriptors();
	fault = (struct fault){.call = call, .nth = nth, .for_ever = for_ever, .error = error};
	p = publication_of(&place, &v, NEW);
	publish_run(&p);
	met = fault.seen >= nth;
	fault.nth = 0;
	assert_int_equal(scratch_descriptors(), before);
	if (p.error) {
		assert_int_equal(visible(&place), 0);
		assert_true(p.why[0] != '\0');
	} else {
		assert_int_equal(visible(&place), 1);
	}
	if (call != CALL_UNLINK)
		assert_int_equal(all_temporaries(&place), 0);
	assert_int_not_equal(stored(&place, &damaged), -1);
	assert_int_equal(damaged, 0);
	version_fini(&v);
	place_fini(&place);
	return met;
}

static void publish__with_each_call_failing_in_each_way__keeps_old_or_shows_new(void **state)
{
	unsigned points = 0;

	(void)state;
	for (int where = 0; where < 3; where++) /* memory; disk; disk, strict */
		for (int call = 0; call < CALLS; call++)
			for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++)
				for (int for_ever = 0; for_ever < 2; for_ever++)
					for (unsigned nth = 1; nth < 20; nth++) {
						if (!try_fault(where ? scratch_disk()
								     : scratch_memory(),
							    where == 2, call, nth, for_ever,
							    errors[e]))
							break;
						points++;
					}
	print_message("%u fault points\n", points);
	assert_true(points > 300);
}

static void publish__with_short_writes_and_interrupts__writes_the_same_bytes(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;
	unsigned damaged;

	(void)state;
	place_init(&place, scratch_disk(), false);
	fault = (struct fault){.short_writes = true, .interrupt = true};
	p = publication_of(&place, &v, NEW);
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_int_equal(visible(&place), 1);
	assert_int_equal(stored(&place, &damaged), 1);
	version_fini(&v);
	place_fini(&place);
}

static void publish__when_fsync_fails__never_renames_after_it(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;

	(void)state;
	place_init(&place, scratch_disk(), false);
	p = publication_of(&place, &v, NEW);
	for (unsigned nth = 1; nth < 4; nth += 2) { /* of the state file, of the file */
		const char *last;

		v.generation = store_next_generation(place.store);
		fault = (struct fault){.call = CALL_FSYNC, .nth = nth, .error = EIO};
		publish_run(&p);
		assert_int_equal(p.error, -EIO);
		assert_int_equal(visible(&place), 0);
		last = strrchr(fault.trace, 'f');
		assert_non_null(last);
		assert_null(strchr(last, 'r'));
		assert_int_equal(fault.seen, nth);
	}
	version_fini(&v);
	place_fini(&place);
}

/* After a power cut the file must not be newer than what the state directory knows. */
static void publish__on_a_disk__has_the_state_on_the_disk_first(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;

	(void)state;
	scratch_need_memory();
	place_init(&place, scratch_disk(), false);
	p = publication_of(&place, &v, NEW);
	for (unsigned nth = 1; nth < 3; nth++) { /* the state file, its directory */
		v.generation = store_next_generation(place.store);
		fault = (struct fault){
			.call = CALL_FSYNC, .nth = nth, .for_ever = true, .error = EIO};
		publish_run(&p);
		assert_int_equal(p.error, -EIO);
		assert_int_equal(visible(&place), 0);
	}
	/* one that was saved before, perhaps by an agent that was killed, is no exception */
	fault = (struct fault){0};
	v.generation = 1;
	p.save = false;
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_string_equal(fault.trace, "o"
					 "ooxofxfx"
					 "owmfxrfx");
	assert_true(p.state_synced);
	fault = (struct fault){.call = CALL_FSYNC, .nth = 1, .error = EIO};
	publish_run(&p);
	assert_int_equal(p.error, -EIO);
	assert_non_null(strstr(p.why, "state file"));
	place_fini(&place);
	place_init(&place, scratch_memory(), false);
	p = publication_of(&place, &v, NEW);
	v.generation = 2;
	fault = (struct fault){0};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_false(p.state_synced);
	assert_null(strchr(fault.trace, 'f'));
	version_fini(&v);
	place_fini(&place);
}

static void publish__in_a_new_directory__brings_its_name_to_the_disk(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;

	(void)state;
	place_init(&place, scratch_disk(), false);
	place_close(&place);
	place_open(&place); /* another process */
	p = publication_of(&place, &v, NEW);
	fault = (struct fault){0};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_string_equal(fault.trace, "o"
					 "ooxowmfxrf"
					 "ofxx"
					 "owmfxrf"
					 "ofxx");
	v.generation = 3;
	place_close(&place);
	place_open(&place);
	p = publication_of(&place, &v, NEW);
	fault = (struct fault){.call = CALL_FSYNC, .nth = 6, .error = EIO};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_true(p.not_durable);
	assert_non_null(strstr(p.why, "cannot bring to the disk the directory"));
	version_fini(&v);
	place_fini(&place);
}

static void publish__on_a_disk__orders_mode_fsync_rename_directory(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;

	(void)state;
	place_init(&place, scratch_disk(), false);
	place.config.gid = getegid();
	p = publication_of(&place, &v, NEW);
	fault = (struct fault){0};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_true(p.state_synced);
	/* open directory; the state: open the state directory and its own, close that, open new,
	 * write, mode, fsync, close, rename, fsync of the directory, close it; the file: open new,
	 * write, owner, mode, fsync, close, rename, fsync of the directory, close it */
	assert_string_equal(fault.trace, "o"
					 "ooxowmfxrfx"
					 "owcmfxrfx");
	version_fini(&v);
	place_fini(&place);
}

static void publish__when_only_the_directory_fsync_fails__is_visible_and_says_so(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;

	(void)state;
	place_init(&place, scratch_disk(), false);
	p = publication_of(&place, &v, NEW);
	fault = (struct fault){.call = CALL_FSYNC, .nth = 4, .error = EIO};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_true(p.not_durable);
	assert_int_equal(visible(&place), 1);
	version_fini(&v);
	place_fini(&place);
}

/* ---- the process ends at the n-th call ---- */

typedef void (*publisher)(struct place *place);

static void publish_well(struct place *place)
{
	struct version v = version_of(2, NEW);
	struct publication p = publication_of(place, &v, NEW);

	publish_run(&p);
	version_fini(&v);
}

/* The seeded bug. */
static void publish_in_place(struct place *place)
{
	int fd = sys.openat(AT_FDCWD, place->file, O_WRONLY | O_TRUNC, 0);

	if (fd >= 0) {
		sys.write(fd, NEW, 10);
		sys.write(fd, NEW + 10, strlen(NEW) - 10);
		sys.close(fd);
	}
}

/* How many of the points leave something bad behind; *ret_points is how many there are. */
static unsigned end_at_each_call(
	const char *base, bool strict, publisher publish, unsigned *ret_points)
{
	unsigned bad = 0, n;

	for (n = 1; n < 100; n++) {
		struct place place;
		unsigned damaged;
		int status;
		pid_t child;

		place_init(&place, base, strict);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			fault = (struct fault){.call = -1, .nth = n};
			publish(&place);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		place_close(&place);
		place_open(&place); /* the next start */
		bad += visible(&place) == -1 || stored(&place, &damaged) == -1 || damaged ||
		       all_temporaries(&place) ||
		       (visible(&place) == 1 && stored(&place, &damaged) != 1);
		place_fini(&place);
		if (WEXITSTATUS(status) == 0)
			break;
	}
	*ret_points = n - 1;
	return bad;
}

static void publish__ended_at_each_call__leaves_old_or_new_and_nothing_else(void **state)
{
	unsigned points;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		assert_int_equal(
			end_at_each_call(scratch_disk(), strict, publish_well, &points), 0);
		assert_true(points >= 12);
		print_message("%u points\n", points);
		assert_int_equal(
			end_at_each_call(scratch_memory(), strict, publish_well, &points), 0);
	}
}

static void harness__sees_a_publisher_that_writes_in_place(void **state)
{
	unsigned points;

	(void)state;
	assert_true(end_at_each_call(scratch_disk(), false, publish_in_place, &points) > 0);
}

/* ---- a set of files ---- */

static void publish__of_a_set__leaves_out_signatures_and_what_is_absent(void **state)
{
	struct settings_layer layers[3] = {
		{.as = strdup("a.yaml")}, {.as = strdup("b.yaml")}, {.as = strdup("empty.bin")}};
	struct compose_piece pieces[VERSION_MAX_PARTS];
	char dir[SCRATCH_PATH + 16], text[64], why[FILE_WHY] = "";
	struct publication p;
	struct place place;
	struct version v;
	struct buffer body;

	(void)state;
	scratch_need_memory();
	place_init(&place, scratch_memory(), false);
	snprintf(dir, sizeof(dir), "%s/set", place.dir);
	place.config.file = NULL;
	place.config.dir = dir;
	place.config.layers = layers;
	place.config.layer_count = 3;
	version_begin(&v, &body, 2);
	version_add(&v, &body, "http://example/a", "yaml", "a: 1\n");
	version_add(&v, &body, "http://example/a.minisig", "minisig", "signature");
	version_add(&v, &body, "", "yaml", NULL);
	version_add(&v, &body, "", "minisig", NULL);
	version_add(&v, &body, "http://example/empty", "bytes", "");
	version_add(&v, &body, "http://example/empty.minisig", "minisig", "signature");
	version_end(&v, &body);
	version_pieces(&v, &body, pieces);
	p = (struct publication){.sys = &sys,
		.config = &place.config,
		.store = place.store,
		.save = true,
		.version = &v,
		.pieces = pieces,
		.body = body.data,
		.body_len = body.len};
	assert_int_equal(file_set_open(&sys, dir, &p.fileset, why), 0);
	assert_false(publish_blocks(&p));
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_false(p.not_durable);
	assert_true(scratch_read(dir, "a.yaml", text, sizeof(text), NULL));
	assert_string_equal(text, "a: 1\n");
	assert_true(scratch_read(dir, "empty.bin", text, sizeof(text), NULL));
	assert_string_equal(text, "");
	assert_int_equal(scratch_count(dir, ""), 4); /* with ..data and its directory */
	assert_int_equal(store_next_generation(place.store), 3);
	file_set_close(p.fileset);
	for (size_t i = 0; i < 3; i++)
		free(layers[i].as);
	version_fini(&v);
	buffer_fini(&body);
	place_fini(&place);
}

/* ---- a snapshot ---- */

struct shown { /* a snapshot of a document, in a directory of its own */
	char dir[SCRATCH_PATH + 16];
	struct image *image;
	void *data;
	size_t len;
};

static void shown_init(struct shown *s, const char *base)
{
	char why[FILE_WHY] = "";

	snprintf(s->dir, sizeof(s->dir), "%s/run", base);
	assert_int_equal(mkdir(s->dir, 0700), 0);
	assert_int_equal(image_open(&sys, s->dir, "web", NULL, &s->image, why), 0);
	s->data = NULL;
}

static void shown_fini(struct shown *s)
{
	image_close(s->image);
	free(s->data);
}

/* Makes the snapshot of `text` part of the publication. */
static void shown_add(struct shown *s, struct publication *p, const char *text)
{
	struct document *d = NULL;
	struct document_error error;

	free(s->data);
	assert_int_equal(document_parse(DOCUMENT_YAML, text, strlen(text), 0, &d, &error), 0);
	assert_int_equal(
		image_build(document_root(d), 1, "v", 1u << 20, &s->data, &s->len, p->why), 0);
	document_free(d);
	p->image = s->image;
	p->image_data = s->data;
	p->image_len = s->len;
}

/* What the page says to readers. */
static uint64_t shown_generation(const struct shown *s)
{
	uint64_t head[PAGE_SIZE / sizeof(uint64_t)];
	const struct page *page = (const struct page *)head;
	char path[SCRATCH_PATH + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/web.gen", s->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, head, sizeof(head)), sizeof(head));
	close(fd);
	return atomic_load(&page->generation);
}

static void publish__with_a_snapshot__shows_both_and_who_confirmed_it(void **state)
{
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place;
	struct shown shown;

	(void)state;
	place_init(&place, scratch_memory(), false);
	shown_init(&shown, place.dir);
	p = publication_of(&place, &v, NEW);
	shown_add(&shown, &p, NEW);
	p.confirmed_ms = 77;
	p.stale_ms = 1000;
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_int_equal(visible(&place), 1);
	assert_int_equal(shown_generation(&shown), 2);
	assert_true(image_is_current(shown.image));
	assert_int_equal(image_confirmed_ms(shown.image), 77);
	v.generation = 3;
	p.confirmed_ms = 0; /* not by the server: a rollback */
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_int_equal(shown_generation(&shown), 3);
	assert_int_equal(image_confirmed_ms(shown.image), 77);
	shown_fini(&shown);
	version_fini(&v);
	place_fini(&place);
}

/* One publication with the n-th call failing. False when there is no such call. Counts failures
 * that leave the old file, that leave the new one, successes, failures whose state file stays. */
static bool try_snapshot_fault(const char *base, bool give_up, unsigned nth, unsigned ret_seen[4])
{
	struct version v1 = version_of(2, OLD), v2 = version_of(3, NEW);
	struct publication p;
	struct place place;
	struct shown shown;
	unsigned before, damaged;
	bool met, is_stored;

	place_init(&place, base, false);
	shown_init(&shown, place.dir);
	p = publication_of(&place, &v1, OLD);
	shown_add(&shown, &p, OLD);
	publish_run(&p);
	assert_int_equal(p.error, 0);
	p = publication_of(&place, &v2, NEW);
	shown_add(&shown, &p, NEW);
	p.give_up = give_up;
	before = scratch_descriptors();
	fault = (struct fault){.call = -1, .nth = nth, .error = EIO};
	publish_run(&p);
	met = fault.seen >= nth;
	fault = (struct fault){0};
	assert_int_equal(scratch_descriptors(), before);
	assert_int_equal(all_temporaries(&place) + scratch_count(shown.dir, ".pullet-"), 0);
	assert_int_equal(shown_generation(&shown), p.error ? 2 : 3);
	assert_true(image_is_current(shown.image)); /* the old one, or the new one */
	is_stored = stored(&place, &damaged) == 1;
	/* on a disk a state file may be there whose directory's fsync failed: not a commit */
	assert_true(p.saved ? is_stored : !is_stored || !store_in_memory(place.store));
	assert_int_equal(damaged, 0);
	ret_seen[p.error ? visible(&place) : 2]++;
	if (p.error) {
		assert_true(p.why[0] != '\0');
		assert_false(give_up && (p.saved || is_stored)); /* or a start would show it */
		assert_true(p.touched || visible(&place) == 0);
		assert_int_equal(target_is_current(place.target, NULL, 0), !p.touched);
	} else {
		assert_int_equal(visible(&place), 1);
		assert_true(target_is_current(place.target, NULL, 0));
	}
	ret_seen[3] += p.error && p.saved;
	shown_fini(&shown);
	version_fini(&v1);
	version_fini(&v2);
	place_fini(&place);
	return met;
}

static void publish__with_a_snapshot_and_each_call_failing__raises_the_page_last(void **state)
{
	(void)state;
	for (int disk = 0; disk < 2; disk++)
		for (int give_up = 0; give_up < 2; give_up++) {
			unsigned seen[4] = {0}, nth = 1;

			while (try_snapshot_fault(
				disk ? scratch_disk() : scratch_memory(), give_up, nth, seen))
				nth++;
			assert_true(seen[0] > 5 && seen[2] > 1); /* all is old, all is new */
			assert_int_equal(seen[1], 1); /* the last rename, of the snapshot */
			assert_int_equal(seen[3] > 0, !give_up);
		}
}

static void publish__when_the_snapshot_fails_after_the_set__compares_the_set_again(void **state)
{
	struct settings_layer layer = {.as = strdup("a.yaml")};
	struct version v = version_of(2, NEW);
	struct compose_piece piece = {&v.parts[0], NEW, 0, false, ""};
	char dir[SCRATCH_PATH + 16], text[256], why[FILE_WHY] = "";
	struct publication p;
	struct place place;
	struct shown shown;

	(void)state;
	place_init(&place, scratch_memory(), false);
	shown_init(&shown, place.dir);
	snprintf(dir, sizeof(dir), "%s/set", place.dir);
	place.config.file = NULL;
	place.config.dir = dir;
	place.config.layers = &layer;
	place.config.layer_count = 1;
	p = publication_of(&place, &v, NEW);
	p.target = NULL;
	p.pieces = &piece;
	assert_int_equal(file_set_open(&sys, dir, &p.fileset, why), 0);
	shown_add(&shown, &p, NEW);
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_true(file_set_is_current(p.fileset, NULL, 0, NULL));
	v.generation = 3;
	fault = (struct fault){.call = CALL_WRITE, .nth = 1, .error = ENOSPC}; /* the state file */
	publish_run(&p);
	assert_int_equal(p.error, -ENOSPC);
	assert_true(file_set_is_current(p.fileset, NULL, 0, NULL)); /* nothing happened to it */
	assert_int_equal(shown_generation(&shown), 2);
	/* the state file, the file of the set, ..data, the snapshot */
	fault = (struct fault){.call = CALL_RENAME, .nth = 4, .error = EIO};
	publish_run(&p);
	assert_int_equal(p.error, -EIO);
	assert_non_null(strstr(p.why, "web.snap"));
	assert_int_equal(shown_generation(&shown), 2);
	assert_true(scratch_read(dir, "a.yaml", text, sizeof(text), NULL));
	assert_string_equal(text, NEW);
	assert_false(file_set_is_current(p.fileset, NULL, 0, NULL));
	assert_true(publish_set_is_current(&p));
	fault = (struct fault){0};
	file_set_close(p.fileset);
	shown_fini(&shown);
	free(layer.as);
	version_fini(&v);
	place_fini(&place);
}

/* ---- the target ---- */

static int open_error(struct place *p, const char *expected)
{
	char why[FILE_WHY] = "";
	struct target *t = NULL;
	int r = target_open(&sys, &p->config, NULL, &t, why);

	if (r == 0)
		target_close(t);
	if (expected && !strstr(why, expected))
		print_error("%s\n", why);
	assert_true(!expected || strstr(why, expected));
	return r;
}

static int mkdir_read_only(int dir, const char *path, mode_t mode)
{
	(void)dir, (void)path, (void)mode;
	errno = EROFS;
	return -1;
}

static void target_open__in_a_directory_that_cannot_be_made__says_why(void **state)
{
	int (*real)(int dir, const char *path, mode_t mode) = sys.mkdirat;
	struct place place;
	char path[PATH_MAX];

	(void)state;
	place_init(&place, scratch_disk(), false);
	sys.mkdirat = mkdir_read_only;
	assert_int_equal(open_error(&place, NULL), 0); /* it is there */
	snprintf(path, sizeof(path), "%.2000s/new/file", place.dir);
	place.config.file = path;
	assert_int_equal(
		open_error(&place, "/new: Read-only file system: mount it writable"), -EROFS);
	assert_int_equal(open_error(&place, "under systemd, open it with ReadWritePaths="), -EROFS);
	sys.mkdirat = real;
	place.config.file = place.file;
	place_fini(&place);
}

static void target_open__in_bad_places__says_what_to_do(void **state)
{
	struct place place;
	char path[PATH_MAX];

	(void)state;
	place_init(&place, scratch_disk(), false);
	assert_int_equal(chmod(place.dir, 0777), 0);
	assert_int_equal(open_error(&place, "chmod go-w"), -EPERM);
	assert_int_equal(chmod(place.dir, 01777),
		0); /* sticky, as a temporary directory: nobody else can replace it */
	assert_int_equal(open_error(&place, NULL), 0);
	assert_int_equal(chmod(place.dir, 0700), 0);
	assert_int_equal(unlink(place.file), 0);
	assert_int_equal(symlink("elsewhere", place.file), 0);
	assert_int_equal(open_error(&place, "symlink"), -ELOOP);
	assert_int_equal(unlink(place.file), 0);
	assert_int_equal(mkdir(place.file, 0700), 0);
	assert_int_equal(
		open_error(&place, "regular file; remove it, or name another one"), -EINVAL);
	assert_int_equal(rmdir(place.file), 0);
	snprintf(path, sizeof(path), "%.2000s/no/such/file", place.dir);
	place.config.file = path;
	assert_int_equal(open_error(&place, "No such file"), -ENOENT);
	snprintf(path, sizeof(path), "%.2000s/made/file", place.dir);
	assert_int_equal(open_error(&place, NULL), 0); /* one missing part is made */
	place.config.file = place.file;
	place_fini(&place);
}

static void target_is_current__tells_every_change_by_others(void **state)
{
	struct place place;
	int fd;

	(void)state;
	place_init(&place, scratch_memory(), false);
	assert_true(target_is_current(place.target, NULL, 0));
	assert_int_equal(chmod(place.file, 0600), 0);
	assert_false(target_is_current(place.target, NULL, 0));
	place_close(&place);
	place_open(&place);
	assert_false(target_is_current(
		place.target, OLD, strlen(OLD))); /* the mode is not the configured one */
	assert_int_equal(chmod(place.file, 0640), 0);
	assert_false(target_is_current(place.target, NEW, strlen(NEW)));
	assert_true(target_is_current(place.target, OLD, strlen(OLD)));
	fd = open(place.file, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_false(target_is_current(place.target, OLD, strlen(OLD)));
	assert_int_equal(unlink(place.file), 0);
	assert_false(target_is_current(place.target, NULL, 0));
	place_fini(&place);
}

static void publish_blocks__on_a_disk_or_when_strict(void **state)
{
	struct place place;
	struct version v = version_of(2, NEW);
	struct publication p;

	(void)state;
	scratch_need_memory();
	place_init(&place, scratch_memory(), false);
	p = publication_of(&place, &v, NEW);
	assert_false(publish_blocks(&p));
	place.config.strict = true;
	assert_true(publish_blocks(&p));
	version_fini(&v);
	place_fini(&place);
}

static void publish_blocks__with_a_set_or_a_snapshot_on_a_disk(void **state)
{
	char dir[SCRATCH_PATH + 16], why[FILE_WHY] = "";
	struct file_set *on_disk, *in_memory;
	struct version v = version_of(2, NEW);
	struct publication p;
	struct place place, disk;
	struct shown shown, shown_on_disk;

	(void)state;
	scratch_need_memory();
	place_init(&place, scratch_memory(), false);
	place_init(&disk, scratch_disk(), false);
	shown_init(&shown, place.dir);
	shown_init(&shown_on_disk, disk.dir);
	snprintf(dir, sizeof(dir), "%s/set", place.dir);
	assert_int_equal(file_set_open(&sys, dir, &in_memory, why), 0);
	snprintf(dir, sizeof(dir), "%s/set", disk.dir);
	assert_int_equal(file_set_open(&sys, dir, &on_disk, why), 0);
	p = publication_of(&place, &v, NEW);
	p.fileset = in_memory;
	p.image = shown.image;
	assert_false(publish_blocks(&p));
	p.target = NULL;
	p.fileset = on_disk;
	assert_true(publish_blocks(&p));
	p.fileset = in_memory;
	p.image = shown_on_disk.image;
	assert_true(publish_blocks(&p));
	p.target = disk.target;
	p.image = NULL;
	assert_true(publish_blocks(&p));
	file_set_close(on_disk);
	file_set_close(in_memory);
	shown_fini(&shown);
	shown_fini(&shown_on_disk);
	version_fini(&v);
	place_fini(&place);
	place_fini(&disk);
}

/* Publishes to memory the version that is in the store. True when something waited for a disk. */
static bool waits_for_disk(struct place *place, struct store *store, bool strict)
{
	struct version v = version_of(1, OLD);
	struct publication p = publication_of(place, &v, OLD);

	p.store = store;
	p.save = false;
	place->config.strict = strict;
	assert_int_equal(unlink(place->file), 0);
	fault = (struct fault){0};
	publish_run(&p);
	assert_int_equal(p.error, 0);
	assert_int_equal(visible(place), 0);
	assert_false(p.saved);
	version_fini(&v);
	return strchr(fault.trace, 'f') != NULL;
}

static void publish__again_in_memory__brings_the_state_to_a_disk_when_strict(void **state)
{
	struct place place, disk;

	(void)state;
	scratch_need_memory();
	place_init(&place, scratch_memory(), false);
	place_init(&disk, scratch_disk(), false);
	assert_false(waits_for_disk(&place, disk.store, false));
	assert_true(waits_for_disk(&place, disk.store, true));
	assert_false(waits_for_disk(&place, place.store, false));
	assert_false(waits_for_disk(&place, place.store, true)); /* there is no disk */
	place_fini(&disk);
	place_fini(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			publish__with_each_call_failing_in_each_way__keeps_old_or_shows_new),
		cmocka_unit_test(publish__with_short_writes_and_interrupts__writes_the_same_bytes),
		cmocka_unit_test(publish__when_fsync_fails__never_renames_after_it),
		cmocka_unit_test(publish__on_a_disk__has_the_state_on_the_disk_first),
		cmocka_unit_test(publish__in_a_new_directory__brings_its_name_to_the_disk),
		cmocka_unit_test(publish__on_a_disk__orders_mode_fsync_rename_directory),
		cmocka_unit_test(
			publish__when_only_the_directory_fsync_fails__is_visible_and_says_so),
		cmocka_unit_test(publish__ended_at_each_call__leaves_old_or_new_and_nothing_else),
		cmocka_unit_test(harness__sees_a_publisher_that_writes_in_place),
		cmocka_unit_test(publish__of_a_set__leaves_out_signatures_and_what_is_absent),
		cmocka_unit_test(publish__with_a_snapshot__shows_both_and_who_confirmed_it),
		cmocka_unit_test(
			publish__with_a_snapshot_and_each_call_failing__raises_the_page_last),
		cmocka_unit_test(
			publish__when_the_snapshot_fails_after_the_set__compares_the_set_again),
		cmocka_unit_test(target_open__in_bad_places__says_what_to_do),
		cmocka_unit_test(target_open__in_a_directory_that_cannot_be_made__says_why),
		cmocka_unit_test(target_is_current__tells_every_change_by_others),
		cmocka_unit_test(publish_blocks__on_a_disk_or_when_strict),
		cmocka_unit_test(publish_blocks__with_a_set_or_a_snapshot_on_a_disk),
		cmocka_unit_test(publish__again_in_memory__brings_the_state_to_a_disk_when_strict),
	};

	umask(077);
	sys = fault_table();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

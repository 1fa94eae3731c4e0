/*
 * Any bytes as a config's ledger: refused, and the ledger is empty; or read, and then within its
 * bounds, written again without an error, and the same when that is read.
 *
 * What surprises: there is no disk. The file is a descriptor in memory, and what is written becomes
 * the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "version/ledger.h"

#define SHORT 100000u /* such a file can be written again, however its texts are escaped */
#define BOUND_MS INT64_C(1800000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file = -1;    /* ledger.json */
static int written = -1; /* its successor, until it is renamed */

static void demand(bool what)
{
	if (!what)
		abort();
}

static int memory(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	demand(fd >= 0 && fchmod(fd, 0600) == 0);
	return fd;
}

static int fake_openat(int dir, const char *path, int flags, mode_t mode)
{
	(void)dir, (void)path, (void)mode;
	if (flags & O_CREAT)
		return dup(written = memory());
	demand(lseek(file, 0, SEEK_SET) == 0);
	return dup(file);
}

static int fake_rename(int from_dir, const char *from, int to_dir, const char *to)
{
	(void)from_dir, (void)from, (void)to_dir, (void)to;
	close(file);
	file = written;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

static void check_bounds(const struct ledger *l)
{
	demand(l->verdict_count <= LEDGER_MAX_VERDICTS);
	demand(l->override_count <= LEDGER_MAX_OVERRIDES);
	demand(!l->pin.by == !l->pin.reason);
	for (size_t i = 0; i < l->verdict_count; i++) {
		const struct ledger_verdict *v = &l->verdicts[i];

		demand(v->sha256 && v->check && v->checks && v->why && v->at_ms >= 0);
		demand(ledger_find_verdict(l, v->sha256, v->checks));
	}
	for (size_t i = 0; i < l->override_count; i++) {
		const struct ledger_override *o = &l->overrides[i];

		demand(o->key && o->value && o->by && o->reason &&
			o->until_ms >= ledger_next_expiry(l));
	}
}

static void check_same(const struct ledger *a, const struct ledger *b)
{
	demand(a->verdict_count == b->verdict_count && a->override_count == b->override_count);
	demand(a->notified == b->notified && a->proven == b->proven);
	demand(a->generation == b->generation);
	demand(!memcmp(ledger_revs(a), ledger_revs(b), LEDGER_MAX_LAYERS * sizeof(uint64_t)));
	demand(same_text(a->pin.by, b->pin.by) && same_text(a->pin.reason, b->pin.reason));
	demand(a->pin.until_ms == b->pin.until_ms);
	for (size_t i = 0; i < a->verdict_count; i++) {
		const struct ledger_verdict *v = &a->verdicts[i], *w = &b->verdicts[i];

		demand(same_text(v->sha256, w->sha256) && same_text(v->check, w->check) &&
			same_text(v->checks, w->checks) && same_text(v->why, w->why) &&
			v->at_ms == w->at_ms);
	}
	for (size_t i = 0; i < a->override_count; i++) {
		const struct ledger_override *o = &a->overrides[i], *p = &b->overrides[i];

		demand(same_text(o->key, p->key) && same_text(o->value, p->value) &&
			same_text(o->by, p->by) && same_text(o->reason, p->reason) &&
			o->until_ms == p->until_ms);
	}
}

/* Written and read again it is the same. */
static void check_again(const struct sys *sys, const struct ledger *l)
{
	struct ledger *again = NULL;
	char why[FILE_WHY];

	demand(ledger_save(l, sys, AT_FDCWD, false, why) == 0);
	demand(ledger_load(sys, AT_FDCWD, &again) == 0);
	check_same(l, again);
	ledger_free(again);
}

/* What the agent does with it next. */
static void use(struct ledger *l)
{
	bool overrides;

	demand(ledger_reject(l, "s", "probe", "", 1, "why") == 0 &&
		ledger_find_verdict(l, "s", "any"));
	ledger_expire(l, BOUND_MS, &overrides);
	demand(ledger_next_expiry(l) > BOUND_MS);
	demand(ledger_forgive_check(l, "probe") && !ledger_forgive(l, "s"));
	check_bounds(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sys sys = sys_real;
	struct ledger *l = NULL;
	int r;

	sys.openat = fake_openat;
	sys.renameat = fake_rename;
	file = memory();
	demand(write(file, data, size) == (ssize_t)size);
	r = ledger_load(&sys, AT_FDCWD, &l);
	demand(l && (r == 0 || r == -EBADMSG));
	check_bounds(l);
	if (r) {
		const struct ledger empty = {.verdicts = NULL};

		check_same(l, &empty);
	}
	if (size <= SHORT) {
		check_again(&sys, l);
		use(l);
		check_again(&sys, l);
	}
	ledger_free(l);
	close(file);
	return 0;
}

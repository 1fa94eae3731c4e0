/* Shares of users in a total: the arithmetic, at each bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "httpd/share.h"

#define TOTAL 128u

static struct peer peer_of(uid_t uid, enum right right)
{
	return (struct peer){.local = true, .uid = uid, .right = right};
}

/* What asks may have, when user holds so many, other readers, other operators, and root. */
static enum share check(enum right asks, size_t user, size_t readers, size_t operators, size_t root)
{
	const struct peer me = peer_of(1000, asks), reader = peer_of(1001, RIGHT_READ),
			  operator= peer_of(1002, RIGHT_OPERATE), owner = peer_of(0, RIGHT_OWN);
	struct share_held held = {0};

	share_add(&held, &me, &me, user);
	share_add(&held, &me, &reader, readers);
	share_add(&held, &me, &operator, operators);
	share_add(&held, &me, &owner, root);
	return share_check(TOTAL, &me, &held, 1);
}

static void user__has_a_quarter(void **state)
{
	(void)state;
	assert_int_equal(check(RIGHT_READ, 31, 0, 0, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_READ, 32, 0, 0, 0), SHARE_OF_USER);
	assert_int_equal(check(RIGHT_OPERATE, 31, 0, 0, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_OPERATE, 32, 0, 0, 0), SHARE_OF_USER);
}

static void readers__leave_three_eighths(void **state)
{
	(void)state;
	assert_int_equal(check(RIGHT_READ, 0, 79, 0, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_READ, 1, 78, 0, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_READ, 0, 80, 0, 0), SHARE_OF_CLASS);
	assert_int_equal(check(RIGHT_OPERATE, 0, 80, 0, 0), SHARE_ROOM);
}

static void operators_and_readers__leave_a_quarter_for_root(void **state)
{
	(void)state;
	assert_int_equal(check(RIGHT_OPERATE, 0, 80, 15, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_OPERATE, 0, 80, 16, 0), SHARE_OF_CLASS);
	assert_int_equal(check(RIGHT_READ, 0, 0, 96, 0), SHARE_OF_CLASS);
	assert_int_equal(check(RIGHT_OWN, 0, 80, 16, 31), SHARE_ROOM);
}

static void root__has_all_that_is_left(void **state)
{
	(void)state;
	assert_int_equal(check(RIGHT_OWN, 127, 0, 0, 0), SHARE_ROOM);
	assert_int_equal(check(RIGHT_OWN, 128, 0, 0, 0), SHARE_OF_ALL);
	assert_int_equal(check(RIGHT_READ, 0, 0, 0, 128), SHARE_ROOM);
}

static void the_first__is_never_too_large(void **state)
{
	const struct peer me = peer_of(1000, RIGHT_READ), other = peer_of(1001, RIGHT_READ);
	struct share_held held = {0};

	(void)state;
	assert_int_equal(share_check(TOTAL, &me, &held, 10 * TOTAL), SHARE_ROOM);
	assert_int_equal(share_check(0, &me, &held, SIZE_MAX), SHARE_ROOM);
	share_add(&held, &me, &other, 70);
	assert_int_equal(share_check(TOTAL, &me, &held, 10), SHARE_ROOM);
	assert_int_equal(share_check(TOTAL, &me, &held, 11), SHARE_OF_CLASS);
	assert_int_equal(share_check(TOTAL, &me, &held, SIZE_MAX), SHARE_OF_CLASS);
	share_add(&held, &me, &me, 1);
	assert_int_equal(share_check(TOTAL, &me, &held, 32), SHARE_OF_USER);
}

/* Whoever comes over TCP has no uid, and is not the user of number -1. */
static void users__are_told_apart_by_where_they_come_from(void **state)
{
	const struct peer me = peer_of((uid_t)-1, RIGHT_READ),
			  remote = {.uid = (uid_t)-1, .right = RIGHT_READ};
	struct share_held held = {0};

	(void)state;
	share_add(&held, &me, &remote, 5);
	assert_int_equal(held.user, 0);
	assert_int_equal(held.readers, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user__has_a_quarter),
		cmocka_unit_test(readers__leave_three_eighths),
		cmocka_unit_test(operators_and_readers__leave_a_quarter_for_root),
		cmocka_unit_test(root__has_all_that_is_left),
		cmocka_unit_test(the_first__is_never_too_large),
		cmocka_unit_test(users__are_told_apart_by_where_they_come_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

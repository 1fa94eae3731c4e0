/*
 * Exact numbers. Surprising: a double is compared by its binary value but divided by its text,
 * because 19.99 / 0.01 has no right answer in binary, and the text is what people wrote.
 */
#include "schema/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 18 /* ten times such a number still fits in 64 bits */

/* ---- order ---- */

static int compare_doubles(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(b) - isnan(a);
	return (a > b) - (a < b);
}

static int compare_integer(int64_t a, double b)
{
	int64_t whole;

	if (isnan(b) || b < -0x1p63)
		return 1;
	if (b >= 0x1p63)
		return -1;
	whole = (int64_t)b;
	if (a != whole)
		return a > whole ? 1 : -1;
	return compare_doubles((double)whole, b); /* the same, or b has a fraction: both exact */
}

int number_compare(const struct node *a, const struct node *b)
{
	if (a->type == NODE_INT && b->type == NODE_INT)
		return (a->integer > b->integer) - (a->integer < b->integer);
	if (a->type == NODE_INT)
		return compare_integer(a->integer, b->number);
	if (b->type == NODE_INT)
		return -compare_integer(b->integer, a->number);
	return compare_doubles(a->number, b->number);
}

bool number_is_whole(const struct node *n)
{
	return n->type == NODE_INT || (isfinite(n->number) && trunc(n->number) == n->number);
}

bool number_count(const struct node *n, uint64_t *ret_count)
{
	if (!number_is_whole(n) || (n->type == NODE_INT ? n->integer < 0 : n->number < 0))
		return false;
	if (n->type == NODE_INT)
		*ret_count = (uint64_t)n->integer;
	else
		*ret_count = n->number < 0x1p64 ? (uint64_t)n->number : UINT64_MAX;
	return true;
}

/* ---- decimals ---- */

struct decimal { /* the first `count` digits of text, times 10^exponent */
	const char *text;
	size_t count; /* up to the last one that is not 0; so 0 when the number is 0 */
	int64_t exponent;
};

/* Reads [+-]digits[.digits][e[+-]digits]. */
static struct decimal read_decimal(const char *text)
{
	size_t seen = 0, whole = 0, last = 0;
	bool fraction = false;
	int64_t exponent = 0;

	text += *text == '+' || *text == '-';
	for (const char *p = text;; p++) {
		if (*p >= '0' && *p <= '9') {
			seen++;
			if (*p != '0')
				last = seen;
			whole += !fraction;
		} else if (*p == '.') {
			fraction = true;
		} else {
			if (*p == 'e' || *p == 'E')
				exponent = strtoll(p + 1, NULL, 10); /* stays in its range */
			break;
		}
	}
	if (exponent > INT64_MAX / 4 || exponent < INT64_MIN / 4)
		exponent /= 4; /* out of every reach, but can be calculated with */
	return (struct decimal){text, last, exponent + (int64_t)whole - (int64_t)last};
}

/* In the caller's room where the node's own text is no decimal (hexadecimal). False when n is
 * not finite. */
static bool decimal_of(const struct node *n, char room[32], struct decimal *ret)
{
	const char *text = room;

	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		return false;
	if (n->type == NODE_INT)
		snprintf(room, 32, "%" PRId64, n->integer);
	else if (n->text[strspn(n->text, "+-.0123456789eE")])
		snprintf(room, 32, "%.17g", n->number);
	else
		text = n->text;
	*ret = read_decimal(text);
	return true;
}

bool number_divisor(const struct node *n, struct divisor *ret_divisor)
{
	char text[32];
	struct decimal d;
	uint64_t digits = 0;
	size_t len = 0;

	if (!decimal_of(n, text, &d) || d.count == 0)
		return false;
	if (n->type == NODE_INT ? n->integer < 0 : signbit(n->number))
		return false;
	for (size_t left = d.count; left > 0; d.text++) {
		if (*d.text == '.')
			continue;
		left--;
		len += len > 0 || *d.text != '0';
		if (len > MAX_DIGITS)
			return false;
		digits = 10 * digits + (uint64_t)(*d.text - '0');
	}
	*ret_divisor = (struct divisor){digits, d.exponent};
	return true;
}

bool number_is_multiple(const struct node *n, const struct divisor *d)
{
	char text[32];
	struct decimal a;
	uint64_t rest = 0;

	if (!decimal_of(n, text, &a))
		return false;
	if (a.count == 0)
		return true;
	if (a.exponent < d->exponent)
		return false; /* its last digit is not 0, but that of each multiple is */
	for (size_t left = a.count; left > 0; a.text++) {
		if (*a.text == '.')
			continue;
		left--;
		rest = (10 * rest + (uint64_t)(*a.text - '0')) % d->digits;
	}
	/* 64 more tens hold all the twos and fives that a divisor can have */
	for (int64_t k = a.exponent - d->exponent; k > 0 && k > a.exponent - d->exponent - 64; k--)
		rest = 10 * rest % d->digits;
	return rest == 0;
}

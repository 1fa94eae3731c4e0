/*
 * One value of the agent's configuration: text to value, or the sentence why not.
 *
 * Surprising: users and groups are looked up when the configuration is read, so that a misspelt
 * owner is an error with a line and not a failed publication at night.
 */
#include "settings/value.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/settings.h"

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

struct unit {
	const char *name;
	uint64_t factor;
};

#define UNITS 5
static const struct unit durations[UNITS] = {
	{"ms", 1},
	{"s", 1000},
	{"m", 60 * 1000},
	{"h", 60 * 60 * 1000},
	{"d", 24 * 60 * 60 * 1000},
};
static const struct unit sizes[UNITS] = {
	{"B", 1},
	{"KiB", UINT64_C(1) << 10},
	{"MiB", UINT64_C(1) << 20},
	{"GiB", UINT64_C(1) << 30},
	{"TiB", UINT64_C(1) << 40},
};

/* Reads a number and one of the first `count` units at *text, and moves it behind them: which unit,
 * or `count`: it is none of them. Adds to *sum. */
static size_t parse_duration_part(
	const char **text, const struct unit *units, size_t count, size_t max_digits, uint64_t *sum)
{
	size_t digits = strspn(*text, DIGITS), letters = strspn(*text + digits, LETTERS), i;
	const char *name = *text + digits;

	if (digits == 0 || digits > max_digits)
		return count;
	for (i = 0; i < count; i++)
		if (strlen(units[i].name) == letters && !strncmp(name, units[i].name, letters))
			break;
	if (i < count) {
		*sum += strtoull(*text, NULL, 10) * units[i].factor;
		*text = name + letters;
	}
	return i;
}

/* At most `max_parts`, the greatest unit first, each once. */
static int parse_units(const char *text, const struct unit units[UNITS], size_t max_parts,
	size_t max_digits, uint64_t *ret)
{
	size_t below = UNITS, unit;
	uint64_t sum = 0;

	do {
		unit = parse_duration_part(&text, units, below, max_digits, &sum);
		if (unit == below || max_parts-- == 0)
			return -EINVAL;
		below = unit;
	} while (*text);
	*ret = sum;
	return 0;
}

static const char *units_text(uint64_t n, const struct unit units[UNITS], char text[24])
{
	size_t i = UNITS - 1;

	while (i > 0 && (n == 0 || n % units[i].factor))
		i--;
	snprintf(text, 24, "%llu%s", (unsigned long long)(n / units[i].factor), units[i].name);
	return text;
}

int settings_parse_duration(const char *text, uint64_t *ret_ms)
{
	return parse_units(text, durations, UNITS, 11, ret_ms); /* 11 digits of each fit 64 bits */
}

int settings_parse_size(const char *text, uint64_t *ret_bytes)
{
	return parse_units(text, sizes, 1, 7, ret_bytes); /* 7 digits of TiB fit 64 bits */
}

const char *settings_duration_text(uint64_t ms, char text[24])
{
	return units_text(ms, durations, text);
}

const char *settings_size_text(uint64_t bytes, char text[24])
{
	return units_text(bytes, sizes, text);
}

const char *settings_parse_percent(const char *text, unsigned *ret_percent)
{
	size_t digits = strspn(text, DIGITS);

	if (digits == 0 || digits > 3 || strcmp(text + digits, "%"))
		return "is not a percentage: write a whole number and %, such as 10%";
	*ret_percent = (unsigned)strtoul(text, NULL, 10);
	return NULL;
}

const char *settings_parse_signal(const char *text, int *ret_signal)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{"HUP", SIGHUP},
		{"USR1", SIGUSR1},
		{"USR2", SIGUSR2},
		{"TERM", SIGTERM},
		{"INT", SIGINT},
		{"QUIT", SIGQUIT},
		{"WINCH", SIGWINCH},
		{"CONT", SIGCONT},
	};
	const char *name = strncmp(text, "SIG", 3) ? text : text + 3;
	size_t digits = strspn(text, DIGITS);
	unsigned long number = digits && digits < 3 && !text[digits] ? strtoul(text, NULL, 10) : 0;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(name, signals[i].name))
			number = (unsigned long)signals[i].number;
	if (number < 1 || number > 31)
		return "is not a signal: one of HUP, USR1, USR2, TERM, INT, QUIT, WINCH and CONT, "
		       "or a number from 1 to 31";
	*ret_signal = (int)number;
	return NULL;
}

const char *settings_parse_mode(const char *text, mode_t *ret_mode)
{
	size_t digits = strspn(text, "01234567");
	unsigned long mode;

	if (digits < 3 || digits > 4 || text[digits])
		return "is not a file mode: write three or four octal digits, such as \"0640\"";
	mode = strtoul(text, NULL, 8);
	if (mode > 0777)
		return "sets more than permissions: at most 0755 makes sense here";
	if (mode & 0022)
		return "lets others write the file: only its owner may, as in \"0640\"";
	if (!(mode & 0400))
		return "keeps the owner from reading the file: add 0400";
	*ret_mode = (mode_t)mode;
	return NULL;
}

/* A decimal id below (uid_t)-1, which means "leave". */
static bool parse_id(const char *text, uint32_t *ret_id)
{
	size_t digits = strspn(text, DIGITS);
	unsigned long long id;

	if (digits == 0 || digits > 10 || text[digits])
		return false;
	id = strtoull(text, NULL, 10);
	if (id >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

static bool find_user(const char *name, uid_t *ret_uid)
{
	const struct passwd *p;

	if (parse_id(name, ret_uid))
		return true;
	p = getpwnam(name);
	if (!p)
		return false;
	*ret_uid = p->pw_uid;
	return true;
}

static bool find_group(const char *name, gid_t *ret_gid)
{
	const struct group *g;

	if (parse_id(name, ret_gid))
		return true;
	g = getgrnam(name);
	if (!g)
		return false;
	*ret_gid = g->gr_gid;
	return true;
}

const char *settings_parse_owner(const char *text, uid_t *ret_uid, gid_t *ret_gid)
{
	char user[256];
	size_t len = strcspn(text, ":");
	const char *group = text[len] ? text + len + 1 : NULL;
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	if (strlen(text) >= sizeof(user) || (len == 0 && !group) || (group && !*group) ||
		(group && strchr(group, ':')))
		return "is not an owner: write user, user:group or :group";
	memcpy(user, text, len);
	user[len] = '\0';
	if (len && !find_user(user, &uid))
		return "names a user that does not exist here";
	if (group && !find_group(group, &gid))
		return "names a group that does not exist here";
	*ret_uid = uid;
	*ret_gid = gid;
	return NULL;
}

const char *settings_parse_group(const char *text, gid_t *ret_gid)
{
	if (!text[0] || strlen(text) >= 256 || strchr(text, ':'))
		return "is not a group: write its name or its number";
	return find_group(text, ret_gid) ? NULL : "names a group that does not exist here";
}

const char *settings_shown(const char *text, char out[SETTINGS_SHOWN])
{
	const size_t max = SETTINGS_SHOWN - sizeof("\"...\"");
	size_t n = strnlen(text, max + 1);
	bool cut = n > max;

	if (cut)
		for (n = max; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
			; /* not inside a UTF-8 sequence */
	snprintf(out, SETTINGS_SHOWN, "\"%.*s%s\"", (int)n, text, cut ? "..." : "");
	for (char *p = out; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return out;
}

static unsigned smaller_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned settings_distance(const char *a, const char *b)
{
	unsigned rows[3][SETTINGS_MAX_WORD + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2], *spare;
	size_t la = strnlen(a, SETTINGS_MAX_WORD + 1), lb = strnlen(b, SETTINGS_MAX_WORD + 1);

	if (la > SETTINGS_MAX_WORD || lb > SETTINGS_MAX_WORD)
		return UINT_MAX;
	for (unsigned j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		spare = before, before = above, above = row, row = spare;
		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]),
			    cb = tolower((unsigned char)b[j - 1]);

			row[j] = smaller_of(
				above[j - 1] + (ca != cb), smaller_of(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
				cb == tolower((unsigned char)a[i - 2]))
				row[j] = smaller_of(row[j], before[j - 2] + 1);
		}
	}
	return row[lb];
}

/*
 * Slips in the agent's configuration: the place and a guess at what was meant, of each row of
 * tests/golden/slips.txt; what the guess looks at, and what it leaves alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "settings/guess.h"
#include "settings/settings.h"
#include "tests/unit/fixture/slips.h"

#define WEB "configs:\n  web:\n    url: http://h/web.yaml\n    file: /run/web.yaml\n"

static char told[2048]; /* the first message */

static void tell(void *arg, const char *message)
{
	(void)arg;
	if (!told[0])
		snprintf(told, sizeof(told), "%s", message);
}

/* The first message, without the file's name; "" = it is good. */
static const char *parse(const char *text, size_t len)
{
	struct settings *s = NULL;

	told[0] = '\0';
	settings_parse("@", text, len, tell, NULL, &s);
	assert_int_equal(s == NULL, told[0] != '\0');
	settings_free(s);
	return told[0] ? told + 2 : told;
}

static void slip__of_the_table__is_told_where_it_is_and_mended_by_its_remedy(void **state)
{
	struct slip_row row;

	(void)state;
	for (char *at = slips_open(); at;) {
		char place[64];
		const char *found;

		at = slips_next(at, &row);
		found = parse(row.text, row.text_len);
		snprintf(place, sizeof(place), "%s: ", row.place);
		if (strncmp(found, place, strlen(place)) != 0 || !strstr(found, row.words))
			fail_msg("%s: %s", row.name, found);
		found = parse(row.remedy, row.remedy_len);
		if (found[0])
			fail_msg("%s: the remedy: %s", row.name, found);
	}
}

#define QUOTE "a typographic quote is text to YAML: write \" or '"

static void assert_messages(const char *const (*rows)[2], size_t count)
{
	char text[1024];

	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), WEB "%s", rows[i][0]);
		assert_string_equal(parse(text, strlen(text)), rows[i][1]);
	}
}

static void slip__beside_a_variable__is_told_with_both(void **state)
{
	static const char *const rows[][2] = {
		/* the dollar sign is in a later line: it begins no variable in this value */
		{"    topic: web\n    interval: 30s\n      more\n    mask: [a$b]\n",
			"7:7: interval: \"30s more\" is not a duration: write a whole number and a "
			"unit, such as 500ms, 10s, 5m, 1h or 2d, or several, the greatest first: "
			"1h30m: this line has no colon, so that it belongs to the value above it: "
			"write KEY: VALUE"},
		{"    interval: ${PULLET_T}\n",
			"5:15: interval: \"\342\200\234x\" is not a duration: write a whole number "
			"and a unit, such as 500ms, 10s, 5m, 1h or 2d, or several, the greatest "
			"first: 1h30m: " QUOTE "; ${PULLET_T} stands there"},
		{"    probe:\n      url: ${PULLET_T}\n", /* which may be a secret */
			"6:12: url must begin with http:// or https://: " QUOTE
			"; ${PULLET_T} stands there"},
	};

	(void)state;
	setenv("PULLET_T", "\342\200\234x", 1);
	assert_messages(rows, sizeof(rows) / sizeof(rows[0]));
	unsetenv("PULLET_T");
}

static void key__that_is_unknown__is_guessed_at(void **state)
{
	static const char *const rows[][2] = {
		{"apiVersion: v1\n", "5:1: unknown key \"apiVersion\" in the file: this is a "
				     "Kubernetes object: the "
				     "agent's configuration is what stands in it below data:"},
		{"kind: ConfigMap\n",
			"5:1: unknown key \"kind\" in the file: this is a Kubernetes object: the "
			"agent's configuration is what stands in it below data:"},
		{"main: {urls: ['http://h']}\n", "5:1: unknown key \"main\" in the file: it looks "
						 "like a server: move it below "
						 "servers:"},
		{"app: {url: 'http://h/a'}\n", "5:1: unknown key \"app\" in the file: it looks "
					       "like a config: move it below "
					       "configs:"},
		{"app: {from: []}\n", "5:1: unknown key \"app\" in the file: it looks like a "
				      "config: move it below "
				      "configs:"},
		{"app: {path: /a}\n",
			"5:1: unknown key \"app\" in the file: did you mean api, a key of servers? "
			"Move it below servers: NAME:"},
		{"    mask:x:\n",
			"5:5: unknown key \"mask:x\" in config \"web\": did you mean \"mask\"?"},
		{"    xyz:abc:\n", "5:8: unknown key \"xyz:abc\" in config \"web\": a blank must "
				   "follow the colon"},
		{"    \342\200\234x\342\200\235: 1\n",
			"5:5: unknown key \"\342\200\234x\342\200\235\" in config \"web\": " QUOTE},
	};

	(void)state;
	assert_messages(rows, sizeof(rows) / sizeof(rows[0]));
}

static void word__that_people_write_for_a_boolean__is_known(void **state)
{
	static const struct {
		const char *word, *value;
	} rows[] = {{"yes", "true"}, {"On", "true"}, {"y", "true"}, {"1", "true"}, {"TRUE", "true"},
		{"enabled", "true"}, {"NO", "false"}, {"off", "false"}, {"n", "false"},
		{"0", "false"}, {"False", "false"}, {"disabled", "false"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(guess_boolean(rows[i].word), rows[i].value);
	assert_null(guess_boolean("2"));
	assert_null(guess_boolean(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slip__of_the_table__is_told_where_it_is_and_mended_by_its_remedy),
		cmocka_unit_test(slip__beside_a_variable__is_told_with_both),
		cmocka_unit_test(key__that_is_unknown__is_guessed_at),
		cmocka_unit_test(word__that_people_write_for_a_boolean__is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

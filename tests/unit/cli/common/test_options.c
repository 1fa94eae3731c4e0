/* The options of a command as rows: values and their bounds, forms, help, and what is misused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "tests/unit/fixture/command.h"

enum { ONE = 1, TWO = 2 };

static struct target {
	bool flag;
	const char *text;
	uint64_t ms, number;
	char read[32];
} target;

static int read_word(void *to, const char *name, char *word)
{
	struct target *t = to;

	snprintf(t->read, sizeof(t->read), "%s: %s", name, word);
	return strcmp(word, "bad") ? CLI_OK : cli_error(CLI_USAGE, name, "not bad");
}

static const struct option_row rows[] = {
	{"flag", NULL, "a flag", OPTION_FLAG, .at = offsetof(struct target, flag), .letter = 'f'},
	{"text", "T", "a text\nof two lines", OPTION_TEXT, .at = offsetof(struct target, text),
		.letter = 't'},
	{"span", "D", "a time", OPTION_DURATION, .at = offsetof(struct target, ms), .min = 1000,
		.max = 60000, .takes = "1s to 1m"},
	{"number", "N", "a number", OPTION_NUMBER, .at = offsetof(struct target, number), .min = 2,
		.max = 9, .takes = "2 to 9"},
	{"large", "N", "any number", OPTION_NUMBER, .at = offsetof(struct target, number),
		.takes = "a number"},
	{"word", "W", "a word", OPTION_READ, .read = read_word, .forms = ONE},
	{"other", NULL, "of the other form", OPTION_FLAG, .at = offsetof(struct target, flag),
		.forms = TWO},
	{0},
};

#define USAGE "Usage: pullet x [A]\n       pullet x more\n"

static struct command_line line;
static char text[32];

static int run_line(int argc, char **argv)
{
	int r = options_read(&line, argc, argv, &target);

	snprintf(text, sizeof(text), "%s", target.text ? target.text : ""); /* argv is freed */
	return r;
}

static int set_up(void **state)
{
	(void)state;
	target = (struct target){.flag = false};
	line = (struct command_line){.usage = USAGE "Does what it does.\n",
		.rows = rows,
		.min = 0,
		.max = 1,
		.form = ONE};
	return 0;
}

#define LINE(...) RUN(run_line, "pullet x", __VA_ARGS__)

static void option__of_each_kind__fills_its_member(void **state)
{
	(void)state;
	assert_int_equal(LINE("--flag", "--text", "a b", "--span", "2s", "--number", "08", "--word",
				 "good", "argument"),
		-1);
	assert_true(target.flag);
	assert_string_equal(text, "a b");
	assert_int_equal(target.ms, 2000);
	assert_int_equal(target.number, 8); /* not by eights */
	assert_string_equal(target.read, "pullet x: good");
	set_up(state);
	assert_int_equal(LINE("-f", "-tx"), -1);
	assert_true(target.flag);
	assert_string_equal(text, "x");
	assert_ended(-1, "", "");
}

static void value__at_its_bounds__is_taken__and_none_beyond(void **state)
{
	static const struct {
		const char *option, *value;
		bool taken;
		const char *sentence;
	} table[] = {
		{"--span", "1s", true, ""},
		{"--span", "1m", true, ""},
		{"--span", "999ms", false, "--span takes 1s to 1m, not '999ms'"},
		{"--span", "60001ms", false, "--span takes 1s to 1m, not '60001ms'"},
		{"--span", "soon", false,
			"--span takes a duration like 500ms, 10s, 5m or 1h, not 'soon'"},
		{"--number", "2", true, ""},
		{"--number", "9", true, ""},
		{"--number", "1", false, "--number takes 2 to 9, not '1'"},
		{"--number", "10", false, "--number takes 2 to 9, not '10'"},
		{"--number", "+3", false, "--number takes 2 to 9, not '+3'"},
		{"--number", " 3", false, "--number takes 2 to 9, not ' 3'"},
		{"--number", "3x", false, "--number takes 2 to 9, not '3x'"},
		{"--number", "", false, "--number takes 2 to 9, not ''"},
		{"--large", "0", true, ""},
		{"--large", "18446744073709551615", true, ""},
		{"--large", "18446744073709551616", false,
			"--large takes a number, not '18446744073709551616'"},
		{"--word", "bad", false, "not bad"},
	};
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		LINE(table[i].option, table[i].value);
		snprintf(expected, sizeof(expected), "pullet x: %s\n", table[i].sentence);
		assert_ended(table[i].taken ? -1 : CLI_USAGE, "", table[i].taken ? "" : expected);
	}
}

static void option__of_another_form__is_unknown(void **state)
{
	(void)state;
	LINE("--other");
	assert_ended(
		CLI_USAGE, "", "pullet x: unrecognized option '--other'\nTry 'pullet x --help'.\n");
	line.form = TWO;
	assert_int_equal(LINE("--other"), -1);
	LINE("--word", "good");
	assert_int_equal(command.code, CLI_USAGE);
	line.form = 0; /* of none: all */
	assert_int_equal(LINE("--other", "--word", "good"), -1);
	LINE("-z");
	assert_ended(CLI_USAGE, "", "pullet x: invalid option -- 'z'\nTry 'pullet x --help'.\n");
	LINE("--text");
	assert_ended(CLI_USAGE, "",
		"pullet x: option '--text' requires an argument\nTry 'pullet x --help'.\n");
}

static void help__lists_options_of_all_forms_in_columns(void **state)
{
	static const char expected[] = USAGE "Does what it does.\n\n"
					     "  -f, --flag      a flag\n"
					     "  -t, --text T    a text\n"
					     "                  of two lines\n"
					     "      --span D    a time\n"
					     "      --number N  a number\n"
					     "      --large N   any number\n"
					     "      --word W    a word\n"
					     "      --other     of the other form\n"
					     "\nThe end.\n";

	(void)state;
	line.tail = "The end.\n";
	LINE("-f", "--help", "--nope");
	assert_ended(CLI_OK, expected, "");
	LINE("-h");
	assert_ended(CLI_OK, expected, "");
	line.tail = NULL;
	LINE("--help");
	assert_int_equal(strlen(command.out), strlen(expected) - strlen("\nThe end.\n"));
}

#define MISUSED(sentence) "pullet x: " sentence "\n" USAGE "Try 'pullet x --help'.\n"

static void arguments__that_are_too_few_or_too_many__are_misused(void **state)
{
	(void)state;
	assert_int_equal(LINE("a"), -1);
	LINE("a", "b");
	assert_ended(CLI_USAGE, "", MISUSED("'b' is one argument too many"));
	line.wants = "one at most";
	LINE("a", "b");
	assert_ended(CLI_USAGE, "", MISUSED("one at most"));
	line.max = -1;
	assert_int_equal(LINE("a", "b", "c"), -1);
	line.min = 1;
	LINE("-f");
	assert_ended(CLI_USAGE, "", MISUSED("one at most"));
	line.wants = NULL;
	LINE("-f");
	assert_ended(CLI_USAGE, "", MISUSED("an argument is missing"));
	assert_int_equal(LINE("a"), -1);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(option__of_each_kind__fills_its_member),
		CASE(value__at_its_bounds__is_taken__and_none_beyond),
		CASE(option__of_another_form__is_unknown),
		CASE(help__lists_options_of_all_forms_in_columns),
		CASE(arguments__that_are_too_few_or_too_many__are_misused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

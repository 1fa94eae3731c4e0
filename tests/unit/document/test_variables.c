/* Names of variables that no document may choose, and such as it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "document/variables.h"

static const char *danger(const char *name)
{
	return variables_danger(name, strlen(name));
}

static void name__that_makes_programs_run_or_load__has_a_reason(void **state)
{
	static const char *const names[] = {"PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
		"IFS", "ENV", "BASH_ENV", "BASH_FUNC_LS", "SHELLOPTS", "PS4", "PROMPT_COMMAND",
		"PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "PERL5LIB", "RUBYOPT", "NODE_OPTIONS",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "GIT_SSH_COMMAND", "HOME",
		"DYLD_INSERT_LIBRARIES", "TERMINFO", "GLIBC_TUNABLES", "LESSOPEN", "EDITOR", "_",
		"MAKEFLAGS", "PULLET_RUNTIME_DIR", "XDG_CONFIG_HOME", "OPENSSL_CONF"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(danger(names[i]));
	assert_string_equal(danger("LD_PRELOAD"), "says what the loader loads");
}

static void name__of_an_application__has_none(void **state)
{
	static const char *const names[] = {"DB_HOST", "APP_PATH", "PATHS", "PAT", "HOMES", "HOST",
		"PORT", "LD", "_LD_PRELOAD", "ENVIRONMENT", "LOG_LEVEL", "USER", "TZ", "LANG", "PS",
		"HTTP_PROXY", "path", "L", "__"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_null(danger(names[i]));
	assert_null(variables_danger("PATHS", 3));
	assert_non_null(variables_danger("PATHS", 4));
	assert_null(variables_danger("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name__that_makes_programs_run_or_load__has_a_reason),
		cmocka_unit_test(name__of_an_application__has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

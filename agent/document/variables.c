/*
 * A table of names. Surprising: a name that ends with '*' is a family, which grows with each
 * release of its program.
 */
#include "document/variables.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	const char *does, *names;
} table[] = {
	{"says what the loader loads", "LD_* DYLD_* GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH "
				       "MALLOC_* OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES"},
	{"says where programs are searched for", "PATH EXECIGNORE COMPILER_PATH GCC_EXEC_PREFIX"},
	{"changes what shells run, or how they read",
		"IFS ENV BASH_* BASHOPTS SHELLOPTS SHELL PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND CDPATH "
		"FPATH FIGNORE GLOBIGNORE ZDOTDIR POSIXLY_CORRECT KSH_* FCEDIT"},
	{"is set by shells themselves", "_ UID EUID PPID BASHPID"},
	{"says what an interpreter loads",
		"PYTHON* PERL5* PERLLIB PERL_* RUBYOPT RUBYLIB RUBYSHELL GEM_* BUNDLE_* NODE_* "
		"NPM_* JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_* JAVA_OPTIONS CLASSPATH LUA_* PHPRC "
		"PHP_INI_SCAN_DIR DOTNET_* CORECLR_* COR_* COMPLUS_* TCLLIBPATH GUILE_* R_* AWK* "
		"JULIA_*"},
	{"is a command, or options of one, that programs run",
		"GIT_* SSH_ASKPASS SUDO_* EDITOR VISUAL PAGER MANPAGER SYSTEMD_* BROWSER LESS* "
		"MAKEFLAGS MAKEFILES GNUMAKEFLAGS TAR_OPTIONS RSYNC_* SVN_* HG* CVS_RSH MAILCHECK "
		"MAILPATH"},
	{"says where programs find their own settings",
		"HOME XDG_* TERMINFO TERMINFO_DIRS TERMCAP TERMPATH INPUTRC WGETRC CURL_HOME "
		"KUBECONFIG DOCKER_CONFIG GNUPGHOME KRB5_* SASL_CONF_PATH ODBCINI PGSYSCONFDIR "
		"PGSERVICEFILE TZDIR HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_HOST_CONF "
		"PULLET_*"},
};

static bool fits_name(const char *pattern, size_t pattern_len, const char *name, size_t len)
{
	if (pattern[pattern_len - 1] == '*')
		return len >= pattern_len - 1 && memcmp(pattern, name, pattern_len - 1) == 0;
	return len == pattern_len && memcmp(pattern, name, len) == 0;
}

const char *variables_danger(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *at = table[i].names;

		for (size_t n; *at; at += n + (at[n] == ' ')) {
			n = strcspn(at, " ");
			if (fits_name(at, n, name, len))
				return table[i].does;
		}
	}
	return NULL;
}

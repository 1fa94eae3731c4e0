/* Snapshots that no agent keeps. Surprising: an agent's image has the time when it was made, and
 * one made by `pullet build` has none (lib/FORMAT.md): the header tells them apart. */
#include "cli/values/kept.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/common/cli.h"
#include "settings/value.h"

#define CREATED_AT 32 /* little-endian, milliseconds of the wall clock; 0 = not known */

bool kept_by_agent(const struct pullet *p)
{
	const char *path = pullet_path(p), *end = strrchr(path, '.');
	char page[PATH_MAX];

	snprintf(page, sizeof(page), "%.*s.gen",
		end && strcmp(end, ".snap") == 0 ? (int)(end - path) : (int)strlen(path), path);
	return access(page, F_OK) == 0;
}

static int64_t read_created_ms(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t ms = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &ms, sizeof(ms), CREATED_AT) != sizeof(ms))
		ms = 0;
	close(fd);
	return (int64_t)le64toh(ms);
}

static const char *write_age(int64_t ms, char text[24])
{
	int64_t unit = ms < 120000 ? 1000 : ms < 7200000 ? 60000 : 3600000;

	return settings_duration_text((uint64_t)(ms < unit ? unit : ms / unit * unit), text);
}

bool kept_note_copy(const char *command, const struct pullet *p)
{
	int64_t created_ms;
	char age[24];

	if (pullet_generation(p) == 0 || kept_by_agent(p))
		return false;
	created_ms = read_created_ms(pullet_path(p));
	if (created_ms <= 0)
		return false;
	cli_note(command,
		"%s is a copy that no agent keeps up to date (no control page is beside it): it "
		"was published %s ago",
		pullet_path(p), write_age(sys_real.wall_ms() - created_ms, age));
	return true;
}

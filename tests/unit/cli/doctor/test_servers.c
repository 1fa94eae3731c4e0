/*
 * `pullet doctor` about what servers have: signatures, documents near a bound, addresses that
 * differ, and publishers that are silent, well or refuse the key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <time.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "push/publisher.h"
#include "push/subscriber.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/minisign_signer.h"

static char path[SCRATCH_PATH + 64];
static struct signer signer;

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	signer_init(&signer, 7);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	signer_fini(&signer);
	played_close();
	return 0;
}

/* The server d is the directory; more of the file, and the config's members. */
static void examine(const char *server, const char *more, const char *members)
{
	char text[4096];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s'%s}\n%sconfigs:\n"
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, snapshot: true%s}\n",
		played.dir, played.dir, played.dir, server, more, members);
	scratch_write(played.dir, "pullet.yaml", text, strlen(text));
	RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "3s");
}

/* ---- signatures ---- */

static void sign(const char *document, const char *comment)
{
	struct signer_job job = {.document = document,
		.len = strlen(document),
		.comment = comment,
		.comment_len = strlen(comment)};
	char text[SIGNER_FILE];
	size_t len = signer_file(&signer, &job, text);

	scratch_write(played.dir, "web.yaml.minisig", text, len);
}

static void examine_signed(void)
{
	char members[256];

	snprintf(members, sizeof(members), ", verify: {public_key: %s}", signer.text);
	examine("]", "", members);
}

static void signature__that_is_missing__is_an_error(void **state)
{
	(void)state;
	examine_signed();
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out,
		"/web.yaml.minisig is not there: without its signature no version is taken");
	assert_shows(command.out, "sign it (pullet sign) and publish the signature beside it");
}

static void signature__of_other_bytes__is_an_error(void **state)
{
	(void)state;
	sign("port: 2\n", "rev=1");
	examine_signed();
	assert_shows(
		command.out, "sign what is published, for this place, with a key that verify:");
	assert_int_equal(command.code, CLI_FAILED);
}

static void signature__says_what_it_lacks_and_when_it_ends(void **state)
{
	char comment[64];

	(void)state;
	sign("port: 1\n", "rev=1");
	examine_signed();
	assert_null(strstr(command.out, "its signature"));
	assert_shows(command.out, "2 documents came");
	sign("port: 1\n", "made by hand");
	examine_signed();
	assert_shows(command.out, "its signature has no rev=: an old version can be played back");
	snprintf(comment, sizeof(comment), "rev=1 expires=%lld", (long long)time(NULL) + 7200);
	sign("port: 1\n", comment);
	examine_signed();
	assert_shows(command.out, "its signature is good for less than a day, until ");
	snprintf(comment, sizeof(comment), "rev=1 expires=%lld", (long long)time(NULL) + 200000);
	sign("port: 1\n", comment);
	examine_signed();
	assert_null(strstr(command.out, "its signature"));
}

/* ---- documents ---- */

static void document__near_its_bound__is_a_warning(void **state)
{
	char text[1001];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[1000] = '\0';
	memcpy(text, "a: ", 3);
	scratch_write(played.dir, "web.yaml", text, 1000);
	examine("], max_size: 1KiB", "", "");
	assert_shows(command.out, "/web.yaml has 1000 of the 1024 bytes that it may have");
	assert_shows(command.out, "raise max_size of the server");
	examine("], max_size: 2KiB", "", "");
	assert_null(strstr(command.out, "bytes that it may have"));
}

static void addresses__that_differ__are_a_warning(void **state)
{
	char server[SCRATCH_PATH + 64], other[SCRATCH_PATH + 64];

	(void)state;
	snprintf(other, sizeof(other), "%s/other", played.dir);
	assert_int_equal(mkdir(other, 0755), 0);
	snprintf(server, sizeof(server), ", 'file://%s/other']", played.dir);
	scratch_write(other, "web.yaml", "port: 1\n", 8);
	examine(server, "", "");
	assert_null(strstr(command.out, "have different contents"));
	scratch_write(other, "web.yaml", "port: 2\n", 8);
	examine(server, "", "");
	assert_shows(command.out, "have different contents at /web.yaml");
	snprintf(other, sizeof(other), "%s/other/web.yaml", played.dir);
	assert_int_equal(unlink(other), 0);
	examine(server, "", "");
	assert_shows(command.out, "warning web: file://");
}

static void configuration__that_everybody_reads_or_writes__is_noted(void **state)
{
	static const char more[] = "  h: {urls: ['http://127.0.0.1:1'], auth: {headers: "
				   "{X-Api-Key: abc, X-Site: eu}}}\n";

	(void)state;
	examine("]", more, "");
	assert_null(strstr(command.out, "X-Api-Key"));
	assert_int_equal(chmod(played.dir, 0755), 0);
	assert_int_equal(chmod(path, 0644), 0);
	examine("]", more, "");
	assert_shows(command.out, "the header X-Api-Key is in the configuration, which everybody");
	assert_null(strstr(command.out, "X-Site"));
	assert_null(strstr(command.out, "abc"));
	assert_null(strstr(command.out, "everybody on this host can write in it"));
	assert_int_equal(chmod(path, 0606), 0);
	examine("]", more, "");
	assert_shows(command.out, "everybody on this host can write in it");
}

/* ---- push ---- */

static char endpoint[SCRATCH_PATH + 32];
static struct publisher *publisher;

static void publish_at(const struct publisher_options *options)
{
	char why[CURVE_WHY];

	snprintf(endpoint, sizeof(endpoint), "ipc://%s/push", played.dir);
	assert_int_equal(publisher_open(&sys_real, endpoint, options, &publisher, why), 0);
}

/* The publisher runs in libzmq's threads; heartbeats need this process, which is the command's. */
static void examine_push(const char *members)
{
	char more[1024];

	snprintf(more, sizeof(more), "push:\n- {endpoint: '%s'%s}\n", endpoint, members);
	examine("]", more, "");
}

static void publisher__that_is_silent__is_noted(void **state)
{
	const struct publisher_options options = {0};

	(void)state;
	publish_at(&options);
	examine_push(", heartbeat: 100ms");
	assert_shows(command.out, "connected, but no heartbeat came in ");
	publisher_close(publisher);
}

static void publisher__that_refuses_the_key__is_an_error(void **state)
{
	char public_key[CURVE_TEXT], secret[CURVE_TEXT], file[SCRATCH_PATH + 32], why[CURVE_WHY];
	const struct publisher_options options = {.secret_key_file = file};

	(void)state;
	snprintf(file, sizeof(file), "%s/server", played.dir);
	assert_int_equal(subscriber_make_keys(public_key, secret), 0);
	assert_int_equal(curve_write_pair(&sys_real, file, public_key, secret, why), 0);
	publish_at(&options);
	examine_push(", heartbeat: 1s");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out, "refused: ");
	assert_shows(command.out, "put the keys right here or there");
	publisher_close(publisher);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(signature__that_is_missing__is_an_error),
		CASE(signature__of_other_bytes__is_an_error),
		CASE(signature__says_what_it_lacks_and_when_it_ends),
		CASE(document__near_its_bound__is_a_warning),
		CASE(addresses__that_differ__are_a_warning),
		CASE(configuration__that_everybody_reads_or_writes__is_noted),
		CASE(publisher__that_is_silent__is_noted),
		CASE(publisher__that_refuses_the_key__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What the agent adds to the parser that it reads with: a document of 1 MB as libyaml's events and
 * as jansson's tree, with nothing done about them; the same as a document, checked and bounded; and
 * all of a version between its bytes and its publication, composed and made into an image.
 *
 * Figures are CPU time of this process. Rounds alternate between the steps, so that noise hits all
 * alike.
 *
 * Usage: bench_parse [ROUNDS]
 */
#include <string.h>

#include <jansson.h>
#include <yaml.h>

#include "version/compose.h"
#include "publish/image.h"
#include "bench.h"

#define BYTES 1000000u
#define KEYS 25u /* of a mapping */
#define LARGEST (16u << 20)
#define MAX_ROUNDS 1001u
#define TARGET 1.3 /* times the bare parser */

enum { EVENTS, YAML, YAML_VERSION, TREE, JSON, JSON_VERSION, STEPS };

static struct settings_layer layer_settings[1];
static const struct settings_config config = {
	.name = (char *)"bench", .layers = layer_settings, .layer_count = 1, .max_made = LARGEST};

struct text {
	struct buffer bytes;
	struct part part;
	struct compose_piece piece;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_parse: %s\n", what);
	exit(1);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the documents ---- */

static void write_value(struct buffer *out, unsigned n)
{
	if (n % 4 == 0)
		buffer_printf(out, "%u", n * 7);
	else if (n % 4 == 1)
		buffer_append_string(out, n % 8 == 1 ? "true" : "1.50");
	else
		buffer_printf(out, "\"a text of key %u, as long as most of them are\"", n);
}

static void write_text(struct buffer *out, bool json)
{
	const char *quote = json ? "\"" : "";

	buffer_append_string(out, json ? "{" : "");
	for (unsigned n = 0; out->len < BYTES; n++) {
		if (n % KEYS == 0)
			buffer_printf(out, json ? "%s\n\"group%u\": {" : "%sgroup%u:\n",
				json && n ? "}," : "", n / KEYS);
		buffer_printf(out, json ? "%s\n  " : "%s  ", json && n % KEYS ? "," : "");
		buffer_printf(out, "%skey%u%s: ", quote, n, quote);
		write_value(out, n);
		buffer_append_string(out, json ? "" : "\n");
	}
	if (buffer_append_string(out, json ? "}}\n" : ""))
		die("memory");
}

static void make(struct text *t, bool json)
{
	buffer_init(&t->bytes, LARGEST);
	write_text(&t->bytes, json);
	if (part_init(&t->part, "http://h/a", "", "", json ? "json" : "yaml"))
		die("memory");
	t->part.len = t->bytes.len;
	t->piece = (struct compose_piece){.facts = &t->part, .data = t->bytes.data};
}

/* ---- the steps ---- */

static void read_events(const struct text *t)
{
	yaml_parser_t parser;
	yaml_event_t event;
	bool done = false;

	if (!yaml_parser_initialize(&parser))
		die("memory");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)t->bytes.data, t->bytes.len);
	while (!done) {
		if (!yaml_parser_parse(&parser, &event))
			die("yaml_parser_parse");
		done = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
}

/* With memory of its own: the agent's readers have given jansson theirs. */
static void read_tree(const struct text *t)
{
	json_malloc_t allocate;
	json_error_t error;
	json_free_t release;
	json_t *tree;

	json_get_alloc_funcs(&allocate, &release);
	json_set_alloc_funcs(malloc, free);
	tree = json_loadb(t->bytes.data, t->bytes.len, JSON_REJECT_DUPLICATES, &error);
	if (!tree)
		die(error.text);
	json_decref(tree);
	json_set_alloc_funcs(allocate, release);
}

static void read_document(const struct text *t, enum document_type type)
{
	struct document_error error;
	struct document *d;

	if (document_parse(type, t->bytes.data, t->bytes.len, 0, &d, &error))
		die(error.message);
	document_free(d);
}

static void make_version(const struct text *t)
{
	struct composition c;
	char why[FILE_WHY];
	size_t len;
	void *image;

	if (compose_document(&config, &t->piece, 1, NULL, NULL, &c, why) ||
		image_build(c.root, 1, "v", LARGEST, &image, &len, why))
		die(why);
	free(image);
	compose_fini(&c);
}

static void run(const struct text *yaml, const struct text *json, int step)
{
	switch (step) {
	case EVENTS:
		read_events(yaml);
		break;
	case YAML:
		read_document(yaml, DOCUMENT_YAML);
		break;
	case YAML_VERSION:
		make_version(yaml);
		break;
	case TREE:
		read_tree(json);
		break;
	case JSON:
		read_document(json, DOCUMENT_JSON);
		break;
	case JSON_VERSION:
		make_version(json);
		break;
	}
}

int main(int argc, char **argv)
{
	static const char *const names[STEPS] = {"libyaml's events", "YAML: document",
		"YAML: document and image", "jansson's tree", "JSON: document",
		"JSON: document and image"};
	static const char *const columns[] = {"p50 ms", "MB/s", "% of parser"};
	static double ms[STEPS][MAX_ROUNDS];
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 61;
	double p50[STEPS];
	struct text yaml, json;

	if (rounds < 1 || rounds > MAX_ROUNDS)
		die("ROUNDS is 1 to 1001");
	make(&yaml, false);
	make(&json, true);
	for (size_t round = 0; round <= rounds; round++) /* the first warms up */
		for (int i = 0; i < STEPS; i++) {
			int step = round % 2 ? i : STEPS - 1 - i;
			double begin = cpu_ms();

			run(&yaml, &json, step);
			if (round)
				ms[step][round - 1] = cpu_ms() - begin;
		}
	bench_head("CPU of a document of 1 MB", columns, 3);
	for (int step = 0; step < STEPS; step++) {
		const struct text *t = step < TREE ? &yaml : &json;
		double figures[3];

		figures[0] = p50[step] = bench_median(ms[step], rounds);
		figures[1] = (double)t->bytes.len / p50[step] / 1e3;
		figures[2] = 100 * p50[step] / p50[step < TREE ? EVENTS : TREE];
		bench_row(names[step], figures, 3);
	}
	printf("\n");
	bench_ratio("1 MB of YAML as a document, beside libyaml's events", p50[YAML] / p50[EVENTS],
		TARGET);
	bench_ratio("the same with its image", p50[YAML_VERSION] / p50[EVENTS], TARGET);
	bench_ratio(
		"1 MB of JSON as a document, beside jansson's tree", p50[JSON] / p50[TREE], TARGET);
	bench_ratio("that with its image", p50[JSON_VERSION] / p50[TREE], TARGET);
	buffer_fini(&yaml.bytes);
	buffer_fini(&json.bytes);
	part_fini(&yaml.part);
	part_fini(&json.part);
	return 0;
}

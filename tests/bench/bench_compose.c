/*
 * What a new version costs between the last byte of its layers and its publication: ten layers of a
 * thousand keys each are parsed (or, where one has changed, that one alone) and merged, compared
 * with the version before, checked against a schema, and made into an image.
 *
 * Every second key of a layer is one of the layer before as well, so that merging has something to
 * do; the result has 5,500 keys below 110 mappings. The version before differs
 * in one key of a hundred. Rounds alternate between the steps, so that noise hits all alike.
 *
 * Usage: bench_compose [ROUNDS]
 */
#include <string.h>

#include "version/compose.h"
#include "document/diff.h"
#include "publish/image.h"
#include "schema/schema.h"
#include "bench.h"

#define LAYERS 10u
#define KEYS 1000u   /* of a layer */
#define GROUP 50u    /* of a mapping */
#define OVERLAP 500u /* keys from one layer's first to the next one's */
#define CHANGED 100u /* one key of so many */
#define LARGEST (16u << 20)
#define MAX_ROUNDS 1001u
#define TARGET_MS 2 /* of a version in which one layer has changed */

enum { YAML, JSON, KEPT, MERGE, DIFF, SAME, SCHEMA, IMAGE, WRITE, STEPS };

struct layers { /* as they came */
	struct buffer texts[LAYERS];
	struct part parts[LAYERS];
	struct compose_piece pieces[LAYERS];
};

static struct settings_layer layer_settings[LAYERS];
static const struct settings_config config = {.name = (char *)"bench",
	.layers = layer_settings,
	.layer_count = LAYERS,
	.max_made = LARGEST};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_compose: %s\n", what);
	exit(1);
}

/* ---- the documents ---- */

static void write_key(
	struct buffer *out, bool json, unsigned layer, unsigned key, bool first, bool changed)
{
	unsigned n = layer * OVERLAP + key;
	const char *quote = json ? "\"" : "";

	buffer_printf(out, json ? "%s" : "%s  ", first || !json ? "" : ",");
	buffer_printf(out, "%skey%u%s: ", quote, n, quote);
	if (key % 4 == 0)
		buffer_printf(out, "%u", n + (changed && key % CHANGED == 0) + layer);
	else if (key % 4 == 1)
		buffer_append_string(out, layer % 2 ? "true" : "false");
	else
		buffer_printf(out, "\"a text of layer %u, as long as most are\"", layer);
	if (!json)
		buffer_append(out, "\n", 1);
}

static void write_layer(struct buffer *out, bool json, unsigned layer, bool changed)
{
	buffer_append_string(out, json ? "{" : "");
	for (unsigned key = 0; key < KEYS; key++) {
		unsigned group = (layer * OVERLAP + key) / GROUP;

		if (key % GROUP == 0)
			buffer_printf(out, json ? "%s\"group%u\": {" : "%sgroup%u:\n",
				key && json ? "}," : "", group);
		write_key(out, json, layer, key, key % GROUP == 0, changed);
	}
	if (buffer_append_string(out, json ? "}}" : ""))
		die("memory");
}

static void make(struct layers *l, bool json, bool changed)
{
	for (unsigned i = 0; i < LAYERS; i++) {
		buffer_init(&l->texts[i], LARGEST);
		write_layer(&l->texts[i], json, i, changed);
		if (part_init(&l->parts[i], "http://h/a", "", "", json ? "json" : "yaml"))
			die("memory");
		l->parts[i].len = l->texts[i].len;
		l->pieces[i] = (struct compose_piece){
			.facts = &l->parts[i], .data = l->texts[i].data, .layer = i};
	}
}

static void fini(struct layers *l)
{
	for (unsigned i = 0; i < LAYERS; i++) {
		buffer_fini(&l->texts[i]);
		part_fini(&l->parts[i]);
	}
}

static void put_together(
	const struct layers *l, const struct kept_layers *kept, struct composition *ret)
{
	char why[FILE_WHY];

	if (compose_document(&config, l->pieces, LAYERS, NULL, kept, ret, why))
		die(why);
}

/* Each group is a mapping of keys of the three kinds, and there is a rule for the number of each.
 */
static struct schema *make_schema(struct document **ret_document)
{
	static const char text[] =
		"{\"type\": \"object\", \"minProperties\": 1, \"additionalProperties\": "
		"{\"$ref\": \"#/$defs/group\"}, \"$defs\": {\"group\": {\"type\": \"object\", "
		"\"minProperties\": 1, \"propertyNames\": {\"pattern\": \"^key[0-9]+$\"}, "
		"\"additionalProperties\": {\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0}, "
		"{\"type\": \"boolean\"}, {\"type\": \"string\", \"minLength\": 1, "
		"\"maxLength\": 100}]}}}}";
	struct document_error e;
	struct schema *s;
	char why[FILE_WHY];

	if (document_parse(DOCUMENT_JSON, text, strlen(text), 0, ret_document, &e))
		die(e.message);
	if (schema_new(document_root(*ret_document), NULL, 0, &s, why))
		die(why);
	return s;
}

/* ---- the steps ---- */

struct bench {
	struct layers yaml, json, changed;
	struct kept_shelf shelf;
	struct kept_layers *kept;
	unsigned versions; /* composed by what is kept */
	struct composition before, after;
	struct document *schema_document;
	struct schema *schema;
	size_t changes, image_len, written;
};

static void step_compose(const struct layers *l)
{
	struct composition c;

	put_together(l, NULL, &c);
	compose_fini(&c);
}

/* One layer of ten, each in its turn, is another one than in the version before. */
static void step_kept(struct bench *b)
{
	unsigned at = b->versions / 2 % LAYERS;
	struct layers l = b->yaml;
	struct composition c;

	if (b->versions++ % 2 == 0)
		l.pieces[at] = b->changed.pieces[at];
	put_together(&l, b->kept, &c);
	compose_keep_layers(&c, l.pieces, LAYERS, b->kept);
	compose_fini(&c);
}

static void step_merge(const struct bench *b)
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	struct document_error e;
	struct document *d;

	if (merge_layers(layers, compose_layers(&b->after, layers), &d, &e))
		die(e.message);
	document_free(d);
}

static size_t step_diff(const struct node *before, const struct node *after)
{
	struct diff *d;
	size_t n;

	if (diff_new(before, after, &d))
		die("diff_new");
	n = diff_count(d);
	diff_free(d);
	return n;
}

static void step_schema(const struct bench *b)
{
	struct buffer report;

	buffer_init(&report, SCHEMA_MAX_REPORT);
	if (schema_check(b->schema, b->after.root, NULL, &report))
		die(report.len ? report.data : "schema_check");
	buffer_fini(&report);
}

static void step_image(struct bench *b)
{
	char why[FILE_WHY];
	void *data;

	if (image_build(b->after.root, 1, "v", UINT32_MAX, &data, &b->image_len, why))
		die(why);
	free(data);
}

static void step_write(struct bench *b)
{
	struct buffer out;

	buffer_init(&out, LARGEST);
	if (document_write(b->after.root, DOCUMENT_YAML, &out))
		die("document_write");
	b->written = out.len;
	buffer_fini(&out);
}

static void run(struct bench *b, int step)
{
	switch (step) {
	case YAML:
		step_compose(&b->yaml);
		break;
	case JSON:
		step_compose(&b->json);
		break;
	case KEPT:
		step_kept(b);
		break;
	case MERGE:
		step_merge(b);
		break;
	case DIFF:
		b->changes = step_diff(b->before.root, b->after.root);
		break;
	case SAME:
		if (step_diff(b->after.root, b->after.root))
			die("a document differs from itself");
		break;
	case SCHEMA:
		step_schema(b);
		break;
	case IMAGE:
		step_image(b);
		break;
	case WRITE:
		step_write(b);
		break;
	}
}

int main(int argc, char **argv)
{
	static const char *const names[STEPS] = {"compose: parse (YAML) + merge",
		"compose: parse (JSON) + merge", "compose: one layer changed", "merge alone",
		"diff, one key in 100 changed", "diff, nothing changed", "schema", "image",
		"text of it as YAML"};
	static const char *const columns[] = {"p50 ms", "p99 ms"};
	static double ms[STEPS][MAX_ROUNDS];
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 101, bytes = 0;
	double p50[STEPS];
	struct bench b = {.changes = 0};

	if (rounds < 1 || rounds > MAX_ROUNDS)
		die("ROUNDS is 1 to 1001");
	make(&b.yaml, false, false);
	make(&b.json, true, false);
	make(&b.changed, false, true);
	put_together(&b.changed, NULL, &b.before);
	put_together(&b.yaml, NULL, &b.after);
	b.kept = kept_layers_new(&b.shelf);
	if (!b.kept)
		die("memory");
	b.schema = make_schema(&b.schema_document);
	for (size_t round = 0; round <= rounds; round++) /* the first warms up */
		for (int step = 0; step < STEPS; step++) {
			uint64_t begin_ns = bench_now_ns();

			run(&b, step);
			if (round)
				ms[step][round - 1] = (double)(bench_now_ns() - begin_ns) / 1e6;
		}
	for (unsigned i = 0; i < LAYERS; i++)
		bytes += b.yaml.texts[i].len;
	printf("%u layers of %u keys, %zu bytes of YAML: %zu bytes of text, %zu bytes "
	       "of "
	       "image, %zu changes\n",
		LAYERS, KEYS, bytes, b.written, b.image_len, b.changes);
	bench_head("a version of ten layers", columns, 2);
	for (int step = 0; step < STEPS; step++) {
		double figures[2];

		figures[0] = p50[step] = bench_median(ms[step], rounds);
		figures[1] = bench_quantile(ms[step], rounds, 0.99);
		bench_row(names[step], figures, 2);
	}
	printf("\n");
	bench_target("10 layers of 1,000 keys composed, one changed", p50[KEPT], TARGET_MS, "ms");
	bench_ratio("the same, beside all of them parsed", p50[KEPT] / p50[YAML], 0.2);
	kept_layers_free(b.kept);
	schema_free(b.schema);
	document_free(b.schema_document);
	compose_fini(&b.before);
	compose_fini(&b.after);
	fini(&b.yaml);
	fini(&b.json);
	fini(&b.changed);
	return 0;
}

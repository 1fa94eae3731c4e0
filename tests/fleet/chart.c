/*
 * The chart: time to the right, requests per second upwards on a logarithmic scale.
 *
 * What surprises: a point is the greatest of the seconds that fall on it, so that no peak is lost
 * when the picture is coarser than the run; and policies that behaved exactly alike share one line.
 */
#include "chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 560
#define LEFT 80
#define RIGHT 980
#define TOP 64
#define BOTTOM 420
#define MAX_POINTS 600u

struct scale {
	double low, high; /* decades */
	uint32_t end_s;
};

struct pen {
	const char *policy, *colour, *dashes, *width;
};

static const struct pen pens[] = {
	{"ours", "#0b57c4", "", "2.6"},
	{"fixed", "#d1341f", "", "1"},
	{"sleep", "#e08a00", "5 2", "1.3"},
	{"doubling", "#12803c", "2 2", "1.4"},
	{"long-poll", "#a02fa8", "9 3 2 3", "1.4"},
};

static const struct pen *pen_of(const struct policy *p)
{
	for (size_t i = 0; i < sizeof(pens) / sizeof(pens[0]); i++)
		if (strcmp(pens[i].policy, p->name) == 0)
			return &pens[i];
	return &pens[0];
}

static double x_of(const struct scale *c, double s)
{
	return LEFT + s / c->end_s * (RIGHT - LEFT);
}

static double y_of(const struct scale *c, double value)
{
	double decades = value > 0 ? log10(value) : c->low;

	if (decades < c->low)
		decades = c->low;
	return BOTTOM - (decades - c->low) / (c->high - c->low) * (BOTTOM - TOP);
}

/* "20,000" */
static const char *thousands(uint64_t value, char text[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), at = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
	return text;
}

#define THOUSANDS(value) thousands(value, (char[32]){0})

static struct scale scale_of(const struct result *results, size_t count)
{
	struct scale c = {.end_s = results[0].scenario->end_s};
	uint32_t top = 10;

	for (size_t i = 0; i < count; i++)
		for (uint32_t s = 0; s < c.end_s; s++)
			if (results[i].per_second[s] > top)
				top = results[i].per_second[s];
	c.high = log10(top) + 0.35; /* room for the labels */
	c.low = fmax(0, floor(log10(results[0].agents)) - 4);
	return c;
}

static void axes(FILE *f, const struct scale *c)
{
	uint32_t step = c->end_s <= 360 ? 30 : c->end_s <= 720 ? 60 : 120;

	for (int decade = (int)c->low; decade <= c->high; decade++) {
		double y = y_of(c, pow(10, decade));

		fprintf(f,
			"<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#d4d8dd'/>"
			"<text x='%d' y='%.1f' text-anchor='end'>%s%s</text>\n",
			LEFT, y, RIGHT, y, LEFT - 8, y + 4, decade == (int)c->low ? "0 to " : "",
			THOUSANDS((uint64_t)pow(10, decade)));
		for (int i = 2; i < 10 && decade + 1 <= c->high; i++)
			fprintf(f, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#eff1f3'/>\n",
				LEFT, y_of(c, i * pow(10, decade)), RIGHT,
				y_of(c, i * pow(10, decade)));
	}
	for (uint32_t s = 0; s <= c->end_s; s += step)
		fprintf(f,
			"<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#555'/>"
			"<text x='%.1f' y='%d' text-anchor='middle'>%u</text>\n",
			x_of(c, s), BOTTOM, x_of(c, s), BOTTOM + 5, x_of(c, s), BOTTOM + 20, s);
	fprintf(f,
		"<path d='M%d %dV%dH%d' fill='none' stroke='#555'/>"
		"<text x='%d' y='%d' text-anchor='middle'>seconds</text>"
		"<text transform='translate(16 %d) rotate(-90)' text-anchor='middle'>requests in "
		"a second</text>\n",
		LEFT, TOP, BOTTOM, RIGHT, (LEFT + RIGHT) / 2, BOTTOM + 38, (TOP + BOTTOM) / 2);
}

/* Text on the lines, with a halo. */
static void label(FILE *f, double x, double y, const char *anchor, const char *text)
{
	fprintf(f,
		"<text x='%.1f' y='%.1f' text-anchor='%s' font-size='12' fill='#333' "
		"stroke='#fff' stroke-width='3' paint-order='stroke'>%s</text>\n",
		x, y, anchor, text);
}

static void stretch(FILE *f, const struct scale *c, double from_s, double to_s, const char *colour)
{
	double x = x_of(c, from_s), width = fmax(2, x_of(c, to_s) - x);

	fprintf(f,
		"<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s' fill-opacity='0.3'/>\n",
		x, TOP, width, BOTTOM - TOP, colour);
}

/* What happens, as shaded stretches of time. */
static void stretches(FILE *f, const struct scale *c, const struct scenario *s)
{
	double from_s = (double)s->change_ms / 1000, to_s = from_s;

	if (s->pushed)
		to_s += ((double)s->change_every_ms * s->change_count + s->spread_ms) / 1000;
	if (s->fault)
		stretch(f, c, s->fault_from_s, s->fault_to_s, "#f4b6ae");
	if (s->change_count)
		stretch(f, c, from_s, to_s, s->pushed ? "#f2c73b" : "#777");
}

static void labels(FILE *f, const struct scale *c, const struct result *r)
{
	const struct scenario *s = r->scenario;
	uint64_t limit = (uint64_t)FLEET_CAPACITY * r->agents / FLEET_UNIT;
	double y = y_of(c, (double)limit);
	char text[80];

	fprintf(f,
		"<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#333' "
		"stroke-dasharray='1 4'/>\n",
		LEFT, y, RIGHT, y);
	snprintf(text, sizeof(text), "the server's capacity: %s/s", THOUSANDS(limit));
	label(f, RIGHT - 4, y - 5, "end", text);
	if (s->fault)
		label(f, x_of(c, s->fault_from_s) + 5, TOP + 14, "start", s->fault_label);
	snprintf(text, sizeof(text), "change");
	if (s->pushed)
		snprintf(text, sizeof(text), "%s push%s, spread over %u s",
			THOUSANDS(s->change_count), s->change_count > 1 ? "es" : "",
			s->spread_ms / 1000);
	if (s->pushed && !s->spread_ms)
		snprintf(text, sizeof(text), "push without a spread");
	if (s->change_count)
		label(f, x_of(c, (double)s->change_ms / 1000) + 5, TOP + (s->fault ? 30 : 14),
			"start", text);
}

static void line(FILE *f, const struct scale *c, const struct result *r)
{
	const struct pen *pen = pen_of(r->policy);
	uint32_t step = (c->end_s + MAX_POINTS - 1) / MAX_POINTS;

	fprintf(f,
		"<path fill='none' stroke='%s' stroke-width='%s' stroke-linejoin='round' "
		"stroke-opacity='0.9'",
		pen->colour, pen->width);
	if (pen->dashes[0])
		fprintf(f, " stroke-dasharray='%s'", pen->dashes);
	for (uint32_t s = 0; s < c->end_s; s += step) {
		uint32_t most = 0;

		for (uint32_t i = s; i < s + step && i < c->end_s; i++)
			if (r->per_second[i] > most)
				most = r->per_second[i];
		fprintf(f, "%s%.1f %.1f", s ? "L" : " d='M", x_of(c, s + step / 2.0),
			y_of(c, most));
	}
	fprintf(f, "'/>\n");
}

/* The first of the results that looks the same. */
static size_t first_like(const struct result *results, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (results[j].digest == results[i].digest)
			return j;
	return i;
}

static void legend(FILE *f, const struct result *results, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct result *r = &results[i];
		const struct result *like = &results[first_like(results, i)];
		const struct pen *pen = pen_of(like->policy);
		int x = LEFT + (int)(i % 2) * 470, y = BOTTOM + 66 + (int)(i / 2) * 24;

		fprintf(f,
			"<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='%s' stroke-width='%s' "
			"stroke-dasharray='%s'/><text x='%d' y='%d'>%s: %s%s%s</text>\n",
			x, y - 4, x + 36, y - 4, pen->colour, pen->width,
			pen->dashes[0] ? pen->dashes : "none", x + 44, y, r->policy->title,
			like == r ? "peak " : "the same as ",
			like == r ? THOUSANDS(r->peak) : like->policy->name, like == r ? "/s" : "");
	}
}

int chart_write(const char *path, const struct result *results, size_t count)
{
	const struct scenario *s = results[0].scenario;
	struct scale c = scale_of(results, count);
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	fprintf(f,
		"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' "
		"height='%d' font-family='sans-serif' font-size='13' fill='#222'>\n"
		"<rect width='100%%' height='100%%' fill='#fff'/>\n"
		"<text x='%d' y='26' font-size='18' font-weight='bold'>%s: %s</text>\n"
		"<text x='%d' y='46' fill='#555'>%s agents, seed %llu; peaks since second "
		"%u</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, s->name, s->title, LEFT,
		THOUSANDS(results[0].agents), (unsigned long long)results[0].seed, s->measure_s);
	axes(f, &c);
	stretches(f, &c, s);
	for (size_t i = count; i-- > 0;) /* the first policy last: on top */
		if (first_like(results, i) == i)
			line(f, &c, &results[i]);
	labels(f, &c, results);
	legend(f, results, count);
	fprintf(f, "</svg>\n");
	return fclose(f) ? -errno : 0;
}

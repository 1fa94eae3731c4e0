/*
 * tests/golden/cases.json through C and C++: test_cases CASES.json DIR, where DIR has the images.
 * What a getter of pullet.h says and what pullet.hpp says must be the same.
 */
#include "pullet.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <jansson.h>
#include <map>
#include <unistd.h>

using namespace std::chrono_literals;

static std::string images; /* the directory */

[[noreturn]] static void fail(const std::string &what)
{
	throw std::runtime_error(what);
}

/* ---- the struct of the file ---- */

struct database {
	std::string host;
	int port = 5432;
};
struct server {
	std::string host;
	int weight = 1;
};
struct service {
	std::string name;
	int port = 80;
	double ratio = 0.5;
	bool debug = false;
	std::chrono::milliseconds timeout = 5s;
	std::int64_t limit = 1 << 20;
	std::optional<std::string> note;
	std::vector<std::string> tags;
	std::map<std::string, std::string> labels;
	database db;
	std::vector<server> servers;
};

static void pullet_fields(pullet::decoder &d, database &to)
{
	d.required("host", to.host);
	d.optional("port", to.port);
}

static void pullet_fields(pullet::decoder &d, server &to)
{
	d.required("host", to.host);
	d.optional("weight", to.weight);
}

static void pullet_fields(pullet::decoder &d, service &to)
{
	d.required("name", to.name);
	d.optional("port", to.port);
	d.optional("ratio", to.ratio);
	d.optional("debug", to.debug);
	d.optional("timeout", to.timeout);
	d.optional_size("limit", to.limit);
	d.optional("note", to.note);
	d.optional("tags", to.tags);
	d.optional("labels", to.labels);
	d.required("db", to.db);
	d.optional("servers", to.servers);
}

static json_t *as_json(const service &s)
{
	json_t *tags = json_array(), *labels = json_object(), *servers = json_array();

	for (const auto &tag : s.tags)
		json_array_append_new(tags, json_string(tag.c_str()));
	for (const auto &[name, label] : s.labels)
		json_object_set_new(labels, name.c_str(), json_string(label.c_str()));
	for (const auto &one : s.servers)
		json_array_append_new(servers,
			json_pack("{s:s,s:i}", "host", one.host.c_str(), "weight", one.weight));
	return json_pack("{s:s,s:i,s:f,s:b,s:I,s:I,s:s?,s:o,s:o,s:{s:s,s:i},s:o}", "name",
		s.name.c_str(), "port", s.port, "ratio", s.ratio, "debug", s.debug, "timeout",
		static_cast<json_int_t>(s.timeout.count()), "limit",
		static_cast<json_int_t>(s.limit), "note", s.note ? s.note->c_str() : nullptr,
		"tags", tags, "labels", labels, "db", "host", s.db.host.c_str(), "port", s.db.port,
		"servers", servers);
}

/* ---- what is done ---- */

static std::string read_file(const std::string &path)
{
	std::ifstream in(path, std::ios::binary);

	return {std::istreambuf_iterator<char>(in), {}};
}

static void replace_file(const std::string &path, const std::string &data)
{
	std::ofstream(path + ".new", std::ios::binary) << data;
	if (std::rename((path + ".new").c_str(), path.c_str()))
		fail("rename");
}

static void write_fields(const std::string &path, json_t *step)
{
	static const struct {
		const char *name;
		off_t at;
		size_t len;
	} fields[] = {{"magic", 0, 8}, {"generation", 8, 8}, {"futex", 16, 4}, {"withdrawn", 20, 4},
		{"confirmed_ms", 24, 8}, {"stale_ms", 32, 8}};
	int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);

	for (const auto &f : fields) {
		json_t *value = json_object_get(step, f.name);
		std::uint64_t n = static_cast<std::uint64_t>(json_integer_value(value));

		if (value && pwrite(fd, &n, f.len, f.at) != static_cast<ssize_t>(f.len))
			fail("pwrite");
	}
	close(fd);
}

struct world {
	std::string name, directory;
	std::optional<pullet::config> config;

	std::string file(const char *which) const
	{
		return directory + "/" + which;
	}

	void put_image(json_t *step) const
	{
		auto number = json_integer_value(json_object_get(step, "number"));
		std::string data =
			read_file(images + "/" + name + "-" + std::to_string(number) + ".snap");
		json_t *flip = json_object_get(step, "flip"), *cut = json_object_get(step, "cut");

		if (data.empty())
			fail("there is no image");
		if (flip) {
			auto at = json_integer_value(flip);
			auto size = static_cast<json_int_t>(data.size());

			data[static_cast<size_t>(at < 0 ? size + at : at)] ^= 1;
		}
		if (cut)
			data.resize(static_cast<size_t>(json_integer_value(cut)));
		replace_file(file("web.snap"), data);
	}

	void put_page(json_t *step, bool as_new) const
	{
		std::string path = file("web.gen"), page = "PULGENP\1";

		page.resize(4096);
		if (!as_new) {
			if (access(path.c_str(), F_OK))
				replace_file(path, page);
			write_fields(path, step);
			return;
		}
		std::ofstream(path + ".fields", std::ios::binary) << page;
		write_fields(path + ".fields", step);
		replace_file(path, read_file(path + ".fields"));
		unlink((path + ".fields").c_str());
	}

	void act(const std::string &what, json_t *step) const
	{
		if (what == "image")
			put_image(step);
		else if (what == "page" || what == "new page")
			put_page(step, what == "new page");
		else if (what == "remove")
			unlink(file(json_string_value(json_object_get(step, "file"))).c_str());
		else
			fail("what is " + what);
	}
};

/* ---- what is called: the answer as JSON ---- */

static std::string shortest(double d)
{
	char text[64];

	for (int digits = 1; digits <= 17; digits++) {
		std::snprintf(text, sizeof(text), "%.*g", digits, d);
		if (std::strtod(text, nullptr) == d)
			break;
	}
	return text;
}

/* Compares doubles as numbers: each language writes them in its own way. */
static json_t *as_double(double d, const char *expected)
{
	double e = expected ? std::strtod(expected, nullptr) : 0;

	if (expected && (std::memcmp(&e, &d, sizeof(d)) == 0 || (e != e && d != d)))
		return json_string(expected);
	return json_string(shortest(d).c_str());
}

static json_t *get_any(const pullet::config &c, const std::string &key, json_t *is)
{
	static const char *const types[] = {
		"null", "bool", "int", "double", "string", "list", "map"};
	auto v = c.find(key);

	if (!v)
		return json_null();
	json_t *row = json_pack("[s,s]", types[v->type], v->text);
	if (v->type == PULLET_BOOL)
		json_array_append_new(row, json_string(v->boolean ? "true" : "false"));
	else if (v->type == PULLET_INT)
		json_array_append_new(row, json_string(std::to_string(v->integer).c_str()));
	else if (v->type == PULLET_DOUBLE)
		json_array_append_new(
			row, as_double(v->number, json_string_value(json_array_get(is, 2))));
	else if (v->type >= PULLET_LIST)
		json_array_append_new(row, json_string(std::to_string(v->count).c_str()));
	else
		json_array_append_new(row, json_string(""));
	return row;
}

/* Both ways must agree, and both fallbacks tell a value from none. */
template <class T, class C, class P> static std::optional<T> both(C in_c, P in_cpp, T one, T other)
{
	T a = in_c(one), b = in_c(other);

	if (in_cpp(one) != a || in_cpp(other) != b)
		if (a == a)
			fail("C and C++ differ");
	if (a == one && b == other)
		return std::nullopt;
	return a;
}

static json_t *typed(
	const std::string &call, const pullet::config &c, const std::string &key, json_t *is)
{
	auto *p = c.native_handle();
	const char *k = key.c_str();
	pullet::key named(c, std::string_view(key));

	if (call == "string") {
		auto text = c.get(key);
		const char *in_c = ::pullet_get_string(p, k, nullptr);
		if (bool(text) != bool(in_c) || named.get().has_value() != bool(in_c))
			fail("C and C++ differ");
		return in_c ? json_string(in_c) : json_null();
	}
	if (call == "double") {
		auto d = both<double>([&](double f) { return ::pullet_get_double(p, k, f); },
			[&](double f) { return c.get<double>(k, f); }, 0.0, 1.0);
		return d ? as_double(*d, json_string_value(is)) : json_null();
	}
	if (call == "bool") {
		auto b = both<bool>([&](bool f) { return ::pullet_get_bool(p, k, f); },
			[&](bool f) { return c.get<bool>(k, f); }, false, true);
		return b ? json_string(*b ? "true" : "false") : json_null();
	}
	auto n = both<std::int64_t>(
		[&](std::int64_t f) {
			return call == "int"    ? ::pullet_get_int(p, k, f)
			       : call == "size" ? ::pullet_get_size(p, k, f)
						: ::pullet_get_duration_ms(p, k, f);
		},
		[&](std::int64_t f) {
			return call == "int"    ? named.get<std::int64_t>(f)
			       : call == "size" ? c.get_size<std::int64_t>(k, f)
						: c.get(k, std::chrono::milliseconds(f)).count();
		},
		0, 1);
	return n ? json_string(std::to_string(*n).c_str()) : json_null();
}

static json_t *keys(const pullet::config &c, const char *prefix)
{
	json_t *list = json_array();

	c.for_each(prefix, [&](std::string_view key, const pullet::value &) {
		json_array_append_new(list, json_stringn(key.data(), key.size()));
	});
	return list;
}

/* NULL: there is no such call. */
static json_t *call(world &w, const std::string &what, json_t *step)
{
	json_t *key = json_object_get(step, "key"), *is = json_object_get(step, "is");

	if (what == "open") {
		bool first = json_is_true(json_object_get(step, "wait_first"));

		w.config.reset();
		w.config.emplace(w.file("web.snap"),
			first ? pullet::first::may_come : pullet::first::must_be_there);
		return json_null();
	}
	pullet::config &c = *w.config;
	if (what == "refresh")
		return json_boolean(c.refresh());
	if (what == "get")
		return get_any(c, json_string_value(key), is);
	if (what == "keys")
		return keys(c, json_string_value(json_object_get(step, "prefix")));
	if (what == "decode")
		return as_json(json_is_true(json_object_get(step, "strict"))
				       ? c.decode_strict<service>()
				       : c.decode<service>());
	if (what == "generation")
		return json_integer(static_cast<json_int_t>(c.generation()));
	if (what == "version")
		return json_string(std::string(c.version()).c_str());
	if (what == "count")
		return json_integer(static_cast<json_int_t>(c.size()));
	if (what == "stale")
		return json_boolean(c.stale());
	if (what == "withdrawn")
		return json_boolean(c.withdrawn());
	if (what == "age")
		return c.age() ? json_integer(c.age()->count()) : json_null();
	return key ? typed(what, c, json_string_value(key), is) : nullptr;
}

/* The class of an error, and the key of one of decode. */
static std::string error_of(world &w, const std::string &what, json_t *step, std::string &ret_key)
{
	static const std::map<int, const char *> names = {{ENOENT, "not published"},
		{EIDRM, "withdrawn"}, {EBADMSG, "damaged"}, {EPROTO, "foreign"}};

	try {
		json_decref(call(w, what, step));
		return "none";
	} catch (const pullet::error &e) {
		return names.count(e.code().value()) ? names.at(e.code().value()) : e.what();
	} catch (const pullet::decode_error &e) {
		ret_key = e.key();
		std::string begins = std::string(w.config->path());
		std::size_t i;
		json_t *item;

		if (w.config->generation()) /* else it says that nothing is open, and why */
			begins += ", generation " + std::to_string(w.config->generation()) + ": " +
				  e.key() + " ";
		json_array_foreach(json_object_get(step, "says"), i,
			item) if (!std::strstr(e.what(), json_string_value(item))) return e.what();
		if (json_t *keys = json_object_get(step, "keys")) {
			json_array_foreach(
				keys, i, item) if (e.problems().at(i).key !=
						   json_string_value(item)) return e.what();
			if (e.problems().size() != json_array_size(keys))
				return e.what();
		} else if (e.problems().size() != 1) {
			return e.what();
		}
		return std::string(e.what()).rfind(begins, 0) == 0 ? "decode" : e.what();
	}
}

static void run_step(world &w, json_t *step)
{
	const char *does = json_string_value(json_object_get(step, "do"));
	const char *calls = json_string_value(json_object_get(step, "call"));
	json_t *error = json_object_get(step, "error"), *is = json_object_get(step, "is");

	if (does)
		return w.act(does, step);
	if (error) {
		json_t *wanted = json_object_get(step, "key");
		std::string key, found = error_of(w, calls, step, key);

		if (found != json_string_value(error) ||
			(wanted && key != json_string_value(wanted)))
			fail("the error is " + found + " " + key);
		return;
	}
	json_t *answer = call(w, calls, step);
	if (!answer && std::strcmp(calls, "tree") == 0)
		return; /* there is none here */
	if (!answer || !json_equal(answer, is ? is : json_null())) {
		char *text = answer ? json_dumps(answer, JSON_ENCODE_ANY) : nullptr;
		fail(std::string("the answer is ") + (text ? text : "none"));
	}
	json_decref(answer);
}

static bool run_case(json_t *c, const std::string &directory)
{
	world w{json_string_value(json_object_get(c, "name")), directory, std::nullopt};
	json_t *steps = json_object_get(c, "steps"), *step;
	std::size_t i;
	bool good = true;

	json_array_foreach(steps, i, step)
	{
		try {
			run_step(w, step);
		} catch (const std::exception &e) {
			char *text = json_dumps(step, 0);
			std::fprintf(stderr, "%s, step %zu: %s: %s\n", w.name.c_str(), i, text,
				e.what());
			std::free(text);
			good = false;
		}
	}
	for (const char *file : {"web.snap", "web.gen"})
		unlink(w.file(file).c_str());
	return good;
}

int main(int argc, char **argv)
{
	char scratch[] = "/tmp/pullet-cases-XXXXXX";
	json_t *root = argc == 3 ? json_load_file(argv[1], 0, nullptr) : nullptr, *c;
	int passed = 0, failed = 0;
	std::size_t i;

	if (!root || !mkdtemp(scratch)) {
		std::fprintf(stderr, "usage: test_cases CASES.json DIR\n");
		return 1;
	}
	images = argv[2];
	json_array_foreach(json_object_get(root, "cases"), i, c)++(
		run_case(c, scratch) ? passed : failed);
	json_decref(root);
	rmdir(scratch);
	std::printf("%d passed, %d failed\n", passed, failed);
	return failed != 0 || passed == 0;
}

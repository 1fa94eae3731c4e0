/*
 * pullet.hpp on images that lib/snapshot.c builds. Every case is a function; a check that fails
 * says where and fails its case.
 */
#include "pullet.hpp"

extern "C" {
#include "snapshot.h"
}

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <linux/futex.h>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using std::string_view;

static int bad_checks;

#define CHECK(condition)                                                                           \
	((condition) ? void()                                                                      \
		     : (++bad_checks, void(std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,   \
					      __LINE__, #condition))))

static std::string directory;

static pullet_value value_of(pullet_type type, const char *text)
{
	pullet_value v{};

	v.type = type;
	v.text = text;
	v.len = std::strlen(text);
	if (type == PULLET_INT)
		v.integer = std::atoll(text);
	else if (type == PULLET_DOUBLE)
		v.number = std::atof(text);
	else if (type == PULLET_BOOL)
		v.boolean = *text == 't';
	return v;
}

/* An agent: one image, in which "n" is the generation, and the control page. */
class agent
{
      public:
	explicit agent(const std::string &name) : stem(directory + "/" + name)
	{
		std::vector<char> zero(4096);
		std::uint64_t stale_ms = 60000;
		int fd =
			open((stem + ".gen").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		std::memcpy(zero.data(), "PULGENP\x01", 8);
		std::memcpy(zero.data() + 32, &stale_ms, sizeof(stale_ms));
		CHECK(write(fd, zero.data(), zero.size()) == 4096);
		void *map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(map != MAP_FAILED);
		page = static_cast<char *>(map);
		close(fd);
	}
	agent(const agent &) = delete;
	agent &operator=(const agent &) = delete;
	~agent()
	{
		munmap(page, 4096);
		unlink((stem + ".snap").c_str());
		unlink((stem + ".gen").c_str());
	}

	void publish()
	{
		std::string n = std::to_string(++generation);
		const std::pair<const char *, pullet_value> all[] = {
			{"n", value_of(PULLET_INT, n.c_str())},
			{"big", value_of(PULLET_INT, "5000000000")},
			{"minus", value_of(PULLET_INT, "-1")},
			{"min", value_of(PULLET_INT, "-9223372036854775808")},
			{"zero", value_of(PULLET_DOUBLE, "0.0")},
			{"half", value_of(PULLET_DOUBLE, "0.5")},
			{"yes", value_of(PULLET_BOOL, "true")},
			{"no", value_of(PULLET_BOOL, "false")},
			{"db.host", value_of(PULLET_STRING, "db1")},
			{"db.wait", value_of(PULLET_STRING, "10s")},
			{"db.size", value_of(PULLET_STRING, "64KiB")},
			{"db", value_of(PULLET_MAP, "")},
			{"empty", value_of(PULLET_STRING, "")},
			{"nothing", value_of(PULLET_NULL, "")},
		};
		std::vector<snapshot_entry> entries;
		void *image = nullptr;
		size_t len = 0;

		for (const auto &[key, v] : all)
			entries.push_back({key, std::strlen(key), v});
		CHECK(snapshot_build(entries.data(), entries.size(), generation, 0, n.c_str(),
			      &image, &len) == 0);
		put(image, len);
		std::free(image);
	}

	void put(const void *image, size_t len)
	{
		std::string fresh = stem + ".new";
		timespec now{};
		std::FILE *f = std::fopen(fresh.c_str(), "wbe");

		CHECK(f && std::fwrite(image, 1, len, f) == len && std::fclose(f) == 0);
		CHECK(std::rename(fresh.c_str(), (stem + ".snap").c_str()) == 0);
		clock_gettime(CLOCK_BOOTTIME, &now);
		store(24, static_cast<std::uint64_t>(now.tv_sec) * 1000 +
				  static_cast<std::uint64_t>(now.tv_nsec) / 1000000);
		set_withdrawn(0);
		store(8, generation);
		wake();
	}

	void withdraw()
	{
		CHECK(unlink((stem + ".snap").c_str()) == 0);
		set_withdrawn(1);
		store(24, 0);
		wake();
	}

	std::uint64_t generation = 0;

      private:
	void set_withdrawn(std::uint32_t withdrawn)
	{
		__atomic_store_n(
			reinterpret_cast<std::uint32_t *>(page + 20), withdrawn, __ATOMIC_SEQ_CST);
	}
	void wake()
	{
		__atomic_add_fetch(
			reinterpret_cast<std::uint32_t *>(page + 16), 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, page + 16, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
	}
	void store(size_t at, std::uint64_t n)
	{
		__atomic_store_n(reinterpret_cast<std::uint64_t *>(page + at), n, __ATOMIC_RELEASE);
	}

	std::string stem;
	char *page = nullptr;
};

static void open__of_what_is_not_there__throws()
{
	std::error_code why;

	try {
		pullet::config config("none");
		CHECK(false);
	} catch (const pullet::error &e) {
		CHECK(e.code() == std::errc::no_such_file_or_directory);
		CHECK(std::strstr(e.what(), "none: nothing is published under this name"));
		CHECK(std::strstr(e.what(), "is the agent running?"));
		CHECK(e.code().message() == pullet_strerror(-ENOENT));
	}
	CHECK(!pullet::config::try_open("none", why));
	CHECK(why == std::errc::no_such_file_or_directory);
	CHECK(!pullet::config::try_open("not a name", why));
	CHECK(why == std::errc::invalid_argument);
	static_assert(noexcept(pullet::config::try_open("", why)));
	static_assert(!std::is_copy_constructible_v<pullet::config>);
	static_assert(std::is_nothrow_move_constructible_v<pullet::config>);
	static_assert(std::is_nothrow_move_assignable_v<pullet::config>);
}

static void open__before_the_first__is_empty_until_then()
{
	std::error_code why(1, std::generic_category());
	auto config = pullet::config::try_open("web", why, pullet::first::may_come);

	CHECK(config && !why);
	CHECK(config->empty() && config->generation() == 0 && config->version().empty());
	CHECK(config->stale() && !config->age());
	CHECK(!config->refresh() && !config->wait(1ms) && !config->get("n"));
	agent a("web");
	a.publish();
	CHECK(config->wait(5s) && config->generation() == 1);
}

static void get__gives_texts()
{
	agent a("web");
	a.publish();
	const pullet::config config("web");

	CHECK(config.get("db.host") == "db1" && config.get("n") == "1" &&
		config.get("yes") == "true");
	CHECK(config.get("empty") == "");
	CHECK(!config.get("db") && !config.get("nothing") && !config.get("absent"));
	CHECK(!config.get(string_view("n\0", 2)) && config.get(string_view("number", 1)) == "1");
	CHECK(config.contains("db") && config.contains("nothing") && !config.contains("d"));
	CHECK(config.find("db")->type == PULLET_MAP);
	CHECK(config.get<string_view>("db.host", "x") == "db1");
	CHECK(config.get<string_view>("absent", "x") == "x");
	CHECK(string_view(config.get("absent", "x")) == "x");
	CHECK(config.get<string_view>(std::string("db.host"), "x") == "db1");
}

static void get__gives_types_or_the_fallback()
{
	agent a("web");
	a.publish();
	const pullet::config config("web");

	CHECK(config.get("n", 5) == 1 && config.get("absent", 5) == 5 &&
		config.get("db.host", 5) == 5);
	CHECK(config.get("big", 5) == 5 && config.get("big", std::int64_t{5}) == 5000000000);
	CHECK(config.get("minus", 5) == -1 && config.get("minus", 5u) == 5u);
	CHECK(config.get("big", std::uint64_t{5}) == 5000000000u);
	CHECK(config.get("min", std::int64_t{5}) == std::numeric_limits<std::int64_t>::min());
	CHECK(config.get("half", 2.5) > 0.4 && config.get("half", 2.5) < 0.6);
	CHECK(config.get("zero", 2.5) < 0.1 && config.get("absent", 2.5) > 2.4);
	CHECK(config.get("n", 2.5f) < 1.1f);
	CHECK(config.get("yes", false) && !config.get("no", true) && config.get("absent", true));
	CHECK(config.get("db.wait", 5ms) == 10s && config.get("db.host", 5ms) == 5ms);
	CHECK(config.get_size("db.size", 7) == 65536 && config.get_size("db.host", 7) == 7);
	CHECK(config.get_size(std::string("db.size"), std::int8_t{7}) == 7);
}

static void for_each__visits_in_order_until_false_or_an_exception()
{
	agent a("web");
	a.publish();
	const pullet::config config("web");
	std::string keys;
	size_t count = 0;

	config.for_each("db", [&](string_view key, const pullet::value &) {
		keys += key;
		keys += ' ';
	});
	CHECK(keys == "db db.host db.size db.wait ");
	config.for_each("", [&](string_view, const pullet::value &) { ++count; });
	CHECK(count == config.size() && count == 14);
	count = 0;
	config.for_each("", [&](string_view, const pullet::value &) { return ++count < 3; });
	CHECK(count == 3);
	try {
		config.for_each("", [](string_view key, const pullet::value &) {
			throw std::runtime_error(std::string(key));
		});
		CHECK(false);
	} catch (const std::runtime_error &e) {
		CHECK(string_view(e.what()) == "big");
	}
}

static void refresh__moves_on_and_keeps_what_is_good()
{
	agent a("web");
	a.publish();
	pullet::config config("web");

	CHECK(!config.refresh() && config.version() == "1");
	a.publish();
	CHECK(config.get("n", 0) == 1);
	CHECK(config.refresh() && config.get("n", 0) == 2 && config.version() == "2");
	CHECK(config.age() && *config.age() < 30s && !config.stale());
	++a.generation;
	a.put("PULSNAP\x01", 8);
	try {
		config.refresh();
		CHECK(false);
	} catch (const pullet::error &e) {
		CHECK(e.code() == std::errc::bad_message || e.code() == std::errc::protocol_error);
	}
	CHECK(config.get("n", 0) == 2);
}

template <class F> static bool throws_withdrawn(F &&fn)
{
	try {
		fn();
	} catch (const pullet::error &e) {
		return e.code() == std::errc::identifier_removed;
	}
	return false;
}

static void withdrawn__is_said_until_it_comes_back()
{
	agent a("web");
	std::error_code why;
	a.publish();
	pullet::config config("web");

	CHECK(!config.withdrawn());
	a.withdraw();
	CHECK(config.withdrawn() && config.stale() && !config.age());
	for (int i = 0; i < 2; i++)
		CHECK(throws_withdrawn([&] { config.refresh(); }));
	CHECK(config.get("n", 0) == 1);
	CHECK(throws_withdrawn([] { pullet::config another("web"); }));
	CHECK(!pullet::config::try_open("web", why) && why == std::errc::identifier_removed);
	CHECK(pullet::config("web", pullet::first::may_come).withdrawn());
	CHECK(!config.wait(5ms));
	a.publish();
	CHECK(config.wait(60s) && config.get("n", 0) == 2 && !config.withdrawn());
	a.withdraw();
	CHECK(throws_withdrawn([&] { config.wait(60s); }));
	a.publish();
	CHECK(config.refresh() && !config.refresh());
}

static void wait__wakes()
{
	agent a("web");
	a.publish();
	pullet::config config("web");
	auto begin = std::chrono::steady_clock::now();

	CHECK(!config.wait(50ms) && !config.wait(0ms) && !config.wait(-1ms));
	CHECK(std::chrono::steady_clock::now() - begin >= 49ms);
	std::thread later([&] {
		std::this_thread::sleep_for(50ms);
		a.publish();
	});
	CHECK(config.wait(60s) && config.generation() == 2);
	CHECK(std::chrono::steady_clock::now() - begin < 10s);
	later.join();
}

static void move__leaves_one_owner()
{
	agent a("web");
	a.publish();
	pullet::config one("web");
	string_view host = *one.get("db.host");
	pullet::config two(std::move(one));

	CHECK(two.get("n", 0) == 1 && host == "db1");
	one = std::move(two);
	CHECK(one.get("n", 0) == 1 && one.native_handle() && !two.native_handle());
	one = pullet::config(directory + "/web.snap");
	CHECK(one.generation() == 1);
}

/* "%41" is "A". */
static std::string unescaped(const std::string &text)
{
	std::string to;

	for (std::size_t i = 0; i < text.size(); i++)
		if (text[i] == '%') {
			to += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
			i += 2;
		} else {
			to += text[i];
		}
	return to;
}

struct golden_row {
	std::string key, type, text, integer, real, truth, duration, size;
};

/* The fallback, too, when the table's answer does not fit T. */
template <class T> static bool is_integer(T got, const std::string &want, T fallback)
{
	if (want == "-")
		return got == fallback;
	long long n = std::stoll(want);
	bool can_be = n >= 0 || std::is_signed_v<T>;

	return got == (can_be && static_cast<long long>(static_cast<T>(n)) == n ? static_cast<T>(n)
										: fallback);
}

template <class T> static bool is_real(T got, const std::string &want, T fallback)
{
	double n = want == "-" ? static_cast<double>(fallback) : std::strtod(want.c_str(), nullptr);

	if (std::isnan(n))
		return std::isnan(got);
	if (std::isfinite(n) && std::fabs(n) > static_cast<double>(std::numeric_limits<T>::max()))
		return got == fallback;
	return got == static_cast<T>(n) && std::signbit(got) == std::signbit(n);
}

template <class T> static void check_integer(const pullet::config &c, const golden_row &r)
{
	for (int f = 5; f <= 6; f++) {
		CHECK(is_integer(c.get(r.key, static_cast<T>(f)), r.integer, static_cast<T>(f)));
		CHECK(is_integer(c.get_size(r.key, static_cast<T>(f)), r.size, static_cast<T>(f)));
		pullet::key k(c, r.key);
		CHECK(is_integer(k.get(static_cast<T>(f)), r.integer, static_cast<T>(f)));
		CHECK(is_integer(k.get_size(static_cast<T>(f)), r.size, static_cast<T>(f)));
	}
}

static void check_row(const pullet::config &c, const golden_row &r)
{
	auto *p = c.native_handle();
	const char *key = r.key.c_str();

	check_integer<signed char>(c, r);
	check_integer<short>(c, r);
	check_integer<int>(c, r);
	check_integer<long long>(c, r);
	check_integer<unsigned char>(c, r);
	check_integer<std::uint32_t>(c, r);
	check_integer<std::uint64_t>(c, r);
	for (int f = 5; f <= 6; f++) {
		std::string n = std::to_string(f);
		bool other = f == 5;

		CHECK(std::to_string(pullet_get_int(p, key, f)) ==
			(r.integer == "-" ? n : r.integer));
		CHECK(std::to_string(pullet_get_size(p, key, f)) == (r.size == "-" ? n : r.size));
		CHECK(std::to_string(pullet_get_duration_ms(p, key, f)) ==
			(r.duration == "-" ? n : r.duration));
		CHECK(std::to_string(c.get(r.key, std::chrono::milliseconds(f)).count()) ==
			(r.duration == "-" ? n : r.duration));
		CHECK(is_real<double>(pullet_get_double(p, key, f), r.real, f));
		CHECK(is_real<double>(c.get(r.key, static_cast<double>(f)), r.real, f));
		CHECK(is_real<float>(
			c.get(r.key, static_cast<float>(f)), r.real, static_cast<float>(f)));
		CHECK(c.get(r.key, other) == (r.truth == "-" ? other : r.truth == "true"));
		pullet::key k(c, r.key);
		CHECK(k.get(other) == c.get(r.key, other));
		CHECK(is_real<float>(
			k.get(static_cast<float>(f)), r.real, static_cast<float>(f)));
		CHECK(is_real<double>(k.get(static_cast<double>(f)), r.real, f));
		CHECK(k.get(std::chrono::milliseconds(f)) ==
			c.get(r.key, std::chrono::milliseconds(f)));
	}
	bool is_text =
		r.type == "bool" || r.type == "int" || r.type == "double" || r.type == "string";
	CHECK(c.get(r.key, string_view("another")) == (is_text ? string_view(r.text) : "another"));
	CHECK(pullet::key(c, r.key).get(string_view("another")) ==
		(is_text ? string_view(r.text) : "another"));
}

static void key__moves_with_its_config()
{
	agent a("keys");
	pullet::config c("keys", pullet::first::may_come);
	pullet::key n(c, "n"), host(c, "db.host"), none(c, "none");

	CHECK(!n.find() && !n.get() && n.get(5) == 5);
	for (int generation = 1; generation <= 3; generation++) {
		a.publish();
		CHECK(n.get(5) == (generation == 1 ? 5 : generation - 1)); /* not before a refresh */
		CHECK(c.refresh());
		for (int i = 0; i < 2; i++) { /* the second time it is known */
			CHECK(n.get(5) == generation);
			CHECK(n.find()->integer == generation);
			CHECK(n.get() == std::to_string(generation));
			CHECK(!std::strcmp(host.get("x"), "db1") && !std::strcmp(none.get("x"), "x"));
			CHECK(!none.find());
		}
	}
	pullet::config other(std::move(c));
	a.publish();
	CHECK(other.refresh() && n.get(5) == 4);
	static_assert(!std::is_constructible_v<pullet::key, pullet::config &, std::string>);
	static_assert(std::is_constructible_v<pullet::key, pullet::config &, std::string &>);
}

static std::string stem_of_values;

static void get__of_golden_values__is_as_in_the_table()
{
	std::ifstream table(stem_of_values + ".tsv");
	pullet::config c(stem_of_values + ".snap");
	std::string line;
	std::size_t rows = 0;

	while (std::getline(table, line)) {
		if (line[0] == '#')
			continue;
		std::string column[8];
		std::istringstream in(line);
		int bad_before = bad_checks;

		for (auto &to : column)
			std::getline(in, to, '\t');
		check_row(c, {column[0], column[1], unescaped(column[2]), column[3], column[4],
				     column[5], column[6], column[7]});
		if (bad_checks != bad_before)
			std::fprintf(stderr, "in: %s\n", line.c_str());
		rows++;
	}
	CHECK(rows == c.size() + 1); /* one is absent */
}

/* Each argument is the table of values to be held against, without its ending. */
int main(int argc, char **argv)
{
	static void (*const cases[])() = {
		open__of_what_is_not_there__throws,
		open__before_the_first__is_empty_until_then,
		get__gives_texts,
		get__gives_types_or_the_fallback,
		for_each__visits_in_order_until_false_or_an_exception,
		refresh__moves_on_and_keeps_what_is_good,
		withdrawn__is_said_until_it_comes_back,
		wait__wakes,
		move__leaves_one_owner,
		key__moves_with_its_config,
	};
	char scratch[] = "/tmp/pullet-cpp-XXXXXX";
	int passed = 0, failed = 0;

	if (!mkdtemp(scratch) || setenv("PULLET_RUNTIME_DIR", scratch, 1))
		return 1;
	directory = scratch;
	std::vector<void (*)()> all(std::begin(cases), std::end(cases));
	all.insert(all.end(), static_cast<std::size_t>(argc) - 1,
		get__of_golden_values__is_as_in_the_table);
	for (auto *run : all) {
		bad_checks = 0;
		if (run == get__of_golden_values__is_as_in_the_table)
			stem_of_values = *++argv;
		try {
			run();
		} catch (const std::exception &e) {
			std::fprintf(stderr, "an exception: %s\n", e.what());
			++bad_checks;
		}
		++(bad_checks ? failed : passed);
	}
	rmdir(scratch);
	std::printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

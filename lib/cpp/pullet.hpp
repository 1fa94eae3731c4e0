/*
 * libpullet for C++17: pullet.h with a destructor, views and templates. Header only; link with
 * -lpullet.
 *
 *	pullet::config config("web");
 *	auto host = config.get<std::string_view>("db.host", "localhost");
 *	auto every = config.get("poll.interval", std::chrono::milliseconds(500));
 *	config.refresh(); // now and then: is there a newer version?
 *
 * Threads: one config per thread; different ones need no care. Ownership: a config is moved, never
 * copied; views and values point into the version that is open and live until the next refresh(),
 * wait() or the end of that config. After a move the source may only be assigned to or destroyed.
 * Errors: pullet::error from the constructor, refresh() and wait(); reading never throws, unless a
 * function given to for_each() does. A key or prefix ends at its first NUL, but for get(key) and
 * find(key), which take any.
 */
#ifndef PULLET_HPP
#define PULLET_HPP

/* C++ has one set of names for types and namespaces: here the handle has another than in C. */
#ifdef PULLET_H
#error "include pullet.hpp before, or instead of, pullet.h"
#endif
#define pullet pullet_handle
#include "pullet.h"
#undef pullet

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace pullet
{

using value = ::pullet_value;

namespace detail
{
class category final : public std::error_category
{
      public:
	const char *name() const noexcept override
	{
		return "pullet";
	}
	std::string message(int code) const override
	{
		return ::pullet_strerror(code);
	}
	std::error_condition default_error_condition(int code) const noexcept override
	{
		return {code, std::generic_category()}; /* code == std::errc::no_such_file_... */
	}
};

template <class> inline constexpr bool never = false;

/* Where a value is read from: a name that is looked up, or a named key. */
struct by_name {
	::pullet_handle *p;
	const char *key;

	const char *text() const noexcept
	{
		return ::pullet_get_string(p, key, nullptr);
	}
	std::int64_t whole(std::int64_t fallback) const noexcept
	{
		return ::pullet_get_int(p, key, fallback);
	}
	double real(double fallback) const noexcept
	{
		return ::pullet_get_double(p, key, fallback);
	}
	bool truth(bool fallback) const noexcept
	{
		return ::pullet_get_bool(p, key, fallback);
	}
	std::int64_t wait(std::int64_t fallback) const noexcept
	{
		return ::pullet_get_duration_ms(p, key, fallback);
	}
	std::int64_t size(std::int64_t fallback) const noexcept
	{
		return ::pullet_get_size(p, key, fallback);
	}
};

struct by_key {
	::pullet_key *k;

	const char *text() const noexcept
	{
		return ::pullet_key_get_string(k, nullptr);
	}
	std::int64_t whole(std::int64_t fallback) const noexcept
	{
		return ::pullet_key_get_int(k, fallback);
	}
	double real(double fallback) const noexcept
	{
		return ::pullet_key_get_double(k, fallback);
	}
	bool truth(bool fallback) const noexcept
	{
		return ::pullet_key_get_bool(k, fallback);
	}
	std::int64_t wait(std::int64_t fallback) const noexcept
	{
		return ::pullet_key_get_duration_ms(k, fallback);
	}
	std::int64_t size(std::int64_t fallback) const noexcept
	{
		return ::pullet_key_get_size(k, fallback);
	}
};

/* Infinity and NaN fit every floating type. */
template <class T> bool fits(double number) noexcept
{
	double most = static_cast<double>(std::numeric_limits<T>::max());

	return !(number > most && number < std::numeric_limits<double>::infinity()) &&
	       !(number < -most && number > -std::numeric_limits<double>::infinity());
}

/* The getter gave its fallback if it answers with two different ones. */
template <class T, class G> T integer(G getter, T fallback) noexcept
{
	constexpr auto low = std::numeric_limits<std::int64_t>::min();
	std::int64_t n = getter(low);

	if (n == low && getter(0) == 0)
		return fallback;
	if constexpr (std::is_unsigned_v<T>) {
		if (n < 0 || static_cast<std::uint64_t>(n) > std::numeric_limits<T>::max())
			return fallback;
	} else if (n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max()) {
		return fallback;
	}
	return static_cast<T>(n);
}

template <class T, class S> T read(S from, T fallback) noexcept
{
	if constexpr (std::is_same_v<T, std::string_view>) {
		const char *text = from.text();
		return text ? std::string_view(text) : fallback;
	} else if constexpr (std::is_same_v<T, const char *>) {
		const char *text = from.text();
		return text ? text : fallback;
	} else if constexpr (std::is_same_v<T, bool>) {
		return from.truth(fallback);
	} else if constexpr (std::is_integral_v<T>) {
		return integer([&](std::int64_t n) { return from.whole(n); }, fallback);
	} else if constexpr (std::is_floating_point_v<T>) {
		double number = from.real(0);
		bool found = number != 0 || from.real(1) != 1;
		return found && fits<T>(number) ? static_cast<T>(number) : fallback;
	} else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
		return T(from.wait(fallback.count()));
	} else {
		static_assert(never<T>, "no value can be read as this type");
	}
}

template <class T, class S> T read_size(S from, T fallback) noexcept
{
	static_assert(std::is_integral_v<T>, "a size is an integer");
	return integer([&](std::int64_t n) { return from.size(n); }, fallback);
}

/* The text of a bool, number or string. */
inline std::optional<std::string_view> text_of(const value *v) noexcept
{
	if (!v || v->type < PULLET_BOOL || v->type > PULLET_STRING)
		return std::nullopt;
	return std::string_view(v->text, v->len);
}
} // namespace detail

/* The errors of the library: positive errno, with its own sentences. */
inline const std::error_category &error_category() noexcept
{
	static const detail::category category;
	return category;
}

class error : public std::system_error
{
      public:
	explicit error(int negative_errno, const std::string &what = "pullet")
	    : std::system_error(-negative_errno, error_category(), what)
	{
	}

	/* Of opening a config: what() says what is wrong there, and what to do. */
	static error of_open(int negative_errno, const std::string &config_or_path)
	{
		char why[512];
		error e(negative_errno, config_or_path);

		e.text = config_or_path + ": " +
			 ::pullet_explain(config_or_path.c_str(), negative_errno, why, sizeof(why));
		return e;
	}

	const char *what() const noexcept override
	{
		return text.empty() ? std::system_error::what() : text.c_str();
	}

      private:
	std::string text;
};

/* Values that are missing, or are not of the type: all of them, from config::decode(). */
class decode_error : public std::runtime_error
{
      public:
	struct problem {
		std::string key,
			what; /* "db.port", "must be an integer such as 17, but is a list" */
	};
	decode_error(
		const std::string &file, std::uint64_t generation, std::vector<problem> problems)
	    : std::runtime_error(text(file, generation, problems)), all(std::move(problems)),
	      number(generation)
	{
	}
	/* Nothing is open, and why. */
	decode_error(const std::string &file, const std::string &why, std::vector<problem> problems)
	    : std::runtime_error(file + ": " + why), all(std::move(problems)), number(0)
	{
	}
	const std::vector<problem> &problems() const noexcept
	{
		return all;
	}
	/* Of the first problem. */
	const std::string &key() const noexcept
	{
		return all.front().key;
	}
	std::uint64_t generation() const noexcept
	{
		return number;
	}

      private:
	/* The first eight, and how many more. */
	static std::string text(
		const std::string &file, std::uint64_t generation, const std::vector<problem> &all)
	{
		const std::size_t most = 8;
		std::string s = file + ", generation " + std::to_string(generation);

		for (std::size_t i = 0; i < all.size() && i < most; i++)
			s += (i ? "; " : ": ") +
			     (all[i].key.empty() ? "the configuration" : all[i].key) + " " +
			     all[i].what;
		return all.size() <= most
			       ? s
			       : s + "; and " + std::to_string(all.size() - most) + " more";
	}

	std::vector<problem> all;
	std::uint64_t number;
};

class decoder;

/* Tag of a constructor: succeeds before the agent has published anything. */
enum class first { must_be_there, may_come };

class config
{
      public:
	/* Opens a config by its name or, with a '/' in it, a snapshot file. Throws error. */
	explicit config(const std::string &config_or_path, first when = first::must_be_there)
	{
		::pullet_handle *p = nullptr;
		int r = ::pullet_open(config_or_path.c_str(), flags(when), &p);

		if (r < 0)
			throw error::of_open(r, config_or_path);
		handle.reset(p);
	}

	/* As the constructor, but empty and *ret_error when it fails. */
	static std::optional<config> try_open(const char *config_or_path,
		std::error_code &ret_error, first when = first::must_be_there) noexcept
	{
		::pullet_handle *p = nullptr;
		int r = ::pullet_open(config_or_path, flags(when), &p);

		if (r < 0) {
			ret_error.assign(-r, error_category());
			return std::nullopt;
		}
		ret_error.clear();
		return config(p);
	}

	/* The value as it is in the image, any type. */
	std::optional<value> find(std::string_view key) const noexcept
	{
		value v;

		if (::pullet_get(handle.get(), key.data(), key.size(), &v) != 0)
			return std::nullopt;
		return v;
	}

	bool contains(std::string_view key) const noexcept
	{
		return find(key).has_value();
	}

	/* The text of a bool, number or string as it was written; NUL-terminated as well. */
	std::optional<std::string_view> get(std::string_view key) const noexcept
	{
		auto v = find(key);

		return detail::text_of(v ? &*v : nullptr);
	}

	/* The value as a T, or the fallback: when there is no such key, its value is not of the
	 * type, or does not fit. T: std::string_view, const char *, bool, an integer, a floating
	 * type, std::chrono::milliseconds ("10s"). */
	template <class T> T get(const char *key, T fallback) const noexcept
	{
		return detail::read<T>(detail::by_name{handle.get(), key}, fallback);
	}
	template <class T> T get(const std::string &key, T fallback) const noexcept
	{
		return get<T>(key.c_str(), fallback);
	}

	/* Bytes: a string like "64KiB", or an integer. */
	template <class T> T get_size(const char *key, T fallback) const noexcept
	{
		return detail::read_size<T>(detail::by_name{handle.get(), key}, fallback);
	}
	template <class T> T get_size(const std::string &key, T fallback) const noexcept
	{
		return get_size<T>(key.c_str(), fallback);
	}

	/* Calls fn(std::string_view key, const pullet::value &) for each key that begins with
	 * prefix ("" = all), in the order of the keys' bytes. If fn returns bool, false ends it;
	 * what fn throws ends it as well and arrives at the caller. fn does not refresh this
	 * config. */
	template <class F> void for_each(const std::string &prefix, F &&fn) const
	{
		struct call {
			std::remove_reference_t<F> &fn;
			std::exception_ptr thrown;
		} c{fn, nullptr};

		::pullet_each(
			handle.get(), prefix.c_str(),
			[](const char *key, size_t key_len, const value *v, void *arg) -> int {
				auto &to = *static_cast<call *>(arg);
				std::string_view name(key, key_len);

				try {
					if constexpr (std::is_convertible_v<
							      decltype(to.fn(name, *v)), bool>)
						return to.fn(name, *v) ? 0 : 1;
					else
						to.fn(name, *v);
				} catch (...) {
					to.thrown = std::current_exception();
					return 1;
				}
				return 0;
			},
			&c);
		if (c.thrown)
			std::rethrow_exception(c.thrown);
	}

	/* Moves to the newest version; false when it is the one that is open. Throws error: the
	 * version that is open stays in use. When the agent publishes it no more,
	 * std::errc::identifier_removed each time, until it comes back. */
	bool refresh()
	{
		return moved(::pullet_refresh(handle.get()));
	}

	/* Sleeps until there is a newer version and moves to it. False when the time has passed or
	 * a signal came. Throws error as refresh(), but identifier_removed once: the next call
	 * sleeps until the config comes back. */
	bool wait(std::chrono::milliseconds timeout)
	{
		auto ms = timeout.count();
		auto most = std::numeric_limits<int>::max();

		return wait_ms(ms < 0 ? 0 : ms > most ? most : static_cast<int>(ms));
	}
	/* The same without an end. */
	bool wait()
	{
		return wait_ms(-1);
	}

	/* The generation that is open; 0 when nothing is yet. */
	std::uint64_t generation() const noexcept
	{
		return ::pullet_generation(handle.get());
	}
	/* The server's name for it, or "". */
	std::string_view version() const noexcept
	{
		return ::pullet_version(handle.get());
	}
	/* Number of keys. */
	std::size_t size() const noexcept
	{
		return ::pullet_count(handle.get());
	}
	bool empty() const noexcept
	{
		return size() == 0;
	}
	/* Since the server last confirmed the newest version; empty when that is not known. */
	std::optional<std::chrono::milliseconds> age() const noexcept
	{
		auto ms = ::pullet_age_ms(handle.get());

		if (ms < 0)
			return std::nullopt;
		return std::chrono::milliseconds(ms);
	}
	/* True when that is longer than the agent's longest delay, or not known. */
	bool stale() const noexcept
	{
		return ::pullet_stale(handle.get());
	}
	/* True while the agent publishes it no more; as it is now, without a refresh. */
	bool withdrawn() const noexcept
	{
		return ::pullet_withdrawn(handle.get());
	}

	/* Fills an aggregate from this version, or from what is below prefix. Its members are named
	 *by a function beside it:
	 *
	 *	struct database { std::string host; int port = 5432; };
	 *	void pullet_fields(pullet::decoder &d, database &to)
	 *	{
	 *		d.required("host", to.host);
	 *		d.optional("port", to.port);
	 *	}
	 *
	 * Throws decode_error. */
	template <class T> T decode(const std::string &prefix = "") const;
	/* The same, and a key that no member has is a problem, too. */
	template <class T> T decode_strict(const std::string &prefix = "") const;

	/* The path of the snapshot. */
	std::string_view path() const noexcept
	{
		return ::pullet_path(handle.get());
	}
	/* A descriptor for an event loop, as pullet_fd(3): refresh() once when it is readable.
	 * Owned by this object. Throws error. */
	int fd() const
	{
		int r = ::pullet_fd(handle.get());

		if (r < 0)
			throw error(r);
		return r;
	}

	/* For functions of pullet.h; still owned by this object. */
	::pullet_handle *native_handle() const noexcept
	{
		return handle.get();
	}

      private:
	struct closer {
		void operator()(::pullet_handle *p) const noexcept
		{
			::pullet_close(p);
		}
	};

	explicit config(::pullet_handle *p) noexcept : handle(p)
	{
	}

	static unsigned flags(first when) noexcept
	{
		return when == first::may_come ? PULLET_WAIT_FIRST : 0U;
	}

	static bool moved(int r)
	{
		if (r < 0)
			throw error(r);
		return r > 0;
	}

	bool wait_ms(int timeout_ms)
	{
		int r = ::pullet_wait(handle.get(), timeout_ms);

		return r == -EINTR ? false : moved(r);
	}

	std::unique_ptr<::pullet_handle, closer> handle;
};

/* A key of one config that is read often: looked up once a version. It moves with the config, works
 * where that is moved to, and is not used after its end. The name is borrowed: a
 * literal, as a rule. */
class key
{
      public:
	key(const config &c, std::string_view name) noexcept
	{
		::pullet_key_init(&k, c.native_handle(), name.data(), name.size());
	}
	template <class S, class = std::enable_if_t<std::is_same_v<S, std::string>>>
	key(const config &, S &&) = delete; /* it would end before the key does */

	/* As those of config without a name. */
	std::optional<value> find() noexcept
	{
		const value *v = ::pullet_key_get(&k);

		return v ? std::optional<value>(*v) : std::nullopt;
	}
	std::optional<std::string_view> get() noexcept
	{
		return detail::text_of(::pullet_key_get(&k));
	}
	template <class T> T get(T fallback) noexcept
	{
		return detail::read<T>(detail::by_key{&k}, fallback);
	}
	template <class T> T get_size(T fallback) noexcept
	{
		return detail::read_size<T>(detail::by_key{&k}, fallback);
	}

      private:
	::pullet_key k;
};

namespace detail
{
/* A name as a segment of a key. */
inline std::string escape(std::string_view name)
{
	std::string out;

	for (char c : name) {
		if (c == '.' || c == '\\')
			out += '\\';
		out += c;
	}
	return out;
}

template <class> struct list_of : std::false_type {
};
template <class T> struct list_of<std::vector<T>> : std::true_type {
};
template <class> struct map_of : std::false_type {
};
template <class T> struct map_of<std::map<std::string, T>> : std::true_type {
};
template <class> struct maybe_of : std::false_type {
};
template <class T> struct maybe_of<std::optional<T>> : std::true_type {
};
} // namespace detail

/* What pullet_fields() gets: reads the members of one aggregate. They are bool, integers, floating
 * types, std::string, std::chrono::milliseconds, aggregates with a pullet_fields() of their own,
 * and std::optional, std::vector and std::map<std::string, ...> of those. A value of another type
 * is an error, never the default. */
namespace detail
{

/* One character more, less or another one, or two that are swapped; not counting case, '-', '_'. */
inline bool is_near(std::string_view one, std::string_view other)
{
	std::string text[2];
	std::size_t same = 0;

	for (int i = 0; i < 2; i++)
		for (char c : i ? other : one)
			if (c != '-' && c != '_')
				text[i] += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
	std::string_view a = text[0], b = text[1];

	while (same < a.size() && same < b.size() && a[same] == b[same])
		same++;
	a.remove_prefix(same);
	b.remove_prefix(same);
	while (!a.empty() && !b.empty() && a.back() == b.back()) {
		a.remove_suffix(1);
		b.remove_suffix(1);
	}
	return (a.size() <= 1 && b.size() <= 1) ||
	       (a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0]);
}

/* What a decoder and those of what is in it have found. */
struct decode_notes {
	struct missing {
		std::size_t problem; /* which one */
		std::size_t name;    /* where the name begins that is missing in its key */
		std::size_t end;     /* and ends */
	};
	std::vector<decode_error::problem> problems;
	std::vector<missing> gone;
	std::set<std::string> asked; /* keys */
	bool strict = false;

	/* A key that nobody asked for, whose last name begins there: names the one that was, if it
	 * is nearly that and missing. */
	void unknown(const config &c, const std::string &key, std::size_t name)
	{
		std::string what = "is not known", parent = key.substr(0, name);

		for (auto i = asked.lower_bound(parent);
			i != asked.end() && key.size() - name >= 3 &&
			i->compare(0, name, parent) == 0;
			++i)
			if (end_of_name(*i, name) == i->size() && !c.find(*i) &&
				is_near(std::string_view(*i).substr(name),
					std::string_view(key).substr(name))) {
				what += ": did you mean " + *i + "?";
				break;
			}
		problems.push_back({key, what});
	}

	/* Adds to each missing key the one that may have been meant; throws, if there is a problem.
	 */
	void finish(const config &c)
	{
		if (problems.empty())
			return;
		for (const auto &m : gone) {
			auto &p = problems[m.problem];
			std::string near = find_near(c, p.key.substr(0, m.end), m.name);

			if (!near.empty())
				p.what += ": did you mean " + near + "?";
		}
		if (c.generation() == 0)
			throw decode_error(
				std::string(c.path()), why_empty(c), std::move(problems));
		else
			throw decode_error(
				std::string(c.path()), c.generation(), std::move(problems));
	}

      private:
	static std::size_t end_of_name(std::string_view key, std::size_t i)
	{
		while (i < key.size() && key[i] != '.')
			i += key[i] == '\\' ? 2u : 1u;
		return i;
	}
	static std::string why_empty(const config &c)
	{
		char why[512];

		return ::pullet_explain(std::string(c.path()).c_str(),
			c.withdrawn() ? -EIDRM : -ENOENT, why, sizeof(why));
	}

	std::string find_near(const config &c, const std::string &key, std::size_t name) const
	{
		std::string found;

		if (key.size() - name < 3)
			return found;
		c.for_each(key.substr(0, name), [&](std::string_view there, const value &) {
			std::size_t i = name;

			while (i < there.size() && there[i] != '.' &&
				static_cast<unsigned char>(there[i]) > ' ' && there[i] != 0x7f)
				i += there[i] == '\\' ? 2u : 1u;
			if (found.empty() && i == there.size() &&
				!asked.count(std::string(there)) &&
				is_near(there.substr(name), std::string_view(key).substr(name)))
				found = there;
		});
		return found;
	}
};

} // namespace detail

class decoder
{
      public:
	decoder(const config &from, std::string key, detail::decode_notes &notes,
		std::size_t last_name = 0)
	    : c(from), n(notes), at(std::move(key)), last_at(last_name)
	{
	}

	/* Missing or null is an error. */
	template <class T> void required(std::string_view name, T &to)
	{
		member(name).read(to, false);
	}
	/* Missing or null leaves it as it was. */
	template <class T> void optional(std::string_view name, T &to)
	{
		decoder d = member(name);

		if (d.is_there())
			d.read(to, false);
	}
	/* The same for bytes, as in "64KiB". */
	template <class T> void required_size(std::string_view name, T &to)
	{
		member(name).read(to, true);
	}
	template <class T> void optional_size(std::string_view name, T &to)
	{
		decoder d = member(name);

		if (d.is_there())
			d.read(to, true);
	}

	template <class T> void read(T &to, bool is_size)
	{
		if constexpr (detail::maybe_of<T>::value) {
			if (is_there())
				read(to.emplace(), is_size);
			else
				to.reset();
		} else if constexpr (detail::list_of<T>::value) {
			if (!is_container(PULLET_LIST, "a list"))
				return;
			to = T(static_cast<std::size_t>(last.count));
			for (std::size_t i = 0; i < to.size(); i++)
				child(std::to_string(i)).read(to[i], is_size);
		} else if constexpr (detail::map_of<T>::value) {
			if (!is_container(PULLET_MAP, "a mapping"))
				return;
			to.clear();
			for (const auto &each : members())
				child(each).read(to[each], is_size);
		} else if constexpr (std::is_same_v<T, std::string>) {
			if (!found())
				return;
			if (auto text = detail::text_of(&last))
				to = std::string(*text);
			else
				mismatch("a text");
		} else if constexpr (std::is_arithmetic_v<T> ||
				     std::is_same_v<T, std::chrono::milliseconds>) {
			scalar(to, is_size);
		} else {
			if (nested && !is_there())
				read_missing(to);
			else if (at.empty() || is_container(PULLET_MAP, "a mapping"))
				read_members(to);
		}
	}

      private:
	decoder child(std::string_view of) const
	{
		std::string key = detail::escape(of);
		decoder d = at.empty() ? decoder(c, key, n)
				       : decoder(c, at + "." + key, n, at.size() + 1);

		d.nested = true;
		d.last_end = empty ? last_end : d.at.size();
		if (empty)
			d.last_at = last_at;
		return d;
	}
	template <class T> void read_members(T &to)
	{
		pullet_fields(*this, to);
		if (!n.strict)
			return;
		for (const auto &each : members()) {
			decoder d = child(each);

			if (!n.asked.count(d.at))
				n.unknown(c, d.at, d.last_at);
		}
	}
	/* An aggregate that is missing is as an empty one: what it requires is missing then. */
	template <class T> void read_missing(T &to)
	{
		std::size_t before = n.problems.size();

		empty = true;
		pullet_fields(*this, to);
		if (n.problems.size() == before)
			found();
	}
	decoder member(std::string_view of) const
	{
		decoder d = child(of);

		n.asked.insert(d.at);
		return d;
	}

	/* Whether there is a value, then in last. */
	bool found()
	{
		auto v = c.find(at);

		if (v && v->type != PULLET_NULL) {
			last = *v;
			return true;
		}
		if (!v)
			n.gone.push_back(
				{n.problems.size(), last_at, nested ? last_end : at.size()});
		n.problems.push_back({at, v ? "is null" : "is missing"});
		return false;
	}
	bool is_there() const noexcept
	{
		auto v = c.find(at);

		return v && v->type != PULLET_NULL;
	}

	void mismatch(const std::string &wanted)
	{
		static const char *const names[] = {"null", "true or false", "an integer",
			"a number", "a text", "a list", "a mapping"};
		std::string is = names[last.type];

		if (wanted.rfind(is, 0) == 0 && last.type < PULLET_STRING)
			is += " that does not fit";
		else if (last.type == PULLET_STRING && wanted != "a list" && wanted != "a mapping")
			is += " of another form";
		n.problems.push_back({at, "must be " + wanted + ", but is " + is});
	}

	bool is_container(pullet_type type, const char *wanted)
	{
		if (!found())
			return false;
		if (last.type != type)
			mismatch(wanted);
		else if (last.count > c.size())
			throw error(-EBADMSG, std::string(c.path()));
		return last.type == type;
	}

	/* The names of a mapping's members. */
	std::vector<std::string> members() const
	{
		std::vector<std::string> names;
		std::string below = at.empty() ? at : at + ".";

		c.for_each(below, [&](std::string_view key, const value &) {
			std::string name;
			std::size_t i = below.size();

			for (; i < key.size() && key[i] != '.'; i++) {
				if (key[i] == '\\' && i + 1 < key.size())
					i++;
				name += key[i];
			}
			if (i == key.size())
				names.push_back(name);
		});
		return names;
	}

	/* Two fallbacks tell what is of the type, and fits, from what is not. */
	template <class T> void scalar(T &to, bool is_size)
	{
		T one{}, other{};
		const char *wanted = "a number such as 0.5 that fits";

		if (!found())
			return;
		if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
			other = T(1);
			wanted = "a duration such as 10s or 1h30m";
		} else {
			other = static_cast<T>(1);
		}
		if constexpr (std::is_same_v<T, bool>)
			wanted = "true or false";
		else if constexpr (std::is_integral_v<T>)
			wanted = is_size ? "a size such as 64KiB"
					 : "an integer such as 17 that fits";
		auto get = [&](T fallback) {
			if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
				if (is_size)
					return c.get_size(at, fallback);
			return c.get(at, fallback);
		};
		T a = get(one), b = get(other);
		if (a == one && b == other)
			mismatch(wanted);
		else
			to = a;
	}

	const config &c;
	detail::decode_notes &n;
	std::string at;
	std::size_t last_at; /* where the last name in it begins, that is not in a missing one */
	std::size_t last_end = 0; /* and ends */
	bool nested = false;      /* not what config::decode() is asked for */
	bool empty = false;       /* an aggregate that is missing */
	value last{};
};

namespace detail
{
template <class T> T decode(const config &from, const std::string &prefix, bool strict)
{
	T to{};
	decode_notes notes;

	notes.strict = strict;
	decoder(from, prefix, notes).read(to, false);
	notes.finish(from);
	return to;
}
} // namespace detail

template <class T> T config::decode(const std::string &prefix) const
{
	return detail::decode<T>(*this, prefix, false);
}
template <class T> T config::decode_strict(const std::string &prefix) const
{
	return detail::decode<T>(*this, prefix, true);
}

/* ---- for tests of applications ---- */

/* A scalar, or how many items or members: pullet::write() wants those of containers, too. */
using entry_value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

/* Writes a snapshot of scalars to a path, in place of the one there, whose next version it is:
 *
 *	pullet::write("./test.snap", {{"db.host", "test"}, {"db.port", 5432}});
 *
 * Throws error. For documents with lists and mappings there is `pullet build`. */
inline void write(const std::string &path,
	const std::vector<std::pair<std::string, entry_value>> &values,
	const std::string &version = "")
{
	std::vector<::pullet_entry> entries;
	std::vector<std::string> texts(values.size());

	for (std::size_t i = 0; i < values.size(); i++) {
		::pullet_entry e{};
		const auto &v = values[i].second;

		e.key = values[i].first.data();
		e.key_len = values[i].first.size();
		if (auto *b = std::get_if<bool>(&v)) {
			e.value.type = PULLET_BOOL;
			e.value.boolean = *b;
			texts[i] = *b ? "true" : "false";
		} else if (auto *n = std::get_if<std::int64_t>(&v)) {
			e.value.type = PULLET_INT;
			e.value.integer = *n;
			texts[i] = std::to_string(*n);
		} else if (auto *d = std::get_if<double>(&v)) {
			e.value.type = PULLET_DOUBLE;
			e.value.number = *d;
			char text[32];

			std::snprintf(text, sizeof(text), "%.17g", *d);
			texts[i] = text;
		} else if (auto *s = std::get_if<std::string>(&v)) {
			e.value.type = PULLET_STRING;
			texts[i] = *s;
		}
		e.value.text = texts[i].c_str();
		e.value.len = texts[i].size();
		entries.push_back(e);
	}
	int r = ::pullet_write(path.c_str(), entries.data(), entries.size(), version.c_str());
	if (r < 0)
		throw error(r, path);
}

} // namespace pullet

#endif

/* C++: pullet.hpp, std::unordered_map, getenv, libyaml. Called by languages.py. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
#include <yaml.h>

#include "../../../lib/cpp/pullet.hpp"

constexpr int HOT = 16, ROUNDS = 5;
using map = std::unordered_map<std::string, std::string>;

static map parse_file(const std::string &path)
{
	std::FILE *f = std::fopen(path.c_str(), "re");
	yaml_parser_t parser;
	yaml_event_t event;
	map all;
	std::string key;

	if (!f || !yaml_parser_initialize(&parser))
		std::exit(1);
	yaml_parser_set_input_file(&parser, f);
	for (bool end = false; !end; yaml_event_delete(&event)) {
		if (!yaml_parser_parse(&parser, &event))
			std::exit(1);
		end = event.type == YAML_STREAM_END_EVENT;
		if (event.type != YAML_SCALAR_EVENT)
			continue;
		std::string text(reinterpret_cast<const char *>(event.data.scalar.value),
			event.data.scalar.length);
		if (key.empty())
			key = std::move(text);
		else
			all.emplace(std::exchange(key, {}), std::move(text));
	}
	yaml_parser_delete(&parser);
	std::fclose(f);
	return all;
}

template <class F> static double measure(F read)
{
	volatile std::size_t sink = 0;
	auto run = [&](long n) {
		const std::clock_t begin = std::clock(); /* of the processor */
		for (long i = 0; i < n; i++)
			sink = sink + read(i % HOT);
		return 1e9 / CLOCKS_PER_SEC * double(std::clock() - begin);
	};
	double ns[ROUNDS];
	long n = 2;

	while (run(n) < 50e6)
		n *= 2;
	for (double &round : ns)
		round = run(n) / static_cast<double>(n);
	std::sort(ns, ns + ROUNDS);
	return ns[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	if (argc != 2 + HOT)
		return 64;
	const char *const *keys = argv + 2;
	const std::string dir = argv[1], file = dir + "/config.yaml";
	pullet::config config(dir + "/config.snap");
	const map all = parse_file(file);
	std::string names[HOT];
	std::vector<pullet::key> named;

	std::copy(keys, keys + HOT, names);
	for (int k = 0; k < HOT; k++)
		named.emplace_back(config, keys[k]);
	std::printf("%f %f %f %f %f %f YAML, libyaml\n",
		measure([&](int k) { return config.get(keys[k], std::string_view()).size(); }),
		measure([&](int k) { return named[k].get(std::string_view()).size(); }),
		measure([&](int) { return std::size_t(config.refresh()); }),
		measure([&](int k) { return all.find(names[k])->second.size(); }),
		measure([&](int k) { return std::string_view(std::getenv(keys[k])).size(); }),
		measure([&](int k) { return parse_file(file).find(names[k])->second.size(); }));
}

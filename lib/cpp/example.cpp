/*
 * Prints a config, then each change to it: example NAME_OR_PATH.
 * c++ -std=c++17 -o example example.cpp -lpullet
 */
#include "pullet.hpp"

#include <iostream>

static void show(const pullet::config &config)
{
	std::cout << "# generation " << config.generation() << ", version " << config.version()
		  << (config.stale() ? ", stale\n" : "\n");
	config.for_each("", [](std::string_view key, const pullet::value &v) {
		if (v.type < PULLET_LIST)
			std::cout << key << " = " << std::string_view(v.text, v.len) << '\n';
	});
	std::cout << "db.host, or localhost: "
		  << config.get<std::string_view>("db.host", "localhost") << std::endl;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::cerr << "usage: example NAME_OR_PATH\n";
		return 2;
	}
	try {
		pullet::config config(argv[1]);

		do
			show(config);
		while (config.wait());
	} catch (const pullet::error &e) {
		std::cerr << "example: " << e.what() << '\n';
		return 1;
	}
}

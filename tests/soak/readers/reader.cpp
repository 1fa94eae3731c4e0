/* The soak's reader in C++, which does what reader.c does. */
#include <cstdio>
#include <string>
#include <vector>

#include "cpp/pullet.hpp"

using namespace std::chrono_literals;

namespace
{
const char *const keys[] = {"n", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10",
	"k11", "pad", "end"};
long versions;

struct reader {
	std::string name;
	pullet::config config;
	std::uint64_t generation = 0;
	long n = 0;
	bool ended = false;

	explicit reader(const char *name) : name(name), config(name, pullet::first::may_come)
	{
		if (config.generation())
			check_version();
	}

	void check_version()
	{
		std::uint32_t sum = 2166136261U;
		auto now = config.generation();
		auto number = config.get<long>("n", -1);

		for (auto key : keys)
			for (auto letter :
				std::string(config.get<std::string_view>(key, "")) + "\n")
				sum = (sum ^ static_cast<unsigned char>(letter)) * 16777619U;
		if (config.get<std::uint32_t>("sum", 0) != sum)
			std::printf("wrong: %s, version %ld: the sum is %s, of what is there %u\n",
				name.c_str(), number, config.get<const char *>("sum", "none"), sum);
		if (now < generation || number < n)
			std::printf("wrong: %s went back from version %ld of generation %llu to "
				    "%ld of %llu\n",
				name.c_str(), n, static_cast<unsigned long long>(generation),
				number, static_cast<unsigned long long>(now));
		generation = now;
		n = number;
		ended = config.get<std::string_view>("end", "") == "yes";
		versions++;
	}

	void move_on(bool wait)
	{
		try {
			if (wait ? config.wait(20ms) : config.refresh())
				check_version();
		} catch (const pullet::error &e) {
			std::printf("wrong: %s: %s\n", name.c_str(), e.what());
		}
	}
};
} // namespace

int main(int argc, char **argv)
{
	std::vector<reader> readers;
	std::size_t ended = 0;

	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		readers.emplace_back(argv[i]);
	for (std::size_t turn = 0; ended < readers.size(); turn = (turn + 1) % readers.size()) {
		readers[turn].move_on(true);
		ended = 0;
		for (auto &one : readers) {
			one.move_on(false);
			ended += one.ended;
		}
	}
	std::printf("C++: %ld versions\n", versions);
}

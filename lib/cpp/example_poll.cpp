/*
 * A program with an event loop of its own: poll(2) on the config and on standard input, no thread.
 * example_poll NAME_OR_PATH; c++ -std=c++17 -o example_poll example_poll.cpp -lpullet
 */
#include "pullet.hpp"

#include <iostream>
#include <poll.h>

struct settings {
	std::string host = "localhost";
	std::chrono::milliseconds every = std::chrono::seconds(10);
};

static void pullet_fields(pullet::decoder &d, settings &to)
{
	d.optional("host", to.host);
	d.optional("poll", to.every);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::cerr << "usage: example_poll NAME_OR_PATH\n";
		return 2;
	}
	try {
		pullet::config config(argv[1], pullet::first::may_come);
		pollfd fds[] = {{config.fd(), POLLIN, 0}, {0, POLLIN, 0}};

		for (std::string line; poll(fds, 2, -1) > 0;) {
			if (fds[1].revents && !std::getline(std::cin, line))
				break;
			if (fds[0].revents && config.refresh()) {
				auto now = config.decode<settings>();

				std::cout << config.generation() << ": " << now.host << " every "
					  << now.every.count() << " ms" << std::endl;
			}
		}
	} catch (const std::exception &e) {
		std::cerr << "example_poll: " << e.what() << '\n';
		return 1;
	}
}

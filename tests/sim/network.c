/* Zones and partitions. Surprising: a partition ends by itself, as time passes. */
#include "tests/sim/network.h"

#include <string.h>

#include "tests/sim/world.h"

static struct {
	unsigned zone_of[NETWORK_NODES];
	uint64_t alone_until_us[NETWORK_NODES];
	uint64_t parted_until_us[NETWORK_ZONES][NETWORK_ZONES];
} network;

void network_begin(void)
{
	memset(&network, 0, sizeof(network));
}

void network_place(unsigned node, unsigned zone)
{
	network.zone_of[node] = zone;
}

unsigned network_zone(unsigned node)
{
	return network.zone_of[node];
}

void network_isolate(unsigned node, uint64_t until_us)
{
	network.alone_until_us[node] = until_us;
}

void network_part(unsigned from, unsigned to, uint64_t until_us)
{
	network.parted_until_us[from][to] = until_us;
}

void network_heal(void)
{
	memset(network.alone_until_us, 0, sizeof(network.alone_until_us));
	memset(network.parted_until_us, 0, sizeof(network.parted_until_us));
}

bool network_reaches(unsigned from, unsigned to)
{
	return network.alone_until_us[from] <= world.now_us &&
	       network.alone_until_us[to] <= world.now_us &&
	       network.parted_until_us[network.zone_of[from]][network.zone_of[to]] <= world.now_us;
}

/*
 * Runs in:   broodd
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "supervisor/pool.h"

unsigned sup_pool_alive(const struct sup_pool *pool)
{
	return pool->warming + pool->parked + pool->running + pool->dying;
}

unsigned sup_pool_forks_wanted(const struct sup_pool *pool, const struct sup_pool_rules *rules, size_t queued)
{
	unsigned alive = sup_pool_alive(pool);
	unsigned ready = pool->warming + pool->parked;
	size_t wanted = rules->parked_target + queued;
	unsigned room;

	if (wanted <= ready || alive >= rules->workers_max || pool->warming >= SUP_POOL_FORKS_IN_FLIGHT)
		return 0;
	wanted -= ready;
	room = rules->workers_max - alive;
	if (room > SUP_POOL_FORKS_IN_FLIGHT - pool->warming)
		room = SUP_POOL_FORKS_IN_FLIGHT - pool->warming;
	return wanted < room ? (unsigned)wanted : room;
}

unsigned sup_pool_surplus(const struct sup_pool *pool, const struct sup_pool_rules *rules)
{
	unsigned ready = pool->warming + pool->parked;
	unsigned surplus;

	if (ready <= rules->parked_target)
		return 0;
	surplus = ready - rules->parked_target;
	return surplus < pool->parked ? surplus : pool->parked;
}

unsigned sup_pool_client_share(const struct sup_pool_rules *rules, size_t clients)
{
	if (clients <= 1 || rules->workers_max < 4)
		return rules->workers_max;
	return rules->workers_max - rules->workers_max / 4;
}

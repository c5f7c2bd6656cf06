/*
 * How many workers a profile should fork now. Pure arithmetic over counts: no I/O, no clock, no allocation.
 */
#ifndef BROOD_SUPERVISOR_POOL_H
#define BROOD_SUPERVISOR_POOL_H

#include <stddef.h>

/* Workers of one profile by what they are doing. */
struct sup_pool {
	unsigned warming; /* FORK sent, PARKED not come yet */
	unsigned parked;
	unsigned running;
	unsigned
		dying; /* killed or finished, EXITED not come yet: they still hold memory and a place in the zygote's table */
};

struct sup_pool_rules {
	unsigned parked_target; /* workers kept waiting ahead of need */
	unsigned workers_max;	/* most workers alive at once */
};

/* Most FORKs without an answer at once: enough to keep every core busy, few enough that a zygote's death wastes little. */
#define SUP_POOL_FORKS_IN_FLIGHT 8

unsigned sup_pool_alive(const struct sup_pool *pool);

/* Workers to fork now, given how many calls wait for one. */
unsigned sup_pool_forks_wanted(const struct sup_pool *pool, const struct sup_pool_rules *rules, size_t queued);

/* Parked workers beyond need, to be retired (after the rules have become smaller). */
unsigned sup_pool_surplus(const struct sup_pool *pool, const struct sup_pool_rules *rules);

/*
 * Most workers that one client may occupy at once: all of them while it is alone, three quarters when others are
 * connected, so that a client that fills the pool with long calls does not lock the others out.
 */
unsigned sup_pool_client_share(const struct sup_pool_rules *rules, size_t clients);

#endif

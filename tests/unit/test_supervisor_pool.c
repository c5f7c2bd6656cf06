/* How many workers to fork: the pool's arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/pool.h"

static const struct sup_pool_rules RULES = {.parked_target = 4, .workers_max = 16};

static void test_an_empty_pool_fills_to_its_target(void **state)
{
	struct sup_pool pool = {0};

	(void)state;
	assert_int_equal(sup_pool_forks_wanted(&pool, &RULES, 0), 4);
	pool.warming = 3;
	assert_int_equal(sup_pool_forks_wanted(&pool, &RULES, 0), 1);
	pool.parked = 1;
	assert_int_equal(sup_pool_forks_wanted(&pool, &RULES, 0), 0);
}

static void test_waiting_calls_add_to_the_need(void **state)
{
	struct sup_pool pool = {0};

	(void)state;
	assert_int_equal(sup_pool_forks_wanted(&pool, &RULES, 2), 6);
	assert_int_equal(sup_pool_forks_wanted(&pool, &RULES, 1000000), SUP_POOL_FORKS_IN_FLIGHT);
}

static void test_never_more_alive_than_allowed(void **state)
{
	(void)state;
	for (unsigned running = 0; running <= 16; running++) {
		for (unsigned dying = 0; running + dying <= 16; dying++) {
			struct sup_pool pool = {.running = running, .dying = dying};
			unsigned wanted = sup_pool_forks_wanted(&pool, &RULES, 50);

			assert_true(wanted + sup_pool_alive(&pool) <= RULES.workers_max);
			if (sup_pool_alive(&pool) < RULES.workers_max)
				assert_true(wanted > 0);
		}
	}
}

static void test_surplus_is_parked_workers_only(void **state)
{
	struct sup_pool pool = {.warming = 3, .parked = 2};

	(void)state;
	assert_int_equal(sup_pool_surplus(&pool, &RULES), 1);
	pool.parked = 0;
	pool.warming = 9;
	assert_int_equal(sup_pool_surplus(&pool, &RULES), 0);
}

static void test_a_target_above_the_maximum_is_harmless(void **state)
{
	const struct sup_pool_rules rules = {.parked_target = 10, .workers_max = 2};
	struct sup_pool pool = {0};

	(void)state;
	assert_int_equal(sup_pool_forks_wanted(&pool, &rules, 0), 2);
	pool.parked = 2;
	assert_int_equal(sup_pool_forks_wanted(&pool, &rules, 5), 0);
}

static void test_one_client_alone_may_use_all_and_among_others_three_quarters(void **state)
{
	const struct sup_pool_rules small = {.parked_target = 1, .workers_max = 2};

	(void)state;
	assert_int_equal(sup_pool_client_share(&RULES, 1), 16);
	assert_int_equal(sup_pool_client_share(&RULES, 2), 12);
	assert_int_equal(sup_pool_client_share(&small, 5), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_pool_fills_to_its_target),
		cmocka_unit_test(test_waiting_calls_add_to_the_need),
		cmocka_unit_test(test_never_more_alive_than_allowed),
		cmocka_unit_test(test_surplus_is_parked_workers_only),
		cmocka_unit_test(test_a_target_above_the_maximum_is_harmless),
		cmocka_unit_test(test_one_client_alone_may_use_all_and_among_others_three_quarters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The waiting calls: first in first out for one client, turn by turn between clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/queue.h"

#define ITEMS 300

static struct sup_queue queue;
static struct sup_lane lanes[3];
static struct sup_queue_item items[3][ITEMS];

static int setup(void **state)
{
	(void)state;
	sup_queue_init(&queue);
	for (int i = 0; i < 3; i++) {
		sup_lane_init(&lanes[i], &queue, NULL);
		for (int j = 0; j < ITEMS; j++)
			items[i][j].lane = NULL;
	}
	return 0;
}

static void test_one_lane_is_first_in_first_out(void **state)
{
	(void)state;
	for (int j = 0; j < ITEMS; j++)
		sup_queue_push(&lanes[0], &items[0][j]);
	assert_int_equal(queue.count, ITEMS);
	for (int j = 0; j < ITEMS; j++)
		assert_ptr_equal(sup_queue_pop(&queue), &items[0][j]);
	assert_null(sup_queue_pop(&queue));
	assert_int_equal(queue.count, 0);
}

static void test_a_single_call_waits_one_turn_behind_many(void **state)
{
	(void)state;
	for (int j = 0; j < 200; j++)
		sup_queue_push(&lanes[0], &items[0][j]);
	sup_queue_push(&lanes[1], &items[1][0]);
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][0]);
	assert_ptr_equal(sup_queue_pop(&queue), &items[1][0]);
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][1]);
}

static void test_lanes_take_turns(void **state)
{
	(void)state;
	for (int j = 0; j < 50; j++) {
		for (int i = 0; i < 3; i++)
			sup_queue_push(&lanes[i], &items[i][j]);
	}
	for (int j = 0; j < 50; j++) {
		for (int i = 0; i < 3; i++)
			assert_ptr_equal(sup_queue_pop(&queue), &items[i][j]);
	}
}

static void test_a_held_lane_is_passed_over_and_keeps_its_turn(void **state)
{
	(void)state;
	sup_queue_push(&lanes[0], &items[0][0]);
	sup_queue_push(&lanes[1], &items[1][0]);
	lanes[0].held = true;
	assert_ptr_equal(sup_queue_pop(&queue), &items[1][0]);
	assert_null(sup_queue_pop(&queue));
	assert_int_equal(queue.count, 1);
	lanes[0].held = false;
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][0]);
}

static void test_removal_from_the_middle_and_twice(void **state)
{
	(void)state;
	for (int j = 0; j < 3; j++)
		sup_queue_push(&lanes[0], &items[0][j]);
	sup_queue_remove(&items[0][1]);
	sup_queue_remove(&items[0][1]);
	assert_int_equal(queue.count, 2);
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][0]);
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][2]);
	assert_null(sup_queue_pop(&queue));
	/* An emptied lane is out of the turns and can come back. */
	sup_queue_push(&lanes[0], &items[0][1]);
	assert_ptr_equal(sup_queue_pop(&queue), &items[0][1]);
}

/* Against a model: any sequence of operations keeps the count and loses nothing. */
static void test_random_operations_lose_nothing(void **state)
{
	uint32_t seed = 12345;
	size_t pushed = 0, left = 0;
	int next[3] = {0, 0, 0}, expected[3] = {0, 0, 0};

	(void)state;
	for (int step = 0; step < 800; step++) {
		int lane = (int)((seed = seed * 1664525u + 1013904223u) >> 24) % 3;
		struct sup_queue_item *item;

		if (((seed >> 16) & 3) != 0 && next[lane] < ITEMS) {
			sup_queue_push(&lanes[lane], &items[lane][next[lane]++]);
			pushed++;
		} else if ((item = sup_queue_pop(&queue)) != NULL) {
			int from = item >= items[2] ? 2 : item >= items[1] ? 1 : 0;

			assert_ptr_equal(item, &items[from][expected[from]++]);
			left++;
		}
		assert_int_equal(queue.count, pushed - left);
	}
	while (sup_queue_pop(&queue))
		left++;
	assert_int_equal(pushed, left);
	assert_true(pushed > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_lane_is_first_in_first_out, setup),
		cmocka_unit_test_setup(test_a_single_call_waits_one_turn_behind_many, setup),
		cmocka_unit_test_setup(test_lanes_take_turns, setup),
		cmocka_unit_test_setup(test_a_held_lane_is_passed_over_and_keeps_its_turn, setup),
		cmocka_unit_test_setup(test_removal_from_the_middle_and_twice, setup),
		cmocka_unit_test_setup(test_random_operations_lose_nothing, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

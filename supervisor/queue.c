/*
 * Runs in:   broodd
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "supervisor/queue.h"

void sup_queue_init(struct sup_queue *queue)
{
	TAILQ_INIT(&queue->lanes);
	queue->count = 0;
}

void sup_lane_init(struct sup_lane *lane, struct sup_queue *queue, void *owner)
{
	TAILQ_INIT(&lane->items);
	lane->queue = queue;
	lane->owner = owner;
	lane->held = false;
}

void sup_queue_push(struct sup_lane *lane, struct sup_queue_item *item)
{
	struct sup_queue *queue = lane->queue;

	if (TAILQ_EMPTY(&lane->items))
		TAILQ_INSERT_TAIL(&queue->lanes, lane, link);
	TAILQ_INSERT_TAIL(&lane->items, item, link);
	item->lane = lane;
	queue->count++;
}

void sup_queue_remove(struct sup_queue_item *item)
{
	struct sup_lane *lane = item->lane;

	if (!lane)
		return;
	TAILQ_REMOVE(&lane->items, item, link);
	item->lane = NULL;
	lane->queue->count--;
	if (TAILQ_EMPTY(&lane->items))
		TAILQ_REMOVE(&lane->queue->lanes, lane, link);
}

struct sup_queue_item *sup_queue_pop(struct sup_queue *queue)
{
	struct sup_queue_item *item;
	struct sup_lane *lane;

	TAILQ_FOREACH(lane, &queue->lanes, link)
	{
		if (!lane->held)
			break;
	}
	if (!lane)
		return NULL;
	item = TAILQ_FIRST(&lane->items);
	TAILQ_REMOVE(&queue->lanes, lane, link);
	TAILQ_INSERT_TAIL(&queue->lanes, lane, link);
	sup_queue_remove(item);
	return item;
}

/*
 * The waiting calls of one profile: a lane for each client that waits, first in first out inside a lane, one call of each lane in
 * turn. So a client that sends two hundred calls delays another's single call by one turn, not by two hundred.
 *
 * Pure bookkeeping: no I/O, no allocation, no clock. Items and lanes live inside their owners' structures.
 */
#ifndef BROOD_SUPERVISOR_QUEUE_H
#define BROOD_SUPERVISOR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct sup_lane;

struct sup_queue_item {
	TAILQ_ENTRY(sup_queue_item) link;
	struct sup_lane *lane; /* NULL when the item is in no queue */
};

struct sup_lane {
	TAILQ_HEAD(, sup_queue_item) items;
	TAILQ_ENTRY(sup_lane) link; /* in its queue, while it has items */
	struct sup_queue *queue;
	void *owner; /* whose lane it is; the queue does not look at it */
	bool held;   /* not served now, for example because the client does not read its answers */
};

struct sup_queue {
	TAILQ_HEAD(, sup_lane) lanes; /* in the order of their turns */
	size_t count;
};

void sup_queue_init(struct sup_queue *queue);
void sup_lane_init(struct sup_lane *lane, struct sup_queue *queue, void *owner);

/* Last in its lane; a lane that was empty takes its turn after all others. The item must be in no queue. */
void sup_queue_push(struct sup_lane *lane, struct sup_queue_item *item);

/* The next item of the first lane that is not held, taken out; its lane goes to the end. NULL when there is none. */
struct sup_queue_item *sup_queue_pop(struct sup_queue *queue);

/* Takes the item out wherever it stands; does nothing when it is in no queue. */
void sup_queue_remove(struct sup_queue_item *item);

#endif

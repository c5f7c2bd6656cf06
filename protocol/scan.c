/*
 * Runs in:   every process
 * Trusts:    nothing
 * Blocks on: nothing
 *
 * A MessagePack value is a head, and for some types a payload of bytes or a number of further values. So a scan is a walk from head to head
 * with a stack that says how many values each open container still lacks. A value that would be incomplete is not entered: `pos`
 * stays at its head until all of its own bytes (for a container: its head) are there.
 */
#include "protocol/scan.h"

#include <stdbool.h>

#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/head.h"

void brood_scan_init(struct brood_scan *scan, size_t max_bytes, unsigned max_depth)
{
	scan->max_bytes = max_bytes;
	scan->pos = 0;
	scan->max_depth = max_depth < BROOD_SCAN_DEPTH ? max_depth : BROOD_SCAN_DEPTH;
	scan->depth = scan->top = 0;
	scan->failed = 0;
	scan->level[0] = (struct brood_scan_level){.left = 1, .limit = max_bytes};
}

static int enter(struct brood_scan *scan, uint64_t values, size_t limit, bool exact)
{
	if (exact && scan->level[scan->top].exact)
		return BROOD_E_MALFORMED; /* an extension directly inside an extension: no type is made so */
	if (!exact && ++scan->depth > scan->max_depth)
		return BROOD_E_TOO_DEEP;
	scan->top++;
	scan->level[scan->top] = (struct brood_scan_level){.left = values, .limit = limit, .exact = exact};
	return 0;
}

/* Something reaches beyond the innermost limit: that of the whole value, or of the extension that it lies in. */
static int beyond(const struct brood_scan *scan)
{
	return scan->level[scan->top].limit == scan->max_bytes ? BROOD_E_TOO_LARGE : BROOD_E_MALFORMED;
}

/* Leaves every container that has all its values. 1 when the outermost value is whole. */
static int leave_full(struct brood_scan *scan)
{
	while (scan->level[scan->top].left == 0) {
		const struct brood_scan_level *level = &scan->level[scan->top];

		if (level->exact && scan->pos != level->limit)
			return BROOD_E_MALFORMED; /* a nested extension holds more than its one value */
		if (scan->top == 0)
			return 1;
		if (!level->exact)
			scan->depth--;
		scan->top--;
	}
	return 0;
}

/* Reads the head at pos: 1 when it is whole, 0 when more bytes are needed. */
static int look(const struct brood_scan *scan, const uint8_t *data, size_t len, struct brood_head *head)
{
	size_t limit = scan->level[scan->top].limit;
	int result;

	if (scan->pos >= limit)
		return beyond(scan);
	result = scan->pos < len ? brood_head_read(data + scan->pos, len - scan->pos, head) : 0;
	/* A head that is not whole at the limit would reach beyond it. To ask for more would let its sender wait for ever. */
	return result == 0 && len >= limit ? beyond(scan) : result;
}

/* The head at pos is known and its own bytes are `head.size` long. */
static int step(struct brood_scan *scan, const uint8_t *data, size_t len, const struct brood_head *head)
{
	size_t limit = scan->level[scan->top].limit, room = limit - scan->pos;
	bool nested = head->type == BROOD_T_EXT && brood_ext_is_nested(head->ext_type);
	uint64_t values = head->type == BROOD_T_MAP ? 2 * (uint64_t)head->count : head->count;

	/* Declared lengths are judged before their bytes come; each value of a container takes at least one byte. */
	if (head->size > room || head->payload > room - head->size)
		return beyond(scan);
	if (head->type == BROOD_T_ARRAY || head->type == BROOD_T_MAP) {
		if (values > room - head->size)
			return beyond(scan);
		scan->level[scan->top].left--;
		scan->pos += head->size;
		return enter(scan, values, limit, false);
	}
	if (nested) {
		scan->level[scan->top].left--;
		scan->pos += head->size;
		return enter(scan, 1, scan->pos + head->payload, true);
	}
	if (len - scan->pos < head->size + head->payload)
		return 1; /* not all there yet */
	if (head->type == BROOD_T_STR && !brood_utf8_valid(data + scan->pos + head->size, head->payload))
		return BROOD_E_UTF8;
	scan->level[scan->top].left--;
	scan->pos += head->size + head->payload;
	return 0;
}

int brood_scan_feed(struct brood_scan *scan, const uint8_t *data, size_t len, size_t *end)
{
	while (scan->failed == 0) {
		struct brood_head head;
		int result = leave_full(scan);

		if (result == 1) {
			*end = scan->pos;
			return 1;
		}
		if (result == 0)
			result = look(scan, data, len, &head);
		if (result == 0)
			return 0;
		if (result > 0)
			result = step(scan, data, len, &head);
		if (result > 0)
			return 0;
		scan->failed = result;
	}
	return scan->failed;
}

int brood_scan_whole(const uint8_t *data, size_t len, unsigned max_depth)
{
	struct brood_scan scan;
	size_t end;
	int result;

	brood_scan_init(&scan, len, max_depth);
	result = brood_scan_feed(&scan, data, len, &end);
	/* The bound is the data's own length here: to reach beyond it is to be cut short. */
	if (result == 0 || result == BROOD_E_TOO_LARGE)
		return BROOD_E_MALFORMED;
	if (result < 0)
		return result;
	return end == len ? 0 : BROOD_E_MALFORMED;
}

/*
 * The scanner: however the input is sliced, it says the same; an end it finds is inside; it never asks for more than it would take; the reader
 * then reads what it passed.
 */
#include <stdlib.h>

#include "protocol/reader.h"
#include "protocol/scan.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brood_scan scan;
	struct brood_reader r;
	struct brood_slice any;
	size_t end = 0, end_sliced = 0, step, max;
	unsigned depth;
	int once, sliced = 0;

	if (size < 2)
		return 0;
	step = data[0] % 7 + 1u;
	max = data[0] & 0x80 ? 16 : 4096;
	depth = data[1] % (BROOD_SCAN_DEPTH + 1);
	data += 2;
	size -= 2;
	brood_scan_init(&scan, max, depth);
	once = brood_scan_feed(&scan, data, size, &end);
	brood_scan_init(&scan, max, depth);
	for (size_t len = 0; sliced == 0; len += step) {
		sliced = brood_scan_feed(&scan, data, len < size ? len : size, &end_sliced);
		if (len >= size)
			break;
	}
	if (once != sliced || (once == 1 && (end != end_sliced || end > size || end > max)))
		abort();
	if (once == 0 && size >= max)
		abort();
	if (once != 1)
		return 0;
	brood_reader_init(&r, data, end);
	if (brood_read_any(&r, &any) < 0 || any.len != end)
		abort();
	return 0;
}

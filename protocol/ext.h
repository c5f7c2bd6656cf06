/* MessagePack extension types of values. PROTOCOL.md, part 2, is their definition. */
#ifndef BROOD_PROTOCOL_EXT_H
#define BROOD_PROTOCOL_EXT_H

#include <stdbool.h>

enum brood_ext {
	BROOD_EXT_BIGINT = 1,
	BROOD_EXT_SURROGATE_STR = 2,
	BROOD_EXT_TUPLE = 3,
	BROOD_EXT_SET = 4,
	BROOD_EXT_FROZENSET = 5,
	BROOD_EXT_DATE = 6,
	BROOD_EXT_TIME = 7,
	BROOD_EXT_DATETIME = 8,
	BROOD_EXT_TIMEDELTA = 9,
	BROOD_EXT_COMPLEX = 10,
	BROOD_EXT_TYPED = 11,
	BROOD_EXT_OPAQUE = 12,
	BROOD_EXT_CUT = 13,
	BROOD_EXT_TIMESTAMP = -1, /* MessagePack's own */
};

/*
 * Types whose payload is itself one MessagePack value. The scanner walks into it, so that a reader that decodes it
 * meets neither bad bytes nor more nesting than the limit.
 */
static inline bool brood_ext_is_nested(int type)
{
	return type >= BROOD_EXT_TUPLE && type <= BROOD_EXT_CUT;
}

#endif

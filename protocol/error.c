/*
 * Runs in:   every process
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "protocol/error.h"

const char *brood_strerror(int error)
{
	if (error >= 0)
		return "no error";
	switch ((enum brood_error)error) {
	case BROOD_E_MALFORMED:
		return "malformed MessagePack";
	case BROOD_E_TOO_LARGE:
		return "larger than allowed";
	case BROOD_E_TOO_DEEP:
		return "nested deeper than allowed";
	case BROOD_E_UTF8:
		return "a str that is not UTF-8";
	case BROOD_E_TYPE:
		return "a value of the wrong type";
	case BROOD_E_RANGE:
		return "a number out of its range";
	case BROOD_E_SYNTAX:
		return "text that does not parse";
	case BROOD_E_MISSING:
		return "a required field is missing";
	case BROOD_E_UNKNOWN:
		return "an unknown field or name";
	case BROOD_E_STATE:
		return "a message that may not be sent now";
	case BROOD_E_MEMORY:
		return "out of memory";
	}
	return "unknown error";
}

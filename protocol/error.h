/*
 * Error codes of the shared code: all negative, so that 0 and positive results are good.
 * Functions that return them neither log nor exit, and leave their outputs untouched.
 */
#ifndef BROOD_PROTOCOL_ERROR_H
#define BROOD_PROTOCOL_ERROR_H

enum brood_error {
	BROOD_E_MALFORMED = -1000, /* not MessagePack, or not a message of the protocol */
	BROOD_E_TOO_LARGE,	   /* longer than the caller allows, by its declared or its real length */
	BROOD_E_TOO_DEEP,	   /* nested deeper than the caller allows */
	BROOD_E_UTF8,		   /* a str that is not UTF-8 */
	BROOD_E_TYPE,		   /* well formed, but of another type than asked for */
	BROOD_E_RANGE,		   /* a number outside its range */
	BROOD_E_SYNTAX,		   /* text that does not parse */
	BROOD_E_MISSING,	   /* a required field is absent */
	BROOD_E_UNKNOWN,	   /* a field or name that is not known */
	BROOD_E_STATE,		   /* a message that its sender may not send now */
	BROOD_E_MEMORY,		   /* out of memory */
};

/* A short English phrase, never NULL, static. */
const char *brood_strerror(int error);

#endif

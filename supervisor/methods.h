/* The methods that a client may call. PROTOCOL.md, part 1. */
#ifndef BROOD_SUPERVISOR_METHODS_H
#define BROOD_SUPERVISOR_METHODS_H

#include <stddef.h>
#include <stdint.h>

struct sup_client;

/* One whole message that the scanner has judged. It is answered, or a call begins; the client may be dead afterwards. */
void sup_methods_handle(struct sup_client *client, const uint8_t *message, size_t len);

/* Tells the client that its bytes are no messages. */
void sup_methods_malformed(struct sup_client *client, const char *reason);

#endif

/* descriptor_message.h: a message on a socket between processes, with an open file beside it. */
#ifndef TA_ANALYSIS_CLI_DESCRIPTOR_MESSAGE_H
#define TA_ANALYSIS_CLI_DESCRIPTOR_MESSAGE_H

#include <stddef.h>

/* `descriptor` goes along unless it is negative. 0, or -1 with errno; never a signal. */
int cli_send_with_descriptor(int socket, const void *bytes, size_t length, int descriptor);

#endif

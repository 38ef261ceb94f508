/* channel_client.h: asks a running process through its channel: start, stop, snapshots. The protocol is in
 * snapshot/triggers/channel.h. */
#ifndef TA_ANALYSIS_CLI_CHANNEL_CLIENT_H
#define TA_ANALYSIS_CLI_CHANNEL_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor for cli_channel_ask; -1 when the process has no channel that we may use, and *why, unless why is NULL,
 * says so in words that stay. */
int cli_channel_open(pid_t process, const char **why);

struct cli_channel_answer {
    char text[8192]; /* lines KEY=VALUE; why not, where it was refused */
};
/* CLI_OK; CLI_NO when it was refused; CLI_TROUBLE when nobody answers (within half a minute): text says why. `descriptor` goes along
 * unless it is -1. */
int cli_channel_ask(int channel, const char *request, int descriptor, struct cli_channel_answer *answer);
/* Of an answer: the number, 0 when it is not there; the text up to the line's end, "" when it is not there. */
uint64_t cli_channel_number(const struct cli_channel_answer *answer, const char *key);
void cli_channel_value(const struct cli_channel_answer *answer, const char *key, char *value, size_t room);

#endif

/* descriptor_message.c: see descriptor_message.h. */
#include "analysis/cli/descriptor_message.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int cli_send_with_descriptor(int socket, const void *bytes, size_t length, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* frameless.c: a daemon without frame pointers, optimised, and with a part of it in objects without unwind tables, where
 * stacks end. Connections lose the name of their peer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct connection {
    char *peer;
    char buffer[512];
};

__attribute__((noinline)) static char *name_peer(int number)
{
    char name[128];
    snprintf(name, sizeof name, "%090d.example.org", number);
    return strdup(name); /* planted */
}

__attribute__((noinline)) static struct connection *accept_connection(int number)
{
    struct connection *connection = calloc(1, sizeof *connection);
    connection->peer = name_peer(number);
    return connection;
}

__attribute__((noinline)) static void close_connection(struct connection *connection)
{
    free(connection); /* and the peer? */
}

int main(int argc, char **argv)
{
    int connections = argc > 1 ? atoi(argv[1]) : 3000;
    for (int i = 0; i < connections; i++) {
        close_connection(accept_connection(i));
        usleep(200);
    }
    return 0;
}

/* debug_http.h: what a program under tracealloc can tell of its memory over HTTP, for any program with libmicrohttpd.
 *
 *      GET /metrics                          Prometheus: traced memory, domains, limits
 *      GET /debug/pprof/heap                 a profile: go tool pprof -http=:8000 http://host:port/debug/pprof/heap
 *      GET /debug/heap[?format=F[&order=O]]  a report in words; F: flame, folded, speedscope, csv, jsonl, json, python …
 *      GET /debug/heap/start[?frames=N], /debug/heap/stop
 *
 * Serve it on a port that only operators reach. */
#ifndef DEBUG_HTTP_H
#define DEBUG_HTTP_H

#include <microhttpd.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Within a handler of one's own: the answer for one of the paths above, or NULL when the path is none. */
struct MHD_Response *debug_http_answer(struct MHD_Connection *connection, const char *path, unsigned *status);

/* A daemon of its own on this port of the local host, on a thread of its own; NULL when the port cannot be had. Stop it
 * with MHD_stop_daemon. */
struct MHD_Daemon *debug_http_start(unsigned short port);

#if defined(__cplusplus)
}
#endif

#endif

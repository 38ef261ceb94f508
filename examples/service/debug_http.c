/* debug_http.c: see debug_http.h. What this server itself allocates is in a domain of its own. */
#include "debug_http.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc.h>
#include <tracealloc/domain.h>
#include <tracealloc/export.h>

enum { DEBUG_DOMAIN = 900 };

static struct MHD_Response *text_answer(const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(size_t)text, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
    return response;
}

static struct MHD_Response *trouble(unsigned *status)
{
    char text[1024] = "";
    *status = MHD_HTTP_SERVICE_UNAVAILABLE;
    strncat(text, ta_error_text(), sizeof text - 2);
    strcat(text, "\n");
    return text_answer(text);
}

/* Hands the buffer over. */
static struct MHD_Response *buffer_answer(struct ta_buffer *buffer, const char *content_type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(buffer->length, buffer->bytes, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    return response;
}

static struct MHD_Response *heap(const char *name, const char *order_name, unsigned *status)
{
    static const char *const orders[] = {"live", "count", "total", "calls", "temporary", "peak"};
    struct ta_export_format format;
    enum ta_order order = TA_ORDER_DEFAULT;
    size_t index = 0;
    while (ta_export_format_get(index, &format, sizeof format) == 0 && strcmp(format.name, name) != 0)
        index++;
    for (size_t i = 0; order_name != NULL && i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i], order_name) == 0)
            order = (enum ta_order)i;

    struct ta_snapshot *now = ta_take_snapshot();
    struct ta_buffer buffer = {NULL, 0, 0};
    struct MHD_Response *response;
    if (now == NULL || ta_snapshot_export(now, name, order, ta_write_to_buffer, &buffer) != 0) {
        free(buffer.bytes);
        response = trouble(status);
    } else {
        response = buffer_answer(&buffer, format.content_type);
    }
    ta_snapshot_free(now);
    return response;
}

static struct MHD_Response *metrics(unsigned *status)
{
    struct ta_buffer buffer = {NULL, 0, 0};
    if (ta_export_metrics(ta_write_to_buffer, &buffer) == 0)
        return buffer_answer(&buffer, "text/plain; version=0.0.4; charset=utf-8");
    free(buffer.bytes);
    return trouble(status);
}

static struct MHD_Response *start(const char *frames, unsigned *status)
{
    return ta_start(frames != NULL ? atoi(frames) : 100) == 0 ? text_answer("tracing\n") : trouble(status);
}

struct MHD_Response *debug_http_answer(struct MHD_Connection *connection, const char *path, unsigned *status)
{
    const char *format = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "format");
    const char *order = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "order");
    const char *frames = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "frames");
    struct MHD_Response *response = NULL;
    *status = MHD_HTTP_OK;
    ta_domain_push(DEBUG_DOMAIN);
    if (strcmp(path, "/metrics") == 0) {
        response = metrics(status);
    } else if (strcmp(path, "/debug/pprof/heap") == 0) {
        response = heap("pprof", NULL, status);
    } else if (strcmp(path, "/debug/heap") == 0) {
        response = heap(format != NULL ? format : "text", order, status);
    } else if (strcmp(path, "/debug/heap/start") == 0) {
        response = start(frames, status);
    } else if (strcmp(path, "/debug/heap/stop") == 0) {
        ta_stop();
        response = text_answer("stopped\n");
    }
    ta_domain_pop();
    return response;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *body, size_t *body_size, void **state)
{
    (void)context, (void)version, (void)body, (void)body_size, (void)state;
    unsigned status = MHD_HTTP_NOT_FOUND;
    struct MHD_Response *response = strcmp(method, "GET") == 0 ? debug_http_answer(connection, path, &status) : NULL;
    if (response == NULL) {
        status = MHD_HTTP_NOT_FOUND;
        response = text_answer("/metrics, /debug/pprof/heap, /debug/heap?format=flame\n");
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

struct MHD_Daemon *debug_http_start(unsigned short port)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(port)};
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)ta_domain_set_name(DEBUG_DOMAIN, "debug");
    ta_domain_push(DEBUG_DOMAIN);
    struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, port, NULL, NULL,
                                                 answer, NULL, MHD_OPTION_SOCK_ADDR, &local, MHD_OPTION_END);
    ta_domain_pop();
    return daemon;
}

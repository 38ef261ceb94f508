// main.cpp: the service: sums of columns over HTTP, with what it knows of its own memory on a second port.
//
//      ./service 8080 8081                        POST comma-separated values to /sums; see debug_http.h for 8081
//      ./service --exercise 2000 [--leak]         so many requests without a network, for tests of memory
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <arpa/inet.h>
#include <microhttpd.h>
#include <unistd.h>

#include "debug_http.h"
#include "subsystems.hpp"

namespace
{

const tracealloc::domain http(1, "http");
constexpr std::size_t BODY_MAX = 1 << 20;

// ---- over HTTP ----

// One request: its body comes in pieces. It lives in the domain of HTTP, and so does what it holds.
struct request {
    service::text_in body{tracealloc::allocator<char>(http)};
    bool is_too_large = false;
};

MHD_Result send(MHD_Connection *connection, unsigned status, const std::string &text)
{
    MHD_Response *response =
        MHD_create_response_from_buffer(text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
    MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

MHD_Result finish(MHD_Connection *connection, service::application &application, const request &whole)
{
    if (whole.is_too_large)
        return send(connection, MHD_HTTP_CONTENT_TOO_LARGE, "at most 1 MiB, please\n");
    try {
        return send(connection, MHD_HTTP_OK, application.answer(whole.body));
    } catch (const std::exception &problem) {
        return send(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, std::string(problem.what()) + "\n");
    }
}

MHD_Result answer(void *context, MHD_Connection *connection, const char *path, const char *method, const char *,
                  const char *piece, std::size_t *length, void **state)
{
    tracealloc::domain_scope scope(http); // what libmicrohttpd and this function allocate
    if (std::strcmp(path, "/sums") != 0 || std::strcmp(method, "POST") != 0)
        return send(connection, MHD_HTTP_NOT_FOUND, "POST comma-separated values to /sums\n");
    if (*state == nullptr) {
        *state = new (http) request;
        return MHD_YES;
    }
    auto *current = static_cast<request *>(*state);
    if (*length == 0)
        return finish(connection, *static_cast<service::application *>(context), *current);
    current->is_too_large |= current->body.size() + *length > BODY_MAX;
    if (!current->is_too_large)
        current->body.append(piece, *length);
    *length = 0;
    return MHD_YES;
}

void forget(void *, MHD_Connection *, void **state, MHD_RequestTerminationCode)
{
    delete static_cast<request *>(*state); // the block knows its domain
    *state = nullptr;
}

int serve(unsigned short port, unsigned short debug_port)
{
    service::application application;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr); // before there are other threads
    sockaddr_in local = {};
    local.sin_family = AF_INET;
    local.sin_port = htons(port);
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MHD_Daemon *daemon = nullptr;
    {
        tracealloc::domain_scope scope(http);
        daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, port, nullptr, nullptr, answer,
                                  &application, MHD_OPTION_SOCK_ADDR, &local, MHD_OPTION_NOTIFY_COMPLETED, forget,
                                  nullptr, MHD_OPTION_THREAD_POOL_SIZE, 4u, MHD_OPTION_END);
    }
    MHD_Daemon *debug = debug_http_start(debug_port);
    if (daemon == nullptr || debug == nullptr) {
        std::fprintf(stderr, "service: cannot listen on %u and %u\n", port, debug_port);
        return 1;
    }
    std::printf("sums on port %u, memory on port %u\n", port, debug_port);
    std::fflush(stdout);
    int number = 0;
    sigwait(&ends, &number);
    MHD_stop_daemon(daemon);
    MHD_stop_daemon(debug);
    std::fputs(application.report().c_str(), stdout);
    return 0;
}

// ---- without a network ----

int exercise(int requests, bool leak)
{
    service::application application(leak);
    for (int i = 0; i < requests; i++) {
        std::string body = "width,height,item" + std::to_string(i % 50) + "\n";
        for (int row = 0; row < 20 + i % 30; row++)
            body += std::to_string(i) + "," + std::to_string(row) + ",7\n";
        if (application.answer(body).empty())
            return 1;
    }
    std::fputs(application.report().c_str(), stdout);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc >= 3 && std::strcmp(argv[1], "--exercise") == 0)
        return exercise(std::atoi(argv[2]), argc > 3 && std::strcmp(argv[3], "--leak") == 0);
    if (argc == 3 && std::atoi(argv[1]) > 0 && std::atoi(argv[2]) > 0)
        return serve(static_cast<unsigned short>(std::atoi(argv[1])), static_cast<unsigned short>(std::atoi(argv[2])));
    std::fprintf(stderr, "usage: service PORT DEBUG-PORT | service --exercise REQUESTS [--leak]\n");
    return 2;
}

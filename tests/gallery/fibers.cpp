/* fibers.cpp: coroutines that wait for an answer that never comes: their frames stay. */
#include <coroutine>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

struct Task {
    struct promise_type {
        Task get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            abort();
        }
    };
};

struct Answer {
    bool comes;
    static inline std::vector<std::coroutine_handle<>> waiting;
    bool await_ready() const
    {
        return comes;
    }
    void await_suspend(std::coroutine_handle<> who) const
    {
        if (waiting.size() < 10)
            waiting.push_back(who);
    }
    void await_resume() const
    {
    }
};

static Task fetch(int number)
{
    char buffer[256] = {static_cast<char>(number)};
    co_await Answer{number % 2 == 0};
    if (buffer[0] == 'x')
        buffer[1] = 'y';
    co_await Answer{true};
}

int main(int argc, char **argv)
{
    int requests = argc > 1 ? atoi(argv[1]) : 3000;
    for (int i = 0; i < requests; i++) {
        fetch(i);
        std::string log("a line of the log that is written and thrown away at once");
        usleep(200);
    }
}

/* subject.cpp: a C++ program that asks itself what it allocated: prints the number of frames of a block six calls deep,
 * exceptions that were caught, stacks that were cut short, and leaves a snapshot. */
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tracealloc.h>
#include <tracealloc/snapshot.h>

__attribute__((noinline)) void *deep(int more)
{
    void *block = more > 0 ? deep(more - 1) : malloc(1234);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

__attribute__((noinline)) void fall(int more)
{
    std::string text(100, 'x');
    if (more == 0)
        throw std::runtime_error(text);
    fall(more - 1);
    __asm__ volatile("" : : "r"(&text) : "memory");
}

int main(int, char **arguments)
{
    ta_start(30);
    void *block = deep(5);
    int caught = 0;
    for (int i = 0; i < 100; i++)
        try {
            fall(7);
        } catch (std::exception &) {
            caught++;
        }
    std::thread([] {
        std::map<int, std::string> map;
        for (int i = 0; i < 100; i++)
            map[i] = std::string(50, 'a');
    }).join();
    void *frames[30];
    char text[4096];
    size_t total, count = ta_get_object_traceback(block, frames, 30, &total);
    ta_describe(block, text, sizeof text);
    ta_health health;
    ta_get_health(&health, sizeof health);
    ta_snapshot *now = ta_take_snapshot();
    std::printf("%s, %d caught, %d cut short, %s, %s\n", count >= 7 && count == total ? "deep" : "shallow", caught,
                static_cast<int>(health.cut_short),
                std::string(text).find("deep") != std::string::npos ? "named" : text,
                now != nullptr && ta_snapshot_dump(now, arguments[1]) == 0 ? "written" : ta_error_text());
    ta_snapshot_free(now);
    free(block);
}

/* plugin.cpp: a C++ plugin as hosts load them: containers, exceptions, thread-locals with destructors, statics. */
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct farewell {
    std::string *text = new std::string("a text long enough to be on the heap, not in the string");
    ~farewell()
    {
        delete text;
    }
};

static farewell at_unload;
static thread_local farewell at_thread_end;

struct alignas(128) wide {
    char bytes[300];
};

extern "C" int plugin_work(int rounds)
{
    int caught = 0;
    int failed = 0;
    for (int i = 0; i < rounds; i++) {
        std::map<std::string, std::vector<int>> table;
        for (int k = 0; k < 200; k++)
            table["some key that needs the heap " + std::to_string(k)].resize(static_cast<std::size_t>(k), i);
        std::size_t absurd = SIZE_MAX / 2;
        __asm__ volatile("" : "+r"(absurd));
        try {
            ::operator delete(::operator new(absurd));
        } catch (const std::bad_alloc &) {
            failed++;
        }
        auto many = std::make_unique<wide[]>(3);
        many[2].bytes[0] = 1;
        try {
            throw std::runtime_error("thrown with a text of its own " + std::to_string(i));
        } catch (const std::exception &) {
            caught++;
        }
    }
    bool lives = at_thread_end.text->size() > 0 && at_unload.text != nullptr;
    return lives && failed == rounds ? caught : -1;
}

/* A block that the host frees. */
extern "C" void *plugin_gift()
{
    return ::operator new(123);
}

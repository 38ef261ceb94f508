/* plugin.cpp: a C++ plugin as hosts load them: containers, exceptions, thread-locals with destructors, statics. */
#include <map>
#include <memory>
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
    for (int i = 0; i < rounds; i++) {
        std::map<std::string, std::vector<int>> table;
        for (int k = 0; k < 200; k++)
            table["some key that needs the heap " + std::to_string(k)].resize(static_cast<std::size_t>(k), i);
        auto many = std::make_unique<wide[]>(3);
        many[2].bytes[0] = 1;
        try {
            throw std::runtime_error("thrown with a text of its own " + std::to_string(i));
        } catch (const std::exception &) {
            caught++;
        }
    }
    return caught + static_cast<int>(at_thread_end.text->size()) * 0 + (at_unload.text != nullptr ? 0 : 1);
}

/* A block that the host frees. */
extern "C" void *plugin_gift()
{
    return ::operator new(123);
}

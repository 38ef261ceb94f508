/* early_late_cxx.cpp: the C++ places that run early and late: static objects, thread-locals, exit in a thread. */
#include "way.h"

#include <iostream>
#include <string>
#include <thread>
#include <vector>

struct noisy {
    const char *name;
    std::vector<std::string> texts;
    explicit noisy(const char *given) : name(given)
    {
        for (int i = 0; i < 100; i++)
            texts.push_back("text number " + std::to_string(i) + " of what this object holds");
    }
    ~noisy()
    {
        use_memory(100);
        texts.resize(500, "more texts while everything ends");
        expect(texts[99].compare(0, 14, "text number 99") == 0, "WRONG: a text changed");
        say(name);
    }
};

static noisy in_file("static object");
static thread_local noisy in_thread("thread-local object");

static noisy &in_function()
{
    static noisy object("function's static object");
    return object;
}

int main()
{
    expect_ours();
    expect(in_file.texts.size() == 100 && in_function().texts.size() == 100, "WRONG: sizes");
    std::thread([] { expect(in_thread.texts.size() == 100, "WRONG: sizes"); }).join();
    expect(in_thread.texts.size() == 100, "WRONG: sizes");
    std::cout << "buffered output of some length" << std::endl;
    expect_content();
    return 0;
}

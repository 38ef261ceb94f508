/* early_late_cxx.cpp: the C++ places that run early and late: static objects, thread-locals, exit in a thread. */
#include "way.h"

#include <iostream>
#include <new>
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

static int helped;

static void give_up_at_the_third()
{
    if (++helped == 3)
        std::set_new_handler(nullptr);
}

static bool new_throws(std::size_t size)
{
    __asm__ volatile("" : "+r"(size));
    try {
        ::operator delete(hold(::operator new(size)));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int main()
{
    expect(new_throws(SIZE_MAX / 2), "WRONG: new did not throw");
    std::set_new_handler(give_up_at_the_third);
    expect(new_throws(SIZE_MAX / 2) && helped == 3, "WRONG: the new handler was not called");
    expect_ours();
    expect(in_file.texts.size() == 100 && in_function().texts.size() == 100, "WRONG: sizes");
    std::thread([] { expect(in_thread.texts.size() == 100, "WRONG: sizes"); }).join();
    expect(in_thread.texts.size() == 100, "WRONG: sizes");
    std::cout << "buffered output of some length" << std::endl;
    expect_content();
    return 0;
}

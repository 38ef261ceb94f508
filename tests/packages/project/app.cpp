// app.cpp: a program of somebody else: says whose malloc it has, and what a container of a domain holds.
#include <cstdio>
#include <string>
#include <vector>

#include <tracealloc/tracealloc.hpp>

int main()
{
    const tracealloc::domain words(3, "words");
    std::vector<int, tracealloc::allocator<int>> numbers(1000, 7, words);
    std::string *text = new std::string(5000, 'x');
    std::printf("%s, %llu bytes, %s\n", tracealloc::domain::of(text->data()) ? "ours" : "libc's",
                static_cast<unsigned long long>(words.stats()->live_bytes), tracealloc::domain(3).name().data());
    delete text;
    return 0;
}

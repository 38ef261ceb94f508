/* documents.cpp: requests become documents of a library in third_party/, which asks for all the memory. One in three is
 * remembered for ever. What must be named is who parsed them. */
#include "third_party/tree.hpp"

#include <unistd.h>

static std::vector<std::unique_ptr<tree::value>> remembered;

__attribute__((noinline)) static void answer(int number)
{
    std::string line = "request " + std::to_string(number) + " for a page with some longer words in it";
    auto document = tree::value::parse(line); /* planted */
    (*document)["answer"].push_back("an answer of some length to " + line);
    if (number % 3 == 0)
        remembered.push_back(std::move(document));
}

int main()
{
    for (int number = 0; number < 3000; number++) {
        answer(number);
        if (number % 10 == 0)
            usleep(1000);
    }
    _exit(0);
}

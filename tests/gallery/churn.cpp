/* churn.cpp: a loop that makes and drops megabytes of strings, and loses a few dozen bytes each time round. */
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

struct Stamp {
    long numbers[12];
};
static Stamp *volatile last;

__attribute__((noinline)) static size_t render(int number)
{
    std::vector<std::string> words;
    for (int i = 0; i < 40; i++)
        words.push_back("a word that is too long for the string itself " + std::to_string(number + i)); /* churn */
    size_t length = 0;
    for (const auto &word : words)
        length += word.size();
    return length;
}

__attribute__((noinline)) static void stamp(size_t length)
{
    last = new Stamp{{static_cast<long>(length)}}; /* planted */
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2000;
    for (int i = 0; i < rounds; i++) {
        stamp(render(i));
        usleep(250);
    }
}

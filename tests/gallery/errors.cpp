/* errors.cpp: failures are kept as exceptions for a report that nobody asks for. */
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

class Refused : public std::runtime_error
{
    char context[160] = "";

  public:
    using std::runtime_error::runtime_error;
};

static std::vector<std::exception_ptr> &failures()
{
    static auto *all = new std::vector<std::exception_ptr>;
    return *all;
}

__attribute__((noinline)) static void handle(int number)
{
    if (number % 2 == 0)
        throw Refused("no"); /* planted */
}

int main(int argc, char **argv)
{
    int requests = argc > 1 ? atoi(argv[1]) : 3000;
    for (int i = 0; i < requests; i++) {
        try {
            handle(i);
        } catch (...) {
            failures().push_back(std::current_exception());
        }
        usleep(200);
    }
}

// throw.cpp: exceptions through many frames, with destructors and allocations on the way.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static unsigned random_state = 1;
static unsigned some(unsigned below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % below;
}

struct guard {
    std::unique_ptr<std::string> text;
    explicit guard(unsigned n) : text(new std::string(40 + n, 'x'))
    {
    }
    ~guard()
    {
        std::vector<int> late(10 + text->size() % 7);
        late[0] = 1;
    }
};

__attribute__((noinline)) static unsigned down(unsigned depth)
{
    guard own(depth);
    if (depth == 0)
        throw std::runtime_error("the bottom was reached, and this text is long enough to be allocated");
    try {
        return down(depth - 1) + static_cast<unsigned>(own.text->size());
    } catch (const std::runtime_error &error) {
        if (some(4) != 0)
            throw;
        throw std::runtime_error(std::string(error.what()) + ".");
    }
}

int main()
{
    unsigned caught = 0;
    for (int i = 0; i < 150; i++) {
        try {
            down(i % 50 == 0 ? 400 : some(30));
        } catch (const std::exception &error) {
            caught += std::string(error.what()).size() > 10;
        }
    }
    return caught == 150 ? 0 : 1;
}

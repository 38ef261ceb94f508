// leaky.cpp: the same as leaky.c, of what C++ loses.
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define APART         __attribute__((noinline))
#define HIDE(pointer) __asm__ volatile("" : "+r"(pointer))

namespace
{

struct node {
    std::shared_ptr<node> next;
    std::string text = std::string(50, 'x');
};

struct left_part {
    virtual ~left_part() = default;
    long a[4] = {};
};
struct right_part {
    virtual ~right_part() = default;
    long b[4] = {};
};
struct both : left_part, right_part {
    std::vector<int> more = std::vector<int>(20);
};

right_part *volatile kept_part;
both *volatile kept_array;
std::vector<int *> *volatile kept_vector;

APART void shared_circle()
{
    for (int i = 0; i < 3; i++) {
        auto a = std::make_shared<node>(), b = std::make_shared<node>();
        a->next = b;
        b->next = a;
    }
}

APART void released()
{
    std::unique_ptr<both> owner(new both);
    both *block = owner.release();
    HIDE(block);
}

APART void second_base()
{
    kept_part = new both; // points into the block
}

APART void array_with_count()
{
    kept_array = new both[5]; // points behind the count
    both *lost = new both[3];
    HIDE(lost);
}

APART void map_of_pointers()
{
    std::map<int, int *> all;
    for (int i = 0; i < 10; i++)
        all[i] = new int(i);
}

APART void lost_map()
{
    auto *all = new std::map<std::string, std::vector<int>>;
    for (int i = 0; i < 10; i++)
        (*all)["a key that is long enough " + std::to_string(i)] = std::vector<int>(30);
    HIDE(all);
}

APART void lost_list()
{
    auto *all = new std::list<std::string>(7, std::string(60, 'y'));
    HIDE(all);
}

APART void hash_table()
{
    auto *all = new std::unordered_map<int, std::string>;
    for (int i = 0; i < 50; i++)
        (*all)[i] = std::string(40, 'z');
    HIDE(all);
}

APART void captured()
{
    int *block = new int[100];
    std::function<int()> function = [block] { return block[0]; };
    auto *lost = new std::function<int()>(function);
    HIDE(lost);
}

APART int thrower(int *block)
{
    HIDE(block);
    throw std::runtime_error("on the way");
}

APART void exception()
{
    try {
        thrower(new int[50]);
    } catch (const std::exception &) {
    }
}

APART void constructor_throws()
{
    struct failing {
        int *block = new int[25];
        failing()
        {
            HIDE(block);
            throw 1;
        }
    };
    try {
        auto *lost = new failing;
        HIDE(lost);
    } catch (int) {
    }
}

APART void vector_of_pointers()
{
    auto *all = new std::vector<int *>;
    for (int i = 0; i < 20; i++)
        all->push_back(new int(i));
    for (int i = 10; i < 20; i++)
        (*all)[i] = nullptr;
    kept_vector = all;
}

struct base_without_destructor {
    int a = 0;
};
struct derived : base_without_destructor {
    std::string text = std::string(100, 'w');
};

APART void wrong_destructor()
{
    base_without_destructor *block = new derived;
    HIDE(block);
    ::operator delete(block);
}

APART void nothing()
{
    static std::set<std::string> all;
    for (int i = 0; i < 30; i++)
        all.insert("something that stays " + std::to_string(i));
    std::string gone(1000, 'v');
    HIDE(gone[0]);
}

const struct {
    const char *name;
    void (*run)();
} programs[] = {
    {"shared_circle", shared_circle},
    {"released", released},
    {"second_base", second_base},
    {"array_with_count", array_with_count},
    {"map_of_pointers", map_of_pointers},
    {"lost_map", lost_map},
    {"lost_list", lost_list},
    {"hash_table", hash_table},
    {"captured", captured},
    {"exception", exception},
    {"constructor_throws", constructor_throws},
    {"vector_of_pointers", vector_of_pointers},
    {"wrong_destructor", wrong_destructor},
    {"nothing", nothing},
};

APART void wipe()
{
    volatile char room[32 << 10];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
#if defined(__x86_64__)
    __asm__ volatile("xor %%ecx, %%ecx\n\txor %%edx, %%edx\n\txor %%esi, %%esi\n\txor %%edi, %%edi\n\t"
                     "xor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d"
                     :
                     :
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
#endif
}

} // namespace

int main(int count, char **words)
{
    for (const auto &program : programs) {
        if (count < 2)
            std::puts(program.name);
        else if (std::strcmp(words[1], program.name) == 0)
            program.run();
    }
    wipe();
    if (count > 2 && write(STDOUT_FILENO, "ready\n", 6) == 6)
        for (;;)
            pause();
    return 0;
}

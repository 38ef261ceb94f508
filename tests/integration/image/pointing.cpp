// pointing.cpp: a program whose pointers are known: it says "NAME ADDRESS" for what why.py asks about, then waits; or, with
// the word "crash", fails at an address that belongs to nothing; or, with "abort", ends itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace shop
{

struct item {
    virtual ~item() = default;
    long price = 1;
    char *label = nullptr;
};
struct special_item : item {
    item *base = nullptr;
    std::string note = std::string(80, 'n');
};
struct shelf {
    long number = 7;
    item *items[4] = {};
};

} // namespace shop

shop::shelf *the_shelf;
static thread_local void *of_thread;
char *freed, *overrun_victim;

static void say(const char *name, const void *address)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%s %p\n", name, address);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3);
}

__attribute__((noinline)) static void *wait_in_thread(void *)
{
    void *volatile on_stack = malloc(1234);
    of_thread = malloc(4321);
    say("on_stack", on_stack);
    say("of_thread", of_thread);
    for (;;)
        pause();
}

__attribute__((noinline)) static void overrun()
{
    std::vector<char *> blocks;
    for (int i = 0; i < 200; i++)
        blocks.push_back(static_cast<char *>(malloc(104)));
    // Two that are neighbours in memory: the second's header is overwritten from the first.
    for (char *first : blocks)
        for (char *second : blocks)
            if (second - first == 112 && overrun_victim == nullptr) {
                memset(first + 104, 'X', 7);
                overrun_victim = second;
                say("overrun", first);
                say("victim", second);
            }
}

__attribute__((noinline)) static void make_shop()
{
    the_shelf = new shop::shelf;
    auto *special = new shop::special_item;
    special->base = new shop::item;
    special->base->label = strdup("the label of an item");
    the_shelf->items[2] = special;
    say("shelf", the_shelf);
    say("special", special);
    say("base", special->base);
    say("label", special->base->label);
}

/* Old values on the stack and in registers are not to point anywhere. */
__attribute__((noinline)) static void wipe()
{
    volatile char room[32 << 10];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
    __asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
}

// A page right behind the data of the library that malloc is in: the kernel makes one mapping of both.
static int find_library_end(struct dl_phdr_info *info, size_t, void *end)
{
    uintptr_t inside = reinterpret_cast<uintptr_t>(&malloc), low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD)
            continue;
        uintptr_t from = info->dlpi_addr + segment.p_vaddr, to = from + segment.p_memsz;
        low = from < low ? from : low;
        high = to > high ? to : high;
    }
    if (inside < low || inside >= high)
        return 0;
    *static_cast<uintptr_t *>(end) = (high + 4095) & ~uintptr_t(4095);
    return 1;
}

static void **page_behind_the_library()
{
    uintptr_t end = 0;
    if (dl_iterate_phdr(find_library_end, &end) == 0)
        return nullptr;
    void *page = mmap(reinterpret_cast<void *>(end), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return page == MAP_FAILED ? nullptr : static_cast<void **>(page);
}

int main(int count, char **words)
{
    pthread_t thread;
    make_shop();
    say("global", &the_shelf);
    say("code", reinterpret_cast<const void *>(&overrun));
    say("null", reinterpret_cast<const void *>(24));
    void *mapped = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void **cell = static_cast<void **>(mapped) + 100;
    *cell = malloc(999);
    say("of_mapping", *cell);
    if (void **behind = page_behind_the_library()) {
        behind[7] = malloc(888);
        say("of_neighbour", behind[7]);
    }
    freed = static_cast<char *>(malloc(640));
    free(freed);
    say("freed", freed + 5);
    overrun();
    if (pthread_create(&thread, nullptr, wait_in_thread, nullptr) != 0)
        return 3;
    usleep(100000);
    wipe();
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return 3;
    if (count > 1 && strcmp(words[1], "abort") == 0)
        abort();
    if (count > 1)
        *(volatile char *)(freed + (1l << 40)) = 1;
    for (;;)
        pause();
}

// domains.cpp: one program, three subsystems, each with its own account of memory.
//
//      c++ -std=c++17 domains.cpp -ltracealloc -o domains && ./domains
//
// The cache has a limit and drops entries when it is reached; the parser works in a scope; every request has an arena
// that goes at once. At the end each subsystem says what it holds, and has held.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <tracealloc/domain.h>

namespace
{
enum : uint32_t { PARSER = 1, CACHE = 2 };
constexpr uint64_t CACHE_LIMIT = 200 * 1024;

// ---- the parser: everything inside its functions is its own ----

std::vector<std::string> parse(const std::string &text)
{
    tracealloc::domain_scope scope(PARSER);
    std::vector<std::string> words;
    std::string word;
    for (char letter : text) {
        if (letter != ' ') {
            word += letter;
        } else {
            words.push_back(word + " as a word of its own");
            word.clear();
        }
    }
    return words;
}

// ---- the cache: may have so much, and no more ----

class cache
{
  public:
    cache()
    {
        ta_domain_limit limit = {};
        limit.soft = CACHE_LIMIT / 2;
        limit.hard = CACHE_LIMIT;
        limit.callback = [](uint32_t, uint64_t live_bytes, void *) {
            std::printf("the cache is half full: %llu bytes\n", static_cast<unsigned long long>(live_bytes));
        };
        ta_domain_set_limit(CACHE, &limit);
    }
    void put(int key, size_t size)
    {
        tracealloc::domain_scope scope(CACHE);
        try {
            entries_[key].resize(size);
        } catch (const std::bad_alloc &) {
            dropped_ += entries_.size();
            entries_.clear();
        }
    }
    size_t dropped() const
    {
        return dropped_;
    }

  private:
    std::map<int, std::vector<char>> entries_;
    size_t dropped_ = 0;
};

// ---- a request: its blocks live as long as it does ----

size_t answer(int request)
{
    uint32_t arena;
    if (ta_domain_create_arena(&arena) != 0)
        return 0;
    char *last = nullptr;
    for (int i = 0; i < 1000; i++)
        last = static_cast<char *>(ta_domain_malloc(arena, 100));
    std::snprintf(last, 100, "answer %d", request);
    ta_domain_stats stats;
    ta_domain_get_stats(arena, &stats, sizeof stats);
    ta_domain_destroy(arena); // a thousand blocks at once
    return stats.live_bytes;
}

void report(uint32_t domain)
{
    ta_domain_stats stats;
    if (ta_domain_get_stats(domain, &stats, sizeof stats) == 0)
        std::printf("%-8s %8llu bytes in %5llu blocks, at most %8llu\n", ta_domain_name(domain),
                    static_cast<unsigned long long>(stats.live_bytes),
                    static_cast<unsigned long long>(stats.live_blocks),
                    static_cast<unsigned long long>(stats.peak_bytes));
}
} // namespace

int main()
{
    ta_domain_set_name(PARSER, "parser");
    ta_domain_set_name(CACHE, "cache");
    std::string text;
    for (int i = 0; i < 500; i++)
        text += "word" + std::to_string(i) + " ";
    std::vector<std::string> words = parse(text);
    cache entries;
    for (int i = 0; i < 100; i++)
        entries.put(i, 5000);
    size_t in_arenas = 0;
    for (int i = 0; i < 50; i++)
        in_arenas += answer(i);
    report(PARSER);
    report(CACHE);
    std::printf("%zu words; the cache dropped %zu entries; %zu bytes went with their requests\n", words.size(),
                entries.dropped(), in_arenas);
    return 0;
}

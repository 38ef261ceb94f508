// subsystems.hpp: the three parts of the service, each with its own account of memory.
//
//      http     1   connections, bodies, answers
//      parser   2   the names of columns that were ever seen; what one request needs lives in an arena of the request
//      cache    3   answers, least recently used go first; half a MiB at most
#ifndef SUBSYSTEMS_HPP
#define SUBSYSTEMS_HPP

#include <cstddef>
#include <list>
#include <map>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tracealloc/tracealloc.hpp>

namespace service
{

using text_in = std::basic_string<char, std::char_traits<char>, tracealloc::allocator<char>>;

// ---- parser: comma-separated values to sums of columns ----

class parser
{
  public:
    parser();
    // Sums of the numbers in each column as JSON. What is parsed lives in an arena that ends with the call.
    std::string sums(std::string_view text);
    std::size_t names_seen() const;

  private:
    struct column {
        std::string_view name;
        std::pmr::vector<double> values;
    };
    std::string_view remember(std::string_view name);
    std::pmr::vector<column> parse(std::string_view text, std::pmr::memory_resource *memory);

    tracealloc::domain domain_;
    mutable std::mutex mutex_;
    std::set<text_in, std::less<>, tracealloc::allocator<text_in>> names_;
};

// ---- cache: may have so much, and no more ----

class cache
{
  public:
    cache();
    std::optional<std::string> find(std::string_view key);
    void put(std::string_view key, std::string_view value);
    std::size_t size() const;
    std::size_t dropped() const;

  private:
    struct entry {
        text_in key, value;
    };
    using entries = std::list<entry, tracealloc::allocator<entry>>;
    void drop_oldest(std::size_t keep_bytes);

    tracealloc::domain domain_;
    mutable std::mutex mutex_;
    entries entries_; // most recently used first
    std::map<std::string_view, entries::iterator, std::less<>,
             tracealloc::allocator<std::pair<const std::string_view, entries::iterator>>>
        places_;
    std::size_t dropped_ = 0;
};

// ---- the whole: a request's body in, its answer out ----

class application
{
  public:
    // `forgetful` plants a leak: each answer is kept for ever.
    explicit application(bool forgetful = false) : forgetful_(forgetful)
    {
    }
    std::string answer(std::string_view body);
    // What the subsystems hold, in words.
    std::string report() const;

  private:
    void keep(const std::string &answer);

    bool forgetful_;
    parser parser_;
    cache cache_;
};

} // namespace service

#endif

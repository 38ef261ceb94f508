// subsystems.cpp: see subsystems.hpp.
#include "subsystems.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace service
{

// ---- parser ----

parser::parser() : domain_(2, "parser"), names_(tracealloc::allocator<text_in>(domain_))
{
}

std::string_view parser::remember(std::string_view name)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = names_.find(name);
    if (found == names_.end())
        found = names_.emplace(name, tracealloc::allocator<char>(domain_)).first;
    return *found;
}

static std::string_view next_field(std::string_view &line)
{
    std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
    return field;
}

static std::string_view next_line(std::string_view &text)
{
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

std::pmr::vector<parser::column> parser::parse(std::string_view text, std::pmr::memory_resource *memory)
{
    std::pmr::vector<column> columns(memory);
    std::string_view names = next_line(text);
    while (!names.empty()) {
        std::string_view name = remember(next_field(names));
        columns.push_back({name, std::pmr::vector<double>(memory)});
    }
    while (!text.empty()) {
        std::string_view line = next_line(text);
        for (column &each : columns) {
            std::string_view field = next_field(line);
            long long number = 0;
            std::from_chars(field.data(), field.data() + field.size(), number);
            each.values.push_back(static_cast<double>(number));
        }
    }
    return columns;
}

std::string parser::sums(std::string_view text)
{
    tracealloc::arena request; // every block of this request, gone at its end
    tracealloc::memory_resource memory(request);
    std::string answer = "{";
    for (const column &each : parse(text, &memory)) {
        double sum = 0;
        for (double value : each.values)
            sum += value;
        answer += answer.size() > 1 ? ", \"" : "\"";
        answer.append(each.name).append("\": ").append(std::to_string(sum));
    }
    return answer + "}\n";
}

std::size_t parser::names_seen() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return names_.size();
}

// ---- cache ----

static constexpr std::size_t CACHE_BYTES = 512 * 1024;

cache::cache()
    : domain_(3, "cache"), entries_(tracealloc::allocator<entry>(domain_)),
      places_(tracealloc::allocator<std::pair<const std::string_view, entries::iterator>>(domain_))
{
    domain_.set_limit(CACHE_BYTES / 2, CACHE_BYTES);
}

std::optional<std::string> cache::find(std::string_view key)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = places_.find(key);
    if (found == places_.end())
        return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return std::string(found->second->value);
}

void cache::drop_oldest(std::size_t keep_bytes)
{
    while (!entries_.empty() && domain_.stats()->live_bytes > keep_bytes) {
        places_.erase(entries_.back().key);
        entries_.pop_back();
        dropped_++;
    }
}

void cache::put(std::string_view key, std::string_view value)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (places_.find(key) != places_.end())
        return;
    tracealloc::allocator<char> memory(domain_);
    try {
        entries_.push_front({text_in(key, memory), text_in(value, memory)});
        places_.emplace(entries_.front().key, entries_.begin());
    } catch (const std::bad_alloc &) { // the limit: half of it is for the new ones
        if (!entries_.empty() && entries_.front().key == key && places_.find(key) == places_.end())
            entries_.pop_front();
        drop_oldest(CACHE_BYTES / 2);
    }
}

std::size_t cache::size() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
}

std::size_t cache::dropped() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return dropped_;
}

// ---- the whole ----

void application::keep(const std::string &answer)
{
    char *copy = strdup(answer.c_str()); // the planted leak
    asm volatile("" : : "r"(copy));
}

std::string application::answer(std::string_view body)
{
    if (std::optional<std::string> known = cache_.find(body))
        return *known;
    std::string sums = parser_.sums(body);
    cache_.put(body, sums);
    if (forgetful_)
        keep(sums);
    return sums;
}

std::string application::report() const
{
    std::string text;
    for (tracealloc::domain each : tracealloc::domain::list()) {
        std::optional<ta_domain_stats> stats = each.stats();
        if (each.name().empty() || !stats)
            continue;
        char line[160];
        std::snprintf(line, sizeof line, "%-8s %8llu bytes in %5llu blocks, at most %8llu\n",
                      std::string(each.name()).c_str(), static_cast<unsigned long long>(stats->live_bytes),
                      static_cast<unsigned long long>(stats->live_blocks),
                      static_cast<unsigned long long>(stats->peak_bytes));
        text += line;
    }
    return text + std::to_string(cache_.size()) + " answers in the cache, " + std::to_string(cache_.dropped()) +
           " dropped; " + std::to_string(parser_.names_seen()) + " names of columns\n";
}

} // namespace service

/* tracealloc.hpp: the library for C++17 and later, in a header.
 *
 *      tracealloc::domain parser(3, "parser");
 *      std::vector<token, tracealloc::allocator<token>> tokens(parser);          a container in a domain
 *      tracealloc::memory_resource resource(parser);                              the same for std::pmr
 *      tracealloc::arena request;                                                 freed at once at the end of its scope
 *      auto node = tracealloc::make_unique_in<tree>(parser, "root");
 *      auto now = tracealloc::snapshot::take();
 *      for (auto [where, size, count] : now.statistics("lineno")) …
 *
 * A domain never has to be said again when memory is freed: the block knows it. So what was allocated here may be
 * released by whoever holds it.
 *
 * Failure: the plain calls throw tracealloc::failure (std::bad_alloc where memory is missing); their twins that begin
 * with try_ answer a result. Without exceptions (-fno-exceptions) the plain calls end the program with a line on
 * descriptor 2.
 *
 * Statistics, filters and loading need libtracealloc-analysis; everything else needs libtracealloc. */
#ifndef TRACEALLOC_TRACEALLOC_HPP
#define TRACEALLOC_TRACEALLOC_HPP

#if __cplusplus < 201703L
#error "tracealloc.hpp needs C++17"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#if __has_include(<expected>)
#include <expected>
#endif
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tracealloc.h>
#include <tracealloc/analysis.h>
#include <tracealloc/domain.h>
#include <tracealloc/export.h>
#include <tracealloc/snapshot.h>

#if defined(__cpp_exceptions)
#define TRACEALLOC_HAS_EXCEPTIONS 1
#else
#define TRACEALLOC_HAS_EXCEPTIONS 0
#endif

namespace tracealloc
{

/* ---- failure ----------------------------------------------------------------------------------------------------- */

/* What went wrong: the text of ta_error_text, and errno. */
class failure : public std::exception
{
  public:
    failure(std::string text, int code) : text_(std::move(text)), code_(code)
    {
    }
    /* The last failed call of this thread. */
    static failure last()
    {
        int code = errno;
        return failure(ta_error_text(), code);
    }
    const char *what() const noexcept override
    {
        return text_.c_str();
    }
    int code() const noexcept
    {
        return code_;
    }

  private:
    std::string text_;
    int code_;
};

namespace detail
{

[[noreturn]] inline void fail(const failure &why)
{
#if TRACEALLOC_HAS_EXCEPTIONS
    throw why;
#else
    std::fprintf(stderr, "tracealloc: %s\n", why.what());
    std::abort();
#endif
}

[[noreturn]] inline void out_of_memory()
{
#if TRACEALLOC_HAS_EXCEPTIONS
    throw std::bad_alloc();
#else
    std::fputs("tracealloc: out of memory\n", stderr);
    std::abort();
#endif
}

/* As operator new: the new-handler is asked until there is memory or no handler. */
inline void *allocate(std::uint32_t domain, std::size_t bytes, std::size_t alignment)
{
    for (;;) {
        void *block = nullptr;
        if (alignment <= alignof(std::max_align_t))
            block = ta_domain_malloc(domain, bytes);
        else if (ta_domain_posix_memalign(domain, &block, alignment, bytes) != 0)
            block = nullptr;
        if (block != nullptr)
            return block;
        std::new_handler handler = std::get_new_handler();
        if (handler == nullptr)
            out_of_memory();
        handler();
    }
}

inline void release(void *block) noexcept
{
    ta_free(block);
}

} // namespace detail

/* A value, or why there is none. */
template <typename T> class [[nodiscard]] result
{
  public:
    result(T value) : state_(std::in_place_index<0>, std::move(value))
    {
    }
    result(failure why) : state_(std::in_place_index<1>, std::move(why))
    {
    }
    bool has_value() const noexcept
    {
        return state_.index() == 0;
    }
    explicit operator bool() const noexcept
    {
        return has_value();
    }
    /* Without a value: throws the error, or ends the program where there are no exceptions. */
    T &value() &
    {
        if (!has_value())
            detail::fail(error());
        return *std::get_if<0>(&state_);
    }
    T &&value() &&
    {
        return std::move(this->value());
    }
    T &operator*() &
    {
        return value();
    }
    T &&operator*() &&
    {
        return std::move(*this).value();
    }
    T *operator->()
    {
        return &value();
    }
    /* Only without a value. */
    const failure &error() const noexcept
    {
        return *std::get_if<1>(&state_);
    }
#if defined(__cpp_lib_expected)
    operator std::expected<T, failure>() &&
    {
        if (has_value())
            return std::move(*std::get_if<0>(&state_));
        return std::unexpected(error());
    }
#endif

  private:
    std::variant<T, failure> state_;
};

/* ---- tracing ----------------------------------------------------------------------------------------------------- */

/* Begins to record; throws failure when that cannot be. */
inline void start(int nframe = TA_NFRAME_MAX)
{
    if (ta_start(nframe) != 0)
        detail::fail(failure::last());
}
inline void stop() noexcept
{
    ta_stop();
}
inline bool is_tracing() noexcept
{
    return ta_is_tracing() != 0;
}

struct traced_memory {
    std::size_t current, peak;
};
inline traced_memory get_traced_memory() noexcept
{
    traced_memory memory{};
    ta_get_traced_memory(&memory.current, &memory.peak);
    return memory;
}

/* Whose memory this is, in words. Crash handlers call ta_describe with a buffer of their own. */
inline std::string describe(const void *pointer)
{
    std::string text(ta_describe(pointer, nullptr, 0) + 256, '\0');
    std::size_t length = ta_describe(pointer, text.data(), text.size());
    text.resize(length < text.size() ? length : text.size() - 1);
    return text;
}

/* ---- domains ----------------------------------------------------------------------------------------------------- */

/* The number of a domain. A value: copies mean the same domain, and nothing ends with it (an arena does). */
class domain
{
  public:
    constexpr domain() noexcept = default; /* domain 0 */
    constexpr explicit domain(std::uint32_t number) noexcept : number_(number)
    {
    }
    /* With a name for reports; throws failure when another domain has it. */
    domain(std::uint32_t number, std::string_view name) : number_(number)
    {
        set_name(name);
    }
    constexpr std::uint32_t number() const noexcept
    {
        return number_;
    }

    std::string_view name() const noexcept
    {
        return ta_domain_name(number_);
    }
    void set_name(std::string_view name)
    {
        if (ta_domain_set_name(number_, std::string(name).c_str()) != 0)
            detail::fail(failure::last());
    }
    /* Nothing when the domain was never used, or was destroyed. */
    std::optional<ta_domain_stats> stats() const noexcept
    {
        ta_domain_stats stats{};
        if (ta_domain_get_stats(number_, &stats, sizeof stats) != 0)
            return std::nullopt;
        return stats;
    }
    /* Bytes; 0 = none. See ta_domain_set_limit. */
    void set_limit(std::uint64_t soft, std::uint64_t hard,
                   void (*callback)(std::uint32_t domain, std::uint64_t live_bytes, void *context) = nullptr,
                   void *context = nullptr)
    {
        ta_domain_limit limit{soft, hard, callback, context};
        if (ta_domain_set_limit(number_, &limit) != 0)
            detail::fail(failure::last());
    }

    /* Of the innermost scope of this thread. */
    static domain current() noexcept
    {
        return domain(ta_domain_current());
    }
    static std::optional<domain> find(std::string_view name)
    {
        std::uint32_t number = 0;
        if (!ta_domain_find(std::string(name).c_str(), &number))
            return std::nullopt;
        return domain(number);
    }
    /* All that live, in the order of their making. */
    static std::vector<domain> list()
    {
        std::vector<std::uint32_t> numbers(ta_domain_list(nullptr, 0) + 16);
        std::size_t count = ta_domain_list(numbers.data(), numbers.size());
        std::vector<domain> domains;
        for (std::size_t i = 0; i < count && i < numbers.size(); i++)
            domains.push_back(domain(numbers[i]));
        return domains;
    }
    /* The domain of a live block. */
    static std::optional<domain> of(const void *block) noexcept
    {
        std::uint32_t number = 0;
        if (!ta_domain_of(block, &number))
            return std::nullopt;
        return domain(number);
    }

    friend constexpr bool operator==(domain a, domain b) noexcept
    {
        return a.number_ == b.number_;
    }
    friend constexpr bool operator!=(domain a, domain b) noexcept
    {
        return a.number_ != b.number_;
    }

  private:
    std::uint32_t number_ = 0;
};

inline domain_scope::domain_scope(const domain &where) noexcept : domain_scope(where.number())
{
}
inline arena_scope::arena_scope(const domain &where) noexcept : arena_scope(where.number())
{
}

class arena;

/* ---- containers -------------------------------------------------------------------------------------------------- */

/* An allocator for standard containers whose memory belongs to a domain.
 *
 * Two are equal when their domains are. The domain goes along when a container is moved or swapped, stays with the
 * target when one is copied into another, and is inherited when a container is copied to a new one: what a container
 * holds is always in the domain that its get_allocator() says. */
template <typename T> class allocator
{
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    constexpr allocator() noexcept = default; /* domain 0 */
    constexpr allocator(domain where) noexcept : domain_(where)
    {
    }
    allocator(const arena &where) noexcept;
    template <typename U> constexpr allocator(const allocator<U> &other) noexcept : domain_(other.where())
    {
    }
    constexpr domain where() const noexcept
    {
        return domain_;
    }

    [[nodiscard]] T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
#if TRACEALLOC_HAS_EXCEPTIONS
            throw std::bad_array_new_length();
#else
            detail::out_of_memory();
#endif
        }
        return static_cast<T *>(detail::allocate(domain_.number(), count * sizeof(T), alignof(T)));
    }
    void deallocate(T *block, std::size_t) noexcept
    {
        detail::release(block);
    }

    template <typename U> friend constexpr bool operator==(const allocator &a, const allocator<U> &b) noexcept
    {
        return a.where() == b.where();
    }
    template <typename U> friend constexpr bool operator!=(const allocator &a, const allocator<U> &b) noexcept
    {
        return !(a == b);
    }

  private:
    domain domain_;
};

/* std::pmr: requests go to a domain. Two of the same domain are equal, so that containers may take each other's
 * memory; without RTTI only one and the same resource is equal to itself. */
class memory_resource : public std::pmr::memory_resource
{
  public:
    explicit memory_resource(domain where) noexcept : domain_(where)
    {
    }
    domain where() const noexcept
    {
        return domain_;
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::allocate(domain_.number(), bytes, alignment);
    }
    void do_deallocate(void *block, std::size_t, std::size_t) override
    {
        detail::release(block);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        if (this == &other)
            return true;
#if defined(__cpp_rtti)
        const auto *same = dynamic_cast<const memory_resource *>(&other);
        return same != nullptr && same->domain_ == domain_;
#else
        return false;
#endif
    }

    domain domain_;
};

/* A pool whose chunks belong to a domain: many small objects of one owner for the price of a few blocks. The chunks, not
 * the objects, are what reports show. Pool is std::pmr::unsynchronized_pool_resource or its synchronized twin. */
template <typename Pool> class basic_pool_resource : public std::pmr::memory_resource
{
  public:
    explicit basic_pool_resource(domain where, const std::pmr::pool_options &options = {})
        : upstream_(where), pool_(options, &upstream_)
    {
    }
    basic_pool_resource(const basic_pool_resource &) = delete;
    basic_pool_resource &operator=(const basic_pool_resource &) = delete;
    domain where() const noexcept
    {
        return upstream_.where();
    }
    /* Gives all chunks back, whatever was not deallocated. */
    void release()
    {
        pool_.release();
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return pool_.allocate(bytes, alignment);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
    {
        pool_.deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    tracealloc::memory_resource upstream_;
    Pool pool_;
};
using pool_resource = basic_pool_resource<std::pmr::unsynchronized_pool_resource>;
using synchronized_pool_resource = basic_pool_resource<std::pmr::synchronized_pool_resource>;

} // namespace tracealloc

/* new (parser) node(…): where malloc is replaced a plain delete releases it, because the block knows its domain. */
[[nodiscard]] inline void *operator new(std::size_t bytes, tracealloc::domain where)
{
    return tracealloc::detail::allocate(where.number(), bytes, alignof(std::max_align_t));
}
[[nodiscard]] inline void *operator new[](std::size_t bytes, tracealloc::domain where)
{
    return tracealloc::detail::allocate(where.number(), bytes, alignof(std::max_align_t));
}
[[nodiscard]] inline void *operator new(std::size_t bytes, std::align_val_t alignment, tracealloc::domain where)
{
    return tracealloc::detail::allocate(where.number(), bytes, static_cast<std::size_t>(alignment));
}
[[nodiscard]] inline void *operator new[](std::size_t bytes, std::align_val_t alignment, tracealloc::domain where)
{
    return tracealloc::detail::allocate(where.number(), bytes, static_cast<std::size_t>(alignment));
}
/* For a constructor that throws. */
inline void operator delete(void *block, tracealloc::domain) noexcept
{
    tracealloc::detail::release(block);
}
inline void operator delete[](void *block, tracealloc::domain) noexcept
{
    tracealloc::detail::release(block);
}
inline void operator delete(void *block, std::align_val_t, tracealloc::domain) noexcept
{
    tracealloc::detail::release(block);
}
inline void operator delete[](void *block, std::align_val_t, tracealloc::domain) noexcept
{
    tracealloc::detail::release(block);
}

namespace tracealloc
{

/* ---- single objects ---------------------------------------------------------------------------------------------- */

/* Destroys and frees what make_unique_in made. With RTTI an owner of a class becomes one of its base where the base has a
 * virtual destructor, as with std::default_delete. */
template <typename T> struct deleter {
    constexpr deleter() noexcept = default;
#if defined(__cpp_rtti)
    template <typename Derived,
              typename = std::enable_if_t<std::is_convertible_v<Derived *, T *> && std::has_virtual_destructor_v<T>>>
    deleter(const deleter<Derived> &) noexcept
    {
    }
#endif
    void operator()(T *object) const noexcept
    {
        void *block = const_cast<std::remove_cv_t<T> *>(object);
#if defined(__cpp_rtti)
        if constexpr (std::is_polymorphic_v<T>)
            block = dynamic_cast<void *>(const_cast<std::remove_cv_t<T> *>(object)); /* a base need not lie in front */
#endif
        object->~T();
        detail::release(block);
    }
};
/* Of an array: it knows how many there are. */
template <typename T> struct deleter<T[]> {
    std::size_t count = 0;
    void operator()(T *objects) const noexcept
    {
        std::destroy_n(objects, count);
        detail::release(objects);
    }
};
template <typename T> using unique_in = std::unique_ptr<T, deleter<T>>;

template <typename T, typename... Arguments>
std::enable_if_t<!std::is_array_v<T>, unique_in<T>> make_unique_in(domain where, Arguments &&...arguments)
{
    using holder = std::unique_ptr<void, void (*)(void *)>;
    holder memory(detail::allocate(where.number(), sizeof(T), alignof(T)), [](void *block) { detail::release(block); });
    T *object = ::new (memory.get()) T(std::forward<Arguments>(arguments)...);
    memory.release();
    return unique_in<T>(object);
}

/* An array of value-initialised objects: make_unique_in<int[]>(where, 100). */
template <typename T>
std::enable_if_t<std::is_array_v<T> && std::extent_v<T> == 0, unique_in<T>> make_unique_in(domain where,
                                                                                           std::size_t count)
{
    using element = std::remove_extent_t<T>;
    allocator<element> memory(where);
    element *objects = memory.allocate(count);
    unique_in<T> owner(objects, deleter<T>{0});
    for (std::size_t &made = owner.get_deleter().count; made < count; made++)
        ::new (static_cast<void *>(objects + made)) element();
    return owner;
}

/* Object and reference counts in one block of the domain. */
template <typename T, typename... Arguments> std::shared_ptr<T> make_shared_in(domain where, Arguments &&...arguments)
{
    return std::allocate_shared<T>(allocator<T>(where), std::forward<Arguments>(arguments)...);
}

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

/* A domain of its own whose blocks all end with it. Objects in it are not destroyed one by one: their memory goes. */
class arena
{
  public:
    arena()
    {
        std::uint32_t number = 0;
        if (ta_domain_create_arena(&number) != 0)
            detail::out_of_memory();
        domain_ = tracealloc::domain(number);
    }
    explicit arena(std::string_view name) : arena()
    {
        domain_.set_name(name);
    }
    arena(arena &&other) noexcept : domain_(std::exchange(other.domain_, tracealloc::domain()))
    {
    }
    arena &operator=(arena &&other) noexcept
    {
        if (this != &other) {
            reset();
            domain_ = std::exchange(other.domain_, tracealloc::domain());
        }
        return *this;
    }
    ~arena()
    {
        reset();
    }
    /* Frees everything now; the arena is then empty-handed, as one that was moved from. */
    void reset() noexcept
    {
        if (domain_.number() != 0)
            (void)ta_domain_destroy(domain_.number());
        domain_ = tracealloc::domain();
    }
    tracealloc::domain where() const noexcept
    {
        return domain_;
    }
    operator tracealloc::domain() const noexcept
    {
        return domain_;
    }
    explicit operator bool() const noexcept
    {
        return domain_.number() != 0;
    }
    /* Nothing when it is empty-handed. */
    std::optional<ta_domain_stats> stats() const noexcept
    {
        return *this ? domain_.stats() : std::nullopt;
    }
    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        return detail::allocate(domain_.number(), bytes, alignment);
    }
    /* An object that lives until the arena ends; its destructor never runs, so it may own nothing outside. */
    template <typename T, typename... Arguments> T *make(Arguments &&...arguments)
    {
        return ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Arguments>(arguments)...);
    }

  private:
    tracealloc::domain domain_;
};

template <typename T> allocator<T>::allocator(const arena &where) noexcept : domain_(where.where())
{
}

/* ---- memory that tracealloc did not allocate --------------------------------------------------------------------- */

/* An account of memory of mmap, of a device, of a pool: ta_track until the end of its scope, with the stack of who makes
 * it. Counts nothing while the program is not traced. Moves, does not copy. */
class tracked
{
  public:
    tracked() noexcept = default;
    tracked(domain where, std::uintptr_t address, std::size_t bytes) noexcept
        : domain_(where), address_(address), is_tracked_(ta_track(where.number(), address, bytes) == 0)
    {
    }
    tracked(domain where, const void *address, std::size_t bytes) noexcept
        : tracked(where, reinterpret_cast<std::uintptr_t>(address), bytes)
    {
    }
    tracked(tracked &&other) noexcept
        : domain_(other.domain_), address_(other.address_), is_tracked_(std::exchange(other.is_tracked_, false))
    {
    }
    tracked &operator=(tracked &&other) noexcept
    {
        if (this != &other) {
            reset();
            domain_ = other.domain_;
            address_ = other.address_;
            is_tracked_ = std::exchange(other.is_tracked_, false);
        }
        return *this;
    }
    ~tracked()
    {
        reset();
    }
    void reset() noexcept
    {
        if (std::exchange(is_tracked_, false))
            (void)ta_untrack(domain_.number(), address_);
    }
    explicit operator bool() const noexcept
    {
        return is_tracked_;
    }

  private:
    domain domain_;
    std::uintptr_t address_ = 0;
    bool is_tracked_ = false;
};

/* ---- other threads, callbacks, coroutines ------------------------------------------------------------------------ */

/* A callable that runs in the domain it was made in (or in the one given), wherever it is called: for executors. */
template <typename Function> auto in_domain(domain where, Function &&function)
{
    return [where, call = std::forward<Function>(function)](auto &&...arguments) mutable -> decltype(auto) {
        domain_scope scope(where);
        return std::invoke(call, std::forward<decltype(arguments)>(arguments)...);
    };
}
template <typename Function> auto in_current_domain(Function &&function)
{
    return in_domain(domain::current(), std::forward<Function>(function));
}

/* A thread that inherits the scope of the one that starts it. */
template <typename Function, typename... Arguments>
std::thread make_thread(Function &&function, Arguments &&...arguments)
{
    return std::thread(in_current_domain(std::forward<Function>(function)), std::forward<Arguments>(arguments)...);
}

/* A base for promise types: the coroutine's frame is in the domain that is its first argument (the second of a member
 * or a lambda), else in the one in whose scope it is called.
 *
 *      struct promise_type : tracealloc::coroutine_frame { … };
 *      task parse(tracealloc::domain, std::string text); */
struct coroutine_frame {
    static void *operator new(std::size_t bytes)
    {
        return detail::allocate(ta_domain_current(), bytes, alignof(std::max_align_t));
    }
    template <typename... Rest> static void *operator new(std::size_t bytes, domain where, const Rest &...)
    {
        return detail::allocate(where.number(), bytes, alignof(std::max_align_t));
    }
    template <typename Object, typename... Rest>
    static void *operator new(std::size_t bytes, const Object &, domain where, const Rest &...)
    {
        return detail::allocate(where.number(), bytes, alignof(std::max_align_t));
    }
    /* Inlined even where nothing else is: there gcc takes the two for a pair that does not belong together. */
    [[gnu::always_inline]] static void operator delete(void *frame) noexcept
    {
        detail::release(frame);
    }
    [[gnu::always_inline]] static void operator delete(void *frame, std::size_t) noexcept
    {
        detail::release(frame);
    }
};

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/* A stack with names, oldest frame first. A value: it keeps alive what it came from. */
class traceback
{
  public:
    traceback() noexcept : raw_(ta_traceback_of(nullptr, 0, -1))
    {
    }
    explicit traceback(const ta_traceback &raw, std::shared_ptr<const void> owner = {}) noexcept
        : raw_(raw), owner_(std::move(owner))
    {
    }
    /* Who allocated a live block; empty when nobody knows (ta_error_text says why). */
    static traceback of(const void *block)
    {
        return owned(ta_object_traceback(block));
    }
    /* Return addresses of this process, most recent first. */
    static traceback symbolize(void *const *addresses, std::size_t count)
    {
        return owned(ta_symbolize(addresses, count));
    }
    std::size_t size() const noexcept
    {
        return ta_traceback_length(raw_);
    }
    /* Negative counts from the most recent, -1. */
    std::optional<ta_frame> frame(std::int64_t index) const noexcept
    {
        ta_frame frame{};
        if (ta_traceback_frame(raw_, index, &frame) != 0)
            return std::nullopt;
        return frame;
    }
    std::vector<ta_frame> frames() const
    {
        std::vector<ta_frame> frames(size());
        ta_traceback_frames(raw_, frames.data(), frames.size());
        return frames;
    }
    /* "FILE:LINE" of the frame that asked for the memory. */
    std::string text() const
    {
        std::optional<ta_frame> last = frame(-1);
        if (!last)
            return {};
        std::string text(ta_frame_text(&*last, nullptr, 0), '\0');
        ta_frame_text(&*last, text.data(), text.size() + 1);
        return text;
    }
    /* As tracemalloc's Traceback.format(). */
    std::vector<std::string> format(std::int64_t limit = TA_FORMAT_ALL, bool most_recent_first = false) const
    {
        std::unique_ptr<char *, void (*)(void *)> lines(ta_traceback_format(raw_, limit, most_recent_first), std::free);
        if (lines == nullptr)
            detail::out_of_memory();
        std::vector<std::string> texts;
        for (char **line = lines.get(); *line != nullptr; line++)
            texts.emplace_back(*line);
        return texts;
    }
    const ta_traceback &raw() const noexcept
    {
        return raw_;
    }

  private:
    static traceback owned(const ta_traceback &raw)
    {
        return traceback(raw, std::shared_ptr<const void>(raw.owner, [raw](const void *) { ta_traceback_free(raw); }));
    }

    ta_traceback raw_;
    std::shared_ptr<const void> owner_;
};

namespace detail
{

/* Rows that are computed when they are looked at: begin and end for a class with size() and operator[]. */
template <typename Rows, typename Row> class row_iterator
{
  public:
    using iterator_category = std::input_iterator_tag; /* what is answered is no reference */
#if defined(__cpp_lib_ranges)
    using iterator_concept = std::random_access_iterator_tag;
#endif
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Row;

    row_iterator() noexcept = default;
    row_iterator(const Rows *rows, std::size_t index) noexcept : rows_(rows), index_(index)
    {
    }
    Row operator*() const
    {
        return (*rows_)[index_];
    }
    row_iterator &operator++() noexcept
    {
        index_++;
        return *this;
    }
    row_iterator operator++(int) noexcept
    {
        row_iterator before = *this;
        index_++;
        return before;
    }
    row_iterator &operator--() noexcept
    {
        index_--;
        return *this;
    }
    row_iterator operator--(int) noexcept
    {
        row_iterator before = *this;
        index_--;
        return before;
    }
    row_iterator &operator+=(difference_type by) noexcept
    {
        index_ += static_cast<std::size_t>(by);
        return *this;
    }
    row_iterator &operator-=(difference_type by) noexcept
    {
        index_ -= static_cast<std::size_t>(by);
        return *this;
    }
    Row operator[](difference_type by) const
    {
        return *(*this + by);
    }
    friend row_iterator operator+(row_iterator at, difference_type by) noexcept
    {
        return at += by;
    }
    friend row_iterator operator+(difference_type by, row_iterator at) noexcept
    {
        return at += by;
    }
    friend row_iterator operator-(row_iterator at, difference_type by) noexcept
    {
        return at -= by;
    }
    friend difference_type operator-(const row_iterator &a, const row_iterator &b) noexcept
    {
        return static_cast<difference_type>(a.index_) - static_cast<difference_type>(b.index_);
    }
    friend bool operator==(const row_iterator &a, const row_iterator &b) noexcept
    {
        return a.index_ == b.index_;
    }
    friend bool operator!=(const row_iterator &a, const row_iterator &b) noexcept
    {
        return a.index_ != b.index_;
    }
    friend bool operator<(const row_iterator &a, const row_iterator &b) noexcept
    {
        return a.index_ < b.index_;
    }
    friend bool operator>(const row_iterator &a, const row_iterator &b) noexcept
    {
        return b < a;
    }
    friend bool operator<=(const row_iterator &a, const row_iterator &b) noexcept
    {
        return !(b < a);
    }
    friend bool operator>=(const row_iterator &a, const row_iterator &b) noexcept
    {
        return !(a < b);
    }

  private:
    const Rows *rows_ = nullptr;
    std::size_t index_ = 0;
};

/* The text that write(text, size) makes, in the manner of snprintf. */
template <typename Write> std::string text_of(Write write)
{
    std::string text(write(nullptr, 0), '\0');
    write(text.data(), text.size() + 1);
    return text;
}

} // namespace detail

/* One group: auto [where, size, count] = row; the rest by name. */
struct statistic {
    traceback where;
    std::uint64_t size, count;
    std::uint64_t allocated_size, allocated_count, peak_size;
    double temporary_share;
};

/* One changed group: auto [where, size_diff, count_diff] = row; the rest by name. */
struct difference {
    traceback where;
    std::int64_t size_diff, count_diff;
    std::uint64_t size, count;
    std::int64_t allocated_size_diff, allocated_count_diff;
};

template <std::size_t Index> auto get(const statistic &row) noexcept
{
    return std::get<Index>(std::make_tuple(row.where, row.size, row.count));
}
template <std::size_t Index> auto get(const difference &row) noexcept
{
    return std::get<Index>(std::make_tuple(row.where, row.size_diff, row.count_diff));
}

/* Groups in their order, largest first. They keep their snapshot alive. */
class statistics
{
  public:
    using iterator = detail::row_iterator<statistics, statistic>;
    using value_type = statistic;
    statistics(ta_statistics *raw, std::shared_ptr<ta_snapshot> of)
        : raw_(raw, [of = std::move(of)](ta_statistics *rows) { ta_statistics_free(rows); })
    {
    }
    std::size_t size() const noexcept
    {
        return ta_statistics_count(raw_.get());
    }
    bool empty() const noexcept
    {
        return size() == 0;
    }
    statistic operator[](std::size_t index) const
    {
        ta_statistic row{};
        if (ta_statistics_get(raw_.get(), index, &row) != 0)
            detail::fail(failure::last());
        return {traceback(row.traceback, raw_),
                row.size,
                row.count,
                row.allocated_size,
                row.allocated_count,
                row.peak_size,
                row.temporary_share};
    }
    iterator begin() const noexcept
    {
        return {this, 0};
    }
    iterator end() const noexcept
    {
        return {this, size()};
    }
    /* "FILE:LINE: size=…, count=…, average=…" */
    std::string text(std::size_t index) const
    {
        return detail::text_of(
            [&](char *text, std::size_t room) { return ta_statistics_text(raw_.get(), index, text, room); });
    }
    void sort(ta_order order)
    {
        if (ta_statistics_sort(raw_.get(), order) != 0)
            detail::fail(failure::last());
    }
    ta_statistics *raw() const noexcept
    {
        return raw_.get();
    }

  private:
    std::shared_ptr<ta_statistics> raw_; /* keeps the snapshot */
};

/* new - old for every group of either. They keep both snapshots alive. */
class differences
{
  public:
    using iterator = detail::row_iterator<differences, difference>;
    using value_type = difference;
    differences(ta_differences *raw, std::shared_ptr<ta_snapshot> newer, std::shared_ptr<ta_snapshot> older)
        : raw_(raw, [newer = std::move(newer), older = std::move(older)](ta_differences *rows) {
              ta_differences_free(rows);
          })
    {
    }
    std::size_t size() const noexcept
    {
        return ta_differences_count(raw_.get());
    }
    bool empty() const noexcept
    {
        return size() == 0;
    }
    difference operator[](std::size_t index) const
    {
        ta_statistic_diff row{};
        if (ta_differences_get(raw_.get(), index, &row) != 0)
            detail::fail(failure::last());
        return {traceback(row.traceback, raw_), row.size_diff,           row.count_diff, row.size, row.count,
                row.allocated_size_diff,        row.allocated_count_diff};
    }
    iterator begin() const noexcept
    {
        return {this, 0};
    }
    iterator end() const noexcept
    {
        return {this, size()};
    }
    std::string text(std::size_t index) const
    {
        return detail::text_of(
            [&](char *text, std::size_t room) { return ta_differences_text(raw_.get(), index, text, room); });
    }
    void sort(ta_order order)
    {
        if (ta_differences_sort(raw_.get(), order) != 0)
            detail::fail(failure::last());
    }
    ta_differences *raw() const noexcept
    {
        return raw_.get();
    }

  private:
    std::shared_ptr<ta_differences> raw_; /* keeps the snapshots */
};

/* What was allocated at one moment. Owns it; moves, does not copy. */
class snapshot
{
  public:
    explicit snapshot(ta_snapshot *raw) : raw_(raw, ta_snapshot_free)
    {
    }
    snapshot(snapshot &&) noexcept = default;
    snapshot &operator=(snapshot &&) noexcept = default;
    static result<snapshot> try_take()
    {
        return made(ta_take_snapshot());
    }
    static snapshot take()
    {
        return try_take().value();
    }
    /* A recording, or one entry of it: "day.ta@2". */
    static result<snapshot> try_load(const std::filesystem::path &path)
    {
        return made(ta_snapshot_load(path.c_str()));
    }
    static snapshot load(const std::filesystem::path &path)
    {
        return try_load(path).value();
    }
    void dump(const std::filesystem::path &path) const
    {
        if (ta_snapshot_dump(raw_.get(), path.c_str()) != 0)
            detail::fail(failure::last());
    }
    /* With the traces for which the condition holds, in words: docs/filters.md. */
    result<snapshot> try_filter(std::string_view condition) const
    {
        return made(ta_snapshot_filter_expression(raw_.get(), std::string(condition).c_str()));
    }
    snapshot filter(std::string_view condition) const
    {
        return try_filter(condition).value();
    }
    /* Keys: docs/api-analysis.md. */
    tracealloc::statistics statistics(std::string_view key = "lineno", bool cumulative = false) const
    {
        ta_statistics *raw = ta_snapshot_statistics(raw_.get(), std::string(key).c_str(), cumulative);
        if (raw == nullptr)
            detail::fail(failure::last());
        return tracealloc::statistics(raw, raw_);
    }
    tracealloc::differences compare_to(const snapshot &old, std::string_view key = "lineno",
                                       bool cumulative = false) const
    {
        ta_differences *raw = ta_snapshot_compare_to(raw_.get(), old.raw_.get(), std::string(key).c_str(), cumulative);
        if (raw == nullptr)
            detail::fail(failure::last());
        return tracealloc::differences(raw, raw_, old.raw_);
    }
    void set_metadata(std::string_view key, std::string_view value)
    {
        if (ta_snapshot_set_metadata(raw_.get(), std::string(key).c_str(), std::string(value).c_str()) != 0)
            detail::fail(failure::last());
    }
    std::optional<std::string> metadata(std::string_view key) const
    {
        const char *value = ta_snapshot_metadata(raw_.get(), std::string(key).c_str());
        if (value == nullptr)
            return std::nullopt;
        return std::string(value);
    }
    /* "pprof", "flame", "text", "folded" and others: tracealloc/export.h has the list. */
    void write(std::ostream &out, std::string_view format, ta_order order = TA_ORDER_DEFAULT) const
    {
        hand_over(format, order, [&](const char *text, std::size_t length) {
            return !out.write(text, static_cast<std::streamsize>(length)).fail();
        });
    }
    std::string to_string(std::string_view format, ta_order order = TA_ORDER_DEFAULT) const
    {
        std::string all;
        hand_over(format, order, [&](const char *text, std::size_t length) {
            all.append(text, length);
            return true;
        });
        return all;
    }
    ta_snapshot *raw() const noexcept
    {
        return raw_.get();
    }

  private:
    /* What take(text, length) throws goes around the library, which is C. */
    template <typename Take> struct taker {
        Take take;
        std::exception_ptr thrown;
        static int call(void *user, const char *text, std::size_t length)
        {
            taker *self = static_cast<taker *>(user);
#if TRACEALLOC_HAS_EXCEPTIONS
            try {
                return self->take(text, length) ? 0 : -1;
            } catch (...) {
                self->thrown = std::current_exception();
                return -1;
            }
#else
            return self->take(text, length) ? 0 : -1;
#endif
        }
    };
    template <typename Take> void hand_over(std::string_view format, ta_order order, Take take) const
    {
        taker<Take> taken{std::move(take), nullptr};
        if (ta_snapshot_export(raw_.get(), std::string(format).c_str(), order, taker<Take>::call, &taken) == 0)
            return;
#if TRACEALLOC_HAS_EXCEPTIONS
        if (taken.thrown)
            std::rethrow_exception(taken.thrown);
#endif
        detail::fail(failure::last());
    }
    static result<snapshot> made(ta_snapshot *raw)
    {
        if (raw == nullptr)
            return failure::last();
        return snapshot(raw);
    }

    std::shared_ptr<ta_snapshot> raw_;
};

} // namespace tracealloc

namespace std
{
template <> struct tuple_size<tracealloc::statistic> : integral_constant<size_t, 3> {
};
template <size_t Index> struct tuple_element<Index, tracealloc::statistic> {
    using type = decltype(tracealloc::get<Index>(declval<const tracealloc::statistic &>()));
};
template <> struct tuple_size<tracealloc::difference> : integral_constant<size_t, 3> {
};
template <size_t Index> struct tuple_element<Index, tracealloc::difference> {
    using type = decltype(tracealloc::get<Index>(declval<const tracealloc::difference &>()));
};
template <> struct hash<tracealloc::domain> {
    size_t operator()(tracealloc::domain where) const noexcept
    {
        return hash<uint32_t>()(where.number());
    }
};
} // namespace std

#endif

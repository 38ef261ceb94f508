/* test_cplusplus.cpp: tracealloc.hpp — every class of it, with the standard's own containers, against the figures of the
 * domains. Also compiled by tests/integration/cplusplus.sh with other compilers, standards and libraries, without
 * exceptions and without RTTI. */
#include <tracealloc/tracealloc.hpp>

#include <cstdio>
#include <unistd.h>
#include <list>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif
#if __cplusplus >= 202002L
#include <ranges>
#endif

namespace ta = tracealloc;

static int checks, failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        checks++;                                                                                                      \
        if (!(condition)) {                                                                                            \
            std::printf("%s:%d: FAILED: %s\n", __FILE__, __LINE__, #condition);                                        \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

template <typename T> using vector_in = std::vector<T, ta::allocator<T>>;
using string_in = std::basic_string<char, std::char_traits<char>, ta::allocator<char>>;

/* What lives in a domain; 0 for one that was never used. */
static std::uint64_t live(ta::domain where)
{
    auto stats = where.stats();
    return stats ? stats->live_bytes : 0;
}
static std::uint64_t blocks(ta::domain where)
{
    auto stats = where.stats();
    return stats ? stats->live_blocks : 0;
}

static bool is_in(const void *block, ta::domain where)
{
    auto domain = ta::domain::of(block);
    return domain && *domain == where;
}

struct alignas(64) wide {
    char bytes[64];
};

static void domains_are_values_with_names()
{
    ta::domain parser(70, "cpp.parser");
    void *block = ta_domain_malloc(70, 10);
    CHECK(parser.name() == "cpp.parser");
    CHECK(ta::domain::find("cpp.parser") == parser);
    CHECK(!ta::domain::find("cpp.nobody"));
    CHECK(ta::domain::current() == ta::domain());
    {
        ta::domain_scope scope(parser);
        CHECK(ta::domain::current() == parser);
        ta::domain_scope inner(71);
        CHECK(ta::domain::current().number() == 71);
    }
    CHECK(ta::domain::current().number() == 0);
    CHECK(is_in(block, parser));
    CHECK(!ta::domain::of(&parser));
    bool listed = false;
    for (ta::domain each : ta::domain::list())
        listed = listed || each == parser;
    CHECK(listed);
    ta_free(block);
    CHECK(!ta::domain(7777777).stats());
#if TRACEALLOC_HAS_EXCEPTIONS
    bool refused = false;
    try {
        ta::domain other(72, "cpp.parser");
    } catch (const ta::failure &why) {
        refused = why.code() == EEXIST && why.what()[0] != '\0';
    }
    CHECK(refused);
#endif
}

static void containers_keep_their_domain()
{
    ta::domain a(80), b(81);
    std::uint64_t before = live(a);
    {
        vector_in<int> numbers(1000, 7, a);
        CHECK(is_in(numbers.data(), a));
        CHECK(live(a) - before == 1000 * sizeof(int));
        numbers.resize(100000);
        CHECK(is_in(numbers.data(), a));

        /* A copy inherits; assignment keeps the target's; a move and a swap take it along. */
        vector_in<int> copy = numbers;
        CHECK(copy.get_allocator().where() == a && is_in(copy.data(), a));
        vector_in<int> target(5, 1, b);
        target = numbers;
        CHECK(target.get_allocator().where() == b && is_in(target.data(), b) && target.size() == 100000);
        const int *data = numbers.data();
        target = std::move(numbers);
        CHECK(target.get_allocator().where() == a && target.data() == data);
        vector_in<int> other(10, 2, b);
        std::swap(other, target);
        CHECK(other.get_allocator().where() == a && other.data() == data && is_in(target.data(), b));
        vector_in<int> moved(std::move(other), ta::allocator<int>(b)); /* an allocator that differs: elements move */
        CHECK(is_in(moved.data(), b) && moved.size() == 100000);

        std::map<int, string_in, std::less<>, ta::allocator<std::pair<const int, string_in>>> map{
            ta::allocator<std::pair<const int, string_in>>(a)};
        for (int i = 0; i < 100; i++)
            map.emplace(i, string_in(100, 'x', a));
        CHECK(is_in(&*map.begin(), a) || blocks(a) >= 200);
        std::unordered_map<int, int, std::hash<int>, std::equal_to<>, ta::allocator<std::pair<const int, int>>> hashed(
            8, std::hash<int>(), std::equal_to<>(), a);
        for (int i = 0; i < 1000; i++)
            hashed[i] = i;
        std::list<int, ta::allocator<int>> list(a);
        list.push_back(1);
        std::list<int, ta::allocator<int>> same(a);
        same.push_back(2);
        list.splice(list.end(), same); /* equal allocators */
        CHECK(list.size() == 2);
        std::set<int, std::less<>, ta::allocator<int>> set(a);
        set.insert({1, 2, 3});
        vector_in<wide> aligned(3, wide{}, a);
        CHECK(reinterpret_cast<std::uintptr_t>(aligned.data()) % 64 == 0);
        vector_in<bool> bits(1000, true, a);
        CHECK(bits[999]);
    }
    CHECK(live(a) == before && live(b) == 0);
    CHECK(ta::allocator<int>(a) == ta::allocator<char>(a) && ta::allocator<int>(a) != ta::allocator<int>(b));
    CHECK(std::allocator_traits<ta::allocator<int>>::select_on_container_copy_construction(a).where() == a);
#if TRACEALLOC_HAS_EXCEPTIONS
    bool refused = false;
    try {
        (void)ta::allocator<wide>(a).allocate(SIZE_MAX / 8);
    } catch (const std::bad_alloc &) {
        refused = true;
    }
    CHECK(refused);
#endif
}

static void resources_serve_pmr()
{
    ta::domain a(90), b(91);
    ta::memory_resource in_a(a), also_a(a), in_b(b);
    {
        std::pmr::vector<std::pmr::string> texts(&in_a);
        for (int i = 0; i < 100; i++)
            texts.emplace_back(100, 'y');
        CHECK(is_in(texts.data(), a) && is_in(texts[99].data(), a));
        std::pmr::vector<std::pmr::string> elsewhere(texts, &in_b);
        CHECK(is_in(elsewhere[0].data(), b));
        void *block = in_a.allocate(100, 256);
        CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0 && is_in(block, a));
        in_a.deallocate(block, 100, 256);
    }
    CHECK(live(a) == 0 && live(b) == 0);
    CHECK(in_a.is_equal(in_a) && !in_a.is_equal(in_b) && !in_a.is_equal(*std::pmr::new_delete_resource()));
#if defined(__cpp_rtti)
    CHECK(in_a.is_equal(also_a));
#endif
    {
        ta::pool_resource pool(b);
        std::pmr::map<int, int> map(&pool);
        for (int i = 0; i < 10000; i++)
            map[i] = i;
        CHECK(live(b) > 10000 * sizeof(int) * 2 && blocks(b) < 1000);
        ta::synchronized_pool_resource shared(b);
        std::pmr::vector<int> numbers(100, &shared);
        CHECK(pool.where() == b && !pool.is_equal(shared));
    }
    CHECK(live(b) == 0);
    std::pmr::monotonic_buffer_resource buffer(1024, &in_b);
    std::pmr::vector<int> numbers(1000, &buffer);
    CHECK(live(b) >= 4000);
    numbers = std::pmr::vector<int>(&buffer);
    buffer.release();
    CHECK(live(b) == 0);
}

static int alive;
struct counted {
    explicit counted(int v = 0) : value(v)
    {
        alive++;
    }
    counted(const counted &) = delete;
    ~counted()
    {
        alive--;
    }
    int value;
};
struct base {
    virtual ~base() = default;
    int number = 1;
};
struct second {
    virtual ~second() = default;
    int number = 2;
};
struct derived : base, second {
    ~derived() override
    {
        alive--;
    }
};

static void single_objects_are_owned()
{
    ta::domain a(100);
    {
        auto one = ta::make_unique_in<counted>(a, 5);
        CHECK(one->value == 5 && alive == 1 && is_in(one.get(), a));
        auto many = ta::make_unique_in<counted[]>(a, 10);
        CHECK(alive == 11 && is_in(many.get(), a) && many[9].value == 0);
        auto moved = std::move(many);
        CHECK(alive == 11 && moved[3].value == 0);
        auto shared = ta::make_shared_in<counted>(a, 6);
        CHECK(alive == 12 && blocks(a) == 3);
        auto aligned = ta::make_unique_in<wide>(a);
        CHECK(reinterpret_cast<std::uintptr_t>(aligned.get()) % 64 == 0);
    }
    CHECK(alive == 0 && live(a) == 0);
#if defined(__cpp_rtti)
    alive = 1;
    ta::unique_in<second> as_base = ta::make_unique_in<derived>(a); /* the base does not lie in front */
    CHECK(as_base->number == 2 && live(a) > 0);
    as_base.reset();
    CHECK(alive == 0 && live(a) == 0);
#endif
#if TRACEALLOC_HAS_EXCEPTIONS
    struct thrower {
        thrower()
        {
            throw 1;
        }
    };
    try {
        auto never = ta::make_unique_in<thrower>(a);
    } catch (int) {
        alive = 50;
    }
    CHECK(alive == 50 && live(a) == 0);
    alive = 0;
#endif
}

static void arenas_end_with_their_scope()
{
    ta::domain number;
    {
        ta::arena arena("cpp.request");
        number = arena.where();
        CHECK(arena && number.number() != 0 && number.name() == "cpp.request");
        int *value = arena.make<int>(42);
        CHECK(*value == 42 && is_in(value, arena));
        vector_in<int> numbers(1000, 0, arena);
        CHECK(live(arena) >= 4000);
        CHECK(arena.stats() && arena.stats()->live_bytes == live(arena));
        numbers = vector_in<int>(); /* gone before the arena */
        ta::arena taken(std::move(arena));
        CHECK(!arena && !arena.stats() && taken.where() == number && is_in(value, taken));
        ta::arena third;
        third = std::move(taken);
        CHECK(third.where() == number && *value == 42);
        {
            ta::arena_scope scope(third);
            std::string text(1000, 'z'); /* ambient allocations, where malloc is replaced */
            CHECK(text.size() == 1000);
        }
    }
    CHECK(!number.stats());
}

static void new_takes_a_domain()
{
    ta::domain a(105);
    counted *one = new (a) counted(4);
    wide *aligned = new (a) wide;
    CHECK(is_in(one, a) && is_in(aligned, a) && reinterpret_cast<std::uintptr_t>(aligned) % 64 == 0 && alive == 1);
    one->~counted();
    ta_free(one);
    ta_free(aligned);
    CHECK(alive == 0 && live(a) == 0);
#if TRACEALLOC_HAS_EXCEPTIONS
    struct thrower {
        thrower()
        {
            throw 1;
        }
    };
    try {
        (void)new (a) thrower;
    } catch (int) {
        alive = 60;
    }
    CHECK(alive == 60 && live(a) == 0);
    alive = 0;
#endif
}

static void foreign_memory_has_an_account()
{
    ta::domain a(140);
    static char device[4096];
    ta::start(5);
    {
        ta::tracked account(a, device, sizeof device);
        CHECK(account && live(a) == sizeof device);
        ta::tracked moved(std::move(account));
        CHECK(!account && moved && live(a) == sizeof device);
        ta::tracked third;
        third = std::move(moved);
        CHECK(live(a) == sizeof device);
        third = ta::tracked(a, std::uintptr_t{77}, 100);
        CHECK(live(a) == 100);
    }
    CHECK(live(a) == 0);
    ta::stop();
    CHECK(!ta::tracked(a, device, 1));
}

static void limits_refuse()
{
    ta::domain a(110);
    a.set_limit(0, 100000);
    void *fits = ta_domain_malloc(110, 50000);
    CHECK(fits != nullptr && a.stats()->hard_limit == 100000);
#if TRACEALLOC_HAS_EXCEPTIONS
    bool refused = false;
    try {
        vector_in<char> large(200000, 'x', a);
    } catch (const std::bad_alloc &) {
        refused = true;
    }
    CHECK(refused);
#endif
    ta_free(fits);
    a.set_limit(0, 0);
}

static void scopes_travel_to_other_threads()
{
    ta::domain a(120);
    std::uint32_t seen = 0, seen_later = 0;
    {
        ta::domain_scope scope(a);
        std::thread thread =
            ta::make_thread([&](int add) { seen = ta_domain_current() + static_cast<unsigned>(add); }, 1);
        thread.join();
    }
    CHECK(seen == 121);
    auto task = ta::in_domain(a, [&] { seen_later = ta_domain_current(); });
    task();
    CHECK(seen_later == 120 && ta_domain_current() == 0);
    struct counter {
        int value = 3;
        int add(int n)
        {
            return value + n;
        }
    } counter;
    auto member = ta::in_domain(a, &counter::add);
    CHECK(member(counter, 4) == 7);
}

#if defined(__cpp_impl_coroutine)
struct task {
    struct promise_type : ta::coroutine_frame {
        task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
        }
    };
    std::coroutine_handle<promise_type> handle;
};
__attribute__((noinline)) static task in_named_domain(ta::domain, int *out, int value)
{
    *out = value;
    co_return;
}
__attribute__((noinline)) static task in_ambient_domain(int *out)
{
    *out = 9;
    co_return;
}
static void coroutine_frames_are_in_a_domain()
{
    ta::domain a(130);
    int out = 0;
    task first = in_named_domain(a, &out, 8);
    CHECK(blocks(a) == 1);
    first.handle.resume();
    CHECK(out == 8);
    first.handle.destroy();
    CHECK(blocks(a) == 0);
    ta::domain_scope scope(a);
    task second = in_ambient_domain(&out);
    CHECK(blocks(a) == 1);
    second.handle.resume();
    second.handle.destroy();
    CHECK(out == 9 && blocks(a) == 0);
}
#endif

__attribute__((noinline)) static void *keep(std::size_t size)
{
    void *block = ta_malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

static void snapshots_are_ranges()
{
    CHECK(!ta::snapshot::try_take());
    CHECK(ta::snapshot::try_take().error().what()[0] != '\0');
    ta::start();
    CHECK(ta::is_tracing());
    ta::snapshot before = ta::snapshot::take();
    void *kept = keep(123456);
    ta::snapshot after = ta::snapshot::take();
    CHECK(ta::get_traced_memory().current >= 123456 && ta::get_traced_memory().peak >= 123456);
    after.set_metadata("why", "test");
    CHECK(after.metadata("why") == std::string("test") && !after.metadata("none"));

    bool found = false;
    ta::statistics rows = after.statistics("function");
    for (auto [where, size, count] : rows)
        found = found || (size == 123456 && count == 1 && where.size() == 1);
    CHECK(found && !rows.empty() && rows.text(0).find("size=") != std::string::npos);
    rows.sort(TA_ORDER_COUNT);
    CHECK(rows[0].count >= rows[rows.size() - 1].count);

    auto changes = after.compare_to(before, "traceback");
    CHECK(!changes.empty() && changes[0].size_diff == 123456 && changes[0].count_diff == 1);
    auto [where, grown, blocks_grown] = changes[0];
    CHECK(grown == 123456 && blocks_grown == 1 && where.frames().size() == where.size() && !where.text().empty());
    CHECK(where.format().size() >= where.size());

    std::filesystem::path path = std::filesystem::temp_directory_path() /
                                 ("tracealloc-cplusplus-" + std::to_string(static_cast<long>(getpid())) + ".ta");
    after.dump(path);
    ta::snapshot loaded = ta::snapshot::load(path);
    CHECK(loaded.filter("size>=123456").statistics("lineno").size() == 1);
    CHECK(!loaded.try_filter("size>="));
    CHECK(!ta::snapshot::try_load(path / "none"));
    std::filesystem::remove(path);
    ta_free(kept);
    ta::stop();
}

/* What is asked of a snapshot that nobody holds any more, and of rows that are gone. */
static void answers_keep_what_they_came_from()
{
    ta::start();
    void *kept = keep(98765);
    std::uint64_t found = 0;
    for (auto [where, size, count] : ta::snapshot::take().statistics("traceback"))
        found += size == 98765 && where.frame(-1)->address != 0 ? count : 0;
    CHECK(found == 1);
    std::optional<ta::traceback> where;
    {
        ta::snapshot now = ta::snapshot::take();
        ta::differences changes = now.compare_to(ta::snapshot::take());
        where = changes[0].where;
        ta::snapshot moved(std::move(now));
        now = ta::snapshot::take();
    }
    CHECK(where->size() == 1 && !where->text().empty());

    ta::snapshot now = ta::snapshot::take();
    ta::statistics rows = now.statistics("function");
    auto at = rows.begin();
    at += static_cast<std::ptrdiff_t>(rows.size());
    CHECK(at == rows.end() && rows.end() - rows.begin() == static_cast<std::ptrdiff_t>(rows.size()));
    CHECK(rows.begin()[0].size == rows[0].size && (rows.end() - 1 < rows.end()));
#if defined(__cpp_lib_ranges) && (!defined(__clang__) || __clang_major__ >= 16) /* before, libstdc++'s are none */
    static_assert(std::ranges::random_access_range<ta::statistics &>);
    std::uint64_t first = 0;
    for (auto row : rows | std::views::take(1))
        first = row.size;
    CHECK(first == rows[0].size);
#endif
#if defined(__cpp_lib_expected)
    std::expected<ta::snapshot, ta::failure> none = ta::snapshot::try_load("/nonexistent.ta");
    CHECK(!none && none.error().what()[0] != '\0');
    std::expected<ta::snapshot, ta::failure> one = ta::snapshot::try_take();
    CHECK(one && !one->statistics().empty());
#endif
    std::ostringstream stream;
    now.write(stream, "csv");
    CHECK(stream.str().find(",98765,") != std::string::npos && now.to_string("csv") == stream.str());
    CHECK(now.to_string("flame").find("<svg") != std::string::npos);
#if TRACEALLOC_HAS_EXCEPTIONS
    struct refusing : std::streambuf {
        int overflow(int) override
        {
            throw std::out_of_range("full");
        }
    } buffer;
    std::ostream full(&buffer);
    full.exceptions(std::ios::badbit);
    bool thrown = false;
    try {
        now.write(full, "csv");
    } catch (const std::out_of_range &) {
        thrown = true;
    }
    CHECK(thrown);
    full.exceptions(std::ios::goodbit);
    thrown = false;
    try {
        now.write(full, "csv");
    } catch (const ta::failure &) {
        thrown = true;
    }
    CHECK(thrown);
#endif
    CHECK(ta::traceback::of(kept).size() >= 2 && !ta::traceback::of(kept).format().empty());
    CHECK(ta::traceback::of(nullptr).size() == 0);
    CHECK(ta::describe(kept).find("Allocated at") != std::string::npos);
    ta_free(kept);
    ta::stop();
}

int main()
{
    domains_are_values_with_names();
    containers_keep_their_domain();
    resources_serve_pmr();
    single_objects_are_owned();
    arenas_end_with_their_scope();
    limits_refuse();
    scopes_travel_to_other_threads();
#if defined(__cpp_impl_coroutine)
    coroutine_frames_are_in_a_domain();
#endif
    new_takes_a_domain();
    foreign_memory_has_an_account();
    snapshots_are_ranges();
    answers_keep_what_they_came_from();
    std::printf("%d checks, %d failed\n", checks, failures);
    return failures != 0 || checks < 60;
}

/* test_modules.c: the table of loaded modules and the rule cache above it, while objects come and go.
 *
 * This program is the process's malloc, as the product is: it sees ld.so's own requests and calls ta__modules_check for
 * them. Two plugins of the same layout are loaded by turns; they land on the same addresses, where the rule of the one
 * is wrong for the other. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/loaded_objects.h"
#include "trace/unwind/rule_cache.h"
#include "unity.h"

/* ---- the process's malloc ---- */

static int is_checking = 1;
static unsigned long loader_requests;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The sanitizer has to stay the malloc: the check is called by hand after each unloading. */
#define IS_MALLOC 0
#define STEP      211 /* between the addresses that are compared: sanitizers are slow */
#else
#define IS_MALLOC 1
#define STEP      13
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static void look_at_caller(void *caller)
{
    if (!ta__modules_is_loader((uintptr_t)caller))
        return;
    __atomic_fetch_add(&loader_requests, 1, __ATOMIC_RELAXED);
    if (is_checking)
        ta__modules_check();
}

void *malloc(size_t size)
{
    look_at_caller(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    look_at_caller(__builtin_return_address(0));
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    look_at_caller(__builtin_return_address(0));
    return __libc_realloc(block, size);
}

void free(void *block)
{
    __libc_free(block);
}
#endif

/* ---- plugins ---- */

struct plugin {
    const char *path;
    int64_t offset; /* CFA offset at the call: its frame and the return address */
};

static const struct plugin plugins[2] = {{PLUGIN_SMALL, 1032 + 8}, {PLUGIN_LARGE, 2056 + 8}};
static const struct plugin bare_plugins[2] = {{PLUGIN_SMALL_BARE, 1032 + 8}, {PLUGIN_LARGE_BARE, 2056 + 8}};

static uintptr_t seen_address;
static uint64_t seen_rule;

static __attribute__((noinline)) void observe(void)
{
    seen_address = (uintptr_t)__builtin_return_address(0);
    seen_rule = ta__rule(seen_address);
}

struct visit {
    uintptr_t address;
    uint64_t rule;
    ta__module_id module;
    int is_stale;
};

static void check_by_hand(void)
{
    if (!IS_MALLOC && is_checking)
        ta__modules_check();
}

/* Loads the plugin, has it call us, unloads it. */
static struct visit visit(const struct plugin *plugin)
{
    void *handle = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    TEST_ASSERT_NOT_NULL_MESSAGE(handle, dlerror());
    check_by_hand();
    void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "plugin_call");
    TEST_ASSERT_NOT_NULL(call);
    call(observe);
    struct visit result = {.address = seen_address,
                           .rule = seen_rule,
                           .module = ta__module_find(seen_address),
                           .is_stale = ta__rule_offset(seen_rule) != plugin->offset};
    TEST_ASSERT_EQUAL_INT(0, dlclose(handle));
    check_by_hand();
    return result;
}

static uintptr_t loader_address(void)
{
    return _r_debug.r_ldbase;
}

void setUp(void)
{
    is_checking = 1;
    ta__objects_use_list(0);
    ta__modules_begin();
}

void tearDown(void)
{
}

/* ---- without memory ---- */

static uintptr_t own_call_site(void);

static void test_modules_without_memory_rules_are_computed_each_time(void)
{
    uintptr_t site = own_call_site();
    uint64_t first = ta__rule(site);
    uint64_t second = ta__rule(site);
    struct ta__module scratch;
    const struct ta__module *module = ta__module_describe(site, &scratch);
    ta__memory_inject_failure(0, 0);

    TEST_ASSERT_NOT_EQUAL(TA__RULE_UNKNOWN, ta__rule_kind(first));
    TEST_ASSERT_EQUAL_HEX64(first, second);
    TEST_ASSERT_EQUAL_PTR(&scratch, module);
    TEST_ASSERT_EQUAL_UINT32(0, scratch.id.v);
    TEST_ASSERT_EQUAL_UINT32(0, ta__modules_count());
    TEST_ASSERT_EQUAL_UINT32(0, ta__module_find(site).v);

    ta__modules_begin();
    TEST_ASSERT_EQUAL_HEX64(first, ta__rule(site));
    TEST_ASSERT_NOT_EQUAL(0, ta__module_find(site).v);
}

static __attribute__((noinline)) uintptr_t return_address(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static __attribute__((noinline)) uintptr_t own_call_site(void)
{
    uintptr_t site = return_address();
    __asm__ volatile("");
    return site;
}

/* ---- facts about modules ---- */

static const struct ta__module *module_of(uintptr_t address)
{
    ta__rule(address + 1); /* the return address behind it */
    return ta__module_at(ta__module_find(address));
}

static void test_modules_of_known_objects_have_their_paths(void)
{
    char program[4096] = "";
    TEST_ASSERT_TRUE(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    Dl_info libc;
    TEST_ASSERT_TRUE(dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort"), &libc));
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);

    TEST_ASSERT_EQUAL_STRING(program, module_of(own_call_site())->path);
    TEST_ASSERT_EQUAL_STRING(libc.dli_fname, module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"))->path);
    if (vdso != 0)
        TEST_ASSERT_EQUAL_STRING("[vdso]", module_of(vdso)->path);
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    TEST_ASSERT_TRUE(in != NULL && out != NULL);
    size_t length = fread(bytes, 1, sizeof bytes, in);
    TEST_ASSERT_TRUE(length > 0 && length < sizeof bytes && fwrite(bytes, 1, length, out) == length);
    fclose(in);
    TEST_ASSERT_EQUAL_INT(0, fclose(out));
}

static void test_modules_opened_by_a_way_from_here_have_whole_paths(void)
{
    char folder[] = "/tmp/ta-modules-XXXXXX", before[4096], path[4200];
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    TEST_ASSERT_TRUE(getcwd(before, sizeof before) != NULL && chdir(folder) == 0);
    copy_file(PLUGIN_SMALL, "plugin.so");

    struct visit here = visit(&(struct plugin){"./plugin.so", plugins[0].offset});

    TEST_ASSERT_TRUE(getcwd(path, sizeof path) != NULL);
    strcat(path, "/./plugin.so");
    TEST_ASSERT_EQUAL_STRING(path, ta__module_at(here.module)->path);
    unlink("plugin.so");
    TEST_ASSERT_EQUAL_INT(0, chdir(before));
    rmdir(folder);
}

/* Reads the build id of a loaded object from its program headers, independently of modules.c. */
static int compare_build_id(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    unsigned *compared = context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const uint8_t *at = (const uint8_t *)info->dlpi_addr + segment->p_vaddr;
        const uint8_t *end = at + segment->p_memsz;
        while (at < end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const uint8_t *value = at + sizeof *note + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && memcmp(note + 1, "GNU", 4) == 0) {
                const struct ta__module *module = module_of((uintptr_t)at);
                TEST_ASSERT_NOT_NULL(module);
                TEST_ASSERT_EQUAL_UINT(note->n_descsz, module->build_id_bytes);
                TEST_ASSERT_EQUAL_MEMORY(value, module->build_id, note->n_descsz);
                TEST_ASSERT_EQUAL_HEX64(info->dlpi_addr, module->bias);
                ++*compared;
            }
            at = value + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

static void test_modules_have_the_build_ids_of_their_notes(void)
{
    unsigned compared = 0;
    dl_iterate_phdr(compare_build_id, &compared);

    TEST_ASSERT_TRUE(compared >= 2); /* libc and ld.so have one */
}

static void test_modules_know_the_loader(void)
{
    const struct ta__module *loader = module_of(loader_address());

    TEST_ASSERT_TRUE(loader->is_loader);
    TEST_ASSERT_TRUE(ta__modules_is_loader(loader->start));
    TEST_ASSERT_TRUE(ta__modules_is_loader(loader->end - 1));
    TEST_ASSERT_FALSE(ta__modules_is_loader(loader->end));
    TEST_ASSERT_FALSE(ta__modules_is_loader(loader->start - 1));
    TEST_ASSERT_FALSE(ta__modules_is_loader(own_call_site()));
    TEST_ASSERT_FALSE(ta__rule_in_loader(ta__rule(own_call_site())));

    static const char *const functions[] = {"_dl_find_object", "__tls_get_addr", "_dl_mcount"};
    unsigned flagged = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, functions[i]);
        if (ta__modules_is_loader(address)) { /* sanitizers put themselves before some */
            TEST_ASSERT_TRUE(ta__rule_in_loader(ta__rule(address + 8)));
            flagged++;
        }
    }
    TEST_ASSERT_TRUE(flagged > 0);
}

/* What the loader calls before main, constructors above all, was cut short where it is whole: at _start, of which nothing
 * is said. */
static void test_a_stack_is_whole_where_the_loader_begins(void)
{
    const struct ta__module *loader = module_of(loader_address());
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)loader->start;
    uintptr_t begins = loader->start + header->e_entry + 8;
    TEST_ASSERT_TRUE(ta__rule_is_beginning(loader, begins, TA__CFI_RETURN_ADDRESS));
    TEST_ASSERT_EQUAL_INT(TA__RULE_END, ta__rule_kind(ta__rule(begins)));
    TEST_ASSERT_TRUE(ta__rule_in_loader(ta__rule(begins)));

    uintptr_t known = (uintptr_t)dlsym(RTLD_DEFAULT, "_dl_mcount") + 8;
    TEST_ASSERT_FALSE(ta__modules_is_loader(known) && ta__rule_is_beginning(loader, known, TA__CFI_RETURN_ADDRESS));
    TEST_ASSERT_FALSE(ta__rule_is_beginning(module_of(own_call_site()), own_call_site(), TA__CFI_RETURN_ADDRESS));
}

static void test_modules_keep_errno(void)
{
    ta__modules_begin();
    errno = 4711;
    ta__rule(own_call_site());
    ta__rule((uintptr_t)dlsym(RTLD_DEFAULT, "qsort") + 1);
    errno = 4711;
    ta__modules_begin();
    ta__modules_check();

    TEST_ASSERT_EQUAL_INT(4711, errno);
}

static void test_modules_address_without_object_is_unknown(void)
{
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t count = ta__modules_count();

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule((uintptr_t)page + 100));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule_interrupted((uintptr_t)page + 100));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule(0));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule(UINTPTR_MAX));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule(ta__rules_tag.word));
    TEST_ASSERT_EQUAL_UINT32(count, ta__modules_count());
    munmap(page, 4096);
}

/* ---- the cache ---- */

enum { FIRST_TABLE = 32 << 10, LAST_TABLE = 512 << 10 };

static uint64_t computed(const struct ta__module *module, uintptr_t ip)
{
    return ta__rule_with_salt(ta__cfi_rule(&module->tables, ip, TA__CFI_RETURN_ADDRESS), module->salt);
}

static void test_rules_few_take_little_and_more_a_larger_table_that_has_them(void)
{
    const struct ta__module *libc = module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
    const struct ta__rule_table *first = ta__rule_table;
    uintptr_t begin = libc->start + 0x26000, ip = begin;
    for (; ip < begin + 200 * 13; ip += 13)
        ta__rule(ip);
    TEST_ASSERT_EQUAL_PTR(first, ta__rule_table);
    TEST_ASSERT_TRUE(ta__rules_resident() > 0 && ta__rules_resident() <= FIRST_TABLE);

    for (; ta__rule_table == first && ip < libc->end; ip += 13)
        ta__rule(ip);

    TEST_ASSERT_TRUE(ta__rule_table->mask > first->mask);
    for (uintptr_t again = ip - 100 * 13; again < ip; again += 13) {
        uint64_t rule;
        TEST_ASSERT_TRUE(ta__rule_lookup(again, &rule));
        TEST_ASSERT_EQUAL_HEX64(computed(libc, again), rule);
    }
    /* Nothing is left of the first one. */
    TEST_ASSERT_TRUE(ta__rules_resident() <= (ta__rule_table->mask + 1) * sizeof *ta__rule_table->sets);
}

static void *compare_rules(void *context)
{
    const struct ta__module *libc = context;
    uintptr_t wrong = 0;
    for (uintptr_t ip = libc->start + 0x26000; ip < libc->start + 0x26000 + 20000 * 5; ip += 5)
        wrong += ta__rule(ip) != computed(libc, ip);
    return (void *)wrong;
}

static void test_rules_are_read_while_the_table_grows(void)
{
    struct ta__module *libc = (struct ta__module *)(uintptr_t)module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
    const struct ta__rule_table *before = ta__rule_table;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, compare_rules, libc));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)wrong);
    }

    TEST_ASSERT_TRUE(ta__rule_table->mask > before->mask);
    TEST_ASSERT_EQUAL_UINT64(LAST_TABLE, (ta__rule_table->mask + 1) * sizeof *ta__rule_table->sets);
}

static void test_rules_table_without_memory_stays_small(void)
{
    pid_t child = fork();
    if (child == 0) {
        const struct ta__module *libc = module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
        const struct ta__rule_table *before = ta__rule_table;
        unsigned long wrong = 0;
        ta__memory_inject_failure(1, 1);
        for (uintptr_t ip = libc->start + 0x26000; ip < libc->start + 0x26000 + 5000 * 13; ip += 13)
            wrong += ta__rule(ip) != computed(libc, ip);
        _exit(wrong == 0 && ta__rule_table == before ? 0 : 1);
    }
    int status = -1;
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
}

static void test_rules_from_the_cache_equal_computed_ones(void)
{
    /* libc's text has some 1.5 million addresses: far more than the cache holds, so sets are evicted all the time. */
    const struct ta__module *libc = module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
    unsigned long known = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (uintptr_t ip = libc->start + 0x26000; ip < libc->end; ip += STEP) {
            uint64_t expected = computed(libc, ip);
            TEST_ASSERT_EQUAL_HEX64(expected, ta__rule(ip));
            TEST_ASSERT_EQUAL_HEX64(expected, ta__rule(ip));
            known += ta__rule_kind(expected) != TA__RULE_UNKNOWN;
        }
    }

    TEST_ASSERT_TRUE(known > 5000);
}

static void test_rules_interrupted_and_returned_to_differ_at_a_row_boundary(void)
{
    const struct ta__module *libc = module_of((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
    unsigned long different = 0;
    for (uintptr_t ip = libc->start + 0x26000; ip < libc->start + 0xa6000; ip += (STEP + 12) / 13) {
        uint64_t interrupted = ta__rule_interrupted(ip);
        TEST_ASSERT_EQUAL_HEX64(interrupted, ta__rule(ip + 1));
        different += interrupted != ta__rule(ip);
    }

    TEST_ASSERT_TRUE(different > 100);
}

/* Puts a recognisably wrong rule into the cache as a thread would. */
static void poison(uintptr_t address, uint64_t rule)
{
    struct ta__rule_set *set = &ta__rule_table->sets[address & ta__rule_table->mask];
    for (int way = 0; way < 2; way++) {
        set->way[way].rule = rule;
        set->way[way].key = address ^ rule ^ ta__rules_tag.word;
    }
}

static void test_rules_of_an_older_generation_never_match_again(void)
{
    uintptr_t site = own_call_site();
    uint64_t right = ta__rule(site);
    uint64_t wrong = ta__rule_encode(TA__RULE_SP, 0, 4711 * 8, 0);
    poison(site, wrong);
    TEST_ASSERT_EQUAL_HEX64(wrong, ta__rule(site));

    for (unsigned i = 0; i < (1u << 22) + 1; i++) { /* once around the tag's numbers, and the same tag again */
        ta__rules_forget();
        if (i < 100 || i > (1u << 22) - 100)
            TEST_ASSERT_EQUAL_HEX64(right, ta__rule(site));
    }
}

static void test_rules_of_a_tag_gone_around_were_cleared(void)
{
    uintptr_t site = own_call_site();
    uint64_t right = ta__rule(site);
    poison(site, ta__rule_encode(TA__RULE_SP, 0, 4711 * 8, 0));
    uint64_t tag = ta__rules_tag.word;

    do
        ta__rules_forget();
    while (ta__rules_tag.word != tag);

    TEST_ASSERT_EQUAL_HEX64(right, ta__rule(site));
}

/* ---- coming and going ---- */

static void visit_by_turns(const struct plugin pair[2])
{
    uint64_t generation = ta__modules_generation;
    struct visit first[2] = {visit(&pair[0]), visit(&pair[1])};
    uint32_t count = ta__modules_count();
    TEST_ASSERT_FALSE(first[0].is_stale);
    TEST_ASSERT_FALSE(first[1].is_stale);
    TEST_ASSERT_EQUAL_HEX64(first[0].address, first[1].address); /* the plugins did coincide */
    TEST_ASSERT_NOT_EQUAL(ta__rule_salt(first[0].rule), ta__rule_salt(first[1].rule));
    TEST_ASSERT_NOT_EQUAL(first[0].module.v, first[1].module.v);

    for (unsigned i = 0; i < 200; i++) {
        struct visit again = visit(&pair[i % 2]);
        TEST_ASSERT_FALSE(again.is_stale);
        TEST_ASSERT_EQUAL_HEX64(first[i % 2].address, again.address);
        TEST_ASSERT_EQUAL_HEX64(first[i % 2].rule, again.rule);
        TEST_ASSERT_EQUAL_UINT32(first[i % 2].module.v, again.module.v);
    }

    TEST_ASSERT_EQUAL_UINT32(count, ta__modules_count());
    TEST_ASSERT_TRUE(ta__modules_generation >= generation + 200);
    for (int i = 0; i < 2; i++) {
        ta__module_id id = ta__module_find_salted(first[i].address, ta__rule_salt(first[i].rule));
        TEST_ASSERT_EQUAL_UINT32(first[i].module.v, id.v);
        TEST_ASSERT_EQUAL_STRING(pair[i].path, ta__module_at(id)->path);
    }
}

static void test_modules_taking_turns_at_one_address_never_leave_a_stale_rule(void)
{
    unsigned long before = loader_requests;

    visit_by_turns(plugins);

    TEST_ASSERT_TRUE(!IS_MALLOC || loader_requests > before + 200);
}

static void test_modules_without_build_ids_taking_turns_are_told_apart(void)
{
    visit_by_turns(bare_plugins);
}

static void test_modules_taking_turns_are_told_apart_by_the_list_too(void)
{
    ta__objects_use_list(1);
    ta__modules_begin();

    visit_by_turns(plugins);
}

static void test_modules_unwatched_leave_stale_rules_so_the_check_is_needed(void)
{
    is_checking = 0;
    unsigned stale = 0;
    for (unsigned i = 0; i < 10; i++)
        stale += (unsigned)visit(&plugins[i % 2]).is_stale;

    TEST_ASSERT_TRUE(stale >= 4); /* nearly every second visit: what the check prevents does happen */
}

static void test_modules_exchanged_while_stopped_are_noticed_at_the_next_beginning(void)
{
    struct visit first = visit(&plugins[0]);
    is_checking = 0;
    void *handle = dlopen(plugins[1].path, RTLD_NOW);
    void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "plugin_call");

    ta__modules_begin();
    call(observe);
    dlclose(handle);

    TEST_ASSERT_EQUAL_HEX64(first.address, seen_address);
    TEST_ASSERT_EQUAL_INT64(plugins[1].offset, ta__rule_offset(seen_rule));
    TEST_ASSERT_NOT_EQUAL(ta__rule_salt(first.rule), ta__rule_salt(seen_rule));
}

static void test_modules_gone_are_noticed_when_their_addresses_are_asked_for(void)
{
    is_checking = 0;
    struct visit gone = visit(&plugins[0]);
    uint64_t generation = ta__modules_generation;
    TEST_ASSERT_EQUAL_UINT32(gone.module.v, ta__module_find(gone.address).v);

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule(gone.address + 1));

    TEST_ASSERT_NOT_EQUAL(generation, ta__modules_generation);
    TEST_ASSERT_EQUAL_UINT32(0, ta__module_find(gone.address).v);
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__rule(gone.address));
}

/* ---- threads ---- */

static int is_over;

static void *read_rules(void *context)
{
    uintptr_t base = *(uintptr_t *)context;
    uint64_t expected[256];
    for (unsigned i = 0; i < 256; i++)
        expected[i] = ta__rule(base + i * 61);
    unsigned long wrong = 0;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        for (unsigned i = 0; i < 256; i++)
            wrong += ta__rule(base + i * 61) != expected[i];
    return (void *)wrong;
}

static void test_modules_come_and_go_while_threads_read_rules(void)
{
    uintptr_t base = (uintptr_t)dlsym(RTLD_DEFAULT, "qsort");
    pthread_t threads[3];
    is_over = 0;
    for (int i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, read_rules, &base));

    for (unsigned i = 0; i < 300; i++)
        TEST_ASSERT_FALSE(visit(&plugins[i % 2]).is_stale);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);

    for (int i = 0; i < 3; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)wrong);
    }
}

static void *write_table(void *context)
{
    (void)context;
    struct ta__module scratch;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        ta__modules_begin(); /* every module is doubtful again: describing it takes the lock */
        ta__module_describe(loader_address(), &scratch);
    }
    return NULL;
}

static void test_modules_after_fork_of_a_writer_are_kept_again(void)
{
    uintptr_t site = own_call_site();
    pthread_t writer;
    is_over = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&writer, NULL, write_table, NULL));

    unsigned kept = 0;
    for (unsigned i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct ta__module scratch;
            ta__modules_after_fork();
            ta__modules_begin();
            _exit(ta__module_describe(site, &scratch)->id.v != 0 ? 0 : 1);
        }
        int status = -1;
        TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
        kept += status == 0;
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(writer, NULL);

    TEST_ASSERT_EQUAL_UINT(100, kept);
}

int main(void)
{
    UNITY_BEGIN();
    ta__memory_inject_failure(1, 1);                                    /* the first test takes it back */
    RUN_TEST(test_modules_without_memory_rules_are_computed_each_time); /* first: the table is not mapped yet */
    RUN_TEST(test_rules_table_without_memory_stays_small);              /* in this order: it only grows */
    RUN_TEST(test_rules_few_take_little_and_more_a_larger_table_that_has_them);
    RUN_TEST(test_rules_are_read_while_the_table_grows);
    RUN_TEST(test_modules_of_known_objects_have_their_paths);
    RUN_TEST(test_modules_opened_by_a_way_from_here_have_whole_paths);
    RUN_TEST(test_modules_have_the_build_ids_of_their_notes);
    RUN_TEST(test_modules_know_the_loader);
    RUN_TEST(test_a_stack_is_whole_where_the_loader_begins);
    RUN_TEST(test_modules_keep_errno);
    RUN_TEST(test_modules_address_without_object_is_unknown);
    RUN_TEST(test_rules_from_the_cache_equal_computed_ones);
    RUN_TEST(test_rules_interrupted_and_returned_to_differ_at_a_row_boundary);
    RUN_TEST(test_rules_of_an_older_generation_never_match_again);
    RUN_TEST(test_rules_of_a_tag_gone_around_were_cleared);
    RUN_TEST(test_modules_taking_turns_at_one_address_never_leave_a_stale_rule);
    RUN_TEST(test_modules_without_build_ids_taking_turns_are_told_apart);
    RUN_TEST(test_modules_taking_turns_are_told_apart_by_the_list_too);
    RUN_TEST(test_modules_unwatched_leave_stale_rules_so_the_check_is_needed);
    RUN_TEST(test_modules_exchanged_while_stopped_are_noticed_at_the_next_beginning);
    RUN_TEST(test_modules_gone_are_noticed_when_their_addresses_are_asked_for);
    RUN_TEST(test_modules_come_and_go_while_threads_read_rules);
    RUN_TEST(test_modules_after_fork_of_a_writer_are_kept_again);
    return UNITY_END();
}
